# cython: language_level=3, cdivision=True
"""Format rows of Arrow columns as JSON objects or CSV lines, and the values of a column as text.

Values have the same text as DuckDB's casts; nested values are JSON. No Python object is created per value.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.core.kernels.number_write cimport write_digits, write_integer
from pqext.variant.kernels.binary cimport FAULT_ARROW, FAULT_MEMORY, FAULT_STRING_UTF8, FAULT_TIME, bit_is_set
from pqext.variant.kernels.display_write cimport (
    show_bytes, show_clock, show_date, show_interval, show_special, show_timestamp,
)
from pqext.variant.kernels.json_print cimport ROOM, TextColumn, put, text_column_row, write_text, write_word
from pqext.variant.kernels.scan cimport utf8_fault
from pqext.variant.kernels.shredding cimport FAULT_TOO_LARGE
from pqext.variant.kernels.text_write cimport write_decimal, write_double, write_float, write_uuid


cpdef enum TextKind:
    KIND_NULL = 0
    KIND_BOOL
    KIND_INT
    KIND_UINT
    KIND_FLOAT
    KIND_DECIMAL
    KIND_DATE           # days, of 4 bytes, or milliseconds, of 8
    KIND_TIMESTAMP
    KIND_INSTANT
    KIND_TIME
    KIND_DURATION
    KIND_INTERVAL       # months, days and nanoseconds, of 16 bytes
    KIND_UUID
    KIND_STRING         # this and later kinds may need quotes in CSV
    KIND_JSON           # JSON text, or nan, inf and -inf
    KIND_BINARY
    KIND_STRUCT         # this and later kinds are nested
    KIND_LIST
    KIND_FIXED_LIST
    KIND_MAP            # with keys that are names
    KIND_PAIRS          # a map as a list of pairs


cdef struct Node:
    int kind
    int width               # bytes of a value; 4 or 8 of an offset; values of a fixed-size list
    int scale               # of decimals; digits of the fraction of a second
    int64_t length
    int64_t offset          # of the first value in the buffers
    int64_t base            # the first offset of a list
    const uint8_t *validity
    const uint8_t *data
    int64_t data_size
    const uint8_t *offsets
    int first               # first child
    int children


include "quoting.pxi"


cdef class RowText:
    """Columns whose rows are formatted. `nodes` describe the columns and their children (`presentation.row_text`).

    A node is a tuple (kind, width, scale, length, offset, base, validity, data, offsets, first, children); children
    follow their parents. Buffers are Arrow buffers or None. `names` are JSON strings with the following punctuation,
    for the children of structs. `columns` is the number of columns.
    """
    cdef Node *nodes
    cdef int count
    cdef object owners
    cdef Bytes names
    cdef Bytes name_ends
    cdef int columns
    cdef readonly int64_t rows

    def __cinit__(self):
        self.nodes = NULL
        memset(&self.names, 0, sizeof(Bytes))
        memset(&self.name_ends, 0, sizeof(Bytes))

    def __init__(self, list nodes, list names, int columns, int64_t rows):
        """Store the nodes; the first `columns` nodes are the columns. `names` has an entry for each node."""
        cdef Node *node
        cdef int i
        cdef bytes name
        cdef uint64_t end = 0
        if self.nodes != NULL:
            raise ValueError("the rows were already set")
        self.nodes = <Node *> calloc(len(nodes) + 1, sizeof(Node))
        if self.nodes == NULL:
            raise MemoryError
        self.count = len(nodes)
        self.columns = columns
        self.rows = rows
        self.owners = nodes
        for i, (kind, width, scale, length, offset, base, validity, data, offsets, first, children) in enumerate(nodes):
            node = &self.nodes[i]
            node.kind = kind
            node.width = width
            node.scale = scale
            node.length = length
            node.offset = offset
            node.base = base
            node.first = first
            node.children = children
            if children and not (i < first and first + children <= len(nodes)):
                raise ValueError("children must follow their parents")
            if validity is not None:
                _check(validity.size * 8, offset + length)
                node.validity = <const uint8_t *> <uintptr_t> validity.address
            if offsets is not None:
                _check(offsets.size, (offset + length + 1) * width)
                node.offsets = <const uint8_t *> <uintptr_t> offsets.address
            if data is not None:
                node.data = <const uint8_t *> <uintptr_t> data.address
                node.data_size = data.size
            if node.kind < KIND_STRING and node.kind != KIND_NULL:
                _check(node.data_size * 8 if node.kind == KIND_BOOL else node.data_size,
                       offset + length if node.kind == KIND_BOOL else (offset + length) * width)
        for name in names:
            if bytes_append(&self.names, <const uint8_t *> name, len(name)) != 0:
                raise MemoryError
            end = self.names.size
            if bytes_append(&self.name_ends, &end, 8) != 0:
                raise MemoryError
        if len(names) != len(nodes) or columns > len(nodes):
            raise ValueError("a node has no name")
        for i in range(columns):
            _check(self.nodes[i].length, rows)

    def __dealloc__(self):
        free(self.nodes)
        bytes_free(&self.names)
        bytes_free(&self.name_ends)

    def json(self, int64_t start, int64_t size):
        """Format rows from `start` on as JSON objects, one per line, up to `size` bytes or the last row.

        Return (rows, text, fault, node): the fault of the next row, and the node with the fault.
        """
        return self._lines(start, size, False)

    def csv(self, int64_t start, int64_t size):
        """Format rows like `json`, as lines of CSV: nulls are empty, and values are quoted if necessary or if they are
        empty text.
        """
        return self._lines(start, size, True)

    cdef object _lines(self, int64_t start, int64_t size, bint are_csv):
        cdef Bytes out
        cdef int64_t row = start
        cdef int status = 0, where = -1
        if not 0 <= start <= self.rows:
            raise ValueError(f"row {start} is out of range for {self.rows} rows")
        memset(&out, 0, sizeof(Bytes))
        try:
            with nogil:
                while row < self.rows and <int64_t> out.size < size:
                    status = self._csv_line(&out, row, &where) if are_csv else self._json_line(&out, row, &where)
                    if status != 0:
                        break
                    row += 1
            return row - start, take(&out), status, where
        finally:
            bytes_free(&out)

    cdef int _json_line(self, Bytes *out, int64_t row, int *where) noexcept nogil:
        cdef int i, status = put(out, c'{')
        for i in range(self.columns):
            if status == 0 and i:
                status = bytes_append(out, b", ", 2)
            if status == 0:
                status = self._name(out, i)
            if status == 0:
                status = self._json(out, i, row)
                where[0] = i
            if status != 0:
                return status
        return bytes_append(out, b"}\n", 2) if status == 0 else status

    cdef int _csv_line(self, Bytes *out, int64_t row, int *where) noexcept nogil:
        cdef size_t before
        cdef int i, status = 0
        for i in range(self.columns):
            if i:
                status = put(out, c',')
            before = out.size
            if status == 0 and self._valid(i, row):
                status = self._plain(out, i, row)
                if status == 0 and self.nodes[i].kind >= KIND_STRING:
                    status = quote(out, before)
            elif status == 0 and self.columns == 1:
                status = bytes_append(out, b'""', 2)  # an empty line would not be a row
            if status != 0:
                where[0] = i
                return status
        return put(out, c'\n')

    def texts(self, int column):
        """Format the values of a column as text; return (rows, validity, offsets, text, fault)."""
        cdef Bytes out
        cdef TextColumn result
        cdef int64_t row = 0
        cdef int status = 0
        cdef bint valid
        memset(&out, 0, sizeof(Bytes))
        memset(&result, 0, sizeof(TextColumn))
        if not 0 <= column < self.columns:
            raise IndexError("column index out of range")
        try:
            with nogil:
                while row < self.rows:
                    valid = self._valid(column, row)
                    if valid:
                        status = self._plain(&out, column, row)
                        if status == 0 and out.size > 0x7FFFFFFF:
                            status = FAULT_TOO_LARGE
                    if status == 0:
                        status = text_column_row(&result, valid, out.size)
                    if status != 0:
                        break
                    row += 1
            return row, take(&result.validity), take(&result.offsets), take(&out), status
        finally:
            bytes_free(&out)
            bytes_free(&result.validity)
            bytes_free(&result.offsets)

    cdef inline int _name(self, Bytes *out, int i) noexcept nogil:
        cdef const uint64_t *ends = <const uint64_t *> self.name_ends.data
        cdef uint64_t begin = ends[i - 1] if i else 0
        return bytes_append(out, self.names.data + begin, ends[i] - begin)

    cdef inline bint _valid(self, int i, int64_t row) noexcept nogil:
        cdef Node *node = &self.nodes[i]
        return node.kind != KIND_NULL and bit_is_set(node.validity, node.offset + row)

    cdef int _bytes(self, const Node *node, int64_t row, const uint8_t **p, size_t *n) noexcept nogil:
        """Return the bytes of a value of variable or fixed size in `p` and `n`; 0 or a fault."""
        cdef int64_t begin, end
        if node.offsets == NULL:
            begin = (node.offset + row) * node.width
            end = begin + node.width
        else:
            begin = _offset(node, row)
            end = _offset(node, row + 1)
        if not 0 <= begin <= end <= node.data_size:
            return FAULT_ARROW
        p[0] = node.data + begin if node.data != NULL else <const uint8_t *> b""
        n[0] = <size_t> (end - begin)
        return 0

    cdef int _scalar(self, Bytes *out, const Node *node, int64_t row, bint quoted) noexcept nogil:
        """Write a value of fixed size without quotes; NaN and infinities are quoted if `quoted`."""
        cdef int64_t index = node.offset + row
        cdef const uint8_t *p = node.data + index * node.width
        cdef uint8_t *to
        cdef int64_t number = 0
        cdef uint64_t bits = 0
        cdef uint32_t word = 0
        cdef int32_t months = 0, days = 0
        cdef bint wide = node.width == 8
        if node.kind == KIND_BOOL:
            return write_word(out, b"true", 4) if bit_is_set(node.data, index) else write_word(out, b"false", 5)
        if bytes_reserve(out, 2 * ROOM) != 0:
            return FAULT_MEMORY
        to = out.data + out.size
        if node.kind == KIND_FLOAT:
            memcpy(&bits, p, node.width)
            if (bits >> 52 & 0x7FF) == 0x7FF if wide else (bits >> 23 & 0xFF) == 0xFF:
                number = bits & 0xFFFFFFFFFFFFFULL if wide else bits & 0x7FFFFF
                to = show_special(to, bits >> 63 if wide else bits >> 31, number != 0, quoted)
            else:
                to = write_double(to, bits) if wide else write_float(to, <uint32_t> bits)
        elif node.kind == KIND_UINT:
            memcpy(&bits, p, node.width)
            to = write_digits(to, bits)
        elif node.kind == KIND_DECIMAL:
            memcpy(&bits, p, 8)
            memcpy(&number, p + 8, 8)
            to = write_decimal(to, number, bits, node.scale)
        elif node.kind == KIND_UUID:
            to = write_uuid(to, p)
        elif node.kind == KIND_INTERVAL:
            memcpy(&months, p, 4)
            memcpy(&days, p + 4, 4)
            memcpy(&number, p + 8, 8)
            to = show_interval(to, months, days, number, 1000000000, 9)
        else:
            if node.width == 8:
                memcpy(&number, p, 8)
            elif node.width == 4:
                memcpy(&days, p, 4)
                number = days
            elif node.width == 2:
                number = (<const int16_t *> p)[0]
            else:
                number = <int8_t> p[0]
            if node.kind == KIND_INT:
                to = write_integer(to, number)
            elif node.kind == KIND_DATE:
                to = show_date(to, number if node.width == 4 else _days(number))
            elif node.kind == KIND_TIME:
                if number < 0:
                    return FAULT_TIME
                to = show_clock(to, <uint64_t> number, _ticks(node.scale), node.scale)
            elif node.kind == KIND_DURATION:
                to = show_interval(to, 0, 0, number, <int64_t> _ticks(node.scale), node.scale)
            else:
                to = show_timestamp(
                    to, number, <int64_t> _ticks(node.scale), node.scale, node.kind == KIND_INSTANT
                )
        out.size = to - out.data
        return 0

    cdef int _json(self, Bytes *out, int i, int64_t row) noexcept nogil:
        cdef const Node *node = &self.nodes[i]
        cdef const uint8_t *p = NULL
        cdef size_t n = 0
        cdef int status
        if not self._valid(i, row):
            return write_word(out, b"null", 4)
        if node.kind >= KIND_STRUCT:
            return self._nested(out, node, row)
        if node.kind >= KIND_STRING:
            status = self._bytes(node, row, &p, &n)
            if status != 0:
                return status
            if node.kind == KIND_STRING:
                return write_text(out, p, n, node.data + node.data_size, FAULT_STRING_UTF8)
            if node.kind == KIND_JSON:
                return write_json_text(out, p, n)
            if put(out, c'"') != 0 or show_bytes(out, p, n, True) != 0:
                return FAULT_MEMORY
            return put(out, c'"')
        if node.kind <= KIND_DECIMAL:
            return self._scalar(out, node, row, True)
        status = put(out, c'"')
        if status == 0:
            status = self._scalar(out, node, row, False)
        return status if status != 0 else put(out, c'"')

    cdef int _plain(self, Bytes *out, int i, int64_t row) noexcept nogil:
        """Write a value that is not null as plain text."""
        cdef const Node *node = &self.nodes[i]
        cdef const uint8_t *p = NULL
        cdef size_t n = 0
        cdef int status
        if node.kind < KIND_STRING:
            return self._scalar(out, node, row, False)
        if node.kind >= KIND_STRUCT:
            return self._nested(out, node, row)
        status = self._bytes(node, row, &p, &n)
        if status != 0:
            return status
        if node.kind == KIND_BINARY:
            return FAULT_MEMORY if show_bytes(out, p, n, False) != 0 else 0
        if node.kind == KIND_JSON and n and p[0] == c'"':
            return unescape(out, p, n)
        if node.kind == KIND_STRING and utf8_fault(p, n) >= 0:
            return FAULT_STRING_UTF8
        return bytes_append(out, p, n)

    cdef int _nested(self, Bytes *out, const Node *node, int64_t row) noexcept nogil:
        cdef int64_t begin, end, at
        cdef int i, status = 0
        if node.kind == KIND_STRUCT:
            status = put(out, c'{')
            for i in range(node.children):
                if status == 0 and i:
                    status = bytes_append(out, b", ", 2)
                if status == 0:
                    status = self._name(out, node.first + i)
                if status == 0:
                    status = self._json(out, node.first + i, row)
                if status != 0:
                    return status
            return status if status != 0 else put(out, c'}')
        if node.kind == KIND_FIXED_LIST:
            begin = row * node.width
            end = begin + node.width
        else:
            begin = _offset(node, row) - node.base
            end = _offset(node, row + 1) - node.base
        if not 0 <= begin <= end <= self.nodes[node.first].length:
            return FAULT_ARROW
        status = put(out, c'{' if node.kind == KIND_MAP else c'[')
        for at in range(begin, end):
            if status == 0 and at > begin:
                status = bytes_append(out, b", ", 2)
            if status == 0 and node.kind == KIND_PAIRS:
                status = put(out, c'[')
            if status == 0:
                status = self._key(out, node.first, at) if node.kind == KIND_MAP else self._json(out, node.first, at)
            if status == 0 and node.kind >= KIND_MAP:
                status = bytes_append(out, b": " if node.kind == KIND_MAP else b", ", 2)
                if status == 0:
                    status = self._json(out, node.first + 1, at)
            if status == 0 and node.kind == KIND_PAIRS:
                status = put(out, c']')
            if status != 0:
                return status
        return status if status != 0 else put(out, c'}' if node.kind == KIND_MAP else c']')

    cdef int _key(self, Bytes *out, int i, int64_t row) noexcept nogil:
        """Write a map key as a member name; keys other than strings are quoted."""
        cdef const Node *node = &self.nodes[i]
        cdef int status
        if node.kind > KIND_DECIMAL or not self._valid(i, row):
            return self._json(out, i, row)
        status = put(out, c'"')
        if status == 0:
            status = self._scalar(out, node, row, False)
        return status if status != 0 else put(out, c'"')


cdef int _check(int64_t size, int64_t needed) except -1:
    if needed < 0 or size < needed:
        raise ValueError("a buffer of the array is too short")
    return 0


cdef inline int64_t _offset(const Node *node, int64_t row) noexcept nogil:
    if node.width == 8:
        return (<const int64_t *> node.offsets)[node.offset + row]
    return (<const int32_t *> node.offsets)[node.offset + row]


cdef inline uint64_t _ticks(int digits) noexcept nogil:
    return 1 if digits == 0 else 1000 if digits == 3 else 1000000 if digits == 6 else 1000000000


cdef inline int64_t _days(int64_t milliseconds) noexcept nogil:
    cdef int64_t days = milliseconds // 86400000
    return days - (milliseconds % 86400000 < 0)
