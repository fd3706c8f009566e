"""Columns that handlers derive from other columns when a file is written, such as bounding boxes of geometries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import DerivedColumn, DerivedColumnHandler, annotation_for_field

T = TypeVar("T")


@dataclass(frozen=True)
class DerivedColumns:
    """Schema of a file with its derived columns, each after its source column.

    For each column of the file, ``sources`` contains the position of its source in the user's schema, and ``made`` the
    derived column, or None if the column is the user's.
    """

    schema: pa.Schema
    sources: tuple[int, ...]
    made: tuple[DerivedColumn | None, ...]

    @property
    def names(self) -> dict[str, str]:
        """Names of derived columns, each mapped to the name of its source column."""
        return {
            item.field.name: self.schema.field(self.sources.index(source)).name
            for source, item in zip(self.sources, self.made, strict=True)
            if item is not None
        }

    def select_user_columns(self, columns: Sequence[T]) -> tuple[T, ...]:
        """Return the elements of ``columns``, one per column of the file, that belong to the user's columns."""
        return tuple(column for column, item in zip(columns, self.made, strict=True) if item is None)

    def extend(self, table: pa.Table) -> pa.Table:
        """Return the user's table with the derived columns added."""
        if not any(self.made):
            return table
        columns = [
            table.column(source) if item is None else item.values(table.column(source))
            for source, item in zip(self.sources, self.made, strict=True)
        ]
        return pa.table(columns, schema=self.schema)


def find(schema: pa.Schema, options: WriteOptions) -> DerivedColumns:
    """Return the columns of a file with ``schema``, including derived columns.

    Raises ``ValueError`` if the name of a derived column is already used.
    """
    derived: dict[int, DerivedColumn] = {}
    for index, field in enumerate(schema):
        annotation = annotation_for_field(field, field.name, options)
        handler = None if annotation is None else annotation.load()
        column = handler.derive_column(field, schema, options) if isinstance(handler, DerivedColumnHandler) else None
        if column is not None:
            derived[index] = column
    updated = {column.field.name for column in derived.values() if column.is_update}
    names = [name for name in schema.names if name not in updated]
    fields: list[pa.Field] = []
    sources: list[int] = []
    made: list[DerivedColumn | None] = []
    for index, field in enumerate(schema):
        if field.name in updated:
            continue
        columns = (None, derived[index]) if index in derived else (None,)
        for item in columns:
            if item is not None and item.field.name in [*names, *(other.name for other in fields)]:
                raise ValueError(
                    f"column {item.field.name!r}, computed from {field.name!r}, already exists; choose another name"
                )
            fields.append(field if item is None else item.field)
            sources.append(index)
            made.append(item)
    return DerivedColumns(pa.schema(fields, schema.metadata), tuple(sources), tuple(made))
