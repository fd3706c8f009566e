"""Nulls in the place of lost chunks: what they cost, what they save, and what the report tells of them."""

from __future__ import annotations

import io
import json
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recovery import damaged_files
from recovery.cut_files import by_pqext, by_pyarrow, extent, footer_of, recovered

import pqext
from pqext import variant
from pqext.recovery import Recovery

SCHEMA = pa.schema([
    pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("price", pa.float64()),
    ("list", pa.list_(pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())]))),
])  # fmt: skip


def rows(count: int) -> pa.Table:
    return pa.table(
        {
            "id": range(count),
            "name": [f"n{i % 9}" for i in range(count)],
            "price": [i / 7 for i in range(count)],
            "list": [[{"x": i, "y": None}] * (i % 3) for i in range(count)],
        },
        SCHEMA,
    )


def without_chunk(data: bytes, *lost: tuple[int, int]) -> bytes:
    """The file with zeros in the place of some chunks, by row group and leaf."""
    damaged = bytearray(data)
    for group, leaf in lost:
        start, stop = extent(data, group, leaf)
        damaged[start:stop] = bytes(stop - start)
    return bytes(damaged)


def with_nulls(table: pa.Table, column: str, first: int, stop: int) -> pa.Table:
    """``table`` with nulls in some rows of a column."""
    values = table[column].to_pylist()
    values[first:stop] = [None] * (stop - first)
    at = table.schema.get_field_index(column)
    return table.set_column(at, table.schema.field(column), pa.array(values, table.schema.field(column).type))


def nulls_of(report: Recovery) -> list[tuple[int, tuple[str, ...]]]:
    return [(at, group.null_columns) for at, group in enumerate(report.row_groups) if group.null_columns]


@pytest.mark.parametrize(("leaf", "column"), [(1, "name"), (2, "price"), (3, "list"), (4, "list")])
@pytest.mark.parametrize("writer", ["pqext", "pyarrow"])
@pytest.mark.spec("recovery.null-columns")
def test_lost_chunk_affects_its_column_in_one_row_group_only(writer: str, leaf: int, column: str) -> None:
    table = rows(300)
    data = by_pqext(table, row_group_rows=100) if writer == "pqext" else by_pyarrow(table, row_group_size=100)
    data = without_chunk(data, (1, leaf))
    report, found = recovered(data, null_columns=True)
    assert found == with_nulls(table, column, 100, 200)
    assert nulls_of(report) == [(1, (column,))]
    assert [(loss.source_row_group, loss.column, loss.rows) for loss in report.losses] == [(1, column, 100)]
    assert "replaced with nulls" in report.losses[0].reason
    assert f"nulls      {column} in row group 1 of the new file, rows 100 to 199" in str(report)
    told = json.loads(json.dumps(report.to_dict()))
    assert [group["null_columns"] for group in told["row_groups"]] == [[], [column], []]
    assert [group.certified for group in report.row_groups] == [True, False, True]
    assert report.checksums
    assert recovered(data)[0].rows == 200  # never unasked


@pytest.mark.spec("recovery.null-columns")
def test_required_columns_lose_their_row_group_with_a_reason() -> None:
    table = rows(300)
    data = without_chunk(by_pqext(table, row_group_rows=100), (0, 0), (2, 1))
    report, found = recovered(data, null_columns=True)
    assert found == with_nulls(table.slice(100), "name", 100, 200)
    reasons = {loss.column: loss.reason for loss in report.losses}
    assert "the column is required" in reasons["id"]
    assert "replaced with nulls" in reasons["name"]


@pytest.mark.spec("recovery.null-columns")
def test_lost_chunks_and_corrupt_pages_do_not_compound() -> None:
    table = rows(300)
    data = by_pqext(table, row_group_rows=100, page_rows=20, dictionary=False, page_bytes=1 << 20)
    damaged = bytearray(without_chunk(data, (1, 1)))
    _, stop = extent(data, 1, 2)
    damaged[stop - 3] ^= 1  # in the last page of prices, of rows 180 to 200
    report, found = recovered(bytes(damaged), null_columns=True)
    expected = with_nulls(table, "name", 100, 200)
    assert found == pa.concat_tables([expected.slice(0, 180), expected.slice(200)])
    assert nulls_of(report) == [(1, ("name",))]


@pytest.mark.spec("recovery.null-columns")
def test_row_group_without_any_remaining_column_is_lost() -> None:
    table = rows(300)
    data = without_chunk(by_pqext(table, row_group_rows=100), *((1, leaf) for leaf in range(5)))
    report, found = recovered(data, null_columns=True)
    assert found == pa.concat_tables([table.slice(0, 100), table.slice(200)])
    assert nulls_of(report) == []


