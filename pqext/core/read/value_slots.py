"""Gather values and nulls of a run of pages into the buffers of one Arrow array.

Fixed-width values are decoded in place, and then moved apart if slots are null. Slots of dictionary arrays remain
indices into the dictionary page of their chunk. Views refer to the memory of pages and dictionaries, which is not
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base import buffers
from pqext.core.base.buffers import EMPTY, Bytes, allocate, trim
from pqext.core.base.errors import CorruptFileError, ExpansionError, UnsupportedError
from pqext.core.base.usage import Account
from pqext.core.format.encodings.decoding import Counts, Decoder, Dictionary
from pqext.core.format.encodings.table import decoder as find_decoder
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, Type
from pqext.core.kernels.decode import views
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.kernels.encodings import rle
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.types import leaf
from pqext.core.schema.types.logical import LeafType

WIDTH = 16
"""Size of a view in bytes."""
EXPANDED = 32 << 20
"""Maximum number of bytes to which a group of dictionary-encoded pages may expand, independently of the requested
rows."""


def is_viewable(node: SchemaNode) -> bool:
    """Return whether the leaf contains strings or byte arrays that need no conversion."""
    if node.physical_type != Type.BYTE_ARRAY:
        return False
    shown = node.leaf_type.arrow_type()
    return bool(pa.types.is_string(shown) or pa.types.is_binary(shown))


def viewed_bytes(array: pa.Array) -> int:
    """Return the total size of the values in an array of views."""
    lengths = np.frombuffer(array.buffers()[1], np.int32)[::4][array.offset : array.offset + len(array)]
    return int(lengths.sum(dtype=np.int64))


class ViewSlots:
    """Builder of at most ``capacity`` string or byte array views.

    ``reserve`` is called with the size of retained buffers.
    """

    def __init__(self, leaf_type: LeafType, capacity: int, reserve: Callable[[int], None]) -> None:
        shown = leaf_type.arrow_type()
        self._is_text = bool(pa.types.is_string(shown))
        self._arrow = pa.string_view() if self._is_text else pa.binary_view()
        self._take = reserve
        self._views = allocate(capacity * WIDTH)
        self._at = 0
        self._buffers: list[Any] = []
        self._dictionary: tuple[Dictionary, Bytes] | None = None

    def append(
        self, encoding: int, decoder: Decoder, run: PageRun, slot_counts: Counts, present: Bytes,
        dictionary: Dictionary | None,
    ) -> None:
        """Add ``slot_counts`` slots for each page.

        ``present`` flags the slots that have a value. If ``present`` is empty, all slots have a value.

        Raises ``CorruptFileError`` for strings that are not valid UTF-8, and the errors of the decoder.
        """
        added = sum(slot_counts.tolist())
        start, self._at = self._at, self._at + added * WIDTH
        target = self._views[start : self._at]
        if encoding == Encoding.PLAIN:
            words = target.view(np.uint64)
            result = views.view_plain(run, present, slot_counts, len(self._buffers), self._is_text, words)
            pages = run.pages if result else []
            self._take(sum(len(pages[place]) for place in result))
            self._buffers += [pages[place] for place in result]
            return
        entries = self._entries(dictionary) if encoding in DICTIONARY_ENCODINGS and dictionary is not None else None
        if entries is not None and dictionary is not None:
            values = target[: run.total * WIDTH]
            rle.look_up_run(run, entries, WIDTH, dictionary.count, values)
        else:
            builder = ByteArrayBuilder(self._take)
            decoder.decode_byte_arrays(run, builder, present[:0], np.array(run.counts, np.int64), dictionary)
            offsets, data, count = builder.finish()
            values = target[: count * WIDTH]
            if self._view(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32), values):
                self._buffers.append(data)
        if run.total < added:
            level_kernel.spread(target, WIDTH, run.total, present)

    def _entries(self, dictionary: Dictionary) -> Bytes | None:
        """Return views of the dictionary's values; None if an entry, which may be unused, is not valid UTF-8."""
        if self._dictionary is None or self._dictionary[0] is not dictionary:
            assert dictionary.offsets is not None
            self._take(dictionary.count * WIDTH)
            entries = allocate(dictionary.count * WIDTH)
            try:
                if self._view(dictionary.data, dictionary.offsets, entries):
                    self._buffers.append(dictionary.data)
            except CorruptFileError:
                return None
            self._dictionary = dictionary, entries
        return self._dictionary[1]

    def _view(self, data: Bytes, offsets: NDArray[np.int32], out: Bytes) -> bool:
        """Fill ``out`` with views into the next buffer. Return whether any view refers to the buffer."""
        return views.view_values(data, offsets, len(self._buffers), self._is_text, out.view(np.uint64))

    def finish(self, slot_count: int, validity: pa.Buffer | None) -> pa.Array:
        """Return the array of all slots."""
        held = [pa.py_buffer(self._views[: slot_count * WIDTH]), *map(pa.py_buffer, self._buffers)]
        return pa.Array.from_buffers(self._arrow, slot_count, [validity, *held])


