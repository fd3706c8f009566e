# cython: language_level=3
"""Convert well-known text to ISO WKB, in one pass without recursion.

The dimensions of a geometry are named by its tag or a nested tag, or follow from its first coordinate; headers that
were written before this are then corrected.
"""
from libc.math cimport INFINITY, NAN
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset, strlen

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, take
from pqext.core.kernels.number_read cimport read_double
from pqext.geo.kernels.wkb cimport (
    COLLECTION, LINE_STRING, MAX_DEPTH, MULTI_POINT, NULL_ROW, POINT, POLYGON, Column, WkbColumn, column_row, stride_of,
)
from pqext.geo.kernels.wkb_write cimport (
    append_count, append_empty_point, append_header, begin_offsets, closed_ring, store_code, store_count,
)

from pqext.core.base.errors import GeometryError

cdef enum Fault:
    MEMORY = 1
    TAG
    OPENING
    SEPARATOR
    NUMBER
    ORDINATES
    DIMENSIONS
    RING
    DEPTH
    TRAILING
    COUNT
    OFFSETS

    UNKNOWN = -1    # dimensions
    WORD = 20       # letters of the longest word, and some


FAULTS = {
    TAG: ("a geometry begins with one of the seven types, such as POINT", "geo.wkt.tag"),
    OPENING: ("expected an opening parenthesis or EMPTY", "geo.wkt.tag"),
    SEPARATOR: ("expected a comma or a closing parenthesis", "geo.wkt.tag"),
    NUMBER: ("not a number that a double can hold", "geo.wkt.numbers"),
    ORDINATES: ("the dimensions of a coordinate differ from those of the geometry", "geo.wkt.dimensions"),
    DIMENSIONS: ("the dimensions of a part differ from those of the geometry", "geo.wkt.dimensions"),
    RING: ("a ring has fewer than four points or does not end where it begins", "geo.wkb.rings"),
    DEPTH: (f"collections are nested more than {MAX_DEPTH} levels deep", "geo.wkb.depth"),
    TRAILING: ("text follows the end of the geometry", "geo.wkt.tag"),
    COUNT: ("more elements than WKB can count", "geo.wkt.tag"),
    OFFSETS: ("the Arrow array's offsets leave its data", "geo.wkt.tag"),
}


cdef const char *NAMES[8]
NAMES[:] = [b"", b"POINT", b"LINESTRING", b"POLYGON", b"MULTIPOINT", b"MULTILINESTRING", b"MULTIPOLYGON",
            b"GEOMETRYCOLLECTION"]


cdef struct Open:
    size_t header   # position of the geometry in the output
    int base
    uint64_t parts


cdef struct Parser:
    const uint8_t *p
    const uint8_t *end
    Bytes *out
    int dims
    size_t header   # of the geometry or part that is being written
    int base        # of it
    int depth
    Open stack[MAX_DEPTH]


cdef inline void blank(Parser *ps) noexcept nogil:
    while ps.p < ps.end and (ps.p[0] == c' ' or 9 <= ps.p[0] <= 13):
        ps.p += 1


cdef inline bint take_byte(Parser *ps, uint8_t byte) noexcept nogil:
    blank(ps)
    if ps.p < ps.end and ps.p[0] == byte:
        ps.p += 1
        return True
    return False


cdef int peek_word(Parser *ps, uint8_t *word) noexcept nogil:
    """Read the following letters, at most WORD, as capitals, without moving. Return their number."""
    cdef int n = 0
    cdef uint8_t letter
    blank(ps)
    while n < WORD and ps.p + n < ps.end:
        letter = ps.p[n] & 0xDF
        if not c'A' <= letter <= c'Z' or ps.p[n] < c'A':
            break
        word[n] = letter
        n += 1
    return n


cdef inline bint is_word(const uint8_t *word, int n, const char *name) noexcept nogil:
    return n == <int> strlen(name) and memcmp(word, name, n) == 0


cdef int dimensions_of(const uint8_t *word, int n) noexcept nogil:
    if is_word(word, n, b"Z"):
        return 1
    if is_word(word, n, b"M"):
        return 2
    return 3 if is_word(word, n, b"ZM") else UNKNOWN


