"""Files whose offset index is wrong are read without it, with a warning; ``strict`` rejects them.

JavaScript writers leave every first row 0; some Go and .NET writers count the entries of lists as rows.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import OffsetIndexError
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData, OffsetIndex
from pqext.core.format.thrift import decode, encode
from pqext.core.indexes.reading import DamagedIndexWarning

ROWS, GROUP, PAGE = 400, 200, 20


def stored() -> bytes:
    out = io.BytesIO()
    pqext.write_table(
        pa.table({
            "i": range(ROWS), "s": [f"text {n % 50}" for n in range(ROWS)],
            "l": [list(range(n, n + n % 4 + 1)) for n in range(ROWS)],
        }), out, row_group_rows=GROUP, page_rows=PAGE,
    )  # fmt: skip
    return out.getvalue()


def with_offset_index(data: bytes, column: int, change: Callable[[OffsetIndex], None]) -> bytes:
    """The file with another offset index for the first chunk of ``column``, stored before the footer."""
    with pqext.open(data) as file:
        index, end = file.row_groups[0].chunk(column).offset_index, file.footer.offset
    assert index is not None
    index = decode(OffsetIndex, encode(index))[0]
    change(index)
    raw = encode(index)

    def move_index(metadata: FileMetaData) -> None:
        chunk = metadata.row_groups[0].columns[column]
        chunk.offset_index_offset, chunk.offset_index_length = end, len(raw)

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data[:end] + raw + data[end:]), move_index, out)
    return out.getvalue()


def rows_of_zero(index: OffsetIndex) -> None:
    for page in index.page_locations:
        page.first_row_index = 0


def entries_as_rows(index: OffsetIndex) -> None:
    for number, page in enumerate(index.page_locations):
        page.first_row_index = min(number * PAGE * 5 // 2, GROUP - len(index.page_locations) + number)


def longer_pages(index: OffsetIndex) -> None:
    for number, page in enumerate(index.page_locations):
        page.first_row_index += number


def offsets_without_header(index: OffsetIndex) -> None:
    for page in index.page_locations[1:]:
        page.offset, page.compressed_page_size = page.offset + 9, page.compressed_page_size - 9


def one_page_missing(index: OffsetIndex) -> None:
    del index.page_locations[4]


WRONG = {
    "every first row is 0": (0, rows_of_zero),
    "every first row of a list column is 0": (2, rows_of_zero),
    "entries of lists are counted as rows": (2, entries_as_rows),
    "first rows are too late": (0, longer_pages),
    "first rows of texts are too late": (1, longer_pages),
    "offsets are behind page headers": (0, offsets_without_header),
    "a page is missing": (0, one_page_missing),
}


@pytest.fixture(params=WRONG)
def wrong(request: pytest.FixtureRequest) -> bytes:
    return with_offset_index(stored(), *WRONG[request.param])


def test_first_rows_are_read_without_a_wrong_offset_index(wrong: bytes) -> None:
    expected = pq.read_table(io.BytesIO(wrong))
    for offset, limit in ((0, 1), (0, 45), (30, 5), (85, 30), (150, 100)):
        rows = {0: [range(offset, min(GROUP, offset + limit))], 1: [range(max(0, offset + limit - GROUP))]}
        with pqext.open(wrong) as file, pytest.warns(DamagedIndexWarning, match="page index"):
            assert file.read(rows=rows).equals(expected.slice(offset, limit))
    with pytest.warns(DamagedIndexWarning, match="page index"):
        assert pqext.scan(wrong).limit(50).to_table().equals(expected.slice(0, 50))
    with pqext.open(wrong) as file, pytest.warns(DamagedIndexWarning, match="page index"):
        assert file.head(45).equals(expected.slice(0, 45))


def test_batches_of_chosen_rows_are_read_without_a_wrong_offset_index(wrong: bytes) -> None:
    expected = pq.read_table(io.BytesIO(wrong)).slice(0, 130)
    with pqext.open(wrong) as file, pytest.warns(DamagedIndexWarning, match="page index"):
        batches = list(file.iter_batches(32, rows={0: [range(130)]}))
    assert pa.Table.from_batches(batches).equals(expected)
    assert max(batch.num_rows for batch in batches) == 32


def test_filters_select_the_right_rows_in_spite_of_a_wrong_offset_index(wrong: bytes) -> None:
    expected = pq.read_table(io.BytesIO(wrong))
    for condition, rows in (
        (col("i") == 105, [105]), (col("i").isin([22, 23, 141]), [22, 23, 141]), (col("s") == "text 7", None),
        ((col("i") > 97) & (col("s") == "text 12"), [112, 162, 212, 262, 312, 362]),
    ):
        rows = list(range(7, ROWS, 50)) if rows is None else rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedIndexWarning)  # filters may not reach a wrong page
            assert pqext.read_table(wrong, filter=condition).equals(expected.take(rows))


def test_strict_reading_rejects_a_wrong_offset_index(wrong: bytes) -> None:
    with pqext.open(wrong, strict=True) as file, pytest.raises(pqext.CorruptFileError, match=r"index|page") as caught:
        file.read(rows={0: [range(85, 90)]})
    assert caught.value.row_group == 0
    assert caught.value.column in ("i", "s", "l.list.element")


def test_rows_already_returned_by_a_wrong_offset_index_are_an_error() -> None:
    """Rows 30 to 34 are returned by the index before a later page shows that it is wrong: they may be other rows."""

    def shift_later_row(index: OffsetIndex) -> None:
        index.page_locations[7].first_row_index += 3

    data = with_offset_index(stored(), 0, shift_later_row)
    with pqext.open(data) as file:
        batches = file.iter_batches(5, rows={0: [range(30, 35), range(150, 155)]})
        assert next(batches)["i"].to_pylist() == list(range(30, 35))
        with pytest.raises(OffsetIndexError, match="offset index"):
            list(batches)
