# Classes of the reader for other kernels: the buffer, and the offsets of the structures of a list.
from libc.stdint cimport int64_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.thrift.compact cimport Cursor
from pqext.core.kernels.thrift.struct_plan cimport FieldPlan, Plan

cdef class Data:
    cdef Py_buffer view
    cdef bint held
    cdef object path


cdef class StructIndex:
    cdef Data data
    cdef Plan plan
    cdef Cursor cursor        # after the list
    cdef Py_ssize_t count
    cdef int depth
    cdef int64_t *offsets
    cdef Bytes inner           # int64 starts of the elements of the inner lists, and ends of the lists
    cdef Bytes inner_starts    # int64 index of the first offset of each structure, and the total

    cdef int build(self, Cursor *c, Plan plan, FieldPlan *field, Py_ssize_t count, Data data, int depth) except -1
    cdef int walk(self, Cursor *c, Py_ssize_t count, int id, Py_ssize_t least) noexcept nogil
    cdef int check(self, Py_ssize_t position) except -1
    cdef Cursor at(self, Py_ssize_t position) noexcept nogil


cdef object read_struct(Cursor *c, Plan plan, Data data, int depth)
