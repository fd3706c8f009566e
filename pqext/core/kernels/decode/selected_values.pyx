# cython: language_level=3
"""Select values of encoded pages by position, without decoding other values: values, lengths and flags.

Positions ascend, and are relative to the first value of a run of pages.
"""
from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve, take
from pqext.core.kernels.encodings.page_run cimport PagePart, PageRun

from pqext.core.base.errors import CorruptFileError

cdef extern from "pqext/core/kernels/portable.h" nogil:
    int lowest_bit "pqext_lowest_bit"(uint64_t word)

cdef enum:
    OK = 0
    SHORT = -1
    OUTSIDE = -2
    OUT_OF_MEMORY = -3


cdef check(int status):
    if status == SHORT:
        raise CorruptFileError("a page is too short for its values")
    if status == OUTSIDE:
        raise ValueError("positions must ascend and lie within the values of the pages")
    if status == OUT_OF_MEMORY:
        raise MemoryError("out of memory for byte array values")


cdef inline void put(uint8_t *target, const uint8_t *source, Py_ssize_t width) noexcept nogil:
    if width == 8:
        memcpy(target, source, 8)
    elif width == 4:
        memcpy(target, source, 4)
    else:
        memcpy(target, source, width)


cdef int _fixed(
    const PagePart *parts, Py_ssize_t pages, Py_ssize_t width, bint split, const int64_t *places, Py_ssize_t count,
    uint8_t *out,
) noexcept nogil:
    cdef Py_ssize_t i = 0, page, byte
    cdef int64_t base = 0, place
    for page in range(pages):
        if i == count:
            return OK
        if places[i] < base:
            return OUTSIDE
        if places[i] < base + parts[page].count:
            if parts[page].size // width < <size_t> parts[page].count:
                return SHORT
            if split and parts[page].size != <size_t> (parts[page].count * width):
                return SHORT
        while i < count and places[i] < base + parts[page].count:
            place = places[i] - base
            if place < 0 or (i and places[i] <= places[i - 1]):
                return OUTSIDE
            if split:
                for byte in range(width):
                    out[i * width + byte] = parts[page].data[byte * parts[page].count + place]
            else:
                put(out + i * width, parts[page].data + place * width, width)
            i += 1
        base += parts[page].count
    return OK if i == count else OUTSIDE


def select_fixed(PageRun run not None, Py_ssize_t width, bint split, const int64_t[::1] places, uint8_t[::1] out):
    """Fill `out` with the values at positions `places`, `width` bytes each, of PLAIN or BYTE_STREAM_SPLIT (`split`)
    pages.
    """
    cdef int status
    if width < 1 or out.shape[0] % width or out.shape[0] // width != places.shape[0]:
        raise ValueError("the output must have one value per position")
    if not places.shape[0]:
        return
    with nogil:
        status = _fixed(run.parts, run.size, width, split, &places[0], places.shape[0], &out[0])
    check(status)


cdef int _byte_arrays(
    const PagePart *parts, Py_ssize_t pages, const int64_t *places, Py_ssize_t count, Bytes *out
) noexcept nogil:
    cdef Py_ssize_t i = 0, page, value
    cdef int64_t base = 0
    cdef size_t at, size
    cdef uint32_t length
    cdef const uint8_t *p
    for page in range(pages):
        if i == count:
            return OK
        p, size, at = parts[page].data, parts[page].size, 0
        for value in range(parts[page].count):
            if i == count or places[i] >= base + parts[page].count:
                break
            if size - at < 4:
                return SHORT
            memcpy(&length, p + at, 4)
            if length > size - at - 4:
                return SHORT
            if places[i] == base + value:
                if bytes_reserve(out, <size_t> length + 4) != 0:
                    return OUT_OF_MEMORY
                memcpy(out.data + out.size, p + at, <size_t> length + 4)
                out.size += <size_t> length + 4
                i += 1
                if i < count and places[i] <= places[i - 1]:
                    return OUTSIDE
            elif places[i] < base + value:
                return OUTSIDE
            at += <size_t> length + 4
        base += parts[page].count
    return OK if i == count else OUTSIDE


