"""Page indexes and Bloom filters of a row group fetched: lazily, by byte range, near ones in one read.

What planning will need of the indexes is recorded before it is fetched, so that one request fetches all of it.
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
from pqext.core.format.predicate import Bounds, Predicate, asks_for_values, may_contain
from pqext.core.format.thrift import Struct, decode
from pqext.core.indexes import bloom
from pqext.core.indexes.bloom import KeptFilters, SplitBlockFilter, filter_bytes
from pqext.core.indexes.page_index import (
    IndexedPages,
    PagePlaces,
    check_agreement,
    check_column_index,
    check_offset_index,
)
from pqext.core.io.external_files import read_many
from pqext.core.io.source import Range, Source
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import of_column
from pqext.core.schema.statistics import is_cuttable

Wanted = list[tuple[Source, Range]]

_NOBODY: tuple[Gathering | None, Wanted | None] = None, None
_local = threading.local()
"""What each thread notes now, and for which file."""
T = TypeVar("T", bound=Struct)

_Kind = type[ColumnIndex] | type[OffsetIndex]
_MODULES: dict[type, Module] = {ColumnIndex: Module.COLUMN_INDEX, OffsetIndex: Module.OFFSET_INDEX}


class Gathering:
    """Says whether the indexes of a file are only noted on this thread, and holds where those lie that were noted."""

    @property
    def wanted(self) -> Wanted | None:
        """Where indexes that are asked for are to be noted; nothing is known of them then. None: they are read."""
        owner, wanted = getattr(_local, "noting", _NOBODY)
        return wanted if owner is self else None

    def fetch(self, source: Source, ask: Callable[[], object]) -> None:
        """Fetch at once what ``ask`` asks of indexes of a file, or of those of others that it names."""
        with self.noting() as wanted:
            ask()
        if wanted:
            read_many(wanted, keep=True)
            source.learn_of(wanted)

    @contextmanager
    def noting(self) -> Iterator[Wanted]:
        """Within, this thread reads no index of the file: those that are asked for are noted."""
        wanted: Wanted = []
        before = getattr(_local, "noting", _NOBODY)
        _local.noting = self, wanted
        try:
            yield wanted
        finally:
            _local.noting = before


class DamagedIndexWarning(UserWarning):
    """An index or a filter is damaged and was passed over: pruning goes on without it."""


class IndexedChunk(Protocol):
    """What reading its indexes takes of a column chunk (:class:`pqext.core.read.row_group.ColumnChunk`)."""

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
    def source(self, own: Source) -> Source: ...


class IndexReader:
    """The indexes of one row group's chunks. What was read is kept; threads may ask at the same time."""

    def __init__(
        self, source: Source, limits: Limits, num_rows: int, row_group: int, filters: KeptFilters,
        gathering: Gathering, strict: bool,
    ) -> None:
        self._source = source
        self._limits = limits
        self._num_rows = num_rows
        self._row_group = row_group
        self._filters = filters
        self._gathering = gathering
        self._strict = strict
        self._indexes: dict[tuple[int, _Kind], Any] = {}
        self._raw: dict[int, Any] = {}
        self._pages: dict[int, IndexedPages | None] = {}
        self._places: dict[int, IndexedPages | None] = {}
        self._is_ignored = False

    def column_index(self, chunk: IndexedChunk) -> ColumnIndex | None:
        """The chunk's column index, ``None`` when it has none. Raises ``CorruptFileError`` for a damaged one."""
        index: ColumnIndex | None = self._index(chunk, ColumnIndex)
        if index is not None:
            offsets = self.offset_index(chunk)
            with _ErrorsNameChunk(chunk):
                check_column_index(index, None if offsets is None else len(offsets.page_locations), chunk.node)
        return index

    def offset_index(self, chunk: IndexedChunk) -> OffsetIndex | None:
        """The chunk's offset index, ``None`` when it has none. Raises ``CorruptFileError`` for a damaged one."""
        index: OffsetIndex | None = self._index(chunk, OffsetIndex)
        if index is not None:
            with _ErrorsNameChunk(chunk):
                check_offset_index(index, chunk.byte_range, self._num_rows)
        return index

    def load(
        self, chunks: Iterable[IndexedChunk], kinds: Sequence[_Kind] = (ColumnIndex, OffsetIndex)
    ) -> None:
        """Fetch the indexes of ``chunks`` of some ``kinds`` that were not read yet, near ones in one read.

        Damaged ones are left for those who ask for them.
        """
        wanted: list[tuple[IndexedChunk, _Kind, tuple[int, int]]] = []
        for chunk in chunks:
            for kind in kinds:
                leaf = chunk.node.leaf_start
                if (leaf, kind) not in self._indexes and not (kind is OffsetIndex and leaf in self._raw):
                    with suppress(CorruptFileError, LimitError):
                        place = self._place(chunk, kind)
                        if place is not None:
                            wanted.append((chunk, kind, place))
        if (noted := self._gathering.wanted) is not None:
            noted += [(chunk.source(self._source), place) for chunk, _, place in wanted]
            return
        places = [(chunk.source(self._source), place) for chunk, _, place in wanted]
        data = read_many(places, keep=True)
        self._source.learn_of(places)
        for (chunk, kind, place), raw in zip(wanted, data, strict=True):
            with suppress(CorruptFileError, LimitError):
                if kind is OffsetIndex:
                    self._raw[chunk.node.leaf_start] = raw  # decoded when it is asked for
                else:
                    self._indexes[chunk.node.leaf_start, kind] = self._decode(chunk, kind, raw, place[0])

    def pages(self, chunk: IndexedChunk) -> IndexedPages | None:
        """The chunk's pages for pruning: ``None`` without an offset index, and, with a warning, with a damaged one."""
        if self._is_ignored:
            return None
        leaf = chunk.node.leaf_start
        if self._gathering.wanted is not None and leaf not in self._pages:
            self.load([chunk])
            return None
        if leaf not in self._pages:
            self._pages[leaf] = self._known(chunk, (ColumnIndex, OffsetIndex))
        return self._pages[leaf]

    def places(self, chunk: IndexedChunk) -> IndexedPages | None:
        """The chunk's pages without their bounds, unless the bounds were read already."""
        if self._is_ignored:
            return None
        leaf = chunk.node.leaf_start
        if leaf in self._pages:
            return self._pages[leaf]
        if self._gathering.wanted is not None and leaf not in self._places:
            self.load([chunk], (OffsetIndex,))
            return None
        if leaf not in self._places:
            self._places[leaf] = self._known(chunk, (OffsetIndex,))
        return self._places[leaf]

    def _known(self, chunk: IndexedChunk, kinds: Sequence[_Kind]) -> IndexedPages | None:
        try:
            self.load([chunk], kinds)
            offsets = self._page_places(chunk) or self.offset_index(chunk)
            columns = self.column_index(chunk) if ColumnIndex in kinds else None
            if offsets is None:
                return None
            order = of_column(chunk.node.leaf_type, chunk.order)
            pages = IndexedPages(chunk.node, order, offsets, columns, self._num_rows)
            if columns is not None and not pages.accounts_for(sum(chunk.byte_range)):
                return IndexedPages(chunk.node, order, offsets, None, self._num_rows)  # others may hold any value
            if columns is not None:
                with _ErrorsNameChunk(chunk):
                    check_agreement(pages, columns, chunk.bounds(), _exact(chunk))
                if not chunk.counts_nulls:
                    columns = copy(columns)
                    columns.null_counts = None
                    return IndexedPages(chunk.node, order, offsets, columns, self._num_rows)
            return pages
        except MissingKeyError:
            return None
        except (CorruptFileError, LimitError) as error:
            self.pass_over("a page index", error)
            return None

    def _page_places(self, chunk: IndexedChunk) -> PagePlaces | None:
        """What a loaded offset index says, where the short way of reading it is enough."""
        raw = self._raw.get(chunk.node.leaf_start)
        if raw is None:
            return None
        if chunk.decryptor is not None:
            raw = chunk.decryptor.decrypt(Module.OFFSET_INDEX, raw)
        return PagePlaces.read(raw, chunk.byte_range, self._num_rows)

    def bloom_filter(self, chunk: IndexedChunk) -> SplitBlockFilter | None:
        """The chunk's Bloom filter, ``None`` when it has none or one of a kind that is not known."""
        about = chunk.metadata
        if about.bloom_filter_offset is None:
            return None
        offset, length = about.bloom_filter_offset, about.bloom_filter_length

        def read() -> SplitBlockFilter | None:
            source = chunk.source(self._source)
            return bloom.read(source, offset, length, chunk.node.leaf_type, self._limits, chunk.decryptor)

        with _ErrorsNameChunk(chunk):
            return self._filters.get_or_make((self._row_group, chunk.node.leaf_start), read, filter_bytes)

    def may_contain(self, chunk: IndexedChunk, predicate: Predicate) -> bool:
        """Can the chunk satisfy ``predicate`` by its Bloom filter? A damaged filter warns and is passed over."""
        if not asks_for_values(predicate) or chunk.node.calendar is not None:  # whose filter is of values as stored
            return True
        if (noted := self._gathering.wanted) is not None:
            self._note_filter(chunk, noted)
            return True
        try:
            found = chunk.bloom_filter
        except MissingKeyError:
            return True
        except (CorruptFileError, LimitError) as error:
            self.pass_over("a Bloom filter", error)
            return True
        # One without a bit set is of no values at all, and may as well never have been filled in.
        return found is None or may_contain(predicate, found.might_contain) or found.is_empty

    def pass_over(self, what: str, error: ParquetError) -> None:
        """Go on without ``what``, with a ``DamagedIndexWarning``; raise ``error`` if reading is strict."""
        if self._strict:
            raise error
        warn(f"passed over {what}: {error}", DamagedIndexWarning)

    def ignore_pages(self, error: OffsetIndexError) -> None:
        """Use no page index of the row group from now on: reading has shown that an offset index is wrong.

        Raises ``error`` if reading is strict.
        """
        if not self._is_ignored:
            self.pass_over("the page indexes of a row group", error)
            self._is_ignored = True

    def has_bounded(self, leaf: int | None) -> bool:
        """Whether rows may have been pruned by the bounds of the pages of a leaf."""
        pages = None if leaf is None else self._pages.get(leaf)
        return pages is not None and pages.has_bounds

    def _note_filter(self, chunk: IndexedChunk, noted: Wanted) -> None:
        """Note where the chunk's filter lies, if that can be told and it will be read."""
        with suppress(MissingKeyError, CorruptFileError, LimitError):
            about, source = chunk.metadata, chunk.source(self._source)
            offset, length = about.bloom_filter_offset, about.bloom_filter_length
            if offset is None or length is None or (self._row_group, chunk.node.leaf_start) in self._filters:
                return
            if 0 < length <= self._limits.bloom_filter_bytes and 0 <= offset <= source.size - length:
                noted.append((source, (offset, length)))

    def _index(self, chunk: IndexedChunk, kind: _Kind) -> Any:
        key = chunk.node.leaf_start, kind
        if key not in self._indexes:
            place = self._place(chunk, kind)
            raw = self._raw.get(key[0]) if kind is OffsetIndex else None
            if raw is None and place is not None:
                raw = chunk.source(self._source).read(*place, keep=True)
            self._indexes[key] = None if place is None else self._decode(chunk, kind, raw, place[0])
        return self._indexes[key]

    def _place(self, chunk: IndexedChunk, kind: _Kind) -> tuple[int, int] | None:
        """(offset, length) of an index. A chunk that cannot be read has none."""
        stored = chunk.structure
        if kind is ColumnIndex:
            offset, length = stored.column_index_offset, stored.column_index_length
        else:
            offset, length = stored.offset_index_offset, stored.offset_index_length
        if offset is None or length is None:
            return None
        with _ErrorsNameChunk(chunk):
            if length <= 0 or offset < 0 or offset > chunk.source(self._source).size - length:
                raise CorruptFileError(f"an index of {length} bytes at {offset} leaves the file", offset=offset)
            if length > self._limits.page_index_bytes:
                raise LimitError(
                    f"an index of {length} bytes exceeds page_index_bytes={self._limits.page_index_bytes}"
                )
        return offset, length

    def _decode(self, chunk: IndexedChunk, kind: _Kind, raw: Any, offset: int) -> Any:
        with _ErrorsNameChunk(chunk):
            if chunk.decryptor is not None:
                raw = chunk.decryptor.decrypt(_MODULES[kind], raw)
                offset = 0
            index, _ = decode(kind, raw, limits=self._limits, base=offset)
            return index


def _exact(chunk: IndexedChunk) -> tuple[bool, bool]:
    """Do the bounds of the chunk's statistics occur in it? Those that may be cut do only where they say so."""
    about, cuttable = chunk.metadata.statistics, is_cuttable(chunk.node.leaf_type)
    if about is None or chunk.node.calendar is not None:
        return False, False
    low, high = about.is_min_value_exact, about.is_max_value_exact
    return (not cuttable if low is None else low), (not cuttable if high is None else high)


class _ErrorsNameChunk:
    """Adds the column and the row group to errors that pass through."""

    def __init__(self, chunk: IndexedChunk) -> None:
        self._chunk = chunk

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ParquetError):
            error.locate(column=self._chunk.node.dotted, row_group=self._chunk.row_group)
