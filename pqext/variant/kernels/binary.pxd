# cython: language_level=3
# Bounds-checked readers of the Variant binary encoding, for all variant kernels to inline (`binary_write`: writers).
# Every reader takes the bytes that are available and returns 0 (or a count) or a negative `Fault`;
# the rules and messages of faults are in pqext/variant/faults.py. All integers are little-endian.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp


cpdef enum Fault:
    FAULT_MEMORY = -1
    FAULT_ARROW = -2
    FAULT_METADATA_TRUNCATED = -10
    FAULT_METADATA_VERSION = -11
    FAULT_METADATA_OFFSETS = -12
    FAULT_METADATA_UTF8 = -13
    FAULT_METADATA_ORDER = -14
    FAULT_METADATA_NULL = -15
    FAULT_VALUE_TRUNCATED = -20
    FAULT_VALUE_TRAILING = -21
    FAULT_UNKNOWN_TYPE = -22
    FAULT_STRING_UTF8 = -23
    FAULT_DECIMAL_SCALE = -24
    FAULT_DECIMAL_PRECISION = -25
    FAULT_NOT_CONTAINER = -26
    FAULT_TIME = -27
    FAULT_VALUE_NULL = -28
    FAULT_FIELD_ID = -30
    FAULT_FIELD_ORDER = -31
    FAULT_FIELD_DUPLICATE = -32
    FAULT_CHILD_OFFSET = -33
    FAULT_CHILD_SIZE = -34
    FAULT_DEPTH = -35


cdef enum:
    BASIC_PRIMITIVE = 0
    BASIC_SHORT_STRING = 1
    BASIC_OBJECT = 2
    BASIC_ARRAY = 3

    TYPE_NULL = 0
    TYPE_TRUE = 1
    TYPE_FALSE = 2
    TYPE_INT8 = 3
    TYPE_INT16 = 4
    TYPE_INT32 = 5
    TYPE_INT64 = 6
    TYPE_DOUBLE = 7
    TYPE_DECIMAL4 = 8
    TYPE_DECIMAL8 = 9
    TYPE_DECIMAL16 = 10
    TYPE_DATE = 11
    TYPE_TIMESTAMP = 12
    TYPE_TIMESTAMP_NTZ = 13
    TYPE_FLOAT = 14
    TYPE_BINARY = 15
    TYPE_STRING = 16
    TYPE_TIME_NTZ = 17
    TYPE_TIMESTAMP_NANOS = 18
    TYPE_TIMESTAMP_NTZ_NANOS = 19
    TYPE_UUID = 20
    LAST_TYPE = 20


cdef struct Metadata:
    const uint8_t *data
    size_t size
    int offset_size
    uint32_t count
    const uint8_t *strings
    size_t strings_size
    bint sorted


cdef struct Container:
    const uint8_t *ids        # NULL in an array
    const uint8_t *offsets
    const uint8_t *values
    uint32_t count
    int id_size
    int offset_size
    size_t values_size
    size_t total_size


cdef struct BinaryColumn:
    # Buffers of an Arrow binary or string array with the slice's offset; exactly one offsets pointer is set.
    const uint8_t *data
    int64_t data_size
    const int32_t *offsets32
    const int64_t *offsets64
    const uint8_t *validity   # NULL: no nulls
    int64_t offset
    int64_t length


cdef class BinaryInput:
    """Owner of an Arrow binary or string array, whose buffers it exposes as a `BinaryColumn`."""
    cdef object array
    cdef BinaryColumn column


cdef class VariantInput:
    """Owner of an unshredded variant struct array: its validity and its two children."""
    cdef object array
    cdef BinaryInput metadata_input
    cdef BinaryInput value_input
    cdef BinaryColumn metadata
    cdef BinaryColumn value
    cdef const uint8_t *validity
    cdef int64_t offset
    cdef int64_t length


# --- Arrow columns -------------------------------------------------------------------------------

cdef inline bint bit_is_set(const uint8_t *bits, int64_t index) noexcept nogil:
    return bits == NULL or (bits[index >> 3] >> (index & 7)) & 1


