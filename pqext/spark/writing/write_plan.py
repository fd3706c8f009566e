"""Explain a save before it runs: columns, folders, shredding and options of the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.core.base.suggestions import join_names
from pqext.core.base.text import escape_text, with_noun
from pqext.dataset.writing.appending import drop_columns, empty_file
from pqext.dataset.writing.part_files import UNDIVIDED, Division, check_division
from pqext.spark.base.settings import save_settings, session_setting
from pqext.spark.base.types import file_schema, is_marked_struct
from pqext.spark.columns.shredding_choice import walk_fields
from pqext.spark.columns.timestamps import check_rebase_mode
from pqext.spark.options.save import encode_option, parse_save_options
from pqext.variant.shredding.choice import inexact_paths, parse_shredding
from pqext.variant.shredding.schema import schema_of_storage

Origin = Literal["shred_variant", "option", "struct"]


@dataclass(frozen=True)
class VariantPlan:
    """Shredding of a VARIANT: its dotted path in the file, the schema, and the origin of the choice."""

    path: str
    schema: str | None
    """Schema as DDL; ``"infer"`` if it is inferred for each file; None if the VARIANT is not shredded."""
    origin: Origin | None

    def __str__(self) -> str:
        if self.schema is None or self.origin is None or self.schema == "VARIANT":
            return f"{self.path}: not shredded"
        origins = {"shred_variant": "shred_variant", "option": "option shredding", "struct": "a shredded struct"}
        is_inferred = self.schema == "infer"
        schema = "by a schema inferred from each file's first row group" if is_inferred else f"as {self.schema}"
        return f"{self.path}: shredded {schema} ({origins[self.origin]})"


@dataclass(frozen=True)
class WritePlan:
    """Plan of a save by data source ``pqext``: columns with their Spark types, and the shredding of VARIANTs."""

    columns: tuple[tuple[str, str], ...]
    variants: tuple[VariantPlan, ...]
    options: Mapping[str, Any]
    """Options of the writer that differ from the defaults, except ``shredding``."""
    division: Division = UNDIVIDED
    """Partition columns and limits on the size of a file."""
    warnings: tuple[str, ...] = ()
    """Likely mistakes in the shredding."""

    def __str__(self) -> str:
        by = self.division.partition_by
        each = "task and partition" if by else "task"
        lines = [f"a Parquet file for each {each} with rows, with the columns"]
        lines += [f"  {name}: {type}" for name, type in self.columns if name not in by]
        if by:
            lines += ["in folders named by", *(f"  {name}: {dict(self.columns)[name]}" for name in by)]
        rows, size = self.division.max_records_per_file, self.division.target_file_bytes
        lines += [] if rows is None else [f"at most {with_noun(rows, 'row')} in a file"]
        lines += [] if size is None else [f"about {size:,} bytes in a file"]
        if self.variants:
            lines += ["VARIANT", *(f"  {variant}" for variant in self.variants)]
        lines += [f"  {warning}" for warning in self.warnings]
        if any(variant.schema == "infer" for variant in self.variants):
            lines.append("  SaveResult.residual reports the share of values outside the typed columns, by path")
        if self.options:
            lines += ["options", *(f"  {name}: {value}" for name, value in sorted(self.options.items()))]
        return "\n".join(lines)


def explain_write(df: DataFrame, **options: Any) -> WritePlan:
    """Return the plan of ``df.write.format("pqext").options(**options).save(path)`` without running a job.

    Args:
        df: The data frame.
        options: Options of :class:`pqext.WriteOptions` as strings or Python values. The settings of the session are
            the defaults, as in :func:`write`.

    Returns:
        The columns, folders, shredding and options of the files.

    Raises:
        ValueError: If an option is invalid.
        UnsupportedError: If Parquet has no type for a column.
        VariantError: If the metadata of a column has an invalid shredding.

    Example:
        >>> print(explain_write(shred_variant(df, {"event": "mag DECIMAL(9,2)"}), compression="zstd"))  # doctest: +SKIP
        a Parquet file for each task with rows, with the columns
          event: variant
        VARIANT
          event: shredded as STRUCT<mag: DECIMAL(9,2)> (shred_variant)
        options
          compression: zstd
          profile: spark
    """
    schema = df.schema
    encoded = {name: encode_option(value) for name, value in options.items()}
    save = parse_save_options(schema, encoded, save_settings(session_setting(df.sparkSession)))
    schema = save.name_folders(schema)
    writer_options = dict(save.writer)
    if save.rebase_mode == "legacy":
        check_rebase_mode(save.rebase_mode, drop_columns(file_schema(schema), save.division.partition_by))
    stored = file_schema(schema)
    check_division(save.division, stored)
    empty_file(drop_columns(stored, save.division.partition_by), writer_options)
    by_option = save.shredding_options
    shreddings = writer_options.pop("shredding", {})
    plans = []
    warnings = []
    for field_path, field in walk_fields(schema):
        path = field_path.dotted_path
        if is_marked_struct(field.dataType) and path not in by_option:
            plans.append(VariantPlan(path, _shredding_schema(field.dataType), "struct"))
        elif path in shreddings:
            choice = parse_shredding(shreddings[path])
            origin: Origin = "option" if path in by_option else "shred_variant"
            plans.append(VariantPlan(path, "infer" if choice.schema is None else str(choice.schema), origin))
            if names := inexact_paths(choice):
                warnings.append(
                    f"{path}: numbers of JSON text, such as 0.5, are exact and fit no FLOAT or DOUBLE column "
                    f'({join_names(names, 5)}): use DECIMAL, or DOUBLE with "coerce": "json"'
                )
        elif isinstance(field.dataType, T.VariantType):
            plans.append(VariantPlan(path, None, None))
    columns = tuple((field.name, _type_name(field.dataType)) for field in schema)
    return WritePlan(columns, tuple(plans), writer_options, save.division, tuple(map(escape_text, warnings)))


def _type_name(type: T.DataType) -> str:
    return "variant, shredded" if is_marked_struct(type) else type.simpleString()


def _shredding_schema(type: T.DataType) -> str:
    (field,) = file_schema(T.StructType([T.StructField("c", type)]))
    return str(schema_of_storage(field.type))