@pytest.mark.spec("recovery.null-columns")
def test_variants_and_geometries_become_null_for_all_readers() -> None:
    geometry = pqext.geo.geometry_field("at")
    table = pa.table({
        "id": range(50_000),
        "event": variant.parse_json(['{"a": 1}'] * 50_000),
        "at": pa.array([bytes.fromhex("0101000000000000000000f03f0000000000000040")] * 50_000, pa.binary()),
    })
    table = table.cast(table.schema.set(2, geometry))
    data = without_chunk(by_pqext(table, row_group_rows=25_000), (0, 1), (0, 2), (1, 3))
    out = io.BytesIO()
    report = pqext.recover(data, out, null_columns=True)
    assert pqext.verify(out.getvalue()).ok
    assert nulls_of(report) == [(0, ("event",)), (1, ("at",))]
    found = pq.read_table(io.BytesIO(out.getvalue()))
    assert [found["event"].slice(0, 25_000).null_count, found["event"].null_count] == [25_000, 25_000]
    assert [found["at"].slice(25_000).null_count, found["at"].null_count] == [25_000, 25_000]
    assert pqext.read_table(out.getvalue())["id"] == table["id"]


@pytest.mark.spec("recovery.null-columns")
def test_duckdb_reads_nulls_in_place_of_lost_chunks(tmp_path: object) -> None:
    table = rows(300)
    data = without_chunk(by_pqext(table, row_group_rows=100), (1, 1), (1, 3))
    pqext.recover(data, f"{tmp_path}/new.parquet", null_columns=True)
    found = duckdb.sql(f"SELECT count(*), count(name), count(list) FROM '{tmp_path}/new.parquet'").fetchall()
    assert found == [(300, 200, 200)]


@pytest.mark.spec("recovery.null-columns")
def test_rows_next_to_nulls_are_original() -> None:
    filled = 0
    for seed in range(5000, 5045):
        draw = random.Random(seed)
        drawn = damaged_files.file(draw)
        what, data, _, _ = damaged_files.damage(draw, drawn)
        out = io.BytesIO()
        report = pqext.recover(data, out, schema=drawn.schema, null_columns=True)
        assert report.rows >= pqext.recover(data, io.BytesIO(), schema=drawn.schema).rows
        if not report.written or not drawn.has_checksums:
            continue
        assert pqext.verify(out.getvalue()).ok, seed
        found, first = pq.read_table(io.BytesIO(out.getvalue())).cast(drawn.schema), 0
        told = {loss.column for loss in report.losses}
        for group in report.row_groups:
            part, gone = found.slice(first, group.rows), group.null_columns
            first += group.rows
            assert all(part[name].null_count == group.rows for name in gone)
            assert set(gone) <= told
            left = part.drop_columns(list(gone))
            originals = [one.drop_columns(list(gone)) for one in drawn.groups]
            is_there = any(left.equals(one) or damaged_files.is_part(left, one) for one in originals)
            assert is_there, (seed, drawn.told, what)
            filled += bool(gone)
    assert filled > 10


def test_null_columns_and_drop_columns_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="mutually exclusive"):
        pqext.recover(b"PAR1", io.BytesIO(), null_columns=True, drop_columns=True)


@pytest.mark.spec("recovery.null-columns")
def test_lost_chunks_found_by_their_pages_are_also_filled() -> None:
    table = rows(300)
    data = bytearray(by_pqext(table, row_group_rows=100))
    _, stop = extent(bytes(data), 1, 1)
    data[stop - 2] ^= 1  # the only page of names, whose header is whole
    report, found = recovered(bytes(data[: footer_of(bytes(data))]), schema=SCHEMA, null_columns=True)
    assert found == with_nulls(table, "name", 100, 200)
    assert report.losses[0].start == extent(bytes(data), 1, 0)[0]


def test_losses_are_listed_in_file_order() -> None:
    table = rows(500)
    data = by_pqext(table, row_group_rows=100)
    damaged = without_chunk(data, (0, 2), (1, 1), (1, 0), (3, 2))
    report, _ = recovered(damaged, null_columns=True)
    assert [(loss.source_row_group, loss.column) for loss in report.losses] == [
        (0, "price"), (1, "id"), (1, "name"), (3, "price"),
    ]  # fmt: skip
    start, stop = extent(data, 1, 0)
    cut = data[:start] + bytes(stop - start) + data[stop : footer_of(data)]
    flipped = bytearray(cut)
    flipped[extent(data, 0, 1)[1] - 2] ^= 1
    flipped[extent(data, 4, 1)[1] - 2] ^= 1
    report, _ = recovered(bytes(flipped), schema=SCHEMA)
    starts = [loss.start for loss in report.losses]
    assert len(starts) >= 3
    assert starts == sorted(starts, key=lambda at: at or 0)
