"""Choose the encoding of a column chunk by name or from its values, and build its dictionary.

``"auto"`` encodes a sample of the chunk in every candidate encoding for its physical type, compresses the results with
the column's codec, and selects the smallest. The sample consists of four runs of consecutive values, since differences
and shared prefixes depend on neighbours. Sizes of encodings that decode more slowly than PLAIN are first multiplied by
a factor above one. If the column may have a dictionary, it is compared with the selected encoding in the same way.

Only encodings that all common readers support are selected automatically. ALP, which is in preview, is never selected;
BYTE_STREAM_SPLIT is selected only for FLOAT and DOUBLE, since its other types date from 2024; and FIXED_LEN_BYTE_ARRAY
is always PLAIN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import allocate, size_of, view
from pqext.core.format.compression import compress
from pqext.core.format.encodings import dictionary, plain
from pqext.core.format.encodings.table import encoder
from pqext.core.format.metadata import CompressionCodec, Encoding, Type
from pqext.core.kernels.encodings.byte_array import encode_plain
from pqext.core.kernels.hash import distinct
from pqext.core.schema.nodes import SchemaNode

MAX_BYTES = 1 << 20
"""Maximum size of a dictionary page in bytes. The first value that exceeds it ends the dictionary-encoded values."""
SAMPLE = 8192
"""Number of values that are sampled before all values are indexed."""
_MOST_DISTINCT = 0.95
"""Maximum share of distinct values in the sample. Beyond it, the number of distinct values cannot be estimated."""
_WORTHWHILE = 0.7
"""Maximum estimated size of entries and indices, as a share of the size of the values."""
NAMES = {
    "plain": Encoding.PLAIN,
    "rle": Encoding.RLE,
    "delta_binary_packed": Encoding.DELTA_BINARY_PACKED,
    "delta_length_byte_array": Encoding.DELTA_LENGTH_BYTE_ARRAY,
    "delta_byte_array": Encoding.DELTA_BYTE_ARRAY,
    "byte_stream_split": Encoding.BYTE_STREAM_SPLIT,
    "alp": Encoding.ALP,
}
"""Encodings that can be requested by name, in addition to ``"auto"``."""

SUITABLE: dict[int, frozenset[Type]] = {
    Encoding.PLAIN: frozenset(Type),
    Encoding.RLE: frozenset({Type.BOOLEAN}),
    Encoding.DELTA_BINARY_PACKED: frozenset({Type.INT32, Type.INT64}),
    Encoding.DELTA_LENGTH_BYTE_ARRAY: frozenset({Type.BYTE_ARRAY}),
    Encoding.DELTA_BYTE_ARRAY: frozenset({Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY}),
    Encoding.BYTE_STREAM_SPLIT: frozenset(
        {Type.FLOAT, Type.DOUBLE, Type.INT32, Type.INT64, Type.FIXED_LEN_BYTE_ARRAY}
    ),
    Encoding.ALP: frozenset({Type.FLOAT, Type.DOUBLE}),
}
"""Physical types that each encoding supports."""

_CANDIDATES = {
    Type.BOOLEAN: (Encoding.PLAIN, Encoding.RLE),
    Type.INT32: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Type.INT64: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Type.FLOAT: (Encoding.PLAIN, Encoding.BYTE_STREAM_SPLIT),
    Type.DOUBLE: (Encoding.PLAIN, Encoding.BYTE_STREAM_SPLIT),
    Type.BYTE_ARRAY: (Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.PLAIN, Encoding.DELTA_BYTE_ARRAY),
}
"""Candidates of ``"auto"``. If sizes are equal, the first candidate is selected. Other types use PLAIN."""

_FACTOR = {
    Encoding.RLE: 1.1,
    Encoding.DELTA_BINARY_PACKED: 1.1,
    Encoding.BYTE_STREAM_SPLIT: 1.1,
    Encoding.DELTA_BYTE_ARRAY: 1.3,
}
_DICTIONARY_FACTOR = 0.9
"""Factor for the size of a dictionary, which may be slightly larger since readers return it and test its entries."""

_RUNS = 4
_RUN_VALUES = 4096
_RUN_BYTES = 256 << 10
_LONG_VALUE = 64 << 10
"""Average length above which all encodings produce the same size."""


class IndexedValues:
    """Indices of the first values of a chunk into the dictionary ``entries``: all values, or as many as fit the
    dictionary.

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

    def distinct(self, count: int) -> int | None:
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


def index(physical: pa.Array, size: int | None = None) -> IndexedValues | None:
    """Build the dictionary of a dense array of a physical Arrow type. Return None if it is not worthwhile.

    A dictionary is not worthwhile for booleans, if too many of the first values are distinct, or if indices and entries
    do not take fewer bytes than the values. ``size`` is the size of the values in bytes, if known.
    """
    if not len(physical) or pa.types.is_boolean(physical.type):
        return None
    if len(physical) > SAMPLE and not _may_be_worthwhile(_index(physical[:SAMPLE]).count, physical):
        return None
    indexed = _index(physical)
    count, entries = len(indexed.indices), indexed.count
    stored = indexed.size + count * max(entries - 1, 1).bit_length() // 8
    taken = size_of(physical, count) if size is None or count < len(physical) else size
    return indexed if count and stored < taken else None


def with_both_zeros(indexed_values: IndexedValues) -> IndexedValues:
    """Add the missing zero to a dictionary of floats that contains only one of the two zeros."""
    if not pa.types.is_floating(indexed_values.entries.type):
        return indexed_values
    zeros = np.signbit(values := indexed_values.entries.to_numpy())[values == 0]
    if not len(zeros) or zeros.any() != zeros.all():
        return indexed_values
    other = pa.array([0.0 if zeros[0] else -0.0], indexed_values.entries.type)
    return IndexedValues(indexed_values.indices, pa.concat_arrays([indexed_values.entries, other]))


