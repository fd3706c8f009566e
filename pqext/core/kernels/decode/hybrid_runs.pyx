# cython: language_level=3
"""Check that run-length and bit-packed data is exactly as long as its runs."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from pqext.core.kernels.leb128 cimport read_leb128


def has_exact_length(const uint8_t[::1] data, int width, int64_t count, int64_t surplus=INT64_MAX):
    """Return whether the runs of `count` values of `width` bits fill `data` exactly.

    The last run may have up to `surplus` additional values. Bit-packed runs consist of complete groups of eight values.
    """
    cdef size_t at = 0, size = data.shape[0]
    cdef const uint8_t *p = &data[0] if size else NULL
    cdef uint64_t header = 0, run_bytes
    cdef bint is_valid = True
    if not 0 <= width <= 32:
        raise ValueError(f"bit width {width} is outside 0 to 32")
    with nogil:
        while is_valid and count > 0:
            if read_leb128(p, size, &at, 32, &header) != 0 or header < 2:
                is_valid = False
                break
            if header & 1:
                run_bytes = (header >> 1) * width
                count -= <int64_t> (header >> 1) * 8
            else:
                run_bytes = (width + 7) // 8
                count -= <int64_t> (header >> 1)
            is_valid = run_bytes <= size - at
            at += run_bytes
    return bool(is_valid and at == size and -count <= surplus)
