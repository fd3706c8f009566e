"""Compare metadata with the pages: encodings, levels and sizes. Compare the two footers of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.buffers import Bytes
from pqext.core.base.limits import Limits
from pqext.core.footer.encoding_statistics import DATA_PAGES, count_pages, normalize_encoding
from pqext.core.footer.flatbuffers.lookup import FlatLookup
from pqext.core.footer.flatbuffers.reading import encode_tables, parse_frame
from pqext.core.footer.writing import drop_derived_extension
from pqext.core.format.metadata import (
    ColumnIndex,
    ColumnMetaData,
    ConvertedType,
    Encoding,
    FileMetaData,
    LogicalType,
    OffsetIndex,
    PageType,
    SchemaElement,
    Type,
)
from pqext.core.format.predicate import COMPARE, Value
from pqext.core.format.thrift import Struct, decode, encode
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.pages.page import RawPage
from pqext.core.schema.orders import BoundOrder
from pqext.core.schema.shape import LeafShape
from pqext.core.schema.types.logical import GROUP_MEMBERS

Faults = Iterator[tuple[str, str]]

_LISTED = {int(item) for item in (Encoding.PLAIN, Encoding.RLE, Encoding.BIT_PACKED, Encoding.RLE_DICTIONARY)}
"""Encodings that writers list for levels and dictionaries, whatever the encodings of their data pages."""
_STRUCT = 12
"""Wire type of every member of LogicalType, including members of later versions."""
_CONVERTED = frozenset(int(member) for member in ConvertedType)
_LISTS = ("schema", "row_groups", "columns")



@dataclass(slots=True)
class EncodingTally:
    """Pages of a chunk by encoding, and the difference between their uncompressed and stored sizes."""

    data: Counter[int] = field(default_factory=Counter)
    dictionaries: int = 0
    gained: int = 0
    """Uncompressed size of all pages minus their stored size, in bytes."""

    def add(self, raw: RawPage) -> None:
        """Count a page."""
        header = raw.header
        self.gained += header.uncompressed_page_size - header.compressed_page_size
        about = header.data_page_header or header.data_page_header_v2
        if header.type in DATA_PAGES and about is not None:
            self.data[normalize_encoding(about.encoding)] += 1
        elif header.type == PageType.DICTIONARY_PAGE:
            self.dictionaries += 1


def check_encodings(chunk: ColumnMetaData, tally: EncodingTally) -> Faults:
    """Yield mismatches between the encoding lists and the pages.

    Writers do not distinguish page versions in ``encoding_stats``.
    """
    stated = set(map(normalize_encoding, chunk.encodings))
    missing, extra = tally.data.keys() - stated, stated - tally.data.keys() - _LISTED
    if stated and (missing or extra):
        yield "layout.chunk-encoding", "the metadata does not list the encodings that the pages have"
    if chunk.encoding_stats:
        dictionaries = sum(stat.count for stat in chunk.encoding_stats if stat.page_type == PageType.DICTIONARY_PAGE)
        if count_pages(chunk) != tally.data or dictionaries != tally.dictionaries:
            yield "layout.chunk-encoding", "encoding_stats does not match the encodings of the pages"


def check_size(chunk: ColumnMetaData, stored_size: int, tally: EncodingTally) -> Faults:
    """Yield a fault if the declared uncompressed size differs from the size of the pages."""
    if chunk.total_uncompressed_size != stored_size + tally.gained:
        pages_size = stored_size + tally.gained
        message = f"total_uncompressed_size is {chunk.total_uncompressed_size}, the pages have {pages_size}"
        yield "layout.offsets", message


@dataclass(frozen=True, slots=True)
class Sizes:
    """Number of values at each level, starting at level 0, and the bytes of BYTE_ARRAY values; None if unknown."""

    repetition: tuple[int, ...]
    definition: tuple[int, ...]
    value_bytes: int | None


def measure_sizes(column: LeafColumn, leaf: LeafShape) -> Sizes:
    """Measure the levels and value bytes of a run of rows."""
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


def sum_sizes(parts: Sequence[Sizes]) -> Sizes:
    """Add up the sizes of all parts."""

    def add_columns(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
        return tuple(map(sum, zip(*rows, strict=True)))

    known = [part.value_bytes for part in parts if part.value_bytes is not None]
    return Sizes(
        add_columns(part.repetition for part in parts), add_columns(part.definition for part in parts),
        sum(known) if len(known) == len(parts) else None,
    )


def check_levels(chunk: ColumnMetaData, parts: Sequence[Sizes]) -> Faults:
    """Yield mismatches between the size statistics of a chunk and its levels and values."""
    stated = chunk.size_statistics
    if stated is None or not parts:
        return
    actual = sum_sizes(parts)
    for name, histogram, counts in (
        ("repetition", stated.repetition_level_histogram, actual.repetition),
        ("definition", stated.definition_level_histogram, actual.definition),
    ):
        if histogram and tuple(histogram) != counts:
            yield "statistics.sizes", f"the {name} levels do not match their histogram"
    count = stated.unencoded_byte_array_data_bytes
    if count is not None and actual.value_bytes is not None and count != actual.value_bytes:
        yield "statistics.sizes", f"the values have {actual.value_bytes} bytes, the size statistics state {count}"


def check_page_levels(columns: ColumnIndex | None, offsets: OffsetIndex, parts: Sequence[Sizes]) -> Iterator[
    tuple[int, str, str]
]:
    """Compare the histograms and sizes in the page indexes. Yields the page number, rule and message of each fault."""
    counts = offsets.unencoded_byte_array_data_bytes
    for number, part in enumerate(parts):
        for name, histograms, actual in (
            ("repetition", columns and columns.repetition_level_histograms, part.repetition),
            ("definition", columns and columns.definition_level_histograms, part.definition),
        ):
            if histograms and tuple(histograms[number * len(actual) : (number + 1) * len(actual)]) != actual:
                message = f"the {name} levels of a page do not match its histogram"
                yield number, "page-index.histograms", message
        if counts and part.value_bytes is not None and counts[number] != part.value_bytes:
            message = f"the values of a page have {part.value_bytes} bytes, the offset index states {counts[number]}"
            yield number, "statistics.sizes", message


def check_exactness(
    chunk: ColumnMetaData, order: BoundOrder, minimum: Value | None, maximum: Value | None
) -> Faults:
    """Yield a fault for each bound that is marked as exact but wider than the extreme of the values."""
    stated = chunk.statistics
    if stated is None or not order.is_defined:
        return
    for name, exact, stored, actual, beyond in (
        ("minimum", stated.is_min_value_exact, stated.min_value, minimum, COMPARE["<"]),
        ("maximum", stated.is_max_value_exact, stated.max_value, maximum, COMPARE[">"]),
    ):
        value = order.value(stored) if exact and stored is not None else None
        if value is not None and value == value and (actual is None or beyond(value, actual)):
            yield "statistics.truncation", f"the {name} is marked exact but no value equals it"


def describe_invalid_bounds(
    order: BoundOrder, minimum: bytes | None, maximum: bytes | None, *, allow_nan: bool = False
) -> str | None:
    """Describe why a stored minimum and maximum are not valid bounds; return None if they are valid.

    ``allow_nan`` is for chunks: readers must ignore the NaN that old writers stored in chunk statistics.
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


