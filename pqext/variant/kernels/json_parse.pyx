# cython: language_level=3
"""JSON text to the Variant binary encoding.

A document is parsed once, into a *tape* of nodes in document order: a container's node comes before its
children and knows how many nodes and how many encoded bytes it spans. Then the dictionary of the row is
fixed, and one walk over the tape writes the value, every size being known. What repeats from row to row is
learnt and only compared afterwards:

- a key is interned once a batch;
- a *shape* is a path of keys through an object. It predicts the key that comes next, and an object that
  ends at a known shape knows the sorted order of its fields and whether a key repeats;
- a *template* is the sequence of a row's distinct keys with the metadata bytes that belong to it.

Each document is copied into a buffer of its own with a margin of zeros: no zero may occur in JSON, so the
loops that search stop there, and loads and stores of up to 16 bytes stay within the allocation.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    BinaryColumn,
    BinaryInput,
    FAULT_ARROW,
    FAULT_MEMORY,
    TYPE_DECIMAL16,
    TYPE_DECIMAL4,
    TYPE_DECIMAL8,
    TYPE_DOUBLE,
    TYPE_FALSE,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_INT8,
    TYPE_NULL,
    TYPE_TRUE,
    binary_at,
    binary_valid,
    bytes_compare,
    container_head_size,
    string_value_size,
    uint_size,
    write_array_head,
    write_object_head,
    write_string_head,
    write_uint,
)
from pqext.variant.kernels.scan cimport copy_over, find_special, load64, lowest_bit, store64, utf8_fault


cdef extern from * nogil:
    """
    #include <locale.h>
    #include <stdlib.h>
    #if defined(__APPLE__)
    #include <xlocale.h>
    #endif
    #if defined(_MSC_VER)
    typedef _locale_t pqext_locale;
    static pqext_locale pqext_c_locale(void) { return _create_locale(LC_ALL, "C"); }
    static double pqext_strtod(const char *s, pqext_locale l) { return _strtod_l(s, NULL, l); }
    #else
    typedef locale_t pqext_locale;
    static pqext_locale pqext_c_locale(void) { return newlocale(LC_ALL_MASK, "C", (locale_t) 0); }
    static double pqext_strtod(const char *s, pqext_locale l) { return strtod_l(s, NULL, l); }
    #endif

    /* high:low = high:low * 10 + digit, 128 bits wide */
    static inline void pqext_append_digit(uint64_t *high, uint64_t *low, unsigned digit) {
        uint64_t a = (*low & 0xFFFFFFFFULL) * 10 + digit;
        uint64_t b = (*low >> 32) * 10 + (a >> 32);
        *low = b << 32 | (a & 0xFFFFFFFFULL);
        *high = *high * 10 + (b >> 32);
    }
    """
    ctypedef struct Locale "pqext_locale":
        pass
    Locale c_locale "pqext_c_locale"()
    double strtod_c "pqext_strtod"(const char *s, Locale locale)
    void append_digit "pqext_append_digit"(uint64_t *high, uint64_t *low, unsigned int digit)


cpdef enum JsonFault:
    JSON_EMPTY = 1
    JSON_END = 2
    JSON_VALUE = 3
    JSON_LITERAL = 4
    JSON_NUMBER = 5
    JSON_LEADING_ZERO = 6
    JSON_RANGE = 7
    JSON_CONTROL = 8
    JSON_UNTERMINATED = 9
    JSON_ESCAPE = 10
    JSON_SURROGATE = 11
    JSON_UTF8 = 12
    JSON_KEY = 13
    JSON_COLON = 14
    JSON_OBJECT_SEPARATOR = 15
    JSON_ARRAY_SEPARATOR = 16
    JSON_TRAILING = 17
    JSON_DEPTH = 18
    JSON_DUPLICATE = 19
    JSON_SIZE = 20


cpdef enum Duplicates:
    DUPLICATES_ERROR = 0
    DUPLICATES_FIRST = 1
    DUPLICATES_LAST = 2


cdef enum:
    # Kinds of node. FIXED: header and up to 8 bytes; DECIMAL: header, scale and up to 8 bytes.
    NODE_FIXED = 0
    NODE_DECIMAL = 1
    NODE_STRING = 2
    NODE_OBJECT = 3
    NODE_ARRAY = 4
    NODE_DECIMAL16 = 5

    MARGIN = 64             # zeros after a document, and spare room after every output
    MAX_SHAPES = 1 << 16
    MAX_SHAPE_DEPTH = 256
    MAX_ORDERS = 1 << 22    # entries of all shapes' sorted orders
    MAX_KEYS = 1 << 20
    MAX_KEY_BYTES = 1 << 26
    MAX_TEMPLATES = 1 << 12
    MAX_TEMPLATE_BYTES = 1 << 24
    UNORDERED = 0xFFFFFFFFU


cdef struct Node:
    uint64_t payload     # FIXED, DECIMAL: the data; STRING, DECIMAL16: address of the text; OBJECT: its shape
    uint32_t key         # the key it stands under, in an object
    uint32_t size        # encoded bytes
    uint32_t length      # STRING, DECIMAL16: bytes of text; OBJECT, ARRAY: number of children
    uint32_t span        # nodes from here to the next sibling
    uint8_t kind
    uint8_t header
    uint8_t scale


cdef struct Frame:
    uint64_t size        # encoded bytes of the children so far
    uint32_t node
    uint32_t count
    uint32_t shape
    uint32_t key         # the key that this container, or the outermost array around it, stands under
    uint32_t start       # offset in the document
    bint is_object


cdef struct Key:
    uint64_t prefix      # the first 8 bytes, big-endian: orders most keys
    uint64_t row         # the last row that has it
    uint32_t text        # offset in key_text of: quote, name, quote, margin
    uint32_t length      # of the name
    uint32_t match       # bytes to compare, both quotes included; 0 for a name that JSON must escape
    uint32_t rank        # field id in the current template
    uint32_t shape       # root of the shapes of objects under this key, 0 when there is none yet


cdef struct Shape:
    uint32_t key         # the last key
    uint32_t parent
    uint32_t depth       # number of keys
    uint32_t next        # the shape that followed last time, 0 when none has
    uint32_t order       # index in orders, or UNORDERED
    bint repeats         # a key occurs twice


cdef struct Template:
    uint64_t hash
    uint32_t keys        # index in template_keys of `count` keys and then `count` ranks
    uint32_t count
    uint32_t bytes       # offset in template_bytes
    uint32_t size


cdef struct Slot:
    # Of a hash table; index is one more than what it points at, 0 when free.
    uint32_t hash
    uint32_t index


cdef struct Table:
    Slot *slots
    uint32_t mask
    uint32_t used


cdef struct Parser:
    # The document
    uint8_t *text
    size_t text_capacity
    const uint8_t *end
    const uint8_t *where     # of a fault
    uint32_t fault_key
    # The tape and the containers that are open
    Node *tape
    uint32_t tape_size
    uint32_t tape_capacity
    Frame *frames
    uint32_t frames_capacity
    uint32_t max_depth
    int duplicates
    bint dropped             # a duplicate was dropped in this row
    int id_size              # what sizes on the tape assume
    # Keys
    uint64_t seed
    uint64_t row
    Bytes key_text
    Key *keys
    uint32_t keys_count
    uint32_t keys_capacity
    Table key_table
    uint32_t *row_keys       # distinct keys of the row in order of occurrence; as long as keys
    uint32_t row_keys_count
    # Shapes
    Shape *shapes            # 0 is no shape
    uint32_t shapes_count
    uint32_t shapes_capacity
    Table shape_table
    uint32_t root_shape
    uint16_t *orders
    uint32_t orders_size
    uint32_t orders_capacity
    # Templates
    Template *templates
    uint32_t templates_count
    uint32_t current         # the template that ranks belong to, or UNORDERED
    uint32_t *template_keys
    uint32_t template_keys_size
    uint32_t template_keys_capacity
    Bytes template_bytes
    Table template_table
    # Room for sorting
    uint64_t *sorting
    size_t sorting_capacity
    Locale locale


cdef uint64_t[20] POWERS_OF_TEN
cdef double[23] EXACT_POWERS


cdef void _fill_powers() noexcept:
    cdef int i
    cdef uint64_t power = 1
    cdef double exact = 1.0
    for i in range(20):
        POWERS_OF_TEN[i] = power
        power *= 10
    for i in range(23):
        EXACT_POWERS[i] = exact
        exact *= 10.0


_fill_powers()
cdef Locale C_LOCALE = c_locale()


# --- Memory --------------------------------------------------------------------------------------

cdef int grow(void **array, size_t item, uint32_t *capacity, size_t wanted) noexcept nogil:
    """Make room for `wanted` items; 0 or FAULT_MEMORY."""
    cdef size_t enlarged = <size_t> capacity[0] * 2
    cdef void *moved
    if wanted <= capacity[0]:
        return 0
    if wanted > 0x7FFFFFFF:
        return FAULT_MEMORY
    if enlarged < wanted:
        enlarged = wanted
    if enlarged < 64:
        enlarged = 64
    moved = realloc(array[0], enlarged * item)
    if moved == NULL:
        return FAULT_MEMORY
    array[0] = moved
    capacity[0] = <uint32_t> enlarged
    return 0


cdef int table_grow(Table *table) noexcept nogil:
    """Keep the table at most half full."""
    cdef uint32_t size = 256 if table.slots == NULL else (table.mask + 1) * 2
    cdef uint32_t i, at
    cdef Slot *slots
    if table.slots != NULL and (table.used + 1) * 2 <= table.mask:
        return 0
    slots = <Slot *> malloc(size * sizeof(Slot))
    if slots == NULL:
        return FAULT_MEMORY
    memset(slots, 0, size * sizeof(Slot))
    if table.slots != NULL:
        for i in range(table.mask + 1):
            if table.slots[i].index:
                at = table.slots[i].hash & (size - 1)
                while slots[at].index:
                    at = (at + 1) & (size - 1)
                slots[at] = table.slots[i]
        free(table.slots)
    table.slots = slots
    table.mask = size - 1
    return 0


cdef inline int table_add(Table *table, uint32_t hash, uint32_t index) noexcept nogil:
    cdef uint32_t at
    if table_grow(table) != 0:
        return FAULT_MEMORY
    at = hash & table.mask
    while table.slots[at].index:
        at = (at + 1) & table.mask
    table.slots[at].hash = hash
    table.slots[at].index = index + 1
    table.used += 1
    return 0


cdef void table_clear(Table *table) noexcept nogil:
    if table.slots != NULL:
        memset(table.slots, 0, (<size_t> table.mask + 1) * sizeof(Slot))
    table.used = 0


cdef inline uint64_t mix(uint64_t h, uint64_t v) noexcept nogil:
    h = (h ^ v) * 0x9E3779B97F4A7C15ULL
    return h ^ h >> 32


cdef void forget(Parser *ps) noexcept nogil:
    """Drop what was learnt, between rows."""
    ps.key_text.size = 0
    ps.keys_count = 0
    table_clear(&ps.key_table)
    forget_shapes(ps)
    forget_templates(ps)


cdef void forget_shapes(Parser *ps) noexcept nogil:
    cdef uint32_t i
    for i in range(ps.keys_count):
        ps.keys[i].shape = 0
    table_clear(&ps.shape_table)
    ps.shapes_count = 1
    ps.shapes[0].next = 0
    ps.root_shape = 0
    ps.orders_size = 0


cdef void forget_templates(Parser *ps) noexcept nogil:
    table_clear(&ps.template_table)
    ps.templates_count = 0
    ps.current = UNORDERED
    ps.template_keys_size = 0
    ps.template_bytes.size = 0


cdef int parser_open(Parser *ps, uint32_t max_depth, int duplicates, uint64_t seed) noexcept nogil:
    memset(ps, 0, sizeof(Parser))
    ps.max_depth = max_depth
    ps.duplicates = duplicates
    ps.seed = seed
    ps.id_size = 1
    ps.current = UNORDERED
    ps.locale = C_LOCALE
    ps.templates = <Template *> malloc(MAX_TEMPLATES * sizeof(Template))
    if ps.templates == NULL:
        return FAULT_MEMORY
    if grow(<void **> &ps.shapes, sizeof(Shape), &ps.shapes_capacity, 64) != 0:
        return FAULT_MEMORY
    memset(ps.shapes, 0, sizeof(Shape))
    ps.shapes_count = 1
    if table_grow(&ps.key_table) != 0 or table_grow(&ps.shape_table) != 0 or table_grow(&ps.template_table) != 0:
        return FAULT_MEMORY
    if grow(<void **> &ps.tape, sizeof(Node), &ps.tape_capacity, 1024) != 0:
        return FAULT_MEMORY
    return grow(<void **> &ps.frames, sizeof(Frame), &ps.frames_capacity, 64)


cdef void parser_close(Parser *ps) noexcept nogil:
    free(ps.text)
    free(ps.tape)
    free(ps.frames)
    free(ps.keys)
    free(ps.row_keys)
    free(ps.shapes)
    free(ps.orders)
    free(ps.templates)
    free(ps.template_keys)
    free(ps.sorting)
    free(ps.key_table.slots)
    free(ps.shape_table.slots)
    free(ps.template_table.slots)
    bytes_free(&ps.key_text)
    bytes_free(&ps.template_bytes)


# --- Keys ----------------------------------------------------------------------------------------

cdef inline const uint8_t *key_name(const Parser *ps, uint32_t key) noexcept nogil:
    return ps.key_text.data + ps.keys[key].text + 1


cdef uint32_t name_hash(const Parser *ps, const uint8_t *name, size_t length) noexcept nogil:
    cdef uint64_t h = mix(ps.seed, length)
    cdef uint64_t last = 0
    cdef size_t i
    while length >= 8:
        h = mix(h, load64(name))
        name += 8
        length -= 8
    for i in range(length):
        last |= <uint64_t> name[i] << (8 * i)
    h = mix(h, last)
    h = mix(h, h >> 29)
    return <uint32_t> h


cdef int64_t intern(Parser *ps, const uint8_t *name, size_t length) noexcept nogil:
    """The number of the key `name`, a new one when it is met for the first time, or FAULT_MEMORY."""
    cdef uint32_t hash = name_hash(ps, name, length)
    cdef uint32_t at = hash & ps.key_table.mask
    cdef uint32_t index, before
    cdef size_t i
    cdef Key *key
    while ps.key_table.slots[at].index:
        if ps.key_table.slots[at].hash == hash:
            index = ps.key_table.slots[at].index - 1
            key = &ps.keys[index]
            if key.length == length and (length == 0 or memcmp(key_name(ps, index), name, length) == 0):
                return index
        at = (at + 1) & ps.key_table.mask
    if ps.key_text.size + length + 2 + MARGIN > 0xFFFFFFF0U:
        return FAULT_MEMORY
    before = ps.keys_capacity
    if grow(<void **> &ps.keys, sizeof(Key), &before, <size_t> ps.keys_count + 1) != 0:
        return FAULT_MEMORY
    if grow(<void **> &ps.row_keys, sizeof(uint32_t), &ps.keys_capacity, <size_t> ps.keys_count + 1) != 0:
        return FAULT_MEMORY
    if bytes_reserve(&ps.key_text, length + 2 + MARGIN) != 0:
        return FAULT_MEMORY
    index = ps.keys_count
    key = &ps.keys[index]
    key.prefix = 0
    for i in range(8):
        key.prefix = key.prefix << 8 | (name[i] if i < length else 0)
    key.row = 0
    key.text = <uint32_t> ps.key_text.size
    key.length = <uint32_t> length
    key.match = <uint32_t> length + 2
    key.rank = 0
    key.shape = 0
    ps.key_text.data[ps.key_text.size] = c'"'
    if length:
        memcpy(ps.key_text.data + ps.key_text.size + 1, name, length)
    ps.key_text.data[ps.key_text.size + 1 + length] = c'"'
    memset(ps.key_text.data + ps.key_text.size + 2 + length, 0, MARGIN)
    ps.key_text.size += length + 2
    # The margin is overwritten by the next key: comparisons mask what lies beyond the closing quote.
    for i in range(length):
        if name[i] < 0x20 or name[i] == c'"' or name[i] == c'\\':
            key.match = 0
    if table_add(&ps.key_table, hash, index) != 0:
        return FAULT_MEMORY
    ps.keys_count += 1
    return index


cdef int64_t shape_after(Parser *ps, uint32_t shape, uint32_t key) noexcept nogil:
    """The shape that follows `shape` by `key`: 0 when the store is full, or FAULT_MEMORY."""
    cdef uint64_t h = mix(mix(0, shape), key)
    cdef uint32_t hash = <uint32_t> mix(h, h >> 29)
    cdef uint32_t at = hash & ps.shape_table.mask
    cdef uint32_t index
    if shape == 0:
        return 0
    while ps.shape_table.slots[at].index:
        if ps.shape_table.slots[at].hash == hash:
            index = ps.shape_table.slots[at].index - 1
            if ps.shapes[index].parent == shape and ps.shapes[index].key == key:
                return index
        at = (at + 1) & ps.shape_table.mask
    if ps.shapes_count >= MAX_SHAPES or ps.shapes[shape].depth >= MAX_SHAPE_DEPTH:
        return 0
    index = ps.shapes_count
    if new_shape(ps, shape, key, ps.shapes[shape].depth + 1) != 0 or table_add(&ps.shape_table, hash, index) != 0:
        return FAULT_MEMORY
    return index


cdef int new_shape(Parser *ps, uint32_t parent, uint32_t key, uint32_t depth) noexcept nogil:
    cdef Shape *shape
    if grow(<void **> &ps.shapes, sizeof(Shape), &ps.shapes_capacity, <size_t> ps.shapes_count + 1) != 0:
        return FAULT_MEMORY
    shape = &ps.shapes[ps.shapes_count]
    shape.key = key
    shape.parent = parent
    shape.depth = depth
    shape.next = 0
    shape.order = UNORDERED
    shape.repeats = False
    ps.shapes_count += 1
    return 0


cdef inline int64_t root_shape(Parser *ps, uint32_t key) noexcept nogil:
    """The empty shape of objects under `key` (UNORDERED: at the top), or 0, or FAULT_MEMORY."""
    cdef uint32_t *root = &ps.root_shape if key == UNORDERED else &ps.keys[key].shape
    if root[0] == 0 and ps.shapes_count < MAX_SHAPES:
        if new_shape(ps, 0, 0, 0) != 0:
            return FAULT_MEMORY
        root[0] = ps.shapes_count - 1
    return root[0]


cdef inline void note_key(Parser *ps, uint32_t key) noexcept nogil:
    """Count the key among those of this row."""
    if ps.keys[key].row != ps.row:
        ps.keys[key].row = ps.row
        ps.row_keys[ps.row_keys_count] = key
        ps.row_keys_count += 1


# --- Sorting -------------------------------------------------------------------------------------

cdef int sorting_room(Parser *ps, size_t count) noexcept nogil:
    cdef uint64_t *moved
    if count * 2 > ps.sorting_capacity:
        moved = <uint64_t *> realloc(ps.sorting, count * 4 * sizeof(uint64_t))
        if moved == NULL:
            return FAULT_MEMORY
        ps.sorting = moved
        ps.sorting_capacity = count * 4
    return 0


cdef inline bint key_before(const Parser *ps, uint32_t a, uint32_t b) noexcept nogil:
    """Is the name of key `a` before that of `b` by unsigned bytes?"""
    if ps.keys[a].prefix != ps.keys[b].prefix:
        return ps.keys[a].prefix < ps.keys[b].prefix
    return bytes_compare(key_name(ps, a), ps.keys[a].length, key_name(ps, b), ps.keys[b].length) < 0


cdef uint64_t *merge_sort(Parser *ps, size_t count, bint by_name) noexcept nogil:
    """Sort ps.sorting[:count] by value, or by the names of the keys in the upper halves; stable.

    Returns where the result lies: in the first or the second half of the room.
    """
    cdef uint64_t *source = ps.sorting
    cdef uint64_t *target = ps.sorting + count
    cdef uint64_t *other
    cdef size_t width = 1, low, middle, high, i, j, k
    cdef bint second
    while width < count:
        low = 0
        while low < count:
            middle = low + width if low + width < count else count
            high = middle + width if middle + width < count else count
            i = low
            j = middle
            for k in range(low, high):
                if i >= middle:
                    second = True
                elif j >= high:
                    second = False
                elif by_name:
                    second = key_before(ps, <uint32_t> (source[j] >> 32), <uint32_t> (source[i] >> 32))
                else:
                    second = source[j] < source[i]
                if second:
                    target[k] = source[j]
                    j += 1
                else:
                    target[k] = source[i]
                    i += 1
            low = high
        other = source
        source = target
        target = other
        width *= 2
    return source


cdef int order_shape(Parser *ps, uint32_t shape) noexcept nogil:
    """Work out the sorted order of a shape's fields: position in the object -> position by name."""
    cdef uint32_t depth = ps.shapes[shape].depth
    cdef uint32_t i, at
    cdef uint64_t *ordered
    if ps.orders_size + depth > MAX_ORDERS:
        return 0
    if sorting_room(ps, depth) != 0:
        return FAULT_MEMORY
    if grow(<void **> &ps.orders, sizeof(uint16_t), &ps.orders_capacity, <size_t> ps.orders_size + depth) != 0:
        return FAULT_MEMORY
    at = shape
    i = depth
    while i > 0:
        i -= 1
        ps.sorting[i] = <uint64_t> ps.shapes[at].key << 32 | i
        at = ps.shapes[at].parent
    ordered = merge_sort(ps, depth, True)
    for i in range(depth):
        ps.orders[ps.orders_size + <uint32_t> ordered[i]] = <uint16_t> i
        if i and ordered[i] >> 32 == ordered[i - 1] >> 32:
            ps.shapes[shape].repeats = True
    ps.shapes[shape].order = ps.orders_size
    ps.orders_size += depth
    return 0


