"""Configuration of an ingest job, which the driver creates and sends to the tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import pyarrow as pa

from pqext.dataset.computed_columns import ColumnRecipe, variant_path
from pqext.dataset.writing.part_files import Division
from pqext.geo.types import geometry_field
from pqext.spark.json.csv_documents import CsvFormat, CsvRows, read_csv_rows
from pqext.spark.json.text_parts import READ_BYTES, Part, location_of
from pqext.variant.access.path import as_path
from pqext.variant.access.targets import target_type
from pqext.variant.json.documents import SAMPLE_BYTES
from pqext.variant.json.files import Piece, pieces_at
from pqext.variant.json.parser import DEFAULT_MAX_DEPTH, Parsing, parsing
from pqext.variant.timezones import DEFAULT
from pqext.variant.types import variant_field

_SAMPLED_FILES = 4
_GEOMETRIES: tuple[Literal["points", "wkt", "geojson"], ...] = ("points", "wkt", "geojson")


@dataclass(frozen=True)
class IngestConfig:
    """Conversion of documents to rows, with all arguments of a job except its paths."""

    column: str
    shredding: Any
    numbers: str
    duplicate_keys: str
    max_bytes: int
    format: str
    on_error: str
    error_column: str | None
    geometry_columns: tuple[tuple[ColumnRecipe, pa.Field], ...]
    partitions: tuple[tuple[str, str, str], ...]
    """Name, path and type of each partition column."""
    has_bad_lines_file: bool
    division: Division
    csv: CsvFormat | None
    """Format of CSV files with documents; None for JSON files."""
    storage_options: Mapping[str, Any] | None = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)
    timezone: str = DEFAULT
    """Time zone of local times in partition columns."""

    def parsing(self) -> Parsing:
        """Return the parser. It reports errors instead of raising them, so that messages can include their location."""
        return parsing(
            self.numbers, "null", self.duplicate_keys, DEFAULT_MAX_DEPTH, self.max_bytes, self.shredding
        )

    def schema(self, parsing: Parsing) -> pa.Schema:
        """Return the schema of the written files."""
        fields = [variant_field(self.column) if parsing.schema is None else pa.field(self.column, parsing.type)]
        fields += [field for _, field in self.geometry_columns]
        fields += self.csv_fields
        if self.error_column is not None:
            fields.append(pa.field(self.error_column, pa.string()))
        fields += [pa.field(name, target_type(type)) for name, _, type in self.partitions]
        return pa.schema(fields)

    @property
    def csv_fields(self) -> list[pa.Field]:
        """Columns of CSV files in addition to the documents."""
        return [] if self.csv is None else self.csv.fields()

    @property
    def unit(self) -> str:
        """Unit of positions in messages, ``line`` or ``row``."""
        return "line" if self.csv is None else "row"

    def locate(self, part: Part) -> Any:
        """Return the location of the file of a part."""
        return location_of(part, self.storage_options)

    def chunks(self, part: Part) -> Iterator[Piece | CsvRows]:
        """Yield the text of a file, or of a range of a file, in chunks."""
        if self.csv is not None:
            yield from read_csv_rows(self.locate(part), self.csv)
            return
        layout: Any = self.format
        yield from pieces_at(self.locate(part), layout, READ_BYTES, self.max_bytes, part.start, part.stop)

    def sample(self, parts: Sequence[Part]) -> list[pa.StructArray]:
        """Parse the first documents of up to ``_SAMPLED_FILES`` files, to infer the schema."""
        step = max(1, len(parts) // _SAMPLED_FILES)
        sampled = parts[::step][:_SAMPLED_FILES]
        arrays: list[pa.StructArray] = []
        for part in sampled:
            for chunk in islice(self.chunks(part), 1):
                arrays += chunk.sample(self.parsing(), SAMPLE_BYTES // len(sampled))
        return arrays


def geometry_columns(
    geometry: Mapping[str, Any] | None,
) -> tuple[tuple[tuple[ColumnRecipe, pa.Field], ...], dict[str, Any]]:
    """Parse argument ``geometry``. Returns the columns computed from paths, and option ``geometry`` of the writer.

    Raises ``ValueError`` or ``TypeError`` for an invalid argument.
    """
    columns, options = [], {}
    for name, argument in (geometry or {}).items():
        choice = dict(argument) if isinstance(argument, Mapping) else {"points": argument}
        formats = [format for format in _GEOMETRIES if format in choice]
        if len(formats) != 1:
            result = " and ".join(formats) or "no paths"
            raise ValueError(f"geometry {name!r} has {result}: pass one of 'points', 'wkt' and 'geojson'")
        format, paths = formats[0], choice.pop(formats[0])
        paths = (paths,) if isinstance(paths, str) else tuple(paths)
        counts = (2, 3) if format == "points" else (1,)
        if len(paths) not in counts or not all(isinstance(path, str) for path in paths):
            expected = 'two or three paths, as in ("$.lon", "$.lat")' if format == "points" else "one path"
            raise ValueError(f"geometry {name!r}: {format} needs {expected}, not {paths!r}")
        for path in paths:
            as_path(variant_path(path))
        field = geometry_field(name, choice.get("crs"), choice.get("edges", "planar"))
        columns.append((ColumnRecipe(format, name, paths), field))
        if choice:
            options[name] = choice
    return tuple(columns), options


def partition_columns(partition_by: Mapping[str, Any] | Sequence[str] | None) -> tuple[tuple[str, str, str], ...]:
    """Parse argument ``partition_by``. Returns the name, path and type of each partition column.

    Raises ``ValueError`` or ``TypeError`` for an invalid argument.
    """
    if isinstance(partition_by, str):
        raise TypeError(f"partition_by must be a list of paths, or map names to paths, not {partition_by!r}")
    if isinstance(partition_by, Mapping):
        columns: Mapping[str, Any] = partition_by
    else:
        paths = list(partition_by or ())
        columns = {_last_key(path): path for path in paths}
        if len(columns) < len(paths):
            listed = ", ".join(map(repr, paths))
            raise ValueError(f"partition_by: two of {listed} end with the same key; pass a mapping of names to paths")
    parsed = []
    for name, choice in columns.items():
        path, type = (choice, "string") if isinstance(choice, str) else tuple(choice)
        as_path(variant_path(path))
        target_type(type)
        parsed.append((name, variant_path(path), type))
    return tuple(parsed)


def _last_key(path: str) -> str:
    key = as_path(variant_path(path))[-1:]
    if not key or not isinstance(key[0], str):
        raise ValueError(f"partition_by: {path!r} does not end with a key; pass a mapping of names to paths")
    return key[0]
