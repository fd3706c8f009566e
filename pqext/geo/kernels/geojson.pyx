# cython: language_level=3
"""Convert GeoJSON geometries and features to ISO WKB.

Members can have any order: one scan of an object locates the relevant members, whose values are then read. Only
collections within collections recurse, at most MAX_DEPTH deep.
"""
from libc.math cimport NAN
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset, strlen

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, take
from pqext.core.kernels.number_read cimport read_double
from pqext.geo.kernels.json_scan cimport (
    SCAN_COLON, SCAN_COMMA, SCAN_DEPTH, SCAN_END, SCAN_LEVELS, SCAN_MEMORY, SCAN_STRING, SCAN_VALUE, blank,
    fault_here, scan_key, scan_string, scan_value, scan_word, take_byte,
)
from pqext.geo.kernels.wkb cimport (
    COLLECTION, LINE_STRING, MAX_DEPTH, MULTI_POINT, NULL_ROW, POINT, POLYGON, Column, WkbColumn, column_row, stride_of,
)
from pqext.geo.kernels.wkb_write cimport (
    append_count, append_empty_point, append_header, begin_offsets, closed_ring, store_count,
)

from pqext.core.base.errors import GeometryError

FAULTS = {
    SCAN_END: ("the JSON ends too early", "geo.geojson.object"),
    SCAN_VALUE: ("not a JSON value", "geo.geojson.object"),
    SCAN_STRING: ("not a JSON string", "geo.geojson.object"),
    SCAN_COLON: ("expected a colon", "geo.geojson.object"),
    SCAN_COMMA: ("expected a comma or a closing bracket", "geo.geojson.object"),
    SCAN_DEPTH: (f"JSON is nested deeper than {SCAN_LEVELS}", "geo.geojson.object"),
    NO_OBJECT: ("not a GeoJSON object", "geo.geojson.object"),
    NO_TYPE: ("the object has no type", "geo.geojson.object"),
    UNKNOWN_TYPE: ("not a GeoJSON type that is allowed here", "geo.geojson.object"),
    MISSING: ("the object lacks the member that its type needs", "geo.geojson.object"),
    TWICE: ("the object has the same member twice", "geo.geojson.object"),
    POSITION: ("a position is an array of two or more numbers", "geo.geojson.position"),
    ARRAY: ("the coordinates are nested otherwise than the type has them", "geo.geojson.position"),
    OPEN_RING: ("a ring has fewer than four points or does not end where it begins", "geo.wkb.rings"),
    TOO_DEEP: (f"collections are nested more than {MAX_DEPTH} levels deep", "geo.wkb.depth"),
    TOO_MANY: ("more elements than WKB can count", "geo.geojson.object"),
    NO_FEATURE: ("not a feature", "geo.geojson.features"),
    TRAILING_TEXT: ("text follows the end of the object", "geo.geojson.object"),
}


cdef object geojson_error(int status, object row, object offset):
    if status == SCAN_MEMORY:
        return MemoryError()
    message, rule = FAULTS[status]
    return GeometryError(message, rule=rule, row=row, offset=offset)


cdef const char *NAMES[10]
NAMES[:] = [b"", b"Point", b"LineString", b"Polygon", b"MultiPoint", b"MultiLineString", b"MultiPolygon",
            b"GeometryCollection", b"Feature", b"FeatureCollection"]


cdef inline bint is_text(const uint8_t *text, size_t n, const char *name) noexcept nogil:
    return n == strlen(name) and memcmp(text, name, n) == 0


cdef int read_type(Reader *r, int *type) noexcept nogil:
    cdef const uint8_t *text = NULL
    cdef const uint8_t *start
    cdef size_t n = 0
    cdef int status, i
    blank(&r.s)
    start = r.s.p
    status = scan_string(&r.s, &text, &n)
    if status != 0:
        return status
    for i in range(1, 10):
        if is_text(text, n, NAMES[i]):
            type[0] = i
            return 0
    r.s.p = start
    return UNKNOWN_TYPE


cdef const uint8_t **member(Members *m, const uint8_t *text, size_t n) noexcept nogil:
    if is_text(text, n, b"coordinates"):
        return &m.coordinates
    if is_text(text, n, b"geometry"):
        return &m.geometry
    if is_text(text, n, b"geometries"):
        return &m.geometries
    if is_text(text, n, b"properties"):
        return &m.properties
    if is_text(text, n, b"features"):
        return &m.features
    if is_text(text, n, b"crs"):
        return &m.crs
    return &m.id if is_text(text, n, b"id") else NULL


