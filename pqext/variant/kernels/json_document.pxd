# cython: language_level=3
# What the parts of the JSON parser share: faults, the tape, and the parser's state.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pqext.variant.kernels.json_names cimport Names


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


cdef struct Node:
    uint64_t payload    # FIXED, DECIMAL: the data; STRING, DECIMAL16: address of the text; OBJECT: its shape
    uint32_t key        # the key it stands under, in an object
    uint32_t size       # encoded bytes
    uint32_t length     # STRING, DECIMAL16: bytes of text; OBJECT, ARRAY: number of children
    uint32_t span       # nodes from here to the next sibling
    uint8_t kind
    uint8_t header      # first byte; OBJECT, ARRAY: bytes of an offset
    uint8_t scale


cdef struct Frame:
    # An open container. Size, count and shape are those of before its innermost open child.
    uint64_t size       # encoded bytes of the children
    uint32_t node
    uint32_t count
    uint32_t shape
    uint32_t key        # the key that this container, or the outermost array around it, stands under
    uint32_t start      # offset in the document
    bint is_object


cdef struct ParserOptions:
    uint64_t max_bytes      # of a document
    uint32_t max_depth
    int duplicates
    bint doubles            # numbers with a point are doubles, not decimals


cdef struct Parser:
    uint8_t *text
    size_t text_capacity
    const uint8_t *end
    const uint8_t *where    # of a fault
    int number_fault        # what is wrong with a number
    uint32_t fault_key
    Node *tape
    uint32_t tape_size
    uint32_t tape_capacity
    Frame *frames
    uint32_t frames_capacity
    uint64_t max_bytes
    uint32_t max_depth
    int duplicates
    bint doubles
    int id_size             # what sizes on the tape assume
    Names names


cdef int parser_open(Parser *ps, const ParserOptions *options, uint64_t seed) noexcept nogil
cdef void parser_close(Parser *ps) noexcept nogil
cdef int parse_row(Parser *ps, const uint8_t *text, size_t length) noexcept nogil
