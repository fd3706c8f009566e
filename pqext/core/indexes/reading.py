"""Read the page indexes and Bloom filters of a row group lazily. Adjacent indexes are fetched in one request.

Planning records the required indexes before fetching them, so that one request fetches all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any, Protocol, TypeVar

from pqext.core.base.errors import CorruptFileError, LimitError, OffsetIndexError, ParquetError, warn
from pqext.core.base.limits import Limits
from pqext.core.encryption.modules import Module
from pqext.core.encryption.reading import ChunkDecryptor, MissingKeyError
from pqext.core.format import metadata as structures
from pqext.core.format.metadata import ColumnIndex, OffsetIndex
from pqext.core.format.predicate import Bounds, Predicate, is_equality, may_contain
from pqext.core.format.thrift import Struct, decode
from pqext.core.indexes import bloom
from pqext.core.indexes.bloom import FilterCache, SplitBlockFilter, filter_bytes
from pqext.core.indexes.page_index import (
    IndexedPages,
    PageLocations,
    check_agreement,
    check_column_index,
    check_offset_index,
)
from pqext.core.io.external_files import read_many
from pqext.core.io.source import Range, Source
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import declared_order
from pqext.core.schema.statistics import is_truncatable

IndexRanges = list[tuple[Source, Range]]

_NOBODY: tuple[IndexRecorder | None, IndexRanges | None] = None, None
_local = threading.local()
"""Object that records index ranges in this thread, and the recorded ranges."""
T = TypeVar("T", bound=Struct)

_IndexType = type[ColumnIndex] | type[OffsetIndex]
_MODULES: dict[type, Module] = {ColumnIndex: Module.COLUMN_INDEX, OffsetIndex: Module.OFFSET_INDEX}


class IndexRecorder:
    """Recorder of requested indexes. While a thread records, the locations of indexes are collected, but the indexes
    are not read.
    """

    @property
    def recorded_ranges(self) -> IndexRanges | None:
        """Ranges of the indexes that this thread has requested while recording; None if the thread is not recording."""
        owner, ranges = getattr(_local, "record_requests", _NOBODY)
        return ranges if owner is self else None

    def fetch(self, source: Source, request: Callable[[], object]) -> None:
        """Fetch all indexes that ``request`` reads, in merged reads of ``source`` and the files that it refers to."""
        with self.record_requests() as ranges:
            request()
        if ranges:
            read_many(ranges, is_metadata=True)
            source.add_metadata_ranges(ranges)

    @contextmanager
    def record_requests(self) -> Iterator[IndexRanges]:
        """Record the indexes that this thread requests, instead of reading them, until the context exits."""
        ranges: IndexRanges = []
        before = getattr(_local, "record_requests", _NOBODY)
        _local.record_requests = self, ranges
        try:
            yield ranges
        finally:
            _local.record_requests = before


class DamagedIndexWarning(UserWarning):
    """Warning that a corrupt index or Bloom filter was ignored. Pruning continues without it."""


class IndexedChunk(Protocol):
    """Column chunk attributes that index reading requires (see :class:`pqext.core.read.row_group.ColumnChunk`).
    """

    @property
    def node(self) -> SchemaNode: ...
    @property
    def structure(self) -> structures.ColumnChunk: ...
    @property
    def metadata(self) -> structures.ColumnMetaData: ...
    @property
    def order(self) -> structures.ColumnOrder | None: ...
    @property
    def row_group(self) -> int: ...
    @property
    def decryptor(self) -> ChunkDecryptor | None: ...
    @property
    def byte_range(self) -> tuple[int, int]: ...
    @property
    def bloom_filter(self) -> SplitBlockFilter | None: ...
    @property
    def counts_nulls(self) -> bool: ...
    def bounds(self) -> Bounds: ...
    def source(self, file_source: Source) -> Source: ...


class IndexReader:
    """Cached reader of the indexes of one row group's chunks. Several threads can use it."""

    def __init__(
        self, source: Source, limits: Limits, num_rows: int, row_group: int, filters: FilterCache,
        recorder: IndexRecorder, strict: bool,
    ) -> None:
        self._source = source
        self._limits = limits
        self._num_rows = num_rows
        self._row_group = row_group
        self._filters = filters
        self._recorder = recorder
        self._strict = strict
        self._indexes: dict[tuple[int, _IndexType], Any] = {}
        self._raw: dict[int, Any] = {}
        self._pages: dict[int, IndexedPages | None] = {}
        self._locations: dict[int, IndexedPages | None] = {}
        self._is_ignored = False

    def column_index(self, chunk: IndexedChunk) -> ColumnIndex | None:
        """Return the chunk's column index; None if missing. Raises ``CorruptFileError`` if it is corrupt."""
        index: ColumnIndex | None = self._index(chunk, ColumnIndex)
        if index is not None:
            offsets = self.offset_index(chunk)
            with _ChunkErrorContext(chunk):
                check_column_index(index, None if offsets is None else len(offsets.page_locations), chunk.node)
        return index

    def offset_index(self, chunk: IndexedChunk) -> OffsetIndex | None:
        """Return the chunk's offset index; None if missing. Raises ``CorruptFileError`` if it is corrupt."""
        index: OffsetIndex | None = self._index(chunk, OffsetIndex)
        if index is not None:
            with _ChunkErrorContext(chunk):
                check_offset_index(index, chunk.byte_range, self._num_rows)
        return index

    def load(
        self, chunks: Iterable[IndexedChunk], index_types: Sequence[_IndexType] = (ColumnIndex, OffsetIndex)
    ) -> None:
        """Fetch the indexes of ``chunks`` whose type is in ``index_types``, except indexes that were already read.

        Adjacent indexes are fetched in one request.

        Corrupt indexes raise an error on access.
        """
        missing: list[tuple[IndexedChunk, _IndexType, tuple[int, int]]] = []
        for chunk in chunks:
            for index_type in index_types:
                leaf = chunk.node.leaf_start
                if (leaf, index_type) not in self._indexes and not (index_type is OffsetIndex and leaf in self._raw):
                    with suppress(CorruptFileError, LimitError):
                        place = self._location(chunk, index_type)
                        if place is not None:
                            missing.append((chunk, index_type, place))
        if (ranges := self._recorder.recorded_ranges) is not None:
            ranges += [(chunk.source(self._source), place) for chunk, _, place in missing]
            return
        places = [(chunk.source(self._source), place) for chunk, _, place in missing]
        data = read_many(places, is_metadata=True)
        self._source.add_metadata_ranges(places)
        for (chunk, index_type, place), raw in zip(missing, data, strict=True):
            with suppress(CorruptFileError, LimitError):
                if index_type is OffsetIndex:
                    self._raw[chunk.node.leaf_start] = raw  # decoded on access
                else:
                    self._indexes[chunk.node.leaf_start, index_type] = self._decode(chunk, index_type, raw, place[0])

    def pages(self, chunk: IndexedChunk) -> IndexedPages | None:
        """Return the chunk's pages for pruning.

        Return None if the chunk has no offset index, its key is missing, the index is only recorded or the page indexes
        are ignored. Also return None, with a warning, if an index is corrupt, unless reading is strict.
        """
        if self._is_ignored:
            return None
        leaf = chunk.node.leaf_start
        if self._recorder.recorded_ranges is not None and leaf not in self._pages:
            self.load([chunk])
            return None
        if leaf not in self._pages:
            self._pages[leaf] = self._read_pages(chunk, (ColumnIndex, OffsetIndex))
        return self._pages[leaf]

    def located_pages(self, chunk: IndexedChunk) -> IndexedPages | None:
        """Return the chunk's pages without their bounds, unless the bounds were already read.

        Return None like :meth:`pages`.
        """
        if self._is_ignored:
            return None
        leaf = chunk.node.leaf_start
        if leaf in self._pages:
            return self._pages[leaf]
        if self._recorder.recorded_ranges is not None and leaf not in self._locations:
            self.load([chunk], (OffsetIndex,))
            return None
        if leaf not in self._locations:
            self._locations[leaf] = self._read_pages(chunk, (OffsetIndex,))
        return self._locations[leaf]

    def _read_pages(self, chunk: IndexedChunk, index_types: Sequence[_IndexType]) -> IndexedPages | None:
        try:
            self.load([chunk], index_types)
            offsets = self.page_locations(chunk) or self.offset_index(chunk)
            columns = self.column_index(chunk) if ColumnIndex in index_types else None
            if offsets is None:
                return None
            order = declared_order(chunk.node.leaf_type, chunk.order)
            pages = IndexedPages(chunk.node, order, offsets, columns, self._num_rows)
            if columns is not None and not pages.covers_bytes_to(sum(chunk.byte_range)):
                return IndexedPages(chunk.node, order, offsets, None, self._num_rows)  # the other bounds are unknown
            if columns is not None:
                with _ChunkErrorContext(chunk):
                    check_agreement(pages, columns, chunk.bounds(), _are_bounds_exact(chunk))
                if not chunk.counts_nulls:
                    columns = copy(columns)
                    columns.null_counts = None
                    return IndexedPages(chunk.node, order, offsets, columns, self._num_rows)
            return pages
        except MissingKeyError:
            return None
        except (CorruptFileError, LimitError) as error:
            self.ignore_corrupt("a page index", error)
            return None

    def page_locations(self, chunk: IndexedChunk) -> PageLocations | None:
        """Return the page locations of an offset index; None if it was not loaded or the fast parser rejects it."""
        raw = self._raw.get(chunk.node.leaf_start)
        if raw is None:
            return None
        if chunk.decryptor is not None:
            raw = chunk.decryptor.decrypt(Module.OFFSET_INDEX, raw)
        return PageLocations.read(raw, chunk.byte_range, self._num_rows)

    def bloom_filter(self, chunk: IndexedChunk) -> SplitBlockFilter | None:
        """Return the chunk's Bloom filter; None if the chunk has no filter, or a filter of an unknown type."""
        about = chunk.metadata
        if about.bloom_filter_offset is None:
            return None
        offset, length = about.bloom_filter_offset, about.bloom_filter_length

        def read() -> SplitBlockFilter | None:
            source = chunk.source(self._source)
            return bloom.read(source, offset, length, chunk.node.leaf_type, self._limits, chunk.decryptor)

        with _ChunkErrorContext(chunk):
            return self._filters.get_or_make((self._row_group, chunk.node.leaf_start), read, filter_bytes)

    def may_contain(self, chunk: IndexedChunk, predicate: Predicate) -> bool:
        """Return whether the chunk may satisfy ``predicate`` according to its Bloom filter.

        A corrupt filter is ignored with a warning, or raises an error if reading is strict.
        """
        if not is_equality(predicate) or chunk.node.calendar is not None:  # the filter contains stored values
            return True
        if (ranges := self._recorder.recorded_ranges) is not None:
            self._record_filter(chunk, ranges)
            return True
        try:
            result = chunk.bloom_filter
        except MissingKeyError:
            return True
        except (CorruptFileError, LimitError) as error:
            self.ignore_corrupt("a Bloom filter", error)
            return True
        # A filter without any set bit has no values, or was never filled in.
        return result is None or may_contain(predicate, result.might_contain) or result.is_empty

    def ignore_corrupt(self, name: str, error: ParquetError) -> None:
        """Warn that the corrupt structure ``name`` is ignored, or raise ``error`` if reading is strict."""
        if self._strict:
            raise error
        warn(f"ignored {name}: {error}", DamagedIndexWarning)

    def ignore_pages(self, error: OffsetIndexError) -> None:
        """Ignore all page indexes of the row group from now on, because one of its offset indexes is wrong.

        Raises ``error`` if reading is strict.
        """
        if not self._is_ignored:
            self.ignore_corrupt("the page indexes of a row group", error)
            self._is_ignored = True

    def may_have_pruned_pages(self, leaf: int | None) -> bool:
        """Return whether pages may have been pruned using the bounds in the column index of ``leaf``."""
        pages = None if leaf is None else self._pages.get(leaf)
        return pages is not None and pages.has_bounds

    def _record_filter(self, chunk: IndexedChunk, ranges: IndexRanges) -> None:
        """Record the location of the chunk's Bloom filter in ``ranges``, if the location is known and the filter will
        be read.
        """
        with suppress(MissingKeyError, CorruptFileError, LimitError):
            about, source = chunk.metadata, chunk.source(self._source)
            offset, length = about.bloom_filter_offset, about.bloom_filter_length
            if offset is None or length is None or (self._row_group, chunk.node.leaf_start) in self._filters:
                return
            if 0 < length <= self._limits.bloom_filter_bytes and 0 <= offset <= source.size - length:
                ranges.append((source, (offset, length)))

    def _index(self, chunk: IndexedChunk, index_type: _IndexType) -> Any:
        key = chunk.node.leaf_start, index_type
        if key not in self._indexes:
            place = self._location(chunk, index_type)
            raw = self._raw.get(key[0]) if index_type is OffsetIndex else None
            if raw is None and place is not None:
                raw = chunk.source(self._source).read(*place, is_metadata=True)
            self._indexes[key] = None if place is None else self._decode(chunk, index_type, raw, place[0])
        return self._indexes[key]

    def _location(self, chunk: IndexedChunk, index_type: _IndexType) -> tuple[int, int] | None:
        """Return the offset and length of an index; None if the chunk has no such index.

        Raises ``CorruptFileError`` if the index extends beyond the file, and ``LimitError`` if it is too large.
        """
        stored = chunk.structure
        if index_type is ColumnIndex:
            offset, length = stored.column_index_offset, stored.column_index_length
        else:
            offset, length = stored.offset_index_offset, stored.offset_index_length
        if offset is None or length is None:
            return None
        with _ChunkErrorContext(chunk):
            if length <= 0 or offset < 0 or offset > chunk.source(self._source).size - length:
                message = f"an index of {length} bytes at offset {offset} extends beyond the file"
                raise CorruptFileError(message, offset=offset)
            if length > self._limits.page_index_bytes:
                raise LimitError(
                    f"an index of {length} bytes exceeds page_index_bytes={self._limits.page_index_bytes}; "
                    "raise the limit with limits=Limits(page_index_bytes=...)"
                )
        return offset, length

    def _decode(self, chunk: IndexedChunk, index_type: _IndexType, raw: Any, offset: int) -> Any:
        with _ChunkErrorContext(chunk):
            if chunk.decryptor is not None:
                raw = chunk.decryptor.decrypt(_MODULES[index_type], raw)
                offset = 0
            index, _ = decode(index_type, raw, limits=self._limits, base=offset)
            return index


def _are_bounds_exact(chunk: IndexedChunk) -> tuple[bool, bool]:
    """Return whether the minimum and the maximum in the chunk's statistics are exact.

    Bounds that may be truncated count as exact only if the statistics declare it.
    """
    about, cuttable = chunk.metadata.statistics, is_truncatable(chunk.node.leaf_type)
    if about is None or chunk.node.calendar is not None:
        return False, False
    low, high = about.is_min_value_exact, about.is_max_value_exact
    return (not cuttable if low is None else low), (not cuttable if high is None else high)


class _ChunkErrorContext:
    """Context that adds the column and the row group to errors."""

    def __init__(self, chunk: IndexedChunk) -> None:
        self._chunk = chunk

    def __enter__(self) -> None:
        return None

    def __exit__(self, exc_type: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ParquetError):
            error.locate(column=self._chunk.node.dotted_path, row_group=self._chunk.row_group)
