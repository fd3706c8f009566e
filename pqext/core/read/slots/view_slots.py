"""Slots of a column as views: of values in the memory of pages and dictionaries, which is not copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, allocate
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings.decoding import Counts, Decoder, Dictionary
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, Type
from pqext.core.kernels import levels as level_kernel
from pqext.core.kernels import rle, views
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.kernels.page_run import PageRun
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.types.logical import LeafType

WIDTH = 16
"""Bytes of a view."""


def is_viewable(node: SchemaNode) -> bool:
    """Does the leaf hold strings or byte arrays, shown as they are?"""
    if node.physical_type != Type.BYTE_ARRAY:
        return False
    shown = node.leaf_type.arrow_type()
    return bool(pa.types.is_string(shown) or pa.types.is_binary(shown))


def viewed_bytes(array: pa.Array) -> int:
    """Bytes of the values of an array of views."""
    lengths = np.frombuffer(array.buffers()[1], np.int32)[::4][array.offset : array.offset + len(array)]
    return int(lengths.sum(dtype=np.int64))


class ViewSlots:
    """At most ``capacity`` slots of strings or byte arrays; ``take`` is told how many bytes are kept."""

    def __init__(self, kind: LeafType, capacity: int, take: Callable[[int], None]) -> None:
        shown = kind.arrow_type()
        self._is_text = bool(pa.types.is_string(shown))
        self._arrow = pa.string_view() if self._is_text else pa.binary_view()
        self._take = take
        self._views = allocate(capacity * WIDTH)
        self._at = 0
        self._buffers: list[Any] = []
        self._dictionary: tuple[Dictionary, Bytes] | None = None

    def append(
        self, encoding: int, decoder: Decoder, run: PageRun, slots: Counts, present: Bytes,
        dictionary: Dictionary | None,
    ) -> None:
        """Add as many ``slots`` of each page as stand there, those with a value as ``present`` flags (empty: all).

        Raises ``CorruptFileError`` for text that is not UTF-8 too.
        """
        added = sum(slots.tolist())
        start, self._at = self._at, self._at + added * WIDTH
        target = self._views[start : self._at]
        if encoding == Encoding.PLAIN:
            found = views.view_plain(run, present, slots, len(self._buffers), self._is_text, target.view(np.uint64))
            pages = run.pages if found else []
            self._take(sum(len(pages[place]) for place in found))
            self._buffers += [pages[place] for place in found]
            return
        entries = self._entries(dictionary) if encoding in DICTIONARY_ENCODINGS and dictionary is not None else None
        if entries is not None and dictionary is not None:
            values = target[: run.total * WIDTH]
            rle.look_up_run(run, entries, WIDTH, dictionary.count, values)
        else:
            builder = ByteArrayBuilder(self._take)
            decoder.byte_arrays(run, builder, present[:0], np.array(run.counts, np.int64), dictionary)
            offsets, data, count = builder.finish()
            values = target[: count * WIDTH]
            if self._view(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32), values):
                self._buffers.append(data)
        if run.total < added:
            level_kernel.spread(target, WIDTH, run.total, present)

    def _entries(self, dictionary: Dictionary) -> Bytes | None:
        """The views of the dictionary's values; ``None`` for text that is not UTF-8, to which rows need not refer."""
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
        """Fill ``out`` with views of values in the next buffer; is it needed?"""
        return views.view_values(data, offsets, len(self._buffers), self._is_text, out.view(np.uint64))

    def finish(self, slots: int, validity: pa.Buffer | None) -> pa.Array:
        """The array of all slots."""
        held = [pa.py_buffer(self._views[: slots * WIDTH]), *map(pa.py_buffer, self._buffers)]
        return pa.Array.from_buffers(self._arrow, slots, [validity, *held])
