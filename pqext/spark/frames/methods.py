"""Methods of the data frames that ``read`` returns: count from footers, show plans, and warn of full scans.

They replace the methods of a single data frame. Data frames derived from it have Spark's own methods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from pyspark.sql import DataFrame

from pqext.spark.reading.planning import ReadPlan

_VIEWS = ("createTempView", "createOrReplaceTempView", "createGlobalTempView", "createOrReplaceGlobalTempView")
_NARROWING = ("where", "filter", *_VIEWS)
"""Methods whose results Spark filters after pqext has read all rows."""


def replace_count(df: DataFrame, counter: Callable[[], Callable[[], int] | None]) -> None:
    """Make ``df.count`` call the result of ``counter``. If the result is None or ``df`` is cached, Spark counts.

    ``counter`` is called once. Like ``df``, its result retains a plan and raises an error for changed files.
    """
    cached_counter = cache(counter)

    def count() -> int:
        count_rows = None if is_cached(df) else cached_counter()
        return type(df).count(df) if count_rows is None else count_rows()

    df.count = count  # type: ignore[method-assign]


def replace_explain(df: DataFrame, plan: Callable[[], ReadPlan]) -> None:
    """Make ``df.explain`` also print the plan of pqext."""

    def explain(*arguments: Any, **options: Any) -> None:
        type(df).explain(df, *arguments, **options)
        print(f"== pqext ==\n{plan().describe()}\n")

    df.explain = explain  # type: ignore[method-assign]


def replace_filters(df: DataFrame) -> None:
    """Make Spark's filters and views of ``df`` log a hint, once per process, that Spark reads all data."""
    for name in _NARROWING:
        setattr(df, name, partial(_call_with_hint, getattr(df, name)))


def is_cached(df: DataFrame) -> bool:
    """Return whether the rows of ``df`` are cached, and thus independent of the files."""
    level = df.storageLevel
    return level.useMemory or level.useDisk or level.useOffHeap


def _call_with_hint(method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    log_filter_hint()
    return method(*arguments, **options)


@cache
def log_filter_hint() -> None:
    """Log once that Spark's own filters do not use statistics."""
    logging.getLogger("pqext.spark").warning(
        "Spark does not pass filters and columns to data source pqext: DataFrame.where and views of what "
        "pqext.spark.read returns read all row groups and columns. To skip them, use read(..., where=, columns=), "
        'pqext.spark.where(df, condition), or read(..., engine="auto")'
    )
