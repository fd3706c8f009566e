"""Counts in a footer that the rest of it and the pages contradict: a bit of them is wrong, and the rows are there."""

from __future__ import annotations

from collections.abc import Sequence

from pqext.core.chunk_places import start_of
from pqext.core.errors import ParquetError
from pqext.core.limits import Limits
from pqext.core.metadata import RowGroup
from pqext.core.schema import SchemaNode
from pqext.core.source import Source
from pqext.recovery.claims import ClaimedGroup, end_of
from pqext.recovery.pages import chain


def rows_of(group: RowGroup, leaves: Sequence[SchemaNode], more: int) -> int:
    """The rows of a row group: what all its columns without lists have, where it is said otherwise.

    A single column is believed where the rows of the file, of which there are so many ``more`` than in all row groups,
    say so too.
    """
    counts = [
        chunk.meta_data.num_values
        for leaf, chunk in zip(leaves, group.columns, strict=False)
        if not leaf.max_repetition_level and chunk.meta_data is not None
    ]
    if not counts or min(counts) != max(counts) or counts[0] <= 0:
        return group.num_rows
    return counts[0] if len(counts) > 1 or more == counts[0] - group.num_rows else group.num_rows


def correct_values(source: Source, group: ClaimedGroup, leaves: Sequence[SchemaNode], limits: Limits) -> list[str]:
    """Give chunks without lists as many values as there are rows, where their pages have so many; these leaves."""
    found = []
    for leaf, chunk in zip(leaves, group.chunks, strict=True):
        if chunk is None or leaf.max_repetition_level or chunk.num_values == group.rows:
            continue
        try:
            pages = chain(source, start_of(chunk), end_of(chunk), limits)
        except ParquetError:
            continue
        if pages and sum(page.count for page in pages if not page.is_dictionary) == group.rows:
            chunk.num_values = group.rows
            found.append(leaf.dotted)
    return found
