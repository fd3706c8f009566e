# cython: language_level=3
"""Read the schema as a tree without an object per element, so that wide files can be planned before columns are read.
"""
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from pqext.core.kernels.thrift.compact cimport (
    BINARY, DONE, FALSE, I32, STOP, Cursor, read_header, read_size, read_varint, skip_value, unzigzag,
)
from pqext.core.kernels.thrift.reader cimport Data, StructIndex

import numpy as np

from pqext.core.base.errors import CorruptFileError

# Field ids of SchemaElement.
cdef enum:
    TYPE = 1
    REPETITION = 3
    NAME = 4
    CHILDREN = 5


cdef bint read_element(
    Cursor *c, int32_t *type, int32_t *repetition, int32_t *children, const uint8_t **name, Py_ssize_t *size
) noexcept nogil:
    """Read the four fields of the structure at the cursor that form the tree; return False if it is incomplete."""
    cdef int wire = 0, id = 0
    cdef uint64_t raw = 0
    cdef int64_t value
    cdef const uint8_t *p
    name[0] = NULL
    type[0] = repetition[0] = -1
    children[0] = 0
    while True:
        if read_header(c, &wire, &id) != DONE:
            return False
        if wire == STOP:
            return name[0] != NULL
        if id == NAME and wire == BINARY:
            if read_size(c, size) != DONE:
                return False
            name[0] = c.p
            c.p += size[0]
        elif wire == I32 and (id == TYPE or id == REPETITION or id == CHILDREN):
            if read_varint(c, &raw) != DONE:
                return False
            value = unzigzag(raw)
            if value != <int32_t> value:
                return False
            if id == TYPE:
                type[0] = 1  # the specific type does not matter here
            elif id == REPETITION:
                repetition[0] = <int32_t> value if 0 <= value <= 2 else -2
            else:
                children[0] = <int32_t> value
        elif wire > FALSE:
            p = skip_value(c, c.p, wire, 2)
            if p == NULL:
                return False
            c.p = p


cdef bint is_ascii(const uint8_t *text, Py_ssize_t size) noexcept nogil:
    cdef uint64_t word
    cdef uint8_t seen = 0
    while size >= 8:
        memcpy(&word, text, 8)
        if word & <uint64_t> 0x8080808080808080:
            return False
        text += 8
        size -= 8
    while size:
        size -= 1
        seen |= text[size]
    return seen < 0x80


cdef class Names:
    """Names of schema elements, in the bytes of the footer."""
    cdef Data data
    cdef const uint8_t **starts
    cdef Py_ssize_t *sizes
    cdef Py_ssize_t count

    def __dealloc__(self):
        free(self.starts)
        free(self.sizes)

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t position):
        if not 0 <= position < self.count:
            raise IndexError(f"name {position} is out of range for {self.count} names")
        return PyUnicode_DecodeUTF8(<const char *> self.starts[position], self.sizes[position], NULL)

    def find(self, const uint8_t[::1] name not None, Py_ssize_t start, Py_ssize_t stop):
        """Return the first element from `start` up to `stop` with this name, or -1."""
        cdef Py_ssize_t size = name.shape[0], i
        if not 0 <= start <= stop <= self.count:
            raise IndexError(f"names {start} to {stop} are out of range for {self.count} names")
        for i in range(start, stop):
            if self.sizes[i] == size and (size == 0 or memcmp(self.starts[i], &name[0], size) == 0):
                return i
        return -1


def elements(StructIndex index not None):
    cdef Cursor c = index.cursor
    cdef Py_ssize_t i, size = 0, count = index.count, odd = -1
    cdef const uint8_t *name = NULL
    cdef int32_t type = 0, repetition = 0, children = 0
    cdef Names names = Names()
    if index.plan.cls.__name__ != "SchemaElement":
        raise TypeError("expected a list of SchemaElement structures")
    all_children = np.empty(count, np.int32)
    all_repetition = np.empty(count, np.int8)
    all_typed = np.empty(count, np.uint8)
    cdef int32_t[::1] children_view = all_children
    cdef int8_t[::1] repetition_view = all_repetition
    cdef uint8_t[::1] typed_view = all_typed
    names.data = index.data
    names.starts = <const uint8_t **> calloc(count + 1, sizeof(const uint8_t *))
    names.sizes = <Py_ssize_t *> calloc(count + 1, sizeof(Py_ssize_t))
    if names.starts == NULL or names.sizes == NULL:
        raise MemoryError
    names.count = count
    for i in range(count):
        c.p = c.start + index.offsets[i]
        c.end = c.start + index.offsets[i + 1]
        c.elements = c.max_elements
        if not read_element(&c, &type, &repetition, &children, &name, &size):
            index.decode(i)  # raises the error
            raise CorruptFileError("a schema element is corrupt", path=index.data.path)
        children_view[i] = children
        repetition_view[i] = repetition
        typed_view[i] = type >= 0
        names.starts[i], names.sizes[i] = name, size
        if odd < 0 and not is_ascii(name, size):
            try:
                PyUnicode_DecodeUTF8(<const char *> name, size, NULL)
            except UnicodeDecodeError:
                odd = i
    return names, odd, all_children, all_repetition, all_typed


def levels(const int32_t[::1] children, const int8_t[::1] repetition, const uint8_t[::1] typed, Py_ssize_t max_depth):
    cdef Py_ssize_t count = children.shape[0], at = 0, depth = 0, cap
    cdef int32_t leaf = 0, definition = 0, repeated = 0, kind
    if repetition.shape[0] != count or typed.shape[0] != count or count >= 1 << 31:
        raise ValueError("the arrays must have the same length")
    cap = min(max_depth, count) + 2
    # A row per element: definition level, repetition level, first leaf, end of leaves, end of elements.
    table = np.zeros((5, count), np.int32)
    leaves = np.empty(count, np.int32)
    stack = np.empty((2, cap), np.int32)  # open groups: their element, and the number of remaining children
    cdef int32_t[:, ::1] out = table
    cdef int32_t[::1] leaf_elements = leaves
    cdef int32_t[:, ::1] opened = stack
    cdef str fault = ""
    while True:
        if at >= count:
            fault = "missing"
            break
        if depth >= max_depth:
            fault = "deep"
            break
        definition = repeated = 0
        if depth:
            kind = repetition[at]
            if kind == -1 and depth == 1:
                kind = 0  # some writers omit the type of required root columns
            if kind < 0:
                fault = "repetition"
                break
            definition = out[0, opened[0, depth - 1]] + (kind != 0)
            repeated = out[1, opened[0, depth - 1]] + (kind == 2)
        out[0, at] = definition
        out[1, at] = repeated
        out[2, at] = leaf
        if depth and typed[at] and children[at] == 0:
            leaf_elements[leaf] = <int32_t> at
            leaf += 1
            out[3, at] = leaf
            out[4, at] = <int32_t> at + 1
            at += 1
        elif children[at] < 0 or (depth and children[at] == 0):
            fault = "empty"
            break
        else:
            opened[0, depth] = <int32_t> at
            opened[1, depth] = children[at]
            depth += 1
            at += 1
        # Close the groups that are complete.
        while depth and opened[1, depth - 1] == 0:
            depth -= 1
            out[3, opened[0, depth]] = leaf
            out[4, opened[0, depth]] = <int32_t> at
        if not depth:
            break
        opened[1, depth - 1] -= 1
    if not fault and at != count:
        fault = "left"
    return fault, at, (*(memoryview(row) for row in table), memoryview(leaves[:leaf]))
