"""Shredding of VARIANT columns, stored in field metadata from ``shred_variant`` until the write.

The field metadata of a column has JSON under :data:`KEY`, which maps the path of each VARIANT in the column to a value
of option ``shredding``: ``{"$": {"schema": "a INT"}}`` or ``{"$.list.element": {"schema": "infer"}}``. Paths are paths
in the file, with ``$`` for the column, so that the column can be renamed. Spark drops the metadata if an expression
creates a new column. Fields of structs can also have metadata, because ``F.struct`` retains it.
The outermost metadata for a VARIANT takes precedence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import VariantError
from pqext.core.base.suggestions import excerpt
from pqext.spark.columns.names import quote
from pqext.variant.shredding.choice import Shredding, parse_shredding
from pqext.variant.shredding.schema import Untyped

KEY = "pqext:shredding"
ELEMENT, VALUE = ("list", "element"), ("key_value", "value")
"""Names of array elements and map values in paths in a file."""

Step = tuple[str, ...]


@dataclass(frozen=True)
class FieldPath:
    """Path of a field in a data frame: its column, and the steps below the column."""

    column: str
    steps: tuple[Step, ...] = ()

    @property
    def dotted_path(self) -> str:
        """Path in the notation of the writer's options."""
        return ".".join([self.column, *(name for step in self.steps for name in step)])

    @property
    def relative_path(self) -> str:
        """Path within the column, which ``$`` represents."""
        return f"${self.dotted_path[len(self.column) :]}"


def variant_paths(schema: T.StructType) -> dict[str, FieldPath]:
    """Return the paths of all VARIANTs in a data frame, by their dotted paths in the file."""
    return {path.dotted_path: path for path, field in walk_fields(schema) if isinstance(field.dataType, T.VariantType)}


def has_choice(field: T.StructField) -> bool:
    """Return whether the metadata of a column, or of a field within it, contains a shredding choice."""
    return any(KEY in (inner.metadata or {}) for _, inner in walk_fields(T.StructType([field])))


def set_choices(df: DataFrame, choices: Mapping[FieldPath, Shredding]) -> DataFrame:
    """Record the shredding of VARIANTs in the column metadata of ``df``.

    The shredding of other VARIANTs is retained.
    """
    paths = variant_paths(df.schema)
    columns: dict[str, dict[str, Any]] = {}
    for path, choice in choices.items():
        if path.column not in columns:
            field = df.schema[path.column]
            with suppress(VariantError):  # invalid metadata is replaced
                previous = {
                    f"{path.column}{key[1:]}": value for key, value in _parse_choices(field, field.name).items()
                }
                columns[path.column] = {
                    paths[dotted].relative_path: value.options()
                    for dotted, value in previous.items()
                    if dotted in paths
                }
        columns.setdefault(path.column, {})[path.relative_path] = choice.options()
    return _replace_choices(df, columns)


def drop_choices(df: DataFrame, name: str) -> DataFrame:
    """Remove the shredding of column ``name``, and override the shredding in the metadata of nested fields."""
    fields = [path for path, field in walk_fields(T.StructType([df.schema[name]])) if KEY in (field.metadata or {})]
    overrides = {
        path.relative_path: parse_shredding(Untyped()).options()
        for path in variant_paths(df.schema).values()
        if any(path.column == field.column and _is_nested(path.steps, field.steps) for field in fields)
    }
    return _replace_choices(df, {name: overrides})


def _is_nested(steps: tuple[Step, ...], parent: tuple[Step, ...]) -> bool:
    return bool(parent) and steps[: len(parent)] == parent


def column_choices(schema: T.StructType) -> dict[str, Shredding]:
    """Return the shredding in the metadata of columns, by the dotted paths of the VARIANTs in the file.

    Raises ``VariantError`` with the column if metadata is malformed or does not belong to a VARIANT.
    """
    paths = variant_paths(schema)
    choices: dict[str, Shredding] = {}
    for field_path, field in walk_fields(schema):
        for relative_path, choice in _parse_choices(field, field_path.dotted_path).items():
            path = field_path.dotted_path + relative_path[1:]
            if path not in paths:
                raise _metadata_error(
                    field_path.dotted_path, f"it sets a shredding for {path!r}, which is not a VARIANT"
                )
            choices.setdefault(path, choice)
    return choices


def walk_fields(schema: T.StructType) -> Iterator[tuple[FieldPath, T.StructField]]:
    """Yield every field with its path, parents first. Elements and map values count as fields without metadata."""
    queue = [(FieldPath(field.name), field) for field in reversed(schema.fields)]
    while queue:
        path, field = queue.pop()
        yield path, field
        type = field.dataType
        children: list[tuple[Step, T.StructField]]
        if isinstance(type, T.StructType):
            children = [((child.name,), child) for child in reversed(type.fields)]
        elif isinstance(type, T.ArrayType):
            children = [(ELEMENT, T.StructField("element", type.elementType))]
        elif isinstance(type, T.MapType):
            children = [(VALUE, T.StructField("value", type.valueType))]
        else:
            continue
        queue += [(FieldPath(path.column, (*path.steps, step)), child) for step, child in children]


def _parse_choices(field: T.StructField, path: str) -> dict[str, Shredding]:
    """Return the shredding in the metadata of a field, by relative paths."""
    text = (field.metadata or {}).get(KEY)
    if text is None:
        return {}
    try:
        choices = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise _metadata_error(path, f"{excerpt(text)!r} is not JSON: {error}") from None
    if not isinstance(text, str) or not isinstance(choices, dict) or not all(map(_is_relative, choices)):
        raise _metadata_error(path, f"{excerpt(str(text))!r} is not a JSON object that maps paths from $ to choices")
    try:
        return {relative_path: parse_shredding(choice) for relative_path, choice in choices.items()}
    except (ValueError, TypeError) as error:
        raise _metadata_error(path, str(error)) from None


def _is_relative(path: str) -> bool:
    return path == "$" or path.startswith("$.")


def _metadata_error(path: str, reason: str) -> VariantError:
    return VariantError(
        f"the metadata {KEY!r} of column {path!r} is invalid: {reason}. "
        "pqext.spark.shred_variant replaces it, pqext.spark.unshred_variant removes it"
    )


def _replace_choices(df: DataFrame, choices: Mapping[str, Mapping[str, Any]]) -> DataFrame:
    """Return ``df`` with the shredding choices of each column in ``choices`` replaced.

    An empty mapping removes all choices of a column.
    """
    duplicate = next((name for index, name in enumerate(df.columns) if name in df.columns[:index]), None)
    if duplicate is not None:
        raise ValueError(f"several columns are named {duplicate!r}: drop or rename them before writing a file")
    columns = []
    for field in df.schema:
        column = F.col(quote(field.name))
        if field.name in choices:
            metadata = {key: value for key, value in (field.metadata or {}).items() if key != KEY}
            if choices[field.name]:
                metadata[KEY] = json.dumps(choices[field.name])
            column = column.alias(field.name, metadata=metadata)
        columns.append(column)
    return df.select(*columns)  # on Connect, withColumn removes metadata