cdef inline bint binary_valid(const BinaryColumn *column, int64_t row) noexcept nogil:
    return bit_is_set(column.validity, column.offset + row)


cdef inline int binary_at(const BinaryColumn *column, int64_t row, const uint8_t **p, size_t *n) noexcept nogil:
    """Read the bytes of `row`, which must be below `column.length`. Return 0 or a fault."""
    cdef int64_t start, stop
    cdef int64_t index = column.offset + row
    if column.offsets32 != NULL:
        start = column.offsets32[index]
        stop = column.offsets32[index + 1]
    else:
        start = column.offsets64[index]
        stop = column.offsets64[index + 1]
    if start < 0 or stop < start or stop > column.data_size:
        return FAULT_ARROW
    p[0] = column.data + start
    n[0] = <size_t> (stop - start)
    return 0


# --- Integers ------------------------------------------------------------------------------------

cdef inline uint32_t read_uint(const uint8_t *p, int size) noexcept nogil:
    """Read an unsigned integer of 1 to 4 bytes, all of which must be available."""
    if size == 1:
        return p[0]
    if size == 2:
        return p[0] | <uint32_t> p[1] << 8
    if size == 3:
        return p[0] | <uint32_t> p[1] << 8 | <uint32_t> p[2] << 16
    return p[0] | <uint32_t> p[1] << 8 | <uint32_t> p[2] << 16 | <uint32_t> p[3] << 24


cdef inline uint64_t read_uint64(const uint8_t *p) noexcept nogil:
    return read_uint(p, 4) | <uint64_t> read_uint(p + 4, 4) << 32


cdef inline void write_uint(uint8_t *p, uint32_t v, int size) noexcept nogil:
    """Store the low `size` (1 to 4) bytes of `v`."""
    p[0] = <uint8_t> v
    if size > 1:
        p[1] = <uint8_t> (v >> 8)
    if size > 2:
        p[2] = <uint8_t> (v >> 16)
    if size > 3:
        p[3] = <uint8_t> (v >> 24)


cdef inline void write_uint64(uint8_t *p, uint64_t v) noexcept nogil:
    write_uint(p, <uint32_t> v, 4)
    write_uint(p + 4, <uint32_t> (v >> 32), 4)


cdef inline int uint_size(uint32_t v) noexcept nogil:
    """Return the number of bytes needed to store `v`: 1 to 4."""
    return 1 if v < 0x100 else 2 if v < 0x10000 else 3 if v < 0x1000000 else 4


# --- Metadata ------------------------------------------------------------------------------------

cdef inline int metadata_open(const uint8_t *p, size_t n, Metadata *out) noexcept nogil:
    """Check the header, size and extent of the dictionary. Names are checked when they are read. Return 0 or a fault.
    """
    cdef uint64_t head
    cdef uint32_t last
    if n < 1:
        return FAULT_METADATA_TRUNCATED
    if p[0] & 0x0F != 1:
        return FAULT_METADATA_VERSION
    out.data = p
    out.size = n
    out.sorted = (p[0] >> 4) & 1
    out.offset_size = (p[0] >> 6) + 1
    if n < 1 + <size_t> out.offset_size:
        return FAULT_METADATA_TRUNCATED
    out.count = read_uint(p + 1, out.offset_size)
    head = 1 + (<uint64_t> out.count + 2) * <uint64_t> out.offset_size
    if head > n:
        return FAULT_METADATA_TRUNCATED
    out.strings = p + head
    out.strings_size = n - head
    last = read_uint(p + head - out.offset_size, out.offset_size)
    if last > out.strings_size:
        return FAULT_METADATA_TRUNCATED
    return 0


