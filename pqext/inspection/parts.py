"""What lies where in a file: pages, indexes, filters and the parts of the footer, and the bytes between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pqext.core.annotations import extension_name
from pqext.core.checkpoints import CHECKPOINT
from pqext.core.encryption.reading import MissingKeyError
from pqext.core.errors import ParquetError
from pqext.core.extension.container import parts as entries
from pqext.core.extension.jump_table import JUMP_TABLE
from pqext.core.extension.second_copy import SECOND_COPY
from pqext.core.flat.framing import FLATBUFFERS
from pqext.core.footer import MAGIC, TRAILER_BYTES
from pqext.core.kernels.thrift import scan_fields
from pqext.core.metadata import BloomFilterHeader, PageHeader, PageType
from pqext.core.reader import ParquetFile
from pqext.core.row_group import ColumnChunk
from pqext.core.source import Source
from pqext.core.thrift import EXTENSION_IDS, decode
from pqext.inspection.model import Kind, Part

MAX_CHUNKS = 20_000
"""Column chunks that are looked at; row groups behind them are taken as a whole."""
MAX_PAGES = 200_000
"""Pages of which the place is told; further chunks are taken as a whole."""
MAX_HEADERS = 20_000
"""Page headers that are read where no offset index tells the places."""
_FIELDS = {
    1: "version", 2: "schema", 3: "number of rows", 4: "row groups", 5: "key-value metadata", 6: "created by",
    7: "column orders", 8: "encryption algorithm", 9: "signing key",
}  # fmt: skip
_KNOWN = {SECOND_COPY: "second copy", JUMP_TABLE: "jump table", FLATBUFFERS: "FlatBuffers footer"}
_BINARY = 8
_FIRST_READ = 256


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of a file in their order, without a hole between them, and what could not be told."""

    found: tuple[Part, ...]
    notes: tuple[str, ...]


class _Finder:
    """Looks at the chunks of one file, within bounds."""

    def __init__(self, file: ParquetFile) -> None:
        self.file = file
        self.size = file.source.size
        self.room = MAX_PAGES
        self.headers = 0 if file.source.is_remote else MAX_HEADERS
        self.found: list[Part] = []
        self.damaged: list[str] = []
        self.counts = dict.fromkeys(("whole", "hidden", "elsewhere", "undetailed"), 0)

    def add(self, kind: Kind, offset: int, length: int, chunk: ColumnChunk | None = None, name: str = "") -> None:
        """Note a part, as far as it lies within the file."""
        if offset < 0 or length < 0 or offset > self.size - length:
            self.damaged.append(f"{_where(chunk)}the {name or kind} would lie outside of the file")
            return
        if length:
            group, column = (None, None) if chunk is None else (chunk.row_group, chunk.node.leaf_start)
            self.found.append(Part(kind, offset, length, group, column, name))

    def chunk(self, chunk: ColumnChunk) -> None:
        """The pages, indexes and filter of a chunk."""
        if chunk.is_hidden:
            self.counts["hidden"] += 1
            return
        if chunk.file_path is not None:
            self.counts["elsewhere"] += 1
            return
        start, length = chunk.byte_range
        if start < 0 or length < 0 or start > self.size - length:
            self.damaged.append(f"{_where(chunk)}its pages would lie outside of the file")
        elif chunk.num_values or start:  # some writers give chunks without values no place
            self._pages(chunk, start, length)
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

    def _pages(self, chunk: ColumnChunk, start: int, length: int) -> None:
        try:
            places = self._by_index(chunk, start, length)
        except MissingKeyError:
            places = None
        except ParquetError:
            self.damaged.append(f"{_where(chunk)}its offset index is damaged")
            places = None
        if places is None and not chunk.is_encrypted:
            places = self._by_headers(chunk, start, length)
        if places is None:
            self.counts["whole"] += 1
            self.add("pages", start, length, chunk)
            return
        self.room -= len(places)
        for kind, offset, size in places:
            self.add(kind, offset, size, chunk)

    def _by_index(self, chunk: ColumnChunk, start: int, length: int) -> list[tuple[Kind, int, int]] | None:
        """The pages by the offset index, which is checked to lie within the chunk."""
        index = chunk.offset_index if self.room > 0 else None
        if index is None or not index.page_locations or len(index.page_locations) > self.room:
            return None
        pages: list[tuple[Kind, int, int]] = [
            ("data", page.offset, page.compressed_page_size) for page in index.page_locations
        ]
        first = min(offset for _, offset, _ in pages)
        if chunk.has_dictionary and first > start:
            pages.insert(0, ("dictionary", start, first - start))
        return pages

    def _by_headers(self, chunk: ColumnChunk, start: int, length: int) -> list[tuple[Kind, int, int]] | None:
        """The pages by their headers, read one after another."""
        pages: list[tuple[Kind, int, int]] = []
        at, stop = start, start + length
        while at < stop:
            if self.headers <= 0 or len(pages) >= self.room:
                return None
            self.headers -= 1
            try:
                header, size = self._header(at, stop)
            except ParquetError:
                self.damaged.append(f"{_where(chunk)}a page header at {at} is damaged")
                return None
            if header.compressed_page_size < 0 or header.compressed_page_size > stop - at - size:
                self.damaged.append(f"{_where(chunk)}the page at {at} would end outside of its chunk")
                return None
            kind: Kind = "dictionary" if header.type == PageType.DICTIONARY_PAGE else "data"
            pages.append((kind, at, size + header.compressed_page_size))
            at += size + header.compressed_page_size
        return pages

    def _header(self, at: int, stop: int) -> tuple[PageHeader, int]:
        most = self.file.limits.page_header_bytes
        for tried in (_FIRST_READ, most):
            held = self.file.source.read(at, min(tried, stop - at))
            try:
                return decode(PageHeader, held, limits=self.file.limits, base=at)
            except ParquetError:
                if tried == most or stop - at <= tried:
                    raise
        raise AssertionError("the last try returns or raises")

    def _filter_bytes(self, offset: int) -> int | None:
        """The bytes of a Bloom filter whose length the footer does not tell."""
        if not 0 <= offset < self.size:
            return 1  # noted as outside of the file
        try:
            held = self.file.source.read(offset, min(_FIRST_READ, self.size - offset))
            header, size = decode(BloomFilterHeader, held, limits=self.file.limits)
        except ParquetError:
            return None
        return size + header.numBytes

    def footer(self) -> None:
        """The fields of the footer, its extension by what is known of it, and what frames it."""
        footer = self.file.footer
        stop = footer.offset + footer.length
        self.add("frame", 0, min(len(MAGIC), self.size), name="magic number")
        self.add("frame", stop, self.size - stop, name="footer length and magic number")
        if footer.decryptor is not None and self.size >= TRAILER_BYTES and self._is_hidden():
            self.add("footer", footer.offset, footer.length, name="encrypted footer")
            return
        if footer.form != "thrift":
            damaged = "" if footer.form == "flatbuffers" else "damaged Thrift footer with a "
            self.add("footer", footer.offset, footer.length, name=f"{damaged}FlatBuffers footer")
            return
        raw = bytes(footer.raw)
        fields, end = scan_fields(raw, limits=self.file.limits)
        for id, wire, start, value, behind in fields:
            if wire == _BINARY and id in EXTENSION_IDS:
                self.add("footer", footer.offset + start, behind - start, name=_extension(raw[value:behind]))
            else:
                name = _FIELDS.get(id, f"field {id}")
                self.add("footer", footer.offset + start, behind - start, name=name)
        self.add("footer", footer.offset + end - 1, 1, name="stop byte")
        self.add("footer", footer.offset + end, footer.length - end, name="signature")

    def _is_hidden(self) -> bool:
        return self.file.source.read(self.size - 4, 4).tobytes() != MAGIC


