# cython: language_level=3
"""BYTE_STREAM_SPLIT encoding: for each k, the k-th bytes of all values are contiguous (encodings.byte_stream_split)."""
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy


# The loops that name each stream can be interleaved with vectors by the compiler.

cdef void join2(const uint8_t *s, Py_ssize_t n, uint8_t *out) noexcept nogil:
    cdef const uint8_t *a = s
    cdef const uint8_t *b = s + n
    cdef Py_ssize_t i
    for i in range(n):
        out[2 * i] = a[i]
        out[2 * i + 1] = b[i]


cdef void join4(const uint8_t *s, Py_ssize_t n, uint8_t *out) noexcept nogil:
    cdef const uint8_t *a = s
    cdef const uint8_t *b = s + n
    cdef const uint8_t *c = s + 2 * n
    cdef const uint8_t *d = s + 3 * n
    cdef Py_ssize_t i
    for i in range(n):
        out[4 * i] = a[i]
        out[4 * i + 1] = b[i]
        out[4 * i + 2] = c[i]
        out[4 * i + 3] = d[i]


cdef void join8(const uint8_t *s, Py_ssize_t n, uint8_t *out) noexcept nogil:
    cdef const uint8_t *a = s
    cdef const uint8_t *b = s + n
    cdef const uint8_t *c = s + 2 * n
    cdef const uint8_t *d = s + 3 * n
    cdef const uint8_t *e = s + 4 * n
    cdef const uint8_t *f = s + 5 * n
    cdef const uint8_t *g = s + 6 * n
    cdef const uint8_t *h = s + 7 * n
    cdef Py_ssize_t i
    for i in range(n):
        out[8 * i] = a[i]
        out[8 * i + 1] = b[i]
        out[8 * i + 2] = c[i]
        out[8 * i + 3] = d[i]
        out[8 * i + 4] = e[i]
        out[8 * i + 5] = f[i]
        out[8 * i + 6] = g[i]
        out[8 * i + 7] = h[i]


cdef inline void swap(uint64_t *low, uint64_t *high, int shift, uint64_t mask) noexcept nogil:
    cdef uint64_t moved = ((low[0] >> shift) ^ high[0]) & mask
    high[0] ^= moved
    low[0] ^= moved << shift


cdef inline void transpose(uint64_t *rows) noexcept nogil:
    """Transpose the 8 x 8 bytes of eight words: swap halves, then quarters, then bytes."""
    cdef int i
    for i in range(4):
        swap(&rows[i], &rows[i + 4], 32, 0x00000000FFFFFFFF)
    for i in range(2):
        swap(&rows[i], &rows[i + 2], 16, 0x0000FFFF0000FFFF)
        swap(&rows[i + 4], &rows[i + 6], 16, 0x0000FFFF0000FFFF)
    for i in range(4):
        swap(&rows[2 * i], &rows[2 * i + 1], 8, 0x00FF00FF00FF00FF)


cdef void join_any(const uint8_t *s, Py_ssize_t n, Py_ssize_t width, uint8_t *out) noexcept nogil:
    """Join streams in blocks of eight streams and eight values, then the remaining streams and values."""
    cdef uint64_t rows[8]
    cdef Py_ssize_t i = 0, k, j, whole = width - width % 8
    while i + 8 <= n:
        k = 0
        while k < whole:
            for j in range(8):
                memcpy(&rows[j], s + (k + j) * n + i, 8)
            transpose(rows)
            for j in range(8):
                memcpy(out + (i + j) * width + k, &rows[j], 8)
            k += 8
        for k in range(whole, width):
            for j in range(i, i + 8):
                out[j * width + k] = s[k * n + j]
        i += 8
    for j in range(i, n):
        for k in range(width):
            out[j * width + k] = s[k * n + j]


cdef void split2(const uint8_t *p, Py_ssize_t n, uint8_t *out) noexcept nogil:
    cdef uint8_t *a = out
    cdef uint8_t *b = out + n
    cdef Py_ssize_t i
    for i in range(n):
        a[i] = p[2 * i]
        b[i] = p[2 * i + 1]


cdef void split4(const uint8_t *p, Py_ssize_t n, uint8_t *out) noexcept nogil:
    cdef uint8_t *a = out
    cdef uint8_t *b = out + n
    cdef uint8_t *c = out + 2 * n
    cdef uint8_t *d = out + 3 * n
    cdef Py_ssize_t i
    for i in range(n):
        a[i] = p[4 * i]
        b[i] = p[4 * i + 1]
        c[i] = p[4 * i + 2]
        d[i] = p[4 * i + 3]


cdef void split_any(const uint8_t *p, Py_ssize_t n, Py_ssize_t width, uint8_t *out) noexcept nogil:
    """Split values into streams, in the same blocks as `join_any`."""
    cdef uint64_t rows[8]
    cdef Py_ssize_t i = 0, k, j, whole = width - width % 8
    while i + 8 <= n:
        k = 0
        while k < whole:
            for j in range(8):
                memcpy(&rows[j], p + (i + j) * width + k, 8)
            transpose(rows)
            for j in range(8):
                memcpy(out + (k + j) * n + i, &rows[j], 8)
            k += 8
        for k in range(whole, width):
            for j in range(i, i + 8):
                out[k * n + j] = p[j * width + k]
        i += 8
    for j in range(i, n):
        for k in range(width):
            out[k * n + j] = p[j * width + k]


cdef _check(Py_ssize_t size, Py_ssize_t width, Py_ssize_t room):
    if room != size or (size and (width < 1 or size % width)):
        raise ValueError("streams and values must have the same size")


def join_streams(const uint8_t[::1] streams, Py_ssize_t width, uint8_t[::1] out):
    """Fill `out` with values of `width` bytes from `width` concatenated `streams`."""
    cdef Py_ssize_t n
    _check(streams.shape[0], width, out.shape[0])
    if not streams.shape[0]:
        return
    n = streams.shape[0] // width
    with nogil:
        if width == 4:
            join4(&streams[0], n, &out[0])
        elif width == 8:
            join8(&streams[0], n, &out[0])
        elif width == 2:
            join2(&streams[0], n, &out[0])
        else:
            join_any(&streams[0], n, width, &out[0])


def split_streams(const uint8_t[::1] values, Py_ssize_t width, uint8_t[::1] out):
    """Fill `out` with the concatenated streams of `values` of `width` bytes."""
    cdef Py_ssize_t n
    _check(values.shape[0], width, out.shape[0])
    if not values.shape[0]:
        return
    n = values.shape[0] // width
    with nogil:
        if width == 4:
            split4(&values[0], n, &out[0])
        elif width == 2:
            split2(&values[0], n, &out[0])
        else:
            split_any(&values[0], n, width, &out[0])