cdef inline int metadata_name(const Metadata *m, uint32_t id, const uint8_t **name, size_t *length) noexcept nogil:
    """Find the dictionary string `id`. Return 0, or a fault if the id or its offsets are out of range."""
    cdef const uint8_t *p
    cdef uint32_t start, stop
    if id >= m.count:
        return FAULT_FIELD_ID
    p = m.data + 1 + (<size_t> id + 1) * <size_t> m.offset_size
    start = read_uint(p, m.offset_size)
    stop = read_uint(p + m.offset_size, m.offset_size)
    if stop < start or stop > m.strings_size:
        return FAULT_METADATA_OFFSETS
    name[0] = m.strings + start
    length[0] = stop - start
    return 0


cdef inline int bytes_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size) noexcept nogil:
    """Compare two strings by unsigned bytes: negative, 0 or positive."""
    cdef size_t shorter = a_size if a_size < b_size else b_size
    cdef int order = memcmp(a, b, shorter) if shorter else 0
    if order != 0:
        return order
    return (a_size > b_size) - (a_size < b_size)


cdef inline int64_t metadata_find(const Metadata *m, const uint8_t *name, size_t length) noexcept nogil:
    """Return the first id of `name`, `m.count` if it is absent, or a fault."""
    cdef const uint8_t *other
    cdef size_t other_length
    cdef uint32_t low = 0, high = m.count, middle
    cdef int status, order
    if m.sorted:
        while low < high:
            middle = low + (high - low) // 2
            status = metadata_name(m, middle, &other, &other_length)
            if status != 0:
                return status
            order = bytes_compare(other, other_length, name, length)
            if order == 0:
                return middle
            if order < 0:
                low = middle + 1
            else:
                high = middle
        return m.count
    while low < high:
        status = metadata_name(m, low, &other, &other_length)
        if status != 0:
            return status
        if other_length == length and (length == 0 or memcmp(other, name, length) == 0):
            return low
        low += 1
    return m.count


# --- Values --------------------------------------------------------------------------------------

cdef extern from * nogil:
    """
    /* By primitive type id; with zeros for ids that the format may add. */
    static const unsigned char pqext_primitive_sizes[64] = {
        1, 1, 1, 2, 3, 5, 9, 9, 6, 10, 18, 5, 9, 9, 5, 5, 5, 9, 9, 9, 17,
    };
    """
    const uint8_t *_PRIMITIVE_SIZES "pqext_primitive_sizes"


cdef inline int primitive_size(int type_id) noexcept nogil:
    """Return the size in bytes of the header and fixed data of a primitive; 0 if the type is unknown.

    For binary and string, this ends with the length.
    """
    return _PRIMITIVE_SIZES[type_id & 63]


cdef inline int _container_open(
    const uint8_t *p, size_t n, int offset_size, int id_size, bint is_large, Container *out
) noexcept nogil:
    cdef size_t head = 5 if is_large else 2
    cdef uint64_t ids, offsets
    if n < head:
        return FAULT_VALUE_TRUNCATED
    out.count = read_uint(p + 1, 4) if is_large else p[1]
    out.id_size = id_size
    out.offset_size = offset_size
    ids = <uint64_t> out.count * <uint64_t> id_size
    offsets = (<uint64_t> out.count + 1) * <uint64_t> offset_size
    if ids + offsets > n - head:
        return FAULT_VALUE_TRUNCATED
    out.ids = p + head if id_size else NULL
    out.offsets = p + head + ids
    out.values = out.offsets + offsets
    out.values_size = read_uint(out.values - offset_size, offset_size)
    out.total_size = head + ids + offsets
    if out.values_size > n - out.total_size:
        return FAULT_VALUE_TRUNCATED
    out.total_size += out.values_size
    return 0


cdef inline int object_open(const uint8_t *p, size_t n, Container *out) noexcept nogil:
    """Read the head of the object at `p`. If the result is 0, its ids, offsets and values are within `n` bytes."""
    if n < 1:
        return FAULT_VALUE_TRUNCATED
    if p[0] & 3 != BASIC_OBJECT:
        return FAULT_NOT_CONTAINER
    return _container_open(p, n, ((p[0] >> 2) & 3) + 1, ((p[0] >> 4) & 3) + 1, (p[0] >> 6) & 1, out)


