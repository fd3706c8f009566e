"""The dictionary of a column chunk: its distinct values and the index of each value (Encodings, Dictionary)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.buffers import EMPTY, Bytes, allocate, size_of, view
from pqext.core.kernels import distinct

MAX_BYTES = 1 << 20
"""Bytes of a dictionary page at most; values behind the one that would exceed it are encoded otherwise."""
SAMPLE = 8192
"""Values looked at before all are indexed."""
_MOST_DISTINCT = 0.95
"""Of the sample; beyond it the number of all is anybody's guess."""
_WORTHWHILE = 0.7
"""What entries and indices may take of the values' bytes where they are only expected to."""


@dataclass(slots=True)
class IndexedValues:
    """``indices`` of the first values of a chunk, all of them or as many as the dictionary took, into ``entries``.

    ``given``: the entries are the user's, and some of them may be those of no value.
    """

    indices: NDArray[np.int32]
    entries: pa.Array
    given: bool = False

    def used(self, count: int) -> pa.Array | None:
        """The distinct values of a chunk of ``count``, ``None`` when the dictionary does not hold them all."""
        if len(self.indices) < count:
            return None
        if not self.given:
            return self.entries
        flags = np.bincount(self.indices, minlength=len(self.entries)) > 0
        return self.entries if flags.all() else self.entries.filter(pa.array(flags))


def index(physical: pa.Array) -> IndexedValues | None:
    """The dictionary of a dense array of a physical Arrow type (see ``core.leaf``), ``None`` when it does not pay.

    It does not when too many of the first values are distinct, or when indices and entries take more bytes than the
    values they stand for.
    """
    if not len(physical) or pa.types.is_boolean(physical.type):
        return None
    if len(physical) > SAMPLE and not _promises(len(_index(physical[:SAMPLE]).entries), physical):
        return None
    found = _index(physical)
    count, entries = len(found.indices), len(found.entries)
    stored = size_of(found.entries, entries) + count * max(entries - 1, 1).bit_length() // 8
    return found if count and stored < size_of(physical, count) else None


def with_both_zeros(indexed: IndexedValues) -> IndexedValues:
    """``indexed`` with an entry for either zero, used or not, where floats have one of the two."""
    if not pa.types.is_floating(indexed.entries.type):
        return indexed
    zeros = np.signbit(values := indexed.entries.to_numpy())[values == 0]
    if not len(zeros) or zeros.any() != zeros.all():
        return indexed
    other = pa.array([0.0 if zeros[0] else -0.0], indexed.entries.type)
    return IndexedValues(indexed.indices, pa.concat_arrays([indexed.entries, other]))


def given(physical: pa.Array, entries: pa.Array, *, ordered: bool) -> IndexedValues | None:
    """The dictionary with ``entries`` first, in their order, used or not; ``None`` when it cannot be that.

    Entries must be distinct, hold all values and, unless they are ``ordered``, not take more than ``MAX_BYTES``.
    """
    if not len(entries) or (not ordered and entries.nbytes > MAX_BYTES):
        return None
    indices = pc.index_in(physical, entries)
    if indices.null_count or len(pc.unique(entries)) < len(entries):
        return None
    return IndexedValues(indices.to_numpy(), entries, given=True)


def _promises(found: int, physical: pa.Array) -> bool:
    """May a dictionary pay, of whose first ``SAMPLE`` values ``found`` are distinct?"""
    if found <= SAMPLE // 2:
        return True
    if found > SAMPLE * _MOST_DISTINCT:
        return False
    entries = _population(found)
    each = physical.nbytes / len(physical)
    stored = entries * each + len(physical) * math.log2(entries) / 8
    return bool(entries * each <= MAX_BYTES and stored <= _WORTHWHILE * physical.nbytes)


def _population(found: int) -> float:
    """How many equally frequent values there are when ``SAMPLE`` of them, drawn at random, hold ``found`` distinct."""
    low, high = float(found), float(SAMPLE * SAMPLE)
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if -middle * math.expm1(-SAMPLE / middle) > found else (middle, high)
    return high


def _index(physical: pa.Array) -> IndexedValues:
    kind, start, count = physical.type, physical.offset, len(physical)
    _, *buffers = physical.buffers()
    indices = allocate(count * 4).view(np.int32)
    if pa.types.is_binary(kind):
        offsets = np.frombuffer(buffers[0], np.int32)[start : start + count + 1]
        data = view(buffers[1]) if buffers[1] is not None else EMPTY
        done, starts, values = distinct.index_byte_arrays(data, offsets, MAX_BYTES, indices)
        entries = len(starts) // 4 - 1
        held = [None, pa.py_buffer(starts), pa.py_buffer(values)]
    else:
        width = kind.byte_width
        data = _slice(buffers[0], start * width, (start + count) * width)
        done, _, values = distinct.index_fixed(data, width, MAX_BYTES, indices)
        entries = len(values) // width
        held = [None, pa.py_buffer(values)]
    return IndexedValues(indices[:done], pa.Array.from_buffers(kind, entries, held))


def _slice(buffer: pa.Buffer, start: int, stop: int) -> Bytes:
    return view(buffer)[start:stop]
