"""Parse and write serialised Java objects, limited to the features that Bloom filter entries use.

Class descriptions may have any names, fields and serial version UIDs; no class is looked up. The grammar is defined in
the "Java Object Serialization Specification", section 6.4.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from pqext.core.base.errors import CorruptFileError, UnsupportedError

_HEADER = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _BLOCK, _END, _LONG_BLOCK = 0x70, 0x71, 0x72, 0x73, 0x74, 0x77, 0x78, 0x7A
_FIRST_HANDLE = 0x7E0000
_WRITES_ITSELF, _SERIALISABLE = 1, 2
_PRIMITIVES = {ord(code): size for code, size in zip("BCDFIJSZ", (1, 2, 8, 4, 4, 8, 2, 1), strict=True)}
_MOST_CLASSES = 16
"""Maximum nesting of superclasses, and of objects."""
_BLOCK_BYTES = 1024
"""Bytes of every block but the last, as Java writes them."""


@dataclass(frozen=True)
class ClassDescription:
    """Serialised description of a class: its name, its fields as pairs of name and type, and its superclass ``above``.
    """

    name: str
    serial: int
    flags: int
    fields: tuple[tuple[str, str], ...]
    above: ClassDescription | None = None


@dataclass
class CustomData:
    """Data in a cell, from offset ``start`` to ``stop``, that the method ``writeObject`` of class ``name`` wrote.

    ``blocks`` contains the offset in the cell and the size of each block.
    """

    name: str
    start: int
    blocks: list[tuple[int, int]] = field(default_factory=list)
    stop: int = 0

    def join(self, cell: bytes | memoryview) -> bytes:
        """Return the joined contents of all blocks in ``cell``."""
        return b"".join(cell[at : at + size] for at, size in self.blocks)


def find_custom_data(cell: bytes | memoryview) -> CustomData:
    """Find the first object in ``cell`` that has custom data, searching fields depth-first. Return the custom data.

    Raises ``CorruptFileError`` for a truncated or invalid stream, and ``UnsupportedError`` for objects of other
    formats, with the offset in the cell. Work is bounded by the length of the cell.
    """
    return _Stream(cell).find()


class _Stream:
    """Parser of a cell. ``known`` contains the classes and strings that back references can point to."""

    def __init__(self, cell: bytes | memoryview) -> None:
        self.cell = memoryview(cell)
        self.at = 0
        self.known: list[ClassDescription | str | None] = []

    def find(self) -> CustomData:
        if self._read(4, "the header") != _HEADER:
            self._raise_corrupt("not a serialised Java object", 0)
        own_bytes = self._object(0)
        if own_bytes is None:
            raise UnsupportedError("the serialised Java object has no custom data", feature="Java serialisation")
        return own_bytes
    def _raise_corrupt(self, message: str, position: int | None = None) -> NoReturn:
        raise CorruptFileError(message, offset=self.at if position is None else position)

    def _raise_unsupported(self, message: str) -> NoReturn:
        error = UnsupportedError(message, feature="Java serialisation")
        error.locate(offset=self.at)
        raise error

    def _read(self, size: int, label: str) -> memoryview:
        if size > len(self.cell) - self.at:
            remaining = len(self.cell) - self.at
            self._raise_corrupt(f"the cell is cut off in {label}: {size} bytes are needed, {remaining} remain")
        self.at += size
        return self.cell[self.at - size : self.at]

    def _number(self, size: int, label: str) -> int:
        return int.from_bytes(self._read(size, label), "big")

    def _text(self, label: str) -> str:
        size = self._number(2, label)
        return bytes(self._read(size, label)).decode("utf-8", "replace")

    def _reference(self) -> ClassDescription | str | None:
        index = self._number(4, "a reference") - _FIRST_HANDLE
        if not 0 <= index < len(self.known):
            self._raise_corrupt("a reference has no preceding target")
        return self.known[index]

    def _object(self, depth: int) -> CustomData | None:
        """Parse an object, a string or null.

        Returns the first custom data of the object or its fields; None if there is no custom data.
        """
        if depth > _MOST_CLASSES:
            self._raise_unsupported(f"objects nest deeper than {_MOST_CLASSES}")
        mark = self._number(1, "an object")
        if mark == _STRING:
            self.known.append(self._text("a text"))
        elif mark == _REFERENCE:
            self._reference()
        elif mark == _OBJECT:
            description = self._class(0)
            if description is None:
                self._raise_corrupt("an object has no class")
            self.known.append(None)
            return self._values(description, depth)
        elif mark != _NULL:
            self._raise_unsupported(f"unexpected type code {mark:#04x} instead of an object")
        return None

    def _class(self, depth: int) -> ClassDescription | None:
        """Parse the description of a class and its superclasses. Returns None for null."""
        if depth > _MOST_CLASSES:
            self._raise_unsupported(f"a class has more than {_MOST_CLASSES} superclasses")
        mark = self._number(1, "the description of a class")
        if mark == _NULL:
            return None
        if mark == _REFERENCE:
            target = self._reference()
            if not isinstance(target, ClassDescription):
                self._raise_corrupt("a reference is not a class")
            return target
        if mark != _CLASS:
            self._raise_unsupported(f"unexpected type code {mark:#04x} instead of a class description")
        name, serial = self._text("the name of a class"), self._number(8, "a serial number")
        index = len(self.known)
        self.known.append(None)
        flags, count = self._number(1, "flags"), self._number(2, "the number of fields")
        if not flags & _SERIALISABLE:
            self._raise_unsupported(f"objects of the class {name!r:.100} use custom serialisation")
        fields = tuple(self._field() for _ in range(count))
        if self._number(1, "the end of a class") != _END:
            self._raise_unsupported("the description of a class contains more than fields")
        description = ClassDescription(name, serial, flags, fields, self._class(depth + 1))
        self.known[index] = description
        return description

    def _field(self) -> tuple[str, str]:
        code = self._number(1, "a field")
        name = self._text("the name of a field")
        if code in _PRIMITIVES:
            return name, chr(code)
        if code not in b"[L":
            self._raise_corrupt(f"a field has the type {code:#04x}")
        mark = self._number(1, "the type of a field")
        type = self._reference() if mark == _REFERENCE else None
        if mark == _STRING:
            type = self._text("the type of a field")
            self.known.append(type)
        if not isinstance(type, str) or len(type) < 2 or ord(type[0]) != code:
            self._raise_corrupt("a field's type is not the name of a class or array")
        return name, type

    def _values(self, description: ClassDescription, depth: int) -> CustomData | None:
        """Parse the field values of an object, starting with the fields of its topmost superclass.

        Returns the first custom data; None if there is no custom data.
        """
        lineage = []
        ancestor: ClassDescription | None = description
        while ancestor is not None:
            lineage.append(ancestor)
            ancestor = ancestor.above
            if len(lineage) > _MOST_CLASSES:
                self._raise_unsupported(f"a class has more than {_MOST_CLASSES} superclasses")
        for ancestor in reversed(lineage):
            if ancestor.flags & _WRITES_ITSELF:
                return self._custom_data(ancestor.name)
            for _, type in ancestor.fields:
                if len(type) == 1:
                    self._read(_PRIMITIVES[ord(type)], "a value")
                    continue
                own_bytes = self._object(depth + 1)
                if own_bytes is not None:
                    return own_bytes
        return None

    def _custom_data(self, name: str) -> CustomData:
        result = CustomData(name, self.at)
        max_blocks = 16 + len(self.cell) // 256
        while (mark := self._number(1, "a block of data")) != _END:
            if mark not in (_BLOCK, _LONG_BLOCK):
                self._raise_unsupported(f"unexpected type code {mark:#04x} instead of a data block")
            size = self._number(1 if mark == _BLOCK else 4, "the size of a block")
            result.blocks.append((self.at, size))
            self._read(size, "a block of data")
            if len(result.blocks) > max_blocks:
                self._raise_unsupported(f"the data has more than {max_blocks} small blocks")
        result.stop = self.at
        return result


def write_object(lineage: Sequence[ClassDescription], inner_lineage: Sequence[ClassDescription], data: bytes) -> bytes:
    """Serialise an object with one field: an inner object whose ``writeObject`` method writes ``data``.

    ``lineage`` contains the descriptions of the outer object's class and its superclasses, and ``inner_lineage`` the
    descriptions for the inner object. Field types that are objects are written in full at their first use.
    """
    return b"".join([_HEADER, *_start_object(lineage), *_start_object(inner_lineage), *_blocks(data), bytes([_END])])


def _start_object(lineage: Sequence[ClassDescription]) -> list[bytes]:
    out = [bytes([_OBJECT])]
    for ancestor in lineage:
        header = struct.pack(">QBH", ancestor.serial, ancestor.flags, len(ancestor.fields))
        out += [bytes([_CLASS]), _encode_text(ancestor.name), header]
        for name, type in ancestor.fields:
            out += [type[:1].encode(), _encode_text(name)]
            if len(type) > 1:
                out += [bytes([_STRING]), _encode_text(type)]
        out.append(bytes([_END]))
    return [*out, bytes([_NULL])]


def _blocks(data: bytes) -> list[bytes]:
    out = []
    for at in range(0, len(data), _BLOCK_BYTES):
        block = data[at : at + _BLOCK_BYTES]
        is_short = len(block) < 256
        out += [bytes([_BLOCK, len(block)]) if is_short else struct.pack(">BI", _LONG_BLOCK, len(block)), block]
    return out


def _encode_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
