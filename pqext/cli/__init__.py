"""The command ``pqext``."""

from __future__ import annotations

from pqext.cli.alone import IS_ALONE  # first: it looks at what is imported before
from pqext.cli.app import app, main

__all__ = ["IS_ALONE", "app", "main"]
