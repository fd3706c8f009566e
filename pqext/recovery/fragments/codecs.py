"""In which codec pages are: no page header says it, so codecs are tried."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import ParquetError
from pqext.core.format import compression
from pqext.core.format.metadata import CompressionCodec
from pqext.core.io.source import Source
from pqext.core.read.pages.page import RawPage
from pqext.recovery.fragments.pages import Page

CODECS = tuple(
    int(CompressionCodec[name]) for name in ("ZSTD", "GZIP", "SNAPPY", "LZ4_RAW", "BROTLI", "LZ4", "UNCOMPRESSED")
)
"""The order in which codecs are tried. Those whose pages tell what they are come first; any bytes are uncompressed."""
_SAMPLE = 3


class Codecs:
    """Finds the codec of pages by trying each of ``tried``, that which was found last first.

    What was found of the first pages of a chunk is kept.
    """

    def __init__(self, source: Source, tried: Sequence[int] = CODECS) -> None:
        self._source = source
        self._tried = list(tried)
        self._known: dict[tuple[int, ...], int | None] = {}

    def of(self, pages: Sequence[Page], likely: int | None = None) -> int | None:
        """The codec of a chunk by its first pages; ``None`` where none opens them."""
        tried = self._tried if likely is None else [likely, *(one for one in self._tried if one != likely)]
        sample = [page for page in pages if _is_compressed(page) and page.checked is not False][:_SAMPLE]
        if not sample:
            return int(CompressionCodec.UNCOMPRESSED) if not any(map(_is_compressed, pages)) else tried[0]
        key = (-1 if likely is None else likely, *(page.offset for page in sample))
        if key not in self._known:
            found = self._known[key] = self._of(sample, tried)
            if found in self._tried and found != CompressionCodec.UNCOMPRESSED:
                self._tried.remove(found)
                self._tried.insert(0, found)
        return self._known[key]

    def _of(self, sample: Sequence[Page], tried: Sequence[int]) -> int | None:
        bodies = [_compressed(raw(self._source, page)) for page in sample]
        most: tuple[int, list[bool]] = 0, []
        found = None
        for codec in tried:
            opens = [_opens(codec, body, size) for body, size in bodies]
            if all(opens):
                return codec
            if (sum(opens), opens) > most:  # some may be damaged: of as many, those that come first count
                most, found = (sum(opens), opens), codec
        return found if most[0] else None


def raw(source: Source, page: Page) -> RawPage:
    """The page with its bytes."""
    body = source.read(page.offset + page.head, page.stored)
    return RawPage(page.header, page.count, body, page.offset)


def _is_compressed(page: Page) -> bool:
    second = page.header.data_page_header_v2
    return page.stored > 0 and not (second is not None and second.is_compressed is False)


def _compressed(raw: RawPage) -> tuple[Bytes, int]:
    """The part of a page that is compressed, and its size before."""
    second = raw.header.data_page_header_v2
    levels = 0 if second is None else second.repetition_levels_byte_length + second.definition_levels_byte_length
    return raw.body[levels:], raw.header.uncompressed_page_size - levels


def _opens(codec: int, body: Bytes, size: int) -> bool:
    if not len(body) and not size:
        return True
    try:
        compression.decompress(codec, body, size)
    except (ParquetError, ValueError):
        return False
    return True
