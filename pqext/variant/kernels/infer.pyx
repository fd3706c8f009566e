# cython: language_level=3, cdivision=True
"""Count the values at each path of a sample of variants, for the inference of a shredding schema."""
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, BASIC_SHORT_STRING, FAULT_CHILD_SIZE, FAULT_FIELD_ID, FAULT_MEMORY, FAULT_METADATA_NULL,
    TYPE_BINARY, TYPE_DATE, TYPE_DOUBLE, TYPE_FALSE, TYPE_FLOAT, TYPE_NULL, TYPE_STRING, TYPE_TIMESTAMP,
    TYPE_TIMESTAMP_NANOS, TYPE_TIMESTAMP_NTZ, TYPE_TIMESTAMP_NTZ_NANOS, TYPE_TIME_NTZ, TYPE_UUID, BinaryColumn,
    Container, Metadata, VariantInput, array_open, binary_at, binary_valid, bit_is_set, container_child, container_id,
    metadata_name, metadata_open, object_open, read_uint64, value_size,
)
from pqext.variant.kernels.exact cimport exact_open, int128, is_exact_type, power_of_ten
from pqext.variant.kernels.leaves cimport is_double_text
from pqext.variant.kernels.shredding cimport bytes_zero_to, hash_name

cdef enum:
    CLASS_NULL = 0
    CLASS_BOOLEAN = 1
    CLASS_EXACT = 2
    CLASS_FLOAT = 3
    CLASS_DOUBLE = 4
    CLASS_STRING = 5
    CLASS_BINARY = 6
    CLASS_DATE = 7
    CLASS_TIME = 8
    CLASS_TIMESTAMP = 9
    CLASS_TIMESTAMP_NTZ = 10
    CLASS_UUID = 11
    CLASS_OBJECT = 12
    CLASS_ARRAY = 13
    CLASS_COUNT = 14

cdef int64_t MOST_MICROS = 9223372036854775


cdef struct Place:
    # A path of the sample: a field of a parent or, with name -1, the elements of an array.
    int32_t parent
    int32_t name
    int64_t[CLASS_COUNT] counts
    int64_t fractions       # exact numbers that are not integers
    int64_t wide            # number of integers beyond 64 bits
    int32_t integer_digits  # most digits before the point of an exact number
    int32_t scale           # most digits after it, trailing zeros aside
    int64_t longest         # exact numbers that have as many digits after it
    int64_t doubles         # number of exact numbers that a double represents in JSON
    int32_t integer_bytes   # size of the narrowest integer type for all integers of at most 64 bits
    int64_t nanos           # timestamps in nanoseconds
    int64_t far             # timestamps that nanoseconds in 64 bits do not reach
    int32_t physical        # majority candidate of type and scale of the exact numbers
    int64_t votes           # its lead, counted with the Boyer-Moore majority vote


cdef struct Sample:
    Bytes places
    Bytes place_table    # open addressing over (parent, name): index in places + 1, 0 is free
    Bytes names          # start and stop in name_data, in pairs
    Bytes name_data
    Bytes name_table
    Bytes ids            # the current dictionary: number of each id's name
    Metadata metadata
    bint known
    uint32_t place_count
    uint32_t name_count
    uint32_t max_places
    uint32_t max_depth
    bint full


cdef inline uint32_t _mix(uint32_t a, uint32_t b) noexcept nogil:
    cdef uint64_t h = (<uint64_t> a << 32 | b) * 0x9E3779B97F4A7C15ULL
    return <uint32_t> (h >> 32)


cdef int _grow_table(Bytes *table, uint32_t count) noexcept nogil:
    """Make room for `count` entries at half load; return 1 if the table was emptied and must be refilled."""
    cdef size_t slots = table.size // 4
    if <size_t> count * 2 <= slots:
        return 0
    slots = 64 if slots == 0 else slots * 4
    table.size = 0
    return FAULT_MEMORY if bytes_zero_to(table, slots * 4) != 0 else 1


