# cython: language_level=3
# Searches through text, eight or sixteen bytes at a time, and UTF-8 validation.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    #define PQEXT_SSE2 1
    #endif
    #include "pqext/core/kernels/portable.h"

    static inline uint64_t pqext_load64(const uint8_t *p) {
        uint64_t v;
        memcpy(&v, p, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        v = __builtin_bswap64(v);
    #endif
        return v;
    }

    static inline void pqext_store64(uint8_t *p, uint64_t v) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        v = __builtin_bswap64(v);
    #endif
        memcpy(p, &v, 8);
    }

    /* The first byte that is a quote, a backslash or a control character: a set bit (64-bit words: the
       top bit of its byte) for each. Only the lowest one counts: borrows may set bits above it. */
    static inline uint64_t pqext_special64(uint64_t v) {
        const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
        uint64_t quote = v ^ (ones * '"'), slash = v ^ (ones * '\\\\');
        return (((v - ones * 0x20) & ~v) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) & tops;
    }

    #ifdef PQEXT_SSE2
    static inline int pqext_special128(__m128i v) {
        __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
        __m128i slash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\\\'));
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
        return _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
    }
    #endif

    /* Requires a special byte, with 15 readable bytes after it. */
    static inline const uint8_t *pqext_find_special(const uint8_t *p) {
    #ifdef PQEXT_SSE2
        for (;; p += 16) {
            int found = pqext_special128(_mm_loadu_si128((const __m128i *) p));
            if (found) return p + pqext_lowest_bit((uint64_t) found);
        }
    #else
        for (;; p += 8) {
            uint64_t found = pqext_special64(pqext_load64(p));
            if (found) return p + (pqext_lowest_bit(found) >> 3);
        }
    #endif
    }

    /* The first byte of [p, end) above 0x7F, rounded down to a step of 8; end if there is no such byte. */
    static inline const uint8_t *pqext_skip_ascii(const uint8_t *p, const uint8_t *end) {
    #ifdef PQEXT_SSE2
        for (; end - p >= 64; p += 64) {
            const __m128i *v = (const __m128i *) p;
            __m128i low = _mm_or_si128(_mm_loadu_si128(v), _mm_loadu_si128(v + 1));
            __m128i high = _mm_or_si128(_mm_loadu_si128(v + 2), _mm_loadu_si128(v + 3));
            if (_mm_movemask_epi8(_mm_or_si128(low, high))) break;
        }
    #endif
        for (; end - p >= 8; p += 8)
            if (pqext_load64(p) & 0x8080808080808080ULL) return p;
        while (p < end && *p < 0x80) p++;
        return p;
    }

    /* Whether all n bytes are below 0x80. The last load overlaps the preceding one. */
    static inline int pqext_is_ascii(const uint8_t *p, size_t n) {
        uint64_t high = 0;
        uint32_t a, b;
        if (n >= 8) {
            const uint8_t *last = p + n - 8;
            if (n >= 64 && pqext_skip_ascii(p, p + n) != p + n) return 0;
            if (n >= 64) return 1;
            for (; p < last; p += 8) high |= pqext_load64(p);
            high |= pqext_load64(last);
        } else if (n >= 4) {
            memcpy(&a, p, 4);
            memcpy(&b, p + n - 4, 4);
            high = ((uint64_t) a << 32) | b;
        } else if (n) {
            high = p[0] | p[n >> 1] | p[n - 1];
        }
        return !(high & 0x8080808080808080ULL);
    }

    /* Copy bytes from [p, end) up to the first that is special, in steps of 16: `to` must have room for 15
       more. Bytes up to `readable` may be read. *high is set when a byte above 0x7F was among them. */
    static inline size_t pqext_copy_plain(
        uint8_t *to, const uint8_t *p, const uint8_t *end, const uint8_t *readable, int *high
    ) {
        const uint8_t *start = p;
    #ifdef PQEXT_SSE2
        while (p < end && readable - p >= 16) {
            __m128i v = _mm_loadu_si128((const __m128i *) p);
            int found = pqext_special128(v), above = _mm_movemask_epi8(v);
            size_t count = end - p < 16 ? (size_t) (end - p) : 16;
            _mm_storeu_si128((__m128i *) to, v);
            if (found && (size_t) pqext_lowest_bit((uint64_t) found) < count) {
                count = (size_t) pqext_lowest_bit((uint64_t) found);
                *high |= above & ((1 << count) - 1);
                return (size_t) (p - start) + count;
            }
            *high |= above & ((1 << count) - 1);
            p += count;
            to += count;
        }
    #endif
        while (p < end && *p >= 0x20 && *p != '"' && *p != '\\\\') {
            *high |= *p & 0x80;
            *to++ = *p++;
        }
        return (size_t) (p - start);
    }

    /* Copy n bytes in steps of 16: up to 15 bytes more are read and written. */
    static inline void pqext_copy_over(uint8_t *to, const uint8_t *from, size_t n) {
        size_t i = 0;
        do {
            memcpy(to + i, from + i, 16);
            i += 16;
        } while (i < n);
    }

    /* Copy the first 32 bytes in one step, since most texts are not longer: up to 31 bytes more. */
    static inline void pqext_copy_far(uint8_t *to, const uint8_t *from, size_t n) {
        size_t i;
        memcpy(to, from, 32);
        for (i = 32; i < n; i += 16) memcpy(to + i, from + i, 16);
    }
    """
    int lowest_bit "pqext_lowest_bit"(uint64_t v)
    int highest_bit "pqext_highest_bit"(uint64_t v)
    uint64_t load64 "pqext_load64"(const uint8_t *p)
    void store64 "pqext_store64"(uint8_t *p, uint64_t v)
    const uint8_t *find_special "pqext_find_special"(const uint8_t *p)
    const uint8_t *skip_ascii "pqext_skip_ascii"(const uint8_t *p, const uint8_t *end)
    bint is_ascii "pqext_is_ascii"(const uint8_t *p, size_t n)
    size_t copy_plain "pqext_copy_plain"(
        uint8_t *to, const uint8_t *p, const uint8_t *end, const uint8_t *readable, int *high
    )
    void copy_over "pqext_copy_over"(uint8_t *to, const uint8_t *source, size_t n)
    void copy_far "pqext_copy_far"(uint8_t *to, const uint8_t *source, size_t n)


cdef inline int64_t utf8_fault(const uint8_t *start, size_t n) noexcept nogil:
    """Return the offset of the first byte that does not begin a well-formed UTF-8 sequence; -1 if there is none."""
    cdef const uint8_t *p = start
    cdef const uint8_t *end = start + n
    cdef uint8_t lead, second
    while True:
        p = skip_ascii(p, end)
        while p < end and p[0] < 0x80:
            p += 1
        while p < end and p[0] >= 0x80:
            lead = p[0]
            if lead < 0xC2 or lead > 0xF4 or end - p < 2:
                return p - start
            second = p[1]
            if lead < 0xE0:
                if second & 0xC0 != 0x80:
                    return p - start
                p += 2
            elif lead < 0xF0:
                # E0 starts at U+0800; ED stops before the surrogates.
                if (
                    end - p < 3 or second & 0xC0 != 0x80 or p[2] & 0xC0 != 0x80
                    or (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F)
                ):
                    return p - start
                p += 3
            else:
                # F0 starts at U+10000; F4 stops at U+10FFFF.
                if (
                    end - p < 4 or second & 0xC0 != 0x80 or p[2] & 0xC0 != 0x80 or p[3] & 0xC0 != 0x80
                    or (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F)
                ):
                    return p - start
                p += 4
        if p >= end:
            return -1
