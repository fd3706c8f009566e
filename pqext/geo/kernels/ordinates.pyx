# cython: language_level=3
"""Extract the coordinates of a WKB column as a flat array, and rebuild it with other or reordered coordinates."""
from libc.math cimport NAN, fabs, sin
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.geo.kernels.wkb cimport (
    CHILD, COLLECTION, COUNT, DEPTH, LINE_STRING, MAX_DEPTH, MEMORY, NULL_ROW, POINT, POLYGON, SMALLEST, TRAILING,
    TRUNCATED, Column, Geometry, Header, WkbColumn, column_row, fault, load32, load_double, pqext_swap64, read_header,
    stride_of,
)
from pqext.geo.kernels.wkb_write cimport begin_offsets


cdef struct Frame:
    uint32_t left
    int base


cdef struct Coordinates:
    Bytes *found            # output of x, y, z, with NaN for no z; NULL to replace coordinates
    const double *values    # replacement values
    size_t left             # coordinates in `values`
    uint8_t *to             # copy of the value
    int edges               # PLANAR or SPHERICAL to orient rings instead, otherwise 0
    bint is_reversed        # whether a ring was reversed


cdef enum:
    PLANAR = 1
    SPHERICAL = 2


cdef extern from *:
    """
    #define PQEXT_RADIANS 0.017453292519943295
    #define PQEXT_HEMISPHERE 6.283185307179586
    """
    const double RADIANS "PQEXT_RADIANS"
    const double HEMISPHERE "PQEXT_HEMISPHERE"


cdef double turning(const uint8_t *at, size_t count, size_t stride, bint little, int edges) noexcept nogil:
    """Return a positive number if a closed ring is counterclockwise, negative if it is clockwise, 0 if it has no area.

    On a sphere a ring encloses the smaller of its two sides. The area between an edge and the equator is approximated
    by the difference of its longitudes times the mean sine of its latitudes (Chamberlain and Duquette, 2007).
    """
    cdef double x0 = load_double(at, little), y0 = load_double(at + 8, little), x, y, step
    cdef double last_x = x0, last_y = y0, total = 0, turned = 0
    cdef size_t i
    for i in range(1, count):
        at += stride
        x = load_double(at, little)
        y = load_double(at + 8, little)
        if edges == PLANAR:
            total += (last_x - x0) * (y - y0) - (x - x0) * (last_y - y0)
        else:
            step = x - last_x
            step -= 360 if step > 180 else -360 if step < -180 else 0
            turned += step
            total += step * RADIANS * (sin(last_y * RADIANS) + sin(y * RADIANS)) / 2
        last_x = x
        last_y = y
    if edges == PLANAR or total == 0:
        return total
    # A hemisphere minus the area to the left, which is 2 pi - total for rings around a pole, otherwise -total.
    if fabs(turned) < 180:
        total += HEMISPHERE
    return total if total <= HEMISPHERE else total - 2 * HEMISPHERE


cdef void orient_ring(size_t at, size_t count, size_t stride, bint little, bint is_hole, Coordinates *c) noexcept nogil:
    """Reverse the ring at byte `at` of the copy if it is a clockwise outer ring or a counterclockwise hole."""
    cdef double turn = turning(c.to + at, count, stride, little, c.edges)
    cdef uint8_t kept[32]
    cdef uint8_t *first = c.to + at
    cdef uint8_t *last
    if not (turn > 0 if is_hole else turn < 0):
        return
    last = first + (count - 1) * stride
    while first < last:
        memcpy(kept, first, stride)
        memcpy(first, last, stride)
        memcpy(last, kept, stride)
        first += stride
        last -= stride
    c.is_reversed = True


cdef int exchange(
    const uint8_t *value, size_t at, size_t count, const Header *head, Coordinates *c
) noexcept nogil:
    """Extract or replace `count` coordinates at byte `at`, which the caller has checked. Return 0 or a fault."""
    cdef size_t stride = stride_of(head.dims), i
    cdef double xyz[3]
    cdef uint64_t bits
    cdef int d, ordinates = 3 if head.dims & 1 else 2
    if c.edges:
        return 0  # rings are oriented as a whole
    xyz[2] = NAN
    if c.found != NULL:
        if bytes_reserve(c.found, 24 * count) != 0:
            return MEMORY
        for i in range(count):
            for d in range(ordinates):
                xyz[d] = load_double(value + at + 8 * d, head.little)
            memcpy(c.found.data + c.found.size, xyz, 24)
            c.found.size += 24
            at += stride
        return 0
    if count > c.left:
        return COUNT
    c.left -= count
    for i in range(count):
        for d in range(ordinates):
            memcpy(&bits, c.values + d, 8)
            if not head.little:
                bits = pqext_swap64(bits)
            memcpy(c.to + at + 8 * d, &bits, 8)
        c.values += 3
        at += stride
    return 0


