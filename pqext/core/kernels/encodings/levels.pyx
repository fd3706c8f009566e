# cython: language_level=3
"""Convert repetition and definition levels to Arrow offsets and validity, and back (core.levels)."""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset


cdef inline Py_ssize_t _present_slots(
    const int16_t *levels, Py_ssize_t count, int slot_level, int value_level, uint8_t *flags, int64_t *values
) noexcept nogil:
    """Flag the slots of one page that have values; add their number to `values`. Return the number of slots."""
    cdef Py_ssize_t i, slots = 0
    cdef int64_t found = 0
    cdef uint8_t present
    if slot_level == 0:
        for i in range(count):
            present = levels[i] >= value_level
            flags[i] = present
            found += present
        slots = count
    else:
        for i in range(count):
            # The next entry overwrites the flag if this entry has no slot; slots <= i, so it is in range.
            present = levels[i] >= value_level
            flags[slots] = present
            slots += levels[i] >= slot_level
            found += present
    values[0] = found
    return slots


def present_slots(
    const int16_t[::1] definition, const int64_t[::1] entries, int slot_level, int value_level,
    uint8_t[::1] out, int64_t[::1] slots, int64_t[::1] values,
):
    """Flag the slots of a leaf that have values, using the definition levels of pages of `entries` entries each.

    Entries whose definition level is below `slot_level` belong to an empty or null ancestor list and have no slot.
    Write 1 or 0 per slot to `out` (as long as `definition`), and the numbers of slots and values of each page.
    """
    cdef Py_ssize_t i, at = 0, done = 0, pages = entries.shape[0], count = definition.shape[0]
    if out.shape[0] < count or slots.shape[0] != pages or values.shape[0] != pages:
        raise ValueError("the output is shorter than the levels")
    for i in range(pages):
        if entries[i] < 0 or entries[i] > count - at:
            raise ValueError("the entry counts of the pages must add up to the number of levels")
        at += entries[i]
    if at != count:
        raise ValueError("the entry counts of the pages must add up to the number of levels")
    if count == 0:
        slots[:] = 0
        values[:] = 0
        return
    cdef const int16_t *levels = &definition[0]
    cdef uint8_t *flags = &out[0]
    with nogil:
        for i in range(pages):
            slots[i] = _present_slots(levels, entries[i], slot_level, value_level, flags + done, &values[i])
            levels += entries[i]
            done += slots[i]


def continue_lists(
    const int16_t[::1] repetition, const int16_t[::1] definition, const int16_t[::1] least,
):
    """Return whether every entry that continues a list is an element of the list.

    `least` has the lowest definition level for each valid repetition level.
    """
    cdef Py_ssize_t i, count = repetition.shape[0]
    cdef int highest = <int> least.shape[0] - 1
    cdef int16_t others = 0, low
    if definition.shape[0] != count or highest < 0:
        raise ValueError("definition and repetition levels must have the same length")
    if count == 0:
        return True
    cdef const int16_t *repeats = &repetition[0]
    cdef const int16_t *levels = &definition[0]
    cdef const int16_t *lowest = &least[0]
    with nogil:
        if highest == 1:
            low = lowest[1]
            for i in range(count):
                others |= (repeats[i] != 0) & (levels[i] < low)
        else:
            for i in range(count):
                if repeats[i] < 0 or repeats[i] > highest:
                    others = 1
                    break
                others |= levels[i] < lowest[repeats[i]]
    return not others


def count_rows(const int16_t[::1] repetition):
    """Return the number of entries that start a row, which have repetition level 0."""
    cdef Py_ssize_t i, rows = 0, count = repetition.shape[0]
    if count == 0:
        return 0
    cdef const int16_t *levels = &repetition[0]
    with nogil:
        for i in range(count):
            rows += levels[i] == 0
    return rows


