# Parse JSON documents to the tape from which variants are written.
#
# A document is parsed once, into a *tape* of nodes in document order: a container's node precedes its
# children and records the number of nodes and of encoded bytes that it spans. Then the dictionary of the row is
# determined, and with it every size. `json_names` caches keys, shapes of objects and dictionaries;
# `json_emit` writes the values.
#
# Each document is copied into a buffer of its own with a margin of zeros: no zero may occur in JSON, so that
# the loops that search stop there, and loads and stores of up to 16 bytes stay within the allocation.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from pqext.variant.kernels.binary cimport FAULT_MEMORY, TYPE_FALSE, TYPE_NULL, TYPE_TRUE, uint_size
from pqext.variant.kernels.binary_write cimport container_head_size, string_value_size
from pqext.variant.kernels.json_text cimport parse_number, parse_string
from pqext.variant.kernels.scan cimport find_special, load64, utf8_fault

cdef int parser_open(Parser *ps, const ParserOptions *options, uint64_t seed) noexcept nogil:
    """Initialise the parser. Return 0 or FAULT_MEMORY; in both cases `parser_close` must be called."""
    memset(ps, 0, sizeof(Parser))
    ps.max_bytes = options.max_bytes
    ps.max_depth = options.max_depth
    ps.duplicates = options.duplicates
    ps.doubles = options.doubles
    ps.id_size = 1
    if names_open(&ps.names, seed) != 0:
        return FAULT_MEMORY
    if grow(<void **> &ps.tape, sizeof(TapeNode), &ps.tape_capacity, 1024) != 0:
        return FAULT_MEMORY
    return grow(<void **> &ps.frames, sizeof(Frame), &ps.frames_capacity, 64)


cdef void parser_close(Parser *ps) noexcept nogil:
    free(ps.text)
    free(ps.tape)
    free(ps.frames)
    names_close(&ps.names)


# --- Documents -----------------------------------------------------------------------------------

cdef inline uint8_t *skip_space(uint8_t *p) noexcept nogil:
    while p[0] <= 0x20 and (p[0] == 0x20 or p[0] == 0x0A or p[0] == 0x0D or p[0] == 0x09):
        p += 1
    return p


cdef int parse_new_key(Parser *ps, uint8_t **position, uint32_t *key, uint32_t *shape) noexcept nogil:
    """Read the key at *position that was not predicted, and the shape after it.

    Return 0, a `JsonFault` or FAULT_MEMORY.
    """
    cdef const uint8_t *name
    cdef size_t length
    cdef int64_t found
    cdef int status
    if position[0][0] != c'"':
        ps.where = position[0]
        return JSON_END if position[0] >= ps.end else JSON_KEY
    status = parse_string(ps, position, &name, &length)
    if status != 0:
        return status
    found = intern(&ps.names, name, length)
    if found < 0:
        return FAULT_MEMORY
    key[0] = <uint32_t> found
    found = shape_after(&ps.names, shape[0], key[0])
    if found < 0:
        return FAULT_MEMORY
    shape[0] = <uint32_t> found
    return 0


cdef int drop_duplicates(Parser *ps, Frame *frame) noexcept nogil:
    """Find repeated keys in the completed object; reject them, or drop all but one of each."""
    cdef TapeNode *children = ps.tape + frame.node + 1
    cdef uint32_t count = frame.count
    cdef uint32_t i, at, target, span
    cdef uint64_t *ordered
    cdef uint64_t previous, kept
    cdef bint found = False
    if sorting_room(&ps.names, count) != 0:
        return FAULT_MEMORY
    at = 0
    for i in range(count):
        ps.names.sorting[i] = <uint64_t> children[at].key << 32 | i
        at += children[at].span
    ordered = merge_sort(&ps.names, count, False)
    for i in range(1, count):
        if ordered[i] >> 32 == ordered[i - 1] >> 32:
            found = True
            if ps.duplicates == DUPLICATES_ERROR:
                ps.where = ps.text + frame.start
                ps.fault_key = <uint32_t> (ordered[i] >> 32)
                return JSON_DUPLICATE
    if not found:
        return 0
    # Restore the order of the document; each index has a bit that is set if its field is retained.
    previous = ~ordered[0]
    for i in range(count):
        if ps.duplicates == DUPLICATES_LAST:
            kept = i + 1 == count or ordered[i] >> 32 != ordered[i + 1] >> 32
        else:
            kept = ordered[i] >> 32 != previous >> 32
        previous = ordered[i]
        ordered[i] = (ordered[i] & 0xFFFFFFFFULL) << 1 | kept
    if ordered != ps.names.sorting:
        memcpy(ps.names.sorting, ordered, count * sizeof(uint64_t))
    ordered = merge_sort(&ps.names, count, False)
    at = 0
    target = 0
    for i in range(count):
        span = children[at].span
        if ordered[i] & 1:
            if target != at:
                memmove(children + target, children + at, span * sizeof(TapeNode))
            target += span
        else:
            frame.size -= children[at].size
            frame.count -= 1
        at += span
    ps.tape_size = frame.node + 1 + target
    return 0


