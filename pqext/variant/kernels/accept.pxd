# cython: language_level=3, cdivision=True
# Is a value valid beyond doubt? Quick for values as writers make them; what is accepted keeps every rule that
# `validate` checks. What is not accepted may still be valid: `validate` looks at it rule by rule, and says which is broken.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pqext.variant.kernels.binary cimport (
    BASIC_OBJECT,
    BASIC_SHORT_STRING,
    TYPE_BINARY,
    TYPE_DECIMAL16,
    TYPE_DECIMAL4,
    TYPE_DECIMAL8,
    TYPE_STRING,
    TYPE_TIME_NTZ,
    Container,
    Metadata,
    array_open,
    bytes_compare,
    metadata_name,
    object_open,
    primitive_size,
    read_uint,
    read_uint64,
)
from pqext.variant.kernels.scan cimport is_ascii, load64, utf8_fault


cdef extern from * nogil:
    """
    /* By a value's first byte: the bytes of a primitive that is valid whatever these are, or 0. */
    #define PQEXT_PLAIN(type) [(type) << 2]
    static const unsigned char pqext_plain_sizes[256] = {
        PQEXT_PLAIN(0) = 1, PQEXT_PLAIN(1) = 1, PQEXT_PLAIN(2) = 1, PQEXT_PLAIN(3) = 2, PQEXT_PLAIN(4) = 3,
        PQEXT_PLAIN(5) = 5, PQEXT_PLAIN(6) = 9, PQEXT_PLAIN(7) = 9, PQEXT_PLAIN(11) = 5, PQEXT_PLAIN(12) = 9,
        PQEXT_PLAIN(13) = 9, PQEXT_PLAIN(14) = 5, PQEXT_PLAIN(18) = 9, PQEXT_PLAIN(19) = 9, PQEXT_PLAIN(20) = 17,
    };

    /* Are the n bytes at p, of which `readable` bytes may be read, all below 0x80? */
    static inline int pqext_short_ascii(const uint8_t *p, size_t n, size_t readable) {
    #ifdef PQEXT_SSE2
        if (n <= 16 && readable >= 16)
            return !(_mm_movemask_epi8(_mm_loadu_si128((const __m128i *) p)) & ((1 << n) - 1));
    #endif
        (void) readable;
        return pqext_is_ascii(p, n);
    }
    """
    const uint8_t *PLAIN_SIZES "pqext_plain_sizes"
    bint short_ascii "pqext_short_ascii"(const uint8_t *p, size_t n, size_t readable)


cdef struct OpenContainer:
    Container container
    uint32_t depth


cdef struct Acceptance:
    OpenContainer *stack
    size_t count
    size_t capacity
    uint64_t *starts         # a bit for each byte of a container's values: does a child start there?
    size_t starts_capacity


cdef inline void acceptance_free(Acceptance *a) noexcept nogil:
    free(a.stack)
    free(a.starts)


cdef inline bint _push(Acceptance *a, const Container *container, uint32_t depth) noexcept nogil:
    cdef OpenContainer *moved
    if a.count == a.capacity:
        moved = <OpenContainer *> realloc(a.stack, (a.capacity * 2 + 64) * sizeof(OpenContainer))
        if moved == NULL:
            return False
        a.stack = moved
        a.capacity = a.capacity * 2 + 64
    a.stack[a.count].container = container[0]
    a.stack[a.count].depth = depth
    a.count += 1
    return True


cdef inline bint _clear_starts(Acceptance *a, size_t words) noexcept nogil:
    cdef uint64_t *moved
    cdef size_t i
    if words > a.starts_capacity:
        moved = <uint64_t *> realloc(a.starts, words * 2 * sizeof(uint64_t))
        if moved == NULL:
            return False
        a.starts = moved
        a.starts_capacity = words * 2
    if words > 16:
        memset(a.starts, 0, words * sizeof(uint64_t))
    else:
        for i in range(words):
            a.starts[i] = 0
    return True


cdef inline bint _accept_decimal(const uint8_t *p, int type_id) noexcept nogil:
    cdef int64_t number
    cdef uint64_t high, low
    if p[1] > 38:
        return False
    if type_id == TYPE_DECIMAL4:
        number = <int32_t> read_uint(p + 2, 4)
        return -999999999 <= number <= 999999999
    if type_id == TYPE_DECIMAL8:
        number = <int64_t> read_uint64(p + 2)
        return -999999999999999999LL <= number <= 999999999999999999LL
    low = read_uint64(p + 2)
    high = read_uint64(p + 10)
    # Surely within 38 digits; the rest, of which there is little, is measured exactly elsewhere.
    return high < 0x4B3B4CA85A86C47AULL or (high >> 63 and ~high < 0x4B3B4CA85A86C47AULL)


cdef inline size_t _accept_checked(const uint8_t *p, size_t limit) noexcept nogil:
    """Bytes of a decimal, a time, a binary or a long string at p, of at most `limit` (not 0); 0 for all else."""
    cdef int type_id = p[0] >> 2
    cdef size_t size = <size_t> primitive_size(type_id)
    if size > limit:
        return 0
    if TYPE_DECIMAL4 <= type_id <= TYPE_DECIMAL16:
        return size if _accept_decimal(p, type_id) else 0
    if type_id == TYPE_STRING or type_id == TYPE_BINARY:
        size += read_uint(p + 1, 4)
        if size > limit:
            return 0
        if type_id == TYPE_STRING and not is_ascii(p + 5, size - 5) and utf8_fault(p + 5, size - 5) >= 0:
            return 0
        return size
    return size if type_id == TYPE_TIME_NTZ and read_uint64(p + 1) < 86400000000ULL else 0


