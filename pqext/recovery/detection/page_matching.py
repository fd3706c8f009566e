"""Match pages with leaves: determine whether a page can belong to a leaf, and count the rows of the page.

The number of values in a page must match its levels, because readers ignore remaining bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from pqext.core.base.buffers import Bytes, allocate
from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Account, Budget
from pqext.core.format.encodings import plain, rle
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import ColumnMetaData, Encoding, FieldRepetitionType, Type
from pqext.core.format.thrift import read_uleb
from pqext.core.io.source import Source
from pqext.core.kernels.decode import hybrid_runs
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.kernels.encodings.page_run import PageRun
from pqext.core.read.leaf_column import LeafColumnBuilder
from pqext.core.read.pages.page import OpenedPages, open_data, open_dictionary
from pqext.core.schema import shape
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.shape import LeafShape
from pqext.core.write.encoding_choice import SUITABLE
from pqext.recovery.detection.codecs import CodecDetector, read_raw_page
from pqext.recovery.detection.pages import Page

_GROUP = 7
"""Maximum number of values that pad the last group of bit-packed values."""
_DELTAS = (Encoding.DELTA_BINARY_PACKED, Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY)
_PLAIN, _SPLIT = int(Encoding.PLAIN), int(Encoding.BYTE_STREAM_SPLIT)


def can_belong(leaf: SchemaNode, page: Page, *, has_dictionary: bool) -> bool:
    """Return whether ``page`` can belong to a chunk of ``leaf``, judging by the page header."""
    type, count = leaf.leaf_type.physical, page.count
    width = None if type == Type.BOOLEAN else leaf.leaf_type.width
    if page.is_dictionary:
        if type == Type.BOOLEAN:
            return False
        return page.uncompressed_bytes == count * width if width else page.uncompressed_bytes >= 4 * count
    if page.encoding in DICTIONARY_ENCODINGS:
        if not has_dictionary:
            return False
    elif page.encoding != _PLAIN and type not in SUITABLE.get(page.encoding, ()):
        return False
    is_fixed = page.encoding in (_PLAIN, _SPLIT) and (width or type == Type.BOOLEAN)

    def size_of(values: int) -> int:
        return values * width if width else (values + 7) // 8

    second = page.header.data_page_header_v2
    if second is None:
        levels = (leaf.max_repetition_level > 0) + (leaf.max_definition_level > 0)
        if page.uncompressed_bytes < 4 * levels * (count > 0):
            return False
        if not is_fixed:
            return True
        if not levels:
            return page.uncompressed_bytes == size_of(count)
        # RLE levels take a few bytes per entry at most, bit-packed levels less.
        return page.uncompressed_bytes <= size_of(count) + levels * (16 + 3 * count)
    repetition, definition = second.repetition_levels_byte_length, second.definition_levels_byte_length
    if (leaf.max_repetition_level == 0 and (repetition or second.num_rows != count)) or (
        leaf.max_definition_level == 0 and (definition or second.num_nulls > 0)
    ):
        return False
    if count and ((leaf.max_repetition_level and not repetition) or (leaf.max_definition_level and not definition)):
        return False
    values = page.uncompressed_bytes - repetition - definition
    if not is_fixed or leaf.max_repetition_level:
        return True
    if second.num_nulls < 0:  # parquet-java does not count nulls if it writes no statistics
        return values <= size_of(count) and (not width or values % width == 0)
    return values == size_of(count - second.num_nulls)


class PageMatcher:
    """Matcher that decodes pages as values of the leaves of a schema. Results are cached.

    ``types`` contains a number for each leaf, which is equal for leaves that accept the same pages.
    """

    def __init__(
        self, source: Source, schema: Schema, codecs: CodecDetector, leaf_codecs: Sequence[int | None], limits: Limits
    ) -> None:
        self._shapes = [leaf for top in schema.root.children for leaf in shape.from_node(top).leaves()]
        self._source = source
        self._limits = limits
        self._trailing_bytes: dict[tuple[int, int], int | None] = {}
        self._codecs = codecs
        self._leaf_codecs = leaf_codecs
        numbers: dict[Hashable, int] = {}
        self.types = [
            numbers.setdefault((type_key(leaf), likely), number)
            for number, (leaf, likely) in enumerate(zip(self._shapes, leaf_codecs, strict=True))
        ]
        self._rows: dict[tuple[int, int, int], tuple[int, bool] | None] = {}

    def detect_codec(self, leaf: int, pages: Sequence[Page]) -> int | None:
        """Return the codec of the pages of a chunk of ``leaf``, or None if no codec can decompress the first pages."""
        return self._codecs.detect(pages, self._leaf_codecs[leaf])

    def count_rows(self, leaf: SchemaNode, page: Page) -> tuple[int, bool] | None:
        """Return the number of rows that start in ``page``, and whether the first entry of the page starts a row.

        Returns None if the page cannot be opened.
        """
        if page.is_dictionary:
            return 0, True
        if not leaf.max_repetition_level:
            return page.count, True
        second = page.header.data_page_header_v2
        if second is not None:
            return second.num_rows, True
        key = (page.offset, leaf.max_repetition_level, leaf.max_definition_level)
        if key not in self._rows:
            self._rows[key] = self._count_rows(leaf, page)
        return self._rows[key]

    def fits(self, leaf: SchemaNode, page: Page) -> bool:
        """Return whether ``page`` contains only values that ``leaf`` can have, and no trailing bytes.

        True for pages of dictionary indices and for damaged pages.
        """
        return self.count_trailing_bytes(leaf, page) == 0

    def count_trailing_bytes(self, leaf: SchemaNode, page: Page) -> int | None:
        """Decode ``page`` as values of ``leaf``, and count the bytes after them. Returns None if decoding fails.

        Returns 0 for dictionary indices, for damaged pages, and for decodable pages with other encodings than PLAIN.
        """
        if is_type_unknown(page):
            return 0
        key = (page.offset, self.types[leaf.leaf_start])
        if key not in self._trailing_bytes:
            measure = self._count_trailing_in_dictionary if page.is_dictionary else self._count_trailing_in_data
            self._trailing_bytes[key] = measure(leaf, page)
        return self._trailing_bytes[key]

    def _count_trailing_in_dictionary(self, leaf: SchemaNode, page: Page) -> int | None:
        codec = self.detect_codec(leaf.leaf_start, [page])
        if codec is None:
            return None
        try:
            count, stored = open_dictionary(read_raw_page(self._source, page), codec)
            return self._count_trailing_bytes(stored, count, leaf)
        except (ParquetError, ValueError):
            return None

    def _count_trailing_bytes(self, values: Bytes, count: int, leaf: SchemaNode) -> int:
        """Return the number of bytes after ``count`` PLAIN values of ``leaf``."""
        type = leaf.leaf_type
        return plain.count_trailing_bytes(
            values, count, type.physical, type.width, Account(Budget(self._limits, len(values)))
        )

    def _count_trailing_in_data(self, leaf: SchemaNode, page: Page) -> int | None:
        codec = self.detect_codec(leaf.leaf_start, [page])
        if codec is None:
            return None
        highest = leaf.max_definition_level
        try:
            opened = open_data(
                [read_raw_page(self._source, page)], codec, max_repetition=leaf.max_repetition_level,
                max_definition=highest,
            )
            account = Account(Budget(self._limits, self._source.size))
            builder = LeafColumnBuilder(self._shapes[leaf.leaf_start], page.count, account)
            builder.append(opened, None, first=not leaf.max_repetition_level)
            column = builder.finish()
            values = len(column.array) - column.array.null_count
            if column.definition is not None:
                values = int((column.definition == highest).sum())
            return 0 if page.encoding != _PLAIN else self._count_trailing_bytes(opened.values.pages[0], values, leaf)
        except (ParquetError, ValueError):
            return None

    def fits_exactly(self, leaf: SchemaNode, page: Page, path: Sequence[SchemaNode]) -> bool:
        """Return whether the values, the levels and the value count of ``page`` can belong to ``leaf``.

        ``path`` contains the nodes from the top-level column to the leaf. True for damaged pages.
        """
        if page.checked is False:
            return True
        if not self.fits(leaf, page):
            return False
        if page.is_dictionary:
            return True
        codec = self.detect_codec(leaf.leaf_start, [page])
        if codec is None or page.count > 64 * 8 * (page.uncompressed_bytes + 8):
            return False
        highest = leaf.max_repetition_level, leaf.max_definition_level
        try:
            raw = read_raw_page(self._source, page)
            opened = open_data([raw], codec, max_repetition=highest[0], max_definition=highest[1])
            return can_match_levels(opened, page.count, path, leaf.leaf_type.width)
        except (ParquetError, ValueError):
            return False

    def definition_levels(self, leaf: SchemaNode, pages: Sequence[Page]) -> np.ndarray:
        """Return the definition levels of the data pages in ``pages``, which must be readable."""
        highest = leaf.max_repetition_level, leaf.max_definition_level
        levels = np.zeros(sum(page.count for page in pages if not page.is_dictionary), np.int16)
        codec, at = self.detect_codec(leaf.leaf_start, pages), 0
        for page in pages:
            if codec is None or page.is_dictionary or not highest[1]:
                continue
            raw = read_raw_page(self._source, page)
            opened = open_data([raw], codec, max_repetition=highest[0], max_definition=highest[1])
            assert opened.definition is not None
            rle.decode_levels(opened.definition, highest[1], levels[at : at + page.count])
            at += page.count
        return levels

    def _count_rows(self, leaf: SchemaNode, page: Page) -> tuple[int, bool] | None:
        codec = self.detect_codec(leaf.leaf_start, [page])
        if codec is None or page.checked is False or page.count > 64 * 8 * (page.uncompressed_bytes + 8):
            return None
        try:
            opened = open_data(
                [read_raw_page(self._source, page)],
                codec,
                max_repetition=leaf.max_repetition_level,
                max_definition=leaf.max_definition_level,
            )
            assert opened.repetition is not None
            levels = allocate(page.count * 2).view("int16")
            rle.decode_levels(opened.repetition, leaf.max_repetition_level, levels)
        except (ParquetError, ValueError):
            return None
        return level_kernel.count_rows(levels), not len(levels) or levels[0] == 0


def is_type_unknown(page: Page) -> bool:
    """Return whether the type of a page's values is unknown: the page is damaged or contains dictionary indices."""
    return page.checked is False or (not page.is_dictionary and page.encoding in DICTIONARY_ENCODINGS)


