"""pqext: write, read, prune and inspect Parquet with VARIANT and geospatial columns.

Public names stand in ``__init__.pyi`` and are imported when they are first used, so that ``import pqext`` stays cheap.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

_READ = "pqext.read_table gives a table, and pqext.scan a question that is narrowed before it runs"
_OF_OTHERS = {
    "dataset": _READ,
    "parse_json": "it is pqext.variant.parse_json",
    "read": _READ,
    "read_csv": "`pqext convert` makes Parquet of CSV",
    "read_json": "it is pqext.variant.read_json",
    "read_pandas": "pqext.read_table(...).to_pandas() gives a frame",
    "read_parquet": _READ,
    "scan_parquet": "it is pqext.scan",
    "to_parquet": "it is pqext.write_table",
    "variant_get": "it is pqext.variant.get",
    "write_parquet": "it is pqext.write_table",
}

__getattr__, __dir__, __all__ = attach(__name__, __file__, _OF_OTHERS)
