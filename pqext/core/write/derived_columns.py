"""Columns that the writer adds because a column's handler derives them from it, such as boxes around geometries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import Derived, DerivesColumns, for_field

T = TypeVar("T")


@dataclass(frozen=True)
class DerivedColumns:
    """The schema of a file with its derived columns, each behind its source in ``schema``.

    ``sources`` gives the place in the user's schema of each column of the file, and ``made`` what makes it where it
    is derived.
    """

    schema: pa.Schema
    sources: tuple[int, ...]
    made: tuple[Derived | None, ...]

    @property
    def names(self) -> dict[str, str]:
        """The source of each derived column, by name."""
        return {
            one.field.name: self.schema.field(self.sources.index(source)).name
            for source, one in zip(self.sources, self.made, strict=True)
            if one is not None
        }

    def own(self, columns: Sequence[T]) -> tuple[T, ...]:
        """Those of the file's ``columns`` that are the user's."""
        return tuple(column for column, one in zip(columns, self.made, strict=True) if one is None)

    def extend(self, table: pa.Table) -> pa.Table:
        """The user's table with the derived columns."""
        if not any(self.made):
            return table
        columns = [
            table.column(source) if one is None else one.values(table.column(source))
            for source, one in zip(self.sources, self.made, strict=True)
        ]
        return pa.table(columns, schema=self.schema)


def find(schema: pa.Schema, options: WriteOptions) -> DerivedColumns:
    """The columns derived from those of ``schema``; raises ``ValueError`` when the name of one is taken."""
    fields: list[pa.Field] = []
    sources: list[int] = []
    made: list[Derived | None] = []
    for index, field in enumerate(schema):
        annotation = for_field(field, field.name, options)
        derived = None
        if annotation is not None and isinstance(handler := annotation.load(), DerivesColumns):
            derived = handler.derived(field, options)
        for one in (None,) if derived is None else (None, derived):
            if one is not None and one.field.name in [*schema.names, *(f.name for f in fields)]:
                raise ValueError(
                    f"column {one.field.name!r}, which {field.name!r} is to get, is there already: give it another name"
                )
            fields.append(field if one is None else one.field)
            sources.append(index)
            made.append(one)
    return DerivedColumns(pa.schema(fields, schema.metadata), tuple(sources), tuple(made))
