"""The schema of variants as Spark writes it: ``OBJECT<a: BIGINT, b: ARRAY<STRING>>``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.core.base.errors import VariantLimitError
from pqext.spark.functions.udf import VARIANTS, ArrowFunction, ColumnOrName, arrow_udf, named, of_arrays, taken, text_of
from pqext.spark.functions.variant_arrays import normal_variant
from pqext.variant.binary_value import BinaryVariant, walk
from pqext.variant.encoding import PrimitiveType, Scaled

Schema = str | tuple[Any, ...]
"""A type's name, ``("DECIMAL", digits, scale)``, ``("ARRAY", element)`` or ``("OBJECT", {name: Schema})``."""

_P = PrimitiveType
_NAMES = {
    _P.NULL: "VOID", _P.TRUE: "BOOLEAN", _P.FALSE: "BOOLEAN", _P.INT8: "BIGINT", _P.INT16: "BIGINT",
    _P.INT32: "BIGINT", _P.INT64: "BIGINT", _P.DOUBLE: "DOUBLE", _P.DATE: "DATE", _P.TIMESTAMP: "TIMESTAMP",
    _P.TIMESTAMP_NTZ: "TIMESTAMP_NTZ", _P.FLOAT: "FLOAT", _P.BINARY: "BINARY", _P.STRING: "STRING",
    _P.TIME_NTZ: "TIME(6)", _P.TIMESTAMP_NANOS: "TIMESTAMP_NANOS", _P.TIMESTAMP_NTZ_NANOS: "TIMESTAMP_NTZ_NANOS",
    _P.UUID: "UUID",
}  # fmt: skip
_DECIMALS = (_P.DECIMAL4, _P.DECIMAL8, _P.DECIMAL16)
_WIDER = ("BIGINT", "FLOAT", "DOUBLE")
_TIMES = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP")


def schema_of_variant(variant: ColumnOrName) -> Column:
    """The schema of each VARIANT as text, ``OBJECT<a: BIGINT>``, as Spark's function of this name gives it.

    It knows the four types of values too that Spark does not: ``TIME(6)``, ``TIMESTAMP_NANOS``,
    ``TIMESTAMP_NTZ_NANOS`` and ``UUID``. Types that differ within an array become one that holds both, or VARIANT. A
    null is VOID, as in Spark; null on null. Works in Python row by row: use it on samples.
    """
    return SCHEMA_OF_VARIANT(variant)


def schema_of_variant_agg(variant: ColumnOrName) -> Column:
    """An aggregate: the one schema of all VARIANT values of a group, as text; VOID where there are none."""
    of_group = arrow_udf(of_arrays(schema_of_all), T.StringType(), "schema_of_variant_agg", returns=str)
    found = of_group(taken("schema_of_variant_agg", VARIANTS, variant))
    return named(found, "schema_of_variant_agg", [text_of(variant)], "string")


def schema_of_all(variants: pa.Array) -> str:
    return text(_all_merged(schema for schema in _schemas(variants) if schema is not None))


def _texts(variants: pa.Array) -> pa.Array:
    return pa.array([None if schema is None else text(schema) for schema in _schemas(variants)], pa.string())


def _schemas(variants: pa.Array) -> Iterator[Schema | None]:
    from pqext.variant import unshred

    whole = normal_variant(variants)
    whole = unshred(whole) if whole.type.get_field_index("typed_value") >= 0 else whole
    for number, row in enumerate(whole.to_pylist()):
        try:
            yield None if row is None else _schema(walk(BinaryVariant(row["value"], row["metadata"])))
        except RecursionError:
            raise VariantLimitError("the value is nested too deeply to tell its schema", row=number) from None


def _schema(events: Iterator[tuple[Any, Any]]) -> Schema:
    """The schema of the value that the next events tell."""
    kind, data = next(events)
    if kind == "[":
        element = _all_merged([_schema(events) for _ in range(data)])
        next(events)  # its end
        return ("ARRAY", element)
    if kind == "{":
        fields = {next(events)[1]: _schema(events) for _ in range(data)}
        next(events)
        return ("OBJECT", fields)
    if kind in _DECIMALS:
        return _decimal(data)
    return _NAMES.get(kind, "VARIANT")


def _decimal(value: Scaled) -> Schema:
    unscaled, scale = abs(value.unscaled), value.scale
    while scale and not unscaled % 10:
        unscaled, scale = unscaled // 10, scale - 1
    return ("DECIMAL", max(len(str(unscaled)), scale), scale)


def _all_merged(schemas: Iterable[Schema]) -> Schema:
    """The schema of what has any of them."""
    found: Schema = "VOID"
    for schema in schemas:
        found = merged(found, schema)
    return found


def merged(one: Schema, other: Schema) -> Schema:
    """The schema of what has either, as Spark merges them: the narrowest that holds both, or VARIANT."""
    if one == other or other == "VOID":
        return one
    if one == "VOID":
        return other
    if isinstance(one, str) and isinstance(other, str):
        for ladder in (_WIDER, _TIMES):
            if one in ladder and other in ladder:
                return max(one, other, key=ladder.index)
        return "VARIANT"
    kinds = {schema if isinstance(schema, str) else schema[0] for schema in (one, other)}
    if kinds == {"ARRAY"}:
        return ("ARRAY", merged(one[1], other[1]))
    if kinds == {"OBJECT"}:
        fields = dict(one[1])  # type: ignore[arg-type]
        for name, schema in other[1].items():  # type: ignore[union-attr]
            fields[name] = merged(fields[name], schema) if name in fields else schema
        return ("OBJECT", fields)
    if "DECIMAL" in kinds and kinds <= {"DECIMAL", "BIGINT"}:
        (_, digits, scale), (_, more, places) = (
            schema if isinstance(schema, tuple) else ("DECIMAL", 20, 0) for schema in (one, other)
        )
        whole, scale = max(digits - scale, more - places), max(scale, places)
        return ("DECIMAL", whole + scale, scale) if whole + scale <= 38 else "DOUBLE"
    return "DOUBLE" if "DECIMAL" in kinds and kinds <= {"DECIMAL", "DOUBLE", "FLOAT"} else "VARIANT"


def text(schema: Schema) -> str:
    """The schema as Spark writes it, fields in the order of their names."""
    if isinstance(schema, str):
        return schema
    if schema[0] == "DECIMAL":
        return f"DECIMAL({schema[1]},{schema[2]})"
    if schema[0] == "ARRAY":
        return f"ARRAY<{text(schema[1])}>"
    return "OBJECT<" + ", ".join(f"{_quoted(name)}: {text(schema[1][name])}" for name in sorted(schema[1])) + ">"


def _quoted(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    return name if plain else "`" + name.replace("`", "``") + "`"


SCHEMA_OF_VARIANT = ArrowFunction("schema_of_variant", (VARIANTS,), T.StringType(), _texts)
