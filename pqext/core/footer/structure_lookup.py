"""Look up the structures of a footer one by one, and the bounds of column chunks without building structures.

A jump table or a FlatBuffers footer locates structures. Planning prunes most row groups of many files by the bounds of
one column, which are read directly from the bytes of the footer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.thrift_footer import Footer
from pqext.core.format.metadata import ColumnChunk, ColumnOrder, FileMetaData, Statistics
from pqext.core.format.predicate import Bounds
from pqext.core.format.thrift import LazyStructs, Struct, decode, field, struct_list_header
from pqext.core.kernels.thrift.column_chunks import chunk_bytes, read_statistics
from pqext.core.kernels.thrift.reader import StructIndex
from pqext.core.schema import statistics
from pqext.core.schema.nodes import SchemaNode

WINDOW = 64
"""Number of row groups whose chunks of a column are loaded together."""
_T = TypeVar("_T", bound=Struct)
_L = TypeVar("_L", bound=Struct)
Location = tuple[StructIndex, int]
"""Location of a row group: an index of row groups in a footer, and the position in it."""


class StructureLookup(Protocol):
    """Look-up of the structures of a footer, one by one or all together."""

    def load_metadata(self) -> FileMetaData:
        """Return the complete footer."""
    def load_bytes(self) -> Any:
        """Return the complete footer as serialised Thrift."""
    def resolve(self, find: Callable[[], _T], fallback: Callable[[FileMetaData], _T]) -> _T:
        """Return the result of ``find`` or, if loading the complete footer is cheaper, of ``fallback``."""


class LookupFooter(Footer):
    """Footer that is read lazily through ``lookup``."""

    __slots__ = ("lookup",)
    lookup: StructureLookup

    @property
    def raw(self) -> Any:
        """All bytes of the footer, read or built on demand."""
        return self.lookup.load_bytes()

    @property
    def complete(self) -> FileMetaData:
        """Complete metadata, including its extensions."""
        return self.lookup.load_metadata()


class _Chunks(Struct):
    items: Sequence[ColumnChunk] = field(1, [ColumnChunk], lazy=True)


class ColumnWindows:
    """Column chunks of a footer, loaded for one column and several row groups at a time."""

    limits: Limits
    path: str | None

    def __init__(self, limits: Limits, path: str | None) -> None:
        self.limits, self.path = limits, path
        self.row_groups = 0
        self._columns: dict[tuple[int, int], Sequence[ColumnChunk]] = {}

    @property
    def is_whole(self) -> bool:
        """Whether the complete footer was read, or should be read."""
        raise NotImplementedError

    def _chunks(self, column: int, first: int, stop: int) -> Sequence[ColumnChunk]:
        """Return the chunks of a column in the row groups from ``first`` to ``stop``."""
        raise NotImplementedError

    def _chunk(self, column: int, row_group: int) -> ColumnChunk:
        chunks, at = self._window_of_chunks(column, row_group)
        return peek(chunks, at)

    def _window_of_chunks(self, column: int, row_group: int) -> tuple[Sequence[ColumnChunk], int]:
        """Return the chunks of one column in adjacent row groups, and the position of the requested chunk among them.
        """
        at = row_group % WINDOW
        first = row_group - at
        columns = self._columns  # another thread may replace it
        result = columns.get((column, first))
        if result is None:
            result = columns[column, first] = self._chunks(column, first, min(first + WINDOW, self.row_groups))
        return result, at

    def locate_chunk(self, column: int, row_group: int) -> tuple[StructIndex, int] | None:
        """Return an index that contains the column chunk, and the position of the chunk in the index.

        Return None if the footer is corrupt, or is or should be read completely.
        """
        if self.is_whole:
            return None
        try:
            chunks, at = self._window_of_chunks(column, row_group)
        except ParquetError:
            return None  # reading the chunk raises the error
        return (chunks._index, at) if isinstance(chunks, LazyStructs) else None

    def _build_chunks(self, count: int, raw_chunks: Sequence[bytes]) -> Sequence[ColumnChunk]:
        """Decode ``count`` serialised column chunks, and check that they are complete."""
        return build_list(_Chunks, count, raw_chunks, self.limits, self.path).items


def build_list(struct_type: type[_L], count: int, raw_structs: Sequence[bytes], limits: Limits, path: str | None) -> _L:
    """Decode ``count`` serialised structures as the only field, a list, of a ``struct_type``.

    Raises ``CorruptFileError`` unless the structures end exactly where the bytes do.
    """
    data = b"".join((b"\x19", struct_list_header(count), *raw_structs, b"\x00"))
    result, end = decode(struct_type, data, limits=limits, path=path)
    if end != len(data):
        raise CorruptFileError("the footer's structures are not at the expected offsets")
    return result


class IndexedStructs(LazyStructs[_T]):
    """List of structures that ``find`` looks up one by one. ``fallback`` returns the list from the complete footer.

    ``rows`` is the total number of rows of all row groups, if it is known.
    """

    __slots__ = ("_complete_list", "_count", "_fallback", "_find", "_locate", "_rows", "lookup")

    def __init__(
        self,
        lookup: StructureLookup,
        count: int,
        find: Callable[[int], _T] | None,
        fallback: Callable[[FileMetaData], Sequence[_T]],
        locate: Callable[[int], tuple[StructIndex, int] | None] | None = None, rows: int | None = None,
    ) -> None:
        self._decoded = {}
        self._rows = rows
        self._count, self._find, self._fallback = count, find, fallback
        self.lookup, self._locate = lookup, locate
        self._complete_list: Sequence[_T] | None = None

    @property
    def _complete(self) -> Sequence[_T]:
        if self._complete_list is None:
            self._complete_list = self._fallback(self.lookup.load_metadata())
            if len(self._complete_list) != self._count:
                count = len(self._complete_list)
                raise CorruptFileError(f"the footer lists {count} structures, but its index lists {self._count}")
        return self._complete_list

    @property
    def _index(self) -> StructIndex:  # type: ignore[override]
        result = self._complete
        assert isinstance(result, LazyStructs)
        return result._index

    def __len__(self) -> int:
        return self._count

    def _struct_at(self, position: int) -> _T:
        if not 0 <= position < self._count:
            raise IndexError(f"element {position} is out of range for a list of {self._count} elements")
        if self._find is None:
            return peek(self._complete, position)
        return self.lookup.resolve(partial(self._find, position), lambda _: peek(self._complete, position))

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        if position < 0:
            position += self._count
        result = self._decoded.get(position)
        if result is None:
            result = self._decoded[position] = self._struct_at(position)
        return result

    @property
    def rows(self) -> int | None:
        """Total number of rows of all row groups; None if it is unknown or a row group was decoded."""
        return None if self._decoded else self._rows

    def peek(self, position: int) -> _T:
        """Return an element without caching it."""
        result = self._decoded.get(position)
        return self._struct_at(position) if result is None else result

    def __iter__(self) -> Iterator[_T]:
        for position in range(self._count):
            yield self[position]

    @property
    def undecoded_index(self) -> StructIndex | None:
        """Index of the elements if the complete footer was read and no element was decoded before; otherwise None."""
        return self._index if self._complete_list is not None and not self._decoded else None

    def locate_element(self, position: int) -> tuple[StructIndex, int] | None:
        """Return an index that contains the element, and the position of the element in it; None for a decoded or
        unknown element.
        """
        return None if self._locate is None or position in self._decoded else self._locate(position)

    def indexed_position(self, position: int) -> tuple[StructIndex, int] | None:
        """Return ``undecoded_index`` and the position of an element; None without such an index."""
        result = self.undecoded_index
        return None if result is None else (result, position)


def peek(structures: Sequence[_T], position: int) -> _T:
    """Return the structure at ``position``. A lazy list decodes the structure without caching it."""
    return structures.peek(position) if isinstance(structures, LazyStructs) else structures[position]


def bounds_at(
    location: Location, leaves: int, leaf: SchemaNode, orders: Sequence[ColumnOrder] | None
) -> tuple[int, Bounds] | None:
    """Return the number of rows of a row group with ``leaves`` leaves, and the bounds of ``leaf``.

    Return None if the serialised metadata has an unusual layout.
    """
    result = read_statistics(*location, leaves, leaf.lookup_key, Statistics.plan)
    if result is None:
        return None
    rows, values, stored = result
    at = leaf.leaf_start
    return rows, trusted_bounds(leaf, stored, values, rows, orders[at] if orders and at < len(orders) else None)


def bytes_at(location: Location, leaf_count: int, leaves: Collection[SchemaNode]) -> int | None:
    """Return the total size of the pages of ``leaves``; None if the kernel does not support the layout of the
    serialised metadata.
    """
    return chunk_bytes(*location, leaf_count, [leaf.lookup_key for leaf in leaves])


def trusted_bounds(
    leaf: SchemaNode, chunk_statistics: Statistics | None, values: int, rows: int | None, order: ColumnOrder | None
) -> Bounds:
    """Return the bounds from a chunk's statistics.

    Return unknown bounds if the chunk's value count contradicts the row count of the row group.
    """
    if rows is None or values == rows or (0 < rows < values and leaf.max_repetition_level > 0):
        return statistics.to_bounds(leaf.leaf_type, chunk_statistics, values, order)
    return Bounds(has_nan=None)
