# cython: language_level=3
"""Reading Thrift's compact protocol straight from a buffer, by the field tables of `pqext.core.thrift`.

Pointers are used throughout: every read is preceded by a comparison with `end`, and every count from the
input by one with the bytes that are left.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from enum import IntEnum
from operator import index
from types import MemberDescriptorType

from pqext.core.errors import CorruptFileError, LimitError
from pqext.core.limits import DEFAULT_LIMITS

cdef extern from *:
    """
    /* Slots are set and read through their descriptors, which is twice as fast as by name. */
    static inline int slot_set(PyObject *slot, PyObject *owner, PyObject *value) {
        return Py_TYPE(slot)->tp_descr_set(slot, owner, value);
    }
    static inline PyObject *slot_get(PyObject *slot, PyObject *owner) {
        return Py_TYPE(slot)->tp_descr_get(slot, owner, (PyObject *) Py_TYPE(owner));
    }
    static inline PyObject *allocate(PyObject *type) {
        return ((PyTypeObject *) type)->tp_alloc((PyTypeObject *) type, 0);
    }
    """
    int slot_set(PyObject *slot, object owner, object value) except -1
    object slot_get(PyObject *slot, object owner)
    object allocate(object type)

# Wire types of the compact protocol.
cdef enum:
    STOP = 0
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13

# How a declared value becomes an object.
cdef enum:
    AS_NOTHING = 0
    AS_BOOL
    AS_INT
    AS_ENUM
    AS_DOUBLE
    AS_BINARY
    AS_STRING
    AS_STRUCT

cdef enum:
    DONE = 0
    TRUNCATED = -1
    BAD_VARINT = -2
    BAD_TYPE = -3
    BAD_COUNT = -4
    BAD_ID = -5
    TOO_DEEP = -6
    TOO_MANY = -7

cdef dict MESSAGES = {
    TRUNCATED: "the structure goes on after the last byte",
    BAD_VARINT: "a variable-length integer is longer than 64 bits",
    BAD_TYPE: "a wire type that the compact protocol does not have",
    BAD_COUNT: "a list that claims more elements than there are bytes left",
    BAD_ID: "a field id of more than 16 bits",
    TOO_DEEP: "structures nest deeper than metadata_depth",
    TOO_MANY: "the structure has more elements than metadata_elements",
}

# C recursion is bounded by this whatever the limits say.
cdef enum:
    DEPTH_CAP = 1000

cdef dict SCALARS = {
    "bool": (AS_BOOL, TRUE, 8),
    "i8": (AS_INT, BYTE, 8),
    "i16": (AS_INT, I16, 16),
    "i32": (AS_INT, I32, 32),
    "i64": (AS_INT, I64, 64),
    "double": (AS_DOUBLE, DOUBLE, 64),
    "binary": (AS_BINARY, BINARY, 0),
    "string": (AS_STRING, BINARY, 0),
}

cdef struct FieldPlan:
    uint8_t form          # AS_..., of the elements in a list
    uint8_t wire          # of the elements in a list
    uint8_t bits
    bint is_list
    bint lazy
    int position          # among the class's fields
    int names             # size of `members`
    PyObject *slot
    PyObject *child       # the Plan of a structure
    PyObject **members    # an enum's members by value

cdef struct Cursor:
    const uint8_t *start
    const uint8_t *p
    const uint8_t *end
    int64_t base
    int64_t elements      # what is left of max_elements
    int64_t max_elements
    int max_depth
    int status
    PyObject *path        # of the file, for errors; `Data` owns it


cdef class Plan:
    """The field table of one structure in C."""
    cdef readonly object cls
    cdef FieldPlan *fields
    cdef int id_count, field_count
    cdef uint64_t required
    cdef bint is_union
    cdef Py_ssize_t min_size
    cdef object lazy
    cdef list names, kept
    cdef PyObject **slots
    cdef PyObject *unknown

    def __cinit__(self, object cls not None, tuple fields, bint is_union, object lazy):
        cdef FieldPlan *one
        cdef PyObject **members
        cdef Plan child
        if not isinstance(cls, type):
            raise TypeError(f"{cls!r} is not a class")
        self.cls = cls
        self.is_union = is_union
        self.lazy = lazy
        self.names = [declared.name for declared in fields]
        self.kept = []
        self.field_count = len(fields)
        if self.field_count > 64:
            raise TypeError(f"{cls.__name__} declares more than 64 fields")
        self.id_count = max([declared.id for declared in fields], default=0) + 1
        self.fields = <FieldPlan *> calloc(self.id_count, sizeof(FieldPlan))
        self.slots = <PyObject **> calloc(self.field_count + 1, sizeof(PyObject *))
        if self.fields == NULL or self.slots == NULL:
            raise MemoryError
        slot = self.keep(cls.unknown)
        self.unknown = <PyObject *> slot
        self.min_size = 2 if is_union else 1
        for position, declared in enumerate(fields):
            if declared.id < 1:
                raise TypeError(f"{cls.__name__}.{declared.name}: field ids start at 1")
            one = &self.fields[<int> declared.id]
            slot = self.keep(getattr(cls, declared.name))
            one.slot = <PyObject *> slot
            self.slots[<int> position] = one.slot
            one.position = position
            one.is_list = declared.is_list
            one.lazy = declared.lazy
            if declared.required:
                self.required |= (<uint64_t> 1) << <int> position
                self.min_size += 1 if declared.type == "bool" and not declared.is_list else 2
            if isinstance(declared.type, str):
                one.form, one.wire, one.bits = SCALARS[declared.type]
            elif issubclass(declared.type, IntEnum):
                one.form, one.wire, one.bits = AS_ENUM, I32, 32
                one.names = max(declared.type) + 1
                members = <PyObject **> calloc(one.names, sizeof(PyObject *))
                if members == NULL:
                    raise MemoryError
                one.members = members
                for member in declared.type:
                    self.kept.append(member)
                    members[<int> member.value] = <PyObject *> member
            else:
                child = declared.type.plan
                self.kept.append(child)
                one.form, one.wire = AS_STRUCT, STRUCT
                one.child = <PyObject *> child

    cdef object keep(self, object slot):
        if type(slot) is not MemberDescriptorType:
            raise TypeError(f"{self.cls.__name__}: {slot!r} is not a slot")
        self.kept.append(slot)
        return slot

    def __dealloc__(self):
        cdef int i
        if self.fields != NULL:
            for i in range(self.id_count):
                free(self.fields[i].members)
        free(self.fields)
        free(self.slots)


cdef inline int read_varint(Cursor *c, uint64_t *value) noexcept nogil:
    cdef uint64_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while c.p < c.end:
        byte = c.p[0]
        c.p += 1
        if shift == 63 and byte > 1:
            return BAD_VARINT
        result |= (<uint64_t> (byte & 0x7F)) << shift
        if byte < 0x80:
            value[0] = result
            return DONE
        shift += 7
    return TRUNCATED


cdef inline int read_size(Cursor *c, Py_ssize_t *size) noexcept nogil:
    """A length in bytes or elements, which cannot exceed the bytes that are left."""
    cdef uint64_t value
    cdef int status = read_varint(c, &value)
    if status == DONE:
        if value > <uint64_t> (c.end - c.p):
            return BAD_COUNT
        size[0] = <Py_ssize_t> value
    return status


cdef inline int64_t unzigzag(uint64_t value) noexcept nogil:
    return <int64_t> ((value >> 1) ^ (0 - (value & 1)))


cdef inline int read_list(Cursor *c, int *wire, Py_ssize_t *count) noexcept nogil:
    cdef int status
    if c.p >= c.end:
        return TRUNCATED
    wire[0] = c.p[0] & 15
    count[0] = c.p[0] >> 4
    c.p += 1
    if count[0] == 15:
        status = read_size(c, count)
        if status != DONE:
            return status
    elif count[0] > c.end - c.p:
        return BAD_COUNT
    c.elements -= count[0]
    return TOO_MANY if c.elements < 0 else DONE


cdef inline int read_header(Cursor *c, int *wire, int *id) noexcept nogil:
    """A field header; `id` holds the id of the field before. Wire type STOP ends the structure."""
    cdef uint8_t byte
    cdef uint64_t value
    cdef int status
    if c.p >= c.end:
        return TRUNCATED
    byte = c.p[0]
    c.p += 1
    wire[0] = byte & 15
    if byte == STOP:
        return DONE
    if wire[0] == STOP or wire[0] > UUID:
        return BAD_TYPE
    if byte >> 4:
        id[0] += byte >> 4
    else:
        status = read_varint(c, &value)
        if status != DONE:
            return status
        if value > 0xFFFF:
            return BAD_ID
        id[0] = <int> unzigzag(value)
    if id[0] > 32767:
        return BAD_ID
    c.elements -= 1
    return TOO_MANY if c.elements < 0 else DONE


cdef inline const uint8_t *stop_at(Cursor *c, const uint8_t *p, int status) noexcept nogil:
    c.p = p
    c.status = status
    return NULL


# The skipping functions keep their place in a register: they take it and return the place behind what they
# skipped, or NULL with the place and the reason in the cursor.

cdef inline const uint8_t *skip_varint(Cursor *c, const uint8_t *p) noexcept nogil:
    cdef const uint8_t *ninth = c.end if c.end - p < 9 else p + 9
    while p < ninth:
        p += 1
        if p[-1] < 0x80:
            return p
    if p == c.end:
        return stop_at(c, p, TRUNCATED)
    return p + 1 if p[0] <= 1 else stop_at(c, p, BAD_VARINT)


cdef inline const uint8_t *skip_fixed(Cursor *c, const uint8_t *p, Py_ssize_t size) noexcept nogil:
    if size > c.end - p:
        return stop_at(c, p, TRUNCATED)
    return p + size


cdef inline const uint8_t *skip_binary(Cursor *c, const uint8_t *p) noexcept nogil:
    cdef uint64_t size
    if p < c.end and p[0] < 0x80:
        size = p[0]
        p += 1
    else:
        c.p = p
        c.status = read_varint(c, &size)
        if c.status != DONE:
            return NULL
        p = c.p
    if size > <uint64_t> (c.end - p):
        return stop_at(c, p, TRUNCATED)
    return p + size


cdef const uint8_t *skip_struct(Cursor *c, const uint8_t *p, int depth) noexcept nogil:
    cdef uint8_t byte, wire
    cdef int64_t fields = 0
    if depth >= c.max_depth:
        return stop_at(c, p, TOO_DEEP)
    while p != NULL:
        if p >= c.end:
            return stop_at(c, p, TRUNCATED)
        byte = p[0]
        p += 1
        if byte == STOP:
            c.elements -= fields
            return p if c.elements >= 0 else stop_at(c, p, TOO_MANY)
        fields += 1
        wire = byte & 15
        if byte < 16:
            p = skip_varint(c, p)
            if p == NULL:
                break
        if I16 <= wire <= I64:
            p = skip_varint(c, p)
        elif wire == BINARY:
            p = skip_binary(c, p)
        elif wire > FALSE:
            p = skip_value(c, p, wire, depth + 1)
        elif wire == STOP:
            return stop_at(c, p, BAD_TYPE)
    return NULL


cdef const uint8_t *skip_values(Cursor *c, const uint8_t *p, int wire, Py_ssize_t count, int depth) noexcept nogil:
    """The elements of a list, in which a boolean takes a byte."""
    cdef Py_ssize_t i = 0
    if wire <= BYTE:
        return stop_at(c, p, BAD_TYPE) if count and wire == STOP else skip_fixed(c, p, count)
    for i in range(count):
        if wire == STRUCT and p < c.end and p[0] == STOP and depth < c.max_depth:
            p += 1  # millions of empty structures are cheap to send, so they are cheap to skip
            continue
        p = skip_value(c, p, wire, depth)
        if p == NULL:
            break
    return p


cdef const uint8_t *skip_value(Cursor *c, const uint8_t *p, int wire, int depth) noexcept nogil:
    cdef Py_ssize_t count = 0
    cdef int element = 0
    if I16 <= wire <= I64:
        return skip_varint(c, p)
    if wire == BINARY:
        return skip_binary(c, p)
    if wire == STRUCT:
        return skip_struct(c, p, depth)
    if wire == LIST or wire == SET:
        if depth >= c.max_depth:
            return stop_at(c, p, TOO_DEEP)
        c.p = p
        c.status = read_list(c, &element, &count)
        return skip_values(c, c.p, element, count, depth + 1) if c.status == DONE else NULL
    if wire == MAP:
        return skip_map(c, p, depth)
    if wire == BYTE:
        return skip_fixed(c, p, 1)
    if wire == DOUBLE:
        return skip_fixed(c, p, 8)
    if wire == UUID:
        return skip_fixed(c, p, 16)
    return stop_at(c, p, BAD_TYPE)


cdef const uint8_t *skip_map(Cursor *c, const uint8_t *p, int depth) noexcept nogil:
    cdef Py_ssize_t count = 0, i
    cdef int types
    if depth >= c.max_depth:
        return stop_at(c, p, TOO_DEEP)
    c.p = p
    c.status = read_size(c, &count)
    if c.status != DONE:
        return NULL
    p = c.p
    if count == 0:
        return p
    if p >= c.end:
        return stop_at(c, p, TRUNCATED)
    types = p[0]
    p += 1
    c.elements -= 2 * count
    if c.elements < 0:
        return stop_at(c, p, TOO_MANY)
    for i in range(count):
        p = skip_values(c, p, types >> 4, 1, depth + 1)
        if p != NULL:
            p = skip_values(c, p, types & 15, 1, depth + 1)
        if p == NULL:
            break
    return p


cdef class Data:
    """Holds the buffer that a cursor moves in, and that lazy lists read from later."""
    cdef Py_buffer view
    cdef bint held
    cdef object path

    def __cinit__(self, object source, object path):
        self.path = path
        PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef object error_for(Cursor *c, str where):
    error = LimitError if c.status == TOO_DEEP or c.status == TOO_MANY else CorruptFileError
    return error(f"{where}: {MESSAGES[c.status]}", path=<object> c.path, offset=c.base + (c.p - c.start))


cdef int fail(Cursor *c, int status, Plan plan, object field) except -1:
    c.status = status
    raise error_for(c, plan.cls.__name__ if field is None else f"{plan.cls.__name__}.{field}")


cdef int corrupt(Cursor *c, Plan plan, object field, str message) except -1:
    where = plan.cls.__name__ if field is None else f"{plan.cls.__name__}.{field}"
    raise CorruptFileError(f"{where}: {message}", path=<object> c.path, offset=c.base + (c.p - c.start))


cdef object read_value(Cursor *c, Plan plan, FieldPlan *field, Data data, int depth):
    """A value of the declared type, anything but a boolean outside of a list."""
    cdef uint64_t raw = 0
    cdef int64_t value
    cdef Py_ssize_t size = 0
    cdef double number
    cdef int status = DONE
    cdef object result
    if field.form == AS_INT or field.form == AS_ENUM:
        if field.bits == 8:
            if c.p >= c.end:
                fail(c, TRUNCATED, plan, plan.names[field.position])
            c.p += 1
            return <int> (<signed char> c.p[-1])
        status = read_varint(c, &raw)
        if status != DONE:
            fail(c, status, plan, plan.names[field.position])
        value = unzigzag(raw)
        if field.bits < 64 and (value >> (field.bits - 1)) != (value >> 63):
            corrupt(c, plan, plan.names[field.position], f"{value} does not fit {field.bits} bits")
        if field.form == AS_ENUM and 0 <= value < field.names and field.members[value] != NULL:
            return <object> field.members[value]
        return value
    if field.form == AS_BINARY or field.form == AS_STRING:
        status = read_size(c, &size)
        if status != DONE:
            fail(c, TRUNCATED if status == BAD_COUNT else status, plan, plan.names[field.position])
        c.p += size
        if field.form == AS_BINARY:
            return PyBytes_FromStringAndSize(<const char *> c.p - size, size)
        return PyUnicode_DecodeUTF8(<const char *> c.p - size, size, b"surrogateescape")
    if field.form == AS_STRUCT:
        return read_struct(c, <Plan> field.child, data, depth)
    if field.form == AS_DOUBLE:
        if c.end - c.p < 8:
            fail(c, TRUNCATED, plan, plan.names[field.position])
        memcpy(&number, c.p, 8)  # little-endian, as the machines this runs on
        c.p += 8
        return number
    if c.p >= c.end:
        fail(c, TRUNCATED, plan, plan.names[field.position])
    c.p += 1
    if c.p[-1] > FALSE:
        corrupt(c, plan, plan.names[field.position], f"byte {c.p[-1]} is not a boolean")
    return c.p[-1] == TRUE


cdef object read_elements(Cursor *c, Plan plan, FieldPlan *field, Py_ssize_t count, Data data, int depth):
    cdef Py_ssize_t i = 0
    cdef list values
    cdef object value
    cdef StructIndex positions
    if field.form == AS_STRUCT and count > (c.end - c.p) // (<Plan> field.child).min_size:
        fail(c, BAD_COUNT, plan, plan.names[field.position])
    if field.lazy:
        positions = StructIndex.__new__(StructIndex)
        positions.build(c, plan, field, count, data, depth)
        return plan.lazy(positions)
    values = PyList_New(count)
    for i in range(count):
        value = read_value(c, plan, field, data, depth)
        Py_INCREF(value)
        PyList_SET_ITEM(values, i, value)
    return values


cdef object read_struct(Cursor *c, Plan plan, Data data, int depth):
    cdef object struct = allocate(plan.cls)
    cdef uint64_t seen = 0, missing
    cdef int status, wire = 0, element = 0, id = 0, i
    cdef Py_ssize_t count = 0
    cdef FieldPlan *field
    cdef const uint8_t *value_start
    cdef const uint8_t *value_end
    cdef object value
    cdef list unknown = None
    cdef bint known
    if depth >= c.max_depth:
        fail(c, TOO_DEEP, plan, None)
    while True:
        status = read_header(c, &wire, &id)
        if status != DONE:
            fail(c, status, plan, None)
        if wire == STOP:
            break
        value_start = c.p
        field = &plan.fields[id] if 0 < id < plan.id_count else NULL
        known = field != NULL and field.slot != NULL
        if known:
            if field.is_list:
                known = wire == LIST
                if known:
                    status = read_list(c, &element, &count)
                    if status != DONE:
                        fail(c, status, plan, plan.names[field.position])
                    known = count == 0 or element == field.wire or (field.form == AS_BOOL and element == FALSE)
                    if known:
                        value = read_elements(c, plan, field, count, data, depth + 1)
            elif field.form == AS_BOOL:
                known = wire <= FALSE
                value = wire == TRUE
            else:
                known = wire == field.wire
                if known:
                    value = read_value(c, plan, field, data, depth + 1)
        if known:
            slot_set(field.slot, struct, value)
            seen |= (<uint64_t> 1) << field.position
            continue
        c.p = value_start
        if wire > FALSE:
            value_end = skip_value(c, value_start, wire, depth + 1)
            if value_end == NULL:
                fail(c, c.status, plan, f"field {id}")
            c.p = value_end
        if unknown is None:
            unknown = []
        unknown.append((id, wire, PyBytes_FromStringAndSize(<const char *> value_start, c.p - value_start)))
    missing = plan.required & ~seen
    for i in range(plan.field_count):
        if not (seen >> i) & 1:
            if (missing >> i) & 1:
                corrupt(c, plan, plan.names[i], "a required field is missing")
            slot_set(plan.slots[i], struct, None)
    if plan.is_union and (seen & (seen - 1) if seen else unknown is None):
        corrupt(c, plan, None, "a union needs exactly one member")
    slot_set(plan.unknown, struct, () if unknown is None else tuple(unknown))
    return struct


cdef class StructIndex:
    """Where the structures of a list begin in their buffer."""
    cdef Data data
    cdef Plan plan
    cdef Cursor limits
    cdef Py_ssize_t count
    cdef int depth
    cdef int64_t *offsets

    def __dealloc__(self):
        free(self.offsets)

    cdef int build(self, Cursor *c, Plan plan, FieldPlan *field, Py_ssize_t count, Data data, int depth) except -1:
        cdef Py_ssize_t i = 0
        cdef const uint8_t *p
        self.data = data
        self.plan = <Plan> field.child
        self.depth = depth
        self.count = count
        self.offsets = <int64_t *> malloc((count + 1) * sizeof(int64_t))
        if self.offsets == NULL:
            raise MemoryError
        with nogil:
            p = c.p
            for i in range(count):
                self.offsets[i] = p - c.start
                p = skip_struct(c, p, depth)
                if p == NULL:
                    break
        if p == NULL:
            fail(c, c.status, plan, f"{plan.names[field.position]}[{i}]")
        c.p = p
        self.offsets[count] = p - c.start
        self.limits = c[0]
        return 0

    def __len__(self):
        return self.count

    @property
    def name(self):
        return self.plan.cls.__name__

    cdef int check(self, Py_ssize_t position) except -1:
        if position < 0 or position >= self.count:
            raise IndexError(f"no element {position} in a list of {self.count}")
        return 0

    def decode(self, Py_ssize_t position):
        """Decode one element."""
        self.check(position)
        cdef Cursor c = self.limits
        c.p = c.start + self.offsets[position]
        c.end = c.start + self.offsets[position + 1]
        c.elements = c.max_elements
        return read_struct(&c, self.plan, self.data, self.depth)

    def raw(self, Py_ssize_t start, Py_ssize_t stop):
        """The bytes of the elements from `start` up to `stop`."""
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"no elements {start} to {stop} in a list of {self.count}")
        return PyBytes_FromStringAndSize(
            <const char *> self.limits.start + self.offsets[start], self.offsets[stop] - self.offsets[start]
        )


cdef int open_cursor(Cursor *c, Data data, Py_ssize_t offset, int64_t base, object limits) except -1:
    if offset < 0 or offset > data.view.len:
        raise ValueError(f"offset {offset} is outside of a buffer of {data.view.len} bytes")
    c.start = <const uint8_t *> data.view.buf
    c.p = c.start + offset
    c.end = c.start + data.view.len
    c.base = base
    c.elements = c.max_elements = limits.metadata_elements
    c.max_depth = min(<int64_t> limits.metadata_depth, <int64_t> DEPTH_CAP)
    c.status = DONE
    c.path = <PyObject *> data.path
    return 0


def decode(object cls, object buffer, Py_ssize_t offset=0, object limits=DEFAULT_LIMITS, int64_t base=0, object path=None):
    cdef Data data = Data(buffer, path)
    cdef Cursor c
    open_cursor(&c, data, offset, base, limits)
    struct = read_struct(&c, <Plan?> cls.plan, data, 0)
    return struct, c.p - c.start


def scan_fields(object buffer, Py_ssize_t offset=0, object limits=DEFAULT_LIMITS, int64_t base=0):
    cdef Data data = Data(buffer, None)
    cdef Cursor c
    cdef int wire, id = 0
    cdef Py_ssize_t header
    cdef const uint8_t *end
    cdef list fields = []
    open_cursor(&c, data, offset, base, limits)
    while True:
        header = c.p - c.start
        c.status = read_header(&c, &wire, &id)
        if c.status == DONE and wire == STOP:
            return fields, c.p - c.start
        value = c.p - c.start
        if c.status == DONE and wire > FALSE:
            end = skip_value(&c, c.p, wire, 1)
            if end != NULL:
                c.p = end
        if c.status != DONE:
            raise error_for(&c, f"field {id}")
        fields.append((id, wire, header, value, c.p - c.start))


cdef int check_scalar(Plan plan, FieldPlan *field, object value) except -1:
    """Can the value be written as its field declares?"""
    cdef long long number
    cdef int overflow = 0
    cdef str name
    if field.form == AS_INT or field.form == AS_ENUM:
        number = PyLong_AsLongLongAndOverflow(index(value), &overflow)
        if not overflow and (number >> (field.bits - 1)) == (number >> 63):
            return 0
        name = plan.names[field.position]
        raise ValueError(f"{plan.cls.__name__}.{name}: {value} does not fit {field.bits} bits")
    if field.form == AS_BINARY:
        fits = isinstance(value, bytes)
    elif field.form == AS_STRING:
        fits = isinstance(value, (str, bytes))
    elif field.form == AS_DOUBLE:
        fits = hasattr(type(value), "__float__")
    else:
        fits = True
    if not fits:
        raise TypeError(f"{plan.cls.__name__}.{plan.names[field.position]} cannot be a {type(value).__name__}")
    return 0


cdef bint plain(Plan plan, object struct) except -1:
    cdef FieldPlan *field
    cdef object value, element
    cdef bint result = True
    cdef int id, members = 0
    if type(struct) is not plan.cls:
        raise TypeError(f"expected {plan.cls.__name__}, got {type(struct).__name__}")
    if slot_get(plan.unknown, struct):
        result = False
    for id in range(1, plan.id_count):
        field = &plan.fields[id]
        if field.slot == NULL:
            continue
        value = slot_get(field.slot, struct)
        if value is None:
            if (plan.required >> field.position) & 1:
                raise ValueError(f"{plan.cls.__name__}.{plan.names[field.position]} is required")
            continue
        members += 1
        if not field.is_list:
            if field.form != AS_STRUCT:
                check_scalar(plan, field, value)
            elif not plain(<Plan> field.child, value):
                result = False
        elif type(value) is not list and type(value) is not tuple:
            if not isinstance(value, plan.lazy):
                raise TypeError(f"{plan.cls.__name__}.{plan.names[field.position]} must be a list or tuple")
            result = False
        else:
            for element in value:
                if field.form != AS_STRUCT:
                    check_scalar(plan, field, element)
                elif not plain(<Plan> field.child, element):
                    result = False
    if plan.is_union and members != 1 and (members or result):
        raise ValueError(f"the union {plan.cls.__name__} needs exactly one member")
    return result


def is_plain(object struct):
    return plain(<Plan?> type(struct).plan, struct)
