"""What strict reading lets pass: headers that count wrongly, decimals that are no numbers, values of another type."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pytest
from core.raw_files import OPTIONAL, Column, leaf, write
from odd_files import empty_decimals, with_header
from recovery.cut_files import by_pqext, by_pyarrow, extent, footer_of, recovered, without_footer

from pqext.core.format.metadata import DataPageHeaderV2

TABLE = pa.table({
    "flat": pa.array([1, None, 3] * 10, pa.int32()),
    "list": pa.array([[1, None], [], None] * 10, pa.list_(pa.int32())),
    "text": pa.array(["a", "bb", None] * 10),
})
DOCUMENTS = TABLE.append_column("json", pa.array(['{"a": 1}'] * 30, pa.json_()))


def minus_rows(header: DataPageHeaderV2) -> None:
    header.num_rows = -1


def decrement_rows(header: DataPageHeaderV2) -> None:
    header.num_rows -= 1


def more_rows(header: DataPageHeaderV2) -> None:
    header.num_rows += 1


def minus_nulls(header: DataPageHeaderV2) -> None:
    header.num_nulls = -2


def decrement_nulls(header: DataPageHeaderV2) -> None:
    header.num_nulls -= 1


CHANGES = [minus_rows, decrement_rows, more_rows, minus_nulls, decrement_nulls]


@pytest.mark.parametrize(
    ("change", "column"),
    [
        pytest.param(change, column, marks=[pytest.mark.slow] * ((at + column) % 3 == 1))
        for at, change in enumerate(CHANGES)
        for column in range(TABLE.num_columns)
    ],
)
@pytest.mark.parametrize(
    ("made_by", "table", "options"),
    [
        pytest.param(made_by, table, options, id=f"{name} of {made_by.__name__}", marks=[pytest.mark.slow] * is_slow)
        for made_by, name, table, options, is_slow in (
            (by_pqext, "checksums", TABLE, "checksums", False),
            (by_pqext, "no checksums", TABLE, "no checksums", False),
            (by_pqext, "no dictionary", TABLE, "no dictionary", True),
            (by_pqext, "json", DOCUMENTS, "checksums", False),
            (by_pyarrow, "checksums", TABLE, "checksums", False),
            (by_pyarrow, "no checksums", TABLE, "no checksums", True),
            (by_pyarrow, "no dictionary", TABLE, "no dictionary", False),
            (by_pyarrow, "json", DOCUMENTS, "checksums", True),
        )
    ],
)
@pytest.mark.spec("recovery.counts")
def test_pages_with_wrong_header_counts_are_rewritten(
    made_by: Callable[..., bytes], change: Callable[[DataPageHeaderV2], None], column: int, table: pa.Table,
    options: str,
) -> None:
    if made_by is by_pqext:
        chosen = {"no checksums": {"checksums": False}, "no dictionary": {"dictionary": False}}.get(options, {})
        written = by_pqext(table, page_version=2, row_group_rows=15, **chosen)
    else:
        chosen = {"no checksums": {"write_page_checksum": False}, "no dictionary": {"use_dictionary": False}}
        written = by_pyarrow(table, data_page_version="2.0", row_group_size=15, **chosen.get(options, {}))
    data = with_header(written, change, column)
    for damaged in (data, data[:-8])[: 1 + (options == "checksums")]:
        report, found = recovered(damaged)
        assert found is not None, report
        assert found.to_pydict() == table.to_pydict()
        assert [group.rows for group in report.row_groups] == [15, 15]
        assert not report.losses
        (note,) = report.notes
        assert note.startswith(f"column {TABLE.column_names[column]}: ")
        assert " header" in note
        assert note.endswith("; 1 row group rewritten with the same values")


@pytest.mark.spec("recovery.counts")
def test_row_group_that_cannot_be_rewritten_does_not_affect_others() -> None:
    """Of two without checksums, one has a header of Arrow before 12, which counts the entries of lists as rows."""
    data = bytearray(by_pyarrow(
        TABLE, data_page_version="2.0", row_group_size=10, write_page_checksum=False, compression="zstd",
        use_dictionary=False,
    ))  # fmt: skip
    start, stop = extent(bytes(data), 2, 0)
    data[stop - 12 : stop] = bytes(12)

    def as_entries(header: DataPageHeaderV2) -> None:
        header.num_rows = header.num_values

    report, found = recovered(with_header(bytes(data), as_entries, 1))
    assert found == TABLE.slice(0, 20), report
    assert [loss.source_row_group for loss in report.losses] == [2]
    assert start < stop


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.spec("recovery.counts")
def test_pages_without_null_counts_are_copied_and_found_without_footer(dictionary: bool, beside: bool) -> None:
    table = DOCUMENTS if beside else TABLE
    data = by_pyarrow(table, data_page_version="2.0", use_dictionary=dictionary)

    def clear_nulls(header: DataPageHeaderV2) -> None:
        header.num_nulls = -1

    for column in range(table.num_columns):
        data = with_header(data, clear_nulls, column)
    for report, found in (recovered(data), recovered(data[:-8]), without_footer(data, schema=table.schema)):
        assert found is not None, report
        assert found.to_pydict() == table.to_pydict()
        assert not report.losses


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.spec("recovery.counts")
def test_zero_length_decimals_are_rewritten(dictionary: bool) -> None:
    report, found = recovered(empty_decimals(dictionary=dictionary)[:-8])
    assert found is not None, report
    assert found["d"].to_pylist() == [Decimal("0.01"), Decimal(0), Decimal("5.12"), None] * 5
    assert "a decimal value has no bytes" in report.notes[0]


@pytest.mark.parametrize("precision", [9, 18, 38])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.spec("recovery.forms")
def test_empty_text_is_not_a_decimal(dictionary: bool, precision: int) -> None:
    table = pa.table({"id": range(300), "s": pa.array(["a", "", None] * 100)})
    options = {"use_dictionary": dictionary, "compression": "none"}
    report, found = without_footer(by_pyarrow(table, **options), schema=f"id BIGINT, s DECIMAL({precision},2)")
    assert found is None, report
    full = pa.table({"id": range(300), "s": pa.array(["a", "b", None] * 100)})
    report, found = without_footer(by_pyarrow(full, **options), schema=f"id BIGINT, s DECIMAL({precision},2)")
    assert found is not None, report


@pytest.mark.parametrize("ddl", ["INT", "FLOAT", "DATE", "DECIMAL(9,2)"])
@pytest.mark.spec("recovery.types")
def test_column_with_excess_bytes_in_all_pages_has_another_type(ddl: str) -> None:
    table = pa.table({"s": pa.array(["a", "", None] * 100)})
    data = by_pyarrow(table, row_group_size=150, use_dictionary=False, compression="none")
    assert without_footer(data, schema="s STRING")[1] == table
    report, found = without_footer(data, schema=f"s {ddl}")
    assert found is None, report
    assert "the schema may not match the file" in str(report)


@pytest.mark.parametrize("first", [b"", b"xx"])
@pytest.mark.spec("recovery.types")
def test_page_with_excess_bytes_is_accepted_if_another_has_none(first: bytes) -> None:
    """Readers pass over what is behind values: where one page has no such bytes, the type is right."""
    numbers = pa.array([1, None, 3] * 100, pa.int32())
    values = numbers.drop_null().to_numpy().tobytes()
    data = b"PAR1"
    for behind in (first, b"xx"):
        whole = write([leaf("n", OPTIONAL)], [Column(values + behind, 300, [1, 0, 1] * 100)], 300)
        data += whole[4 : footer_of(whole)]
    report, found = recovered(data, schema="n INT")
    if first:
        assert found is None, report
    else:
        assert found is not None, report
        assert found["n"].combine_chunks() == pa.concat_arrays([numbers, numbers])
