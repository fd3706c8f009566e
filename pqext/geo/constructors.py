"""Geometry arrays from points, text, shapely and GeoArrow, marked as geometries with their CRS.

The results are extension arrays ``geoarrow.wkb``, so that tables built of them keep the type without further options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo import geoarrow, wkb
from pqext.geo.text import geojson, wkt
from pqext.geo.types import GeospatialType, mark_array, marked_type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pqext.geo.wkb import GeometryArray


def from_points(x: Any, y: Any, z: Any = None, *, crs: Any = None) -> pa.ExtensionArray:
    """Return POINT values, or POINT Z with ``z``, one for each element of ``x`` and ``y``.

    Args:
        x: Numbers in a numpy or Arrow array or a sequence. A null in ``x`` or ``y`` makes a null row.
        y: As many numbers.
        z: As many numbers, or None; a null makes a point whose Z is NaN, which has no value in that dimension.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; None is OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb`` of ISO WKB.

    Raises:
        ValueError: If lengths differ, values are not numbers, or the points take 2 GiB or more together.
        TypeError: If an argument is not a sequence.

    >>> from pqext.geo import to_wkt
    >>> to_wkt(from_points([178.44, None], [-18.14, 64.5])).to_pylist()
    ['POINT (178.44 -18.14)', None]
    """
    return _mark_crs(wkb.from_points(x, y, z), crs)


def from_shapely(geometries: Sequence[Any] | NDArray[np.object_], *, crs: Any = None) -> pa.ExtensionArray:
    """Return shapely geometries as ISO WKB; None becomes null. Z and M are preserved, SRIDs are not.

    Args:
        geometries: A list, a numpy array or a GeoSeries.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; by default the CRS of a GeoSeries, or OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb``.

    Raises:
        TypeError: If ``geometries`` holds anything else.
        ValueError: If a GeoSeries has another CRS than ``crs``.

    >>> import shapely
    >>> from_shapely([shapely.Point(1, 2), None]).is_valid().to_pylist()
    [True, False]
    """
    made = wkb.from_shapely(geometries)
    if hasattr(geometries, "total_bounds") and hasattr(geometries, "crs"):
        mine = geometries.crs
        if crs is None:
            crs = crs_.UNKNOWN if mine is None else mine
        elif mine is not None and not crs_.equal(crs_.require(mine), crs_.require(crs)):
            labels = [crs_label(crs_.require(item)) for item in (mine, crs)]
            raise ValueError(
                f"the GeoSeries has CRS {labels[0]}, but crs= states {labels[1]}, which would relabel its coordinates; "
                f"transform them with to_crs({labels[1]!r}), or correct the CRS with set_crs"
            )
    return _mark_crs(made, crs)


def from_wkt(array: pa.Array | pa.ChunkedArray | Sequence[str | None], *, crs: Any = None) -> GeometryArray:
    """Return geometries of well-known text in an Arrow array or a list as ISO WKB; null gives null.

    Tags are not case-sensitive. ``Z``, ``M`` and ``ZM`` are optional: three ordinates are then x, y, z,
    four x, y, z, m. ``NaN`` and ``Infinity`` are numbers.

    Args:
        array: Texts.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; None is OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb``, chunked if ``array`` is; over ``large_binary`` for 2 GiB and more.

    Raises:
        GeometryError: With row and byte, if a text is not WKT.
        TypeError: If the array does not hold text.

    >>> import pyarrow as pa
    >>> from_wkt(pa.array(["POINT (1 2)", None])).is_valid().to_pylist()
    [True, False]
    """
    return _mark_crs(wkt.from_wkt(array), crs)


def from_geojson(array: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> GeometryArray:
    """Return GeoJSON geometries or features, as text in an Arrow array or a list, as ISO WKB in OGC:CRS84.

    Null, the text ``null`` and a feature whose geometry is null give null. A geometry is XYZ if any of its positions
    has three numbers, with NaN for positions of two; further numbers are ignored, and so are members that GeoJSON does
    not define. Features of a collection are for :func:`read_geojson`.

    Args:
        array: Texts.

    Returns:
        An extension array ``geoarrow.wkb``, chunked if ``array`` is; over ``large_binary`` for 2 GiB and more.

    Raises:
        GeometryError: With row and byte, if a text is not GeoJSON.

    >>> from pqext.geo import to_wkt
    >>> to_wkt(from_geojson(['{"type": "Point", "coordinates": [1, 2]}'])).to_pylist()
    ['POINT (1 2)']
    """
    return _mark_crs(geojson.from_geojson(array), None)


def from_geoarrow(array: GeometryArray, encoding: str | None = None, *, crs: Any = None) -> GeometryArray:
    """Return geometries in a layout of GeoArrow as ISO WKB; null gives null.

    Args:
        array: An Arrow array.
        encoding: The name of the layout, or ``geoarrow.wkb``; by default the layout of the extension type.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; by default the CRS of the extension type, or
            OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb``, chunked if ``array`` is, with the edges of the array's extension type.

    Raises:
        GeometryError: If the array does not have the layout, and with row and byte for bad WKT and WKB.
        ValueError: If the layout is unknown.
        TypeError: If ``array`` is not an Arrow array.

    >>> import pyarrow as pa
    >>> from pqext.geo import to_wkt
    >>> lines = pa.array([[{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}], None])
    >>> to_wkt(from_geoarrow(lines, "geoarrow.linestring")).to_pylist()
    ['LINESTRING (1 2, 3 4)', None]
    """
    made = geoarrow.from_geoarrow(array, encoding)
    type = GeospatialType()
    if isinstance(array.type, pa.BaseExtensionType):
        type = marked_type(pa.field("", array.type))
    return mark_array(made, type if crs is None else GeospatialType(crs_.require(crs), type.edges))


def _mark_crs(array: GeometryArray, crs: Any) -> Any:
    return mark_array(array, GeospatialType(crs_.require(crs)))
