"""Compute the metrics of a Parquet file that Iceberg manifests and Delta logs store."""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
