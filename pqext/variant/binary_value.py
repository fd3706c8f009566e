"""Variant value as two byte strings, value and metadata, with access to field names and traversal of nested values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from pqext.variant import encoding, faults
from pqext.variant.encoding import BasicType, PrimitiveType
from pqext.variant.kernels.binary import Fault

EMPTY_METADATA = b"\x11\x00\x00"
"""Metadata of a value without objects: version 1, sorted, no strings."""
MAX_DEPTH = 1000
"""Maximum nesting of objects and arrays in Python values and comparisons."""

_T = PrimitiveType
_START_ARRAY, _END, _START_OBJECT = "[", "]", "{"


class Metadata:
    """Decoded metadata: the field names, ``names``, in the order of field ids, and the flag ``is_sorted``.

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
        """Position of each field id's name in the byte order of all names."""
        if self._ranks is None:
            in_order = sorted(range(len(self.names)), key=lambda i: self.names[i].encode("utf-8"))
            self._ranks = [0] * len(in_order)
            for rank, field_id in enumerate(in_order):
                self._ranks[field_id] = rank
        return self._ranks

    def name(self, field_id: int) -> str:
        """Return the name with the id ``field_id``. Raises ``VariantError`` for an unknown id."""
        if field_id >= len(self.names):
            faults.fail(Fault.FAULT_FIELD_ID)
        return self.names[field_id]


def decode_metadata(data: bytes) -> Metadata:
    """Decode metadata. The result is cached, because many values share the same metadata."""
    return _decoded(data) if len(data) <= _SHORT else _decoded_long(data)


_SHORT = 1 << 14
"""Maximum length of metadata in the large cache; longer metadata shares a cache with two entries."""
_decoded = lru_cache(maxsize=256)(Metadata)
_decoded_long = lru_cache(maxsize=2)(Metadata)


def encode_metadata(names: Iterable[str]) -> bytes:
    """Encode a sorted dictionary of the distinct ``names``, with the narrowest possible offsets."""
    strings = sorted({name.encode("utf-8") for name in names})
    total = sum(map(len, strings))
    size = max(1, (max(total, len(strings)).bit_length() + 7) // 8)
    if size > 4:
        raise ValueError("the distinct field names exceed the limit of 4 GiB")
    offsets = [len(strings), 0]
    for string in strings:
        offsets.append(offsets[-1] + len(string))
    header = 1 | 0x10 | (size - 1) << 6
    return bytes([header]) + b"".join(n.to_bytes(size, "little") for n in offsets) + b"".join(strings)


class BinaryVariant:
    """Variant value as bytes, with the metadata that contains its field names.

    Base class of :class:`pqext.variant.Variant`.
    """

    __slots__ = ("_dictionary", "metadata", "value")

    def __init__(self, value: bytes, metadata: bytes = b"") -> None:
        for part in (value, metadata):
            try:
                memoryview(part)
            except TypeError:
                made = "from_json parses JSON text" if isinstance(part, str) else "from_python converts objects"
                raise TypeError(
                    f"Variant() requires the bytes of a value and of its metadata, not {type(part).__name__}; "
                    f"Variant.{made}"
                ) from None
        self.value = bytes(value)
        self.metadata = bytes(metadata)
        self._dictionary: Metadata | None = None
        if not self.metadata:
            faults.fail(Fault.FAULT_METADATA_TRUNCATED, offset=0)
        if self.metadata[0] & 0x0F != 1:
            faults.fail(Fault.FAULT_METADATA_VERSION, offset=0)
        if not self.value:
            faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=0)

    @property
    def dictionary(self) -> Metadata:
        """Decoded metadata."""
        if self._dictionary is None:
            self._dictionary = decode_metadata(self.metadata)
        return self._dictionary


Event = tuple[str | PrimitiveType, Any]


def walk(variant: BinaryVariant, sort_fields: bool = False) -> Iterator[Event]:
    """Yield the value as a flat sequence of events, without recursion.

    ``("{", n)`` and ``("[", n)`` start a container of n children, and ``("]", None)`` ends it. The value of a field
    follows ``("", name)``. A primitive is its type and its data. With ``sort_fields``, the fields of an object are in
    the order of their names even if the bytes are not.
    """
    data = variant.value
    size = encoding.value_size(data, 0, len(data))
    if size != len(data):
        faults.fail(Fault.FAULT_VALUE_TRAILING, offset=size)
    stack: list[Iterator[tuple[str | None, int, int]]] = [iter([(None, 0, size)])]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            if stack:
                yield _END, None
            continue
        name, start, end = entry
        if name is not None:
            yield "", name
        basic = encoding.basic_type(data, start, end)
        if basic in (BasicType.PRIMITIVE, BasicType.SHORT_STRING):
            if basic == BasicType.PRIMITIVE and data[start] >> 2 > _T.UUID:
                yield f"unknown primitive {data[start] >> 2}", data[start:end]
            else:
                yield encoding.decode_primitive(data, start, end)
            continue
        if len(stack) > MAX_DEPTH:
            faults.fail(Fault.FAULT_DEPTH, offset=start)
        container = encoding.open_container(data, start, end)
        places = encoding.children(data, container)
        if container.ids is None:
            yield _START_ARRAY, len(container)
            stack.append((None, *place) for place in places)
            continue
        yield _START_OBJECT, len(container)
        names = [variant.dictionary.name(field_id) for field_id in container.ids]
        if len(set(names)) != len(names):
            faults.fail(Fault.FAULT_FIELD_DUPLICATE, offset=start)
        fields: list[tuple[str | None, int, int]] = [(n, *place) for n, place in zip(names, places, strict=True)]
        if sort_fields:
            # Compare ranks, because a name can be as long as the metadata and occur in every object.
            ranks = variant.dictionary.ranks
            fields = [field for _, field in sorted(zip(map(ranks.__getitem__, container.ids), fields, strict=True))]
        stack.append(iter(fields))
