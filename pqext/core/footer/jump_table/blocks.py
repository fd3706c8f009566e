"""Bytes of a footer and of its jump table, fetched in blocks and held against the table's checksums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from isal.isal_zlib import crc32

from pqext.core.base.errors import CorruptFileError
from pqext.core.footer.jump_table.jump_table import Root
from pqext.core.io.source import Source


class TableBlocks:
    """The blocks of a footer at ``offset`` and of the sections at ``sections`` in it, whose checksums are ``crcs``.

    Blocks that were fetched are kept; ``spent`` counts their bytes.
    """

    def __init__(self, source: Source, offset: int, sections: int, root: Root, crcs: Sequence[int]) -> None:
        self.spent = 0
        self._source, self._root, self._crcs = source, root, crcs
        self._starts = offset, offset + sections
        self._blocks: dict[int, Any] = {}

    def hold(self, spans: Iterable[tuple[int, int]], *, of_sections: bool = False) -> dict[int, Any]:
        """Make ready the bytes of several spans of the footer, or of the table's sections; gives the blocks held.

        Raises ``CorruptFileError`` where they leave it or do not match their checksums.
        """
        size, first_block = self._root.block_bytes, self._root.thrift_blocks if of_sections else 0
        end = self._root.section_bytes if of_sections else self._root.thrift_bytes
        blocks = self._blocks  # which another thread may let go
        missing: set[int] = set()
        for start, stop in spans:
            if not 0 <= start <= stop <= end:
                raise CorruptFileError("the jump table leads out of the footer")
            if start < stop:
                missing.update(range(start // size, (stop - 1) // size + 1))
        wanted = sorted([block for block in missing if first_block + block not in blocks])
        if not wanted:
            return blocks
        base = self._starts[of_sections]
        ranges = [(base + block * size, min(size, end - block * size)) for block in wanted]
        for block, data in zip(wanted, self._source.read_many(ranges, keep=True), strict=True):
            piece = data.data
            if crc32(piece) != self._crcs[first_block + block]:
                raise CorruptFileError("the footer does not match the checksums of its jump table")
            blocks[first_block + block] = piece
            self.spent += len(piece)
        return blocks

    def span(self, start: int, stop: int, *, of_sections: bool = False) -> bytes:
        """Bytes of the footer, or of the table's sections, checked."""
        size, first_block = self._root.block_bytes, self._root.thrift_blocks if of_sections else 0
        first, last = start // size, (stop - 1) // size
        blocks = self._blocks
        if not 0 <= start < stop or first_block + first not in blocks or first != last:
            blocks = self.hold([(start, stop)], of_sections=of_sections)
            if start == stop:
                return b""
        if first == last:
            return bytes(blocks[first_block + first][start - first * size : stop - first * size])
        joined = b"".join([blocks[first_block + block] for block in range(first, last + 1)])
        return joined[start - first * size : stop - first * size]

    def numbers(self, at: int, count: int) -> list[int]:
        """Numbers of 32 bits from a place in the sections on."""
        found: list[int] = np.frombuffer(self.span(at, at + 4 * count, of_sections=True), "<u4").tolist()
        return found

    def let_go(self) -> None:
        """Keep nothing."""
        self._blocks = {}
