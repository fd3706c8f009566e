# cython: language_level=3
"""Field table of a structure, and checks that a structure can be written with it."""
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from pqext.core.kernels.thrift.compact cimport BINARY, BYTE, DOUBLE, I16, I32, I64, STRUCT, TRUE

from enum import IntEnum
from operator import index
from types import MemberDescriptorType

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


def slot_of(object cls, str name):
    """Return the slot descriptor of the attribute."""
    slot = getattr(cls, name)
    if type(slot) is not MemberDescriptorType:
        raise TypeError(f"{cls.__name__}.{name} is not a slot")
    return slot


cdef class Plan:
    """Field table of one structure in C."""
    def __cinit__(self, object cls, object lazy):
        cdef FieldPlan *one
        cdef PyObject **members
        cdef Plan child
        if not isinstance(cls, type):
            raise TypeError(f"{cls!r} is not a class")
        fields = cls.fields
        self.cls = cls
        self.is_union = cls.is_union
        self.lazy = lazy
        self.names = [declared.name for declared in fields]
        self.kept = []
        self.field_count = len(fields)
        if self.field_count > 64:
            raise TypeError(f"{cls.__name__} declares more than 64 fields")
        self.id_count = max([0] + [declared.id for declared in fields]) + 1
        self.fields = <FieldPlan *> calloc(self.id_count, sizeof(FieldPlan))
        self.slots = <PyObject **> calloc(self.field_count + 1, sizeof(PyObject *))
        if self.fields == NULL or self.slots == NULL:
            raise MemoryError
        slot = slot_of(cls, "unknown")
        self.kept.append(slot)
        self.unknown = <PyObject *> slot
        self.min_size = 2 if self.is_union else 1
        for position, declared in enumerate(fields):
            if not 1 <= declared.id < self.id_count:
                raise TypeError(f"{cls.__name__}.{declared.name}: field ids must start at 1")
            one = &self.fields[<int> declared.id]
            slot = slot_of(cls, declared.name)
            self.kept.append(slot)
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
                if min(declared.type) < 0 or max(declared.type) > 255:
                    raise TypeError(f"{declared.type.__name__}: values must be from 0 to 255")
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

    def __dealloc__(self):
        cdef int i
        if self.fields != NULL:
            for i in range(self.id_count):
                free(self.fields[i].members)
        free(self.fields)
        free(self.slots)


cdef int64_t check_scalar(Plan plan, FieldPlan *field, object value) except? -1:
    """Return the number in a field, if it is numeric.

    Raise an error if the value cannot be written as its field declares.
    """
    cdef long long number
    cdef int overflow = 0
    cdef str name
    if field.form == AS_INT or field.form == AS_ENUM:
        number = PyLong_AsLongLongAndOverflow(index(value), &overflow)
        if not overflow and (number >> (field.bits - 1)) == (number >> 63):
            return number
        name = plan.names[field.position]
        raise ValueError(f"{plan.cls.__name__}.{name}: {value} does not fit into {field.bits} bits")
    if field.form == AS_BINARY:
        fits = isinstance(value, bytes)
    elif field.form == AS_STRING:
        fits = isinstance(value, (str, bytes))
    elif field.form == AS_DOUBLE:
        fits = hasattr(type(value), "__float__")
    else:
        fits = True
    if not fits:
        raise TypeError(f"{plan.cls.__name__}.{plan.names[field.position]} cannot have type {type(value).__name__}")
    return 0


def only_member(object struct):
    cdef Plan plan = <Plan?> type(struct).plan
    cdef int i, found = -1
    for i in range(plan.field_count):
        if slot_get(plan.slots[i], struct) is not None:
            if found >= 0:
                return None
            found = i
    return None if found < 0 else plan.names[found]
