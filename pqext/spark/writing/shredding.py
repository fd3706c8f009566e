"""The choice of how VARIANT columns of a data frame are shredded, which the sink follows, or as structs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.base.arrays import conform
from pqext.spark.base.types import exchange_type, is_marked_struct, marked_struct, without_metadata
from pqext.spark.columns.names import quoted
from pqext.spark.columns.shredding_choice import ELEMENT, VALUE, Place, carries, carry, drop, variants
from pqext.spark.functions.udf import arrow_udf
from pqext.spark.functions.variant_arrays import normal_variant
from pqext.variant.shredding.choice import Shredding, shredding
from pqext.variant.shredding.schema import ShreddingSchema, storage_struct
from pqext.variant.shredding.shredder import Coerce
from pqext.variant.types import variant_type


def shred_variant(
    df: DataFrame,
    schema: Mapping[str, Any],
    *,
    infer: Literal["file", "once"] = "file",
    storage: bool = False,
) -> DataFrame:
    """``df`` whose VARIANT columns are shredded by ``schema`` when data source ``pqext`` writes them.

    ``schema`` maps a column to the schema of its typed part: DDL (``"mag DECIMAL(9,2), tags ARRAY<STRING>"``), a
    Spark ``StructType``, an Arrow type, ``"infer"``, or a mapping like ``{"schema": "infer", "coerce": "json",
    "max_fields": 50}``: the same as the option ``shredding`` of :func:`pqext.write_table`. A VARIANT in a struct, array
    or map is named by its path in the file: ``s.v``, ``l.list.element``, ``m.key_value.value``. What does not fit its
    typed column exactly stays in the residual ``value`` (Variant Shredding).

    This costs nothing: the columns stay VARIANT, Spark's own functions work on them, and the choice goes along as
    metadata of the field. It is kept by ``where``, ``select``, ``alias``, sorts, ``repartition``, joins, unions (those
    of the first data frame) and ``F.struct``. It is lost where an expression makes a new column, such as ``F.first`` in
    an aggregate, ``F.coalesce``, ``F.when``, ``F.array`` or ``F.explode``: call this last, and ask
    :func:`explain_write`. Other sinks do not know it. The option ``shredding`` of the sink takes precedence.

    With ``infer="file"`` every file has a schema of its own, inferred from its first row group. ``infer="once"`` reads
    the first ``sample_rows`` values (10,000) that are not null now, which runs a job, for one schema of all files.

    ``storage=True`` gives structs ``metadata, value, typed_value...`` in place of the VARIANT columns, which any sink
    stores as the structs they are; schemas are inferred once. A struct is marked in the field metadata of its
    ``metadata`` child; the mark survives in Spark, and data source ``pqext`` writes such a struct as a VARIANT. Values
    cross to Python and back for it.

    Raises ``ValueError`` or ``TypeError`` when a column is not there, not a VARIANT, or its schema is none, and where
    several columns have one name.
    """
    if not isinstance(schema, Mapping):
        raise TypeError(f"a schema is for each column, {{'column': ...}}, not a {type(schema).__name__}")
    if infer not in ("file", "once"):
        raise ValueError(f"infer is 'file' or 'once', not {infer!r}")
    places = variants(df.schema)
    choices = {_place(df, path, places): shredding(spec) for path, spec in schema.items()}
    if storage:
        return _as_structs(df, choices)
    if infer == "once":
        choices = {
            place: choice if choice.schema is not None else replace(choice, schema=_infer(df, place, choice))
            for place, choice in choices.items()
        }
    return carry(df, choices)


def unshred_variant(df: DataFrame, columns: Iterable[str] | None = None) -> DataFrame:
    """``df`` without shredding, in ``columns`` or, by default, in all that have one.

    Shredded structs become VARIANT again, and VARIANT columns lose what :func:`shred_variant` chose for them.
    """
    if columns is None:
        columns = [field.name for field in df.schema if is_marked_struct(field.dataType) or carries(field)]
    for name in columns:
        if name not in df.columns:
            raise ValueError(f"no column {name!r}; there are {', '.join(df.columns)}")
        if carries(df.schema[name]):
            df = drop(df, name)
        else:
            df = df.withColumn(name, arrow_udf(_unshred, T.VariantType(), "unshred_variant")(F.col(quoted(name))))
    return df


def _as_structs(df: DataFrame, choices: Mapping[Place, Shredding]) -> DataFrame:
    """``df`` with shredded structs in place of top-level VARIANT columns."""
    for place, chosen in choices.items():
        if place.steps:
            raise ValueError(
                f"storage=True makes structs of top-level columns, and {place.path!r} is within one: leave storage out"
            )
        name = place.column
        typed = chosen.schema if chosen.schema is not None else _infer(df, place, chosen)
        marked = marked_struct(storage_struct(typed))
        column = _shred(F.col(quoted(name)), typed, chosen.coerce, without_metadata(marked))
        df = df.withColumn(name, column.cast(marked))
    return df


def _shred(column: Column, schema: ShreddingSchema, coerce: Coerce, type: T.DataType) -> Column:
    def shred(values: pa.Array) -> pa.Array:
        from pqext import variant

        return conform(variant.shred(normal_variant(values), schema, coerce=coerce), exchange_type(type))

    return arrow_udf(shred, type, "shred_variant")(column)


def _unshred(values: pa.Array) -> pa.Array:
    from pqext import variant

    return conform(variant.unshred(normal_variant(values)), exchange_type(T.VariantType()))


def _infer(df: DataFrame, place: Place, how: Shredding) -> ShreddingSchema:
    values = df.select(F.col(quoted(place.column)).alias("v"))
    for step in place.steps:
        if step == ELEMENT:
            below = F.explode("v")
        elif step == VALUE:
            below = F.explode(F.map_values("v"))
        else:
            below = F.col("v").getField(step[0])
        values = values.select(below.alias("v"))
    sample = values.where(F.col("v").isNotNull()).limit(how.inference.sample_rows).toArrow()
    found = sample.column("v").combine_chunks() if sample.num_rows else pa.array([], variant_type())
    return how.schema_for(conform(found, variant_type()))


def _place(df: DataFrame, path: str, places: Mapping[str, Place]) -> Place:
    """The VARIANT that a schema is for."""
    if path in places:
        return places[path]
    within = [other for other in places if other.startswith(f"{path}.")] if isinstance(path, str) else []
    inside = f"; within it there are {', '.join(within)}" if within else ""
    if path in df.columns:
        raise TypeError(f"column {path!r} is {df.schema[path].dataType.simpleString()}, not VARIANT{inside}")
    nested = [other for other, place in places.items() if place.steps]
    raise ValueError(f"no column {path!r}{inside}; there are {', '.join([*df.columns, *nested])}")
