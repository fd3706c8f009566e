"""What a save would write, told before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.dataset.writing.appending import empty_file, without
from pqext.dataset.writing.part_files import UNDIVIDED, Division, check_division
from pqext.spark.base.settings import save_settings, session_setting
from pqext.spark.base.types import file_schema, is_marked_struct
from pqext.spark.columns.shredding_choice import walk
from pqext.spark.options.save import as_text, save_options
from pqext.variant.shredding.choice import shredding
from pqext.variant.shredding.schema import schema_of_storage

Origin = Literal["shred_variant", "option", "struct"]


@dataclass(frozen=True)
class VariantPlan:
    """How one VARIANT is written: at ``path`` in the file, by ``schema``, chosen by ``origin``."""

    path: str
    schema: str | None
    """DDL; ``"infer"`` for one schema per file; None where it is not shredded."""
    origin: Origin | None

    def __str__(self) -> str:
        if self.schema is None or self.origin is None or self.schema == "VARIANT":
            return f"{self.path}: not shredded"
        by = {"shred_variant": "shred_variant", "option": "option shredding", "struct": "a struct that is shredded"}
        how = "by a schema inferred from each file's first row group" if self.schema == "infer" else f"as {self.schema}"
        return f"{self.path}: shredded {how} ({by[self.origin]})"


@dataclass(frozen=True)
class WritePlan:
    """What data source ``pqext`` writes of a data frame: its columns with their types in Spark, and each VARIANT."""

    columns: tuple[tuple[str, str], ...]
    variants: tuple[VariantPlan, ...]
    options: Mapping[str, Any]
    """The writer's options that are not the default, without ``shredding``."""
    division: Division = UNDIVIDED
    """The columns that name folders, and how large a file may be."""

    def __str__(self) -> str:
        by = self.division.partition_by
        each = "task and partition" if by else "task"
        lines = [f"a Parquet file for each {each} that has rows, with the columns"]
        lines += [f"  {name}: {type}" for name, type in self.columns if name not in by]
        if by:
            lines += ["in folders named by", *(f"  {name}: {dict(self.columns)[name]}" for name in by)]
        rows, size = self.division.max_records_per_file, self.division.target_file_bytes
        lines += [] if rows is None else [f"at most {rows:,} rows in a file"]
        lines += [] if size is None else [f"about {size:,} bytes in a file"]
        if self.variants:
            lines += ["VARIANT", *(f"  {variant}" for variant in self.variants)]
        if any(variant.schema == "infer" for variant in self.variants):
            lines.append("  Saved.residual reports the share of the values that then fit no typed column, by path")
        if self.options:
            lines += ["options", *(f"  {name}: {value}" for name, value in sorted(self.options.items()))]
        return "\n".join(lines)


def explain_write(df: DataFrame, **options: Any) -> WritePlan:
    """What ``df.write.format("pqext").options(**options).save(path)`` writes; no job is run.

    ``options`` are those of :class:`pqext.WriteOptions`, as text, as the sink takes them, or as Python's values. The
    settings of the session count for what is not given, as in :func:`write`. Raises
    what the save would raise for its options and columns, such as ``UnsupportedError`` for a type that Parquet has not
    and ``VariantError`` for a column whose metadata names a shredding that cannot be followed.

    >>> print(explain_write(shred_variant(events, {"event": "mag DOUBLE"}), compression="zstd"))  # doctest: +SKIP
    a Parquet file for each task that has rows, with the columns
      event: variant
    VARIANT
      event: shredded as STRUCT<mag: DOUBLE> (shred_variant)
    options
      compression: zstd
      profile: spark
    """
    given = {name: as_text(value) for name, value in options.items()}
    schema = df.schema
    save = save_options(schema, given, save_settings(session_setting(df.sparkSession)))
    chosen = dict(save.writer)
    stored = file_schema(schema)
    check_division(save.division, stored)
    empty_file(without(stored, save.division.partition_by), chosen)
    by_option = save.shredding_options
    shreddings = chosen.pop("shredding", {})
    plans = []
    for place, field in walk(schema):
        path = place.path
        if is_marked_struct(field.dataType) and path not in by_option:
            plans.append(VariantPlan(path, _stored(field.dataType), "struct"))
        elif path in shreddings:
            choice = shredding(shreddings[path])
            origin: Origin = "option" if path in by_option else "shred_variant"
            plans.append(VariantPlan(path, "infer" if choice.schema is None else str(choice.schema), origin))
        elif isinstance(field.dataType, T.VariantType):
            plans.append(VariantPlan(path, None, None))
    columns = tuple((field.name, _name(field.dataType)) for field in schema)
    return WritePlan(columns, tuple(plans), chosen, save.division)


def _name(type: T.DataType) -> str:
    return "variant, shredded" if is_marked_struct(type) else type.simpleString()


def _stored(type: T.DataType) -> str:
    """The shredding schema of a struct that is a shredded VARIANT."""
    (field,) = file_schema(T.StructType([T.StructField("c", type)]))
    return str(schema_of_storage(field.type))
