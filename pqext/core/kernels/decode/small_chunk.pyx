# cython: language_level=3
"""Decode a column chunk of a few kilobytes in one call, for files with many small chunks.

The leaf has no repetition, and pages are PLAIN or dictionary-encoded. Other or invalid chunks are detected but not
diagnosed: the general path decodes them and raises the error.
"""
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve, take
from pqext.core.kernels.encodings.byte_array cimport ByteArrayBuilder
from pqext.core.kernels.encodings.levels cimport spread_values
from pqext.core.kernels.decode.page_header cimport DATA_V2, DICTIONARY, PageEntry
from pqext.core.kernels.decode.page_table cimport PageTable
from pqext.core.kernels.encodings.rle cimport page_flags, page_indices, page_values

cdef enum:
    OK = 0

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    RLE_DICTIONARY = 8


cdef class SmallChunks:
    """Decoder for the chunks of one leaf.

    `width` is the size of a value, 0 for byte arrays. `boolean` values are stored as bits and decoded to bytes. An
    `optional` leaf has definition levels 0 and 1. A chunk may take at most `room` bytes. If `exact`, chunks are unusual
    if they have unexplained bytes, or pages whose headers can be verified only with other pages.
    """
    cdef PageTable pages
    cdef int width
    cdef bint boolean
    cdef bint optional
    cdef int64_t room
    cdef bint exact

    def __cinit__(self, limits, int width, bint boolean, bint optional, int64_t room, bint exact=False):
        if width < 0 or room < 0 or room > 0x7FFFFFFF:
            raise ValueError("the width or the size of the leaf is out of range")
        self.pages = PageTable(limits)
        self.width = width
        self.boolean = boolean
        self.optional = optional
        self.room = room
        self.exact = exact

    def decode(self, data, Py_ssize_t count, unpack, crc32):
        """Decode the `count` slots of the chunk in `data` to (data pages, validity, values, offsets); None if it is
        unusual.

        `validity` has a bit per slot, and is None if all slots have values. `offsets` is None for a fixed width.
        `unpack` decompresses a page; its result is used before the next call. Checksums are verified with `crc32`
        unless it is None.
        """
        cdef const uint8_t[::1] held = data
        cdef Decoding work
        if count < 1 or not held.shape[0] or count * <int64_t> (self.width + 5) > self.room:
            return None
        work = Decoding.__new__(Decoding)
        work.leaf = self
        work.builder = None if self.width else ByteArrayBuilder(None, <int32_t> self.room)
        if work.start(count) != OK:
            raise MemoryError("out of memory for values")
        return work.run(&held[0], held.shape[0], count, unpack, crc32)


