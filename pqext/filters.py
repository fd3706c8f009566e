"""Filters as objects and as text: the types that :func:`pqext.col` builds, SQL text, and conversion to and from JSON.

``filter=`` and Spark's ``where=`` also accept SQL text and the JSON text of :func:`to_json` in place of an expression.
"""

from __future__ import annotations

from pqext.dataset.expressions import Column, Expression, Value, VariantField
from pqext.dataset.notations.json_text import from_json, to_json

__all__ = ["Column", "Expression", "Value", "VariantField", "from_json", "from_sql", "to_json"]


def from_sql(text: str) -> Expression:
    """Parse an SQL condition into an expression. (``filter=`` also accepts the SQL text.)

    Supported are comparisons, arithmetic, ``and``, ``or``, ``not``, ``in``, ``between``, ``like``, ``ilike``, ``is
    null``, casts (``x::double``, ``cast(x as double)``), literals with a type (``date '2024-01-01'``), paths of VARIANT
    columns (``event:$.a.b::double``), ``starts_with``, ``ends_with``, ``contains``, ``list_length``, ``isnan``, and for
    geometries ``st_intersects`` and similar functions with ``st_geomfromtext('...')``, ``st_point(x, y)`` or a box
    ``box(xmin, ymin, xmax, ymax)``. Names are case-sensitive; double quotes and backticks quote them.

    Raises ``ValueError`` for all other text, with the position of the error.

    >>> from pqext import filters
    >>> str(filters.from_sql("mag >= 5 and place like '%Fiji%'"))
    "(mag >= 5 and place like '%Fiji%')"
    """
    from pqext.dataset.notations.sql import from_sql

    return from_sql(text)
