/* What compilers and C libraries have under different names. */
#ifndef PQEXT_PORTABLE_H
#define PQEXT_PORTABLE_H
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#if defined(_MSC_VER)
#include <intrin.h>
#endif

/* The low half of a * b, and its high half in *high. */
static inline uint64_t pqext_multiply(uint64_t a, uint64_t b, uint64_t *high) {
#if defined(__SIZEOF_INT128__)
    unsigned __int128 product = (unsigned __int128) a * b;
    *high = (uint64_t) (product >> 64);
    return (uint64_t) product;
#elif defined(_MSC_VER) && defined(_M_X64)
    return _umul128(a, b, high);
#else
    uint64_t a0 = (uint32_t) a, a1 = a >> 32, b0 = (uint32_t) b, b1 = b >> 32;
    uint64_t middle = (a0 * b0 >> 32) + (uint32_t) (a1 * b0) + a0 * b1;
    *high = a1 * b1 + (a1 * b0 >> 32) + (middle >> 32);
    return a * b;
#endif
}

/* Positions of the lowest and highest bit that is set; v is not 0. */
static inline int pqext_lowest_bit(uint64_t v) {
#if defined(_MSC_VER) && !defined(__clang__)
    unsigned long index;
    _BitScanForward64(&index, v);
    return (int) index;
#else
    return __builtin_ctzll(v);
#endif
}

static inline int pqext_highest_bit(uint64_t v) {
#if defined(_MSC_VER) && !defined(__clang__)
    unsigned long index;
    _BitScanReverse64(&index, v);
    return (int) index;
#else
    return 63 - __builtin_clzll(v);
#endif
}

/* strtod and strtof with the decimal point of the "C" locale, whatever that of the process is. The locale is opened by
   the first call: glibc and musl have one object for it, so threads that meet here write the same pointer. */
#if defined(_WIN32)
typedef _locale_t pqext_locale;
#define pqext_new_locale() _create_locale(LC_ALL, "C")
#define pqext_strtod_l _strtod_l
#define pqext_strtof_l _strtof_l
#else
typedef locale_t pqext_locale;
#define pqext_new_locale() newlocale(LC_ALL_MASK, "C", (locale_t) 0)
#define pqext_strtod_l strtod_l
#define pqext_strtof_l strtof_l
#endif

#if defined(__GNUC__)
#define PQEXT_RARE __attribute__((noinline, cold, unused)) /* kept out of the loops that may come here */
#else
#define PQEXT_RARE
#endif

static inline pqext_locale pqext_c_locale(void) {
    static pqext_locale opened;
    if (!opened) opened = pqext_new_locale();
    return opened;
}

static PQEXT_RARE double pqext_strtod(const char *s) {
    pqext_locale c = pqext_c_locale();
    return c ? pqext_strtod_l(s, NULL, c) : strtod(s, NULL);
}

static PQEXT_RARE float pqext_strtof(const char *s) {
    pqext_locale c = pqext_c_locale();
    return c ? pqext_strtof_l(s, NULL, c) : strtof(s, NULL);
}

#endif
