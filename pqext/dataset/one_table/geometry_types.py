"""Check that geometry columns keep their CRS and edges where files conform to a schema.

A cast changes bytes, not coordinates: WKB under another CRS, or with edges of another interpolation, would be other
geometries.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pqext.core.base.text import visible
from pqext.geo.crs import DEFAULT, equal
from pqext.geo.types import GeospatialType, type_of


def check_geometry_types(wanted: pa.Schema, stored: pa.Schema, path: str | None) -> None:
    """Raise ``ValueError`` if a geometry column of a file has another CRS or other edges in ``wanted``.

    Columns without a geometry type on either side, nested fields included, are not compared. ``path`` names the file.
    """
    _check(wanted, stored, path, ())


def _check(wanted: Iterable[pa.Field], stored: Iterable[pa.Field], path: str | None, parents: tuple[str, ...]) -> None:
    held = {field.name: field for field in stored}
    for field in wanted:
        own = held.get(field.name)
        if own is None or own.equals(field, check_metadata=True):
            continue
        names = (*parents, field.name)
        first, second = type_of(own), type_of(field)
        if first is not None and second is not None and not _is_same(first, second):
            raise ValueError(
                f"column {visible('.'.join(names))!r} has {_described(first)} in {path}, but {_described(second)} in "
                "schema=; read it as stored, then reproject it with pqext.geo.transform"
            )
        if pa.types.is_nested(own.type) and pa.types.is_nested(field.type):
            _check(_children(field.type), _children(own.type), path, names)


def _is_same(first: GeospatialType, second: GeospatialType) -> bool:
    return first.edges == second.edges and (first.crs == second.crs or equal(first.crs, second.crs))


def _described(type: GeospatialType) -> str:
    return f"CRS {visible(type.crs or DEFAULT)} and {type.edges} edges"


def _children(type: pa.DataType) -> list[pa.Field]:
    """Return the fields of a struct, a list or a map, those of lists and maps under names of their own."""
    if pa.types.is_map(type):
        return [type.key_field.with_name("key"), type.item_field.with_name("value")]
    if pa.types.is_struct(type):
        return list(type)
    return [type.value_field.with_name("element")] if hasattr(type, "value_field") else []
