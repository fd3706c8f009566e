# cython: language_level=3
"""Write Thrift's compact protocol, using the field tables of `pqext.core.format.thrift`."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free
from pqext.core.kernels.thrift.compact cimport FALSE, LIST, TRUE
from pqext.core.kernels.thrift.compact_write cimport put_binary, put_byte, put_header, put_int, put_list
from pqext.core.kernels.thrift.struct_plan cimport (
    AS_BINARY, AS_BOOL, AS_DOUBLE, AS_ENUM, AS_INT, AS_STRING, AS_STRUCT, FieldPlan, Plan, check_scalar, slot_get,
)

EXTENSION_IDS = (32767, -16384)

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL


cdef int written(int status) except -1:
    if status != 0:
        raise MemoryError("out of memory for the metadata")
    return 0


cdef int write_bytes(Bytes *b, bytes value, bint sized) except -1:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
    if sized:
        return written(put_binary(b, PyBytes_AS_STRING(value), size))
    return written(bytes_append(b, PyBytes_AS_STRING(value), size))


cdef int write_text(Bytes *b, Plan plan, FieldPlan *field, object value) except -1:
    """Write text as UTF-8. Surrogates that represent invalid bytes of the input become these bytes again."""
    cdef const char *data
    cdef Py_ssize_t size = 0
    if isinstance(value, bytes):
        return write_bytes(b, value, True)
    try:
        data = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError:
        try:
            return write_bytes(b, value.encode("utf-8", "surrogateescape"), True)
        except UnicodeEncodeError as error:
            raise ValueError(f"{value[error.start]!r} in {value[:100]!r} is not Unicode text") from None
    return written(put_binary(b, data, size))


cdef int write_value(Bytes *b, Plan plan, FieldPlan *field, object value) except -1:
    """Write a value of the declared type, except a boolean outside a list."""
    cdef double number
    cdef int64_t integer
    if field.form == AS_STRUCT:
        return write_struct(b, <Plan> field.child, value)
    integer = check_scalar(plan, field, value)
    if field.form == AS_INT or field.form == AS_ENUM:
        return written(put_byte(b, <unsigned char> integer) if field.bits == 8 else put_int(b, integer))
    if field.form == AS_BINARY:
        return write_bytes(b, value, True)
    if field.form == AS_STRING:
        return write_text(b, plan, field, value)
    if field.form == AS_DOUBLE:
        number = value  # little-endian, as the machines this runs on
        return written(bytes_append(b, &number, 8))
    return written(put_byte(b, TRUE if value else FALSE))


cdef int write_list(Bytes *b, Plan plan, FieldPlan *field, object value) except -1:
    cdef object element
    # Lists of booleans have element type 1 in the compact protocol.
    written(put_list(b, field.wire, len(value)))
    if type(value) is list or type(value) is tuple:
        for element in value:
            write_value(b, plan, field, element)
    else:
        for element in value.encoded():
            write_bytes(b, element, False)
    return 0


def place(entry):
    """Sort key of unknown fields: by id, with extensions after all fields."""
    return (1, 0) if entry[0] in EXTENSION_IDS else (0, entry[0])


cdef int write_unknown(Bytes *b, tuple entry, int *last) except -1:
    id, wire, raw = entry
    written(put_header(b, wire, id, last))
    return write_bytes(b, raw, False)


cdef int write_struct(Bytes *b, Plan plan, object struct) except -1:
    cdef FieldPlan *field
    cdef object value
    cdef int id, last = 0, members = 0
    cdef list others = None
    if type(struct) is not plan.cls:
        raise TypeError(f"expected {plan.cls.__name__}, got {type(struct).__name__}")
    unknown = slot_get(plan.unknown, struct)
    if unknown:
        others = sorted(unknown, key=place)[::-1]
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
        while others and place(others[-1]) <= (0, id):
            write_unknown(b, others.pop(), &last)
        if field.is_list:
            if type(value) is not list and type(value) is not tuple and not isinstance(value, plan.lazy):
                raise TypeError(f"{plan.cls.__name__}.{plan.names[field.position]} must be a list or tuple")
            written(put_header(b, LIST, id, &last))
            write_list(b, plan, field, value)
        elif field.form == AS_BOOL:
            written(put_header(b, TRUE if value else FALSE, id, &last))
        else:
            written(put_header(b, field.wire, id, &last))
            write_value(b, plan, field, value)
    while others:
        write_unknown(b, others.pop(), &last)
    if plan.is_union and members != 1 and (members or not unknown):
        raise ValueError(f"the union {plan.cls.__name__} must have exactly one member")
    return written(put_byte(b, 0))


def encode(object struct):
    cdef Bytes b
    b.data = NULL
    b.size = b.capacity = 0
    try:
        write_struct(&b, <Plan?> type(struct).plan, struct)
        return PyBytes_FromStringAndSize(<char *> b.data, <Py_ssize_t> b.size)
    finally:
        bytes_free(&b)
