# cython: language_level=3
# Structures shared by edits and conversion kernels.
#
# Variants are composed from pieces: a tape in the order of the encoding. Rows are written from the tape,
# with a sorted dictionary of exactly the names that they use, in the canonical encoding of the pieces.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes
from pqext.variant.kernels.binary cimport Metadata


cdef enum:
    COMPOSE_TOO_LARGE = -50     # equal to ShreddingFault.FAULT_TOO_LARGE

    PIECE_LEAF = 0
    PIECE_OBJECT = 1
    PIECE_ARRAY = 2

    NO_NAME = 0xFFFFFFFF
    MAX_DEPTH = 1000            # maximum nesting depth of objects and arrays


cdef struct Piece:
    const uint8_t *p            # encoded bytes of a leaf; NULL if they are at `at` in the scratch
    uint64_t at
    uint64_t sum                # encoded bytes of the children
    uint32_t size               # size of the encoded value in bytes
    uint32_t name               # name of the field
    uint32_t span               # number of pieces up to the next sibling
    uint32_t count              # number of children
    uint32_t parent
    int kind


cdef struct Name:
    uint64_t at                 # position in the text of all names
    uint32_t length
    uint32_t hash
    uint32_t id                 # id in the last written dictionary
    uint64_t row                # last row that used the name


cdef struct Composer:
    Bytes tape                  # array of Piece
    Bytes scratch               # leaves that are not in an input
    Bytes open                  # indexes of the open containers
    Bytes names                 # array of Name
    Bytes name_text
    Bytes table                 # hash table of names: index + 1, 0 if free
    uint32_t next_name          # name of the next piece
    uint64_t row                # counts rows
    Bytes used                  # names of the row in order of appearance, and of the previous row
    Bytes last_used
    Bytes sorting
    Bytes dictionary            # the metadata of the names in `last_used`
    bint known                  # whether `dictionary` is valid
    bint canonical              # write leaves in the canonical type of their equivalence class
    bint without_null_fields    # omit null fields of objects
    bint without_null_elements  # omit null elements of arrays
    const uint8_t *where        # position of a fault


cdef struct Names:
    # Dictionary of an input row, and the composer's name of each id; NO_NAME until it is looked up.
    Metadata m
    Bytes ids
    bint known


cdef struct Written:
    Bytes validity
    Bytes metadata_offsets
    Bytes metadata
    Bytes value_offsets
    Bytes value
    int64_t rows
    int64_t nulls


cdef void composer_free(Composer *c) noexcept nogil
cdef void composer_next(Composer *c) noexcept nogil
cdef int64_t intern_name(Composer *c, const uint8_t *p, size_t n) noexcept nogil
cdef int64_t name_of(Composer *c, Names *names, uint32_t id) noexcept nogil
cdef int compare_names(const Composer *c, uint32_t a, uint32_t b) noexcept nogil
cdef int open_row_names(Names *names, const uint8_t *p, size_t n) noexcept nogil
cdef int put_leaf(Composer *c, const uint8_t *p, size_t n) noexcept nogil
cdef int put_bytes(Composer *c, const uint8_t *p, size_t n) noexcept nogil
cdef int put_null(Composer *c) noexcept nogil
cdef int begin(Composer *c, int kind) noexcept nogil
cdef int end(Composer *c, bint ordered) noexcept nogil
cdef int put_value(Composer *c, Names *names, const uint8_t *p, size_t n, int depth) noexcept nogil
cdef int measure(Composer *c) noexcept nogil
cdef void emit(Composer *c, uint8_t *p) noexcept nogil
cdef uint64_t hash_row(Composer *c, Bytes *room, int *status) noexcept nogil
cdef int write_row(Composer *c, Written *w) noexcept nogil
cdef int write_null(Written *w) noexcept nogil
cdef int write_ends(Written *w, int valid) noexcept nogil
cdef void written_free(Written *w) noexcept nogil
cdef tuple written_take(Written *w)
