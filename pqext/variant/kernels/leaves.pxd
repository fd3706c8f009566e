# cython: language_level=3, cdivision=True
# One typed value: stored from the variant encoding into its column, and appended from its column to the encoding.
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append
from pqext.variant.kernels.binary cimport (
    BASIC_PRIMITIVE, FAULT_DECIMAL_PRECISION, FAULT_MEMORY, FAULT_STRING_UTF8, FAULT_TIME, TYPE_BINARY, TYPE_DATE,
    TYPE_DECIMAL16, TYPE_DECIMAL4, TYPE_DECIMAL8, TYPE_DOUBLE, TYPE_FALSE, TYPE_FLOAT, TYPE_INT8, TYPE_TIMESTAMP,
    TYPE_TIMESTAMP_NANOS, TYPE_TIMESTAMP_NTZ, TYPE_TIMESTAMP_NTZ_NANOS, TYPE_TIME_NTZ, TYPE_TRUE, TYPE_UUID, binary_at,
    bit_is_set, is_string, primitive_size, read_uint64, string_open, write_uint,
)
from pqext.variant.kernels.binary_write cimport write_string_head
from pqext.variant.kernels.exact cimport exact_open, has_precision, int128, is_exact_type, rescale_exactly
from pqext.variant.kernels.scan cimport utf8_fault
from pqext.variant.kernels.shredding cimport (
    FAULT_TOO_LARGE, LEAF_BINARY, LEAF_BOOLEAN, LEAF_DATE, LEAF_DECIMAL, LEAF_DOUBLE, LEAF_FLOAT, LEAF_INT16,
    LEAF_INT32, LEAF_INT64, LEAF_INT8, LEAF_STRING, LEAF_TIME, LEAF_TIMESTAMP, LEAF_TIMESTAMP_NANOS, LEAF_TIMESTAMP_NTZ,
    LEAF_TIMESTAMP_NTZ_NANOS, LEAF_UUID, Column, Node, Source, bit_set, column_bytes, column_fixed, column_mark,
)
from pqext.variant.kernels.text cimport exact_to_double
from pqext.variant.kernels.text_write cimport write_decimal, write_double


cdef enum:
    NOT_STORED = 0
    STORED = 1

    DAY_MICROS = 86400000000

# Values of other variant types that a leaf accepts.
cdef enum:
    COERCE_EQUIVALENT = 0    # values of its equivalence class that it can hold
    COERCE_EXACT = 1         # nothing: bytes come back as they were
    COERCE_JSON = 2          # these, and decimals whose JSON text a double has as well


cdef inline int _put_exact(
    const Node *node, int coerce, Column *c, int64_t row, const uint8_t *p, size_t n
) noexcept nogil:
    cdef int128 unscaled = 0, fitted = 0
    cdef int scale = 0, status
    cdef int type_id = p[0] >> 2
    cdef int8_t i8
    cdef int16_t i16
    cdef int32_t i32
    cdef int64_t i64
    status = exact_open(p, n, &unscaled, &scale)
    if status != 0:
        return status
    if coerce == COERCE_EXACT:
        if node.leaf == LEAF_DECIMAL:
            status = TYPE_DECIMAL4 if node.precision <= 9 else TYPE_DECIMAL8 if node.precision <= 18 else TYPE_DECIMAL16
            if type_id != status or scale != node.scale:
                return NOT_STORED
        elif type_id != TYPE_INT8 + node.leaf - LEAF_INT8:
            return NOT_STORED
    if node.leaf == LEAF_DECIMAL:
        if not rescale_exactly(unscaled, scale, node.scale, &fitted) or not has_precision(fitted, node.precision):
            return NOT_STORED
        status = column_fixed(c, row, &fitted, 16)
        return STORED if status == 0 else status
    if scale and not rescale_exactly(unscaled, scale, 0, &unscaled):
        return NOT_STORED
    if node.leaf == LEAF_INT64:
        i64 = <int64_t> unscaled
        if i64 != unscaled:
            return NOT_STORED
        status = column_fixed(c, row, &i64, 8)
    elif node.leaf == LEAF_INT32:
        i32 = <int32_t> unscaled
        if i32 != unscaled:
            return NOT_STORED
        status = column_fixed(c, row, &i32, 4)
    elif node.leaf == LEAF_INT16:
        i16 = <int16_t> unscaled
        if i16 != unscaled:
            return NOT_STORED
        status = column_fixed(c, row, &i16, 2)
    else:
        i8 = <int8_t> unscaled
        if i8 != unscaled:
            return NOT_STORED
        status = column_fixed(c, row, &i8, 1)
    return STORED if status == 0 else status


