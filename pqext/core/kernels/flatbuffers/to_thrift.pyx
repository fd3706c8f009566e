# cython: language_level=3
"""Convert tables of a FlatBuffers footer to the bytes of the equivalent Thrift structures."""
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.thrift.compact cimport BINARY, BYTE, DONE, DOUBLE, FALSE, I16, I32, I64, LIST, STOP, STRUCT, TRUE
from pqext.core.kernels.flatbuffers.leaves cimport Leaves
from pqext.core.kernels.flatbuffers.tables cimport (
    AS_DECIMAL, AS_GEOGRAPHY, AS_GEOMETRY, AS_INTEGER, AS_TIME, AS_TIMESTAMP, AS_VARIANT, BYTE_ARRAY, C_METADATA,
    E_CHILDREN, E_ID, E_LENGTH, E_LOGICAL, E_NAME, E_ORDER, E_REPETITION, E_TYPE, FIXED, FLOAT, FLOAT64, F_CREATOR,
    F_PAIRS, F_ROWS, F_SCHEMA, F_VERSION, G_BYTES, G_OFFSET, G_ORDINAL, G_ROWS, G_SORTING, G_STORED, INT32, INT64,
    INT96, M_BLOOM, M_CODEC, M_DATA, M_DICTIONARY, M_GEO, M_INDEX, M_PAIRS, M_STATISTICS, M_STORED, M_UNPACKED,
    M_VALUES, S_DISTINCT, S_HI8, S_LENGTH, S_LO4, S_LO8, S_NULLS, S_PREFIX, S_TO_MAX, byte_in, count_of, i64_at,
    int_in, long_in, member, slot_at, target, to_thrift, u16_at, u32_at,
)
from pqext.core.kernels.flatbuffers.thrift_fields cimport (
    OUT_OF_MEMORY, put_byte, put_bytes, put_header, put_list, put_number, put_varint, put_zigzag,
)


# Only these bounds of byte arrays have the same meaning in the footers of all writers, and only if values are ordered
# by their bytes: other writers also truncate decimals.
cdef enum:
    WHOLE_SUFFIX = 16


cdef int put_text(
    const uint8_t *data, int64_t table, int slot, Bytes *o, int *last, int id, bint required
) noexcept nogil:
    """Write a string or vector of bytes as a binary field. If it is absent, write it as empty only if `required`."""
    cdef int64_t at = target(data, table, slot)
    if at == 0 and not required:
        return DONE
    if put_header(o, last, id, BINARY) != DONE or put_varint(o, count_of(data, at)) != DONE:
        return OUT_OF_MEMORY
    return put_bytes(o, data + at + 4, count_of(data, at))


cdef int put_pairs(const uint8_t *data, int64_t vector, Bytes *o, int *last, int id) noexcept nogil:
    cdef int64_t count = count_of(data, vector), i, pair
    cdef int inner
    if vector == 0:
        return DONE
    if put_header(o, last, id, LIST) != DONE or put_list(o, STRUCT, count) != DONE:
        return OUT_OF_MEMORY
    for i in range(count):
        pair, inner = member(data, vector, i), 0
        if put_text(data, pair, 0, o, &inner, 1, True) != DONE or put_text(data, pair, 1, o, &inner, 2, False) != DONE:
            return OUT_OF_MEMORY
        if put_byte(o, STOP) != DONE:
            return OUT_OF_MEMORY
    return DONE


cdef int put_optional(
    const uint8_t *data, int64_t table, int slot, int size, Bytes *o, int *last, int id, int wire
) noexcept nogil:
    """Write a number if the table has it."""
    cdef int64_t at = slot_at(data, table, slot), value
    if at == 0:
        return DONE
    if size == 1:
        value = <int8_t> data[at]
    elif size == 2:
        value = <int16_t> u16_at(data + at)
    else:
        value = <int32_t> u32_at(data + at) if size == 4 else i64_at(data + at)
    return put_number(o, last, id, wire, value)


cdef int put_flag(Bytes *o, int *last, int id, bint value) noexcept nogil:
    return put_header(o, last, id, TRUE if value else FALSE)


