# cython: language_level=3
"""Structures of a FlatBuffers footer as the bytes of the Thrift structures that they stand for.

What the tables cannot say stands beside them as differences (`thrift_fields`), which are put over what they say.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free
from pqext.core.kernels.compact cimport (
    BINARY, BYTE, DONE, DOUBLE, FALSE, I16, I32, I64, LIST, STOP, STRUCT, TRUE, Cursor,
)
from pqext.core.kernels.flat_tables cimport *
from pqext.core.kernels.thrift_fields cimport (
    OUT_OF_MEMORY, UNUSUAL_FIELDS, Field, Fields, find_field, look, put_byte, put_bytes, put_header, put_list,
    put_number, put_together, put_varint, put_zigzag, scan_struct,
)

from pqext.core.errors import CorruptFileError, LimitError
from pqext.core.kernels.flat_verify import extension, verify

cdef enum:
    BAD_TREE = -30
    TOO_DEEP_TREE = -31
    TOO_MUCH_TREE = -32
    BAD_PIECE = -33
    TOO_LONG = -34

cdef dict MESSAGES = {
    BAD_TREE: "the schema of the FlatBuffers footer is no tree",
    UNUSUAL_FIELDS: "what the FlatBuffers footer holds beside its tables is damaged",
    BAD_PIECE: "what the FlatBuffers footer holds beside its tables is damaged",
    TOO_DEEP_TREE: "the schema nests deeper than schema_depth",
    TOO_LONG: "the FlatBuffers footer stands for a Thrift footer of more than footer_bytes",
    TOO_MUCH_TREE: "the paths of the columns take far more bytes than the FlatBuffers footer",
}

# Only these bounds of byte arrays mean the same to all who wrote such footers.
cdef enum:
    WHOLE_SUFFIX = 16


cdef int raise_for(int status) except -1:
    if status == OUT_OF_MEMORY:
        raise MemoryError
    raise (LimitError if status in (TOO_DEEP_TREE, TOO_MUCH_TREE, TOO_LONG) else CorruptFileError)(MESSAGES[status])


cdef void free_leaves(Leaves *leaves) noexcept nogil:
    free(leaves.types)
    free(leaves.starts)
    bytes_free(&leaves.paths)
    memset(leaves, 0, sizeof(Leaves))


cdef int put_name(const uint8_t *data, int64_t element, Bytes *o) noexcept nogil:
    cdef int64_t name = target(data, element, E_NAME)
    cdef int64_t size = count_of(data, name)
    if put_varint(o, size) != DONE:
        return OUT_OF_MEMORY
    return put_bytes(o, data + name + 4, size)


cdef int find_leaves(const uint8_t *data, int64_t schema, int max_depth, int64_t most, Leaves *out) noexcept nogil:
    """The leaves of the schema in their order; at most so many bytes of paths."""
    cdef int64_t count = count_of(data, schema), i, at, children, left
    cdef int64_t *above      # open groups: their elements, and how many children are to come
    cdef int64_t *expected
    cdef int depth = 0, status = DONE, level
    memset(out, 0, sizeof(Leaves))
    if count == 0:
        return BAD_TREE
    above = <int64_t *> malloc((max_depth + 2) * sizeof(int64_t))
    expected = <int64_t *> malloc((max_depth + 2) * sizeof(int64_t))
    out.types = <int8_t *> malloc(count)
    out.starts = <int64_t *> malloc((count + 1) * sizeof(int64_t))
    if above == NULL or expected == NULL or out.types == NULL or out.starts == NULL:
        status = OUT_OF_MEMORY
    else:
        out.starts[0] = 0
        for i in range(count):
            at = member(data, schema, i)
            children = int_in(data, at, E_CHILDREN)
            if children < 0 or (i and depth == 0):
                status = BAD_TREE
                break
            if i:
                expected[depth - 1] -= 1
            if children or i == 0:
                if depth >= max_depth:
                    status = TOO_DEEP_TREE
                    break
                above[depth], expected[depth] = at, children
                depth += 1
            else:
                out.types[out.count] = <int8_t> byte_in(data, at, E_TYPE, -1)
                status = put_list(&out.paths, BINARY, depth)
                for level in range(1, depth):
                    if status == DONE:
                        status = put_name(data, above[level], &out.paths)
                if status == DONE:
                    status = put_name(data, at, &out.paths)
                if status == DONE and <int64_t> out.paths.size > most:
                    status = TOO_MUCH_TREE
                if status != DONE:
                    break
                out.count += 1
                out.starts[out.count] = out.paths.size
            while depth and expected[depth - 1] == 0:
                depth -= 1
        if status == DONE and depth:
            status = BAD_TREE
    free(above)
    free(expected)
    if status != DONE:
        free_leaves(out)
    return status


cdef int put_text(const uint8_t *data, int64_t table, int slot, Bytes *o, int *last, int id) noexcept nogil:
    """A string or vector of bytes as a binary field, where the table has it."""
    cdef int64_t at = target(data, table, slot)
    if at == 0:
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
        if put_text(data, pair, 0, o, &inner, 1) != DONE or put_text(data, pair, 1, o, &inner, 2) != DONE:
            return OUT_OF_MEMORY
        if put_byte(o, STOP) != DONE:
            return OUT_OF_MEMORY
    return DONE


cdef int put_optional(
    const uint8_t *data, int64_t table, int slot, int size, Bytes *o, int *last, int id, int wire
) noexcept nogil:
    """A number where the table has it."""
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
    """The union LogicalType, with its stop byte."""
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
        status = put_text(data, table, 0, o, &inner, 1)
        if status == DONE and kind == AS_GEOGRAPHY:
            status = put_optional(data, table, 1, 1, o, &inner, 2, I32)
    if status == DONE:
        status = put_byte(o, STOP)
    return put_byte(o, STOP) if status == DONE else status


cdef int put_element(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil:
    """SchemaElement."""
    cdef int last = 0, kind = byte_in(data, table, E_LOGICAL, 0) & 0xFF
    cdef int64_t value = target(data, table, E_LOGICAL + 1)
    if (
        put_optional(data, table, E_TYPE, 1, o, &last, 1, I32) != DONE
        or put_optional(data, table, E_LENGTH, 4, o, &last, 2, I32) != DONE
        or put_optional(data, table, E_REPETITION, 1, o, &last, 3, I32) != DONE
        or put_text(data, table, E_NAME, o, &last, 4) != DONE
        or put_optional(data, table, E_CHILDREN, 4, o, &last, 5, I32) != DONE
        or put_optional(data, table, E_ID, 4, o, &last, 9, I32) != DONE
    ):
        return OUT_OF_MEMORY
    if 0 < kind <= AS_GEOGRAPHY and value:
        if put_header(o, &last, 10, STRUCT) != DONE or put_logical(data, kind, value, o) != DONE:
            return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_group(const uint8_t *data, int64_t table, Bytes *o) noexcept nogil:
    """RowGroup, with an empty list of columns, which is the first field."""
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
    const uint8_t *data, int64_t table, int shift, int type, int64_t prefix, bint own, Bytes *o, int *last, int id,
    bint *inexact,
) noexcept nogil:
    """A minimum, or with `shift` a maximum, where the table has one that is understood."""
    cdef int length = byte_in(data, table, S_LENGTH + shift, 0), size = -length if length < 0 else length, i
    cdef uint32_t lo4 = <uint32_t> int_in(data, table, S_LO4 + shift)
    cdef uint64_t lo8 = <uint64_t> long_in(data, table, S_LO8 + shift)
    cdef uint64_t hi8 = <uint64_t> long_in(data, table, S_HI8 + shift)
    cdef uint8_t value[16]
    cdef int64_t common = 0
    inexact[0] = False
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
        if size > WHOLE_SUFFIX or not (own or size == WHOLE_SUFFIX or size == 0):
            return DONE
        common = count_of(data, prefix)
        for i in range(size):  # a number of so many bytes, the highest first
            value[size - 1 - i] = <uint8_t> (lo8 >> (8 * i) if i < 8 else hi8 >> (8 * (i - 8)))
    else:
        return DONE
    if put_header(o, last, id, BINARY) != DONE or put_varint(o, common + size) != DONE:
        return OUT_OF_MEMORY
    if common and put_bytes(o, data + prefix + 4, common) != DONE:
        return OUT_OF_MEMORY
    inexact[0] = length < 0
    return put_bytes(o, value, size)


cdef int put_statistics(const uint8_t *data, int64_t table, int type, bint own, Bytes *o) noexcept nogil:
    cdef int last = 0
    cdef int64_t prefix = target(data, table, S_PREFIX)
    cdef bint cut_max = False, cut_min = False
    if (
        put_optional(data, table, S_NULLS, 8, o, &last, 3, I64) != DONE
        or put_optional(data, table, S_DISTINCT, 8, o, &last, 4, I64) != DONE
        or put_bound(data, table, S_TO_MAX, type, prefix, own, o, &last, 5, &cut_max) != DONE
        or put_bound(data, table, 0, type, prefix, own, o, &last, 6, &cut_min) != DONE
    ):
        return OUT_OF_MEMORY
    if cut_max and put_flag(o, &last, 7, False) != DONE:
        return OUT_OF_MEMORY
    if cut_min and put_flag(o, &last, 8, False) != DONE:
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
    """ColumnMetaData."""
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
        if put_header(o, &last, 12, STRUCT) != DONE or put_statistics(data, statistics, type, own, o) != DONE:
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
    """ColumnChunk; the file offset that it must have is 0, and it lists no encodings."""
    cdef int last = 0
    if put_number(o, &last, 2, I64, 0) != DONE or put_header(o, &last, 3, STRUCT) != DONE:
        return OUT_OF_MEMORY
    if put_metadata(data, target(data, table, C_METADATA), rows, leaves, column, own, o) != DONE:
        return OUT_OF_MEMORY
    return put_byte(o, STOP)


cdef int put_file(const uint8_t *data, int64_t root, Bytes *o) noexcept nogil:
    """FileMetaData, with empty lists for the schema and the row groups."""
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
        or put_text(data, root, F_CREATOR, o, &last, 6) != DONE
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


cdef struct Section:
    int64_t count
    const uint8_t *starts
    const uint8_t *data
    int64_t size


cdef class FlatMetadata:
    """A FlatBuffers footer that was verified, of which structures are asked for one by one, as Thrift."""
    cdef object held, beside
    cdef const uint8_t *data
    cdef int64_t root, schema, groups
    cdef Leaves leaves
    cdef Section pieces[3]       # elements, row groups, column chunks
    cdef const uint8_t *file_piece
    cdef int64_t file_size
    cdef bint own
    cdef int64_t most            # bytes of Thrift that are made at once

    def __cinit__(self, bytes payload not None, limits, own):
        cdef int64_t i, size = len(payload)
        cdef int status, max_depth = min(limits.schema_depth, 1 << 20)
        verify(payload)
        self.held = payload
        self.most = limits.footer_bytes
        self.data = <const uint8_t *> <const char *> payload
        self.root = u32_at(self.data)
        self.schema = target(self.data, self.root, F_SCHEMA)
        self.groups = target(self.data, self.root, F_GROUPS)
        with nogil:
            status = find_leaves(self.data, self.schema, max_depth, 16 * size + (1 << 20), &self.leaves)
        if status != DONE:
            raise_for(status)
        for i in range(count_of(self.data, self.groups)):
            if count_of(self.data, self.columns_of(i)) != self.leaves.count:
                raise CorruptFileError(f"row group {i} of the FlatBuffers footer has another number of columns than the schema")
        stored = extension(payload)
        self.beside = None if stored is None else own(stored)
        self.own = self.beside is not None
        if self.own:
            self.split(self.beside)

    def __dealloc__(self):
        free_leaves(&self.leaves)

    cdef int64_t columns_of(self, int64_t group) noexcept nogil:
        return target(self.data, member(self.data, self.groups, group), G_COLUMNS)

    cdef int split(self, bytes beside) except -1:
        """Find the parts of what stands beside the tables."""
        cdef const uint8_t *p = <const uint8_t *> <const char *> beside
        cdef const uint8_t *end = p + len(beside)
        cdef int64_t expected[3]
        cdef int i
        expected[0] = count_of(self.data, self.schema)
        expected[1] = count_of(self.data, self.groups)
        expected[2] = expected[1] * self.leaves.count
        if end - p < 8 or u32_at(p) != 1:
            raise_for(BAD_PIECE)
        self.file_size = u32_at(p + 4)
        p += 8
        if self.file_size > end - p:
            raise_for(BAD_PIECE)
        self.file_piece = p
        p += self.file_size
        for i in range(3):
            if end - p < 4:
                raise_for(BAD_PIECE)
            self.pieces[i].count = u32_at(p)
            p += 4
            if self.pieces[i].count == 0:
                continue
            if self.pieces[i].count != expected[i] or (self.pieces[i].count + 1) * 4 > end - p:
                raise_for(BAD_PIECE)
            self.pieces[i].starts = p
            p += (self.pieces[i].count + 1) * 4
            self.pieces[i].size = u32_at(p - 4)
            if u32_at(self.pieces[i].starts) != 0 or self.pieces[i].size > end - p:
                raise_for(BAD_PIECE)
            self.pieces[i].data = p
            p += self.pieces[i].size
        if p != end:
            raise_for(BAD_PIECE)
        return 0

    cdef int finish(self, const uint8_t *piece, int64_t size, Bytes *base, Bytes *out) noexcept nogil:
        """Put a difference over what the tables say."""
        cdef Fields mine, other
        cdef Cursor c
        if size == 0:
            return put_bytes(out, base.data, base.size)
        look(&c, base.data, base.data + base.size)
        if scan_struct(&c, base.data, &mine) == NULL:
            return UNUSUAL_FIELDS
        look(&c, piece, piece + size)
        if scan_struct(&c, piece, &other) != piece + size:
            return BAD_PIECE
        return put_together(&mine, &other, out, 0)

    cdef int one(self, int kind, int64_t position, int64_t group, int64_t column, Bytes *base, Bytes *out) noexcept nogil:
        """An element (0), row group (1) or column chunk (2)."""
        cdef Section *section = &self.pieces[kind]
        cdef int64_t start = 0, stop = 0, table
        cdef int status
        base.size = 0
        if kind == 0:
            status = put_element(self.data, member(self.data, self.schema, position), base)
        elif kind == 1:
            status = put_group(self.data, member(self.data, self.groups, position), base)
        else:
            table = member(self.data, self.groups, group)
            status = put_chunk(
                self.data, member(self.data, self.columns_of(group), column), long_in(self.data, table, G_ROWS),
                &self.leaves, column, self.own, base,
            )
        if status == DONE and section.count:
            start, stop = u32_at(section.starts + 4 * position), u32_at(section.starts + 4 * position + 4)
            if start > stop or stop > section.size:
                return BAD_PIECE
        if status != DONE:
            return status
        return self.finish(section.data + start if section.count else NULL, stop - start, base, out)

    @property
    def counts(self):
        """Schema elements, row groups and leaves."""
        return count_of(self.data, self.schema), count_of(self.data, self.groups), self.leaves.count

    @property
    def is_encrypted(self):
        """Does it speak of encryption?"""
        return bool(byte_in(self.data, self.root, F_ENCRYPTION, 0) or target(self.data, self.root, F_SIGNING_KEY))

    def file(self):
        cdef Bytes base, out
        cdef int status
        memset(&base, 0, sizeof(Bytes))
        memset(&out, 0, sizeof(Bytes))
        try:
            with nogil:
                status = put_file(self.data, self.root, &base)
                if status == DONE:
                    status = self.finish(self.file_piece, self.file_size, &base, &out)
            if status != DONE:
                raise_for(status)
            return PyBytes_FromStringAndSize(<const char *> out.data, out.size)
        finally:
            bytes_free(&base)
            bytes_free(&out)

    def elements(self, int64_t start, int64_t stop):
        return self.listed(0, start, stop, 0)

    def group(self, int64_t position):
        return self.listed(1, position, position + 1, 0)

    def chunks(self, int64_t column, int64_t start, int64_t stop):
        return self.listed(2, start, stop, column)

    cdef bytes listed(self, int kind, int64_t start, int64_t stop, int64_t column):
        cdef Bytes base, out
        cdef int status = DONE
        cdef int64_t i, count = count_of(self.data, self.schema if kind == 0 else self.groups)
        if not 0 <= start <= stop <= count or (kind == 2 and not 0 <= column < self.leaves.count):
            raise IndexError(f"no structures {start} to {stop} among {count}")
        memset(&base, 0, sizeof(Bytes))
        memset(&out, 0, sizeof(Bytes))
        try:
            with nogil:
                for i in range(start, stop):
                    status = self.one(
                        kind, i * self.leaves.count + column if kind == 2 else i, i, column, &base, &out
                    )
                    if status == DONE and <int64_t> out.size > self.most:
                        status = TOO_LONG
                    if status != DONE:
                        break
            if status != DONE:
                raise_for(status)
            return PyBytes_FromStringAndSize(<const char *> out.data, out.size)
        finally:
            bytes_free(&base)
            bytes_free(&out)

    def row_groups(self):
        """The list of all row groups with all their column chunks, its header first."""
        cdef Bytes base, out, group
        cdef int status = DONE
        cdef int64_t i, j, count = count_of(self.data, self.groups)
        memset(&base, 0, sizeof(Bytes))
        memset(&out, 0, sizeof(Bytes))
        memset(&group, 0, sizeof(Bytes))
        try:
            with nogil:
                status = put_list(&out, STRUCT, count)
                for i in range(count):
                    if status != DONE:
                        break
                    group.size = 0
                    status = self.one(1, i, 0, 0, &base, &group)
                    if status == DONE and (group.size < 3 or group.data[0] != 0x19 or group.data[1] != 0x0C):
                        status = BAD_PIECE
                    if status == DONE:
                        status = put_byte(&out, 0x19)
                    if status == DONE:
                        status = put_list(&out, STRUCT, self.leaves.count)
                    for j in range(self.leaves.count):
                        if status != DONE:
                            break
                        status = self.one(2, i * self.leaves.count + j, i, j, &base, &out)
                        if status == DONE and <int64_t> out.size > self.most:
                            status = TOO_LONG
                    if status == DONE:
                        status = put_bytes(&out, group.data + 2, group.size - 2)
            if status != DONE:
                raise_for(status)
            return PyBytes_FromStringAndSize(<const char *> out.data, out.size)
        finally:
            bytes_free(&base)
            bytes_free(&out)
            bytes_free(&group)
