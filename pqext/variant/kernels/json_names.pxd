# cython: language_level=3
# What the JSON parser learns in a batch: keys, shapes of objects, and dictionaries of rows.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes


cdef enum:
    NOWHERE = 0xFFFFFFFFU
    MAX_SHAPES = 1 << 16
    MAX_SHAPE_DEPTH = 1024
    MAX_ORDERS = 1 << 22
    MARGIN = 16              # what may be read after a key's text, a shape's ids and a dictionary


cdef struct Key:
    uint64_t prefix      # the first 8 bytes, big-endian: orders most keys
    uint64_t row         # the last row whose dictionary was made with it
    uint32_t text        # offset in `text` of: quote, name, quote
    uint32_t length      # of the name
    uint32_t match       # bytes to compare, both quotes included; 0 for a name that JSON must escape
    uint32_t rank        # field id in the current dictionary
    uint32_t shape       # the empty shape of objects under this key, 0 when there is none yet


cdef struct Shape:
    uint64_t row         # the last row with an object of this shape
    uint32_t next        # the shape that followed last time, 0 when none has
    uint32_t key         # the last key
    uint32_t text        # the last key's text and match
    uint32_t match
    uint32_t parent
    uint32_t depth       # number of keys
    uint32_t order       # index in orders, or NOWHERE
    uint32_t ids         # offset in dictionary_ids of its field ids in the current dictionary
    bint repeats         # a key occurs twice


cdef struct Dictionary:
    # The metadata of rows with the same signature: the distinct shapes of a row in the order in which they
    # end, or, where an object had no shape, its distinct keys in the order in which they occur.
    uint64_t hash
    uint32_t signature   # index in signatures
    uint32_t count
    uint32_t ranks       # index in signatures of the ranks that belong to a signature of keys
    uint32_t ids         # offset in dictionary_ids
    uint32_t bytes       # offset in dictionary_bytes
    uint32_t size
    int id_size
    bint of_keys


cdef struct Slot:
    # Of a hash table; index is one more than what it points at, 0 when free.
    uint32_t hash
    uint32_t index


cdef struct Table:
    Slot *slots
    uint32_t mask
    uint32_t used


cdef struct Names:
    uint64_t seed
    uint64_t row
    uint64_t forgotten       # how often shapes were forgotten
    Bytes text
    Key *keys
    uint32_t keys_count
    uint32_t keys_capacity
    Table key_table
    uint32_t *row_keys       # distinct keys of the row; as long as keys
    uint32_t row_keys_capacity
    uint32_t row_keys_count
    Shape *shapes            # 0 is no shape, and predicts none
    uint32_t shapes_count
    uint32_t shapes_capacity
    Table shape_table
    uint32_t root            # the empty shape of objects under no key
    uint16_t *orders         # position in the object -> position by name
    uint32_t orders_size
    uint32_t orders_capacity
    uint32_t *row_shapes     # distinct shapes of the row; as long as shapes
    uint32_t row_shapes_capacity
    uint32_t row_shapes_count
    bint shapeless           # an object of this row had no shape
    Dictionary *dictionaries
    uint32_t dictionaries_count
    Dictionary *current
    uint32_t *signatures
    uint32_t signatures_size
    uint32_t signatures_capacity
    Bytes dictionary_bytes
    Bytes dictionary_ids
    Table dictionary_table
    uint64_t *sorting
    size_t sorting_capacity


cdef int grow(void **array, size_t item, uint32_t *capacity, size_t wanted) noexcept nogil
cdef int table_add(Table *table, uint32_t hash, uint32_t index) noexcept nogil
cdef int names_open(Names *names, uint64_t seed) noexcept nogil
cdef void names_close(Names *names) noexcept nogil
cdef void names_next_row(Names *names) noexcept nogil
cdef int64_t intern(Names *names, const uint8_t *name, size_t length) noexcept nogil
cdef int64_t shape_after(Names *names, uint32_t shape, uint32_t key) noexcept nogil
cdef int64_t new_root(Names *names, uint32_t key) noexcept nogil
cdef int sorting_room(Names *names, size_t count) noexcept nogil


cdef inline uint64_t mix(uint64_t h, uint64_t v) noexcept nogil:
    h = (h ^ v) * 0x9E3779B97F4A7C15ULL
    return h ^ h >> 32


cdef inline const uint8_t *key_name(const Names *names, uint32_t key) noexcept nogil:
    return names.text.data + names.keys[key].text + 1


cdef inline int64_t root_shape(Names *names, uint32_t key) noexcept nogil:
    """The empty shape of objects under `key` (NOWHERE: under none), 0 when the store is full, or FAULT_MEMORY."""
    cdef uint32_t shape = names.root if key == NOWHERE else names.keys[key].shape
    return shape if shape else new_root(names, key)


cdef inline void note_shape(Names *names, uint32_t shape) noexcept nogil:
    """Count the shape among those of this row."""
    if names.shapes[shape].row != names.row:
        names.shapes[shape].row = names.row
        names.row_shapes[names.row_shapes_count] = shape
        names.row_shapes_count += 1


cdef inline void note_key(Names *names, uint32_t key) noexcept nogil:
    """Count the key among those of this row."""
    if names.keys[key].row != names.row:
        names.keys[key].row = names.row
        names.row_keys[names.row_keys_count] = key
        names.row_keys_count += 1