# --- Numbers -------------------------------------------------------------------------------------

cdef inline int digit_count(uint64_t word) noexcept nogil:
    """How many of the word's bytes, from the first, are decimal digits."""
    cdef uint64_t v = word ^ 0x3030303030303030ULL
    cdef uint64_t others = ((v + 0x7676767676767676ULL) | v) & 0x8080808080808080ULL
    return lowest_bit(others) >> 3 if others else 8


cdef inline uint64_t digits_value(uint64_t word, int count) noexcept nogil:
    """The number that the first `count` (1 to 8) bytes of the word spell."""
    # As eight digits with zeros in front; neighbours are joined to 2, then 4, then 8 digits.
    cdef uint64_t v = (word ^ 0x3030303030303030ULL) << (64 - 8 * count)
    v = v * 10 + (v >> 8)
    return (
        (v & 0x000000FF000000FFULL) * (100 + (1000000ULL << 32))
        + ((v >> 16) & 0x000000FF000000FFULL) * (1 + (10000ULL << 32))
    ) >> 32


cdef inline void set_int(Node *node, uint64_t magnitude, bint negative) noexcept nogil:
    """`magnitude` is at most 2**63, and 2**63 only when negative."""
    cdef uint64_t payload = 0 - magnitude if negative else magnitude
    cdef uint64_t folded = magnitude - negative    # -2**(n-1) is as short as 2**(n-1) - 1
    if negative and magnitude == 0:
        folded = 0
    node.kind = NODE_FIXED
    node.payload = payload
    if folded <= 0x7F:
        node.header = TYPE_INT8 << 2
        node.size = 2
    elif folded <= 0x7FFF:
        node.header = TYPE_INT16 << 2
        node.size = 3
    elif folded <= 0x7FFFFFFF:
        node.header = TYPE_INT32 << 2
        node.size = 5
    else:
        node.header = TYPE_INT64 << 2
        node.size = 9


