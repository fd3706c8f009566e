# cython: language_level=3
# Nodes of the tape as values of the Variant encoding.
from libc.stdint cimport uint8_t

from pqext.variant.kernels.json_document cimport Node, Parser


cdef uint8_t *write_decimal16(const Node *node, uint8_t *p) noexcept nogil
cdef int emit(Parser *ps, const Node *node, uint8_t *p) noexcept nogil
