"""The data-skipping metadata store: what each file of a dataset holds, so that a query opens only those it needs.

Public names stand in ``__init__.pyi`` and are imported when they are first used.
"""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__, {})
