"""Compare the encodings listed in the metadata of a column chunk with those of its data pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pqext.core.format.enums import PageType
from pqext.core.format.metadata import ColumnMetaData, Encoding

DATA_PAGES = (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)
_OF_OTHERS = frozenset(map(int, (Encoding.PLAIN, Encoding.RLE, Encoding.BIT_PACKED, Encoding.PLAIN_DICTIONARY)))
"""Encodings listed for levels and dictionaries, whatever the data pages use."""


def are_as_counted(chunk: ColumnMetaData, found: Mapping[int, int]) -> bool:
    """Whether the metadata's encodings and page counts agree with the data pages ``found`` for each encoding.

    Counts that contradict the list are ignored.
    """
    said, pages = counted(chunk), _named(found)
    is_counted = not said or said == pages or not _lists(chunk, said)
    return is_counted and (_lists(chunk, pages) or not chunk.encodings)


def uncounted(chunk: ColumnMetaData, found: Mapping[int, int]) -> frozenset[int]:
    """Return encodings with more data pages than the metadata counts, if the pages are probably wrong.

    Empty if the counts belong to other pages, or if the list of encodings contradicts the counts but not the pages.
    Both names of the dictionary encoding are equivalent.
    """
    said, pages = counted(chunk), _named(found)
    if said.total() != pages.total() or (_lists(chunk, pages) and not _lists(chunk, said)):
        return frozenset()
    odd = {encoding for encoding, count in pages.items() if count > said[encoding]}
    return frozenset(encoding for encoding in found if one_name(encoding) in odd)


def one_name(encoding: int) -> int:
    """Map the older name of RLE_DICTIONARY to it; the older name is also used for PLAIN dictionary pages."""
    return int(Encoding.RLE_DICTIONARY) if encoding == Encoding.PLAIN_DICTIONARY else int(encoding)


def counted(chunk: ColumnMetaData) -> Counter[int]:
    """Return the number of data pages of each encoding in the metadata."""
    found: Counter[int] = Counter()
    for one in chunk.encoding_stats or ():
        if one.page_type in DATA_PAGES:
            found[one_name(one.encoding)] += one.count
    return +found


def _named(found: Mapping[int, int]) -> Counter[int]:
    named: Counter[int] = Counter()
    for encoding, count in found.items():
        named[one_name(encoding)] += count
    return named


def _lists(chunk: ColumnMetaData, pages: Iterable[int]) -> bool:
    """Whether the metadata lists the encodings of ``pages``, and otherwise only those of levels and dictionaries."""
    listed = {int(one) for one in chunk.encodings}
    every = set(map(one_name, listed))
    others = set(map(one_name, listed - _OF_OTHERS))
    return set(pages) <= every and others <= set(pages)
