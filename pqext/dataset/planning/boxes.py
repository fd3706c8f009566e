"""Boxes of conditions that look like a mistake: beyond the longitudes, or wrapping where nothing wraps."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pqext.core.base.text import visible
from pqext.dataset.expressions import Spatial
from pqext.dataset.expressions.spatial import geometry_text
from pqext.geo.types import type_of


def doubts(conditions: Iterable[Spatial], schema: pa.Schema) -> list[str]:
    """A line for each geometry beyond the longitudes of its geographic column, or with ``xmin > xmax`` elsewhere."""
    found = (_doubt(condition, schema) for condition in conditions)
    return list(dict.fromkeys(line for line in found if line))


def _doubt(condition: Spatial, schema: pa.Schema) -> str:
    field = _field(schema, condition.column.path)
    kind = None if field is None else type_of(field)
    if kind is None:
        return ""
    if isinstance(condition.geometry, bytes):
        import shapely

        xmin, ymin, xmax, ymax = shapely.from_wkb(condition.geometry).bounds
    else:
        xmin, ymin, xmax, ymax = condition.geometry
    shown = f"{condition.column} is asked about {geometry_text(condition.geometry)}"
    if xmin > xmax and not kind.geographic:
        return visible(f"{shown}, which is empty: xmin is beyond xmax, and only boxes of geographic columns wrap")
    if kind.geographic and xmin <= xmax and (xmin < -180 or xmax > 180) and xmax - xmin < 360:
        west, east = ((x + 180) % 360 - 180 for x in (xmin, xmax))
        box = f"({west:.10g}, {ymin:.10g}, {east:.10g}, {ymax:.10g})"
        return visible(f"{shown}, and longitudes end at -180 and 180: box {box} is that part of the earth")
    return ""


def _field(schema: pa.Schema, path: tuple[str, ...]) -> pa.Field | None:
    """The field at a path of names; None where there is none, or it lies in a list."""
    inner: pa.Schema | pa.DataType = schema
    found: pa.Field | None = None
    for name in path:
        if isinstance(inner, pa.DataType) and not pa.types.is_struct(inner):
            return None
        at = inner.get_field_index(name)
        if at < 0:
            return None
        found = inner.field(at)
        inner = found.type
    return found
