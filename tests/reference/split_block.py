"""The split-block Bloom filter as the format's text puts it, a word and a bit at a time."""

from __future__ import annotations

SALT = [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31]


class Filter:
    """``blocks`` blocks of eight words of 32 bits."""

    def __init__(self, blocks: int) -> None:
        self.blocks = [[0] * 8 for _ in range(blocks)]

    def _place(self, hashed: int) -> tuple[list[int], list[int]]:
        block = self.blocks[((hashed >> 32) * len(self.blocks)) >> 32]
        return block, [1 << (((hashed & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27) for salt in SALT]

    def insert(self, hashed: int) -> None:
        """filter_insert."""
        block, mask = self._place(hashed)
        for word, bit in enumerate(mask):
            block[word] |= bit

    def check(self, hashed: int) -> bool:
        """filter_check."""
        block, mask = self._place(hashed)
        return all(block[word] & bit for word, bit in enumerate(mask))

    def bitset(self) -> bytes:
        """The words as they are stored."""
        return b"".join(word.to_bytes(4, "little") for block in self.blocks for word in block)
