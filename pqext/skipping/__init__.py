"""Data-skipping stores (experimental): indexes of the contents of files, so that a query opens only matching files.

Public names are declared in ``__init__.pyi`` and imported on first use.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__, {})