def find_row(const int16_t[::1] repetition, Py_ssize_t row):
    """Return the position of the entry that starts row `row`, counted from 0; -1 if the row does not exist."""
    cdef Py_ssize_t i, block, in_block, rows = 0, count = repetition.shape[0], at = 0
    if count == 0 or row < 0:
        return -1
    cdef const int16_t *levels = &repetition[0]
    with nogil:
        while at < count:
            block = 256 if count - at > 256 else count - at
            in_block = 0
            for i in range(at, at + block):
                in_block += levels[i] == 0
            if rows + in_block > row:
                break
            rows += in_block
            at += block
        for i in range(at, count):
            if levels[i] == 0:
                if rows == row:
                    break
                rows += 1
        else:
            i = -1
    return i


def group_validity(
    const int16_t[::1] repetition, const int16_t[::1] definition,
    int repetition_level, int slot_level, int value_level, uint8_t[::1] out,
):
    """Flag the slots of a group that are not null, using the levels of a leaf of the group. Return (slots, present).

    A slot of the group is an entry with repetition level at most `repetition_level` and definition level at least
    `slot_level`; it is not null if the definition level is at least `value_level`. An empty `repetition` represents
    zeros.
    """
    cdef Py_ssize_t i, slots = 0, present = 0, count = definition.shape[0]
    cdef bint nested = repetition.shape[0] > 0
    cdef uint8_t flag
    if out.shape[0] < count or (nested and repetition.shape[0] != count):
        raise ValueError("levels and output must have the same length")
    if count == 0:
        return 0, 0
    cdef const int16_t *levels = &definition[0]
    cdef const int16_t *repeats = &repetition[0] if nested else NULL
    cdef uint8_t *flags = &out[0]
    with nogil:
        if not nested and slot_level == 0:
            for i in range(count):
                flag = levels[i] >= value_level
                flags[i] = flag
                present += flag
            slots = count
        else:
            for i in range(count):
                # The next entry overwrites the flag if this entry has no slot.
                flag = levels[i] >= value_level
                flags[slots] = flag
                if (nested and repeats[i] > repetition_level) or levels[i] < slot_level:
                    continue
                present += flag
                slots += 1
    return slots, present


def list_offsets(
    const int16_t[::1] repetition, const int16_t[::1] definition,
    int repetition_level, int slot_level, int list_level, int element_level,
    int32_t[::1] offsets, uint8_t[::1] valid,
):
    """Compute the offsets and validity of a list from the levels of a leaf of the list. Return (lists, elements).

    `repetition_level` and `element_level` are the levels of the repeated group, at which an element exists. At
    `list_level` the list is not null; at `slot_level` the element of the enclosing list exists. `offsets` has lists + 1
    entries. Return (-1, 0) if an element precedes the first list.
    """
    cdef Py_ssize_t i, lists = 0, count = repetition.shape[0]
    cdef int32_t elements = 0
    cdef bint here
    if definition.shape[0] != count or offsets.shape[0] < count + 1 or valid.shape[0] < count:
        raise ValueError("levels and output must have the same length")
    if count > 0x7FFFFFFF:
        raise ValueError("a batch has more than 2^31 - 1 list elements; read fewer rows at a time")
    offsets[0] = 0
    if count == 0:
        return 0, 0
    cdef const int16_t *repeats = &repetition[0]
    cdef const int16_t *levels = &definition[0]
    cdef int32_t *ends = &offsets[0]
    cdef uint8_t *flags = &valid[0]
    with nogil:
        for i in range(count):
            # The next entry overwrites the offset if this entry starts no list; lists <= i.
            ends[lists] = elements
            flags[lists] = levels[i] >= list_level
            here = repeats[i] <= repetition_level and levels[i] >= slot_level
            lists += here & (repeats[i] < repetition_level)
            elements += here & (levels[i] >= element_level)
        ends[lists] = elements
    if ends[0] != 0:
        return -1, 0
    return lists, elements


cdef inline void _spread(
    uint8_t *target, Py_ssize_t width, Py_ssize_t at, const uint8_t *present, Py_ssize_t slots
) noexcept nogil:
    # From the end, so that no value is overwritten before it has moved. Inlined for each constant width.
    cdef Py_ssize_t i
    for i in range(slots - 1, -1, -1):
        if present[i]:
            at -= 1
            if at == i:
                return  # all remaining values are in place
            memcpy(target + i * width, target + at * width, width)
        else:
            memset(target + i * width, 0, width)


