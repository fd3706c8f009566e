"""Locate chunks in a file that lost bytes before its footer: at their offsets, or shifted by a constant distance.

Chunks of equal size and type are easily confused. Pages, statistics and the order of chunks distinguish them: chunks
before the gap have not moved, and chunks after it have.
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
from pqext.recovery.candidates.candidates import CandidateSource, end_of, shift_chunk
from pqext.recovery.detection.pages import Page, chunk_pages
from pqext.verification import verify


@dataclass(slots=True)
class MovedChunk:
    """Chunk of leaf number ``leaf`` in a row group with ``rows`` rows.

    ``stated`` is the chunk's metadata in the footer. ``schema`` is a schema with only this leaf. ``by_distance`` maps
    the distances at which a page header starts the chunk to the shifted metadata.
    """

    stated: ColumnMetaData
    rows: int
    leaf: int
    schema: Sequence[SchemaElement]
    by_distance: dict[int, ColumnMetaData]


def resolve(
    source: Source, metadata: FileMetaData, chunks: Sequence[MovedChunk], limits: Limits
) -> list[ColumnMetaData | None]:
    """Return the metadata of each chunk with its actual offset; None if the offset cannot be determined.

    The gap is found by bisection, so few chunks are read if their statistics distinguish them.
    """
    order = sorted(range(len(chunks)), key=lambda at: start_of(chunks[at].stated))
    resolved: list[ColumnMetaData | None] = [None] * len(chunks)
    damaged: list[int] = []
    low, high = -1, len(order)  # the last unmoved chunk, the first moved chunk
    ranges = [(0, len(order))]
    while ranges:
        start, stop = ranges.pop()
        start, stop = max(start, low + 1), min(stop, high)
        if start >= stop:
            continue
        middle = (start + stop) // 2
        chunk = chunks[order[middle]]
        fitting, contradicted = _find_distances(source, metadata, chunk, limits)
        if len(fitting) == 1:
            resolved[order[middle]] = chunk.by_distance[fitting[0]]
        elif len(chunk.by_distance) == 1 and not contradicted:  # some pages are damaged, others may be readable
            resolved[order[middle]] = next(iter(chunk.by_distance.values()))
            damaged.append(order[middle])
        if len(fitting) == 1 and fitting[0] == 0:
            low = middle
        elif len(fitting) == 1:
            high = middle
        ranges += [(start, middle), (middle + 1, stop)]
    for position, at in enumerate(order):
        if position < low or position > high:
            options = [
                chunk for distance, chunk in chunks[at].by_distance.items() if (distance == 0) == (position < low)
            ]
            resolved[at] = options[0] if options else None
    uncertain = set(damaged)
    starts = {start_of(chunk) for at, chunk in enumerate(resolved) if chunk is not None and at not in uncertain}
    for at in damaged:
        location = resolved[at]
        if location is not None and start_of(location) in starts:
            resolved[at] = None
    return resolved


def _find_distances(source: Source, metadata: FileMetaData, chunk: MovedChunk, limits: Limits) -> tuple[
    list[int], list[int]
]:
    """Return the distances at which a chunk agrees with its metadata, and those at which only statistics differ."""
    fitting, contradicted = [], []
    for distance, located in chunk.by_distance.items():
        pages = pages_of(source, located, limits)
        if pages is None:
            continue
        described = _describe_chunk(located, chunk.stated, pages)
        group = RowGroup(
            columns=[ColumnChunk(file_offset=0, meta_data=described)],
            total_byte_size=described.total_uncompressed_size,
            num_rows=chunk.rows,
        )
        orders = list(metadata.column_orders or ())[chunk.leaf : chunk.leaf + 1] or None
        single = FileMetaData(version=2, schema=list(chunk.schema), num_rows=chunk.rows, row_groups=[group],
                              column_orders=orders, created_by=metadata.created_by)  # fmt: skip
        with catch_warnings():
            simplefilter("ignore")
            report = verify(CandidateSource(source, single, limits), checks=["chunks"], limits=limits)
        if any(fault.rule in STATISTICS_RULES for fault in report.faults):
            contradicted.append(distance)
        elif not report.total:
            fitting.append(distance)
    return fitting, contradicted


def pages_of(source: Source, chunk: ColumnMetaData, limits: Limits) -> list[Page] | None:
    """Return the pages of a chunk.

    Returns None if the pages do not fill the chunk's byte range, or do not contain the stated number of values.
    """
    try:
        pages = chunk_pages(source, start_of(chunk), end_of(chunk), limits)
    except ParquetError:
        return None
    if pages is None or sum(page.count for page in pages if not page.is_dictionary) != chunk.num_values:
        return None
    return pages


STATISTICS_RULES = frozenset({"statistics.bounds", "statistics.null-count", "statistics.nan-count"})
"""Rules that values violate if the statistics belong to other values."""


def _describe_chunk(chunk: ColumnMetaData, metadata_chunk: ColumnMetaData, pages: Sequence[Page]) -> ColumnMetaData:
    """Return the chunk's metadata, with sizes and encodings from its pages and with the statistics of the footer."""
    result = shift_chunk(chunk, 0)
    levels = {int(encoding) for encoding in metadata_chunk.encodings if encoding in (3, 4)}
    result.encodings = sorted({page.encoding for page in pages} | levels)
    result.total_uncompressed_size = sum(page.head + page.uncompressed_bytes for page in pages)
    result.statistics = metadata_chunk.statistics
    return result


def leaf_schemas(elements: Sequence[SchemaElement]) -> list[list[SchemaElement]]:
    """Return one schema for each leaf: the elements on the path from the root to the leaf."""
    return [single_leaf_schema([elements[at] for at in path]) for path in leaf_paths(elements)]


def single_leaf_schema(path: Sequence[SchemaElement]) -> list[SchemaElement]:
    """Return a schema whose only leaf is the last element of ``path``. The first element of ``path`` is the root."""
    return [*(_copy_with_one_child(group) for group in path[:-1]), path[-1]]


def leaf_paths(elements: Sequence[SchemaElement]) -> list[list[int]]:
    """Return the path to each leaf of a schema, as the numbers of the elements from the root to the leaf."""
    paths: list[list[int]] = []
    open_groups: list[list[int]] = []  # group numbers with the number of remaining children
    for number, element in enumerate(elements):
        if open_groups:
            open_groups[-1][1] -= 1
        if element.num_children:
            open_groups.append([number, element.num_children])
            continue
        paths.append([*(at for at, _ in open_groups), number])
        while open_groups and not open_groups[-1][1]:
            open_groups.pop()
    return paths


def _copy_with_one_child(group: SchemaElement) -> SchemaElement:
    return SchemaElement(name=group.name, repetition_type=group.repetition_type, num_children=1)
