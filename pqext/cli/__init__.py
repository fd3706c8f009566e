"""Command-line interface of pqext: the command ``pqext``."""

from __future__ import annotations

from pqext.cli.app import IS_ALONE, app, main

__all__ = ["IS_ALONE", "app", "main"]