ctypedef fused word_t:
    uint32_t
    uint64_t


cdef inline void _spread_words(word_t *target, Py_ssize_t at, const uint8_t *present, Py_ssize_t slots) noexcept nogil:
    # Without an unpredictable branch on nulls: a slot without a value receives a value whose bits are cleared.
    cdef Py_ssize_t i
    cdef word_t here
    for i in range(slots - 1, -1, -1):
        if at == i + 1:
            return  # all remaining values are in place
        here = present[i] != 0
        at -= <Py_ssize_t> here
        target[i] = target[at] & (0 - here)


cdef void spread_values(
    uint8_t *target, Py_ssize_t width, Py_ssize_t values, const uint8_t *present, Py_ssize_t slots
) noexcept nogil:
    """Like `spread`, for callers that have checked the number of present slots."""
    if width == 1:
        _spread(target, 1, values, present, slots)
    elif width == 2:
        _spread(target, 2, values, present, slots)
    elif width == 4 and <size_t> target % 4 == 0:
        _spread_words(<uint32_t *> target, values, present, slots)
    elif width == 8 and <size_t> target % 8 == 0:
        _spread_words(<uint64_t *> target, values, present, slots)
    elif width == 12:
        _spread(target, 12, values, present, slots)
    elif width == 16:
        _spread(target, 16, values, present, slots)
    else:
        _spread(target, width, values, present, slots)


def spread(uint8_t[::1] target, Py_ssize_t width, Py_ssize_t values, const uint8_t[::1] present):
    """Move the first `values` values of fixed width in `target` to the present slots; other slots become zero."""
    cdef Py_ssize_t i, slots = present.shape[0], found = 0
    if width <= 0 or target.shape[0] != slots * width:
        raise ValueError("the target must have one value per slot")
    if slots == 0:
        return
    cdef uint8_t *start = &target[0]
    cdef const uint8_t *flags = &present[0]
    for i in range(slots):
        found += flags[i] != 0
    if found != values:
        raise ValueError("the number of valid slots must equal the number of values")
    with nogil:
        spread_values(start, width, values, flags, slots)


cdef inline Py_ssize_t _compact(
    const uint8_t *values, Py_ssize_t width, const uint8_t *present, Py_ssize_t slots, uint8_t *out
) noexcept nogil:
    # Each value is written, and overwritten if it is not present; inlined for each constant width.
    cdef Py_ssize_t i, at = 0
    for i in range(slots):
        memcpy(out + at * width, values + i * width, width)
        at += present[i]
    return at


def compact(const uint8_t[::1] values, Py_ssize_t width, const uint8_t[::1] present, uint8_t[::1] out):
    """Copy the fixed-width values of present slots (flags of 1 or 0) to `out`, which has room for an additional value.
    """
    cdef Py_ssize_t i, found = 0, slots = present.shape[0]
    if width <= 0 or values.shape[0] != slots * width:
        raise ValueError("there must be one value per slot")
    if slots == 0:
        return
    cdef const uint8_t *flags = &present[0]
    cdef const uint8_t *source = &values[0]
    for i in range(slots):
        found += flags[i]
    if found > slots or (found + 1) * width > out.shape[0]:
        raise ValueError("the output must have room for one more value than there are valid slots")
    cdef uint8_t *target = &out[0]
    with nogil:
        if width == 4:
            _compact(source, 4, flags, slots, target)
        elif width == 8:
            _compact(source, 8, flags, slots, target)
        elif width == 16:
            _compact(source, 16, flags, slots, target)
        else:
            _compact(source, width, flags, slots, target)


def nullable_entries(
    int16_t[::1] definition, int64_t[::1] slot, const uint8_t[::1] valid, Py_ssize_t base
):
    """Extend levels by an optional node: entries whose slot is valid gain a definition level, other entries end.

    `valid` is a bitmap (least significant bit first) that starts at bit `base`. Entries with slot -1 have already
    ended.
    """
    cdef Py_ssize_t i, bit
    if definition.shape[0] != slot.shape[0]:
        raise ValueError("levels and slots must have the same length")
    with nogil:
        for i in range(slot.shape[0]):
            if slot[i] < 0:
                continue
            bit = base + slot[i]
            if valid[bit >> 3] >> (bit & 7) & 1:
                definition[i] += 1
            else:
                slot[i] = -1


