"""Java's serialised objects, as far as cells with Bloom filters need them: where an object's own bytes lie.

Descriptions of classes are read as they come, whatever their names, fields and serial numbers; no class is looked up.
Grammar: "Java Object Serialization Specification", section 6.4.
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
"""Classes above one another, and objects within one another, that are followed."""
_BLOCK_BYTES = 1024
"""Bytes of a block but the last, when Java writes."""


@dataclass(frozen=True)
class Description:
    """A class as its object's writer had it: its fields' types by name, and the description of the class above."""

    name: str
    serial: int
    flags: int
    fields: tuple[tuple[str, str], ...]
    above: Description | None = None


@dataclass
class OwnBytes:
    """What an object of the class ``name`` writes of its own accord: blocks from ``start`` on, as offsets and sizes."""

    name: str
    start: int
    blocks: list[tuple[int, int]] = field(default_factory=list)
    stop: int = 0

    def join(self, cell: bytes | memoryview) -> bytes:
        """The contents of all blocks."""
        return b"".join(cell[at : at + size] for at, size in self.blocks)


def find_own_bytes(cell: bytes | memoryview) -> OwnBytes:
    """The first object in ``cell`` that writes bytes of its own accord: the one serialised, or a field's, and so on.

    Raises ``CorruptFileError`` for a stream that is cut off or none at all, and ``UnsupportedError`` for objects of
    other forms, with the offset in the cell. Work is bounded by the length of the cell.
    """
    return _Stream(cell).find()


class _Stream:
    """A place in a cell that moves on; ``known`` are the classes and texts that references name."""

    def __init__(self, cell: bytes | memoryview) -> None:
        self.cell = memoryview(cell)
        self.at = 0
        self.known: list[Description | str | None] = []

    def find(self) -> OwnBytes:
        if self._take(4, "the header") != _HEADER:
            self._wrong("no serialised object of Java", 0)
        found = self._object(0)
        if found is None:
            raise UnsupportedError("no object in the cell writes bytes of its own", feature="Java serialisation")
        return found

    def _wrong(self, message: str, at: int | None = None) -> NoReturn:
        raise CorruptFileError(message, offset=self.at if at is None else at)

    def _unsupported(self, message: str) -> NoReturn:
        error = UnsupportedError(message, feature="Java serialisation")
        error.locate(offset=self.at)
        raise error

    def _take(self, size: int, what: str) -> memoryview:
        if size > len(self.cell) - self.at:
            self._wrong(f"the cell is cut off in {what}: {size} bytes are needed, {len(self.cell) - self.at} are left")
        self.at += size
        return self.cell[self.at - size : self.at]

    def _number(self, size: int, what: str) -> int:
        return int.from_bytes(self._take(size, what), "big")

    def _text(self, what: str) -> str:
        size = self._number(2, what)
        return bytes(self._take(size, what)).decode("utf-8", "replace")

    def _reference(self) -> Description | str | None:
        place = self._number(4, "a reference") - _FIRST_HANDLE
        if not 0 <= place < len(self.known):
            self._wrong("a reference names nothing that came before it")
        return self.known[place]

    def _object(self, depth: int) -> OwnBytes | None:
        """An object, a text or a null; the first bytes of its own that are found in it, or None."""
        if depth > _MOST_CLASSES:
            self._unsupported(f"objects nest deeper than {_MOST_CLASSES}")
        mark = self._number(1, "an object")
        if mark == _STRING:
            self.known.append(self._text("a text"))
        elif mark == _REFERENCE:
            self._reference()
        elif mark == _OBJECT:
            described = self._class(0)
            if described is None:
                self._wrong("an object has no class")
            self.known.append(None)
            return self._values(described, depth)
        elif mark != _NULL:
            self._unsupported(f"the mark {mark:#04x} stands where an object belongs")
        return None

    def _class(self, depth: int) -> Description | None:
        """The description of a class and of those above it."""
        if depth > _MOST_CLASSES:
            self._unsupported(f"a class has more than {_MOST_CLASSES} above it")
        mark = self._number(1, "the description of a class")
        if mark == _NULL:
            return None
        if mark == _REFERENCE:
            found = self._reference()
            if not isinstance(found, Description):
                self._wrong("a reference names no class where one belongs")
            return found
        if mark != _CLASS:
            self._unsupported(f"the mark {mark:#04x} stands where the description of a class belongs")
        name, serial = self._text("the name of a class"), self._number(8, "a serial number")
        place = len(self.known)
        self.known.append(None)
        flags, count = self._number(1, "flags"), self._number(2, "the number of fields")
        if not flags & _SERIALISABLE:
            self._unsupported(f"objects of the class {name!r:.100} write themselves in a form of their own")
        fields = tuple(self._field() for _ in range(count))
        if self._number(1, "the end of a class") != _END:
            self._unsupported("the description of a class holds more than fields")
        described = Description(name, serial, flags, fields, self._class(depth + 1))
        self.known[place] = described
        return described

    def _field(self) -> tuple[str, str]:
        code = self._number(1, "a field")
        name = self._text("the name of a field")
        if code in _PRIMITIVES:
            return name, chr(code)
        if code not in b"[L":
            self._wrong(f"a field has the type {code:#04x}")
        mark = self._number(1, "the type of a field")
        kind = self._reference() if mark == _REFERENCE else None
        if mark == _STRING:
            kind = self._text("the type of a field")
            self.known.append(kind)
        if not isinstance(kind, str) or len(kind) < 2 or ord(kind[0]) != code:
            self._wrong("a field's type is no name of a class or array")
        return name, kind

    def _values(self, described: Description, depth: int) -> OwnBytes | None:
        """What an object holds, from the topmost class down."""
        lineage = []
        one: Description | None = described
        while one is not None:
            lineage.append(one)
            one = one.above
            if len(lineage) > _MOST_CLASSES:
                self._unsupported(f"a class has more than {_MOST_CLASSES} above it")
        for one in reversed(lineage):
            if one.flags & _WRITES_ITSELF:
                return self._own_bytes(one.name)
            for _, kind in one.fields:
                if len(kind) == 1:
                    self._take(_PRIMITIVES[ord(kind)], "a value")
                    continue
                found = self._object(depth + 1)
                if found is not None:
                    return found
        return None

    def _own_bytes(self, name: str) -> OwnBytes:
        found = OwnBytes(name, self.at)
        most = 16 + len(self.cell) // 256
        while (mark := self._number(1, "a block of data")) != _END:
            if mark not in (_BLOCK, _LONG_BLOCK):
                self._unsupported(f"the mark {mark:#04x} stands where a block of data belongs")
            size = self._number(1 if mark == _BLOCK else 4, "the size of a block")
            found.blocks.append((self.at, size))
            self._take(size, "a block of data")
            if len(found.blocks) > most:
                self._unsupported("the data is in very many small blocks")
        found.stop = self.at
        return found


def write_object(lineage: Sequence[Description], own_bytes: Sequence[Description], data: bytes) -> bytes:
    """The serialised object of a class whose only value is a field that holds an object which writes ``data`` itself.

    ``lineage`` are the class and those above it, the class of that object first among ``own_bytes``. Field types that
    are objects are written out, each for the first time.
    """
    return b"".join([_HEADER, *_object_of(lineage), *_object_of(own_bytes), *_blocks(data), bytes([_END])])


def _object_of(lineage: Sequence[Description]) -> list[bytes]:
    out = [bytes([_OBJECT])]
    for one in lineage:
        out += [bytes([_CLASS]), _utf(one.name), struct.pack(">QBH", one.serial, one.flags, len(one.fields))]
        for name, kind in one.fields:
            out += [kind[:1].encode(), _utf(name)]
            if len(kind) > 1:
                out += [bytes([_STRING]), _utf(kind)]
        out.append(bytes([_END]))
    return [*out, bytes([_NULL])]


def _blocks(data: bytes) -> list[bytes]:
    out = []
    for at in range(0, len(data), _BLOCK_BYTES):
        block = data[at : at + _BLOCK_BYTES]
        is_short = len(block) < 256
        out += [bytes([_BLOCK, len(block)]) if is_short else struct.pack(">BI", _LONG_BLOCK, len(block)), block]
    return out


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
