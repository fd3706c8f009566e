# cython: language_level=3
"""Decode byte arrays to Arrow views: 16 bytes per slot, with a short value or the location of a long value."""
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.bitpack cimport load64
from pqext.core.kernels.encodings.page_run cimport PageRun

from pqext.core.base.errors import CorruptFileError

cdef enum:
    OK = 0
    TRUNCATED = -1
    NOT_UTF8 = -2
    TOO_LONG = -3

    INLINE = 12

cdef uint64_t HIGH_BITS = 0x8080808080808080


cdef inline uint32_t load32(const uint8_t *p) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, p, 4)
    return word


cdef bint is_utf8(const uint8_t *p, size_t size) noexcept nogil:
    """Return whether bytes are UTF-8 (RFC 3629), without overlong sequences, surrogates, or code points above U+10FFFF.
    """
    cdef size_t i = 0
    cdef uint8_t lead, second
    while i < size:
        if size - i >= 8 and not load64(p + i) & HIGH_BITS:
            i += 8
            continue
        lead = p[i]
        if lead < 0x80:
            i += 1
            continue
        if lead < 0xC2 or lead > 0xF4 or size - i < 2:
            return False
        second = p[i + 1]
        if second & 0xC0 != 0x80:
            return False
        if lead < 0xE0:
            i += 2
            continue
        if size - i < 3 or p[i + 2] & 0xC0 != 0x80:
            return False
        if lead < 0xF0:
            if (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F):
                return False
            i += 3
            continue
        if size - i < 4 or p[i + 3] & 0xC0 != 0x80:
            return False
        if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
            return False
        i += 4
    return True


cdef inline int make_view(
    uint64_t *view, const uint8_t *p, uint32_t length, size_t left, int32_t buffer, int64_t at, bint text
) noexcept nogil:
    """Write the view of `length` bytes at `p`, where `left` bytes can be read.

    They are at position `at` of Arrow's `buffer`.

    Return OK, TOO_LONG or NOT_UTF8.
    """
    cdef uint64_t low, high
    cdef uint8_t[16] held
    if length > INLINE:
        if length > <uint32_t> INT32_MAX or at > INT32_MAX:
            return TOO_LONG
        if text and not is_utf8(p, length):
            return NOT_UTF8
        view[0] = <uint64_t> length | <uint64_t> load32(p) << 32
        view[1] = <uint64_t> <uint32_t> buffer | <uint64_t> at << 32
        return OK
    if left >= INLINE:
        low, high = load32(p), load64(p + 4)
    else:
        low = high = 0
        memcpy(held, &low, 8)
        memcpy(held + 8, &high, 8)
        if length:
            memcpy(held, p, length)
        low, high = load32(held), load64(held + 4)
    if length < 4:
        low &= (<uint64_t> 1 << length * 8) - 1
        high = 0
    elif length == 4:
        high = 0
    elif length < INLINE:
        high &= (<uint64_t> 1 << (length - 4) * 8) - 1
    if text and (low | high) & HIGH_BITS and not is_utf8(p, length):
        return NOT_UTF8
    view[0] = <uint64_t> length | low << 32
    view[1] = high
    return OK


cdef int plain_page(
    const uint8_t *p, size_t size, const uint8_t *present, int64_t slots, int32_t buffer, bint text, uint64_t *out,
    bint *is_needed
) noexcept nogil:
    cdef size_t at = 0
    cdef int64_t i
    cdef uint32_t length
    cdef int status
    for i in range(slots):
        if present != NULL and not present[i]:
            out[2 * i] = out[2 * i + 1] = 0
            continue
        if size - at < 4:
            return TRUNCATED
        length = load32(p + at)
        at += 4
        if length > size - at:
            return TRUNCATED
        status = make_view(out + 2 * i, p + at, length, size - at, buffer, <int64_t> at, text)
        if status != OK:
            return status
        if length > INLINE:
            is_needed[0] = True
        at += length
    return OK


cdef int check(int status) except -1:
    if status == TRUNCATED:
        raise CorruptFileError("byte array data ends before the last value")
    if status == NOT_UTF8:
        raise CorruptFileError("a STRING column contains bytes that are not UTF-8")
    if status == TOO_LONG:
        raise CorruptFileError("a byte array lies beyond the 2 GiB that an Arrow view can address")
    return 0


def view_plain(
    PageRun run not None, const uint8_t[::1] present, const int64_t[::1] slots, int first, bint text, uint64_t[::1] out
):
    """Fill `out`, two words per slot, with the views of PLAIN pages. Return the pages to which views refer.

    `slots` has a number per page; `present` flags slots with values, or is empty if all have one. Page `i` of the
    result is buffer `first + i`. Views of slots without a value are zero. With `text`, values that are not UTF-8 raise
    an error.
    """
    cdef Py_ssize_t i
    cdef int64_t total = 0
    cdef int status = OK
    cdef int32_t buffer
    cdef bint is_needed
    cdef const uint8_t *flags = NULL
    cdef uint64_t *target = NULL
    if slots.shape[0] != run.size:
        raise ValueError("there must be one slot count per page")
    for i in range(run.size):
        if slots[i] < 0 or slots[i] > INT32_MAX or (not present.shape[0] and slots[i] != run.parts[i].count):
            raise ValueError("the slot count and the value count of a page are inconsistent")
        total += slots[i]
    if present.shape[0]:
        if present.shape[0] < total:
            raise ValueError("there are fewer validity flags than slots")
        flags = &present[0]
    if out.shape[0] != 2 * total or first < 0:
        raise ValueError("the output must have one view per slot")
    if total:
        target = &out[0]
    found = []
    for i in range(run.size):
        is_needed = False
        if slots[i]:
            buffer = <int32_t> (first + len(found))
            with nogil:
                status = plain_page(
                    run.parts[i].data, run.parts[i].size, flags, slots[i], buffer, text, target, &is_needed
                )
            check(status)
            target += 2 * slots[i]
            if flags != NULL:
                flags += slots[i]
        if is_needed:
            found.append(i)
    return found


def view_values(const uint8_t[::1] data, const int32_t[::1] offsets, int buffer, bint text, uint64_t[::1] out):
    """Fill `out`, two words per value, with views of the values between `offsets` of `data`, Arrow's buffer number
    `buffer`.

    Return whether a view refers to the buffer. With `text`, values that are not UTF-8 raise an error.
    """
    cdef Py_ssize_t i, count = offsets.shape[0] - 1
    cdef int status = OK
    cdef bint is_needed = False
    cdef const uint8_t *p = NULL
    cdef size_t size = data.shape[0]
    if count < 0 or out.shape[0] != 2 * count or buffer < 0:
        raise ValueError("the output must have one view per value")
    for i in range(count):
        if offsets[i] < 0 or offsets[i] > offsets[i + 1]:
            raise ValueError("offsets must ascend")
    if <size_t> offsets[count] > size or offsets[0] < 0:
        raise ValueError("offsets exceed the data")
    if size:
        p = &data[0]
    with nogil:
        for i in range(count):
            status = make_view(
                &out[2 * i], p + offsets[i], offsets[i + 1] - offsets[i], size - offsets[i], buffer, offsets[i], text
            )
            if status != OK:
                break
            if offsets[i + 1] - offsets[i] > INLINE:
                is_needed = True
    check(status)
    return is_needed
