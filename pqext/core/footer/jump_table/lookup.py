"""Look up structures of a footer with its jump table. Only blocks that contain these structures are read.

A few blocks of a 100 MB footer are read, and each is verified with a CRC in the table. If the table does not match the
footer, a ``DamagedIndexWarning`` is issued and the footer is read completely. The footer is also read completely if a
large part of it is accessed.
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from isal.isal_zlib import crc32

from pqext.core.base.errors import CorruptFileError, ParquetError, warn_about_file
from pqext.core.base.limits import Limits
from pqext.core.footer.jump_table.jump_table import (
    GROUP_BYTES,
    NAME_BYTES,
    PLACE_BYTES,
    TOP_BYTES,
    Root,
)
from pqext.core.footer.structure_lookup import WINDOW, ColumnWindows, IndexedStructs, build_list, peek
from pqext.core.format.metadata import ColumnChunk, ColumnOrder, FileMetaData, RowGroup, SchemaElement
from pqext.core.format.thrift import Struct, decode, field, struct_list_header
from pqext.core.io.source import Source

_logger = logging.getLogger(__name__)

_SHARE = 4
"""Reciprocal of the share of the footer above which the rest is read too."""
_CANDIDATES = 16
"""Maximum number of columns checked for one name hash. If more match, the footer is read completely."""
_EMPTY_LIST = b"\x0c"
_T = TypeVar("_T", bound=Struct)


class TableBlocks:
    """Blocks of a footer and of the jump table's sections. The footer is at ``offset``; the sections begin ``sections``
    bytes later.

    Fetched blocks are verified with the checksums ``crcs`` and cached. ``spent`` counts their bytes.
    """

    def __init__(self, source: Source, offset: int, sections: int, root: Root, crcs: Sequence[int]) -> None:
        self.spent = 0
        self._source, self._root, self._crcs = source, root, crcs
        self._starts = offset, offset + sections
        self._blocks: dict[int, Any] = {}

    def load_blocks(self, spans: Iterable[tuple[int, int]], *, in_sections: bool = False) -> dict[int, Any]:
        """Fetch the blocks that contain ``spans`` of the footer, or of the table's sections; return all cached blocks.

        Raises ``CorruptFileError`` if a span is out of range or does not match its checksums.
        """
        size, first_block = self._root.block_bytes, self._root.thrift_blocks if in_sections else 0
        end = self._root.section_bytes if in_sections else self._root.thrift_bytes
        blocks = self._blocks  # another thread may replace it
        missing: set[int] = set()
        for start, stop in spans:
            if not 0 <= start <= stop <= end:
                raise CorruptFileError("the jump table refers to bytes outside the footer")
            if start < stop:
                missing.update(range(start // size, (stop - 1) // size + 1))
        requested = sorted([block for block in missing if first_block + block not in blocks])
        if not requested:
            return blocks
        base = self._starts[in_sections]
        ranges = [(base + block * size, min(size, end - block * size)) for block in requested]
        for block, data in zip(requested, self._source.read_many(ranges, is_metadata=True), strict=True):
            piece = data.data
            if crc32(piece) != self._crcs[first_block + block]:
                raise CorruptFileError("the footer does not match the checksums of its jump table")
            blocks[first_block + block] = piece
            self.spent += len(piece)
        return blocks

    def span(self, start: int, stop: int, *, in_sections: bool = False) -> bytes:
        """Return verified bytes of the footer, or of the table's sections, from ``start`` to ``stop``."""
        size, first_block = self._root.block_bytes, self._root.thrift_blocks if in_sections else 0
        first, last = start // size, (stop - 1) // size
        blocks = self._blocks
        if not 0 <= start < stop or first_block + first not in blocks or first != last:
            blocks = self.load_blocks([(start, stop)], in_sections=in_sections)
            if start == stop:
                return b""
        if first == last:
            return bytes(blocks[first_block + first][start - first * size : stop - first * size])
        joined = b"".join([blocks[first_block + block] for block in range(first, last + 1)])
        return joined[start - first * size : stop - first * size]

    def numbers(self, position: int, count: int) -> list[int]:
        """Return ``count`` 32-bit numbers from offset ``position`` in the sections."""
        result: list[int] = np.frombuffer(self.span(position, position + 4 * count, in_sections=True), "<u4").tolist()
        return result

    def clear(self) -> None:
        """Remove all blocks from the cache."""
        self._blocks = {}


class _Groups(Struct):
    items: Sequence[RowGroup] = field(1, [RowGroup], lazy=True)