def type_key(leaf: LeafShape) -> Hashable:
    """Return a key that is equal for leaves that accept the same pages."""
    stored, node = leaf.node.leaf_type, leaf.node
    logical = repr(stored.logical)
    levels = leaf.slot_level, leaf.value_level, node.max_definition_level, node.max_repetition_level
    return stored.physical, stored.length, logical, levels


def chunk_metadata(leaf: SchemaNode, codec: int, pages: Sequence[Page]) -> ColumnMetaData:
    """Build the metadata of a chunk with ``pages``. A dictionary page must be the first."""
    data = [page for page in pages if not page.is_dictionary]
    has_dictionary = pages[0].is_dictionary
    encodings = {page.encoding for page in data} | {int(Encoding.RLE)} | ({_PLAIN} if has_dictionary else set())
    return ColumnMetaData(
        type=leaf.leaf_type.physical,
        encodings=sorted(encodings),
        path_in_schema=list(leaf.path),
        codec=codec,
        num_values=sum(page.count for page in data),
        total_uncompressed_size=sum(page.head + page.uncompressed_bytes for page in pages),
        total_compressed_size=pages[-1].end - pages[0].offset,
        data_page_offset=(data[0] if data else pages[0]).offset,
        dictionary_page_offset=pages[0].offset if has_dictionary else None,
    )


