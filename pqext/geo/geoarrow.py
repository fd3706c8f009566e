"""Convert GeoArrow layouts (lists and structs of coordinates, and WKT) to WKB.

The extension type of a field names its layout: ``geoarrow.point`` to ``geoarrow.multipolygon`` for rows of one type,
``geoarrow.geometrycollection`` and ``geoarrow.geometry`` for several types, ``geoarrow.box`` and ``geoarrow.wkt``.
Coordinates are structs ``x, y[, z][, m]`` of doubles, or lists of 2 to 4 doubles, and polygons are lists of rings.
Parquet supports WKB only, so the writer converts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import numbers
from pqext.core.base.errors import GeometryError
from pqext.core.schema.annotations import EXTENSION_NAME
from pqext.core.schema.arrow_check import check_array
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.geo.text.wkt import from_wkt
from pqext.geo.types import EXTENSION_NAMES, GEOARROW
from pqext.geo.wkb import GeometryArray, from_shapely, match_chunking, storage_type, to_iso_wkb

_CODES = {
    "geoarrow.point": 1, "geoarrow.linestring": 2, "geoarrow.polygon": 3, "geoarrow.multipoint": 4,
    "geoarrow.multilinestring": 5, "geoarrow.multipolygon": 6, "geoarrow.geometrycollection": 7,
}  # fmt: skip
WKT, MIXED, BOX = "geoarrow.wkt", "geoarrow.geometry", "geoarrow.box"
ENCODINGS = frozenset({*_CODES, WKT, MIXED, BOX})
"""Extension names of layouts other than WKB."""

# Header bytes of each level of lists, from the outermost (a row) to a single coordinate.
_LEVELS = {1: (5,), 2: (9, 0), 3: (9, 4, 0), 4: (9, 5), 5: (9, 9, 0), 6: (9, 9, 4, 0)}
_DIMENSIONS = {"xy": 0, "xyz": 1, "xym": 2, "xyzm": 3}
_PIECE = 1 << 18
"""Coordinates converted in one pass. A pass has at least one row."""

_Numbers = NDArray[np.int64]
_Bytes = NDArray[np.uint8]


def encoding_of(field: pa.Field) -> str | None:
    """Return the layout, including WKB, named by a field's extension type or metadata; None if it is not a geometry."""
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
    else:
        name = (field.metadata or {}).get(EXTENSION_NAME, b"").decode("utf-8", "replace")
    return name if name in ENCODINGS else GEOARROW if name in EXTENSION_NAMES else None


def from_geoarrow(array: GeometryArray, encoding: str | None = None) -> GeometryArray:
    """Convert geometries in a GeoArrow layout to ISO WKB in a ``binary`` array. Null remains null.

    ``encoding`` is the name of the layout, by default the extension name of the array; ``geoarrow.wkb`` is accepted.
    Raises GeometryError if the array does not have the layout, and with row and byte if WKT or WKB is invalid;
    ValueError if the layout is unknown, TypeError if ``array`` is not an Arrow array.

    >>> import pyarrow as pa
    >>> from pqext.geo import to_wkt
    >>> lines = pa.array([[{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}], None])
    >>> to_wkt(from_geoarrow(lines, "geoarrow.linestring")).to_pylist()
    ['LINESTRING (1 2, 3 4)', None]
    """
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise TypeError(f"expected an Arrow array of geometries, not {type(array).__name__}")
    if encoding is None and isinstance(array.type, pa.BaseExtensionType):
        encoding = array.type.extension_name
    if encoding in EXTENSION_NAMES:
        wkb: GeometryArray = to_iso_wkb(array).cast(pa.binary())
        return wkb
    if encoding not in ENCODINGS:
        known = ", ".join(sorted({GEOARROW, *ENCODINGS}))
        raise ValueError(f"{encoding!r} is not a GeoArrow layout; the layouts are {known}")
    if encoding == WKT:
        return from_wkt(array)
    check_array(array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return match_chunking(array, [_from_chunk(chunk, encoding) for chunk in chunks], pa.binary())


def check_layout(type: pa.DataType, encoding: str) -> None:
    """Raise GeometryError unless arrays of ``type`` can have the layout ``encoding``."""
    held = storage_type(type)
    if encoding == WKT:
        if str(held) not in ("string", "large_string", "string_view", "null"):
            raise GeometryError(f"geoarrow.wkt must be text, not {held}", rule="geo.geoarrow")
        return
    _from_chunk(pa.nulls(0, held), encoding)


def _from_chunk(array: pa.Array, encoding: str) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = decode_dictionary(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.binary())
    if encoding == MIXED:
        return _from_union(array)
    if encoding == BOX:
        return _from_boxes(array)
    try:
        present = array.drop_null() if array.null_count else array
    except pa.ArrowNotImplementedError:  # view types, which no layout uses
        raise _layout_error(encoding, array.type) from None
    code = _CODES[encoding]
    data, sizes = _encode_collections(present) if code == 7 else _encode_uniform(present, code)
    valid = array.is_valid() if array.null_count else None
    lengths = np.zeros(len(array), np.int64)
    lengths[slice(None) if valid is None else valid.to_numpy(zero_copy_only=False)] = sizes
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    bitmap = None if valid is None else valid.buffers()[1]
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(array), buffers).cast(pa.binary())


