"""To which columns and row groups pages belong where no footer says so, and what the report tells of it."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recovery.cut_files import by_pqext, by_pyarrow, extent, footer_of, recovered, without_footer

import pqext
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData
from pqext.core.options.layout import FooterFormat
from pqext.recovery.row_groups.search import AMBIGUOUS


@pytest.mark.spec("recovery.ambiguous")
def test_ambiguous_pages_are_lost_without_row_group_rows() -> None:
    numbers = pa.table({"a": range(800), "b": range(1000, 1800)})
    data = by_pyarrow(
        numbers, row_group_size=200, compression="none", use_dictionary=False, data_page_size=800, write_batch_size=100
    )
    cut = data[: footer_of(data)]
    schema = "a BIGINT, b BIGINT"
    report, found = recovered(cut, schema=schema)
    assert found is None
    assert [loss.reason for loss in report.losses] == [f"{AMBIGUOUS}; row_group_rows may resolve it"]


def same_types(count: int, group: int, page: int = 1 << 20) -> tuple[pa.Table, bytes]:
    """Two columns of one type without dictionaries, whose chunks look alike, and their file without its footer."""
    table = pa.table({
        "lat": pa.array([48 + i / 7 for i in range(count)]), "lon": pa.array([11 + i / 9 for i in range(count)])
    })
    data = by_pyarrow(
        table, row_group_size=group, compression="none", use_dictionary=False, data_page_size=page * 8,
        write_batch_size=page,
    )
    return table, data[: footer_of(data)]


@pytest.mark.spec("recovery.ambiguous")
def test_use_of_row_group_rows_is_reported() -> None:
    table, cut = same_types(600, 100)
    assert recovered(cut, schema=table.schema)[1] is None
    report, found = recovered(cut, schema=table.schema, row_group_rows=100)
    assert found == table
    assert {group.assigned for group in report.row_groups} == {"row_group_rows"}
    assert report.checksums
    assert not report.is_certified
    told = "assigned by the provided Arrow schema, whose names and types no footer confirms and row_group_rows"
    assert told in str(report)


@pytest.mark.spec("recovery.ambiguous")
def test_row_group_rows_are_ignored_if_pages_form_smaller_groups() -> None:
    for group, page, told in ((100, 1 << 20, 200), (200, 100, 200)):  # one and the same pages
        table, cut = same_types(600, group, page)
        report, found = recovered(cut, schema=table.schema, row_group_rows=told)
        assert found is None
        assert "; row_group_rows=200 does not resolve it" in report.losses[0].reason
    table, cut = same_types(80_000, 40_000, 20_000)  # pages that a writer ends for their length alone
    report, found = recovered(cut, schema=table.schema, row_group_rows=40_000)
    assert found == table
    assert {group.assigned for group in report.row_groups} == {"row_group_rows"}


@pytest.mark.spec("recovery.ambiguous")
def test_row_group_rows_that_fit_no_page_do_not_blame_the_schema() -> None:
    table, cut = same_types(600, 100)
    report, found = recovered(cut, schema=table.schema, row_group_rows=50)
    assert found is None
    assert [loss.reason for loss in report.losses] == [f"{AMBIGUOUS}; row_group_rows=50 does not resolve it"]


@pytest.mark.spec("recovery.ambiguous")
def test_row_group_rows_that_contradict_the_pages_are_ignored() -> None:
    rows = pa.table({"id": range(300), "name": [f"n{i % 9}" for i in range(300)]})
    data = by_pqext(rows, row_group_rows=100)
    for told in (70, 200):
        report, found = recovered(data[: footer_of(data)], schema=rows.schema, row_group_rows=told)
        assert found == rows
        assert report.notes == (f"row_group_rows={told} does not match the pages: row groups have 100 rows",)
        assert {group.assigned for group in report.row_groups} == {"only"}


@pytest.mark.spec("recovery.ambiguous")
def test_small_row_group_rows_lose_nothing_of_a_truncated_file() -> None:
    table = pa.table({"id": range(300), "n": range(300)})
    data = by_pyarrow(table, row_group_size=50, use_dictionary=False, data_page_size=1, write_batch_size=40)
    cut = data[: extent(data, 5, 1)[0] + 10]
    for told in (None, 25):
        report, found = recovered(cut, schema=table.schema, row_group_rows=told)
        assert found == table.slice(0, 250)
        assert {group.assigned for group in report.row_groups} == {"regular"}


@pytest.mark.spec("recovery.assigned")
def test_columns_assigned_by_a_schema_are_not_certified() -> None:
    table = pa.table({"at": pa.array([i * 1000 for i in range(300)], pa.timestamp("ms")), "n": range(300)})
    data = by_pqext(table)
    cut = data[: footer_of(data)]
    for schema in ("at TIMESTAMP_NTZ, n BIGINT", "n BIGINT, at BIGINT", table.schema):
        report, found = recovered(cut, schema=schema)
        assert found is not None
        assert report.rows == 300
        assert report.checksums
        assert not report.is_certified
        assert not any(group.certified for group in report.row_groups)
        told = json.loads(json.dumps(report.to_dict()))
        assert (told["certified"], told["checksums"], told["row_groups"][0]["assigned"]) == (False, True, "only")
        assert "names and types no footer confirms, in the only way that fits" in str(report)
    report, _ = recovered(data[:-1])
    assert report.is_certified
    assert {group.assigned for group in report.row_groups} == {"footer"}
    assert "columns    certain: as the footer states" in str(report)


@pytest.mark.spec("recovery.assigned")
def test_ambiguity_with_uneven_row_groups_is_reported() -> None:
    numbers = pa.table({"a": range(250), "b": range(1000, 1250)})
    made = io.BytesIO()
    # The index behind the pages shows that none is missing.
    with pq.ParquetWriter(made, numbers.schema, use_dictionary=False, write_page_index=True) as writer:
        for start, count in ((0, 100), (100, 50), (150, 100)):  # six pages, also one row group of 250 rows
            writer.write_table(numbers.slice(start, count))
    report, found = without_footer(made.getvalue(), schema="a BIGINT, b BIGINT")
    assert found == numbers
    assert {group.assigned for group in report.row_groups} == {"regular"}
    assert "in the only way with pages of equal size; other splits fit too" in str(report)


PLAIN: dict[str, Any] = {"row_group_rows": 100, "page_index": False, "dictionary": False, "compression": "uncompressed"}


@pytest.mark.spec("recovery.assigned")
def test_footer_at_a_wrong_offset_certifies_no_columns() -> None:
    data = by_pqext(pa.table({"a": range(400), "b": range(400, 800)}), statistics=False, **PLAIN)
    start, stop = extent(data, 1, 0)
    for again in (0, 2):  # chunks look alike, so that others come to lie where the footer says
        report, found = recovered(data[:start] + data[start:stop] * again + data[stop:])
        assert not report.is_certified
        assert {group.assigned for group in report.row_groups} <= {"moved"}
        assert found is None or {(row["b"] - row["a"]) for row in found.to_pylist()} == {400}
    report, found = recovered(data[:start] + bytes(9) + data[start:])
    assert found is not None
    assert found["a"].to_pylist() == list(range(400))
    assert not report.is_certified
    assert "but bytes before it are missing or were added" in str(report)


@pytest.mark.spec("recovery.assigned")
@pytest.mark.parametrize("form", ["thrift", "thrift+flatbuffers", "flatbuffers"])
@pytest.mark.parametrize("checkpoint", [None, 4])
def test_footer_after_the_data_certifies_columns(form: FooterFormat, checkpoint: int | None) -> None:
    table = pa.table({"a": range(400), "b": range(400, 800)})
    data = by_pqext(table, footer=form, checkpoint=checkpoint, **PLAIN)
    if form == "thrift+flatbuffers":
        begin = footer_of(data)
        data = data[:begin] + bytes(9) + data[begin + 9 :]
    report, found = recovered(data[:-3] if form != "flatbuffers" else data + b"something behind")
    assert found == table
    assert report.is_certified


@pytest.mark.spec("recovery.doubted")
def test_columns_next_to_dropped_ones_are_checked_by_statistics() -> None:
    table = pa.table({"a": range(400), "b": range(400, 800), "c": range(800, 1200)})
    data = bytearray(by_pqext(table, **PLAIN))
    (a, _), (b, end), (c, stop) = (extent(bytes(data), 0, at) for at in range(3))
    data[a:b], data[b:end] = data[b:end], data[a:b]  # they are of one size
    data[c:stop] = bytes(stop - c)
    report, _ = recovered(bytes(data), drop_columns=True)
    assert report.dropped_columns == ("c",)
    assert report.row_groups[0].assigned == "contradicted"
    assert report.row_groups[1].certified


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.spec("recovery.moved.apart")
def test_row_groups_missing_from_the_footer_are_not_recovered(dictionary: bool) -> None:
    """Chunks look alike, so that each could stand a row group behind its place."""
    table = pa.table({"a": [row % 7 for row in range(400)], "b": [row % 5 for row in range(400)]})
    data = by_pqext(table, **{**PLAIN, "dictionary": dictionary, "row_group_rows": 100, "statistics": False})

    def drop_row_groups(metadata: FileMetaData) -> None:
        metadata.row_groups, metadata.num_rows = list(metadata.row_groups)[:3], 300

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data), drop_row_groups, out)
    for whole in (out.getvalue(), out.getvalue()[:-8]):
        report, found = recovered(whole)
        assert found == table.slice(0, 300), report
    damaged = bytearray(out.getvalue())
    stop = extent(data, 2, 0)[1]
    damaged[stop - 1] ^= 1
    report, found = recovered(bytes(damaged))
    assert report.losses
    assert found is not None
    assert found == table.slice(0, found.num_rows)
    assert found.num_rows < 300


@pytest.mark.spec("layout.chunks-apart")
def test_row_group_listed_twice_is_reported_and_recovered_twice() -> None:
    data = by_pqext(pa.table({"a": range(100)}), **PLAIN)

    def duplicate_row_groups(metadata: FileMetaData) -> None:
        metadata.row_groups, metadata.num_rows = [*metadata.row_groups, *metadata.row_groups], 2 * metadata.num_rows

    out = io.BytesIO()
    rewrite_footer(io.BytesIO(data), duplicate_row_groups, out)
    assert [(one.rule, one.row_group) for one in pqext.verify(out.getvalue()).faults] == [("layout.chunks-apart", 0)]
    assert pqext.read_table(out.getvalue(), on_corrupt="skip").num_rows == 200
    report, found = recovered(out.getvalue())
    assert found is not None
    assert found.num_rows == 200
    assert not report.losses


@pytest.mark.spec("recovery.certified")
def test_empty_last_row_group_does_not_affect_the_certificate() -> None:
    table, made = pa.table({"a": ["x", "y"] * 50}), io.BytesIO()
    with pq.ParquetWriter(made, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
        writer.write_table(table.slice(0, 0), row_group_size=1)
    assert pq.read_metadata(made).num_row_groups == 2
    report, found = recovered(made.getvalue())
    assert found == table
    assert report.is_certified
