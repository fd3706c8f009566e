"""Interfaces of decoders and encoders, dictionaries, and iteration over a run of pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings.byte_array import ByteArrayBuilder
from pqext.core.kernels.encodings.page_run import PageRun

Counts = NDArray[np.int64]
"""Number of values or slots in each page."""


@dataclass(slots=True)
class Dictionary:
    """Values of a dictionary page.

    If the values have a fixed width, ``data`` starts with ``count`` values. For byte arrays, ``offsets`` contains the
    bounds of the values in ``data``, which may be longer.
    """

    count: int
    data: Bytes
    offsets: NDArray[np.int32] | None = None
    shown: tuple[pa.Array, pa.Array | None] | None = None
    """Arrow array of the values, once requested, and the position of each value in it if the page stores values twice.
    """


class Decoder(Protocol):
    """Decoder of one encoding. Each call decodes a run of pages.

    Both methods raise ``CorruptFileError`` if a page does not contain the expected values.
    """

    def decode_fixed_width(
        self, run: PageRun, physical_type: Type, width: int, dictionary: Dictionary | None, out: Bytes
    ) -> None:
        """Fill ``out`` with the run's values, ``width`` bytes each without gaps. Booleans take one byte each."""

    def decode_byte_arrays(
        self, run: PageRun, builder: ByteArrayBuilder, present: Bytes, slot_counts: Counts,
        dictionary: Dictionary | None,
    ) -> None:
        """Append the slots of each page, as counted in ``slot_counts``, to ``builder``.

        ``present`` flags the slots that have a value. If it is empty, all slots have a value.
        """


def split_output(run: PageRun, width: int, out: Bytes) -> Iterator[tuple[Bytes, int, Bytes]]:
    """Yield each page of ``run``, its number of values, and the slice of ``out`` to decode them into."""
    at = 0
    for page, count in zip(run.pages, run.counts, strict=True):
        yield page, count, out[at : at + count * width]
        at += count * width


def split_slots(run: PageRun, present: Bytes, slot_counts: Counts) -> Iterator[tuple[Bytes, int, Bytes, int]]:
    """Yield each page of ``run``, its number of values, its slice of ``present``, and its number of slots."""
    at = 0
    for page, count, number in zip(run.pages, run.counts, slot_counts.tolist(), strict=True):
        yield page, count, present[at : at + number], number
        at += number


class Encoder(Protocol):
    """Encoder of values in one encoding."""

    def encode(self, values: pa.Array) -> Bytes:
        """Encode a dense array of a physical Arrow type (see ``core.schema.types.leaf``) as the values of one page."""
