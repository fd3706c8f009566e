"""Metrics of one Parquet file for table formats: what manifests of Iceberg and logs of Delta say of a data file."""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
