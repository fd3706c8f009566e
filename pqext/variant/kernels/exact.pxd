# cython: language_level=3, cdivision=True
# The exact-numeric equivalence class in 128-bit integers, for the kernels that shred, reconstruct and cast.
# A decimal is an unscaled integer and a scale from 0 to 38.
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stddef cimport size_t
from libc.string cimport memcpy

from pqext.variant.kernels.binary cimport (
    FAULT_DECIMAL_SCALE,
    FAULT_VALUE_TRUNCATED,
    TYPE_DECIMAL4,
    TYPE_DECIMAL8,
    TYPE_DECIMAL16,
    TYPE_INT8,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    primitive_size,
    read_uint,
    read_uint64,
)

cdef extern from *:
    """
    typedef __int128 pqext_int128;

    static const unsigned long long pqext_powers64[20] = {
        1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL, 10000000ULL, 100000000ULL, 1000000000ULL,
        10000000000ULL, 100000000000ULL, 1000000000000ULL, 10000000000000ULL, 100000000000000ULL,
        1000000000000000ULL, 10000000000000000ULL, 100000000000000000ULL, 1000000000000000000ULL,
        10000000000000000000ULL
    };

    /* 10 to the n, for n from 0 to 38. */
    static inline pqext_int128 pqext_power(int n) {
        return n < 20 ? (pqext_int128) pqext_powers64[n]
                      : (pqext_int128) pqext_powers64[19] * (pqext_int128) pqext_powers64[n - 19];
    }
    """
    ctypedef long long int128 "pqext_int128"
    int128 power_of_ten "pqext_power"(int n) noexcept nogil
    bint multiply_overflows "__builtin_mul_overflow"(int128 a, int128 b, int128 *out) noexcept nogil


cdef inline bint is_exact_type(int type_id) noexcept nogil:
    """Return whether the primitive type is in the exact-numeric equivalence class."""
    return TYPE_INT8 <= type_id <= TYPE_INT64 or TYPE_DECIMAL4 <= type_id <= TYPE_DECIMAL16


cdef inline int exact_open(const uint8_t *p, size_t n, int128 *unscaled, int *scale) noexcept nogil:
    """Read the exact number at `p`, which must have an exact type. Return 0 or a fault."""
    cdef int type_id = p[0] >> 2
    cdef uint64_t low, high
    if n < <size_t> primitive_size(type_id):
        return FAULT_VALUE_TRUNCATED
    scale[0] = 0
    if type_id == TYPE_INT8:
        unscaled[0] = <int8_t> p[1]
    elif type_id == TYPE_INT16:
        unscaled[0] = <int16_t> read_uint(p + 1, 2)
    elif type_id == TYPE_INT32:
        unscaled[0] = <int32_t> read_uint(p + 1, 4)
    elif type_id == TYPE_INT64:
        unscaled[0] = <int64_t> read_uint64(p + 1)
    else:
        scale[0] = p[1]
        if scale[0] > 38:
            return FAULT_DECIMAL_SCALE
        if type_id == TYPE_DECIMAL4:
            unscaled[0] = <int32_t> read_uint(p + 2, 4)
        elif type_id == TYPE_DECIMAL8:
            unscaled[0] = <int64_t> read_uint64(p + 2)
        else:
            memcpy(unscaled, p + 2, 16)
    return 0


cdef inline bint rescale_exactly(int128 unscaled, int scale, int new_scale, int128 *out) noexcept nogil:
    """Convert a decimal to another scale; return False if this loses digits or overflows. Scales are 0 to 38."""
    cdef int128 factor
    if new_scale >= scale:
        return not multiply_overflows(unscaled, power_of_ten(new_scale - scale), out)
    factor = power_of_ten(scale - new_scale)
    out[0] = unscaled // factor
    return out[0] * factor == unscaled


cdef inline bint has_precision(int128 unscaled, int precision) noexcept nogil:
    """Return whether the number has at most `precision` (1 to 38) digits."""
    cdef int128 bound = power_of_ten(precision)
    return -bound < unscaled < bound
