# cython: language_level=3
"""Bounding boxes of geometries with geodesic or spherical edges."""
from libc.math cimport NAN
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t

from pqext.geo.kernels.edges cimport (
    Extent, Globe, clamped, extent_add, extent_begin, extent_longitudes, globe_set,
)
from pqext.geo.kernels.paths cimport Path, Paths, next_path, paths_begin
from pqext.geo.kernels.wkb cimport (
    INFINITE, Box, Column, Geometry, WkbColumn, box_clear, column_row, fault, little_double, plain_point, walk,
)

from pqext.core.base.errors import GeometryError


# Tolerance in degrees for rounding beyond the range; equal to crs.SLACK.
cdef double SLACK = 1e-9

cdef enum:
    OUTSIDE = 100  # status: coordinates are not longitude and latitude


cdef inline bint on_globe(double west, double east, double south, double north) noexcept nogil:
    # Written so that a dimension without values, whose low exceeds its high, passes.
    return not (
        west < -180.0 - SLACK or east > 180.0 + SLACK or south < -90.0 - SLACK or north > 90.0 + SLACK
    )


cdef inline void clamp(Box *box, int d, double most) noexcept nogil:
    """Move bounds that are out of range by at most SLACK into the range."""
    if box.low[d] <= box.high[d]:
        box.low[d] = clamped(box.low[d], most)
        box.high[d] = clamped(box.high[d], most)


def edge_boxes(
    WkbColumn column not None, double[:, ::1] out not None, double e2, double ratio, double turn,
    uint8_t[::1] outside=None,
):
    """Fill `out` like `row_boxes`, with boxes that include the interior of edges; xmin > xmax if a box wraps.

    With 4 rows, Z and M are omitted. Edges are on an ellipsoid with squared eccentricity `e2`, and `ratio` is the polar
    divided by the equatorial axis; `turn` bounds the error of the algorithm in the azimuth of edges, in radians. Rows
    whose coordinates are out of range are flagged in `outside` and have no X and Y; without `outside` they raise an
    error.
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
    cdef uint8_t *flags = NULL
    cdef double x, y
    if out.shape[1] != n or (bounds != 4 and bounds != 8):
        raise ValueError("the output must have 4 or 8 lines with one number per row")
    if outside is not None and outside.shape[0] != n:
        raise ValueError("there must be one flag per row")
    if not (e2 < 1 and ratio > 0 and 0 <= turn < 1):
        raise ValueError("the globe is not an ellipsoid")
    if n == 0:
        return 0, 0
    geometry.at = 0
    to = &out[0, 0]
    if outside is not None:
        flags = &outside[0]
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
                    if on_globe(box.low[0], box.high[0], box.low[1], box.high[1]):
                        clamp(&box, 0, 180.0)
                        clamp(&box, 1, 90.0)
                    elif flags == NULL:
                        status = OUTSIDE
                    else:
                        flags[row] = 1
                        box.low[0] = box.low[1] = INFINITE
                        box.high[0] = box.high[1] = -INFINITE
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
            f"x from {box.low[0]} to {box.high[0]}, y from {box.low[1]} to {box.high[1]}: coordinates must be longitudes "
            "from -180 to 180 and latitudes from -90 to 90; geo.clamp moves them into this range",
            rule="geography.range",
            row=column.row + row,
        )
    if status > 0:
        raise fault(status, column.row + row, &geometry)
    return types, absent
