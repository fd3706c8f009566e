"""Data-skipping stores (experimental): indexes of file contents that allow a query to open only matching files.

Public names are declared in ``__init__.pyi`` and imported on first use.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__, {})
