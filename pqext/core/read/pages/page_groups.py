"""Data pages that are decoded together: which they are, what they take meanwhile, whether they hold whole rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pqext.core.base.errors import CorruptFileError, OffsetIndexError
from pqext.core.format.metadata import Encoding
from pqext.core.kernels import levels as level_kernel
from pqext.core.read.leaf_column import Levels
from pqext.core.read.pages.page import RawPage

GROUP_BYTES = 1 << 20
"""Pages are decoded together until they hold so much: less takes turns at the interpreter, more leaves the cache."""


def scratch_bytes(group: Sequence[RawPage], width: int | None) -> int:
    """As :func:`scratch_of`, of the pages of a group."""
    unpacked = values = 0
    for raw in group:
        unpacked += raw.header.uncompressed_page_size
        values += raw.num_values
    return scratch_of(unpacked, values, group[0].form[1], width)


def scratch_of(unpacked: int, values: int, encoding: int, width: int | None) -> int:
    """What pages take beside what they become: their bytes, a flag a value, indices, lengths, joined values.

    ``width`` is that of a value, ``None`` for byte arrays.
    """
    if width is None:
        return unpacked + values * 13
    return unpacked + values * (width + 13 if encoding == Encoding.DELTA_BYTE_ARRAY else 1)


def check_rows(
    run: Sequence[RawPage], repetition: Levels | None, *, believes_header: Callable[[RawPage], bool]
) -> None:
    """Raise ``CorruptFileError`` unless pages hold whole rows, as many as the offset index says.

    A page of lists that no index was asked of holds as many as its header says, if that is to be believed where the two
    differ: where damage is passed over, others would move all rows behind them.
    """
    at = 0
    for raw in run:
        levels = None if repetition is None else repetition[at : at + raw.num_values]
        at += raw.num_values
        is_indexed = raw.indexed_rows is not None
        expected = raw.indexed_rows if is_indexed else raw.num_rows if levels is not None else None
        if expected is None:
            continue
        rows = raw.num_values if levels is None else level_kernel.count_rows(levels)
        # Some old writers of version 2 cut rows in two.
        is_torn = is_indexed and levels is not None and len(levels) and levels[0]
        if (rows != expected and (is_indexed or believes_header(raw))) or is_torn:
            source = "the offset index" if is_indexed else "its header"
            kind = OffsetIndexError if is_indexed else CorruptFileError
            raise kind(f"a page holds {rows} rows where {source} says {expected}", offset=raw.offset)


def of(run: Sequence[RawPage]) -> Iterator[list[RawPage]]:
    """Pages of one form to be decoded together."""
    group: list[RawPage] = []
    held, shared = 0, None
    for raw in run:
        form = raw.form
        if group and (held >= GROUP_BYTES or form != shared):
            yield group
            group, held = [], 0
        shared = form
        group.append(raw)
        held += raw.header.uncompressed_page_size
    if group:
        yield group
