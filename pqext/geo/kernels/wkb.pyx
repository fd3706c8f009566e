# cython: language_level=3
"""Check well-known binary in one pass: structure, box and type of a value, and conversion of EWKB to ISO WKB.

There is no recursion: collections are followed with a stack of MAX_DEPTH frames. Counts are compared with the number of
remaining bytes before loops, so the time is linear in the size of the input.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.math cimport isnan
from libc.string cimport memcmp, memset

from pqext.core.kernels.buffer cimport bytes_append, bytes_free, bytes_reserve, take

from pqext.core.base.errors import GeometryError


cdef struct Frame:
    uint32_t left  # remaining children
    int base  # required type of the children, 0 for any


cdef void axis(const uint8_t *p, size_t count, size_t stride, bint little, double *low, double *high) noexcept nogil:
    """Widen a range by one ordinate of `count` coordinates. Four independent chains hide the latency of min and max."""
    cdef double low0 = low[0], low1 = low0, low2 = low0, low3 = low0
    cdef double high0 = high[0], high1 = high0, high2 = high0, high3 = high0
    cdef size_t i = 0
    if little:
        while i + 4 <= count:
            widen(little_double(p), &low0, &high0)
            widen(little_double(p + stride), &low1, &high1)
            widen(little_double(p + 2 * stride), &low2, &high2)
            widen(little_double(p + 3 * stride), &low3, &high3)
            p += 4 * stride
            i += 4
    while i < count:
        widen(load_double(p, little), &low0, &high0)
        p += stride
        i += 1
    low0 = low1 if low1 < low0 else low0
    low2 = low3 if low3 < low2 else low2
    low[0] = low2 if low2 < low0 else low0
    high0 = high1 if high1 > high0 else high0
    high2 = high3 if high3 > high2 else high2
    high[0] = high2 if high2 > high0 else high0


cdef inline void coordinates(const uint8_t *p, size_t count, int dims, bint little, Box *box) noexcept nogil:
    cdef size_t stride = stride_of(dims)
    if little:
        widen_pairs(p, count, stride, box.low, box.high)
    else:
        axis(p, count, stride, little, &box.low[0], &box.high[0])
        axis(p + 8, count, stride, little, &box.low[1], &box.high[1])
    if dims & 1:
        axis(p + 16, count, stride, little, &box.low[2], &box.high[2])
    if dims & 2:
        axis(p + stride - 8, count, stride, little, &box.low[3], &box.high[3])


cdef inline void one_coordinate(const uint8_t *p, int dims, bint little, Box *box) noexcept nogil:
    widen(load_double(p, little), &box.low[0], &box.high[0])
    widen(load_double(p + 8, little), &box.low[1], &box.high[1])
    if dims & 1:
        widen(load_double(p + 16, little), &box.low[2], &box.high[2])
    if dims & 2:
        widen(load_double(p + 16 + 8 * (dims & 1), little), &box.low[3], &box.high[3])


cdef inline bint closed(const uint8_t *p, size_t count, size_t stride, bint little) noexcept nogil:
    """Return whether a ring of `count` coordinates is empty, or has at least four and ends at its first coordinate."""
    cdef const uint8_t *last
    if count == 0:
        return True
    if count < 4:
        return False
    last = p + (count - 1) * stride
    return memcmp(p, last, 16) == 0 or (
        load_double(p, little) == load_double(last, little)
        and load_double(p + 8, little) == load_double(last + 8, little)
    )


cdef int walk(
    const uint8_t *value, size_t size, bint strict, Box *box, Geometry *geometry, Bytes *iso
) noexcept nogil:
    """Check one value and widen `box` by it. Return 0, or a fault whose byte position is in `geometry.at`.

    `strict` also rejects unclosed rings, children whose dimensions differ from their parent's, and differing SRIDs.
    `iso`, unless NULL, receives the value with ISO headers.
    """
    cdef Frame stack[MAX_DEPTH]
    cdef Header head
    cdef int depth = 0, expected = 0, base, dims, status
    cdef size_t at = 0, copied = 0, stride
    cdef uint32_t code, count, points
    cdef bint little, shell, top = True
    cdef uint8_t plain[5]
    geometry.extended = 0
    geometry.hollow = 0
    geometry.srid = 0
    while True:
        geometry.at = at
        status = read_header(value + at, size - at, &head)
        if status != 0:
            return status
        base = head.base
        dims = head.dims
        little = head.little
        if head.extended:
            geometry.extended = 1
            if head.has_srid and head.srid:
                # A part may repeat the SRID of its geometry; if only a part has an SRID, it applies to the geometry.
                if (strict or iso != NULL) and geometry.srid and head.srid != geometry.srid:
                    return SRID
                geometry.srid = head.srid if geometry.srid == 0 else geometry.srid
        if expected and base != expected:
            return CHILD
        if top:
            geometry.base = base
            geometry.dims = dims
            top = False
        if iso != NULL and head.extended:
            plain[0] = value[at]
            code = <uint32_t> (1000 * dims + base)
            if not little:
                code = pqext_swap32(code)
            memcpy(plain + 1, &code, 4)
            if bytes_append(iso, value + copied, at - copied) != 0 or bytes_append(iso, plain, 5) != 0:
                return MEMORY
            copied = at + head.size
        at += head.size
        stride = stride_of(dims)
        # The body.
        if base == POINT:
            if size - at < stride:
                geometry.at = at
                return TRUNCATED
            if depth and isnan(load_double(value + at, little)) and isnan(load_double(value + at + 8, little)):
                geometry.hollow = 1
            elif strict and dims != geometry.dims:
                return DIMENSIONS
            one_coordinate(value + at, dims, little, box)
            at += stride
        else:
            geometry.at = at
            if size - at < 4:
                return TRUNCATED
            count = load32(value + at, little)
            at += 4
            if depth and count == 0:
                geometry.hollow = 1
            if strict and count and dims != geometry.dims:
                geometry.at = at - 4 - head.size
                return DIMENSIONS
            if base == LINE_STRING:
                if count > (size - at) // stride:
                    return COUNT
                coordinates(value + at, count, dims, little, box)
                at += count * stride
            elif base == POLYGON:
                if count > (size - at) // 4:
                    return COUNT
                shell = depth == 0
                while count:
                    geometry.at = at
                    if size - at < 4:
                        return TRUNCATED
                    points = load32(value + at, little)
                    at += 4
                    if points == 0 and not shell:
                        geometry.hollow = 1
                    shell = False
                    if points > (size - at) // stride:
                        return COUNT
                    if strict and not closed(value + at, points, stride, little):
                        return RING
                    coordinates(value + at, points, dims, little, box)
                    at += points * stride
                    count -= 1
            else:
                if count > (size - at) // SMALLEST:
                    return COUNT
                if count:
                    if depth == MAX_DEPTH:
                        return DEPTH
                    expected = base - 3 if base != COLLECTION else 0
                    stack[depth].left = count - 1
                    stack[depth].base = expected
                    depth += 1
                    continue
        # The next sibling, or the next sibling of the nearest ancestor.
        while depth and stack[depth - 1].left == 0:
            depth -= 1
        if depth == 0:
            break
        stack[depth - 1].left -= 1
        expected = stack[depth - 1].base
    if at != size:
        geometry.at = at
        return TRAILING
    if iso != NULL and bytes_append(iso, value + copied, size - copied) != 0:
        return MEMORY
    return 0


cdef object fault(int status, int64_t row, const Geometry *geometry):
    """Return the error for a status of `walk` or `column_row`."""
    if status == MEMORY:
        return MemoryError()
    if status == OFFSETS:
        return GeometryError("the offsets of the Arrow array are outside its data", row=row)
    message, rule = {
        TRUNCATED: ("the geometry is truncated", "geo.wkb.bounded"),
        BYTE_ORDER: ("the byte order is neither 0 nor 1", "geo.wkb.byte_order"),
        TYPE_CODE: ("the type code is unknown", "geo.wkb.type_code"),
        CURVE: (
            "curves, triangles and their surfaces (WKB types 8 to 17) are not supported; convert them to lines and "
            "polygons first", "geo.wkb.type_code",
        ),
        COUNT: ("an element count exceeds the remaining bytes", "geo.wkb.bounded"),
        CHILD: ("a part of a multi geometry has the wrong type", "geo.wkb.parts"),
        DEPTH: (f"collections are nested more than {MAX_DEPTH} levels deep", "geo.wkb.depth"),
        TRAILING: ("bytes follow the end of the geometry", "geo.wkb.bounded"),
        RING: ("a ring has fewer than four points or does not end where it begins", "geo.wkb.rings"),
        DIMENSIONS: ("the dimensions of a part differ from those of the geometry", "geo.wkb.dimensions"),
        SRID: ("two parts have different SRIDs", "geo.wkb.ewkb"),
    }[status]
    return GeometryError(message, rule=rule, row=row, offset=geometry.at)


cdef class WkbColumn:
    """Arrow binary array for kernels. `wide` is true for 64-bit offsets; `first` is the offset of the slice.

    `row` is the position of the first row in a larger array, for errors. Raises ValueError if a buffer is too short.
    """

    def __cinit__(self, validity, offsets, data, int64_t first, int64_t length, bint wide, int64_t row=0):
        cdef int64_t width = 8 if wide else 4
        cdef int i
        memset(&self.c, 0, sizeof(Column))
        for i in range(3):
            self.held[i] = 0
        if first < 0 or length < 0 or first > (<int64_t> 1 << 59) or length > (<int64_t> 1 << 59):
            raise ValueError("an array's offset or length is out of range")
        for i, buffer in enumerate((validity, offsets, data)):
            if buffer is not None:
                PyObject_GetBuffer(buffer, &self.views[i], PyBUF_SIMPLE)
                self.held[i] = 1
        if length and (not self.held[1] or self.views[1].len // width < first + length + 1):
            raise ValueError("the offsets buffer is too short for the array")
        if self.held[0] and self.views[0].len < (first + length + 7) // 8:
            raise ValueError("the validity buffer is too short for the array")
        self.c.validity = <const uint8_t *> self.views[0].buf if self.held[0] else NULL
        self.c.offsets = <const uint8_t *> self.views[1].buf if self.held[1] else NULL
        self.c.data = <const uint8_t *> self.views[2].buf if self.held[2] else NULL
        self.c.size = self.views[2].len if self.held[2] else 0
        self.c.first = first
        self.c.length = length
        self.c.wide = wide
        self.row = row

    def __dealloc__(self):
        for i in range(3):
            if self.held[i]:
                PyBuffer_Release(&self.views[i])

    def __len__(self):
        return self.c.length


def to_iso(WkbColumn column not None):
    """Return the column with ISO headers as (data, offsets): 64-bit offsets, null rows empty. Checks the structure."""
    cdef Column *c = &column.c
    cdef Box box
    cdef Geometry geometry
    cdef Bytes data, offsets
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, stop = 0
    cdef int status = 0
    memset(&data, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    geometry.at = 0
    with nogil:
        if bytes_reserve(&offsets, <size_t> (8 * (c.length + 1))) != 0 or bytes_append(&offsets, &stop, 8) != 0:
            status = MEMORY
        while status == 0 and row < c.length:
            status = column_row(c, row, &value, &size)
            if status == 0:
                box_clear(&box)
                status = walk(value, size, False, &box, &geometry, &data)
            elif status == NULL_ROW:
                status = 0
            if status == 0:
                stop = <int64_t> data.size
                status = MEMORY if bytes_append(&offsets, &stop, 8) != 0 else 0
                row += 1
    if status != 0:
        bytes_free(&data)
        bytes_free(&offsets)
        raise fault(status, column.row + row, &geometry)
    return take(&data), take(&offsets)
