# cython: language_level=3
"""ALP: floating-point numbers as decimal integers, bit-packed vector by vector, with exceptions (encodings.alp)."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.bitpack cimport bits_of, last_value_at, loadable, mask_of, pack, value_at
from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve, take

from pqext.core.base.errors import CorruptFileError, UnsupportedError

ctypedef fused value_t:
    float
    double

cdef enum:
    OK = 0
    TRUNCATED = -1
    BAD_OFFSET = -2
    BAD_SCALE = -3
    BAD_WIDTH = -4
    BAD_EXCEPTION = -5
    OUT_OF_MEMORY = -6

    HEADER = 7
    MAX_EXPONENT_FLOAT = 10
    MAX_EXPONENT_DOUBLE = 18
    LOG_VECTOR = 10
    VECTOR = 1024
    CANDIDATES = 5
    SAMPLE = 256
    VECTOR_SAMPLE = 32

MESSAGES = {
    TRUNCATED: "ALP vectors extend beyond their page",
    BAD_OFFSET: "an ALP vector does not start at its offset",
    BAD_SCALE: "an ALP vector's exponent or factor is out of range",
    BAD_WIDTH: "ALP integers have more bits than their type",
    BAD_EXCEPTION: "an ALP exception is outside its vector",
}

# Correctly rounded powers, as the specification requires: decimal literals, never computed.
cdef double[19] POWER = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
]
cdef double[19] INVERSE = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16,
    1e-17, 1e-18,
]
# A test verifies that rounding these literals to double first does not change the float.
cdef float[11] POWER_FLOAT = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10]
cdef float[11] INVERSE_FLOAT = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10]


def powers():
    """Return the powers of ten for tests: (double, inverse double, float, inverse float)."""
    return list(POWER), list(INVERSE), list(POWER_FLOAT), list(INVERSE_FLOAT)


cdef inline uint32_t load32(const uint8_t *p) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, p, 4)
    return word


cdef inline void put32(uint8_t *p, uint32_t word) noexcept nogil:
    memcpy(p, &word, 4)


cdef inline value_t from_integer(uint64_t encoded, int exponent, int factor, value_t kind) noexcept nogil:
    """Decode an integer with two multiplications in the precision of the value, as the specification requires."""
    if value_t is float:
        return <float> <int32_t> <uint32_t> encoded * POWER_FLOAT[factor] * INVERSE_FLOAT[exponent]
    else:
        return <double> <int64_t> encoded * POWER[factor] * INVERSE[exponent]


cdef int decode_vector(
    const uint8_t *p, size_t size, size_t *at, Py_ssize_t count, value_t *out
) noexcept nogil:
    """Decode the vector of `count` values at `at`, and move `at` to the end of the vector. Return OK or a fault."""
    cdef int exponent, factor, width, bits = 8 * <int> sizeof(value_t)
    cdef size_t header = 5 + sizeof(value_t), packed, exceptions
    cdef uint64_t reference = 0, mask, bit = 0
    cdef const uint8_t *body
    cdef Py_ssize_t i, safe
    cdef uint16_t position
    cdef int highest
    if header > size - at[0]:
        return TRUNCATED
    p += at[0]
    size -= at[0]
    exponent, factor = p[0], p[1]
    exceptions = <size_t> p[2] | <size_t> p[3] << 8
    memcpy(&reference, p + 4, sizeof(value_t))
    width = p[4 + sizeof(value_t)]
    if value_t is float:
        highest = MAX_EXPONENT_FLOAT
    else:
        highest = MAX_EXPONENT_DOUBLE
    if exponent > highest or factor > exponent:
        return BAD_SCALE
    if width > bits:
        return BAD_WIDTH
    if exceptions > <size_t> count:
        return BAD_EXCEPTION
    packed = (<size_t> count * <size_t> width + 7) // 8
    # All terms are small: at most 2**15 values of at most 8 bytes.
    if header + packed + exceptions * (2 + sizeof(value_t)) > size:
        return TRUNCATED
    body = p + header
    mask = mask_of(width)
    safe = loadable(size - header, width, count)
    if width:
        for i in range(safe):
            out[i] = from_integer(reference + value_at(body, bit, width, mask), exponent, factor, out[i])
            bit += <uint64_t> width
        for i in range(safe, count):
            out[i] = from_integer(
                reference + last_value_at(body, size - header, bit, width, mask), exponent, factor, out[i]
            )
            bit += <uint64_t> width
    else:
        for i in range(count):
            out[i] = from_integer(reference, exponent, factor, out[i])
    body += packed
    for i in range(<Py_ssize_t> exceptions):
        memcpy(&position, body + 2 * i, 2)
        if position >= count:
            return BAD_EXCEPTION
        memcpy(out + position, body + 2 * exceptions + i * <Py_ssize_t> sizeof(value_t), sizeof(value_t))
    at[0] += header + packed + exceptions * (2 + sizeof(value_t))
    return OK


cdef int decode(const uint8_t *p, size_t size, int log_vector, Py_ssize_t count, value_t *out) noexcept nogil:
    """Decode the offsets and vectors after the header. Return OK or a fault."""
    cdef Py_ssize_t vector_size = <Py_ssize_t> 1 << log_vector
    cdef Py_ssize_t vectors = (count + vector_size - 1) >> log_vector, v, start, run
    cdef size_t at = <size_t> vectors * 4
    cdef int status
    if at > size:
        return TRUNCATED
    for v in range(vectors):
        if load32(p + 4 * v) != at:
            return BAD_OFFSET
        start = v << log_vector
        run = count - start if count - start < vector_size else vector_size
        status = decode_vector(p, size, &at, run, out + start)
        if status != OK:
            return status
    return OK


def decode_into(const uint8_t[::1] data, value_t[::1] out):
    """Fill `out` with the values of an ALP page, which must contain exactly this number of values.

    Raises ``UnsupportedError`` for a reserved compression mode or integer encoding.
    """
    cdef size_t size = data.shape[0]
    cdef Py_ssize_t count = out.shape[0]
    cdef int status, log_vector
    cdef int32_t elements
    cdef const uint8_t *p
    if size == 0 and count == 0:
        return
    if size < HEADER:
        raise CorruptFileError("an ALP page lacks a header")
    p = &data[0]
    if p[0] != 0 or p[1] != 0:
        raise UnsupportedError(
            f"ALP compression mode {p[0]} and integer encoding {p[1]} are not supported; both must be 0",
            feature="ALP mode",
        )
    log_vector = p[2]
    if not 3 <= log_vector <= 15:
        raise CorruptFileError(f"an ALP page has vectors of 2**{log_vector} values; the range is 2**3 to 2**15")
    elements = <int32_t> load32(p + 3)
    if elements != count:
        raise CorruptFileError(f"an ALP page contains {elements} values instead of {count}")
    if count == 0:
        return
    with nogil:
        status = decode(p + HEADER, size - HEADER, log_vector, count, &out[0])
    if status != OK:
        raise CorruptFileError(MESSAGES[status])


cdef inline bint to_integer(value_t value, int exponent, int factor, int64_t *encoded) noexcept nogil:
    """Encode `value` as an integer; return whether the integer decodes to exactly the same bits."""
    cdef value_t scaled, back
    cdef uint32_t word, again
    cdef uint64_t long_word, long_again
    if value_t is float:
        scaled = value * POWER_FLOAT[exponent] * INVERSE_FLOAT[factor]
        # Also False for NaN. Beyond 2**22 the sum below is not exact, but a float has no fraction there.
        if not (-2147483648.0 <= scaled < 2147483648.0):
            return False
        if -4194304.0 < scaled < 4194304.0:
            scaled = (scaled + <float> 12582912.0) - <float> 12582912.0
        encoded[0] = <int64_t> <int32_t> scaled
        back = from_integer(<uint64_t> encoded[0], exponent, factor, value)
        memcpy(&word, &value, 4)
        memcpy(&again, &back, 4)
        return word == again
    else:
        scaled = value * POWER[exponent] * INVERSE[factor]
        if not (-9223372036854775808.0 <= scaled < 9223372036854775808.0):
            return False
        if -2251799813685248.0 < scaled < 2251799813685248.0:
            scaled = (scaled + 6755399441055744.0) - 6755399441055744.0
        encoded[0] = <int64_t> scaled
        back = from_integer(<uint64_t> encoded[0], exponent, factor, value)
        memcpy(&long_word, &value, 8)
        memcpy(&long_again, &back, 8)
        return long_word == long_again


cdef uint64_t cost(const value_t *values, Py_ssize_t count, Py_ssize_t step, int exponent, int factor) noexcept nogil:
    """Return the estimated size in bits of every `step`-th of `count` values."""
    cdef int64_t encoded = 0, low = 0, high = 0
    cdef uint64_t exceptions = 0, taken = 0
    cdef Py_ssize_t i = 0
    while i < count:
        if to_integer(values[i], exponent, factor, &encoded):
            if taken == exceptions or encoded < low:
                low = encoded
            if taken == exceptions or encoded > high:
                high = encoded
        else:
            exceptions += 1
        taken += 1
        i += step
    return taken * <uint64_t> bits_of(<uint64_t> high - <uint64_t> low) + exceptions * 8 * (2 + sizeof(value_t))


cdef struct Scale:
    uint64_t bits
    int exponent
    int factor


cdef int best_scales(const value_t *values, Py_ssize_t count, Scale *best) noexcept nogil:
    """Find the best scales for a sample of the page; return their number."""
    cdef Py_ssize_t step = count // SAMPLE + 1
    cdef int exponent, factor, known = 0, place, highest, i
    cdef uint64_t bits
    if value_t is float:
        highest = MAX_EXPONENT_FLOAT
    else:
        highest = MAX_EXPONENT_DOUBLE
    # In descending order: of equivalent scales, the scale with the most digits comes first.
    for exponent in range(highest, -1, -1):
        for factor in range(exponent, -1, -1):
            bits = cost(values, count, step, exponent, factor)
            place = known
            while place > 0 and best[place - 1].bits > bits:
                place -= 1
            if place >= CANDIDATES:
                continue
            if known < CANDIDATES:
                known += 1
            for i in range(known - 1, place, -1):
                best[i] = best[i - 1]
            best[place].bits = bits
            best[place].exponent = exponent
            best[place].factor = factor
    return known


cdef int encode_vector(const value_t *values, Py_ssize_t count, const Scale *scales, int known, Bytes *b) noexcept nogil:
    cdef uint64_t packed[VECTOR]
    cdef uint16_t exceptions[VECTOR]
    cdef Py_ssize_t i, failed = 0, first = -1, step = count // VECTOR_SAMPLE + 1
    cdef uint64_t bits, fewest = 0
    cdef int64_t encoded = 0, low = 0, high = 0, reference
    cdef int chosen = 0, width
    cdef uint8_t *out
    if known > 1:
        for i in range(known):
            bits = cost(values, count, step, scales[i].exponent, scales[i].factor)
            if i == 0 or bits < fewest:
                fewest = bits
                chosen = <int> i
    for i in range(count):
        if to_integer(values[i], scales[chosen].exponent, scales[chosen].factor, &encoded):
            if first < 0:
                first = i
                low = high = encoded
            elif encoded < low:
                low = encoded
            elif encoded > high:
                high = encoded
            packed[i] = <uint64_t> encoded
        else:
            exceptions[failed] = <uint16_t> i
            failed += 1
    width = bits_of(<uint64_t> high - <uint64_t> low)
    if <uint64_t> count * width > <uint64_t> (count - failed) * 8 * (2 + sizeof(value_t)):
        # The range of the integers is so large that exceptions are smaller.
        for i in range(count):
            exceptions[i] = <uint16_t> i
        failed = count
        first = -1
        low = high = width = 0
    for i in range(failed):
        packed[exceptions[i]] = packed[first] if first >= 0 else 0
    for i in range(count):
        packed[i] -= <uint64_t> low
    # The header, `count` integers, the exceptions, and the 8 bytes that pack() may overwrite after its end.
    if bytes_reserve(b, 13 + <size_t> count * 8 + <size_t> failed * 10 + 8) != 0:
        return OUT_OF_MEMORY
    out = b.data + b.size
    out[0] = <uint8_t> scales[chosen].exponent
    out[1] = <uint8_t> scales[chosen].factor
    out[2] = <uint8_t> failed
    out[3] = <uint8_t> (failed >> 8)
    # Little-endian: the low bytes of the 64-bit minimum are the 32-bit minimum.
    reference = low
    memcpy(out + 4, &reference, sizeof(value_t))
    out[4 + sizeof(value_t)] = <uint8_t> width
    out = pack(packed, count, width, out + 5 + sizeof(value_t))
    memcpy(out, exceptions, <size_t> failed * 2)
    out += failed * 2
    for i in range(failed):
        memcpy(out, values + exceptions[i], sizeof(value_t))
        out += sizeof(value_t)
    b.size = out - b.data
    return OK


cdef int encode_all(const value_t *values, Py_ssize_t count, Bytes *b) noexcept nogil:
    cdef Scale scales[CANDIDATES]
    cdef Py_ssize_t vectors = (count + VECTOR - 1) // VECTOR, v, run
    cdef size_t start
    cdef int known, status
    if bytes_reserve(b, HEADER + <size_t> vectors * 4) != 0:
        return OUT_OF_MEMORY
    b.data[0] = b.data[1] = 0
    b.data[2] = LOG_VECTOR
    put32(b.data + 3, <uint32_t> count)
    b.size = HEADER + <size_t> vectors * 4
    if count == 0:
        return OK
    known = best_scales(values, count, scales)
    for v in range(vectors):
        start = b.size - HEADER
        if start > <size_t> 0xFFFFFFFF:
            return OUT_OF_MEMORY
        put32(b.data + HEADER + 4 * v, <uint32_t> start)
        run = count - v * VECTOR if count - v * VECTOR < VECTOR else VECTOR
        status = encode_vector(values + v * VECTOR, run, scales, known, b)
        if status != OK:
            return status
    return OK


def encode(const value_t[::1] values):
    """Return the ALP encoding of `values`, in vectors of 1,024. The scales are chosen with samples of page and vector.
    """
    cdef Bytes out
    cdef int status
    cdef Py_ssize_t count = values.shape[0]
    cdef value_t none = 0
    cdef const value_t *first = &none
    if count > 0x7FFFFFFF:
        raise ValueError("an ALP page can contain at most 2**31 - 1 values; write smaller pages")
    out.data = NULL
    out.size = out.capacity = 0
    if count:
        first = &values[0]
    with nogil:
        status = encode_all(first, count, &out)
    if status != OK:
        bytes_free(&out)
        raise MemoryError("out of memory for ALP encoding")
    return take(&out)