def _from_boxes(array: pa.Array) -> pa.Array:
    """Convert boxes to polygons. A box with ``xmin > xmax`` becomes two polygons, divided by the antimeridian."""
    import shapely

    names = ("xmin", "ymin", "xmax", "ymax")
    if not pa.types.is_struct(array.type) or {*names} != {field.name for field in array.type}:
        raise _layout_error(BOX, array.type)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    present = array.filter(pa.array(valid))
    for name in names:
        _require_no_nulls(present.field(name), name)
    xmin, ymin, xmax, ymax = (_doubles(present.field(name)) for name in names)
    boxes = shapely.box(xmin, ymin, xmax, ymax)
    for row in np.flatnonzero(xmin > xmax):
        parts = shapely.box([xmin[row], -180], ymin[row], [180, xmax[row]], ymax[row])
        boxes[row] = shapely.multipolygons(parts)
    shapes = np.full(len(array), None, dtype=object)
    shapes[valid] = boxes
    return from_shapely(shapes).cast(pa.binary())


def _layout_error(expected: str, actual_type: pa.DataType) -> GeometryError:
    return GeometryError(f"type {actual_type} does not have the GeoArrow layout {expected}", rule="geo.geoarrow")


def _encode_uniform(array: pa.Array, code: int) -> tuple[_Bytes, _Numbers]:
    """Return the WKB of all rows and the size of each row. ``array`` has no nulls."""
    headers = _LEVELS[code]
    name = next(name for name, value in _CODES.items() if value == code)
    lists = []
    values = array
    for _ in headers[1:]:
        if not (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)):
            raise _layout_error(name, array.type)
        _require_no_nulls(values, name)
        offsets = values.offsets.to_numpy().astype(np.int64)
        first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        lists.append(offsets - first if len(offsets) else np.zeros(1, np.int64))
        values = values.values.slice(first, last - first)
    coordinates, dimensions = _coordinates(values, name)
    # The first item of each row, at each level.
    starts = [np.arange(len(array) + 1)]
    for offsets in lists:
        starts.append(offsets[starts[-1]])
    whole, sizes = [np.empty(0, np.uint8)], [np.empty(0, np.int64)]
    row = 0
    while row < len(array):
        stop = max(row + 1, int(np.searchsorted(starts[-1], starts[-1][row] + _PIECE, side="right")) - 1)
        cut = [slice(int(start[row]), int(start[stop])) for start in starts]
        below = [offsets[part.start : part.stop + 1] for offsets, part in zip(lists, cut[:-1], strict=True)]
        below = [offsets - offsets[0] for offsets in below]
        data, size = _encode(coordinates[cut[-1]], below, stop - row, code, dimensions)
        whole.append(data)
        sizes.append(size)
        row = stop
    return np.concatenate(whole), np.concatenate(sizes)


def _encode(
    coordinates: NDArray[np.float64], lists: list[_Numbers], rows: int, code: int, dimensions: int
) -> tuple[_Bytes, _Numbers]:
    """Encode ``rows`` geometries as WKB; return the bytes and the size of each geometry.

    ``lists`` contains the list offsets of each level above the coordinates. The first offset of each level is 0.
    """
    headers = _LEVELS[code]
    counts = [*(len(offsets) - 1 for offsets in lists), len(coordinates)]
    width = coordinates.shape[1] * 8
    # Byte offset of the header of each item: after all headers and coordinates of preceding items.
    positions = [np.zeros(count + 1, np.int64) for count in counts]
    for level in range(len(headers)):
        numbers = np.arange(counts[level] + 1)
        for lower in range(level, len(headers)):  # preceding items at this level and below
            positions[level] += headers[lower] * numbers
            if lower < len(lists):
                numbers = lists[lower][numbers]
        positions[level] += width * numbers
        owners = np.arange(counts[level] + 1)
        for upper in range(level - 1, -1, -1):  # and the headers of enclosing items
            owners = np.searchsorted(lists[upper], owners, side="right") - 1
            positions[level] += headers[upper] * (np.minimum(owners, counts[upper] - 1) + 1)
    data_bytes = np.empty(int(positions[0][-1]), np.uint8)
    data = np.ones(len(data_bytes), np.bool_)
    for level, size in enumerate(headers):
        if not size:
            continue
        kind = code if level == 0 else code - 3 if size != 4 else None
        head = np.zeros((counts[level], size), np.uint8)
        if kind is not None:
            head[:, 0] = 1
            head[:, 1:5] = np.frombuffer(np.array(kind + 1000 * dimensions, "<u4").tobytes(), np.uint8)
        if size != 5:
            items = np.diff(lists[level]).astype("<u4")
            head[:, -4:] = items.view(np.uint8).reshape(-1, 4)
        at = positions[level][:-1, np.newaxis] + np.arange(size)
        data_bytes[at] = head
        data[at] = False
    data_bytes[data] = coordinates.astype("<f8", copy=False).reshape(-1).view(np.uint8)
    return data_bytes, np.diff(positions[0])


