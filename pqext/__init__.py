"""pqext: write, read, prune and inspect Parquet with VARIANT and geospatial columns.

Public names are declared in ``__init__.pyi`` and imported on first use, which keeps ``import pqext`` cheap.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach, register_service

_READ = "use pqext.read_table, or pqext.scan for a lazy query"
_OF_OTHERS = {
    "read": _READ,
    "read_csv": "use `pqext convert` to convert CSV to Parquet",
    "read_json": "use pqext.variant.read_json",
    "read_parquet": _READ,
    "scan_parquet": "use pqext.scan",
    "to_parquet": "use pqext.write_table",
    "write_parquet": "use pqext.write_table",
}

register_service("open_table", "pqext.tables.opening:open_table")
register_service("open_store", "pqext.skipping.store.store:open_store")
register_service("warn_about_file_residual", "pqext.variant.shredding.choice:warn_about_file_residual")
__getattr__, __dir__, __all__ = attach(__name__, __file__, _OF_OTHERS)
