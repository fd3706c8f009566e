"""Register the data sources and SQL functions with a session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

from pqext.spark.sources.json_lines import JsonLinesSource
from pqext.spark.sources.parquet import PqextSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_registered: WeakSet[SparkSession] = WeakSet()
_with_functions: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Register the data sources and SQL functions of pqext with a session, on Spark Classic or Connect.

    The data sources are ``pqext`` and ``pqext_json``. Spark finds them without registration if its workers can import
    the modules ``pyspark_pqext`` and ``pyspark_pqext_json``, which are installed with pqext. The functions are those of
    ``pqext.spark.functions`` with prefix ``pq_``.

    The function also makes the session active in the current Python thread. On Spark Classic, a new thread has no
    active session, and ``df.write.format("pqext")`` would not find the data source.

    Args:
        spark: The session.

    Example:
        >>> register(spark)  # doctest: +SKIP
        >>> spark.sql("SELECT pq_st_area(geom) FROM parcels")  # doctest: +SKIP
    """
    from pqext.spark.functions.sql_names import register_functions

    _make_active(spark)
    _register_sources(spark)
    register_functions(spark)
    _with_functions.add(spark)


def ensure_registered(spark: SparkSession, functions: bool = False) -> None:
    """Register the data sources once per session, and the SQL functions if ``functions``.

    Spark logs a warning if a data source is registered again.
    """
    if functions and spark not in _with_functions:
        register(spark)
        return
    _make_active(spark)
    if spark not in _registered:
        _register_sources(spark)


def _make_active(spark: SparkSession) -> None:
    """Make a session active in this thread, because Spark looks up the data source of a save in the active session."""
    session = getattr(spark, "_jsparkSession", None)  # None on Spark Connect
    if session is not None and threading.current_thread() is not threading.main_thread():
        type(spark)._get_j_spark_session_class(spark._jvm).setActiveSession(session)


def _register_sources(spark: SparkSession) -> None:
    for source in (PqextSource, JsonLinesSource):
        try:
            spark.dataSource.register(source)
        except Exception as error:  # the class differs on Spark Classic and Connect
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
    _registered.add(spark)
