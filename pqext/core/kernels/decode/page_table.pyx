# cython: language_level=3
"""Parse all page headers of a buffer in one call, and open runs of pages in another, without an object per page.

Only ordinary pages are supported. Unusual or invalid pages are detected but not diagnosed: the caller then reads them
page by page with `pqext.core.read.pages.page.raw_pages`, which raises the error.
"""
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memmove, memset

from pqext.core.kernels.buffer cimport bytes_append, bytes_free
from pqext.core.kernels.thrift.compact cimport BAD_COUNT, DEPTH_CAP, DONE, TRUNCATED, Cursor
from pqext.core.kernels.decode.page_header cimport DATA, DATA_V2, DICTIONARY, UNUSUAL, PageEntry, read_fields
from pqext.core.kernels.encodings.page_run cimport PageRun

cdef enum:
    MORE = 1
    MOST = 1 << 18        # pages of one table
    HEADER = 1 << 16      # a longer header is unusual, and no shorter one exceeds the limit on objects

    # Encodings that matter here.
    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3


cdef class PageTable:
    """Table of `size` consecutive pages. `limits` bound the sizes in their headers.

    The complete pages took `consumed` bytes of the last argument of `read`. The next page takes `needed` bytes, or 0 if
    its size is unknown.
    """

    def __cinit__(self, limits):
        self.owners = []
        self.most_elements = limits.metadata_elements
        self.most_depth = <int> min(<int64_t> limits.metadata_depth, <int64_t> DEPTH_CAP)
        self.most_header = min(<int64_t> limits.page_header_bytes, <int64_t> limits.metadata_objects, <int64_t> HEADER)
        self.most_page = limits.page_bytes

    def __dealloc__(self):
        bytes_free(&self.held)

    cdef int read_page(
        self, const uint8_t *start, const uint8_t *p, const uint8_t *end, int64_t left, PageEntry *page
    ) noexcept nogil:
        """Parse the page at `p` into `page`, with `left` bytes to the end of the chunk.

        Return DONE, MORE if further bytes are needed, or UNUSUAL.
        """
        cdef Cursor c
        cdef int status
        memset(page, 0, sizeof(PageEntry))
        page.rows = -1
        page.compressed = True
        c.start = start
        c.p = p
        c.end = p + self.most_header if end - p > self.most_header else end
        c.base = 0
        c.elements = c.max_elements = self.most_elements
        c.objects = c.max_objects = 0
        c.max_depth = self.most_depth
        c.status = DONE
        c.path = NULL
        status = read_fields(&c, page)
        if status != DONE:
            self.needed = 0
            # A count may exceed the available part of an incomplete header.
            return MORE if (status == TRUNCATED or status == BAD_COUNT) and c.end == end and end - p < left else UNUSUAL
        if page.stored < 0 or page.unpacked < 0 or page.count < 0 or page.unpacked > self.most_page:
            return UNUSUAL
        if page.stored > left - (c.p - p):
            return UNUSUAL
        page.body = c.p
        if page.stored > end - c.p:
            self.needed = (c.p - p) + page.stored
            return MORE
        return DONE

    def read(self, data, int64_t offset, int64_t left):
        """Add the pages in `data`, which begins at `offset` of the file. `left` bytes of the span remain.

        Return False if a page is unusual; the preceding pages are then in the table.
        """
        cdef const uint8_t[::1] held = data
        cdef const uint8_t *start
        cdef const uint8_t *p
        cdef const uint8_t *end
        cdef PageEntry page
        cdef int status = DONE
        cdef Py_ssize_t before = self.size
        self.consumed = self.needed = 0
        if not held.shape[0]:
            return True
        if left < held.shape[0]:
            raise ValueError("the buffer has more bytes than remain in the chunk")
        start = p = &held[0]
        end = start + held.shape[0]
        with nogil:
            while p < end:
                status = self.read_page(start, p, end, left - (p - start), &page)
                if status != DONE:
                    break
                if (page.kind == DICTIONARY and self.size) or self.size >= MOST:
                    status = UNUSUAL
                    break
                page.offset = offset + (p - start)
                page.owner = <int32_t> 0
                if bytes_append(&self.held, &page, sizeof(PageEntry)) != 0:
                    status = -100
                    break
                self.entries = <PageEntry *> self.held.data
                self.size += 1
                p = page.body + page.stored
        if status == -100:
            raise MemoryError("out of memory for pages")
        self.consumed = p - start
        if self.size > before:
            self.owners.append(data)
            for i in range(before, self.size):
                self.entries[i].owner = <int32_t> (len(self.owners) - 1)
        return status != UNUSUAL

    def drop(self, Py_ssize_t count):
        """Remove the first `count` pages and their bytes."""
        cdef Py_ssize_t i, unused
        if not 0 <= count <= self.size:
            raise ValueError(f"cannot remove {count} of {self.size} pages")
        if not count:
            return
        self.size -= count
        memmove(self.entries, self.entries + count, self.size * sizeof(PageEntry))
        self.held.size = self.size * sizeof(PageEntry)
        unused = self.entries[0].owner if self.size else len(self.owners)
        if unused:
            del self.owners[:unused]
            for i in range(self.size):
                self.entries[i].owner -= <int32_t> unused

    @property
    def has_dictionary(self):
        """Whether the first page is a dictionary page."""
        return self.size > 0 and self.entries[0].kind == DICTIONARY

    def count(self, Py_ssize_t first=0, Py_ssize_t stop=-1):
        """Return the number of entries in the pages from `first` up to `stop` (exclusive)."""
        cdef Py_ssize_t i
        cdef int64_t total = 0
        for i in range(first, self.size if stop < 0 else min(stop, self.size)):
            total += self.entries[i].count
        return total

    def counts(self, Py_ssize_t first, Py_ssize_t stop):
        """Return the number of entries of each page."""
        return [self.entries[i].count for i in range(max(first, 0), min(stop, self.size))]

    def offset(self, Py_ssize_t page):
        """Return the offset of the page in the file."""
        if not 0 <= page < self.size:
            raise IndexError(f"page {page} is out of range for {self.size} pages")
        return self.entries[page].offset

    def find_end(self, Py_ssize_t first, int64_t entries):
        """Return the end of the shortest run of pages from `first` on that contains at least `entries` entries."""
        cdef Py_ssize_t i = max(first, 0)
        while i < self.size and entries > 0:
            entries -= self.entries[i].count
            i += 1
        return i

    def is_long(self, Py_ssize_t first, Py_ssize_t stop, int64_t least, int64_t most):
        """Return whether a page of at most `most` bytes has more than `least` entries."""
        cdef Py_ssize_t i
        for i in range(max(first, 0), min(stop, self.size)):
            if self.entries[i].count > least and self.entries[i].unpacked <= most:
                return True
        return False

    def assign_rows(self, Py_ssize_t first, starts, sizes, rows, bint flat):
        """Assign the rows of the offset index to the pages from `first` on.

        Return False if the index contradicts the pages.
        """
        cdef Py_ssize_t i = first
        cdef int64_t start, size, number
        if first < 0 or self.size - first != len(starts):
            return False
        for start, size, number in zip(starts, sizes, rows):
            if self.entries[i].offset != start or (flat and self.entries[i].count != number):
                return False
            self.entries[i].rows = number
            i += 1
        return True

    def rows(self, Py_ssize_t first, Py_ssize_t stop):
        """Return the number of rows of each page according to the offset index; None if no index was assigned."""
        cdef Py_ssize_t i
        for i in range(max(first, 0), min(stop, self.size)):
            if self.entries[i].rows >= 0:
                return [self.entries[i].rows for i in range(max(first, 0), min(stop, self.size))]
        return None

    def find_group_end(self, Py_ssize_t first, Py_ssize_t stop, int64_t most):
        """Return the end of the pages from `first` on that `open` can process together.

        These pages have one layout. They end with the page at which their size reaches `most` bytes.
        """
        cdef Py_ssize_t i = first
        cdef int64_t held = 0
        cdef PageEntry *one
        cdef PageEntry *shared
        if not 0 <= first < stop <= self.size:
            raise IndexError("there are no pages")
        shared = self.entries + first
        while i < stop:
            one = self.entries + i
            if held >= most or one.kind != shared.kind or one.encoding != shared.encoding:
                break
            if one.kind == DATA and (one.definition != shared.definition or one.repetition != shared.repetition):
                break
            held += one.unpacked
            i += 1
        return i

    def uncompressed_size(self, Py_ssize_t first, Py_ssize_t stop):
        """Return the uncompressed size of the pages in bytes."""
        cdef Py_ssize_t i
        cdef int64_t total = 0
        for i in range(max(first, 0), min(stop, self.size)):
            total += self.entries[i].unpacked
        return total

    def stored_size(self, Py_ssize_t first, Py_ssize_t stop):
        """Return the stored size of the pages in bytes."""
        cdef Py_ssize_t i
        cdef int64_t total = 0
        for i in range(max(first, 0), min(stop, self.size)):
            total += self.entries[i].stored
        return total

    def encoding(self, Py_ssize_t page):
        """Return the number of the encoding of a page."""
        if not 0 <= page < self.size:
            raise IndexError(f"page {page} is out of range for {self.size} pages")
        return self.entries[page].encoding

    def verify(self, Py_ssize_t first, Py_ssize_t stop, crc32):
        """Return whether the stored bytes match their checksums, computed with `crc32`. Pages without a checksum match.
        """
        cdef Py_ssize_t i
        cdef PageEntry *page
        for i in range(max(first, 0), min(stop, self.size)):
            page = self.entries + i
            if page.has_crc and <uint32_t> crc32(
                PyMemoryView_FromMemory(<char *> page.body, page.stored, PyBUF_READ)
            ) != page.crc:
                return False
        return True

    def dictionary(self, unpack):
        """Return (number of values, bytes) of the dictionary in the first page, decompressed as in `open`; None if
        unusual.
        """
        cdef PageEntry *page = self.entries
        if not self.has_dictionary or page.encoding not in (PLAIN, PLAIN_DICTIONARY):
            return None
        return page.count, unpack(
            [PyMemoryView_FromMemory(<char *> page.body, page.stored, PyBUF_READ)], [page.unpacked]
        )[0]

    def open(self, Py_ssize_t first, Py_ssize_t stop, int repetition, int definition, unpack):
        """Return the repetition levels, definition levels and values of data pages of one layout as three runs.

        Absent levels are None. `repetition` and `definition` are the highest levels. `unpack(pages, sizes)`
        decompresses pages; it is None for uncompressed pages. Return None if a page is invalid.
        """
        cdef Py_ssize_t i
        cdef PageEntry *page
        cdef int64_t clear
        cdef bint second
        cdef list packed, sizes, places
        cdef PageRun values = PageRun(), one = None, two = None
        cdef const uint8_t[::1] made
        if not 0 <= first < stop <= self.size:
            raise IndexError("there are no pages")
        second = self.entries[first].kind == DATA_V2
        if self.entries[first].kind == DICTIONARY:
            return None
        if not second:
            if (repetition and self.entries[first].repetition != RLE) or (
                definition and self.entries[first].definition != RLE
            ):
                return None
        else:
            one, two = PageRun(), PageRun()
        packed, sizes, places = [], [], []
        for i in range(first, stop):
            page = self.entries + i
            clear = 0
            if second:
                clear = <int64_t> page.repetition + page.definition
                if page.repetition < 0 or page.definition < 0 or clear > page.stored or clear > page.unpacked:
                    return None
                one.add(page.body, page.repetition, page.count)
                two.add(page.body + page.repetition, page.definition, page.count)
            values.add(page.body + clear, page.stored - clear, page.count)
            if second and (not page.compressed or not (page.stored - clear or page.unpacked - clear)):
                continue
            if unpack is None:
                if page.stored != page.unpacked:
                    return None
                continue
            places.append(i - first)
            sizes.append(page.unpacked - clear)
            packed.append(PyMemoryView_FromMemory(<char *> page.body + clear, page.stored - clear, PyBUF_READ))
        # The owners of the pages must live as long as the runs.
        owners = list(self.owners)
        if packed:
            results = unpack(packed, sizes)
            owners.append(results)
            for i, result in zip(places, results):
                made = result
                values.parts[i].data = &made[0] if made.shape[0] else NULL
                values.parts[i].size = made.shape[0]
        values.owners = owners
        if second:
            one.owners = two.owners = owners
            return one if repetition else None, two if definition else None, values
        if repetition:
            one, values = values.split()
        if definition:
            two, values = values.split()
        return one, two, values
