"""Names of columns without regard to case, as Spark resolves them unless ``spark.sql.caseSensitive`` is true."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.dataset.expressions import Column
from pqext.dataset.expressions.dotted_names import exact, replace_columns
from pqext.dataset.planning.projection import Computed
from pqext.spark.base.settings import CASE_SENSITIVE, is_case_sensitive, session_setting

Node = TypeVar("Node")


def quoted(name: str) -> str:
    """The name of a column in backquotes, so that Spark takes all of it for the name."""
    return "`" + name.replace("`", "``") + "`"


class Names:
    """The columns of a schema, and the fields of their structs, by name.

    A name is that of the column spelled exactly so, else that of the one column that differs from it in case only.
    """

    def __init__(self, types: Mapping[str, Any], case_sensitive: bool = False) -> None:
        self._types = types
        self._case_sensitive = case_sensitive
        self.has_folded = False
        """Whether a name was found in another case."""

    @staticmethod
    def of(schema: pa.Schema | T.StructType, case_sensitive: bool = False) -> Names:
        """The names of an Arrow schema or of Spark's."""
        return Names(_types(schema), case_sensitive)

    @cached_property
    def _by_lower(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._types:
            found.setdefault(name.lower(), []).append(name)
        return found

    def find(self, name: str) -> str:
        """The column's own name; ``name`` itself if there is no column.

        Raises ``ValueError`` if several columns differ from ``name`` in case only.
        """
        if self._case_sensitive or name in self._types:
            return name
        found = self._by_lower.get(name.lower(), [])
        if len(found) > 1:
            raise ValueError(
                f"column {name!r} may be {' or '.join(map(repr, found))}: write it in their case, or set "
                f"{CASE_SENSITIVE}=true (option case_sensitive)"
            )
        self.has_folded = self.has_folded or bool(found)
        return found[0] if found else name

    def resolve(self, node: Node) -> Node:
        """A condition or a value with the columns' own names, dotted names of columns included."""
        found: Node = exact(replace_columns(node, self._column), self._types)
        return found

    def resolve_result(self, column: str | Computed, by_folders: Container[str]) -> str | Computed:
        """A column of the result, which keeps the name that it is asked for by, as in Spark.

        Those ``by_folders``, of which nothing is computed, have the names that folders state.
        """
        if isinstance(column, Computed):
            return Computed(column.name, self.resolve(column.field))
        name = self.find(column)
        return name if name == column or name in by_folders else Computed(column, Column((name,)))

    def _column(self, column: Column) -> Column:
        if column.dotted > 1:
            dotted = ".".join(column.path[: column.dotted])
            if (name := self.find(dotted)) in self._types:
                return Column((name, *column.path[column.dotted :]), column.place)
        path: list[str] = []
        names: Names | None = self
        for name in column.path:
            found = name if names is None else names.find(name)
            within = None if names is None else names._types.get(found)
            path.append(found)
            self.has_folded = self.has_folded or found != name
            names = None if within is None else Names.of(within, self._case_sensitive)
        return column if tuple(path) == column.path else Column(tuple(path), column.place, column.dotted)


def resolve_case(node: Node, df: DataFrame) -> Node:
    """A condition or a value with the names that ``df`` has for its columns."""
    return Names.of(df.schema, is_case_sensitive(session_setting(df.sparkSession))).resolve(node)


def _types(schema: Any) -> dict[str, Any]:
    """The names of a schema or struct, each with the struct that the column is, or None."""
    if isinstance(schema, T.StructType):
        return {one.name: one.dataType if isinstance(one.dataType, T.StructType) else None for one in schema}
    return {field.name: field.type if pa.types.is_struct(field.type) else None for field in schema}
