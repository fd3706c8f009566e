# cython: language_level=3
"""Read properties of column chunks directly from footer bytes, without building structures."""
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from pqext.core.kernels.thrift.compact cimport (
    BINARY, DONE, FALSE, I32, I64, LIST, STOP, STRUCT, Cursor, read_header, read_list, read_size, read_varint,
    skip_value, skip_values, unzigzag,
)
from pqext.core.kernels.thrift.struct_plan cimport Plan
from pqext.core.kernels.thrift.reader cimport StructIndex, read_struct

cdef enum:
    UNUSUAL = 2

    # Columns of the result.
    CODEC = 0
    VALUES = 1
    UNCOMPRESSED = 2
    COMPRESSED = 3
    DATA = 4
    DICTIONARY = 5
    WIDTH = 6


cdef int read_path(Cursor *c, const uint8_t *path, Py_ssize_t length) noexcept nogil:
    """Compare a list of names with `path`, names with 4-byte length prefixes.

    Return DONE if they are equal, or UNUSUAL.
    """
    cdef int element = 0, status
    cdef Py_ssize_t count = 0, i, size = 0, at = 0
    cdef uint32_t known
    status = read_list(c, &element, &count)
    if status != DONE or (count and element != BINARY):
        return UNUSUAL
    for i in range(count):
        if read_size(c, &size) != DONE or length - at < 4:
            return UNUSUAL
        known = path[at] | path[at + 1] << 8 | path[at + 2] << 16 | <uint32_t> path[at + 3] << 24
        at += 4
        if size != <Py_ssize_t> known or size > length - at or (size and memcmp(c.p, path + at, size) != 0):
            return UNUSUAL
        c.p += size
        at += size
    return DONE if at == length else UNUSUAL


cdef int read_metadata(
    Cursor *c, int physical, const uint8_t *path, Py_ssize_t length, int64_t *out, const uint8_t **statistics
) noexcept nogil:
    """Read the numbers of a chunk's metadata, and the start of its statistics if there are any. Return DONE or UNUSUAL.
    """
    cdef int wire = 0, id = 0, element = 0
    cdef Py_ssize_t count = 0
    cdef uint64_t raw = 0
    cdef int64_t value
    cdef uint32_t seen = 0
    cdef const uint8_t *end
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            break
        if 0 < id <= 12:
            if seen >> id & 1:
                return UNUSUAL
            seen |= <uint32_t> 1 << id
        if id == 2:
            if wire != LIST or read_list(c, &element, &count) != DONE or (count and element != I32):
                return UNUSUAL
            end = skip_values(c, c.p, I32, count, 3)
            if end == NULL:
                return UNUSUAL
            c.p = end
            continue
        if id == 3:
            if wire != LIST or read_path(c, path, length) != DONE:
                return UNUSUAL
            continue
        if id == 1 or id == 4 or 5 <= id <= 7 or id == 9 or id == 11:
            if wire != (I32 if id <= 4 else I64) or read_varint(c, &raw) != DONE:
                return UNUSUAL
            value = unzigzag(raw)
            if id <= 4 and (value < INT32_MIN or value > INT32_MAX):
                return UNUSUAL
            if id == 1:
                if value != physical:
                    return UNUSUAL
            else:
                out[CODEC if id == 4 else VALUES + id - 5 if id <= 7 else DATA if id == 9 else DICTIONARY] = value
            continue
        if id == 12:
            if wire != STRUCT:
                return UNUSUAL
            statistics[0] = c.p
        if wire > FALSE:
            end = skip_value(c, c.p, wire, 3)
            if end == NULL:
                return UNUSUAL
            c.p = end
    # All fields but the dictionary page offset must be present: fields 1 to 7 and 9.
    return DONE if (seen & 0x2FE) == 0x2FE else UNUSUAL


cdef int read_chunk(
    Cursor *c, int physical, const uint8_t *path, Py_ssize_t length, const uint8_t *file, Py_ssize_t file_length,
    int64_t *out, const uint8_t **statistics,
) noexcept nogil:
    """Read a chunk that is not encrypted and is in this file, which it may name `file`. Return DONE or UNUSUAL.

    If `file_length` is -1, chunks may be in any file.
    """
    cdef int wire = 0, id = 0
    cdef Py_ssize_t size = 0
    cdef bint found = False
    cdef const uint8_t *end
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            return DONE if found else UNUSUAL
        if id == 3:
            if found or wire != STRUCT or read_metadata(c, physical, path, length, out, statistics) != DONE:
                return UNUSUAL
            found = True
            continue
        if id == 1 and file_length and wire == BINARY:
            if read_size(c, &size) != DONE or (
                file_length > 0 and (size != file_length or memcmp(c.p, file, size) != 0)
            ):
                return UNUSUAL
            c.p += size
            continue
        # In another file, or encrypted.
        if id == 1 or id == 8 or id == 9:
            return UNUSUAL
        if wire > FALSE:
            end = skip_value(c, c.p, wire, 1)
            if end == NULL:
                return UNUSUAL
            c.p = end