cdef struct Digits:
    const uint8_t *first    # first nonzero digit
    int count               # number of digits from there to the last nonzero digit, without the point
    int power               # power of ten of the first digit


cdef inline void _digits_of(const uint8_t *p, const uint8_t *end, Digits *digits) noexcept nogil:
    """Find the digits of the text of a number, which may have a sign, a point and an exponent."""
    cdef int place = 0, exponent = 0, zeros = 0    # place: index of the next digit after the point
    cdef bint point = False, negative = False
    memset(digits, 0, sizeof(Digits))
    while p < end and p[0] != c'e' and p[0] != c'E':
        if p[0] == c'.':
            point = True
            place = -1
        elif p[0] != c'-':
            if digits.first == NULL and p[0] != c'0':
                digits.first = p
                digits.power = place if point else 0
            if digits.first != NULL:
                zeros = zeros + 1 if p[0] == c'0' else 0
                digits.count += 1
                digits.power += not point and digits.first != p
            place -= point
        p += 1
    digits.count -= zeros
    if p < end:
        p += 1
        while p < end:
            if p[0] == c'-':
                negative = True
            elif p[0] != c'+':
                exponent = exponent * 10 + p[0] - c'0'
            p += 1
        digits.power += -exponent if negative else exponent


cdef inline bint _same_number(
    const uint8_t *a, const uint8_t *a_end, const uint8_t *b, const uint8_t *b_end
) noexcept nogil:
    """Return whether two texts of numbers with the same sign have the same digits."""
    cdef Digits left, right
    cdef int i
    _digits_of(a, a_end, &left)
    _digits_of(b, b_end, &right)
    if left.count != right.count or (left.count and left.power != right.power):
        return False
    a, b = left.first, right.first
    for i in range(left.count):
        a += a[0] == c'.'
        b += b[0] == c'.'
        if a[0] != b[0]:
            return False
        a += 1
        b += 1
    return True


cdef inline bint is_double_text(int128 unscaled, int scale, double *out) noexcept nogil:
    """Return whether a decimal equals the JSON text of the nearest double: it has a point and no more digits than
    doubles.

    An integer without a point differs from the text of a double.
    """
    cdef uint8_t[64] text
    cdef uint8_t[64] other
    cdef const uint8_t *end
    cdef uint64_t bits
    if scale == 0:
        return False
    while scale > 0 and unscaled % 10 == 0:
        unscaled = unscaled // 10    # JSON omits trailing zeros of a decimal
        scale -= 1
    out[0] = exact_to_double(unscaled, scale)
    if has_precision(unscaled, 15):
        return True     # up to 15 digits round-trip through the nearest double
    memcpy(&bits, out, 8)
    end = write_decimal(text, <int64_t> (unscaled >> 64), <uint64_t> unscaled, scale)
    return _same_number(text, end, other, write_double(other, bits))


