"""Footers that are left in a file: at its end, inside it, without their frame, or torn.

Every kind of copy of a footer that a file may hold is looked for here and becomes a :class:`FoundFooter`; whoever adds
a form of footer or of checkpoint adds a function that yields what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Literal

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.leb128 import uleb
from pqext.core.base.limits import Limits
from pqext.core.base.text import with_noun
from pqext.core.footer.checkpoints import ask_schema, find_checkpoints, is_of_a_value
from pqext.core.footer.flatbuffers.framing import FLAT_MAGIC, FLATBUFFERS, TAIL_BYTES, check, parse, size_of
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.structure_lookup import peeked
from pqext.core.footer.thrift_footer import ENCRYPTED_MAGIC, MAGIC, TRAILER_BYTES
from pqext.core.footer.writing import without_copies
from pqext.core.format.extension.framed import FRAME_BYTES
from pqext.core.format.metadata import FileMetaData, RowGroup, SchemaElement
from pqext.core.format.thrift import decode
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import from_elements

Kind = Literal["end", "inside", "checkpoint", "FlatBuffers", "without its frame", "torn"]

_NAMES: dict[Kind, str] = {
    "end": "footer at the end",
    "inside": "footer inside the file",
    "checkpoint": "checkpoint",
    "FlatBuffers": "FlatBuffers footer",
    "without its frame": "footer without its frame",
    "torn": "torn footer",
}
WINDOW = 16 << 20
_KEPT = 256
"""Footers of a kind, the last ones, that are kept: only hostile files hold more that differ."""
_CHECKPOINTS = 4
"""Of checkpoints, the last say what all before them do."""
_EFFORT = 4
"""Bytes that are parsed in vain, as a multiple of the file's size: false footers take no more time than that."""
_LEAST_EFFORT = 64 << 20
_READ_COST = 16
"""Bytes that are read in the time in which one is parsed."""
_PLACE_COST = 256
"""Bytes that are parsed in the time in which a place is looked at."""
_SIZES = (1 << 14, 1 << 18, 1 << 22, 1 << 26, 1 << 30)
"""Bytes in which a footer is looked for, as long as it goes on behind them."""
# version, then a list of structures of which the first is a group: repetition or name come first in it.
_BEGINNING = re.compile(rb"\x15[\x02\x04\x06]\x19(?:[\x1c-\xec]|\xfc[\x80-\xff]{0,4}[\x01-\x7f])[\x48\x35]", re.DOTALL)
_BEGINNING_BYTES = 16


@dataclass(frozen=True, slots=True)
class FoundFooter:
    """A footer at ``offset`` of the file, of ``length`` bytes as far as it goes."""

    kind: Kind
    offset: int
    length: int
    metadata: FileMetaData
    begin: int | None = None
    """Where the Thrift footer begins that holds this one, or this one, where it is known to stand behind the data."""
    is_own: bool = True
    """Is it this file's, and not that of a file that is a value in it?"""

    def __str__(self) -> str:
        groups_of = self.metadata.row_groups
        rows = sum(peeked(groups_of, at).num_rows for at in range(len(groups_of)))
        groups = with_noun(len(self.metadata.row_groups), "row group")
        return f"{self.name}, {self.length:,} bytes at {self.offset:,}: {groups}, {with_noun(rows, 'row')}"

    @property
    def name(self) -> str:
        """What kind it is, in words."""
        return _NAMES[self.kind]


class Effort:
    """How many bytes may still be looked at in vain."""

    def __init__(self, size: int) -> None:
        self.left = max(_EFFORT * size, _LEAST_EFFORT)

    def take(self, size: int) -> bool:
        """Are so many left? They are not afterwards."""
        self.left -= size
        return self.left >= 0