def occupied(const int64_t[::1] slot):
    """Return the number of slots that are not -1, and the first and the last of them."""
    cdef Py_ssize_t i, count = 0
    cdef int64_t first = -1, last = -1
    with nogil:
        for i in range(slot.shape[0]):
            if slot[i] >= 0:
                if count == 0:
                    first = slot[i]
                last = slot[i]
                count += 1
    return count, first, last


def entries_below(const int64_t[::1] slot, const int32_t[::1] offsets):
    """Return the number of entries that `repeated_entries` writes: one per element, and one per empty or ended list."""
    cdef Py_ssize_t i, lists = offsets.shape[0] - 1
    cdef int64_t total = 0, length
    cdef bint bad = False
    with nogil:
        for i in range(slot.shape[0]):
            length = 1
            if slot[i] >= lists:
                bad = True
                break
            if slot[i] >= 0:
                length = <int64_t> offsets[slot[i] + 1] - offsets[slot[i]]
            total += length if length > 1 else 1
    if bad:
        raise ValueError("a slot lies beyond the last list")
    return total


cdef Py_ssize_t _repeat(
    const int16_t *repetition, const int16_t *definition, const int64_t *slot, Py_ssize_t count,
    const int32_t *offsets, Py_ssize_t lists, int16_t level, Py_ssize_t room,
    int16_t *out_repetition, int16_t *out_definition, int64_t *out_slot,
) noexcept nogil:
    """Write the entries of a repeated node; return their number.

    Return -1 if there are more than `room` entries, and -2 for a slot without a list.
    """
    cdef Py_ssize_t i, j, at = 0
    cdef int32_t first, last
    for i in range(count):
        first = last = 0
        if slot[i] >= lists:
            return -2
        if slot[i] >= 0:
            first = offsets[slot[i]]
            last = offsets[slot[i] + 1]
        if room - at < (<Py_ssize_t> last - first if last > first else 1):
            return -1
        out_repetition[at] = repetition[i]
        if last <= first:
            out_definition[at] = definition[i]
            out_slot[at] = -1
            at += 1
            continue
        for j in range(last - first):
            out_repetition[at + j] = level
            out_definition[at + j] = definition[i] + 1
            out_slot[at + j] = first + j
        out_repetition[at] = repetition[i]
        at += last - first
    return at


def repeated_entries(
    const int16_t[::1] repetition, const int16_t[::1] definition, const int64_t[::1] slot,
    const int32_t[::1] offsets, int repetition_level,
    int16_t[::1] out_repetition, int16_t[::1] out_definition, int64_t[::1] out_slot,
):
    """Extend levels by a repeated node: an entry becomes one entry per list element, or ends if the list is empty.

    `offsets` has lists + 1 entries, which are absolute positions of elements. Return the number of entries. The outputs
    must have room for an entry per element, and per empty or ended entry.
    """
    cdef Py_ssize_t room = out_slot.shape[0], made
    if repetition.shape[0] != slot.shape[0] or definition.shape[0] != slot.shape[0]:
        raise ValueError("levels and slots must have the same length")
    if out_repetition.shape[0] != room or out_definition.shape[0] != room:
        raise ValueError("the outputs must have the same length")
    if slot.shape[0] == 0:
        return 0
    if room == 0 or offsets.shape[0] == 0:
        raise ValueError("the output is too short")
    with nogil:
        made = _repeat(
            &repetition[0], &definition[0], &slot[0], slot.shape[0], &offsets[0], offsets.shape[0] - 1,
            <int16_t> repetition_level, room, &out_repetition[0], &out_definition[0], &out_slot[0],
        )
    if made == -1:
        raise ValueError("the output is too short")
    if made < 0:
        raise ValueError("a slot lies beyond the last list")
    return made
