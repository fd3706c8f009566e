"""Choose the shredding of VARIANT columns, for a later write or for shredded structs in the data frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.base.arrays import conform, variant_from_spark
from pqext.spark.base.types import create_marked_struct, drop_metadata, is_marked_struct, to_exchange_type
from pqext.spark.columns.names import quote
from pqext.spark.columns.shredding_choice import (
    ELEMENT,
    VALUE,
    FieldPath,
    drop_choices,
    has_choice,
    set_choices,
    variant_paths,
)
from pqext.spark.functions.udf import arrow_udf
from pqext.variant.shredding.choice import Shredding, parse_shredding
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
    """Choose the shredding of VARIANT columns, which data source ``pqext`` applies when it writes the data frame.

    This runs no job: the columns remain VARIANT, Spark's own functions work on them, and the choice is stored in field
    metadata. Spark retains the metadata in ``where``, ``select``, ``alias``, sorts, ``repartition``, joins,
    ``F.struct`` and unions (that of the first data frame). Spark drops it if an expression creates a new column, such
    as ``F.first`` in an aggregate, ``F.coalesce``, ``F.when``, ``F.array`` or ``F.explode``: call this function last,
    and check the result with :func:`explain_write`. Other data sources ignore the metadata.

    Args:
        df: The data frame.
        schema: The schema of the typed columns by VARIANT column: DDL (``"mag DECIMAL(9,2), tags ARRAY<STRING>"``), a
            Spark ``StructType``, an Arrow type, ``"infer"``, or a mapping like ``{"schema": "infer", "coerce": "json",
            "max_fields": 50}``, as in option ``shredding`` of :func:`pqext.write_table`. A VARIANT in a struct, array
            or map has its path in the file: ``s.v``, ``l.list.element``, ``m.key_value.value``. Values that a typed
            column cannot represent exactly remain in the residual ``value``. Option ``shredding`` of the write takes
            precedence.
        infer: ``"file"`` infers a schema for each file from its first row group. ``"once"`` runs a job that infers one
            schema for all files from the first ``sample_rows`` values (10,000) that are not null.
        storage: Return structs ``metadata, value, typed_value...`` instead of the VARIANT columns, for other data
            sources. Schemas are inferred once, and values pass through Python. Data source ``pqext`` writes these
            structs, which are marked in the field metadata of ``metadata``, as VARIANT.

    Returns:
        A data frame with the same columns.

    Raises:
        ValueError: If a column does not exist or is ambiguous, or its schema is invalid.
        TypeError: If a column is not a VARIANT.

    Example:
        >>> shred_variant(df, {"event": "mag DECIMAL(9,2), kind STRING"})  # doctest: +SKIP
    """
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema must map columns to schemas, as in {{'column': ...}}, not a {type(schema).__name__}")
    if infer not in ("file", "once"):
        raise ValueError(f"infer must be 'file' or 'once', not {infer!r}")
    paths = variant_paths(df.schema)
    choices = {_find_variant(df, path, paths): parse_shredding(spec) for path, spec in schema.items()}
    if storage:
        return _to_structs(df, choices)
    if infer == "once":
        choices = {
            path: choice if choice.schema is not None else replace(choice, schema=_infer(df, path, choice))
            for path, choice in choices.items()
        }
    return set_choices(df, choices)


def unshred_variant(df: DataFrame, columns: Iterable[str] | None = None) -> DataFrame:
    """Convert shredded structs to VARIANT, and remove the shredding that :func:`shred_variant` chose.

    Args:
        df: The data frame.
        columns: Names of the columns; all shredded columns if None.

    Returns:
        A data frame with the same columns.

    Raises:
        ValueError: If a column does not exist.

    Example:
        >>> unshred_variant(df, ["event"])  # doctest: +SKIP
    """
    if columns is None:
        columns = [field.name for field in df.schema if is_marked_struct(field.dataType) or has_choice(field)]
    for name in columns:
        if name not in df.columns:
            raise ValueError(f"no column {name!r}; the columns are {', '.join(df.columns)}")
        if has_choice(df.schema[name]):
            df = drop_choices(df, name)
        else:
            df = df.withColumn(name, arrow_udf(_unshred, T.VariantType(), "unshred_variant")(F.col(quote(name))))
    return df


def _to_structs(df: DataFrame, choices: Mapping[FieldPath, Shredding]) -> DataFrame:
    """Return ``df`` with top-level VARIANT columns replaced by shredded structs."""
    for path, choice in choices.items():
        if path.steps:
            raise ValueError(f"storage=True supports top-level columns only, not {path.dotted_path!r}; omit storage")
        name = path.column
        typed = choice.schema if choice.schema is not None else _infer(df, path, choice)
        marked = create_marked_struct(storage_struct(typed))
        column = _shred(F.col(quote(name)), typed, choice.coerce, drop_metadata(marked))
        df = df.withColumn(name, column.cast(marked))
    return df


def _shred(column: Column, schema: ShreddingSchema, coerce: Coerce, type: T.DataType) -> Column:
    def shred_array(values: pa.Array) -> pa.Array:
        from pqext import variant

        return conform(variant.shred(variant_from_spark(values), schema, coerce=coerce), to_exchange_type(type))

    return arrow_udf(shred_array, type, "shred_variant")(column)


def _unshred(values: pa.Array) -> pa.Array:
    from pqext import variant

    return conform(variant.unshred(variant_from_spark(values)), to_exchange_type(T.VariantType()))


def _infer(df: DataFrame, path: FieldPath, choice: Shredding) -> ShreddingSchema:
    values = df.select(F.col(quote(path.column)).alias("v"))
    for step in path.steps:
        if step == ELEMENT:
            child = F.explode("v")
        elif step == VALUE:
            child = F.explode(F.map_values("v"))
        else:
            child = F.col("v").getField(step[0])
        values = values.select(child.alias("v"))
    sample = values.where(F.col("v").isNotNull()).limit(choice.inference.sample_rows).toArrow()
    variants = sample.column("v").combine_chunks() if sample.num_rows else pa.array([], variant_type())
    return choice.schema_for(conform(variants, variant_type()))


def _find_variant(df: DataFrame, path: str, paths: Mapping[str, FieldPath]) -> FieldPath:
    """Return the VARIANT at a dotted path. Raises ``TypeError`` or ``ValueError`` for other paths."""
    if path in paths:
        return paths[path]
    nested = [other for other in paths if other.startswith(f"{path}.")] if isinstance(path, str) else []
    hint = f"; its VARIANTs are {', '.join(nested)}" if nested else ""
    if path in df.columns:
        raise TypeError(f"column {path!r} is {df.schema[path].dataType.simpleString()}, not VARIANT{hint}")
    nested = [other for other, field_path in paths.items() if field_path.steps]
    raise ValueError(f"no column {path!r}{hint}; the columns are {', '.join([*df.columns, *nested])}")