def from_entries(physical: pa.Array, entries: pa.Array, *, is_ordered: bool) -> IndexedValues | None:
    """Build a dictionary that consists of ``entries`` in their order, even if some are unused.

    Return None if an entry is repeated, if a value is not among the entries, or if there are no entries. Also return
    None if the entries take more than ``MAX_BYTES`` bytes and ``is_ordered`` is not set.
    """
    if not len(entries) or (not is_ordered and entries.nbytes > MAX_BYTES):
        return None
    indices = pc.index_in(physical, entries)
    if indices.null_count or len(pc.unique(entries)) < len(entries):
        return None
    return IndexedValues(indices.to_numpy(), entries, has_user_entries=True)


def _may_be_worthwhile(distinct_count: int, physical: pa.Array) -> bool:
    """Return whether a dictionary may be worthwhile if ``SAMPLE`` values contain ``distinct_count`` distinct values."""
    if distinct_count <= SAMPLE // 2:
        return True
    if distinct_count > SAMPLE * _MOST_DISTINCT:
        return False
    entries = _estimate_distinct_count(distinct_count)
    each = physical.nbytes / len(physical)
    stored = entries * each + len(physical) * math.log2(entries) / 8
    return bool(entries * each <= MAX_BYTES and stored <= _WORTHWHILE * physical.nbytes)


def _estimate_distinct_count(distinct_count: int) -> float:
    """Estimate the number of distinct values, if equally frequent, from the count in a random ``SAMPLE``."""
    low, high = float(distinct_count), float(SAMPLE * SAMPLE)
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if -middle * math.expm1(-SAMPLE / middle) > distinct_count else (middle, high)
    return high


def _index(physical: pa.Array) -> IndexedValues:
    kind, count = physical.type, len(physical)
    buffers = physical.buffers()
    width = 0 if pa.types.is_binary(kind) else kind.byte_width
    indices = allocate(count * 4).view(np.int32)
    done, starts, values = distinct.index_array(
        buffers[1], None if width else buffers[2], physical.offset, width, MAX_BYTES, indices
    )
    return IndexedValues(indices[:done], DictionaryEntries(kind, width, starts, values))


@dataclass(slots=True)
class Choice:
    """Encoding of a chunk. If ``keep_dictionary`` is true, the first values use the dictionary, if there is one."""

    encoding: Encoding
    keep_dictionary: bool = True


def check(name: str, node: SchemaNode) -> None:
    """Raise ``ValueError`` if the named encoding does not support the type of the leaf ``node``."""
    if name == "auto":
        return
    physical_type = node.physical_type
    if physical_type is None or physical_type in SUITABLE[NAMES[name]]:
        return
    fitting = [other for other, encoding in NAMES.items() if physical_type in SUITABLE[encoding]]
    raise ValueError(
        f"encoding {name!r} does not support column {node.dotted_path!r}, which is stored as {physical_type.name}; "
        f"choose one of {', '.join(fitting)} or 'auto'; to encode columns differently, pass a mapping"
    )


def choose(
    name: str, values: pa.Array, physical_type: Type, codec: CompressionCodec, indexed_values: IndexedValues | None,
    *, split: bool = True,
) -> Choice:
    """Choose the encoding of a chunk's dense ``values``, and whether to use the dictionary ``indexed_values``.

    ``split`` allows the automatic choice of BYTE_STREAM_SPLIT.
    """
    if name != "auto":
        return Choice(NAMES[name])
    candidates = _CANDIDATES.get(physical_type, (Encoding.PLAIN,))
    if not split:
        candidates = tuple(encoding for encoding in candidates if encoding != Encoding.BYTE_STREAM_SPLIT)
    if len(candidates) == 1 or not len(values) or values.nbytes // len(values) > _LONG_VALUE:
        return Choice(Encoding.PLAIN)
    runs = _sample(values)
    sizes = {encoding: [_size(encoding, values[run], codec) for run in runs] for encoding in candidates}
    best = min(candidates, key=lambda encoding: sum(sizes[encoding]))
    if indexed_values is None:
        return Choice(best)
    # Only runs that the dictionary covers can be compared. Each sampled value is charged its share of the entries.
    held = [at for at, run in enumerate(runs) if run.stop <= len(indexed_values.indices)]
    share = sum(runs[at].stop - runs[at].start for at in held) / len(indexed_values.indices)
    stored = _size(Encoding.PLAIN, indexed_values.entries, codec) * share
    for at in held:
        encoded = dictionary.encode(indexed_values.indices[runs[at]], len(indexed_values.entries))
        stored += len(compress(codec, encoded))
    return Choice(best, bool(held) and stored * _DICTIONARY_FACTOR <= sum(sizes[best][at] for at in held))


def _size(encoding: Encoding, values: pa.Array, codec: CompressionCodec) -> float:
    return len(compress(codec, encoder(encoding).encode(values))) * _FACTOR.get(encoding, 1.0)


def _sample(values: pa.Array) -> list[slice]:
    count = len(values)
    length = max(2, min(_RUN_VALUES, _RUN_BYTES * count // max(values.nbytes, 1)))
    if count <= _RUNS * length:
        return [slice(0, count)]
    step = (count - length) // (_RUNS - 1)
    return [slice(start, start + length) for start in range(0, _RUNS * step, step)]
