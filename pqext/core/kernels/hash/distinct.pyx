# cython: language_level=3
"""Find the distinct values of a column with a hash table: the dictionary of a chunk, and the index of each value in it.
"""
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from pqext.core.kernels.bitpack cimport load64
from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take

cdef extern from *:
    """
    #include "pqext/core/kernels/portable.h"
    /* Both halves of the product of two words, folded: every bit of either word reaches every bit of the result. */
    static inline uint64_t pqext_fold(uint64_t a, uint64_t b) {
        uint64_t high, low = pqext_multiply(a, b, &high);
        return low ^ high;
    }
    """
    uint64_t fold "pqext_fold"(uint64_t a, uint64_t b) noexcept nogil

# Random seed, so that values cannot be chosen to collide.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")
cdef uint64_t SALT = int.from_bytes(os.urandom(8), "little") | 1

cdef enum:
    OK = 0
    OUT_OF_MEMORY = -1


cdef inline uint64_t hash_value(const uint8_t *p, size_t size) noexcept nogil:
    cdef uint64_t h = SEED ^ size, a = 0, b = 0
    cdef uint32_t word
    while size > 16:
        h = fold(load64(p) ^ SALT, load64(p + 8) ^ h)
        p += 16
        size -= 16
    if size >= 8:
        a = load64(p)
        b = load64(p + size - 8)
    elif size >= 4:
        memcpy(&word, p, 4)
        a = word
        memcpy(&word, p + size - 4, 4)
        b = word
    elif size:
        a = <uint64_t> p[0] << 16 | <uint64_t> p[size >> 1] << 8 | p[size - 1]
    return fold(a ^ SALT, b ^ h)


cdef int grow(Table *table) noexcept nogil:
    """Double the number of slots; entries keep their order."""
    cdef uint64_t count = (table.mask + 1) * 2 if table.slots != NULL else 256
    cdef uint64_t i, at
    cdef Slot *slots = <Slot *> calloc(count, sizeof(Slot))
    if slots == NULL:
        return OUT_OF_MEMORY
    if table.slots != NULL:
        for i in range(table.mask + 1):
            if table.slots[i].entry:
                at = table.slots[i].hash & (count - 1)
                while slots[at].entry:
                    at = (at + 1) & (count - 1)
                slots[at] = table.slots[i]
    free(table.slots)
    table.slots = slots
    table.mask = count - 1
    return OK


cdef int add(Table *table, uint64_t at, uint32_t hash, const uint8_t *value, size_t size) noexcept nogil:
    """Insert a new value into the empty slot `at`. Return OK or OUT_OF_MEMORY."""
    cdef int32_t end
    if bytes_append(&table.values, value, size) != 0:
        return OUT_OF_MEMORY
    end = <int32_t> table.values.size
    if bytes_append(&table.starts, &end, 4) != 0:
        return OUT_OF_MEMORY
    table.entries += 1
    table.slots[at].hash = hash
    table.slots[at].entry = table.entries
    if <uint64_t> table.entries * 2 > table.mask:
        return grow(table)
    return OK


cdef inline Py_ssize_t fixed(
    Table *table, const uint8_t *values, Py_ssize_t width, Py_ssize_t count, Py_ssize_t limit, int32_t *indices
) noexcept nogil:
    """Index `count` values, or fewer if the entries would exceed `limit` bytes. Inlined for each width."""
    cdef Py_ssize_t i
    cdef const uint8_t *value
    cdef uint64_t at
    cdef uint32_t hash
    for i in range(count):
        value = values + i * width
        hash = <uint32_t> hash_value(value, width)
        at = hash & table.mask
        while table.slots[at].entry and (
            table.slots[at].hash != hash
            or memcmp(table.values.data + (table.slots[at].entry - 1) * width, value, width) != 0
        ):
            at = (at + 1) & table.mask
        if table.slots[at].entry:
            indices[i] = table.slots[at].entry - 1
            continue
        if <Py_ssize_t> table.values.size + width > limit:
            return i
        indices[i] = table.entries
        if add(table, at, hash, value, width) != OK:
            return OUT_OF_MEMORY
    return count


cdef inline bint same(Table *table, int32_t entry, const uint8_t *value, size_t size) noexcept nogil:
    cdef const int32_t *starts = <const int32_t *> table.starts.data
    cdef const uint8_t *held = table.values.data + starts[entry]
    return <size_t> (starts[entry + 1] - starts[entry]) == size and (size == 0 or memcmp(held, value, size) == 0)


