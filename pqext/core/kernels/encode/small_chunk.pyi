from collections.abc import Callable
from typing import Any

import pyarrow as pa

class SmallLeaf:
    """Encoder of the small column chunks of one leaf, whose top-level Arrow arrays contain its stored values.

    ``form`` is "bytes" for byte arrays that are compared as unsigned bytes, or the numpy type code of numbers. ``type``
    and ``codec`` are numbers of the format. The names in ``path`` are UTF-8. The other arguments correspond to
    ``LeafRecipe`` and ``WriteOptions``.
    """

    def __init__(
        self, form: str, type: int, path: list[bytes], codec: int, *, is_text: bool, optional: bool, dictionary: bool,
        statistics: bool, page_index: bool, version: int, bound_bytes: int, page_rows: int, page_bytes: int,
        level_bytes: int,
    ) -> None: ...
    def encode(
        self, array: pa.Array, compress: Callable[[Any], Any] | None, checksum: Callable[[Any], int] | None
    ) -> SmallChunk | None:
        """Return the encoded chunk; ``None`` if it is too large or requires the general encoder."""

class SmallChunk:
    """Chunk of one page: its stored bytes as ``pieces``, and its sizes including page headers."""

    pieces: list[Any]
    size: int
    uncompressed: int
    column_index: bytes | None
    """Serialised column index; None if the chunk has no column index."""

    def column_chunk(self, base: int) -> bytes:
        """Return the serialised ``ColumnChunk`` of a chunk at offset ``base``, without the locations of its indexes."""

    def offset_index(self, base: int) -> bytes | None:
        """Return the serialised offset index; None if the chunk has no offset index."""