cdef int read_members(Reader *r, Members *m) noexcept nogil:
    """Locate the members of the object at r.s.p, and skip it. Return 0 or a fault."""
    cdef const uint8_t *text = NULL
    cdef const uint8_t *start
    cdef const uint8_t **known
    cdef size_t n = 0
    cdef int status
    memset(m, 0, sizeof(Members))
    blank(&r.s)
    start = r.s.p
    if not take_byte(&r.s, c'{'):
        return fault_here(&r.s, NO_OBJECT)
    if not take_byte(&r.s, c'}'):
        while True:
            status = scan_key(&r.s, &text, &n)
            if status != 0:
                return status
            if is_text(text, n, b"type"):
                if m.type:
                    return TWICE
                status = read_type(r, &m.type)
            else:
                known = member(m, text, n)
                if known != NULL:
                    if known[0] != NULL:
                        return TWICE
                    blank(&r.s)
                    known[0] = r.s.p
                status = scan_value(&r.s)
            if status != 0:
                return status
            if take_byte(&r.s, c'}'):
                break
            if not take_byte(&r.s, c','):
                return fault_here(&r.s, SCAN_COMMA)
    m.end = r.s.p
    if m.type == 0:
        r.s.p = start
        return NO_TYPE
    return 0


# --- Coordinates ---------------------------------------------------------------------------------

cdef int read_position(Reader *r) noexcept nogil:
    """Read a position: an array of numbers, of which numbers after the third are ignored. Return 0 or a fault."""
    cdef double values[3]
    cdef double more
    cdef const uint8_t *stop
    cdef const uint8_t *start
    cdef int n = 0, count = 2 + r.dims
    blank(&r.s)
    start = r.s.p
    if not take_byte(&r.s, c'['):
        return fault_here(&r.s, POSITION)
    values[2] = NAN
    while True:
        blank(&r.s)
        stop = read_double(r.s.p, r.s.end, True, &values[n] if n < 3 else &more)
        if stop == NULL:
            return fault_here(&r.s, POSITION)
        r.s.p = stop
        n += n < 3
        if take_byte(&r.s, c']'):
            break
        if not take_byte(&r.s, c','):
            return fault_here(&r.s, SCAN_COMMA)
    if n < 2:
        r.s.p = start
        return POSITION
    if n == 3:
        r.has_z = True
        if count == 2:
            return RETRY
    return SCAN_MEMORY if bytes_append(r.out, values, 8 * count) != 0 else 0


cdef int read_line(Reader *r, bint ring) noexcept nogil:
    """Read an array of positions as a count and coordinates. Return 0 or a fault."""
    cdef size_t at = r.out.size
    cdef const uint8_t *start = r.s.p
    cdef uint64_t count = 0
    cdef int status
    if append_count(r.out) != 0:
        return SCAN_MEMORY
    if not take_byte(&r.s, c'['):
        return fault_here(&r.s, ARRAY)
    if take_byte(&r.s, c']'):
        return 0
    while True:
        status = read_position(r)
        if status != 0:
            return status
        count += 1
        if take_byte(&r.s, c']'):
            break
        if not take_byte(&r.s, c','):
            return fault_here(&r.s, SCAN_COMMA)
    if ring and not closed_ring(r.out, at + 4, count, stride_of(r.dims)):
        r.s.p = start
        return OPEN_RING
    return TOO_MANY if store_count(r.out, at, count) != 0 else 0


cdef int read_parts(Reader *r, int base) noexcept nogil:
    """Read an array of the parts of a polygon or a multi geometry. Return 0 or a fault."""
    cdef size_t at = r.out.size
    cdef uint64_t count = 0
    cdef int status
    if append_count(r.out) != 0:
        return SCAN_MEMORY
    if not take_byte(&r.s, c'['):
        return fault_here(&r.s, ARRAY)
    if take_byte(&r.s, c']'):
        return 0
    while True:
        if base == POLYGON:
            status = read_line(r, True)
        elif append_header(r.out, base - 3, r.dims) != 0:
            status = SCAN_MEMORY
        elif base == MULTI_POINT:
            status = read_position(r)
        else:
            status = read_line(r, False) if base - 3 == LINE_STRING else read_parts(r, POLYGON)
        if status != 0:
            return status
        count += 1
        if take_byte(&r.s, c']'):
            return TOO_MANY if store_count(r.out, at, count) != 0 else 0
        if not take_byte(&r.s, c','):
            return fault_here(&r.s, SCAN_COMMA)


cdef int read_coordinates(Reader *r, int base) noexcept nogil:
    cdef const uint8_t *start = r.s.p
    if base == POINT:
        if take_byte(&r.s, c'[') and take_byte(&r.s, c']'):
            return SCAN_MEMORY if append_empty_point(r.out, r.dims) != 0 else 0
        r.s.p = start
        return read_position(r)
    return read_line(r, False) if base == LINE_STRING else read_parts(r, base)


