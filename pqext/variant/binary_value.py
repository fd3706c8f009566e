"""Variant value as its two byte strings, and iteration over its content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pqext.variant import encoding, faults
from pqext.variant.encoding import BasicType, PrimitiveType
from pqext.variant.kernels.binary import Fault
from pqext.variant.metadata import Metadata, decode_metadata

MAX_DEPTH = 1000
"""Maximum nesting of objects and arrays in Python values and comparisons."""

_T = PrimitiveType
_START_ARRAY, _END, _START_OBJECT = "[", "]", "{"


class BinaryVariant:
    """Variant value and the metadata that its field ids refer to, as bytes.

    Base class of :class:`pqext.variant.Variant`.
    """

    __slots__ = ("_dictionary", "metadata", "value")

    def __init__(self, value: bytes, metadata: bytes = b"") -> None:
        for part in (value, metadata):
            try:
                memoryview(part)
            except TypeError:
                made = "from_json takes JSON text" if isinstance(part, str) else "from_python takes objects"
                raise TypeError(
                    f"a Variant needs the bytes of a value and of its metadata, not a {type(part).__name__}: "
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


def walk(variant: BinaryVariant, by_name: bool = False) -> Iterator[Event]:
    """Yield the value as a flat sequence of events, without recursion.

    ``("{", n)`` and ``("[", n)`` start a container of n children, and ``("]", None)`` ends it. The value of a field
    follows ``("", name)``. A primitive is its type and its data. With ``by_name``, fields are in the order of their
    names even if the bytes are not.
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
        if by_name:
            # Compare ranks, because a name can be as long as the metadata and occur in every object.
            ranks = variant.dictionary.ranks
            fields = [field for _, field in sorted(zip(map(ranks.__getitem__, container.ids), fields, strict=True))]
        stack.append(iter(fields))
