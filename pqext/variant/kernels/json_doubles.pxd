# cython: language_level=3
# A decimal significand of 64 bits and a power of ten to the nearest double, by one or two multiplications (Lemire,
# "Number parsing at a gigabyte per second", 2021).
from libc.stdint cimport int64_t, uint64_t


cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>

    enum { PQEXT_LEAST_POWER = -342, PQEXT_MOST_POWER = 308 };

    /* The first 128 bits of powers of five, high and low half; those of negative exponents are rounded up. */
    static uint64_t pqext_fives[2 * (PQEXT_MOST_POWER - PQEXT_LEAST_POWER + 1)];

    static void pqext_set_five(int power, uint64_t high, uint64_t low) {
        pqext_fives[2 * (power - PQEXT_LEAST_POWER)] = high;
        pqext_fives[2 * (power - PQEXT_LEAST_POWER) + 1] = low;
    }

    /* The double nearest to w * 10^power into *out; 0 where this way does not say (zero, subnormals, overflow, ties
       that 128 bits do not settle). */
    static inline int pqext_nearest_double(uint64_t w, int64_t power, double *out) {
        const uint64_t *five;
        unsigned __int128 product;
        uint64_t low, high, mantissa, bits;
        int zeros, top;
        int64_t exponent;
        if (w == 0 || power < PQEXT_LEAST_POWER || power > PQEXT_MOST_POWER) return 0;
        five = pqext_fives + 2 * (power - PQEXT_LEAST_POWER);
        zeros = __builtin_clzll(w);
        w <<= zeros;
        product = (unsigned __int128) w * five[0];
        high = (uint64_t) (product >> 64);
        low = (uint64_t) product;
        if ((high & 0x1FF) == 0x1FF) {
            uint64_t more = (uint64_t) (((unsigned __int128) w * five[1]) >> 64);
            low += more;
            if (low < more) high++;
        }
        if (low == 0xFFFFFFFFFFFFFFFFULL && (power < -27 || power > 55)) return 0;
        top = (int) (high >> 63);
        mantissa = high >> (top + 9);
        exponent = ((217706 * power) >> 16) + 63 + top - zeros + 1023;
        if (exponent <= 0) return 0;
        /* Exactly between two doubles: to the even one. */
        if (low <= 1 && power >= -4 && power <= 23 && (mantissa & 3) == 1 && mantissa << (top + 9) == high)
            mantissa &= ~1ULL;
        mantissa += mantissa & 1;
        mantissa >>= 1;
        if (mantissa >= 1ULL << 53) {
            mantissa = 1ULL << 52;
            exponent++;
        }
        if (exponent >= 0x7FF) return 0;
        bits = (uint64_t) exponent << 52 | (mantissa & ~(1ULL << 52));
        memcpy(out, &bits, 8);
        return 1;
    }
    """
    void set_five "pqext_set_five"(int power, uint64_t high, uint64_t low)
    bint nearest_double "pqext_nearest_double"(uint64_t w, int64_t power, double *out)
    const int LEAST_POWER "PQEXT_LEAST_POWER"
    const int MOST_POWER "PQEXT_MOST_POWER"
