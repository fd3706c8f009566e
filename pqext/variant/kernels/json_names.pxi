# Caches of the JSON parser for a batch, so that repeated structure is only compared.
#
# - A *key* is interned once.
# - A *shape* is a path of keys through an object, in the order of the text. It predicts the key that comes
#   next, and an object that ends at a known shape knows the sorted order of its fields and whether a key
#   repeats.
# - A *dictionary* is the sorted metadata of all rows with the same shapes, with the field ids of each
#   (`json_dictionaries`).
#
# All three have an upper bound, at which they are cleared between two rows.
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport bytes_free, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY
from pqext.variant.kernels.scan cimport load64


cdef enum:
    MAX_KEYS = 1 << 20
    MAX_KEY_BYTES = 1 << 26
    MAX_DICTIONARIES = 1 << 12
    MAX_DICTIONARY_BYTES = 1 << 24


# --- Memory --------------------------------------------------------------------------------------

cdef int grow(void **array, size_t item, uint32_t *capacity, size_t wanted) noexcept nogil:
    """Make room for `wanted` items. Return 0 or FAULT_MEMORY."""
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
    """Grow the table if necessary, so that it is at most half full. Return 0 or FAULT_MEMORY."""
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


cdef int table_add(Table *table, uint32_t hash, uint32_t index) noexcept nogil:
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
    memset(table.slots, 0, (<size_t> table.mask + 1) * sizeof(Slot))
    table.used = 0


cdef int sorting_room(Names *names, size_t count) noexcept nogil:
    """Make room for sorting `count` items: names.sorting holds twice as many. Return 0 or FAULT_MEMORY."""
    cdef uint64_t *moved
    if count * 2 > names.sorting_capacity:
        moved = <uint64_t *> realloc(names.sorting, count * 4 * sizeof(uint64_t))
        if moved == NULL:
            return FAULT_MEMORY
        names.sorting = moved
        names.sorting_capacity = count * 4
    return 0


cdef int names_open(Names *names, uint64_t seed) noexcept nogil:
    """Initialise empty caches. `seed` makes the hashes of keys unpredictable. Return 0 or FAULT_MEMORY."""
    memset(names, 0, sizeof(Names))
    names.seed = seed
    names.dictionaries = <Dictionary *> malloc(MAX_DICTIONARIES * sizeof(Dictionary))
    if names.dictionaries == NULL or new_shape(names, 0, 0, 0) != 0 or sorting_room(names, 64) != 0:
        return FAULT_MEMORY
    if grow(<void **> &names.orders, sizeof(uint16_t), &names.orders_capacity, 64) != 0:
        return FAULT_MEMORY
    if table_grow(&names.key_table) != 0 or table_grow(&names.shape_table) != 0:
        return FAULT_MEMORY
    return table_grow(&names.dictionary_table)


cdef void names_close(Names *names) noexcept nogil:
    free(names.keys)
    free(names.row_keys)
    free(names.shapes)
    free(names.row_shapes)
    free(names.orders)
    free(names.dictionaries)
    free(names.signatures)
    free(names.sorting)
    free(names.key_table.slots)
    free(names.shape_table.slots)
    free(names.dictionary_table.slots)
    bytes_free(&names.text)
    bytes_free(&names.dictionary_bytes)
    bytes_free(&names.dictionary_ids)


cdef void forget_dictionaries(Names *names) noexcept nogil:
    table_clear(&names.dictionary_table)
    names.dictionaries_count = 0
    names.current = NULL
    names.signatures_size = 0
    names.dictionary_bytes.size = 0
    names.dictionary_ids.size = 0


cdef void forget_shapes(Names *names) noexcept nogil:
    cdef uint32_t i
    names.forgotten += 1
    for i in range(names.keys_count):
        names.keys[i].shape = 0
    table_clear(&names.shape_table)
    names.shapes_count = 1
    names.root = 0
    names.orders_size = 0
    forget_dictionaries(names)


cdef void forget_keys(Names *names) noexcept nogil:
    forget_shapes(names)
    table_clear(&names.key_table)
    names.keys_count = 0
    names.text.size = 0


cdef void names_next_row(Names *names) noexcept nogil:
    """Begin a row; caches that have grown too large are cleared."""
    names.row += 1
    names.row_keys_count = 0
    names.row_shapes_count = 0
    names.shapeless = False
    if names.keys_count > MAX_KEYS or names.text.size > MAX_KEY_BYTES:
        forget_keys(names)
    elif names.shapes_count >= MAX_SHAPES or names.orders_size > MAX_ORDERS - MAX_SHAPE_DEPTH:
        forget_shapes(names)
    elif (
        names.dictionaries_count >= MAX_DICTIONARIES
        or names.dictionary_bytes.size + names.dictionary_ids.size > MAX_DICTIONARY_BYTES
    ):
        forget_dictionaries(names)


# --- Keys and shapes -----------------------------------------------------------------------------

