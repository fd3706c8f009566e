# cython: language_level=3
"""Do runs of the hybrid encoding end where their bytes do? Headers of version 2 tell the length of levels unchecked."""
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t

from pqext.core.kernels.leb128 cimport read_leb128


def fill(const uint8_t[::1] data, int width, int64_t count, int64_t beyond=INT64_MAX):
    """Do runs of `count` values, of `width` bits each, take all of `data`, whole groups of packed ones and no more?

    The last run may go on for `beyond` values.
    """
    cdef size_t at = 0, size = data.shape[0]
    cdef const uint8_t *p = &data[0] if size else NULL
    cdef uint64_t header = 0, taken
    cdef bint good = True
    if not 0 <= width <= 32:
        raise ValueError(f"a bit width of {width}")
    with nogil:
        while good and count > 0:
            if read_leb128(p, size, &at, 32, &header) != 0 or header < 2:
                good = False
                break
            if header & 1:
                taken = (header >> 1) * width
                count -= <int64_t> (header >> 1) * 8
            else:
                taken = (width + 7) // 8
                count -= <int64_t> (header >> 1)
            good = taken <= size - at
            at += taken
    return bool(good and at == size and -count <= beyond)
