# Iterate over the paths of a geometry: its points, line strings and rings.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t

from pqext.geo.kernels.wkb cimport LINE_STRING, POINT, POLYGON, Header, load32, read_header, stride_of


cdef struct Path:
    const uint8_t *first  # its first coordinate
    size_t count  # number of coordinates
    size_t stride  # bytes between coordinates
    bint little
    bint ring  # a ring, even if its last coordinate differs from its first


cdef struct Paths:
    # Position of the next path in a value. Headers are stored in the order of a depth-first walk, and parts do not
    # depend on their parents, so no stack is needed.
    const uint8_t *value
    size_t size
    size_t at
    uint32_t rings  # remaining rings of the current polygon
    Header header


cdef inline void paths_begin(Paths *paths, const uint8_t *value, size_t size) noexcept nogil:
    paths.value = value
    paths.size = size
    paths.at = 0
    paths.rings = 0


cdef inline bint next_path(Paths *paths, Path *path) noexcept nogil:
    """Advance to the next path of a value that `walk` has validated; return False at the end.

    Never reads beyond the value.
    """
    cdef const uint8_t *value = paths.value
    cdef size_t size = paths.size
    cdef uint32_t count
    while True:
        if paths.rings:
            paths.rings -= 1
            path.ring = True
            break
        if paths.at >= size or read_header(value + paths.at, size - paths.at, &paths.header) != 0:
            return False
        paths.at += paths.header.size
        if paths.header.base == POINT:
            path.ring = False
            path.first = value + paths.at
            path.count = 1
            path.stride = stride_of(paths.header.dims)
            path.little = paths.header.little
            if path.stride > size - paths.at:
                return False
            paths.at += path.stride
            return True
        if paths.header.base == LINE_STRING:
            path.ring = False
            break
        if size - paths.at < 4:
            return False
        count = load32(value + paths.at, paths.header.little)
        paths.at += 4
        if paths.header.base == POLYGON:
            paths.rings = count
    if size - paths.at < 4:
        return False
    path.count = load32(value + paths.at, paths.header.little)
    path.stride = stride_of(paths.header.dims)
    path.little = paths.header.little
    paths.at += 4
    path.first = value + paths.at
    if path.count > (size - paths.at) // path.stride:
        return False
    paths.at += path.count * path.stride
    return True