cdef inline void set_double(Node *node, double value) noexcept nogil:
    node.kind = NODE_FIXED
    node.header = TYPE_DOUBLE << 2
    node.size = 9
    memcpy(&node.payload, &value, 8)


cdef const uint8_t *parse_long_number(Parser *ps, const uint8_t *start, Node *node) noexcept nogil:
    """A number of any length and form from its first character; NULL with ps.where set when it is malformed.

    Up to 38 digits with at most 38 after the point stay exact unless there is an exponent.
    """
    cdef const uint8_t *p = start
    cdef const uint8_t *digits
    cdef bint negative = p[0] == c'-'
    cdef bint exact = True, exponent_negative = False
    cdef uint64_t high = 0, low = 0
    cdef uint32_t precision = 0, fraction = 0
    cdef int64_t exponent = 0, scale10
    cdef double value
    p += negative
    digits = p
    while c'0' <= p[0] <= c'9':
        if precision or p[0] != c'0':
            precision += 1
            if precision <= 38:
                append_digit(&high, &low, p[0] - c'0')
        p += 1
    if p == digits:
        ps.where = p
        return NULL
    if digits[0] == c'0' and p - digits > 1:
        ps.where = digits
        return NULL
    if p[0] == c'.':
        p += 1
        digits = p
        while c'0' <= p[0] <= c'9':
            if precision or p[0] != c'0':
                precision += 1
                if precision <= 38:
                    append_digit(&high, &low, p[0] - c'0')
            p += 1
        fraction = <uint32_t> (p - digits)
        if fraction == 0:
            ps.where = p
            return NULL
    if p[0] == c'e' or p[0] == c'E':
        exact = False
        p += 1
        if p[0] == c'+' or p[0] == c'-':
            exponent_negative = p[0] == c'-'
            p += 1
        digits = p
        while c'0' <= p[0] <= c'9':
            if exponent < 1000000:
                exponent = exponent * 10 + (p[0] - c'0')
            p += 1
        if p == digits:
            ps.where = p
            return NULL
        if exponent_negative:
            exponent = -exponent
    node.span = 1
    if exact and precision <= 38 and fraction <= 38:
        if fraction == 0 and high == 0 and low <= <uint64_t> INT64_MAX + negative:
            set_int(node, low, negative)
            return p
        node.scale = <uint8_t> fraction
        if fraction <= 9 and high == 0 and low <= 999999999ULL:
            node.kind = NODE_DECIMAL
            node.header = TYPE_DECIMAL4 << 2
            node.size = 6
            node.payload = 0 - low if negative else low
        elif fraction <= 18 and high == 0 and low <= 999999999999999999ULL:
            node.kind = NODE_DECIMAL
            node.header = TYPE_DECIMAL8 << 2
            node.size = 10
            node.payload = 0 - low if negative else low
        else:
            node.kind = NODE_DECIMAL16
            node.size = 18
            node.payload = <uint64_t> start
            node.length = <uint32_t> (p - start)
        return p
    scale10 = exponent - fraction
    if precision <= 19 and low <= (1ULL << 53) and -22 <= scale10 <= 22:
        # Both operands are exact, so that the result is rounded once.
        value = <double> low
        value = value / EXACT_POWERS[-scale10] if scale10 < 0 else value * EXACT_POWERS[scale10]
        if negative:
            value = -value
    else:
        value = strtod_c(<const char *> start, ps.locale)
        if value - value != 0.0:
            ps.where = start
            return NULL
    set_double(node, value)
    return p


