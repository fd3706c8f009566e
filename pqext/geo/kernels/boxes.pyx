# cython: language_level=3
"""Boxes and type codes of the rows of a WKB column, by row and in total."""
from libc.math cimport INFINITY, NAN
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pqext.geo.kernels.wkb cimport (
    NULL_ROW, POINT, POINT_XY, Box, Column, Geometry, WkbColumn, box_clear, column_row, differing, fault, header,
    little_double, load32, plain_point, walk, widen, widen_pairs,
)


cdef struct Found:
    # Summary of a range of rows.
    Box box
    uint32_t types  # bit 8 * dims + base
    int64_t rows  # number of rows that are not null


cdef inline uint32_t type_bit(int base, int dims) noexcept nogil:
    return <uint32_t> 1 << (8 * dims + base)


cdef inline int point_dims(const uint8_t *value) noexcept nogil:
    """Return the dimensions of a value that begins as a little-endian ISO point; -1 if it does not."""
    cdef uint32_t code = load32(value + 1, True)
    return <int> (code // 1000) if value[0] == 1 and code % 1000 == POINT and code < 4000 else -1


cdef enum:
    BLOCK = 256  # rows
    RANGE = 65536  # approximate bytes of a range, which has at most a block of rows


cdef int64_t plain_run(const Column *c, int64_t row, int64_t stop_row, Box *box) noexcept nogil:
    """Count the rows from `row` to `stop_row` that are contiguous little-endian XY points, in complete blocks.

    Widen `box` by these points. Each loop performs one operation on a block.
    """
    cdef int64_t i = c.first + row, first = i, end = c.first + stop_row
    cdef int k
    cdef int32_t start, stop
    cdef uint32_t at, astray
    cdef const uint8_t *value
    if c.wide or c.validity != NULL:
        return 0
    while end - i >= BLOCK:
        memcpy(&start, c.offsets + 4 * i, 4)
        memcpy(&stop, c.offsets + 4 * (i + BLOCK), 4)
        if start < 0 or stop > c.size or <int64_t> stop - start != BLOCK * POINT_XY:
            break
        astray = 0
        for k in range(BLOCK):
            memcpy(&at, c.offsets + 4 * (i + k), 4)
            astray |= at ^ (<uint32_t> start + <uint32_t> (POINT_XY * k))
        if astray:
            break
        value = c.data + start
        if differing(value, BLOCK, POINT_XY, 0x101u):
            break
        widen_pairs(value + 5, BLOCK, POINT_XY, box.low, box.high)
        i += BLOCK
    return i - first


cdef int64_t point_run(
    const Column *c, int64_t row, int64_t stop_row, Box *box, int64_t *counts
) noexcept nogil:
    """Count the rows from `row` to `stop_row` that are null or little-endian ISO points with the dimensions of the
    first row.

    Widen `box` by these points, and add their number to `counts[dims]`. Only for 32-bit offsets, which are read once
    each. Any other value ends the run; the caller passes it to `walk`.
    """
    cdef Box run
    cdef int64_t i = c.first + row, first = i, end = c.first + stop_row, points = 0, size = 0
    cdef uint64_t head = 0
    cdef int32_t start, stop
    cdef int dims = 0, extra = 0, d
    cdef const uint8_t *value
    box_clear(&run)
    memcpy(&stop, c.offsets + 4 * i, 4)
    while i < end:
        start = stop
        memcpy(&stop, c.offsets + 4 * (i + 1), 4)
        if c.validity == NULL or (c.validity[i >> 3] >> (i & 7)) & 1:
            if start < 0 or stop > c.size or <int64_t> stop - start < POINT_XY:
                break
            value = c.data + start
            if points == 0:
                dims = point_dims(value)
                if dims < 0:
                    break
                head = header(value)
                extra = (dims & 1) + (dims >> 1)
                size = POINT_XY + 8 * extra
            if header(value) != head or <int64_t> stop - start != size:
                break
            widen(little_double(value + 5), &run.low[0], &run.high[0])
            widen(little_double(value + 13), &run.low[1], &run.high[1])
            if extra:
                widen(little_double(value + 21), &run.low[2], &run.high[2])
                if extra == 2:
                    widen(little_double(value + 29), &run.low[3], &run.high[3])
            points += 1
        i += 1
    if dims == 2:  # the third ordinate was M
        run.low[3] = run.low[2]
        run.high[3] = run.high[2]
        run.low[2] = INFINITY
        run.high[2] = -INFINITY
    for d in range(4):
        box.low[d] = run.low[d] if run.low[d] < box.low[d] else box.low[d]
        box.high[d] = run.high[d] if run.high[d] > box.high[d] else box.high[d]
    counts[dims if points else 0] += points
    return i - first


cdef struct Traits:
    # Rare traits, and the first two distinct SRIDs other than 0 in EWKB headers with their rows.
    bint extended
    bint hollow
    int known
    uint32_t srids[2]
    int64_t rows[2]


cdef int summarize_rows(
    const Column *c, int64_t *row, int64_t stop, bint strict, Found *found, Traits *traits, Geometry *geometry
) noexcept nogil:
    """Check the rows from `row` to `stop` and add them to `found`. Return 0, or the fault of the row at which it stops.
    """
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t points[4]
    cdef int64_t plain
    cdef int status, dims
    memset(points, 0, sizeof(points))
    clear(found)
    while row[0] < stop:
        if not c.wide:
            plain = plain_run(c, row[0], stop, &found.box)
            points[0] += plain
            row[0] += plain
            if row[0] < stop:
                row[0] += point_run(c, row[0], stop, &found.box, points)
            if row[0] == stop:
                break
        status = column_row(c, row[0], &value, &size)
        if status == 0:
            status = walk(value, size, strict, &found.box, geometry, NULL)
            if status != 0:
                return status
            found.types |= type_bit(geometry.base, geometry.dims)
            traits.extended |= geometry.extended
            traits.hollow |= geometry.hollow
            if geometry.srid and traits.known < 2 and not (traits.known and traits.srids[0] == geometry.srid):
                traits.srids[traits.known] = geometry.srid
                traits.rows[traits.known] = row[0]
                traits.known += 1
            found.rows += 1
        elif status != NULL_ROW:
            return status
        row[0] += 1
    for dims in range(4):
        found.types |= type_bit(POINT, dims) if points[dims] else 0
        found.rows += points[dims]
    return 0


cdef void clear(Found *found) noexcept nogil:
    box_clear(&found.box)
    found.types = 0
    found.rows = 0


cdef void join(Found *whole, const Found *part) noexcept nogil:
    cdef int d
    for d in range(4):
        whole.box.low[d] = part.box.low[d] if part.box.low[d] < whole.box.low[d] else whole.box.low[d]
        whole.box.high[d] = part.box.high[d] if part.box.high[d] > whole.box.high[d] else whole.box.high[d]
    whole.types |= part.types
    whole.rows += part.rows


cdef int64_t data_size(const Column *c) noexcept nogil:
    """Return the total size of all rows in bytes, limited to the data if offsets are invalid."""
    cdef int64_t start = 0, stop = 0
    cdef int32_t narrow[2]
    if c.length == 0:
        return 0
    if c.wide:
        memcpy(&start, c.offsets + 8 * c.first, 8)
        memcpy(&stop, c.offsets + 8 * (c.first + c.length), 8)
    else:
        memcpy(&narrow[0], c.offsets + 4 * c.first, 4)
        memcpy(&narrow[1], c.offsets + 4 * (c.first + c.length), 4)
        start, stop = narrow[0], narrow[1]
    return stop - start if 0 <= start <= stop <= c.size else c.size


cdef class Summary:
    """Summary of all rows of a column, and of consecutive ranges of rows (see the stub)."""

    cdef readonly tuple box
    cdef readonly list types
    cdef readonly int64_t rows
    cdef readonly bint extended
    cdef readonly bint hollow
    cdef readonly list srids
    cdef WkbColumn column
    cdef int64_t step  # rows of each range; the last range may have fewer
    cdef Found *ranges

    def __cinit__(self, WkbColumn column not None, bint strict=False):
        cdef Found whole
        cdef Traits traits
        cdef Geometry geometry
        cdef const Column *c = &column.c
        cdef int64_t row = 0, number = 0
        cdef int status = 0
        self.column = column
        self.step = max(1, min(BLOCK, <int64_t> (<double> RANGE * c.length / max(data_size(c), 1))))
        self.ranges = <Found *> malloc((c.length // self.step + 1) * sizeof(Found))
        if self.ranges == NULL:
            raise MemoryError
        geometry.at = 0
        memset(&traits, 0, sizeof(traits))
        with nogil:
            clear(&whole)
            while row < c.length and status == 0:
                status = summarize_rows(
                    c, &row, min(row + self.step, c.length), strict, &self.ranges[number], &traits, &geometry
                )
                join(&whole, &self.ranges[number])
                number += 1
        if status != 0:
            raise fault(status, column.row + row, &geometry)
        self.box = box_tuple(&whole.box)
        self.types = [
            1000 * dims + base for dims in range(4) for base in range(1, 8) if whole.types & type_bit(base, dims)
        ]
        self.rows = whole.rows
        self.extended = traits.extended
        self.hollow = traits.hollow
        self.srids = [(traits.srids[k], column.row + traits.rows[k]) for k in range(traits.known)]

    def __dealloc__(self):
        free(self.ranges)

    def is_of(self, WkbColumn column not None):
        """Return whether `column` has the same buffers and rows as the summarized column."""
        cdef const Column *one = &self.column.c
        cdef const Column *other = &column.c
        return (
            one.data == other.data and one.size == other.size and one.offsets == other.offsets
            and one.validity == other.validity and one.wide == other.wide
            and one.first == other.first and one.length == other.length
        )

    def parts(
        self, const int64_t[::1] starts not None, double[:, ::1] boxes not None, uint32_t[::1] types not None,
        int64_t[::1] rows not None,
    ):
        """Summarize each segment of rows, from one number in `starts` to the next.

        Fill the rows xmin, xmax, ymin, ymax of `boxes`, with NaN for segments without values; `types` with the bits 8 *
        dims + base; and `rows` with the number of rows that are not null.
        """
        cdef const Column *c = &self.column.c
        cdef Py_ssize_t part, d, parts = starts.shape[0] - 1
        cdef Found found
        cdef Geometry geometry
        cdef int64_t row = 0
        cdef int status = 0
        if parts < 0 or starts[0] != 0 or starts[parts] != c.length:
            raise ValueError("the parts of a column must begin at 0 and end at the length of the column")
        for part in range(parts):
            if starts[part + 1] < starts[part]:
                raise ValueError("the parts of a column must ascend")
        if boxes.shape[0] != 4 or boxes.shape[1] != parts or types.shape[0] != parts or rows.shape[0] != parts:
            raise ValueError("boxes must have 4 rows, and boxes, types and rows one number per part")
        geometry.at = 0
        with nogil:
            for part in range(parts):
                # Rows only ascend, up to the last one, even if another thread writes to `starts`.
                status = self.summarize(&row, min(starts[part + 1], c.length), &found, &geometry)
                if status != 0:
                    break
                for d in range(2):
                    boxes[2 * d, part] = NAN if found.box.low[d] > found.box.high[d] else found.box.low[d]
                    boxes[2 * d + 1, part] = NAN if found.box.low[d] > found.box.high[d] else found.box.high[d]
                types[part] = found.types
                rows[part] = found.rows
        if status != 0:
            raise fault(status, self.column.row + row, &geometry)

    cdef int summarize(self, int64_t *row, int64_t stop, Found *found, Geometry *geometry) noexcept nogil:
        """Summarize rows like `summarize_rows`, using the summaries of complete ranges, and reading only the other
        rows.
        """
        cdef Traits traits
        cdef Found some
        cdef int64_t edge
        cdef int status
        memset(&traits, 0, sizeof(traits))
        clear(found)
        while row[0] < stop:
            if row[0] % self.step == 0 and stop - row[0] >= self.step:
                join(found, &self.ranges[row[0] // self.step])
                row[0] += self.step
                continue
            edge = min(stop, row[0] - row[0] % self.step + self.step)
            status = summarize_rows(&self.column.c, row, edge, False, &some, &traits, geometry)
            if status != 0:
                return status
            join(found, &some)
        return 0


cdef tuple box_tuple(const Box *box):
    """Return (xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax), with None for dimensions without values."""
    found = []
    for d in range(4):
        found += [None, None] if box.low[d] > box.high[d] else [box.low[d], box.high[d]]
    return tuple(found)


def row_boxes(WkbColumn column not None, double[:, ::1] out not None):
    """Fill `out` with the boxes of rows: a line per bound (xmin, xmax, ymin, ymax[, zmin, zmax, mmin, mmax]).

    Missing values are NaN. Return two bit masks: the type codes (bit 8 * dims + base), and the dimensions (bit 0 for x
    to bit 3 for m) that are missing in some row. With 4 lines, stop at the first geometry that has Z or M; the
    remaining columns of `out` are unchanged.
    """
    cdef Column *c = &column.c
    cdef int bounds = <int> out.shape[0], d
    cdef Box box
    cdef Geometry geometry
    cdef const uint8_t *value = NULL
    cdef size_t size = 0
    cdef int64_t row = 0, n = c.length
    cdef int status = 0
    cdef uint32_t types = 0, absent = 0
    cdef double *to
    cdef double x, y
    if out.shape[1] != n or (bounds != 4 and bounds != 8):
        raise ValueError("the output must have 4 or 8 lines with one number per row")
    if n == 0:
        return 0, 0
    geometry.at = 0
    to = &out[0, 0]
    with nogil:
        while row < n:
            status = column_row(c, row, &value, &size)
            if status == 0 and bounds == 4 and plain_point(value, size):
                x = little_double(value + 5)
                y = little_double(value + 13)
                types |= 2
                absent |= <uint32_t> (x != x) | (<uint32_t> (y != y) << 1)
                to[row] = x
                to[n + row] = x
                to[2 * n + row] = y
                to[3 * n + row] = y
                row += 1
                continue
            box_clear(&box)
            if status == 0:
                status = walk(value, size, False, &box, &geometry, NULL)
                types |= type_bit(geometry.base, geometry.dims) if status == 0 else 0
            if status > 0 or (bounds == 4 and types > 0xFF):
                break
            for d in range(bounds // 2):
                if box.low[d] > box.high[d]:
                    to[2 * d * n + row] = NAN
                    to[(2 * d + 1) * n + row] = NAN
                    absent |= <uint32_t> 1 << d
                else:
                    to[2 * d * n + row] = box.low[d]
                    to[(2 * d + 1) * n + row] = box.high[d]
            row += 1
    if status > 0:
        raise fault(status, column.row + row, &geometry)
    return types, absent
