# Included by compose.pxi: adding pieces to the tape.

cdef inline int add_piece(Composer *c, Piece *piece) noexcept nogil:
    cdef size_t index = c.tape.size // sizeof(Piece)
    cdef Piece *parent
    if index >= 0x7FFFFFFF:
        return COMPOSE_TOO_LARGE
    piece.name = c.next_name
    piece.span = 1
    piece.parent = NO_NAME
    c.next_name = NO_NAME
    if c.open.size:
        piece.parent = (<uint32_t *> (c.open.data + c.open.size))[-1]
        parent = <Piece *> c.tape.data + piece.parent
        parent.count += 1
    return 0 if bytes_append(&c.tape, piece, sizeof(Piece)) == 0 else FAULT_MEMORY


cdef inline int put_at(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    cdef Piece piece
    memset(&piece, 0, sizeof(Piece))
    piece.kind = PIECE_LEAF
    piece.p = p
    piece.at = c.scratch.size
    piece.size = <uint32_t> n
    return add_piece(c, &piece)


cdef int put_bytes(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Add a copy of an encoded primitive. Return 0 or a fault."""
    cdef int status = put_at(c, NULL, n)
    return status if status != 0 or bytes_append(&c.scratch, p, n) == 0 else FAULT_MEMORY


cdef int put_null(Composer *c) noexcept nogil:
    return put_at(c, &VARIANT_NULL, 1)


cdef int put_exact(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Add an exact number as the narrowest integer that can represent it, otherwise as the narrowest decimal."""
    cdef int128 unscaled = 0
    cdef int scale = 0
    cdef int status = exact_open(p, n, &unscaled, &scale)
    cdef uint8_t head[18]
    if status != 0:
        return status
    while scale > 0 and unscaled % 10 == 0:
        unscaled = unscaled // 10
        scale -= 1
    if not has_precision(unscaled, 38):
        return FAULT_DECIMAL_PRECISION
    if scale == 0 and <int64_t> unscaled == unscaled:
        return put_bytes(c, head, <size_t> (write_int(head, <int64_t> unscaled) - head))
    head[1] = <uint8_t> scale
    memcpy(head + 2, &unscaled, 16)
    if scale <= 9 and has_precision(unscaled, 9):
        head[0] = TYPE_DECIMAL4 << 2
        return put_bytes(c, head, 6)
    if scale <= 18 and has_precision(unscaled, 18):
        head[0] = TYPE_DECIMAL8 << 2
        return put_bytes(c, head, 10)
    head[0] = TYPE_DECIMAL16 << 2
    return put_bytes(c, head, 18)


cdef int put_floating(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Add a double or a float, with one representation each for NaN and zero."""
    cdef uint8_t head[9]
    cdef uint64_t magnitude = read_uint64(p + 1) & 0x7FFFFFFFFFFFFFFFULL if n == 9 else read_uint(p + 1, 4) & 0x7FFFFFFF
    cdef uint64_t infinite = 0x7FF0000000000000ULL if n == 9 else 0x7F800000
    cdef uint64_t quiet = 0x7FF8000000000000ULL if n == 9 else 0x7FC00000
    if magnitude != 0 and magnitude <= infinite:
        return put_at(c, p, n)
    magnitude = quiet if magnitude else 0
    head[0] = p[0]
    memcpy(head + 1, &magnitude, n - 1)
    return put_bytes(c, head, n)


cdef int put_nanos(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Add a timestamp in nanoseconds, or in microseconds if that is exact."""
    cdef int64_t v = <int64_t> read_uint64(p + 1)
    cdef uint8_t head[9]
    if v % 1000 != 0:
        return put_at(c, p, n)
    head[0] = (TYPE_TIMESTAMP if p[0] >> 2 == TYPE_TIMESTAMP_NANOS else TYPE_TIMESTAMP_NTZ) << 2
    write_uint64(head + 1, <uint64_t> (v // 1000))
    return put_bytes(c, head, 9)


cdef int put_text(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Add a string, in the shorter format if the output is canonical."""
    cdef const uint8_t *text = NULL
    cdef size_t length = 0
    cdef int status = string_open(p, n, &text, &length)
    cdef uint8_t head[5]
    if status != 0:
        return status
    if utf8_fault(text, length) >= 0:
        return FAULT_STRING_UTF8
    if not c.canonical or length >= 64 or p[0] & 3 == BASIC_SHORT_STRING:
        return put_at(c, p, n)
    write_string_head(head, length)
    status = put_at(c, NULL, length + 1)
    if status == 0 and (bytes_append(&c.scratch, head, 1) != 0 or bytes_append(&c.scratch, text, length) != 0):
        status = FAULT_MEMORY
    return status


cdef int put_leaf(Composer *c, const uint8_t *p, size_t n) noexcept nogil:
    """Add the primitive of `n` bytes at `p`, which must stay valid.

    It is checked, and converted if the output is canonical.
    """
    cdef int type_id
    if is_string(p):
        return put_text(c, p, n)
    type_id = p[0] >> 2
    if TYPE_DECIMAL4 <= type_id <= TYPE_DECIMAL16 and p[1] > 38:
        return FAULT_DECIMAL_SCALE
    if not c.canonical:
        return put_at(c, p, n)
    if is_exact_type(type_id):
        return put_exact(c, p, n)
    if type_id == TYPE_DOUBLE or type_id == TYPE_FLOAT:
        return put_floating(c, p, n)
    if type_id == TYPE_TIMESTAMP_NANOS or type_id == TYPE_TIMESTAMP_NTZ_NANOS:
        return put_nanos(c, p, n)
    return put_at(c, p, n)


cdef int begin(Composer *c, int kind) noexcept nogil:
    """Begin an object or array. Pieces added until `end` are its children."""
    cdef Piece piece
    cdef uint32_t index = <uint32_t> (c.tape.size // sizeof(Piece))
    cdef int status
    if c.open.size >= MAX_DEPTH * 4:
        return FAULT_DEPTH
    memset(&piece, 0, sizeof(Piece))
    piece.kind = kind
    status = add_piece(c, &piece)
    if status != 0:
        return status
    return 0 if bytes_append(&c.open, &index, 4) == 0 else FAULT_MEMORY


cdef int end(Composer *c, bint ordered) noexcept nogil:
    """End the innermost container. If `ordered`, the names of its fields are known to ascend."""
    cdef uint32_t index
    cdef Piece *piece
    c.open.size -= 4
    index = (<uint32_t *> (c.open.data + c.open.size))[0]
    piece = <Piece *> c.tape.data + index
    piece.span = <uint32_t> (c.tape.size // sizeof(Piece)) - index
    return 0 if ordered or piece.kind == PIECE_ARRAY or piece.count < 2 else order_fields(c, index)


cdef struct Entry:
    uint32_t name
    uint32_t at


cdef Entry *merge_sort(const Composer *c, Entry *a, Entry *b, size_t count) noexcept nogil:
    """Sort `a` by names, using `b` of the same size. Return the sorted array, which is `a` or `b`."""
    cdef size_t width = 1, start, left, right, middle, stop, k
    cdef Entry *other
    while width < count:
        start = 0
        while start < count:
            middle = min(start + width, count)
            stop = min(start + 2 * width, count)
            left = start
            right = middle
            for k in range(start, stop):
                if left < middle and (right >= stop or compare_names(c, a[left].name, a[right].name) <= 0):
                    b[k] = a[left]
                    left += 1
                else:
                    b[k] = a[right]
                    right += 1
            start = stop
        other = a
        a = b
        b = other
        width *= 2
    return a


cdef int order_fields(Composer *c, uint32_t index) noexcept nogil:
    """Sort the fields of an object by name. Return FAULT_FIELD_DUPLICATE if two names are equal."""
    cdef Piece *piece = <Piece *> c.tape.data + index
    cdef size_t count = piece.count, i, total = piece.span - 1, moved
    cdef uint32_t at = index + 1, first, previous, delta
    cdef Entry *entries
    cdef Piece *copy
    cdef Piece *target
    cdef bint sorted = True
    cdef int order
    c.sorting.size = 0
    if bytes_reserve(&c.sorting, 2 * count * sizeof(Entry) + total * sizeof(Piece)) != 0:
        return FAULT_MEMORY
    entries = <Entry *> c.sorting.data
    for i in range(count):
        entries[i].at = at
        entries[i].name = (<Piece *> c.tape.data + at).name
        at += (<Piece *> c.tape.data + at).span
        if i:
            order = compare_names(c, entries[i - 1].name, entries[i].name)
            if order == 0:
                return FAULT_FIELD_DUPLICATE
            sorted = sorted and order < 0
    if sorted:
        return 0
    entries = merge_sort(c, entries, entries + count, count)
    for i in range(1, count):
        if entries[i - 1].name == entries[i].name:
            return FAULT_FIELD_DUPLICATE
    copy = <Piece *> (c.sorting.data + 2 * count * sizeof(Entry))
    memcpy(copy, piece + 1, total * sizeof(Piece))
    first = index + 1
    target = piece + 1
    for i in range(count):
        moved = (copy + (entries[i].at - first)).span
        memcpy(target, copy + (entries[i].at - first), moved * sizeof(Piece))
        delta = <uint32_t> (target - <Piece *> c.tape.data) - entries[i].at    # modulo 2^32
        for previous in range(1, <uint32_t> moved):
            target[previous].parent += delta
        target += moved
    return 0


cdef int put_value(Composer *c, Names *names, const uint8_t *p, size_t n, int depth) noexcept nogil:
    """Add the complete value of exactly `n` bytes at `p`.

    All rules that readers rely on are checked. Return 0 or a fault.
    """
    cdef Container container
    cdef bint is_object
    cdef const uint8_t *at = NULL
    cdef size_t limit = 0, total = 0
    cdef int64_t size, name = 0, previous = -1
    cdef uint32_t i
    cdef int status
    c.where = p
    size = value_size(p, n)
    if size < 0:
        return <int> size
    if <size_t> size != n:
        return FAULT_VALUE_TRAILING
    if p[0] & 3 == BASIC_PRIMITIVE or p[0] & 3 == BASIC_SHORT_STRING:
        return put_leaf(c, p, n)
    is_object = p[0] & 3 == BASIC_OBJECT
    status = object_open(p, n, &container) if is_object else array_open(p, n, &container)
    if status == 0 and container.count > container.values_size:
        status = FAULT_CHILD_SIZE
    if status == 0:
        status = begin(c, PIECE_OBJECT if is_object else PIECE_ARRAY)
    if status != 0:
        return status
    for i in range(container.count):
        if is_object:
            name = name_of(c, names, container_id(&container, i))
            if name < 0:
                return <int> name
            if previous >= 0:
                status = compare_names(c, <uint32_t> previous, <uint32_t> name)
                if status >= 0:
                    return FAULT_FIELD_ORDER if status else FAULT_FIELD_DUPLICATE
            previous = name
            c.next_name = <uint32_t> name
        status = container_child(&container, i, &at, &limit)
        if status != 0:
            return status
        size = value_size(at, limit)
        if size < 0:
            c.where = at
            return <int> size
        total += <size_t> size
        if total > container.values_size:
            return FAULT_CHILD_SIZE
        if at[0] == TYPE_NULL << 2 and (c.without_null_fields if is_object else c.without_null_elements):
            continue
        status = put_value(c, names, at, <size_t> size, depth + 1)
        if status != 0:
            return status
        c.where = p
    if total != container.values_size:
        return FAULT_CHILD_SIZE
    return end(c, True)
