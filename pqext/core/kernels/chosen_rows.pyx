# cython: language_level=3
"""Single rows of many pages of a column without repetition, unpacked and decoded in one call without the interpreter.

Of pages that hold none of the rows nothing is touched. What is unusual or wrong is only recognised: it goes the way of
whole pages, which says what it is.
"""
from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport bytes_append, bytes_free, bytes_reserve, take
from pqext.core.kernels.page_header cimport DATA, DATA_V2, PageEntry
from pqext.core.kernels.page_table cimport PageTable
from pqext.core.kernels.rle cimport page_flags, page_indices_at, page_levels
from pqext.core.kernels.zstd cimport Context

cdef enum:
    OK = 0
    UNUSUAL = 1
    FULL = 2              # the values of byte arrays need more room

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9

    MOST_BYTES = 0x7FFFFFFF
    UNPACKED = 1 << 24    # bytes of the pages of one call, but that it takes a page at least
    ZSTD_SHIFT = 15       # a byte of zstd makes no more than so many, to the power of two


cdef class Chosen:
    """The first `count` of the rows at `places`, which ascend and are counted from the first page of a table.

    They are those of all pages that hold some, or of so many of them as unpack to no more than one call should hold.
    `width` is that of values, 0 for byte arrays; `boolean`: stored as bits and decoded to a byte each. The leaf has
    definition levels up to `highest`. `scratch` tells how many bytes it takes to decode them beside what they become.
    """
    def __cinit__(self, PageTable table not None, const int64_t[::1] places, int width, bint boolean, int highest):
        if width < 0 or highest < 0 or highest > 0x7FFF or (boolean and width != 1):
            raise ValueError("no such leaf")
        self.width, self.boolean, self.highest = width, boolean, highest
        while highest >> self.level_width:
            self.level_width += 1
        self.count = places.shape[0]
        self.places = &places[0] if self.count else NULL
        self.lender = places
        self.owners = list(table.owners)
        self.find(table)

    def __dealloc__(self):
        bytes_free(&self.held)
        bytes_free(&self.data)
        bytes_free(&self.flags)
        bytes_free(&self.chosen)

    cdef int find(self, PageTable table) except -1:
        """The pages that hold the rows."""
        cdef Py_ssize_t i, at = 0, first
        cdef int64_t base = 0, before = -1, held = 0
        cdef Part part
        for i in range(table.size):
            if at == self.count or held > UNPACKED:
                break
            first = at
            while at < self.count and self.places[at] < base + table.entries[i].count:
                if self.places[at] <= before:
                    raise ValueError("places must ascend within the pages'")
                before = self.places[at]
                at += 1
            if at > first:
                memset(&part, 0, sizeof(Part))
                part.page, part.base, part.first, part.stop = table.entries[i], base, first, at
                if bytes_append(&self.held, &part, sizeof(Part)) != 0:
                    raise MemoryError("pages")
                self.size += 1
                held += table.entries[i].unpacked
                self.entries = max(self.entries, <int64_t> table.entries[i].count)
                self.expected += <int64_t> (
                    <double> table.entries[i].unpacked * (at - first) / max(table.entries[i].count, 1)
                )
            base += table.entries[i].count
        if at < self.count and held <= UNPACKED:
            raise ValueError("places must ascend within the pages'")
        self.count = at
        self.parts = <Part *> self.held.data
        return 0

    def look(self, bint packed, bint zstd, crc32):
        """Look at the pages' forms, by `crc32` at their checksums; false where one is unusual.

        `packed`: by a codec; `zstd`: by this one, whose pages `decode` unpacks itself.
        """
        cdef Py_ssize_t i
        cdef Part *part
        cdef PageEntry *page
        cdef int64_t wanted, total = 0
        for i in range(self.size):
            part = self.parts + i
            page = &part.page
            if page.kind == DATA_V2:
                if page.repetition != 0 or page.definition < 0:
                    return False
                part.clear = page.definition
                if part.clear > <size_t> page.stored or part.clear > <size_t> page.unpacked:
                    return False
            elif page.kind != DATA or (self.highest and page.definition != RLE):
                return False
            if page.encoding not in (PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY, BYTE_STREAM_SPLIT):
                return False
            if crc32 is not None and page.has_crc:
                if <uint32_t> crc32(PyMemoryView_FromMemory(<char *> page.body, page.stored, PyBUF_READ)) != page.crc:
                    return False
            part.size = page.stored - part.clear
            wanted = page.unpacked - <int64_t> part.clear
            if not packed or (page.kind == DATA_V2 and (not page.compressed or not (part.size or wanted))):
                if <int64_t> part.size != wanted:
                    return False
                part.data = page.body + part.clear
            elif not zstd:
                total += wanted
            elif wanted > (<int64_t> part.size << ZSTD_SHIFT) + 64:
                return False
            else:
                self.unpacked = max(self.unpacked, wanted)
        self.scratch = self.unpacked + total + 2 * self.entries + 20 * self.count
        return True

    def unpack(self, function):
        """Unpack the pages, by a `function` of them and their sizes."""
        cdef Py_ssize_t i
        cdef Part *part
        cdef list pages = [], sizes = [], waiting = []
        cdef const uint8_t[::1] made
        for i in range(self.size):
            part = self.parts + i
            if part.data == NULL:
                pages.append(PyMemoryView_FromMemory(<char *> part.page.body + part.clear, part.size, PyBUF_READ))
                sizes.append(part.page.unpacked - <int64_t> part.clear)
                waiting.append(i)
        if not pages:
            return
        results = function(pages, sizes)
        self.owners.append(results)
        for i, result in zip(waiting, results):
            made = result
            self.parts[i].data = &made[0] if made.shape[0] else <const uint8_t *> self.held.data
            self.parts[i].size = made.shape[0]

    def decode(
        self, Context context, dictionary, int16_t[::1] levels, uint8_t[::1] validity, uint8_t[::1] values,
        int32_t[::1] ends, taking,
    ):
        """Fill `levels` (None: none are wanted), `validity` with a bit a row, and `values`, or `ends` for byte arrays.

        `dictionary` is a number of entries, their bytes, and their ends (None for a fixed width), or None. `taking` is
        asked before byte arrays take more memory. Gives the nulls and the bytes of byte arrays, None for what is
        unusual.
        """
        cdef const uint8_t[::1] entries
        cdef const int32_t[::1] limits
        cdef Py_ssize_t at = 0, rows = self.count
        cdef int status = OK
        cdef int64_t more
        if validity.shape[0] * 8 < rows or (levels is not None and levels.shape[0] != rows):
            raise ValueError("the outputs do not hold one value for each row")
        if (self.width and values.shape[0] != rows * self.width) or (not self.width and ends.shape[0] != rows + 1):
            raise ValueError("the outputs do not hold one value for each row")
        if self.highest > 1 and levels is None:
            raise ValueError("levels need room")
        if self.unpacked and context is None:
            raise ValueError("packed pages need what unpacks them")
        if not rows:
            return 0, b""
        if dictionary is not None:
            self.entry_count, entries, found = dictionary
            self.entry_data = &entries[0] if entries.shape[0] else NULL
            self.entry_size = entries.shape[0]
            if self.entry_count < 0:
                return None
            if found is not None:
                limits = found
                if self.width or limits.shape[0] != self.entry_count + 1:
                    return None
                self.entry_ends = &limits[0]
            elif not self.width or self.entry_count > entries.shape[0] // self.width:
                return None
        self.levels = &levels[0] if levels is not None else NULL
        self.validity = &validity[0]
        memset(self.validity, 0, (rows + 7) // 8)
        if self.width:
            self.values = &values[0]
        else:
            self.ends = &ends[0]
            memset(self.ends, 0, (rows + 1) * sizeof(int32_t))
        if self.unpacked:
            self.page_memory = context.room(self.unpacked)
        if bytes_reserve(&self.flags, 2 * self.entries + 2) != 0:
            raise MemoryError("pages")
        if bytes_reserve(&self.chosen, rows * (2 * sizeof(int64_t) + sizeof(int32_t))):
            raise MemoryError("places")
        self.needed = 0 if self.width else self.expected + self.expected // 4 + 1024
        while at < self.size:
            if self.needed:
                more = min(max(<int64_t> self.needed, <int64_t> self.room), MOST_BYTES - <int64_t> self.room)
                if more <= 0:
                    break
                taking(more)
                self.room += more
                self.needed = 0
                if bytes_reserve(&self.data, self.room - self.data.size) != 0:
                    raise MemoryError("byte array values")
            with nogil:
                while at < self.size:
                    status = self.page(context, self.parts + at)
                    if status != OK:
                        break
                    at += 1
            if status != OK and status != FULL:
                break
        if self.unpacked:
            context.let_go()
        if status != OK:
            return None
        if not self.width:
            self.add_up()
            return self.nulls, take(&self.data)
        return self.nulls, b""

    cdef void add_up(self) noexcept nogil:
        """Lengths become ends."""
        cdef Py_ssize_t i
        for i in range(self.count):
            self.ends[i + 1] += self.ends[i]

    cdef int page(self, Context context, const Part *part) noexcept nogil:
        """Decode the rows of one page; where the status is FULL nothing has been kept of them."""
        cdef const uint8_t *p = part.data
        cdef size_t size = part.size
        cdef const uint8_t *level_data = part.page.body
        cdef size_t level_size = part.clear, wanted
        cdef int64_t *places = <int64_t *> self.chosen.data
        cdef int64_t *slots = places + self.count
        cdef Py_ssize_t found
        cdef int status
        if p == NULL:
            wanted = part.page.unpacked - part.clear
            if wanted and (
                self.page_memory == NULL
                or not context.unpack(part.page.body + part.clear, part.size, self.page_memory, wanted)
            ):
                return UNUSUAL
            p, size = self.page_memory, wanted
        if self.highest and part.page.kind == DATA:
            if size < 4:
                return UNUSUAL
            level_size = p[0] | p[1] << 8 | p[2] << 16 | <uint32_t> p[3] << 24
            if level_size > size - 4:
                return UNUSUAL
            level_data = p + 4
            p, size = p + 4 + level_size, size - 4 - level_size
        found = self.present(part, level_data, level_size)
        if found < 0:
            return UNUSUAL
        if not self.page_values:
            status = OK
        elif part.page.encoding == PLAIN_DICTIONARY or part.page.encoding == RLE_DICTIONARY:
            status = self.look_up(part, p, size, places, slots, found)
        elif self.width == 0:
            status = self.byte_arrays(p, size, places, slots, found) if part.page.encoding == PLAIN else UNUSUAL
        else:
            status = self.fixed(part, p, size, places, slots, found)
        if status == OK:
            self.nulls += part.stop - part.first - found
        return status

    cdef Py_ssize_t present(self, const Part *part, const uint8_t *data, size_t size) noexcept nogil:
        """The places of values in the page and the rows they belong to; how many, or -1 for levels that are wrong."""
        cdef int64_t *places = <int64_t *> self.chosen.data
        cdef int64_t *slots = places + self.count
        cdef Py_ssize_t i, found = 0, entry
        cdef int64_t at = 0, values = 0, total = part.page.count
        cdef uint8_t *flags = self.flags.data
        cdef int16_t *levels = <int16_t *> self.flags.data
        if self.levels != NULL:
            if not self.highest:
                memset(self.levels + part.first, 0, (part.stop - part.first) * sizeof(int16_t))
            else:
                if page_levels(data, size, total, self.level_width, self.highest + 1, levels) != OK:
                    return -1
                for i in range(part.first, part.stop):
                    self.levels[i] = levels[self.places[i] - part.base]
                for entry in range(total):
                    flags[entry] = levels[entry] == self.highest
                    values += flags[entry]
                total, at, values = values, 0, 0
        elif self.highest and page_flags(data, size, total, flags, &total) != OK:
            return -1
        self.page_values = total
        if total == part.page.count:
            for i in range(part.first, part.stop):
                places[found] = self.places[i] - part.base
                slots[found] = i
                found += 1
        else:
            for i in range(part.first, part.stop):
                entry = self.places[i] - part.base
                while at < entry:
                    values += flags[at]
                    at += 1
                if flags[entry]:
                    places[found] = values
                    slots[found] = i
                    found += 1
        for i in range(found):
            self.validity[slots[i] >> 3] |= <uint8_t> (1 << (slots[i] & 7))
        if self.width and found < part.stop - part.first:
            memset(self.values + part.first * self.width, 0, (part.stop - part.first) * self.width)
        return found

    cdef int fixed(
        self, const Part *part, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots,
        Py_ssize_t found,
    ) noexcept nogil:
        """Values of a fixed width, as they are, as bits, or each byte of them with its like."""
        cdef Py_ssize_t i, byte, width = self.width
        cdef int64_t total = self.page_values
        cdef uint8_t *out = self.values
        if self.boolean and part.page.encoding == RLE:
            return self.flagged(p, size, places, slots, found)
        if self.boolean:
            if part.page.encoding != PLAIN or <int64_t> size < (total + 7) // 8:
                return UNUSUAL
            for i in range(found):
                out[slots[i]] = p[places[i] >> 3] >> (places[i] & 7) & 1
            return OK
        if part.page.encoding == BYTE_STREAM_SPLIT:
            if <int64_t> (size // <size_t> width) != total or size % <size_t> width:
                return UNUSUAL
            for i in range(found):
                for byte in range(width):
                    out[slots[i] * width + byte] = p[byte * total + places[i]]
            return OK
        if part.page.encoding != PLAIN or <int64_t> (size // <size_t> width) < total:
            return UNUSUAL
        if width == 8:
            for i in range(found):
                memcpy(out + slots[i] * 8, p + places[i] * 8, 8)
        elif width == 4:
            for i in range(found):
                memcpy(out + slots[i] * 4, p + places[i] * 4, 4)
        else:
            for i in range(found):
                memcpy(out + slots[i] * width, p + places[i] * width, width)
        return OK

    cdef int flagged(
        self, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots, Py_ssize_t found
    ) noexcept nogil:
        """Booleans in runs, behind the length of these."""
        cdef Py_ssize_t i
        cdef int64_t ones = 0
        cdef size_t length
        if size < 4:
            return UNUSUAL
        length = p[0] | p[1] << 8 | p[2] << 16 | <uint32_t> p[3] << 24
        if length > size - 4 or page_flags(p + 4, length, self.page_values, self.flags.data, &ones) != OK:
            return UNUSUAL
        for i in range(found):
            self.values[slots[i]] = self.flags.data[places[i]]
        return OK

    cdef int byte_arrays(
        self, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots, Py_ssize_t found
    ) noexcept nogil:
        """Byte arrays behind their lengths."""
        cdef Py_ssize_t i
        cdef int64_t value = 0
        cdef size_t at = 0, before = self.data.size
        cdef uint32_t length = 0
        for i in range(found):
            while True:
                if size - at < 4:
                    return UNUSUAL
                memcpy(&length, p + at, 4)
                at += 4
                if length > size - at:
                    return UNUSUAL
                value += 1
                if value > places[i]:
                    break
                at += length
            if length > self.room - self.data.size:
                self.needed = size + length
                self.data.size = before
                return FULL
            if length:
                memcpy(self.data.data + self.data.size, p + at, length)
                self.data.size += length
            self.ends[slots[i] + 1] = <int32_t> length
            at += length
        return OK

    cdef int look_up(
        self, const Part *part, const uint8_t *p, size_t size, const int64_t *places, const int64_t *slots,
        Py_ssize_t found,
    ) noexcept nogil:
        """Values that indices name in the dictionary."""
        cdef int32_t *indices = <int32_t *> (<int64_t *> self.chosen.data + 2 * self.count)
        cdef Py_ssize_t i, width = self.width
        cdef size_t length, before = self.data.size, total = 0
        cdef int32_t entry
        if page_indices_at(p, size, self.page_values, <uint32_t> self.entry_count, places, found, indices) != OK:
            return UNUSUAL
        if width:
            if width == 8:
                for i in range(found):
                    memcpy(self.values + slots[i] * 8, self.entry_data + <size_t> indices[i] * 8, 8)
            else:
                for i in range(found):
                    memcpy(self.values + slots[i] * width, self.entry_data + <size_t> indices[i] * width, width)
            return OK
        if self.entry_ends == NULL:
            return UNUSUAL
        for i in range(found):
            entry = indices[i]
            if self.entry_ends[entry] < 0 or self.entry_ends[entry + 1] < self.entry_ends[entry]:
                return UNUSUAL
            if <size_t> self.entry_ends[entry + 1] > self.entry_size:
                return UNUSUAL
            total += self.entry_ends[entry + 1] - self.entry_ends[entry]
        if total > self.room - before:
            self.needed = total
            return FULL
        for i in range(found):
            entry = indices[i]
            length = self.entry_ends[entry + 1] - self.entry_ends[entry]
            if length:
                memcpy(self.data.data + self.data.size, self.entry_data + self.entry_ends[entry], length)
                self.data.size += length
            self.ends[slots[i] + 1] = <int32_t> length
        return OK
