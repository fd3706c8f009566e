"""What must be left of a damaged Parquet file, told from the original file and from what was done to it.

pyarrow's footer of the original tells where chunks lie, the slow reader of page headers where their pages do, and the
damage is a list of pieces: bytes ``start`` to ``stop`` of the original, or other bytes in their place.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from reference.compact import Reader

Piece = tuple[int, int] | bytes
"""Bytes of the original, or bytes that were never in it."""


@dataclass(frozen=True)
class Page:
    """A data page of a leaf: where header and body lie, its rows; ``rows`` is ``None`` where no header tells them."""

    header: int
    body: int
    stop: int
    is_dictionary: bool
    rows: int | None


def damaged(original: bytes, pieces: Sequence[Piece]) -> bytes:
    """The damaged file."""
    return b"".join(one if isinstance(one, bytes) else original[one[0] : one[1]] for one in pieces)


def runs(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """The stretches of the original that are whole, in the order of the damaged file."""
    found: list[tuple[int, int]] = []
    is_apart = True
    for one in pieces:
        if isinstance(one, bytes):
            is_apart = is_apart or bool(one)
        elif one[0] < one[1]:
            if not is_apart and found[-1][1] == one[0]:
                found[-1] = found[-1][0], one[1]
            else:
                found.append(one)
            is_apart = False
    return found


def chunks(original: bytes) -> list[list[tuple[int, int]]]:
    """Where each chunk of each row group lies."""
    metadata = pq.ParquetFile(io.BytesIO(original)).metadata
    found = []
    for index in range(metadata.num_row_groups):
        group, extents = metadata.row_group(index), []
        for leaf in range(group.num_columns):
            chunk = group.column(leaf)
            start = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            extents.append((start, start + chunk.total_compressed_size))
        found.append(extents)
    return found


def whole_groups(original: bytes, pieces: Sequence[Piece]) -> list[int]:
    """The row groups of which every byte is there, one after another as they were."""
    left = runs(pieces)
    return [
        index
        for index, extents in enumerate(chunks(original))
        if any(start <= extents[0][0] and extents[-1][1] <= stop for start, stop in left)
    ]


def pages(original: bytes, extent: tuple[int, int], *, is_flat: bool) -> list[Page]:
    """The pages of a chunk."""
    found, at = [], extent[0]
    while at < extent[1]:
        reader = Reader(original, at)
        header: dict[int, Any] = {id: value for id, _, value in reader.struct()}
        detail = {id: value for id, _, value in header.get(5) or header.get(7) or header[8]}
        rows = detail[3] if 8 in header else detail[1] if is_flat else None
        found.append(Page(at, reader.at, reader.at + header[3], header[1] == 2, rows))
        at = reader.at + header[3]
    return found


def touches_header(original: bytes, pieces: Sequence[Piece]) -> bool:
    """Does damage begin or end within the header of a page, which may then decode and say what is not true?"""
    edges = {edge for run in runs(pieces) for edge in run}
    return any(
        page.header < edge < page.body
        for extents in chunks(original)
        for extent in extents
        for page in pages(original, extent, is_flat=True)
        for edge in edges
    )


def rows_left(original: bytes, pieces: Sequence[Piece]) -> list[int | None]:
    """For each row group, its rows outside damaged pages, where bytes were only changed within bodies of data pages.

    ``None`` where more than that was damaged, or no header tells how many rows were.
    """
    metadata = pq.ParquetFile(io.BytesIO(original)).metadata
    lost, at = [], 0
    for one in pieces:
        size = len(one) if isinstance(one, bytes) else one[1] - one[0]
        if isinstance(one, bytes):
            lost += [place for place in range(at, at + size) if original[place] != one[place - at]]
        elif one[0] != at:
            return [None] * metadata.num_row_groups
        at += size
    changed = set(lost)
    found: list[int | None] = []
    for index, extents in enumerate(chunks(original)):
        rows = metadata.row_group(index).num_rows
        gone: set[int] | None = set()
        for leaf, extent in enumerate(extents):
            if changed.isdisjoint(range(*extent)):
                continue
            first: int | None = 0
            for page in pages(original, extent, is_flat=not metadata.schema.column(leaf).max_repetition_level):
                is_hit = not changed.isdisjoint(range(page.body, page.stop))
                if not changed.isdisjoint(range(page.header, page.body)) or (is_hit and page.is_dictionary):
                    gone = None
                    break
                if page.is_dictionary:
                    continue
                if is_hit and (first is None or page.rows is None):
                    gone = None
                    break
                if is_hit and gone is not None:
                    gone |= set(range(first or 0, (first or 0) + (page.rows or 0)))
                first = None if first is None or page.rows is None else first + page.rows
            if gone is None:
                break
        found.append(None if gone is None or at < extents[-1][1] else rows - len(gone))
    return found
