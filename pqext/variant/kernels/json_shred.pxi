# JSON text straight into the columns of a shredding schema.
#
# A document becomes a tape as in parsing; values are encoded for residuals
# only. The result equals parsing and then shredding, byte for byte: the metadata holds all names of
# the row, and a residual object has its fields in the order of their names.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    FAULT_MEMORY, TYPE_INT64, TYPE_INT8, BinaryInput, read_uint, uint_size, write_uint,
)
from pqext.variant.kernels.binary_write cimport container_head_size, write_object_head
from pqext.variant.kernels.exact cimport has_precision, int128, power_of_ten
from pqext.variant.kernels.json_columns cimport (
    builders_reserve, column_set, column_text, column_wide, column_word, reserve_more,
)
from pqext.variant.kernels.leaves cimport COERCE_EXACT, NOT_STORED, STORED, put_leaf
from pqext.variant.kernels.scan cimport store64
from pqext.variant.kernels.shredding cimport (
    FAULT_TOO_LARGE, KIND_ARRAY, KIND_OBJECT, KIND_PRIMITIVE, LEAF_DECIMAL, LEAF_INT64, LEAF_STRING, Builder, Column,
    Node, ShreddingPlan, builders_free, bytes_zero_to, column_end, plan_rank, take_columns,
)

include "json_routes.pxi"


cdef struct Entry:
    # A field of an object that stays in the residual.
    const TapeNode *value
    uint32_t id


cdef struct State:
    Parser parser
    const Node *nodes
    Builder *builders
    Routes routes
    Bytes entries
    int coerce


# --- Values --------------------------------------------------------------------------------------

cdef inline int put_scalar(const Node *node, int coerce, Column *c, int64_t row, const TapeNode *t) noexcept nogil:
    """Store a number or a literal if the leaf can represent it. Return STORED, NOT_STORED or a fault."""
    cdef uint8_t encoded[18]
    cdef int128 unscaled
    cdef int status
    cdef bint is_int = t.kind == NODE_FIXED and TYPE_INT8 <= t.header >> 2 <= TYPE_INT64
    # Fast path for the two most common leaves of numbers, equivalent to `put_leaf`.
    if coerce != COERCE_EXACT:
        if is_int and node.leaf == LEAF_INT64:
            status = column_word(c, row, t.payload)
            return STORED if status == 0 else status
        if node.leaf == LEAF_DECIMAL and (t.kind == NODE_DECIMAL or is_int):
            status = node.scale - (t.scale if t.kind == NODE_DECIMAL else 0)
            if 0 <= status <= 18:
                unscaled = <int128> <int64_t> t.payload * power_of_ten(status)
                if not has_precision(unscaled, node.precision):
                    return NOT_STORED
                status = column_wide(c, row, &unscaled)
                return STORED if status == 0 else status
    encoded[0] = t.header
    if t.kind == NODE_FIXED:
        store64(encoded + 1, t.payload)
    elif t.kind == NODE_DECIMAL:
        encoded[1] = t.scale
        store64(encoded + 2, t.payload)
    else:
        write_decimal16(t, encoded)
    return put_leaf(node, coerce, c, row, encoded, t.size)


cdef int put_value(State *s, Column *c, int64_t row, const TapeNode *t) noexcept nogil:
    """Store a value in its encoding. Return 0 or a fault."""
    cdef int status = column_set(c, row)
    if status != 0:
        return status
    if bytes_reserve(&c.data, <size_t> t.size + MARGIN) != 0 or emit(&s.parser, t, c.data.data + c.data.size) != 0:
        return FAULT_MEMORY
    c.data.size += t.size
    return column_end(c, row, <int64_t> c.data.size)


cdef inline int put(State *s, ShreddingPlan plan, int32_t index, int64_t row, const TapeNode *t) noexcept nogil:
    """Store a value in node `index` of the plan. Recursion is as deep as the schema. Return 0 or a fault."""
    cdef const Node *node = &s.nodes[index]
    cdef Builder *b = &s.builders[index]
    cdef int status
    if node.kind == KIND_PRIMITIVE:
        if t.kind == NODE_STRING:
            if node.leaf == LEAF_STRING:
                return column_text(&b.typed, row, <const uint8_t *> t.payload, t.length)
        elif t.kind < NODE_OBJECT:
            status = put_scalar(node, s.coerce, &b.typed, row, t)
            if status != NOT_STORED:
                return 0 if status == STORED else status
    elif node.kind == KIND_OBJECT and t.kind == NODE_OBJECT:
        if s.parser.names.shapeless:
            return put_shapeless(s, plan, index, b, row, t)
        return put_object(s, plan, index, b, row, t)
    elif node.kind == KIND_ARRAY and t.kind == NODE_ARRAY:
        return put_array(s, plan, node, &b.typed, row, t)
    return put_value(s, &b.value, row, t)


