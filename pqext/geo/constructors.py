"""Create geometry arrays from points, text, shapely and GeoArrow, with their CRS.

The results are ``geoarrow.wkb`` extension arrays, so tables that contain them keep the geometry type without further
options.
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
        y: Numbers, as many as in ``x``.
        z: Numbers, as many as in ``x``, or None. A null results in a point whose Z is NaN, which means no value.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; None is OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb`` of ISO WKB.

    Raises:
        ValueError: If lengths differ, values are not numbers, or the points need 2 GiB or more in total.
        TypeError: If an argument is not a sequence.
        GeometryError: If the CRS is unknown.

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
        TypeError: If ``geometries`` is of another type, or contains a value that is not a geometry or None.
        ValueError: If the CRS of a GeoSeries differs from ``crs``.
        GeometryError: If the CRS is unknown.

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
    """Parse well-known text from an Arrow array or a list into ISO WKB. Null remains null.

    Tags are not case-sensitive. ``Z``, ``M`` and ``ZM`` are optional: without them, three ordinates are x, y, z and
    four are x, y, z, m. ``NaN`` and ``Infinity`` are numbers.

    Args:
        array: WKT strings.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; None is OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb``, chunked if ``array`` is. The storage is ``large_binary`` for 2 GiB and
        more.

    Raises:
        GeometryError: With row and byte if a text is not WKT, and if the CRS is unknown.
        TypeError: If the array is not an array of strings.

    >>> import pyarrow as pa
    >>> from_wkt(pa.array(["POINT (1 2)", None])).is_valid().to_pylist()
    [True, False]
    """
    return _mark_crs(wkt.from_wkt(array), crs)


def from_geojson(array: pa.Array | pa.ChunkedArray | Sequence[str | None]) -> GeometryArray:
    """Parse GeoJSON geometries or features in an Arrow array or a list of strings into ISO WKB in OGC:CRS84.

    Null, the text ``null`` and a feature whose geometry is null become null. A geometry is XYZ if any of its positions
    has three numbers, with NaN as the Z of positions with two. Further numbers and members that GeoJSON does not define
    are ignored. Use :func:`read_geojson` for feature collections.

    Args:
        array: GeoJSON strings.

    Returns:
        An extension array ``geoarrow.wkb``, chunked if ``array`` is. The storage is ``large_binary`` for 2 GiB and
        more.

    Raises:
        GeometryError: With row and byte, if a text is not GeoJSON.

    >>> from pqext.geo import to_wkt
    >>> to_wkt(from_geojson(['{"type": "Point", "coordinates": [1, 2]}'])).to_pylist()
    ['POINT (1 2)']
    """
    return _mark_crs(geojson.from_geojson(array), None)


def from_geoarrow(array: GeometryArray, encoding: str | None = None, *, crs: Any = None) -> GeometryArray:
    """Convert geometries in a GeoArrow layout to ISO WKB. Null remains null.

    Args:
        array: An Arrow array.
        encoding: The name of the layout, or ``geoarrow.wkb``; by default the layout of the extension type.
        crs: The CRS as :func:`pqext.geo.geometry_field` accepts it; by default the CRS of the extension type, or
            OGC:CRS84.

    Returns:
        An extension array ``geoarrow.wkb``, chunked if ``array`` is, with the edges of the array's extension type.

    Raises:
        GeometryError: If the array does not have the layout or the CRS is unknown. With the row and byte if WKT or WKB
            is invalid.
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
