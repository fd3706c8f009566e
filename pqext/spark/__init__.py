"""PySpark integration: parse JSON into VARIANT, shred by any schema, and read and write with data source ``pqext``.

Start with :func:`local_session`, or call :func:`register` for an existing session. Requires the extra
``spark``.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from pqext.core.base.lazy_imports import attach

_get, __dir__, _every = attach(__name__, __file__)
__all__ = [name for name in _every if name != "variant"]  # with *, it would shadow the module pqext.variant


def __getattr__(name: str) -> Any:
    try:
        value = _get(name)
        if isinstance(value, FunctionType):
            from pqext.spark.base.errors import check_arguments

            value = check_arguments(value)
            setattr(sys.modules[__name__], name, value)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in ("pyspark", "py4j"):
            raise ImportError("PySpark is not installed: pip install 'pqext[spark]'") from error
        raise
    return value
