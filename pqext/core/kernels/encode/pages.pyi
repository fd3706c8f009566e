from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.encode.page_boundaries import PageBoundaries

class PageValues:
    """Dense values of a chunk, and the number of the ``encoding`` of their pages.

    ``kind`` is "fixed" for PLAIN values of ``width`` bytes, "bits" for PLAIN booleans, "bytes" for PLAIN byte arrays,
    or "other" for values that ``encode(start, stop)`` encodes. ``first`` is the Arrow buffer of the values, or of their
    offsets; ``second`` is then the buffer of the values. Value 0 is at position ``start``. Raises ``ValueError`` if a
    buffer contains fewer than ``count`` values.
    """

    def __init__(
        self, kind: str, encoding: int, count: int, start: int, width: int, first: Any, second: Any,
        encode: Callable[[int, int], Any] | None,
    ) -> None: ...
    def index(self, indices: NDArray[np.int32], entries: int) -> None:
        """Encode the first values as ``indices`` into a dictionary with ``entries`` entries."""

    def page(self, first: int, last: int) -> tuple[int, Any]:
        """Return the number of the encoding, and the encoded values from ``first`` up to ``last``."""

class Levels:
    """Levels of a chunk: arrays, single levels that apply to all entries, or None if the column has no levels."""

    def __init__(
        self, repetition: NDArray[np.int16] | int | None, max_repetition: int,
        definition: NDArray[np.int16] | int | None, max_definition: int, entries: int,
    ) -> None: ...
    def encode(self, first: int, last: int) -> tuple[bytes | None, bytes | None]:
        """Return the encoded repetition and definition levels of a range of entries, without length prefixes."""

class EncodedPages:
    """Stored pages of a chunk with their headers, as the consecutive buffers ``pieces``.

    ``size`` is the stored size in bytes, and ``uncompressed`` the uncompressed size; both include headers.
    ``dictionary_size`` is the size of the dictionary page, and ``by_index`` the number of data pages that refer to it.
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

    ``dictionary`` contains the PLAIN bytes and the number of the entries. If ``compress`` or ``checksum`` is ``None``,
    pages are not compressed or have no checksum. Raises ``OverflowError`` for a page of more than 2 GiB.
    """
