# cython: language_level=3
"""Parse the features of GeoJSON text: geometries to ISO WKB, properties and ids to lines of JSON."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.geo.kernels.geojson cimport (
    ARRAY, FEATURE, FEATURE_COLLECTION, MISSING, NO_FEATURE, Members, Reader, geojson_error, read_geometry_or_null,
    read_members,
)
from pqext.geo.kernels.json_scan cimport SCAN_COMMA, SCAN_MEMORY, blank, fault_here, scan_value, scan_word, take_byte


cdef struct Features:
    Bytes wkb
    Bytes offsets
    Bytes validity
    Bytes properties
    Bytes ids
    Bytes crs
    size_t longest  # size of the longest line in bytes
    int64_t rows
    bint any_id


cdef void release(Features *f) noexcept nogil:
    bytes_free(&f.wkb)
    bytes_free(&f.offsets)
    bytes_free(&f.validity)
    bytes_free(&f.properties)
    bytes_free(&f.ids)
    bytes_free(&f.crs)


cdef int append_line(Features *f, Bytes *out, const char *before, size_t n, Reader *r) noexcept nogil:
    """Append the value at r.s.p as one line, and skip it. Line breaks in the JSON become blanks."""
    cdef const uint8_t *start = r.s.p
    cdef uint8_t *to
    cdef size_t size, i
    cdef int status = scan_value(&r.s)
    if status != 0:
        return status
    size = r.s.p - start
    if bytes_reserve(out, size + n + 2) != 0:
        return SCAN_MEMORY
    bytes_append(out, before, n)
    to = out.data + out.size
    for i in range(size):
        to[i] = c' ' if start[i] == c'\n' or start[i] == c'\r' else start[i]
    if n:
        to[size] = c'}'
        size += 1
    to[size] = c'\n'
    out.size += size + 1
    f.longest = size + n + 1 if size + n + 1 > f.longest else f.longest
    return 0


cdef int add_feature(Features *f, Reader *r) noexcept nogil:
    """Add the feature or bare geometry at r.s.p. Return 0 or a fault."""
    cdef Members m
    cdef int64_t stop
    cdef uint8_t flag
    cdef bint valid = False
    cdef int status
    blank(&r.s)
    cdef const uint8_t *start = r.s.p
    status = read_members(r, &m)
    if status == 0 and m.type == FEATURE_COLLECTION:
        r.s.p = start
        status = NO_FEATURE
    if status != 0:
        return status
    r.s.p = start
    status = read_geometry_or_null(r, True, &valid)
    if status != 0:
        return status
    if m.type == FEATURE and m.properties != NULL:
        r.s.p = m.properties
        if scan_word(&r.s, b"null", 4):
            status = SCAN_MEMORY if bytes_append(&f.properties, b"{}\n", 3) != 0 else 0
        elif m.properties[0] != c'{':
            return NO_FEATURE
        else:
            status = append_line(f, &f.properties, b"", 0, r)
    else:
        status = SCAN_MEMORY if bytes_append(&f.properties, b"{}\n", 3) != 0 else 0
    if status == 0 and m.type == FEATURE and m.id != NULL:
        if m.id[0] == c'{' or m.id[0] == c'[':
            r.s.p = m.id
            return NO_FEATURE
        f.any_id = True
        r.s.p = m.id
        status = append_line(f, &f.ids, b'{"id":', 6, r)
    elif status == 0:
        status = SCAN_MEMORY if bytes_append(&f.ids, b"{}\n", 3) != 0 else 0
    if status != 0:
        return status
    r.s.p = m.end
    f.rows += 1
    stop = <int64_t> f.wkb.size
    flag = valid
    if bytes_append(&f.offsets, &stop, 8) != 0 or bytes_append(&f.validity, &flag, 1) != 0:
        return SCAN_MEMORY
    return 0


cdef int add_collection(Features *f, Reader *r, const Members *m) noexcept nogil:
    cdef int status
    if m.features == NULL:
        r.s.p = m.end - 1
        return MISSING
    r.s.p = m.features
    if not take_byte(&r.s, c'['):
        return fault_here(&r.s, ARRAY)
    if not take_byte(&r.s, c']'):
        while True:
            status = add_feature(f, r)
            if status != 0:
                return status
            if take_byte(&r.s, c']'):
                break
            if not take_byte(&r.s, c','):
                return fault_here(&r.s, SCAN_COMMA)
    r.s.p = m.end
    return 0


cdef int add_all(Features *f, Reader *r) noexcept nogil:
    """Add all objects of the text; a record separator may precede each. Return 0 or a fault."""
    cdef Members m
    cdef const uint8_t *start
    cdef int status
    cdef int64_t none = 0
    if bytes_append(&f.offsets, &none, 8) != 0:
        return SCAN_MEMORY
    if r.s.end - r.s.p >= 3 and r.s.p[0] == 0xEF and r.s.p[1] == 0xBB and r.s.p[2] == 0xBF:
        r.s.p += 3
    while True:
        while take_byte(&r.s, 0x1E):
            pass
        if r.s.p >= r.s.end:
            return 0
        start = r.s.p
        status = read_members(r, &m)
        if status != 0:
            return status
        if m.type == FEATURE_COLLECTION:
            if m.crs != NULL:
                r.s.p = m.crs
                status = append_line(f, &f.crs, b"", 0, r)
            if status == 0:
                status = add_collection(f, r, &m)
        else:
            r.s.p = start
            status = add_feature(f, r)
        if status != 0:
            return status


def read_features(text not None):
    """Parse all features of GeoJSON text: (wkb, offsets, validity, properties, ids, crs, longest line).

    Offsets have 64 bits, and validity is a byte per row. Properties, ids and the `crs` of collections are lines of
    JSON, with ids as `{"id": ...}`; each is None if there are none. The longest line is a size in bytes.
    """
    cdef Py_buffer view
    cdef Features f
    cdef Reader r
    cdef int status
    cdef size_t size
    memset(&f, 0, sizeof(Features))
    memset(&r, 0, sizeof(Reader))
    PyObject_GetBuffer(text, &view, PyBUF_SIMPLE)
    try:
        r.out = &f.wkb
        r.s.p = <const uint8_t *> view.buf
        r.s.end = r.s.p + view.len
        with nogil:
            status = add_all(&f, &r)
        if status != 0:
            release(&f)
            raise geojson_error(status, f.rows, r.s.p - <const uint8_t *> view.buf)
    finally:
        PyBuffer_Release(&view)
    size = f.longest
    ids = take(&f.ids)
    return (
        take(&f.wkb), take(&f.offsets), take(&f.validity), take(&f.properties), ids if f.any_id else None,
        take(&f.crs), size,
    )
