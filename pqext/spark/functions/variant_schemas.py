"""Schemas of VARIANT values in Spark's notation: ``OBJECT<a: BIGINT, b: ARRAY<STRING>>``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.core.base.errors import VariantError, VariantLimitError
from pqext.spark.base.arrays import variant_from_spark
from pqext.spark.functions.udf import (
    VARIANTS,
    ArrowFunction,
    ColumnOrName,
    arrow_udf,
    check_argument,
    display_name,
    name_column,
    wrap_evaluation,
)
from pqext.variant.binary_value import BinaryVariant, walk
from pqext.variant.encoding import PrimitiveType, ScaledDecimal
from pqext.variant.faults import error
from pqext.variant.kernels.binary import Fault

Schema = str | tuple[Any, ...]
"""Name of a type, ``("DECIMAL", digits, scale)``, ``("ARRAY", element)`` or ``("OBJECT", {name: Schema})``."""

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
    """Return the schema of each VARIANT, such as ``OBJECT<a: BIGINT>``, as Spark's function of this name does.

    It also supports the types ``TIME(6)``, ``TIMESTAMP_NANOS``, ``TIMESTAMP_NTZ_NANOS`` and ``UUID``. Different types
    in an array become their common type or VARIANT. The variant null is VOID, as in Spark. Return null for null. It is
    evaluated in Python, row by row, so use it on samples.

    Example:
        >>> df.limit(100).select(schema_of_variant("event"))  # doctest: +SKIP
    """
    return SCHEMA_OF_VARIANT(variant)


def schema_of_variant_agg(variant: ColumnOrName) -> Column:
    """Return the common schema of all VARIANT values in a group, as text; VOID if all values are null.

    Without ``groupBy``, the result for an empty data frame has no rows, like the result of all Arrow aggregates of
    Spark. Spark's ``schema_of_variant_agg`` returns one row, VOID.

    Example:
        >>> df.groupBy("country").agg(schema_of_variant_agg("event"))  # doctest: +SKIP
    """
    name = "schema_of_variant_agg"
    aggregate = arrow_udf(wrap_evaluation(infer_common_schema, name), T.StringType(), name, return_annotation=str)
    result = aggregate(check_argument("schema_of_variant_agg", VARIANTS, variant))
    return name_column(result, "schema_of_variant_agg", [display_name(variant)], "string")


def infer_common_schema(variants: pa.Array) -> str:
    """Return the common schema of an array of variants, as text."""
    return format_schema(_merge_all(schema for schema in _iter_schemas(variants) if schema is not None))


def _format_schemas(variants: pa.Array) -> pa.Array:
    return pa.array(
        [None if schema is None else format_schema(schema) for schema in _iter_schemas(variants)], pa.string()
    )


def _iter_schemas(variants: pa.Array) -> Iterator[Schema | None]:
    from pqext.variant import unshred

    values = variant_from_spark(variants)
    values = unshred(values) if values.type.get_field_index("typed_value") >= 0 else values
    for number, row in enumerate(values.to_pylist()):
        if row is None or row["value"] is None:
            yield None
            continue
        if row["metadata"] is None:
            raise error(Fault.FAULT_METADATA_NULL, row=number)
        try:
            yield _read_schema(walk(BinaryVariant(row["value"], row["metadata"])))
        except VariantError as fault:
            if fault.row is None:
                fault.row, fault.message = number, f"row {number}: {fault.message}"
            raise
        except RecursionError:
            raise VariantLimitError("the value is nested too deeply to infer its schema", row=number) from None


def _read_schema(events: Iterator[tuple[Any, Any]]) -> Schema:
    """Read the events of one value, and return its schema."""
    type, data = next(events)
    if type == "[":
        element = _merge_all([_read_schema(events) for _ in range(data)])
        next(events)  # the end of the array
        return ("ARRAY", element)
    if type == "{":
        fields = {next(events)[1]: _read_schema(events) for _ in range(data)}
        next(events)
        return ("OBJECT", fields)
    if type in _DECIMALS:
        return _decimal_schema(data)
    return _NAMES.get(type, "VARIANT")


def _decimal_schema(value: ScaledDecimal) -> Schema:
    unscaled, scale = abs(value.unscaled), value.scale
    while scale and not unscaled % 10:
        unscaled, scale = unscaled // 10, scale - 1
    return ("DECIMAL", max(len(str(unscaled)), scale), scale)


def _merge_all(schemas: Iterable[Schema]) -> Schema:
    result: Schema = "VOID"
    for schema in schemas:
        result = merge_schemas(result, schema)
    return result


def merge_schemas(schema: Schema, other: Schema) -> Schema:
    """Return the narrowest schema for the values of both schemas, or VARIANT, following Spark's merge rules."""
    if schema == other or other == "VOID":
        return schema
    if schema == "VOID":
        return other
    if isinstance(schema, str) and isinstance(other, str):
        for ladder in (_WIDER, _TIMES):
            if schema in ladder and other in ladder:
                return max(schema, other, key=ladder.index)
        return "VARIANT"
    names = {part if isinstance(part, str) else part[0] for part in (schema, other)}
    if names == {"ARRAY"}:
        return ("ARRAY", merge_schemas(schema[1], other[1]))
    if names == {"OBJECT"}:
        fields = dict(schema[1])  # type: ignore[arg-type]
        for name, field in other[1].items():  # type: ignore[union-attr]
            fields[name] = merge_schemas(fields[name], field) if name in fields else field
        return ("OBJECT", fields)
    if "DECIMAL" in names and names <= {"DECIMAL", "BIGINT"}:
        (_, precision, scale), (_, other_precision, other_scale) = (
            part if isinstance(part, tuple) else ("DECIMAL", 20, 0) for part in (schema, other)
        )
        digits, scale = max(precision - scale, other_precision - other_scale), max(scale, other_scale)
        return ("DECIMAL", digits + scale, scale) if digits + scale <= 38 else "DOUBLE"
    return "DOUBLE" if "DECIMAL" in names and names <= {"DECIMAL", "DOUBLE", "FLOAT"} else "VARIANT"


def format_schema(schema: Schema) -> str:
    """Format a schema in Spark's notation, with the fields sorted by name."""
    if isinstance(schema, str):
        return schema
    if schema[0] == "DECIMAL":
        return f"DECIMAL({schema[1]},{schema[2]})"
    if schema[0] == "ARRAY":
        return f"ARRAY<{format_schema(schema[1])}>"
    return (
        "OBJECT<" + ", ".join(f"{_quote(name)}: {format_schema(schema[1][name])}" for name in sorted(schema[1])) + ">"
    )


def _quote(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    return name if plain else "`" + name.replace("`", "``") + "`"


SCHEMA_OF_VARIANT = ArrowFunction("schema_of_variant", (VARIANTS,), T.StringType(), _format_schemas)
