"""VARIANT: binary values from and to JSON and Python, access by path, shredding and validation."""

from __future__ import annotations

from pqext.core.base.lazy_imports import attach

_OF_OTHERS = {
    "try_variant_get": "it is get",
    "variant_explode": "it is explode",
    "variant_get": "it is get, with strict=True",
}

__getattr__, __dir__, __all__ = attach(__name__, __file__, _OF_OTHERS)
