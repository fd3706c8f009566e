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
    """Return whether the encodings and page counts in the metadata match ``page_counts``, the number of data pages by
    encoding.

    Page counts in the metadata that contradict its list of encodings are ignored.
    """
    counts, pages = count_pages(chunk), _normalize_counts(page_counts)
    is_counted = not counts or counts == pages or not _lists_exactly(chunk, counts)
    return is_counted and (_lists_exactly(chunk, pages) or not chunk.encodings)


def excess_encodings(chunk: ColumnMetaData, page_counts: Mapping[int, int]) -> frozenset[int]:
    """Return the encodings that occur in more data pages than the metadata states, if the pages are probably wrong.

    The result is empty if the total number of pages differs, or if the list of encodings in the metadata matches the
    pages but not the counts, so that the counts are probably wrong. Both names of the dictionary encoding are
    equivalent.
    """
    counts, pages = count_pages(chunk), _normalize_counts(page_counts)
    if counts.total() != pages.total() or (_lists_exactly(chunk, pages) and not _lists_exactly(chunk, counts)):
        return frozenset()
    odd = {encoding for encoding, count in pages.items() if count > counts[encoding]}
    return frozenset(encoding for encoding in page_counts if normalize_encoding(encoding) in odd)


def normalize_encoding(encoding: int) -> int:
    """Replace PLAIN_DICTIONARY, the old name of this encoding in data pages, with RLE_DICTIONARY. Return other
    encodings unchanged.
    """
    return int(Encoding.RLE_DICTIONARY) if encoding == Encoding.PLAIN_DICTIONARY else int(encoding)


def count_pages(chunk: ColumnMetaData) -> Counter[int]:
    """Return the number of data pages of each encoding according to the metadata."""
    page_counts: Counter[int] = Counter()
    for encoding_stat in chunk.encoding_stats or ():
        if encoding_stat.page_type in DATA_PAGES:
            page_counts[normalize_encoding(encoding_stat.encoding)] += encoding_stat.count
    return +page_counts


def _normalize_counts(page_counts: Mapping[int, int]) -> Counter[int]:
    named: Counter[int] = Counter()
    for encoding, count in page_counts.items():
        named[normalize_encoding(encoding)] += count
    return named


def _lists_exactly(chunk: ColumnMetaData, pages: Iterable[int]) -> bool:
    """Return whether the metadata lists exactly the encodings of ``pages``. Encodings of levels and dictionaries may be
    listed in addition.
    """
    listed = {int(encoding) for encoding in chunk.encodings}
    every = set(map(normalize_encoding, listed))
    others = set(map(normalize_encoding, listed - _OF_OTHERS))
    return set(pages) <= every and others <= set(pages)
