# cython: language_level=3
"""Encode a column chunk of one page in one call, for small tables and many small chunks.

The Arrow arrays of the top-level leaf contain its stored values. Other, large or invalid chunks are detected but not
diagnosed: the general path encodes them and raises the error. Both paths write the same bytes.
"""
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve
from pqext.core.kernels.thrift.compact cimport BINARY, I32, I64, LIST, STRUCT, TRUE
from pqext.core.kernels.thrift.compact_write cimport put_binary, put_byte, put_header, put_int, put_list
from pqext.core.kernels.hash.distinct cimport Table, close_table, index_values, open_table
from pqext.core.kernels.encode.page_boundaries cimport PageBoundaries
from pqext.core.kernels.encode.pages cimport EncodedPages, Held, allocated, lent, store
from pqext.core.kernels.encode.page_header cimport (
    DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE, RLE_DICTIONARY, Header,
)
from pqext.core.kernels.encodings.rle_encode cimport put_indices, put_levels, put_same_levels

from pqext.core.kernels.thrift import page_index as page_index_kernel
from pqext.core.kernels.encode import page_statistics

cdef enum:
    MOST_ROWS = 8192
    MOST_BYTES = 1 << 16
    ASCENDING = 1  # the order of any single page


cdef inline bint is_ascii(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint8_t bits = 0
    for i in range(size):
        bits |= data[i]
    return bits < 128


cdef class SmallLeaf:
    cdef str form
    cdef int type, codec, width, version, level_bytes
    cdef bint is_text, optional, dictionary, statistics, page_index, is_float
    cdef Py_ssize_t bound_bytes, page_rows, page_bytes
    cdef list path

    def __init__(
        self, str form, int type, list path, int codec, *, bint is_text, bint optional, bint dictionary,
        bint statistics, bint page_index, int version, Py_ssize_t bound_bytes, Py_ssize_t page_rows,
        Py_ssize_t page_bytes, int level_bytes,
    ):
        self.form, self.type, self.path, self.codec = form, type, path, codec
        self.width = 0 if form == "bytes" else int(form[1])
        self.is_float = form[0] == "f"
        self.is_text, self.optional, self.dictionary = is_text, optional, dictionary
        self.statistics, self.page_index, self.version = statistics, page_index, version
        self.bound_bytes, self.page_rows, self.page_bytes = bound_bytes, page_rows, page_bytes
        self.level_bytes = level_bytes

    def encode(self, object array, object compress, object checksum):
        cdef Encoding work
        cdef Py_ssize_t count = len(array), nulls = array.null_count
        cdef list buffers
        if not 0 < count <= MOST_ROWS or count > self.page_rows or (nulls and not self.optional):
            return None
        buffers = array.buffers()
        work = Encoding.__new__(Encoding)
        work.leaf, work.count, work.values = self, count, count - nulls
        if not work.gather(buffers, array.offset):
            return None
        return work.chunk(compress, checksum)


cdef class Encoding:
    """State of the encoding of one chunk. Values without nulls are at `data`; byte arrays are between `ends`."""
    cdef SmallLeaf leaf
    cdef Py_ssize_t count, values, size   # number of rows, of values, and of bytes of values
    cdef Held validity, first, second
    cdef const uint8_t *data
    cdef const int32_t *ends
    cdef Bytes levels, dense, dense_ends, body
    cdef Table table

    def __dealloc__(self):
        bytes_free(&self.levels)
        bytes_free(&self.dense)
        bytes_free(&self.dense_ends)
        bytes_free(&self.body)
        close_table(&self.table)

    cdef bint gather(self, list buffers, Py_ssize_t start) except -1:
        """Find or build the dense values; return False if this path does not support them."""
        cdef int width = self.leaf.width
        cdef Py_ssize_t i
        if buffers[1] is None or start < 0 or start > 1 << 48:
            return False
        self.first = Held(buffers[1])
        if self.values < self.count:
            if buffers[0] is None:
                return False
            self.validity = Held(buffers[0])
            if (start + self.count + 7) // 8 > self.validity.size:
                return False
            allocated(bytes_reserve(&self.levels, self.count * 2))
        if width:
            if start + self.count > self.first.size // width:
                return False
            self.size = self.values * width
            self.data = self.first.data + start * width
            if <size_t> self.data % width:
                return False
        else:
            if start + self.count + 1 > self.first.size // 4 or buffers[2] is None:
                return False
            self.second = Held(buffers[2])
            self.data, self.ends = self.second.data, <const int32_t *> self.first.data + start
            if self.ends[0] < 0 or self.ends[self.count] > self.second.size:
                return False
            for i in range(self.count):
                if self.ends[i] > self.ends[i + 1]:
                    return False
            self.size = self.ends[self.count] - self.ends[0]
        if self.size > MOST_BYTES:
            return False
        if self.values < self.count and not self.compact(start):
            return False
        return not self.leaf.is_text or self.is_utf8()

    cdef bint compact(self, Py_ssize_t start) except -1:
        """Copy the values without nulls. Return False if their number contradicts the validity."""
        cdef int width = self.leaf.width
        cdef int16_t *levels = <int16_t *> self.levels.data
        cdef const uint8_t *bits = self.validity.data
        cdef Py_ssize_t i, found = 0
        cdef int32_t end = 0
        for i in range(self.count):
            levels[i] = bits[(start + i) >> 3] >> ((start + i) & 7) & 1
            found += levels[i]
        if found != self.values:
            return False
        if not width:
            allocated(bytes_append(&self.dense_ends, &end, 4))
        allocated(bytes_reserve(&self.dense, self.size + 8))
        for i in range(self.count):
            if not levels[i]:
                continue
            if width:
                allocated(bytes_append(&self.dense, self.data + i * width, width))
            else:
                allocated(bytes_append(&self.dense, self.data + self.ends[i], self.ends[i + 1] - self.ends[i]))
                end = <int32_t> self.dense.size
                allocated(bytes_append(&self.dense_ends, &end, 4))
        self.data, self.ends, self.size = self.dense.data, <const int32_t *> self.dense_ends.data, self.dense.size
        return True

    cdef bint is_utf8(self) except -1:
        cdef Py_ssize_t i
        if not self.values or is_ascii(self.data + self.ends[0], self.size):
            return True
        try:
            for i in range(self.values):
                PyUnicode_DecodeUTF8(
                    <const char *> self.data + self.ends[i], self.ends[i + 1] - self.ends[i], NULL
                )
        except UnicodeDecodeError:
            return False
        return True

    cdef bint index(self) except -1:
        """Index the distinct values into `body`; return whether a dictionary pays off."""
        cdef Py_ssize_t done, taken = self.size, stored, most
        cdef int bits = 1
        self.table = open_table()
        allocated(bytes_reserve(&self.body, self.values * 4))
        done = index_values(
            &self.table, self.data, self.ends, self.leaf.width, self.values, MOST_BYTES * 8, <int32_t *> self.body.data
        )
        if done != self.values:
            raise MemoryError("out of memory for the dictionary")
        stored = self.table.values.size
        if not self.leaf.width:
            stored += 4 * <Py_ssize_t> self.table.entries
            taken += 4 * self.values
        most = self.table.entries - 1
        while most > 1:
            bits += 1
            most >>= 1
        return stored + self.values * bits // 8 < taken

    cdef int put_plain(self, Bytes *b, const uint8_t *data, const int32_t *ends, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t i
        cdef int32_t length
        cdef int status = 0
        if self.leaf.width:
            return bytes_append(b, data, count * self.leaf.width)
        for i in range(count):
            length = ends[i + 1] - ends[i]
            status |= bytes_append(b, &length, 4) | bytes_append(b, data + ends[i], length)
        return status

    cdef SmallChunk chunk(self, object compress, object checksum):
        cdef SmallLeaf leaf = self.leaf
        cdef SmallChunk made = SmallChunk.__new__(SmallChunk)
        cdef EncodedPages out = EncodedPages.__new__(EncodedPages)
        cdef Bytes page
        cdef Header h
        # Levels count as one byte per entry, like in the splitting of larger chunks.
        if self.size + (0 if leaf.width else 4 * self.values) + self.count * leaf.level_bytes > leaf.page_bytes:
            return None
        made.leaf, made.cuts, made.nulls = leaf, PageBoundaries.__new__(PageBoundaries), self.count - self.values
        made.bytes = self.size
        made.cuts.take(1)
        made.cuts.rows[1] = made.cuts.entries[1] = self.count
        made.cuts.values[1], made.cuts.bytes[0] = self.values, 0 if leaf.width else self.size
        if leaf.statistics and not self.describe(made):
            return None
        made.is_indexed = leaf.dictionary and self.values > 0 and self.index()
        made.entries = self.table.entries
        page.data = NULL
        page.size = page.capacity = 0
        out.pieces = []
        h.has_crc = False
        try:
            if made.is_indexed:
                allocated(self.put_plain(
                    &page, self.table.values.data, <const int32_t *> self.table.starts.data, self.table.entries
                ))
                h.kind, h.entries, h.encoding = DICTIONARY_PAGE, self.table.entries, PLAIN
                store(out, &h, None, page.data, page.size, 0, compress, checksum)
                made.data_offset = out.size
            page.size = 0
            self.put_data(&page, &h, made)
            store(
                out, &h, None, page.data, page.size, h.definition if leaf.version == 2 else 0, compress, checksum
            )
        finally:
            bytes_free(&page)
        out.flush()
        made.cuts.offsets[0], made.cuts.sizes[0] = made.data_offset, out.size - made.data_offset
        made.pieces, made.size, made.uncompressed = out.pieces, out.size, out.uncompressed
        return made

    cdef int put_data(self, Bytes *page, Header *h, SmallChunk made) except -1:
        cdef bint second = self.leaf.version == 2
        cdef Py_ssize_t most = self.table.entries - 1
        cdef int32_t length = 0
        cdef uint8_t width = 0
        cdef int status = 0
        h.kind = DATA_PAGE_V2 if second else DATA_PAGE
        h.entries, h.nulls, h.rows, h.repetition = self.count, made.nulls, self.count, 0
        h.encoding = RLE_DICTIONARY if made.is_indexed else PLAIN
        if self.leaf.optional:
            if not second:
                status = bytes_append(page, &length, 4)
            if made.nulls:
                status |= put_levels(page, <const int16_t *> self.levels.data, self.count, 1)
            else:
                status |= put_same_levels(page, 1, self.count, 1)
            allocated(status)
            if not second:
                length = <int32_t> (page.size - 4)
                memcpy(page.data, &length, 4)
        h.definition = page.size
        if made.is_indexed:
            while most > 0:
                width += 1
                most >>= 1
            status = bytes_append(page, &width, 1)
            status |= put_indices(page, <const int32_t *> self.body.data, self.values, width)
        else:
            status = self.put_plain(page, self.data, self.ends, self.values)
        return allocated(status)

    cdef bint describe(self, SmallChunk made) except -1:
        """Write the bounds and the column index; return False if bounds must be truncated."""
        cdef SmallLeaf leaf = self.leaf
        cdef list lows, highs, nans = None
        cdef object held
        if leaf.width:
            lows, highs, nans = page_statistics.number_bounds(lent(self.data, self.size), 0, leaf.form, made.cuts)
            if leaf.is_float:
                made.nans = nans[0]
            else:
                nans = None
        else:
            held = lent(<const uint8_t *> self.ends, (self.values + 1) * 4)
            lows, highs = page_statistics.byte_bounds(
                held, lent(self.data, self.ends[self.values] if self.values else 0), 0, 0, False, made.cuts
            )
        made.low, made.high = lows[0], highs[0]
        if made.low is None:
            if not self.values:
                lows, highs = [b""], [b""]
        elif not leaf.width and (len(made.low) > leaf.bound_bytes or len(made.high) > leaf.bound_bytes):
            return False
        if leaf.page_index and lows[0] is not None:
            made.column_index = page_index_kernel.column_index(made.cuts, lows, highs, ASCENDING, None, None, nans)
        return True


cdef class SmallChunk:
    cdef SmallLeaf leaf
    cdef PageBoundaries cuts
    cdef readonly list pieces
    cdef readonly int64_t size, uncompressed
    cdef readonly bytes column_index
    cdef bint is_indexed
    cdef int64_t data_offset, nulls, nans, bytes
    cdef int32_t entries
    cdef object low, high

    def offset_index(self, int64_t base):
        return page_index_kernel.offset_index(self.cuts, base, self.leaf.width == 0) if self.leaf.page_index else None

    def column_chunk(self, int64_t base):
        cdef Bytes b
        b.data = NULL
        b.size = b.capacity = 0
        try:
            allocated(self.put(&b, base))
            return b.data[:b.size]
        finally:
            bytes_free(&b)

    cdef int put(self, Bytes *b, int64_t base) except -1:
        """Write the fields of a ColumnChunk that precede the locations of its indexes."""
        cdef SmallLeaf leaf = self.leaf
        cdef int last = 0, inner = 0, status
        cdef bytes name
        status = put_header(b, I64, 2, &last) | put_int(b, 0)
        status |= put_header(b, STRUCT, 3, &last)
        status |= put_header(b, I32, 1, &inner) | put_int(b, leaf.type)
        status |= put_header(b, LIST, 2, &inner)
        status |= put_list(b, I32, (leaf.level_bytes > 0) + 1 + self.is_indexed)
        if leaf.level_bytes:
            status |= put_int(b, RLE)
        if self.is_indexed:
            status |= put_int(b, RLE_DICTIONARY)
        status |= put_int(b, PLAIN)
        status |= put_header(b, LIST, 3, &inner) | put_list(b, BINARY, len(leaf.path))
        for name in leaf.path:
            status |= put_binary(b, <const char *> name, len(name))
        status |= put_header(b, I32, 4, &inner) | put_int(b, leaf.codec)
        status |= put_header(b, I64, 5, &inner) | put_int(b, self.cuts.rows[1])
        status |= put_header(b, I64, 6, &inner) | put_int(b, self.uncompressed)
        status |= put_header(b, I64, 7, &inner) | put_int(b, self.size)
        status |= put_header(b, I64, 9, &inner) | put_int(b, base + self.data_offset)
        if self.is_indexed:
            status |= put_header(b, I64, 11, &inner) | put_int(b, base)
        if leaf.statistics:
            status |= put_header(b, STRUCT, 12, &inner)
            self.put_statistics(b)
        status |= put_header(b, LIST, 13, &inner) | put_list(b, STRUCT, 1 + self.is_indexed)
        if self.is_indexed:
            status |= put_pages(b, DICTIONARY_PAGE, PLAIN)
        status |= put_pages(
            b, DATA_PAGE_V2 if leaf.version == 2 else DATA_PAGE, RLE_DICTIONARY if self.is_indexed else PLAIN
        )
        if leaf.statistics:
            status |= put_header(b, STRUCT, 16, &inner)
            last = 0
            if leaf.width == 0:
                status |= put_header(b, I64, 1, &last) | put_int(b, self.bytes)
            status |= put_byte(b, 0)
        return allocated(status | put_byte(b, 0))

    cdef int put_statistics(self, Bytes *b) except -1:
        cdef int last = 0, status
        cdef bytes bound
        status = put_header(b, I64, 3, &last) | put_int(b, self.nulls)
        if self.is_indexed and not self.leaf.is_float:
            status |= put_header(b, I64, 4, &last) | put_int(b, self.entries)
        if self.low is not None:
            bound = self.high
            status |= put_header(b, BINARY, 5, &last) | put_binary(b, <const char *> bound, len(bound))
            bound = self.low
            status |= put_header(b, BINARY, 6, &last) | put_binary(b, <const char *> bound, len(bound))
            status |= put_header(b, TRUE, 7, &last) | put_header(b, TRUE, 8, &last)
        if self.leaf.is_float:
            status |= put_header(b, I64, 9, &last) | put_int(b, self.nans)
        return allocated(status | put_byte(b, 0))


cdef int put_pages(Bytes *b, int kind, int encoding) noexcept nogil:
    """Write the PageEncodingStats of one page."""
    cdef int last = 0, status
    status = put_header(b, I32, 1, &last) | put_int(b, kind)
    status |= put_header(b, I32, 2, &last) | put_int(b, encoding)
    return status | put_header(b, I32, 3, &last) | put_int(b, 1) | put_byte(b, 0)