cdef int read_tag(Parser *ps, int *base, int *dims) noexcept nogil:
    """Read the geometry type and, if present, the dimensions. Return 0 or a fault."""
    cdef uint8_t word[WORD]
    cdef int n = peek_word(ps, word), name, length
    dims[0] = UNKNOWN
    for name in range(1, 8):
        length = <int> strlen(NAMES[name])
        if n >= length and memcmp(word, NAMES[name], length) == 0:
            if n > length:
                dims[0] = dimensions_of(word + length, n - length)
                if dims[0] == UNKNOWN:
                    continue
            base[0] = name
            ps.p += n
            if n == length:
                n = peek_word(ps, word)
                dims[0] = dimensions_of(word, n)
                if dims[0] != UNKNOWN:
                    ps.p += n
            return 0
    return TAG


cdef bint take_empty(Parser *ps) noexcept nogil:
    cdef uint8_t word[WORD]
    cdef int n = peek_word(ps, word)
    if not is_word(word, n, b"EMPTY"):
        return False
    ps.p += n
    return True


cdef void set_dims(Parser *ps, int dims) noexcept nogil:
    """Set the dimensions of the geometry, and correct the headers of open geometries."""
    cdef int i
    ps.dims = dims
    for i in range(ps.depth):
        store_code(ps.out.data + ps.stack[i].header, ps.stack[i].base, dims)
    store_code(ps.out.data + ps.header, ps.base, dims)


cdef inline int read_ordinate(Parser *ps, double *value) noexcept nogil:
    cdef uint8_t word[WORD]
    cdef const uint8_t *stop = read_double(ps.p, ps.end, False, value)
    cdef const uint8_t *start = ps.p
    cdef int n
    if stop == NULL:
        if ps.p < ps.end and (ps.p[0] == c'-' or ps.p[0] == c'+'):
            ps.p += 1
        n = peek_word(ps, word) if ps.p < ps.end else 0
        if is_word(word, n, b"NAN"):
            value[0] = NAN
        elif is_word(word, n, b"INF") or is_word(word, n, b"INFINITY"):
            value[0] = -INFINITY if start[0] == c'-' else INFINITY
        else:
            ps.p = start
            return NUMBER
        stop = ps.p + n
    # A delimiter must end the number; otherwise 1.2.3 would be two numbers.
    if stop < ps.end and stop[0] != c' ' and not 9 <= stop[0] <= 13 and stop[0] != c',' and stop[0] != c')':
        ps.p = start
        return NUMBER
    ps.p = stop
    return 0


cdef int read_coordinate(Parser *ps) noexcept nogil:
    cdef double values[4]
    cdef const uint8_t *start
    cdef int n = 0, status
    blank(ps)
    start = ps.p
    while n < 4:
        status = read_ordinate(ps, &values[n])
        if status != 0:
            return status
        n += 1
        blank(ps)
        if ps.p == ps.end or ps.p[0] == c',' or ps.p[0] == c')':
            break
    if ps.dims == UNKNOWN and n > 1:
        set_dims(ps, 0 if n == 2 else 1 if n == 3 else 3)
    if ps.dims == UNKNOWN or 8 * <size_t> n != stride_of(ps.dims):
        ps.p = start
        return ORDINATES
    return MEMORY if bytes_append(ps.out, values, 8 * n) != 0 else 0


cdef int read_line(Parser *ps, bint ring) noexcept nogil:
    """Read a count and coordinates in parentheses, or EMPTY. Return 0 or a fault."""
    cdef size_t at = ps.out.size
    cdef const uint8_t *start = ps.p
    cdef uint64_t count = 0
    cdef int status
    if append_count(ps.out) != 0:
        return MEMORY
    if take_empty(ps):
        return 0
    if not take_byte(ps, c'('):
        return OPENING
    while True:
        status = read_coordinate(ps)
        if status != 0:
            return status
        count += 1
        if take_byte(ps, c')'):
            break
        if not take_byte(ps, c','):
            return SEPARATOR
    if ring and not closed_ring(ps.out, at + 4, count, stride_of(ps.dims)):
        ps.p = start
        return RING
    return COUNT if store_count(ps.out, at, count) != 0 else 0


cdef int read_polygon(Parser *ps) noexcept nogil:
    """Read the rings of a polygon after the opening parenthesis. Return 0 or a fault."""
    cdef size_t at = ps.out.size
    cdef uint64_t count = 0
    cdef int status
    if append_count(ps.out) != 0:
        return MEMORY
    while True:
        status = read_line(ps, True)
        if status != 0:
            return status
        count += 1
        if take_byte(ps, c')'):
            return COUNT if store_count(ps.out, at, count) != 0 else 0
        if not take_byte(ps, c','):
            return SEPARATOR


