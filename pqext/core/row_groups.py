"""The row groups of a file, made when they are asked for: there may be a million."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from pqext.core.row_group import RowGroup

_KEPT = 256
"""Row groups that are kept, with what was read of their indexes and filters."""
_KEPT_CHUNKS = 1 << 14
"""Column chunks that kept row groups hold together, unless the last one alone has more."""


class RowGroups(Sequence[RowGroup]):
    """``count`` row groups, each made by ``make`` from its ``index``; those asked for last are kept."""

    def __init__(self, count: int, make: Callable[..., RowGroup]) -> None:
        self._count = count
        self._make = make
        self._kept: OrderedDict[int, RowGroup] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RowGroup]:
        return (self[index] for index in range(self._count))

    @overload
    def __getitem__(self, index: int) -> RowGroup: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowGroup]: ...
    def __getitem__(self, index: int | slice) -> RowGroup | list[RowGroup]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"row group {index} of a file with {self._count}")
        index %= self._count
        found = self._kept.get(index)
        if found is None:
            found = self._kept[index] = self._make(index=index)
            chunks = sum(len(group.known) for group in self._kept.values())
            while len(self._kept) > _KEPT or (chunks > _KEPT_CHUNKS and len(self._kept) > 1):
                chunks -= len(self._kept.popitem(last=False)[1].known)
        return found

    def __repr__(self) -> str:
        return f"<{self._count} row groups>"
