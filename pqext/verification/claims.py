"""What metadata claims of pages, levels and sizes, held against what was found when the pages were read.

Each function gives faults as pairs of a rule and a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.footer.encoding_statistics import DATA_PAGES, count_pages, current_name
from pqext.core.format.metadata import ColumnIndex, ColumnMetaData, Encoding, OffsetIndex, PageType, Type
from pqext.core.format.predicate import COMPARE, Value
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.pages.page import RawPage
from pqext.core.schema.orders import BoundOrder
from pqext.core.schema.shape import LeafShape

Claims = Iterator[tuple[str, str]]

_LISTED = {int(one) for one in (Encoding.PLAIN, Encoding.RLE, Encoding.BIT_PACKED, Encoding.RLE_DICTIONARY)}
"""Encodings that writers list for levels and dictionaries whatever their data pages have."""


@dataclass(slots=True)
class EncodingTally:
    """The pages of a chunk by encoding, and what decompression and headers make of their size."""

    data: Counter[int] = field(default_factory=Counter)
    dictionaries: int = 0
    gained: int = 0
    """Bytes of all pages uncompressed, less those stored."""

    def add(self, raw: RawPage) -> None:
        """Count a page."""
        header = raw.header
        self.gained += header.uncompressed_page_size - header.compressed_page_size
        about = header.data_page_header or header.data_page_header_v2
        if header.type in DATA_PAGES and about is not None:
            self.data[current_name(about.encoding)] += 1
        elif header.type == PageType.DICTIONARY_PAGE:
            self.dictionaries += 1


def of_encodings(about: ColumnMetaData, kinds: EncodingTally) -> Claims:
    """The lists of encodings. Writers do not tell versions of data pages apart in ``encoding_stats``."""
    said = set(map(current_name, about.encodings))
    missing, extra = kinds.data.keys() - said, said - kinds.data.keys() - _LISTED
    if said and (missing or extra):
        yield "layout.chunk-encoding", "the metadata does not list the encodings that the pages have"
    if about.encoding_stats:
        dictionaries = sum(one.count for one in about.encoding_stats if one.page_type == PageType.DICTIONARY_PAGE)
        if count_pages(about) != kinds.data or dictionaries != kinds.dictionaries:
            yield "layout.chunk-encoding", "encoding_stats does not count the pages by the encodings that they have"


def of_size(about: ColumnMetaData, stored: int, kinds: EncodingTally) -> Claims:
    """The uncompressed size of pages that take ``stored`` bytes, headers included."""
    if about.total_uncompressed_size != stored + kinds.gained:
        message = f"total_uncompressed_size is {about.total_uncompressed_size}, the pages have {stored + kinds.gained}"
        yield "layout.offsets", message


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts of each level from 0 up, and the bytes of BYTE_ARRAY values where their stored form is known."""

    repetition: tuple[int, ...]
    definition: tuple[int, ...]
    value_bytes: int | None


def sizes(column: LeafColumn, leaf: LeafShape) -> Sizes:
    """What a run of rows holds."""
    node, array = leaf.node, column.array
    highest = node.max_definition_level
    if column.definition is not None:
        definition = np.bincount(column.definition, minlength=highest + 1).tolist()
    else:
        definition = [array.null_count, column.entries - array.null_count] if highest else [column.entries]
    repetition = [column.entries]
    if column.repetition is not None:
        repetition = np.bincount(column.repetition, minlength=node.max_repetition_level + 1).tolist()
    counted = node.physical_type == Type.BYTE_ARRAY and any(
        test(array.type)
        for test in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    )
    value_bytes = (pc.sum(pc.binary_length(array)).as_py() or 0) if counted else None
    return Sizes(tuple(repetition), tuple(definition), value_bytes)


def total(parts: Sequence[Sizes]) -> Sizes:
    """The sizes of all parts together."""

    def summed(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
        return tuple(map(sum, zip(*rows, strict=True)))

    known = [part.value_bytes for part in parts if part.value_bytes is not None]
    return Sizes(
        summed(part.repetition for part in parts), summed(part.definition for part in parts),
        sum(known) if len(known) == len(parts) else None,
    )


def of_levels(about: ColumnMetaData, parts: Sequence[Sizes]) -> Claims:
    """The size statistics of a chunk."""
    said = about.size_statistics
    if said is None or not parts:
        return
    found = total(parts)
    for name, claimed, counts in (
        ("repetition", said.repetition_level_histogram, found.repetition),
        ("definition", said.definition_level_histogram, found.definition),
    ):
        if claimed and tuple(claimed) != counts:
            yield "statistics.sizes", f"the {name} levels are not as often there as their histogram says"
    count = said.unencoded_byte_array_data_bytes
    if count is not None and found.value_bytes is not None and count != found.value_bytes:
        yield "statistics.sizes", f"the values have {found.value_bytes} bytes, the size statistics say {count}"


def of_page_levels(columns: ColumnIndex | None, offsets: OffsetIndex, parts: Sequence[Sizes]) -> Iterator[
    tuple[int, str, str]
]:
    """The histograms and sizes of each page in its indexes: the page's number before rule and message."""
    counts = offsets.unencoded_byte_array_data_bytes
    for number, part in enumerate(parts):
        for name, claimed, found in (
            ("repetition", columns and columns.repetition_level_histograms, part.repetition),
            ("definition", columns and columns.definition_level_histograms, part.definition),
        ):
            if claimed and tuple(claimed[number * len(found) : (number + 1) * len(found)]) != found:
                message = f"the {name} levels of a page are not as often there as its histogram says"
                yield number, "page-index.histograms", message
        if counts and part.value_bytes is not None and counts[number] != part.value_bytes:
            message = f"the values of a page have {part.value_bytes} bytes, the offset index says {counts[number]}"
            yield number, "statistics.sizes", message


def of_exactness(
    about: ColumnMetaData, order: BoundOrder, minimum: Value | None, maximum: Value | None
) -> Claims:
    """Bounds that are called exact and lie beyond the least or the greatest value; others are no bounds at all."""
    said = about.statistics
    if said is None or not order.is_defined:
        return
    for name, exact, stored, found, beyond in (
        ("minimum", said.is_min_value_exact, said.min_value, minimum, COMPARE["<"]),
        ("maximum", said.is_max_value_exact, said.max_value, maximum, COMPARE[">"]),
    ):
        value = order.value(stored) if exact and stored is not None else None
        if value is not None and value == value and (found is None or beyond(value, found)):
            yield "statistics.truncation", f"the {name} is called exact and no value has it"


def of_pair(
    order: BoundOrder, minimum: bytes | None, maximum: bytes | None, *, allow_nan: bool = False
) -> str | None:
    """Describe why a stored minimum and maximum bound nothing, whatever the values; None if they are bounds.

    ``allow_nan`` is for chunks: the format has readers ignore the NaN that old writers stored in their statistics.
    """
    if not order.is_defined or (minimum is None and maximum is None):
        return None
    if minimum is None or maximum is None:
        present, absent = ("maximum", "minimum") if minimum is None else ("minimum", "maximum")
        return f"a {present} without a {absent}"
    low, high = order.values([minimum, maximum])
    if low is None or high is None:
        return "bounds that are not values of the column's type"
    if order.kind == "type" and not allow_nan and (low != low or high != high):
        return "bounds that are NaN"
    first, last = order.keys([minimum, maximum])
    return "a minimum above the maximum" if first > last else None