cdef int close_container(Parser *ps, Frame *frame) noexcept nogil:
    """Complete the node of the container that ended. Return 0, a `JsonFault` or FAULT_MEMORY."""
    cdef TapeNode *node = ps.tape + frame.node
    cdef const Shape *shape
    cdef uint64_t size
    cdef int status
    if frame.is_object:
        shape = &ps.names.shapes[frame.shape]
        if frame.shape and shape.order == NOWHERE and order_shape(&ps.names, frame.shape) != 0:
            return FAULT_MEMORY
        if frame.shape == 0 or shape.repeats or shape.order == NOWHERE:
            frame.shape = 0
            ps.names.shapeless = True
            status = drop_duplicates(ps, frame)
            if status != 0:
                return status
        else:
            note_shape(&ps.names, frame.shape)
    node.kind = NODE_OBJECT if frame.is_object else NODE_ARRAY
    node.payload = frame.shape
    node.length = frame.count
    node.span = ps.tape_size - frame.node
    return set_container_size(ps, node, frame.size)


cdef inline int set_container_size(Parser *ps, TapeNode *node, uint64_t values) noexcept nogil:
    """Set the size of a container from the sizes of its children. Return 0 or JSON_SIZE."""
    cdef uint64_t size = values
    if values <= 0x7FFFFFFF:
        node.header = <uint8_t> uint_size(<uint32_t> values)
        size += container_head_size(node.length, ps.id_size if node.kind == NODE_OBJECT else 0, node.header)
    if size > 0x7FFFFFFF:
        ps.where = ps.text
        return JSON_SIZE
    node.size = <uint32_t> size
    return 0


cdef int parse_document(Parser *ps) noexcept nogil:
    """Parse ps.text to the tape. Return 0, a `JsonFault` with ps.where set, or FAULT_MEMORY."""
    cdef uint8_t *p = skip_space(ps.text)
    cdef uint8_t *text
    cdef uint8_t *stop
    cdef const uint8_t *expected
    cdef TapeNode *node
    cdef Frame *frame = NULL        # the innermost open container; what follows is of it
    cdef bint in_object = False
    cdef uint32_t count = 0, shape = 0, key = NOWHERE
    cdef uint64_t size = 0
    cdef uint32_t depth = 0, tape_size = 0, next, left, context
    cdef size_t length
    cdef int64_t root
    cdef int status
    cdef uint8_t c
    if p >= ps.end:
        ps.where = p
        return JSON_EMPTY
    while True:
        if in_object:
            # A key, most likely the key that occurred here before.
            next = ps.names.shapes[shape].next
            left = ps.names.shapes[next].match
            expected = ps.names.text.data + ps.names.shapes[next].text
            stop = p
            while left > 8 and load64(stop) == load64(expected):
                stop += 8
                expected += 8
                left -= 8
            # Zero represents names that must not be compared, and no prediction.
            if left - 1 < 8 and (load64(stop) ^ load64(expected)) << (64 - 8 * left) == 0:
                p = stop + left
                shape = next
                key = ps.names.shapes[next].key
            else:
                stop = p
                next = shape
                status = parse_new_key(ps, &stop, &left, &next)
                if status != 0:
                    return status
                p = stop
                shape = next
                key = left
            if p[0] != c':':
                p = skip_space(p)
                if p[0] != c':':
                    ps.where = p
                    return JSON_END if p >= ps.end else JSON_COLON
            p = skip_space(p + 1)
        if tape_size == ps.tape_capacity:
            if grow(<void **> &ps.tape, sizeof(TapeNode), &ps.tape_capacity, <size_t> tape_size + 1) != 0:
                return FAULT_MEMORY
        node = ps.tape + tape_size
        tape_size += 1
        node.key = key
        c = p[0]
        if c == c'"':
            text = p + 1
            stop = <uint8_t *> find_special(text)
            length = stop - text
            if stop[0] != c'"':
                stop = p
                status = parse_string(ps, &stop, &expected, &length)
                if status != 0:
                    return status
                stop -= 1
            p = stop + 1
            node.kind = NODE_STRING
            node.payload = <uint64_t> text
            node.length = <uint32_t> length
            node.size = <uint32_t> string_value_size(length)
            node.span = 1
        elif c'0' <= c <= c'9' or c == c'-':
            text = <uint8_t *> parse_number(ps, p, node)
            if text == NULL:
                return ps.number_fault
            p = text
        elif c == c'{' or c == c'[':
            if depth >= ps.max_depth:
                ps.where = p
                return JSON_DEPTH
            if depth == ps.frames_capacity:
                if grow(<void **> &ps.frames, sizeof(Frame), &ps.frames_capacity, <size_t> depth + 1) != 0:
                    return FAULT_MEMORY
            context = NOWHERE
            if depth:
                frame = ps.frames + depth - 1
                frame.size = size
                frame.count = count
                frame.shape = shape
                context = key if in_object else frame.key
            frame = ps.frames + depth
            depth += 1
            frame.node = tape_size - 1
            frame.key = context
            frame.start = <uint32_t> (p - ps.text)
            in_object = c == c'{'
            frame.is_object = in_object
            size = 0
            count = 0
            shape = 0
            p = skip_space(p + 1)
            if in_object:
                root = root_shape(&ps.names, context)
                if root < 0:
                    return FAULT_MEMORY
                shape = <uint32_t> root
            if p[0] != (c'}' if in_object else c']'):
                continue
            # An empty container ends at a separator position; it is not a child of itself.
            node = NULL
        else:
            node.kind = NODE_FIXED
            node.payload = 0
            node.size = 1
            node.span = 1
            if c == c'n' and memcmp(p, b"null", 4) == 0:
                node.header = TYPE_NULL << 2
                p += 4
            elif c == c't' and memcmp(p, b"true", 4) == 0:
                node.header = TYPE_TRUE << 2
                p += 4
            elif c == c'f' and memcmp(p, b"false", 5) == 0:
                node.header = TYPE_FALSE << 2
                p += 5
            else:
                ps.where = p
                if p >= ps.end:
                    return JSON_END
                if c == c'N' or c == c'I':
                    return JSON_NAN
                return JSON_LITERAL if c == c'n' or c == c't' or c == c'f' else JSON_VALUE
        # A value ended before p. It belongs to the innermost container, which may also end.
        while True:
            if node != NULL:
                p = skip_space(p)
                if frame == NULL:
                    ps.tape_size = tape_size
                    if p < ps.end:
                        ps.where = p
                        return JSON_TRAILING
                    return 0
                count += 1
                size += node.size
                if p[0] == c',':
                    p = skip_space(p + 1)
                    break
            if p[0] != (c'}' if in_object else c']'):
                ps.where = p
                if p >= ps.end:
                    return JSON_END
                return JSON_OBJECT_SEPARATOR if in_object else JSON_ARRAY_SEPARATOR
            p += 1
            frame.size = size
            frame.count = count
            frame.shape = shape
            ps.tape_size = tape_size
            status = close_container(ps, frame)
            if status != 0:
                return status
            tape_size = ps.tape_size
            node = ps.tape + frame.node
            depth -= 1
            frame = NULL
            if depth:
                frame = ps.frames + depth - 1
                size = frame.size
                count = frame.count
                shape = frame.shape
                in_object = frame.is_object


