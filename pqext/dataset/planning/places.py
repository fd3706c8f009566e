"""Where in a file the pages lie that hold chosen rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pqext.core.read.pages.page_selection import pages_of
from pqext.core.schema.facts import LeafFacts
from pqext.core.schema.row_ranges import RowRanges
from pqext.dataset.planning.plan import ByteRange, joined


def byte_ranges(chunks: Sequence[LeafFacts], rows: RowRanges | None) -> tuple[ByteRange, ...]:
    """Where the pages of ``chunks`` lie that hold ``rows``, all when None, and the dictionaries that they need."""
    return joined(place for chunk in chunks for place in _places(chunk, rows))


def page_count(chunks: Sequence[LeafFacts], rows: RowRanges, num_rows: int) -> tuple[int, int]:
    """How many pages of ``chunks`` hold any of ``rows``, and how many there are, of chunks whose pages are known.

    They belong to a row group of ``num_rows``.
    """
    known = [chunk.page_places for chunk in chunks]
    return (
        sum(len(pages_of(one, rows)) for one in known if one is not None),
        sum(len(pages_of(one, [range(num_rows)])) for one in known if one is not None),
    )


def _places(chunk: LeafFacts, rows: RowRanges | None) -> Iterator[ByteRange]:
    start, length = chunk.byte_range
    known = None if rows is None else chunk.page_places
    if rows is None or known is None:
        yield start, length
        return
    pages = pages_of(known, rows)
    if pages:
        yield start, known.byte_range(0)[0] - start
    yield from map(known.byte_range, pages)
