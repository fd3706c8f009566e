"""Making the data sources known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from pqext.spark.datasource import PqextSource
from pqext.spark.json_source import JsonLinesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_registered: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make data sources ``pqext`` and ``pqext_json`` known to a session, on Classic and on Connect.

    Where Spark's workers find the modules ``pyspark_pqext`` and ``pyspark_pqext_json``, which are installed with pqext,
    it knows them already.
    """
    for source in (PqextSource, JsonLinesSource):
        try:
            spark.dataSource.register(source)
        except Exception as error:  # classes of its own on Classic and on Connect
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise
    _registered.add(spark)


def ensure_registered(spark: SparkSession) -> None:
    """:func:`register`, once a session: Spark logs a warning when a source is registered again."""
    if spark not in _registered:
        register(spark)
