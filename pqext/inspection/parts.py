"""Locate the parts of a file: pages, indexes, filters, the parts of the footer, and the bytes between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.text import with_noun
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.footer.checkpoints import CHECKPOINT
from pqext.core.footer.jump_table.jump_table import JUMP_TABLE
from pqext.core.footer.thrift_footer import FLATBUFFERS, MAGIC, TRAILER_BYTES
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.extension.framing import payloads_by_uuid as entries
from pqext.core.format.metadata import BloomFilterHeader, ColumnMetaData, PageHeader, PageType
from pqext.core.format.metadata import ColumnChunk as StoredChunk
from pqext.core.format.thrift import EXTENSION_IDS, decode
from pqext.core.io.source import Source
from pqext.core.kernels.thrift.reader import scan_fields
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk
from pqext.core.read.second_copy import SECOND_COPY, find_second_copy
from pqext.core.schema.annotations import extension_name
from pqext.inspection.model import Kind, Part

MAX_CHUNKS = 20_000
"""Maximum number of column chunks to inspect; later row groups are reported as a unit."""
MAX_PAGES = 200_000
"""Maximum number of pages to locate; further chunks are reported as a unit."""
MAX_HEADERS = 20_000
"""Maximum number of page headers to read if no offset index lists the offsets."""
_FIELDS = {
    1: "version", 2: "schema", 3: "number of rows", 4: "row groups", 5: "key-value metadata", 6: "created by",
    7: "column orders", 8: "encryption algorithm", 9: "signing key",
}  # fmt: skip
_KNOWN = {SECOND_COPY: "second copy", JUMP_TABLE: "jump table", FLATBUFFERS: "FlatBuffers footer"}
_BINARY = 8
_FIRST_READ = 256
_LARGE_DICTIONARY = 1 << 14
"""Minimum bytes of a dictionary whose values are counted."""
_METADATA_BYTES = 1 << 16
"""Bytes to search for a copy of a column's metadata."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a file in order, which cover all its bytes, and notes on parts that could not be identified.

    ``dictionary_values`` is the number of values in large dictionaries, by row group and column.
    """

    found: tuple[Part, ...]
    notes: tuple[str, ...]
    dictionary_values: Mapping[tuple[int, int], int] = field(default_factory=dict)


class _Finder:
    """Collector of the parts of a file, which inspects a limited number of pages and page headers."""

    def __init__(self, file: ParquetFile) -> None:
        self.file = file
        self.size = file.source.size
        self.room = MAX_PAGES
        self.headers = 0 if file.source.is_remote else MAX_HEADERS
        self.found: list[Part] = []
        self.damaged: list[str] = []
        self.counts = dict.fromkeys(("whole", "many", "damaged", "locked", "hidden", "elsewhere", "undetailed"), 0)
        self.dictionary_values: dict[tuple[int, int], int] = {}
        self.ends: dict[int, ColumnChunk] = {}
        """Chunks by the end offset of their pages."""

    def add(self, category: Kind, offset: int, length: int, chunk: ColumnChunk | None = None, name: str = "") -> None:
        """Add a part, or record an error if the part is outside the file."""
        if offset < 0 or length < 0 or offset > self.size - length:
            self.damaged.append(f"{_format_location(chunk)}the {name or category} would lie outside of the file")
            return
        if length:
            group, column = (None, None) if chunk is None else (chunk.row_group, chunk.node.leaf_start)
            self.found.append(Part(category, offset, length, group, column, name))

    def add_chunk(self, chunk: ColumnChunk) -> None:
        """Add the pages, indexes and Bloom filter of a chunk."""
        if chunk.is_hidden:
            self.counts["hidden"] += 1
            return
        if chunk.file_path is not None:
            self.counts["elsewhere"] += 1
            return
        start, length = chunk.byte_range
        if start < 0 or length < 0 or start > self.size - length:
            self.damaged.append(f"{_format_location(chunk)}its pages would lie outside of the file")
        elif chunk.num_values or start:  # some writers record no offset for chunks without values
            self.ends[start + length] = chunk
            self._add_pages(chunk, start, length)
        about, meta = chunk.structure, chunk.metadata
        for kind, offset, size in (
            ("column index", about.column_index_offset, about.column_index_length),
            ("offset index", about.offset_index_offset, about.offset_index_length),
            ("Bloom filter", meta.bloom_filter_offset, meta.bloom_filter_length),
        ):
            if offset is not None and kind == "Bloom filter" and size is None:
                size = self._filter_bytes(offset)
            if offset is not None and size is not None:
                self.add(kind, offset, size, chunk)  # type: ignore[arg-type]
        copy = find_second_copy(chunk)
        if copy is not chunk:
            self.add("second copy", *copy.byte_range, chunk)

    def _add_pages(self, chunk: ColumnChunk, start: int, length: int) -> None:
        damaged = len(self.damaged)
        locked = False
        try:
            places = self._pages_by_index(chunk, start, length)
        except MissingKeyError:
            places, locked = None, True
        except ParquetError:
            self.damaged.append(f"{_format_location(chunk)}its offset index is damaged")
            places = None
        if places is None and not chunk.is_encrypted:
            places = self._pages_by_headers(chunk, start, length)
        if places is None:
            untold = not chunk.has_offset_index and (chunk.is_encrypted or self.file.source.is_remote)
            reason = "locked" if locked else "damaged" if len(self.damaged) > damaged else "whole" if untold else "many"
            self.counts[reason] += 1
            self.add("pages", start, length, chunk)
            return
        self.room -= len(places)
        if places and places[0][0] == "dictionary" and places[0][2] > _LARGE_DICTIONARY and not chunk.is_encrypted:
            self._count_values(chunk, start, start + length)
        for kind, offset, size in places:
            self.add(kind, offset, size, chunk)

    def _pages_by_index(self, chunk: ColumnChunk, start: int, length: int) -> list[tuple[Kind, int, int]] | None:
        """Return the pages in the offset index of a chunk; None if there is no index or it lists too many pages."""
        index = chunk.offset_index if self.room > 0 else None
        if index is None or not index.page_locations or len(index.page_locations) > self.room:
            return None
        pages: list[tuple[Kind, int, int]] = [
            ("data", page.offset, page.compressed_page_size) for page in index.page_locations
        ]
        first = min(offset for _, offset, _ in pages)
        # Some writers do not record the offset of the dictionary.
        if first > start and (chunk.has_dictionary or DICTIONARY_ENCODINGS & set(chunk.encodings)):
            pages.insert(0, ("dictionary", start, first - start))
        return pages

    def _pages_by_headers(self, chunk: ColumnChunk, start: int, length: int) -> list[tuple[Kind, int, int]] | None:
        """Return the pages of a chunk from their headers; None if a header is corrupt or there are too many pages."""
        pages: list[tuple[Kind, int, int]] = []
        at, stop = start, start + length
        while at < stop:
            if self.headers <= 0 or len(pages) >= self.room:
                return None
            self.headers -= 1
            try:
                header, size = self._read_header(at, stop)
            except ParquetError:
                self.damaged.append(f"{_format_location(chunk)}a page header at {at} is damaged")
                return None
            if header.compressed_page_size < 0 or header.compressed_page_size > stop - at - size:
                self.damaged.append(f"{_format_location(chunk)}the page at {at} ends outside its chunk")
                return None
            kind: Kind = "dictionary" if header.type == PageType.DICTIONARY_PAGE else "data"
            pages.append((kind, at, size + header.compressed_page_size))
            at += size + header.compressed_page_size
        return pages

    def _count_values(self, chunk: ColumnChunk, offset: int, stop: int) -> None:
        """Record the number of values of the dictionary at ``offset``, if its header can be read."""
        if self.headers <= 0:
            return
        self.headers -= 1
        try:
            about = self._read_header(offset, stop)[0].dictionary_page_header
        except ParquetError:
            return
        if about is not None:
            self.dictionary_values[chunk.row_group, chunk.node.leaf_start] = about.num_values

    def _read_header(self, offset: int, stop: int) -> tuple[PageHeader, int]:
        most = self.file.limits.page_header_bytes
        for tried in (_FIRST_READ, most):
            held = self.file.source.read(offset, min(tried, stop - offset))
            try:
                return decode(PageHeader, held, limits=self.file.limits, base=offset)
            except ParquetError:
                if tried == most or stop - offset <= tried:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _filter_bytes(self, offset: int) -> int | None:
        """Return the size of a Bloom filter according to its header; None if the header cannot be read."""
        if not 0 <= offset < self.size:
            return 1  # reported as lying outside the file
        try:
            held = self.file.source.read(offset, min(_FIRST_READ, self.size - offset))
            header, size = decode(BloomFilterHeader, held, limits=self.file.limits)
        except ParquetError:
            return None
        return size + header.numBytes

    def add_footer(self) -> None:
        """Add the parts of the footer: its fields, extension, length and magic numbers."""
        footer = self.file.footer
        stop = footer.offset + footer.length
        self.add("frame", 0, min(len(MAGIC), self.size), name="magic number")
        self.add("frame", stop, self.size - stop, name="footer length and magic number")
        if footer.decryptor is not None and self.size >= TRAILER_BYTES and self._has_encrypted_footer():
            self.add("footer", footer.offset, footer.length, name="encrypted footer")
            return
        if footer.format != "thrift":
            damaged = "" if footer.format == "flatbuffers" else "damaged Thrift footer with a "
            self.add("footer", footer.offset, footer.length, name=f"{damaged}FlatBuffers footer")
            return
        raw = bytes(footer.raw)
        fields, end = scan_fields(raw, limits=self.file.limits)
        for id, wire, start, value, behind in fields:
            if wire == _BINARY and id in EXTENSION_IDS:
                self.add("footer", footer.offset + start, behind - start, name=_describe_extension(raw[value:behind]))
            else:
                name = _FIELDS.get(id, f"field {id}")
                self.add("footer", footer.offset + start, behind - start, name=name)
        self.add("footer", footer.offset + end - 1, 1, name="stop byte")
        self.add("footer", footer.offset + end, footer.length - end, name="signature")

    def _has_encrypted_footer(self) -> bool:
        return self.file.source.read(self.size - 4, 4).tobytes() != MAGIC


def find_parts(file: ParquetFile) -> Parts:
    """Locate the parts of ``file``, using the footer and offset indexes, or page headers if there is no offset index.

    At most ``MAX_CHUNKS`` chunks are inspected. Corruption is recorded in the notes, and its bytes are reported as
    ``other``.
    """
    finder = _Finder(file)
    finder.add_footer()
    leaves, looked = len(file.schema.leaves), 0
    for group in file.row_groups:
        if looked + leaves > max(MAX_CHUNKS, leaves) or (leaves > MAX_CHUNKS and looked):
            finder.counts["undetailed"] += 1
            continue
        looked += leaves
        for leaf in file.schema.leaves[:MAX_CHUNKS]:
            try:
                finder.add_chunk(group.chunk(leaf))
            except ParquetError as error:
                finder.damaged.append(f"row group {group.index}, column {leaf.dotted_path}: {error.message}")
        if leaves > MAX_CHUNKS:
            finder.counts["undetailed"] += 1
    results, shared = _fill_gaps(finder.found, finder.size)
    if not file.source.is_remote:
        copied = [item for part in results for item in _split_metadata_copy(finder, part)]
        results = [_identify_checkpoint(file.source, part) for part in copied]
    return Parts(tuple(results), tuple(_remarks(finder, shared)), finder.dictionary_values)


def _split_metadata_copy(finder: _Finder, part: Part) -> Iterator[Part]:
    """Split off the copy of a chunk's metadata that older writers store after the pages; yield the resulting parts."""
    chunk = finder.ends.get(part.offset)
    if part.kind != "other" or chunk is None:
        yield part
        return
    held = finder.file.source.read(part.offset, min(part.length, _METADATA_BYTES))
    length = _metadata_bytes(held, chunk, finder.file.limits)
    if length:
        yield Part("metadata copy", part.offset, length, chunk.row_group, chunk.node.leaf_start)
    if length < part.length:
        yield replace(part, offset=part.offset + length, length=part.length - length)


def _metadata_bytes(body: Bytes, chunk: ColumnChunk, limits: Limits) -> int:
    """Return the size of the copy of chunk metadata at the start of ``body``; 0 if there is no copy."""
    path = chunk.metadata.path_in_schema
    with suppress(ParquetError):
        result, length = decode(ColumnMetaData, body, limits=limits)
        if result.path_in_schema == path:
            return length
    with suppress(ParquetError):
        chunk_copy, length = decode(StoredChunk, body, limits=limits)
        if chunk_copy.meta_data is not None and chunk_copy.meta_data.path_in_schema == path:
            return length
    return 0


def _identify_checkpoint(source: Source, part: Part) -> Part:
    """Set the kind of a part to ``checkpoint`` if the part ends with the UUID of checkpoints."""
    ending = CHECKPOINT.bytes
    if part.kind != "other" or part.length <= len(ending):
        return part
    is_one = source.read(part.stop - len(ending), len(ending)).tobytes() == ending
    return replace(part, kind="checkpoint") if is_one else part


def _fill_gaps(parts: list[Part], size: int) -> tuple[list[Part], int]:
    """Sort the parts, add parts for the gaps, and omit overlapping parts. Return the parts and the number omitted."""
    whole: list[Part] = []
    at = shared = 0
    for part in sorted(parts, key=lambda part: (part.offset, -part.length)):
        if part.offset < at:
            shared += 1
            continue
        if part.offset > at:
            whole.append(Part("other", at, part.offset - at))
        whole.append(part)
        at = part.stop
    if at < size:
        whole.append(Part("other", at, size - at))
    return whole, shared


