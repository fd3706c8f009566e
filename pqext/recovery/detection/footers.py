"""Find footers in a damaged file: at its end, inside it, without length and magic number, or truncated.

A generator function for each type of footer, or of checkpoint, yields :class:`FooterCandidate` values.
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
from pqext.core.base.limits import Limits
from pqext.core.base.text import with_noun
from pqext.core.footer.checkpoints import find_checkpoints, is_embedded, resolve_columns
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.flatbuffers.reading import TAIL_BYTES, parse, tables_size, verify_checksum
from pqext.core.footer.structure_lookup import peek
from pqext.core.footer.thrift_footer import ENCRYPTED_MAGIC, FLAT_MAGIC, FLATBUFFERS, MAGIC, TRAILER_BYTES
from pqext.core.footer.writing import drop_derived_extension
from pqext.core.format.extension.framing import FRAME_BYTES
from pqext.core.format.metadata import FileMetaData, RowGroup, SchemaElement
from pqext.core.format.thrift import decode, uleb
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import from_elements

FooterType = Literal["end", "inside", "checkpoint", "FlatBuffers", "without its frame", "torn"]

_NAMES: dict[FooterType, str] = {
    "end": "footer at the end",
    "inside": "footer inside the file",
    "checkpoint": "checkpoint",
    "FlatBuffers": "FlatBuffers footer",
    "without its frame": "footer without its frame",
    "torn": "torn footer",
}
WINDOW = 16 << 20
_MAX_FOOTERS = 256
"""Maximum number of footers of a type. The last ones are used; only hostile files have more distinct footers."""
_CHECKPOINTS = 4
"""Maximum number of checkpoints. The last ones are used, because they cover all preceding ones."""
_EFFORT = 4
"""Maximum number of bytes to parse without result, as a multiple of the file's size, which bounds the time for false
footers.
"""
_LEAST_EFFORT = 64 << 20
_READ_COST = 16
"""Number of bytes that can be read in the time needed to parse one byte."""
_MATCH_COST = 256
"""Cost of a pattern match, in parsed bytes."""
_SIZES = (1 << 14, 1 << 18, 1 << 22, 1 << 26, 1 << 30)
"""Numbers of bytes to parse a footer from, tried in increasing order while the footer is truncated."""
# version, then a list of structures; the first is a group, which starts with its repetition or name.
_BEGINNING = re.compile(rb"\x15[\x02\x04\x06]\x19(?:[\x1c-\xec]|\xfc[\x80-\xff]{0,4}[\x01-\x7f])[\x48\x35]", re.DOTALL)
_BEGINNING_BYTES = 16


@dataclass(frozen=True, slots=True)
class FooterCandidate:
    """Readable footer of ``length`` bytes at ``offset`` of the file."""

    type: FooterType
    offset: int
    length: int
    metadata: FileMetaData
    begin: int | None = None
    """Start of this footer, or of the Thrift footer that encloses it, if it is known to follow the data."""
    is_own: bool = True
    """Whether the footer belongs to this file, and not to a file embedded as a value."""

    def __str__(self) -> str:
        groups_of = self.metadata.row_groups
        rows = sum(peek(groups_of, at).num_rows for at in range(len(groups_of)))
        groups = with_noun(len(self.metadata.row_groups), "row group")
        return f"{self.name}, {self.length:,} bytes at {self.offset:,}: {groups}, {with_noun(rows, 'row')}"

    @property
    def name(self) -> str:
        """Description of the type of the footer."""
        return _NAMES[self.type]


class Effort:
    """Budget of a search, in parsed bytes or steps. It bounds the time that damaged files can take."""

    def __init__(self, size: int) -> None:
        self.remaining = max(_EFFORT * size, _LEAST_EFFORT)

    def spend(self, size: int) -> bool:
        """Spend ``size`` bytes or steps. Returns False if the budget is exceeded."""
        self.remaining -= size
        return self.remaining >= 0


def find_footers(source: Source, limits: Limits) -> list[FooterCandidate]:
    """Return the readable footers of a file, from the last to the first.

    The number of footers of each type and the parsed bytes are limited.
    """
    effort = Effort(source.size)
    framed = {footer.offset: footer for footer in islice(_iter_framed_footers(source, limits, effort), _MAX_FOOTERS)}
    framed |= {footer.offset: footer for footer in islice(_iter_checkpoints(source, limits), _CHECKPOINTS)}
    framed |= {footer.offset: footer for footer in islice(_iter_flatbuffers(source, limits, effort), _MAX_FOOTERS)}
    loose = {
        footer.offset: footer
        for footer in islice(_iter_damaged_footers(source, limits, effort, set(framed)), _MAX_FOOTERS)
    }
    return [footer for _, footer in sorted({**loose, **framed}.items(), reverse=True)]


def is_encrypted(source: Source) -> bool:
    """Return whether the file starts or ends with the magic number of encrypted footers."""
    tail = source.read(max(source.size - 4, 0), min(4, source.size)).tobytes()
    head = source.read(0, min(4, source.size)).tobytes()
    return ENCRYPTED_MAGIC in (head, tail)


def _iter_matches(source: Source, pattern: re.Pattern[bytes], overlap: int, first: int = 0) -> Iterator[int]:
    """Yield offsets of matches of ``pattern``, from the last to ``first``. A match has at most ``overlap`` bytes."""
    stop = source.size
    while stop > first:
        start = max(stop - WINDOW, first)
        data = source.read(start, min(stop + overlap, source.size) - start)
        offsets = [match.start() for match in pattern.finditer(data.data)]
        yield from (start + at for at in reversed(offsets) if start + at < stop)
        stop = start


def _literal_pattern(mark: bytes) -> re.Pattern[bytes]:
    return re.compile(re.escape(mark))


def _iter_framed_footers(source: Source, limits: Limits, effort: Effort) -> Iterator[FooterCandidate]:
    """Yield footers followed by their length and magic number."""
    tried = set()
    for magic_at in _iter_matches(source, _literal_pattern(MAGIC), len(MAGIC)):
        if magic_at < 4:
            continue
        if not effort.spend(_MATCH_COST):
            return
        length = int.from_bytes(source.read(magic_at - 4, 4).tobytes(), "little")
        offset = magic_at - 4 - length
        if length < TRAILER_BYTES or offset < 0 or length > limits.footer_bytes or offset in tried:
            continue
        tried.add(offset)  # the end of a structure does not depend on the stated length
        metadata = _decode_footer(source, offset, length, limits, effort)
        if metadata is not None:
            is_last = magic_at + 4 == source.size
            is_own = is_last or not is_embedded(source, metadata, offset)
            yield FooterCandidate("end" if is_last else "inside", offset, length, metadata, offset, is_own)


def _iter_checkpoints(source: Source, limits: Limits) -> Iterator[FooterCandidate]:
    """Yield checkpoints, the footers that a writer stores while the file is incomplete."""
    for saved in find_checkpoints(source, limits):
        with suppress(ParquetError):
            yield FooterCandidate("checkpoint", saved.offset, saved.length, _validate(saved.metadata, limits))


def _iter_flatbuffers(source: Source, limits: Limits, effort: Effort) -> Iterator[FooterCandidate]:
    """Yield FlatBuffers footers, alone or next to a Thrift footer."""
    marks = (FLATBUFFERS.bytes, FLAT_MAGIC)  # separately: a search for either takes ten times as long
    matches = (
        (at, mark) for mark in marks for at in _iter_matches(source, _literal_pattern(mark), len(mark), TAIL_BYTES)
    )
    for mark_at, mark in matches:
        if not effort.spend(_MATCH_COST):
            return
        before = source.read(mark_at - 12, 12).tobytes()
        length = int.from_bytes(before[4:8], "little")
        offset = mark_at - 12 - length
        if offset < 0 or length > limits.footer_bytes or not effort.spend(length):
            continue
        try:
            tables_size(before, mark_at - 12)  # both layouts have the same four numbers before the mark
            stored = source.read(offset, length)
            verify_checksum(stored, before)
            tables, begin = stored.tobytes(), offset
            if mark != FLAT_MAGIC:
                framed = parse(stored)
                tables = framed.tables(limits)
                header = 4 + len(uleb(length + FRAME_BYTES))  # bytes of the extension, after the fields
                begin -= framed.thrift_bytes + header
            if not effort.spend(len(tables)):
                return
            metadata = _validate(FlatLookup(tables, limits, source.path).load_metadata(), limits)
        except ParquetError:
            continue
        yield FooterCandidate("FlatBuffers", offset, length, drop_derived_extension(metadata), begin)


def _decode_footer(source: Source, offset: int, length: int, limits: Limits, effort: Effort) -> FileMetaData | None:
    """Decode a complete Thrift footer. Returns None if it is invalid, or if no effort remains."""
    head = source.read(offset, min(length, _BEGINNING_BYTES)).tobytes()
    if not head.startswith(b"\x15") or not effort.spend(length):
        return None
    try:
        metadata, _ = decode(FileMetaData, source.read(offset, length), limits=limits)
        return _validate(metadata, limits)
    except ParquetError:
        return None


def _validate(metadata: FileMetaData, limits: Limits) -> FileMetaData:
    """Return ``metadata``, without invalid column orders. Raises ``ParquetError`` if another structure is invalid."""
    resolve_columns(from_elements(metadata.schema, limits))
    for group in map(partial(peek, metadata.row_groups), range(len(metadata.row_groups))):
        for at in range(len(group.columns)):
            peek(group.columns, at)
    try:
        metadata.column_orders = None if metadata.column_orders is None else list(metadata.column_orders)
    except CorruptFileError:
        metadata.column_orders = None  # otherwise the order of bounds is unknown
    return metadata


def _iter_damaged_footers(
    source: Source, limits: Limits, effort: Effort, offsets: set[int]
) -> Iterator[FooterCandidate]:
    """Yield truncated footers, and footers whose length or magic number is damaged or missing."""
    first = max(source.size - limits.footer_bytes, 0)
    for offset in _iter_matches(source, _BEGINNING, _BEGINNING_BYTES, first):
        if offset in offsets:
            continue
        for size in _SIZES:
            length = min(size, source.size - offset, limits.footer_bytes)
            footer, is_truncated = _decode_prefix(source.read(offset, length), offset, limits)
            if not effort.spend(length // _READ_COST + (0 if footer is None else footer.length)):
                return
            if not is_truncated or length < size:
                break
        if footer is not None:
            yield footer


def _decode_prefix(data: Bytes, offset: int, limits: Limits) -> tuple[FooterCandidate | None, bool]:
    """Decode the footer at the start of ``data``. Returns the footer, and whether it may continue after ``data``.

    A truncated footer has only its complete row groups. The footer is None if its schema cannot be read.
    """
    try:
        metadata, end = decode(FileMetaData, data, limits=limits)
        return FooterCandidate("without its frame", offset, end, _validate(metadata, limits), offset), False
    except ParquetError:
        torn, end = _parse_truncated(data, limits)
    footer = None if torn is None else FooterCandidate("torn", offset, end, torn, None)
    return footer, torn is not None or end > len(data) // 2


def _parse_truncated(data: Bytes, limits: Limits) -> tuple[FileMetaData | None, int]:
    """Return the schema and the complete row groups of a truncated footer, and the position after them.

    Returns None and the position of the error if the schema is incomplete or invalid.
    """
    elements: list[SchemaElement] = []
    groups: list[RowGroup] = []
    at = 2
    try:
        count, at = _parse_list_header(data, at)
        missing = 1  # elements that complete the tree
        for _ in range(count):
            element, at = decode(SchemaElement, data, at, limits)
            missing += (element.num_children or 0) - 1
            elements.append(element)
            if missing <= 0:
                break
        if missing or len(elements) != count:
            return None, at
        schema = from_elements(elements, limits)
        resolve_columns(schema)
        leaves = len(schema.leaves)
    except (ParquetError, IndexError):
        return None, at
    try:
        if data[at] == 0x16:  # the number of rows
            at = _parse_varint(data, at + 1)[1]
            count, at = _parse_list_header(data, at)
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


def _parse_list_header(data: Bytes, position: int) -> tuple[int, int]:
    """Parse the header of a field that is a list of structures.

    Returns the number of structures and the end of the header. Raises ``IndexError`` for other fields.
    """
    if data[position] & 0x0F != 9:
        raise IndexError
    head = int(data[position + 1])
    if head & 0x0F != 0x0C:
        raise IndexError
    return (head >> 4, position + 2) if head >> 4 != 15 else _parse_varint(data, position + 2)


def _parse_varint(data: Bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = int(data[position])
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError
