"""Prune the files of a table by the statistics in its log, without reading footers.

A file is treated as one row group, so that the rules that prune row groups also prune files. Its columns are those of
an empty template file with the table's schema. The VARIANT columns of the template are shredded by the paths that have
bounds.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import GeospatialStatistics
from pqext.core.format.predicate import Bounds, Predicate
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import Expression, VariantField, bases
from pqext.dataset.expressions.visitors import operands, paths
from pqext.dataset.files.sources import source_name
from pqext.dataset.pruning.binding import Bound, bind
from pqext.dataset.pruning.row_groups import prove_no_match, row_group_may_match
from pqext.geo.geoparquet import KEY as GEOPARQUET
from pqext.geo.storage import COVERING_FIELDS
from pqext.tables.file_statistics import FileStatistics, MergedStatistics, merge_ranges
from pqext.tables.variant_paths import PathRange, path_ranges, shredding_of
from pqext.variant.access.path import parse

if TYPE_CHECKING:
    from pqext.core.schema.facts import LeafFacts

UNKNOWN = Bounds(has_nan=None)
_REASONS = 100
"""Number of pruned files whose reasons are stated in full."""
_BLOCK = 32
"""Number of files that are tested together first, as one file with the rows of all."""


class LogStatistics:
    """Statistics of the files in a table version, by file name. ``schema`` is the schema of the table.

    ``coverings`` maps the names of geometry columns to the names of their covering columns.
    """

    def __init__(
        self, schema: pa.Schema, files: Mapping[str, FileStatistics], coverings: Mapping[str, str] | None = None
    ) -> None:
        self._schema = schema
        self._files = files
        self._coverings = coverings or {}
        self._recent_ranges: dict[str, tuple[Any, list[dict[tuple[str, ...], PathRange]]]] = {}

    def files_of(self, sources: Sequence[Any]) -> list[FileStatistics | None]:
        """Return the statistics of each source; None for sources without statistics in the log."""
        return [self._files.get(source_name(source)) for source in sources]

    def prune_reasons(self, sources: Sequence[Any], filter: Expression) -> list[str | None]:
        """Return, for each source, the reason why no row matches ``filter``; None if a row may match."""
        names = {path[0] for path in paths(filter)}
        coverings = {name: self._coverings[name] for name in names & self._coverings.keys()}
        names |= {*coverings.values()}
        geo = geoparquet_metadata(coverings) if coverings else None
        needed = pa.schema([field for field in self._schema if field.name in names])
        variants = {field.name: _paths_within(filter, field.name) for field in needed if _is_variant(field)}
        files = self.files_of(sources)
        ranges = {name: self._path_ranges(name, sources, files, requested) for name, requested in variants.items()}
        layouts: dict[Any, list[int]] = defaultdict(list)
        for row, file in enumerate(files):
            if file is not None and file.num_rows:
                layouts[tuple(tuple(map(_path_and_type, each[row].items())) for each in ranges.values())].append(row)
        reasons: list[str | None] = [None] * len(files)
        stated, summary = 0, f"{filter} is true for no row"
        for rows in layouts.values():
            schema, bound = _bind(filter, needed, {name: each[rows[0]] for name, each in ranges.items()})
            if bound is None:
                continue
            log = _LogFacts(schema, files, ranges, geo, coverings)
            for start in range(0, len(rows), _BLOCK):
                block = rows[start : start + _BLOCK]
                is_pruned = stated == _REASONS and not row_group_may_match(bound, log.row_facts(block))
                for row in block:
                    if is_pruned or not row_group_may_match(bound, log.row_facts([row])):
                        reasons[row] = summary if stated == _REASONS else _reason(bound, log.row_facts([row]), summary)
                        stated = min(stated + 1, _REASONS)
        return reasons

    def _path_ranges(
        self, column: str, sources: Sequence[Any], files: Sequence[FileStatistics | None],
        variant_paths: frozenset[tuple[str, ...]],
    ) -> list[dict[tuple[str, ...], PathRange]]:
        """Return the result of :func:`variant_ranges`, which is cached for the next query of the same paths."""
        key = variant_paths, tuple(map(source_name, sources))
        known = self._recent_ranges.get(column)
        if known is None or known[0] != key:
            known = self._recent_ranges[column] = key, variant_ranges(files, (column,), variant_paths)
        return known[1]


def _path_and_type(path_range: tuple[tuple[str, ...], PathRange]) -> tuple[tuple[str, ...], pa.DataType]:
    """Return the path and the type of an item of the ranges of a file."""
    return path_range[0], path_range[1].type


def _reason(bound: Bound, facts: _FileFacts, summary: str) -> str:
    """Return the reason why no row of a pruned file matches."""
    proof = prove_no_match(bound, replace(facts, uses_buckets=False))
    return f"{summary}: the rows are in other buckets" if proof is None else proof.reason


def variant_ranges(
    files: Sequence[FileStatistics | None], column: tuple[str, ...], variant_paths: Collection[tuple[str, ...]]
) -> list[dict[tuple[str, ...], PathRange]]:
    """Return, for each file, the bounds of ``variant_paths`` in a VARIANT column. Paths without bounds are missing."""
    bounds = [(None, None) if file is None else file.variant_bounds(column) for file in files]
    return path_ranges(bounds, variant_paths)


def _paths_within(filter: Expression, column: str) -> frozenset[tuple[str, ...]]:
    """Return the paths within a VARIANT column to which a filter refers. Paths with array elements are omitted."""
    fields = (base for operand in operands(filter) for base in bases(operand) if isinstance(base, VariantField))
    paths = (parse(field.path) for field in fields if field.column.path == (column,))
    return frozenset(tuple(map(str, path)) for path in paths if all(isinstance(step, str) for step in path))


def _bind(
    filter: Expression, schema: pa.Schema, ranges: Mapping[str, Mapping[tuple[str, ...], PathRange]]
) -> tuple[Schema, Bound | None]:
    """Bind a filter to a Parquet schema for ``schema``, with the paths of ``ranges`` as shredded columns."""
    shredding = {
        name: spec
        for name, paths in ranges.items()
        if (spec := shredding_of({path: each.type for path, each in paths.items()})) is not None
    }
    template = _template(schema.serialize().to_pybytes(), tuple(shredding.items()))
    try:
        return template, bind(filter, template)
    except (ParquetError, ValueError, TypeError):  # the files report the error
        return template, None


@lru_cache(maxsize=64)
def _template(schema: bytes, shredding: tuple[tuple[str, pa.DataType], ...]) -> Schema:
    """Return the Parquet schema for ``schema``, a serialized Arrow schema.

    Schemas of Arrow are equal when only the metadata, such as the CRS of a geometry, differs.
    """
    sink = BytesIO()
    write_table(pa.ipc.read_schema(pa.py_buffer(schema)).empty_table(), sink, shredding=dict(shredding))
    with ParquetFile(sink.getvalue()) as file:
        return file.schema


def geoparquet_metadata(coverings: Mapping[str, str]) -> str:
    """Return GeoParquet metadata that names the covering columns of geometry columns."""
    columns = {
        name: {
            "encoding": "WKB", "geometry_types": [],
            "covering": {"bbox": {bound: [covering, bound] for bound in COVERING_FIELDS}},
        }
        for name, covering in coverings.items()
    }
    return json.dumps({"version": "1.1.0", "primary_column": next(iter(columns)), "columns": columns})


def _is_variant(field: pa.Field) -> bool:
    return (field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.parquet.variant"


@dataclass(frozen=True, slots=True)
class _LogFacts:
    """Statistics of files with the same VARIANT paths. The arguments are as in :class:`_FileFacts`, for all files."""

    schema: Schema
    files: Sequence[FileStatistics | None]
    ranges: Mapping[str, Sequence[Mapping[tuple[str, ...], PathRange]]]
    geo: str | None
    covered: Collection[str]

    def row_facts(self, rows: Sequence[int]) -> _FileFacts:
        """Return the statistics of a file, or of several files as one. The numbers of rows of all files are known."""
        if len(rows) == 1:
            file = self.files[rows[0]]
            ranges = {name: each[rows[0]] for name, each in self.ranges.items()}
        else:
            file = MergedStatistics([file for file in (self.files[row] for row in rows) if file is not None])
            ranges = {name: merge_ranges([each[row] for row in rows]) for name, each in self.ranges.items()}
        assert file is not None
        geo = self.geo if self.geo is not None and file.covers(self.covered) else None
        return _FileFacts(self.schema, file, file.num_rows or 0, ranges, geo)


@dataclass(frozen=True, slots=True)
class _FileFacts:
    """Log statistics of a file, represented as one row group with the Parquet ``schema``."""

    schema: Schema
    statistics: FileStatistics
    num_rows: int
    ranges: Mapping[str, Mapping[tuple[str, ...], PathRange]]
    geo: str | None
    """GeoParquet metadata that names the covering columns."""
    uses_buckets: bool = True

    index = 0
    trust_statistics = True

    def chunk(self, leaf: SchemaNode | int | str) -> LeafFacts:
        """Return the statistics of a leaf of the Parquet schema."""
        if isinstance(leaf, str):
            node = self.schema.find(leaf)
            assert node is not None
            leaf = node
        return _LeafFacts(self.schema.leaves[leaf] if isinstance(leaf, int) else leaf, self)

    def bounds(self, leaf: SchemaNode) -> Bounds:
        """Return the bounds of a leaf's values."""
        ranges = self.ranges.get(leaf.path[0])
        if ranges is None:
            return UNKNOWN if leaf.max_repetition_level else self.statistics.bounds(leaf.path)
        if leaf.path[1:] == ("metadata",):
            return self.statistics.bounds(leaf.path[:1])
        # The column of $.a.b is typed_value.a.typed_value.b.typed_value.
        path_range = ranges.get(leaf.path[2:-1:2])
        if path_range is None:
            return UNKNOWN
        if leaf.name == "typed_value":
            return path_range.bounds
        return Bounds(null_count=self.num_rows, num_values=self.num_rows)

    def stored_bytes(self, leaves: Collection[SchemaNode]) -> int:
        """Return 0, because the sizes of columns are unknown."""
        return 0

    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Do nothing, because a log has no pages."""

    def file_property(self, key: str) -> str | None:
        """Return the GeoParquet metadata; None for other keys, because the file's metadata is unknown."""
        return self.geo if key == GEOPARQUET else None


@dataclass(frozen=True, slots=True)
class _LeafFacts:
    """Log statistics of one leaf of a file, represented as a column chunk."""

    node: SchemaNode
    file: _FileFacts

    row_group = 0
    codec = 0
    byte_range = (0, 0)
    uncompressed_bytes = 0
    pages = None
    page_locations = None

    @property
    def num_values(self) -> int:
        """Number of rows of the file."""
        return self.file.num_rows

    @property
    def geospatial_statistics(self) -> GeospatialStatistics | None:
        """Bounding box of the geometries; None if unknown."""
        return self.file.statistics.box(self.node.path)

    def bounds(self) -> Bounds:
        """Return the bounds of the values."""
        return self.file.bounds(self.node)

    def may_contain(self, predicate: Predicate) -> bool:
        """Return False if the buckets of the file's partition exclude all values of an equality ``predicate``."""
        return not self.file.uses_buckets or self.file.statistics.may_contain(self.node.path, predicate)

    def ignore_corrupt(self, structure: str, error: ParquetError) -> None:
        """Do nothing, because a log has no index structures."""

    def extension(self, owner: UUID) -> bytes | None:
        """Return None, because a log has no extensions."""
        return None

