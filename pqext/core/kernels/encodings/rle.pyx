# cython: language_level=3
"""Decode the hybrid of run-length encoding and bit-packing: levels, dictionary indices and booleans (encodings.rle)."""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.bitpack cimport unpack
from pqext.core.kernels.leb128 cimport BAD_VARINT, TRUNCATED, read_leb128
from pqext.core.kernels.encodings.page_run cimport PagePart, PageRun

from pqext.core.base.errors import CorruptFileError

ctypedef fused value_t:
    uint8_t
    int16_t
    int32_t

cdef enum:
    OK = 0
    EMPTY_RUN = -3
    TOO_LARGE = -4
    NO_WIDTH = -6
    BAD_WIDTH = -7
    EMPTY_DICTIONARY = -8
    BLOCK = 1024

MESSAGES = {
    TRUNCATED: "run-length data ends before the last value",
    BAD_VARINT: "a run header is longer than 32 bits",
    EMPTY_RUN: "a run has length zero",
    TOO_LARGE: "a value lies outside the range allowed for this column",
    NO_WIDTH: "a dictionary-encoded page lacks a bit width",
    BAD_WIDTH: "the bit width of run-length data exceeds 32",
    EMPTY_DICTIONARY: "a page refers to an empty dictionary",
}


cdef struct Runs:
    # Position of a reader of hybrid data: `left` values of a run, repeated (`value`) or packed from `at` on.
    const uint8_t *p
    size_t size
    size_t at
    int width
    uint32_t limit
    Py_ssize_t left
    bint packed
    uint32_t value


