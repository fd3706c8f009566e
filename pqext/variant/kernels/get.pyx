# cython: language_level=3, cdivision=True
"""Extract the value at a path from every variant and cast it to one type, in one pass.

`cells` casts to nested types, and opens arrays and objects.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free
from pqext.variant.kernels.binary cimport (
    FAULT_METADATA_NULL, FAULT_METADATA_TRUNCATED, BinaryInput, Metadata, binary_at, binary_valid, bit_is_set,
)
from pqext.variant.kernels.cast_put cimport Wanted
from pqext.variant.kernels.cast_result cimport Result, pad, put_value, result_free, result_take
from pqext.variant.kernels.find cimport Step, find_value, open_names
from pqext.variant.kernels.zone cimport Zone

from pqext.variant import faults

cdef class PathSteps:
    """Steps of a path for the kernels."""
    cdef Bytes step_bytes       # of Step
    cdef list names
    cdef int count

    def __init__(self, path):
        cdef Step step
        cdef bytes name
        self.names = []
        self.count = len(path)
        for part in path:
            memset(&step, 0, sizeof(Step))
            if isinstance(part, str):
                name = part.encode("utf-8", "surrogatepass")
                self.names.append(name)
                step.name = <const uint8_t *> name
                step.length = len(name)
            else:
                step.is_index = True
                step.index = part
            if bytes_append(&self.step_bytes, &step, sizeof(Step)) != 0:
                raise MemoryError

    def __dealloc__(self):
        bytes_free(&self.step_bytes)


cdef int describe(Wanted *wanted, object described, Zone zone) except -1:
    """Set the target of a cast, (leaf or target, precision, scale, value size, nanoseconds per tick), and the zone."""
    wanted.zone = NULL if zone is None else &zone.table
    wanted.leaf, wanted.precision, wanted.scale, wanted.width, wanted.unit = described
    return 0


cdef int raise_fault(int status, int64_t row, const uint8_t *start, const uint8_t *p) except -1:
    """Raise the error of a fault, with the offset of the faulty value."""
    cdef bint in_value = start != NULL and p != NULL and not FAULT_METADATA_NULL <= status <= FAULT_METADATA_TRUNCATED
    raise faults.error(status, row=row, offset=p - start if in_value else None)


cdef const uint8_t *bitmap_of(object groups, int64_t rows, int64_t *offset) except? NULL:
    """Return the validity of a struct of `rows` rows, from (buffer, offset) or None."""
    if groups is None:
        return NULL
    bitmap, offset[0] = groups
    if bitmap.size * 8 < offset[0] + rows:
        raise ValueError("the array's validity buffer is too short")
    return <const uint8_t *> <uintptr_t> bitmap.address


def get(BinaryInput metadata, BinaryInput value, object groups, PathSteps path, object described, int64_t first_row,
        Zone zone=None):
    """Cast the value at `path` of every row.

    `groups` is (bitmap buffer, offset) of the struct's validity, or None. Null rows and null values are null.
    `described` is (leaf or target, precision, scale, bytes of a value, nanoseconds per tick). `zone` is the time zone
    of casts between instants and local times, None for UTC. Return (validity, nulls, offsets, data, failures, json).
    `failures` is (number of values that cannot be cast, first row). `json` is (validity, offsets, data) of a binary
    column of the objects and arrays requested as text, which are null in the result; None if there are none. Faults
    raise errors with their row, counted from `first_row`.
    """
    cdef Wanted wanted
    cdef Result result
    cdef Metadata m
    cdef bint known = False
    cdef Step *steps = <Step *> path.step_bytes.data
    cdef const uint8_t *p = NULL
    cdef const uint8_t *start = NULL
    cdef int64_t validity_offset = 0, row = 0, rows = value.column.length
    cdef const uint8_t *validity = bitmap_of(groups, rows, &validity_offset)
    cdef size_t n = 0
    cdef int status = 0
    if metadata.column.length != rows:
        raise ValueError("metadata and value must have the same length")
    describe(&wanted, described, zone)
    memset(&result, 0, sizeof(Result))
    memset(&m, 0, sizeof(Metadata))
    try:
        with nogil:
            while row < rows:
                if bit_is_set(validity, validity_offset + row) and binary_valid(&value.column, row):
                    start = NULL
                    status = FAULT_METADATA_NULL
                    if binary_valid(&metadata.column, row):
                        status = binary_at(&metadata.column, row, &p, &n)
                    if status == 0:
                        status = open_names(&m, &known, steps, path.count, p, n)
                    if status == 0:
                        status = binary_at(&value.column, row, &p, &n)
                    if status != 0:
                        break
                    start = p
                    status = find_value(steps, path.count, &m, &p, &n)
                    if status == 1:
                        status = put_value(&result, &wanted, row, p, n)
                    if status < 0:
                        break
                row += 1
            if status >= 0:
                status = pad(&result.out, rows, &wanted)
            if status == 0 and result.nested.count:
                status = pad(&result.nested, rows, &wanted)
        if status < 0:
            raise_fault(status, first_row + row, start, p)
        return result_take(&result, rows)
    finally:
        result_free(&result)


include "cells.pxi"