cdef inline const uint8_t *parse_number(Parser *ps, const uint8_t *start, Node *node) noexcept nogil:
    """As `parse_long_number`, quick for up to 19 digits without an exponent."""
    cdef const uint8_t *p = start
    cdef bint negative = p[0] == c'-'
    cdef uint64_t word, value
    cdef int count, digits, fraction
    p += negative
    word = load64(p)
    count = digit_count(word)
    if count == 0 or (p[0] == c'0' and count > 1):
        return parse_long_number(ps, start, node)
    value = digits_value(word, count)
    p += count
    digits = count
    while count == 8:
        word = load64(p)
        count = digit_count(word)
        digits += count
        if digits > 19:
            return parse_long_number(ps, start, node)
        if count:
            value = value * POWERS_OF_TEN[count] + digits_value(word, count)
            p += count
    node.span = 1
    if p[0] == c'.':
        p += 1
        fraction = 0
        count = 8
        while count == 8:
            word = load64(p)
            count = digit_count(word)
            fraction += count
            digits += count
            if digits > 19:
                return parse_long_number(ps, start, node)
            if count:
                value = value * POWERS_OF_TEN[count] + digits_value(word, count)
                p += count
        if fraction == 0 or fraction > 18 or p[0] | 0x20 == c'e' or value > 999999999999999999ULL:
            return parse_long_number(ps, start, node)
        node.kind = NODE_DECIMAL
        node.scale = <uint8_t> fraction
        if fraction <= 9 and value <= 999999999ULL:
            node.header = TYPE_DECIMAL4 << 2
            node.size = 6
        else:
            node.header = TYPE_DECIMAL8 << 2
            node.size = 10
        node.payload = 0 - value if negative else value
        return p
    if p[0] | 0x20 == c'e' or value > <uint64_t> INT64_MAX:
        return parse_long_number(ps, start, node)
    set_int(node, value, negative)
    return p


# --- Strings -------------------------------------------------------------------------------------

cdef inline int hex_digit(uint8_t c) noexcept nogil:
    if c'0' <= c <= c'9':
        return c - c'0'
    c |= 0x20
    if c'a' <= c <= c'f':
        return c - c'a' + 10
    return -1


cdef inline int32_t hex4(const uint8_t *p) noexcept nogil:
    """The value of four hexadecimal digits, or -1; stops at the first that is none."""
    cdef int32_t v = 0
    cdef int i, digit
    for i in range(4):
        digit = hex_digit(p[i])
        if digit < 0:
            return -1
        v = v << 4 | digit
    return v


cdef int unescape(Parser *ps, uint8_t **position, size_t *length) noexcept nogil:
    """Resolve the escapes of the string that starts at *position, in place, from its first backslash on.

    Gives the length of the text and moves *position to the closing quote; 0 or a `JsonFault`.
    """
    cdef uint8_t *start = position[0]
    cdef uint8_t *p = <uint8_t *> find_special(start)
    cdef uint8_t *to = p
    cdef uint8_t *plain
    cdef int32_t code, low
    cdef uint8_t c
    while p[0] != c'"':
        if p[0] != c'\\':
            ps.where = p
            return JSON_UNTERMINATED if p >= ps.end else JSON_CONTROL
        c = p[1]
        if c == c'u':
            code = hex4(p + 2)
            if code < 0:
                ps.where = p
                return JSON_ESCAPE
            if 0xD800 <= code < 0xE000:
                low = hex4(p + 8) if code < 0xDC00 and p[6] == c'\\' and p[7] == c'u' else -1
                if not 0xDC00 <= low < 0xE000:
                    ps.where = p
                    return JSON_SURROGATE
                code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))
                p += 6
            p += 6
            if code < 0x80:
                to[0] = <uint8_t> code
                to += 1
            elif code < 0x800:
                to[0] = <uint8_t> (0xC0 | code >> 6)
                to[1] = <uint8_t> (0x80 | (code & 0x3F))
                to += 2
            elif code < 0x10000:
                to[0] = <uint8_t> (0xE0 | code >> 12)
                to[1] = <uint8_t> (0x80 | (code >> 6 & 0x3F))
                to[2] = <uint8_t> (0x80 | (code & 0x3F))
                to += 3
            else:
                to[0] = <uint8_t> (0xF0 | code >> 18)
                to[1] = <uint8_t> (0x80 | (code >> 12 & 0x3F))
                to[2] = <uint8_t> (0x80 | (code >> 6 & 0x3F))
                to[3] = <uint8_t> (0x80 | (code & 0x3F))
                to += 4
        else:
            if c == c'n':
                to[0] = c'\n'
            elif c == c'"' or c == c'\\' or c == c'/':
                to[0] = c
            elif c == c't':
                to[0] = c'\t'
            elif c == c'r':
                to[0] = c'\r'
            elif c == c'b':
                to[0] = 0x08
            elif c == c'f':
                to[0] = 0x0C
            else:
                ps.where = p
                return JSON_UNTERMINATED if p + 1 >= ps.end else JSON_ESCAPE
            to += 1
            p += 2
        plain = p
        p = <uint8_t *> find_special(p)
        if p > plain:
            memmove(to, plain, p - plain)
            to += p - plain
    length[0] = to - start
    position[0] = p
    return 0