def can_match_levels(pages: OpenedPages, count: int, path: Sequence[SchemaNode], width: int | None) -> bool:
    """Return whether the levels of a page with ``count`` entries can belong to the leaf at the end of ``path``.

    The number of values, of ``width`` bytes each, must equal the number of entries with a value.
    """
    leaf = path[-1]
    definition = _decode_levels(pages.definition, leaf.max_definition_level, count)
    repetition = _decode_levels(pages.repetition, leaf.max_repetition_level, count)
    if definition is None or repetition is None:
        return False
    repeated = [node.max_definition_level for node in path if node.repetition is FieldRepetitionType.REPEATED]
    for level, least in enumerate(repeated, 1):
        # A continued list has an element.
        if (definition[repetition == level] < least).any():
            return False
    values = int((definition == leaf.max_definition_level).sum())
    return _has_value_count(int(pages.encoding), pages.values.pages[0], values, width)


def _has_value_count(encoding: int, data: Bytes, count: int, width: int | None) -> bool:
    """Return whether ``data`` encodes exactly ``count`` values. True if the encoding does not determine the number."""
    if encoding in DICTIONARY_ENCODINGS:
        return _has_index_count(data, count)
    if encoding == Encoding.RLE:
        return len(data) >= 4 and hybrid_runs.has_exact_length(data[4:], 1, count, _GROUP)
    if encoding in _DELTAS:
        if not len(data):
            return not count
        at, numbers = 0, []
        raw = data[:40].tobytes()
        for _ in range(3):  # block size, miniblocks, value count
            number, at = read_uleb(raw, at)
            numbers.append(number)
        return numbers[2] == count
    return encoding != Encoding.BYTE_STREAM_SPLIT or width is None or len(data) == count * width


def _decode_levels(run: PageRun | None, highest: int, count: int) -> np.ndarray | None:
    """Decode the levels of a page. Returns zeros if the leaf has none, and None if a level exceeds ``highest``."""
    levels = allocate(count * 2).view("int16")
    if run is None or not highest:
        levels[:] = 0
        return levels
    rle.decode_levels(run, highest, levels)
    return levels if count == 0 or int(levels.max()) <= highest else None


def _has_index_count(data: Bytes, count: int) -> bool:
    """Return whether ``data`` encodes exactly ``count`` dictionary indices."""
    if not count or not len(data):
        return len(data) <= 1 and not count
    width = int(data[0])
    if width > 32:
        return False
    return (not width and len(data) == 1) or hybrid_runs.has_exact_length(data[1:], width, count, _GROUP)