cdef int put_logical(const uint8_t *data, int kind, int64_t table, Bytes *o) noexcept nogil:
    """Write the union LogicalType, with its stop byte."""
    cdef int last = 0, inner = 0, unit = 0, status
    status = put_header(o, &last, to_thrift(kind), STRUCT)
    if status == DONE and kind == AS_DECIMAL:
        status = put_number(o, &inner, 1, I32, int_in(data, table, 0))
        if status == DONE:
            status = put_number(o, &inner, 2, I32, int_in(data, table, 1))
    elif status == DONE and (kind == AS_TIME or kind == AS_TIMESTAMP):
        status = put_flag(o, &inner, 1, byte_in(data, table, 0, 0))
        if status == DONE:
            status = put_header(o, &inner, 2, STRUCT)
        if status == DONE:
            status = put_header(o, &unit, (byte_in(data, table, 1, 0) & 0xFF) + 1, STRUCT)
        if status == DONE:
            status = put_byte(o, STOP)
        if status == DONE:
            status = put_byte(o, STOP)
    elif status == DONE and kind == AS_INTEGER:
        status = put_header(o, &inner, 1, BYTE)
        if status == DONE:
            status = put_byte(o, <uint8_t> byte_in(data, table, 0, 8))
        if status == DONE:
            status = put_flag(o, &inner, 2, byte_in(data, table, 1, 0))
    elif status == DONE and kind == AS_VARIANT:
        if slot_at(data, table, 0):
            status = put_header(o, &inner, 1, BYTE)
            if status == DONE:
                status = put_byte(o, <uint8_t> byte_in(data, table, 0, 0))
    elif status == DONE and (kind == AS_GEOMETRY or kind == AS_GEOGRAPHY):
        status = put_text(data, table, 0, o, &inner, 1, False)
        if status == DONE and kind == AS_GEOGRAPHY:
            status = put_optional(data, table, 1, 1, o, &inner, 2, I32)
    if status == DONE:
        status = put_byte(o, STOP)
    return put_byte(o, STOP) if status == DONE else status


