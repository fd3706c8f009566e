"""Pages that are opened together, one of them wrong: what is raised, where it is, and what passing over it costs."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest
from core.raw_files import OPTIONAL, REPEATED, group, leaf, levels

import pqext
from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, UnsupportedError
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import (
    ColumnChunk,
    ColumnMetaData,
    DataPageHeader,
    DataPageHeaderV2,
    DictionaryPageHeader,
    Encoding,
    FileMetaData,
    PageHeader,
    PageType,
    RowGroup,
    SchemaElement,
    Type,
)
from pqext.core.format.thrift import encode

FLAT = [leaf("a", OPTIONAL)]
LIST = [group("a", OPTIONAL, 1, converted_type=3), group("list", REPEATED, 1), leaf("element", OPTIONAL)]
KINDS = pytest.mark.parametrize("how", ["whole", "batches"])


def numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


@dataclass
class File:
    """Its bytes, and where each page begins."""

    data: bytes
    at: list[int]


def build_file(
    elements: list[SchemaElement], pages: list[tuple[PageHeader, bytes]], rows: int, entries: int, codec: int = 0
) -> File:
    """A file of one column chunk that has these pages."""
    data, at = b"PAR1", []
    for header, body in pages:
        at.append(len(data))
        data += encode(header) + body
    path = [element.name for element in elements]
    meta = ColumnMetaData(
        type=Type.INT32, encodings=[Encoding.PLAIN, Encoding.RLE], path_in_schema=path, codec=codec,
        num_values=entries, total_uncompressed_size=len(data) - 4, total_compressed_size=len(data) - 4,
        data_page_offset=4,
    )
    if pages[0][0].type == PageType.DICTIONARY_PAGE:
        meta.dictionary_page_offset, meta.data_page_offset = 4, at[1]
    footer = FileMetaData(
        version=2, schema=[SchemaElement(name="schema", num_children=1), *elements], num_rows=rows,
        row_groups=[RowGroup(columns=[ColumnChunk(file_offset=0, meta_data=meta)], total_byte_size=1, num_rows=rows)],
    )
    return File(data + serialise_footer(footer), at)


def first_form(entries: int, body: bytes, **more: Any) -> tuple[PageHeader, bytes]:
    """A page of version 1."""
    detail = {"encoding": Encoding.PLAIN, "definition_level_encoding": Encoding.RLE,
              "repetition_level_encoding": Encoding.RLE, **more}
    header = PageHeader(
        type=PageType.DATA_PAGE, uncompressed_page_size=len(body), compressed_page_size=len(body),
        data_page_header=DataPageHeader(num_values=entries, **detail),
    )
    return header, body


def second_form(
    entries: int, rows: int, repetition: bytes, definition: bytes, values: bytes, **more: Any
) -> tuple[PageHeader, bytes]:
    """A page of version 2."""
    body = repetition + definition + values
    detail = {"encoding": Encoding.PLAIN, "num_nulls": 0, "is_compressed": False, **more}
    header = PageHeader(
        type=PageType.DATA_PAGE_V2, uncompressed_page_size=len(body), compressed_page_size=len(body),
        data_page_header_v2=DataPageHeaderV2(
            num_values=entries, num_rows=rows, repetition_levels_byte_length=len(repetition),
            definition_levels_byte_length=len(definition), **detail,
        ),
    )
    return header, body


def flat(*values: int, **more: Any) -> tuple[PageHeader, bytes]:
    return first_form(len(values), levels([1] * len(values)) + numbers(*values), **more)


def lists(repetition: list[int], *values: int, rows: int | None = None) -> tuple[PageHeader, bytes]:
    """A page of version 2 of elements that are all there."""
    count = repetition.count(0) if rows is None else rows
    return second_form(
        len(values), count, levels(repetition)[4:], levels([3] * len(values))[4:], numbers(*values)
    )


def read_error(file: File) -> CorruptFileError:
    with pytest.raises(CorruptFileError) as caught:
        pqext.open(file.data).read()
    return caught.value


def remaining_rows(file: File, how: str = "whole") -> tuple[list[Any], list[tuple[int, int]]]:
    """What passing over damage leaves, and the rows that are reported."""
    opened = pqext.open(file.data, on_corrupt="skip")
    with pytest.warns(CorruptDataWarning):
        batches = [opened.read()] if how == "whole" else list(opened.iter_batches(2))
    rows = [value for batch in batches for value in batch.column("a").to_pylist()]
    return rows, [(damage.start, damage.stop) for damage in opened.damage]


@KINDS
def test_list_that_begins_mid_row_is_detected_after_an_empty_page(how: str) -> None:
    empty = first_form(0, levels([]) * 2)
    file = build_file(LIST, [empty, lists([1, 0, 0], 1, 2, 3), lists([0, 0], 4, 5)], rows=4, entries=5)
    error = read_error(file)
    assert "begins within a row" in error.message
    assert (error.offset, error.column) == (file.at[1], "a.list.element")
    assert remaining_rows(file, how) == ([[4], [5]], [(0, 2)])


def test_first_corrupt_page_is_reported_with_its_own_error() -> None:
    within = build_file(LIST, [lists([1, 0], 1, 2), lists([0], 3), lists([0], 4)], rows=3, entries=4)
    assert read_error(within).offset == within.at[0]
    # Both are opened before either is decoded: the second cannot be, the first holds a level that is too high.
    high = first_form(2, levels([3, 3]) + numbers(1, 2))
    short = first_form(2, b"\xff\0\0\0" + numbers(3, 4))
    error = read_error(both := build_file(FLAT, [flat(0), high, short], rows=5, entries=5))
    assert error.offset == both.at[1]
    assert "outside the range" in error.message


@KINDS
@pytest.mark.parametrize("form", ["bare", "dictionary", "other"])
def test_data_page_without_its_type_header_loses_the_rest_of_its_chunk(form: str, how: str) -> None:
    pages = [flat(0, 1, 2), flat(3, 4, 5), flat(6, 7, 8)]
    header = pages[1][0]
    header.data_page_header = None
    if form == "dictionary":
        header.dictionary_page_header = DictionaryPageHeader(num_values=0, encoding=Encoding.PLAIN)
    if form == "other":
        header.data_page_header_v2 = lists([0, 0, 0], 3, 4, 5)[0].data_page_header_v2
    file = build_file(FLAT, pages, rows=9, entries=9)
    error = read_error(file)
    assert error.message.startswith("a data page has no data page header")
    assert error.offset == file.at[1]
    with pytest.raises(CorruptFileError, match="has no data page header"):
        pqext.open(file.data).read(rows={0: [range(7, 8)]})
    assert remaining_rows(file, how) == ([0, 1, 2], [(3, 9)])


def test_page_with_several_headers_uses_the_header_of_its_type() -> None:
    pages = [flat(0, 1, 2), flat(3, 4, 5)]
    pages[0][0].data_page_header_v2 = lists([0], 3)[0].data_page_header_v2
    pages[1][0].dictionary_page_header = DictionaryPageHeader(num_values=-9, encoding=Encoding.PLAIN)
    file = build_file(FLAT, pages, rows=6, entries=6)
    assert pqext.open(file.data).read()["a"].to_pylist() == [0, 1, 2, 3, 4, 5]


def test_dictionary_with_a_negative_count_is_corrupt() -> None:
    body = numbers(7, 8)
    header = PageHeader(
        type=PageType.DICTIONARY_PAGE, uncompressed_page_size=8, compressed_page_size=8,
        data_page_header=flat()[0].data_page_header,
        dictionary_page_header=DictionaryPageHeader(num_values=-5, encoding=Encoding.PLAIN),
    )
    file = build_file(FLAT, [(header, body), flat(1, 2)], rows=2, entries=2)
    assert "a page declares a negative value count: -5" in read_error(file).message
    assert remaining_rows(file) == ([], [(0, 2)])
    assert not pqext.verify(file.data).ok


@KINDS
@pytest.mark.parametrize("number", [0, 1, 30, -3])
def test_levels_in_an_invalid_encoding_lose_their_page(number: int, how: str) -> None:
    pages = [flat(0, 1), flat(2, 3, definition_level_encoding=number), flat(4, 5)]
    file = build_file(FLAT, pages, rows=6, entries=6)
    error = read_error(file)
    assert (error.offset, f"encoding {number}, which is invalid for levels" in error.message) == (file.at[1], True)
    assert remaining_rows(file, how) == ([0, 1, 4, 5], [(2, 4)])


@KINDS
def test_page_with_a_wrong_row_count_loses_its_rows(how: str) -> None:
    """A page of version 2 says how many rows it has; one of more would move all rows behind it."""
    pages = [lists([0, 1], 0, 1), lists([0, 0], 2, 3, rows=1), lists([0, 1], 4, 5)]
    file = build_file(LIST, pages, rows=3, entries=6)
    assert "more rows than its row group" in read_error(file).message
    assert remaining_rows(file, how) == ([[0, 1], [4, 5]], [(1, 2)])


def test_rows_that_continue_in_the_next_page_are_preserved() -> None:
    """Pages of version 2 must not do so; old writers let them."""
    file = build_file(LIST, [lists([0, 0], 0, 1), lists([1, 0], 2, 3)], rows=3, entries=4)
    for options in ({}, {"on_corrupt": "skip"}):
        assert pqext.open(file.data, **options).read()["a"].to_pylist() == [[0], [1, 2], [3]]


def test_chunk_with_excess_rows_is_lost_if_no_page_is_to_blame() -> None:
    def page(repetition: list[int], *values: int) -> tuple[PageHeader, bytes]:
        return first_form(len(values), levels(repetition) + levels([3] * len(values)) + numbers(*values))

    file = build_file(LIST, [page([0, 1], 0, 1), page([0, 0], 2, 3), page([0, 1], 4, 5)], rows=3, entries=6)
    assert "more rows than its row group" in read_error(file).message
    assert remaining_rows(file) == ([], [(0, 3)])


def test_uncompressed_pages_are_read_without_the_codec() -> None:
    definition = levels([1, 1])[4:]
    pages = [second_form(2, 2, b"", definition, numbers(1, 2)), second_form(2, 2, b"", levels([0, 0])[4:], b"")]
    file = build_file(FLAT, pages, rows=4, entries=4, codec=77)
    assert pqext.open(file.data).read()["a"].to_pylist() == [1, 2, None, None]
    packed = build_file(FLAT, [second_form(2, 2, b"", definition, numbers(1, 2), is_compressed=True)], 2, 2, codec=77)
    with pytest.raises(UnsupportedError, match="codec 77") as caught:
        pqext.open(packed.data).read()
    assert caught.value.offset == packed.at[0]


def test_loss_after_a_corrupt_page_is_reported_once() -> None:
    """The rest of a chunk is given up where a page's rows cannot be counted; its other pages are not looked at."""
    def page(first: int, rows: int) -> tuple[PageHeader, bytes]:
        body = levels([0] * rows) + levels([3] * rows) + numbers(*range(first, first + rows))
        return first_form(rows, body)

    pages = [page(0, 3), page(3, 3), page(6, 3)]
    pages[1] = (pages[1][0], b"\xff" * len(pages[1][1]))
    file = build_file(LIST, pages, rows=9, entries=9)
    rows, damage = remaining_rows(file)
    assert rows == [[0], [1]]
    assert damage == [(2, 9)]
