"""What a summary notes of its files beside their row groups: so that it is trusted only for files that are still these.

An extension of the footer of ``_metadata``, JSON: the size and the time of the last change of each file when its footer
was read, in nanoseconds, length and CRC-32 of that footer, and its key-value metadata, by its place in a list of those
that differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pqext.core.base.errors import ParquetError
from pqext.core.format.extension.container import add_entries, entry
from pqext.core.format.metadata import FileMetaData, KeyValue

SUMMARY_NOTE = UUID("6c2f3f5e-6a0b-4b1c-9f0e-3b8a5e1f7d42")
"""Marks the extension."""
_MOST_BYTES = 64 << 20
"""A longer note is not written."""


@dataclass(frozen=True, slots=True)
class NotedFile:
    """A file as it was when its footer was read; ``pairs`` is None where it had no key-value metadata."""

    size: int
    mtime_ns: int
    pairs: Sequence[KeyValue] | None
    footer_bytes: int
    footer_crc: int

    @property
    def stamp(self) -> tuple[int, int]:
        """Size and time of the last change."""
        return self.size, self.mtime_ns


def add_note(metadata: FileMetaData, files: dict[str, NotedFile]) -> None:
    """Note ``files``, by their names, in the footer of their summary."""
    places: dict[tuple[tuple[str, str | None], ...] | None, int] = {}
    noted = []
    for name, file in files.items():
        pairs = None if file.pairs is None else tuple((pair.key, pair.value) for pair in file.pairs)
        place = places.setdefault(pairs, len(places))
        noted.append((name, file.size, file.mtime_ns, place, file.footer_bytes, file.footer_crc))
    payload = json.dumps({"version": 2, "files": noted, "pairs": [*places]}, separators=(",", ":")).encode()
    if len(payload) <= _MOST_BYTES:
        add_entries(metadata, {SUMMARY_NOTE: payload})


def noted(metadata: FileMetaData) -> dict[str, NotedFile] | None:
    """The files that a summary notes, by their names; None where there is no note, or none that can be understood."""
    try:
        payload = entry(metadata, SUMMARY_NOTE)
        if payload is None:
            return None
        tree = json.loads(payload)
        if tree["version"] != 2:
            return None
        lists = [None if pairs is None else [_pair(*pair) for pair in pairs] for pairs in tree["pairs"]]
        files = {
            _text(name): NotedFile(_integer(size), _integer(mtime), lists[_place(at)], _integer(length), _integer(crc))
            for name, size, mtime, at, length, crc in tree["files"]
        }
    except (ParquetError, ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    return files if len(files) == len(tree["files"]) else None


def _pair(key: Any, value: Any) -> KeyValue:
    return KeyValue(key=_text(key), value=None if value is None else _text(value))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("no integer")
    return value


def _place(value: Any) -> int:
    if _integer(value) < 0:
        raise TypeError("no place in a list")
    return int(value)
