"""Imports that a process started for a single command can avoid."""

from __future__ import annotations

import sys

IS_ALONE = "pyarrow" not in sys.modules
"""Is the command all that this process does? Else others in it have imported pyarrow before."""


def without_pandas() -> None:
    """Hide pandas, which pyarrow would import with its first array: 0.3 seconds, and no command but demo needs it."""
    if IS_ALONE and "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas:
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Refuse pandas, and leave every other module to the next finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from commands", name=fullname)