def _remarks(finder: _Finder, overlap_count: int) -> Iterator[str]:
    counts = finder.counts
    whole = "Shown as a whole, because no offset index lists its pages, and the page headers are "
    whole += "not fetched from a store" if finder.file.source.is_remote else "encrypted"
    for count, noun, text in (
        (counts["whole"], "column chunk", whole),
        (counts["many"], "column chunk", "Shown as a whole, because there are so many pages"),
        (counts["damaged"], "column chunk", "Shown as a whole, because the offset index or a page header is damaged"),
        (counts["locked"], "encrypted column chunk", "Shown as a whole, because the key is missing"),
        (counts["hidden"], "encrypted column chunk", "Not shown, because the key is missing"),
        (counts["elsewhere"], "column chunk", "In other files"),
        (counts["undetailed"], "row group", "Omitted or only partly shown, because there are so many column chunks"),
        (overlap_count, "part", "Omitted from the drawing, because other parts cover the same bytes"),
    ):  # fmt: skip
        if count:
            yield f"{text}: {with_noun(count, noun)}"
    yield from finder.damaged[:20]
    if len(finder.damaged) > 20:
        yield f"Further damage: {with_noun(len(finder.damaged) - 20, 'location')}"


def _format_location(chunk: ColumnChunk | None) -> str:
    return "" if chunk is None else f"row group {chunk.row_group}, column {chunk.node.dotted_path}: "


def _describe_extension(value: bytes) -> str:
    """Describe the contents of the footer's extension. ``value`` starts with the length of the extension."""
    start = next(at for at, byte in enumerate(value) if not byte & 0x80) + 1
    try:
        result = entries(value[start:]) or {}
    except ParquetError:
        result = {}
    names = [_KNOWN.get(uuid) or extension_name(uuid) for uuid in result]
    known = [name for name in names if name is not None]
    return f"extension: {', '.join(known)}" if known else "extension"