cdef int next_run(Runs *runs, Py_ssize_t wanted) noexcept nogil:
    """Read the header of the next run, of which at most `wanted` values are needed. Return OK or a fault."""
    cdef uint64_t header = 0
    cdef int status = read_leb128(runs.p, runs.size, &runs.at, 32, &header), i
    cdef Py_ssize_t count = header >> 1
    cdef uint64_t least
    if status != OK:
        return status
    if count == 0:
        return EMPTY_RUN
    runs.packed = header & 1 and runs.width > 0
    if header & 1:
        # Some writers omit the padding of the last group; all preceding groups are complete.
        least = (<uint64_t> count - 1) * runs.width
        count = min(count * 8, wanted)
        if max(least + (runs.width > 0), (<uint64_t> count * runs.width + 7) // 8) > runs.size - runs.at:
            return TRUNCATED
        runs.value = 0
    else:
        if <size_t> ((runs.width + 7) // 8) > runs.size - runs.at:
            return TRUNCATED
        runs.value = 0
        for i in range((runs.width + 7) // 8):
            runs.value |= <uint32_t> runs.p[runs.at + i] << (8 * i)
        runs.at += (runs.width + 7) // 8
        if runs.value >= runs.limit:
            return TOO_LARGE
        count = min(count, wanted)
    runs.left = count
    return OK


cdef int next_block(Runs *runs, uint32_t *block, Py_ssize_t count) noexcept nogil:
    """Unpack `count` values of a packed run: at most BLOCK, and a multiple of eight except at the end of the run.

    Return OK or a fault.
    """
    cdef uint32_t seen = 0
    cdef Py_ssize_t i
    unpack(runs.p + runs.at, runs.size - runs.at, runs.width, count, block)
    for i in range(count):
        seen |= block[i]
    if seen >= runs.limit:
        for i in range(count):
            if block[i] >= runs.limit:
                return TOO_LARGE
    runs.left -= count
    # The last group of a run may lack its padding; nothing after it is read.
    runs.at += (<size_t> (count + 7) // 8) * runs.width
    if runs.at > runs.size:
        runs.at = runs.size
    return OK


cdef int decode(Runs *runs, Py_ssize_t count, value_t *out) noexcept nogil:
    """Decode `count` values, each of which must be below the limit. Return OK or a fault."""
    cdef Py_ssize_t done = 0, run, i
    cdef uint32_t[BLOCK] block
    cdef int status
    while done < count:
        status = next_run(runs, count - done)
        if status != OK:
            return status
        if not runs.packed:
            run = runs.left
            if value_t is uint8_t:
                memset(out + done, runs.value, run)
            else:
                for i in range(run):
                    out[done + i] = <value_t> runs.value
            done += run
            continue
        while runs.left:
            run = runs.left if runs.left < BLOCK else BLOCK
            status = next_block(runs, block, run)
            if status != OK:
                return status
            for i in range(run):
                out[done + i] = <value_t> block[i]
            done += run
    return OK


cdef inline void gather(
    const uint8_t *values, int value_width, const uint32_t *block, Py_ssize_t count, uint8_t *out
) noexcept nogil:
    cdef Py_ssize_t i
    if value_width == 4:
        for i in range(count):
            memcpy(out + i * 4, values + <size_t> block[i] * 4, 4)
    elif value_width == 8:
        for i in range(count):
            memcpy(out + i * 8, values + <size_t> block[i] * 8, 8)
    elif value_width == 16:
        for i in range(count):
            memcpy(out + i * 16, values + <size_t> block[i] * 16, 16)
    else:
        for i in range(count):
            memcpy(out + i * value_width, values + <size_t> block[i] * value_width, value_width)


cdef int look_up(Runs *runs, Py_ssize_t count, const uint8_t *values, int value_width, uint8_t *out) noexcept nogil:
    cdef Py_ssize_t done = 0, run, i
    cdef uint32_t[BLOCK] block
    cdef int status
    while done < count:
        status = next_run(runs, count - done)
        if status != OK:
            return status
        while runs.left:
            run = runs.left if runs.left < BLOCK else BLOCK
            if runs.packed:
                status = next_block(runs, block, run)
                if status != OK:
                    return status
            else:
                for i in range(run):
                    block[i] = runs.value
                runs.left -= run
            gather(values, value_width, block, run, out + done * value_width)
            done += run
    return OK


cdef Runs open_runs(const uint8_t[::1] data, int width, uint32_t limit) except *:
    cdef Runs runs
    if not 0 <= width <= 32:
        raise CorruptFileError(f"bit width {width} is invalid for run-length data")
    runs.p = &data[0] if data.shape[0] else NULL
    runs.size = data.shape[0]
    runs.at = 0
    runs.width = width
    runs.limit = limit
    runs.left = 0
    runs.packed = False
    runs.value = 0
    return runs


cdef check(int status):
    if status != OK:
        raise CorruptFileError(MESSAGES[status])


def decode_into(const uint8_t[::1] data, int width, uint32_t limit, value_t[::1] out):
    """Fill `out` with the hybrid-encoded values of `data`; return the number of bytes consumed.

    `width` is 0 to 32 bits; each value must be below `limit`. Data of width 0 may be missing completely.
    """
    cdef int status = OK
    cdef Py_ssize_t count = out.shape[0]
    cdef Runs runs = open_runs(data, width, limit)
    if count == 0:
        return 0
    if runs.size == 0 and width == 0 and limit > 0:
        out[:] = 0
        return 0
    with nogil:
        status = decode(&runs, count, &out[0])
    check(status)
    return runs.at


cdef int open_part(const PagePart *part, int width, uint32_t limit, Runs *runs) noexcept nogil:
    """Open the runs of one page.

    If `width` is negative, the first byte of the page is the bit width. Return OK or a fault.
    """
    runs.p = part.data
    runs.size = part.size
    runs.at = 0
    runs.limit = limit
    runs.left = 0
    runs.packed = False
    runs.value = 0
    runs.width = width
    if width < 0 and (part.count or part.size):
        if not part.size:
            return NO_WIDTH
        runs.width = part.data[0]
        runs.at = 1
        if limit == 0 and part.count:
            return EMPTY_DICTIONARY
    return BAD_WIDTH if runs.width > 32 else OK


cdef int decode_parts(const PagePart *parts, Py_ssize_t pages, int width, uint32_t limit, value_t *out) noexcept nogil:
    """Decode consecutive pages. Data of width 0 may be missing completely. Return OK or a fault."""
    cdef Py_ssize_t i
    cdef Runs runs
    cdef int status
    for i in range(pages):
        status = open_part(parts + i, width, limit, &runs)
        if status == OK and runs.at == runs.size and runs.width == 0 and limit > 0:
            memset(out, 0, parts[i].count * sizeof(value_t))
        elif status == OK:
            status = decode(&runs, parts[i].count, out)
        if status != OK:
            return status
        out += parts[i].count
    return OK


def decode_run(PageRun run not None, int width, uint32_t limit, value_t[::1] out):
    """Fill `out` with the hybrid-encoded values of a run of pages, each below `limit`.

    `width` is 0 to 32 bits, or -1 if the first byte of each page is the width, as for dictionary indices.
    """
    cdef int status = OK
    if out.shape[0] != run.total or width > 32:
        raise ValueError("the output must have one value per value of the pages")
    cdef value_t unused
    with nogil:
        status = decode_parts(run.parts, run.size, width, limit, &out[0] if run.total else &unused)
    check(status)


cdef int look_up_parts(
    const PagePart *parts, Py_ssize_t pages, uint32_t entries, const uint8_t *values, int value_width, uint8_t *out
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef Runs runs
    cdef int status
    for i in range(pages):
        status = open_part(parts + i, -1, entries, &runs)
        if status == OK and runs.at == runs.size and runs.width == 0:
            for j in range(parts[i].count):
                memcpy(out + j * value_width, values, value_width)
        elif status == OK:
            status = look_up(&runs, parts[i].count, values, value_width, out)
        if status != OK:
            return status
        out += parts[i].count * value_width
    return OK


def look_up_run(PageRun run not None, const uint8_t[::1] values, int value_width, uint32_t entries, uint8_t[::1] out):
    """Fill `out` with the dictionary values that the indices of a run of pages select.

    `values` contains `entries` values of `value_width` bytes each; `out` has room for one per index.
    """
    cdef int status = OK
    if value_width < 1 or <size_t> entries * value_width > <size_t> values.shape[0]:
        raise ValueError("the size of the dictionary is not a multiple of the value width")
    if out.shape[0] % value_width or out.shape[0] // value_width != run.total:
        raise ValueError("the output must have one value per value of the pages")
    cdef uint8_t unused
    cdef const uint8_t *entry = &values[0] if values.shape[0] else NULL
    with nogil:
        status = look_up_parts(
            run.parts, run.size, entries, entry, value_width, &out[0] if run.total else &unused
        )
    check(status)


cdef inline uint32_t packed_at(const Runs *runs, Py_ssize_t value) noexcept nogil:
    """Return one value of a packed run that `next_run` has opened."""
    cdef uint64_t word = 0
    cdef size_t bit = <size_t> value * runs.width, byte = runs.at + (bit >> 3)
    memcpy(&word, runs.p + byte, 8 if runs.size - byte >= 8 else runs.size - byte)
    return <uint32_t> ((word >> (bit & 7)) & ((<uint64_t> 1 << runs.width) - 1))


cdef int indices_of_part(
    const PagePart *part, uint32_t entries, int64_t base, const int64_t *places, Py_ssize_t *taken, Py_ssize_t count,
    int32_t *out,
) noexcept nogil:
    """Write the indices at positions `places` of a page that starts at position `base`. Return OK or a fault."""
    cdef Runs runs
    cdef Py_ssize_t done = 0, i = taken[0]
    cdef uint32_t value
    cdef int status = open_part(part, -1, entries, &runs)
    cdef bint is_empty = status == OK and runs.at == runs.size and runs.width == 0
    if status != OK:
        return status
    while i < count and places[i] - base < part.count:
        if is_empty:
            out[i] = 0
            i += 1
            continue
        status = next_run(&runs, part.count - done)
        if status != OK:
            return status
        while i < count and places[i] - base < done + runs.left:
            value = packed_at(&runs, places[i] - base - done) if runs.packed else runs.value
            if value >= entries:
                return TOO_LARGE
            out[i] = <int32_t> value
            i += 1
        done += runs.left
        if runs.packed:
            runs.at += (<size_t> (runs.left + 7) // 8) * runs.width
            if runs.at > runs.size:
                runs.at = runs.size
    taken[0] = i
    return OK


def indices_at(PageRun run not None, uint32_t entries, const int64_t[::1] places, int32_t[::1] out):
    """Fill `out` with the dictionary indices, each below `entries`, at ascending positions `places` of a run of pages.
    """
    cdef int status = OK
    cdef Py_ssize_t i, taken = 0
    cdef int64_t base = 0, before = -1
    if out.shape[0] != places.shape[0]:
        raise ValueError("the output must have one value per position")
    for i in range(places.shape[0]):
        if places[i] <= before:
            raise ValueError("positions must ascend and lie within the values of the pages")
        before = places[i]
    if before >= run.total:
        raise ValueError("positions must ascend and lie within the values of the pages")
    with nogil:
        for i in range(run.size):
            if taken == places.shape[0]:
                break
            if places[taken] < base + run.parts[i].count:
                status = indices_of_part(run.parts + i, entries, base, &places[0], &taken, places.shape[0], &out[0])
                if status != OK:
                    break
            base += run.parts[i].count
    check(status)


cdef bint all_ones(const PagePart *parts, Py_ssize_t pages) noexcept nogil:
    """Return whether each page is one run of 1 for all its values, as in most optional columns without nulls."""
    cdef Py_ssize_t i
    cdef Runs runs
    for i in range(pages):
        if not parts[i].count:
            continue
        if open_part(parts + i, 1, 2, &runs) != OK or next_run(&runs, parts[i].count) != OK:
            return False
        if runs.packed or not runs.value or runs.left < parts[i].count:
            return False
    return True


def holds_ones_only(PageRun run not None):
    """Return whether all levels of these pages are 1 and stored in one run per page. False means unknown."""
    return all_ones(run.parts, run.size)


cdef int decode_flag_parts(const PagePart *parts, Py_ssize_t pages, uint8_t *out, int64_t *ones) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef int64_t found
    cdef int status
    for i in range(pages):
        status = decode_parts(parts + i, 1, 1, 2, out)
        if status != OK:
            return status
        found = 0
        for j in range(parts[i].count):
            found += out[j]
        ones[i] = found
        out += parts[i].count
    return OK


def decode_flags(PageRun run not None, uint8_t[::1] out, int64_t[::1] ones):
    """Fill `out` with levels of 0 or 1, and `ones` with the number of levels 1 in each page."""
    cdef int status = OK
    if out.shape[0] != run.total or ones.shape[0] != run.size:
        raise ValueError("the outputs must have one value per value of the pages")
    if run.size and run.total:
        with nogil:
            status = decode_flag_parts(run.parts, run.size, &out[0], &ones[0])
    elif run.size:
        ones[:] = 0
    check(status)


cdef int page_flags(const uint8_t *p, size_t size, Py_ssize_t count, uint8_t *out, int64_t *ones) noexcept nogil:
    """Decode levels of 0 or 1, and count the levels 1. Return OK or a fault."""
    cdef PagePart part
    part.data, part.size, part.count = p, size, count
    return decode_flag_parts(&part, 1, out, ones)


cdef int page_indices(const uint8_t *p, size_t size, Py_ssize_t count, uint32_t limit, int32_t *out) noexcept nogil:
    """Decode dictionary indices below `limit`, which follow their bit width. Return OK or a fault."""
    cdef PagePart part
    part.data, part.size, part.count = p, size, count
    return decode_parts(&part, 1, -1, limit, out)


cdef int page_values(
    const uint8_t *p, size_t size, Py_ssize_t count, uint32_t entries, const uint8_t *values, int width, uint8_t *out
) noexcept nogil:
    """Decode dictionary indices to the values of `width` bytes among `entries` that they select. Return OK or a fault.
    """
    cdef PagePart part = [p, size, count]
    return look_up_parts(&part, 1, entries, values, width, out)