def find_parts(file: ParquetFile) -> Parts:
    """What lies where in ``file``: by its footer, its offset indexes and, without these, the headers of its pages.

    At most ``MAX_CHUNKS`` chunks are looked at. Damage is noted and its bytes are told as ``other``.
    """
    finder = _Finder(file)
    finder.footer()
    leaves, looked = len(file.schema.leaves), 0
    for group in file.row_groups:
        if looked + leaves > max(MAX_CHUNKS, leaves) or (leaves > MAX_CHUNKS and looked):
            finder.counts["undetailed"] += 1
            continue
        looked += leaves
        for leaf in file.schema.leaves[:MAX_CHUNKS]:
            try:
                finder.chunk(group.chunk(leaf))
            except ParquetError as error:
                finder.damaged.append(f"row group {group.index}, column {leaf.dotted}: {error.message}")
        if leaves > MAX_CHUNKS:
            finder.counts["undetailed"] += 1
    found, shared = _without_holes(finder.found, finder.size)
    if not file.source.is_remote:
        found = [_checkpoint(file.source, part) for part in found]
    return Parts(tuple(found), tuple(_notes(finder, shared)))


def _checkpoint(source: Source, part: Part) -> Part:
    """A checkpoint where the bytes end as one does, else the part itself."""
    ending = CHECKPOINT.bytes
    if part.kind != "other" or part.length <= len(ending):
        return part
    is_one = source.read(part.stop - len(ending), len(ending)).tobytes() == ending
    return replace(part, kind="checkpoint") if is_one else part


def _without_holes(found: list[Part], size: int) -> tuple[list[Part], int]:
    """The parts in order with the bytes between them, and how many lie over others and are left out."""
    whole: list[Part] = []
    at = shared = 0
    for part in sorted(found, key=lambda part: (part.offset, -part.length)):
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


def _notes(finder: _Finder, shared: int) -> Iterator[str]:
    counts = finder.counts
    for count, text in (
        (counts["whole"], "{} column chunks are shown as a whole: no offset index tells where their pages lie"
            + (", and headers of pages are not fetched from a store" if finder.file.source.is_remote else "")),
        (counts["hidden"], "{} encrypted column chunks are not shown, because their keys are missing"),
        (counts["elsewhere"], "{} column chunks lie in other files"),
        (counts["undetailed"], "{} row groups are not looked at, or only in part, because there are so many chunks"),
        (shared, "{} parts lie over others and are left out of the drawing"),
    ):  # fmt: skip
        if count:
            yield text.format(f"{count:,}")
    yield from finder.damaged[:20]
    if len(finder.damaged) > 20:
        yield f"and {len(finder.damaged) - 20:,} more"


def _where(chunk: ColumnChunk | None) -> str:
    return "" if chunk is None else f"row group {chunk.row_group}, column {chunk.node.dotted}: "


def _extension(value: bytes) -> str:
    """What the extension of the footer holds; ``value`` begins with its length."""
    start = next(at for at, byte in enumerate(value) if not byte & 0x80) + 1
    try:
        found = entries(value[start:]) or {}
    except ParquetError:
        found = {}
    names = [_KNOWN.get(uuid) or extension_name(uuid) for uuid in found]
    known = [name for name in names if name is not None]
    return f"extension: {', '.join(known)}" if known else "extension"