cdef inline int parse_string(Parser *ps, uint8_t **position, const uint8_t **text, size_t *length) noexcept nogil:
    """The string whose opening quote is at *position, which moves behind the closing one; 0 or a `JsonFault`."""
    cdef uint8_t *start = position[0] + 1
    cdef uint8_t *stop = <uint8_t *> find_special(start)
    cdef int status
    text[0] = start
    if stop[0] == c'"':
        length[0] = stop - start
        position[0] = stop + 1
        return 0
    if stop[0] != c'\\':
        ps.where = stop
        return JSON_UNTERMINATED if stop >= ps.end else JSON_CONTROL
    stop = start
    status = unescape(ps, &stop, length)
    position[0] = stop + 1
    return status


# --- Documents -----------------------------------------------------------------------------------

cdef inline uint8_t *skip_space(uint8_t *p) noexcept nogil:
    while p[0] <= 0x20 and (p[0] == 0x20 or p[0] == 0x0A or p[0] == 0x0D or p[0] == 0x09):
        p += 1
    return p


cdef int parse_new_key(Parser *ps, Frame *frame, uint8_t **position, uint32_t *key) noexcept nogil:
    """The key at *position that was not predicted; 0, a `JsonFault` or FAULT_MEMORY."""
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
    found = intern(ps, name, length)
    if found < 0:
        return FAULT_MEMORY
    key[0] = <uint32_t> found
    found = shape_after(ps, frame.shape, key[0])
    if found < 0:
        return FAULT_MEMORY
    if frame.shape:
        ps.shapes[frame.shape].next = <uint32_t> found
    frame.shape = <uint32_t> found
    return 0


cdef inline int parse_key(Parser *ps, Frame *frame, uint8_t **position, uint32_t *key) noexcept nogil:
    """A key with the colon and the space around it; 0, a `JsonFault` or FAULT_MEMORY."""
    cdef uint8_t *p = position[0]
    cdef uint32_t next = ps.shapes[frame.shape].next
    cdef const uint8_t *expected
    cdef const Key *candidate
    cdef uint32_t left
    cdef int status
    cdef bint matched = False
    if next:
        key[0] = ps.shapes[next].key
        candidate = &ps.keys[key[0]]
        left = candidate.match
        expected = ps.key_text.data + candidate.text
        while left > 8 and load64(p) == load64(expected):
            p += 8
            expected += 8
            left -= 8
        # Zero is the length of names that must not be compared.
        if 1 <= left <= 8 and (load64(p) ^ load64(expected)) << (64 - 8 * left) == 0:
            p += left
            frame.shape = next
            matched = True
    if not matched:
        status = parse_new_key(ps, frame, position, key)
        if status != 0:
            return status
        p = position[0]
    note_key(ps, key[0])
    if p[0] != c':':
        p = skip_space(p)
        if p[0] != c':':
            ps.where = p
            return JSON_END if p >= ps.end else JSON_COLON
    position[0] = skip_space(p + 1)
    return 0


cdef int drop_duplicates(Parser *ps, Frame *frame) noexcept nogil:
    """Find keys that repeat in the object just ended; refuse them or drop all but one of each."""
    cdef Node *children = ps.tape + frame.node + 1
    cdef uint32_t count = frame.count
    cdef uint32_t i, at, target, span
    cdef uint64_t *ordered
    cdef uint64_t previous, kept
    cdef bint found = False
    if sorting_room(ps, count) != 0:
        return FAULT_MEMORY
    at = 0
    for i in range(count):
        ps.sorting[i] = <uint64_t> children[at].key << 32 | i
        at += children[at].span
    ordered = merge_sort(ps, count, False)
    for i in range(1, count):
        if ordered[i] >> 32 == ordered[i - 1] >> 32:
            found = True
            if ps.duplicates == DUPLICATES_ERROR:
                ps.where = ps.text + frame.start
                ps.fault_key = <uint32_t> (ordered[i] >> 32)
                return JSON_DUPLICATE
    if not found:
        return 0
    # Back to the order of the document, each index with a bit for whether its field stays.
    previous = ~ordered[0]
    for i in range(count):
        if ps.duplicates == DUPLICATES_LAST:
            kept = i + 1 == count or ordered[i] >> 32 != ordered[i + 1] >> 32
        else:
            kept = ordered[i] >> 32 != previous >> 32
        previous = ordered[i]
        ordered[i] = (ordered[i] & 0xFFFFFFFFULL) << 1 | kept
    if ordered != ps.sorting:
        memcpy(ps.sorting, ordered, count * sizeof(uint64_t))
    ordered = merge_sort(ps, count, False)
    at = 0
    target = 0
    for i in range(count):
        span = children[at].span
        if ordered[i] & 1:
            if target != at:
                memmove(children + target, children + at, span * sizeof(Node))
            target += span
        else:
            frame.size -= children[at].size
            frame.count -= 1
        at += span
    ps.tape_size = frame.node + 1 + target
    ps.dropped = True
    return 0


cdef inline int close_container(Parser *ps, Frame *frame) noexcept nogil:
    """Complete the node of the container just ended; 0, a `JsonFault` or FAULT_MEMORY."""
    cdef Node *node
    cdef uint64_t size
    cdef int status
    cdef uint32_t shape
    if frame.is_object:
        shape = frame.shape
        if shape and ps.shapes[shape].order == UNORDERED:
            if order_shape(ps, shape) != 0:
                return FAULT_MEMORY
            if ps.shapes[shape].order == UNORDERED:
                frame.shape = 0
        if frame.shape == 0 or ps.shapes[shape].repeats:
            frame.shape = 0
            status = drop_duplicates(ps, frame)
            if status != 0:
                return status
    if frame.size > 0x7FFFFFFF:
        ps.where = ps.text + frame.start
        return JSON_SIZE
    node = ps.tape + frame.node
    size = frame.size + container_head_size(
        frame.count, ps.id_size if frame.is_object else 0, uint_size(<uint32_t> frame.size)
    )
    if size > 0x7FFFFFFF:
        ps.where = ps.text + frame.start
        return JSON_SIZE
    node.kind = NODE_OBJECT if frame.is_object else NODE_ARRAY
    node.payload = frame.shape
    node.length = frame.count
    node.span = ps.tape_size - frame.node
    node.size = <uint32_t> size
    return 0


