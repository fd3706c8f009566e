# cython: language_level=3
"""Format geometries as well-known text or GeoJSON, in one checked walk over WKB.

The input bounds the output: at most about thirty characters for the eight bytes of a double, and a tag for the nine
bytes of the smallest part.
"""
from libc.math cimport isfinite, isnan
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset, strlen

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.core.kernels.number_write cimport write_plain
from pqext.geo.kernels.wkb cimport (
    CHILD, COLLECTION, COUNT, DEPTH, DIMENSIONS, LINE_STRING, MAX_DEPTH, MEMORY, NULL_ROW, POINT, POLYGON, SMALLEST,
    TRAILING, TRUNCATED, Column, Geometry, Header, WkbColumn, column_row, fault, load32, load_double, read_header,
    stride_of,
)

from pqext.core.base.errors import GeometryError

cdef enum:
    NOT_JSON = 32   # a fault in addition to the faults of WKB
    NUMBER_ROOM = 64


cdef const char *NAMES[8]
NAMES[:] = [b"", b"POINT", b"LINESTRING", b"POLYGON", b"MULTIPOINT", b"MULTILINESTRING", b"MULTIPOLYGON",
            b"GEOMETRYCOLLECTION"]
cdef const char *DIMENSION_TAGS[4]
DIMENSION_TAGS[:] = [b" ", b" Z ", b" M ", b" ZM "]
cdef const char *JSON_NAMES[8]
JSON_NAMES[:] = [b"", b"Point", b"LineString", b"Polygon", b"MultiPoint", b"MultiLineString", b"MultiPolygon",
                 b"GeometryCollection"]


cdef struct Style:
    bint json
    int decimals    # -1: as many as necessary


cdef struct Frame:
    uint32_t left   # remaining parts
    int base        # base type of the geometry with these parts
    int dims
    bint begun      # the text of a part has begun


cdef inline int put(Bytes *out, const char *text) noexcept nogil:
    return bytes_append(out, text, strlen(text))


cdef inline uint8_t *write_ordinate(uint8_t *p, double value, int decimals) noexcept nogil:
    if isfinite(value):
        return write_plain(p, value, decimals)
    if isnan(value):
        memcpy(p, b"NaN", 3)
        return p + 3
    memcpy(p, b"-Infinity", 9)
    if value < 0:
        return p + 9
    memcpy(p, b"Infinity", 8)
    return p + 8


