# cython: language_level=3
"""Read Thrift's compact protocol directly from a buffer, using the field tables of `pqext.core.format.thrift`.

A count in the input is compared with the number of remaining bytes before memory is allocated for it.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve
from pqext.core.kernels.thrift.compact cimport (
    BAD_COUNT, BAD_ID, BAD_TYPE, BAD_VARINT, DEPTH_CAP, DONE, FALSE, LIST, STOP, STRUCT, TOO_DEEP, TOO_MANY, TOO_MUCH,
    TRUE, TRUNCATED, Cursor, read_header, read_list, read_size, read_varint, skip_value, skip_values,
    skip_varint, stop_at, unzigzag,
)
from pqext.core.kernels.thrift.layouts cimport Layouts, layouts_start, skip_alike
from pqext.core.kernels.thrift.struct_plan cimport (
    AS_BINARY, AS_BOOL, AS_DOUBLE, AS_ENUM, AS_INT, AS_STRING, AS_STRUCT, FieldPlan, Plan, allocate, slot_set,
)

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import DEFAULT_LIMITS

cdef dict MESSAGES = {
    TRUNCATED: "the structure is truncated",
    BAD_VARINT: "a variable-length integer is longer than 64 bits",
    BAD_TYPE: "the compact protocol does not have this wire type",
    BAD_COUNT: "a length or count exceeds the number of remaining bytes",
    BAD_ID: "a field id exceeds 16 bits",
    TOO_DEEP: "structures nest deeper than metadata_depth",
    TOO_MANY: "the structure has more elements than metadata_elements",
    TOO_MUCH: "the structure has more objects than metadata_objects",
}

cdef class Data:
    """Owner of the buffer of a cursor and of lazy lists."""
    def __cinit__(self, object source, object path):
        self.path = path
        PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef object error_for(Cursor *c, str where):
    error = LimitError if c.status in (TOO_DEEP, TOO_MANY, TOO_MUCH) else CorruptFileError
    return error(f"{where}: {MESSAGES[c.status]}", path=<object> c.path, offset=c.base + (c.p - c.start))


cdef int fail(Cursor *c, int status, Plan plan, object field) except -1:
    c.status = status
    raise error_for(c, plan.cls.__name__ if field is None else f"{plan.cls.__name__}.{field}")


cdef int corrupt(Cursor *c, Plan plan, object field, str message) except -1:
    where = plan.cls.__name__ if field is None else f"{plan.cls.__name__}.{field}"
    raise CorruptFileError(f"{where}: {message}", path=<object> c.path, offset=c.base + (c.p - c.start))


cdef object read_value(Cursor *c, Plan plan, FieldPlan *field, Data data, int depth):
    """Return a value of the declared type, except a boolean outside a list."""
    cdef uint64_t raw = 0
    cdef int64_t value
    cdef Py_ssize_t size = 0
    cdef double number
    cdef int status = DONE
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
            corrupt(c, plan, plan.names[field.position], f"{value} does not fit into {field.bits} bits")
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
    c.objects -= count
    if c.objects < 0:
        fail(c, TOO_MUCH, plan, plan.names[field.position])
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
        c.objects -= 1
        if c.objects < 0:
            fail(c, TOO_MUCH, plan, f"field {id}")
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
        corrupt(c, plan, None, "a union must have exactly one member")
    slot_set(plan.unknown, struct, () if unknown is None else tuple(unknown))
    return struct


cdef enum:
    NO_MEMORY = -100
    MOST_INNER = 1 << 25  # maximum bytes of offsets within structures; further offsets are found on access


cdef const uint8_t *skip_noting(
    Cursor *c, const uint8_t *p, int depth, int id, Py_ssize_t least, Bytes *places, Layouts *layouts
) noexcept nogil:
    """Skip a structure like `skip_struct`, and append the offsets of the structures of its list `id` to `places`.

    These are the start and the end of each structure. The list must have at least `least` bytes. Nothing is appended
    unless exactly one list has this id.
    """
    cdef uint8_t byte, wire
    cdef int64_t fields = 0, at
    cdef Py_ssize_t count = 0, i
    cdef int last = 0, element = 0, found = 0
    cdef size_t before = places.size
    if depth >= c.max_depth:
        return stop_at(c, p, TOO_DEEP)
    while True:
        if p >= c.end:
            return stop_at(c, p, TRUNCATED)
        byte = p[0]
        p += 1
        if byte == STOP:
            if found > 1:
                places.size = before
            c.elements -= fields
            return p if c.elements >= 0 else stop_at(c, p, TOO_MANY)
        fields += 1
        wire = byte & 15
        if byte < 16:
            p = skip_varint(c, p)
            if p == NULL:
                return NULL
            last = -(1 << 20)  # ids in the long format are left to the reader
            found = 2
        else:
            last += byte >> 4
        if wire == STOP:
            return stop_at(c, p, BAD_TYPE)
        if wire <= FALSE:
            continue
        if wire == LIST and last == id:
            found += 1
            if depth + 1 >= c.max_depth:
                return stop_at(c, p, TOO_DEEP)
            c.p = p
            c.status = read_list(c, &element, &count)
            if c.status != DONE:
                return NULL
            p = c.p
            if element == STRUCT and count <= (c.end - p) // least and places.size < MOST_INNER:
                if bytes_reserve(places, (count + 1) * 8) != 0:
                    return stop_at(c, p, NO_MEMORY)
                for i in range(count):
                    at = p - c.start
                    bytes_append(places, &at, 8)
                    p = skip_alike(c, p, depth + 2, layouts)
                    if p == NULL:
                        return NULL
                at = p - c.start
                bytes_append(places, &at, 8)
                continue
            p = skip_values(c, p, element, count, depth + 2)
        else:
            p = skip_value(c, p, wire, depth + 1)
        if p == NULL:
            return NULL


cdef class StructIndex:
    """Index of the offsets of the structures in a list, and of a list in each structure, built in one pass.

    Scanning the row groups also locates the column chunks of all row groups.
    """
    def __dealloc__(self):
        free(self.offsets)
        bytes_free(&self.inner)
        bytes_free(&self.inner_starts)

    cdef int build(self, Cursor *c, Plan plan, FieldPlan *field, Py_ssize_t count, Data data, int depth) except -1:
        cdef int status, i, id = 0
        cdef Py_ssize_t least = 0
        cdef FieldPlan *inner
        self.data = data
        self.plan = <Plan> field.child
        self.depth = depth
        self.count = count
        self.offsets = <int64_t *> malloc((count + 1) * sizeof(int64_t))
        if self.offsets == NULL:
            raise MemoryError
        if c.noted != NULL and count == c.noted_count and count and c.p - c.start == c.noted[0]:
            memcpy(self.offsets, c.noted, (count + 1) * sizeof(int64_t))
            c.p = c.start + self.offsets[count]
        else:
            for i in range(self.plan.id_count):
                inner = &self.plan.fields[i]
                if inner.slot != NULL and inner.is_list and inner.lazy and inner.form == AS_STRUCT:
                    id, least = i, (<Plan> inner.child).min_size
            with nogil:
                status = self.walk(c, count, id, least)
            if status == NO_MEMORY:
                raise MemoryError
            if status != DONE:
                fail(c, c.status, plan, f"{plan.names[field.position]}[{self.count}]")
            self.count = count
        self.cursor = c[0]
        self.cursor.noted = NULL
        return 0

    cdef int walk(self, Cursor *c, Py_ssize_t count, int id, Py_ssize_t least) noexcept nogil:
        """Find `count` structures from the cursor on and, if `id` is not 0, the structures of list `id` in each.

        On failure, `count` of this object is the index of the corrupt structure.
        """
        cdef const uint8_t *p = c.p
        cdef Py_ssize_t i
        cdef int64_t first
        cdef Layouts layouts
        layouts_start(&layouts)
        for i in range(count):
            self.offsets[i] = p - c.start
            if id:
                first = self.inner.size // 8
                if bytes_append(&self.inner_starts, &first, 8) != 0:
                    return NO_MEMORY
                p = skip_noting(c, p, self.depth, id, least, &self.inner, &layouts)
            else:
                p = skip_alike(c, p, self.depth, &layouts)
            if p == NULL:
                self.count = i
                return c.status
        if id:
            first = self.inner.size // 8
            if bytes_append(&self.inner_starts, &first, 8) != 0:
                return NO_MEMORY
        c.p = p
        self.offsets[count] = p - c.start
        return DONE

    def __len__(self):
        return self.count

    @property
    def name(self):
        return self.plan.cls.__name__

    cdef int check(self, Py_ssize_t position) except -1:
        if position < 0 or position >= self.count:
            raise IndexError(f"element {position} is out of range for a list of {self.count} elements")
        return 0

    cdef Cursor at(self, Py_ssize_t position) noexcept nogil:
        """Return a cursor at one element, which knows the offsets of the structures in its list."""
        cdef Cursor c = self.cursor
        cdef const int64_t *starts
        c.p = c.start + self.offsets[position]
        c.end = c.start + self.offsets[position + 1]
        c.elements, c.objects = c.max_elements, c.max_objects
        if self.inner_starts.size:
            starts = <const int64_t *> self.inner_starts.data
            if starts[position + 1] - starts[position] > 1:
                c.noted = <const int64_t *> self.inner.data + starts[position]
                c.noted_count = starts[position + 1] - starts[position] - 1
        return c

    def decode(self, Py_ssize_t position):
        """Decode and return one element."""
        self.check(position)
        cdef Cursor c = self.at(position)
        return read_struct(&c, self.plan, self.data, self.depth)

    def raw(self, Py_ssize_t start, Py_ssize_t stop):
        """Return the bytes of the elements from `start` up to `stop`."""
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"elements {start} to {stop} are out of range for a list of {self.count} elements")
        if start == stop:
            return b""
        return PyBytes_FromStringAndSize(
            <const char *> self.cursor.start + self.offsets[start], self.offsets[stop] - self.offsets[start]
        )


cdef int open_cursor(Cursor *c, Data data, Py_ssize_t offset, int64_t base, object limits) except -1:
    if offset < 0 or offset > data.view.len:
        raise ValueError(f"offset {offset} is outside a buffer of {data.view.len} bytes")
    c.start = <const uint8_t *> data.view.buf
    c.p = c.start + offset
    c.end = c.start + data.view.len
    c.base = base
    c.elements = c.max_elements = limits.metadata_elements
    c.objects = c.max_objects = limits.metadata_objects
    c.max_depth = min(<int64_t> limits.metadata_depth, <int64_t> DEPTH_CAP)
    c.status = DONE
    c.path = <PyObject *> data.path
    c.noted = NULL
    return 0


def decode(
    object cls, object buffer, Py_ssize_t offset=0, object limits=DEFAULT_LIMITS, int64_t base=0, object path=None
):
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
        c.objects -= 1
        if c.status == DONE and c.objects < 0:
            c.status = TOO_MUCH
        if c.status != DONE:
            raise error_for(&c, f"field {id}")
        fields.append((id, wire, header, value, c.p - c.start))
