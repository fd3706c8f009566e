# cython: language_level=3
"""Repetition and definition levels to Arrow's offsets and validity, and back (core.levels)."""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset


def present_slots(const int16_t[::1] definition, int slot_level, int value_level, uint8_t[::1] out):
    """Which slots of a leaf hold a value.

    Entries whose definition level is below `slot_level` belong to an empty or null ancestor list and have no
    slot. Writes 1 or 0 a slot into `out` (as long as `definition`); returns (slots, values).
    """
    cdef Py_ssize_t i, slots = 0, values = 0, count = definition.shape[0]
    cdef uint8_t present
    if out.shape[0] < count:
        raise ValueError("the output is shorter than the levels")
    if count == 0:
        return 0, 0
    cdef const int16_t *levels = &definition[0]
    cdef uint8_t *flags = &out[0]
    with nogil:
        if slot_level == 0:
            for i in range(count):
                present = levels[i] >= value_level
                flags[i] = present
                values += present
            slots = count
        else:
            for i in range(count):
                # Overwritten by the next entry when this one has no slot; slots <= i keeps it inside.
                present = levels[i] >= value_level
                flags[slots] = present
                slots += levels[i] >= slot_level
                values += present
    return slots, values


def count_rows(const int16_t[::1] repetition):
    """How many entries start a row, that is, have repetition level 0."""
    cdef Py_ssize_t i, rows = 0
    for i in range(repetition.shape[0]):
        rows += repetition[i] == 0
    return rows


def find_row(const int16_t[::1] repetition, Py_ssize_t row):
    """The position of the entry that starts row `row`, counted from 0; -1 when there is none."""
    cdef Py_ssize_t i, rows = 0
    for i in range(repetition.shape[0]):
        if repetition[i] == 0:
            if rows == row:
                return i
            rows += 1
    return -1


def group_validity(
    const int16_t[::1] repetition, const int16_t[::1] definition,
    int repetition_level, int slot_level, int value_level, uint8_t[::1] out,
):
    """Which slots of a group are not null, read from the levels of one leaf below it.

    A slot of the group is an entry with repetition level at most `repetition_level` and definition level at
    least `slot_level`; it is present when the definition level reaches `value_level`. An empty `repetition`
    stands for all zeros. Returns (slots, present).
    """
    cdef Py_ssize_t i, slots = 0, present = 0, count = definition.shape[0]
    cdef bint nested = repetition.shape[0] > 0
    cdef uint8_t flag
    if out.shape[0] < count or (nested and repetition.shape[0] != count):
        raise ValueError("levels and output differ in length")
    for i in range(count):
        if (nested and repetition[i] > repetition_level) or definition[i] < slot_level:
            continue
        flag = definition[i] >= value_level
        out[slots] = flag
        present += flag
        slots += 1
    return slots, present


def list_offsets(
    const int16_t[::1] repetition, const int16_t[::1] definition,
    int repetition_level, int slot_level, int list_level, int element_level,
    int32_t[::1] offsets, uint8_t[::1] valid,
):
    """Offsets and validity of a list from the levels of one leaf below it.

    `repetition_level` and `element_level` are the levels of the repeated group (an element exists),
    `list_level` the definition level at which the list is not null, `slot_level` that at which the enclosing
    list's element exists. Returns (lists, elements); `offsets` holds lists + 1 entries.
    """
    cdef Py_ssize_t i, lists = 0, count = repetition.shape[0]
    cdef int32_t elements = 0
    cdef int16_t rep, level
    if definition.shape[0] != count or offsets.shape[0] < count + 1 or valid.shape[0] < count:
        raise ValueError("levels and output differ in length")
    if count > 0x7FFFFFFF:
        raise ValueError("more than 2^31 - 1 list elements in one batch")
    for i in range(count):
        rep = repetition[i]
        level = definition[i]
        if rep > repetition_level or level < slot_level:
            continue
        if rep < repetition_level:
            offsets[lists] = elements
            valid[lists] = level >= list_level
            lists += 1
        elif lists == 0:
            return -1, 0  # an element before any list
        elements += level >= element_level
    offsets[lists] = elements
    return lists, elements


def spread(const uint8_t[::1] dense, Py_ssize_t width, const uint8_t[::1] present, uint8_t[::1] out):
    """Place fixed-width values at the present slots of `out`; other slots become zero."""
    cdef Py_ssize_t i, at = 0, slots = present.shape[0], values = 0
    if width <= 0 or out.shape[0] != slots * width:
        raise ValueError("the output does not hold one value a slot")
    if slots == 0:
        return
    for i in range(slots):
        values += present[i] != 0
    if values * width > dense.shape[0]:
        raise ValueError("fewer values than present slots")
    cdef const uint8_t *source = &dense[0] if dense.shape[0] else NULL
    cdef uint8_t *target = &out[0]
    with nogil:
        if width == 4:
            for i in range(slots):
                if present[i]:
                    memcpy(target + i * 4, source + at, 4)
                    at += 4
                else:
                    memset(target + i * 4, 0, 4)
        elif width == 8:
            for i in range(slots):
                if present[i]:
                    memcpy(target + i * 8, source + at, 8)
                    at += 8
                else:
                    memset(target + i * 8, 0, 8)
        else:
            for i in range(slots):
                if present[i]:
                    memcpy(target + i * width, source + at, width)
                    at += width
                else:
                    memset(target + i * width, 0, width)


def nullable_entries(
    int16_t[::1] definition, int64_t[::1] slot, const uint8_t[::1] valid, Py_ssize_t base
):
    """One level down an optional node: entries whose slot is valid gain a definition level, others end here.

    `valid` is a bitmap (least significant bit first) that starts at bit `base`; a slot of -1 has ended before.
    """
    cdef Py_ssize_t i, bit
    if definition.shape[0] != slot.shape[0]:
        raise ValueError("levels and slots differ in length")
    for i in range(slot.shape[0]):
        if slot[i] < 0:
            continue
        bit = base + slot[i]
        if valid[bit >> 3] >> (bit & 7) & 1:
            definition[i] += 1
        else:
            slot[i] = -1


def repeated_entries(
    const int16_t[::1] repetition, const int16_t[::1] definition, const int64_t[::1] slot,
    const int32_t[::1] offsets, int repetition_level,
    int16_t[::1] out_repetition, int16_t[::1] out_definition, int64_t[::1] out_slot,
):
    """One level down a repeated node: an entry becomes one a list element, or ends here when the list is empty.

    `offsets` has an entry more than there are lists and is absolute in the elements. Returns the entries written;
    the outputs must hold one for each empty or ended entry and one for each element.
    """
    cdef Py_ssize_t i, j, at = 0, room = out_slot.shape[0]
    cdef int32_t first, last
    if repetition.shape[0] != slot.shape[0] or definition.shape[0] != slot.shape[0]:
        raise ValueError("levels and slots differ in length")
    if out_repetition.shape[0] != room or out_definition.shape[0] != room:
        raise ValueError("the outputs differ in length")
    for i in range(slot.shape[0]):
        first = last = 0
        if slot[i] >= 0:
            first = offsets[slot[i]]
            last = offsets[slot[i] + 1]
        if at + (last - first if last > first else 1) > room:
            raise ValueError("the output is too short")
        out_repetition[at] = repetition[i]
        if last <= first:
            out_definition[at] = definition[i]
            out_slot[at] = -1
            at += 1
            continue
        for j in range(first, last):
            out_repetition[at] = repetition[i] if j == first else <int16_t> repetition_level
            out_definition[at] = definition[i] + 1
            out_slot[at] = j
            at += 1
    return at
