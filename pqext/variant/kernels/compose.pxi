# Variants put together from parts, in the canonical encoding.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    BASIC_OBJECT, BASIC_PRIMITIVE, BASIC_SHORT_STRING, FAULT_CHILD_SIZE, FAULT_DECIMAL_PRECISION, FAULT_DECIMAL_SCALE,
    FAULT_DEPTH, FAULT_FIELD_DUPLICATE, FAULT_FIELD_ORDER, FAULT_MEMORY, FAULT_METADATA_UTF8, FAULT_STRING_UTF8,
    FAULT_VALUE_TRAILING, TYPE_DECIMAL16, TYPE_DECIMAL4, TYPE_DECIMAL8, TYPE_DOUBLE, TYPE_FLOAT, TYPE_TIMESTAMP,
    TYPE_TIMESTAMP_NANOS, TYPE_TIMESTAMP_NTZ, TYPE_TIMESTAMP_NTZ_NANOS, Container, array_open, bytes_compare,
    container_child, container_id, is_string, metadata_name, metadata_open, object_open, read_uint, read_uint64,
    string_open, uint_size, value_size, write_uint, write_uint64,
)
from pqext.variant.kernels.binary_write cimport (
    container_head_size, write_array_head, write_int, write_object_head, write_string_head,
)
from pqext.variant.kernels.exact cimport exact_open, has_precision, int128, is_exact_type
from pqext.variant.kernels.scan cimport utf8_fault

cdef uint8_t VARIANT_NULL = 0
cdef uint64_t MICROS_OF_NANOS = 1000


cdef void composer_free(Composer *c) noexcept nogil:
    bytes_free(&c.tape)
    bytes_free(&c.scratch)
    bytes_free(&c.open)
    bytes_free(&c.names)
    bytes_free(&c.name_text)
    bytes_free(&c.table)
    bytes_free(&c.used)
    bytes_free(&c.last_used)
    bytes_free(&c.sorting)
    bytes_free(&c.dictionary)


cdef void composer_next(Composer *c) noexcept nogil:
    """Begin a new row."""
    c.tape.size = 0
    c.scratch.size = 0
    c.open.size = 0
    c.next_name = NO_NAME


# --- Names ---------------------------------------------------------------------------------------

cdef inline uint64_t mix(uint64_t h) noexcept nogil:
    h ^= h >> 32
    h *= 0xD6E8FEB86659FD93ULL
    h ^= h >> 32
    h *= 0xD6E8FEB86659FD93ULL
    return h ^ (h >> 32)


cdef inline uint64_t hash_bytes(const uint8_t *p, size_t n, uint64_t seed) noexcept nogil:
    """Return a 64-bit hash for grouping. It is not resistant to chosen input."""
    cdef uint64_t h = mix(seed ^ (0x9E3779B97F4A7C15ULL * (<uint64_t> n + 1)))
    cdef uint64_t word
    while n >= 8:
        memcpy(&word, p, 8)
        h = (h ^ mix(word)) * 0x9E3779B97F4A7C15ULL
        h ^= h >> 29
        p += 8
        n -= 8
    if n:
        word = 0
        memcpy(&word, p, n)
        h = (h ^ mix(word)) * 0x9E3779B97F4A7C15ULL
    return mix(h)


cdef int grow_table(Composer *c) noexcept nogil:
    cdef size_t slots = c.table.size // 4, i, slot
    cdef size_t count = c.names.size // sizeof(Name)
    cdef const Name *names = <const Name *> c.names.data
    cdef uint32_t *table
    if count * 2 < slots:
        return 0
    slots = slots * 2 if slots else 64
    c.table.size = 0
    if bytes_reserve(&c.table, slots * 4) != 0:
        return FAULT_MEMORY
    c.table.size = slots * 4
    memset(c.table.data, 0, c.table.size)
    table = <uint32_t *> c.table.data
    for i in range(count):
        slot = names[i].hash & (slots - 1)
        while table[slot]:
            slot = (slot + 1) & (slots - 1)
        table[slot] = <uint32_t> (i + 1)
    return 0


