"""Find pages by their headers, one after another, and resume after damage.

A page is confirmed if another page header follows it. Otherwise the bytes are searched for header candidates: by a
pattern of the first fields, then by plausible values, then by the checksum or the header that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from isal import isal_zlib

from pqext.core.base.buffers import EMPTY
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.thrift_footer import MAGIC
from pqext.core.format.metadata import (
    BloomFilterHeader,
    ColumnIndex,
    Encoding,
    OffsetIndex,
    PageHeader,
    PageType,
    SchemaElement,
)
from pqext.core.format.thrift import decode
from pqext.core.io.source import Source
from pqext.recovery.detection.footers import WINDOW, Effort

_HEADER = 16 << 10
"""Maximum length of a page header. Writers truncate the bounds in it."""
_SHORT = 256
"""Number of bytes that suffices for most page headers."""
_KINDS = (b"\x15\x00", b"\x15\x04", b"\x15\x06")
_VARINT = rb"[\x80-\xff]{0,4}[\x00-\x7f]"
_LOOKS_LIKE = re.compile(
    rb"\x15[\x00\x04\x06]\x15"
    + _VARINT
    + rb"\x15"
    + _VARINT
    + rb"(?:\x15"
    + _VARINT
    + rb"[\x1c\x3c\x4c]|[\x2c\x4c\x5c])\x15",
    re.DOTALL,
)
_HEADER_PREFIX = 40
"""Maximum bytes that the pattern matches."""
_SKIP_COST = 256
"""Cost of skipping a structure that is not a page, in parsed bytes."""
_RESUME_COST = 1 << 12
"""Minimum cost of resuming after damage, in parsed bytes."""
_PAGE_MEMORY = 1 << 10
"""Memory that a page uses until it is assigned to a row group, in bytes."""
_INDEX_COST = 1 << 12
"""Cost of a false index, in parsed bytes."""
_DATA, _DICTIONARY, _DATA_V2 = int(PageType.DATA_PAGE), int(PageType.DICTIONARY_PAGE), int(PageType.DATA_PAGE_V2)
_LEVELS = (int(Encoding.RLE), int(Encoding.BIT_PACKED))
_PLAIN = (int(Encoding.PLAIN), int(Encoding.PLAIN_DICTIONARY))
_ENCODINGS = frozenset(int(encoding) for encoding in Encoding)


@dataclass(slots=True, eq=False)
class Page:
    """Page at ``offset`` with a header of ``head`` bytes.

    ``count`` is the number of entries or dictionary values. ``checked`` is whether the checksum matches, or None if
    there is no checksum or it was not compared. ``confirmed`` means that the end of the page is confirmed by the
    checksum or by the following bytes.
    """

    offset: int
    head: int
    header: PageHeader
    count: int
    encoding: int
    checked: bool | None
    confirmed: bool = False

    @property
    def body_bytes(self) -> int:
        """Size of the body in bytes."""
        return self.header.compressed_page_size

    @property
    def uncompressed_bytes(self) -> int:
        """Size of the body before compression, in bytes."""
        return self.header.uncompressed_page_size

    @property
    def end(self) -> int:
        """End offset of the page."""
        return self.offset + self.head + self.body_bytes

    @property
    def is_dictionary(self) -> bool:
        """Whether the page is a dictionary page."""
        return self.header.dictionary_page_header is not None


@dataclass(slots=True)
class Segment:
    """Sequence of consecutive pages.

    ``at_start`` means that no pages are missing before the segment, and ``at_end`` that none are missing after it.
    """

    pages: list[Page] = field(default_factory=list)
    at_start: bool = False
    at_end: bool = False

    @property
    def start(self) -> int:
        """Offset of the first page."""
        return self.pages[0].offset

    @property
    def stop(self) -> int:
        """End offset of the last page."""
        return self.pages[-1].end


def chunk_pages(source: Source, start: int, stop: int, limits: Limits) -> list[Page] | None:
    """Return the pages of a chunk that a footer lists. None if pages do not fill its byte range."""
    scanner, pages = _PageScanner(source, stop, limits, in_footer=True), list[Page]()
    while start < stop:
        page = scanner.page(start)
        if page is None:
            return None
        pages.append(page)
        start = page.end
    return pages


def page_at(source: Source, offset: int, limits: Limits) -> Page | None:
    """Return the page at ``offset``, an offset from a footer, without comparing checksums.

    Returns None if there is no page.
    """
    if not 0 <= offset < source.size:
        return None
    return _PageScanner(source, source.size, limits, in_footer=True).page(offset, check=False)


def find_segments(source: Source, start: int, stop: int, limits: Limits) -> list[Segment]:
    """Find the segments of pages in a byte range. ``start`` must be a possible start of pages."""
    if stop <= start:
        return []
    segments = list(_PageScanner(source, stop, limits).segments(start))
    for segment, following in pairwise(segments):
        if segment.stop > following.start:  # bytes are missing from its last page
            segment.pages.pop()
    return [segment for segment in segments if segment.pages]


class _PageScanner:
    """Scanner that finds pages by their headers.

    ``in_footer`` means that the offsets are from a footer, so implausible counts are accepted.
    """

    def __init__(self, source: Source, stop: int, limits: Limits, *, in_footer: bool = False) -> None:
        self._in_footer = in_footer
        self._source = source
        self._stop = stop
        self._limits = limits
        self._effort = Effort(stop)
        self._window = 0, 0, EMPTY
        self._max_pages = limits.max_memory_bytes(stop) // _PAGE_MEMORY
        """Number of pages that can still be stored in memory."""

    def segments(self, start: int) -> Iterator[Segment]:
        """Yield the segments of pages from offset ``start`` on."""
        at, is_found = start, True
        while is_found:
            segment = Segment(at_start=at == start and self._is_data_start(start))
            page = self.page(at)
            if page is None:
                after = self._end_of_structure(at)
                if after is not None and after != at and self._effort.spend(_SKIP_COST):
                    at = after
                    continue
            while page is not None and self._max_pages > 0:
                self._max_pages -= 1
                following = self.page(page.end)
                page.confirmed = page.checked is True or following is not None or self._is_end(page.end)
                segment.pages.append(page)
                at = page.end
                if following is None and (after := self._end_of_structure(at)) is not None:
                    following = self.page(after)  # after a Bloom filter, or a footer to which rows were appended
                page = following
            if segment.pages:
                segment.at_end = self._end_of_structure(segment.stop) is not None
                yield segment
                if self._max_pages <= 0:
                    return
                last = segment.pages[-1]
                at = last.end if last.confirmed else last.offset + last.head
            is_found = False
            if not self._effort.spend(_RESUME_COST):
                return
            for candidate in self._iter_candidates(at + (not segment.pages)):
                if self._is_confirmed(candidate):
                    at, is_found = candidate, True
                    break

    def _is_data_start(self, offset: int) -> bool:
        """Return whether ``offset`` is the start of the file's data, or follows a structure that pages can follow."""
        return offset > len(MAGIC) or (offset == len(MAGIC) and self._source.read(0, offset).tobytes() == MAGIC)

    def page(self, offset: int, *, check: bool = True) -> Page | None:
        """Return the page at ``offset``.

        None if its header is implausible, or if no effort remains to read the page.
        """
        if offset >= self._stop:
            return None
        length = min(_HEADER, self._stop - offset)
        prefix = self._source.read(offset, min(length, _SHORT))
        if length < 8 or prefix[:2].tobytes() not in _KINDS:
            return None
        try:
            header, end = decode(PageHeader, prefix, 0, self._limits)
        except ParquetError:
            if length <= _SHORT or not self._effort.spend(length):
                return None
            try:
                header, end = decode(PageHeader, self._source.read(offset, length), 0, self._limits)
            except ParquetError:
                return None
        content = _entries_and_encoding(header, in_footer=self._in_footer)
        stored, unpacked = header.compressed_page_size, header.uncompressed_page_size
        if content is None or not 0 <= stored <= self._stop - offset - end:
            return None
        if not 0 <= unpacked <= self._limits.page_bytes:
            return None
        if unpacked > 64 + 65536 * (stored + 1):
            return None
        checked = None
        if header.crc is not None and check:
            if not self._effort.spend(stored // 4):
                return None
            body = self._source.read(offset + end, stored)
            checked = isal_zlib.crc32(body) == header.crc & 0xFFFFFFFF
        return Page(offset, end, header, content[0], content[1], checked)

    def _iter_candidates(self, offset: int) -> Iterator[int]:
        """Yield the offsets, from ``offset`` on, of bytes that look like page headers."""
        while offset < self._stop and self._effort.remaining > 0:
            start, stop, data = self._window
            if not start <= offset < stop:  # one window serves all searches within it
                start, stop = offset, min(offset + WINDOW, self._stop)
                data = self._source.read(start, min(stop + _HEADER_PREFIX, self._stop) - start)
                self._window = start, stop, data
            for match in _LOOKS_LIKE.finditer(data.data, offset - start):
                if start + match.start() >= stop:
                    break
                if not self._effort.spend(_HEADER_PREFIX):
                    return
                yield start + match.start()
            offset = stop

    def _is_confirmed(self, offset: int) -> bool:
        """Return whether a page at ``offset`` is confirmed by its checksum, the next page, or the end of the data."""
        page = self.page(offset)
        return page is not None and (page.checked is True or self.page(page.end) is not None or self._is_end(page.end))

    def _is_end(self, offset: int) -> bool:
        """Return whether the pages end at ``offset``: the bytes end, or an index, a Bloom filter or a footer starts."""
        return offset == self._stop or self._end_of_structure(offset) is not None

    def _end_of_structure(self, offset: int) -> int | None:
        """Return the end of the index, Bloom filter or footer that starts at ``offset``; None for other bytes."""
        remaining = self._stop - offset
        if remaining < 2:
            return None
        head = self._source.read(offset, min(remaining, 16)).tobytes()
        if head.startswith(MAGIC):
            return offset + len(MAGIC)
        data = self._source.read(offset, min(remaining, 1 << 16))
        try:
            if head.startswith(b"\x15") and head[2:3] == b"\x1c":
                header, end = decode(BloomFilterHeader, data, 0, self._limits)
                is_filter = header.numBytes % 32 == 0 and 0 < header.numBytes <= remaining - end
                return offset + end + header.numBytes if is_filter else None
            if head.startswith(b"\x15") and head[2:3] == b"\x19":
                decode(SchemaElement, data, 4 if data[3] >> 4 != 15 else 5 + int(data[4] >= 128), self._limits)
                return self._stop
        except (ParquetError, IndexError):
            return None
        if head.startswith(b"\x19"):
            for structure in (OffsetIndex, ColumnIndex):
                for size in {len(data), min(remaining, self._limits.page_index_bytes)}:
                    if size != len(data) and not self._effort.spend(size):
                        return None
                    try:
                        return offset + decode(structure, self._source.read(offset, size), 0, self._limits)[1]
                    except ParquetError:
                        self._effort.spend(_INDEX_COST)
        return None


def _entries_and_encoding(header: PageHeader, *, in_footer: bool) -> tuple[int, int] | None:
    """Return the number of entries and the encoding of a page; None if its header is implausible."""
    type = header.type
    if type == _DATA and header.data_page_header is not None:
        first = header.data_page_header
        levels = first.definition_level_encoding in _LEVELS and first.repetition_level_encoding in _LEVELS
        fits = levels and first.encoding in _ENCODINGS and first.num_values >= 0
        return (first.num_values, int(first.encoding)) if fits else None
    if type == _DICTIONARY and header.dictionary_page_header is not None:
        values = header.dictionary_page_header
        fits = values.encoding in _PLAIN and values.num_values >= 0
        return (values.num_values, int(values.encoding)) if fits else None
    if type == _DATA_V2 and header.data_page_header_v2 is not None:
        second = header.data_page_header_v2
        lengths = second.definition_levels_byte_length, second.repetition_levels_byte_length
        fits = second.encoding in _ENCODINGS and min(*lengths, second.num_values) >= 0
        fits = fits and sum(lengths) <= min(header.compressed_page_size, header.uncompressed_page_size)
        counts = -1 <= second.num_nulls <= second.num_values and 0 <= second.num_rows <= second.num_values
        fits = fits and (in_footer or counts)
        return (second.num_values, int(second.encoding)) if fits else None
    return None
