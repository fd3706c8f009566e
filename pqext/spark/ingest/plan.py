"""Which files are ingested, by which task, and how: made on the driver, sent to the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import pyarrow as pa

from pqext.dataset.computed_columns import Made, path_within
from pqext.dataset.writing.part_files import Division
from pqext.geo.types import geometry_field
from pqext.spark.json.csv_documents import CsvForm, CsvPiece, csv_pieces
from pqext.spark.json.text_parts import READ_BYTES, Part, place_of
from pqext.variant.access.path import as_path
from pqext.variant.access.targets import target_type
from pqext.variant.json.files import Piece, pieces_at
from pqext.variant.json.lines import SAMPLE_BYTES
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, Parsing, parsing
from pqext.variant.timezones import DEFAULT
from pqext.variant.types import variant_field

_SAMPLED_FILES = 4
_GEOMETRIES: tuple[Literal["points", "wkt", "geojson"], ...] = ("points", "wkt", "geojson")


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
    csv: CsvForm | None
    """Where documents are in files of CSV; None for files of JSON."""
    storage_options: Mapping[str, Any] | None = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    timezone: str = DEFAULT
    """The zone of local times in columns that name folders."""

    def parsing(self) -> Parsing:
        """How text is parsed. Faults are told rather than raised, so that they can be placed in their files."""
        return parsing(
            self.numbers, "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, self.max_bytes, self.shredding
        )

    def schema(self, how: Parsing) -> pa.Schema:
        """The schema of the files that are written."""
        fields = [variant_field(self.column) if how.schema is None else pa.field(self.column, how.type)]
        fields += [marked for _, marked in self.made]
        fields += self.beside
        if self.error_column is not None:
            fields.append(pa.field(self.error_column, pa.string()))
        fields += [pa.field(name, target_type(kind)) for name, _, kind in self.partitions]
        return pa.schema(fields)

    @property
    def beside(self) -> list[pa.Field]:
        """The columns of files of CSV that are kept beside the documents."""
        return [] if self.csv is None else self.csv.fields()

    @property
    def unit(self) -> str:
        """What messages number."""
        return "line" if self.csv is None else "row"

    def place(self, part: Part) -> Any:
        """Where a file lies."""
        return place_of(part, self.storage_options)

    def pieces(self, part: Part) -> Iterator[Piece | CsvPiece]:
        """The text of a file or a range."""
        if self.csv is not None:
            yield from csv_pieces(self.place(part), self.csv)
            return
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