cdef inline size_t _accept_leaf(const uint8_t *p, size_t limit, const uint8_t *readable) noexcept nogil:
    """Bytes of the valid primitive or short string at p, of at most `limit` (not 0); 0 where it is none beyond doubt."""
    cdef size_t size
    if p[0] & 3 == BASIC_SHORT_STRING:
        size = 1 + <size_t> (p[0] >> 2)
        if size > limit:
            return 0
        if short_ascii(p + 1, size - 1, <size_t> (readable - p - 1)) or utf8_fault(p + 1, size - 1) < 0:
            return size
        return 0
    size = PLAIN_SIZES[p[0]]
    if size:
        return size if size <= limit else 0
    return _accept_checked(p, limit)


cdef inline bint _accept_fields(const Container *c, const Metadata *metadata) noexcept nogil:
    """Ids within the dictionary, which has been checked, and names ascending. Eight bytes may be read after the ids."""
    cdef const uint8_t *p = c.ids
    cdef const uint8_t *name = NULL
    cdef const uint8_t *before = NULL
    cdef size_t length = 0, before_length = 0
    cdef uint64_t mask = 0xFFFFFFFFU >> (32 - 8 * c.id_size)
    cdef uint64_t id, next
    cdef uint32_t i
    cdef bint ascending = True
    if c.count == 0:
        return True
    if metadata.sorted:
        id = load64(p) & mask
        for i in range(1, c.count):
            p += c.id_size
            next = load64(p) & mask
            ascending &= id < next
            id = next
        return ascending and id < metadata.count
    for i in range(c.count):
        if metadata_name(metadata, <uint32_t> (load64(p) & mask), &name, &length) != 0:
            return False
        if i and bytes_compare(before, before_length, name, length) >= 0:
            return False
        before = name
        before_length = length
        p += c.id_size
    return True


cdef inline bint _accept_offsets(Acceptance *a, const Container *c) noexcept nogil:
    """Does each offset name one of the starts, and each another one? Eight bytes may be read after the offsets."""
    cdef const uint8_t *p = c.offsets
    cdef uint64_t mask = 0xFFFFFFFFU >> (32 - 8 * c.offset_size)
    cdef uint64_t offset, bit
    cdef uint32_t i
    for i in range(c.count):
        offset = load64(p) & mask
        if offset >= c.values_size:
            return False
        bit = 1ULL << (offset & 63)
        if a.starts[offset >> 6] & bit == 0:
            return False
        a.starts[offset >> 6] ^= bit
        p += c.offset_size
    return True


cdef inline bint _accept_children(
    Acceptance *a, const Container *c, uint32_t depth, const uint8_t *readable
) noexcept nogil:
    """The children of a container whose fields were accepted: as they lie, then their offsets."""
    cdef const uint8_t *p = c.values
    cdef const uint8_t *end = c.values + c.values_size
    cdef const uint8_t *offsets = c.offsets
    cdef uint64_t mask = 0xFFFFFFFFU >> (32 - 8 * c.offset_size)
    cdef Container inner
    cdef uint32_t i
    cdef size_t at, size
    cdef bint in_order = True
    # Starts are marked only where children are many for their bytes, so that clearing costs no more than reading.
    cdef bint marks = c.ids != NULL and c.values_size <= 256 * <size_t> c.count + 4096
    if marks and not _clear_starts(a, (c.values_size >> 6) + 1):
        return False
    for i in range(c.count):
        if p >= end:
            return False
        at = <size_t> (p - c.values)
        in_order &= (load64(offsets) & mask) == at
        offsets += c.offset_size
        if marks:
            a.starts[at >> 6] |= 1ULL << (at & 63)
        elif not in_order:
            return False
        if p[0] & 3 <= BASIC_SHORT_STRING:
            size = _accept_leaf(p, <size_t> (end - p), readable)
            if size == 0:
                return False
        else:
            if p[0] & 3 == BASIC_OBJECT:
                if object_open(p, <size_t> (end - p), &inner) != 0:
                    return False
            elif array_open(p, <size_t> (end - p), &inner) != 0:
                return False
            size = inner.total_size
            if not _push(a, &inner, depth + 1):
                return False
        p += size
    return p == end and (in_order or _accept_offsets(a, c))


cdef inline bint accept_value(
    Acceptance *a, const Metadata *metadata, const uint8_t *p, size_t n, uint32_t max_depth, const uint8_t *readable
) noexcept nogil:
    """Is the value that must fill the n bytes at p valid, beside a `metadata` that is? Its buffer ends at `readable`."""
    cdef OpenContainer top
    cdef int status
    if n < 1:
        return False
    if p[0] & 3 <= BASIC_SHORT_STRING:
        return _accept_leaf(p, n, readable) == n
    a.count = 0
    status = object_open(p, n, &top.container) if p[0] & 3 == BASIC_OBJECT else array_open(p, n, &top.container)
    if status != 0 or top.container.total_size != n or not _push(a, &top.container, 1):
        return False
    while a.count:
        a.count -= 1
        top = a.stack[a.count]
        if top.depth > max_depth or readable - top.container.values < 8:
            return False
        if top.container.ids != NULL and not _accept_fields(&top.container, metadata):
            return False
        if not _accept_children(a, &top.container, top.depth, readable):
            return False
    return True
