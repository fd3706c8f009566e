"""Pages found by their headers alone, one after another, and again behind damage.

A page is followed by the next one, so a header that stands where a page ends confirms that page. Where none does, the
bytes are searched for what looks like a header: by a pattern of its first fields, then by what it says, then by its
checksum or by the header that follows it.
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
from pqext.recovery.fragments.footers import WINDOW, Effort

_HEADER = 16 << 10
"""Bytes in which a page header must end: writers cut the bounds in it."""
_SHORT = 256
"""Bytes that hold most page headers."""
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
_LOOK = 40
"""Bytes that the pattern takes at most."""
_PASSED_COST = 256
"""Bytes that are parsed in the time in which something that is no page is passed over."""
_RESUMED_COST = 1 << 12
"""Bytes that are parsed in the time that pages behind damage take, however few they are."""
_PAGE_MEMORY = 1 << 10
"""Bytes of memory that a page takes until it is in a row group."""
_INDEX_COST = 1 << 12
"""Bytes that count as parsed where what begins as an index is none."""
_DATA, _DICTIONARY, _DATA_V2 = int(PageType.DATA_PAGE), int(PageType.DICTIONARY_PAGE), int(PageType.DATA_PAGE_V2)
_LEVELS = (int(Encoding.RLE), int(Encoding.BIT_PACKED))
_PLAIN = (int(Encoding.PLAIN), int(Encoding.PLAIN_DICTIONARY))
_ENCODINGS = frozenset(int(one) for one in Encoding)


@dataclass(slots=True, eq=False)
class Page:
    """A page at ``offset``: its header of ``head`` bytes, and ``count`` entries or values of its dictionary.

    ``checked`` is whether its checksum fits, ``None`` where it has none. ``confirmed``: it is known to end where its
    header says.
    """

    offset: int
    head: int
    header: PageHeader
    count: int
    encoding: int
    checked: bool | None
    confirmed: bool = False

    @property
    def stored(self) -> int:
        """Bytes of the body."""
        return self.header.compressed_page_size

    @property
    def unpacked(self) -> int:
        """Bytes of the body before compression."""
        return self.header.uncompressed_page_size

    @property
    def end(self) -> int:
        """Where the page ends."""
        return self.offset + self.head + self.stored

    @property
    def is_dictionary(self) -> bool:
        """Is it a dictionary?"""
        return self.header.dictionary_page_header is not None


@dataclass(slots=True)
class Segment:
    """Pages without anything between them. ``at_start``: nothing is missing before them, ``at_end``: nor behind."""

    pages: list[Page] = field(default_factory=list)
    at_start: bool = False
    at_end: bool = False

    @property
    def start(self) -> int:
        """Where its first page begins."""
        return self.pages[0].offset

    @property
    def stop(self) -> int:
        """Where its last page ends."""
        return self.pages[-1].end


def chain(source: Source, start: int, stop: int, limits: Limits) -> list[Page] | None:
    """The pages that fill these bytes, where a footer says that pages are; ``None`` where others do, or none."""
    walk, found = _Walk(source, stop, limits, is_told=True), list[Page]()
    while start < stop:
        page = walk.page(start)
        if page is None:
            return None
        found.append(page)
        start = page.end
    return found


def page_at(source: Source, at: int, limits: Limits) -> Page | None:
    """The page whose header is at ``at``, where a footer says that one is, its checksum aside, if there is one."""
    if not 0 <= at < source.size:
        return None
    return _Walk(source, source.size, limits, is_told=True).page(at, check=False)


def walk(source: Source, start: int, stop: int, limits: Limits) -> list[Segment]:
    """The pages between two places of the file; data is taken to begin at ``start``."""
    if stop <= start:
        return []
    segments = list(_Walk(source, stop, limits).segments(start))
    for segment, following in pairwise(segments):
        if segment.stop > following.start:  # bytes are missing from its last page
            segment.pages.pop()
    return [segment for segment in segments if segment.pages]


class _Walk:
    """``is_told``: a footer says where pages are, so that their headers are believed although they count wrongly."""

    def __init__(self, source: Source, stop: int, limits: Limits, *, is_told: bool = False) -> None:
        self._is_told = is_told
        self._source = source
        self._stop = stop
        self._limits = limits
        self._effort = Effort(stop)
        self._window = 0, 0, EMPTY
        self._pages = limits.memory_for(stop) // _PAGE_MEMORY
        """How many more pages may be held."""

    def segments(self, start: int) -> Iterator[Segment]:
        at, found = start, True
        while found:
            segment = Segment(at_start=at == start and self._is_beginning(start))
            page = self.page(at)
            if page is None:
                other = self._past_other(at)
                if other is not None and other != at and self._effort.take(_PASSED_COST):
                    at = other
                    continue
            while page is not None and self._pages > 0:
                self._pages -= 1
                following = self.page(page.end)
                page.confirmed = page.checked is True or following is not None or self._is_end(page.end)
                segment.pages.append(page)
                at = page.end
                if following is None and (behind := self._past_other(at)) is not None:
                    following = self.page(behind)  # behind a Bloom filter, or a footer to which rows were appended
                page = following
            if segment.pages:
                segment.at_end = self._past_other(segment.stop) is not None
                yield segment
                if self._pages <= 0:
                    return
                last = segment.pages[-1]
                at = last.end if last.confirmed else last.offset + last.head
            found = False
            if not self._effort.take(_RESUMED_COST):
                return
            for place in self._candidates(at + (not segment.pages)):
                if self._is_believable(place):
                    at, found = place, True
                    break

    def _is_beginning(self, at: int) -> bool:
        """Do the pages of a file begin here, or is it some place behind others?"""
        return at > len(MAGIC) or (at == len(MAGIC) and self._source.read(0, at).tobytes() == MAGIC)

    def page(self, at: int, *, check: bool = True) -> Page | None:
        """The page whose header is at ``at``, if what it says can be."""
        if at >= self._stop:
            return None
        length = min(_HEADER, self._stop - at)
        begun = self._source.read(at, min(length, _SHORT))
        if length < 8 or begun[:2].tobytes() not in _KINDS:
            return None
        try:
            header, end = decode(PageHeader, begun, 0, self._limits)
        except ParquetError:
            if length <= _SHORT or not self._effort.take(length):
                return None
            try:
                header, end = decode(PageHeader, self._source.read(at, length), 0, self._limits)
            except ParquetError:
                return None
        known = _content(header, is_told=self._is_told)
        stored, unpacked = header.compressed_page_size, header.uncompressed_page_size
        if known is None or not 0 <= stored <= self._stop - at - end or not 0 <= unpacked <= self._limits.page_bytes:
            return None
        if unpacked > 64 + 65536 * (stored + 1):
            return None
        checked = None
        if header.crc is not None and check:
            if not self._effort.take(stored // 4):
                return None
            body = self._source.read(at + end, stored)
            checked = isal_zlib.crc32(body) == header.crc & 0xFFFFFFFF
        return Page(at, end, header, known[0], known[1], checked)

    def _candidates(self, at: int) -> Iterator[int]:
        """Where something looks like a page header, from ``at`` on."""
        while at < self._stop and self._effort.left > 0:
            start, stop, data = self._window
            if not start <= at < stop:  # one window serves all that is looked for in it
                start, stop = at, min(at + WINDOW, self._stop)
                data = self._source.read(start, min(stop + _LOOK, self._stop) - start)
                self._window = start, stop, data
            for match in _LOOKS_LIKE.finditer(data.data, at - start):
                if start + match.start() >= stop:
                    break
                if not self._effort.take(_LOOK):
                    return
                yield start + match.start()
            at = stop

    def _is_believable(self, at: int) -> bool:
        """Does a page begin here? Its checksum fits, or what is behind it is a page or the end of the data."""
        page = self.page(at)
        return page is not None and (page.checked is True or self.page(page.end) is not None or self._is_end(page.end))

    def _is_end(self, at: int) -> bool:
        """Do the pages end here? The bytes do, or an index, a Bloom filter or a footer begins."""
        return at == self._stop or self._past_other(at) is not None

    def _past_other(self, at: int) -> int | None:
        """Where what begins here ends, if it is an index, a Bloom filter or the footer."""
        left = self._stop - at
        if left < 2:
            return None
        head = self._source.read(at, min(left, 16)).tobytes()
        if head.startswith(MAGIC):
            return at + len(MAGIC)
        data = self._source.read(at, min(left, 1 << 16))
        try:
            if head.startswith(b"\x15") and head[2:3] == b"\x1c":
                header, end = decode(BloomFilterHeader, data, 0, self._limits)
                is_filter = header.numBytes % 32 == 0 and 0 < header.numBytes <= left - end
                return at + end + header.numBytes if is_filter else None
            if head.startswith(b"\x15") and head[2:3] == b"\x19":
                decode(SchemaElement, data, 4 if data[3] >> 4 != 15 else 5 + int(data[4] >= 128), self._limits)
                return self._stop
        except (ParquetError, IndexError):
            return None
        if head.startswith(b"\x19"):
            for kind in (OffsetIndex, ColumnIndex):
                for size in {len(data), min(left, self._limits.page_index_bytes)}:
                    if size != len(data) and not self._effort.take(size):
                        return None
                    try:
                        return at + decode(kind, self._source.read(at, size), 0, self._limits)[1]
                    except ParquetError:
                        self._effort.take(_INDEX_COST)
        return None


def _content(header: PageHeader, *, is_told: bool) -> tuple[int, int] | None:
    """(entries, encoding) of a page whose header makes sense, ``None`` for others."""
    kind = header.type
    if kind == _DATA and header.data_page_header is not None:
        first = header.data_page_header
        levels = first.definition_level_encoding in _LEVELS and first.repetition_level_encoding in _LEVELS
        fits = levels and first.encoding in _ENCODINGS and first.num_values >= 0
        return (first.num_values, int(first.encoding)) if fits else None
    if kind == _DICTIONARY and header.dictionary_page_header is not None:
        values = header.dictionary_page_header
        fits = values.encoding in _PLAIN and values.num_values >= 0
        return (values.num_values, int(values.encoding)) if fits else None
    if kind == _DATA_V2 and header.data_page_header_v2 is not None:
        second = header.data_page_header_v2
        lengths = second.definition_levels_byte_length, second.repetition_levels_byte_length
        fits = second.encoding in _ENCODINGS and min(*lengths, second.num_values) >= 0
        fits = fits and sum(lengths) <= min(header.compressed_page_size, header.uncompressed_page_size)
        counts = -1 <= second.num_nulls <= second.num_values and 0 <= second.num_rows <= second.num_values
        fits = fits and (is_told or counts)
        return (second.num_values, int(second.encoding)) if fits else None
    return None