cdef inline int array_open(const uint8_t *p, size_t n, Container *out) noexcept nogil:
    """Read the head of the array at `p`. If the result is 0, its offsets and values are within `n` bytes."""
    if n < 1:
        return FAULT_VALUE_TRUNCATED
    if p[0] & 3 != BASIC_ARRAY:
        return FAULT_NOT_CONTAINER
    return _container_open(p, n, ((p[0] >> 2) & 3) + 1, 0, (p[0] >> 4) & 1, out)


cdef inline uint32_t container_offset(const Container *c, uint32_t i) noexcept nogil:
    """Return offset `i`; i <= count."""
    return read_uint(c.offsets + <size_t> i * <size_t> c.offset_size, c.offset_size)


cdef inline uint32_t container_id(const Container *c, uint32_t i) noexcept nogil:
    """Return field id `i` of an object; i < count."""
    return read_uint(c.ids + <size_t> i * <size_t> c.id_size, c.id_size)


cdef inline int container_child(const Container *c, uint32_t i, const uint8_t **p, size_t *limit) noexcept nogil:
    """Find child `i`, and the number of bytes from its start to the end of the container; the child may be shorter."""
    cdef uint32_t offset
    if i >= c.count:
        return FAULT_CHILD_OFFSET
    offset = container_offset(c, i)
    if offset >= c.values_size:
        return FAULT_CHILD_OFFSET
    p[0] = c.values + offset
    limit[0] = c.values_size - offset
    return 0


cdef inline int64_t value_size(const uint8_t *p, size_t n) noexcept nogil:
    """Return the size of the value at `p`, at most `n`, or a fault. Children are not checked."""
    cdef Container container
    cdef int status, size, type_id
    cdef uint64_t total
    if n < 1:
        return FAULT_VALUE_TRUNCATED
    if p[0] & 3 == BASIC_SHORT_STRING:
        total = 1 + (p[0] >> 2)
    elif p[0] & 3 == BASIC_PRIMITIVE:
        type_id = p[0] >> 2
        size = primitive_size(type_id)
        if size == 0:
            return FAULT_UNKNOWN_TYPE
        total = size
        if type_id == TYPE_BINARY or type_id == TYPE_STRING:
            if n < 5:
                return FAULT_VALUE_TRUNCATED
            total += read_uint(p + 1, 4)
    else:
        status = object_open(p, n, &container) if p[0] & 3 == BASIC_OBJECT else array_open(p, n, &container)
        if status != 0:
            return status
        return <int64_t> container.total_size
    if total > n:
        return FAULT_VALUE_TRUNCATED
    return <int64_t> total


cdef inline int object_field(
    const Container *c, const Metadata *m, const uint8_t *name, size_t length, const uint8_t **p, size_t *limit
) noexcept nogil:
    """Find a field by name: 1 with its bytes as in `container_child`, 0 if it is absent, or a fault."""
    cdef const uint8_t *other
    cdef size_t other_length
    cdef uint32_t low = 0, high = c.count, middle
    cdef int status, order
    while low < high:
        middle = low + (high - low) // 2
        status = metadata_name(m, container_id(c, middle), &other, &other_length)
        if status != 0:
            return status
        order = bytes_compare(other, other_length, name, length)
        if order == 0:
            status = container_child(c, middle, p, limit)
            return 1 if status == 0 else status
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return 0


cdef inline bint is_string(const uint8_t *p) noexcept nogil:
    """Return whether the value at `p`, of at least one byte, is a short or long string."""
    return p[0] & 3 == BASIC_SHORT_STRING or p[0] == TYPE_STRING << 2


cdef inline int string_open(const uint8_t *p, size_t n, const uint8_t **text, size_t *length) noexcept nogil:
    """Read the text of a short string, a string or a binary value at `p`. Return 0 or a fault."""
    cdef int64_t size = value_size(p, n)
    cdef size_t head = 1 if p[0] & 3 == BASIC_SHORT_STRING else 5
    if size < 0:
        return <int> size
    text[0] = p + head
    length[0] = <size_t> size - head
    return 0
