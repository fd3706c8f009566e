# Write page headers.
from libc.stdint cimport int32_t, int64_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.thrift.compact cimport FALSE, I32, STRUCT, TRUE
from pqext.core.kernels.thrift.compact_write cimport put_byte, put_header, put_int

cdef enum:
    PLAIN = 0
    RLE = 3
    RLE_DICTIONARY = 8
    DATA_PAGE = 0
    DICTIONARY_PAGE = 2
    DATA_PAGE_V2 = 3


cdef struct Header:
    int kind
    int64_t size            # before compression
    int64_t stored
    int64_t crc
    bint has_crc
    int64_t entries
    int64_t nulls
    int64_t rows
    int encoding
    int64_t definition      # size of the levels in bytes
    int64_t repetition
    bint compressed


cdef inline int put_page_header(Bytes *b, const Header *h) noexcept nogil:
    """Append a PageHeader with the structure of its page type."""
    cdef int last = 0, inner = 0, status
    status = put_header(b, I32, 1, &last) | put_int(b, h.kind)
    status |= put_header(b, I32, 2, &last) | put_int(b, h.size)
    status |= put_header(b, I32, 3, &last) | put_int(b, h.stored)
    if h.has_crc:
        status |= put_header(b, I32, 4, &last) | put_int(b, <int32_t> h.crc)
    status |= put_header(b, STRUCT, 5 if h.kind == DATA_PAGE else 7 if h.kind == DICTIONARY_PAGE else 8, &last)
    status |= put_header(b, I32, 1, &inner) | put_int(b, h.entries)
    if h.kind == DATA_PAGE_V2:
        status |= put_header(b, I32, 2, &inner) | put_int(b, h.nulls)
        status |= put_header(b, I32, 3, &inner) | put_int(b, h.rows)
        status |= put_header(b, I32, 4, &inner) | put_int(b, h.encoding)
        status |= put_header(b, I32, 5, &inner) | put_int(b, h.definition)
        status |= put_header(b, I32, 6, &inner) | put_int(b, h.repetition)
        status |= put_header(b, TRUE if h.compressed else FALSE, 7, &inner)
    else:
        status |= put_header(b, I32, 2, &inner) | put_int(b, h.encoding)
        if h.kind == DATA_PAGE:
            status |= put_header(b, I32, 3, &inner) | put_int(b, RLE)
            status |= put_header(b, I32, 4, &inner) | put_int(b, RLE)
    return status | put_byte(b, 0) | put_byte(b, 0)