cdef int read_empty(Parser *ps, int base, int dims) noexcept nogil:
    if base == POINT:
        return MEMORY if append_empty_point(ps.out, dims) != 0 else 0
    return MEMORY if append_count(ps.out) != 0 else 0


cdef int read_value(Parser *ps) noexcept nogil:
    """Read one geometry from ps.p to ps.end. Return 0, or a fault at ps.p."""
    cdef int base = 0, tagged, dims, status
    cdef bint empty, bare
    cdef Open *whole
    cdef const uint8_t *start
    ps.dims = UNKNOWN
    ps.depth = 0
    while True:
        blank(ps)
        start = ps.p
        tagged = UNKNOWN
        if ps.depth and ps.stack[ps.depth - 1].base != COLLECTION:
            base = ps.stack[ps.depth - 1].base - 3
        else:
            status = read_tag(ps, &base, &tagged)
            if status != 0:
                return status
        empty = take_empty(ps)
        ps.header = ps.out.size
        ps.base = base
        dims = tagged if tagged != UNKNOWN else ps.dims if ps.dims != UNKNOWN else 0
        if append_header(ps.out, base, dims) != 0:
            return MEMORY
        if empty:
            # The dimensions of empty parts may differ from their parent's, as in the output of GEOS.
            status = read_empty(ps, base, dims)
        else:
            if tagged != UNKNOWN:
                if ps.dims == UNKNOWN:
                    set_dims(ps, tagged)
                elif ps.dims != tagged:
                    ps.p = start
                    return DIMENSIONS
            if base == LINE_STRING:
                status = read_line(ps, False)
            else:
                bare = base == POINT and ps.depth and ps.stack[ps.depth - 1].base == MULTI_POINT
                if not take_byte(ps, c'('):
                    if not bare:
                        return OPENING
                else:
                    bare = False
                if base == POINT:
                    status = read_coordinate(ps)
                    if status == 0 and not bare and not take_byte(ps, c')'):
                        return SEPARATOR
                elif base == POLYGON:
                    status = read_polygon(ps)
                else:
                    if ps.depth == MAX_DEPTH:
                        ps.p = start
                        return DEPTH
                    whole = &ps.stack[ps.depth]
                    whole.header = ps.header
                    whole.base = base
                    whole.parts = 0
                    ps.depth += 1
                    if append_count(ps.out) != 0:
                        return MEMORY
                    continue
        if status != 0:
            return status
        # Close complete geometries; a comma begins another part.
        while ps.depth:
            whole = &ps.stack[ps.depth - 1]
            whole.parts += 1
            if not take_byte(ps, c')'):
                break
            if store_count(ps.out, whole.header + 5, whole.parts) != 0:
                return COUNT
            ps.depth -= 1
        if ps.depth == 0:
            blank(ps)
            return TRAILING if ps.p < ps.end else 0
        if not take_byte(ps, c','):
            return SEPARATOR


def to_wkb(WkbColumn column not None):
    """Convert a column of texts to (data, offsets) of ISO WKB: offsets have 64 bits, and null rows are empty."""
    cdef Column *c = &column.c
    cdef Parser ps
    cdef Bytes data, offsets
    cdef const uint8_t *text = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, stop
    cdef int status = 0
    memset(&data, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    ps.out = &data
    with nogil:
        if begin_offsets(&offsets, c.length) != 0:
            status = MEMORY
        while status == 0 and row < c.length:
            status = column_row(c, row, &text, &size)
            if status == 0:
                ps.p = text
                ps.end = text + size
                status = read_value(&ps)
            elif status == NULL_ROW:
                status = 0
            else:
                ps.p = text = NULL
                status = OFFSETS
            if status == 0:
                stop = <int64_t> data.size
                status = MEMORY if bytes_append(&offsets, &stop, 8) != 0 else 0
                row += 1
    if status == 0:
        return take(&data), take(&offsets)
    bytes_free(&data)
    bytes_free(&offsets)
    if status == MEMORY:
        raise MemoryError
    message, rule = FAULTS[status]
    raise GeometryError(message, rule=rule, row=column.row + row, offset=ps.p - text)
