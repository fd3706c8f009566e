"""pqext in PySpark: JSON into VARIANT, shredding by your own schema, data source ``pqext`` both ways.

Start with :func:`local_session`, or :func:`register` on a session of your own. Needs ``pip install 'pqext[spark]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pqext.core.lazy import attach

if TYPE_CHECKING:
    from pqext.spark import functions as functions
    from pqext.spark.commit import clean as clean
    from pqext.spark.conditions import variant as variant
    from pqext.spark.json_reading import read_json as read_json
    from pqext.spark.planning import read_metrics as read_metrics
    from pqext.spark.reading import explain_read as explain_read
    from pqext.spark.reading import read as read
    from pqext.spark.reading import where as where
    from pqext.spark.registration import register as register
    from pqext.spark.session import local_session as local_session
    from pqext.spark.shredding import shred_variant as shred_variant
    from pqext.spark.shredding import unshred_variant as unshred_variant

_MODULES = {
    "clean": "commit",
    "explain_read": "reading",
    "local_session": "session",
    "read": "reading",
    "read_json": "json_reading",
    "read_metrics": "planning",
    "register": "registration",
    "shred_variant": "shredding",
    "unshred_variant": "shredding",
    "variant": "conditions",
    "where": "reading",
}

__all__ = sorted([*_MODULES, "functions"])

_get, __dir__ = attach(
    __name__, {"functions": "pqext.spark.functions:"} | {name: f"{__name__}.{home}" for name, home in _MODULES.items()}
)

if not TYPE_CHECKING:  # a name that is not there is an error to type checkers

    def __getattr__(name: str) -> Any:
        try:
            return _get(name)
        except ModuleNotFoundError as error:
            if error.name is not None and error.name.partition(".")[0] == "pyspark":
                raise ImportError("pyspark is not installed: pip install 'pqext[spark]'") from error
            raise