cdef int64_t _name_number(Sample *s, const uint8_t *name, size_t length) noexcept nogil:
    cdef uint32_t *table
    cdef uint64_t *spans
    cdef uint32_t mask, slot, i
    cdef uint64_t start, stop
    cdef int status = _grow_table(&s.name_table, s.name_count + 1)
    if status < 0:
        return status
    table = <uint32_t *> s.name_table.data
    mask = <uint32_t> (s.name_table.size // 4) - 1
    spans = <uint64_t *> s.names.data
    if status == 1:
        for i in range(s.name_count):
            slot = hash_name(s.name_data.data + spans[2 * i], spans[2 * i + 1] - spans[2 * i]) & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = i + 1
    slot = hash_name(name, length) & mask
    while table[slot]:
        start = spans[2 * (table[slot] - 1)]
        stop = spans[2 * (table[slot] - 1) + 1]
        if stop - start == length and (length == 0 or memcmp(s.name_data.data + start, name, length) == 0):
            return table[slot] - 1
        slot = (slot + 1) & mask
    start = s.name_data.size
    stop = start + length
    if (
        bytes_append(&s.name_data, name, length) != 0
        or bytes_append(&s.names, &start, 8) != 0
        or bytes_append(&s.names, &stop, 8) != 0
    ):
        return FAULT_MEMORY
    table[slot] = s.name_count + 1
    s.name_count += 1
    return s.name_count - 1


cdef int64_t _place(Sample *s, uint32_t parent, int32_t name) noexcept nogil:
    """Return the index of the place of a field, or of the elements, below `parent`; 0, the root, if none can be added.
    """
    cdef uint32_t *table
    cdef uint32_t mask, slot, i
    cdef Place *places
    cdef Place fresh
    cdef int status = _grow_table(&s.place_table, s.place_count + 1)
    if status < 0:
        return status
    table = <uint32_t *> s.place_table.data
    mask = <uint32_t> (s.place_table.size // 4) - 1
    places = <Place *> s.places.data
    if status == 1:
        for i in range(1, s.place_count):
            slot = _mix(<uint32_t> places[i].parent, <uint32_t> places[i].name) & mask
            while table[slot]:
                slot = (slot + 1) & mask
            table[slot] = i + 1
    slot = _mix(parent, <uint32_t> name) & mask
    while table[slot]:
        i = table[slot] - 1
        if <uint32_t> places[i].parent == parent and places[i].name == name:
            return i
        slot = (slot + 1) & mask
    if s.place_count >= s.max_places:
        s.full = True
        return 0
    memset(&fresh, 0, sizeof(Place))
    fresh.parent = <int32_t> parent
    fresh.name = name
    if bytes_append(&s.places, &fresh, sizeof(Place)) != 0:
        return FAULT_MEMORY
    table[slot] = s.place_count + 1
    s.place_count += 1
    return s.place_count - 1


cdef int _open_dictionary(Sample *s, const uint8_t *p, size_t n) noexcept nogil:
    cdef const uint8_t *name = NULL
    cdef size_t length = 0
    cdef uint32_t id
    cdef int64_t number
    cdef int32_t stored
    cdef int status
    if s.known and s.metadata.size == n and memcmp(s.metadata.data, p, n) == 0:
        return 0
    s.known = False
    status = metadata_open(p, n, &s.metadata)
    if status != 0:
        return status
    s.ids.size = 0
    for id in range(s.metadata.count):
        status = metadata_name(&s.metadata, id, &name, &length)
        if status != 0:
            return status
        number = _name_number(s, name, length)
        if number < 0:
            return <int> number
        stored = <int32_t> number
        if bytes_append(&s.ids, &stored, 4) != 0:
            return FAULT_MEMORY
    s.known = True
    return 0


cdef inline int _digits(int128 v) noexcept nogil:
    cdef int digits = 0
    if v < 0:
        v = -v
    while digits < 38 and v >= power_of_ten(digits):
        digits += 1
    return digits if v < power_of_ten(digits) else 39


cdef int _count_exact(Place *place, const uint8_t *p, size_t n) noexcept nogil:
    cdef int128 unscaled = 0
    cdef int scale = 0, integer_digits
    cdef int32_t physical, width
    cdef double nearest = 0
    cdef int status = exact_open(p, n, &unscaled, &scale)
    if status != 0:
        return status
    physical = (p[0] >> 2) << 8 | scale
    if place.votes == 0:
        place.physical = physical
    place.votes += 1 if place.physical == physical else -1
    place.doubles += is_double_text(unscaled, scale, &nearest)
    while scale > 0 and unscaled % 10 == 0:
        unscaled = unscaled // 10
        scale -= 1
    integer_digits = _digits(unscaled) - scale
    if integer_digits > place.integer_digits:
        place.integer_digits = integer_digits
    if scale > place.scale:
        place.scale = scale
        place.longest = 0
    place.longest += scale == place.scale
    if scale:
        place.fractions += 1
    elif <int64_t> unscaled != unscaled:
        place.wide += 1
    else:
        width = 1 if <int8_t> unscaled == unscaled else 2 if <int16_t> unscaled == unscaled else (
            4 if <int32_t> unscaled == unscaled else 8
        )
        if width > place.integer_bytes:
            place.integer_bytes = width
    return 0


cdef inline int _class_of(const uint8_t *p) noexcept nogil:
    """Return the class of the value at `p`; -1 if its type is unknown."""
    cdef int basic = p[0] & 3
    cdef int type_id = p[0] >> 2
    if basic == BASIC_OBJECT:
        return CLASS_OBJECT
    if basic == BASIC_ARRAY:
        return CLASS_ARRAY
    if basic == BASIC_SHORT_STRING or type_id == TYPE_STRING:
        return CLASS_STRING
    if is_exact_type(type_id):
        return CLASS_EXACT
    if type_id == TYPE_NULL:
        return CLASS_NULL
    if type_id <= TYPE_FALSE:
        return CLASS_BOOLEAN
    if type_id == TYPE_DOUBLE:
        return CLASS_DOUBLE
    if type_id == TYPE_FLOAT:
        return CLASS_FLOAT
    if type_id == TYPE_DATE:
        return CLASS_DATE
    if type_id == TYPE_BINARY:
        return CLASS_BINARY
    if type_id == TYPE_TIME_NTZ:
        return CLASS_TIME
    if type_id == TYPE_TIMESTAMP or type_id == TYPE_TIMESTAMP_NANOS:
        return CLASS_TIMESTAMP
    if type_id == TYPE_TIMESTAMP_NTZ or type_id == TYPE_TIMESTAMP_NTZ_NANOS:
        return CLASS_TIMESTAMP_NTZ
    return CLASS_UUID if type_id == TYPE_UUID else -1


cdef int _count(Sample *s, uint32_t number, uint32_t depth, const uint8_t *p, size_t limit) noexcept nogil:
    """Count the value at `p` and its nested values, down to the depth limit. Return 0 or a fault."""
    cdef Place *place = <Place *> s.places.data + number
    cdef Container container
    cdef const uint8_t *child = NULL
    cdef size_t child_limit = 0, total = 0
    cdef int64_t size = value_size(p, limit)
    cdef int64_t below, micros
    cdef uint32_t i, id
    cdef int status, kind
    if size < 0:
        return <int> size
    kind = _class_of(p)
    place.counts[kind] += 1
    if kind == CLASS_EXACT:
        return _count_exact(place, p, <size_t> size)
    if kind == CLASS_TIMESTAMP or kind == CLASS_TIMESTAMP_NTZ:
        if p[0] >> 2 == TYPE_TIMESTAMP_NANOS or p[0] >> 2 == TYPE_TIMESTAMP_NTZ_NANOS:
            place.nanos += 1
        else:
            micros = <int64_t> read_uint64(p + 1)
            place.far += micros > MOST_MICROS or micros < -MOST_MICROS
        return 0
    if kind < CLASS_OBJECT or depth >= s.max_depth:
        return 0
    status = object_open(p, limit, &container) if kind == CLASS_OBJECT else array_open(p, limit, &container)
    if status != 0:
        return status
    for i in range(container.count):
        status = container_child(&container, i, &child, &child_limit)
        if status != 0:
            return status
        size = value_size(child, child_limit)
        if size < 0:
            return <int> size
        total += <size_t> size
        if total > container.values_size:
            return FAULT_CHILD_SIZE
        if kind == CLASS_ARRAY:
            below = _place(s, number, -1)
        else:
            id = container_id(&container, i)
            if id >= s.metadata.count:
                return FAULT_FIELD_ID
            below = _place(s, number, (<int32_t *> s.ids.data)[id])
        if below < 0:
            return <int> below
        if below > 0:
            status = _count(s, <uint32_t> below, depth + 1, child, <size_t> size)
            if status != 0:
                return status
    return 0


cdef int _count_row(Sample *s, const BinaryColumn *metadata, const BinaryColumn *value, int64_t row) noexcept nogil:
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int status
    if not binary_valid(metadata, row):
        return FAULT_METADATA_NULL
    status = binary_at(metadata, row, &p, &n)
    if status == 0:
        status = _open_dictionary(s, p, n)
    if status != 0:
        return status
    if not binary_valid(value, row):
        (<Place *> s.places.data).counts[CLASS_NULL] += 1
        return 0
    status = binary_at(value, row, &p, &n)
    return status if status != 0 else _count(s, 0, 0, p, n)


cdef class Survey:
    """Counts of values over any number of arrays; `places` returns the result."""
    cdef Sample sample

    def __cinit__(self, uint32_t max_places, uint32_t max_depth):
        cdef Place root
        memset(&self.sample, 0, sizeof(Sample))
        memset(&root, 0, sizeof(Place))
        root.parent = -1
        root.name = -1
        self.sample.max_places = max_places
        self.sample.max_depth = max_depth
        self.sample.place_count = 1
        if bytes_append(&self.sample.places, &root, sizeof(Place)) != 0:
            raise MemoryError

    def __dealloc__(self):
        bytes_free(&self.sample.places)
        bytes_free(&self.sample.place_table)
        bytes_free(&self.sample.names)
        bytes_free(&self.sample.name_data)
        bytes_free(&self.sample.name_table)
        bytes_free(&self.sample.ids)

    def add(self, VariantInput variants, int64_t rows):
        """Count `rows` rows, spread evenly over the array; null rows are skipped. Return (status, row)."""
        cdef int64_t i, row = 0
        cdef int status = 0
        cdef int64_t length = variants.length
        if rows > length:
            rows = length
        self.sample.known = False
        with nogil:
            for i in range(rows):
                row = <int64_t> (<int128> i * length // rows)
                if bit_is_set(variants.validity, variants.offset + row):
                    status = _count_row(&self.sample, &variants.metadata, &variants.value, row)
                    if status != 0:
                        break
        self.sample.known = False
        return status, row

    @property
    def full(self):
        """Return whether there were more paths than `max_places`."""
        return bool(self.sample.full)

    def places(self):
        """Return a dict for each path, parents first: its parent, its name, counts of classes, and the other numbers of
        `Place`.

        The root has parent -1. The name is None for the root and for elements of an array.
        """
        cdef Place *place
        cdef uint32_t i, j
        cdef uint64_t *spans = <uint64_t *> self.sample.names.data
        found = []
        for i in range(self.sample.place_count):
            place = <Place *> self.sample.places.data + i
            name = None
            if place.name >= 0:
                name = <bytes> self.sample.name_data.data[spans[2 * place.name] : spans[2 * place.name + 1]]
            counts = [place.counts[j] for j in range(CLASS_COUNT)]
            found.append({
                "parent": place.parent, "name": name, "counts": counts, "fractions": place.fractions,
                "wide": place.wide, "integer_digits": place.integer_digits, "scale": place.scale,
                "longest": place.longest, "doubles": place.doubles,
                "integer_bytes": place.integer_bytes, "nanos": place.nanos, "far": place.far,
                "physical": (place.physical >> 8, place.physical & 0xFF),
            })
        return found
