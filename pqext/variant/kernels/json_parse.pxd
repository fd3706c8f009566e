# cython: language_level=3
# Structures shared by the parts of the JSON parser; each is implemented in the named .pxi.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve
from pqext.variant.kernels.binary cimport BinaryColumn, FAULT_MEMORY
from pqext.variant.kernels.scan cimport copy_over


# --- json_names ---------------------------------------------------------------------------------
# Caches of the JSON parser for a batch: keys, shapes of objects, and dictionaries of rows.

cdef enum:
    NOWHERE = 0xFFFFFFFFU
    MAX_SHAPES = 1 << 16
    MAX_SHAPE_DEPTH = 1024
    MAX_ORDERS = 1 << 22
    NAME_MARGIN = 16              # bytes that may be read after the text of a key, ids of a shape, or a dictionary


cdef struct Key:
    uint64_t prefix      # the first 8 bytes, big-endian: orders most keys
    uint64_t row         # the last row whose dictionary was made with it
    uint32_t text        # offset in `text` of: quote, name, quote
    uint32_t length      # of the name
    uint32_t match       # bytes to compare, both quotes included; 0 for a name that JSON must escape
    uint32_t rank        # field id in the current dictionary
    uint32_t shape       # the empty shape of objects under this key, 0 if not created yet


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
    bint repeats         # whether a key occurs twice


cdef struct Dictionary:
    # The metadata of rows with the same signature: the distinct shapes of a row in the order in which they
    # end, or, if an object has no shape, its distinct keys in the order in which they occur.
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
    # Slot of a hash table; `index` is the target's index plus 1, 0 if free.
    uint32_t hash
    uint32_t index


cdef struct Table:
    Slot *slots
    uint32_t mask
    uint32_t used


cdef struct Names:
    uint64_t seed
    uint64_t row
    uint64_t forgotten       # number of times that shapes were discarded
    Bytes text
    Key *keys
    uint32_t keys_count
    uint32_t keys_capacity
    Table key_table
    uint32_t *row_keys       # distinct keys of the row; same capacity as `keys`
    uint32_t row_keys_capacity
    uint32_t row_keys_count
    Shape *shapes            # index 0 is not a shape, and predicts none
    uint32_t shapes_count
    uint32_t shapes_capacity
    Table shape_table
    uint32_t root            # the empty shape of objects under no key
    uint16_t *orders         # position in the object -> position by name
    uint32_t orders_size
    uint32_t orders_capacity
    uint32_t *row_shapes     # distinct shapes of the row; same capacity as `shapes`
    uint32_t row_shapes_capacity
    uint32_t row_shapes_count
    bint shapeless           # whether an object of this row has no shape
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
    """Return the empty shape of objects under `key` (NOWHERE: no key); 0 if the store is full, or FAULT_MEMORY."""
    cdef uint32_t shape = names.root if key == NOWHERE else names.keys[key].shape
    return shape if shape else new_root(names, key)


cdef inline void note_shape(Names *names, uint32_t shape) noexcept nogil:
    """Record a shape in the current row."""
    if names.shapes[shape].row != names.row:
        names.shapes[shape].row = names.row
        names.row_shapes[names.row_shapes_count] = shape
        names.row_shapes_count += 1


cdef inline void note_key(Names *names, uint32_t key) noexcept nogil:
    """Record a key in the current row."""
    if names.keys[key].row != names.row:
        names.keys[key].row = names.row
        names.row_keys[names.row_keys_count] = key
        names.row_keys_count += 1


# --- json_dictionaries --------------------------------------------------------------------------
# The metadata dictionaries of rows, and the sorted order of objects' fields.

cdef uint64_t *merge_sort(Names *names, size_t count, bint by_name) noexcept nogil
cdef int order_shape(Names *names, uint32_t shape) noexcept nogil
cdef int choose_dictionary(Names *names) noexcept nogil


# --- json_document ------------------------------------------------------------------------------
# Structures shared by the parts of the JSON parser: faults, the tape, and the parser's state.

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
    JSON_LONG = 21
    JSON_NAN = 22


cpdef enum Duplicates:
    DUPLICATES_ERROR = 0
    DUPLICATES_FIRST = 1
    DUPLICATES_LAST = 2


cdef enum:
    MARGIN = 64         # zeros after a document, and spare room after every output

    # Kinds of node. FIXED: header and up to 8 bytes; DECIMAL: header, scale and up to 8 bytes.
    NODE_FIXED = 0
    NODE_DECIMAL = 1
    NODE_STRING = 2
    NODE_DECIMAL16 = 3
    NODE_OBJECT = 4
    NODE_ARRAY = 5


cdef struct TapeNode:
    uint64_t payload    # FIXED, DECIMAL: the data; STRING, DECIMAL16: address of the text; OBJECT: its shape
    uint32_t key        # its key in an object
    uint32_t size       # encoded bytes
    uint32_t length     # STRING, DECIMAL16: bytes of text; OBJECT, ARRAY: number of children
    uint32_t span       # nodes from here to the next sibling
    uint8_t kind
    uint8_t header      # first byte; OBJECT, ARRAY: bytes of an offset
    uint8_t scale


cdef struct Frame:
    # An open container. Size, count and shape exclude its innermost open child.
    uint64_t size       # encoded bytes of the children
    uint32_t node
    uint32_t count
    uint32_t shape
    uint32_t key        # the key of this container, or of the outermost array around it
    uint32_t start      # offset in the document
    bint is_object


