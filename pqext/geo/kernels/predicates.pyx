# cython: language_level=3
"""Classify rows by their position relative to a box: outside, within, or undecided without the exact test."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from pqext.geo.kernels.wkb cimport (
    Box, Column, Geometry, WkbColumn, box_clear, column_row, fault, little_double, plain_point, walk,
)


cdef enum:
    NO = 0
    YES = 1
    MAYBE = 2
    ABSENT = 3


cdef inline int judge(
    double xlow, double xhigh, double ylow, double yhigh, double west, double east, double south, double north,
    bint wraps, bint strict,
) noexcept nogil:
    """Return the relation of a row's box to the query's.

    Comparisons are ordered so that NaN, a missing value, gives NO.

    With ``strict``, a box that touches the border is not within the query.
    """
    if not (ylow <= north and yhigh >= south):
        return NO
    if wraps:
        if not (xhigh >= west or xlow <= east):
            return NO
        if not (xlow >= west or xhigh <= east):
            return MAYBE
    else:
        if not (xlow <= east and xhigh >= west):
            return NO
        if not (xlow >= west and xhigh <= east):
            return MAYBE
    if strict:
        if wraps:
            if not (xlow > west or xhigh < east):
                return MAYBE
        elif not (xlow > west and xhigh < east):
            return MAYBE
        return YES if ylow > south and yhigh < north else MAYBE
    return YES if ylow >= south and yhigh <= north else MAYBE


def test_box(
    WkbColumn column not None, double west, double east, double south, double north, uint8_t[::1] out not None,
    bint strict,
):
    """Write 0 (outside the box), 1 (within the box), 2 (undecided) or 3 (null) for each row.

    The query wraps around the antimeridian if west > east. With ``strict``, a row that touches the border of the box is
    not within it. Return the number of undecided rows.
    """
    cdef Column *c = &column.c
    cdef Box box
    cdef Geometry geometry
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, undecided = 0
    cdef int status = 0, verdict
    cdef bint wraps = west > east
    cdef double x, y
    if out.shape[0] != c.length:
        raise ValueError("the output must have one byte per row")
    geometry.at = 0
    with nogil:
        while row < c.length:
            status = column_row(c, row, &value, &size)
            if status == 0 and plain_point(value, size):
                x = little_double(value + 5)
                y = little_double(value + 13)
                verdict = judge(x, x, y, y, west, east, south, north, wraps, strict)
            elif status == 0:
                box_clear(&box)
                status = walk(value, size, False, &box, &geometry, NULL)
                if status != 0:
                    break
                if box.low[0] > box.high[0] or box.low[1] > box.high[1]:
                    verdict = NO  # an empty geometry intersects nothing
                else:
                    verdict = judge(
                        box.low[0], box.high[0], box.low[1], box.high[1], west, east, south, north, wraps, strict
                    )
            elif status < 0:
                verdict = ABSENT
            else:
                break
            undecided += verdict == MAYBE
            out[row] = verdict
            row += 1
    if status > 0:
        raise fault(status, column.row + row, &geometry)
    return undecided
