# Fast acceptance of valid values, in one scan of their bytes.
#
# Accepted values satisfy every rule that `validate` checks. Values that are not accepted may still be valid: `validate`
# checks them rule by rule, and reports which rule is violated.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pqext.variant.kernels.binary cimport (
    BASIC_OBJECT, BASIC_SHORT_STRING, TYPE_BINARY, TYPE_DECIMAL16, TYPE_DECIMAL4, TYPE_DECIMAL8, TYPE_STRING,
    TYPE_TIME_NTZ, Container, Metadata, array_open, bytes_compare, metadata_name, object_open, primitive_size,
    read_uint, read_uint64,
)
from pqext.variant.kernels.scan cimport is_ascii, load64, utf8_fault


cdef struct Frame:
    # Container whose children are being inspected.
    Container container
    const uint8_t *p         # the next child in byte order; `i` children precede it
    uint32_t i
    bint in_order            # the offsets of these are those at which they lie
    size_t base              # index of its first start


cdef struct Acceptance:
    # Memory shared between values. Must be zeroed before the first.
    Frame *frames
    size_t frames_capacity
    uint32_t *starts         # of the children of all open containers, as they lie
    size_t starts_capacity
    uint64_t *marks          # a bit for each byte of a container's values, set while starts and offsets are compared
    size_t marks_capacity


cdef extern from * nogil:
    """
    /* By a value's first byte: the bytes of a primitive that is valid whatever these are, or 0. */
    #define PQEXT_PLAIN(type) [(type) << 2]
    static const unsigned char pqext_plain_sizes[256] = {
        PQEXT_PLAIN(0) = 1, PQEXT_PLAIN(1) = 1, PQEXT_PLAIN(2) = 1, PQEXT_PLAIN(3) = 2, PQEXT_PLAIN(4) = 3,
        PQEXT_PLAIN(5) = 5, PQEXT_PLAIN(6) = 9, PQEXT_PLAIN(7) = 9, PQEXT_PLAIN(11) = 5, PQEXT_PLAIN(12) = 9,
        PQEXT_PLAIN(13) = 9, PQEXT_PLAIN(14) = 5, PQEXT_PLAIN(18) = 9, PQEXT_PLAIN(19) = 9, PQEXT_PLAIN(20) = 17,
    };

    /* Whether the n bytes at p, where `readable` bytes may be read, are all below 0x80. */
    static inline int pqext_short_ascii(const uint8_t *p, size_t n, size_t readable) {
    #ifdef PQEXT_SSE2
        if (n <= 16 && readable >= 16)
            return !(_mm_movemask_epi8(_mm_loadu_si128((const __m128i *) p)) & ((1 << n) - 1));
        if (n < 64 && readable >= 64) {
            const __m128i *v = (const __m128i *) p;
            uint64_t high = (uint32_t) _mm_movemask_epi8(_mm_loadu_si128(v));
            high |= (uint64_t) (uint32_t) _mm_movemask_epi8(_mm_loadu_si128(v + 1)) << 16;
            high |= (uint64_t) (uint32_t) _mm_movemask_epi8(_mm_loadu_si128(v + 2)) << 32;
            high |= (uint64_t) (uint32_t) _mm_movemask_epi8(_mm_loadu_si128(v + 3)) << 48;
            return !(high & ((1ULL << n) - 1));
        }
    #endif
        (void) readable;
        return pqext_is_ascii(p, n);
    }
    """
    const uint8_t *PLAIN_SIZES "pqext_plain_sizes"
    bint short_ascii "pqext_short_ascii"(const uint8_t *p, size_t n, size_t readable)


cdef void acceptance_free(Acceptance *a) noexcept nogil:
    free(a.frames)
    free(a.starts)
    free(a.marks)


cdef bint _make_room(Acceptance *a, size_t depth, size_t starts, size_t bits) noexcept nogil:
    """Make room for `depth` frames, `starts` starts, and `bits` marks, which are zero.

    Return False if memory is exhausted.
    """
    cdef void *moved
    cdef size_t words = (bits >> 6) + 1
    if depth > a.frames_capacity:
        moved = realloc(a.frames, (depth + 15) * 2 * sizeof(Frame))
        if moved == NULL:
            return False
        a.frames = <Frame *> moved
        a.frames_capacity = (depth + 15) * 2
    if starts > a.starts_capacity:
        moved = realloc(a.starts, starts * 2 * sizeof(uint32_t))
        if moved == NULL:
            return False
        a.starts = <uint32_t *> moved
        a.starts_capacity = starts * 2
    if words > a.marks_capacity:
        moved = realloc(a.marks, words * 2 * sizeof(uint64_t))
        if moved == NULL:
            return False
        a.marks = <uint64_t *> moved
        memset(a.marks + a.marks_capacity, 0, (words * 2 - a.marks_capacity) * sizeof(uint64_t))
        a.marks_capacity = words * 2
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
    # Certainly at most 38 digits; the few other values are checked exactly elsewhere.
    return high < 0x4B3B4CA85A86C47AULL or (high >> 63 and ~high < 0x4B3B4CA85A86C47AULL)


