"""Well-known binary in Arrow arrays: access to values, and conversion from and to points, shapely and kernels.

A geometry array is a binary array of any Arrow layout, with or without an extension type. pqext creates little-endian
ISO WKB in ``binary`` arrays. Spec: "Geospatial Definitions" (Geospatial.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.schema.arrow_check import check_array
from pqext.core.schema.types.arrow_compute import to_variable_width
from pqext.geo.kernels.boxes import Summary
from pqext.geo.kernels.wkb import WkbColumn
from pqext.geo.kernels.wkb import to_iso as iso_buffers

GeometryArray: TypeAlias = "pa.Array | pa.ChunkedArray"

_CODES = {False: 1, True: 1001}
_WIDE_FROM = 1 << 31  # bytes


def storage_type(type: pa.DataType) -> pa.DataType:
    """Return ``type`` without enclosing extension and dictionary types."""
    while isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    return storage_type(type.value_type) if pa.types.is_dictionary(type) else type


def holds_bytes(type: pa.DataType) -> bool:
    """Return whether an array of ``type`` can contain WKB values."""
    type = storage_type(type)
    tests = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
        pa.types.is_null,
    )
    return any(test(type) for test in tests)


def require_bytes(array: Any) -> None:
    """Raise TypeError unless ``array`` is an Arrow array that can contain WKB."""
    expected = "expected an Arrow array of WKB values"
    if type(array).__name__ == "GeoDataFrame":
        raise TypeError(f"{expected}, not GeoDataFrame; use geo.from_geopandas(frame)['geometry']")
    if isinstance(array, (pa.Table, pa.RecordBatch)):
        raise TypeError(f"{expected}, not {type(array).__name__}; pass a column, such as table['geometry']")
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise TypeError(f"{expected}, not {type(array).__name__}; geo.from_shapely converts shapely geometries")
    if not holds_bytes(array.type):
        texts = ("string", "large_string", "string_view")
        hint = "; geo.from_wkt converts WKT" if str(storage_type(array.type)) in texts else ""
        nested = pa.types.is_nested(storage_type(array.type))
        hint = "; geo.from_geoarrow converts GeoArrow layouts" if nested else hint
        raise TypeError(f"{expected}, not {array.type}{hint}")


def binary_chunks(array: GeometryArray) -> list[pa.Array]:
    """Return the chunks of a geometry array, each ``binary`` or ``large_binary``.

    Raises TypeError if the array is not binary, and ValueError if it is not a valid array.
    """
    require_bytes(array)
    check_array(array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [to_variable_width(chunk, pa.binary(), pa.large_binary()) for chunk in chunks]


def columns(array: GeometryArray) -> Iterator[WkbColumn]:
    """Return an iterator over the chunks as kernel columns. Their errors count rows from the start of the array."""
    return as_columns(binary_chunks(array))


def as_columns(chunks: Iterable[pa.Array]) -> Iterator[WkbColumn]:
    """Yield arrays of bytes or text as kernel columns. Their errors count rows from the start of the first array."""
    row = 0
    for chunk in chunks:
        validity, offsets, data = chunk.buffers()
        wide = pa.types.is_large_binary(chunk.type) or pa.types.is_large_string(chunk.type)
        yield WkbColumn(validity, offsets, data, chunk.offset, len(chunk), wide, row)
        row += len(chunk)


def match_chunking(array: GeometryArray, parts: list[pa.Array], type: pa.DataType) -> GeometryArray:
    """Return ``parts`` as a chunked array if ``array`` is chunked, otherwise the only part."""
    return pa.chunked_array(parts, type=type) if isinstance(array, pa.ChunkedArray) else parts[0]


def summaries(array: GeometryArray, strict: bool = False) -> list[Summary]:
    """Summarise the rows of each chunk. Raises GeometryError with the row and byte if WKB is invalid."""
    return [Summary(column, strict) for column in columns(array)]


def to_iso_wkb(array: GeometryArray) -> GeometryArray:
    """Convert geometries to ISO WKB, removing the flags and SRID of EWKB headers.

    Returns ``binary`` (``large_binary`` for 64-bit offsets). Raises GeometryError for the faults that
    :func:`pqext.geo.validate` reports, except for rings and dimensions.

    >>> import shapely
    >>> ewkb = shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True)
    >>> len(ewkb), len(to_iso_wkb(pa.array([ewkb]))[0].as_py())  # the SRID has four bytes
    (25, 21)
    """
    parts = []
    for chunk, column in zip(binary_chunks(array), columns(array), strict=True):
        if not Summary(column).extended:
            parts.append(chunk)
            continue
        data, offsets = (pa.py_buffer(memory) for memory in iso_buffers(column))
        validity = chunk.is_valid().buffers()[1] if chunk.null_count else None
        iso = pa.Array.from_buffers(pa.large_binary(), len(chunk), [validity, offsets, data])
        parts.append(iso.cast(chunk.type))
    return match_chunking(array, parts, parts[0].type if parts else pa.binary())


def from_points(x: Any, y: Any, z: Any = None) -> pa.BinaryArray:
    """Return a ``binary`` array of POINT values, or POINT Z with ``z``, one for each element of ``x`` and ``y``.

    The arguments are numpy or Arrow arrays or sequences of numbers of the same length. A null in ``x`` or ``y`` results
    in a null row. A null in ``z`` results in a point whose Z is NaN, which means no value. Raises ValueError if lengths
    differ, values are not numbers, or the points need 2 GiB or more in total, and TypeError if an argument is not a
    sequence.

    >>> from pqext.geo import to_wkt
    >>> to_wkt(from_points([178.44, None], [-18.14, 64.5])).to_pylist()
    ['POINT (178.44 -18.14)', None]
    """
    arrays = [_numbers(values) for values in ((x, y) if z is None else (x, y, z))]
    length = len(arrays[0])
    if any(len(values) != length for values in arrays):
        raise ValueError(f"coordinates must have the same length, not {[len(item) for item in arrays]}")
    names = "xyz"[: len(arrays)]
    points = np.empty(length, dtype=[("order", "u1"), ("code", "<u4"), *((name, "<f8") for name in names)])
    if points.nbytes > np.iinfo(np.int32).max:
        raise ValueError(f"{length} points exceed the size of a binary array; pass fewer points in each call")
    points["order"] = 1
    points["code"] = _CODES[z is not None]
    for name, values in zip(names, arrays, strict=True):
        points[name] = values.fill_null(np.nan).to_numpy(zero_copy_only=False)
    valid = None
    if arrays[0].null_count or arrays[1].null_count:
        valid = pc.and_(arrays[0].is_valid(), arrays[1].is_valid()).buffers()[1]
    offsets = np.arange(length + 1, dtype=np.int32) * np.int32(points.itemsize)
    return pa.Array.from_buffers(pa.binary(), length, [valid, pa.py_buffer(offsets), pa.py_buffer(points)])


def _numbers(values: Any) -> pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        check_array(values)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    try:
        array = values if isinstance(values, pa.Array) else pa.array(values)
        return array if pa.types.is_float64(array.type) else array.cast(pa.float64())
    except OverflowError:
        raise ValueError("a coordinate is out of the range of a double") from None
    except (TypeError, pa.ArrowNotImplementedError) as error:
        raise TypeError(f"coordinates must be sequences of numbers: {error}") from None
    except pa.ArrowInvalid as error:
        raise ValueError(f"coordinates must be sequences of numbers: {error}") from None


def from_shapely(geometries: Sequence[Any] | NDArray[np.object_]) -> pa.BinaryArray:
    """Convert shapely geometries to ISO WKB in a ``binary`` array; None becomes null.

    Z and M are preserved, SRIDs are not.

    ``geometries`` is a list, a numpy array or a GeoSeries. Raises TypeError for other types, and for
    values that are neither geometries nor None.

    >>> import shapely
    >>> from_shapely([shapely.Point(1, 2), None]).is_valid().to_pylist()
    [True, False]
    """
    import shapely

    expected = "expected a list, numpy array or GeoSeries of shapely geometries"
    if isinstance(geometries, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        kind = type(geometries).__name__
        raise TypeError(f"{expected}, not an Arrow {kind}; geo.to_shapely converts WKB")
    try:
        objects = np.asarray(geometries, dtype=object)
    except ValueError:  # arrays of different shapes
        objects = np.empty((), dtype=object)
    if objects.ndim != 1:
        kind = type(geometries).__name__
        raise TypeError(f"{expected}, not {kind}; put a single geometry into a list")
    try:
        values = shapely.to_wkb(objects, flavor="iso", byte_order=1)
    except TypeError:
        raise TypeError(f"{expected} or None; geo.from_wkt converts WKT") from None
    return pa.array(values, type=pa.binary())


def to_shapely(array: GeometryArray) -> NDArray[np.object_]:
    """Convert geometries to shapely objects; null becomes None.

    The objects match the bytes exactly. A hole without points, which is well-formed, is preserved, although some GEOS
    predicates crash on it; pqext's own predicates ignore these holes. Raises GeometryError with the row and byte if WKB
    is invalid, and with the row if shapely rejects the geometry.

    >>> points = from_points([1, None], [2, 3])
    >>> to_shapely(points).tolist()
    [<POINT (1 2)>, None]
    """
    summaries(array)
    chunks = binary_chunks(array)
    values = np.concatenate([np.empty(0, dtype=object), *(chunk.to_numpy(zero_copy_only=False) for chunk in chunks)])
    return build(values, np.arange(len(values)))


def build(values: NDArray[np.object_], rows: NDArray[np.integer[Any]]) -> NDArray[np.object_]:
    """Create shapely geometries from validated WKB bytes; None remains None.

    Errors contain the row number from ``rows``.
    """
    import shapely

    with np.errstate(invalid="ignore"):  # NaN coordinates
        geometries: NDArray[np.object_] = shapely.from_wkb(values, on_invalid="ignore")
    for index in np.flatnonzero(shapely.is_missing(geometries)).tolist():
        if values[index] is None:
            continue
        try:
            shapely.from_wkb(values[index])
        except shapely.errors.ShapelyError as error:
            raise GeometryError(f"shapely rejects the geometry: {error}", row=int(rows[index])) from error
    return geometries


def geos_shapes(chunk: pa.Array, rows: NDArray[np.integer[Any]]) -> NDArray[np.object_]:
    """Create shapely geometries from WKB like :func:`build`, without the empty parts that crash GEOS."""
    shapes = build(chunk.to_numpy(zero_copy_only=False), rows)
    return without_empty_parts(shapes) if any(part.hollow for part in summaries(chunk)) else shapes


def without_empty_parts(geometries: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return geometries without the empty holes and empty members that crash GEOS. The covered points are unchanged."""
    import shapely

    kinds = shapely.get_type_id(geometries)
    suspect = (shapely.get_num_interior_rings(geometries) > 0) | (kinds > 4)
    suspect |= (kinds == 4) & (shapely.get_num_coordinates(geometries) < shapely.get_num_geometries(geometries))
    suspects = np.flatnonzero(suspect)
    parts, owners = shapely.get_parts(geometries[suspects], return_index=True)
    hollow = [owners[shapely.is_empty(parts)]]
    while (deeper := shapely.get_type_id(parts) > 3).any():
        inner, of = shapely.get_parts(parts[deeper], return_index=True)
        hollow.append(owners[deeper][of[shapely.is_empty(inner)]])
        parts, owners = np.concatenate([parts[~deeper], inner]), np.concatenate([owners[~deeper], owners[deeper][of]])
    holed = shapely.get_num_interior_rings(parts) > 0
    rings, of = shapely.get_rings(parts[holed], return_index=True)
    hollow.append(owners[holed][of[shapely.is_empty(rings)]])
    bad = np.unique(suspects[np.concatenate(hollow)])
    if not len(bad):
        return geometries
    result = geometries.copy()
    for number in bad.tolist():
        result[number] = _without_empty_parts(geometries[number])
    return result


