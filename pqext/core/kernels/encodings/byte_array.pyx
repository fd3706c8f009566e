# cython: language_level=3
"""Decode variable-length values, PLAIN byte arrays and dictionary look-ups, directly into Arrow offsets and data."""
cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.bitpack cimport load64
from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.core.kernels.encodings.page_run cimport PagePart, PageRun

from pqext.core.base.errors import ArrayLimitError, CorruptFileError

cdef enum:
    OK = 0
    TRUNCATED = -1
    OUT_OF_MEMORY = -2
    TOO_LARGE = -3
    OUT_OF_RANGE = -4
    NEGATIVE = -5

    PADDING = 32
    ROUGH = 1 << 20  # sizes up to this are not computed exactly
    SIMILAR = 16  # difference of lengths up to which sizes are not computed exactly
    MOST_EXPECTED = 16  # bytes per slot that are allocated in advance, like the size of a view


cdef inline uint32_t load32(const uint8_t *p) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, p, 4)
    return word


cdef inline void copy(uint8_t *target, const uint8_t *source, size_t length, size_t source_left) noexcept nogil:
    """Copy `length` bytes to a target with room for at least 32 bytes.

    Most values are short, and fixed sizes are faster.
    """
    if length <= 16 and source_left >= 16:
        memcpy(target, source, 16)
    elif length <= 32 and source_left >= 32:
        memcpy(target, source, 32)
    elif length:
        memcpy(target, source, length)


cdef int64_t total_length(
    const int32_t *ends, uint32_t entries, const int32_t *indices, Py_ssize_t count
) noexcept nogil:
    """Return the number of bytes of the values that `indices` select. Indices out of range select nothing."""
    cdef Py_ssize_t i
    cdef uint32_t index
    cdef int64_t total = 0
    for i in range(count):
        index = <uint32_t> indices[i]
        if index < entries:
            total += ends[index + 1] - ends[index]
    return total


cdef enum:
    GROWN_SLOWLY = 32 << 20  # bytes from which a buffer grows by a quarter, because it is copied while both exist


