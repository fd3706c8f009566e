"""The pages of a row group's columns, as users look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from pqext.core.base.display import as_html
from pqext.core.base.suggestions import listed
from pqext.core.base.text import visible
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.read.row_group import RowGroup


class PageIndex(Mapping[str, IndexedPages]):
    """The pages of a row group's columns, by dotted path; those without an offset index are left out.

    Columns are read when they are asked for; to have several at once, call ``RowGroup.load_page_indexes`` before.
    """

    def __init__(self, group: RowGroup) -> None:
        self._group = group

    def __getitem__(self, path: str) -> IndexedPages:
        node = self._group.schema.find(path)
        pages = self._group.chunk(node).pages if node is not None and node.is_leaf else None
        if pages is None:
            raise KeyError(path)
        return pages

    def __iter__(self) -> Iterator[str]:
        return (chunk.node.dotted for chunk in self._group.chunks() if chunk.structure.offset_index_offset is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return visible(f"<PageIndex of row group {self._group.index}: {listed(self) or 'no columns'}>")

    def _repr_html_(self) -> str:
        rows = [(path, f"{len(self[path]):,} pages") for path in islice(self, 50) if path in self]
        return as_html(f"Page index of row group {self._group.index}", rows)