cdef int put_element(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil:
    """Write a SchemaElement."""
    cdef int last = 0, kind = byte_in(data, table, E_LOGICAL, 0) & 0xFF
    cdef int64_t value = target(data, table, E_LOGICAL + 1)
    if (
        put_optional(data, table, E_TYPE, 1, o, &last, 1, I32) != DONE
        or put_optional(data, table, E_LENGTH, 4, o, &last, 2, I32) != DONE
        or put_optional(data, table, E_REPETITION, 1, o, &last, 3, I32) != DONE
        or put_text(data, table, E_NAME, o, &last, 4, True) != DONE
        or put_optional(data, table, E_CHILDREN, 4, o, &last, 5, I32) != DONE
        or put_optional(data, table, E_ID, 4, o, &last, 9, I32) != DONE
    ):
        return OUT_OF_MEMORY
    if 0 < kind <= AS_GEOGRAPHY and value:
        if put_header(o, &last, 10, STRUCT) != DONE or put_logical(data, kind, value, o) != DONE:
            return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_group(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil:
    """Write a RowGroup whose first field is an empty list of columns."""
    cdef int last = 0, inner
    cdef int64_t sorting = target(data, table, G_SORTING), i, one
    if (
        put_header(o, &last, 1, LIST) != DONE
        or put_list(o, STRUCT, 0) != DONE
        or put_number(o, &last, 2, I64, long_in(data, table, G_BYTES)) != DONE
        or put_number(o, &last, 3, I64, long_in(data, table, G_ROWS)) != DONE
    ):
        return OUT_OF_MEMORY
    if sorting:
        if put_header(o, &last, 4, LIST) != DONE or put_list(o, STRUCT, count_of(data, sorting)) != DONE:
            return OUT_OF_MEMORY
        for i in range(count_of(data, sorting)):
            one, inner = member(data, sorting, i), 0
            if (
                put_number(o, &inner, 1, I32, int_in(data, one, 0)) != DONE
                or put_flag(o, &inner, 2, byte_in(data, one, 1, 0)) != DONE
                or put_flag(o, &inner, 3, byte_in(data, one, 2, 0)) != DONE
                or put_byte(o, STOP) != DONE
            ):
                return OUT_OF_MEMORY
    if (
        put_optional(data, table, G_OFFSET, 8, o, &last, 5, I64) != DONE
        or put_optional(data, table, G_STORED, 8, o, &last, 6, I64) != DONE
        or put_optional(data, table, G_ORDINAL, 2, o, &last, 7, I16) != DONE
    ):
        return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_bound(
    const uint8_t *data, int64_t table, int shift, int type, int64_t prefix, bint own, bint by_bytes, Bytes *o,
    int *last, int id, int *sign,
) noexcept nogil:
    """Write a minimum, or with `shift` a maximum, if the table has a supported one. `sign` is the sign of its length.
    """
    cdef int length = byte_in(data, table, S_LENGTH + shift, 0), size = -length if length < 0 else length, i
    cdef uint32_t lo4 = <uint32_t> int_in(data, table, S_LO4 + shift)
    cdef uint64_t lo8 = <uint64_t> long_in(data, table, S_LO8 + shift)
    cdef uint64_t hi8 = <uint64_t> long_in(data, table, S_HI8 + shift)
    cdef uint8_t value[16]
    cdef int64_t common = 0
    sign[0] = 0
    if slot_at(data, table, S_LENGTH + shift) == 0:
        return DONE
    if type == INT32 or type == FLOAT:
        if size != 4:
            return DONE
        memcpy(value, &lo4, 4)
    elif type == INT64 or type == FLOAT64:
        if size != 8:
            return DONE
        memcpy(value, &lo8, 8)
    elif type == INT96:
        if size != 12:
            return DONE
        memcpy(value, &lo4, 4)
        memcpy(value + 4, &lo8, 8)
    elif type == BYTE_ARRAY or type == FIXED:
        if size > WHOLE_SUFFIX or not (own or (by_bytes and (size == WHOLE_SUFFIX or size == 0))):
            return DONE
        common = count_of(data, prefix)
        for i in range(size):  # `size` bytes, most significant first
            value[size - 1 - i] = <uint8_t> (lo8 >> (8 * i) if i < 8 else hi8 >> (8 * (i - 8)))
    else:
        return DONE
    if put_header(o, last, id, BINARY) != DONE or put_varint(o, common + size) != DONE:
        return OUT_OF_MEMORY
    if common and put_bytes(o, data + prefix + 4, common) != DONE:
        return OUT_OF_MEMORY
    sign[0] = -1 if length < 0 else 1
    return put_bytes(o, value, size)


cdef int put_statistics(
    const uint8_t *data, int64_t table, int type, bint own, bint by_bytes, Bytes *o
) noexcept nogil:
    cdef int last = 0
    cdef int64_t prefix = target(data, table, S_PREFIX)
    cdef int sign_of_max = 0, sign_of_min = 0
    if (
        put_optional(data, table, S_NULLS, 8, o, &last, 3, I64) != DONE
        or put_optional(data, table, S_DISTINCT, 8, o, &last, 4, I64) != DONE
        or put_bound(data, table, S_TO_MAX, type, prefix, own, by_bytes, o, &last, 5, &sign_of_max) != DONE
        or put_bound(data, table, 0, type, prefix, own, by_bytes, o, &last, 6, &sign_of_min) != DONE
    ):
        return OUT_OF_MEMORY
    # The exact flag is trusted only in footers that pqext wrote.
    if (sign_of_max < 0 or (own and sign_of_max)) and put_flag(o, &last, 7, sign_of_max > 0) != DONE:
        return OUT_OF_MEMORY
    if (sign_of_min < 0 or (own and sign_of_min)) and put_flag(o, &last, 8, sign_of_min > 0) != DONE:
        return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_geo(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil:
    cdef int last = 0, inner = 0, slot
    cdef int64_t box = target(data, table, 0), types = target(data, table, 1), i, at
    cdef double zero = 0.0
    if box:
        if put_header(o, &last, 1, STRUCT) != DONE:
            return OUT_OF_MEMORY
        for slot in range(8):
            at = slot_at(data, box, slot)
            if at or slot < 4:
                if put_header(o, &inner, slot + 1, DOUBLE) != DONE:
                    return OUT_OF_MEMORY
                if put_bytes(o, data + at if at else <const uint8_t *> &zero, 8) != DONE:
                    return OUT_OF_MEMORY
        if put_byte(o, STOP) != DONE:
            return OUT_OF_MEMORY
    if types:
        if put_header(o, &last, 2, LIST) != DONE or put_list(o, I32, count_of(data, types)) != DONE:
            return OUT_OF_MEMORY
        for i in range(count_of(data, types)):
            if put_zigzag(o, <int32_t> u32_at(data + types + 4 + 4 * i)) != DONE:
                return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_metadata(
    const uint8_t *data, int64_t table, int64_t rows, Leaves *leaves, int64_t column, bint own, Bytes *o
) noexcept nogil:
    """Write ColumnMetaData."""
    cdef int last = 0, type = leaves.types[column]
    cdef int64_t at = slot_at(data, table, M_VALUES)
    cdef int64_t path = leaves.starts[column], statistics = target(data, table, M_STATISTICS)
    cdef int64_t bloom = target(data, table, M_BLOOM), geo = target(data, table, M_GEO)
    if type >= 0 and put_number(o, &last, 1, I32, type) != DONE:
        return OUT_OF_MEMORY
    if (
        put_header(o, &last, 2, LIST) != DONE
        or put_list(o, I32, 0) != DONE
        or put_header(o, &last, 3, LIST) != DONE
        or put_bytes(o, leaves.paths.data + path, leaves.starts[column + 1] - path) != DONE
        or put_number(o, &last, 4, I32, byte_in(data, table, M_CODEC, 0)) != DONE
        or put_number(o, &last, 5, I64, i64_at(data + at) if at else rows) != DONE
        or put_number(o, &last, 6, I64, long_in(data, table, M_UNPACKED)) != DONE
        or put_number(o, &last, 7, I64, long_in(data, table, M_STORED)) != DONE
        or put_pairs(data, target(data, table, M_PAIRS), o, &last, 8) != DONE
        or put_number(o, &last, 9, I64, long_in(data, table, M_DATA)) != DONE
        or put_optional(data, table, M_INDEX, 8, o, &last, 10, I64) != DONE
        or put_optional(data, table, M_DICTIONARY, 8, o, &last, 11, I64) != DONE
    ):
        return OUT_OF_MEMORY
    if statistics:
        if put_header(o, &last, 12, STRUCT) != DONE:
            return OUT_OF_MEMORY
        if put_statistics(data, statistics, type, own, leaves.by_bytes[column], o) != DONE:
            return OUT_OF_MEMORY
    if bloom:
        if put_number(o, &last, 14, I64, long_in(data, bloom, 0)) != DONE:
            return OUT_OF_MEMORY
        if put_optional(data, bloom, 1, 4, o, &last, 15, I32) != DONE:
            return OUT_OF_MEMORY
    if geo:
        if put_header(o, &last, 17, STRUCT) != DONE or put_geo(data, geo, o) != DONE:
            return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_chunk(
    const uint8_t *data, int64_t table, int64_t rows, Leaves *leaves, int64_t column, bint own, Bytes *o
) noexcept nogil:
    """Write a ColumnChunk. Its required file offset is 0, and it lists no encodings."""
    cdef int last = 0
    if put_number(o, &last, 2, I64, 0) != DONE or put_header(o, &last, 3, STRUCT) != DONE:
        return OUT_OF_MEMORY
    if put_metadata(data, target(data, table, C_METADATA), rows, leaves, column, own, o) != DONE:
        return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_file(const uint8_t *data, int64_t root, Bytes *o) noexcept nogil:
    """Write FileMetaData, with empty lists for the schema and the row groups."""
    cdef int last = 0
    cdef int64_t schema = target(data, root, F_SCHEMA), i, at, leaves = 0, ordered = 0
    if (
        put_number(o, &last, 1, I32, int_in(data, root, F_VERSION)) != DONE
        or put_header(o, &last, 2, LIST) != DONE
        or put_list(o, STRUCT, 0) != DONE
        or put_number(o, &last, 3, I64, long_in(data, root, F_ROWS)) != DONE
        or put_header(o, &last, 4, LIST) != DONE
        or put_list(o, STRUCT, 0) != DONE
        or put_pairs(data, target(data, root, F_PAIRS), o, &last, 5) != DONE
        or put_text(data, root, F_CREATOR, o, &last, 6, False) != DONE
    ):
        return OUT_OF_MEMORY
    for i in range(1, count_of(data, schema)):
        at = member(data, schema, i)
        if int_in(data, at, E_CHILDREN) == 0:
            leaves += 1
            ordered += byte_in(data, at, E_ORDER, 0) == 1
    if ordered:
        if put_header(o, &last, 7, LIST) != DONE or put_list(o, STRUCT, leaves) != DONE:
            return OUT_OF_MEMORY
        for i in range(1, count_of(data, schema)):
            at = member(data, schema, i)
            if int_in(data, at, E_CHILDREN) == 0:
                if put_bytes(o, b"\x1c\x00\x00" if byte_in(data, at, E_ORDER, 0) == 1 else b"\x00",
                             3 if byte_in(data, at, E_ORDER, 0) == 1 else 1) != DONE:
                    return OUT_OF_MEMORY
    return put_byte(o, STOP)