@dataclass(slots=True)
class _Run:
    indices: NDArray[np.int32]
    present: Bytes
    slots: int


class IndexedSlots:
    """Builder of slots that are indices into one dictionary."""

    def __init__(self, reserve: Callable[[int], None]) -> None:
        self._take = reserve
        self._dictionary: Dictionary | None = None
        self._runs: list[_Run] = []

    def append(
        self, encoding: int, run: PageRun, present: Bytes, slot_count: int, dictionary: Dictionary | None,
        leaf_type: LeafType,
    ) -> bool:
        """Add slots of pages with dictionary indices; return whether the pages were accepted.

        ``present`` flags the slots that have a value; if it is empty, all slots have a value. Pages are not accepted if
        they have plain values or no dictionary, or if a dictionary entry, which may be unused, is invalid for the type.
        All pages must use the same dictionary.
        """
        if encoding not in DICTIONARY_ENCODINGS or dictionary is None or dictionary.offsets is None:
            return False
        try:
            _distinct_values(dictionary, leaf_type)
        except CorruptFileError:
            return False
        self._dictionary = dictionary
        self._take(run.total * 4)
        indices = allocate(run.total * 4).view(np.int32)
        rle.decode_run(run, -1, dictionary.count, indices)
        self._runs.append(_Run(indices, present, slot_count))
        return True

    def look_up(self, builder: ByteArrayBuilder) -> None:
        """Append the values of all slots to ``builder``."""
        result = self._dictionary
        if result is not None:
            for run in self._runs:
                builder.append_lookup(result.data, result.offsets, run.indices, run.present, run.slots)

    def entries(self, leaf_type: LeafType) -> pa.Array | None:
        """Return the dictionary as an Arrow array of distinct values; None if no page refers to it."""
        return None if self._dictionary is None else _distinct_values(self._dictionary, leaf_type)[0]

    def finish(self, leaf_type: LeafType, slot_count: int, validity: pa.Buffer | None) -> pa.Array:
        """Return the dictionary array of all slots."""
        if self._dictionary is None:
            entries, positions = pa.nulls(0, leaf_type.arrow_type()), None
        else:
            entries, positions = _distinct_values(self._dictionary, leaf_type)
        indices = pa.py_buffer(self._slot_indices(slot_count))
        result = pa.Array.from_buffers(pa.int32(), slot_count, [validity, indices])
        if positions is not None:
            result = positions.take(result)
        return pa.DictionaryArray.from_arrays(result, entries, safe=False)

    def _slot_indices(self, slot_count: int) -> NDArray[np.int32]:
        """Return the dictionary index of each slot. The index of a slot without a value is arbitrary."""
        if len(self._runs) == 1 and len(self._runs[0].indices) == slot_count:
            return self._runs[0].indices
        indices = allocate(slot_count * 4).view(np.int32)
        at = 0
        for run in self._runs:
            target = indices[at : at + run.slots]
            target[: len(run.indices)] = run.indices
            if len(run.indices) < run.slots:
                level_kernel.spread(target.view(np.uint8), 4, len(run.indices), run.present)
            at += run.slots
        return indices


def _distinct_values(dictionary: Dictionary, leaf_type: LeafType) -> tuple[pa.Array, pa.Array | None]:
    """Return the distinct Arrow values, and the position of each stored value among them.

    The positions are None if the stored values are distinct.

    Users of Arrow assume that dictionary values are distinct. The result is computed once per chunk.
    """
    if dictionary.shown is None:
        entries = leaf.from_byte_arrays(leaf_type, dictionary.count, None, dictionary.offsets, dictionary.data)
        unique = entries.dictionary_encode()
        is_distinct = len(unique.dictionary) == len(entries)
        dictionary.shown = (entries, None) if is_distinct else (unique.dictionary, unique.indices)
    return dictionary.shown


def is_shared(arrays: Sequence[pa.Array]) -> bool:
    """Return whether all arrays are dictionary arrays with the same dictionary in memory."""
    if not pa.types.is_dictionary(arrays[0].type):
        return False
    first = arrays[0].dictionary
    return all(_is_same(array.dictionary, first) for array in arrays[1:])


