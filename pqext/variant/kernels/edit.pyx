# cython: language_level=3, cdivision=True
"""Change variants row by row: set, delete, merge, remove nulls, convert to the canonical form, and hash.

`compose` writes the changed rows, and also the rows of the kernels in `convert`.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, take
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_CHILD_SIZE, FAULT_FIELD_DUPLICATE, FAULT_FIELD_ORDER, FAULT_MEMORY,
    FAULT_METADATA_NULL, FAULT_METADATA_TRUNCATED, FAULT_VALUE_NULL, FAULT_VALUE_TRAILING, TYPE_NULL, Container,
    VariantInput, array_open, binary_at, binary_valid, bit_is_set, container_child, container_id, object_open,
    value_size,
)

from pqext.variant import faults

include "compose.pxi"


cpdef enum Action:
    ACTION_COPY = 0
    ACTION_SET = 1          # also creates missing objects and arrays on the path
    ACTION_REPLACE = 2      # only where there is a value
    ACTION_DELETE = 3
    ACTION_MERGE = 4        # RFC 7396
    ACTION_OVERLAY = 5      # merges fields of objects; nulls are values
    ACTION_HASH = 6
    ACTION_STRIP = 7        # null fields
    ACTION_STRIP_ALL = 8    # null elements too


cdef struct Hop:
    bint is_index
    int64_t index           # from the end when negative
    uint32_t name


cdef struct Place:
    const uint8_t *p        # a value and its bytes
    size_t n


cdef struct Edit:
    Composer c
    Names names             # names of the row
    Names other             # names of the new value
    Hop *hops
    int hop_count
    int action
    Place put


cdef int child_at(const Container *container, uint32_t i, Place *out) noexcept nogil:
    """Find child `i` and its own bytes. Return 0 or a fault."""
    cdef size_t limit = 0
    cdef int64_t size
    cdef int status = container_child(container, i, &out.p, &limit)
    if status != 0:
        return status
    size = value_size(out.p, limit)
    if size < 0:
        return <int> size
    out.n = <size_t> size
    return 0


cdef int open_any(const Place *place, Container *container) noexcept nogil:
    if place.p[0] & 3 == BASIC_OBJECT:
        return object_open(place.p, place.n, container)
    return array_open(place.p, place.n, container)


cdef int find_field(Edit *e, const Container *container, uint32_t name, int64_t *found) noexcept nogil:
    """Find the index of a field in an object, -1 if it is missing. Return 0 or a fault."""
    cdef int64_t id
    cdef uint32_t i
    found[0] = -1
    for i in range(container.count):
        id = name_of(&e.c, &e.names, container_id(container, i))
        if id < 0:
            return <int> id
        if <uint32_t> id == name:
            found[0] = i
            return 0
    return 0


cdef bint can_make(const Edit *e, int hop) noexcept nogil:
    """Return whether the objects and arrays of the remaining path can be created."""
    cdef int i
    for i in range(hop, e.hop_count):
        if e.hops[i].is_index and e.hops[i].index != 0:
            return False
    return True


cdef int follow(Edit *e, const Place *root, bint *possible) noexcept nogil:
    """Follow the path; `possible` is whether the change can be made at its end. Return 0 or a fault."""
    cdef Place at = root[0]
    cdef Container container
    cdef int64_t index
    cdef int i, status
    possible[0] = False
    for i in range(e.hop_count):
        e.c.where = at.p
        if at.p[0] & 3 != (BASIC_ARRAY if e.hops[i].is_index else BASIC_OBJECT):
            return 0
        status = open_any(&at, &container)
        if status != 0:
            return status
        if e.hops[i].is_index:
            index = e.hops[i].index + (<int64_t> container.count if e.hops[i].index < 0 else 0)
        else:
            status = find_field(e, &container, e.hops[i].name, &index)
            if status != 0:
                return status
        if index < 0 or index >= container.count:
            if e.action == ACTION_SET and (not e.hops[i].is_index or index == container.count):
                possible[0] = can_make(e, i + 1)
            return 0
        status = child_at(&container, <uint32_t> index, &at)
        if status != 0:
            return status
    possible[0] = True
    return 0


cdef int put_made(Edit *e, int hop) noexcept nogil:
    """Add the new value, nested in the objects and arrays of the remaining path. Return 0 or a fault."""
    cdef int status = 0, i
    for i in range(hop, e.hop_count):
        status = begin(&e.c, PIECE_ARRAY if e.hops[i].is_index else PIECE_OBJECT)
        if status != 0:
            return status
        if not e.hops[i].is_index:
            e.c.next_name = e.hops[i].name
    status = put_value(&e.c, &e.other, e.put.p, e.put.n, 0)
    for i in range(hop, e.hop_count):
        if status == 0:
            status = end(&e.c, True)
    return status


cdef int put_changed(Edit *e, const Place *at, int hop) noexcept nogil:
    """Add the value at `at` with the change at the end of the path, which exists. Return 0 or a fault."""
    cdef Container container
    cdef Place child
    cdef int64_t target = -1, name = 0, previous = -1
    cdef size_t total = 0
    cdef uint32_t i
    cdef bint is_object = at.p[0] & 3 == BASIC_OBJECT
    cdef bint last = hop + 1 == e.hop_count
    cdef int status
    if hop == e.hop_count:
        return put_value(&e.c, &e.other, e.put.p, e.put.n, 0)
    e.c.where = at.p
    status = open_any(at, &container)
    if status == 0 and container.count > container.values_size:
        status = FAULT_CHILD_SIZE
    if status == 0 and not is_object:
        target = e.hops[hop].index + (<int64_t> container.count if e.hops[hop].index < 0 else 0)
    elif status == 0:
        status = find_field(e, &container, e.hops[hop].name, &target)
    if status == 0:
        status = begin(&e.c, PIECE_OBJECT if is_object else PIECE_ARRAY)
    if status != 0:
        return status
    for i in range(container.count):
        status = child_at(&container, i, &child)
        if status == 0 and is_object:
            name = name_of(&e.c, &e.names, container_id(&container, i))
            if name < 0:
                status = <int> name
            elif previous >= 0 and compare_names(&e.c, <uint32_t> previous, <uint32_t> name) >= 0:
                status = FAULT_FIELD_DUPLICATE if previous == name else FAULT_FIELD_ORDER
            previous = name
        total += child.n
        if status == 0 and total > container.values_size:
            status = FAULT_CHILD_SIZE
        if status != 0:
            return status
        if i == target and last and e.action == ACTION_DELETE:
            continue
        if is_object:
            e.c.next_name = <uint32_t> name
        if i == target:
            status = put_changed(e, &child, hop + 1)
        else:
            status = put_value(&e.c, &e.names, child.p, child.n, 0)
        if status != 0:
            return status
        e.c.where = at.p
    if total != container.values_size:
        return FAULT_CHILD_SIZE
    if target < 0 or target == container.count:
        if is_object:
            e.c.next_name = e.hops[hop].name
        status = put_made(e, hop + 1)
        if status != 0:
            return status
    return end(&e.c, False)


cdef int next_field(
    Edit *e, Names *names, const Container *container, uint32_t i, int64_t *name, Place *child, size_t *total
) noexcept nogil:
    """Read field `i` of an object, whose name must follow the previous name; the name is -1 after the last field.

    Return 0 or a fault.
    """
    cdef int64_t previous = name[0]
    cdef int status
    if i >= container.count:
        name[0] = -1
        return 0 if total[0] == container.values_size else FAULT_CHILD_SIZE
    name[0] = name_of(&e.c, names, container_id(container, i))
    if name[0] < 0:
        return <int> name[0]
    if previous >= 0 and compare_names(&e.c, <uint32_t> previous, <uint32_t> name[0]) >= 0:
        return FAULT_FIELD_DUPLICATE if previous == name[0] else FAULT_FIELD_ORDER
    status = child_at(container, i, child)
    total[0] += child.n
    return status if status != 0 or total[0] <= container.values_size else FAULT_CHILD_SIZE


cdef int put_merged(Edit *e, const Place *target, const Place *patch, int depth) noexcept nogil:
    """Add `target` merged with `patch`; `target` is NULL if it is missing. Return 0 or a fault."""
    cdef Container old, new
    cdef Place old_child, new_child
    cdef int64_t old_name = -1, new_name = -1
    cdef size_t old_total = 0, new_total = 0
    cdef uint32_t i = 0, j = 0
    cdef int status, order
    cdef bint both
    if patch.p[0] & 3 != BASIC_OBJECT or (
        e.action == ACTION_OVERLAY and (target == NULL or target.p[0] & 3 != BASIC_OBJECT)
    ):
        return put_value(&e.c, &e.other, patch.p, patch.n, depth)
    memset(&old, 0, sizeof(Container))
    e.c.where = patch.p
    status = object_open(patch.p, patch.n, &new)
    if status == 0 and target != NULL and target.p[0] & 3 == BASIC_OBJECT:
        e.c.where = target.p
        status = object_open(target.p, target.n, &old)
    if status == 0 and (new.count > new.values_size or old.count > old.values_size):
        status = FAULT_CHILD_SIZE
    if status == 0:
        status = begin(&e.c, PIECE_OBJECT)
    if status == 0:
        status = next_field(e, &e.names, &old, i, &old_name, &old_child, &old_total)
    if status == 0:
        status = next_field(e, &e.other, &new, j, &new_name, &new_child, &new_total)
    while status == 0 and (old_name >= 0 or new_name >= 0):
        if new_name < 0:
            order = -1
        elif old_name < 0:
            order = 1
        else:
            order = compare_names(&e.c, <uint32_t> old_name, <uint32_t> new_name)
        if order < 0:
            e.c.next_name = <uint32_t> old_name
            status = put_value(&e.c, &e.names, old_child.p, old_child.n, depth + 1)
        elif e.action == ACTION_OVERLAY or new_child.p[0] != TYPE_NULL << 2:
            e.c.next_name = <uint32_t> new_name
            status = put_merged(e, &old_child if order == 0 else NULL, &new_child, depth + 1)
        if status == 0 and order <= 0:
            i += 1
            status = next_field(e, &e.names, &old, i, &old_name, &old_child, &old_total)
        if status == 0 and order >= 0:
            j += 1
            status = next_field(e, &e.other, &new, j, &new_name, &new_child, &new_total)
    return status if status != 0 else end(&e.c, True)


cdef int put_row(Edit *e, const Place *root, bint present, bint *followed) noexcept nogil:
    """Add the value of the row, changed by the action; `present` if there is a new value. Return 0 or a fault."""
    cdef bint possible = False
    cdef int status
    e.c.where = root.p
    if e.action >= ACTION_MERGE and e.action != ACTION_HASH and present:
        return put_merged(e, root, &e.put, 0)
    if ACTION_SET <= e.action <= ACTION_DELETE and present:
        status = follow(e, root, &possible)
        if status != 0:
            return status
        followed[0] = possible
        if possible:
            return put_changed(e, root, 0)
    return put_value(&e.c, &e.names, root.p, root.n, 0)


cdef int read_row(Edit *e, VariantInput array, int64_t row, Names *names, Place *out) noexcept nogil:
    """Read the value and the names of a row that is not null. Return 0 or a fault."""
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int64_t size
    cdef int status = FAULT_METADATA_NULL
    out.p = NULL
    if binary_valid(&array.metadata, row):
        status = binary_at(&array.metadata, row, &p, &n)
    if status == 0:
        status = open_row_names(names, p, n)
    if status == 0:
        status = FAULT_VALUE_NULL
        if binary_valid(&array.value, row):
            status = binary_at(&array.value, row, &out.p, &out.n)
    if status != 0:
        return status
    e.c.where = out.p
    size = value_size(out.p, out.n)
    if size < 0:
        return <int> size
    return 0 if <size_t> size == out.n else FAULT_VALUE_TRAILING


def edit(
    VariantInput array, int64_t start, int64_t first_row, int action, list path, VariantInput other, bint constant,
    bint canonical
):
    """Change the rows from `start` on until they end, or the columns with 32-bit offsets are full.

    `path` has names as bytes, and indexes. `other` contains the values to set or merge: a row for each row of `array`,
    or one for all (`constant`), or None. Null rows stay null. A null in `other` is set as a variant null, and is
    ignored in a merge. Return (rows, nulls, validity, metadata offsets, metadata, value offsets, value, unfollowed):
    the last is the number of rows that lack the path, and the first of them. With ACTION_HASH return (rows, nulls,
    validity, hashes).
    """
    cdef Edit e
    cdef Written w
    cdef Bytes hashes, hop_bytes, room
    cdef Hop hop
    cdef Place root
    cdef int64_t row = start, unfollowed = 0, first_unfollowed = -1, id
    cdef uint64_t hash = 0
    cdef int status = 0
    cdef bint present, followed
    cdef bytes name
    memset(&e, 0, sizeof(Edit))
    memset(&w, 0, sizeof(Written))
    memset(&hashes, 0, sizeof(Bytes))
    memset(&hop_bytes, 0, sizeof(Bytes))
    memset(&room, 0, sizeof(Bytes))
    e.c.canonical = canonical
    e.action = action
    e.c.without_null_fields = action == ACTION_STRIP or action == ACTION_STRIP_ALL
    e.c.without_null_elements = action == ACTION_STRIP_ALL
    e.hop_count = len(path)
    root.p = NULL
    try:
        for step in path:
            memset(&hop, 0, sizeof(Hop))
            if isinstance(step, bytes):
                name = step
                id = intern_name(&e.c, <const uint8_t *> name, len(name))
                if id < 0:
                    raise MemoryError
                hop.name = <uint32_t> id
            else:
                hop.is_index = True
                hop.index = step
            if bytes_append(&hop_bytes, &hop, sizeof(Hop)) != 0:
                raise MemoryError
        e.hops = <Hop *> hop_bytes.data
        with nogil:
            while row < array.length:
                root.p = NULL
                if not bit_is_set(array.validity, array.offset + row):
                    hash = 0
                    status = write_null(&w)
                    if status == 0 and action == ACTION_HASH and bytes_append(&hashes, &hash, 8) != 0:
                        status = FAULT_MEMORY
                    if status != 0:
                        break
                    row += 1
                    continue
                composer_next(&e.c)
                status = read_row(&e, array, row, &e.names, &root)
                if status != 0:
                    break
                e.c.where = root.p
                present = action == ACTION_DELETE
                if other is not None:
                    id = 0 if constant else row
                    present = bit_is_set(other.validity, other.offset + id)
                    if present:
                        status = read_row(&e, other, id, &e.other, &e.put)
                        if status != 0:
                            break
                    elif action == ACTION_SET or action == ACTION_REPLACE:
                        present = True
                        e.put.p = &VARIANT_NULL
                        e.put.n = 1
                followed = True
                status = put_row(&e, &root, present, &followed)
                if status != 0:
                    break
                if not followed:
                    if unfollowed == 0:
                        first_unfollowed = first_row + row
                    unfollowed += 1
                if action == ACTION_HASH:
                    hash = hash_row(&e.c, &room, &status)
                    if status == 0 and bytes_append(&hashes, &hash, 8) != 0:
                        status = FAULT_MEMORY
                    if status == 0:
                        status = write_ends(&w, 1)
                else:
                    status = write_row(&e.c, &w)
                if status != 0:
                    break
                row += 1
        if status < 0:
            raise_edit_fault(status, first_row + row, root, &e)
        if action == ACTION_HASH:
            rows, nulls, validity = written_take(&w)[:3]
            return rows, nulls, validity, take(&hashes)
        return *written_take(&w), (unfollowed, first_unfollowed)
    finally:
        composer_free(&e.c)
        bytes_free(&e.names.ids)
        bytes_free(&e.other.ids)
        bytes_free(&hop_bytes)
        bytes_free(&hashes)
        bytes_free(&room)
        written_free(&w)


cdef int raise_edit_fault(int status, int64_t row, Place root, const Edit *e) except -1:
    """Raise the error of a fault, with its offset in the value of the row or in the new value."""
    cdef const uint8_t *where = e.c.where
    offset = None
    if not FAULT_METADATA_NULL <= status <= FAULT_METADATA_TRUNCATED and where != NULL:
        if root.p != NULL and root.p <= where < root.p + root.n:
            offset = where - root.p
        elif e.put.p != NULL and e.put.p <= where < e.put.p + e.put.n:
            offset = where - e.put.p
    raise faults.error(status, row=row, offset=offset)