class Lookup(ColumnWindows):
    """Look-up of structures in a footer of ``length`` bytes at ``offset``, with its jump table or from the complete
    footer.
    """

    def __init__(
        self, source: Source, offset: int, length: int, root: Root, crcs: Sequence[int], sections: int, limits: Limits
    ) -> None:
        super().__init__(limits, source.path)
        self.source, self.offset, self.length, self.root = source, offset, length, root
        self.row_groups = root.row_groups
        self._blocks = TableBlocks(source, offset, sections, root, crcs)
        self._groups: dict[int, tuple[Sequence[RowGroup], list[tuple[int, int]]]] = {}
        self._lock = threading.Lock()
        self._read: tuple[FileMetaData, Any] | None = None

    # The complete footer.

    @property
    def is_whole(self) -> bool:
        """Whether the complete footer was read, or enough blocks that reading it is cheaper."""
        return self._read is not None or self._blocks.spent * _SHARE > self.length

    def load_metadata(self) -> FileMetaData:
        """Return the complete footer, which is read without the table."""
        return self._read_all()[0]

    def load_bytes(self) -> Any:
        """Return all bytes of the footer."""
        return self._read_all()[1]

    def _read_all(self) -> tuple[FileMetaData, Any]:
        with self._lock:
            if self._read is None:
                _logger.debug("reading all %d bytes of the footer of %s without its jump table", self.length, self.path)
                raw = self.source.read(self.offset, self.length, is_metadata=True)
                result, _ = decode(FileMetaData, raw, limits=self.limits, base=self.offset, path=self.source.path)
                self._read = result, raw
                self._columns, self._groups = {}, {}
                self._blocks.clear()
            return self._read

    def resolve(self, find: Callable[[], _T], fallback: Callable[[FileMetaData], _T]) -> _T:
        """Return the result of ``find``, which uses the jump table, or the result of ``fallback`` for the complete
        footer.

        ``fallback`` is used if the footer is or should be read completely and, with a warning, if ``find`` fails.
        """
        if not self.is_whole:
            try:
                return find()
            except ParquetError as error:
                if self._read is None:
                    whole = self.load_metadata()
                    warn_about_jump_table(self.source.path, error)
                    return fallback(whole)
        return fallback(self.load_metadata())

    # The structures.

    def metadata(self) -> FileMetaData:
        """Return the footer. Structures in long lists are looked up with the table."""
        root = self.root
        cuts = [(root.schema_header, root.schema_end), (root.groups_header, root.groups_end)]
        if root.order_bytes:
            cuts.append((root.orders_header, root.orders_end))
        starts, stops = [0, *(stop for _, stop in cuts)], [*(start for start, _ in cuts), root.thrift_bytes]
        spans = list(zip(starts, stops, strict=True))
        counted = ((root.schema_header, root.schema_start, root.elements),
                   (root.groups_header, root.groups_start, root.row_groups))
        self._blocks.load_blocks([*spans, *[element[:2] for element in counted]])
        kept = _EMPTY_LIST.join([self._blocks.span(*span) for span in spans])
        result, end = decode(FileMetaData, kept + b"\x00", limits=self.limits, base=self.offset, path=self.source.path)
        if end != len(kept) + 1 or len(result.schema) or len(result.row_groups) or not all(
            self._begins_list(*item) for item in counted
        ):
            raise CorruptFileError("the jump table does not match the footer")
        self._blocks.spent = 0
        result.schema = IndexedStructs(self, root.elements, None, lambda whole: whole.schema)
        result.row_groups = IndexedStructs(self, root.row_groups, self._group, lambda whole: whole.row_groups)
        if root.order_bytes:
            result.column_orders = IndexedStructs(
                self, root.columns, self._order, lambda whole: whole.column_orders or ()
            )
        return result

    def _begins_list(self, start: int, stop: int, count: int) -> bool:
        """Return whether the bytes from ``start`` to ``stop`` are the header of a list of ``count`` structures."""
        expected = struct_list_header(count)
        return stop - start == len(expected) and self._blocks.span(start, stop) == expected

    def _window(self, first: int) -> tuple[Sequence[RowGroup], list[tuple[int, int]]]:
        """Return adjacent row groups from position ``first`` without column chunks, and the byte range of each chunk
        list.
        """
        groups = self._groups  # another thread may replace it
        result = groups.get(first)
        if result is None:
            result = groups[first] = self._window_of_groups(first, min(first + WINDOW, self.root.row_groups))
        return result

    def _group(self, position: int) -> RowGroup:
        first = position - position % WINDOW
        result = peek(self._window(first)[0], position - first)
        if len(result.columns):
            raise CorruptFileError("the jump table does not match a row group")
        result.columns = IndexedStructs(
            self,
            self.root.columns,
            lambda column: self._chunk(column, position),
            lambda whole: whole.row_groups[position].columns, lambda column: self.locate_chunk(column, position),
        )
        return result

    def _window_of_groups(self, first: int, stop: int) -> tuple[Sequence[RowGroup], list[tuple[int, int]]]:
        root = self.root
        count = stop - first
        at = root.row_groups_offset + first * GROUP_BYTES
        last = root.chunk_offsets_offset + (root.columns * root.row_groups + first) * PLACE_BYTES
        self._blocks.load_blocks([(at, at + count * GROUP_BYTES), (last, last + count * PLACE_BYTES)], in_sections=True)
        heads, ends = self._blocks.numbers(at, 3 * count), self._blocks.numbers(last, count)
        spans = [((heads[3 * i], heads[3 * i + 1]), (ends[i], heads[3 * i + 2])) for i in range(count)]
        self._blocks.load_blocks(span for pair in spans for span in pair)
        parts = [self._blocks.span(*before) + _EMPTY_LIST + self._blocks.span(*behind) for before, behind in spans]
        groups = build_list(_Groups, len(parts), parts, self.limits, self.path).items
        return groups, [(before[1], behind[0]) for before, behind in spans]

    def _chunks(self, column: int, first: int, stop: int) -> Sequence[ColumnChunk]:
        """Return the chunks of one column in several row groups. They are fetched together."""
        groups = self.root.row_groups
        at = self.root.chunk_offsets_offset + (column * groups + first) * PLACE_BYTES
        if groups <= WINDOW:  # the offsets of the next column follow immediately
            places = self._blocks.numbers(at, 2 * groups)
        else:
            places = self._blocks.numbers(at, stop - first)
            places += self._blocks.numbers(at + groups * PLACE_BYTES, stop - first)
        spans = list(zip(places[: stop - first], places[stop - first :], strict=True))
        for (start, end), (least, most) in zip(spans, self._window(first)[1], strict=True):
            if not least < start < end <= most:
                raise CorruptFileError("the jump table refers to a chunk of another row group")
        self._blocks.load_blocks(spans)
        return self._build_chunks(len(spans), [self._blocks.span(*span) for span in spans])

    def _order(self, column: int) -> ColumnOrder:
        at = self.root.orders_start + column * self.root.order_bytes
        return decode(ColumnOrder, self._blocks.span(at, at + self.root.order_bytes), limits=self.limits)[0]

    # The schema.

    def schema_root(self) -> SchemaElement:
        """Return the first element of the schema."""
        data = self._blocks.span(self.root.schema_start, self.top_column(0)[0])
        return decode(SchemaElement, data, limits=self.limits, path=self.source.path)[0]

    def top_column(self, position: int) -> list[int]:
        """Return the footer offset, schema element and first leaf of a top-level column, and then of the next column.
        """
        start = self.root.top_columns_offset + position * TOP_BYTES
        return self._blocks.numbers(start, 3 if position == self.root.tops else 6)

    def column_elements(self, position: int) -> list[SchemaElement]:
        """Return the schema elements of a top-level column, beginning with its own element."""
        place, element, _, stop, last, _ = self.top_column(position)
        data, at = self._blocks.span(place, stop), 0
        results = []
        while at < len(data):
            item, at = decode(SchemaElement, data, at, limits=self.limits, base=self.offset, path=self.source.path)
            results.append(item)
        if len(results) != last - element or not results:
            raise CorruptFileError("the jump table does not match the schema")
        return results

    def ancestor_of_leaf(self, leaf: int) -> int:
        """Return the position of the top-level column that contains the leaf, or is the leaf."""
        if self.root.tops == self.root.columns:
            return leaf
        return bisect_left(range(self.root.tops + 1), leaf + 1, key=lambda at: self.top_column(at)[2]) - 1

    def find_columns(self, name: bytes) -> list[int] | None:
        """Return the positions of top-level columns whose name hash matches ``name``, in order.

        Return None if more than ``_CANDIDATES`` columns match.
        """
        requested, count = crc32(name), self.root.tops

        # Hashes are distributed evenly, so the position can be estimated.
        near, around = (requested * count) >> 32, 2 * int(count**0.5) + _CANDIDATES
        low, high = max(near - around, 0), min(near + around, count)
        hashes = self._blocks.numbers(low * NAME_BYTES, 2 * (high - low))
        if (low and hashes[0] >= requested) or (high < count and hashes[-2] <= requested):
            low, hashes = 0, self._blocks.numbers(0, 2 * count)
        at = bisect_left(hashes[::2], requested)
        results: list[int] = []
        while 2 * at < len(hashes) and hashes[2 * at] == requested:
            results.append(hashes[2 * at + 1])
            at += 1
        if max(results, default=0) >= count:
            raise CorruptFileError("the jump table refers to a column that does not exist")
        return results if len(results) <= _CANDIDATES else None


def warn_about_jump_table(path: str | None, error: ParquetError) -> None:
    """Warn that a jump table is ignored because of ``error``."""
    from pqext.core.indexes.reading import DamagedIndexWarning

    warn_about_file(path, f"ignored the footer's jump table: {error}", DamagedIndexWarning)
