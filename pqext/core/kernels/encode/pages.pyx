# cython: language_level=3
"""Encode all pages of a chunk in one call: levels, values, compression and headers (Data Pages)."""
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve
from pqext.core.kernels.encode.page_boundaries cimport PageBoundaries
from pqext.core.kernels.encode.page_header cimport (
    DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE_DICTIONARY, Header, put_page_header,
)
from pqext.core.kernels.encodings.rle_encode cimport put_indices, put_levels, put_same_levels

cdef enum:
    FIXED = 1
    BITS
    BYTE_ARRAYS
    OTHER

cdef enum:
    OK = 0
    OUT_OF_MEMORY = -1
    BAD_OFFSETS = -2

cdef enum:
    JOINED = 1 << 14  # smaller bodies are copied after their headers
    QUICK = 1 << 12   # fewer values than this are not worth letting other threads run meanwhile

cdef dict KINDS = {"fixed": FIXED, "bits": BITS, "bytes": BYTE_ARRAYS, "other": OTHER}


cdef int allocated(int status) except -1:
    if status == BAD_OFFSETS:
        raise ValueError("a byte array lies outside its buffer")
    if status != OK:
        raise MemoryError("out of memory for the page")
    return 0


cdef class Held:
    """Buffer that is retained until deallocation; NULL without a source."""

    def __cinit__(self, object source):
        if source is not None:
            PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
            self.held = True
            self.data = <const uint8_t *> self.view.buf
            self.size = self.view.len

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef class PageValues:
    cdef int kind, encoding, index_width
    cdef Py_ssize_t count, start, width, indexed
    cdef bint has_indices
    cdef Held first, second, indices
    cdef object source, encode

    def __init__(
        self, str kind, int encoding, Py_ssize_t count, Py_ssize_t start, Py_ssize_t width, object first,
        object second, object encode,
    ):
        cdef Py_ssize_t end = start + count, need = 0
        self.kind = KINDS[kind]
        self.encoding, self.count, self.start, self.width, self.encode = encoding, count, start, width, encode
        self.first, self.second, self.source = Held(first), Held(second), first
        if not 0 <= start <= 1 << 48 or not 0 <= count <= 1 << 48 or not 0 <= width <= 1 << 31:
            raise ValueError("the range of values exceeds the column")
        if self.kind == FIXED:
            # All three factors are bounded, so the product cannot overflow.
            if width and end > self.first.size // width:
                raise ValueError("the buffer is shorter than its values")
        elif self.kind == BITS:
            need = (end + 7) // 8
        elif self.kind == BYTE_ARRAYS:
            need = (end + 1) * 4
        if count and need > self.first.size:
            raise ValueError("the buffer is shorter than its values")

    def index(self, object indices, Py_ssize_t entries):
        cdef Py_ssize_t width = 0, most = entries - 1
        self.indices = Held(indices)
        self.indexed, self.has_indices = self.indices.size // 4, True
        if self.indexed > self.count:
            raise ValueError("there are more indices than values")
        while most > 0:
            width += 1
            most >>= 1
        if width > 31:
            raise ValueError(f"the dictionary has {entries} entries, more than the maximum of 2^31")
        self.index_width = width

    cdef object uncopied(self, Py_ssize_t first, Py_ssize_t last):
        return memoryview(self.source)[(self.start + first) * self.width : (self.start + last) * self.width]

    def page(self, Py_ssize_t first, Py_ssize_t last):
        cdef Bytes b
        if not 0 <= first <= last <= self.count:
            raise ValueError("the range of values exceeds the column")
        by_index = self.has_indices and last <= self.indexed
        if self.kind == OTHER and not by_index:
            return self.encoding, self.encode(first, last)
        b.data = NULL
        b.size = b.capacity = 0
        try:
            allocated(self.put(&b, first, last))
            return RLE_DICTIONARY if by_index else self.encoding, PyBytes_FromStringAndSize(<char *> b.data, b.size)
        finally:
            bytes_free(&b)

    cdef int put(self, Bytes *b, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        """Append the values of a page. OTHER values are not supported."""
        cdef Py_ssize_t count = last - first, size, i
        cdef const int32_t *offsets
        cdef int32_t length
        cdef uint8_t *target
        cdef uint8_t width
        if self.has_indices and last <= self.indexed:
            width = self.index_width
            if bytes_append(b, &width, 1) != 0:
                return OUT_OF_MEMORY
            return put_indices(b, <const int32_t *> self.indices.data + first, count, width)
        if count == 0:
            return OK
        if self.kind == FIXED:
            return bytes_append(b, self.first.data + (self.start + first) * self.width, count * self.width)
        if self.kind == BITS:
            return put_bits(b, self.first.data, self.start + first, count)
        offsets = <const int32_t *> self.first.data + self.start + first
        size = <Py_ssize_t> offsets[count] - offsets[0]
        if offsets[0] < 0 or size < 0 or offsets[count] > self.second.size:
            return BAD_OFFSETS
        if bytes_reserve(b, count * 4 + size) != 0:
            return OUT_OF_MEMORY
        target = b.data + b.size
        for i in range(count):
            if offsets[i + 1] < offsets[i] or offsets[i + 1] > offsets[count]:
                return BAD_OFFSETS
            length = offsets[i + 1] - offsets[i]
            memcpy(target, &length, 4)
            target += 4
            if length:
                memcpy(target, self.second.data + offsets[i], length)
                target += length
        b.size = target - b.data
        return OK


cdef int put_bits(Bytes *b, const uint8_t *bits, Py_ssize_t start, Py_ssize_t count) noexcept nogil:
    """Append `count` bits from position `start` on; the remaining bits of the last byte are zero."""
    cdef Py_ssize_t size = (count + 7) // 8, first = start // 8, last = (start + count - 1) // 8, i
    cdef int shift = start % 8
    cdef uint8_t *target
    cdef int word
    if bytes_reserve(b, size) != 0:
        return OUT_OF_MEMORY
    target = b.data + b.size
    if shift == 0:
        memcpy(target, bits + first, size)
    else:
        for i in range(size):
            word = bits[first + i] >> shift
            if first + i < last:
                word |= bits[first + i + 1] << (8 - shift)
            target[i] = <uint8_t> word
    if count % 8:
        target[size - 1] &= (1 << (count % 8)) - 1
    b.size += size
    return OK


cdef inline int width_of(int highest) noexcept nogil:
    cdef int width = 0
    while highest:
        width += 1
        highest >>= 1
    return width


cdef class Level:
    """Repetition or definition levels of a column: an array, or one level for all entries."""
    cdef Held array
    cdef const int16_t *levels
    cdef int16_t same
    cdef int width  # 0 if the column has no levels of this type

    def __init__(self, object levels, int highest, Py_ssize_t entries):
        if not 0 <= highest <= 0x7FFF:
            raise ValueError(f"the maximum level must be from 0 to 32,767, not {highest}")
        self.width = width_of(highest)
        if levels is None or isinstance(levels, int):
            self.same = 0 if levels is None else levels
            if not 0 <= self.same <= highest:
                raise ValueError(f"level {levels} is outside 0 to {highest}")
            return
        self.array = Held(levels)
        self.levels = <const int16_t *> self.array.data
        if self.array.size != entries * 2:
            raise ValueError("there must be one level per entry")

    cdef int put(self, Bytes *b, Py_ssize_t first, Py_ssize_t last, bint sized) noexcept nogil:
        """Append levels, after their length if `sized`; nothing if the column has none."""
        cdef size_t at = b.size, size
        cdef int status
        cdef int32_t length = 0
        if self.width == 0:
            return OK
        if sized and bytes_append(b, &length, 4) != 0:
            return OUT_OF_MEMORY
        if self.levels == NULL:
            status = put_same_levels(b, self.same, last - first, self.width)
        else:
            status = put_levels(b, self.levels + first, last - first, self.width)
        if sized and status == OK:
            size = b.size - at - 4
            length = <int32_t> size
            memcpy(b.data + at, &length, 4)
        return status


cdef class Levels:
    cdef Level repetition, definition
    cdef Py_ssize_t entries

    def __init__(
        self, object repetition, int max_repetition, object definition, int max_definition, Py_ssize_t entries
    ):
        self.repetition = Level(repetition, max_repetition, entries)
        self.definition = Level(definition, max_definition, entries)
        self.entries = entries

    def encode(self, Py_ssize_t first, Py_ssize_t last):
        cdef Bytes b
        cdef size_t middle
        if not 0 <= first <= last <= self.entries:
            raise ValueError("the range of entries exceeds the column")
        b.data = NULL
        b.size = b.capacity = 0
        try:
            allocated(self.repetition.put(&b, first, last, False))
            middle = b.size
            allocated(self.definition.put(&b, first, last, False))
            return (
                PyBytes_FromStringAndSize(<char *> b.data, middle) if self.repetition.width else None,
                PyBytes_FromStringAndSize(<char *> b.data + middle, b.size - middle) if self.definition.width else None,
            )
        finally:
            bytes_free(&b)


cdef class EncodedPages:
    def __dealloc__(self):
        bytes_free(&self.joined)
        bytes_free(&self.scratch)

    cdef int add(self, Header *h, object body, const uint8_t *data, Py_ssize_t size) except -1:
        """Append a header and the body at `data`; `body` owns the memory, if the memory can be retained."""
        cdef size_t before = self.joined.size
        h.stored = size
        if h.size > 0x7FFFFFFF or size > 0x7FFFFFFF:
            raise OverflowError("a page exceeds 2 GiB; write smaller pages")
        allocated(put_page_header(&self.joined, h))
        self.size += <int64_t> (self.joined.size - before) + size
        self.uncompressed += <int64_t> (self.joined.size - before) + h.size
        if size < JOINED or body is None:
            return allocated(bytes_append(&self.joined, data, size))
        self.flush()
        self.pieces.append(body)
        return 0

    cdef int flush(self) except -1:
        if self.joined.size:
            self.pieces.append(PyBytes_FromStringAndSize(<char *> self.joined.data, <Py_ssize_t> self.joined.size))
            self.joined.size = 0
        return 0


cdef object lent(const uint8_t *data, Py_ssize_t size):
    return PyMemoryView_FromMemory(<char *> data if size else <char *> b"", size, PyBUF_READ)


cdef int store(EncodedPages out, Header *h, object plain, const uint8_t *data, Py_ssize_t size,
               Py_ssize_t levels, object compress, object checksum) except -1:
    """Compress and append a page with its checksum. `plain` owns the `size` bytes at `data` if they can be retained.

    The first `levels` bytes are not compressed, as in pages of version 2.
    """
    cdef Held packed
    cdef object body = plain
    cdef Bytes whole
    h.size = size
    h.compressed = False
    whole.data = NULL
    whole.size = whole.capacity = 0
    try:
        if compress is not None:
            body = compress(lent(data + levels, size - levels))
            packed = Held(body)
            if h.kind != DATA_PAGE_V2:
                data, size = packed.data, packed.size
            elif packed.size < size - levels:
                h.compressed = True
                if levels:
                    allocated(bytes_append(&whole, data, levels) | bytes_append(&whole, packed.data, packed.size))
                    data, size, body = whole.data, whole.size, None
                else:
                    data, size = packed.data, packed.size
            else:
                body = plain
        if checksum is not None:
            h.has_crc = True
            h.crc = checksum(lent(data, size))
        if body is None and size >= JOINED:
            body = PyBytes_FromStringAndSize(<char *> data, size)
        return out.add(h, body, data, size)
    finally:
        bytes_free(&whole)


def encode_pages(
    PageBoundaries cuts, Levels levels, PageValues values, object dictionary, int version, object compress, object checksum
):
    cdef EncodedPages out = EncodedPages.__new__(EncodedPages)
    cdef Bytes *b = &out.scratch
    cdef Header h
    cdef Py_ssize_t page, entry, last_entry, first, last
    cdef int status
    cdef Held held
    cdef bint quick, has_levels = levels.repetition.width > 0 or levels.definition.width > 0, second = version == 2
    cdef int64_t before
    out.pieces = []
    if cuts.values[cuts.count] > values.count or cuts.entries[cuts.count] > levels.entries:
        raise ValueError("pages contain more values or entries than the chunk")
    h.has_crc = False
    if dictionary is not None:
        held = Held(dictionary[0])
        h.kind, h.entries, h.encoding = DICTIONARY_PAGE, dictionary[1], PLAIN
        store(out, &h, dictionary[0], held.data, held.size, 0, compress, checksum)
        out.dictionary_size = out.size
    for page in range(cuts.count):
        entry, last_entry = cuts.entries[page], cuts.entries[page + 1]
        first, last = cuts.values[page], cuts.values[page + 1]
        h.kind = DATA_PAGE_V2 if second else DATA_PAGE
        h.entries, h.nulls, h.rows = last_entry - entry, (last_entry - entry) - (last - first), \
            cuts.rows[page + 1] - cuts.rows[page]
        h.encoding = RLE_DICTIONARY if values.has_indices and last <= values.indexed else values.encoding
        out.by_index += h.encoding == RLE_DICTIONARY
        before = out.size
        b.size = 0
        h.repetition = h.definition = 0
        quick = last_entry - entry < QUICK
        if has_levels:
            if quick:
                status = levels.repetition.put(b, entry, last_entry, not second)
                h.repetition = b.size
                status |= levels.definition.put(b, entry, last_entry, not second)
            else:
                with nogil:
                    status = levels.repetition.put(b, entry, last_entry, not second)
                    h.repetition = b.size
                    status |= levels.definition.put(b, entry, last_entry, not second)
            allocated(status)
            h.definition = b.size - h.repetition
        if h.encoding != RLE_DICTIONARY and values.kind == OTHER:
            body = values.encode(first, last)
            held = Held(body)
            if not has_levels:
                store(out, &h, body, held.data, held.size, 0, compress, checksum)
                cuts.offsets[page], cuts.sizes[page] = before, out.size - before
                continue
            allocated(bytes_append(b, held.data, held.size))
        elif h.encoding != RLE_DICTIONARY and values.kind == FIXED and not has_levels and last > first:
            # Values without preceding levels are not copied.
            store(
                out, &h, values.uncopied(first, last) if compress is None else None,
                values.first.data + (values.start + first) * values.width, (last - first) * values.width, 0,
                compress, checksum,
            )
            cuts.offsets[page], cuts.sizes[page] = before, out.size - before
            continue
        else:
            if quick:
                status = values.put(b, first, last)
            else:
                with nogil:
                    status = values.put(b, first, last)
            allocated(status)
        store(out, &h, None, b.data, b.size, h.repetition + h.definition if second else 0, compress, checksum)
        cuts.offsets[page], cuts.sizes[page] = before, out.size - before
    out.flush()
    bytes_free(b)
    return out
