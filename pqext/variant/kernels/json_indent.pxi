# Indent the compact JSON text of the other kernels over several lines.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport FAULT_MEMORY, BinaryInput, binary_at, binary_valid


cdef enum:
    TOO_LONG = 1
    TOO_MANY_SPACES = 2


cdef inline int _new_line(Bytes *out, size_t depth, size_t spaces, size_t limit) noexcept nogil:
    if depth * spaces > 0x7FFFFFFF:
        return TOO_LONG
    if out.size + depth * spaces > limit:
        return TOO_MANY_SPACES
    if bytes_reserve(out, 1 + depth * spaces) != 0:
        return FAULT_MEMORY
    out.data[out.size] = c'\n'
    memset(out.data + out.size + 1, c' ', depth * spaces)
    out.size += 1 + depth * spaces
    return 0


cdef int _indent(Bytes *out, const uint8_t *p, size_t n, size_t spaces, size_t limit) noexcept nogil:
    cdef const uint8_t *end = p + n
    cdef const uint8_t *start
    cdef size_t depth = 0
    cdef int status = 0
    while p < end and status == 0:
        if out.size > 0x7FFFFFFF:
            return TOO_LONG
        start = p
        p += 1
        if start[0] == c'"':
            while p < end and p[0] != c'"':
                p += 2 if p[0] == c'\\' else 1
            p = p + 1 if p < end else end
            status = bytes_append(out, start, <size_t> (p - start))
        elif (start[0] == c'{' or start[0] == c'[') and p < end and (p[0] == c'}' or p[0] == c']'):
            status = bytes_append(out, start, 2)
            p += 1
        elif start[0] == c'{' or start[0] == c'[':
            depth += 1
            status = bytes_append(out, start, 1)
            if status == 0:
                status = _new_line(out, depth, spaces, limit)
        elif start[0] == c'}' or start[0] == c']':
            depth -= 1 if depth else 0
            status = _new_line(out, depth, spaces, limit)
            if status == 0:
                status = bytes_append(out, start, 1)
        elif start[0] == c',':
            status = bytes_append(out, start, 1)
            if status == 0:
                status = _new_line(out, depth, spaces, limit)
        elif start[0] == c':':
            status = bytes_append(out, b": ", 2)
        else:
            status = bytes_append(out, start, 1)
    return status


def indent_json(BinaryInput texts, int64_t start, size_t spaces, size_t expansion, size_t allowance):
    """Indent the texts from row `start` on with `spaces` spaces per level: (rows, offsets, text, status).

    There are fewer rows than requested if 32-bit offsets are full. The status is positive if the rows and the next row
    would take more than `allowance` bytes plus `expansion` times their compact size.
    """
    cdef Bytes out, offsets
    cdef int64_t row = start
    cdef int32_t position = 0
    cdef const uint8_t *p = NULL
    cdef size_t n = 0, before, limit = allowance
    cdef int status
    memset(&out, 0, sizeof(Bytes))
    memset(&offsets, 0, sizeof(Bytes))
    if not 0 <= start <= texts.column.length:
        raise ValueError(f"row {start} is out of range for {texts.column.length} rows")
    try:
        with nogil:
            status = bytes_append(&offsets, &position, sizeof(int32_t))
            while status == 0 and row < texts.column.length:
                before = out.size
                if binary_valid(&texts.column, row):
                    status = binary_at(&texts.column, row, &p, &n)
                    if status == 0:
                        limit += n * expansion
                        status = _indent(&out, p, n, spaces, limit)
                    if status != 0 or out.size > 0x7FFFFFFF:
                        out.size = before
                        break
                position = <int32_t> out.size
                status = bytes_append(&offsets, &position, sizeof(int32_t))
                row += 1
        return row - start, take(&offsets), take(&out), 0 if status == TOO_LONG else status
    finally:
        bytes_free(&out)
        bytes_free(&offsets)
