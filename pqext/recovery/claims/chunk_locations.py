"""Where chunks lie in a file that lost bytes before its footer: as the footer says, or as many bytes earlier.

Chunks of one size and type look alike, so that one may seem to lie where another does. Pages and statistics tell them
apart, and the order of chunks does: what lies before the hole has not moved, and what lies behind it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

from pqext.core.base.errors import ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.format.metadata import ColumnChunk, ColumnMetaData, FileMetaData, RowGroup, SchemaElement
from pqext.core.io.source import Source
from pqext.recovery.claims.claims import ClaimedSource, end_of, moved
from pqext.recovery.fragments.pages import Page, chain
from pqext.verification import verify


@dataclass(slots=True)
class Moved:
    """A chunk of the leaf with this number, in a row group with ``rows`` rows.

    ``path`` is a schema of it alone, ``places`` holds the chunk by the distances at which a page begins.
    """

    said: ColumnMetaData
    rows: int
    leaf: int
    path: Sequence[SchemaElement]
    places: dict[int, ColumnMetaData]


def settle(
    source: Source, metadata: FileMetaData, chunks: Sequence[Moved], limits: Limits
) -> list[ColumnMetaData | None]:
    """The place of each chunk; ``None`` where it cannot be told.

    Few chunks are read where their statistics tell them apart: the hole is found by bisection.
    """
    order = sorted(range(len(chunks)), key=lambda at: start_of(chunks[at].said))
    kept: list[ColumnMetaData | None] = [None] * len(chunks)
    damaged: list[int] = []
    low, high = -1, len(order)  # known not to have moved, known to have moved
    ranges = [(0, len(order))]
    while ranges:
        start, stop = ranges.pop()
        start, stop = max(start, low + 1), min(stop, high)
        if start >= stop:
            continue
        middle = (start + stop) // 2
        chunk = chunks[order[middle]]
        fitting, contradicted = _fitting(source, metadata, chunk, limits)
        if len(fitting) == 1:
            kept[order[middle]] = chunk.places[fitting[0]]
        elif len(chunk.places) == 1 and not contradicted:  # some of its pages are damaged, others may be had
            kept[order[middle]] = next(iter(chunk.places.values()))
            damaged.append(order[middle])
        if len(fitting) == 1 and fitting[0] == 0:
            low = middle
        elif len(fitting) == 1:
            high = middle
        ranges += [(start, middle), (middle + 1, stop)]
    for place, at in enumerate(order):
        if place < low or place > high:
            wanted = [found for distance, found in chunks[at].places.items() if (distance == 0) == (place < low)]
            kept[at] = wanted[0] if wanted else None
    doubted = set(damaged)
    taken = {start_of(one) for at, one in enumerate(kept) if one is not None and at not in doubted}
    for at in damaged:
        one = kept[at]
        if one is not None and start_of(one) in taken:
            kept[at] = None
    return kept


def _fitting(source: Source, metadata: FileMetaData, chunk: Moved, limits: Limits) -> tuple[list[int], list[int]]:
    """The distances at which pages and statistics are the chunk's, and those at which statistics contradict it."""
    fitting, contradicted = [], []
    for distance, found in chunk.places.items():
        pages = pages_of(source, found, limits)
        if pages is None:
            continue
        found = _with_statistics(found, chunk.said, pages)
        group = RowGroup(
            columns=[ColumnChunk(file_offset=0, meta_data=found)],
            total_byte_size=found.total_uncompressed_size,
            num_rows=chunk.rows,
        )
        orders = list(metadata.column_orders or ())[chunk.leaf : chunk.leaf + 1] or None
        alone = FileMetaData(version=2, schema=list(chunk.path), num_rows=chunk.rows, row_groups=[group],
                             column_orders=orders, created_by=metadata.created_by)  # fmt: skip
        with catch_warnings():
            simplefilter("ignore")
            report = verify(ClaimedSource(source, alone, limits), checks=["chunks"], limits=limits)
        if any(fault.rule in OF_VALUES for fault in report.faults):
            contradicted.append(distance)
        elif not report.total:
            fitting.append(distance)
    return fitting, contradicted


def pages_of(source: Source, chunk: ColumnMetaData, limits: Limits) -> list[Page] | None:
    """The pages of a chunk, ``None`` where they do not fill it or have other values than it says."""
    try:
        pages = chain(source, start_of(chunk), end_of(chunk), limits)
    except ParquetError:
        return None
    if pages is None or sum(page.count for page in pages if not page.is_dictionary) != chunk.num_values:
        return None
    return pages


OF_VALUES = frozenset({"statistics.bounds", "statistics.null-count", "statistics.nan-count"})
"""Rules that values break which are not those that the statistics tell of."""


def _with_statistics(chunk: ColumnMetaData, said: ColumnMetaData, pages: Sequence[Page]) -> ColumnMetaData:
    """The chunk with sizes and encodings of its pages, and the statistics that the footer has of it."""
    made = moved(chunk, 0)
    made.encodings = sorted({page.encoding for page in pages} | {int(one) for one in said.encodings if one in (3, 4)})
    made.total_uncompressed_size = sum(page.head + page.unpacked for page in pages)
    made.statistics = said.statistics
    return made


def paths(elements: Sequence[SchemaElement]) -> list[list[SchemaElement]]:
    """For each leaf of a schema the elements of one that has no other leaf."""
    return [alone([elements[at] for at in line]) for line in lines(elements)]


def alone(line: Sequence[SchemaElement]) -> list[SchemaElement]:
    """The elements of a schema whose only leaf is the last of ``line``, which leads to it from the root."""
    return [*(_alone(group) for group in line[:-1]), line[-1]]


def lines(elements: Sequence[SchemaElement]) -> list[list[int]]:
    """For each leaf of a schema the numbers of the elements that lead to it, from the root to itself."""
    found: list[list[int]] = []
    above: list[list[int]] = []  # groups, and how many children of each are still to come
    for number, element in enumerate(elements):
        if above:
            above[-1][1] -= 1
        if element.num_children:
            above.append([number, element.num_children])
            continue
        found.append([*(at for at, _ in above), number])
        while above and not above[-1][1]:
            above.pop()
    return found


def _alone(group: SchemaElement) -> SchemaElement:
    return SchemaElement(name=group.name, repetition_type=group.repetition_type, num_children=1)
