"""Build the dictionary of a column chunk: distinct values, and the index of each value (Encodings, Dictionary)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import allocate, size_of, view
from pqext.core.format.encodings import plain
from pqext.core.kernels.encodings.byte_array import encode_plain
from pqext.core.kernels.hash import distinct

MAX_BYTES = 1 << 20
"""Maximum size of a dictionary page in bytes. The first value that exceeds it ends the dictionary-encoded values."""
SAMPLE = 8192
"""Number of values that are sampled before all values are indexed."""
_MOST_DISTINCT = 0.95
"""Maximum share of distinct values in the sample. Beyond it, the number of distinct values cannot be estimated."""
_WORTHWHILE = 0.7
"""Maximum estimated size of entries and indices, as a share of the size of the values."""


class IndexedValues:
    """Dictionary ``entries`` of a chunk, and the index of each value. If the dictionary is full, only the first values
    have an index.

    If ``has_user_entries`` is true, the entries come from the user, and some may be unused.
    """

    __slots__ = ("_entries", "_found", "count", "has_user_entries", "indices")

    def __init__(
        self, indices: NDArray[np.int32], entries: pa.Array | DictionaryEntries, *, has_user_entries: bool = False
    ) -> None:
        self.indices = indices
        self.has_user_entries = has_user_entries
        self.count = len(entries)
        self._entries = None if isinstance(entries, DictionaryEntries) else entries
        self._found = entries if isinstance(entries, DictionaryEntries) else None

    @property
    def entries(self) -> pa.Array:
        """Entries as an array of the physical type of the values."""
        if self._entries is None:
            assert self._found is not None
            self._entries = self._found.array()
        return self._entries

    def encode_plain(self) -> Any:
        """Return the PLAIN encoding of the entries."""
        return plain.encode(self.entries) if self._found is None else self._found.encode_plain()

    @property
    def size(self) -> int:
        """Size of the entries in memory in bytes."""
        return size_of(self.entries, self.count) if self._found is None else self._found.size

    def distinct_values(self, count: int) -> pa.Array | None:
        """Return the distinct values of a chunk of ``count`` values; None if some are not in the dictionary."""
        if len(self.indices) < count:
            return None
        if not self.has_user_entries:
            return self.entries
        flags = np.bincount(self.indices, minlength=len(self.entries)) > 0
        return self.entries if flags.all() else self.entries.filter(pa.array(flags))

    def distinct_count(self, count: int) -> int | None:
        """Return the number of distinct values among ``count`` values; None if some are not in the dictionary."""
        if len(self.indices) < count:
            return None
        return len(np.unique(self.indices)) if self.has_user_entries else self.count


@dataclass(slots=True)
class DictionaryEntries:
    """Entries collected by the kernel: their bytes and, for byte arrays, the offsets of the entries in the bytes."""

    kind: pa.DataType
    width: int
    starts: Any
    values: Any

    def __len__(self) -> int:
        return len(self.values) // self.width if self.width else len(self.starts) // 4 - 1

    @property
    def size(self) -> int:
        """Size of the entries in memory in bytes."""
        return len(self.values) + (0 if self.width else len(self) * 4)

    def array(self) -> pa.Array:
        """Return the entries as an array."""
        held = [None] if self.width else [None, pa.py_buffer(self.starts)]
        return pa.Array.from_buffers(self.kind, len(self), [*held, pa.py_buffer(self.values)])

    def encode_plain(self) -> Any:
        """Return the PLAIN encoding of the entries."""
        if self.width:
            return self.values
        return encode_plain(view(self.values), np.frombuffer(self.starts, np.int32))


def build_dictionary(stored_values: pa.Array, size: int | None = None) -> IndexedValues | None:
    """Build the dictionary of a dense array of a physical Arrow type. Return None if it is not worthwhile.

    A dictionary is not worthwhile for booleans, if too many of the first values are distinct, or if indices and entries
    do not take fewer bytes than the values. ``size`` is the size of the values in bytes, if known.
    """
    if not len(stored_values) or pa.types.is_boolean(stored_values.type):
        return None
    if len(stored_values) > SAMPLE and not _may_be_worthwhile(_index(stored_values[:SAMPLE]).count, stored_values):
        return None
    indexed = _index(stored_values)
    count, entries = len(indexed.indices), indexed.count
    dictionary_size = indexed.size + count * max(entries - 1, 1).bit_length() // 8
    values_size = size_of(stored_values, count) if size is None or count < len(stored_values) else size
    return indexed if count and dictionary_size < values_size else None


def add_missing_zero(indexed_values: IndexedValues) -> IndexedValues:
    """Add the missing zero to a dictionary of floats that contains only one of the two zeros."""
    if not pa.types.is_floating(indexed_values.entries.type):
        return indexed_values
    zeros = np.signbit(values := indexed_values.entries.to_numpy())[values == 0]
    if not len(zeros) or zeros.any() != zeros.all():
        return indexed_values
    other = pa.array([0.0 if zeros[0] else -0.0], indexed_values.entries.type)
    return IndexedValues(indexed_values.indices, pa.concat_arrays([indexed_values.entries, other]))


def from_entries(stored_values: pa.Array, entries: pa.Array, *, is_ordered: bool) -> IndexedValues | None:
    """Build a dictionary that consists of ``entries`` in their order, even if some are unused.

    Return None if an entry is repeated, if a value is not among the entries, or if there are no entries. Also return
    None if the entries take more than ``MAX_BYTES`` bytes and ``is_ordered`` is not set.
    """
    if not len(entries) or (not is_ordered and entries.nbytes > MAX_BYTES):
        return None
    indices = pc.index_in(stored_values, entries)
    if indices.null_count or len(pc.unique(entries)) < len(entries):
        return None
    return IndexedValues(indices.to_numpy(), entries, has_user_entries=True)


def _may_be_worthwhile(distinct_count: int, stored_values: pa.Array) -> bool:
    """Return whether a dictionary may be worthwhile if ``SAMPLE`` values contain ``distinct_count`` distinct values."""
    if distinct_count <= SAMPLE // 2:
        return True
    if distinct_count > SAMPLE * _MOST_DISTINCT:
        return False
    entries = _estimate_distinct_count(distinct_count)
    value_size = stored_values.nbytes / len(stored_values)
    dictionary_size = entries * value_size + len(stored_values) * math.log2(entries) / 8
    return bool(entries * value_size <= MAX_BYTES and dictionary_size <= _WORTHWHILE * stored_values.nbytes)


def _estimate_distinct_count(distinct_count: int) -> float:
    """Estimate a column's distinct count from the count in ``SAMPLE`` random values, assuming equal frequencies."""
    low, high = float(distinct_count), float(SAMPLE * SAMPLE)
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if -middle * math.expm1(-SAMPLE / middle) > distinct_count else (middle, high)
    return high


def _index(stored_values: pa.Array) -> IndexedValues:
    kind, count = stored_values.type, len(stored_values)
    buffers = stored_values.buffers()
    width = 0 if pa.types.is_binary(kind) else kind.byte_width
    indices = allocate(count * 4).view(np.int32)
    done, starts, values = distinct.index_array(
        buffers[1], None if width else buffers[2], stored_values.offset, width, MAX_BYTES, indices
    )
    return IndexedValues(indices[:done], DictionaryEntries(kind, width, starts, values))
