# cython: language_level=3
"""Front compression of byte arrays: lengths of prefixes shared with the previous value, and suffixes
(encodings.delta_byte_array).
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.bitpack cimport load64
from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve, take

from pqext.core.base.errors import ArrayLimitError, CorruptFileError

cdef enum:
    OK = 0
    TRUNCATED = -1
    NEGATIVE = -2
    BAD_PREFIX = -3
    TOO_LARGE = -4
    BAD_LENGTH = -5
    OUT_OF_MEMORY = -6

MESSAGES = {
    TRUNCATED: "the suffixes of byte arrays end before the last suffix",
    NEGATIVE: "a prefix or suffix has a negative length",
    BAD_PREFIX: "a prefix is longer than the previous value",
    BAD_LENGTH: "the length of a value differs from its type",
}


cdef int measure(
    const int32_t *prefixes, const int32_t *suffixes, Py_ssize_t count, size_t size, int64_t width, int64_t limit,
    int32_t *lengths, int64_t *total
) noexcept nogil:
    """Compute and check all lengths before bytes are copied. Return OK or a fault.

    `width` is the required length of values, or -1 for any length.
    """
    cdef Py_ssize_t i
    cdef int64_t before = 0, length, taken = 0, sum = 0
    for i in range(count):
        if prefixes[i] < 0 or suffixes[i] < 0:
            return NEGATIVE
        if prefixes[i] > before:
            return BAD_PREFIX
        length = <int64_t> prefixes[i] + suffixes[i]
        if width >= 0 and length != width:
            return BAD_LENGTH
        # Both sums stay below 2**62: each step adds less than 2**32, and the limits end the loop early.
        taken += suffixes[i]
        if taken > <int64_t> size:
            return TRUNCATED
        sum += length
        if sum > limit:
            return TOO_LARGE
        lengths[i] = <int32_t> length
        before = length
    total[0] = sum
    return OK


cdef void join(
    const int32_t *prefixes, const int32_t *suffixes, Py_ssize_t count, const uint8_t *p, uint8_t *out
) noexcept nogil:
    """Concatenate the values, whose lengths `measure` has checked."""
    cdef uint8_t *before = out
    cdef Py_ssize_t i
    for i in range(count):
        # The previous value ends at the start of this value, so they do not overlap.
        if prefixes[i]:
            memcpy(out, before, prefixes[i])
        before = out
        out += prefixes[i]
        if suffixes[i]:
            memcpy(out, p, suffixes[i])
            p += suffixes[i]
            out += suffixes[i]


def join_prefixes(
    const int32_t[::1] prefixes, const int32_t[::1] suffixes, const uint8_t[::1] data, int32_t[::1] lengths,
    int64_t limit, int64_t width=-1, claim=None,
):
    """Return the concatenated values, given their prefix lengths, suffix lengths and concatenated suffixes `data`.

    Fill `lengths`. `width` is the length that each value must have, or -1 for any length. Raises ``LimitError`` if the
    values exceed `limit` bytes in total. `claim` is called with their size before memory is allocated.
    """
    cdef Bytes out
    cdef Py_ssize_t count = prefixes.shape[0]
    cdef const uint8_t *p = NULL
    cdef int64_t total = 0
    cdef int status = OK
    if suffixes.shape[0] != count or lengths.shape[0] != count:
        raise ValueError("prefixes, suffixes and lengths must have the same length")
    out.data = NULL
    out.size = out.capacity = 0
    if count:
        if data.shape[0]:
            p = &data[0]
        with nogil:
            status = measure(&prefixes[0], &suffixes[0], count, data.shape[0], width, limit, &lengths[0], &total)
        if status == OK and claim is not None:
            claim(total)
        with nogil:
            if status == OK and bytes_reserve(&out, total) != 0:
                status = OUT_OF_MEMORY
            if status == OK and total:
                join(&prefixes[0], &suffixes[0], count, p, out.data)
                out.size = total
    if status == TOO_LARGE:
        raise ArrayLimitError(
            f"shared prefixes expand to more than the {limit} bytes of byte array values left for this batch; "
            "read fewer rows at a time with iter_batches"
        )
    if status == OUT_OF_MEMORY:
        raise MemoryError("out of memory for byte array values")
    if status != OK:
        raise CorruptFileError(MESSAGES[status])
    return take(&out)


cdef inline Py_ssize_t common(const uint8_t *a, const uint8_t *b, Py_ssize_t size) noexcept nogil:
    """Return the length of the common prefix within `size` bytes."""
    cdef Py_ssize_t at = 0
    cdef uint64_t differing
    while at + 8 <= size:
        differing = load64(a + at) ^ load64(b + at)
        if differing:
            # Little-endian: the lowest byte that differs comes first.
            while not differing & 0xFF:
                differing >>= 8
                at += 1
            return at
        at += 8
    while at < size and a[at] == b[at]:
        at += 1
    return at


cdef int split(
    const uint8_t *p, const int32_t *ends, Py_ssize_t count, int32_t *prefixes, int32_t *suffixes, Bytes *out
) noexcept nogil:
    cdef Py_ssize_t i, length, before = 0, shared
    cdef uint8_t *target
    # The suffixes are at most as long as the values.
    if bytes_reserve(out, ends[count] - ends[0]) != 0:
        return OUT_OF_MEMORY
    target = out.data
    for i in range(count):
        length = ends[i + 1] - ends[i]
        shared = 0
        if i:
            shared = common(p + ends[i - 1], p + ends[i], before if before < length else length)
        prefixes[i] = <int32_t> shared
        suffixes[i] = <int32_t> (length - shared)
        if length > shared:
            memcpy(target, p + ends[i] + shared, length - shared)
            target += length - shared
        before = length
    out.size = target - out.data
    return OK


def split_prefixes(const uint8_t[::1] data, const int32_t[::1] offsets, int32_t[::1] prefixes, int32_t[::1] suffixes):
    """Return the concatenated suffixes of the values between consecutive `offsets`; fill the lengths of both parts."""
    cdef Bytes out
    cdef Py_ssize_t i, count = offsets.shape[0] - 1
    cdef const uint8_t *p = NULL
    cdef int status = OK
    if count < 0 or prefixes.shape[0] != count or suffixes.shape[0] != count:
        raise ValueError("there must be one more offset than values")
    out.data = NULL
    out.size = out.capacity = 0
    if data.shape[0]:
        p = &data[0]
    if count:
        if offsets[0] < 0:
            raise ValueError("offsets must not be negative")
        for i in range(count):
            if offsets[i] > offsets[i + 1]:
                raise ValueError("offsets must ascend")
        if offsets[count] > data.shape[0]:
            raise ValueError("offsets exceed the data")
        with nogil:
            status = split(p, &offsets[0], count, &prefixes[0], &suffixes[0], &out)
    if status != OK:
        bytes_free(&out)
        raise MemoryError("out of memory for byte array values")
    return take(&out)