def _coordinates(values: pa.Array, name: str) -> tuple[NDArray[np.float64], int]:
    """Return coordinates as an array with 2 to 4 doubles per row, and the code of their dimensions in _DIMENSIONS."""
    _require_no_nulls(values, name)
    type = values.type
    if pa.types.is_struct(type):
        names = "".join(field.name for field in type)
        if names not in _DIMENSIONS or not all(pa.types.is_floating(field.type) for field in type):
            raise _layout_error(f"{name} over structs x, y[, z][, m] of doubles", type)
        lines = [_doubles(values.field(index)) for index in range(type.num_fields)]
        return np.column_stack(lines), _DIMENSIONS[names]
    if not pa.types.is_fixed_size_list(type) or not pa.types.is_floating(type.value_type):
        raise _layout_error(f"{name} over coordinates", type)
    count = type.list_size
    inner = type.value_field.name
    dimensions = _DIMENSIONS.get(inner, {2: 0, 3: 1, 4: 3}.get(count, -1))
    if dimensions < 0 or (inner in _DIMENSIONS and len(inner) != count):
        raise _layout_error(f"{name} over coordinates of 2 to 4 doubles", type)
    flat = _doubles(values.values.slice(values.offset * count, len(values) * count))
    return flat.reshape(-1, count), dimensions


def _require_no_nulls(values: pa.Array, name: str) -> None:
    if values.null_count:
        raise GeometryError(f"{name} contains a null part or coordinate within a geometry", rule="geo.geoarrow")


def _doubles(values: pa.Array) -> NDArray[np.float64]:
    values = values.cast(pa.float64())
    result: NDArray[np.float64] = (pc.fill_null(values, np.nan) if values.null_count else values).to_numpy()
    return result


def _from_union(array: pa.Array) -> pa.Array:
    """Convert a union of GeoArrow layouts to WKB."""
    if not pa.types.is_union(array.type) or array.type.mode != "dense":
        raise _layout_error(MIXED, array.type)
    names = {code: name for name, code in _CODES.items()}
    parts, firsts, first = [], {}, 0
    for index, code in enumerate(array.type.type_codes):
        if code % 10 not in names:
            raise _layout_error(MIXED, array.type)
        parts.append(_from_chunk(array.field(index), names[code % 10]))
        firsts[code] = first
        first += len(parts[-1])
    codes, offsets = _codes(array), _entries(array, 2, np.int32).astype(np.int64)
    for code, start in firsts.items():
        offsets[codes == code] += start
    return pa.concat_arrays([pa.nulls(0, pa.binary()), *parts]).take(pa.array(offsets))


def _codes(union: pa.Array) -> NDArray[Any]:
    """Return the type code of each row of a union."""
    return _entries(union, 1, np.int8)


def _entries(union: pa.Array, buffer: int, dtype: type[np.integer[Any]]) -> NDArray[Any]:
    # The buffers of a slice start with the unsliced array.
    return numbers(union.buffers()[buffer] or b"", dtype, union.offset, len(union))


def _encode_collections(array: pa.Array) -> tuple[_Bytes, _Numbers]:
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise _layout_error("geoarrow.geometrycollection", array.type)
    offsets = array.offsets.to_numpy().astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    offsets = offsets - first if len(offsets) else np.zeros(1, np.int64)
    parts = _from_union(array.values.slice(first, last - first))
    _, positions, data = parts.buffers()
    ends = numbers(positions, np.int32, parts.offset, len(parts) + 1).astype(np.int64)
    inner = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    sizes = np.diff((ends - ends[0])[offsets]) + 9
    data_bytes = np.empty(int(sizes.sum()), np.uint8)
    filled = np.ones(len(data_bytes), np.bool_)
    type_codes = array.type.value_type.type_codes
    distinct = {code // 10 for code in type_codes}
    dimensions = max(distinct, default=0) if len(distinct) < 2 else -1
    dims = np.full(len(array), max(dimensions, 0))
    if dimensions < 0 and len(parts):  # the dimensions of a row's first part
        codes = _codes(array.values)[first:last] // 10
        some = np.diff(offsets) > 0
        dims[some] = codes[offsets[:-1][some]]
    head = np.empty((len(array), 9), np.uint8)
    head[:, 0] = 1
    head[:, 1:5] = (7 + 1000 * dims).astype("<u4").view(np.uint8).reshape(-1, 4)
    head[:, 5:] = np.diff(offsets).astype("<u4").view(np.uint8).reshape(-1, 4)
    at = (np.cumsum(sizes) - sizes)[:, np.newaxis] + np.arange(9)
    data_bytes[at] = head
    filled[at] = False
    data_bytes[filled] = inner
    return data_bytes, sizes


def as_wkb(array: GeometryArray, encoding: str | None) -> GeometryArray:
    """Return ``array`` as WKB, converting it if ``encoding`` names a different layout."""
    result: Any = from_geoarrow(array, encoding) if encoding in ENCODINGS else array
    return result
