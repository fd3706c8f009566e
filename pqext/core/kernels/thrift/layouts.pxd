# Skipping structures of a list that have the same layout as one that was skipped before.
#
# The column chunks of a wide file differ in their numbers and bounds, but seldom in their fields and in how many
# bytes each field takes. A layout is a structure's bytes with a mask of the bytes that decide where its parts begin:
# headers, lengths, counts, and the bit in each byte of an integer that says whether it goes on. Bytes that agree with
# a layout have their parts at the same positions, so they are skipped without being parsed.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.thrift.compact cimport (
    BINARY, BYTE, DOUBLE, FALSE, I16, I64, LIST, SET, STOP, STRUCT, UUID, Cursor, skip_struct,
)

cdef enum:
    KEPT = 16
    BLOCK = 16
    LARGEST = 512  # maximum bytes of a structure whose layout is cached
    PATIENCE = 64  # the search stops after this many structures with layouts that are not cached

cdef struct Layout:
    Py_ssize_t size
    int64_t elements  # as the cursor counts them
    int next          # layout that last followed this layout
    uint8_t bytes[LARGEST + BLOCK]
    uint8_t mask[LARGEST + BLOCK]

cdef struct Layouts:
    Layout kept[KEPT]
    int count
    int oldest
    int last
    int missed


cdef inline void layouts_start(Layouts *layouts) noexcept nogil:
    layouts.count = layouts.oldest = layouts.last = layouts.missed = 0
    layouts.kept[0].next = 0


cdef inline const uint8_t *skip_alike(Cursor *c, const uint8_t *p, int depth, Layouts *layouts) noexcept nogil:
    """Skip a structure like `skip_struct`, using the layouts of similar structures at the same depth."""
    cdef const uint8_t *end
    cdef Layout *layout
    cdef int64_t elements = c.elements
    cdef int i, at
    if layouts.missed > PATIENCE:
        return skip_struct(c, p, depth)
    at = layouts.kept[layouts.last].next
    for i in range(layouts.count):
        layout = &layouts.kept[at]
        if layout.elements <= elements and has_layout(layout, p, c.end):
            c.elements -= layout.elements
            layouts.kept[layouts.last].next = at
            layouts.last = at
            layouts.missed -= layouts.missed > -PATIENCE
            return p + layout.size
        at = at + 1 if at + 1 < layouts.count else 0
    end = skip_struct(c, p, depth)
    if end != NULL:
        layouts.missed += 1
        if end - p <= LARGEST:
            keep_layout(layouts, p, end - p, elements - c.elements)
    return end


cdef inline bint has_layout(const Layout *layout, const uint8_t *p, const uint8_t *end) noexcept nogil:
    """Return whether the structure at `p` has this layout. Complete blocks are compared; later bytes are ignored."""
    cdef uint64_t known[2]
    cdef uint64_t mask[2]
    cdef uint64_t found[2]
    cdef Py_ssize_t at = 0
    if end - p < layout.size + BLOCK:
        return False
    while at < layout.size:
        memcpy(known, layout.bytes + at, BLOCK)
        memcpy(mask, layout.mask + at, BLOCK)
        memcpy(found, p + at, BLOCK)
        if ((known[0] ^ found[0]) & mask[0]) | ((known[1] ^ found[1]) & mask[1]):
            return False
        at += BLOCK
    return True


cdef inline void keep_layout(Layouts *layouts, const uint8_t *p, Py_ssize_t size, int64_t elements) noexcept nogil:
    """Cache the layout of a skipped structure; it replaces the oldest layout."""
    cdef int at = layouts.count if layouts.count < KEPT else layouts.oldest
    cdef Layout *layout = &layouts.kept[at]
    memcpy(layout.bytes, p, size)
    memset(layout.bytes + size, 0, BLOCK)
    memset(layout.mask, 0, sizeof(layout.mask))
    layout.size, layout.elements, layout.next = size, elements, at
    if mark(layout, 0, STRUCT) != size:
        memset(layout.mask, 0xFF, size)  # only structures with equal bytes are known to have this size
    if layouts.count < KEPT:
        layouts.count += 1
    else:
        layouts.oldest = (at + 1) % KEPT
    layouts.kept[layouts.last].next = at
    layouts.last = at


cdef inline Py_ssize_t mark_integer(Layout *layout, Py_ssize_t at, uint8_t bits, uint64_t *value) noexcept nogil:
    """Mark `bits` in each byte of an integer of at most ten bytes. Return its end, or -1 if it does not fit."""
    cdef int i
    value[0] = 0
    for i in range(10):
        if at >= layout.size:
            return -1
        layout.mask[at] = bits if i < 9 else 0xFF
        value[0] |= (<uint64_t> (layout.bytes[at] & 0x7F)) << (7 * i)
        at += 1
        if layout.bytes[at - 1] < 0x80:
            return at
    return -1


cdef inline Py_ssize_t mark(Layout *layout, Py_ssize_t at, int wire) noexcept nogil:
    """Mark the bytes that determine the positions of the parts of a value. Return its end, or -1 if it is unusual."""
    cdef uint64_t count = 0, i
    cdef int element
    if at < 0 or at >= layout.size:
        return -1
    if I16 <= wire <= I64:
        return mark_integer(layout, at, 0x80, &count)
    if wire == BYTE or wire == DOUBLE or wire == UUID:
        at += 1 if wire == BYTE else 8 if wire == DOUBLE else 16
    elif wire == BINARY:
        at = mark_integer(layout, at, 0xFF, &count)
        if at < 0 or count > <uint64_t> (layout.size - at):
            return -1
        at += <Py_ssize_t> count
    elif wire == LIST or wire == SET:
        layout.mask[at] = 0xFF
        element, count = layout.bytes[at] & 15, layout.bytes[at] >> 4
        at += 1
        if count == 15:
            at = mark_integer(layout, at, 0xFF, &count)
        if at < 0 or count > <uint64_t> (layout.size - at):
            return -1
        if element <= BYTE:
            at += <Py_ssize_t> count
        else:
            for i in range(count):
                at = mark(layout, at, element)
                if at < 0:
                    return -1
    elif wire == STRUCT:
        while at < layout.size:
            layout.mask[at] = 0xFF
            wire = layout.bytes[at]
            at += 1
            if wire == STOP:
                return at
            if wire < 16:
                at = mark_integer(layout, at, 0xFF, &count)
            if wire & 15 > FALSE:
                at = mark(layout, at, wire & 15)
            if at < 0:
                return -1
        return -1
    else:
        return -1
    return at if at <= layout.size else -1
