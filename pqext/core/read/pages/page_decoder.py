"""Decode a column chunk page by page, if a page table cannot decode it (for example, because it is encrypted).

The decoder continues where :class:`pqext.core.read.pages.table_decoder.TableDecoder` raises ``FallbackRequired``, and
reports the location of each fault.
"""

from __future__ import annotations

from functools import partial

from pqext.core.base.errors import CorruptFileError, MemoryLimitError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Account
from pqext.core.encryption.reading import ChunkDecryptor
from pqext.core.format import compression
from pqext.core.format.encodings import plain
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.encodings.table import decoder
from pqext.core.format.metadata import ColumnMetaData, Encoding, PageType
from pqext.core.read.leaf_column import LeafColumn, LeafColumnBuilder
from pqext.core.read.pages import page
from pqext.core.read.pages.page import OpenedPages, RawPage
from pqext.core.read.pages.page_groups import LONG_PAGE, check_rows, iter_groups, scratch_bytes, split_page
from pqext.core.read.pages.page_selection import PageSelection
from pqext.core.schema.shape import LeafShape

_DATA_PAGES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})


class PageDecoder:
    """Decoder of the ``pages`` of a chunk, one run at a time. Memory is charged to ``account``."""

    def __init__(
        self, shape: LeafShape, metadata: ColumnMetaData, pages: PageSelection, limits: Limits, account: Account, *,
        checksums: bool, decryptor: ChunkDecryptor | None = None,
    ) -> None:
        self.decoded_rows = 0
        self.entries_left = metadata.num_values
        self.dictionary_bytes = 0
        self._shape = shape
        self._type = shape.node.leaf_type
        self._metadata = metadata
        self._place = pages
        self._complete = pages.complete
        self._rows = sum(map(len, pages.rows))
        self._checksums = checksums
        self._account = account
        self._decompress = account.time_decompression(compression.decompress_all)
        self._dictionary: Dictionary | None = None
        has_dictionary = metadata.dictionary_page_offset is not None
        self._pages_again = partial(pages.iter_pages, limits, decryptor, has_dictionary=has_dictionary)
        # A generator with a reference to the decoder would keep the decoder's bytes alive until garbage collection.
        self._raw_pages = self._pages_again()
        self._is_first = True
        self._unread: RawPage | None = None

    def skip(self, pages: int, rows: int) -> None:
        """Skip the first ``pages`` data pages, with ``rows`` rows, because another decoder has read them."""
        for _ in range(pages):
            self._next_page()
        self.decoded_rows = rows

    @property
    def has_more(self) -> bool:
        """Whether any entries remain."""
        return self._unread is not None or (self._complete and self.entries_left > 0)

    def skip_page(self, rows: int) -> int | None:
        """Skip the next page without decoding it if it has at most ``rows`` rows. Return its row count.

        Return None if the page has more rows, or at the end of the chunk.
        """
        raw = self._next_page()
        if raw is None or raw.num_values > rows:
            self._unread = raw
            return None
        self.decoded_rows += raw.num_values
        return raw.num_values

    def decode_next(self, entries: int, *, required_entries: int | None = None) -> LeafColumn | None:
        """Decode the pages that contain the next ``entries`` entries. Return None at the end of the chunk.

        Raises ``ExpansionError`` if the pages expand to far more than the ``required_entries`` entries among them.
        """
        run: list[RawPage] = []
        self._gather(run, entries)
        return self._decode_run(run, required_entries) if run else None

    def _gather(self, run: list[RawPage], entries: int) -> None:
        """Append the pages that contain the next ``entries`` entries to ``run``."""
        while entries > 0 and (raw := self._next_page()) is not None:
            if raw.num_values > 2 * LONG_PAGE and raw.num_values > 2 * entries:
                raw = self._split_page(raw, max(entries, LONG_PAGE))
            run.append(raw)
            entries -= raw.num_values

    def _split_page(self, raw: RawPage, entries: int) -> RawPage:
        """Return the first ``entries`` entries of the page; the complete page if it cannot be split.

        The rest becomes the next page.
        """
        levels = self._shape.node.max_repetition_level, self._shape.node.max_definition_level
        parts = split_page(raw, entries, self._metadata.codec, levels)
        if parts is not None:
            self._verify(raw)
            raw, self._unread = parts
        return raw

    def _decode_run(self, run: list[RawPage], required_entries: int | None = None) -> LeafColumn:
        column = self._decode(run, required_entries)
        self.decoded_rows += column.rows
        return column

    def _next_page(self) -> RawPage | None:
        """Return the next data page, or None at the end of the chunk.

        Read the dictionary page, and skip other page types.
        """
        if self._unread is not None:
            unread, self._unread = self._unread, None
            return unread
        for raw in self._raw_pages:
            is_first, self._is_first = self._is_first, False
            if raw.header.type in _DATA_PAGES:
                self.entries_left -= raw.num_values
                if self.entries_left < 0:
                    raise CorruptFileError("pages have more values than the column chunk declares", offset=raw.offset)
                return raw
            if raw.header.type == PageType.DICTIONARY_PAGE and raw.header.dictionary_page_header is not None:
                if not is_first:
                    raise CorruptFileError("a dictionary page follows another page of its chunk", offset=raw.offset)
                self._read_dictionary(raw)
            elif raw.header.data_page_header is not None or raw.header.data_page_header_v2 is not None:
                # If it were skipped like an unknown type, the following rows would shift.
                type = int(raw.header.type)
                raise CorruptFileError(f"a page with a data page header declares page type {type}", offset=raw.offset)
        if self.entries_left and self._complete:
            raise CorruptFileError(f"{self.entries_left} values of the column chunk are missing from its pages")
        return None

    def _read_dictionary(self, raw: RawPage) -> None:
        try:
            self._verify(raw)
            before = self._account.held
            self._account.reserve(raw.header.uncompressed_page_size)
            count, values = page.open_dictionary(raw, self._metadata.codec)
            self._dictionary = plain.read_dictionary(
                values, count, self._type.physical, self._type.width, self._account
            )
            self._account.release(raw.header.uncompressed_page_size)
            self.dictionary_bytes = self._account.held - before
        except CorruptFileError as error:
            error.locate(offset=raw.offset)
            raise

    def _trusts_header(self, raw: RawPage) -> bool:
        """Return whether to trust a header whose row count contradicts the levels."""
        return False

    def _verify(self, raw: RawPage) -> None:
        if self._checksums:
            page.verify_checksum(raw)

    def _decode(self, run: list[RawPage], required_entries: int | None) -> LeafColumn:
        before = self._account.held
        try:
            column = self._decode_groups(run, required_entries)
        except MemoryLimitError as error:
            error.is_final = len(run) == 1
            raise
        except ParquetError:
            self._account.resize(before)
            raise
        check_rows(run, column.repetition, trusts_header=self._trusts_header)
        self._account.count_pages(len(run))
        return column

    def _decode_groups(self, run: list[RawPage], required_entries: int | None) -> LeafColumn:
        entries = sum(raw.num_values for raw in run)
        builder = LeafColumnBuilder(self._shape, entries, self._account, required_entries=required_entries)
        first = self.decoded_rows == 0
        for group in iter_groups(run):
            scratch = scratch_bytes(group, self._type.width)
            try:
                self._account.reserve(scratch)
                builder.append(self._open(group), self._dictionary, first=first)
                self._account.release(scratch)
            except MemoryLimitError:
                raise
            except ParquetError as error:
                raise (self._first_fault(group, error, first=first) if error.offset is None else error) from None
            first = first and not any(raw.num_values for raw in group)
        return builder.finish()

    def _open(self, group: list[RawPage]) -> OpenedPages:
        node = self._shape.node
        for raw in group:
            self._verify(raw)
        _, encoding, *level_encodings = group[0].layout
        self._check_encoding(encoding)
        for highest, used in zip((node.max_repetition_level, node.max_definition_level), level_encodings, strict=False):
            self._check_level_encoding(highest, used)
        return page.open_data(
            group, self._metadata.codec,
            max_repetition=node.max_repetition_level, max_definition=node.max_definition_level,
            decompress=self._decompress,
        )

    def _first_fault(self, group: list[RawPage], error: ParquetError, *, first: bool) -> ParquetError:
        """Return the error of the first corrupt page among pages that could not be decoded together.

        Return ``error``, which decoding them together raised, if each page can be decoded alone.
        """
        for raw in group:
            builder = LeafColumnBuilder(self._shape, raw.num_values, self._account)
            try:
                builder.append(self._open([raw]), self._dictionary, first=first)
            except ParquetError as fault:
                fault.locate(offset=raw.offset)
                return fault
            first = first and not raw.num_values
        return error

    def _check_encoding(self, encoding: int) -> None:
        """Raise ``CorruptFileError`` for an unknown encoding that the chunk does not list.

        An unknown encoding that the chunk lists may be new to this reader.
        """
        if decoder(encoding) is None and encoding not in self._metadata.encodings:
            raise CorruptFileError(f"a page declares encoding {encoding}, which its column chunk does not list")

    def _check_level_encoding(self, max_level: int, encoding: int) -> None:
        """Raise ``CorruptFileError`` for an encoding that the format does not allow for levels.

        Unknown encodings that the chunk lists are accepted.
        """
        if not max_level or encoding in (Encoding.RLE, Encoding.BIT_PACKED):
            return
        if decoder(encoding) is not None or encoding not in self._metadata.encodings:
            raise CorruptFileError(f"a page declares encoding {encoding}, which is invalid for levels")


def locate_error(error: ParquetError, pages: PageSelection, shape: LeafShape) -> ParquetError:
    """Add the path, column and offset of the chunk to ``error``, unless they are already set. Return ``error``."""
    error.locate(path=pages.path, column=shape.node.dotted_path, offset=pages.offset)
    return error
