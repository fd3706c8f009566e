"""Shredding of VARIANT columns: chosen with ``shred_variant``, stored in field metadata, and applied by the write.

The field metadata of a column has JSON under :data:`KEY`, which maps the path of each VARIANT in the column to a value
of option ``shredding``: ``{"$": {"schema": "a INT"}}`` or ``{"$.list.element": {"schema": "infer"}}``. Paths are paths
in the file, with ``$`` for the column, so that the column can be renamed. Spark drops the metadata if an expression
creates a new column. Fields of structs can also have metadata, because ``F.struct`` retains that of its arguments.
The outermost metadata for a VARIANT takes precedence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import VariantError
from pqext.core.base.suggestions import excerpt
from pqext.spark.base.arrays import conform, variant_from_spark
from pqext.spark.base.types import exchange_type, is_marked_struct, marked_struct, without_metadata
from pqext.spark.columns.names import quote
from pqext.spark.functions.udf import arrow_udf
from pqext.variant.shredding.choice import Shredding, shredding
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, storage_struct
from pqext.variant.shredding.shredder import Coerce
from pqext.variant.types import variant_type

KEY = "pqext:shredding"
_ELEMENT, _VALUE = ("list", "element"), ("key_value", "value")
"""Names of array elements and map values in paths in a file."""

Step = tuple[str, ...]


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
        >>> shred_variant(df, {"event": "mag DOUBLE, kind STRING"})  # doctest: +SKIP
    """
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema must map columns to schemas, as in {{'column': ...}}, not a {type(schema).__name__}")
    if infer not in ("file", "once"):
        raise ValueError(f"infer must be 'file' or 'once', not {infer!r}")
    paths = variant_paths(df.schema)
    choices = {_find_variant(df, path, paths): shredding(spec) for path, spec in schema.items()}
    if storage:
        return _to_structs(df, choices)
    if infer == "once":
        choices = {
            path: choice if choice.schema is not None else replace(choice, schema=_infer(df, path, choice))
            for path, choice in choices.items()
        }
    return _set_choices(df, choices)


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
        columns = [field.name for field in df.schema if is_marked_struct(field.dataType) or _has_choice(field)]
    for name in columns:
        if name not in df.columns:
            raise ValueError(f"no column {name!r}; the columns are {', '.join(df.columns)}")
        if _has_choice(df.schema[name]):
            df = _drop_choices(df, name)
        else:
            df = df.withColumn(name, arrow_udf(_unshred, T.VariantType(), "unshred_variant")(F.col(quote(name))))
    return df


def _to_structs(df: DataFrame, choices: Mapping[_FieldPath, Shredding]) -> DataFrame:
    """Return ``df`` with top-level VARIANT columns replaced by shredded structs."""
    for path, choice in choices.items():
        if path.steps:
            raise ValueError(f"storage=True supports top-level columns only, not {path.dotted_path!r}; omit storage")
        name = path.column
        typed = choice.schema if choice.schema is not None else _infer(df, path, choice)
        marked = marked_struct(storage_struct(typed))
        column = _shred(F.col(quote(name)), typed, choice.coerce, without_metadata(marked))
        df = df.withColumn(name, column.cast(marked))
    return df


def _shred(column: Column, schema: ShreddingSchema, coerce: Coerce, type: T.DataType) -> Column:
    def shred_array(values: pa.Array) -> pa.Array:
        from pqext import variant

        return conform(variant.shred(variant_from_spark(values), schema, coerce=coerce), exchange_type(type))

    return arrow_udf(shred_array, type, "shred_variant")(column)


def _unshred(values: pa.Array) -> pa.Array:
    from pqext import variant

    return conform(variant.unshred(variant_from_spark(values)), exchange_type(T.VariantType()))


def _infer(df: DataFrame, path: _FieldPath, choice: Shredding) -> ShreddingSchema:
    values = df.select(F.col(quote(path.column)).alias("v"))
    for step in path.steps:
        if step == _ELEMENT:
            child = F.explode("v")
        elif step == _VALUE:
            child = F.explode(F.map_values("v"))
        else:
            child = F.col("v").getField(step[0])
        values = values.select(child.alias("v"))
    sample = values.where(F.col("v").isNotNull()).limit(choice.inference.sample_rows).toArrow()
    variants = sample.column("v").combine_chunks() if sample.num_rows else pa.array([], variant_type())
    return choice.schema_for(conform(variants, variant_type()))


def _find_variant(df: DataFrame, path: str, paths: Mapping[str, _FieldPath]) -> _FieldPath:
    """Return the VARIANT at a dotted path. Raises ``TypeError`` or ``ValueError`` for other paths."""
    if path in paths:
        return paths[path]
    nested = [other for other in paths if other.startswith(f"{path}.")] if isinstance(path, str) else []
    hint = f"; its VARIANTs are {', '.join(nested)}" if nested else ""
    if path in df.columns:
        raise TypeError(f"column {path!r} is {df.schema[path].dataType.simpleString()}, not VARIANT{hint}")
    nested = [other for other, field_path in paths.items() if field_path.steps]
    raise ValueError(f"no column {path!r}{hint}; the columns are {', '.join([*df.columns, *nested])}")


