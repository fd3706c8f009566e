"""How a VARIANT is to be shredded, carried by its column from ``shred_variant`` to the sink.

The choice is field metadata of a data frame's column: JSON under :data:`KEY`. It maps the path in the file of each
VARIANT in the column, with ``$`` for the column itself, to what option ``shredding`` takes, as in
``{"$": {"schema": "a INT"}}`` or ``{"$.list.element": {"schema": "infer"}}``. So it stays right when a column is
renamed. Spark drops it where an expression makes a new column. A field of a struct may carry one too, because
``F.struct`` keeps the metadata of its arguments; where several are for one VARIANT, the outermost counts.
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
from pqext.spark.columns.names import quoted
from pqext.variant.shredding.choice import Shredding, shredding
from pqext.variant.shredding.schema import Untyped

KEY = "pqext:shredding"
ELEMENT, VALUE = ("list", "element"), ("key_value", "value")
"""The names that stand for the elements of an array and the values of a map in the path of a file."""

Step = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where a field lies in a data frame: its column, and the steps from there."""

    column: str
    steps: tuple[Step, ...] = ()

    @property
    def path(self) -> str:
        """The path by which the writer's options name it."""
        return ".".join([self.column, *(name for step in self.steps for name in step)])

    @property
    def below(self) -> str:
        """The path with ``$`` for the column."""
        return f"${self.path[len(self.column) :]}"


def variants(schema: T.StructType) -> dict[str, Place]:
    """Every VARIANT of a data frame by its path in the file."""
    return {place.path: place for place, field in walk(schema) if isinstance(field.dataType, T.VariantType)}


def carries(field: T.StructField) -> bool:
    """Does a column carry a choice, for itself or for a field within it?"""
    return any(KEY in (inner.metadata or {}) for _, inner in walk(T.StructType([field])))


def carry(df: DataFrame, choices: Mapping[Place, Shredding]) -> DataFrame:
    """``df`` whose columns carry ``choices`` for their VARIANTs, beside what they carry already for others."""
    there = variants(df.schema)
    columns: dict[str, dict[str, Any]] = {}
    for place, choice in choices.items():
        if place.column not in columns:
            field = df.schema[place.column]
            with suppress(VariantError):  # what cannot be followed is replaced
                known = {f"{place.column}{below[1:]}": known for below, known in _choices(field, field.name).items()}
                columns[place.column] = {there[path].below: known[path].options() for path in known if path in there}
        columns.setdefault(place.column, {})[place.below] = choice.options()
    return _with_choices(df, columns)


def drop(df: DataFrame, name: str) -> DataFrame:
    """``df`` whose column ``name`` carries no choice; one for no shredding hides those of the fields within it."""
    inner = [place for place, field in walk(T.StructType([df.schema[name]])) if KEY in (field.metadata or {})]
    covered = {
        place.below: shredding(Untyped()).options()
        for place in variants(df.schema).values()
        if any(place.column == one.column and one.steps and place.steps[: len(one.steps)] == one.steps for one in inner)
    }
    return _with_choices(df, {name: covered})


def carried(schema: T.StructType) -> dict[str, Shredding]:
    """What the columns of ``schema`` carry, by the paths of their VARIANTs in the file.

    Raises ``VariantError`` naming the column for metadata that is no such choice, or chooses for what is no VARIANT.
    """
    there = variants(schema)
    found: dict[str, Shredding] = {}
    for place, field in walk(schema):
        for below, choice in _choices(field, place.path).items():
            path = place.path + below[1:]
            if path not in there:
                raise _error(place.path, f"it chooses a shredding for {path!r}, which is no VARIANT")
            found.setdefault(path, choice)
    return found


def walk(schema: T.StructType) -> Iterator[tuple[Place, T.StructField]]:
    """Every field with its place, in order, outer ones first; elements and values count as fields without metadata."""
    queue = [(Place(field.name), field) for field in reversed(schema.fields)]
    while queue:
        place, field = queue.pop()
        yield place, field
        type = field.dataType
        below: list[tuple[Step, T.StructField]]
        if isinstance(type, T.StructType):
            below = [((child.name,), child) for child in reversed(type.fields)]
        elif isinstance(type, T.ArrayType):
            below = [(ELEMENT, T.StructField("element", type.elementType))]
        elif isinstance(type, T.MapType):
            below = [(VALUE, T.StructField("value", type.valueType))]
        else:
            continue
        queue += [(Place(place.column, (*place.steps, step)), child) for step, child in below]


def _choices(field: T.StructField, path: str) -> dict[str, Shredding]:
    """What one field carries, by paths below it."""
    text = (field.metadata or {}).get(KEY)
    if text is None:
        return {}
    try:
        choices = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise _error(path, f"{excerpt(text)!r} is no JSON: {error}") from None
    if not isinstance(text, str) or not isinstance(choices, dict) or not all(map(_is_below, choices)):
        raise _error(path, f"{excerpt(str(text))!r} is no JSON object from paths, which begin with $, to choices")
    try:
        return {below: shredding(choice) for below, choice in choices.items()}
    except (ValueError, TypeError) as error:
        raise _error(path, str(error)) from None


def _is_below(path: str) -> bool:
    return path == "$" or path.startswith("$.")


def _error(path: str, reason: str) -> VariantError:
    return VariantError(
        f"the metadata {KEY!r} of column {path!r} cannot be followed: {reason}. "
        "pqext.spark.shred_variant chooses anew, pqext.spark.unshred_variant removes the choice"
    )


def _with_choices(df: DataFrame, choices: Mapping[str, Mapping[str, Any]]) -> DataFrame:
    """``df`` with ``choices`` as the only ones of their columns; none are left of a column without any."""
    doubled = next((name for at, name in enumerate(df.columns) if name in df.columns[:at]), None)
    if doubled is not None:
        raise ValueError(f"several columns are named {doubled!r}, which no file can hold: drop or rename them first")
    columns = []
    for field in df.schema:
        column = F.col(quoted(field.name))
        if field.name in choices:
            metadata = {key: value for key, value in (field.metadata or {}).items() if key != KEY}
            if choices[field.name]:
                metadata[KEY] = json.dumps(choices[field.name])
            column = column.alias(field.name, metadata=metadata)
        columns.append(column)
    return df.select(*columns)  # on Connect, withColumn removes metadata
