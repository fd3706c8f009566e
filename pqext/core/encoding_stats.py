"""What the metadata of a column chunk counts of its pages by their encodings, held against the pages."""

from __future__ import annotations

from collections.abc import Collection

from pqext.core.enums import DICTIONARY_ENCODINGS, PageType
from pqext.core.metadata import ColumnMetaData

DATA_PAGES = (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)


def counted(chunk: ColumnMetaData) -> int:
    """How many data pages are counted."""
    return sum(one.count for one in chunk.encoding_stats or () if one.page_type in DATA_PAGES)


def uncounted(chunk: ColumnMetaData, found: Collection[int]) -> frozenset[int]:
    """The encodings of data pages, of those ``found``, that are not counted where others are.

    Each of the two dictionary encodings stands for both. Where none of them is counted, or one that the metadata does
    not list, it is the metadata that is wrong.
    """
    known = {int(one.encoding) for one in chunk.encoding_stats or () if one.page_type in DATA_PAGES}
    if not known <= set(chunk.encodings):
        return frozenset()
    if known & DICTIONARY_ENCODINGS:
        known |= DICTIONARY_ENCODINGS
    return frozenset(found) - known if known & set(found) else frozenset()
