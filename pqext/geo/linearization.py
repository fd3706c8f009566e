"""Convert circular arcs in WKB to chains of straight lines. Format: SQL/MM Part 3, types 8 to 12 of ISO WKB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from struct import error as StructError
from struct import unpack_from

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo.types import array_type, mark_array
from pqext.geo.wkb import GeometryArray, binary_chunks, match_chunking

MAX_ANGLE = 4.0
"""Default maximum angle of a chord in degrees, as in GDAL."""
_MIN_ANGLE = 0.1
_MAX_DEPTH = 32
_ROUNDING = 16 * 2.0**-53
"""Upper bound of the relative error of the area between vertices with rounded coordinates."""
_MAX_BYTES = (1 << 31) - 1
"""Maximum size of a value in a binary array."""
_CIRCULAR, _COMPOUND, _CURVE_POLYGON = 8, 9, 10
_LINEAR = {_CIRCULAR: 2, _COMPOUND: 2, _CURVE_POLYGON: 3, 11: 5, 12: 6}
"""Types that may contain arcs, with the types of the results."""
_COLLECTIONS = frozenset({4, 5, 6, 7, 11, 12})
_MEMBERS = {4: (1,), 5: (2,), 6: (3,), 11: (2, _CIRCULAR, _COMPOUND), 12: (3, _CURVE_POLYGON)}

_Coordinates = NDArray[np.float64]


def linearize(array: GeometryArray, *, max_angle: float = MAX_ANGLE) -> GeometryArray:
    """Replace circular arcs with chords, so that curves become lines, polygons and their collections.

    Args:
        array: ISO or extended WKB of any type. Rows without curves are unchanged.
        max_angle: Maximum angle between the ends of a chord, seen from the centre, in degrees from 0.1 to 90. The
            vertices of an arc are preserved. Z and M are interpolated.

    Returns:
        WKB in an array of the same type. CIRCULARSTRING and COMPOUNDCURVE become LINESTRING, CURVEPOLYGON becomes
        POLYGON, MULTICURVE becomes MULTILINESTRING, and MULTISURFACE becomes MULTIPOLYGON.

    Raises:
        GeometryError: With the row, if the WKB of a curve is invalid.
        ValueError: If ``max_angle`` is out of range.

    Example:
        >>> import pyarrow as pa
        >>> from pqext import geo
        >>> half_circle = bytes.fromhex(
        ...     "010800000003000000" "000000000000f0bf0000000000000000"
        ...     "0000000000000000000000000000f03f" "000000000000f03f0000000000000000"
        ... )
        >>> line = geo.linearize(pa.array([half_circle]), max_angle=90)
        >>> geo.to_wkt(line).to_pylist()
        ['LINESTRING (-1 0, 0 1, 1 0)']
    """
    if isinstance(max_angle, bool) or not _MIN_ANGLE <= max_angle <= 90:
        raise ValueError(f"max_angle must be from {_MIN_ANGLE} to 90 degrees, not {max_angle!r}")
    parts, row = [], 0
    for chunk in binary_chunks(array):
        rows = _candidates(chunk)
        if len(rows):
            values = chunk.to_pylist()
            for number in rows.tolist():
                values[number] = _linearize_wkb(values[number], math.radians(max_angle), row + number)
            chunk = pa.array(values, chunk.type)
        parts.append(chunk)
        row += len(chunk)
    result = match_chunking(array, parts, parts[0].type if parts else pa.binary())
    type = array_type(array.type)
    return result if type is None else mark_array(result, type)


def _candidates(chunk: pa.Array) -> NDArray[np.int64]:
    """Return the rows whose type is a curve, or a collection that may contain curves."""
    width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
    _, offsets, data = chunk.buffers()
    if not len(chunk):
        return np.array([], np.int64)
    ends = np.frombuffer(offsets, width, chunk.offset + len(chunk) + 1)[chunk.offset :].astype(np.int64)
    rows = np.flatnonzero((np.diff(ends) >= 5) & chunk.is_valid().to_numpy(zero_copy_only=False))
    heads = np.frombuffer(data, np.uint8)[ends[rows][:, None] + np.arange(5)]
    is_little = heads[:, 0] == 1
    codes = np.where(is_little[:, None], heads[:, 4:0:-1], heads[:, 1:5]).astype(np.int64) @ [1 << 24, 1 << 16, 256, 1]
    types = (codes & 0x1FFFFFFF) % 1000
    result: NDArray[np.int64] = rows[((types >= _CIRCULAR) & (types <= 12)) | (types == 7)]
    return result


def _linearize_wkb(data: bytes, step: float, row: int) -> bytes:
    reader = _Reader(data, step)
    try:
        result, _ = reader.geometry()
    except (StructError, ValueError, IndexError) as error:
        reason = str(error) if type(error) is ValueError else "the geometry is truncated"
        raise GeometryError(f"WKB cannot be linearized: {reason}", rule="geo.wkb", row=row) from None
    if reader.at != len(data):
        raise GeometryError("WKB cannot be linearized: bytes follow the geometry", rule="geo.wkb", row=row)
    return result


class _Reader:
    """Reader of a WKB value that replaces arcs with chords and returns little-endian ISO WKB."""

    def __init__(self, data: bytes, step: float) -> None:
        self.data = data
        self.at = 0
        self.step = step

    def geometry(
        self, depth: int = 0, allowed_types: tuple[int, ...] | None = None
    ) -> tuple[bytes, _Coordinates | None]:
        """Return the next geometry as WKB, and its coordinates if it is a line, otherwise None."""
        order, type, dimensions = self._read_header()
        if depth > _MAX_DEPTH:
            raise ValueError(f"geometries are nested more than {_MAX_DEPTH} levels deep")
        if allowed_types is not None and type not in allowed_types:
            raise ValueError(f"type {type} is not allowed as a member")
        width = 2 + (dimensions in (1, 3)) + (dimensions in (2, 3))
        head = b"\x01" + (_LINEAR.get(type, type) + 1000 * dimensions).to_bytes(4, "little")
        if type == 1:
            return head + self._read_coordinates(order, width, 1).tobytes(), None
        count = self._read_count(order)
        if type in (2, _CIRCULAR):
            line = self._read_coordinates(order, width, count)
            line = _chords(line, self.step) if type == _CIRCULAR else line
            return head + _encode_line(line), line
        if type == _COMPOUND:
            line = _join_lines([*self._lines(count, depth, width, (2, _CIRCULAR))], width)
            return head + _encode_line(line), line
        if type == 3:
            rings = [self._read_coordinates(order, width, self._read_count(order)) for _ in range(count)]
        elif type == _CURVE_POLYGON:
            rings = [*self._lines(count, depth, width, (2, _CIRCULAR, _COMPOUND))]
        elif type in _COLLECTIONS:
            members = [self.geometry(depth + 1, _MEMBERS.get(type))[0] for _ in range(count)]
            return head + count.to_bytes(4, "little") + b"".join(members), None
        else:
            raise ValueError(f"type {type} is not supported")
        return head + count.to_bytes(4, "little") + b"".join(map(_encode_line, rings)), None

    def _read_header(self) -> tuple[str, int, int]:
        """Read a header; return the byte order, the type, and the dimensions: 0 to 3 for XY, XYZ, XYM and XYZM."""
        value = self.data[self.at]
        order = {0: ">", 1: "<"}.get(value)
        if order is None:
            raise ValueError(f"byte order {value} at byte {self.at} is neither 0 nor 1")
        (code,) = unpack_from(f"{order}I", self.data, self.at + 1)
        self.at += 5
        if code & 0x20000000:
            self.at += 4  # the SRID of extended WKB
        dimensions = (code & 0x1FFFFFFF) // 1000 or bool(code & 0x80000000) + 2 * bool(code & 0x40000000)
        if dimensions > 3:
            raise ValueError(f"{code} is not a type code")
        return order, (code & 0x1FFFFFFF) % 1000, dimensions

    def _read_count(self, order: str) -> int:
        (count,) = unpack_from(f"{order}I", self.data, self.at)
        self.at += 4
        if count > (len(self.data) - self.at) // 4:
            raise ValueError(f"{count} elements do not fit into the remaining bytes")
        return int(count)

    def _read_coordinates(self, order: str, width: int, count: int) -> _Coordinates:
        values = np.frombuffer(self.data, f"{order}f8", count * width, self.at) if count else np.empty(0)
        self.at += 8 * count * width
        return values.astype("<f8").reshape(count, width)

    def _lines(self, count: int, depth: int, width: int, allowed_types: tuple[int, ...]) -> Iterator[_Coordinates]:
        for _ in range(count):
            line = self.geometry(depth + 1, allowed_types)[1]
            assert line is not None
            if line.shape[1] != width:
                raise ValueError("the dimensions of a member and its parent differ")
            yield line


def _encode_line(coordinates: _Coordinates) -> bytes:
    return len(coordinates).to_bytes(4, "little") + coordinates.tobytes()


def _join_lines(lines: list[_Coordinates], width: int) -> _Coordinates:
    """Concatenate lines. Each line begins at the end of the preceding line."""
    members = [line[1:] if number else line for number, line in enumerate(lines) if len(line)]
    return np.concatenate(members) if members else np.empty((0, width))


def _chords(vertices: _Coordinates, step: float) -> _Coordinates:
    """Return the vertices of chords along the arcs through vertices 0, 1, 2, then 2, 3, 4 and so on."""
    if len(vertices) and len(vertices) % 2 == 0:
        raise ValueError(f"{len(vertices)} vertices do not form arcs; an odd number is required")
    centres, radii, turns = _circles(vertices)
    angles = np.abs(turns) / step - 1e-9
    pieces = np.maximum(1, np.ceil(angles)).astype(np.int64)
    if int(pieces.sum()) * vertices.shape[1] * 8 > _MAX_BYTES:
        raise ValueError("the chords exceed 2 GiB; pass a greater max_angle")
    halves = np.repeat(np.arange(len(pieces)), pieces)  # half an arc spans consecutive vertices
    numbers = np.arange(1, len(halves) + 1) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    shares = numbers / pieces[halves]
    with np.errstate(all="ignore"):
        result = vertices[halves] + shares[:, None] * np.diff(vertices, axis=0)[halves]
    from_centres = vertices[:-1, :2] - centres
    directions = np.arctan2(from_centres[:, 1], from_centres[:, 0])[halves] + shares * turns[halves]
    is_inner = numbers < pieces[halves]
    inner = halves[is_inner]
    for axis, function in enumerate((np.cos, np.sin)):
        result[is_inner, axis] = centres[inner, axis] + radii[inner] * function(directions[is_inner])
    result[~is_inner] = vertices[1:]
    return np.ascontiguousarray(np.concatenate([vertices[:1], result]))


def _circles(vertices: _Coordinates) -> tuple[_Coordinates, _Coordinates, _Coordinates]:
    """Return the centre, radius and signed angle of both halves of each arc; zeros for straight halves.

    The angle at the centre is twice the angle at the circumference over the same chord. Subtracting directions from the
    centre would be inaccurate if the centre is far away.
    """
    p, q, r = vertices[:-2:2, :2], vertices[1::2, :2], vertices[2::2, :2]
    with np.errstate(all="ignore"):
        a, b, c = q - p, r - p, r - q
        area = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        a_square, b_square = (a * a).sum(axis=1), (b * b).sum(axis=1)
        noise = _ROUNDING * np.abs([p, q, r]).max(axis=(0, 2)) * np.sqrt(np.maximum(a_square, b_square))
        normal = np.stack([b[:, 1], -b[:, 0]], axis=1) * a_square[:, None]
        normal -= np.stack([a[:, 1], -a[:, 0]], axis=1) * b_square[:, None]
        is_full = (p == r).all(axis=1)
        centres = np.where(is_full[:, None], (p + q) / 2, p + normal / (2 * area[:, None]))
        radii = np.hypot(*(p - centres).T)
        turns = 2 * np.stack([np.arctan2(area, (b * c).sum(axis=1)), np.arctan2(area, (a * b).sum(axis=1))], axis=1)
        turns[is_full] = math.pi
        is_curved = np.isfinite(radii) & (radii > 0) & (is_full | (np.abs(area) > noise))
    centres[~is_curved], radii[~is_curved], turns[~is_curved] = 0, 0, 0
    return np.repeat(centres, 2, axis=0), np.repeat(radii, 2), turns.ravel()
