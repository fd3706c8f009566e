"""Version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("pqext")
except PackageNotFoundError:  # run from its source without being installed
    __version__ = "0+unknown"