def concatenate_arrays(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate arrays that share a dictionary."""
    indices = pa.concat_arrays([array.indices for array in arrays])
    return pa.DictionaryArray.from_arrays(indices, arrays[0].dictionary, safe=False)


def _is_same(first: pa.Array, second: pa.Array) -> bool:
    if len(first) != len(second) or first.offset != second.offset:
        return False
    addresses = [[buffer and buffer.address for buffer in array.buffers()] for array in (first, second)]
    return addresses[0] == addresses[1]


def encode_dictionary(array: pa.Array, entries: pa.Array | None) -> pa.Array:
    """Dictionary-encode ``array``. The dictionary begins with ``entries``."""
    if entries is None or not len(entries):
        return array.dictionary_encode()
    result = pc.unique(pa.concat_arrays([entries, array.drop_null()]))
    return pa.DictionaryArray.from_arrays(pc.index_in(array, result, skip_nulls=True), result, safe=False)


class SlotBuilder:
    """Builder of an Arrow array from the pages of a run, with at most ``capacity`` slots of ``leaf_type``.

    Byte arrays take about ``expected_bytes`` bytes. With ``is_encoded`` they become a dictionary array, with the
    dictionary of the chunk if all pages refer to it; with ``with_views`` they become views. With ``lean``,
    ``ExpansionError`` is raised if a dictionary look-up takes much memory.
    """

    def __init__(
        self, leaf_type: LeafType, capacity: int, account: Account, *, is_encoded: bool = False,
        with_views: bool = False,
        expected_bytes: int = 0, lean: bool = False,
    ) -> None:
        self._type = leaf_type
        self._capacity = capacity
        self._slots = 0
        self._present: Bytes | None = None
        self._width = leaf_type.width
        self._builder: ByteArrayBuilder | None = None
        self._fixed = EMPTY
        self._indexed: IndexedSlots | None = None
        self._encoded = is_encoded and self._width is None
        self._take = account.reserve
        self._is_lookup = False
        self._dictionary: pa.Array | None = None
        if self._encoded:
            self._indexed = IndexedSlots(account.reserve)
        self._views = ViewSlots(leaf_type, capacity, account.reserve) if with_views and self._width is None else None
        if self._width is None and self._views is None:
            take = self._reserve if lean else account.reserve
            self._builder = ByteArrayBuilder(take, buffers.ARRAY_BYTES, allocate, expected_bytes, capacity)
        elif self._width is not None:
            self._fixed = allocate(capacity * self._width)

    def append(
        self, encoding: int, run: PageRun, slot_counts: Counts, present: Bytes, dictionary: Dictionary | None
    ) -> None:
        """Add ``slot_counts`` slots for each page. ``present`` flags the slots that have a value."""
        decoder = find_decoder(encoding)
        if decoder is None:
            raise UnsupportedError(f"encoding {encoding!r} is not supported", feature=f"encoding {encoding}")
        added, values = sum(slot_counts.tolist()), run.total
        start, self._slots = self._slots, self._slots + added
        if values < added and self._present is None:
            self._present = np.ones(self._capacity, np.uint8)
        if values < added and self._present is not None:
            self._present[start : self._slots] = present
        if self._views is not None:
            present = present if values < added else EMPTY
            self._views.append(encoding, decoder, run, slot_counts, present, dictionary)
            return
        if self._builder is not None:
            present = present if values < added else EMPTY
            if self._indexed is not None and self._indexed.append(
                encoding, run, present, added, dictionary, self._type
            ):
                return
            self._look_up()
            self._is_lookup = encoding in DICTIONARY_ENCODINGS
            decoder.decode_byte_arrays(run, self._builder, present, slot_counts, dictionary)
            return
        width = self._width
        assert width is not None
        target = self._fixed[start * width : self._slots * width]
        decoder.decode_fixed_width(run, self._type.physical, width, dictionary, target[: values * width])
        if values < added:
            level_kernel.spread(target, width, values, present)

    def _reserve(self, size: int) -> None:
        """Account for ``size`` bytes of values that are about to be copied."""
        if self._is_lookup and size > EXPANDED:
            raise ExpansionError(f"dictionary pages expand to {size} bytes")
        self._take(size)

    def _look_up(self) -> None:
        """Switch from indices to values, because the pages do not share a dictionary."""
        if self._indexed is not None and self._builder is not None:
            self._dictionary = self._indexed.entries(self._type)
            self._indexed.look_up(self._builder)
            self._indexed = None

    def finish(self) -> pa.Array:
        """Return the array of all slots."""
        validity = None
        if self._present is not None:
            validity = pa.py_buffer(np.packbits(self._present[: self._slots], bitorder="little"))
        if self._views is not None:
            return self._views.finish(self._slots, validity)
        if self._indexed is not None:
            return self._indexed.finish(self._type, self._slots, validity)
        if self._builder is not None:
            offsets, data, slots = self._builder.finish()
            array = leaf.from_byte_arrays(self._type, slots, validity, offsets, data)
            return encode_dictionary(array, self._dictionary) if self._encoded else array
        assert self._width is not None
        return leaf.from_fixed_width(self._type, self._slots, validity, trim(self._fixed, self._slots * self._width))
