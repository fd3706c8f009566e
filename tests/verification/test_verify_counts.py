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
from pqext.core.metadata import DataPageHeaderV2
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


def rows(by: int) -> Any:
    def change(header: DataPageHeaderV2) -> None:
        header.num_rows = -1 if by < 0 else header.num_rows + by

    return change


def nulls(by: int) -> Any:
    def change(header: DataPageHeaderV2) -> None:
        header.num_nulls = -1 if by < 0 else header.num_nulls + by

    return change


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
@pytest.mark.spec("page.v2.counts")
def test_headers_that_count_as_their_pages_do_are_no_faults(data: bytes) -> None:
    report = verify(data)
    assert report.ok, str(report)


@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize(
    "change", [rows(-1), rows(1), nulls(-1), nulls(1)], ids=["rows=-1", "rows+1", "nulls=-1", "nulls+1"]
)
@pytest.mark.parametrize("column", range(COLUMNS))
@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
@pytest.mark.spec("page.v2.counts")
def test_a_header_that_counts_other_rows_or_nulls_is_a_fault(data: bytes, column: int, change: Any, page: int) -> None:
    damaged = with_header(data, change, column, page)
    report = verify(damaged)
    assert {count.rule for count in report.counts} == {"page.v2.counts"}, str(report)
    with pqext.open(damaged) as file:
        assert file.read() == TABLE


@pytest.mark.spec("page.v2.counts")
def test_rows_that_are_counted_in_another_page_of_lists_are_a_fault() -> None:
    def less(header: DataPageHeaderV2) -> None:
        header.num_rows -= 1

    damaged = with_header(with_header(FILES["ours without index"], rows(1), 1, 0), less, 1, 1)
    report = verify(damaged)
    assert {fault.message.partition(" where")[0] for fault in report.faults} == {
        "a page holds 22 entries", "a page holds 18 entries",
    }


@pytest.mark.parametrize("column", range(COLUMNS))
@pytest.mark.spec("layout.page-lost")
def test_damage_that_is_passed_over_is_none_where_a_checksum_says_so(column: int) -> None:
    for change in (rows(-1), rows(1)):
        with pqext.open(with_header(by_pqext(page_index=False), change, column), on_corrupt="skip") as file:
            assert file.read() == TABLE
            assert not file.damage


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.spec("logical.decimal.byte-array")
def test_decimals_of_no_bytes_are_a_fault_that_repair_mends(dictionary: bool) -> None:
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
