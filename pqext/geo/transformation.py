"""Transform coordinates between reference systems with PROJ. Spec: "Coordinate axis order" (Geospatial.md)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import excerpt
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo.kernels.ordinates import take_coordinates, with_coordinates
from pqext.geo.types import GeospatialType, array_type, mark_array
from pqext.geo.wkb import GeometryArray, as_columns, assemble, binary_chunks, bit_mask, to_iso_wkb

if TYPE_CHECKING:
    import pyproj


def transform(
    array: GeometryArray, source_crs: Any, target_crs: Any, *, properties: Mapping[str, str] | None = None
) -> GeometryArray:
    """Transform every coordinate from ``source_crs`` to ``target_crs`` and return ISO WKB.

    A CRS is accepted as by :func:`pqext.geo.geometry_field`; None is OGC:CRS84. ``properties`` is the key-value
    metadata for ``projjson:<property>``. Coordinates are x, y on both sides, regardless of the axis order of the
    systems. Z is transformed if both systems have heights and unchanged otherwise; M, NaN and infinite coordinates are
    unchanged. Edges are not subdivided, although a straight line is usually not straight in another system. Returns a
    ``binary`` array, or ``large_binary`` for 2 GiB and more, or an extension array in ``target_crs`` if the input is an
    extension array. Raises GeometryError with row and byte if WKB is invalid, with the row if PROJ has no result, and
    if a CRS is unknown.

    >>> from pqext.geo import from_points, to_wkt
    >>> to_wkt(transform(from_points([180], [0]), "EPSG:4326", "EPSG:3857"), precision=2).to_pylist()
    ['POINT (20037508.34 0)']
    """
    source, target = (crs_.resolve(crs_.normalize(item), properties) for item in (source_crs, target_crs))
    transformer = cached_transformer(source, target)
    chunks = binary_chunks(to_iso_wkb(array))
    made = []
    row = 0
    for chunk, column in zip(chunks, as_columns(chunks), strict=True):
        flat, offsets = take_coordinates(column)
        values = np.frombuffer(flat, np.float64).reshape(-1, 3).copy()
        _transform(values, np.frombuffer(offsets, np.int64), transformer, row)
        made.append((len(chunk), bit_mask(chunk), *with_coordinates(column, values)))
        row += len(chunk)
    moved = assemble(array, made, (pa.binary(), pa.large_binary()))
    marked = array_type(array.type)
    if marked is None:
        return moved
    return mark_array(moved, type_in_crs(marked, target_crs, properties))


def type_in_crs(type: GeospatialType, crs: Any, properties: Mapping[str, str] | None = None) -> GeospatialType:
    """Return the type of geometries after their transformation to ``crs``. Edges become planar in projected systems."""
    text = crs_.normalize(crs)
    return GeospatialType(text, type.edges if crs_.parse(text, properties).is_geographic else "planar")


@lru_cache(maxsize=64)
def cached_transformer(source: str, target: str) -> pyproj.Transformer:
    """Return the transformer between two CRSs, given as definitions or identifiers; threads may share it.

    Raises GeometryError if a CRS is unknown, or no transformation exists.
    """
    import pyproj

    try:
        return pyproj.Transformer.from_crs(crs_.parse(source), crs_.parse(target), always_xy=True)
    except pyproj.exceptions.ProjError as error:
        names = [repr(excerpt(crs_label(crs), limit=80)) for crs in (source, target)]
        raise GeometryError(
            f"PROJ has no transformation from CRS {names[0]} to CRS {names[1]}: {error}", rule="geo.transform"
        ) from None


def _transform(values: NDArray[np.float64], offsets: NDArray[np.int64], transformer: Any, first_row: int) -> None:
    """Transform x, y and z in place, row by row. ``offsets`` contains the number of coordinates before each row."""
    flat = np.isfinite(values[:, :2]).all(axis=1)
    high = flat & np.isfinite(values[:, 2])
    failures = []
    for chosen, width in ((high, 3), (flat & ~high, 2)):
        if not chosen.any():
            continue
        result = np.stack(transformer.transform(*values[chosen, :width].T), axis=1)
        invalid = np.flatnonzero(chosen)[~np.isfinite(result).all(axis=1)]
        if len(invalid):
            failures.append((int(invalid[0]), width))
        else:
            values[chosen, :width] = result
    if failures:
        first, width = min(failures)
        row = int(np.searchsorted(offsets, first, side="right")) - 1
        raise GeometryError(
            f"{tuple(values[first, :width].tolist())} cannot be transformed to the target CRS",
            rule="geo.transform",
            row=first_row + row,
        )