@cython.no_gc_clear  # what is freed depends on who lent the memory
cdef class ByteArrayBuilder:
    """Builder of a BYTE_ARRAY leaf that collects its slots over many pages as 32-bit offsets and contiguous data.

    `finish()` returns (offsets, data, slots); `offsets` has slots + 1 int32 values. `take`, if any, is called with the
    number of bytes before they are copied. More than `limit` bytes of data raise ``ArrayLimitError``. `allocate(size)`,
    if any, returns a writable buffer for data, initially of `expected` bytes, and for offsets, initially of `slots`
    slots.
    """
    def __cinit__(self, take=None, int32_t limit=0x7FFFFFFF, allocate=None, size_t expected=0, size_t slots=0):
        cdef int32_t zero = 0
        if limit < 0:
            raise ValueError("the limit must not be negative")
        self.allocating = allocate
        self.expected = expected
        self.expected_slots = slots + 1
        self.limit = limit
        self.taking = take
        if bytes_append(&self.offsets, &zero, 4) != 0:
            raise MemoryError("out of memory for byte array offsets")

    def __dealloc__(self):
        if self.lent_offsets is None:
            bytes_free(&self.offsets)
        if self.lent is None:
            bytes_free(&self.data)

    cdef int _make_room(self, size_t more, size_t slots) except -1:
        """Make room for `more` bytes of data, including padding after values, and for `slots` offsets.

        Callers reserve all bytes that they append, because memory from `allocate` must not be grown by `bytes_reserve`.
        """
        if self.allocating is None:
            return 0
        self.lent = self._lend(&self.data, self.lent, more + PADDING, self.expected)
        self.lent_offsets = self._lend(&self.offsets, self.lent_offsets, slots * 4, self.expected_slots * 4)
        return 0

    cdef object _lend(self, Bytes *bytes, object owner, size_t more, size_t expected):
        cdef size_t wanted, used, grown
        cdef uint8_t[::1] made
        if owner is not None and more <= bytes.capacity - bytes.size:
            return owner
        if more > <size_t> 0x7FFFFFFFFFFFFFFF - bytes.size:
            raise MemoryError("out of memory for byte array values")
        grown = 2 * bytes.capacity if bytes.capacity < GROWN_SLOWLY else bytes.capacity + bytes.capacity // 4
        wanted = max(bytes.size + more, grown, expected)
        lent = self.allocating(wanted)
        made = lent
        if <size_t> made.shape[0] < wanted:
            raise MemoryError("out of memory for byte array values")
        if bytes.size:
            memcpy(&made[0], bytes.data, bytes.size)
        used = bytes.size
        if owner is None:
            bytes_free(bytes)
        bytes.data, bytes.size, bytes.capacity = &made[0], used, wanted
        return lent

    @property
    def room(self):
        """Number of data bytes that can still be appended."""
        return self.limit - self.data.size

    def claim(self, size):
        """Announce that `size` bytes are about to be allocated."""
        if self.taking is not None and size:
            self.taking(size)

    cdef int _append_plain(self, const uint8_t *p, size_t size, const uint8_t *present, Py_ssize_t slots) noexcept nogil:
        cdef size_t at = 0
        cdef uint32_t length
        cdef Py_ssize_t i
        cdef int32_t *offset
        # All values fit into the page's own bytes, so this reserves no more than the page holds.
        if bytes_reserve(&self.offsets, <size_t> slots * 4) != 0 or bytes_reserve(&self.data, size + 32) != 0:
            return OUT_OF_MEMORY
        offset = <int32_t *> (self.offsets.data + self.offsets.size)
        for i in range(slots):
            if present == NULL or present[i]:
                if size - at < 4:
                    return TRUNCATED
                length = load32(p + at)
                at += 4
                if length > size - at:
                    return TRUNCATED
                copy(self.data.data + self.data.size, p + at, length, size - at)
                self.data.size += length
                at += length
            if self.data.size > self.limit:
                return TOO_LARGE
            offset[i] = <int32_t> self.data.size
        self.offsets.size += <size_t> slots * 4
        return OK

    cdef int _append_pages(
        self, const PagePart *parts, const uint8_t *present, const int64_t *slots, Py_ssize_t pages
    ) noexcept nogil:
        cdef Py_ssize_t i
        cdef int status
        for i in range(pages):
            status = self._append_plain(parts[i].data, parts[i].size, present, <Py_ssize_t> slots[i])
            if status != OK:
                return status
            if present != NULL:
                present += slots[i]
        return OK

    def append_plain(self, PageRun run not None, const uint8_t[::1] present, const int64_t[::1] slots):
        """Append the slots of PLAIN pages.

        `slots` has a number per page; `present` flags values, or is empty if all are present.
        """
        cdef int status
        cdef Py_ssize_t i
        cdef int64_t total = 0
        cdef size_t stored = 0
        cdef const uint8_t *flags = NULL
        if slots.shape[0] != run.size:
            raise ValueError("there must be one slot count per page")
        for i in range(run.size):
            if slots[i] < 0 or slots[i] > 0x7FFFFFFF or (not present.shape[0] and slots[i] != run.parts[i].count):
                raise ValueError("the slot count and the value count of a page are inconsistent")
            total += slots[i]
            stored += run.parts[i].size
        if present.shape[0]:
            if present.shape[0] < total:
                raise ValueError("there are fewer validity flags than slots")
            flags = &present[0]
        if not run.size:
            return
        self.claim(stored)
        self._make_room(stored, total)
        with nogil:
            status = self._append_pages(run.parts, flags, &slots[0], run.size)
        self._check(status)

    cdef int _append_lookup(
        self, const uint8_t *values, size_t total, const int32_t *ends, uint32_t entries,
        const int32_t *indices, Py_ssize_t count, const uint8_t *present, Py_ssize_t slots,
    ) noexcept nogil:
        """Append the entries at `indices`. `total` bytes of `values` can be read."""
        cdef size_t made = <size_t> total_length(ends, entries, indices, count)
        if made > self.limit - self.data.size:
            return TOO_LARGE
        return self._copy_entries(made, values, total, ends, entries, indices, count, present, slots)

    cdef int _copy_entries(
        self, size_t most, const uint8_t *values, size_t total, const int32_t *ends, uint32_t entries,
        const int32_t *indices, Py_ssize_t count, const uint8_t *present, Py_ssize_t slots,
    ) noexcept nogil:
        """Like `_append_lookup`, if the entries have at most `most` bytes, which do not exceed the limit."""
        cdef Py_ssize_t i, at = 0
        cdef uint32_t index
        cdef size_t start, length
        cdef uint8_t *target
        cdef int32_t end = <int32_t> self.data.size
        cdef int32_t *offset
        if bytes_reserve(&self.data, most + PADDING) != 0 or bytes_reserve(&self.offsets, <size_t> slots * 4) != 0:
            return OUT_OF_MEMORY
        target = self.data.data + self.data.size
        offset = <int32_t *> (self.offsets.data + self.offsets.size)
        for i in range(slots):
            if present == NULL or present[i]:
                if at >= count:
                    return TRUNCATED
                index = <uint32_t> indices[at]
                at += 1
                if index >= entries:
                    return OUT_OF_RANGE
                start = ends[index]
                length = ends[index + 1] - start
                copy(target, values + start, length, total - start)
                target += length
                end += <int32_t> length
            offset[i] = end
        self.data.size = end
        self.offsets.size += <size_t> slots * 4
        return OK

    def append_lookup(
        self, const uint8_t[::1] values, const int32_t[::1] ends, const int32_t[::1] indices,
        const uint8_t[::1] present, Py_ssize_t slots,
    ):
        """Append `slots` slots whose values are `indices` into a dictionary: contiguous `values` that end at `ends`."""
        cdef int status
        cdef const uint8_t *flags = NULL
        cdef const uint8_t *p = NULL
        cdef const int32_t *chosen = NULL
        cdef Py_ssize_t i
        cdef int64_t longest = 0, shortest = 0x7FFFFFFF, made
        cdef int64_t room = self.limit - self.data.size
        if ends.shape[0] < 1:
            raise ValueError("a dictionary must have one more offset than entries")
        for i in range(ends.shape[0] - 1):
            if ends[i] < 0 or ends[i] > ends[i + 1]:
                raise ValueError("dictionary offsets must ascend")
            longest = max(longest, ends[i + 1] - ends[i])
            shortest = min(shortest, ends[i + 1] - ends[i])
        if ends[ends.shape[0] - 1] > values.shape[0]:
            raise ValueError("dictionary offsets exceed the dictionary data")
        if present.shape[0]:
            if present.shape[0] < slots:
                raise ValueError("there are fewer validity flags than slots")
            flags = &present[0]
        if values.shape[0]:
            p = &values[0]
        if indices.shape[0]:
            chosen = &indices[0]
        made = longest * indices.shape[0]
        if made > room or (made > ROUGH and longest > 2 * shortest + SIMILAR):
            with nogil:
                made = total_length(&ends[0], <uint32_t> (ends.shape[0] - 1), chosen, indices.shape[0])
        self.claim(made)
        if made > room:
            self._check(TOO_LARGE)
        if slots > 0:  # the slots that follow probably have about as many bytes each
            self.expected = max(
                self.expected, <size_t> min(made * 17 // 16 // slots, MOST_EXPECTED) * self.expected_slots
            )
        self._make_room(made, slots)
        with nogil:
            status = self._copy_entries(
                made, p, values.shape[0], &ends[0], <uint32_t> (ends.shape[0] - 1), chosen, indices.shape[0], flags,
                slots,
            )
        self._check(status)

    cdef int _append_run(
        self, const uint8_t *values, size_t size, const int32_t *lengths, Py_ssize_t count,
        const uint8_t *present, Py_ssize_t slots,
    ) noexcept nogil:
        cdef Py_ssize_t i, at = 0
        cdef size_t total = 0
        cdef int32_t end = <int32_t> self.data.size
        cdef int32_t *offset
        for i in range(count):
            if lengths[i] < 0:
                return NEGATIVE
            total += <size_t> lengths[i]
        if total > size:
            return TRUNCATED
        if total > self.limit - self.data.size:
            return TOO_LARGE
        if bytes_reserve(&self.offsets, <size_t> slots * 4) != 0:
            return OUT_OF_MEMORY
        offset = <int32_t *> (self.offsets.data + self.offsets.size)
        if present == NULL:
            if slots > count:
                return TRUNCATED
            for i in range(slots):
                end += lengths[i]
                offset[i] = end
            at = slots
        else:
            for i in range(slots):
                if present[i]:
                    if at >= count:
                        return TRUNCATED
                    end += lengths[at]
                    at += 1
                offset[i] = end
        if at != count:
            return TRUNCATED
        # Each length has a slot, so the offsets end at the end of the data.
        if bytes_append(&self.data, values, total) != 0:
            return OUT_OF_MEMORY
        self.offsets.size += <size_t> slots * 4
        return OK

    def append_run(
        self, const uint8_t[::1] values, const int32_t[::1] lengths, const uint8_t[::1] present, Py_ssize_t slots,
    ):
        """Append `slots` slots whose values are contiguous in `values` and have the lengths `lengths`."""
        cdef int status
        cdef const uint8_t *flags = NULL
        cdef const uint8_t *p = NULL
        cdef const int32_t *sizes = NULL
        if present.shape[0]:
            if present.shape[0] < slots:
                raise ValueError("there are fewer validity flags than slots")
            flags = &present[0]
        if values.shape[0]:
            p = &values[0]
        if lengths.shape[0]:
            sizes = &lengths[0]
        self.claim(values.shape[0])
        self._make_room(values.shape[0], slots)
        with nogil:
            status = self._append_run(p, values.shape[0], sizes, lengths.shape[0], flags, slots)
        self._check(status)

    def pad(self):
        """Append zeros to the data, so that the last values can be copied with fixed sizes."""
        self._make_room(PADDING, 0)
        if self.lent is None and bytes_reserve(&self.data, PADDING) != 0:
            raise MemoryError("out of memory for byte array values")
        memset(self.data.data + self.data.size, 0, PADDING)
        self.data.size += PADDING

    def finish(self):
        """Return (offsets, data, slots). The builder is empty afterwards."""
        cdef Py_ssize_t slots = <Py_ssize_t> (self.offsets.size // 4) - 1
        offsets, self.lent_offsets = self._taken(&self.offsets, self.lent_offsets), None
        data, self.lent = self._taken(&self.data, self.lent), None
        return offsets, data, slots

    cdef object _taken(self, Bytes *bytes, object owner):
        cdef size_t size = bytes.size, capacity = bytes.capacity
        if owner is None:
            return take(bytes)
        bytes.data, bytes.size, bytes.capacity = NULL, 0, 0
        return owner[:size] if size > capacity // 2 else owner[:size].copy()

    cdef object _check(self, int status):
        if status == TRUNCATED:
            raise CorruptFileError("byte array data ends before the last value")
        if status == OUT_OF_RANGE:
            raise CorruptFileError("a dictionary index is outside the dictionary")
        if status == TOO_LARGE:
            raise ArrayLimitError(
                f"more than {self.limit} bytes of byte array values in one batch; "
                "read fewer rows at a time with iter_batches"
            )
        if status == NEGATIVE:
            raise CorruptFileError("a byte array has a negative length")
        if status == OUT_OF_MEMORY:
            raise MemoryError("out of memory for byte array values")


def encode_plain(const uint8_t[::1] data, const int32_t[::1] offsets):
    """Return the PLAIN encoding of the values between `offsets` of `data`: a 4-byte length precedes each value."""
    cdef Bytes out
    cdef Py_ssize_t i, count = offsets.shape[0] - 1
    cdef int32_t length
    cdef const uint8_t *p = NULL
    cdef uint8_t *target
    out.data = NULL
    out.size = out.capacity = 0
    if count < 0:
        raise ValueError("there must be one more offset than values")
    for i in range(count):
        if offsets[i] < 0 or offsets[i] > offsets[i + 1]:
            raise ValueError("offsets must ascend")
    if offsets[count] > data.shape[0]:
        raise ValueError("offsets exceed the data")
    if data.shape[0]:
        p = &data[0]
    if bytes_reserve(&out, <size_t> count * 4 + <size_t> (offsets[count] - offsets[0])) != 0:
        raise MemoryError("out of memory for byte array values")
    with nogil:
        target = out.data
        for i in range(count):
            length = offsets[i + 1] - offsets[i]
            memcpy(target, &length, 4)
            target += 4
            if length:
                memcpy(target, p + offsets[i], length)
                target += length
        out.size = target - out.data
    return take(&out)


def is_ascii(const uint8_t[::1] data):
    """Return whether all bytes are below 128."""
    cdef size_t i = 0, size = data.shape[0]
    cdef uint64_t seen = 0
    cdef const uint8_t *p = NULL
    if size:
        p = &data[0]
    with nogil:
        while size - i >= 64 and not seen & <uint64_t> 0x8080808080808080:
            seen |= (
                load64(p + i) | load64(p + i + 8) | load64(p + i + 16) | load64(p + i + 24)
                | load64(p + i + 32) | load64(p + i + 40) | load64(p + i + 48) | load64(p + i + 56)
            )
            i += 64
        if not seen & <uint64_t> 0x8080808080808080:
            while i < size:
                seen |= p[i]
                i += 1
    return not seen & <uint64_t> 0x8080808080808080
