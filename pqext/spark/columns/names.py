"""Resolve column names case-insensitively, as Spark does unless ``spark.sql.caseSensitive`` is true."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.dataset.expressions import Column
from pqext.dataset.expressions.visitors import replace_columns, resolve_dotted_names
from pqext.dataset.planning.projection import ComputedColumn
from pqext.spark.base.settings import CASE_SENSITIVE, is_case_sensitive, session_setting

Node = TypeVar("Node")


def quote(name: str) -> str:
    """Quote a column name with backticks, so that Spark does not parse dots in it."""
    return "`" + name.replace("`", "``") + "`"


class Names:
    """Column names in a schema, with the field names of structs.

    An exact match takes precedence over a match that differs only in case.
    """

    def __init__(self, types: Mapping[str, Any], case_sensitive: bool = False) -> None:
        self._types = types
        self._case_sensitive = case_sensitive
        self.has_folded = False
        """Whether a name was matched in a different case."""

    @staticmethod
    def from_schema(schema: pa.Schema | T.StructType, case_sensitive: bool = False) -> Names:
        """Collect the names in an Arrow or Spark schema."""
        return Names(_struct_types(schema), case_sensitive)

    @cached_property
    def _names_by_lower(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for name in self._types:
            names.setdefault(name.lower(), []).append(name)
        return names

    def find(self, name: str) -> str:
        """Return the name of the column that matches ``name``, or ``name`` itself if none matches.

        Raises ``ValueError`` if several columns differ from ``name`` only in case.
        """
        if self._case_sensitive or name in self._types:
            return name
        matches = self._names_by_lower.get(name.lower(), [])
        if len(matches) > 1:
            raise ValueError(
                f"column {name!r} is ambiguous: {' or '.join(map(repr, matches))}; use the exact spelling, or set "
                f"{CASE_SENSITIVE}=true (option case_sensitive)"
            )
        self.has_folded = self.has_folded or bool(matches)
        return matches[0] if matches else name

    def resolve(self, node: Node) -> Node:
        """Return a condition or value with all column names in the schema's spelling. Names may contain dots."""
        resolved: Node = resolve_dotted_names(replace_columns(node, self._resolve_column), self._types)
        return resolved

    def resolve_result(self, column: str | ComputedColumn, partition_columns: Container[str]) -> str | ComputedColumn:
        """Resolve a result column. The result has the requested spelling of the column name, as in Spark.

        Partition columns have the names used in the folders instead.
        """
        if isinstance(column, ComputedColumn):
            return ComputedColumn(column.name, self.resolve(column.field))
        name = self.find(column)
        return name if name == column or name in partition_columns else ComputedColumn(column, Column((name,)))

    def _resolve_column(self, column: Column) -> Column:
        if column.dotted > 1:
            dotted = ".".join(column.path[: column.dotted])
            if (name := self.find(dotted)) in self._types:
                return Column((name, *column.path[column.dotted :]), column.place)
        path: list[str] = []
        names: Names | None = self
        for name in column.path:
            resolved = name if names is None else names.find(name)
            struct = None if names is None else names._types.get(resolved)
            path.append(resolved)
            self.has_folded = self.has_folded or resolved != name
            names = None if struct is None else Names.from_schema(struct, self._case_sensitive)
        return column if tuple(path) == column.path else Column(tuple(path), column.place, column.dotted)


def resolve_case(node: Node, df: DataFrame) -> Node:
    """Return a condition or value with all column names in the spelling of ``df``."""
    return Names.from_schema(df.schema, is_case_sensitive(session_setting(df.sparkSession))).resolve(node)


def _struct_types(schema: Any) -> dict[str, Any]:
    """Map each field name of a schema or struct to the field's type if this is a struct, otherwise to None."""
    if isinstance(schema, T.StructType):
        return {field.name: field.dataType if isinstance(field.dataType, T.StructType) else None for field in schema}
    return {field.name: field.type if pa.types.is_struct(field.type) else None for field in schema}