cdef int parse_document(Parser *ps) noexcept nogil:
    """Fill the tape from ps.text; 0, a `JsonFault` with ps.where set, or FAULT_MEMORY."""
    cdef uint8_t *p = skip_space(ps.text)
    cdef Frame *frame = NULL
    cdef Node *node
    cdef uint32_t depth = 0, key = UNORDERED, context = UNORDERED
    cdef const uint8_t *text
    cdef size_t length
    cdef int64_t root
    cdef int status
    cdef uint8_t c
    ps.tape_size = 0
    ps.row_keys_count = 0
    ps.dropped = False
    if p >= ps.end:
        ps.where = p
        return JSON_EMPTY
    while True:
        # A value starts at p.
        if ps.tape_size == ps.tape_capacity:
            if grow(<void **> &ps.tape, sizeof(Node), &ps.tape_capacity, <size_t> ps.tape_size + 1) != 0:
                return FAULT_MEMORY
        node = ps.tape + ps.tape_size
        ps.tape_size += 1
        node.key = key
        c = p[0]
        if c == c'"':
            status = parse_string(ps, &p, &text, &length)
            if status != 0:
                return status
            if length > 0x7FFFFFF0:
                ps.where = text
                return JSON_SIZE
            node.kind = NODE_STRING
            node.payload = <uint64_t> text
            node.length = <uint32_t> length
            node.size = <uint32_t> string_value_size(length)
            node.span = 1
        elif c == c'{' or c == c'[':
            if depth >= ps.max_depth:
                ps.where = p
                return JSON_DEPTH
            if depth == ps.frames_capacity:
                if grow(<void **> &ps.frames, sizeof(Frame), &ps.frames_capacity, <size_t> depth + 1) != 0:
                    return FAULT_MEMORY
            if frame != NULL:
                context = ps.frames[depth - 1].key if not ps.frames[depth - 1].is_object else key
            frame = ps.frames + depth
            depth += 1
            frame.size = 0
            frame.node = ps.tape_size - 1
            frame.count = 0
            frame.key = context
            frame.start = <uint32_t> (p - ps.text)
            frame.is_object = c == c'{'
            frame.shape = 0
            p = skip_space(p + 1)
            if frame.is_object:
                root = root_shape(ps, context)
                if root < 0:
                    return FAULT_MEMORY
                frame.shape = <uint32_t> root
                if p[0] != c'}':
                    status = parse_key(ps, frame, &p, &key)
                    if status != 0:
                        return status
                    continue
            elif p[0] != c']':
                continue
            # An empty container ends where a separator may stand; it is no child of itself.
            node = NULL
        elif c == c'-' or c'0' <= c <= c'9':
            text = parse_number(ps, p, node)
            if text == NULL:
                if ps.where == p:
                    return JSON_RANGE
                if ps.where >= ps.end:
                    return JSON_END
                return JSON_LEADING_ZERO if c'0' <= ps.where[0] <= c'9' else JSON_NUMBER
            p = <uint8_t *> text
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
                return JSON_LITERAL if c == c'n' or c == c't' or c == c'f' else JSON_VALUE
        # A value has ended before p: it belongs to the innermost container, which may end too.
        while True:
            if node != NULL:
                if frame == NULL:
                    p = skip_space(p)
                    if p < ps.end:
                        ps.where = p
                        return JSON_TRAILING
                    return 0
                frame.count += 1
                frame.size += node.size
                p = skip_space(p)
                c = p[0]
                if c == c',':
                    p = skip_space(p + 1)
                    if frame.is_object:
                        status = parse_key(ps, frame, &p, &key)
                        if status != 0:
                            return status
                    break
            if p[0] != (c'}' if frame.is_object else c']'):
                ps.where = p
                if p >= ps.end:
                    return JSON_END
                return JSON_OBJECT_SEPARATOR if frame.is_object else JSON_ARRAY_SEPARATOR
            p += 1
            status = close_container(ps, frame)
            if status != 0:
                return status
            node = ps.tape + frame.node
            depth -= 1
            frame = ps.frames + depth - 1 if depth else NULL


# --- Dictionaries --------------------------------------------------------------------------------

cdef void collect_row_keys(Parser *ps) noexcept nogil:
    """Find the row's keys again, after some nodes were dropped."""
    cdef uint32_t i
    ps.row += 1
    ps.row_keys_count = 0
    for i in range(ps.tape_size):
        if ps.tape[i].key != UNORDERED:
            note_key(ps, ps.tape[i].key)


cdef int new_template(Parser *ps, uint64_t hash) noexcept nogil:
    """Sort the row's keys and write their metadata."""
    cdef uint32_t count = ps.row_keys_count
    cdef uint32_t i, key
    cdef uint64_t strings = 0, at
    cdef size_t total
    cdef int size
    cdef uint64_t *ordered
    cdef Template *template
    cdef uint8_t *p
    if ps.templates_count >= MAX_TEMPLATES or ps.template_bytes.size > MAX_TEMPLATE_BYTES:
        forget_templates(ps)
    for i in range(count):
        strings += ps.keys[ps.row_keys[i]].length
    if strings > 0x7FFFFFFF:
        ps.where = ps.text
        return JSON_SIZE
    size = uint_size(<uint32_t> strings if strings > count else count)
    total = 1 + (<size_t> count + 2) * <size_t> size + strings
    if total > 0x7FFFFFFF:
        ps.where = ps.text
        return JSON_SIZE
    if sorting_room(ps, count) != 0 or bytes_reserve(&ps.template_bytes, total) != 0:
        return FAULT_MEMORY
    if grow(
        <void **> &ps.template_keys, sizeof(uint32_t), &ps.template_keys_capacity,
        <size_t> ps.template_keys_size + 2 * <size_t> count,
    ) != 0:
        return FAULT_MEMORY
    for i in range(count):
        ps.sorting[i] = <uint64_t> ps.row_keys[i] << 32 | i
    ordered = merge_sort(ps, count, True)
    template = &ps.templates[ps.templates_count]
    template.hash = hash
    template.keys = ps.template_keys_size
    template.count = count
    template.bytes = <uint32_t> ps.template_bytes.size
    template.size = <uint32_t> total
    p = ps.template_bytes.data + ps.template_bytes.size
    p[0] = <uint8_t> (0x11 | (size - 1) << 6)
    write_uint(p + 1, count, size)
    p += 1 + size
    at = 0
    write_uint(p, 0, size)
    for i in range(count):
        key = <uint32_t> (ordered[i] >> 32)
        ps.template_keys[template.keys + <uint32_t> ordered[i]] = key
        ps.template_keys[template.keys + count + <uint32_t> ordered[i]] = i
        at += ps.keys[key].length
        p += size
        write_uint(p, <uint32_t> at, size)
    p += size
    for i in range(count):
        key = <uint32_t> (ordered[i] >> 32)
        if ps.keys[key].length:
            memcpy(p, key_name(ps, key), ps.keys[key].length)
            p += ps.keys[key].length
    ps.template_keys_size += 2 * count
    ps.template_bytes.size += total
    if table_add(&ps.template_table, <uint32_t> hash, ps.templates_count) != 0:
        return FAULT_MEMORY
    ps.templates_count += 1
    return 0


cdef inline bint template_fits(const Parser *ps, uint32_t index) noexcept nogil:
    cdef const Template *template = &ps.templates[index]
    return template.count == ps.row_keys_count and memcmp(
        ps.template_keys + template.keys, ps.row_keys, template.count * sizeof(uint32_t)
    ) == 0


cdef int choose_template(Parser *ps) noexcept nogil:
    """Make ps.current the template of the row's keys and give the keys their ranks."""
    cdef uint64_t hash
    cdef uint32_t i, at, found = UNORDERED
    cdef const uint32_t *keys
    cdef int status
    if ps.row_keys_count and ps.current != UNORDERED and template_fits(ps, ps.current):
        return 0
    hash = mix(ps.seed, ps.row_keys_count)
    for i in range(ps.row_keys_count):
        hash = mix(hash, ps.row_keys[i])
    hash = mix(hash, hash >> 29)
    at = <uint32_t> hash & ps.template_table.mask
    while ps.template_table.slots[at].index:
        i = ps.template_table.slots[at].index - 1
        if ps.templates[i].hash == hash and (ps.row_keys_count == 0 or template_fits(ps, i)):
            if ps.templates[i].count == ps.row_keys_count:
                found = i
                break
        at = (at + 1) & ps.template_table.mask
    if found == UNORDERED:
        status = new_template(ps, hash)
        if status != 0:
            return status
        found = ps.templates_count - 1
    keys = ps.template_keys + ps.templates[found].keys
    for i in range(ps.row_keys_count):
        ps.keys[keys[i]].rank = keys[ps.row_keys_count + i]
    ps.current = found
    return 0