def copy_geometry(shape: Any) -> Any:
    """Copy a shapely geometry without its preparation; other values, such as boxes, are returned unchanged.

    Copying does not evaluate the geometry, so threads may copy one geometry concurrently.
    """
    import shapely

    return shapely.set_srid(shape, shapely.get_srid(shape)) if isinstance(shape, shapely.Geometry) else shape


def _without_empty_parts(shape: Any) -> Any:
    import shapely

    if shape.geom_type == "Polygon":
        return shapely.Polygon(shape.exterior, [hole for hole in shape.interiors if not hole.is_empty])
    if shape.geom_type in ("Point", "LineString", "LinearRing"):
        return shape
    return type(shape)([_without_empty_parts(part) for part in shape.geoms if not part.is_empty])


def bit_mask(chunk: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of ``chunk``, beginning with its first row."""
    return chunk.is_valid().buffers()[1] if chunk.null_count else None


def assemble(
    array: GeometryArray,
    chunks: Iterable[tuple[int, pa.Buffer | None, Any, Any]],
    types: tuple[pa.DataType, pa.DataType],
) -> GeometryArray:
    """Assemble ``chunks``, each (rows, validity, data, 64-bit offsets), into an array that is chunked like ``array``.

    The result has the first of ``types``, or the second if any chunk reaches 2 GiB.
    """
    narrow, wide = types
    parts = [
        pa.Array.from_buffers(wide, rows, [validity, pa.py_buffer(offsets), pa.py_buffer(data)])
        for rows, validity, data, offsets in chunks
    ]
    type = wide if any(part.buffers()[2].size >= _WIDE_FROM for part in parts) else narrow
    return match_chunking(array, [part.cast(type) for part in parts], type)
