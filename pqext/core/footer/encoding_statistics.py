"""Compare the encodings in the metadata of a column chunk with its data pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from pqext.core.format.enums import PageType
from pqext.core.format.metadata import ColumnMetaData, Encoding

DATA_PAGES = (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)
_OF_OTHERS = frozenset(map(int, (Encoding.PLAIN, Encoding.RLE, Encoding.BIT_PACKED, Encoding.PLAIN_DICTIONARY)))
"""Encodings that may be listed for levels and dictionaries, independently of the encodings of data pages."""


def has_matching_counts(chunk: ColumnMetaData, page_counts: Mapping[int, int]) -> bool:
    """Return whether the encodings and page counts in the metadata agree with ``page_counts``, the data pages per
    encoding.

    Page counts in the metadata that contradict its list of encodings are ignored.
    """
    said, pages = count_pages(chunk), _counts_by_name(page_counts)
    is_counted = not said or said == pages or not _lists(chunk, said)
    return is_counted and (_lists(chunk, pages) or not chunk.encodings)


def uncounted_encodings(chunk: ColumnMetaData, page_counts: Mapping[int, int]) -> frozenset[int]:
    """Return encodings with more data pages than the metadata counts, if the pages are probably wrong.

    The result is empty if the total number of pages differs, or if the list of encodings contradicts the counts but not
    the pages. Both names of the dictionary encoding are equivalent.
    """
    said, pages = count_pages(chunk), _counts_by_name(page_counts)
    if said.total() != pages.total() or (_lists(chunk, pages) and not _lists(chunk, said)):
        return frozenset()
    odd = {encoding for encoding, count in pages.items() if count > said[encoding]}
    return frozenset(encoding for encoding in page_counts if normalize_encoding(encoding) in odd)


def normalize_encoding(encoding: int) -> int:
    """Return RLE_DICTIONARY for PLAIN_DICTIONARY, its older name in data pages, and other encodings unchanged."""
    return int(Encoding.RLE_DICTIONARY) if encoding == Encoding.PLAIN_DICTIONARY else int(encoding)


def count_pages(chunk: ColumnMetaData) -> Counter[int]:
    """Return the number of data pages of each encoding according to the metadata."""
    page_counts: Counter[int] = Counter()
    for encoding_stat in chunk.encoding_stats or ():
        if encoding_stat.page_type in DATA_PAGES:
            page_counts[normalize_encoding(encoding_stat.encoding)] += encoding_stat.count
    return +page_counts


def _counts_by_name(page_counts: Mapping[int, int]) -> Counter[int]:
    named: Counter[int] = Counter()
    for encoding, count in page_counts.items():
        named[normalize_encoding(encoding)] += count
    return named


def _lists(chunk: ColumnMetaData, pages: Iterable[int]) -> bool:
    """Return whether the metadata lists all encodings of ``pages``, and no others except those of levels and
    dictionaries.
    """
    listed = {int(encoding) for encoding in chunk.encodings}
    every = set(map(normalize_encoding, listed))
    others = set(map(normalize_encoding, listed - _OF_OTHERS))
    return set(pages) <= every and others <= set(pages)
