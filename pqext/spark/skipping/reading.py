"""Read CSV, JSON, ORC or Parquet files with Spark, except those that a data-skipping store prunes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as T

from pqext.dataset.expressions import Column
from pqext.dataset.expressions.visitors import replace_columns, resolve_dotted_names
from pqext.dataset.files.sources import find_sources
from pqext.dataset.notations.dnf import as_expression
from pqext.skipping.store.clauses import Evidence
from pqext.skipping.store.objects import current_objects
from pqext.spark.base.files import is_remote
from pqext.spark.frames.parquet import where
from pqext.spark.options.read import StoreReference
from pqext.spark.skipping.foreign import READ_AS, Files, exclude_files, find_type, store_type
from pqext.spark.skipping.tasks import resolve_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_with_skipping(
    spark: SparkSession,
    path: str | Sequence[str],
    filter: Any,
    skipping: Any,
    *,
    format: str = "parquet",
    schema: Any = None,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Read the rows that match ``filter`` with Spark's own reader, except files that a store prunes.

    The driver queries the store when this function is called, and Spark creates no tasks for pruned files. Only files
    whose indexed version still exists are pruned; changed and unknown files are read. Indexes built with a different
    column type, format or options are not used.

    Args:
        spark: The session.
        path: A file, a folder, a pattern, a URL or a list of them.
        filter: An expression of ``pqext.col``, SQL text, or lists of tuples, with the semantics of :func:`where`; names
            are matched by Spark's setting, by default case-insensitively.
        skipping: The data-skipping store of :mod:`pqext.skipping`, its path or its URL.
        format: The name of a file format of Spark.
        schema: The schema, as for ``spark.read.schema``; inferred by default.
        options: Options of Spark's reader, such as ``{"header": True}``.
        storage_options: Credentials and other settings for URLs; Spark's Hadoop settings by default.

    Returns:
        A data frame.

    Raises:
        FileNotFoundError: If there are no files, or the store does not exist.
        ValueError: If a column does not exist, or the store belongs to another table.
        UnsupportedError: If the format does not record the file of a row, or the store has an unknown version.

    Example:
        >>> read_with_skipping(  # doctest: +SKIP
        ...     spark, "/lake/weather", "temp > 30", "/lake/weather.skipping", format="csv",
        ...     schema="temp double, city string", options={"header": True},
        ... )
    """
    expression = as_expression(filter)
    paths, storage = resolve_paths(spark, path, [skipping], storage_options)
    files = Files(spark, paths, format, schema, dict(options or {}))
    frame = files.frame()
    if expression is None:
        return frame
    expression = resolve_dotted_names(expression, frame.schema.names)
    if str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "false":
        expression = replace_columns(expression, lambda column: _resolve_name(column, frame.schema))
    rows = where(frame, expression)  # raises the errors of the filter
    sources = [
        place
        for item in paths
        for place in find_sources(item, None, storage if is_remote(item) else None, ignore_table_format=True)
    ]
    store = StoreReference.from_argument(skipping).open(storage)
    result = store.prune_reasons(sources, expression, _evidence_filter(files, frame.schema))
    names = current_objects(sources).paths
    refused = {names[at].as_py() for at, reason in enumerate(result) if reason is not None}
    return where(exclude_files(frame, refused), expression) if refused else rows


def _evidence_filter(files: Files, schema: T.StructType) -> Callable[[Evidence], bool]:
    """Return a function that tests whether evidence applies to the values that Spark reads."""

    def is_applicable(evidence: Evidence) -> bool:
        operand = evidence.index.operand
        if not isinstance(operand, Column):
            return False
        try:
            type = find_type(schema, operand.path)
        except ValueError:
            return False
        values, cells = store_type(type), evidence.cells.type
        if values is None or evidence.params.get(READ_AS, files.read_as(type)) != files.read_as(type):
            return False
        if pa.types.is_struct(cells) and cells.get_field_index("min") >= 0:
            return bool(cells.field("min").type == values)
        if pa.types.is_list(cells):
            return bool(cells.value_type == (pa.binary() if evidence.index.name == "prefix" else values))
        return True

    return is_applicable


def _resolve_name(column: Column, schema: T.StructType) -> Column:
    """Return a column with the spelling of its name in the schema, which may differ in case."""
    path: list[str] = []
    type: T.DataType = schema
    for name in column.path:
        names = type.names if isinstance(type, T.StructType) else []
        matches = [item for item in names if item.lower() == name.lower()]
        if name not in names and len(matches) != 1:
            return column
        path.append(name if name in names else matches[0])
        assert isinstance(type, T.StructType)
        type = type[path[-1]].dataType
    return replace(column, path=tuple(path))