cdef int read_geometry(Reader *r, const Members *m, int depth) noexcept nogil:
    """Read the geometry whose members were located, and move r.s.p after it. Return 0 or a fault."""
    cdef Members inner
    cdef size_t at
    cdef uint64_t count = 0
    cdef int status
    if append_header(r.out, m.type, r.dims) != 0:
        return SCAN_MEMORY
    if m.type != COLLECTION:
        if m.coordinates == NULL:
            r.s.p = m.end - 1
            return MISSING
        r.s.p = m.coordinates
        status = read_coordinates(r, m.type)
        if status == 0:
            r.s.p = m.end
        return status
    if m.geometries == NULL:
        r.s.p = m.end - 1
        return MISSING
    r.s.p = m.geometries
    at = r.out.size
    if append_count(r.out) != 0:
        return SCAN_MEMORY
    if not take_byte(&r.s, c'['):
        return fault_here(&r.s, ARRAY)
    if not take_byte(&r.s, c']'):
        if depth == MAX_DEPTH:
            return TOO_DEEP
        while True:
            blank(&r.s)
            status = read_members(r, &inner)
            if status == 0 and inner.type > COLLECTION:
                status = UNKNOWN_TYPE
            if status == 0:
                status = read_geometry(r, &inner, depth + 1)
            if status != 0:
                return status
            count += 1
            if take_byte(&r.s, c']'):
                break
            if not take_byte(&r.s, c','):
                return fault_here(&r.s, SCAN_COMMA)
        if store_count(r.out, at, count) != 0:
            return TOO_MANY
    r.s.p = m.end
    return 0


cdef int read_geometry_or_null(Reader *r, bint feature, bint *valid) noexcept nogil:
    """Read the geometry, or the geometry of a feature, at r.s.p; null is missing. It has Z if any position has Z."""
    cdef Members m
    cdef size_t at = r.out.size
    cdef const uint8_t *start
    cdef const uint8_t *after = NULL
    cdef int status, attempt
    valid[0] = False
    blank(&r.s)
    if scan_word(&r.s, b"null", 4):
        return 0
    start = r.s.p
    status = read_members(r, &m)
    if status != 0:
        return status
    if m.type == FEATURE and feature:
        after = m.end
        if m.geometry == NULL:
            r.s.p = m.end - 1
            return MISSING
        r.s.p = start = m.geometry
        if scan_word(&r.s, b"null", 4):
            r.s.p = after
            return 0
        status = read_members(r, &m)
        if status != 0:
            return status
    if m.type > COLLECTION:
        r.s.p = start
        return UNKNOWN_TYPE
    for attempt in range(2):
        r.has_z = False
        status = read_geometry(r, &m, 0)
        if status == RETRY or (status == 0 and r.dims and not r.has_z):
            r.dims = 1 - r.dims
            r.out.size = at
            continue
        break
    if status == 0:
        valid[0] = True
        if after != NULL:
            r.s.p = after
    return status


def to_wkb(WkbColumn column not None):
    """Convert a column of geometries or features to (data, offsets, validity): 64-bit offsets, and a validity byte per
    row.
    """
    cdef Column *c = &column.c
    cdef Reader r
    cdef Bytes data, offsets, validity
    cdef const uint8_t *text = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, stop
    cdef int status = 0
    cdef bint valid = False
    cdef uint8_t flag
    memset(&r, 0, sizeof(Reader))
    memset(&data, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    memset(&validity, 0, sizeof(Bytes))
    r.out = &data
    with nogil:
        if begin_offsets(&offsets, c.length) != 0:
            status = SCAN_MEMORY
        while status == 0 and row < c.length:
            valid = False
            status = column_row(c, row, &text, &size)
            if status == 0:
                r.s.p = text
                r.s.end = text + size
                status = read_geometry_or_null(&r, True, &valid)
                if status == 0:
                    blank(&r.s)
                    status = TRAILING_TEXT if r.s.p < r.s.end else 0
            elif status == NULL_ROW:
                status = 0
            else:
                r.s.p = text = NULL
                status = NO_OBJECT
            if status == 0:
                stop = <int64_t> data.size
                flag = valid
                if bytes_append(&offsets, &stop, 8) != 0 or bytes_append(&validity, &flag, 1) != 0:
                    status = SCAN_MEMORY
                row += 1
    if status == 0:
        return take(&data), take(&offsets), take(&validity)
    bytes_free(&data)
    bytes_free(&offsets)
    bytes_free(&validity)
    raise geojson_error(status, column.row + row, r.s.p - text)
