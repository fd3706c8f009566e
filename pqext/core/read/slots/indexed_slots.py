"""Slots of a column that stay indices into the dictionary page of its chunk, for Arrow dictionary arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, allocate
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.kernels import levels as level_kernel
from pqext.core.kernels import rle
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.kernels.page_run import PageRun
from pqext.core.schema.types import leaf
from pqext.core.schema.types.logical import LeafType


@dataclass(slots=True)
class _Run:
    indices: NDArray[np.int32]
    present: Bytes
    slots: int


class IndexedSlots:
    """Runs of pages whose values are indices into one dictionary."""

    def __init__(self, take: Callable[[int], None]) -> None:
        self._take = take
        self._dictionary: Dictionary | None = None
        self._runs: list[_Run] = []

    def append(
        self, encoding: int, run: PageRun, present: Bytes, slots: int, dictionary: Dictionary | None, kind: LeafType
    ) -> bool:
        """Add ``slots``, those with a value as ``present`` flags (empty: all); false for pages that hold values.

        And for a dictionary with an entry that is not as its type demands: rows need not refer to it.
        """
        if encoding not in DICTIONARY_ENCODINGS or dictionary is None or dictionary.offsets is None:
            return False
        try:
            _shown(dictionary, kind)
        except CorruptFileError:
            return False
        self._dictionary = dictionary
        self._take(run.total * 4)
        indices = allocate(run.total * 4).view(np.int32)
        rle.decode_run(run, -1, dictionary.count, indices)
        self._runs.append(_Run(indices, present, slots))
        return True

    def look_up(self, builder: ByteArrayBuilder) -> None:
        """Append the values of all slots to ``builder``."""
        found = self._dictionary
        if found is not None:
            for run in self._runs:
                builder.append_lookup(found.data, found.offsets, run.indices, run.present, run.slots)

    def entries(self, kind: LeafType) -> pa.Array | None:
        """The dictionary as Arrow shows it, no value twice; ``None`` when no page has referred to it."""
        return None if self._dictionary is None else _shown(self._dictionary, kind)[0]

    def finish(self, kind: LeafType, slots: int, validity: pa.Buffer | None) -> pa.Array:
        """The dictionary array of all slots."""
        entries, places = pa.array([], kind.arrow_type()), None
        if self._dictionary is not None:
            entries, places = _shown(self._dictionary, kind)
        indices = allocate(slots * 4).view(np.int32)
        at = 0
        for run in self._runs:
            target = indices[at : at + run.slots]
            target[: len(run.indices)] = run.indices
            if len(run.indices) < run.slots:
                level_kernel.spread(target.view(np.uint8), 4, len(run.indices), run.present)
            at += run.slots
        held = pa.Array.from_buffers(pa.int32(), slots, [validity, pa.py_buffer(indices)])
        if places is not None:
            held = places.take(held)
        return pa.DictionaryArray.from_arrays(held, entries, safe=False)


def _shown(dictionary: Dictionary, kind: LeafType) -> tuple[pa.Array, pa.Array | None]:
    """The values as Arrow shows them, and where each stored one is among them, ``None`` where all are in their place.

    Arrow's users take the values for distinct. Worked out once for a chunk.
    """
    if dictionary.shown is None:
        entries = leaf.from_byte_arrays(kind, dictionary.count, None, dictionary.offsets, dictionary.data)
        unique = entries.dictionary_encode()
        is_distinct = len(unique.dictionary) == len(entries)
        dictionary.shown = (entries, None) if is_distinct else (unique.dictionary, unique.indices)
    return dictionary.shown


def is_shared(arrays: Sequence[pa.Array]) -> bool:
    """Are these dictionary arrays of one dictionary, in the same memory?"""
    if not pa.types.is_dictionary(arrays[0].type):
        return False
    first = arrays[0].dictionary
    return all(_is_same(array.dictionary, first) for array in arrays[1:])


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays of a shared dictionary as one."""
    indices = pa.concat_arrays([array.indices for array in arrays])
    return pa.DictionaryArray.from_arrays(indices, arrays[0].dictionary, safe=False)


def _is_same(one: pa.Array, other: pa.Array) -> bool:
    if len(one) != len(other) or one.offset != other.offset:
        return False
    places = [[buffer and buffer.address for buffer in array.buffers()] for array in (one, other)]
    return places[0] == places[1]


def in_order(array: pa.Array, entries: pa.Array | None) -> pa.Array:
    """``array`` as a dictionary array whose dictionary begins with ``entries``."""
    if entries is None or not len(entries):
        return array.dictionary_encode()
    found = pc.unique(pa.concat_arrays([entries, array.drop_null()]))
    return pa.DictionaryArray.from_arrays(pc.index_in(array, found, skip_nulls=True), found, safe=False)
