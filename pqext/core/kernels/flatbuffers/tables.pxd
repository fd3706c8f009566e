# The tables of a FlatBuffers footer: the numbers of their slots, and where the value of a slot lies.
#
# Nothing is checked here: what is read so has been verified, or was written by this process.
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes

# Slots of FileMetaData.
cdef enum:
    F_VERSION = 0
    F_SCHEMA = 1
    F_ROWS = 2
    F_GROUPS = 3
    F_PAIRS = 4
    F_CREATOR = 5
    F_ENCRYPTION = 6
    F_SIGNING_KEY = 8
    F_EXTENSION = 99

# Slots of SchemaElement.
cdef enum:
    E_TYPE = 0
    E_LENGTH = 1
    E_REPETITION = 2
    E_NAME = 3
    E_CHILDREN = 4
    E_ID = 5
    E_LOGICAL = 6
    E_ORDER = 8

# Slots of RowGroup.
cdef enum:
    G_COLUMNS = 0
    G_BYTES = 1
    G_ROWS = 2
    G_SORTING = 3
    G_OFFSET = 4
    G_STORED = 5
    G_ORDINAL = 6

# Slots of ColumnChunk and ColumnMetadata.
cdef enum:
    C_METADATA = 0
    C_CRYPTO = 1
    C_ENCRYPTED = 3
    M_CODEC = 0
    M_VALUES = 1
    M_UNPACKED = 2
    M_STORED = 3
    M_PAIRS = 4
    M_DATA = 5
    M_INDEX = 6
    M_DICTIONARY = 7
    M_STATISTICS = 8
    M_ALL_DICTIONARY = 9
    M_BLOOM = 10
    M_GEO = 11

# Slots of Statistics.
cdef enum:
    S_NULLS = 0
    S_DISTINCT = 1
    S_LO4 = 2
    S_LO8 = 3
    S_HI8 = 4
    S_LENGTH = 5
    S_TO_MAX = 4       # from a slot of the minimum to the corresponding slot of the maximum
    S_PREFIX = 10

# Physical types.
cdef enum:
    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    FLOAT64 = 5
    BYTE_ARRAY = 6
    FIXED = 7

# Members of the union LogicalType that are handled differently.
cdef enum:
    AS_STRING = 1
    AS_ENUM = 4
    AS_DECIMAL = 5
    AS_TIME = 7
    AS_TIMESTAMP = 8
    AS_INTEGER = 9
    AS_JSON = 11
    AS_UUID = 13
    AS_VARIANT = 15
    AS_GEOMETRY = 16
    AS_GEOGRAPHY = 17


cdef inline int to_union(int64_t thrift) noexcept nogil:
    """Return the union member for a field of Thrift's LogicalType; 0 if there is none."""
    if 1 <= thrift <= 8:
        return <int> thrift
    return <int> thrift - 1 if 10 <= thrift <= 18 else 0


cdef inline int to_thrift(int member) noexcept nogil:
    return member if member <= 8 else member + 1


cdef inline uint16_t u16_at(const uint8_t *p) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, p, 2)  # little-endian, as the machines this runs on
    return value


cdef inline uint32_t u32_at(const uint8_t *p) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, p, 4)
    return value


cdef inline int64_t i64_at(const uint8_t *p) noexcept nogil:
    cdef int64_t value
    memcpy(&value, p, 8)
    return value


cdef inline int64_t slot_at(const uint8_t *data, int64_t table, int slot) noexcept nogil:
    """Return the position of the value of a slot; 0 if the table does not have it."""
    cdef int64_t vtable = table - <int32_t> u32_at(data + table)
    cdef int place = 4 + 2 * slot
    if place + 2 > u16_at(data + vtable):
        return 0
    place = u16_at(data + vtable + place)
    return table + place if place else 0


cdef inline int64_t target(const uint8_t *data, int64_t table, int slot) noexcept nogil:
    """Return the position of the table, vector or string that a slot refers to; 0 if it is absent."""
    cdef int64_t at = slot_at(data, table, slot)
    return at + u32_at(data + at) if at else 0


cdef inline int64_t count_of(const uint8_t *data, int64_t vector) noexcept nogil:
    return u32_at(data + vector) if vector else 0


cdef inline int64_t member(const uint8_t *data, int64_t vector, int64_t position) noexcept nogil:
    """Return the position of a table or string in a vector of offsets."""
    cdef int64_t at = vector + 4 + 4 * position
    return at + u32_at(data + at)


cdef inline int64_t long_in(const uint8_t *data, int64_t table, int slot) noexcept nogil:
    cdef int64_t at = slot_at(data, table, slot)
    return i64_at(data + at) if at else 0


cdef inline int32_t int_in(const uint8_t *data, int64_t table, int slot) noexcept nogil:
    cdef int64_t at = slot_at(data, table, slot)
    return <int32_t> u32_at(data + at) if at else 0


cdef inline int byte_in(const uint8_t *data, int64_t table, int slot, int default) noexcept nogil:
    cdef int64_t at = slot_at(data, table, slot)
    return <int8_t> data[at] if at else default
