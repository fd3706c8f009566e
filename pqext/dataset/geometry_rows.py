"""Rows of a table or scan with a geometry column, read in batches: the input of spatial joins and dissolve."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.schema.types.arrow_compute import decode_run_ends
from pqext.core.schema.types.geometries import crs_label
from pqext.core.write.table_inputs import as_table
from pqext.dataset.expressions import col
from pqext.dataset.reading import scan
from pqext.dataset.scan import Scan
from pqext.geo import crs as crs_
from pqext.geo.frames import from_geopandas, geometry_columns
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.types import Edges, GeospatialType
from pqext.geo.wkb import binary_chunks, holds_bytes
from pqext.variant.coercion import replace_views

BATCH_ROWS = 1 << 16
"""Maximum number of rows that are processed together."""


@dataclass(frozen=True)
class GeometryRows:
    """A table or scan, and its geometry column. The geometry type is None for a plain column of WKB."""

    rows: pa.Table | Scan
    name: str
    type: GeospatialType | None
    has_stored_edges: bool = True
    """Whether the geometries have the edges of the column, so that a scan can filter them."""

    @classmethod
    def from_input(cls, rows: Any, name: str | None, subject: str, remedy: str) -> GeometryRows:
        """Create rows from a table, a scan, a path or any input of :func:`pqext.write_table`.

        ``name`` is the geometry column, None for the only one. ``subject`` describes the rows in
        errors, and ``remedy`` is the argument that selects the column.

        Raises:
            ValueError: If the column does not exist, is ambiguous, or is not the only geometry column.
            TypeError: If the column does not contain WKB.
        """
        data = _as_rows(rows)
        names, types = data.schema.names, geometry_columns(data.schema)
        if name is None:
            if len(types) != 1:
                problem = f"several geometry columns, {join_names(types)}" if types else "no geometry column"
                raise ValueError(f"{subject} has {problem}; select a column with {remedy}")
            name = next(iter(types))
        if name not in names:
            raise ValueError(f"{subject} has no column {name!r}{did_you_mean(name, names)}")
        if names.count(name) > 1:
            raise ValueError(f"{subject} has several columns with the name {name!r}; rename all but one")
        if not holds_bytes(data.schema.field(name).type):
            raise TypeError(f"column {name!r} of {subject} is {data.schema.field(name).type}, not WKB")
        return cls(data, name, types.get(name))

    @property
    def schema(self) -> pa.Schema:
        return _plain_schema(self.rows.schema)

    def select(self, names: Sequence[str]) -> GeometryRows:
        """Drop all columns except ``names`` and the geometry column."""
        chosen = [name for name in self.schema.names if name in names or name == self.name]
        return replace(self, rows=self.rows.select(chosen))

    def with_edges(self, edges: Edges) -> GeometryRows:
        """Return the same rows with ``edges`` as the edges of the geometry column: planar or geodesic.

        Raises ``GeometryError`` if the edges are unknown, or are not planar although the CRS is projected.
        """
        type = self.type or GeospatialType(edges=edges)
        if edges != "planar" and crs_.is_geographic(type.crs) is False:
            raise GeometryError(
                f"column {self.name!r}: edges={edges!r} requires a geographic CRS, not {crs_label(type.crs or '')}; "
                "transform it with geo.transform"
            )
        return replace(self, type=replace(type, edges=edges), has_stored_edges=edges == type.edges)

    def clip(self, box: tuple[float, float, float, float] | None) -> GeometryRows:
        """Restrict a scan to rows that intersect ``box``.

        Tables, limited scans and geometries with other edges than their column are returned unchanged.
        """
        if box is None or not isinstance(self.rows, Scan) or self.rows._is_limited or not self.has_stored_edges:
            return self
        return replace(self, rows=self.rows.filter(col([self.name]).intersects(box)))

    def table(self) -> pa.Table:
        """Return all rows as a table."""
        return _plain_table(self.rows if isinstance(self.rows, pa.Table) else self.rows.to_table())

    def exceeds(self, size: int) -> bool:
        """Return whether the rows are a scan that reads more than ``size`` bytes and that :meth:`clip` can restrict."""
        if not isinstance(self.rows, Scan) or self.rows._is_limited or not self.has_stored_edges:
            return False
        if self.type is None or not self.type.planar:
            return False
        return sum(task.bytes_kept for task in self.rows.plan()) > size

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows in tables of at most :data:`BATCH_ROWS` rows."""
        if isinstance(self.rows, pa.Table):
            for start in range(0, max(len(self.rows), 1), BATCH_ROWS):
                yield _plain_table(self.rows.slice(start, BATCH_ROWS))
            return
        for batch in self.rows.to_batches():
            yield from GeometryRows(pa.Table.from_batches([batch], self.rows.schema), self.name, self.type).tables()

    def geometries(self, table: pa.Table) -> GeometryColumn:
        """Return the geometry column of ``table``, which :meth:`table` or :meth:`tables` returned."""
        chunks = binary_chunks(table[self.name])
        wkb = pa.concat_arrays(chunks) if chunks else pa.array([], pa.binary())
        return GeometryColumn(wkb, self.type or GeospatialType())


def _as_rows(rows: Any) -> pa.Table | Scan:
    """Convert paths to scans, and other input to tables. Tables and scans are returned unchanged."""
    if isinstance(rows, pa.Table | Scan):
        return rows
    if isinstance(rows, str | os.PathLike):
        return scan(rows)
    if type(rows).__module__.partition(".")[0] == "geopandas":
        return from_geopandas(rows)
    table = as_table(rows)
    return table if isinstance(table, pa.Table) else table.read_all()


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` with layouts that Arrow's ``take`` supports: without views and run-end encoding."""
    fields = [field.with_type(_plain_type(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def _plain_type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.BaseExtensionType) or pa.types.is_list_view(type) or pa.types.is_large_list_view(type):
        return type
    return replace_views(type.value_type if pa.types.is_run_end_encoded(type) else type)


def _plain_table(table: pa.Table) -> pa.Table:
    """Convert ``table`` to the layouts of :func:`_plain_schema`."""
    schema = _plain_schema(table.schema)
    if schema.equals(table.schema):
        return table
    columns = []
    for column, field in zip(table.columns, schema, strict=True):
        chunks = column.chunks
        if pa.types.is_run_end_encoded(column.type):
            chunks = [decode_run_ends(chunk) for chunk in chunks]
        columns.append(pa.chunked_array([chunk.cast(field.type) for chunk in chunks], field.type))
    return pa.table(columns, schema=schema)
