# Columns of variants from Python objects, and to them.
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8, PyUnicode_FromObject
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport bytes_append
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_CHILD_SIZE, FAULT_DECIMAL_SCALE, FAULT_DEPTH, FAULT_FIELD_DUPLICATE,
    FAULT_METADATA_NULL, FAULT_METADATA_TRUNCATED, FAULT_METADATA_UTF8, FAULT_STRING_UTF8, FAULT_TIME, FAULT_VALUE_NULL,
    FAULT_VALUE_TRAILING, TYPE_DECIMAL16, TYPE_DECIMAL4, TYPE_DOUBLE, TYPE_FALSE, TYPE_INT16, TYPE_INT32, TYPE_INT64,
    TYPE_INT8, TYPE_NULL, TYPE_TIME_NTZ, TYPE_TRUE, Container, Metadata, VariantInput, array_open, binary_at,
    binary_valid, bit_is_set, bytes_compare, container_child, container_id, is_string, metadata_name, metadata_open,
    object_open, read_uint, read_uint64, string_open, value_size,
)
from pqext.variant.kernels.binary_write cimport write_int, write_string_head
from pqext.variant.kernels.edit cimport (
    COMPOSE_TOO_LARGE, MAX_DEPTH, PIECE_ARRAY, PIECE_OBJECT, Composer, Piece, Written, begin, composer_free,
    composer_next, end, intern_name, put_bytes, put_null, write_null, write_row, written_free, written_take,
)

from collections.abc import Mapping

from pqext.core.base.errors import LimitError
from pqext.variant import faults


cdef class Writer:
    """Converter from Python objects to pieces.

    `encode` returns the bytes of scalars that the writer does not support; `plain` converts other objects to plain
    Python objects.
    """
    cdef Composer c
    cdef dict names
    cdef object encode
    cdef object plain

    def __cinit__(self, encode, plain):
        memset(&self.c, 0, sizeof(Composer))
        self.names = {}
        self.encode = encode
        self.plain = plain

    def __dealloc__(self):
        composer_free(&self.c)

    cdef int check(self, int status) except -1:
        if status == FAULT_DEPTH:
            raise ValueError(f"the object is nested more than {MAX_DEPTH} levels deep")
        if status == COMPOSE_TOO_LARGE:
            raise LimitError("a value exceeds the limit of 2 GiB")
        if status != 0:
            raise MemoryError
        return 0

    cdef int put_text(self, str text) except -1:
        cdef Py_ssize_t size
        cdef const char *p = PyUnicode_AsUTF8AndSize(text, &size)
        cdef uint8_t head[5]
        cdef size_t head_size
        cdef Composer *c = &self.c
        if <uint64_t> size > 0x7FFFFFF0:
            raise LimitError("a string exceeds the limit of 2 GiB")
        head_size = write_string_head(head, <size_t> size) - head
        # As one piece: the head is copied with the following bytes.
        self.check(put_bytes(c, head, head_size))
        if bytes_append(&c.scratch, p, <size_t> size) != 0:
            raise MemoryError
        (<Piece *> (c.tape.data + c.tape.size))[-1].size += <uint32_t> size
        return 0

    cdef int put_key(self, object key) except -1:
        cdef Py_ssize_t size
        cdef const char *p
        cdef int64_t name
        if type(key) is not str:
            if not isinstance(key, str):
                raise TypeError(f"the keys of a dict must be strings, not {type(key).__name__}")
            key = PyUnicode_FromObject(key)  # subclasses may override equality
        known = self.names.get(key)
        if known is None:
            p = PyUnicode_AsUTF8AndSize(key, &size)
            name = intern_name(&self.c, <const uint8_t *> p, <size_t> size)
            if name < 0:
                self.check(<int> name)
            self.names[key] = name
        else:
            name = known
        self.c.next_name = <uint32_t> name
        return 0

    cdef int put(self, object obj) except -1:
        """Add an object with its nested objects."""
        cdef Composer *c = &self.c
        cdef uint8_t head[9]
        cdef double number
        cdef long long integer
        cdef int overflow = 0
        cdef bytes data
        kind = type(obj)
        if obj is None:
            self.check(put_null(c))
        elif kind is str:
            self.put_text(obj)
        elif kind is bool:
            head[0] = (TYPE_TRUE if obj else TYPE_FALSE) << 2
            self.check(put_bytes(c, head, 1))
        elif kind is float:
            number = obj
            head[0] = TYPE_DOUBLE << 2
            memcpy(head + 1, &number, 8)
            self.check(put_bytes(c, head, 9))
        elif kind is dict:
            self.check(begin(c, PIECE_OBJECT))
            for key, value in (<dict> obj).items():
                self.put_key(key)
                self.put(value)
            self.close()
        elif kind is list:
            self.check(begin(c, PIECE_ARRAY))
            for value in <list> obj:
                self.put(value)
            self.close()
        else:
            if kind is int:
                integer = PyLong_AsLongLongAndOverflow(obj, &overflow)
                if not overflow:
                    self.check(put_bytes(c, head, <size_t> (write_int(head, integer) - head)))
                    return 0
            else:
                obj = self.plain(obj)
            if isinstance(obj, Mapping):
                self.check(begin(c, PIECE_OBJECT))
                for key, value in obj.items():
                    self.put_key(key)
                    self.put(value)
                self.close()
            elif isinstance(obj, (list, tuple)):
                self.check(begin(c, PIECE_ARRAY))
                for value in obj:
                    self.put(value)
                self.close()
            elif obj is None:
                self.check(put_null(c))
            else:
                data = self.encode(obj)
                if len(data) > 0x7FFFFFF0:
                    raise LimitError("a value exceeds the limit of 2 GiB")
                self.check(put_bytes(c, <const uint8_t *> data, len(data)))
        return 0

    cdef int close(self) except -1:
        cdef int status = end(&self.c, False)
        if status == FAULT_FIELD_DUPLICATE:
            raise ValueError("a mapping has duplicate keys")
        return self.check(status)

    def rows(self, list objects, int64_t start, bint none_is_missing):
        """Return the rows from `start` on until they end or columns with 32-bit offsets are full, in the format of
        `edit`.
        """
        cdef Written w
        cdef int64_t row = start
        cdef int status
        memset(&w, 0, sizeof(Written))
        try:
            while row < len(objects):
                obj = objects[row]
                if obj is None and none_is_missing:
                    status = write_null(&w)
                else:
                    composer_next(&self.c)
                    try:
                        self.put(obj)
                    except UnicodeEncodeError as error:
                        raise ValueError(f"row {row}: {error}") from None
                    except LimitError as error:
                        raise LimitError(f"row {row}: {error}") from None
                    except TypeError as error:
                        raise TypeError(f"row {row}: {error}") from None
                    except ValueError as error:  # subclasses may require other arguments
                        raise ValueError(f"row {row}: {error}") from None
                    status = write_row(&self.c, &w)
                if status == 1:
                    break
                self.check(status)
                row += 1
            return written_take(&w)
        finally:
            written_free(&w)


