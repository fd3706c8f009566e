"""Dictionary of field names that belongs to a variant value (``specs/variant-encoding.md``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache

from pqext.variant import faults
from pqext.variant.kernels.binary import Fault

EMPTY = b"\x11\x00\x00"
"""Metadata of a value without objects: version 1, sorted, no strings."""


class Metadata:
    """Decoded dictionary: ``names`` by field id, and ``is_sorted`` as flagged by the writer.

    Raises :class:`~pqext.core.base.errors.VariantError` with the violated rule and the byte offset.
    """

    __slots__ = ("_ranks", "data", "is_sorted", "names")

    def __init__(self, data: bytes) -> None:
        if not data:
            faults.fail(Fault.FAULT_METADATA_TRUNCATED, offset=0)
        header = data[0]
        if header & 0x0F != 1:
            faults.fail(Fault.FAULT_METADATA_VERSION, offset=0)
        self.data = data
        self.is_sorted = bool(header & 0x10)
        size = (header >> 6) + 1
        count = int.from_bytes(data[1 : 1 + size], "little")
        start = 1 + size * (count + 2)
        if start > len(data):
            faults.fail(Fault.FAULT_METADATA_TRUNCATED, offset=len(data))
        offsets = [int.from_bytes(data[at : at + size], "little") for at in range(1 + size, start, size)]
        if offsets[0] != 0 or any(b < a for a, b in itertools.pairwise(offsets)):
            faults.fail(Fault.FAULT_METADATA_OFFSETS, offset=1 + size)
        if start + offsets[-1] > len(data):
            faults.fail(Fault.FAULT_METADATA_TRUNCATED, offset=len(data))
        names = []
        for a, b in itertools.pairwise(offsets):
            try:
                names.append(data[start + a : start + b].decode("utf-8"))
            except UnicodeDecodeError as fault:
                faults.fail(Fault.FAULT_METADATA_UTF8, offset=start + a + fault.start)
        self.names = tuple(names)
        self._ranks: list[int] | None = None

    @property
    def ranks(self) -> list[int]:
        """Rank of each field id's name in byte order."""
        if self._ranks is None:
            in_order = sorted(range(len(self.names)), key=lambda i: self.names[i].encode("utf-8"))
            self._ranks = [0] * len(in_order)
            for rank, field_id in enumerate(in_order):
                self._ranks[field_id] = rank
        return self._ranks

    def name(self, field_id: int) -> str:
        """Return the name with the id ``field_id``. Raises ``VariantError`` if there is no such id."""
        if field_id >= len(self.names):
            faults.fail(Fault.FAULT_FIELD_ID)
        return self.names[field_id]


def decode_metadata(data: bytes) -> Metadata:
    """Decode ``data``. Metadata that many values share is decoded once."""
    return _decoded(data) if len(data) <= _SHORT else _decoded_long(data)


_SHORT = 1 << 14
"""Maximum length of metadata in the large cache; longer metadata shares a cache with two entries."""
_decoded = lru_cache(maxsize=256)(Metadata)
_decoded_long = lru_cache(maxsize=2)(Metadata)


def encode_metadata(names: Iterable[str]) -> bytes:
    """Encode a sorted dictionary of the distinct ``names``, with offsets as narrow as possible."""
    strings = sorted({name.encode("utf-8") for name in names})
    total = sum(map(len, strings))
    size = max(1, (max(total, len(strings)).bit_length() + 7) // 8)
    if size > 4:
        raise ValueError("the field names exceed 4 GiB")
    offsets = [len(strings), 0]
    for string in strings:
        offsets.append(offsets[-1] + len(string))
    header = 1 | 0x10 | (size - 1) << 6
    return bytes([header]) + b"".join(n.to_bytes(size, "little") for n in offsets) + b"".join(strings)
