# cython: language_level=3
# Skipping of JSON text with all checks except string encoding, for readers that need a few members.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp


cdef enum ScanFault:
    SCAN_MEMORY = 1
    SCAN_END
    SCAN_VALUE
    SCAN_STRING
    SCAN_COLON
    SCAN_COMMA
    SCAN_DEPTH

    SCAN_LEVELS = 1024


cdef struct Scan:
    const uint8_t *p
    const uint8_t *end


cdef inline void blank(Scan *s) noexcept nogil:
    while s.p < s.end and (s.p[0] == c' ' or s.p[0] == c'\n' or s.p[0] == c'\r' or s.p[0] == c'\t'):
        s.p += 1


cdef inline bint take_byte(Scan *s, uint8_t byte) noexcept nogil:
    """Return whether `byte` is the next byte after blanks; if it is, move after it."""
    if s.p < s.end and s.p[0] == byte:
        s.p += 1
        return True
    blank(s)
    if s.p < s.end and s.p[0] == byte:
        s.p += 1
        return True
    return False


cdef inline int fault_here(const Scan *s, int fault) noexcept nogil:
    return fault if s.p < s.end else SCAN_END


cdef inline int scan_string(Scan *s, const uint8_t **text, size_t *length) noexcept nogil:
    """Scan a string and return the raw text between its quotes. After a fault, s.p is the position of the fault."""
    cdef const uint8_t *p
    if s.p >= s.end or s.p[0] != c'"':
        return fault_here(s, SCAN_STRING)
    p = s.p + 1
    text[0] = p
    while p < s.end and p[0] != c'"':
        if p[0] < 0x20:
            s.p = p
            return SCAN_STRING
        if p[0] == c'\\':
            p += 1
            if p < s.end and memchr(b'"\\/bfnrtu', p[0], 9) == NULL:
                s.p = p
                return SCAN_STRING
        p += 1
    if p >= s.end:
        s.p = s.end
        return SCAN_END
    length[0] = p - text[0]
    s.p = p + 1
    return 0


cdef inline bint scan_word(Scan *s, const char *word, size_t n) noexcept nogil:
    if <size_t> (s.end - s.p) < n or memcmp(s.p, word, n) != 0:
        return False
    s.p += n
    return True


cdef inline int scan_key(Scan *s, const uint8_t **text, size_t *length) noexcept nogil:
    """Scan the name of a member and the following colon. Return 0 or a fault."""
    cdef int status
    blank(s)
    status = scan_string(s, text, length)
    if status != 0:
        return status
    return 0 if take_byte(s, c':') else fault_here(s, SCAN_COLON)


cdef inline bint scan_digits(Scan *s) noexcept nogil:
    cdef const uint8_t *start = s.p
    while s.p < s.end and c'0' <= s.p[0] <= c'9':
        s.p += 1
    return s.p > start


cdef inline bint scan_number(Scan *s) noexcept nogil:
    cdef const uint8_t *start
    if s.p < s.end and s.p[0] == c'-':
        s.p += 1
    start = s.p
    if not scan_digits(s) or (start[0] == c'0' and s.p - start > 1):
        return False
    if s.p < s.end and s.p[0] == c'.':
        s.p += 1
        if not scan_digits(s):
            return False
    if s.p < s.end and (s.p[0] | 0x20) == c'e':
        s.p += 1
        if s.p < s.end and (s.p[0] == c'-' or s.p[0] == c'+'):
            s.p += 1
        return scan_digits(s)
    return True


cdef inline int scan_value(Scan *s) noexcept nogil:
    """Skip a value with its nested values. Return 0 or a fault."""
    cdef uint8_t[SCAN_LEVELS] objects
    cdef const uint8_t *text
    cdef size_t length
    cdef int depth = 0, status
    while True:
        blank(s)
        if s.p >= s.end:
            return SCAN_END
        if s.p[0] == c'{' or s.p[0] == c'[':
            if depth == SCAN_LEVELS:
                return SCAN_DEPTH
            objects[depth] = s.p[0] == c'{'
            depth += 1
            s.p += 1
            if not take_byte(s, c'}' if objects[depth - 1] else c']'):
                if objects[depth - 1]:
                    status = scan_key(s, &text, &length)
                    if status != 0:
                        return status
                continue
            depth -= 1
        elif s.p[0] == c'"':
            status = scan_string(s, &text, &length)
            if status != 0:
                return status
        elif not (scan_word(s, b"null", 4) or scan_word(s, b"true", 4) or scan_word(s, b"false", 5)):
            if not scan_number(s):
                return fault_here(s, SCAN_VALUE)
        # After a value.
        while True:
            if depth == 0:
                return 0
            if take_byte(s, c','):
                if objects[depth - 1]:
                    status = scan_key(s, &text, &length)
                    if status != 0:
                        return status
                break
            if not take_byte(s, c'}' if objects[depth - 1] else c']'):
                return fault_here(s, SCAN_COMMA)
            depth -= 1
