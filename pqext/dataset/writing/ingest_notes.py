"""Records of the input files that the rows of a folder come from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.pending_files import check_manifest_size
from pqext.dataset.files.manifests import parsed, whole

Digest = tuple[tuple[int, str], ...]
"""Hashes of consecutive byte ranges of a file, each with the end of its range."""


@dataclass(frozen=True)
class Noted:
    """An input file of a job."""

    stamp: str
    """The size, and the modification time or the version in its store."""
    digest: Digest | None = None
    """The content hashes; None for files of stores, and in records of earlier versions."""
    arguments: Mapping[str, str] | None = None
    """The arguments of the job as text; None in records of earlier versions."""
    bad_lines: int = 0
    """Number of invalid documents."""


Note = Mapping[str, Noted]
"""The input files of one job, by path."""


def read_ingest_note(note: bytes, path: str) -> Note:
    """Parse the note of a job. Raises ``CorruptFileError`` if it is damaged."""
    try:
        content = parsed(note)
        arguments = content.get("arguments")
        if arguments is not None:
            arguments = {str(name): str(text) for name, text in arguments.items()}
        return {
            str(file["path"]): Noted(
                str(file["stamp"]), _digest(file.get("digest")), arguments, whole(file.get("bad_lines", 0))
            )
            for file in content["files"]
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFileError(
            f"the note of what was ingested is damaged ({error}): remove it to ingest its files again", path=path
        ) from None


def note_of(entries: Sequence[Mapping[str, Any]], arguments: Mapping[str, str] | None = None) -> bytes:
    """Build the record of ingested files. Raises ``LimitError`` for more files than a record can hold."""
    content = {"version": 1, "files": [*entries]} | ({} if arguments is None else {"arguments": {**arguments}})
    note = json.dumps(content).encode()
    check_manifest_size(len(note), "the note of what is ingested")
    return note


def _digest(ranges: Any) -> Digest | None:
    return None if ranges is None else tuple((whole(stop), str(text)) for stop, text in ranges)
