"""Geometries in GeoArrow's own layouts, lists and structs of coordinates, and in text, made WKB.

A layout is named by the Arrow extension type of a field: ``geoarrow.point`` to ``geoarrow.multipolygon``, in which all
rows are of one kind, ``geoarrow.geometrycollection`` and ``geoarrow.geometry`` of several, and ``geoarrow.wkt``.
Coordinates are structs ``x, y[, z][, m]`` of doubles, or lists of as many doubles, and polygons are lists of rings.
Parquet has WKB alone, so writing converts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.schema.annotations import EXTENSION_NAME
from pqext.core.schema.arrow_check import check_array
from pqext.geo.text.wkt import from_wkt
from pqext.geo.types import EXTENSION_NAMES, GEOARROW
from pqext.geo.wkb import GeometryArray, like_input, storage_type, to_iso_wkb

_CODES = {
    "geoarrow.point": 1, "geoarrow.linestring": 2, "geoarrow.polygon": 3, "geoarrow.multipoint": 4,
    "geoarrow.multilinestring": 5, "geoarrow.multipolygon": 6, "geoarrow.geometrycollection": 7,
}  # fmt: skip
WKT, MIXED = "geoarrow.wkt", "geoarrow.geometry"
ENCODINGS = frozenset({*_CODES, WKT, MIXED})
"""The extension names of layouts other than WKB."""

# Bytes of the header of what each level of lists holds, from the outermost, a row, to a single coordinate.
_LEVELS = {1: (5,), 2: (9, 0), 3: (9, 4, 0), 4: (9, 5), 5: (9, 9, 0), 6: (9, 9, 4, 0)}
_DIMENSIONS = {"xy": 0, "xyz": 1, "xym": 2, "xyzm": 3}
_PIECE = 1 << 18
"""Coordinates that are converted at a time, at least a row."""

_Numbers = NDArray[np.int64]
_Bytes = NDArray[np.uint8]


def encoding_of(field: pa.Field) -> str | None:
    """The layout that a field's extension type or marks name, WKB among them; None where they name no geometry."""
    if isinstance(field.type, pa.BaseExtensionType):
        name = field.type.extension_name
    else:
        name = (field.metadata or {}).get(EXTENSION_NAME, b"").decode("utf-8", "replace")
    return name if name in ENCODINGS else GEOARROW if name in EXTENSION_NAMES else None