cdef int put_array(State *s, ShreddingPlan plan, const Node *node, Column *c, int64_t row, const TapeNode *t) noexcept nogil:
    cdef int64_t first = c.end
    cdef const TapeNode *child = t + 1
    cdef uint32_t i
    cdef int status = column_set(c, row)
    if status == 0:
        status = column_end(c, row, first + t.length)
    for i in range(t.length):
        if status != 0:
            return status
        status = put(s, plan, node.first_child, first + i, child)
        child += child.span
    return status


cdef int put_object(
    State *s, ShreddingPlan plan, int32_t index, Builder *b, int64_t row, const TapeNode *t
) noexcept nogil:
    """Store an object that has a shape, in a row whose objects all have shapes. Return 0 or a fault."""
    cdef const Route *route = route_of(&s.routes, &s.parser.names, plan, <uint32_t> t.payload, index)
    cdef const TapeNode *child = t + 1
    cdef const Node *node
    cdef const uint8_t *ids
    cdef const uint16_t *order
    cdef size_t base = s.entries.size
    cdef uint64_t start
    cdef uint32_t i, residual
    cdef int32_t target
    cdef int id_size = s.parser.id_size
    cdef Entry *entry
    cdef int status
    if route == NULL:
        return FAULT_MEMORY
    # The route of a child may reallocate the targets of these pointers.
    start = route.start
    residual = route.residual
    status = column_set(&b.typed, row)
    if status != 0:
        return status
    if residual:
        if bytes_reserve(&s.entries, residual * sizeof(Entry)) != 0:
            return FAULT_MEMORY
        s.entries.size += residual * sizeof(Entry)
    for i in range(t.length):
        target = (<const int32_t *> s.routes.fields.data)[start + i]
        if target >= 0:
            node = &s.nodes[target]
            if node.leaf == LEAF_STRING and child.kind == NODE_STRING and node.kind == KIND_PRIMITIVE:
                status = column_text(
                    &s.builders[target].typed, row, <const uint8_t *> child.payload, child.length
                )
            else:
                status = put(s, plan, target, row, child)
            if status != 0:
                return status
        else:
            ids = s.parser.names.dictionary_ids.data + s.parser.names.shapes[t.payload].ids
            order = s.parser.names.orders + s.parser.names.shapes[t.payload].order
            entry = <Entry *> (s.entries.data + base) + (-1 - target)
            entry.value = child
            entry.id = read_uint(ids + order[i] * <size_t> id_size, id_size)
        child += child.span
    if residual:
        status = put_residual(s, &b.value, row, base)
        s.entries.size = base
    return status


cdef int put_shapeless(
    State *s, ShreddingPlan plan, int32_t index, Builder *b, int64_t row, const TapeNode *t
) noexcept nogil:
    """Store any object, in a row whose keys have ranks. Return 0 or a fault."""
    cdef const TapeNode *child = t + 1
    cdef size_t base = s.entries.size
    cdef uint32_t i, count = 0
    cdef int64_t target
    cdef const uint64_t *ordered
    cdef Entry *entries
    cdef int status = column_set(&b.typed, row)
    if status != 0:
        return status
    if bytes_reserve(&s.entries, 2 * <size_t> t.length * sizeof(Entry)) != 0:
        return FAULT_MEMORY
    if sorting_room(&s.parser.names, t.length) != 0:
        return FAULT_MEMORY
    # First only the residual fields: nested objects use the same memory for sorting.
    entries = <Entry *> (s.entries.data + base) + t.length
    for i in range(t.length):
        target = child_of(&s.routes, &s.parser.names, plan, index, child.key)
        if target < -1:
            return FAULT_MEMORY
        if target < 0:
            entries[count].id = s.parser.names.keys[child.key].rank
            entries[count].value = child
            s.parser.names.sorting[count] = <uint64_t> entries[count].id << 32 | count
            count += 1
        child += child.span
    ordered = merge_sort(&s.parser.names, count, False)
    for i in range(count):
        (<Entry *> (s.entries.data + base))[i] = entries[<uint32_t> ordered[i]]
    s.entries.size = base + count * sizeof(Entry)
    child = t + 1
    for i in range(t.length if count < t.length else 0):
        target = child_of(&s.routes, &s.parser.names, plan, index, child.key)
        if target < -1:
            return FAULT_MEMORY
        if target >= 0:
            status = put(s, plan, <int32_t> target, row, child)
            if status != 0:
                return status
        child += child.span
    if count:
        status = put_residual(s, &b.value, row, base)
    s.entries.size = base
    return status


