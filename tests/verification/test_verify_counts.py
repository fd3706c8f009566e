"""`verify` compares what headers of version 2 count with their levels, and finds decimals that are no numbers."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from odd_files import empty_decimals, with_header

import pqext
from pqext.core.format.metadata import DataPageHeaderV2
from pqext.verification import verify

TABLE = pa.table({
    "flat": pa.array([1, None, 3] * 10, pa.int32()),
    "list": pa.array([[1, None], [], None] * 10, pa.list_(pa.int32())),
    "struct": pa.array([{"x": 1}, {"x": None}, None] * 10, pa.struct([("x", pa.int32())])),
    "needed": pa.array(range(30), pa.int64()),
})
COLUMNS = TABLE.num_columns


def by_pqext(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, page_version=2, page_rows=15, dictionary=False, **options)
    return out.getvalue()


def by_pyarrow(**options: Any) -> bytes:
    out = io.BytesIO()
    options = {"data_page_version": "2.0", "data_page_size": 1, "write_batch_size": 15, **options}
    pq.write_table(TABLE, out, use_dictionary=False, **options)
    return out.getvalue()


FILES = {
    "ours": by_pqext(),
    "ours without index": by_pqext(page_index=False, checksums=False),
    "pyarrow": by_pyarrow(),
    "pyarrow with index": by_pyarrow(write_page_index=True, write_page_checksum=True),
}


def rows(header: DataPageHeaderV2) -> None:
    header.num_rows = -1


def more_rows(header: DataPageHeaderV2) -> None:
    header.num_rows += 1


def decrement_rows(header: DataPageHeaderV2) -> None:
    header.num_rows -= 1


def nulls(header: DataPageHeaderV2) -> None:
    header.num_nulls = -2


def more_nulls(header: DataPageHeaderV2) -> None:
    header.num_nulls += 1


def no_nulls(header: DataPageHeaderV2) -> None:
    header.num_nulls = -1


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
@pytest.mark.spec("page.v2.counts")
def test_correct_header_counts_are_not_faults(data: bytes) -> None:
    report = verify(data)
    assert report.ok, str(report)


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("change", [rows, more_rows, decrement_rows, nulls, more_nulls])
@pytest.mark.parametrize("column", range(COLUMNS))
@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
@pytest.mark.spec("page.v2.counts")
def test_wrong_row_or_null_count_in_a_header_is_a_fault(data: bytes, column: int, change: Any, page: int) -> None:
    damaged = with_header(data, change, column, page)
    report = verify(damaged)
    assert [fault.rule for fault in report.faults] == ["page.v2.counts"], str(report)
    with pqext.open(damaged) as file:
        assert file.read() == TABLE


@pytest.mark.parametrize("column", range(COLUMNS))
@pytest.mark.spec("page.v2.counts")
def test_missing_null_counts_of_parquet_java_are_not_a_fault(column: int) -> None:
    """So it writes them where it writes no statistics."""
    for data in FILES.values():
        report = verify(with_header(data, no_nulls, column))
        assert report.ok, str(report)


@pytest.mark.spec("page.v2.counts")
def test_rows_counted_in_another_page_of_lists_are_a_fault() -> None:
    data = FILES["ours without index"]
    report = verify(with_header(with_header(data, more_rows, 1, 0), decrement_rows, 1, 1))
    assert [fault.message for fault in report.faults] == [
        "a page contains 15 rows, its header states 16", "a page contains 15 rows, its header states 14",
    ]


@pytest.mark.spec("page.v2.counts")
def test_pages_that_end_within_a_run_of_rows_are_counted() -> None:
    """Runs are 65,536 rows at most, pages here 1,000 and one of many."""
    count = 150_000
    table = pa.table({"flat": pa.array([1, None, 3] * (count // 3)), "list": pa.array([[1, None], [], None] * 50_000)})
    out = io.BytesIO()
    pqext.write_table(table, out, page_version=2, page_rows=1000, page_index=False, dictionary=False)
    assert verify(out.getvalue()).ok
    for column in range(2):
        for page in (0, 65, 66, 149):
            for change in (more_rows, more_nulls):
                (fault,) = verify(with_header(out.getvalue(), change, column, page)).faults
                assert fault.rule == "page.v2.counts"


@pytest.mark.parametrize("column", range(COLUMNS))
@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.spec("layout.page-lost")
def test_wrong_header_counts_are_not_skippable_corruption(column: int, checksums: bool) -> None:
    """Without checksums, headers are believed of lists whose pages are damaged, where they count all rows."""
    data = by_pqext(page_index=False, checksums=checksums)
    for change in (rows, more_rows, decrement_rows):
        with pqext.open(with_header(data, change, column), on_corrupt="skip") as file:
            assert file.read() == TABLE
            assert not file.damage


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.spec("logical.decimal.byte-array")
def test_zero_length_decimals_are_a_fault_fixed_by_repair(dictionary: bool) -> None:
    data, mended = empty_decimals(dictionary=dictionary), io.BytesIO()
    report = verify(data)
    assert [fault.rule for fault in report.faults] == ["logical.decimal.byte-array"]
    with pytest.raises(pa.ArrowInvalid, match="Length of byte array"):
        pq.read_table(io.BytesIO(data))
    pqext.repair(data, mended)
    assert verify(mended.getvalue()).ok
    expected = [Decimal("0.01"), Decimal(0), Decimal("5.12"), None] * 5
    for table in (pqext.read_table(data), pqext.read_table(mended.getvalue()), pq.read_table(mended)):
        assert table["d"].to_pylist() == expected