def select_byte_arrays(PageRun run not None, const int64_t[::1] places):
    """Return the PLAIN byte arrays at positions `places`, with their length prefixes, as one PLAIN page."""
    cdef int status
    cdef Bytes out
    out.data = NULL
    out.size = out.capacity = 0
    if not places.shape[0]:
        return b""
    with nogil:
        status = _byte_arrays(run.parts, run.size, &places[0], places.shape[0], &out)
    if status != OK:
        bytes_free(&out)
    check(status)
    return take(&out)


def select_flags(const uint8_t[::1] flags, const int64_t[::1] entries, uint8_t[::1] present, int64_t[::1] places):
    """Select the flags of `entries`, and the positions of their values among the values of all flagged entries.

    Fill `present` with a flag for each entry, and the beginning of `places` with positions. Return the number of
    values.
    """
    cdef Py_ssize_t i, found = 0, at = 0
    cdef int64_t values = 0, entry
    cdef bint is_outside = False
    if present.shape[0] != entries.shape[0] or places.shape[0] != entries.shape[0]:
        raise ValueError("each output must have one value per entry")
    with nogil:
        for i in range(entries.shape[0]):
            entry = entries[i]
            if entry < at or entry >= flags.shape[0]:
                is_outside = True
                break
            while at < entry:
                values += flags[at] != 0
                at += 1
            present[i] = flags[entry] != 0
            if present[i]:
                places[found] = values
                found += 1
                values += 1
            at = entry + 1
    if is_outside:
        raise ValueError("entries must ascend and lie within the entries of the pages")
    return found


cdef inline uint64_t mask_word(const uint8_t[::1] bits, Py_ssize_t first, Py_ssize_t stop) noexcept nogil:
    """Return up to 64 bits of a mask, from bit `first` to bit `stop`, with bit `first` as the lowest."""
    cdef uint64_t word = 0, low = 0
    cdef Py_ssize_t at = first >> 3, size = ((min(stop, first + 64) + 7) >> 3) - at
    cdef int shift = first & 7
    memcpy(&low, &bits[at], min(size, 8))
    word = low >> shift  # little-endian, as the machines this runs on
    if size > 8:
        word |= <uint64_t> bits[at + 8] << (64 - shift)
    if stop - first < 64:
        word &= (<uint64_t> 1 << (stop - first)) - 1
    return word


def mask_positions(const uint8_t[::1] bits, Py_ssize_t offset, Py_ssize_t length, int64_t base, int64_t[::1] out):
    """Fill `out` with `base` plus the position of each bit that is set, among `length` bits from `offset` on.

    Raise ``ValueError`` unless the number of these bits is the size of `out`.
    """
    cdef Py_ssize_t i, stop = offset + length, count = 0, room = out.shape[0]
    cdef uint64_t word
    check_mask(bits, offset, length)
    with nogil:
        i = offset
        while i < stop and count <= room:
            word = mask_word(bits, i, stop)
            while word:
                if count < room:
                    out[count] = base + i - offset + lowest_bit(word)
                count += 1
                word &= word - 1
            i += 64
    if count != room:
        raise ValueError("the number of set bits differs from the length of the output")


def filter_fixed(
    const uint8_t[::1] values, Py_ssize_t width, const uint8_t[::1] bits, Py_ssize_t offset, uint8_t[::1] out
):
    """Copy the values of `width` bytes whose bit is set to `out`. The first value has bit `offset`.

    Raise ``ValueError`` unless the number of set bits is the number of values in `out`.
    """
    if width <= 0 or values.shape[0] % width or out.shape[0] % width:
        raise ValueError("the buffers must contain complete values")
    cdef Py_ssize_t i, first, length = values.shape[0] // width, count = 0, room = out.shape[0] // width
    cdef uint64_t word
    check_mask(bits, offset, length)
    with nogil:
        i = 0
        while i < length and count <= room:
            word = mask_word(bits, offset + i, offset + length)
            if word == <uint64_t> -1 and count + 64 <= room:
                memcpy(&out[count * width], &values[i * width], 64 * width)
                count += 64
            else:
                while word:
                    if count < room:
                        put(&out[count * width], &values[(i + lowest_bit(word)) * width], width)
                    count += 1
                    word &= word - 1
            i += 64
    if count != room:
        raise ValueError("the number of set bits differs from the length of the output")