cdef int put_residual(State *s, Column *c, int64_t row, size_t base) noexcept nogil:
    """Encode the fields recorded since `base`, which ascend by id, as an object. Return 0 or a fault."""
    cdef size_t count = (s.entries.size - base) // sizeof(Entry)
    cdef const Entry *entries = <const Entry *> (s.entries.data + base)
    cdef int id_size = uint_size(entries[count - 1].id)
    cdef int offset_size, status
    cdef uint64_t total = 0
    cdef size_t i, head
    cdef uint8_t *out
    cdef uint8_t *ids
    cdef uint8_t *offsets
    for i in range(count):
        total += entries[i].value.size
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    offset_size = uint_size(<uint32_t> total)
    head = container_head_size(<uint32_t> count, id_size, offset_size)
    status = column_set(c, row)
    if status != 0:
        return status
    if bytes_reserve(&c.data, head + total + MARGIN) != 0:
        return FAULT_MEMORY
    out = c.data.data + c.data.size
    ids = write_object_head(out, <uint32_t> count, id_size, offset_size)
    offsets = ids + count * <size_t> id_size
    out += head
    c.data.size += head + total
    total = 0
    for i in range(count):
        write_uint(ids, entries[i].id, id_size)
        write_uint(offsets, <uint32_t> total, offset_size)
        if emit(&s.parser, entries[i].value, out) != 0:
            return FAULT_MEMORY
        ids += id_size
        offsets += offset_size
        out += entries[i].value.size
        total += entries[i].value.size
    write_uint(offsets, <uint32_t> total, offset_size)
    return column_end(c, row, <int64_t> c.data.size)


# --- Rows ----------------------------------------------------------------------------------------

cdef int shred_all(State *s, ShreddingPlan plan, Documents *source, Rows *rows, bint stop_at_fault) noexcept nogil:
    """Shred documents until the source ends or a fault stops shredding. Return 0 or a negative fault."""
    cdef const uint8_t *text
    cdef size_t length, after, first = source.position
    cdef int64_t number
    cdef int kind, status
    cdef double times
    while True:
        kind = next_document(source, &text, &length, &number, &after)
        if kind <= 0:
            return kind
        if kind == NULL_ROW:
            status = rows_end(rows, False)
        else:
            status = parse_row(&s.parser, text, length)
            if status == 0:
                if not metadata_fits(rows, &s.parser):
                    return FAULT_TOO_LARGE
                s.entries.size = 0
                routes_next_row(&s.routes, &s.parser.names)
                status = put(s, plan, 0, rows.count, s.parser.tape)
                if status == 0:
                    status = rows_metadata(rows, &s.parser)
                if status == 0:
                    status = rows_end(rows, True)
                if status == 0 and (rows.count == FIRST_ROWS or rows.count == MORE_ROWS):
                    times = growth(source, first)
                    status = builders_reserve(s.builders, plan.node_count, times)
                    if reserve_more(&rows.metadata, times) != 0:
                        return FAULT_MEMORY
            elif status > 0:
                status = rows_fault(rows, &s.parser, status, number)
                if status != 0 or stop_at_fault:
                    return status
                status = rows_end(rows, False)
        if status != 0:
            return status
        source.position = after
        source.line += 1


cdef object shred_documents(Documents *source, ShreddingPlan plan, int coerce, JsonOptions options, uint64_t seed):
    cdef State s
    cdef Rows rows
    cdef int status
    memset(&s, 0, sizeof(State))
    s.nodes = plan.nodes
    s.coerce = coerce
    try:
        with nogil:
            s.builders = <Builder *> calloc(plan.node_count, sizeof(Builder))
            status = rows_open(&rows)
            if s.builders == NULL:
                status = FAULT_MEMORY
            if status == 0:
                status = parser_open(&s.parser, &options.options, seed)
                if status == 0:
                    status = shred_all(&s, plan, source, &rows, options.stop_at_fault)
                parser_close(&s.parser)
        if status == FAULT_MEMORY:
            raise MemoryError("out of memory while parsing JSON")
        if status < 0:
            return status, source.position, source.line
        return (
            rows.count,
            rows.nulls,
            take_faults(&rows),
            source.line,
            take(&rows.validity),
            take(&rows.offsets),
            take(&rows.metadata),
            take_columns(s.builders, plan, rows.count),
        )
    finally:
        builders_free(s.builders, plan.node_count)
        routes_free(&s.routes)
        bytes_free(&s.entries)
        rows_free(&rows)


def shred_column(
    BinaryInput column, size_t start, size_t stop, ShreddingPlan plan, int coerce, JsonOptions options, uint64_t seed
):
    """Shred rows `start` to `stop` of a column of JSON strings; `coerce` is one of the COERCE values of leaves.pxd.

    Return a negative fault with its row and line, or (rows, nulls, faults, line, validity, metadata offsets, metadata,
    columns). The columns have the format of `shred`, and faults that of `parse_column`. Shredding stops at a fault if
    the options require it.
    """
    cdef Documents source
    memset(&source, 0, sizeof(Documents))
    source.column = &column.column
    source.position = start
    source.stop = min(stop, <size_t> column.column.length)
    return shred_documents(&source, plan, coerce, options, seed)


def shred_lines(
    const uint8_t[::1] lines, int64_t line, ShreddingPlan plan, int coerce, JsonOptions options, uint64_t seed
):
    """Like `shred_column`, for text of one document per line, starting with line number `line`."""
    cdef Documents source
    memset(&source, 0, sizeof(Documents))
    source.lines = &lines[0] if lines.shape[0] else NULL
    source.stop = lines.shape[0]
    source.line = line
    return shred_documents(&source, plan, coerce, options, seed)
