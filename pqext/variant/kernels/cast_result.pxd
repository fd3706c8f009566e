# cython: language_level=3, cdivision=True
# Result of casting values: a column, and the values that failed to cast.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from pqext.core.kernels.buffer cimport bytes_free, take
from pqext.variant.kernels.cast cimport cast_value
from pqext.variant.kernels.cast_put cimport CAST_FAILED, CAST_JSON, TARGET_NULL, Wanted, is_variable
from pqext.variant.kernels.shredding cimport Column, bytes_zero_to, column_bytes, column_pad


cdef struct Result:
    Column out
    Column nested           # objects and arrays requested as text, to be formatted as JSON
    int64_t failures
    int64_t first_failure   # row of the first failure

cdef inline int put_value(Result *result, const Wanted *wanted, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    cdef int status = cast_value(wanted, &result.out, row, p, n)
    if status == CAST_FAILED:
        if result.failures == 0:
            result.first_failure = row
        result.failures += 1
        return 0
    if status == CAST_JSON:
        return column_bytes(&result.nested, row, p, n)
    return status if status < 0 else 0


cdef inline int pad(Column *c, int64_t rows, const Wanted *wanted) noexcept nogil:
    """Make room for the rows at the end that were not set. Return 0 or a fault."""
    cdef size_t bits = <size_t> ((rows + 7) // 8)
    cdef int status = bytes_zero_to(&c.validity, bits)
    if status == 0 and wanted.leaf != TARGET_NULL:
        if is_variable(wanted):
            status = column_pad(c, rows)
        else:
            status = bytes_zero_to(&c.data, <size_t> rows * <size_t> wanted.width if wanted.width else bits)
    return status


cdef inline void result_free(Result *result) noexcept:
    bytes_free(&result.out.validity)
    bytes_free(&result.out.offsets)
    bytes_free(&result.out.data)
    bytes_free(&result.nested.validity)
    bytes_free(&result.nested.offsets)
    bytes_free(&result.nested.data)


cdef inline object result_take(Result *result, int64_t rows):
    return (
        take(&result.out.validity), rows - result.out.count, take(&result.out.offsets), take(&result.out.data),
        (result.failures, result.first_failure),
        (take(&result.nested.validity), take(&result.nested.offsets), take(&result.nested.data))
        if result.nested.count else None,
    )
