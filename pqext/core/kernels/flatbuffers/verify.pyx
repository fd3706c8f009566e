# cython: language_level=3
"""Verify a FlatBuffers footer: check every offset, table, vector and string, without allocation.

`SCHEMA` describes the tables: the slots of each table in order, each with the size of a scalar or the type of its
target. The public schema marks no field as required: an absent field is empty, unless no default is valid. In addition
to the checks of FlatBuffers' own verifier, the total size of tables is bounded, with shared tables counted once per
reference, so that a small footer cannot expand to a large one.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from pqext.core.kernels.flatbuffers.tables cimport F_EXTENSION, u16_at, u32_at

from pqext.core.base.errors import CorruptFileError

cdef enum:
    EXPANSION = 16     # times its own size that a footer may take with every shared table counted each time,
    ANY_SIZE = 1 << 24 # if that is more than what any may take

# Types of slots.
cdef enum:
    UNUSED = 0
    SCALAR = 1         # a scalar of `size` bytes
    STRING = 2
    SCALARS = 3        # a vector of scalars of `size` bytes
    TABLE = 4          # a table of type `of`
    VECTOR = 5         # a vector of tables of type `of`
    WHICH = 6          # the member of the union in the next slot
    UNION = 7          # one of the tables of the union `of`
    STRINGS = 8

cdef struct Slot:
    uint8_t kind
    uint8_t size
    uint8_t of
    bint required

cdef struct Layout:
    int slots
    Slot slot[16]

cdef Layout layouts[24]
cdef int unions[4][20]
cdef int members[4]

_LOGICAL = (
    "Empty Empty Empty Empty Decimal Empty Time Time Integer Empty Empty Empty Empty Empty Variant Geometry Geography"
)
SCHEMA = {
    "FileMetaData": (
        "4 [SchemaElement]! 8 [RowGroup] [KeyValue] string which EncryptionAlgorithm [1]"
    ),
    "SchemaElement": "1 4 1 string 4 4 which LogicalType which ColumnOrder",
    "RowGroup": "[ColumnChunk] 8 8 [SortingColumn] 8 8 2",
    "ColumnChunk": "ColumnMetadata! which ColumnCryptoMetadata [1]",
    "ColumnMetadata": "1 8 8 8 [KeyValue] 8 8 8 Statistics 1 BloomFilter GeospatialStatistics",
    "Statistics": "8 8 4 8 8 1 4 8 8 1 [1]",
    "GeospatialStatistics": "BoundingBox [4]",
    "BoundingBox": "8 8 8 8 8 8 8 8",
    "BloomFilter": "8 4",
    "SortingColumn": "4 1 1",
    "KeyValue": "string string",
    "Empty": "",
    "Decimal": "4 4",
    "Time": "1 1",
    "Integer": "1 1",
    "Variant": "1",
    "Geometry": "string",
    "Geography": "string 1",
    "Aes": "[1] [1] 1",
    "ColumnKey": "[string] [1]",
}
"""Slots of each table: the size of a scalar, `string`, a table, or a vector in brackets; `!` marks required slots."""
_UNIONS = {
    "LogicalType": _LOGICAL, "ColumnOrder": "Empty", "EncryptionAlgorithm": "Aes Aes",
    "ColumnCryptoMetadata": "Empty ColumnKey",
}


cdef int describe() except -1:
    cdef list tables = list(SCHEMA), choices = list(_UNIONS)
    cdef Slot *slot
    cdef int i, j
    memset(layouts, 0, sizeof(layouts))
    for i, name in enumerate(tables):
        words = SCHEMA[name].split()
        layouts[i].slots = len(words)
        for j, word in enumerate(words):
            slot = &layouts[i].slot[j]
            slot.required = word.endswith("!")
            word = word.rstrip("!")
            inner = word.strip("[]")
            if word == "[string]":
                slot.kind = STRINGS
            elif word == "string":
                slot.kind = STRING
            elif word == "which":
                slot.kind, slot.size = WHICH, 1
            elif word.isdigit():
                slot.kind, slot.size = SCALAR, int(word)
            elif inner.isdigit():
                slot.kind, slot.size = SCALARS, int(inner)
            elif word in choices:
                slot.kind, slot.of = UNION, choices.index(word)
            else:
                slot.kind, slot.of = VECTOR if word[0] == "[" else TABLE, tables.index(inner)
    for i, name in enumerate(choices):
        for j, word in enumerate(_UNIONS[name].split()):
            unions[i][j] = tables.index(word)
            members[i] = j + 1
    return 0


describe()

cdef struct Look:
    const uint8_t *data
    int64_t size
    int64_t room         # remaining bytes for tables and vectors, each counted once per reference
    const char *fault
    int64_t at


cdef inline bint wrong(Look *v, const char *fault, int64_t at) noexcept nogil:
    v.fault, v.at = fault, at
    return False


cdef inline bint spend(Look *v, int64_t count, int64_t at) noexcept nogil:
    v.room -= count
    return True if v.room >= 0 else wrong(v, b"shared tables expand to many times its size", at)


cdef inline int64_t follow(Look *v, int64_t at) noexcept nogil:
    """Return the target of the offset at `at`, whose four bytes are in range; -1 if the target is out of range."""
    cdef int64_t distance = u32_at(v.data + at)
    if distance == 0 or distance > 0x7FFFFFFF or distance > v.size - at - 4 or (at + distance) & 3:
        wrong(v, b"an offset points outside the footer", at)
        return -1
    return at + distance


cdef inline bint vector(Look *v, int64_t at, int size, int64_t *count) noexcept nogil:
    """Read the vector of elements of `size` bytes at `at`, whose first four bytes are in range.

    Return whether it is valid.
    """
    count[0] = u32_at(v.data + at)
    if count[0] > (v.size - at - 4) // size:
        return wrong(v, b"a vector extends beyond the last byte", at)
    return spend(v, 4 + count[0] * size, at)


cdef inline bint string(Look *v, int64_t at) noexcept nogil:
    cdef int64_t count = 0
    if not vector(v, at, 1, &count):
        return False
    if count >= v.size - at - 4 or v.data[at + 4 + count] != 0:
        return wrong(v, b"a string does not end in NUL", at)
    return True


cdef inline bint head(Look *v, int64_t at, int64_t *vtable, int *vsize, int *size) noexcept nogil:
    """Read the table at `at`, whose first four bytes are in range, and its vtable. Return whether they are valid."""
    cdef int64_t place = at - <int32_t> u32_at(v.data + at)
    if place < 0 or place & 1 or place > v.size - 4:
        return wrong(v, b"a vtable lies outside the footer", at)
    vsize[0], size[0] = u16_at(v.data + place), u16_at(v.data + place + 2)
    if vsize[0] < 4 or vsize[0] & 1 or vsize[0] > v.size - place:
        return wrong(v, b"a vtable extends beyond the last byte", at)
    if size[0] < 4 or size[0] > v.size - at:
        return wrong(v, b"a table extends beyond the last byte", at)
    vtable[0] = place
    return spend(v, size[0], at)


cdef bint table(Look *v, int64_t at, int kind) noexcept nogil:
    cdef Layout *layout = &layouts[kind]
    cdef int64_t vtable = 0, place, there, count = 0, i
    cdef int vsize = 0, size = 0, slot, offset, width, which = 0
    cdef Slot *one
    if not head(v, at, &vtable, &vsize, &size):
        return False
    for slot in range(layout.slots):
        one = &layout.slot[slot]
        offset = u16_at(v.data + vtable + 4 + 2 * slot) if 6 + 2 * slot <= vsize else 0
        if offset == 0:
            if one.required:
                return wrong(v, b"a table lacks a required field", at)
            if one.kind == WHICH:
                which = 0
            elif one.kind == UNION and which:
                return wrong(v, b"a union has a type but no value", at)
            continue
        width = one.size if one.kind == SCALAR or one.kind == WHICH else 4
        if offset < 4 or offset > size - width:
            return wrong(v, b"a field lies outside its table", at)
        place = at + offset
        if place & (width - 1):
            return wrong(v, b"a field is not aligned", place)
        if one.kind == SCALAR:
            continue
        if one.kind == WHICH:
            which = v.data[place]
            continue
        if one.kind == UNION and which == 0:
            return wrong(v, b"a union has a value but no type", at)
        there = follow(v, place)
        if there < 0:
            return False
        if one.kind == TABLE:
            if not table(v, there, one.of):
                return False
        elif one.kind == UNION:
            if which <= members[one.of] and not table(v, there, unions[one.of][which - 1]):
                return False
        elif one.kind == STRING:
            if not string(v, there):
                return False
        elif one.kind == SCALARS:
            if not vector(v, there, one.size, &count):
                return False
        else:
            if not vector(v, there, 4, &count):
                return False
            for i in range(count):
                place = follow(v, there + 4 + 4 * i)
                if place < 0:
                    return False
                if not (string(v, place) if one.kind == STRINGS else table(v, place, one.of)):
                    return False
    return True


cdef bint whole(Look *v) noexcept nogil:
    cdef int64_t root, vtable = 0, there, count = 0
    cdef int vsize = 0, size = 0, offset
    if v.size < 8 or v.size > 0x7FFFFFFF:
        return wrong(v, b"its size is not between 8 bytes and 2 GiB", 0)
    root = follow(v, 0)
    if root < 0 or not table(v, root, 0) or not head(v, root, &vtable, &vsize, &size):
        return False
    offset = u16_at(v.data + vtable + 4 + 2 * F_EXTENSION) if 6 + 2 * F_EXTENSION <= vsize else 0
    if offset == 0:
        return True
    if offset < 4 or offset > size - 4 or (root + offset) & 3:
        return wrong(v, b"a field lies outside its table", root)
    there = follow(v, root + offset)
    return there >= 0 and vector(v, there, 1, &count)


def verify(bytes payload not None):
    cdef Look v
    cdef bint fine
    v.data = <const uint8_t *> PyBytes_AS_STRING(payload)
    v.size = PyBytes_GET_SIZE(payload)
    v.room = max(EXPANSION * v.size, <int64_t> ANY_SIZE)
    v.fault = NULL
    v.at = 0
    with nogil:
        fine = whole(&v)
    if not fine:
        raise CorruptFileError(f"the FlatBuffers footer is corrupt at byte {v.at}: {v.fault.decode()}")


def extension(bytes payload not None):
    cdef const uint8_t *data = <const uint8_t *> PyBytes_AS_STRING(payload)
    cdef int64_t root = u32_at(data), at
    cdef int64_t vtable
    vtable = root - <int32_t> u32_at(data + root)
    if 6 + 2 * F_EXTENSION > u16_at(data + vtable) or u16_at(data + vtable + 4 + 2 * F_EXTENSION) == 0:
        return None
    at = root + u16_at(data + vtable + 4 + 2 * F_EXTENSION)
    at += u32_at(data + at)
    return payload[at + 4 : at + 4 + u32_at(data + at)]
