# cython: language_level=3
"""Where on the circle of longitudes no geometry lies.

The circle from -180 to 180 is cut into cells. Each geometry's x interval leaves its ends in the cells
where they lie and a count in every cell boundary that it crosses, as a difference array, so that a geometry
costs the same whatever its width. Gaps between cells are then exact; a gap within one cell is not seen, which
only makes a box larger.
"""
from libc.math cimport INFINITY
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from pqext.geo.kernels.wkb cimport (
    Box, Column, Geometry, WkbColumn, box_clear, column_row, fault, little_double, plain_point, walk,
)


cdef enum:
    CELLS = 4096
    LOOK_FIRST = 1024  # intervals
    LOOK_EVERY = 4096


cdef struct Circle:
    double low[CELLS]  # the westernmost beginning in the cell, or infinity
    double high[CELLS]  # the easternmost end in the cell, or minus infinity
    int64_t crossing[CELLS]  # intervals that begin here and reach the next cell, less those that end here


cdef inline int cell(double x) noexcept nogil:
    # Monotonic in x, which is all that soundness needs.
    cdef int i = <int> ((x + 180.0) * (CELLS / 360.0))
    return i if i < CELLS else CELLS - 1


cdef inline bint mark(Circle *circle, double low, double high) noexcept nogil:
    """Enter an interval; false if it leaves the circle."""
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
    """Return the width of the widest gap between two intervals and write its ends; 0 without gaps."""
    cdef int i
    cdef int64_t open_intervals = 0
    cdef double end = INFINITY, width = 0.0, low, high
    for i in range(CELLS):
        low = circle.low[i]
        high = circle.high[i]
        # With nothing crossing into this cell, all that began before it has ended by `end`.
        if open_intervals == 0 and low < INFINITY and low - end > width:
            west[0] = end
            east[0] = low
            width = low - end
        open_intervals += circle.crossing[i]
        if high > -INFINITY:
            end = high if end == INFINITY or high > end else end
    return width


cdef bint full(const Circle *circle, double first, double last, double least) noexcept nogil:
    """Whether there is no gap as wide as `least`, and none can open between `first` and `last`.

    Gaps between intervals only ever get narrower; a new one can open up only beyond the outermost.
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
    """The x intervals of geometries, gathered over any number of columns until the answer is settled.

    It is once no gap of `least` degrees can be left between `first` and `last`, where all intervals lie.
    """

    cdef Circle circle
    cdef readonly bint settled
    cdef int64_t seen  # intervals of all calls
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
        """Is it settled? Asked soon at first, and then ever more seldom."""
        self.look += self.look if self.look < LOOK_EVERY else LOOK_EVERY
        return full(&self.circle, self.first, self.last, self.least)

    def add(self, WkbColumn column not None):
        """Enter every geometry of a column; raises GeometryError if WKB is invalid."""
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
        """Enter intervals; west > east crosses the antimeridian, NaN is skipped."""
        cdef Py_ssize_t i, n = west.shape[0]
        cdef bint inside
        if east.shape[0] != n:
            raise ValueError("an interval has two ends")
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
        """(west, east) of the widest stretch between -180 and 180 without a geometry, its ends being occupied.

        None if there is no gap between two geometries, if all are narrower than `least` or a cell,
        and when some x lies outside [-180, 180].
        """
        cdef double west = 0.0, east = 0.0
        if self.settled or widest(&self.circle, &west, &east) < self.least:
            return None
        return west, east
