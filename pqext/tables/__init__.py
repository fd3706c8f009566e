"""Read, write and maintain Delta and Iceberg tables with VARIANT and geometry columns.

The logs are read and committed by ``deltalake`` and ``pyiceberg``; the data files are read and written by pqext.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
