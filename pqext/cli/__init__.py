"""The command ``pqext``."""

from __future__ import annotations

from pqext.cli.app import app, main

__all__ = ["app", "main"]
