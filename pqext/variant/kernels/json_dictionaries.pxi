# The metadata dictionaries of rows, and the sorted order of objects' fields (see `json_names`).
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY, bytes_compare, uint_size, write_uint


cdef enum:
    TOO_LARGE = 1


# --- Sorting -------------------------------------------------------------------------------------

cdef inline bint key_before(const Names *names, uint32_t a, uint32_t b) noexcept nogil:
    """Return whether the name of key `a` sorts before that of key `b` by unsigned bytes."""
    if names.keys[a].prefix != names.keys[b].prefix:
        return names.keys[a].prefix < names.keys[b].prefix
    return bytes_compare(key_name(names, a), names.keys[a].length, key_name(names, b), names.keys[b].length) < 0


cdef uint64_t *merge_sort(Names *names, size_t count, bint by_name) noexcept nogil:
    """Sort names.sorting[:count] by value, or by the names of the keys in the upper halves. The sort is stable.

    Return the result, which is in the first or second half of the memory.
    """
    cdef uint64_t *source = names.sorting
    cdef uint64_t *target = names.sorting + count
    cdef uint64_t *other
    cdef size_t width = 1, low, middle, high, i, j, k
    cdef bint second
    while width < count:
        low = 0
        while low < count:
            middle = low + width if low + width < count else count
            high = middle + width if middle + width < count else count
            i = low
            j = middle
            for k in range(low, high):
                if i >= middle:
                    second = True
                elif j >= high:
                    second = False
                elif by_name:
                    second = key_before(names, <uint32_t> (source[j] >> 32), <uint32_t> (source[i] >> 32))
                else:
                    second = source[j] < source[i]
                if second:
                    target[k] = source[j]
                    j += 1
                else:
                    target[k] = source[i]
                    i += 1
            low = high
        other = source
        source = target
        target = other
        width *= 2
    return source


cdef int order_shape(Names *names, uint32_t shape) noexcept nogil:
    """Compute the sorted order of the fields of a shape, if there is room. Return 0 or FAULT_MEMORY."""
    cdef uint32_t depth = names.shapes[shape].depth
    cdef uint32_t i = depth, at = shape
    cdef uint64_t *ordered
    if names.orders_size + depth > MAX_ORDERS:
        return 0
    if sorting_room(names, depth) != 0:
        return FAULT_MEMORY
    if grow(<void **> &names.orders, sizeof(uint16_t), &names.orders_capacity, <size_t> names.orders_size + depth) != 0:
        return FAULT_MEMORY
    while i > 0:
        i -= 1
        names.sorting[i] = <uint64_t> names.shapes[at].key << 32 | i
        at = names.shapes[at].parent
    ordered = merge_sort(names, depth, True)
    for i in range(depth):
        names.orders[names.orders_size + <uint32_t> ordered[i]] = <uint16_t> i
        if i and ordered[i] >> 32 == ordered[i - 1] >> 32:
            names.shapes[shape].repeats = True
    names.shapes[shape].order = names.orders_size
    names.orders_size += depth
    return 0


# --- Dictionaries --------------------------------------------------------------------------------

cdef int write_dictionary(Names *names, Dictionary *dictionary) noexcept nogil:
    """Sort the keys of the row, assign their ranks and write the metadata. Return 0, TOO_LARGE or FAULT_MEMORY."""
    cdef uint32_t count = names.row_keys_count
    cdef uint32_t i, key
    cdef uint64_t strings = 0, at = 0
    cdef size_t total
    cdef int size
    cdef uint64_t *ordered
    cdef uint8_t *p
    for i in range(count):
        strings += names.keys[names.row_keys[i]].length
        names.sorting[i] = <uint64_t> names.row_keys[i] << 32 | i
    if strings > 0x7FFFFFFF:
        return TOO_LARGE
    size = uint_size(<uint32_t> strings if strings > count else count)
    total = 1 + (<size_t> count + 2) * <size_t> size + strings
    if total > 0x7FFFFFFF:
        return TOO_LARGE
    if bytes_reserve(&names.dictionary_bytes, total + NAME_MARGIN) != 0:
        return FAULT_MEMORY
    dictionary.bytes = <uint32_t> names.dictionary_bytes.size
    dictionary.size = <uint32_t> total
    dictionary.id_size = uint_size(count - 1) if count else 1
    ordered = merge_sort(names, count, True)
    p = names.dictionary_bytes.data + names.dictionary_bytes.size
    names.dictionary_bytes.size += total
    p[0] = <uint8_t> (0x11 | (size - 1) << 6)
    write_uint(p + 1, count, size)
    p += 1 + size
    write_uint(p, 0, size)
    for i in range(count):
        key = <uint32_t> (ordered[i] >> 32)
        names.keys[key].rank = i
        at += names.keys[key].length
        p += size
        write_uint(p, <uint32_t> at, size)
    p += size
    for i in range(count):
        key = <uint32_t> (ordered[i] >> 32)
        if names.keys[key].length:
            memcpy(p, key_name(names, key), names.keys[key].length)
            p += names.keys[key].length
    return 0


