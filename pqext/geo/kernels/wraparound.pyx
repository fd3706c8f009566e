# cython: language_level=3
"""Find gaps without geometries on the circle of longitudes.

The circle from -180 to 180 is divided into cells. The x interval of a geometry records its ends in their cells, and a
count at each cell boundary that it crosses, as a difference array, so the cost does not depend on its width. Gaps
between cells are then exact. A gap within one cell is not detected, which only makes a box larger.
"""
from libc.math cimport INFINITY
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from pqext.geo.kernels.wkb cimport (
    Box, Column, Geometry, WkbColumn, box_clear, column_row, fault, little_double, plain_point, walk,
)


cdef enum:
    CELLS = 4096
    LOOK_FIRST = 1024  # number of intervals at the first check
    LOOK_EVERY = 4096


cdef struct Circle:
    double low[CELLS]  # westernmost start in the cell, or infinity
    double high[CELLS]  # easternmost end in the cell, or minus infinity
    int64_t crossing[CELLS]  # intervals that begin here and reach the next cell, minus intervals that end here


cdef inline int cell(double x) noexcept nogil:
    # Monotonic in x, which is sufficient for soundness.
    cdef int i = <int> ((x + 180.0) * (CELLS / 360.0))
    return i if i < CELLS else CELLS - 1


cdef inline bint mark(Circle *circle, double low, double high) noexcept nogil:
    """Add an interval; return False if it is outside the circle."""
    cdef int begin, end
    if not (low >= -180.0 and high <= 180.0):
        return False
    begin = cell(low)
    end = cell(high)
    if low < circle.low[begin]:
        circle.low[begin] = low
    if high > circle.high[end]:
        circle.high[end] = high
    circle.crossing[begin] += 1
    circle.crossing[end] -= 1
    return True


cdef double widest(const Circle *circle, double *west, double *east) noexcept nogil:
    """Return the width of the widest gap between two intervals, and write its ends; 0 if there are no gaps."""
    cdef int i
    cdef int64_t open_intervals = 0
    cdef double end = INFINITY, width = 0.0, low, high
    for i in range(CELLS):
        low = circle.low[i]
        high = circle.high[i]
        # If no interval crosses into this cell, all earlier intervals end by `end`.
        if open_intervals == 0 and low < INFINITY and low - end > width:
            west[0] = end
            east[0] = low
            width = low - end
        open_intervals += circle.crossing[i]
        if high > -INFINITY:
            end = high if end == INFINITY or high > end else end
    return width


cdef bint full(const Circle *circle, double first, double last, double least) noexcept nogil:
    """Return whether there is no gap of width `least`, and none can appear between `first` and `last`.

    Gaps between intervals can only become narrower; a new gap can appear only outside the outermost intervals.
    """
    cdef double west, east
    cdef int i = 0, j = CELLS - 1
    while i < CELLS and circle.low[i] == INFINITY:
        i += 1
    while j >= 0 and circle.high[j] == -INFINITY:
        j -= 1
    if i == CELLS or j < 0 or circle.low[i] - first >= least or last - circle.high[j] >= least:
        return False
    return widest(circle, &west, &east) < least


cdef class Longitudes:
    """X intervals of geometries, collected over any number of columns until the result cannot change.

    It cannot change if no gap of `least` degrees remains between `first` and `last`, the range of all intervals.
    """

    cdef Circle circle
    cdef readonly bint settled
    cdef int64_t seen  # number of intervals of all calls
    cdef int64_t look  # number of intervals at which to check again
    cdef double first, last, least

    def __cinit__(self, double first=-180.0, double last=180.0, double least=0.0):
        cdef int i
        self.first = first
        self.last = last
        self.least = least if least > 360.0 / CELLS else 360.0 / CELLS
        self.look = LOOK_FIRST
        for i in range(CELLS):
            self.circle.low[i] = INFINITY
            self.circle.high[i] = -INFINITY
            self.circle.crossing[i] = 0
        self.settled = False
        self.seen = 0

    cdef bint looks_full(self) noexcept nogil:
        """Return whether the result cannot change. The intervals between checks grow up to LOOK_EVERY."""
        self.look += self.look if self.look < LOOK_EVERY else LOOK_EVERY
        return full(&self.circle, self.first, self.last, self.least)

    def add(self, WkbColumn column not None):
        """Add every geometry of a column. Raises GeometryError if WKB is invalid."""
        cdef Column *c = &column.c
        cdef Box box
        cdef Geometry geometry
        cdef const uint8_t *value = NULL
        cdef size_t size = 0
        cdef int64_t row = 0
        cdef int status = 0
        cdef double x
        geometry.at = 0
        with nogil:
            while row < c.length and not self.settled:
                status = column_row(c, row, &value, &size)
                if status == 0 and plain_point(value, size):
                    x = little_double(value + 5)
                    if x == x and not mark(&self.circle, x, x):
                        self.settled = True
                elif status == 0:
                    box_clear(&box)
                    status = walk(value, size, False, &box, &geometry, NULL)
                    if status != 0:
                        break
                    if box.low[0] <= box.high[0] and not mark(&self.circle, box.low[0], box.high[0]):
                        self.settled = True
                elif status > 0:
                    break
                row += 1
                self.seen += 1
                if self.seen == self.look and self.looks_full():
                    self.settled = True
        if status > 0:
            raise fault(status, column.row + row, &geometry)

    def add_intervals(self, const double[::1] west not None, const double[::1] east not None):
        """Add intervals. If west > east they cross the antimeridian; NaN is skipped."""
        cdef Py_ssize_t i, n = west.shape[0]
        cdef bint inside
        if east.shape[0] != n:
            raise ValueError("west and east must have the same length")
        with nogil:
            for i in range(n):
                if self.settled:
                    break
                if west[i] <= east[i]:
                    inside = mark(&self.circle, west[i], east[i])
                elif west[i] > east[i]:
                    inside = mark(&self.circle, west[i], 180.0) and mark(&self.circle, -180.0, east[i])
                else:
                    continue
                self.seen += 1
                if not inside or (self.seen == self.look and self.looks_full()):
                    self.settled = True

    def widest_gap(self):
        """Return (west, east) of the widest gap between -180 and 180 without a geometry; both ends are occupied.

        Return None if there is no gap between two geometries, if all gaps are narrower than `least` or a cell, or if
        some x is outside [-180, 180].
        """
        cdef double west = 0.0, east = 0.0
        if self.settled or widest(&self.circle, &west, &east) < self.least:
            return None
        return west, east