cdef int64_t intern_name(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Return the number of a name, which is equal for equal names, or a fault."""
    cdef uint32_t hash = <uint32_t> hash_bytes(p, n, 0)
    cdef Name *names = <Name *> c.names.data
    cdef const uint32_t *table
    cdef size_t mask, slot
    cdef Name name
    cdef uint32_t found
    if grow_table(c) != 0:
        return FAULT_MEMORY
    table = <const uint32_t *> c.table.data
    mask = c.table.size // 4 - 1
    slot = hash & mask
    while table[slot]:
        found = table[slot] - 1
        if names[found].hash == hash and names[found].length == n and (
            n == 0 or memcmp(c.name_text.data + names[found].at, p, n) == 0
        ):
            return found
        slot = (slot + 1) & mask
    if c.names.size // sizeof(Name) >= 0x7FFFFFFF or n > 0x7FFFFFFF:
        return COMPOSE_TOO_LARGE
    memset(&name, 0, sizeof(Name))
    name.at = c.name_text.size
    name.length = <uint32_t> n
    name.hash = hash
    if bytes_append(&c.name_text, p, n) != 0 or bytes_append(&c.names, &name, sizeof(Name)) != 0:
        return FAULT_MEMORY
    found = <uint32_t> (c.names.size // sizeof(Name) - 1)
    (<uint32_t *> c.table.data)[slot] = found + 1
    return found


cdef int compare_names(const Composer *c, uint32_t a, uint32_t b) noexcept nogil:
    """Compare two names by their bytes. The result is 0 only if they are the same name."""
    cdef const Name *x = <const Name *> c.names.data + a
    cdef const Name *y = <const Name *> c.names.data + b
    if a == b:
        return 0
    return bytes_compare(c.name_text.data + x.at, x.length, c.name_text.data + y.at, y.length)


cdef int open_row_names(Names *names, const uint8_t *p, size_t n) noexcept nogil:
    """Set the metadata at `p` as that of the current input row. Return 0 or a fault."""
    cdef int status
    cdef size_t room
    if names.known and names.m.size == n and (names.m.data == p or memcmp(names.m.data, p, n) == 0):
        return 0
    names.known = False
    status = metadata_open(p, n, &names.m)
    if status != 0:
        return status
    room = <size_t> names.m.count * 4
    names.ids.size = 0
    if bytes_reserve(&names.ids, room + 1) != 0:
        return FAULT_MEMORY
    memset(names.ids.data, 0xFF, room)
    names.known = True
    return 0


cdef int64_t name_of(Composer *c, Names *names, uint32_t id) noexcept nogil:
    """Return the composer's number for a field id, or a fault."""
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef uint32_t *ids = <uint32_t *> names.ids.data
    cdef int64_t found
    cdef int status
    if id < names.m.count and ids[id] != NO_NAME:
        return ids[id]
    status = metadata_name(&names.m, id, &p, &n)
    if status != 0:
        return status
    if utf8_fault(p, n) >= 0:
        return FAULT_METADATA_UTF8
    found = intern_name(c, p, n)
    if found >= 0:
        ids[id] = <uint32_t> found
    return found


include "compose_pieces.pxi"


# --- Rows ----------------------------------------------------------------------------------------

cdef int choose_dictionary(Composer *c) noexcept nogil:
    """Build the dictionary of the row, the sorted names of its fields, or reuse the previous one if equal."""
    cdef const Piece *pieces = <const Piece *> c.tape.data
    cdef size_t count = c.tape.size // sizeof(Piece), i, used
    cdef Name *names = <Name *> c.names.data
    cdef Entry *entries
    cdef uint32_t *ids
    cdef uint32_t total = 0
    cdef uint64_t text = 0
    cdef int size
    cdef uint8_t head[8]
    c.row += 1
    c.used.size = 0
    for i in range(count):
        if pieces[i].name != NO_NAME and names[pieces[i].name].row != c.row:
            names[pieces[i].name].row = c.row
            if bytes_append(&c.used, &pieces[i].name, 4) != 0:
                return FAULT_MEMORY
    if c.known and c.used.size == c.last_used.size and (
        c.used.size == 0 or memcmp(c.used.data, c.last_used.data, c.used.size) == 0
    ):
        return 0
    c.known = False
    used = c.used.size // 4
    c.sorting.size = 0
    if bytes_reserve(&c.sorting, 2 * used * sizeof(Entry) + 1) != 0:
        return FAULT_MEMORY
    entries = <Entry *> c.sorting.data
    ids = <uint32_t *> c.used.data
    for i in range(used):
        entries[i].name = ids[i]
        entries[i].at = 0
        text += names[ids[i]].length
    if text > 0x7FFFFFFF:
        return COMPOSE_TOO_LARGE
    entries = merge_sort(c, entries, entries + used, used)
    size = uint_size(<uint32_t> max(text, <uint64_t> used))
    c.dictionary.size = 0
    head[0] = <uint8_t> (0x11 | (size - 1) << 6)
    write_uint(head + 1, <uint32_t> used, size)
    if bytes_append(&c.dictionary, head, 1 + size) != 0:
        return FAULT_MEMORY
    for i in range(used + 1):
        write_uint(head, total, size)
        if bytes_append(&c.dictionary, head, size) != 0:
            return FAULT_MEMORY
        if i < used:
            total += names[entries[i].name].length
    for i in range(used):
        names[entries[i].name].id = <uint32_t> i
        if bytes_append(
            &c.dictionary, c.name_text.data + names[entries[i].name].at, names[entries[i].name].length
        ) != 0:
            return FAULT_MEMORY
    c.last_used.size = 0
    if bytes_append(&c.last_used, c.used.data, c.used.size) != 0:
        return FAULT_MEMORY
    c.known = True
    return 0


cdef inline int id_bytes(const Composer *c) noexcept nogil:
    cdef size_t used = c.last_used.size // 4
    return uint_size(<uint32_t> (used - 1) if used else 0)


cdef int measure(Composer *c) noexcept nogil:
    """Determine the dictionary and all sizes of the row, whose pieces (at least one) are complete. Return 0 or a fault.
    """
    cdef Piece *pieces
    cdef size_t i
    cdef uint64_t size
    cdef int id_size, status = choose_dictionary(c)
    if status != 0:
        return status
    id_size = id_bytes(c)
    pieces = <Piece *> c.tape.data
    i = c.tape.size // sizeof(Piece)
    while i > 0:
        i -= 1
        if pieces[i].kind != PIECE_LEAF:
            size = pieces[i].sum
            if size > 0x7FFFFFFF:
                return COMPOSE_TOO_LARGE
            size += container_head_size(
                pieces[i].count, id_size if pieces[i].kind == PIECE_OBJECT else 0, uint_size(<uint32_t> size)
            )
            if size > 0x7FFFFFFF:
                return COMPOSE_TOO_LARGE
            pieces[i].size = <uint32_t> size
        if i:
            pieces[pieces[i].parent].sum += pieces[i].size
    return 0


cdef void emit(Composer *c, uint8_t *p) noexcept nogil:
    """Write the value of the row to `p`, which must have room."""
    cdef const Piece *pieces = <const Piece *> c.tape.data
    cdef const Name *names = <const Name *> c.names.data
    cdef size_t count = c.tape.size // sizeof(Piece), i
    cdef const Piece *child
    cdef const Piece *piece
    cdef uint8_t *offsets
    cdef uint32_t total, k
    cdef int id_size = id_bytes(c), offset_size
    for i in range(count):
        piece = pieces + i
        if piece.kind == PIECE_LEAF:
            memcpy(p, piece.p if piece.p != NULL else c.scratch.data + piece.at, piece.size)
            p += piece.size
            continue
        offset_size = uint_size(<uint32_t> piece.sum)
        if piece.kind == PIECE_OBJECT:
            p = write_object_head(p, piece.count, id_size, offset_size)
            offsets = p + <size_t> piece.count * <size_t> id_size
        else:
            offsets = write_array_head(p, piece.count, offset_size)
        child = piece + 1
        total = 0
        for k in range(piece.count):
            if piece.kind == PIECE_OBJECT:
                write_uint(p, names[child.name].id, id_size)
                p += id_size
            write_uint(offsets, total, offset_size)
            offsets += offset_size
            total += child.size
            child += child.span
        write_uint(offsets, total, offset_size)
        p = offsets + offset_size


cdef uint64_t hash_row(Composer *c, Bytes *room, int *status) noexcept nogil:
    """Return a hash of the value and names of the row."""
    cdef size_t size
    status[0] = measure(c)
    if status[0] != 0:
        return 0
    size = (<Piece *> c.tape.data).size
    room.size = 0
    if bytes_reserve(room, size) != 0:
        status[0] = FAULT_MEMORY
        return 0
    emit(c, room.data)
    return hash_bytes(room.data, size, hash_bytes(c.dictionary.data, c.dictionary.size, 0))


cdef int write_row(Composer *c, Written *w) noexcept nogil:
    """Append the row. Return 0, 1 if columns with 32-bit offsets are full, or a fault."""
    cdef int status = measure(c)
    cdef size_t size
    if status != 0:
        return status
    size = (<Piece *> c.tape.data).size
    if w.value.size + size > 0x7FFFFFFF or w.metadata.size + c.dictionary.size > 0x7FFFFFFF:
        return 1 if w.rows else COMPOSE_TOO_LARGE
    if bytes_reserve(&w.value, size) != 0:
        return FAULT_MEMORY
    emit(c, w.value.data + w.value.size)
    w.value.size += size
    if bytes_append(&w.metadata, c.dictionary.data, c.dictionary.size) != 0:
        return FAULT_MEMORY
    return write_ends(w, 1)


cdef int write_null(Written *w) noexcept nogil:
    w.nulls += 1
    return write_ends(w, 0)


cdef int write_ends(Written *w, int valid) noexcept nogil:
    cdef int32_t metadata_end = <int32_t> w.metadata.size, value_end = <int32_t> w.value.size
    cdef int32_t zero = 0
    cdef uint8_t empty = 0
    if w.rows == 0 and (bytes_append(&w.metadata_offsets, &zero, 4) != 0 or bytes_append(&w.value_offsets, &zero, 4) != 0):
        return FAULT_MEMORY
    if w.rows & 7 == 0 and bytes_append(&w.validity, &empty, 1) != 0:
        return FAULT_MEMORY
    w.validity.data[w.rows >> 3] |= <uint8_t> (valid << (w.rows & 7))
    w.rows += 1
    if bytes_append(&w.metadata_offsets, &metadata_end, 4) != 0 or bytes_append(&w.value_offsets, &value_end, 4) != 0:
        return FAULT_MEMORY
    return 0


cdef void written_free(Written *w) noexcept nogil:
    bytes_free(&w.validity)
    bytes_free(&w.metadata_offsets)
    bytes_free(&w.metadata)
    bytes_free(&w.value_offsets)
    bytes_free(&w.value)


cdef tuple written_take(Written *w):
    """Return (rows, nulls, validity, metadata offsets, metadata, value offsets, value)."""
    cdef int32_t zero = 0
    if w.rows == 0 and (bytes_append(&w.metadata_offsets, &zero, 4) != 0 or bytes_append(&w.value_offsets, &zero, 4) != 0):
        raise MemoryError
    return (
        w.rows, w.nulls, take(&w.validity), take(&w.metadata_offsets), take(&w.metadata), take(&w.value_offsets),
        take(&w.value),
    )
