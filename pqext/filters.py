"""Filters as objects and as text: the types that :func:`pqext.col` builds, and their way to JSON and back.

``filter=`` and Spark's ``where=`` take the text of :func:`to_json` as they take the expression.
"""

from __future__ import annotations

from pqext.dataset.expressions import Column, Expression, VariantField
from pqext.dataset.serialise import from_json, to_json

__all__ = ["Column", "Expression", "VariantField", "from_json", "to_json"]
