"""Data source ``pqext_json`` for sessions without a registration: Spark looks for modules named ``pyspark_*``.

It imports them in every session that uses any Python data source, so what the source needs is imported once it is used.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource


class DefaultSource(DataSource):
    """Stands for :class:`pqext.spark.sources.data_sources.JsonLinesSource`, which it makes."""

    def __new__(cls, options: dict[str, str]) -> Any:
        from pqext.spark.sources.data_sources import JsonLinesSource

        return JsonLinesSource(options)

    @classmethod
    def name(cls) -> str:
        """The format's name in Spark."""
        return "pqext_json"