def find(source: Source, limits: Limits) -> list[FoundFooter]:
    """All footers that can be read, the last first. Raises nothing for what is no footer."""
    effort = Effort(source.size)
    framed = {found.offset: found for found in islice(_framed(source, limits, effort), _KEPT)}
    framed |= {found.offset: found for found in islice(_checkpoints(source, limits), _CHECKPOINTS)}
    framed |= {found.offset: found for found in islice(_flat(source, limits, effort), _KEPT)}
    loose = {found.offset: found for found in islice(_loose(source, limits, effort, set(framed)), _KEPT)}
    return [found for _, found in sorted({**loose, **framed}.items(), reverse=True)]


def is_encrypted(source: Source) -> bool:
    """Does the file end as one with an encrypted footer?"""
    tail = source.read(max(source.size - 4, 0), min(4, source.size)).tobytes()
    head = source.read(0, min(4, source.size)).tobytes()
    return ENCRYPTED_MAGIC in (head, tail)


def _places(source: Source, pattern: re.Pattern[bytes], overlap: int, first: int = 0) -> Iterator[int]:
    """Where ``pattern`` matches, from the end of the file to ``first``."""
    stop = source.size
    while stop > first:
        start = max(stop - WINDOW, first)
        data = source.read(start, min(stop + overlap, source.size) - start)
        found = [match.start() for match in pattern.finditer(data.data)]
        yield from (start + at for at in reversed(found) if start + at < stop)
        stop = start


def _literal(mark: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(mark))


def _framed(source: Source, limits: Limits, effort: Effort) -> Iterator[FoundFooter]:
    """Footers with their length and magic number behind them."""
    tried = set()
    for place in _places(source, _literal(MAGIC), len(MAGIC)):
        if place < 4:
            continue
        if not effort.take(_PLACE_COST):
            return
        length = int.from_bytes(source.read(place - 4, 4).tobytes(), "little")
        offset = place - 4 - length
        if length < TRAILER_BYTES or offset < 0 or length > limits.footer_bytes or offset in tried:
            continue
        tried.add(offset)  # where a structure ends is not told by its length
        found = _whole(source, offset, length, limits, effort)
        if found is not None:
            is_last = place + 4 == source.size
            is_own = is_last or not is_of_a_value(source, found, offset)
            yield FoundFooter("end" if is_last else "inside", offset, length, found, offset, is_own)


def _checkpoints(source: Source, limits: Limits) -> Iterator[FoundFooter]:
    """Footers that the writer left before it was done."""
    for saved in find_checkpoints(source, limits):
        with suppress(ParquetError):
            yield FoundFooter("checkpoint", saved.offset, saved.length, _sound(saved.metadata, limits))


def _flat(source: Source, limits: Limits, effort: Effort) -> Iterator[FoundFooter]:
    """FlatBuffers footers, beside a Thrift footer or alone."""
    marks = (FLATBUFFERS.bytes, FLAT_MAGIC)  # one at a time: a search for either takes ten times as long
    for place, mark in ((at, one) for one in marks for at in _places(source, _literal(one), len(one), TAIL_BYTES)):
        if not effort.take(_PLACE_COST):
            return
        before = source.read(place - 12, 12).tobytes()
        length = int.from_bytes(before[4:8], "little")
        offset = place - 12 - length
        if offset < 0 or length > limits.footer_bytes or not effort.take(length):
            continue
        try:
            size_of(before, place - 12)  # both have the same four numbers before what marks them
            stored = source.read(offset, length)
            check(stored, before)
            tables, begin = stored.tobytes(), offset
            if mark != FLAT_MAGIC:
                held = parse(stored)
                tables = held.tables(limits)
                header = 4 + len(uleb(length + FRAME_BYTES))  # of the extension, behind the fields
                begin -= held.thrift_bytes + header
            if not effort.take(len(tables)):
                return
            metadata = _sound(FlatLookup(tables, limits, source.path).complete(), limits)
        except ParquetError:
            continue
        yield FoundFooter("FlatBuffers", offset, length, without_copies(metadata), begin)


