"""The command ``pqext``."""

from __future__ import annotations

from pqext.cli.app import app, main
from pqext.cli.startup import IS_ALONE  # first: it looks at what is imported before

__all__ = ["IS_ALONE", "app", "main"]
