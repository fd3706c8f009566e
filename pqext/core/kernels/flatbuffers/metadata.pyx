# cython: language_level=3
"""Convert the structures of a verified FlatBuffers footer to Thrift, one by one.

Differences (`thrift_fields`) in its extension add values that the tables cannot represent.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free
from pqext.core.kernels.thrift.compact cimport DONE, STRUCT, Cursor
from pqext.core.kernels.flatbuffers.leaves cimport BAD_TREE, MOST_PATHS, TOO_DEEP_TREE, TOO_MUCH_TREE, Leaves, find_leaves, free_leaves
from pqext.core.kernels.flatbuffers.tables cimport (
    F_ENCRYPTION, F_GROUPS, F_SCHEMA, F_SIGNING_KEY, G_COLUMNS, G_ROWS, byte_in, count_of, long_in, member, target,
    u32_at,
)
from pqext.core.kernels.flatbuffers.to_thrift cimport put_chunk, put_element, put_file, put_group
from pqext.core.kernels.flatbuffers.thrift_fields cimport (
    OUT_OF_MEMORY, UNUSUAL_FIELDS, Fields, look, put_byte, put_bytes, put_list, put_together, scan_struct,
)

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.kernels.flatbuffers.verify import extension, verify


cdef enum:
    BAD_PIECE = -33
    TOO_LONG = -34

cdef dict MESSAGES = {
    BAD_TREE: "the schema of the FlatBuffers footer is not a tree",
    UNUSUAL_FIELDS: "the extension of the FlatBuffers footer is corrupt",
    BAD_PIECE: "the extension of the FlatBuffers footer is corrupt",
    TOO_DEEP_TREE: "the schema nests deeper than schema_depth",
    TOO_LONG: "the FlatBuffers footer expands to a Thrift footer of more than footer_bytes",
    TOO_MUCH_TREE: "the paths of the columns are far larger than the FlatBuffers footer",
}

cdef int raise_for(int status) except -1:
    if status == OUT_OF_MEMORY:
        raise MemoryError
    raise (LimitError if status in (TOO_DEEP_TREE, TOO_MUCH_TREE, TOO_LONG) else CorruptFileError)(MESSAGES[status])


cdef struct Section:
    int64_t count
    const uint8_t *starts
    const uint8_t *data
    int64_t size


cdef class FlatMetadata:
    """Verified FlatBuffers footer, whose structures are converted to Thrift one by one."""
    cdef object held, beside
    cdef const uint8_t *data
    cdef int64_t root, schema, groups
    cdef Leaves leaves
    cdef Section pieces[3]       # elements, row groups, column chunks
    cdef const uint8_t *file_piece
    cdef int64_t file_size
    cdef bint own
    cdef int64_t most            # maximum size of a Thrift result in bytes

    def __cinit__(self, bytes payload not None, limits, own):
        cdef int64_t i, size = len(payload)
        cdef int status, max_depth = min(limits.schema_depth, 1 << 20)
        verify(payload)
        self.held = payload
        self.most = limits.footer_bytes
        self.data = <const uint8_t *> <const char *> payload
        self.root = u32_at(self.data)
        self.schema = target(self.data, self.root, F_SCHEMA)
        self.groups = target(self.data, self.root, F_GROUPS)
        with nogil:
            status = find_leaves(self.data, self.schema, max_depth, MOST_PATHS * size + (1 << 20), &self.leaves)
        if status != DONE:
            raise_for(status)
        for i in range(count_of(self.data, self.groups)):
            if count_of(self.data, self.columns_of(i)) != self.leaves.count:
                raise CorruptFileError(f"the columns of row group {i} in the FlatBuffers footer do not match the schema")
        stored = extension(payload)
        self.beside = None if stored is None else own(stored)
        self.own = self.beside is not None
        if self.own:
            self.split(self.beside)

    def __dealloc__(self):
        free_leaves(&self.leaves)

    cdef int64_t columns_of(self, int64_t group) noexcept nogil:
        return target(self.data, member(self.data, self.groups, group), G_COLUMNS)

    cdef int split(self, bytes beside) except -1:
        """Locate the parts of the differences."""
        cdef const uint8_t *p = <const uint8_t *> <const char *> beside
        cdef const uint8_t *end = p + len(beside)
        cdef int64_t expected[3]
        cdef int i
        expected[0] = count_of(self.data, self.schema)
        expected[1] = count_of(self.data, self.groups)
        expected[2] = expected[1] * self.leaves.count
        if end - p < 8 or u32_at(p) != 1:
            raise_for(BAD_PIECE)
        self.file_size = u32_at(p + 4)
        p += 8
        if self.file_size > end - p:
            raise_for(BAD_PIECE)
        self.file_piece = p
        p += self.file_size
        for i in range(3):
            if end - p < 4:
                raise_for(BAD_PIECE)
            self.pieces[i].count = u32_at(p)
            p += 4
            if self.pieces[i].count == 0:
                continue
            if self.pieces[i].count != expected[i] or (self.pieces[i].count + 1) * 4 > end - p:
                raise_for(BAD_PIECE)
            self.pieces[i].starts = p
            p += (self.pieces[i].count + 1) * 4
            self.pieces[i].size = u32_at(p - 4)
            if u32_at(self.pieces[i].starts) != 0 or self.pieces[i].size > end - p:
                raise_for(BAD_PIECE)
            self.pieces[i].data = p
            p += self.pieces[i].size
        if p != end:
            raise_for(BAD_PIECE)
        return 0

    cdef int finish(self, const uint8_t *piece, int64_t size, Bytes *base, Bytes *out) noexcept nogil:
        """Apply a difference to a structure from the tables."""
        cdef Fields mine, other
        cdef Cursor c
        if size == 0:
            return put_bytes(out, base.data, base.size)
        look(&c, base.data, base.data + base.size)
        if scan_struct(&c, base.data, &mine) == NULL:
            return UNUSUAL_FIELDS
        look(&c, piece, piece + size)
        if scan_struct(&c, piece, &other) != piece + size:
            return BAD_PIECE
        return put_together(&mine, &other, out, 0)

    cdef int one(self, int kind, int64_t position, int64_t group, int64_t column, Bytes *base, Bytes *out) noexcept nogil:
        """Convert a schema element (0), row group (1) or column chunk (2) to Thrift. Return DONE or a fault."""
        cdef Section *section = &self.pieces[kind]
        cdef int64_t start = 0, stop = 0, table
        cdef int status
        base.size = 0
        if kind == 0:
            status = put_element(self.data, member(self.data, self.schema, position), base)
        elif kind == 1:
            status = put_group(self.data, member(self.data, self.groups, position), base)
        else:
            table = member(self.data, self.groups, group)
            status = put_chunk(
                self.data, member(self.data, self.columns_of(group), column), long_in(self.data, table, G_ROWS),
                &self.leaves, column, self.own, base,
            )
        if status == DONE and section.count:
            start, stop = u32_at(section.starts + 4 * position), u32_at(section.starts + 4 * position + 4)
            if start > stop or stop > section.size:
                return BAD_PIECE
        if status != DONE:
            return status
        return self.finish(section.data + start if section.count else NULL, stop - start, base, out)

    @property
    def counts(self):
        """Numbers of schema elements, row groups and leaves."""
        return count_of(self.data, self.schema), count_of(self.data, self.groups), self.leaves.count

    @property
    def rows(self):
        """Total number of rows of all row groups; None if a count is negative, or differences may contain counts."""
        cdef int64_t i, rows, total = 0
        if self.pieces[1].count:
            return None
        for i in range(count_of(self.data, self.groups)):
            rows = long_in(self.data, member(self.data, self.groups, i), G_ROWS)
            if rows < 0 or rows > INT64_MAX - total:
                return None
            total += rows
        return total

    @property
    def is_ours(self):
        """Whether pqext's extension complements the tables."""
        return self.own

    @property
    def is_encrypted(self):
        """Whether the footer declares encryption."""
        return bool(byte_in(self.data, self.root, F_ENCRYPTION, 0) or target(self.data, self.root, F_SIGNING_KEY))

    def file(self):
        cdef Bytes base, out
        cdef int status
        memset(&base, 0, sizeof(Bytes))
        memset(&out, 0, sizeof(Bytes))
        try:
            with nogil:
                status = put_file(self.data, self.root, &base)
                if status == DONE:
                    status = self.finish(self.file_piece, self.file_size, &base, &out)
            if status != DONE:
                raise_for(status)
            return PyBytes_FromStringAndSize(<const char *> out.data, out.size)
        finally:
            bytes_free(&base)
            bytes_free(&out)

    def elements(self, int64_t start, int64_t stop):
        return self.listed(0, start, stop, 0)

    def group(self, int64_t position):
        return self.listed(1, position, position + 1, 0)

    def chunks(self, int64_t column, int64_t start, int64_t stop):
        return self.listed(2, start, stop, column)

    cdef bytes listed(self, int kind, int64_t start, int64_t stop, int64_t column):
        cdef Bytes base, out
        cdef int status = DONE
        cdef int64_t i, count = count_of(self.data, self.schema if kind == 0 else self.groups)
        if not 0 <= start <= stop <= count or (kind == 2 and not 0 <= column < self.leaves.count):
            raise IndexError(f"structures {start} to {stop} are out of range for {count} structures")
        memset(&base, 0, sizeof(Bytes))
        memset(&out, 0, sizeof(Bytes))
        try:
            with nogil:
                for i in range(start, stop):
                    status = self.one(
                        kind, i * self.leaves.count + column if kind == 2 else i, i, column, &base, &out
                    )
                    if status == DONE and <int64_t> out.size > self.most:
                        status = TOO_LONG
                    if status != DONE:
                        break
            if status != DONE:
                raise_for(status)
            return PyBytes_FromStringAndSize(<const char *> out.data, out.size)
        finally:
            bytes_free(&base)
            bytes_free(&out)

    def row_groups(self):
        """Return the list of all row groups with all their column chunks, beginning with the list header."""
        cdef Bytes base, out, group
        cdef int status = DONE
        cdef int64_t i, j, count = count_of(self.data, self.groups)
        memset(&base, 0, sizeof(Bytes))
        memset(&out, 0, sizeof(Bytes))
        memset(&group, 0, sizeof(Bytes))
        try:
            with nogil:
                status = put_list(&out, STRUCT, count)
                for i in range(count):
                    if status != DONE:
                        break
                    group.size = 0
                    status = self.one(1, i, 0, 0, &base, &group)
                    if status == DONE and (group.size < 3 or group.data[0] != 0x19 or group.data[1] != 0x0C):
                        status = BAD_PIECE
                    if status == DONE:
                        status = put_byte(&out, 0x19)
                    if status == DONE:
                        status = put_list(&out, STRUCT, self.leaves.count)
                    for j in range(self.leaves.count):
                        if status != DONE:
                            break
                        status = self.one(2, i * self.leaves.count + j, i, j, &base, &out)
                        if status == DONE and <int64_t> out.size > self.most:
                            status = TOO_LONG
                    if status == DONE:
                        status = put_bytes(&out, group.data + 2, group.size - 2)
            if status != DONE:
                raise_for(status)
            return PyBytes_FromStringAndSize(<const char *> out.data, out.size)
        finally:
            bytes_free(&base)
            bytes_free(&out)
            bytes_free(&group)