cdef int write_ids(Names *names, Dictionary *dictionary) noexcept nogil:
    """Write the sorted field ids of each shape of the row. Return 0 or FAULT_MEMORY."""
    cdef uint32_t i, depth, at
    cdef size_t size
    cdef int id_size = dictionary.id_size
    cdef uint8_t *ids
    cdef const uint16_t *order
    dictionary.ids = <uint32_t> names.dictionary_ids.size
    for i in range(names.row_shapes_count):
        at = names.row_shapes[i]
        depth = names.shapes[at].depth
        order = names.orders + names.shapes[at].order
        size = <size_t> depth * <size_t> id_size
        if bytes_reserve(&names.dictionary_ids, size + NAME_MARGIN) != 0:
            return FAULT_MEMORY
        ids = names.dictionary_ids.data + names.dictionary_ids.size
        memset(ids + size, 0, NAME_MARGIN)
        while depth > 0:
            depth -= 1
            write_uint(ids + order[depth] * <size_t> id_size, names.keys[names.shapes[at].key].rank, id_size)
            at = names.shapes[at].parent
        names.dictionary_ids.size += size
    return 0


cdef int new_dictionary(Names *names, uint64_t hash, const uint32_t *signature, uint32_t count) noexcept nogil:
    """Append a dictionary of the row's keys. Return 0, TOO_LARGE or FAULT_MEMORY."""
    cdef Dictionary *dictionary = &names.dictionaries[names.dictionaries_count]
    cdef uint32_t i
    cdef int status
    cdef size_t wanted = <size_t> names.signatures_size + 2 * <size_t> count
    if sorting_room(names, names.row_keys_count) != 0:
        return FAULT_MEMORY
    if grow(<void **> &names.signatures, sizeof(uint32_t), &names.signatures_capacity, wanted) != 0:
        return FAULT_MEMORY
    dictionary.hash = hash
    dictionary.count = count
    dictionary.signature = names.signatures_size
    dictionary.ranks = names.signatures_size + count
    dictionary.of_keys = names.shapeless
    dictionary.ids = 0
    if count:
        memcpy(names.signatures + dictionary.signature, signature, count * sizeof(uint32_t))
    status = write_dictionary(names, dictionary)
    if status != 0:
        return status
    names.signatures_size += count
    if names.shapeless:
        for i in range(count):
            names.signatures[dictionary.ranks + i] = names.keys[signature[i]].rank
        names.signatures_size += count
    elif write_ids(names, dictionary) != 0:
        return FAULT_MEMORY
    if table_add(&names.dictionary_table, <uint32_t> hash, names.dictionaries_count) != 0:
        return FAULT_MEMORY
    names.dictionaries_count += 1
    return 0


cdef inline bint dictionary_fits(
    const Names *names, const Dictionary *dictionary, const uint32_t *signature, uint32_t count
) noexcept nogil:
    return (
        dictionary.count == count
        and dictionary.of_keys == names.shapeless
        and (count == 0 or memcmp(names.signatures + dictionary.signature, signature, count * sizeof(uint32_t)) == 0)
    )


cdef void collect_keys(Names *names) noexcept nogil:
    """Collect the keys of the row's shapes."""
    cdef uint32_t i, at
    for i in range(names.row_shapes_count):
        at = names.row_shapes[i]
        while names.shapes[at].depth:
            note_key(names, names.shapes[at].key)
            at = names.shapes[at].parent


cdef int choose_dictionary(Names *names) noexcept nogil:
    """Set names.current to the dictionary of the row, using its shapes or, if `shapeless`, its recorded keys.

    Afterwards the shapes have field ids, or the keys have ranks. Return 0, 1 if the dictionary is too large, or
    FAULT_MEMORY.
    """
    cdef const uint32_t *signature = names.row_keys if names.shapeless else names.row_shapes
    cdef uint32_t count = names.row_keys_count if names.shapeless else names.row_shapes_count
    cdef Dictionary *dictionary = names.current
    cdef uint64_t hash
    cdef uint32_t i, at
    cdef int status
    if dictionary != NULL and dictionary_fits(names, dictionary, signature, count):
        return 0
    hash = mix(names.seed, <uint64_t> count << 1 | names.shapeless)
    for i in range(count):
        hash = mix(hash, signature[i])
    hash = mix(hash, hash >> 29)
    at = <uint32_t> hash & names.dictionary_table.mask
    dictionary = NULL
    while names.dictionary_table.slots[at].index:
        dictionary = &names.dictionaries[names.dictionary_table.slots[at].index - 1]
        if dictionary.hash == hash and dictionary_fits(names, dictionary, signature, count):
            break
        dictionary = NULL
        at = (at + 1) & names.dictionary_table.mask
    if dictionary == NULL:
        if not names.shapeless:
            collect_keys(names)
        status = new_dictionary(names, hash, signature, count)
        if status != 0:
            return status
        dictionary = &names.dictionaries[names.dictionaries_count - 1]
    names.current = dictionary
    if names.shapeless:
        for i in range(count):
            names.keys[signature[i]].rank = names.signatures[dictionary.ranks + i]
    else:
        at = dictionary.ids
        for i in range(count):
            names.shapes[signature[i]].ids = at
            at += names.shapes[signature[i]].depth * <uint32_t> dictionary.id_size
    return 0