cdef int visit(const uint8_t *value, size_t size, Coordinates *c, size_t *fault_at) noexcept nogil:
    """Process all coordinates of one value. Return 0, or a fault whose byte position is in `fault_at`."""
    cdef Frame stack[MAX_DEPTH]
    cdef Header head
    cdef int depth = 0, status
    cdef size_t at = 0, stride
    cdef uint32_t count, points
    cdef bint is_hole
    while True:
        fault_at[0] = at
        status = read_header(value + at, size - at, &head)
        if status != 0:
            return status
        if depth and stack[depth - 1].base and head.base != stack[depth - 1].base:
            return CHILD
        at += head.size
        fault_at[0] = at
        stride = stride_of(head.dims)
        if head.base == POINT:
            if size - at < stride:
                return TRUNCATED
            status = exchange(value, at, 1, &head, c)
            at += stride
        else:
            if size - at < 4:
                return TRUNCATED
            count = load32(value + at, head.little)
            at += 4
            if head.base == LINE_STRING:
                if count > (size - at) // stride:
                    return COUNT
                status = exchange(value, at, count, &head, c)
                at += count * stride
            elif head.base == POLYGON:
                is_hole = False
                while count and status == 0:
                    fault_at[0] = at
                    if size - at < 4:
                        return TRUNCATED
                    points = load32(value + at, head.little)
                    at += 4
                    if points > (size - at) // stride:
                        return COUNT
                    if c.edges and points > 3:
                        orient_ring(at, points, stride, head.little, is_hole, c)
                    status = exchange(value, at, points, &head, c)
                    at += points * stride
                    is_hole = True
                    count -= 1
            elif count:
                if count > (size - at) // SMALLEST:
                    return COUNT
                if depth == MAX_DEPTH:
                    return DEPTH
                stack[depth].left = count - 1
                stack[depth].base = head.base - 3 if head.base != COLLECTION else 0
                depth += 1
                continue
        if status != 0:
            return status
        while depth and stack[depth - 1].left == 0:
            depth -= 1
        if depth == 0:
            break
        stack[depth - 1].left -= 1
    fault_at[0] = at
    return TRAILING if at != size else 0


def take_coordinates(WkbColumn column not None):
    """Return (coordinates, offsets): x, y and z of all coordinates, in the order of the bytes, and offsets of rows.

    A missing z is NaN. Offsets have 64 bits and refer to coordinates.
    """
    cdef Column *c = &column.c
    cdef Geometry geometry
    cdef Coordinates coordinates
    cdef Bytes found, offsets
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, stop
    cdef int status = 0
    geometry.at = 0
    memset(&found, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    memset(&coordinates, 0, sizeof(Coordinates))
    coordinates.found = &found
    with nogil:
        if begin_offsets(&offsets, c.length) != 0:
            status = MEMORY
        while status == 0 and row < c.length:
            status = column_row(c, row, &value, &size)
            if status == 0:
                status = visit(value, size, &coordinates, &geometry.at)
            elif status == NULL_ROW:
                status = 0
            if status == 0:
                stop = <int64_t> (found.size // 24)
                status = MEMORY if bytes_append(&offsets, &stop, 8) != 0 else 0
                row += 1
    if status != 0:
        bytes_free(&found)
        bytes_free(&offsets)
        raise fault(status, column.row + row, &geometry)
    return take(&found), take(&offsets)


def with_coordinates(WkbColumn column not None, const double[:, ::1] values not None):
    """Return the column with the coordinates `values` (a row x, y, z per coordinate) as (data, offsets).

    z applies to coordinates that have Z. Offsets have 64 bits, and null rows are empty. Raises ValueError if the number
    of values differs from the number of coordinates.
    """
    cdef Coordinates coordinates
    if values.shape[1] != 3:
        raise ValueError("a coordinate must have x, y and z")
    memset(&coordinates, 0, sizeof(Coordinates))
    coordinates.left = <size_t> values.shape[0]
    coordinates.values = &values[0, 0] if values.shape[0] else NULL
    return copy_changed(column, &coordinates)


def with_oriented_rings(WkbColumn column not None, bint spherical):
    """Return the column with counterclockwise outer rings and clockwise holes: (data, offsets, whether any was
    reversed).

    Offsets have 64 bits, and null rows are empty. Rings without area keep their direction.
    """
    cdef Coordinates coordinates
    memset(&coordinates, 0, sizeof(Coordinates))
    coordinates.edges = SPHERICAL if spherical else PLANAR
    data, offsets = copy_changed(column, &coordinates)
    return data, offsets, bool(coordinates.is_reversed)


cdef object copy_changed(WkbColumn column, Coordinates *coordinates):
    """Return a copy of the column with other coordinates, as (data, offsets)."""
    cdef Column *c = &column.c
    cdef Geometry geometry
    cdef Bytes data, offsets
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, stop
    cdef int status = 0
    geometry.at = 0
    memset(&data, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    with nogil:
        if begin_offsets(&offsets, c.length) != 0:
            status = MEMORY
        while status == 0 and row < c.length:
            status = column_row(c, row, &value, &size)
            if status == 0:
                if bytes_append(&data, value, size) != 0:
                    status = MEMORY
                else:
                    coordinates.to = data.data + data.size - size
                    status = visit(value, size, coordinates, &geometry.at)
            elif status == NULL_ROW:
                status = 0
            if status == 0:
                stop = <int64_t> data.size
                status = MEMORY if bytes_append(&offsets, &stop, 8) != 0 else 0
                row += 1
    if status != 0 or coordinates.left:
        bytes_free(&data)
        bytes_free(&offsets)
        if status == 0:
            raise ValueError("the number of coordinates differs from the geometries")
        raise fault(status, column.row + row, &geometry)
    return take(&data), take(&offsets)