cdef inline int write_coordinate(
    Bytes *out, const uint8_t *p, int dims, bint little, const Style *style
) noexcept nogil:
    """Write `x y z m` or `[x,y,z]`, omitting M and a Z that is NaN in JSON. Return 0, MEMORY or NOT_JSON."""
    cdef int count = <int> (stride_of(dims) // 8), i
    cdef uint8_t *to
    cdef double value
    if bytes_reserve(out, 5 * NUMBER_ROOM) != 0:
        return MEMORY
    to = out.data + out.size
    if style.json:
        count = 3 if dims & 1 else 2
        to[0] = c'['
        to += 1
    for i in range(count):
        value = load_double(p + 8 * i, little)
        if style.json and not isfinite(value):
            if i == 2 and isnan(value):
                break
            return NOT_JSON
        if i:
            to[0] = c',' if style.json else c' '
            to += 1
        to = write_ordinate(to, value, style.decimals)
    if style.json:
        to[0] = c']'
        to += 1
    out.size = to - out.data
    return 0


cdef int write_line(
    Bytes *out, const uint8_t *p, uint32_t count, int dims, bint little, const Style *style, size_t *at
) noexcept nogil:
    """Write coordinates in parentheses or brackets; on a fault, `at` is the position of the faulty coordinate."""
    cdef size_t stride = stride_of(dims), i
    cdef int status
    if count == 0:
        return MEMORY if put(out, b"[]" if style.json else b"EMPTY") != 0 else 0
    if put(out, b"[" if style.json else b"(") != 0:
        return MEMORY
    for i in range(count):
        if i and put(out, b"," if style.json else b", ") != 0:
            return MEMORY
        status = write_coordinate(out, p + i * stride, dims, little, style)
        if status != 0:
            at[0] += i * stride
            return status
    return MEMORY if put(out, b"]" if style.json else b")") != 0 else 0


cdef inline int write_tag(Bytes *out, int base, int dims, bint json) noexcept nogil:
    if not json:
        return put(out, NAMES[base]) | put(out, DIMENSION_TAGS[dims])
    return (
        put(out, b'{"type":"') | put(out, JSON_NAMES[base])
        | put(out, b'","geometries":' if base == COLLECTION else b'","coordinates":')
    )


cdef inline bint empty_point(const uint8_t *p, int dims, bint little) noexcept nogil:
    cdef size_t i
    for i in range(stride_of(dims) // 8):
        if not isnan(load_double(p + 8 * i, little)):
            return False
    return True


cdef int write_value(
    Bytes *out, const uint8_t *value, size_t size, const Style *style, size_t *fault_at
) noexcept nogil:
    """Append the text of one value. Return 0, or a fault whose byte position is in `fault_at`."""
    cdef Frame stack[MAX_DEPTH]
    cdef Header head
    cdef int depth = 0, status
    cdef size_t at = 0, stride
    cdef uint32_t count, points
    cdef bint tagged, empty, json = style.json
    while True:
        fault_at[0] = at
        status = read_header(value + at, size - at, &head)
        if status != 0:
            return status
        tagged = depth == 0 or stack[depth - 1].base == COLLECTION
        if not tagged and head.base != stack[depth - 1].base - 3:
            return CHILD
        at += head.size
        stride = stride_of(head.dims)
        count = 0
        empty = False
        if head.base == POINT:
            fault_at[0] = at
            if size - at < stride:
                return TRUNCATED
            empty = empty_point(value + at, head.dims, head.little)
        else:
            fault_at[0] = at
            if size - at < 4:
                return TRUNCATED
            count = load32(value + at, head.little)
            at += 4
        # Text has one dimension tag for a geometry and its parts.
        if not json and not tagged and head.dims != stack[depth - 1].dims and not empty and (
            count or head.base == POINT
        ):
            return DIMENSIONS
        if not (json and empty and not tagged):  # GeoJSON cannot represent an empty point within a MultiPoint
            if depth:
                if stack[depth - 1].begun and put(out, b"," if json else b", ") != 0:
                    return MEMORY
                stack[depth - 1].begun = True
            if tagged and write_tag(out, head.base, head.dims, json) != 0:
                return MEMORY
        if head.base == POINT:
            if empty:
                if not (json and not tagged) and put(out, b"[]" if json else b"EMPTY") != 0:
                    return MEMORY
            elif json:
                status = write_coordinate(out, value + at, head.dims, head.little, style)
            else:
                status = write_line(out, value + at, 1, head.dims, head.little, style, fault_at)
            if status != 0:
                return status
            at += stride
        elif head.base == LINE_STRING:
            if count > (size - at) // stride:
                return COUNT
            fault_at[0] = at
            status = write_line(out, value + at, count, head.dims, head.little, style, fault_at)
            if status != 0:
                return status
            at += count * stride
        elif count == 0:
            if put(out, b"[]" if json else b"EMPTY") != 0:
                return MEMORY
        elif put(out, b"[" if json else b"(") != 0:
            return MEMORY
        elif head.base == POLYGON:
            if count > (size - at) // 4:
                return COUNT
            while count:
                fault_at[0] = at
                if size - at < 4:
                    return TRUNCATED
                points = load32(value + at, head.little)
                at += 4
                if points > (size - at) // stride:
                    return COUNT
                fault_at[0] = at
                status = write_line(out, value + at, points, head.dims, head.little, style, fault_at)
                if status != 0:
                    return status
                at += points * stride
                count -= 1
                if put(out, (b"," if json else b", ") if count else (b"]" if json else b")")) != 0:
                    return MEMORY
        else:
            if count > (size - at) // SMALLEST:
                return COUNT
            if depth == MAX_DEPTH:
                return DEPTH
            stack[depth].left = count - 1
            stack[depth].base = head.base
            stack[depth].dims = head.dims
            stack[depth].begun = False
            depth += 1
            continue
        if json and tagged and put(out, b"}") != 0:
            return MEMORY
        # Close complete geometries, then continue with the next part of the innermost open geometry.
        while depth and stack[depth - 1].left == 0:
            depth -= 1
            if put(out, b"]" if json else b")") != 0:
                return MEMORY
            if json and (depth == 0 or stack[depth - 1].base == COLLECTION) and put(out, b"}") != 0:
                return MEMORY
        if depth == 0:
            break
        stack[depth - 1].left -= 1
    fault_at[0] = at
    return TRAILING if at != size else 0


def to_text(WkbColumn column not None, bint json, int decimals=-1):
    """Format all rows as (data, offsets): offsets have 64 bits, and null rows are empty."""
    cdef Column *c = &column.c
    cdef Geometry geometry
    cdef Style style
    cdef Bytes data, offsets
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, stop = 0
    cdef int status = 0
    if decimals < -1 or decimals > 18:
        raise ValueError("precision must be from 0 to 18 decimals")
    memset(&data, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    style.json = json
    style.decimals = decimals
    geometry.at = 0
    with nogil:
        if bytes_reserve(&offsets, <size_t> (8 * (c.length + 1))) != 0 or bytes_append(&offsets, &stop, 8) != 0:
            status = MEMORY
        while status == 0 and row < c.length:
            status = column_row(c, row, &value, &size)
            if status == 0:
                status = write_value(&data, value, size, &style, &geometry.at)
            elif status == NULL_ROW:
                status = 0
            if status == 0:
                stop = <int64_t> data.size
                status = MEMORY if bytes_append(&offsets, &stop, 8) != 0 else 0
                row += 1
    if status != 0:
        bytes_free(&data)
        bytes_free(&offsets)
        if status == NOT_JSON:
            raise GeometryError(
                "GeoJSON cannot represent NaN or infinite coordinates", rule="geo.geojson.numbers",
                row=column.row + row, offset=geometry.at,
            )
        raise fault(status, column.row + row, &geometry)
    return take(&data), take(&offsets)