cdef Py_ssize_t byte_arrays(
    Table *table, const uint8_t *data, const int32_t *offsets, Py_ssize_t count, Py_ssize_t limit, int32_t *indices
) noexcept nogil:
    cdef Py_ssize_t i
    cdef size_t size
    cdef const uint8_t *value
    cdef uint64_t at
    cdef uint32_t hash
    for i in range(count):
        value = data + offsets[i]
        size = offsets[i + 1] - offsets[i]
        hash = <uint32_t> hash_value(value, size)
        at = hash & table.mask
        while table.slots[at].entry and (
            table.slots[at].hash != hash or not same(table, table.slots[at].entry - 1, value, size)
        ):
            at = (at + 1) & table.mask
        if table.slots[at].entry:
            indices[i] = table.slots[at].entry - 1
            continue
        # Each entry is stored after a length of four bytes.
        if table.values.size + 4 * <size_t> (table.entries + 1) + size > <size_t> limit:
            return i
        indices[i] = table.entries
        if add(table, at, hash, value, size) != OK:
            return OUT_OF_MEMORY
    return count


cdef Table open_table() except *:
    cdef Table table
    cdef int32_t zero = 0
    table.slots = NULL
    table.mask = 0
    table.entries = 0
    table.values.data = table.starts.data = NULL
    table.values.size = table.values.capacity = table.starts.size = table.starts.capacity = 0
    # A valid address even if every entry is empty.
    if grow(&table) != OK or bytes_append(&table.starts, &zero, 4) != 0 or bytes_reserve(&table.values, 64) != 0:
        free(table.slots)
        bytes_free(&table.starts)
        raise MemoryError("out of memory for the dictionary")
    return table


cdef void close_table(Table *table) noexcept nogil:
    free(table.slots)
    table.slots = NULL
    bytes_free(&table.values)
    bytes_free(&table.starts)


cdef finish(Table *table, Py_ssize_t done):
    free(table.slots)
    table.slots = NULL
    if done < 0:
        close_table(table)
        raise MemoryError("out of memory for the dictionary")
    return done, take(&table.starts), take(&table.values)


cdef Py_ssize_t index_values(
    Table *table, const uint8_t *values, const int32_t *ends, Py_ssize_t width, Py_ssize_t count, Py_ssize_t limit,
    int32_t *indices
) noexcept nogil:
    if width == 0:
        return byte_arrays(table, values, ends, count, limit, indices)
    if width == 4:
        return fixed(table, values, 4, count, limit, indices)
    if width == 8:
        return fixed(table, values, 8, count, limit, indices)
    if width == 16:
        return fixed(table, values, 16, count, limit, indices)
    return fixed(table, values, width, count, limit, indices)


def index_array(
    object first, object second, Py_ssize_t start, Py_ssize_t width, Py_ssize_t limit, int32_t[::1] indices
):
    """Number the distinct values of an Arrow array in the order of their first occurrence.

    The values from number `start` on have `width` bytes each in the buffer `first` or, if `width` is 0, are between its
    int32 offsets in `second`. Fill `indices`, one per value, up to the value with which the entries would exceed
    `limit` bytes (at most 1 GiB); byte arrays count four additional bytes. Return (values indexed, int32 offsets of the
    entries, bytes of the entries).
    """
    cdef Py_ssize_t count = indices.shape[0]
    cdef Py_buffer held, data
    cdef Table table
    cdef Py_ssize_t done = 0, i
    cdef const uint8_t *values
    cdef const int32_t *ends
    cdef uint8_t nothing = 0
    if start < 0 or not 0 <= width <= 1 << 31 or not 0 <= limit <= 1 << 30:
        raise ValueError("the range of values exceeds the column")
    if count == 0:
        table = open_table()
        return finish(&table, 0)
    PyObject_GetBuffer(first, &held, PyBUF_SIMPLE)
    try:
        if width:
            if held.len // width - count < start:
                raise ValueError("the buffer is shorter than its values")
            values = <const uint8_t *> held.buf + start * width
            table = open_table()
            with nogil:
                done = index_values(&table, values, NULL, width, count, limit, &indices[0])
            return finish(&table, done)
        if held.len // 4 - 1 - count < start:
            raise ValueError("the buffer is shorter than its values")
        ends = <const int32_t *> held.buf + start
        for i in range(count):
            if ends[i] > ends[i + 1]:
                raise ValueError("offsets must ascend")
        if second is None:
            if ends[0] < 0 or ends[count] > 0:
                raise ValueError("offsets exceed the data")
            table = open_table()
            done = index_values(&table, &nothing, ends, 0, count, limit, &indices[0])
            return finish(&table, done)
        PyObject_GetBuffer(second, &data, PyBUF_SIMPLE)
        try:
            if ends[0] < 0 or ends[count] > data.len:
                raise ValueError("offsets exceed the data")
            table = open_table()
            with nogil:
                done = index_values(&table, <const uint8_t *> data.buf, ends, 0, count, limit, &indices[0])
            return finish(&table, done)
        finally:
            PyBuffer_Release(&data)
    finally:
        PyBuffer_Release(&held)
