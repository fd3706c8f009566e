"""Rows in an order: those of DuckDB, whatever row groups and files are skipped, and few are read for the first ones."""

from __future__ import annotations

import datetime as dt
import io
import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, geo, variant
from reference.effort import share

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int32(), [None, -5, 0, 3, 7, 2**31 - 1]),
    "double": (pa.float64(), [None, math.nan, -math.inf, -1.5, 0.0, 1.5, math.inf]),
    "single": (pa.float32(), [None, math.nan, -1.5, 0.1, 1.5]),
    "text": (pa.string(), [None, "", "a", "ab", "zebra" * 20, "zebra" * 20 + "x", "ä"]),
    "bytes": (pa.binary(), [None, b"", b"\x00", b"\xff" * 70, b"\xff" * 71]),
    "flag": (pa.bool_(), [None, False, True]),
    "day": (pa.date32(), [None, dt.date(1600, 1, 1), dt.date(2024, 2, 29)]),
    "instant": (pa.timestamp("ns"), [None, 0, 1, -1, 10**18]),
    "price": (pa.decimal128(20, 3), [None, Decimal("-1.5"), Decimal("0.001"), Decimal("12345678901234567.001")]),
}
"""Types with values that meet in ties, nulls, NaN and bounds that are cut short."""


def expected_rows(table: pa.Table, order: str, limit: int | None, offset: int = 0) -> list[int]:
    """The numbers of the rows in DuckDB's order."""
    tail = "" if limit is None else f" LIMIT {limit} OFFSET {offset}"
    relation = duckdb.from_arrow(table)
    return [row for (row,) in relation.query("t", f"SELECT row FROM t ORDER BY {order}, row{tail}").fetchall()]


@pytest.mark.spec("querying.top-rows")
@given(st.data())
@settings(max_examples=share(1.0))
def test_first_rows_match_duckdb(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from([*COLUMNS]), min_size=1, max_size=2, unique=True))
    count = data.draw(st.integers(1, 40))
    columns = {
        name: pa.array(data.draw(st.lists(st.sampled_from(values), min_size=count, max_size=count)), kind)
        for name, (kind, values) in COLUMNS.items()
        if name in names
    }
    if data.draw(st.booleans()):  # row groups with bounds that lie apart
        columns[names[0]] = columns[names[0]].sort()
    table = pa.table({"row": pa.array(range(count)), **columns})
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=2)))
    files = []
    for start, stop in zip([0, *cuts], [*cuts, count], strict=True):
        sink = io.BytesIO()
        part, rows = table.slice(start, stop - start), data.draw(st.integers(1, 9))
        pqext.write_table(part, sink, row_group_rows=rows, page_rows=3, bound_bytes=64)
        files.append(sink.getvalue())
    descending = [data.draw(st.booleans()) for _ in names]
    nulls_first = [data.draw(st.booleans()) for _ in names]
    keys = [
        f'"{name}" {"DESC" if is_descending else "ASC"} NULLS {"FIRST" if is_first else "LAST"}'
        for name, is_descending, is_first in zip(names, descending, nulls_first, strict=True)
    ]
    limit = data.draw(st.none() | st.integers(0, count + 2))
    offset = 0 if limit is None else data.draw(st.integers(0, 3))
    scan = pqext.scan(files, data.draw(st.sampled_from([None, ["row"]])))
    found = scan.order_by(*names, descending=descending, nulls_first=nulls_first).limit(limit, offset).to_table()
    assert found.schema.equals(scan.schema)
    assert found["row"].to_pylist() == expected_rows(table, ", ".join(keys), limit, offset)