cdef int resize_containers(Parser *ps, int id_size) noexcept nogil:
    """Work out all sizes again for field ids of `id_size` bytes."""
    cdef uint32_t i = ps.tape_size
    cdef uint32_t j
    cdef uint64_t size
    cdef Node *node
    cdef Node *child
    while i > 0:
        i -= 1
        node = ps.tape + i
        if node.kind == NODE_OBJECT or node.kind == NODE_ARRAY:
            size = 0
            child = node + 1
            for j in range(node.length):
                size += child.size
                child += child.span
            if size <= 0x7FFFFFFF:
                size += container_head_size(
                    node.length, id_size if node.kind == NODE_OBJECT else 0, uint_size(<uint32_t> size)
                )
            if size > 0x7FFFFFFF:
                ps.where = ps.text
                return JSON_SIZE
            node.size = <uint32_t> size
    ps.id_size = id_size
    return 0


# --- Emission ------------------------------------------------------------------------------------

cdef int order_fields(Parser *ps, const Node *node, uint8_t *ids, uint8_t *offsets, int id_size,
                      int offset_size) noexcept nogil:
    """Write the ids and offsets of an object without a shape."""
    cdef const Node *child = node + 1
    cdef uint64_t *ordered
    cdef uint32_t i, at = 0
    cdef uint32_t *starts
    if sorting_room(ps, <size_t> node.length * 2) != 0:
        return FAULT_MEMORY
    # Behind the two halves that sorting takes there is room for the children's offsets.
    starts = <uint32_t *> (ps.sorting + 2 * <size_t> node.length)
    for i in range(node.length):
        ps.sorting[i] = <uint64_t> ps.keys[child.key].rank << 32 | i
        starts[i] = at
        at += child.size
        child += child.span
    ordered = merge_sort(ps, node.length, False)
    for i in range(node.length):
        write_uint(ids + <size_t> i * <size_t> id_size, <uint32_t> (ordered[i] >> 32), id_size)
        write_uint(offsets + <size_t> i * <size_t> offset_size, starts[<uint32_t> ordered[i]], offset_size)
    return 0


cdef inline uint8_t *write_decimal16(uint8_t *p, const uint8_t *text, uint32_t length, uint8_t scale) noexcept nogil:
    cdef uint64_t high = 0, low = 0
    cdef uint32_t i
    for i in range(length):
        if c'0' <= text[i] <= c'9':
            append_digit(&high, &low, text[i] - c'0')
    if text[0] == c'-':
        low = ~low + 1
        high = ~high + (low == 0)
    p[0] = TYPE_DECIMAL16 << 2
    p[1] = scale
    store64(p + 2, low)
    store64(p + 10, high)
    return p + 18


cdef int emit(Parser *ps, uint8_t *p) noexcept nogil:
    """Write the tape at p, where the root's size and MARGIN bytes are free; 0 or FAULT_MEMORY."""
    cdef const Node *node = ps.tape
    cdef const Node *end = ps.tape + ps.tape_size
    cdef const Node *child
    cdef const uint16_t *order
    cdef uint8_t *ids
    cdef uint8_t *offsets
    cdef uint32_t i, at, values
    cdef int id_size = ps.id_size, offset_size
    while node < end:
        if node.kind == NODE_FIXED:
            p[0] = node.header
            store64(p + 1, node.payload)
            p += node.size
        elif node.kind == NODE_STRING:
            p = write_string_head(p, node.length)
            copy_over(p, <const uint8_t *> node.payload, node.length)
            p += node.length
        elif node.kind == NODE_DECIMAL:
            p[0] = node.header
            p[1] = node.scale
            store64(p + 2, node.payload)
            p += node.size
        elif node.kind == NODE_DECIMAL16:
            p = write_decimal16(p, <const uint8_t *> node.payload, node.length, node.scale)
        elif node.kind == NODE_OBJECT:
            values = 0
            child = node + 1
            for i in range(node.length):
                values += child.size
                child += child.span
            offset_size = uint_size(values)
            ids = write_object_head(p, node.length, id_size, offset_size)
            offsets = ids + <size_t> node.length * <size_t> id_size
            p = offsets + (<size_t> node.length + 1) * <size_t> offset_size
            write_uint(p - offset_size, values, offset_size)
            if node.payload == 0:
                if order_fields(ps, node, ids, offsets, id_size, offset_size) != 0:
                    return FAULT_MEMORY
            else:
                order = ps.orders + ps.shapes[node.payload].order
                at = 0
                child = node + 1
                if id_size == 1 and offset_size == 1:
                    for i in range(node.length):
                        ids[order[i]] = <uint8_t> ps.keys[child.key].rank
                        offsets[order[i]] = <uint8_t> at
                        at += child.size
                        child += child.span
                elif id_size == 1 and offset_size == 2:
                    for i in range(node.length):
                        ids[order[i]] = <uint8_t> ps.keys[child.key].rank
                        write_uint(offsets + 2 * <size_t> order[i], at, 2)
                        at += child.size
                        child += child.span
                else:
                    for i in range(node.length):
                        write_uint(ids + order[i] * <size_t> id_size, ps.keys[child.key].rank, id_size)
                        write_uint(offsets + order[i] * <size_t> offset_size, at, offset_size)
                        at += child.size
                        child += child.span
        else:
            values = 0
            child = node + 1
            for i in range(node.length):
                values += child.size
                child += child.span
            offset_size = uint_size(values)
            p = write_array_head(p, node.length, offset_size)
            at = 0
            child = node + 1
            for i in range(node.length):
                write_uint(p, at, offset_size)
                p += offset_size
                at += child.size
                child += child.span
            write_uint(p, at, offset_size)
            p += offset_size
        node += 1
    return 0


# --- Columns -------------------------------------------------------------------------------------

cdef struct Fault:
    int64_t row          # row of the column, or line
    int64_t offset
    int64_t name         # offset of a key in fault_names, or -1
    int32_t name_length
    int32_t code


cdef struct Source:
    # Either a column or a buffer of lines.
    const BinaryColumn *column
    const uint8_t *lines
    size_t lines_size
    size_t position      # row or byte that comes next
    int64_t line         # number of the line at position


cdef struct Output:
    Bytes metadata
    Bytes metadata_offsets
    Bytes value
    Bytes value_offsets
    Bytes validity
    Bytes faults
    Bytes fault_names
    int64_t rows
    int64_t nulls


cdef int next_document(
    Source *source, const uint8_t **text, size_t *length, int64_t *number, size_t *after
) noexcept nogil:
    """The next document: 1, with its row or line number and the position after it; 2 for a null; 0 at the end."""
    cdef const uint8_t *found
    cdef size_t start, stop
    if source.column != NULL:
        if source.position >= <size_t> source.column.length:
            return 0
        number[0] = source.position
        after[0] = source.position + 1
        if not binary_valid(source.column, source.position):
            return 2
        if binary_at(source.column, source.position, text, length) != 0:
            return FAULT_ARROW
        return 1
    while source.position < source.lines_size:
        start = source.position
        found = <const uint8_t *> memchr(source.lines + start, c'\n', source.lines_size - start)
        stop = found - source.lines if found != NULL else source.lines_size
        after[0] = stop + 1 if found != NULL else stop
        number[0] = source.line
        text[0] = source.lines + start
        # Lines of nothing but space hold no document; a \r before the \n is space to the parser.
        while start < stop and (source.lines[start] == 0x20 or source.lines[start] == 0x0D or source.lines[start] == 0x09):
            start += 1
        if start < stop:
            length[0] = stop - (text[0] - source.lines)
            return 1
        source.position = after[0]
        source.line += 1
    return 0