def small_chunk_ranges(
    StructIndex chunks not None, leaves, int64_t values, int64_t most_unpacked, int64_t most_stored, int64_t file_size,
    bytes file_name=b"",
):
    """Select the `leaves` whose chunks are ordinary and small; return their positions, codecs and byte ranges.

    `leaves` are (position in the list, physical type, path); each name in a path follows its 4-byte length. A small
    chunk has `values` values, and at most `most_stored` bytes, or `most_unpacked` uncompressed bytes. It must be within
    the file, which chunks may name ``file_name``.
    """
    cdef const uint8_t *file = <const uint8_t *> <const char *> file_name
    cdef Py_ssize_t position = 0, place, file_length = len(file_name)
    cdef int physical, status
    cdef const uint8_t[::1] path
    cdef Cursor c
    cdef int64_t found[WIDTH]
    cdef int64_t start, stored
    cdef const uint8_t *statistics = NULL
    cdef list positions = [], codecs = [], ranges = []
    for place, physical, name in leaves:
        chunks.check(place)
        path = name
        c = chunks.cursor
        c.p = c.start + chunks.offsets[place]
        c.end = c.start + chunks.offsets[place + 1]
        c.elements, c.objects = c.max_elements, c.max_objects
        for i in range(WIDTH):
            found[i] = -1
        status = read_chunk(
            &c, physical, &path[0] if path.shape[0] else NULL, path.shape[0], file, file_length, found, &statistics
        )
        start, stored = found[DATA], found[COMPRESSED]
        if 0 < found[DICTIONARY] < start:
            start = found[DICTIONARY]
        if (
            status == DONE and found[CODEC] >= 0 and found[VALUES] == values and found[UNCOMPRESSED] <= most_unpacked
            and 0 < stored <= most_stored and 0 <= start <= file_size - stored
        ):
            positions.append(position)
            codecs.append(found[CODEC])
            ranges.append((start, stored))
        position += 1
    return positions, codecs, ranges


cdef int find_in_group(
    Cursor *c, Py_ssize_t place, Py_ssize_t leaves, int physical, const uint8_t[::1] path, int64_t *rows, int64_t *found,
    const uint8_t **statistics,
) noexcept nogil:
    """Read the rows of a row group and one of its chunks, whose offsets the cursor knows. Return DONE or UNUSUAL."""
    cdef int wire = 0, id = 0, element = 0
    cdef Py_ssize_t count = 0
    cdef uint64_t raw = 0
    cdef uint32_t seen = 0
    cdef const uint8_t *end
    cdef Cursor chunk
    if c.noted == NULL or c.noted_count != leaves:
        return UNUSUAL
    while True:
        if read_header(c, &wire, &id) != DONE:
            return UNUSUAL
        if wire == STOP:
            # Columns, bytes and rows are required.
            return DONE if (seen & 0xE) == 0xE else UNUSUAL
        if 0 < id <= 3:
            if seen >> id & 1:
                return UNUSUAL
            seen |= <uint32_t> 1 << id
        if id == 1:
            if wire != LIST or read_list(c, &element, &count) != DONE or element != STRUCT or count != leaves:
                return UNUSUAL
            if c.p - c.start != c.noted[0]:
                return UNUSUAL
            chunk = c[0]
            chunk.p, chunk.end = c.start + c.noted[place], c.start + c.noted[place + 1]
            if read_chunk(
                &chunk, physical, &path[0] if path.shape[0] else NULL, path.shape[0], NULL, -1, found, statistics
            ) != DONE:
                return UNUSUAL
            c.p = c.start + c.noted[leaves]
        elif id == 2 or id == 3:
            if wire != I64 or read_varint(c, &raw) != DONE:
                return UNUSUAL
            if id == 3:
                rows[0] = unzigzag(raw)
        elif wire > FALSE:
            end = skip_value(c, c.p, wire, 3)
            if end == NULL:
                return UNUSUAL
            c.p = end


def read_statistics(StructIndex groups not None, Py_ssize_t position, Py_ssize_t leaves, leaf, Plan plan not None):
    """Return the rows of a row group of `leaves` leaves, and the number of values and the statistics of one leaf.

    `plan` decodes the statistics. `leaf` has the format of `small_chunk_ranges`. Return None if the metadata is
    unusual.
    """
    cdef Py_ssize_t place
    cdef int physical
    cdef const uint8_t[::1] path
    cdef int64_t rows = 0
    cdef int64_t found[WIDTH]
    cdef const uint8_t *statistics = NULL
    cdef Cursor c
    cdef int status
    place, physical, path = leaf
    groups.check(position)
    if not 0 <= place < leaves:
        return None
    c = groups.at(position)
    with nogil:
        status = find_in_group(&c, place, leaves, physical, path, &rows, found, &statistics)
    if status != DONE:
        return None
    if statistics == NULL:
        return rows, found[VALUES], None
    c = groups.at(position)
    c.p = statistics
    return rows, found[VALUES], read_struct(&c, plan, groups.data, groups.depth + 3)


def chunk_bytes(StructIndex groups not None, Py_ssize_t position, Py_ssize_t leaf_count, leaves):
    """Return the total size of the pages of `leaves` in a row group; None if the metadata is unusual."""
    cdef Py_ssize_t place
    cdef int physical
    cdef const uint8_t[::1] path
    cdef int64_t rows = 0, total = 0
    cdef int64_t found[WIDTH]
    cdef const uint8_t *statistics = NULL
    cdef const int64_t *noted
    cdef Cursor c, chunk
    groups.check(position)
    c = groups.at(position)
    if c.noted == NULL or c.noted_count != leaf_count:
        return None
    noted = c.noted
    for leaf in leaves:
        place, physical, path = leaf
        if not 0 <= place < leaf_count:
            return None
        chunk = c
        chunk.p, chunk.end = c.start + noted[place], c.start + noted[place + 1]
        if read_chunk(
            &chunk, physical, &path[0] if path.shape[0] else NULL, path.shape[0], NULL, -1, found, &statistics
        ) != DONE or found[COMPRESSED] < 0 or found[COMPRESSED] > INT64_MAX - total:
            return None
        total += found[COMPRESSED]
    return total
