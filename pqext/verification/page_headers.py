"""Data pages as their headers have them, and whether those of version 2 count rows and nulls as the levels do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageExtent:
    """A data page by its header: offset in the file, stored size with the header, entries.

    Headers of version 2 tell rows and nulls too.
    """

    offset: int
    size: int
    entries: int
    rows: int | None
    nulls: int | None


def row_counts(pages: Sequence[PageExtent], rows: int, *, is_flat: bool) -> list[int] | None:
    """The rows of each page of a chunk of ``rows`` rows, ``None`` where headers do not tell, or not truly."""
    if all(page.rows is None for page in pages):
        return None
    told = [page.entries if is_flat else page.rows for page in pages]
    counts = [one for one in told if one is not None and one >= 0]
    return counts if len(counts) == len(pages) and sum(counts) == rows else None


def implausible(pages: Sequence[PageExtent], rows: int) -> Iterator[tuple[PageExtent, str]]:
    """What headers say that cannot be right, whatever the levels are."""
    told = 0
    for page in pages:
        for name, count in (("rows", page.rows), ("nulls", page.nulls)):
            if count is not None and not 0 <= count <= page.entries:
                yield page, f"the header of a page of {page.entries} entries counts {count} {name}"
        told += max(page.rows or 0, 0)
    if told > rows:
        yield pages[-1], f"the headers of the pages count {told} rows, the row group has {rows}"


def contradicted(page: PageExtent, entries: int, rows: int, nulls: int) -> str | None:
    """How a page that holds so many entries, rows and nulls is not as its header says."""
    counts = (("entries", entries, page.entries), ("rows", rows, page.rows), ("nulls", nulls, page.nulls))
    for name, found, said in counts:
        if said is not None and said != found:
            return f"a page holds {found} {name} where its header says {said}"
    return None