cdef int load_document(Parser *ps, const uint8_t *text, size_t length) noexcept nogil:
    """Copy a document to ps.text and check its UTF-8."""
    cdef int64_t fault
    cdef uint8_t *moved
    if length > 0x7FFFFFFF - MARGIN:
        ps.where = ps.text
        return JSON_SIZE
    if length + MARGIN > ps.text_capacity:
        moved = <uint8_t *> realloc(ps.text, (length + MARGIN) * 2)
        if moved == NULL:
            return FAULT_MEMORY
        ps.text = moved
        ps.text_capacity = (length + MARGIN) * 2
    memcpy(ps.text, text, length)
    memset(ps.text + length, 0, MARGIN)
    ps.end = ps.text + length
    fault = utf8_fault(ps.text, length)
    if fault >= 0:
        ps.where = ps.text + fault
        return JSON_UTF8
    return 0


cdef int parse_row(Parser *ps, const uint8_t *text, size_t length) noexcept nogil:
    """Parse one document up to its final tape."""
    cdef int status, id_size
    cdef uint32_t count
    ps.row += 1
    ps.where = ps.text
    if ps.keys_count > MAX_KEYS or ps.key_text.size > MAX_KEY_BYTES:
        forget(ps)
    elif ps.shapes_count >= MAX_SHAPES or ps.orders_size > MAX_ORDERS - MAX_SHAPE_DEPTH:
        forget_shapes(ps)
    status = load_document(ps, text, length)
    if status == 0:
        status = parse_document(ps)
    if status == 0 and ps.dropped:
        collect_row_keys(ps)
    if status == 0:
        status = choose_template(ps)
    if status != 0:
        return status
    count = ps.templates[ps.current].count
    id_size = uint_size(count - 1) if count else 1
    return resize_containers(ps, id_size) if id_size != ps.id_size else 0


cdef int append_offset(Bytes *offsets, size_t value) noexcept nogil:
    cdef int32_t offset = <int32_t> value
    return bytes_append(offsets, &offset, sizeof(int32_t))


cdef int append_row(Output *out, const uint8_t *metadata, size_t size) noexcept nogil:
    """Complete the row whose value has been written."""
    cdef uint8_t zero = 0
    if size and bytes_append(&out.metadata, metadata, size) != 0:
        return FAULT_MEMORY
    if append_offset(&out.metadata_offsets, out.metadata.size) != 0:
        return FAULT_MEMORY
    if append_offset(&out.value_offsets, out.value.size) != 0:
        return FAULT_MEMORY
    if out.rows & 7 == 0 and bytes_append(&out.validity, &zero, 1) != 0:
        return FAULT_MEMORY
    if size:
        out.validity.data[out.rows >> 3] |= <uint8_t> (1 << (out.rows & 7))
    else:
        out.nulls += 1
    out.rows += 1
    return 0


cdef int note_fault(Parser *ps, Output *out, int code, int64_t number) noexcept nogil:
    cdef Fault fault
    fault.row = number
    fault.offset = ps.where - ps.text if ps.text != NULL else 0
    fault.name = -1
    fault.name_length = 0
    fault.code = code
    if code == JSON_DUPLICATE:
        fault.name = <int64_t> out.fault_names.size
        fault.name_length = <int32_t> ps.keys[ps.fault_key].length
        if bytes_append(&out.fault_names, key_name(ps, ps.fault_key), ps.keys[ps.fault_key].length) != 0:
            return FAULT_MEMORY
    return bytes_append(&out.faults, &fault, sizeof(Fault))


cdef int parse_all(Parser *ps, Source *source, Output *out, bint stop_at_fault) noexcept nogil:
    """Parse documents until the source ends, a fault stops, or 32-bit offsets are full; 0 or a negative fault."""
    cdef const uint8_t *text
    cdef size_t length, after
    cdef int64_t number
    cdef int kind, status
    cdef const Template *template
    cdef uint32_t size
    if append_offset(&out.metadata_offsets, 0) != 0 or append_offset(&out.value_offsets, 0) != 0:
        return FAULT_MEMORY
    while True:
        kind = next_document(source, &text, &length, &number, &after)
        if kind <= 0:
            return kind
        status = 0
        if kind == 1:
            status = parse_row(ps, text, length)
            if status < 0:
                return status
            if status == 0:
                template = &ps.templates[ps.current]
                size = ps.tape[0].size
                if out.value.size + size > 0x7FFFFFFF or out.metadata.size + template.size > 0x7FFFFFFF:
                    return 0
                if bytes_reserve(&out.value, <size_t> size + MARGIN) != 0:
                    return FAULT_MEMORY
                if emit(ps, out.value.data + out.value.size) != 0:
                    return FAULT_MEMORY
                out.value.size += size
                if append_row(out, ps.template_bytes.data + template.bytes, template.size) != 0:
                    return FAULT_MEMORY
            else:
                if note_fault(ps, out, status, number) != 0:
                    return FAULT_MEMORY
                if stop_at_fault:
                    return 0
        if (kind == 2 or status != 0) and append_row(out, NULL, 0) != 0:
            return FAULT_MEMORY
        source.position = after
        source.line += 1


cdef object run(Source *source, uint32_t max_depth, int duplicates, uint64_t seed, bint stop_at_fault):
    cdef Parser ps
    cdef Output out
    cdef int status
    cdef int64_t i, count
    cdef const Fault *faults
    memset(&out, 0, sizeof(Output))
    with nogil:
        status = parser_open(&ps, max_depth, duplicates, seed)
        if status == 0:
            status = parse_all(&ps, source, &out, stop_at_fault)
        parser_close(&ps)
    try:
        if status == FAULT_MEMORY:
            raise MemoryError("out of memory while parsing JSON")
        if status < 0:
            return status
        count = <int64_t> (out.faults.size // sizeof(Fault))
        faults = <const Fault *> out.faults.data
        found = []
        for i in range(count):
            name = None
            if faults[i].name >= 0:
                name = PyBytes_FromStringAndSize(
                    <const char *> out.fault_names.data + faults[i].name, faults[i].name_length
                )
            found.append((faults[i].row, faults[i].offset, faults[i].code, name))
        return (
            out.rows,
            out.nulls,
            take(&out.validity),
            take(&out.metadata_offsets),
            take(&out.metadata),
            take(&out.value_offsets),
            take(&out.value),
            found,
            source.position,
            source.line,
        )
    finally:
        bytes_free(&out.metadata)
        bytes_free(&out.metadata_offsets)
        bytes_free(&out.value)
        bytes_free(&out.value_offsets)
        bytes_free(&out.validity)
        bytes_free(&out.faults)
        bytes_free(&out.fault_names)


def parse_column(BinaryInput column, size_t start, uint32_t max_depth, int duplicates, uint64_t seed,
                 bint stop_at_fault):
    """Parse rows `start` and on of a column of JSON texts.

    Gives a negative `Fault`, or (rows, nulls, validity, metadata offsets, metadata, value offsets, value,
    faults, next row, _). It stops before a row for which 32-bit offsets do not suffice, and at a fault
    when asked to. A fault is (row, byte offset, `JsonFault`, key or None).
    """
    cdef Source source
    memset(&source, 0, sizeof(Source))
    source.column = &column.column
    source.position = start
    return run(&source, max_depth, duplicates, seed, stop_at_fault)


def parse_lines(const uint8_t[::1] lines, size_t start, int64_t line, uint32_t max_depth, int duplicates,
                uint64_t seed, bint stop_at_fault):
    """As `parse_column` for text of one document a line, from byte `start`, which is on line number `line`.

    Gives lines for rows in faults, and last the byte and the line number where the next call goes on.
    """
    cdef Source source
    memset(&source, 0, sizeof(Source))
    source.lines = &lines[0] if lines.shape[0] else NULL
    source.lines_size = lines.shape[0]
    source.position = start
    source.line = line
    return run(&source, max_depth, duplicates, seed, stop_at_fault)
