"""Groups of data pages that are decoded together, their temporary memory, and checks of their row counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pqext.core.base.errors import CorruptFileError, OffsetIndexError
from pqext.core.format.metadata import Encoding
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.read.leaf_column import Levels
from pqext.core.read.pages.page import RawPage

GROUP_BYTES = 1 << 20
"""Size of a group of pages. Smaller groups contend for the interpreter lock, and larger groups exceed the CPU cache."""


def scratch_bytes(group: Sequence[RawPage], width: int | None) -> int:
    """Return the temporary memory in bytes for decoding the pages of a group, like :func:`scratch_of`."""
    unpacked = values = 0
    for raw in group:
        unpacked += raw.header.uncompressed_page_size
        values += raw.num_values
    return scratch_of(unpacked, values, group[0].layout[1], width)


def scratch_of(unpacked_bytes: int, values: int, encoding: int, width: int | None) -> int:
    """Return the temporary memory for decoding pages: their bytes, a flag per value, indices, lengths and joined
    values.

    ``width`` is the size of a value, or None for byte arrays.
    """
    if width is None:
        return unpacked_bytes + values * 13
    return unpacked_bytes + values * (width + 13 if encoding == Encoding.DELTA_BYTE_ARRAY else 1)


def check_rows(
    run: Sequence[RawPage], repetition: Levels | None, *, believes_header: Callable[[RawPage], bool]
) -> None:
    """Raise an error if a page does not have the declared number of rows.

    If the offset index was read, ``OffsetIndexError`` is raised if the row count differs from the index or the page
    begins within a row. Otherwise, ``CorruptFileError`` is raised if the row count of a page of lists differs from its
    header and ``believes_header`` returns true for the page: if corruption is skipped, a wrong count would shift all
    following rows.
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
        # Some old writers split rows between pages of version 2.
        is_torn = is_indexed and levels is not None and len(levels) and levels[0]
        if (rows != expected and (is_indexed or believes_header(raw))) or is_torn:
            source = "the offset index" if is_indexed else "its header"
            kind = OffsetIndexError if is_indexed else CorruptFileError
            raise kind(f"a page has {rows} rows, but {source} declares {expected}", offset=raw.offset)


def iter_groups(run: Sequence[RawPage]) -> Iterator[list[RawPage]]:
    """Yield groups of consecutive pages that share a layout, to be decoded together."""
    group: list[RawPage] = []
    held, shared = 0, None
    for raw in run:
        form = raw.layout
        if group and (held >= GROUP_BYTES or form != shared):
            yield group
            group, held = [], 0
        shared = form
        group.append(raw)
        held += raw.header.uncompressed_page_size
    if group:
        yield group