cdef void note_tape_keys(Parser *ps) noexcept nogil:
    """Collect the keys of a row in which an object has no shape."""
    cdef uint32_t i, j
    cdef const TapeNode *child
    for i in range(ps.tape_size):
        if ps.tape[i].kind == NODE_OBJECT:
            child = ps.tape + i + 1
            for j in range(ps.tape[i].length):
                note_key(&ps.names, child.key)
                child += child.span


cdef int resize_containers(Parser *ps) noexcept nogil:
    """Recompute all sizes after the size of field ids changed. Return 0 or JSON_SIZE."""
    cdef uint32_t i = ps.tape_size
    cdef uint32_t j
    cdef uint64_t size
    cdef TapeNode *node
    cdef const TapeNode *child
    while i > 0:
        i -= 1
        node = ps.tape + i
        if node.kind >= NODE_OBJECT:
            size = 0
            child = node + 1
            for j in range(node.length):
                size += child.size
                child += child.span
            if set_container_size(ps, node, size) != 0:
                return JSON_SIZE
    return 0


cdef int load_document(Parser *ps, const uint8_t *text, size_t length) noexcept nogil:
    """Copy a document to ps.text and check its UTF-8. Return 0, a `JsonFault` or FAULT_MEMORY."""
    cdef int64_t fault
    cdef uint8_t *moved
    cdef size_t capacity = length + length // 4 + MARGIN
    ps.where = ps.text
    if length > ps.max_bytes:
        return JSON_LONG
    if length > 0x7FFFFFFF - MARGIN:
        return JSON_SIZE
    if length + MARGIN > ps.text_capacity:
        moved = <uint8_t *> realloc(ps.text, capacity)
        if moved == NULL:
            return FAULT_MEMORY
        ps.text = moved
        ps.text_capacity = capacity
    if length:
        memcpy(ps.text, text, length)
    memset(ps.text + length, 0, MARGIN)
    ps.end = ps.text + length
    fault = utf8_fault(ps.text, length)
    if fault >= 0:
        ps.where = ps.text + fault
        return JSON_UTF8
    return 0


cdef int parse_row(Parser *ps, const uint8_t *text, size_t length) noexcept nogil:
    """Parse a document to its final tape and dictionary. Return 0, a `JsonFault` or FAULT_MEMORY."""
    cdef int status = load_document(ps, text, length)
    names_next_row(&ps.names)
    if status == 0:
        status = parse_document(ps)
    if status != 0:
        return status
    if ps.names.shapeless:
        note_tape_keys(ps)
    status = choose_dictionary(&ps.names)
    if status != 0:
        ps.where = ps.text
        return status if status < 0 else <int> JSON_SIZE
    if ps.id_size != ps.names.current.id_size:
        ps.id_size = ps.names.current.id_size
        return resize_containers(ps)
    return 0