cdef struct ParserOptions:
    uint64_t max_bytes      # maximum size of a document
    uint32_t max_depth
    int duplicates
    bint doubles            # whether numbers with a point are doubles instead of decimals


cdef struct Parser:
    uint8_t *text
    size_t text_capacity
    const uint8_t *end
    const uint8_t *where    # position of a fault
    int number_fault        # fault of a number
    uint32_t fault_key
    TapeNode *tape
    uint32_t tape_size
    uint32_t tape_capacity
    Frame *frames
    uint32_t frames_capacity
    uint64_t max_bytes
    uint32_t max_depth
    int duplicates
    bint doubles
    int id_size             # size of ids that sizes on the tape assume
    Names names


cdef int parser_open(Parser *ps, const ParserOptions *options, uint64_t seed) noexcept nogil
cdef void parser_close(Parser *ps) noexcept nogil
cdef int parse_row(Parser *ps, const uint8_t *text, size_t length) noexcept nogil


# --- json_emit ----------------------------------------------------------------------------------
# Nodes of the tape as values of the Variant encoding.

cdef uint8_t *write_decimal16(const TapeNode *node, uint8_t *p) noexcept nogil
cdef int emit(Parser *ps, const TapeNode *node, uint8_t *p) noexcept nogil


# --- json_rows ----------------------------------------------------------------------------------
# Common state of parsing a column or lines of JSON: consecutive documents, and
# for each row its metadata, whether it is null, and its fault.

cdef enum:
    DOCUMENT = 1
    NULL_ROW = 2
    FIRST_ROWS = 64     # rows after which the output size is estimated, and again after
    MORE_ROWS = 2048


cdef struct FaultyRow:
    int64_t row          # row of the column, or line
    int64_t offset
    int64_t name         # offset of a key in fault_names, or -1
    int32_t name_length
    int32_t code


cdef struct Documents:
    # Source of documents: a column or a buffer of lines.
    const BinaryColumn *column
    const uint8_t *lines
    size_t position      # next row or byte
    size_t stop          # row or byte before which the last document begins
    int64_t line         # number of the line at position


cdef struct Rows:
    Bytes metadata
    Bytes offsets        # of the metadata, 32 bits each
    Bytes validity
    int64_t count
    int64_t nulls
    Bytes faults
    Bytes fault_names


cdef class JsonOptions:
    """Options of the JSON parser."""
    cdef ParserOptions options
    cdef bint stop_at_fault


cdef int next_document(
    Documents *source, const uint8_t **text, size_t *length, int64_t *number, size_t *after
) noexcept nogil
cdef int rows_open(Rows *rows) noexcept nogil
cdef void rows_free(Rows *rows) noexcept nogil
cdef int rows_fault(Rows *rows, const Parser *ps, int code, int64_t number) noexcept nogil
cdef list take_faults(Rows *rows)


cdef inline int rows_end(Rows *rows, bint valid) noexcept nogil:
    """Complete a row whose metadata has been written, or that is null. Return 0 or FAULT_MEMORY."""
    cdef int32_t end = <int32_t> rows.metadata.size
    cdef uint8_t zero = 0
    if rows.count & 7 == 0 and bytes_append(&rows.validity, &zero, 1) != 0:
        return FAULT_MEMORY
    if valid:
        rows.validity.data[rows.count >> 3] |= <uint8_t> (1 << (rows.count & 7))
    else:
        rows.nulls += 1
    rows.count += 1
    return 0 if bytes_append(&rows.offsets, &end, sizeof(int32_t)) == 0 else FAULT_MEMORY


cdef inline int rows_metadata(Rows *rows, const Parser *ps) noexcept nogil:
    """Write the metadata of the parsed document. Return 0 or FAULT_MEMORY."""
    cdef const Dictionary *dictionary = ps.names.current
    if bytes_reserve(&rows.metadata, <size_t> dictionary.size + MARGIN) != 0:
        return FAULT_MEMORY
    copy_over(
        rows.metadata.data + rows.metadata.size, ps.names.dictionary_bytes.data + dictionary.bytes, dictionary.size
    )
    rows.metadata.size += dictionary.size
    return 0


cdef inline bint metadata_fits(const Rows *rows, const Parser *ps) noexcept nogil:
    return rows.metadata.size + ps.names.current.size <= 0x7FFFFFFF


cdef inline double growth(const Documents *source, size_t first) noexcept nogil:
    """Return the factor by which output sizes will grow, extrapolated from the documents from `first` to the current
    one.
    """
    cdef const BinaryColumn *column = source.column
    cdef double start, now, end
    if column == NULL:
        start = <double> first
        now = <double> source.position
        end = <double> source.stop
    elif column.offsets32 != NULL:
        start = column.offsets32[column.offset + <int64_t> first]
        now = column.offsets32[column.offset + <int64_t> source.position]
        end = column.offsets32[column.offset + <int64_t> source.stop]
    else:
        start = <double> column.offsets64[column.offset + <int64_t> first]
        now = <double> column.offsets64[column.offset + <int64_t> source.position]
        end = <double> column.offsets64[column.offset + <int64_t> source.stop]
    if column != NULL and end > <double> column.data_size:
        end = <double> column.data_size
    return 1.05 * (end - start) / (now - start) if end > now > start else 1.0
