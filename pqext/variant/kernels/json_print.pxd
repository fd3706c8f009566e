# cython: language_level=3
# Append JSON strings and words to growing text, and build a column of texts.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY
from pqext.variant.kernels.scan cimport copy_plain, utf8_fault


cdef enum:
    ROOM = 64       # maximum bytes of a number, date or time


cdef inline int put(Bytes *out, uint8_t c) noexcept nogil:
    if bytes_reserve(out, 1) != 0:
        return FAULT_MEMORY
    out.data[out.size] = c
    out.size += 1
    return 0


cdef inline int write_escape(Bytes *out, uint8_t c) noexcept nogil:
    cdef const char *hexadecimal = b"0123456789abcdef"
    cdef uint8_t[6] text
    cdef size_t size = 2
    text[0] = c'\\'
    if c == c'"' or c == c'\\':
        text[1] = c
    elif c == c'\n':
        text[1] = c'n'
    elif c == c'\r':
        text[1] = c'r'
    elif c == c'\t':
        text[1] = c't'
    elif c == 0x08:
        text[1] = c'b'
    elif c == 0x0C:
        text[1] = c'f'
    else:
        text[1] = c'u'
        text[2] = c'0'
        text[3] = c'0'
        text[4] = <uint8_t> hexadecimal[c >> 4]
        text[5] = <uint8_t> hexadecimal[c & 15]
        size = 6
    return bytes_append(out, text, size)


cdef inline int write_text(
    Bytes *out, const uint8_t *text, size_t n, const uint8_t *readable, int fault
) noexcept nogil:
    """Write a string in quotes; return `fault` if it is not UTF-8. `readable` is the end of its buffer."""
    cdef size_t done
    cdef int high = 0
    if bytes_reserve(out, n + ROOM) != 0:
        return FAULT_MEMORY
    out.data[out.size] = c'"'
    done = copy_plain(out.data + out.size + 1, text, text + n, readable, &high)
    out.size += 1 + done
    if done == n and not high:
        out.data[out.size] = c'"'
        out.size += 1
        return 0
    return write_rest(out, text, n, readable, fault, done)


cdef inline int write_rest(
    Bytes *out, const uint8_t *text, size_t n, const uint8_t *readable, int fault, size_t done
) noexcept nogil:
    """Continue after `done` plain bytes: write an escaped character and the rest, or end the text. Return 0 or a fault.
    """
    cdef size_t count
    cdef int high = 0
    if utf8_fault(text, n) >= 0:
        return fault
    while done < n:
        if write_escape(out, text[done]) != 0:
            return FAULT_MEMORY
        done += 1
        if bytes_reserve(out, n - done + ROOM) != 0:
            return FAULT_MEMORY
        count = copy_plain(out.data + out.size, text + done, text + n, readable, &high)
        out.size += count
        done += count
    return put(out, c'"')


cdef inline int write_word(Bytes *out, const char *word, size_t n) noexcept nogil:
    return bytes_append(out, word, n)


cdef struct TextColumn:
    # Offsets and validity of texts. Must be zeroed before the first row; the caller takes or frees the buffers.
    Bytes offsets
    Bytes validity
    size_t rows


cdef inline int text_column_row(TextColumn *c, bint valid, size_t end) noexcept nogil:
    """Add a row whose text ends at `end`, at most 2^31 - 1. Return 0 or a fault."""
    cdef int32_t position = 0
    cdef uint8_t bit = valid
    if c.rows == 0 and bytes_append(&c.offsets, &position, sizeof(int32_t)) != 0:
        return FAULT_MEMORY
    position = <int32_t> end
    if bytes_append(&c.offsets, &position, sizeof(int32_t)) != 0:
        return FAULT_MEMORY
    if c.rows & 7 == 0:
        if bytes_append(&c.validity, &bit, 1) != 0:
            return FAULT_MEMORY
    else:
        c.validity.data[c.validity.size - 1] |= <uint8_t> (bit << (c.rows & 7))
    c.rows += 1
    return 0
