"""Structures of a footer that are found one by one, whatever finds them: a jump table or a FlatBuffers footer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.leb128 import uleb
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import ColumnChunk, FileMetaData
from pqext.core.format.thrift import LazyStructs, Struct, decode, field
from pqext.core.kernels.thrift import StructIndex

WINDOW = 64
"""Row groups of which the same column is looked up at once."""
_T = TypeVar("_T", bound=Struct)
_L = TypeVar("_L", bound=Struct)


class Structures(Protocol):
    """A footer whose structures are found one by one, or all at once."""

    def whole(self) -> FileMetaData:
        """The whole footer."""
    def asked(self, find: Callable[[], _T], instead: Callable[[FileMetaData], _T]) -> _T:
        """What ``find`` finds, or ``instead`` in the whole footer where that is better."""


class _Chunks(Struct):
    items: Sequence[ColumnChunk] = field(1, [ColumnChunk], lazy=True)


class ColumnWindows:
    """The column chunks of a footer, those of one column in several row groups together."""

    limits: Limits
    path: str | None

    def __init__(self, limits: Limits, path: str | None) -> None:
        self.limits, self.path = limits, path
        self.row_groups = 0
        self._columns: dict[tuple[int, int], Sequence[ColumnChunk]] = {}

    @property
    def is_whole(self) -> bool:
        """Is the whole footer there, or is it better so?"""
        raise NotImplementedError

    def _chunks(self, column: int, first: int, stop: int) -> Sequence[ColumnChunk]:
        """The chunks of one column in some row groups."""
        raise NotImplementedError

    def _chunk(self, column: int, row_group: int) -> ColumnChunk:
        chunks, at = self._window_of_chunks(column, row_group)
        return peeked(chunks, at)

    def _window_of_chunks(self, column: int, row_group: int) -> tuple[Sequence[ColumnChunk], int]:
        """The chunks of one column in row groups that lie together, and which of them is asked for."""
        at = row_group % WINDOW
        first = row_group - at
        columns = self._columns  # which another thread may let go
        found = columns.get((column, first))
        if found is None:
            found = columns[column, first] = self._chunks(column, first, min(first + WINDOW, self.row_groups))
        return found, at

    def chunk_place(self, column: int, row_group: int) -> tuple[StructIndex, int] | None:
        """Where a column chunk lies among others; None where the whole footer was read, or this one is damaged."""
        if self.is_whole:
            return None
        try:
            chunks, at = self._window_of_chunks(column, row_group)
        except ParquetError:
            return None  # told to those who ask for the chunk itself
        return (chunks._index, at) if isinstance(chunks, LazyStructs) else None

    def _listed(self, count: int, parts: Sequence[bytes]) -> Sequence[ColumnChunk]:
        """So many serialised column chunks, which are checked to be whole."""
        return listed(_Chunks, count, parts, self.limits, self.path).items


def listed(kind: type[_L], count: int, parts: Sequence[bytes], limits: Limits, path: str | None) -> _L:
    """A structure with nothing but a list of ``count`` serialised ones, which are checked to be whole."""
    data = b"".join((b"\x19\xfc", uleb(count), *parts, b"\x00"))
    found, end = decode(kind, data, limits=limits, path=path)
    if end != len(data):
        raise CorruptFileError("the places of structures in the footer are others")
    return found


class IndexedStructs(LazyStructs[_T]):
    """A list of structures each of which ``find`` finds by the table; ``instead`` is the list in the whole footer.

    ``rows`` are those of row groups together, where that is known.
    """

    __slots__ = ("_count", "_find", "_instead", "_kept", "_near", "_rows", "lookup")

    def __init__(
        self,
        lookup: Structures,
        count: int,
        find: Callable[[int], _T] | None,
        instead: Callable[[FileMetaData], Sequence[_T]],
        near: Callable[[int], tuple[StructIndex, int] | None] | None = None, rows: int | None = None,
    ) -> None:
        self._decoded = {}
        self._rows = rows
        self._count, self._find, self._instead = count, find, instead
        self.lookup, self._near = lookup, near
        self._kept: Sequence[_T] | None = None

    @property
    def _whole(self) -> Sequence[_T]:
        if self._kept is None:
            self._kept = self._instead(self.lookup.whole())
            if len(self._kept) != self._count:
                raise CorruptFileError(f"a list of {len(self._kept)} structures has {self._count} in the jump table")
        return self._kept

    @property
    def _index(self) -> StructIndex:  # type: ignore[override]
        found = self._whole
        assert isinstance(found, LazyStructs)
        return found._index

    def __len__(self) -> int:
        return self._count

    def _one(self, position: int) -> _T:
        if not -self._count <= position < self._count:
            raise IndexError(f"no element {position} in a list of {self._count}")
        position %= self._count
        if self._find is None:
            return peeked(self._whole, position)
        return self.lookup.asked(partial(self._find, position), lambda _: peeked(self._whole, position))

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        if position < 0:
            position += self._count
        found = self._decoded.get(position)
        if found is None:
            found = self._decoded[position] = self._one(position)
        return found

    @property
    def rows(self) -> int | None:
        """The rows of row groups together, where that is known and none can have been changed."""
        return None if self._decoded else self._rows

    def peek(self, position: int) -> _T:
        """An element that is not kept."""
        found = self._decoded.get(position)
        return self._one(position) if found is None else found

    def __iter__(self) -> Iterator[_T]:
        for position in range(self._count):
            yield self[position]

    @property
    def untouched(self) -> StructIndex | None:
        """The places of the elements, once the whole footer was read and none was decoded before."""
        return self._index if self._kept is not None and not self._decoded else None

    def near(self, position: int) -> tuple[StructIndex, int] | None:
        """A list in which the element lies, and where in it, so long as it was not decoded."""
        return None if self._near is None or position in self._decoded else self._near(position)

    def place(self, position: int) -> tuple[StructIndex, int] | None:
        """Where an element lies, as ``untouched``."""
        found = self.untouched
        return None if found is None else (found, position)


def peeked(structures: Sequence[_T], position: int) -> _T:
    """An element that is not kept where the list need not."""
    return structures.peek(position) if isinstance(structures, LazyStructs) else structures[position]