cdef inline int _put_decimal_as_double(Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    cdef int128 unscaled = 0
    cdef int scale = 0
    cdef double v = 0
    cdef int status = exact_open(p, n, &unscaled, &scale)
    if status != 0:
        return status
    if not is_double_text(unscaled, scale, &v):
        return NOT_STORED
    status = column_fixed(c, row, &v, 8)
    return STORED if status == 0 else status


cdef inline int _put_timestamp(
    const Node *node, int coerce, Column *c, int64_t row, const uint8_t *p
) noexcept nogil:
    cdef int type_id = p[0] >> 2
    cdef bint value_nanos = type_id == TYPE_TIMESTAMP_NANOS or type_id == TYPE_TIMESTAMP_NTZ_NANOS
    cdef bint leaf_nanos = node.leaf == LEAF_TIMESTAMP_NANOS or node.leaf == LEAF_TIMESTAMP_NTZ_NANOS
    cdef bint value_utc = type_id == TYPE_TIMESTAMP or type_id == TYPE_TIMESTAMP_NANOS
    cdef bint leaf_utc = node.leaf == LEAF_TIMESTAMP or node.leaf == LEAF_TIMESTAMP_NANOS
    cdef int64_t v = <int64_t> read_uint64(p + 1)
    cdef int128 wide
    cdef int status
    if value_utc != leaf_utc or (coerce == COERCE_EXACT and value_nanos != leaf_nanos):
        return NOT_STORED
    if leaf_nanos and not value_nanos:
        wide = <int128> v * 1000
        v = <int64_t> wide
        if v != wide:
            return NOT_STORED
    elif value_nanos and not leaf_nanos:
        if v % 1000 != 0:
            return NOT_STORED
        v = v // 1000
    status = column_fixed(c, row, &v, 8)
    return STORED if status == 0 else status


cdef inline int put_leaf(
    const Node *node, int coerce, Column *c, int64_t row, const uint8_t *p, size_t n
) noexcept nogil:
    """Store the value of `n` bytes at `p` if the leaf can represent it exactly. Return STORED, NOT_STORED or a fault.
    """
    cdef const uint8_t *text = NULL
    cdef size_t length = 0
    cdef int type_id, status
    cdef int64_t v
    cdef int leaf = node.leaf
    if is_string(p):
        if leaf != LEAF_STRING:
            return NOT_STORED
        status = string_open(p, n, &text, &length)
        if status != 0:
            return status
        if coerce == COERCE_EXACT and length <= 63 and p[0] & 3 == BASIC_PRIMITIVE:
            return NOT_STORED
        if utf8_fault(text, length) >= 0:
            return FAULT_STRING_UTF8
        status = column_bytes(c, row, text, length)
        return STORED if status == 0 else status
    if p[0] & 3 != BASIC_PRIMITIVE:
        return NOT_STORED
    type_id = p[0] >> 2
    if is_exact_type(type_id):
        if leaf == LEAF_DOUBLE and coerce == COERCE_JSON and type_id >= TYPE_DECIMAL4:
            return _put_decimal_as_double(c, row, p, n)
        if not (LEAF_INT8 <= leaf <= LEAF_INT64 or leaf == LEAF_DECIMAL):
            return NOT_STORED
        return _put_exact(node, coerce, c, row, p, n)
    if type_id == TYPE_TRUE or type_id == TYPE_FALSE:
        if leaf != LEAF_BOOLEAN:
            return NOT_STORED
        status = column_mark(c, row)
        if status == 0 and type_id == TYPE_TRUE:
            status = bit_set(&c.data, row)
    elif type_id == TYPE_DOUBLE and leaf == LEAF_DOUBLE:
        status = column_fixed(c, row, p + 1, 8)
    elif type_id == TYPE_FLOAT and leaf == LEAF_FLOAT:
        status = column_fixed(c, row, p + 1, 4)
    elif type_id == TYPE_DATE and leaf == LEAF_DATE:
        status = column_fixed(c, row, p + 1, 4)
    elif type_id == TYPE_TIME_NTZ and leaf == LEAF_TIME:
        v = <int64_t> read_uint64(p + 1)
        if not 0 <= v < DAY_MICROS:
            return FAULT_TIME
        status = column_fixed(c, row, p + 1, 8)
    elif (
        (type_id == TYPE_TIMESTAMP or type_id == TYPE_TIMESTAMP_NTZ or type_id == TYPE_TIMESTAMP_NANOS
         or type_id == TYPE_TIMESTAMP_NTZ_NANOS)
        and LEAF_TIMESTAMP <= leaf <= LEAF_TIMESTAMP_NTZ_NANOS
    ):
        return _put_timestamp(node, coerce, c, row, p)
    elif type_id == TYPE_BINARY and leaf == LEAF_BINARY:
        status = string_open(p, n, &text, &length)
        if status == 0:
            status = column_bytes(c, row, text, length)
    elif type_id == TYPE_UUID and leaf == LEAF_UUID:
        status = column_fixed(c, row, p + 1, 16)
    else:
        return NOT_STORED
    return STORED if status == 0 else status


cdef inline int append_leaf(Bytes *out, const Node *node, const Source *source, int64_t row) noexcept nogil:
    """Append the typed value at `row` as the primitive of its leaf's variant type. Return 0 or a fault."""
    cdef int64_t index = source.typed_offset + row
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int leaf = node.leaf
    cdef uint8_t head[18]
    cdef size_t size
    cdef int128 unscaled = 0
    cdef int status
    if leaf == LEAF_STRING or leaf == LEAF_BINARY:
        status = binary_at(&source.typed_bytes, row, &p, &n)
        if status != 0:
            return status
        if n > 0x7FFFFFFF:
            return FAULT_TOO_LARGE
        if leaf == LEAF_BINARY:
            head[0] = TYPE_BINARY << 2
            write_uint(head + 1, <uint32_t> n, 4)
            size = 5
        else:
            if utf8_fault(p, n) >= 0:
                return FAULT_STRING_UTF8
            size = <size_t> (write_string_head(head, n) - head)
        if bytes_append(out, head, size) != 0 or bytes_append(out, p, n) != 0:
            return FAULT_MEMORY
        return 0
    p = source.typed_data
    if leaf == LEAF_BOOLEAN:
        head[0] = (TYPE_TRUE if bit_is_set(p, index) else TYPE_FALSE) << 2
        size = 1
    elif leaf == LEAF_DECIMAL:
        memcpy(&unscaled, p + index * 16, 16)
        if not has_precision(unscaled, 38):
            return FAULT_DECIMAL_PRECISION
        head[1] = <uint8_t> node.scale
        memcpy(head + 2, &unscaled, 16)
        if node.precision <= 9 and has_precision(unscaled, 9):
            head[0] = TYPE_DECIMAL4 << 2
            size = 6
        elif node.precision <= 18 and has_precision(unscaled, 18):
            head[0] = TYPE_DECIMAL8 << 2
            size = 10
        else:
            head[0] = TYPE_DECIMAL16 << 2
            size = 18
    else:
        head[0] = <uint8_t> (type_of_leaf(leaf) << 2)
        size = <size_t> primitive_size(head[0] >> 2)
        memcpy(head + 1, p + <size_t> index * (size - 1), size - 1)
    return 0 if bytes_append(out, head, size) == 0 else FAULT_MEMORY


cdef inline int type_of_leaf(int leaf) noexcept nogil:
    if leaf <= LEAF_INT64:
        return TYPE_INT8 + leaf - LEAF_INT8
    if leaf == LEAF_FLOAT:
        return TYPE_FLOAT
    if leaf == LEAF_DOUBLE:
        return TYPE_DOUBLE
    if leaf == LEAF_DATE:
        return TYPE_DATE
    if leaf == LEAF_TIME:
        return TYPE_TIME_NTZ
    if leaf == LEAF_TIMESTAMP:
        return TYPE_TIMESTAMP
    if leaf == LEAF_TIMESTAMP_NANOS:
        return TYPE_TIMESTAMP_NANOS
    if leaf == LEAF_TIMESTAMP_NTZ:
        return TYPE_TIMESTAMP_NTZ
    if leaf == LEAF_TIMESTAMP_NTZ_NANOS:
        return TYPE_TIMESTAMP_NTZ_NANOS
    return TYPE_UUID
