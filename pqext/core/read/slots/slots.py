"""The slots of a run of pages gathered into the buffers of one Arrow array.

Fixed-width values are decoded straight to where the array will have them and moved apart there when slots are null.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pqext.core.base import buffers
from pqext.core.base.budget import Account
from pqext.core.base.buffers import EMPTY, Bytes, allocate, filled
from pqext.core.base.errors import ExpansionError, UnsupportedError
from pqext.core.format.encodings.decoding import Counts, Dictionary
from pqext.core.format.encodings.table import decoder as find_decoder
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.kernels import levels as level_kernel
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.kernels.page_run import PageRun
from pqext.core.read.slots.indexed_slots import IndexedSlots, in_order
from pqext.core.read.slots.view_slots import ViewSlots
from pqext.core.schema.types import leaf
from pqext.core.schema.types.logical import LeafType

EXPANDED = 32 << 20
"""Bytes that a group of dictionary pages may expand to, whatever rows are requested."""


class SlotBuilder:
    """Takes the pages of a run, which hold at most ``capacity`` slots of ``leaf_type`` altogether.

    Byte arrays take about ``expected`` bytes. ``encoded``: byte arrays become a dictionary array, of the chunk's own
    dictionary where all pages refer to it; ``viewed``: they become views. ``lean``: raise ``ExpansionError`` where
    looking them up in a dictionary takes much memory.
    """

    def __init__(
        self, leaf_type: LeafType, capacity: int, account: Account, *, encoded: bool = False, viewed: bool = False,
        expected: int = 0, lean: bool = False,
    ) -> None:
        self._type = leaf_type
        self._capacity = capacity
        self._slots = 0
        self._present: Bytes | None = None
        self._width = leaf_type.width
        self._builder: ByteArrayBuilder | None = None
        self._fixed = EMPTY
        self._indexed: IndexedSlots | None = None
        self._encoded = encoded and self._width is None
        self._take = account.take
        self._is_lookup = False
        self._dictionary: pa.Array | None = None
        if self._encoded:
            self._indexed = IndexedSlots(account.take)
        self._views = ViewSlots(leaf_type, capacity, account.take) if viewed and self._width is None else None
        if self._width is None and self._views is None:
            take = self._claim if lean else account.take
            self._builder = ByteArrayBuilder(take, buffers.ARRAY_BYTES, allocate, expected, capacity)
        elif self._width is not None:
            self._fixed = allocate(capacity * self._width)

    def append(
        self, encoding: int, run: PageRun, slots: Counts, present: Bytes, dictionary: Dictionary | None
    ) -> None:
        """Add as many ``slots`` of each page as stand there, those with a value as the flags ``present`` say."""
        decoder = find_decoder(encoding)
        if decoder is None:
            raise UnsupportedError(f"encoding {encoding!r} cannot be read", feature=f"encoding {encoding}")
        added, values = sum(slots.tolist()), run.total
        start, self._slots = self._slots, self._slots + added
        if values < added and self._present is None:
            self._present = np.ones(self._capacity, np.uint8)
        if values < added and self._present is not None:
            self._present[start : self._slots] = present
        if self._views is not None:
            present = present if values < added else EMPTY
            self._views.append(encoding, decoder, run, slots, present, dictionary)
            return
        if self._builder is not None:
            present = present if values < added else EMPTY
            if self._indexed is not None and self._indexed.append(
                encoding, run, present, added, dictionary, self._type
            ):
                return
            self._look_up()
            self._is_lookup = encoding in DICTIONARY_ENCODINGS
            decoder.byte_arrays(run, self._builder, present, slots, dictionary)
            return
        width = self._width
        assert width is not None
        target = self._fixed[start * width : self._slots * width]
        decoder.fixed(run, self._type.physical, width, dictionary, target[: values * width])
        if values < added:
            level_kernel.spread(target, width, values, present)

    def _claim(self, size: int) -> None:
        """Count ``size`` bytes of values that are about to be copied."""
        if self._is_lookup and size > EXPANDED:
            raise ExpansionError(f"dictionary pages expand to {size} bytes")
        self._take(size)

    def _look_up(self) -> None:
        """Go on with values: from now on not all are indices into one dictionary."""
        if self._indexed is not None and self._builder is not None:
            self._dictionary = self._indexed.entries(self._type)
            self._indexed.look_up(self._builder)
            self._indexed = None

    def finish(self) -> pa.Array:
        """The array of all slots."""
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
            return in_order(array, self._dictionary) if self._encoded else array
        assert self._width is not None
        return leaf.from_fixed(self._type, self._slots, validity, filled(self._fixed, self._slots * self._width))
