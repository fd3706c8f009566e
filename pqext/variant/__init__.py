"""VARIANT: conversion from and to JSON and Python, access by path, shredding and validation."""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

_OF_OTHERS = {"from_json": "use parse_json", "variant_get": "use get, with strict=True"}

__getattr__, __dir__, __all__ = attach(__name__, __file__, _OF_OTHERS)