def find_implausible_annotations(element: SchemaElement) -> Iterator[str]:
    """Yield a description of each implausible annotation of a schema element. Unknown logical types are plausible."""
    logical, converted = element.logicalType, element.converted_type
    if logical is not None and (reason := _placement_fault(element, logical)):
        yield reason
    if converted is not None and int(converted) not in _CONVERTED:
        yield f"the converted type {int(converted)}, which the format never defined"


def _placement_fault(element: SchemaElement, logical: LogicalType) -> str | None:
    if any(wire != _STRUCT for _, wire, _ in logical.unknown):
        return "a logical type that is not a structure"
    member = logical.member
    if member is not None and element.type is None and member not in GROUP_MEMBERS:
        return f"the logical type {member}, which is for values, on a group"
    if logical.INTEGER is not None and logical.INTEGER.bitWidth not in (8, 16, 32, 64):
        return f"an integer type of {logical.INTEGER.bitWidth} bits"
    return None


def drop_implausible_annotations(elements: Sequence[SchemaElement]) -> list[SchemaElement]:
    """Return the elements without implausible annotations."""
    return [
        _drop_implausible(element) if any(find_implausible_annotations(element)) else element
        for element in elements
    ]


def _drop_implausible(element: SchemaElement) -> SchemaElement:
    result = copy(element)
    if result.logicalType is not None and _placement_fault(element, result.logicalType):
        result.logicalType = None
    if result.converted_type is not None and int(result.converted_type) not in _CONVERTED:
        result.converted_type = None
    return result


def find_differences(footer: Bytes, limits: Limits) -> Iterator[str]:
    """Yield the paths of fields that differ between a Thrift footer and the FlatBuffers footer inside it.

    The first item is a description instead if the tables contradict their extension. Raises ``ParquetError`` if the
    FlatBuffers footer cannot be read.
    """
    tables = parse_frame(footer).tables(limits)
    lookup = FlatLookup(tables, limits, None)
    flat = lookup.load_metadata()
    thrift = drop_derived_extension(decode(FileMetaData, footer, limits=limits)[0])
    try:
        if encode_tables(encode(thrift)) == tables:
            return
    except ValueError:
        pass  # the extension of another writer
    if is_inconsistent(lookup):
        yield "the tables without their extension, which other readers use"
    yield from _compare_structs(thrift, flat, "")


def is_inconsistent(lookup: FlatLookup) -> bool:
    """Return whether the FlatBuffers tables differ from the tables that pqext's extension describes."""
    try:
        return lookup.flat.is_ours and encode_tables(bytes(lookup.load_bytes())) != lookup.tables
    except ValueError:
        return False


def _compare_structs(thrift: Struct, flat: Struct, path: str) -> Iterator[str]:
    if thrift.unknown != flat.unknown:
        yield f"{path}unknown fields"
    for member in thrift.fields:
        first, second = getattr(thrift, member.name), getattr(flat, member.name)
        name = f"{path}{member.name}"
        if member.name in _LISTS:
            yield from _compare_lists(first or (), second or (), name)
        elif isinstance(first, Struct) and isinstance(second, Struct):
            yield from _compare_structs(first, second, f"{name}.")
        elif first != second:
            yield name


def _compare_lists(first: Any, second: Any, name: str) -> Iterator[str]:
    if len(first) != len(second):
        yield name
        return
    for position in range(len(first)):
        yield from _compare_structs(first[position], second[position], f"{name}[{position}].")