@dataclass(frozen=True)
class _FieldPath:
    """Path of a field in a data frame: its column, and the steps below the column."""

    column: str
    steps: tuple[Step, ...] = ()

    @property
    def dotted_path(self) -> str:
        """Path in the notation of the writer's options."""
        return ".".join([self.column, *(name for step in self.steps for name in step)])

    @property
    def relative(self) -> str:
        """Path with ``$`` for the column."""
        return f"${self.dotted_path[len(self.column) :]}"


def variant_paths(schema: T.StructType) -> dict[str, _FieldPath]:
    """Return the paths of all VARIANTs in a data frame, by their dotted paths in the file."""
    return {path.dotted_path: path for path, field in walk_fields(schema) if isinstance(field.dataType, T.VariantType)}


def _has_choice(field: T.StructField) -> bool:
    """Return whether the metadata of a column, or of a field within it, contains a shredding choice."""
    return any(KEY in (inner.metadata or {}) for _, inner in walk_fields(T.StructType([field])))


def _set_choices(df: DataFrame, choices: Mapping[_FieldPath, Shredding]) -> DataFrame:
    """Set the shredding of VARIANTs in the metadata of the columns of ``df``.

    The shredding of other VARIANTs is retained.
    """
    paths = variant_paths(df.schema)
    columns: dict[str, dict[str, Any]] = {}
    for path, choice in choices.items():
        if path.column not in columns:
            field = df.schema[path.column]
            with suppress(VariantError):  # invalid metadata is replaced
                previous = {f"{path.column}{key[1:]}": value for key, value in _choices(field, field.name).items()}
                columns[path.column] = {
                    paths[dotted].relative: value.options() for dotted, value in previous.items() if dotted in paths
                }
        columns.setdefault(path.column, {})[path.relative] = choice.options()
    return _with_choices(df, columns)


def _drop_choices(df: DataFrame, name: str) -> DataFrame:
    """Remove the shredding from the metadata of column ``name``, and override the metadata of its fields."""
    fields = [path for path, field in walk_fields(T.StructType([df.schema[name]])) if KEY in (field.metadata or {})]
    overrides = {
        path.relative: shredding(Untyped()).options()
        for path in variant_paths(df.schema).values()
        if any(path.column == field.column and _is_nested(path.steps, field.steps) for field in fields)
    }
    return _with_choices(df, {name: overrides})


def _is_nested(steps: tuple[Step, ...], parent: tuple[Step, ...]) -> bool:
    return bool(parent) and steps[: len(parent)] == parent


def column_choices(schema: T.StructType) -> dict[str, Shredding]:
    """Return the shredding in the metadata of columns, by the dotted paths of the VARIANTs in the file.

    Raises ``VariantError`` with the column if metadata is malformed or does not belong to a VARIANT.
    """
    paths = variant_paths(schema)
    choices: dict[str, Shredding] = {}
    for field_path, field in walk_fields(schema):
        for relative, choice in _choices(field, field_path.dotted_path).items():
            path = field_path.dotted_path + relative[1:]
            if path not in paths:
                raise _error(field_path.dotted_path, f"it sets a shredding for {path!r}, which is not a VARIANT")
            choices.setdefault(path, choice)
    return choices


def walk_fields(schema: T.StructType) -> Iterator[tuple[_FieldPath, T.StructField]]:
    """Yield every field with its path, parents first. Elements and map values count as fields without metadata."""
    queue = [(_FieldPath(field.name), field) for field in reversed(schema.fields)]
    while queue:
        path, field = queue.pop()
        yield path, field
        type = field.dataType
        children: list[tuple[Step, T.StructField]]
        if isinstance(type, T.StructType):
            children = [((child.name,), child) for child in reversed(type.fields)]
        elif isinstance(type, T.ArrayType):
            children = [(_ELEMENT, T.StructField("element", type.elementType))]
        elif isinstance(type, T.MapType):
            children = [(_VALUE, T.StructField("value", type.valueType))]
        else:
            continue
        queue += [(_FieldPath(path.column, (*path.steps, step)), child) for step, child in children]


def _choices(field: T.StructField, path: str) -> dict[str, Shredding]:
    """Return the shredding in the metadata of a field, by relative paths."""
    text = (field.metadata or {}).get(KEY)
    if text is None:
        return {}
    try:
        choices = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise _error(path, f"{excerpt(text)!r} is not JSON: {error}") from None
    if not isinstance(text, str) or not isinstance(choices, dict) or not all(map(_is_relative, choices)):
        raise _error(path, f"{excerpt(str(text))!r} is not a JSON object that maps paths from $ to choices")
    try:
        return {relative: shredding(choice) for relative, choice in choices.items()}
    except (ValueError, TypeError) as error:
        raise _error(path, str(error)) from None


def _is_relative(path: str) -> bool:
    return path == "$" or path.startswith("$.")


def _error(path: str, reason: str) -> VariantError:
    return VariantError(
        f"the metadata {KEY!r} of column {path!r} is invalid: {reason}. "
        "pqext.spark.shred_variant replaces it, pqext.spark.unshred_variant removes it"
    )


def _with_choices(df: DataFrame, choices: Mapping[str, Mapping[str, Any]]) -> DataFrame:
    """Return ``df`` with ``choices`` as the only choices of their columns.

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
