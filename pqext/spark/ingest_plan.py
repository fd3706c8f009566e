"""Which files are ingested, by which task, and how: made on the driver, sent to the tasks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, Literal

import pyarrow as pa

from pqext.core.local_paths import scheme_of
from pqext.core.sources.locate import locate
from pqext.core.sources.store import Location
from pqext.core.sources.streams import codec_of
from pqext.dataset.files.sources import find_sources
from pqext.dataset.made_columns import Made, path_within
from pqext.geo.types import geometry_field
from pqext.spark.files import local_path, slice_bytes
from pqext.spark.json_source import READ_BYTES
from pqext.spark.part_files import Division
from pqext.variant.access.path import as_path
from pqext.variant.access.targets import target_type
from pqext.variant.json.files import Piece, pieces_at
from pqext.variant.json.lines import SAMPLE_BYTES
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, Parsing, parsing
from pqext.variant.types import variant_field

TASK_BYTES = 256 << 20
"""Text of a task at most, unless one line or one file that cannot be cut has more."""
_PACKED = 5
"""How many times its stored bytes a compressed file is taken to hold."""
_SAMPLED_FILES = 4
_GEOMETRIES: tuple[Literal["points", "wkt", "geojson"], ...] = ("points", "wkt", "geojson")


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


@dataclass(frozen=True)
class Ingestion:
    """How documents become rows: all of a job but its paths."""

    column: str
    shredding: Any
    numbers: str
    duplicate_keys: str
    max_bytes: int
    form: str
    on_error: str
    error_column: str | None
    made: tuple[tuple[Made, pa.Field], ...]
    partitions: tuple[tuple[str, str, str], ...]
    """The name, the path and the type of each column that names folders."""
    tells_bad_lines: bool
    division: Division
    storage_options: Mapping[str, Any] | None = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)

    def parsing(self) -> Parsing:
        """How text is parsed. Faults are told rather than raised, so that they can be placed in their files."""
        return parsing(
            self.numbers, "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, self.max_bytes, self.shredding
        )

    def schema(self, how: Parsing) -> pa.Schema:
        """The schema of the files that are written."""
        fields = [variant_field(self.column) if how.schema is None else pa.field(self.column, how.type)]
        fields += [marked for _, marked in self.made]
        if self.error_column is not None:
            fields.append(pa.field(self.error_column, pa.string()))
        fields += [pa.field(name, target_type(kind)) for name, _, kind in self.partitions]
        return pa.schema(fields)

    def place(self, part: Part) -> Any:
        """Where a file lies."""
        return locate(part.path, None, self.storage_options if scheme_of(part.path) is not None else None)

    def pieces(self, part: Part) -> Iterator[Piece]:
        """The text of a file or a range."""
        form: Any = self.form
        yield from pieces_at(self.place(part), form, READ_BYTES, self.max_bytes, part.start, part.stop)

    def sample(self, parts: Sequence[Part]) -> list[pa.StructArray]:
        """The first documents of some of the files, from which the schema is inferred."""
        step = max(1, len(parts) // _SAMPLED_FILES)
        chosen = parts[::step][:_SAMPLED_FILES]
        found: list[pa.StructArray] = []
        for part in chosen:
            for piece in islice(self.pieces(part), 1):
                found += piece.sample(self.parsing(), SAMPLE_BYTES // len(chosen))
        return found


def made_columns(geometry: Mapping[str, Any] | None) -> tuple[tuple[tuple[Made, pa.Field], ...], dict[str, Any]]:
    """The geometry columns that are made of paths within documents, and what the writer is told of them.

    Raises ``ValueError`` or ``TypeError`` for what is no choice of paths.
    """
    made, choices = [], {}
    for name, given in (geometry or {}).items():
        choice = dict(given) if isinstance(given, Mapping) else {"points": given}
        kinds = [kind for kind in _GEOMETRIES if kind in choice]
        if len(kinds) != 1:
            raise ValueError(
                f"geometry {name!r} has {' and '.join(kinds) or 'no paths'}: give one of 'points', 'wkt' and 'geojson'"
            )
        kind, paths = kinds[0], choice.pop(kinds[0])
        paths = (paths,) if isinstance(paths, str) else tuple(paths)
        if len(paths) not in ((2, 3) if kind == "points" else (1,)) or not all(isinstance(path, str) for path in paths):
            wanted = 'two or three paths, as in ("$.lon", "$.lat")' if kind == "points" else "one path"
            raise ValueError(f"geometry {name!r}: {kind} takes {wanted}, not {paths!r}")
        for path in paths:
            as_path(path_within(path))
        made.append((Made(kind, name, paths), geometry_field(name, choice.get("crs"), choice.get("edges", "planar"))))
        if choice:
            choices[name] = choice
    return tuple(made), choices


def partition_columns(given: Mapping[str, Any] | Sequence[str] | None) -> tuple[tuple[str, str, str], ...]:
    """Name, path and type of the columns that name folders: paths by names, or paths whose last key is the name.

    Raises ``ValueError`` or ``TypeError`` for what is none.
    """
    if isinstance(given, str):
        raise TypeError("partition_by is a list of paths, or maps names to paths")
    named = given if isinstance(given, Mapping) else {_last_key(path): path for path in given or ()}
    if not isinstance(given, Mapping) and len(named) < len(given or ()):
        several = ", ".join(map(repr, given or ()))
        raise ValueError(f"partition_by: two of {several} end in one name: map names to paths")
    found = []
    for name, choice in named.items():
        path, kind = (choice, "string") if isinstance(choice, str) else tuple(choice)
        as_path(path_within(path))
        target_type(kind)
        found.append((name, path_within(path), kind))
    return tuple(found)


def _last_key(path: str) -> str:
    key = as_path(path_within(path))[-1:]
    if not key or not isinstance(key[0], str):
        raise ValueError(f"partition_by: {path!r} does not end in a name: map a name to it")
    return key[0]


def find_parts(paths: str | Sequence[str], storage_options: Mapping[str, Any] | None) -> list[Part]:
    """The files that ``paths`` name: files, folders, patterns and URLs of all of these."""
    parts: dict[str, Part] = {}
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        given = os.fspath(path)
        scheme = scheme_of(given)
        is_remote = scheme is not None and scheme != "file"
        named, options = (given, storage_options) if is_remote else (local_path(given), None)
        for place in find_sources(named, None, options):
            if isinstance(place, str):
                parts[place] = Part(place, place, *stamp_of(place))
                continue
            # What is named outright may need what names in messages leave out, a signature for example.
            is_named = place.key == locate(given, None, storage_options).key
            uri = given if is_named else place.path
            parts[uri] = Part(uri, place.path, *stamp_of(place))
    return list(parts.values())


def stamp_of(place: str | Location) -> tuple[str, int]:
    """What tells this version of a file from others, and its size."""
    if isinstance(place, str):
        stat = os.stat(place)
        return f"{stat.st_size} {stat.st_mtime_ns}", stat.st_size
    with place.open() as source:
        return f"{source.size} {getattr(source, 'version', None) or ''}".strip(), source.size


def share_out(parts: Iterable[Part], task_bytes: int | None, cut: bool) -> tuple[tuple[Part, ...], ...]:
    """The work of each task: ranges of large files, several small files; compressed files stay whole.

    ``cut``: do lines tell where documents begin?
    """
    weighed = [(part, part.size * (1 if codec_of(part.path) is None else _PACKED)) for part in parts]
    step = task_bytes or slice_bytes(sum(weight for _, weight in weighed), TASK_BYTES)
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