cdef uint32_t name_hash(const Names *names, const uint8_t *name, size_t length) noexcept nogil:
    cdef uint64_t h = mix(names.seed, length)
    cdef uint64_t last = 0
    cdef size_t i
    while length >= 8:
        h = mix(h, load64(name))
        name += 8
        length -= 8
    for i in range(length):
        last |= <uint64_t> name[i] << (8 * i)
    h = mix(h, last)
    return <uint32_t> mix(h, h >> 29)


cdef int64_t intern(Names *names, const uint8_t *name, size_t length) noexcept nogil:
    """Return the number of the key `name`, which is new at its first occurrence, or FAULT_MEMORY."""
    cdef uint32_t hash = name_hash(names, name, length)
    cdef uint32_t at = hash & names.key_table.mask
    cdef uint32_t index
    cdef size_t i
    cdef Key *key
    cdef uint8_t *text
    while names.key_table.slots[at].index:
        if names.key_table.slots[at].hash == hash:
            index = names.key_table.slots[at].index - 1
            if names.keys[index].length == length:
                if length == 0 or memcmp(key_name(names, index), name, length) == 0:
                    return index
        at = (at + 1) & names.key_table.mask
    if names.text.size + length + 2 > 0xFFFFFFF0U:
        return FAULT_MEMORY
    index = names.keys_count
    if grow(<void **> &names.keys, sizeof(Key), &names.keys_capacity, <size_t> index + 1) != 0:
        return FAULT_MEMORY
    if grow(<void **> &names.row_keys, sizeof(uint32_t), &names.row_keys_capacity, <size_t> index + 1) != 0:
        return FAULT_MEMORY
    if bytes_reserve(&names.text, length + 2 + NAME_MARGIN) != 0:
        return FAULT_MEMORY
    key = &names.keys[index]
    memset(key, 0, sizeof(Key))
    for i in range(8):
        key.prefix = key.prefix << 8 | (name[i] if i < length else 0)
    key.text = <uint32_t> names.text.size
    key.length = <uint32_t> length
    key.match = <uint32_t> length + 2
    for i in range(length):
        if name[i] < 0x20 or name[i] == c'"' or name[i] == c'\\':
            key.match = 0
    text = names.text.data + names.text.size
    text[0] = c'"'
    if length:
        memcpy(text + 1, name, length)
    text[1 + length] = c'"'
    memset(text + 2 + length, 0, NAME_MARGIN)
    names.text.size += length + 2
    if table_add(&names.key_table, hash, index) != 0:
        return FAULT_MEMORY
    names.keys_count += 1
    return index


cdef int new_shape(Names *names, uint32_t parent, uint32_t key, uint32_t depth) noexcept nogil:
    """Add a shape; a shape of depth 0 is empty. Return 0 or FAULT_MEMORY."""
    cdef uint32_t index = names.shapes_count
    cdef Shape *shape
    if grow(<void **> &names.shapes, sizeof(Shape), &names.shapes_capacity, <size_t> index + 1) != 0:
        return FAULT_MEMORY
    if grow(<void **> &names.row_shapes, sizeof(uint32_t), &names.row_shapes_capacity, <size_t> index + 1) != 0:
        return FAULT_MEMORY
    shape = &names.shapes[index]
    memset(shape, 0, sizeof(Shape))
    shape.key = key
    shape.parent = parent
    shape.depth = depth
    shape.order = NOWHERE
    if depth:
        shape.text = names.keys[key].text
        shape.match = names.keys[key].match
    names.shapes_count += 1
    return 0


cdef int64_t new_root(Names *names, uint32_t key) noexcept nogil:
    """Assign an empty shape to `key` (NOWHERE: no key), if there is room. Return its number, 0, or FAULT_MEMORY."""
    if names.shapes_count >= MAX_SHAPES:
        return 0
    if new_shape(names, 0, 0, 0) != 0:
        return FAULT_MEMORY
    if key == NOWHERE:
        names.root = names.shapes_count - 1
    else:
        names.keys[key].shape = names.shapes_count - 1
    return names.shapes_count - 1


cdef int64_t shape_after(Names *names, uint32_t shape, uint32_t key) noexcept nogil:
    """Return the shape that follows `shape` after `key`, and predict it from now on; 0 if there is none, or
    FAULT_MEMORY.
    """
    cdef uint64_t h = mix(mix(0, shape), key)
    cdef uint32_t hash = <uint32_t> mix(h, h >> 29)
    cdef uint32_t at = hash & names.shape_table.mask
    cdef uint32_t index
    if shape == 0:
        return 0
    while names.shape_table.slots[at].index:
        if names.shape_table.slots[at].hash == hash:
            index = names.shape_table.slots[at].index - 1
            if names.shapes[index].parent == shape and names.shapes[index].key == key:
                names.shapes[shape].next = index
                return index
        at = (at + 1) & names.shape_table.mask
    if names.shapes_count >= MAX_SHAPES or names.shapes[shape].depth >= MAX_SHAPE_DEPTH:
        return 0
    index = names.shapes_count
    if new_shape(names, shape, key, names.shapes[shape].depth + 1) != 0:
        return FAULT_MEMORY
    if table_add(&names.shape_table, hash, index) != 0:
        return FAULT_MEMORY
    names.shapes[shape].next = index
    return index