def _whole(source: Source, offset: int, length: int, limits: Limits, effort: Effort) -> FileMetaData | None:
    head = source.read(offset, min(length, _BEGINNING_BYTES)).tobytes()
    if not head.startswith(b"\x15") or not effort.take(length):
        return None
    try:
        metadata, _ = decode(FileMetaData, source.read(offset, length), limits=limits)
        return _sound(metadata, limits)
    except ParquetError:
        return None


def _sound(metadata: FileMetaData, limits: Limits) -> FileMetaData:
    """``metadata`` if its schema is one and all its structures can be read."""
    ask_schema(from_elements(metadata.schema, limits))
    for group in map(partial(peeked, metadata.row_groups), range(len(metadata.row_groups))):
        for at in range(len(group.columns)):
            peeked(group.columns, at)
    try:
        metadata.column_orders = None if metadata.column_orders is None else list(metadata.column_orders)
    except CorruptFileError:
        metadata.column_orders = None  # bounds are not known to have an order then
    return metadata


def _loose(source: Source, limits: Limits, effort: Effort, known: set[int]) -> Iterator[FoundFooter]:
    """Footers whose length or magic number is damaged or cut off, and the beginnings of footers that were cut."""
    first = max(source.size - limits.footer_bytes, 0)
    for offset in _places(source, _BEGINNING, _BEGINNING_BYTES, first):
        if offset in known:
            continue
        for size in _SIZES:
            length = min(size, source.size - offset, limits.footer_bytes)
            found, is_cut = _begun(source.read(offset, length), offset, limits)
            if not effort.take(length // _READ_COST + (0 if found is None else found.length)):
                return
            if not is_cut or length < size:
                break
        if found is not None:
            yield found


def _begun(data: Bytes, offset: int, limits: Limits) -> tuple[FoundFooter | None, bool]:
    """The footer that begins with ``data``, as far as it goes, and does it break off because the data do?"""
    try:
        metadata, end = decode(FileMetaData, data, limits=limits)
        return FoundFooter("without its frame", offset, end, _sound(metadata, limits), offset), False
    except ParquetError:
        torn, end = _torn(data, limits)
    found = None if torn is None else FoundFooter("torn", offset, end, torn, None)
    return found, torn is not None or end > len(data) // 2


def _torn(data: Bytes, limits: Limits) -> tuple[FileMetaData | None, int]:
    """What a footer says before it breaks off: its schema and the row groups that are whole; and where that ends."""
    elements: list[SchemaElement] = []
    groups: list[RowGroup] = []
    at = 2
    try:
        count, at = _list(data, at)
        wanted = 1  # elements that the tree still lacks
        for _ in range(count):
            element, at = decode(SchemaElement, data, at, limits)
            wanted += (element.num_children or 0) - 1
            elements.append(element)
            if wanted <= 0:
                break
        if wanted or len(elements) != count:
            return None, at
        schema = from_elements(elements, limits)
        ask_schema(schema)
        leaves = len(schema.leaves)
    except (ParquetError, IndexError):
        return None, at
    try:
        if data[at] == 0x16:  # the number of rows
            at = _varint(data, at + 1)[1]
            count, at = _list(data, at)
            for _ in range(count):
                group, end = decode(RowGroup, data, at, limits)
                if len(list(group.columns)) != leaves:
                    break
                groups.append(group)
                at = end
    except (ParquetError, IndexError):
        pass
    rows = sum(group.num_rows for group in groups)
    return FileMetaData(version=2, schema=elements, num_rows=rows, row_groups=groups), at


def _list(data: Bytes, at: int) -> tuple[int, int]:
    """(count, end) of the header of a field that is a list of structures."""
    if data[at] & 0x0F != 9:
        raise IndexError
    head = int(data[at + 1])
    if head & 0x0F != 0x0C:
        raise IndexError
    return (head >> 4, at + 2) if head >> 4 != 15 else _varint(data, at + 2)


def _varint(data: Bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = int(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError
