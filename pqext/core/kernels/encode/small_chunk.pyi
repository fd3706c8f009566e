from collections.abc import Callable
from typing import Any

import pyarrow as pa

class SmallLeaf:
    """Encodes the small column chunks of one leaf, whose top-level Arrow arrays have its stored values.

    ``form`` is "bytes" for byte arrays that compare as unsigned ones, or a number's type as numpy has it. ``type`` and
    ``codec`` are their numbers in the format; the names of ``path`` are UTF-8. The rest is as in ``LeafRecipe`` and
    ``WriteOptions``.
    """

    def __init__(
        self, form: str, type: int, path: list[bytes], codec: int, *, is_text: bool, optional: bool, dictionary: bool,
        statistics: bool, page_index: bool, version: int, bound_bytes: int, page_rows: int, page_bytes: int,
        level_bytes: int,
    ) -> None: ...
    def encode(
        self, array: pa.Array, compress: Callable[[Any], Any] | None, checksum: Callable[[Any], int] | None
    ) -> SmallChunk | None:
        """The chunk, or ``None`` where it is not small or needs a closer look."""

class SmallChunk:
    """A chunk of one page: its stored bytes in ``pieces``, and how many they are, page headers included."""

    pieces: list[Any]
    size: int
    uncompressed: int
    column_index: bytes | None
    """The serialised column index, if there is one."""

    def column_chunk(self, base: int) -> bytes:
        """The serialised ``ColumnChunk`` of a chunk that begins at ``base``, up to the locations of its indexes."""

    def offset_index(self, base: int) -> bytes | None:
        """The serialised offset index, if there is one."""
