# Convert JSON strings to plain text, and plain text to CSV fields.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_ARROW, FAULT_MEMORY
from pqext.variant.kernels.display_write cimport show_special
from pqext.variant.kernels.json_print cimport ROOM


cdef int write_json_text(Bytes *out, const uint8_t *p, size_t n) noexcept nogil:
    """Write JSON text unchanged, but NaN and infinities, which JSON does not support, as strings. Return 0 or a fault.
    """
    cdef bint negative
    if n == 3 and (p[0] == c'i' or p[1] == c'a') and p[2] != c'"' or n == 4 and p[0] == c'-' and p[1] == c'i':
        negative = p[0] == c'-'
        if bytes_reserve(out, ROOM) != 0:
            return FAULT_MEMORY
        out.size = show_special(out.data + out.size, negative, p[1] == c'a', True) - out.data
        return 0
    return bytes_append(out, p, n)


cdef int unescape(Bytes *out, const uint8_t *p, size_t n) noexcept nogil:
    """Write the string of JSON text from `write_text`, without quotes and escapes. Return 0 or a fault."""
    cdef size_t i = 1
    cdef uint8_t c
    if n < 2 or p[n - 1] != c'"' or bytes_reserve(out, n) != 0:
        return FAULT_MEMORY if n >= 2 and p[n - 1] == c'"' else FAULT_ARROW
    while i < n - 1:
        c = p[i]
        i += 1
        if c == c'\\':
            c = p[i]
            i += 1
            if c == c'n':
                c = c'\n'
            elif c == c'r':
                c = c'\r'
            elif c == c't':
                c = c'\t'
            elif c == c'b':
                c = 0x08
            elif c == c'f':
                c = 0x0C
            elif c == c'u':
                if i + 4 > n - 1:
                    return FAULT_ARROW
                c = <uint8_t> (_hexadecimal(p[i + 2]) << 4 | _hexadecimal(p[i + 3]))
                i += 4
        out.data[out.size] = c
        out.size += 1
    return 0


cdef inline int _hexadecimal(uint8_t c) noexcept nogil:
    return c - c'0' if c <= c'9' else (c | 0x20) - c'a' + 10


cdef int quote(Bytes *out, size_t start) noexcept nogil:
    """Quote the text from `start` on if CSV requires it. Return 0 or a fault."""
    cdef size_t quotes = 0, n = out.size - start, i, to
    cdef uint8_t *p = out.data + start
    cdef uint8_t c
    cdef bint needed = n == 0
    for i in range(n):
        c = p[i]
        quotes += c == c'"'
        needed |= c == c'"' or c == c',' or c == c'\n' or c == c'\r'
    if not needed:
        needed = p[0] == c' ' or p[0] == c'\t' or p[n - 1] == c' ' or p[n - 1] == c'\t'
    if not needed:
        return 0
    if bytes_reserve(out, quotes + 2) != 0:
        return FAULT_MEMORY
    p = out.data + start
    to = n + quotes + 1
    p[to] = c'"'
    for i in range(n, 0, -1):
        c = p[i - 1]
        to -= 1
        p[to] = c
        if c == c'"':
            to -= 1
            p[to] = c'"'
    p[0] = c'"'
    out.size += quotes + 2
    return 0