@pytest.mark.spec("querying.top-rows")
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("rows", [[math.nan, 1.0, 5.0, 4.0], [5.0, 4.0, math.nan, 1.0], [None, 1.0, 5.0, math.nan]])
def test_nan_sorts_after_numbers_in_every_column(rows: list[float | None], direction: str) -> None:
    table = pa.table({"row": range(len(rows)), "x": pa.array(rows)})
    sink = io.BytesIO()
    pqext.write_table(table, sink, row_group_rows=2)
    for limit in range(1, 5):
        scan = pqext.scan(sink.getvalue()).order_by("x", descending=direction == "DESC").limit(limit)
        assert scan.to_table()["row"].to_pylist() == expected_rows(table, f"x {direction} NULLS LAST", limit)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of 20 row groups in the order of ``id``, and of random ``mag``."""
    path = str(tmp_path_factory.mktemp("ordered") / "events.parquet")
    ids = range(20_000)
    table = pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "mag": pa.array([(number * 7919) % 20_011 / 100 for number in ids]),
            "place": pa.array([f"place {number % 97}" for number in ids]),
            "event": variant.parse_json([f'{{"n": {20_000 - number}}}' for number in ids]),
        }
    )
    pqext.write_table(table, path, row_group_rows=1000, page_rows=100, shredding={"event": "n BIGINT"})
    return path


@pytest.mark.spec("querying.top-rows")
@pytest.mark.parametrize(
    ("key", "descending", "first"),
    [
        ("id", True, [19_999, 19_998, 19_997]),
        ("id", False, [0, 1, 2]),
        (col("event").variant("$.n", "int64"), False, [19_999, 19_998, 19_997]),
        (col("id") * -2, False, [19_999, 19_998, 19_997]),
    ],
    ids=str,
)
def test_row_groups_without_any_of_the_first_rows_are_skipped(
    events: str, key: Any, descending: bool, first: list[int]
) -> None:
    scan = pqext.scan(events, ["id", "place"]).order_by(key, descending=descending).limit(3)
    assert scan.to_table()["id"].to_pylist() == first
    assert scan.metrics is not None
    assert scan.metrics.row_groups == 1


@pytest.mark.spec("querying.top-rows")
def test_other_columns_are_read_only_for_candidate_rows(events: str) -> None:
    """Of an order that the file does not have, the key is read of all rows and the rest of few."""
    scan = pqext.scan(events).order_by("mag", descending=True).limit(5)
    rows = scan.to_table()
    answer = duckdb.sql(f"SELECT id, place FROM '{events}' ORDER BY mag DESC LIMIT 5").fetchall()
    assert [*zip(rows["id"].to_pylist(), rows["place"].to_pylist(), strict=True)] == answer
    whole = pqext.scan(events)
    whole.to_table()
    assert scan.metrics is not None
    assert whole.metrics is not None
    assert scan.metrics.pages < 0.6 * whole.metrics.pages


@pytest.mark.spec("querying.top-rows")
def test_files_with_worse_bounds_are_not_read(tmp_path: Path) -> None:
    for number in range(5):
        part = pa.table({"id": range(number * 100, number * 100 + 100), "text": ["x"] * 100})
        pqext.write_table(part, tmp_path / f"{number}.parquet")
    scan = pqext.scan(tmp_path).order_by("id", descending=True).limit(4)
    assert scan.to_table()["id"].to_pylist() == [499, 498, 497, 496]
    assert scan.metrics is not None
    assert scan.metrics.row_groups == 1


@pytest.mark.spec("querying.top-rows")
def test_partition_columns_are_sort_keys(tmp_path: Path) -> None:
    for year in (2020, 2023, 2021):
        (tmp_path / f"year={year}").mkdir()
        pqext.write_table(pa.table({"id": [year * 10, year * 10 + 1]}), tmp_path / f"year={year}" / "a.parquet")
    scan = pqext.scan(tmp_path, ["id"])
    assert scan.order_by("year", "id", descending=True).limit(3).to_table()["id"].to_pylist() == [20231, 20230, 20211]
    assert scan.order_by("year").limit(1).to_table()["id"].to_pylist() == [20200]
    first = scan.order_by("year", descending=True).limit(1)
    first.to_table()
    assert first.metrics is not None
    assert first.metrics.files == 1


def test_order_combines_with_filters_columns_and_counts(events: str) -> None:
    scan = pqext.scan(events).order_by("mag").filter(col("id") < 1500).select("place", "id")
    expected = duckdb.sql(f"SELECT place, id FROM '{events}' WHERE id < 1500 ORDER BY mag, id LIMIT 10 OFFSET 2")
    first = scan.limit(10, offset=2)
    assert [tuple(row.values()) for row in first.to_table().to_pylist()] == expected.fetchall()
    assert (first.count(), scan.count()) == (10, 1500)
    assert first.min("id").as_py() == min(row[1] for row in expected.fetchall())
    copied = pickle.loads(pickle.dumps(first))
    assert copied.to_table().equals(first.to_table())


def test_selected_values_are_keys_by_name(events: str) -> None:
    scan = pqext.scan(events, [("n", col("event").variant("$.n", "int64")), "id"]).order_by("n").limit(2)
    assert scan.to_table().to_pylist() == [{"n": 1, "id": 19_999}, {"n": 2, "id": 19_998}]


def test_row_numbers_and_paths_are_sort_keys(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pqext.write_table(pa.table({"id": [1, 2]}), tmp_path / f"{name}.parquet")
    scan = pqext.scan(tmp_path, include_file_paths="path", include_row_numbers="number")
    rows = scan.order_by("number", "path", descending=True).limit(3).to_table()
    found = [(Path(row["path"]).stem, row["number"]) for row in rows.to_pylist()]
    assert found == [("b", 1), ("a", 1), ("b", 0)]
    rows = scan.order_by("path", descending=True).limit(3).to_table()
    assert rows["number"].to_pylist() == [0, 1, 0]


@pytest.mark.parametrize("strings", ["string", "view", "dictionary"])
def test_strings_in_every_layout_are_sort_keys(events: str, strings: Any) -> None:
    scan = pqext.scan(events, ["place", "id"], strings=strings).order_by("place", descending=True).limit(3)
    expected = duckdb.sql(f"SELECT id FROM '{events}' ORDER BY place DESC, id LIMIT 3").fetchall()
    table = scan.to_table()
    assert table.schema.equals(scan.schema)
    assert [(row,) for row in table["id"].to_pylist()] == expected


def test_columns_of_several_files_are_unified(tmp_path: Path) -> None:
    pqext.write_table(pa.table({"id": pa.array([5, 1], pa.int32())}), tmp_path / "a.parquet")
    pqext.write_table(pa.table({"id": pa.array([2**40, 3]), "text": ["x", "y"]}), tmp_path / "b.parquet")
    scan = pqext.scan(tmp_path, schema="union")
    assert scan.order_by("id").limit(3).to_table().to_pylist() == [
        {"id": 1, "text": None}, {"id": 3, "text": "y"}, {"id": 5, "text": None}
    ]
    first = scan.order_by("text", nulls_first=True).limit(3).to_table()
    assert first["id"].to_pylist() == [5, 1, 2**40]


def test_deprecated_and_missing_statistics_lose_no_row(tmp_path: Path) -> None:
    table = pa.table({"id": [3, 9, 1, 7, 5, 8]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2, write_statistics=False)
    assert pqext.scan(tmp_path).order_by("id", descending=True).limit(2).to_table()["id"].to_pylist() == [9, 8]


def test_memory_is_bounded_by_the_limit(events: str) -> None:
    limits = pqext.Limits(memory_bytes=200_000, memory_expansion=0)
    scan = pqext.scan(events, ["id", "place"], limits=limits).order_by("mag")
    assert scan.limit(3).to_table().num_rows == 3
    with pytest.raises(pqext.LimitError, match=r"call limit\(n\) after it or select fewer columns"):
        scan.to_table()


def test_errors_name_the_argument(events: str) -> None:
    scan = pqext.scan(events)
    with pytest.raises(TypeError, match="order_by requires at least one column"):
        scan.order_by()
    with pytest.raises(TypeError, match="not 5"):
        scan.order_by(5)
    with pytest.raises(ValueError, match="descending has 2 flags for 1 columns"):
        scan.order_by("id", descending=[True, False])
    with pytest.raises(TypeError, match="nulls_first must be a bool"):
        scan.order_by("id", nulls_first="last")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="call order_by"):
        scan.limit(3).order_by("id")
    with pytest.raises(ValueError, match=r"magn.*did you mean 'mag'"):
        scan.order_by("magn").limit(1).to_table()
    with pytest.raises(TypeError, match="rows cannot be ordered by event, which is a VARIANT"):
        scan.order_by("event").limit(1).to_table()


def test_order_by_accepts_a_list_of_columns(events: str) -> None:
    scan = pqext.scan(events, ["id"])
    for flags in (True, [True, False]):
        ordered = scan.order_by("mag", "id", descending=flags).to_table()
        assert scan.order_by(["mag", "id"], descending=flags).to_table().equals(ordered)


def test_geometries_have_no_order(tmp_path: Path) -> None:
    table = pa.table({"at": geo.from_points([2.5], [48.5])})
    pqext.write_table(table, tmp_path / "at.parquet", geometry={"at": "OGC:CRS84"})
    for scan in (pqext.scan(tmp_path), pqext.scan(tmp_path).limit(None)):
        with pytest.raises(TypeError, match="rows cannot be ordered by at"):
            scan.order_by("at").to_table()


def test_plan_states_the_order(events: str) -> None:
    scan = pqext.scan(events).order_by("mag", descending=True).limit(5)
    assert "order: mag descending" in repr(scan)
    assert "  order: mag descending\n  limit: 5 rows\n" in scan.explain(max_entries=0)
    assert "20 of 20 row groups" in scan.explain(max_entries=0)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
@pytest.mark.parametrize("names", [("a",), ("c", "b")])
def test_top_rows_of_a_large_row_group_match_duckdb(
    names: tuple[str, ...], descending: bool, nulls_first: bool, tmp_path: Path
) -> None:
    rows = 200_000
    a = [None if row % 20_011 == 7 else (-1) ** row * (row // 300) for row in range(rows)]  # extremes come late
    b, c = [row * 104_729 % rows for row in range(rows)], [f"{row * 7919 % 300}" for row in range(rows)]
    table = pa.table({"row": pa.array(range(rows)), "a": a, "b": b, "c": c})
    pqext.write_table(table, tmp_path / "t.parquet", row_group_rows=rows)
    top = pqext.scan(tmp_path / "t.parquet").order_by(*names, descending=descending, nulls_first=nulls_first).limit(50)
    order = ", ".join(
        f"{name} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}" for name in names
    )
    assert top.to_table()["row"].to_pylist() == expected_rows(table, order, 50)
