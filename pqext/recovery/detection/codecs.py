"""Determine the codec of pages by trial, because page headers do not state it."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import ParquetError
from pqext.core.format import compression
from pqext.core.format.metadata import CompressionCodec
from pqext.core.io.source import Source
from pqext.core.read.pages.page import RawPage
from pqext.recovery.detection.pages import Page

CODECS = tuple(
    int(CompressionCodec[name]) for name in ("ZSTD", "GZIP", "SNAPPY", "LZ4_RAW", "BROTLI", "LZ4", "UNCOMPRESSED")
)
"""Codecs in the order of trial. Self-identifying codecs are first; any bytes decode as uncompressed."""
_SAMPLE = 3


class CodecDetector:
    """Detector of the codec of pages. It tries each of ``codec_numbers``, beginning with the last successful codec.

    Results are cached by the first pages of a chunk.
    """

    def __init__(self, source: Source, codec_numbers: Sequence[int] = CODECS) -> None:
        self._source = source
        self._tried = list(codec_numbers)
        self._cache: dict[tuple[int, ...], int | None] = {}

    def detect(self, pages: Sequence[Page], likely_codec: int | None = None) -> int | None:
        """Return the codec that decompresses the most of a chunk's first pages, or None if no codec decompresses any.

        ``likely_codec`` is tried first. The codec of pages without compressed bytes is UNCOMPRESSED.
        """
        tried = self._tried if likely_codec is None else [
            likely_codec, *(codec for codec in self._tried if codec != likely_codec)
        ]
        sample = [page for page in pages if _is_compressed(page) and page.checked is not False][:_SAMPLE]
        if not sample:
            return int(CompressionCodec.UNCOMPRESSED) if not any(map(_is_compressed, pages)) else tried[0]
        key = (-1 if likely_codec is None else likely_codec, *(page.offset for page in sample))
        if key not in self._cache:
            codec = self._cache[key] = self._detect(sample, tried)
            if codec in self._tried and codec != CompressionCodec.UNCOMPRESSED:
                self._tried.remove(codec)
                self._tried.insert(0, codec)
        return self._cache[key]

    def _detect(self, sample: Sequence[Page], codec_numbers: Sequence[int]) -> int | None:
        """Return the codec that decompresses the most pages of ``sample``; None if no codec decompresses any.

        Earlier pages break a tie.
        """
        bodies = [_compressed_body(read_raw_page(self._source, page)) for page in sample]
        most: tuple[int, list[bool]] = 0, []
        best = None
        for codec in codec_numbers:
            opens = [_can_decompress(codec, body, size) for body, size in bodies]
            if all(opens):
                return codec
            if (sum(opens), opens) > most:  # some pages may be damaged; earlier pages break a tie
                most, best = (sum(opens), opens), codec
        return best if most[0] else None


def read_raw_page(source: Source, page: Page) -> RawPage:
    """Read the body of a page; return it as a :class:`RawPage` with the page's header, entry count and offset."""
    body = source.read(page.offset + page.head, page.body_bytes)
    return RawPage(page.header, page.count, body, page.offset)


def _is_compressed(page: Page) -> bool:
    second = page.header.data_page_header_v2
    return page.body_bytes > 0 and not (second is not None and second.is_compressed is False)


def _compressed_body(raw: RawPage) -> tuple[Bytes, int]:
    """Return the part of a page's body that is compressed, and its uncompressed size.

    V2 pages do not compress levels.
    """
    second = raw.header.data_page_header_v2
    levels = 0 if second is None else second.repetition_levels_byte_length + second.definition_levels_byte_length
    return raw.body[levels:], raw.header.uncompressed_page_size - levels


def _can_decompress(codec: int, body: Bytes, size: int) -> bool:
    if not len(body) and not size:
        return True
    try:
        compression.decompress(codec, body, size)
    except (ParquetError, ValueError):
        return False
    return True
