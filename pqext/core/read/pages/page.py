"""Split the bytes of a column chunk into pages, and pages into levels and encoded values.

Implements data pages (order of levels and values), checksums, and both versions of the data page header. Version 1
compresses levels and values together, and prefixes the levels with their length. Version 2 does not compress the
levels, and has their lengths in the header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from isal import isal_zlib

from pqext.core.base.buffers import EMPTY, Bytes, view
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.encryption.modules import LENGTH_BYTES, Module, module_length
from pqext.core.encryption.reading import ChunkDecryptor
from pqext.core.format import compression
from pqext.core.format.encodings import bit_packed, rle
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, PageHeader, PageType
from pqext.core.format.thrift import decode
from pqext.core.io.source import Span
from pqext.core.kernels.decode import hybrid_runs
from pqext.core.kernels.encodings.page_run import PageRun

Decompressor = Callable[[int, Sequence[Bytes], Sequence[int]], list[Bytes]]
"""Function like :func:`pqext.core.format.compression.decompress_all`."""
_V1, _V2 = PageType.DATA_PAGE, PageType.DATA_PAGE_V2
_WIDEST = 32
"""Maximum bit width of a dictionary index."""


@dataclass(slots=True)
class RawPage:
    """Stored page: its header, its bytes and its offset in the file.

    ``num_values`` is the number of entries of a data page, including nulls, or of values of a dictionary page. In an
    encrypted column ``decryptor`` decrypts the body, and ``ordinal`` is the index of the data page. ``indexed_rows`` is
    the number of rows according to the offset index, if it was read.
    """

    header: PageHeader
    num_values: int
    body: Bytes
    offset: int
    decryptor: ChunkDecryptor | None = None
    ordinal: int | None = None
    indexed_rows: int | None = None

    @property
    def layout(self) -> tuple[int, ...]:
        """Properties shared by data pages that are opened together: page type, and encodings of values and levels."""
        if self.header.type == _V2:
            second = self.header.data_page_header_v2
            assert second is not None  # see raw_pages
            return _V2, second.encoding
        first = self.header.data_page_header
        assert first is not None
        return _V1, first.encoding, first.repetition_level_encoding, first.definition_level_encoding

    @property
    def num_rows(self) -> int | None:
        """Number of rows of a data page; None if its header does not contain the number."""
        header = self.header.data_page_header_v2
        return None if header is None else header.num_rows

    @property
    def num_nulls(self) -> int | None:
        """Number of entries without a value; None if the header does not contain the number."""
        header = self.header.data_page_header_v2
        return None if header is None else header.num_nulls

    def plaintext(self) -> Bytes:
        """Return the decrypted body. Raises ``EncryptionError`` if it is not authentic."""
        if self.decryptor is None:
            return self.body
        if self.ordinal is None:
            return self.decryptor.decrypt(Module.DICTIONARY_PAGE, self.body)
        clear, sealed = EMPTY, self.body
        header = self.header.data_page_header_v2
        if header is not None and int.from_bytes(sealed[:4].tobytes(), "little") != len(sealed) - 4:
            # parquet-java encrypts only the values of a page of version 2. The preceding levels are plaintext.
            levels = header.repetition_levels_byte_length + header.definition_levels_byte_length
            clear, sealed = sealed[: max(levels, 0)], sealed[max(levels, 0) :]
        opened = self.decryptor.decrypt(Module.DATA_PAGE, sealed, self.ordinal)
        return np.concatenate([clear, opened]) if len(clear) else opened


@dataclass(slots=True)
class OpenedPages:
    """Consecutive data pages, split into encoded levels (without length prefixes) and values in one encoding.

    ``repetition`` and ``definition`` are None if the column has no levels of this type. The counts of each run are
    numbers of entries. The counts of ``values`` become numbers of values when the levels are decoded.
    """

    encoding: int
    repetition: PageRun | None
    definition: PageRun | None
    values: PageRun


_HEADER_BYTES = 1 << 12
"""Number of bytes that are first fetched for a page header. Up to the maximum size is fetched for a longer header."""


def raw_pages(
    chunk: Span, limits: Limits, decryptor: ChunkDecryptor | None = None, *, has_dictionary: bool = False,
    ordinal: int = 0, entries: int | None = None,
) -> Iterator[RawPage]:
    """Yield the pages of a column chunk, including pages of unknown types.

    The type of an encrypted page follows from its position: with ``has_dictionary`` the first page is the dictionary,
    and the others are data pages numbered from ``ordinal``. If ``entries`` is not None, iteration ends with the page
    that contains the last of these entries, and the remaining bytes of ``chunk`` are not read. Errors contain the
    ``offset`` in the file.
    """
    at = base = 0
    held = EMPTY  # bytes in memory, which begin at ``base``
    number = None if has_dictionary else ordinal
    while at < chunk.size and (entries is None or entries > 0):
        if decryptor is None:
            if base + len(held) < at + _HEADER_BYTES:
                held, base = chunk.peek(at, _HEADER_BYTES), at
            header, length = _read_header(chunk, at, limits, held, at - base)
        else:
            header, length = _decrypt_header(chunk, at, limits, decryptor, number)
        start = at + length
        stored, size = header.compressed_page_size, header.uncompressed_page_size
        if stored < 0 or size < 0 or stored > chunk.size - start:
            raise CorruptFileError(
                f"a page of {stored} bytes extends beyond its column chunk, where {chunk.size - start} bytes remain",
                offset=chunk.offset + at,
            )
        if size > limits.page_bytes:
            message = f"a page of {size} bytes exceeds page_bytes={limits.page_bytes}"
            raise LimitError(
                f"{message}; raise the limit with limits=Limits(page_bytes=...)", offset=chunk.offset + at
            )
        count = _entry_count(header)
        if count is None:
            raise CorruptFileError("a data page has no data page header", offset=chunk.offset + at)
        if count < 0:
            raise CorruptFileError(f"a page declares a negative value count: {count}", offset=chunk.offset + at)
        body = held[start - base : start - base + stored]
        if len(body) < stored:
            held, base, body = EMPTY, 0, chunk.read(start, stored)
        yield RawPage(header, count, body, chunk.offset + at, decryptor, number)
        at = start + stored
        if entries is not None and header.type in (_V1, _V2):
            entries -= count
        number = ordinal if number is None else number + 1


def _entry_count(header: PageHeader) -> int | None:
    """Return the number of values that a page header declares; None if a data page has no header for its page type."""
    if header.type == _V1:
        return None if header.data_page_header is None else header.data_page_header.num_values
    if header.type == _V2:
        return None if header.data_page_header_v2 is None else header.data_page_header_v2.num_values
    dictionary = header.dictionary_page_header if header.type == PageType.DICTIONARY_PAGE else None
    return 0 if dictionary is None else dictionary.num_values


def _read_header(chunk: Span, offset: int, limits: Limits, body: Bytes, header_start: int) -> tuple[PageHeader, int]:
    """Return the page header at ``offset`` and its length. In ``body``, bytes of the chunk, the header starts at
    ``header_start``. It may extend beyond these bytes.
    """
    try:
        header, end = decode(PageHeader, body, header_start, limits)
    except (CorruptFileError, LimitError):
        pass  # the header may extend beyond these bytes
    else:
        length, maximum = end - header_start, limits.page_header_bytes
        if length > maximum:
            remedy = "raise the limit with limits=Limits(page_header_bytes=...)"
            message = f"a page header of {length} bytes exceeds page_header_bytes={maximum}; {remedy}"
            raise LimitError(message, offset=chunk.offset + offset)
        return header, length
    try:
        return decode(PageHeader, chunk.read(offset, min(limits.page_header_bytes, chunk.size - offset)), 0, limits)
    except (CorruptFileError, LimitError) as error:
        error.offset = chunk.offset + offset + (error.offset or 0)
        raise


def _decrypt_header(
    chunk: Span, offset: int, limits: Limits, decryptor: ChunkDecryptor, ordinal: int | None
) -> tuple[PageHeader, int]:
    """Decrypt the page header at ``offset``. Return the header and its encrypted length.

    ``ordinal`` is None for the dictionary page.
    """
    left = chunk.size - offset
    try:
        length = module_length(chunk.read(offset, min(LENGTH_BYTES, left)), left, limits.page_header_bytes)
        module = Module.DICTIONARY_PAGE_HEADER if ordinal is None else Module.DATA_PAGE_HEADER
        plaintext = decryptor.decrypt(module, chunk.read(offset, length), ordinal)
        return decode(PageHeader, plaintext, 0, limits)[0], length
    except ParquetError as error:
        error.offset = chunk.offset + offset
        raise


def verify_checksum(page: RawPage) -> None:
    """Raise ``CorruptFileError`` if the stored bytes do not match the CRC-32 in the header.

    Authenticated pages and pages without a CRC-32 are not checked.
    """
    crc = page.header.crc
    if page.decryptor is not None and page.decryptor.authenticate_pages:
        return
    if crc is not None and isal_zlib.crc32(page.body) != crc & 0xFFFFFFFF:
        raise CorruptFileError("a page's bytes do not match its checksum; the file is damaged", offset=page.offset)


def check_levels(page: RawPage, max_repetition: int, max_definition: int) -> None:
    """Raise ``CorruptFileError`` if the levels of a V2 data page do not have the length that the page header declares.

    Levels are stored uncompressed and no checksum covers the header, so a wrong length would turn levels into values.
    Pages without values are accepted.
    """
    header = page.header.data_page_header_v2
    if page.header.type != _V2 or header is None or not page.num_values:
        return
    body, at = page.plaintext(), 0
    for length, highest in (
        (header.repetition_levels_byte_length, max_repetition), (header.definition_levels_byte_length, max_definition)
    ):
        levels = body[at : at + max(length, 0)]
        is_exact = hybrid_runs.has_exact_length(levels, highest.bit_length(), page.num_values)
        is_full = is_exact or not (highest or len(levels))
        if not highest and len(levels) and header.encoding in DICTIONARY_ENCODINGS and levels[0] <= _WIDEST:
            is_full = False  # the byte may also be the bit width of the indices
        if length != len(levels) or not is_full:
            raise CorruptFileError("the length of the levels does not match the page header", offset=page.offset)
        at += length


def open_dictionary(page: RawPage, codec: int) -> tuple[int, Bytes]:
    """Return the number of values of a dictionary page and its PLAIN bytes."""
    header = page.header.dictionary_page_header
    if header is None:
        raise CorruptFileError("a dictionary page has no dictionary page header", offset=page.offset)
    if header.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
        raise CorruptFileError(f"unsupported encoding {int(header.encoding)} of a dictionary page", offset=page.offset)
    return header.num_values, compression.decompress(codec, page.plaintext(), page.header.uncompressed_page_size)


def open_data(
    pages: Sequence[RawPage], codec: int, *, max_repetition: int, max_definition: int,
    decompress: Decompressor = compression.decompress_all,
) -> OpenedPages:
    """Decompress data pages that share a layout with ``decompress``, and split them into levels and values."""
    kind, encoding, *level_encodings = pages[0].layout
    repetition: PageRun | None = None
    definition: PageRun | None = None
    if kind == _V2:
        repetition, definition, values = _open_v2(pages, codec, decompress)
    else:
        bodies = [page.plaintext() for page in pages]
        sizes = [page.header.uncompressed_page_size for page in pages]
        values = PageRun(decompress(codec, bodies, sizes), [page.num_values for page in pages])
        if max_repetition:
            repetition, values = _split_levels(values, level_encodings[0], max_repetition)
        if max_definition:
            definition, values = _split_levels(values, level_encodings[1], max_definition)
    return OpenedPages(encoding, repetition if max_repetition else None, definition if max_definition else None, values)


def _split_levels(pages: PageRun, encoding: int, max_level: int) -> tuple[PageRun, PageRun]:
    """Split pages into levels, as RLE without a length prefix, and the remaining bytes."""
    if encoding == Encoding.RLE:
        return pages.split()
    if encoding != Encoding.BIT_PACKED:
        raise UnsupportedError(f"encoding {encoding!r} of levels is not supported", feature="level encoding")
    # The rare BIT_PACKED levels are converted to RLE here, so that no other code handles them.
    levels, rest = [], []
    for body, count in zip(pages.pages, pages.counts, strict=True):
        levels.append(view(rle.encode_levels(bit_packed.decode_levels(body, count, max_level), max_level)))
        rest.append(body[bit_packed.size(count, max_level) :])
    return PageRun(levels, pages.counts), PageRun(rest, pages.counts)


def _open_v2(
    pages: Sequence[RawPage], codec: int, decompress: Decompressor
) -> tuple[PageRun, PageRun, PageRun]:
    """Split V2 data pages into repetition levels, definition levels and values."""
    repetition, definition, values, sizes = [], [], [], []
    for page in pages:
        header = page.header.data_page_header_v2
        assert header is not None
        body = page.plaintext()
        first, second = header.repetition_levels_byte_length, header.definition_levels_byte_length
        size = page.header.uncompressed_page_size - first - second
        if first < 0 or second < 0 or first + second > len(body) or size < 0:
            raise CorruptFileError("levels extend beyond their page", offset=page.offset)
        repetition.append(body[:first])
        definition.append(body[first : first + second])
        values.append(body[first + second :])
        sizes.append(-1 if header.is_compressed is False or not (len(values[-1]) or size) else size)
    packed = [index for index, size in enumerate(sizes) if size >= 0]
    opened = decompress(codec, [values[index] for index in packed], [sizes[index] for index in packed])
    for index, body in zip(packed, opened, strict=True):
        values[index] = body
    counts = [page.num_values for page in pages]
    return PageRun(repetition, counts), PageRun(definition, counts), PageRun(values, counts)