cdef class Decoding:
    """State of the decoding of one chunk."""
    cdef SmallChunks leaf
    cdef ByteArrayBuilder builder
    cdef Bytes values
    cdef Bytes flags
    cdef Bytes indices
    cdef Bytes ends              # ends of the byte arrays in a dictionary
    cdef Bytes entries           # bytes or values of the dictionary
    cdef Py_ssize_t entry_count
    cdef bint has_dictionary
    cdef Py_ssize_t slots
    cdef Py_ssize_t nulls
    cdef int64_t data_pages

    def __dealloc__(self):
        bytes_free(&self.values)
        bytes_free(&self.flags)
        bytes_free(&self.indices)
        bytes_free(&self.ends)
        bytes_free(&self.entries)

    cdef int start(self, Py_ssize_t count) noexcept nogil:
        if self.leaf.width and bytes_reserve(&self.values, <size_t> count * self.leaf.width) != 0:
            return -1
        return bytes_reserve(&self.flags, <size_t> count) if self.leaf.optional else OK

    cdef object run(self, const uint8_t *start, Py_ssize_t size, Py_ssize_t count, unpack, crc32):
        cdef const uint8_t *p = start
        cdef const uint8_t *end = start + size
        cdef PageEntry page
        cdef int64_t clear
        cdef const uint8_t *body
        cdef Py_ssize_t length
        cdef const uint8_t[::1] made
        cdef bint is_first = True
        while self.slots < count:
            if p >= end or self.leaf.pages.read_page(start, p, end, end - p, &page) != OK:
                return None
            p = page.body + page.stored
            if page.unpacked > self.leaf.room or (page.kind == DICTIONARY and not is_first):
                return None
            is_first = False
            if crc32 is not None and page.has_crc:
                if <uint32_t> crc32(PyMemoryView_FromMemory(<char *> page.body, page.stored, PyBUF_READ)) != page.crc:
                    return None
            clear = 0
            if page.kind == DATA_V2:
                clear = <int64_t> page.repetition + page.definition
                if page.repetition < 0 or page.definition < 0 or clear > page.stored or clear > page.unpacked:
                    return None
            body, length = page.body + clear, <Py_ssize_t> (page.stored - clear)
            if page.kind == DATA_V2 and (not page.compressed or not (length or page.unpacked - clear)):
                pass
            elif unpack is None:
                if page.stored != page.unpacked:
                    return None
            else:
                made = unpack(PyMemoryView_FromMemory(<char *> body, length, PyBUF_READ), page.unpacked - clear)
                body, length = &made[0] if made.shape[0] else start, made.shape[0]
            if page.kind == DICTIONARY:
                if self.keep_dictionary(&page, body, length) != OK:
                    return None
            elif page.count > count - self.slots or self.add_page(&page, body, length) != OK:
                return None
            else:
                self.data_pages += 1
        if self.leaf.exact and (p != end or (self.has_dictionary and self.data_pages != 1)):
            return None
        validity = None
        if self.nulls:
            self.pack(count)
            validity = take(&self.flags)
        if self.builder is not None:
            offsets, values, _ = self.builder.finish()
            return self.data_pages, validity, values, offsets
        self.values.size = <size_t> count * self.leaf.width
        return self.data_pages, validity, take(&self.values), None

    cdef void pack(self, Py_ssize_t count) noexcept nogil:
        """Pack flags of one byte each into bits, in place."""
        cdef uint8_t *flags = self.flags.data
        cdef uint8_t byte
        cdef Py_ssize_t i, bit
        for i in range((count + 7) // 8):
            byte = 0
            for bit in range(min(8, count - 8 * i)):
                byte |= flags[8 * i + bit] << bit
            flags[i] = byte
        self.flags.size = <size_t> (count + 7) // 8

    cdef int keep_dictionary(self, PageEntry *page, const uint8_t *body, size_t size) noexcept nogil:
        cdef size_t at = 0
        cdef uint32_t length = 0
        cdef int32_t i
        cdef int32_t *ends
        if page.encoding != PLAIN and page.encoding != PLAIN_DICTIONARY:
            return -1
        self.has_dictionary = True
        self.entry_count = page.count
        if self.leaf.boolean:
            return -1
        if self.leaf.width:
            if <size_t> page.count * <size_t> self.leaf.width > size:
                return -1
            if self.leaf.exact and <size_t> page.count * <size_t> self.leaf.width != size:
                return -1
            if bytes_reserve(&self.entries, size) != 0:
                return -1
            if size:
                memcpy(self.entries.data, body, size)
            return OK
        if <size_t> page.count * 4 > size:
            return -1
        if bytes_reserve(&self.ends, (<size_t> page.count + 1) * 4) != 0 or bytes_reserve(&self.entries, size + 32) != 0:
            return -1
        memset(self.entries.data, 0, self.entries.capacity)
        ends = <int32_t *> self.ends.data
        ends[0] = 0
        for i in range(page.count):
            if size - at < 4:
                return -1
            memcpy(&length, body + at, 4)
            at += 4
            if length > size - at:
                return -1
            memcpy(self.entries.data + ends[i], body + at, length)
            at += length
            ends[i + 1] = ends[i] + <int32_t> length
        return -1 if self.leaf.exact and at != size else OK

    cdef int add_page(self, PageEntry *page, const uint8_t *body, size_t size) noexcept nogil:
        """Add the slots of a data page. In version 1, the uncompressed bytes begin with the levels."""
        cdef const uint8_t *levels = NULL
        cdef size_t level_bytes = 0
        cdef uint32_t length = 0
        cdef int64_t ones = page.count
        cdef uint8_t *flags = NULL
        cdef int status
        if self.leaf.exact and self.has_dictionary == (page.encoding == PLAIN):
            return -1  # the encoding in the header may be incorrect
        if self.leaf.exact and page.kind == DATA_V2 and (page.definition or page.repetition):
            return -1  # the lengths of the levels may be incorrect
        if self.leaf.optional:
            if page.kind == DATA_V2:
                levels, level_bytes = page.body + page.repetition, page.definition
            else:
                if page.definition != RLE or size < 4:
                    return -1
                memcpy(&length, body, 4)
                if length > size - 4:
                    return -1
                levels, level_bytes = body + 4, length
                body += 4 + length
                size -= 4 + length
            flags = self.flags.data + self.slots
            if page.count and page_flags(levels, level_bytes, page.count, flags, &ones) != OK:
                return -1
            if ones == page.count:
                flags = NULL
        if self.leaf.width:
            status = self.add_fixed(page, body, size, ones, flags)
        else:
            status = self.add_byte_arrays(page, body, size, ones, flags)
        self.slots += page.count
        self.nulls += <Py_ssize_t> (page.count - ones)
        self.flags.size = <size_t> self.slots
        return status

    cdef int add_fixed(
        self, PageEntry *page, const uint8_t *body, size_t size, int64_t ones, const uint8_t *flags
    ) noexcept nogil:
        cdef int width = self.leaf.width
        cdef uint8_t *target = self.values.data + <size_t> self.slots * width
        cdef int64_t i
        if page.encoding == PLAIN:
            if self.leaf.boolean:
                if <int64_t> size < (ones + 7) // 8 or (self.leaf.exact and <int64_t> size != (ones + 7) // 8):
                    return -1
                for i in range(ones):
                    target[i] = body[i >> 3] >> (i & 7) & 1
            else:
                if size // <size_t> width < <size_t> ones or (self.leaf.exact and size != <size_t> ones * width):
                    return -1
                memcpy(target, body, <size_t> ones * width)
        elif page.encoding == RLE_DICTIONARY or page.encoding == PLAIN_DICTIONARY:
            if not self.has_dictionary:
                return -1
            if (ones or size) and page_values(
                body, size, <Py_ssize_t> ones, <uint32_t> self.entry_count, self.entries.data, width, target
            ) != OK:
                return -1
        else:
            return -1
        if flags != NULL:
            spread_values(target, width, <Py_ssize_t> ones, flags, page.count)
        return OK

    cdef int add_byte_arrays(
        self, PageEntry *page, const uint8_t *body, size_t size, int64_t ones, const uint8_t *flags
    ) noexcept nogil:
        cdef size_t before = self.builder.data.size
        cdef int status
        if page.encoding == PLAIN:
            status = self.builder._append_plain(body, size, flags, page.count)
            if status == OK and self.leaf.exact and self.builder.data.size - before + 4 * <size_t> ones != size:
                return -1
            return status
        if (page.encoding != RLE_DICTIONARY and page.encoding != PLAIN_DICTIONARY) or not self.has_dictionary:
            return -1
        if bytes_reserve(&self.indices, <size_t> ones * 4 + 4) != 0:
            return -1
        if (ones or size) and page_indices(
            body, size, <Py_ssize_t> ones, <uint32_t> self.entry_count, <int32_t *> self.indices.data
        ) != OK:
            return -1
        return self.builder._append_lookup(
            self.entries.data, self.entries.capacity, <int32_t *> self.ends.data, self.entry_count, <int32_t *> self.indices.data,
            <Py_ssize_t> ones, flags, page.count,
        )
