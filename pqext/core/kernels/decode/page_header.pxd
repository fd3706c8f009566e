# One page header of an ordinary page, read into an entry of a page table: known fields once each and of their types.
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from pqext.core.kernels.thrift.compact cimport (
    DONE, FALSE, I32, STOP, STRUCT, TRUE, Cursor, read_header, read_varint, skip_value, unzigzag,
)

cdef enum:
    UNUSUAL = 2

    # Types of pages.
    DATA = 0
    DICTIONARY = 2
    DATA_V2 = 3


cdef struct PageEntry:
    const uint8_t *body
    int64_t offset        # of the header in the file
    int64_t rows          # according to the offset index; -1 if it was not used
    int32_t stored        # bytes of the body
    int32_t unpacked      # bytes of the uncompressed body according to the header
    int32_t count         # entries of a data page, values of a dictionary page
    int32_t encoding
    int32_t definition    # version 1: encoding of the levels; version 2: their size in bytes
    int32_t repetition
    int32_t owner         # index of its buffer in the table
    uint32_t crc
    uint8_t kind
    bint has_crc
    bint compressed


cdef inline int read_number(Cursor *c, int wire, int32_t *out) noexcept nogil:
    cdef uint64_t raw = 0
    cdef int64_t value
    cdef int status
    if wire != I32:
        return UNUSUAL
    status = read_varint(c, &raw)
    if status != DONE:
        return status
    value = unzigzag(raw)
    if value < INT32_MIN or value > INT32_MAX:
        return UNUSUAL
    out[0] = <int32_t> value
    return DONE


cdef inline int pass_over(Cursor *c, int wire, int depth) noexcept nogil:
    cdef const uint8_t *end
    if wire <= FALSE:
        return DONE
    end = skip_value(c, c.p, wire, depth)
    if end == NULL:
        return c.status
    c.p = end
    return DONE


cdef inline int read_detail(Cursor *c, int kind, PageEntry *page) noexcept nogil:
    """Parse the header structure of a page type into `page`. Return DONE, a fault or UNUSUAL.

    All required fields must be present, each at most once and with its own type.
    """
    cdef int wire = 0, id = 0, status
    cdef int32_t value = 0
    cdef uint32_t seen = 0, needed
    cdef int numbers = 4 if kind == DATA else 6 if kind == DATA_V2 else 2
    while True:
        status = read_header(c, &wire, &id)
        if status != DONE:
            return status
        if wire == STOP:
            break
        if 0 < id <= numbers:
            status = read_number(c, wire, &value)
            if status != DONE:
                return status
            if seen >> id & 1:
                return UNUSUAL
            seen |= <uint32_t> 1 << id
            if id == 1:
                page.count = value
            elif kind == DATA:
                if id == 2:
                    page.encoding = value
                elif id == 3:
                    page.definition = value
                else:
                    page.repetition = value
            elif kind == DICTIONARY:
                page.encoding = value
            elif id == 4:
                page.encoding = value
            elif id == 5:
                page.definition = value
            elif id == 6:
                page.repetition = value
            continue
        if kind == DATA_V2 and id == 7:
            if wire > FALSE or seen >> 7 & 1:
                return UNUSUAL
            seen |= <uint32_t> 1 << 7
            page.compressed = wire == TRUE
            continue
        # Statistics are not used; their fields are checked by their readers.
        status = pass_over(c, wire, 2)
        if status != DONE:
            return status
    needed = ((<uint32_t> 1 << (numbers + 1)) - 1) & ~<uint32_t> 1
    return DONE if seen & needed == needed else UNUSUAL


cdef inline int read_fields(Cursor *c, PageEntry *page) noexcept nogil:
    """Parse one page header into `page`. Return DONE, a fault or UNUSUAL."""
    cdef int wire = 0, id = 0, status
    cdef int32_t value = 0
    cdef uint32_t seen = 0
    cdef int kind = -1, detail = -1
    while True:
        status = read_header(c, &wire, &id)
        if status != DONE:
            return status
        if wire == STOP:
            break
        if 0 < id <= 8:
            if seen >> id & 1:
                return UNUSUAL
            seen |= <uint32_t> 1 << id
            if id <= 4:
                status = read_number(c, wire, &value)
                if status != DONE:
                    return status
                if id == 1:
                    kind = value
                elif id == 2:
                    page.unpacked = value
                elif id == 3:
                    page.stored = value
                else:
                    page.crc = <uint32_t> value
                    page.has_crc = True
                continue
            detail = DATA if id == 5 else DICTIONARY if id == 7 else DATA_V2 if id == 8 else -1
            # All writers store the type first, and then the structure of this type.
            if detail < 0 or detail != kind or wire != STRUCT:
                return UNUSUAL
            status = read_detail(c, kind, page)
        else:
            status = pass_over(c, wire, 1)
        if status != DONE:
            return status
    if detail < 0 or (seen & 14) != 14:
        return UNUSUAL
    page.kind = <uint8_t> kind
    return DONE
