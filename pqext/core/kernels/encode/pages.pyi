from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.encode.page_boundaries import PageBoundaries

class PageValues:
    """The dense values of a chunk and how pages of them are encoded: ``encoding`` is the number of it.

    ``kind``: "fixed" values of ``width`` bytes, "bits" or "bytes" in PLAIN, or "other" by ``encode(start, stop)``.
    ``first`` and ``second`` are the Arrow buffers of values, or of offsets and values; value 0 is at position
    ``start``. Raises ``ValueError`` when a buffer holds less than ``count`` values.
    """

    def __init__(
        self, kind: str, encoding: int, count: int, start: int, width: int, first: Any, second: Any,
        encode: Callable[[int, int], Any] | None,
    ) -> None: ...
    def index(self, indices: NDArray[np.int32], entries: int) -> None:
        """Encode pages as indices into a dictionary of ``entries`` so far as there are any."""

    def page(self, first: int, last: int) -> tuple[int, Any]:
        """The encoding's number and the encoded values from ``first`` up to ``last``."""

class Levels:
    """Levels of a chunk as arrays, as one level that all entries have, or None if the column has no levels."""

    def __init__(
        self, repetition: NDArray[np.int16] | int | None, max_repetition: int,
        definition: NDArray[np.int16] | int | None, max_definition: int, entries: int,
    ) -> None: ...
    def encode(self, first: int, last: int) -> tuple[bytes | None, bytes | None]:
        """Repetition and definition levels of a range of entries, without length prefixes."""

class EncodedPages:
    """The stored ``pieces`` of a chunk's pages, headers included, and their statistics.

    ``size`` counts stored bytes, ``uncompressed`` those before compression, headers included in both;
    ``dictionary_size`` counts the bytes of the dictionary page, ``by_index`` the data pages that refer to it.
    """

    pieces: list[Any]
    size: int
    uncompressed: int
    dictionary_size: int
    by_index: int

def encode_pages(
    cuts: PageBoundaries, levels: Levels, values: PageValues, dictionary: tuple[Any, int] | None, version: int,
    compress: Callable[[Any], Any] | None, checksum: Callable[[Any], int] | None,
) -> EncodedPages:
    """Encode all pages of a chunk, and record their locations in ``cuts``.

    ``dictionary``: PLAIN bytes and number of the entries. ``compress`` and ``checksum`` take and give buffers;
    ``None`` leaves the step out. Raises ``OverflowError`` for a page of more than 2 GiB.
    """