def from_geoarrow(array: GeometryArray, encoding: str | None = None) -> GeometryArray:
    """ISO WKB in a ``binary`` array from geometries in a layout of GeoArrow; null gives null.

    ``encoding`` is the name of the layout, by default that of the array's extension type; ``geoarrow.wkb`` is accepted
    too. Raises GeometryError for an array that does not have the layout, and with row and byte for bad WKT and WKB;
    ValueError for an unknown layout, TypeError for anything but an Arrow array.

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
        raise ValueError(f"{encoding!r} is not a layout of GeoArrow; there are {known}")
    if encoding == WKT:
        return from_wkt(array)
    check_array(array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return like_input(array, [_from_chunk(chunk, encoding) for chunk in chunks], pa.binary())


def check_layout(type: pa.DataType, encoding: str) -> None:
    """Raise GeometryError unless an array of ``type`` can have the layout."""
    held = storage_type(type)
    if encoding == WKT:
        if str(held) not in ("string", "large_string", "string_view", "null"):
            raise GeometryError(f"geoarrow.wkt is text, not {held}", rule="geo.geoarrow")
        return
    _from_chunk(pa.nulls(0, held), encoding)


def _from_chunk(array: pa.Array, encoding: str) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), pa.binary())
    if encoding == MIXED:
        return _mixed(array)
    present = array.drop_null() if array.null_count else array
    code = _CODES[encoding]
    data, sizes = _collections(present) if code == 7 else _of_one_kind(present, code)
    valid = array.is_valid() if array.null_count else None
    lengths = np.zeros(len(array), np.int64)
    lengths[slice(None) if valid is None else valid.to_numpy(zero_copy_only=False)] = sizes
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    bitmap = None if valid is None else valid.buffers()[1]
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(array), buffers).cast(pa.binary())


def _fault(expected: str, found: pa.DataType) -> GeometryError:
    return GeometryError(f"the field's layout is {expected}, but its type is {found}", rule="geo.geoarrow")


def _of_one_kind(array: pa.Array, code: int) -> tuple[_Bytes, _Numbers]:
    """The WKB of all rows, none of them null, and the bytes of each."""
    headers = _LEVELS[code]
    name = next(name for name, one in _CODES.items() if one == code)
    lists = []
    values = array
    for _ in headers[1:]:
        if not (pa.types.is_list(values.type) or pa.types.is_large_list(values.type)):
            raise _fault(name, array.type)
        _require_no_nulls(values, name)
        offsets = values.offsets.to_numpy().astype(np.int64)
        first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        lists.append(offsets - first if len(offsets) else np.zeros(1, np.int64))
        values = values.values.slice(first, last - first)
    coordinates, dimensions = _coordinates(values, name)
    # By rows, of each level below them, the first item.
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
    """The WKB of ``rows`` geometries: ``lists`` are the offsets, from 0, of the levels above the coordinates."""
    headers = _LEVELS[code]
    counts = [*(len(offsets) - 1 for offsets in lists), len(coordinates)]
    width = coordinates.shape[1] * 8
    # The byte at which the header of each item lies: behind all headers and coordinates of those before it.
    places = [np.zeros(count + 1, np.int64) for count in counts]
    for level in range(len(headers)):
        numbers = np.arange(counts[level] + 1)
        for lower in range(level, len(headers)):  # the items of its own level and below that come before it
            places[level] += headers[lower] * numbers
            if lower < len(lists):
                numbers = lists[lower][numbers]
        places[level] += width * numbers
        owners = np.arange(counts[level] + 1)
        for upper in range(level - 1, -1, -1):  # and the headers of what it lies in
            owners = np.searchsorted(lists[upper], owners, side="right") - 1
            places[level] += headers[upper] * (np.minimum(owners, counts[upper] - 1) + 1)
    found = np.empty(int(places[0][-1]), np.uint8)
    data = np.ones(len(found), np.bool_)
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
        at = places[level][:-1, np.newaxis] + np.arange(size)
        found[at] = head
        data[at] = False
    found[data] = coordinates.astype("<f8", copy=False).reshape(-1).view(np.uint8)
    return found, np.diff(places[0])


def _coordinates(values: pa.Array, name: str) -> tuple[NDArray[np.float64], int]:
    """Coordinates as lines of 2 to 4 doubles, and which dimensions there are: 1 for z and 2 for m."""
    _require_no_nulls(values, name)
    type = values.type
    if pa.types.is_struct(type):
        names = "".join(field.name for field in type)
        if names not in _DIMENSIONS or not all(pa.types.is_floating(field.type) for field in type):
            raise _fault(f"{name} over structs x, y[, z][, m] of doubles", type)
        lines = [_doubles(values.field(index)) for index in range(type.num_fields)]
        return np.column_stack(lines), _DIMENSIONS[names]
    if not pa.types.is_fixed_size_list(type) or not pa.types.is_floating(type.value_type):
        raise _fault(f"{name} over coordinates", type)
    count = type.list_size
    inner = type.value_field.name
    dimensions = _DIMENSIONS.get(inner, {2: 0, 3: 1, 4: 3}.get(count, -1))
    if dimensions < 0 or (inner in _DIMENSIONS and len(inner) != count):
        raise _fault(f"{name} over coordinates of 2 to 4 doubles", type)
    flat = _doubles(values.values.slice(values.offset * count, len(values) * count))
    return flat.reshape(-1, count), dimensions


def _require_no_nulls(values: pa.Array, name: str) -> None:
    if values.null_count:
        raise GeometryError(f"{name} has a null part or coordinate within a geometry", rule="geo.geoarrow")


def _doubles(values: pa.Array) -> NDArray[np.float64]:
    values = values.cast(pa.float64())
    found: NDArray[np.float64] = (pc.fill_null(values, np.nan) if values.null_count else values).to_numpy()
    return found


def _mixed(array: pa.Array) -> pa.Array:
    """A union of layouts as WKB, each row by that of its kind."""
    if not pa.types.is_union(array.type) or array.type.mode != "dense":
        raise _fault(MIXED, array.type)
    names = {code: name for name, code in _CODES.items()}
    parts, firsts, first = [], {}, 0
    for index, code in enumerate(array.type.type_codes):
        if code % 10 not in names:
            raise _fault(MIXED, array.type)
        parts.append(_from_chunk(array.field(index), names[code % 10]))
        firsts[code] = first
        first += len(parts[-1])
    codes, offsets = _codes(array), _entries(array, 2, np.int32).astype(np.int64)
    for code, start in firsts.items():
        offsets[codes == code] += start
    return pa.concat_arrays([pa.nulls(0, pa.binary()), *parts]).take(pa.array(offsets))


def _codes(union: pa.Array) -> NDArray[Any]:
    """Which of a union's kinds each row has."""
    return _entries(union, 1, np.int8)


def _entries(union: pa.Array, buffer: int, kind: type[np.integer[Any]]) -> NDArray[Any]:
    # What pyarrow itself gives of a slice begins where the whole array does.
    return np.frombuffer(union.buffers()[buffer] or b"", kind)[union.offset : union.offset + len(union)]


def _collections(array: pa.Array) -> tuple[_Bytes, _Numbers]:
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        raise _fault("geoarrow.geometrycollection", array.type)
    offsets = array.offsets.to_numpy().astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    offsets = offsets - first if len(offsets) else np.zeros(1, np.int64)
    parts = _mixed(array.values.slice(first, last - first))
    _, places, data = parts.buffers()
    ends = np.frombuffer(places, np.int32)[parts.offset :][: len(parts) + 1].astype(np.int64)
    inner = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    sizes = np.diff((ends - ends[0])[offsets]) + 9
    found = np.empty(int(sizes.sum()), np.uint8)
    filled = np.ones(len(found), np.bool_)
    kinds = array.type.value_type.type_codes
    dimensions = max((code // 10 for code in kinds), default=0) if len({code // 10 for code in kinds}) < 2 else -1
    dims = np.full(len(array), max(dimensions, 0))
    if dimensions < 0 and len(parts):  # those of a row's first part
        codes = _codes(array.values)[first:last] // 10
        some = np.diff(offsets) > 0
        dims[some] = codes[offsets[:-1][some]]
    head = np.empty((len(array), 9), np.uint8)
    head[:, 0] = 1
    head[:, 1:5] = (7 + 1000 * dims).astype("<u4").view(np.uint8).reshape(-1, 4)
    head[:, 5:] = np.diff(offsets).astype("<u4").view(np.uint8).reshape(-1, 4)
    at = (np.cumsum(sizes) - sizes)[:, np.newaxis] + np.arange(9)
    found[at] = head
    filled[at] = False
    found[filled] = inner
    return found, sizes


def as_wkb(array: GeometryArray, encoding: str | None) -> GeometryArray:
    """``array`` as WKB, which it is already unless ``encoding`` names another layout."""
    found: Any = from_geoarrow(array, encoding) if encoding in ENCODINGS else array
    return found
