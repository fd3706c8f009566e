# cython: language_level=3
"""Boxes around geometries whose edges run over the globe."""
from libc.math cimport NAN
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pqext.geo.kernels.edges cimport (
    Extent, Globe, extent_add, extent_begin, extent_longitudes, globe_set,
)
from pqext.geo.kernels.paths cimport Path, Paths, next_path, paths_begin
from pqext.geo.kernels.wkb cimport (
    Box, Column, Geometry, WkbColumn, box_clear, column_row, fault, little_double, plain_point, walk,
)

from pqext.core.errors import GeometryError


cdef enum:
    OUTSIDE = 100  # a status of our own: coordinates that are no longitude and latitude


cdef inline bint on_globe(double west, double east, double south, double north) noexcept nogil:
    # So put that a dimension without values, whose low is above its high, passes.
    return not (west < -180.0 or east > 180.0 or south < -90.0 or north > 90.0)


def edge_boxes(
    WkbColumn column not None, double[:, ::1] out not None, double e2, double ratio, double turn
):
    """Fill `out` as `row_boxes` does, with boxes around whole edges; xmin > xmax where one wraps.

    With 4 lines it leaves out Z and M, and goes on.
    Edges run over an ellipsoid with the squared eccentricity `e2` and `ratio` of polar to equatorial axis; `turn`
    bounds, in radians, how far the algorithm that draws them misses their direction.
    """
    cdef Column *c = &column.c
    cdef int bounds = <int> out.shape[0], d
    cdef Box box
    cdef Geometry geometry
    cdef Globe globe
    cdef Extent extent
    cdef Paths paths
    cdef Path path
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, n = c.length
    cdef int status = 0
    cdef uint32_t types = 0, absent = 0
    cdef double *to
    cdef double x, y
    if out.shape[1] != n or (bounds != 4 and bounds != 8):
        raise ValueError("the output must have 4 or 8 lines of one number a row")
    if not (e2 < 1 and ratio > 0 and 0 <= turn < 1):
        raise ValueError("not an ellipsoid")
    if n == 0:
        return 0, 0
    geometry.at = 0
    to = &out[0, 0]
    with nogil:
        globe_set(&globe, e2, ratio, turn)
        while row < n:
            status = column_row(c, row, &value, &size)
            if status == 0 and bounds == 4 and plain_point(value, size):
                x = little_double(value + 5)
                y = little_double(value + 13)
                if -180.0 < x < 180.0 and -89.9 < y < 89.9:
                    types |= 2
                    to[row] = x
                    to[n + row] = x
                    to[2 * n + row] = y
                    to[3 * n + row] = y
                    row += 1
                    continue
            box_clear(&box)
            if status == 0:
                status = walk(value, size, False, &box, &geometry, NULL)
                if status == 0:
                    types |= <uint32_t> 1 << (8 * geometry.dims + geometry.base)
                    if not on_globe(box.low[0], box.high[0], box.low[1], box.high[1]):
                        status = OUTSIDE
            if status > 0:
                break
            if box.low[0] <= box.high[0]:
                extent_begin(&extent, box.low[1], box.high[1])
                paths_begin(&paths, value, size)
                while next_path(&paths, &path):
                    extent_add(&globe, &extent, &path)
                extent_longitudes(&extent, &box.low[0], &box.high[0])
                if box.low[1] <= box.high[1]:
                    box.low[1] = -90.0 if extent.south_pole else extent.south
                    box.high[1] = 90.0 if extent.north_pole else extent.north
                to[row] = box.low[0]
                to[n + row] = box.high[0]
            else:
                to[row] = to[n + row] = NAN
                absent |= 1
            for d in range(1, bounds // 2):
                if box.low[d] > box.high[d]:
                    to[2 * d * n + row] = NAN
                    to[(2 * d + 1) * n + row] = NAN
                    absent |= <uint32_t> 1 << d
                else:
                    to[2 * d * n + row] = box.low[d]
                    to[(2 * d + 1) * n + row] = box.high[d]
            row += 1
    if status == OUTSIDE:
        raise GeometryError(
            f"x from {box.low[0]} to {box.high[0]}, y from {box.low[1]} to {box.high[1]} leave the longitudes "
            "-180 to 180 and latitudes -90 to 90",
            rule="geography.range",
            row=column.row + row,
        )
    if status > 0:
        raise fault(status, column.row + row, &geometry)
    return types, absent
