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
from pqext.variant.shredding.choice import Shredding, shredding
from pqext.variant.shredding.schema import ShreddingSchema, storage_struct
from pqext.variant.shredding.shredder import Coerce
from pqext.variant.types import variant_type


def shred_variant(df: DataFrame, schema: Mapping[str, Any]) -> DataFrame:
    """``df`` with VARIANT columns as shredded structs ``metadata, value, typed_value...``.

    ``schema`` maps a column to the schema of its typed part: DDL (``"mag DECIMAL(9,2), tags ARRAY<STRING>"``), a
    Spark ``StructType``, an Arrow type, ``"infer"``, or a mapping like ``{"schema": "infer", "coerce": "json",
    "max_fields": 50}``: the same as the option ``shredding`` of :func:`pqext.write_table`. A schema is inferred from
    the first ``sample_rows`` values (10,000) that are not null, which runs a job now. What does not fit its typed
    column exactly stays in the residual ``value`` (Variant Shredding). A struct is marked in the field metadata of
    its ``metadata`` child; the mark survives in Spark, and data source ``pqext`` writes such a struct as a VARIANT.
    Any other sink can store it as the struct it is.

    Raises ``ValueError`` or ``TypeError`` when a column is not there, not a VARIANT, or its schema is none.
    """
    if not isinstance(schema, Mapping):
        raise TypeError(f"a schema is for each column, {{'column': ...}}, not a {type(schema).__name__}")
    for name, spec in schema.items():
        _check_column(df, name)
        chosen = shredding(spec)
        typed = chosen.schema if chosen.schema is not None else _infer(df, name, chosen)
        marked = marked_struct(storage_struct(typed))
        column = _shred(F.col(quoted(name)), typed, chosen.coerce, without_metadata(marked))
        df = df.withColumn(name, column.cast(marked))
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


def _shred(column: Column, schema: ShreddingSchema, coerce: Coerce, type: T.DataType) -> Column:
    def shred(values: pa.Array) -> pa.Array:
        from pqext import variant

        return conform(variant.shred(normal_variant(values), schema, coerce=coerce), exchange_type(type))

    return arrow_udf(shred, type, "shred_variant")(column)


def _unshred(values: pa.Array) -> pa.Array:
    from pqext import variant

    return conform(variant.unshred(normal_variant(values)), exchange_type(T.VariantType()))


def _infer(df: DataFrame, name: str, how: Shredding) -> ShreddingSchema:
    column = F.col(quoted(name))
    sample = df.select(column.alias("v")).where(column.isNotNull()).limit(how.inference.sample_rows).toArrow()
    values = sample.column("v").combine_chunks() if sample.num_rows else pa.array([], variant_type())
    return how.schema_for(conform(values, variant_type()))


def _check_column(df: DataFrame, name: str) -> None:
    if name not in df.columns:
        raise ValueError(f"no column {name!r}; there are {', '.join(df.columns)}")
    type = df.schema[name].dataType
    if not isinstance(type, T.VariantType):
        raise TypeError(f"column {name!r} is {type.simpleString()}, not VARIANT")
