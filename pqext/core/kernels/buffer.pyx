# cython: language_level=3
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport SIZE_MAX, uint8_t
from libc.stdlib cimport free, realloc


cdef int bytes_grow(Bytes *b, size_t extra) noexcept nogil:
    cdef size_t wanted, doubled
    cdef uint8_t *moved
    if extra > SIZE_MAX // 2 - b.size:
        return -1
    wanted = b.size + extra
    doubled = b.capacity * 2
    if wanted < doubled:
        wanted = doubled
    if wanted < 64:
        wanted = 64
    moved = <uint8_t *> realloc(b.data, wanted)
    if moved == NULL:
        return -1
    b.data = moved
    b.capacity = wanted
    return 0


cdef void bytes_free(Bytes *b) noexcept nogil:
    free(b.data)
    b.data = NULL
    b.size = 0
    b.capacity = 0


cdef class Memory:
    def __dealloc__(self):
        free(self.data)

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        # An empty export must still have an address.
        cdef uint8_t *address = self.data if self.data != NULL else <uint8_t *> &self.size
        PyBuffer_FillInfo(view, self, address, <Py_ssize_t> self.size, 1, flags)


cdef Memory take(Bytes *b):
    """Move the bytes into a `Memory` object; `b` is empty afterwards."""
    cdef Memory memory = Memory.__new__(Memory)
    memory.data = b.data
    memory.size = b.size
    b.data = NULL
    b.size = 0
    b.capacity = 0
    return memory
