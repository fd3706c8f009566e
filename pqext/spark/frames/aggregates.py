"""Compute counts, sums and extremes per group in the tasks of data source ``pqext``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from inspect import signature
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from pqext.core.base.suggestions import suggest_arguments_of
from pqext.core.io.sources.csv_text import find_duplicate
from pqext.dataset.expressions import Value, col
from pqext.dataset.expressions.visitors import set_timezone
from pqext.dataset.planning.projection import ComputedColumn, parse_columns
from pqext.spark.base.files import absolute_paths
from pqext.spark.base.hadoop import read_hadoop_options
from pqext.spark.base.settings import add_settings, filter_in_timezone, session_setting, session_timezone
from pqext.spark.options.file import FileOptions, encode_file_options
from pqext.spark.reading.aggregation import Aggregate, Aggregation, parse_aggregates
from pqext.spark.reading.encoding import encode_options
from pqext.spark.sources.data_sources import ensure_registered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OPTIONS = [
    *sorted({*signature(encode_options).parameters} - {"columns", "where", "aggregation", "file_options"}),
    *FileOptions.__annotations__,
]
"""Names of the options of :func:`query`."""


@suggest_arguments_of("spark", options=_OPTIONS)
def query(
    spark: SparkSession,
    path: str | Sequence[str],
    agg: Mapping[str, Any],
    by: Sequence[Any] = (),
    where: Any = None,
    **options: Any,
) -> DataFrame:
    """Compute counts, sums, minima and maxima of groups in the tasks that read files. Spark combines the results.

    A task reads only the requested columns, with VARIANT values from their typed leaf if there is one, and returns one
    row per group.

    Args:
        spark: The session.
        path: A file, a folder, a pattern or a list of them.
        agg: Maps the name of each result to ``"count"`` for rows, or to a pair of a function and a column: ``("sum",
            "price")``.
            Functions are count (of non-null values), sum, min, max and avg. Columns are as in ``columns`` of
            :func:`read`. Results have the types of Spark's functions, integers and decimals are added exactly, and NaN
            is the greatest number.
        by: Columns whose equal values form a group. If empty, all rows form one group.
        where: An expression of ``pqext.col``, a filter in lists of tuples or SQL text of pqext
            (:func:`pqext.filters.from_sql`). Tasks evaluate it, so it cannot contain functions of Spark.
        options: ``bbox``, ``bbox_column``, ``metrics_path``, ``partition_bytes``, ``partitioning``,
            ``trust_statistics``, ``memory_bytes``, ``storage_options``, ``schema``, ``path_glob_filter``, ``skipping``,
            ``ignore_table_format`` and the options that select files, as in :func:`read`.

    Returns:
        A data frame with the columns ``by`` and ``agg``, which reads the files when an action runs.

    Raises:
        TypeError: If values cannot be grouped, ordered or added, or an argument has the wrong type.
        ValueError: If a function, column or option is unknown.

    Example:
        >>> query(spark, "sales", {"sales": "count", "total": ("sum", "price")}, by=["country"])  # doctest: +SKIP
    """
    timezone = session_timezone(spark)
    groups = list(set_timezone(parse_columns(by), timezone))
    requested: list[str | ComputedColumn] = list(groups)
    targets: list[Aggregate] = []
    for name, function, column in parse_aggregates(agg):
        input_index = None
        if column is not None:
            (result,) = set_timezone(parse_columns([column]), timezone)
            if result not in requested:
                used = set(map(_name, requested))
                is_used = _name(result) in used
                requested.append(ComputedColumn(_unused_name(used), _value(result)) if is_used else result)
                input_index = len(requested) - 1
            else:
                input_index = requested.index(result)
        targets.append(Aggregate(name, function, input_index))
    names = [*map(_name, groups), *(item.name for item in targets)]
    duplicate = find_duplicate(names)
    if duplicate is not None:
        raise ValueError(f"several columns of the result are named {duplicate!r}: rename them in by= or agg=")
    aggregation = Aggregation(len(groups), tuple(targets))
    paths = absolute_paths(path)
    options["storage_options"] = options.get("storage_options") or read_hadoop_options(spark, paths)
    chosen = {name: options.pop(name) for name in FileOptions.__annotations__ if name in options}
    encoded = encode_options(
        requested, where=filter_in_timezone(where, timezone), aggregation=aggregation, **options,
        file_options=encode_file_options(chosen, timezone),
    )
    encoded = add_settings(encoded, session_setting(spark))
    ensure_registered(spark)
    partial = spark.read.format("pqext").options(**encoded).load(paths)
    return aggregation.combine(partial, list(map(_name, groups)))


def _name(column: str | ComputedColumn) -> str:
    return column if isinstance(column, str) else column.name


def _value(column: str | ComputedColumn) -> Value:
    return col(column) if isinstance(column, str) else column.field


def _unused_name(names: Collection[str]) -> str:
    """Return a name that is not among ``names``."""
    return next(name for number in count() if (name := f"value_{number}") not in names)
