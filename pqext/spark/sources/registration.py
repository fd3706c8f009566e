"""Making the data sources and the SQL functions known to a session."""

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
    """Make pqext known to a session, on Classic and on Connect: its data sources and its SQL functions.

    The data sources are ``pqext`` and ``pqext_json``. Where Spark's workers find the modules ``pyspark_pqext`` and
    ``pyspark_pqext_json``, which are installed with pqext, it knows them already. The functions are those of
    ``pqext.spark.functions``, by their names behind ``pq_``: ``SELECT pq_st_area(geom) FROM parcels``.

    In a thread that Python has started it also makes the session that thread's own: on Classic such a thread has none,
    and ``df.write.format("pqext")`` does not find the data source there.
    """
    from pqext.spark.functions.sql_names import register_functions

    _make_active(spark)
    _register_sources(spark)
    register_functions(spark)
    _with_functions.add(spark)


def ensure_registered(spark: SparkSession, functions: bool = False) -> None:
    """Register once a session: Spark logs a warning when a source is registered again."""
    if functions and spark not in _with_functions:
        register(spark)
        return
    _make_active(spark)
    if spark not in _registered:
        _register_sources(spark)


def _make_active(spark: SparkSession) -> None:
    """Make a session that of this thread: in it Spark looks up the data source of a save."""
    session = getattr(spark, "_jsparkSession", None)  # which Connect has not
    if session is not None and threading.current_thread() is not threading.main_thread():
        type(spark)._get_j_spark_session_class(spark._jvm).setActiveSession(session)


def _register_sources(spark: SparkSession) -> None:
    for source in (PqextSource, JsonLinesSource):
        try:
            spark.dataSource.register(source)
        except Exception as error:  # classes of its own on Classic and on Connect
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
    _registered.add(spark)
