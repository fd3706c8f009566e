"""Sort keys for the rows of tables: values, or positions of geometries on a Hilbert curve."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core.base.suggestions import unknown_column_message
from pqext.core.options.read_write import WriteOptions
from pqext.dataset.expressions import Column, Value, VariantField, bases, col, operand_column
from pqext.dataset.expressions.visitors import replace_columns
from pqext.dataset.notations.column_text import column_from_text, dotted_names
from pqext.dataset.scan import Scan
from pqext.geo.box import BoundingBox
from pqext.geo.types import type_of
from pqext.tables.clustering import add_keys, centres, hilbert_keys, sorted_batches
from pqext.variant.access.targets import target_type

_SORT_VERSION = 1
"""Version of the sort. Another order of the same keys needs another version, so that files are sorted again."""


def key_items(by: Any) -> tuple[str | Value, ...]:
    """Return one or more sort keys as a tuple. Raises ``TypeError`` if a key is neither text nor a value."""
    is_single = isinstance(by, str | bytes | Value) or not isinstance(by, Iterable)
    items = (by,) if is_single else tuple(by)
    if not all(isinstance(item, str | Value) for item in items):
        raise TypeError(
            "by must be a column name, a value such as pqext.col('v').variant('$.n', 'int64'), or a list of keys, not "
            f"{by!r}"
        )
    return items


@dataclass(frozen=True)
class SortKeys:
    """Sort keys of rows: values, or a single geometry column."""

    values: tuple[Value, ...]
    name: str
    """Text of the first key."""
    geometry: str | None = None
    planar: bool = True

    @staticmethod
    def resolve(items: tuple[str | Value, ...], schema: pa.Schema) -> SortKeys:
        """Create sort keys from column names, values, or values as text.

        Raises ``ValueError`` if there is no item, a column does not exist, or a geometry column is not the only item.
        """
        if not items:
            raise ValueError("no sort keys; pass at least one column in by=")
        values = tuple(_resolve(item, schema) for item in items)
        name = str(items[0])
        for column in filter(None, map(_top_column, values)):
            type = type_of(schema.field(column))
            if type is not None and len(values) > 1:
                raise ValueError(f"the geometry column {column!r} must be the only key; omit the other keys")
            if type is not None:
                return SortKeys(values, name, column, type.planar)
        return SortKeys(values, name)

    @property
    def columns(self) -> frozenset[str]:
        """Names of the top-level columns that the keys use."""
        return frozenset(operand_column(base).path[0] for value in self.values for base in bases(value))

    def describe(
        self, schema: pa.Schema, file_schema: pa.Schema, target_file_bytes: int, options: WriteOptions
    ) -> str | None:
        """Return an identifier of the row order and layout of sorted files; None if a key is an expression.

        The same fields are in ``schema`` with their names in the table, and in ``file_schema`` with their names and ids
        in files. Names alone do not identify a field, because columns can be renamed.
        """
        keys: list[Any] = []
        for value in self.values:
            if isinstance(value, Column):
                keys.append(value.path)
            elif isinstance(value, VariantField):
                keys.append((value.column.path, value.path, str(target_type(value.type)), value.timezone))
            else:
                return None
        columns = [[_identity(field) for field in part] for part in (schema, file_schema)]
        content = _SORT_VERSION, keys, columns, target_file_bytes, options
        return hashlib.sha256(repr(content).encode()).hexdigest()[:32]

    def sort(self, rows: Scan) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """Return a context that yields the batches of a scan, sorted by the keys."""
        if self.geometry is None:
            return sorted_batches(self._with_values(rows), len(self.values))
        bounds = self._bounds(rows)
        return sorted_batches(self._with_positions(rows, bounds), 1)

    def _with_values(self, rows: Scan) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a scan, with the values of the keys as additional columns."""
        names = rows.schema.names
        keys = [_top_column(value) or f"\0value{position}" for position, value in enumerate(self.values)]
        values = [(name, value) for name, value in zip(keys, self.values, strict=True) if name not in names]
        for batch in rows.select(*names, *values).to_batches():
            columns = [batch.column(batch.schema.get_field_index(name)) for name in keys]
            yield add_keys(batch.select(range(len(names))), columns)

    def _bounds(self, rows: Scan) -> BoundingBox:
        """Return the bounding box of the centres of all geometries."""
        low, high = np.full(2, np.inf), np.full(2, -np.inf)
        for batch in rows.select(self.geometry).to_batches():
            points = np.stack(centres(batch.column(0), self.planar))
            valid = points[:, ~np.isnan(points[0])]
            if valid.shape[1]:
                low, high = np.minimum(low, valid.min(axis=1)), np.maximum(high, valid.max(axis=1))
        if not np.isfinite(low).all():
            low, high = np.zeros(2), np.ones(2)
        return BoundingBox(float(low[0]), float(high[0]), float(low[1]), float(high[1]))

    def _with_positions(self, rows: Scan, bounds: BoundingBox) -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches():
            geometries = batch.column(batch.schema.get_field_index(self.geometry))
            yield add_keys(batch, [hilbert_keys(geometries, bounds, self.planar)])


def _identity(field: pa.Field) -> tuple[Any, ...]:
    """Return the name, type and metadata (ids, CRS, edges) of a field and of its children."""
    children = [field.type.field(position) for position in range(field.type.num_fields)]
    metadata = sorted((field.metadata or {}).items())
    return field.name, str(field.type), metadata, [_identity(child) for child in children]


def _top_column(value: Value) -> str | None:
    """Return the name of a top-level column; None for other values."""
    return value.path[0] if isinstance(value, Column) and len(value.path) == 1 else None


def _resolve(item: str | Value, schema: pa.Schema) -> Value:
    """Parse ``item`` if it is text, and resolve its column names. Raises ``ValueError`` if a column does not exist."""
    names = dotted_names(schema)
    parsed = column_from_text(item, lambda: names) if isinstance(item, str) else item
    parsed = parsed[1] if isinstance(parsed, tuple) else parsed
    value: Value = replace_columns(
        col(parsed) if isinstance(parsed, str) else parsed, lambda column: column.resolve_name(schema.names)
    )
    for base in bases(value):
        name = operand_column(base).path[0]
        if name not in schema.names:
            raise ValueError(f"by: {unknown_column_message(name, schema.names)}")
    return value
