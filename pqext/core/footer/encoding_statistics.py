"""What the metadata of a column chunk says of the encodings of its data pages, held against the pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pqext.core.format.enums import PageType
from pqext.core.format.metadata import ColumnMetaData, Encoding

DATA_PAGES = (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)
_OF_OTHERS = frozenset(map(int, (Encoding.PLAIN, Encoding.RLE, Encoding.BIT_PACKED, Encoding.PLAIN_DICTIONARY)))
"""Encodings that are listed for levels and dictionaries whatever data pages have."""


def are_as_counted(chunk: ColumnMetaData, found: Mapping[int, int]) -> bool:
    """Do the metadata's list and counts agree with so many data pages ``found`` by their encodings?

    Counts that contradict the list count for nothing.
    """
    said, pages = counted(chunk), _named(found)
    is_counted = not said or said == pages or not _lists(chunk, said)
    return is_counted and (_lists(chunk, pages) or not chunk.encodings)


def uncounted(chunk: ColumnMetaData, found: Mapping[int, int]) -> frozenset[int]:
    """The encodings of which more data pages are ``found`` than are counted, where the pages are likely to be wrong.

    Not so where the counts are of other pages, or where the list of encodings contradicts the counts and not the pages.
    Either name of the dictionary encoding stands for both.
    """
    said, pages = counted(chunk), _named(found)
    if said.total() != pages.total() or (_lists(chunk, pages) and not _lists(chunk, said)):
        return frozenset()
    odd = {encoding for encoding, count in pages.items() if count > said[encoding]}
    return frozenset(encoding for encoding in found if one_name(encoding) in odd)


def one_name(encoding: int) -> int:
    """RLE_DICTIONARY for the older name of it, which is also given to dictionary pages, although these are PLAIN."""
    return int(Encoding.RLE_DICTIONARY) if encoding == Encoding.PLAIN_DICTIONARY else int(encoding)


def counted(chunk: ColumnMetaData) -> Counter[int]:
    """How many data pages of each encoding the metadata counts."""
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
    """Does the metadata list the encodings of ``pages``, and beside them none but those of levels and dictionaries?"""
    listed = {int(one) for one in chunk.encodings}
    every = set(map(one_name, listed))
    others = set(map(one_name, listed - _OF_OTHERS))
    return set(pages) <= every and others <= set(pages)