cdef check_mask(const uint8_t[::1] bits, Py_ssize_t offset, Py_ssize_t length):
    if offset < 0 or length < 0 or length > 8 * bits.shape[0] - offset:
        raise ValueError("the bit range exceeds the buffer")


def select_entries(
    const int16_t[::1] repetition, const int16_t[::1] definition, const int64_t[::1] counts, const int64_t[::1] rows,
    int slot_level, int value_level, int16_t[::1] kept_repetition, int16_t[::1] kept_definition, uint8_t[::1] present,
    int64_t[::1] places, int64_t[::1] page_values,
):
    """Select the levels of `rows` of lists, flags of their slots, and the positions of their values.

    Pages have `counts` entries. A row begins at repetition level 0, and `rows` ascend. All outputs have room for all
    entries, and `page_values` receives the number of values of each page. Return the numbers of entries, slots and
    values.
    """
    cdef Py_ssize_t i = 0, page, end = 0, total = repetition.shape[0], kept = 0, slots = 0, found = 0, following = 0
    cdef int64_t row = -1, values = 0, before
    cdef bint wanted = False
    for page in range(counts.shape[0]):
        if counts[page] < 0 or counts[page] > total - end:
            raise ValueError("the entry counts of the pages must add up to the number of levels")
        end += counts[page]
    if end != total or definition.shape[0] != total or page_values.shape[0] != counts.shape[0]:
        raise ValueError("the entry counts of the pages must add up to the number of levels")
    if min(kept_repetition.shape[0], kept_definition.shape[0], present.shape[0], places.shape[0]) < total:
        raise ValueError("the outputs must have room for all entries")
    with nogil:
        for page in range(counts.shape[0]):
            before = values
            end = i + counts[page]
            while i < end:
                if repetition[i] == 0:
                    row += 1
                    wanted = following < rows.shape[0] and rows[following] == row
                    following += wanted
                if wanted:
                    kept_repetition[kept] = repetition[i]
                    kept_definition[kept] = definition[i]
                    kept += 1
                    if definition[i] >= slot_level:
                        present[slots] = definition[i] == value_level
                        slots += 1
                        if definition[i] == value_level:
                            places[found] = values
                            found += 1
                values += definition[i] == value_level
                i += 1
            page_values[page] = values - before
    if following != rows.shape[0]:
        raise ValueError("rows must ascend and lie within the rows of the pages")
    return kept, slots, found


def select_levels(
    const int16_t[::1] levels, const int64_t[::1] counts, const int64_t[::1] entries, int slot_level, int value_level,
    int16_t[::1] chosen, uint8_t[::1] present, int64_t[::1] places, int64_t[::1] page_values,
):
    """Select the definition levels of `entries`, flags of their slots, and the positions of their values.

    Pages have `counts` entries. Fill `chosen`, the beginnings of `present` and `places`, and `page_values` with the
    number of values of each page. Return the numbers of slots and values.
    """
    cdef Py_ssize_t i = 0, page, end = 0, found = 0, slots = 0, following = 0, count = entries.shape[0]
    cdef int64_t values = 0, before
    for page in range(counts.shape[0]):
        if counts[page] < 0 or counts[page] > levels.shape[0] - end:
            raise ValueError("the entry counts of the pages must add up to the number of levels")
        end += counts[page]
    if end != levels.shape[0] or page_values.shape[0] != counts.shape[0]:
        raise ValueError("the entry counts of the pages must add up to the number of levels")
    if chosen.shape[0] != count or present.shape[0] != count or places.shape[0] != count:
        raise ValueError("each output must have one value per entry")
    with nogil:
        end = 0
        for page in range(counts.shape[0]):
            before = values
            end += counts[page]
            while i < end:
                if following < count and entries[following] == i:
                    chosen[following] = levels[i]
                    following += 1
                    if levels[i] >= slot_level:
                        present[slots] = levels[i] == value_level
                        slots += 1
                        if levels[i] == value_level:
                            places[found] = values
                            found += 1
                values += levels[i] == value_level
                i += 1
            page_values[page] = values - before
    if following != count:
        raise ValueError("entries must ascend and lie within the entries of the pages")
    return slots, found