cdef class Reader:
    """Converter from variants to Python objects; `decode` converts primitives that the reader does not support."""
    cdef Metadata m
    cdef bint known
    cdef list names
    cdef object decode
    cdef const uint8_t *where

    def __cinit__(self, decode):
        memset(&self.m, 0, sizeof(Metadata))
        self.decode = decode
        self.names = []

    cdef int open_names(self, const uint8_t *p, size_t n):
        cdef int status
        if self.known and self.m.size == n and (self.m.data == p or memcmp_equal(self.m.data, p, n)):
            return 0
        self.known = False
        status = metadata_open(p, n, &self.m)
        if status == 0:
            self.names = [None] * self.m.count
            self.known = True
        return status

    cdef object name(self, uint32_t id, int *status):
        cdef const uint8_t *p = NULL
        cdef size_t n = 0
        if id < self.m.count:
            found = self.names[id]
            if found is not None:
                return found
        status[0] = metadata_name(&self.m, id, &p, &n)
        if status[0] != 0:
            return None
        found = text_of(p, n)
        if found is None:
            status[0] = FAULT_METADATA_UTF8
        else:
            self.names[id] = found
        return found

    cdef object value(self, const uint8_t *p, size_t n, int depth, int *status):
        """Return the object of the value of exactly `n` bytes at `p`; `status` is set to a fault or 0."""
        cdef const uint8_t *at = NULL
        cdef size_t size
        cdef int64_t whole
        cdef int type_id
        cdef double number
        self.where = p
        whole = value_size(p, n)
        if whole < 0 or <size_t> whole != n:
            status[0] = <int> whole if whole < 0 else FAULT_VALUE_TRAILING
            return None
        if p[0] & 3 == BASIC_OBJECT or p[0] & 3 == BASIC_ARRAY:
            return self.children(p, n, depth, status)
        if is_string(p):
            status[0] = string_open(p, n, &at, &size)
            found = text_of(at, size) if status[0] == 0 else None
            if found is None:
                status[0] = FAULT_STRING_UTF8
            return found
        type_id = p[0] >> 2
        if type_id == TYPE_NULL:
            return None
        if type_id == TYPE_TRUE or type_id == TYPE_FALSE:
            return type_id == TYPE_TRUE
        if type_id == TYPE_INT8:
            return <int8_t> p[1]
        if type_id == TYPE_INT16:
            return <int16_t> read_uint(p + 1, 2)
        if type_id == TYPE_INT32:
            return <int32_t> read_uint(p + 1, 4)
        if type_id == TYPE_INT64:
            return <int64_t> read_uint64(p + 1)
        if type_id == TYPE_DOUBLE:
            memcpy(&number, p + 1, 8)
            return number
        if TYPE_DECIMAL4 <= type_id <= TYPE_DECIMAL16 and p[1] > 38:
            status[0] = FAULT_DECIMAL_SCALE
            return None
        if type_id == TYPE_TIME_NTZ and not 0 <= <int64_t> read_uint64(p + 1) < 86400000000:
            status[0] = FAULT_TIME
            return None
        return self.decode((<const char *> p)[:n])

    cdef object children(self, const uint8_t *p, size_t n, int depth, int *status):
        cdef Container c
        cdef const uint8_t *at = NULL
        cdef size_t limit = 0, total = 0
        cdef int64_t size
        cdef uint32_t i
        cdef bint is_object = p[0] & 3 == BASIC_OBJECT
        cdef dict fields = {}
        cdef list elements = []
        status[0] = object_open(p, n, &c) if is_object else array_open(p, n, &c)
        if status[0] == 0 and c.count > c.values_size:
            status[0] = FAULT_CHILD_SIZE
        if status[0] == 0 and depth >= MAX_DEPTH:
            status[0] = FAULT_DEPTH
        if status[0] != 0:
            return None
        for i in range(c.count):
            status[0] = container_child(&c, i, &at, &limit)
            if status[0] != 0:
                return None
            size = value_size(at, limit)
            if size < 0:
                self.where = at
                status[0] = <int> size
                return None
            total += <size_t> size
            if total > c.values_size:
                status[0] = FAULT_CHILD_SIZE
                return None
            name = self.name(container_id(&c, i), status) if is_object else None
            if status[0] == 0:
                found = self.value(at, <size_t> size, depth + 1, status)
            if status[0] != 0:
                return None
            self.where = p
            if is_object:
                fields[name] = found
            else:
                elements.append(found)
        if total != c.values_size:
            status[0] = FAULT_CHILD_SIZE
        elif is_object and <uint32_t> len(fields) != c.count:
            status[0] = FAULT_FIELD_DUPLICATE
        return fields if is_object else elements

    def rows(self, VariantInput array, int64_t first_row):
        """Return the objects of all rows, with None for null rows."""
        cdef const uint8_t *p = NULL
        cdef const uint8_t *start = NULL
        cdef size_t n = 0
        cdef int64_t row
        cdef int status = 0
        cdef list objects = []
        self.known = False      # this array may have the address of a previous, freed array
        for row in range(array.length):
            if not bit_is_set(array.validity, array.offset + row):
                objects.append(None)
                continue
            start = NULL
            status = FAULT_METADATA_NULL
            if binary_valid(&array.metadata, row):
                status = binary_at(&array.metadata, row, &p, &n)
            if status == 0:
                status = self.open_names(p, n)
            if status == 0:
                status = FAULT_VALUE_NULL
                if binary_valid(&array.value, row):
                    status = binary_at(&array.value, row, &p, &n)
            if status == 0:
                start = self.where = p
                objects.append(self.value(p, n, 0, &status))
            if status != 0:
                in_value = start != NULL and not FAULT_METADATA_NULL <= status <= FAULT_METADATA_TRUNCATED
                raise faults.error(
                    status, row=first_row + row, offset=self.where - start if in_value else None
                )
        return objects


cdef inline bint memcmp_equal(const uint8_t *a, const uint8_t *b, size_t n) noexcept nogil:
    return bytes_compare(a, n, b, n) == 0


cdef object text_of(const uint8_t *p, size_t n):
    """Return the text; None if it is not UTF-8."""
    try:
        return PyUnicode_DecodeUTF8(<const char *> p, <Py_ssize_t> n, NULL)
    except UnicodeDecodeError:
        return None
