# The field tables of `pqext.core.format.thrift` in C, shared by reading and writing.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t

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

# The conversion of a declared value to an object.
cdef enum:
    AS_NOTHING = 0
    AS_BOOL
    AS_INT
    AS_ENUM
    AS_DOUBLE
    AS_BINARY
    AS_STRING
    AS_STRUCT

cdef struct FieldPlan:
    uint8_t form          # AS_..., of the elements in a list
    uint8_t wire          # of the elements in a list
    uint8_t bits
    bint is_list
    bint lazy
    int position          # in the fields of the class
    int names             # size of `members`
    PyObject *slot
    PyObject *child       # the Plan of a structure
    PyObject **members    # an enum's members by value


cdef class Plan:
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


cdef int64_t check_scalar(Plan plan, FieldPlan *field, object value) except? -1
