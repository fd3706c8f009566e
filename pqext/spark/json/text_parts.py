"""Files of text, cut into ranges of lines or packed together as the work of tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import xxhash

from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.streams import codec_of, open_stream
from pqext.spark.base.files import is_remote, list_sources, local_path, slice_bytes
from pqext.variant.json.faults import LineFault, spans_lines
from pqext.variant.json.lines import count_newlines

READ_BYTES = 8 << 20
"""Text parsed into one batch, unless a line is longer."""
TASK_BYTES = 256 << 20
"""Text of a task at most, unless one line or one file that cannot be cut has more."""
_PACKED = 5
"""How many times its stored bytes a compressed file is taken to hold."""


@dataclass(frozen=True)
class Part:
    """A file of input, or the lines of it that begin at or after byte ``start`` and before ``stop``.

    ``path`` opens it, ``name`` is what messages call it, and ``stamp`` tells its version.
    """

    path: str
    name: str
    stamp: str
    size: int
    start: int = 0
    stop: int | None = None


def find_parts(paths: str | Sequence[str], storage_options: Mapping[str, Any] | None) -> list[Part]:
    """The files that ``paths`` name: files, folders, patterns and URLs of all of these."""
    found: dict[str, str | Location] = {}
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        given = os.fspath(path)
        named = given if is_remote(given) else local_path(given)
        storage = storage_options if is_remote(given) else None
        sources = list_sources([named], storage, ignore_table_format=True)  # files of text are no table's
        found |= {_plain(file) if isinstance(place, str) else file: place for file, place in sources}
    return parts_of((file, file if isinstance(place, str) else place) for file, place in found.items())


def _plain(path: str) -> str:
    """The path of a file without ``.`` and ``..``, by which it is known whatever path names it."""
    return os.path.realpath(path) if os.pardir in path.split(os.sep) else os.path.normpath(path)


def parts_of(files: Iterable[tuple[str, Any]]) -> list[Part]:
    """The files of these paths or URLs, and of these places."""
    return [
        Part(file, place if isinstance(place, str) else place.path, *stamp_of(place)) for file, place in files
    ]


def stamp_of(place: str | Location) -> tuple[str, int]:
    """What tells this version of a file from others, and its size."""
    if isinstance(place, str):
        stat = os.stat(place)
        return f"{stat.st_size} {stat.st_mtime_ns}", stat.st_size
    with place.open() as source:
        return f"{source.size} {getattr(source, 'version', None) or ''}".strip(), source.size


def digest_of(path: str, start: int, stop: int) -> str:
    """The hash of a byte range of a local file."""
    found = xxhash.xxh3_128()
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < stop and (data := file.read(min(READ_BYTES, stop - start))):
            found.update(data)
            start += len(data)
    return found.hexdigest()


def share_out(
    parts: Iterable[Part], task_bytes: int | None, cut: bool, upper: int = TASK_BYTES
) -> tuple[tuple[Part, ...], ...]:
    """The work of each task: ranges of large files, several small files; compressed files stay whole.

    ``cut``: do lines tell where documents begin? A task has ``task_bytes`` at most, or ``upper`` where that is None.
    """
    weighed = [(part, part.size * (1 if codec_of(part.path) is None else _PACKED)) for part in parts]
    step = task_bytes or slice_bytes(sum(weight for _, weight in weighed), upper)
    tasks: list[tuple[Part, ...]] = []
    packed: list[Part] = []
    held = 0
    for part, weight in weighed:
        if cut and weight > step and codec_of(part.path) is None:
            count = -(-part.size // step)
            bounds = [part.size * i // count for i in range(count + 1)]
            tasks += [
                (Part(part.path, part.name, part.stamp, part.size, start, stop),)
                for start, stop in pairwise(bounds)
            ]
            continue
        if packed and held + weight > step:
            tasks.append(tuple(packed))
            packed, held = [], 0
        packed.append(part)
        held += weight
    return (*tasks, *([tuple(packed)] if packed else []))


def place_of(part: Part, storage_options: Mapping[str, Any] | None) -> str | Location:
    """Where the file of a part lies."""
    place: str | Location = locate(part.path, None, storage_options if scheme_of(part.path) is not None else None)
    return place


def lines_before(place: str | Location, at: int) -> int:
    """The lines before byte ``at`` of a file that is not compressed."""
    with open_stream(place) as file:
        return count_newlines(file, at)


def form_hint(fault: LineFault) -> str:
    """What to do about a line that ends within a document; nothing for other faults."""
    if not spans_lines(fault):
        return ""
    return '; an array or a document that spans lines needs ingest_json(form="array") or form="documents"'