cdef inline size_t _accept_checked(const uint8_t *p, size_t limit) noexcept nogil:
    """Return the size of a valid decimal, time, binary or long string at `p`, at most `limit` (not 0); 0 for other
    values.
    """
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
    """Return the size of a valid primitive or short string at `p`, at most `limit` (not 0); 0 if it is not accepted."""
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
    """Return whether ids are in the dictionary, which has been checked, and names ascend.

    Up to eight bytes after the ids may be read.
    """
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


cdef bint _accept_offsets(Acceptance *a, const Container *c, const uint32_t *starts) noexcept nogil:
    """Return whether each offset is a different one of the starts. Up to eight bytes after the offsets may be read."""
    cdef const uint8_t *p = c.offsets
    cdef uint64_t mask = 0xFFFFFFFFU >> (32 - 8 * c.offset_size)
    cdef uint64_t offset, bit
    cdef uint64_t *marks = a.marks
    cdef size_t values_size = c.values_size
    cdef uint32_t i, count = c.count, unmatched = c.count
    cdef int offset_size = c.offset_size
    for i in range(count):
        marks[starts[i] >> 6] |= 1ULL << (starts[i] & 63)
    for i in range(count):
        offset = load64(p) & mask
        p += offset_size
        bit = 1ULL << (offset & 63)
        if offset < values_size and marks[offset >> 6] & bit:
            marks[offset >> 6] ^= bit
            unmatched -= 1
    if unmatched:
        for i in range(count):
            marks[starts[i] >> 6] = 0
    return unmatched == 0


cdef inline bint _open(Acceptance *a, size_t depth, const uint8_t *p, size_t n) noexcept nogil:
    """Open the container at `p` as frame `depth`, which must exist. Return whether it is valid."""
    cdef Container *c = &a.frames[depth].container
    return (object_open(p, n, c) if p[0] & 3 == BASIC_OBJECT else array_open(p, n, c)) == 0


cdef bint accept_value(
    Acceptance *a, const Metadata *metadata, const uint8_t *p, size_t n, uint32_t max_depth, const uint8_t *readable
) noexcept nogil:
    """Return whether the value that fills the n bytes at `p` is valid, given valid `metadata`.

    The buffer ends at `readable`.
    """
    cdef Frame *frame
    cdef const Container *c
    cdef const uint8_t *end
    cdef const uint8_t *values
    cdef const uint8_t *offsets
    cdef uint32_t *starts
    cdef uint64_t mask
    cdef uint32_t i, count
    cdef size_t depth = 0, size, base = 0
    cdef int offset_size
    cdef bint in_order, inside
    if n < 1:
        return False
    if p[0] & 3 <= BASIC_SHORT_STRING:
        return _accept_leaf(p, n, readable) == n
    if max_depth < 1 or not _make_room(a, 1, 0, n) or not _open(a, 0, p, n) or a.frames[0].container.total_size != n:
        return False
    while True:
        # A newly opened container
        c = &a.frames[depth].container
        if readable - c.values < 8 or (c.ids != NULL and not _accept_fields(c, metadata)):
            return False
        if not _make_room(a, depth + 2, base + c.count, 0):
            return False
        frame = &a.frames[depth]
        c = &frame.container
        frame.base = base
        values = c.values
        p = values
        i = 0
        in_order = True
        offsets = c.offsets
        inside = False
        while not inside:
            # The children in byte order, from child i
            end = values + c.values_size
            count = c.count
            offset_size = c.offset_size
            mask = 0xFFFFFFFFU >> (32 - 8 * offset_size)
            starts = a.starts + frame.base
            while i < count:
                if p >= end:
                    return False
                starts[i] = <uint32_t> (p - values)
                in_order &= (load64(offsets) & mask) == starts[i]
                offsets += offset_size
                i += 1
                size = PLAIN_SIZES[p[0]]
                if size == 0:
                    if p[0] & 3 > BASIC_SHORT_STRING:
                        inside = True
                        break
                    size = _accept_leaf(p, <size_t> (end - p), readable)
                    if size == 0:
                        return False
                p += size
            if inside:
                break
            if p != end or not (in_order or (c.ids != NULL and _accept_offsets(a, c, starts))):
                return False
            if depth == 0:
                return True
            depth -= 1
            frame = &a.frames[depth]
            c = &frame.container
            values = c.values
            p = frame.p
            i = frame.i
            in_order = frame.in_order
            offsets = c.offsets + <size_t> i * <size_t> c.offset_size
        depth += 1
        if depth >= max_depth or not _open(a, depth, p, <size_t> (end - p)):
            return False
        frame.p = p + a.frames[depth].container.total_size
        frame.i = i
        frame.in_order = in_order
        base = frame.base + count
