"""VARIANT columns of a data frame into shredded structs of the user's own schema, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.arrays import conform
from pqext.spark.functions import arrow_udf, normal_variant, quoted
from pqext.spark.types import exchange_type, is_marked_struct, marked_struct, without_metadata
from pqext.variant.schema import shredding_schema, storage_struct
from pqext.variant.types import variant_type

SAMPLE_ROWS = 4096


def shred_variant(df: DataFrame, schema: Mapping[str, Any], sample_rows: int = SAMPLE_ROWS) -> DataFrame:
    """``df`` with VARIANT columns as shredded structs ``metadata, value, typed_value...``.

    ``schema`` maps a column to the schema of its typed part: DDL (``"mag DECIMAL(9,2), tags ARRAY<STRING>"``),
    a Spark ``StructType``, an Arrow type, or ``"infer"`` to infer one from the first ``sample_rows`` values
    that are not null, which runs a job now. What does not fit its typed column exactly stays in the residual
    ``value`` (Variant Shredding). A struct is marked in the field metadata of its ``metadata`` child; the mark
    survives in Spark, and data source ``pqext`` writes such a struct as a VARIANT. Any other sink can store
    it as the struct it is.

    Raises ``ValueError`` or ``TypeError`` when a column is not there, not a VARIANT, or its schema is none.
    """
    for name, spec in schema.items():
        _check_column(df, name)
        shredding = _infer(df, name, sample_rows) if _is_infer(spec) else shredding_schema(spec)
        marked = marked_struct(storage_struct(shredding))
        df = df.withColumn(name, _shred(F.col(quoted(name)), shredding, without_metadata(marked)).cast(marked))
    return df


def unshred_variant(df: DataFrame, columns: Iterable[str] | None = None) -> DataFrame:
    """``df`` with shredded structs as VARIANT again: those of ``columns``, or all that carry the mark."""
    if columns is None:
        columns = [field.name for field in df.schema if is_marked_struct(field.dataType)]
    for name in columns:
        if name not in df.columns:
            raise ValueError(f"no column {name!r}; there are {', '.join(df.columns)}")
        df = df.withColumn(name, arrow_udf(_unshred, T.VariantType(), "unshred_variant")(F.col(quoted(name))))
    return df


def _shred(column: Column, shredding: Any, type: T.DataType) -> Column:
    def shred(values: pa.Array) -> pa.Array:
        from pqext import variant

        return conform(variant.shred(normal_variant(values), shredding), exchange_type(type))

    return arrow_udf(shred, type, "shred_variant")(column)


def _unshred(values: pa.Array) -> pa.Array:
    from pqext import variant

    return conform(variant.unshred(normal_variant(values)), exchange_type(T.VariantType()))


def _infer(df: DataFrame, name: str, rows: int) -> Any:
    from pqext import variant

    column = F.col(quoted(name))
    sample = df.select(column.alias("v")).where(column.isNotNull()).limit(rows).toArrow()
    values = sample.column("v").combine_chunks() if sample.num_rows else pa.array([], variant_type())
    return variant.infer_schema(conform(values, variant_type()))


def _check_column(df: DataFrame, name: str) -> None:
    if name not in df.columns:
        raise ValueError(f"no column {name!r}; there are {', '.join(df.columns)}")
    type = df.schema[name].dataType
    if not isinstance(type, T.VariantType):
        raise TypeError(f"column {name!r} is {type.simpleString()}, not VARIANT")


def _is_infer(spec: Any) -> bool:
    return isinstance(spec, str) and spec.strip().lower() == "infer"
