"""What the original may see of a store: no cell that it would take for a proof, and names that only one column has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col, skipping
from pqext.skipping.format.names import format_path, parse_path
from reference import skipping_store

NAN = float("nan")


def original_cells(folder: Path) -> list[tuple[str, Any]]:
    """The names of the objects that the original knows, and the cells of the first index."""
    told = skipping_store.read(folder)
    first = next(iter(told.indexes))
    return sorted((Path(name.rpartition("#")[0]).name, row[first]) for name, row in told.rows.items())


def put(path: Path, **columns: list[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


@pytest.mark.spec("store.unknown")
def test_original_ignores_cells_it_would_misinterpret(tmp_path: Path) -> None:
    table, where = tmp_path / "table", tmp_path / "store"
    put(table / "few.parquet", name=["a"], n=[1])
    put(table / "many.parquet", name=["a", "b", "c"], n=[5, 6, 7])
    skipping.build(table, [skipping.ValueList("name", max_values=2), skipping.MinMax("n")], where)
    assert original_cells(where) == [("few.parquet", ["a"])]
    assert pqext.scan(table, filter=col("n") > 100, skipping=where).explain().count("skips by skipping store: 2") == 1
    skipping.compact(where)
    assert original_cells(where) == [("few.parquet", ["a"])]
    put(table / "other.parquet", n=[8])
    skipping.refresh(table, where)
    assert original_cells(where) == [("few.parquet", ["a"])]
    assert skipping.refresh(table, where).kept == 3


@pytest.mark.spec("store.unknown")
def test_all_nan_objects_have_nan_at_both_ends_like_in_spark(tmp_path: Path) -> None:
    put(tmp_path / "table" / "a.parquet", f=[NAN, None])
    skipping.build(tmp_path / "table", [skipping.MinMax("f")], tmp_path / "store")
    ((_, cell),) = original_cells(tmp_path / "store")
    assert [str(cell[end]) for end in ("min", "max")] == ["nan", "nan"]


@pytest.mark.spec("store.index.dots")
def test_name_with_dots_is_not_a_struct_field(tmp_path: Path) -> None:
    table, where = tmp_path / "table", tmp_path / "store"
    put(table / "a.parquet", **{"a.b": [1], "a": [{"b": 100}]})
    skipping.build(table, [skipping.MinMax(col(["a.b"]))], where)
    assert skipping_store.read(where).indexes.popitem()[1]["cols"] == ["`a.b`"]
    assert pqext.scan(table, filter=col("a").field("b") == 100, skipping=where).count() == 1
    assert pqext.scan(table, filter=col("a.b") == 1, skipping=where).count() == 1
    assert pqext.scan(table, filter=col(["a.b"]) == 1, skipping=where).count() == 1
    assert "skips by skipping store: 1" in pqext.scan(table, filter=col(["a.b"]) == 2, skipping=where).explain()


@pytest.mark.spec("store.index.dots")
@pytest.mark.parametrize("path", [("a",), ("a", "b"), ("a.b",), ("a`b", "c"), ("a.b", "c.d`"), ("", "a"), ("``", "x")])
def test_paths_round_trip_through_names(path: tuple[str, ...]) -> None:
    assert parse_path(format_path(path)) == path


@pytest.mark.spec("store.index.dots")
@pytest.mark.parametrize("name", ["`a", "a`b", "`a`b", "`a`.", "``"])
def test_unmatched_backquotes_name_no_column(name: str) -> None:
    with pytest.raises(ValueError, match="unmatched backticks"):
        parse_path(name)


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (pa.timestamp("ns"), [1_600_000_000_000_000_001, 1_700_000_000_000_000_000]),
        (pa.time32("ms"), [1, 86_399_999]),
        (pa.float16(), [np.float16(1.5), np.float16(-2)]),
    ],
)
def test_columns_of_types_unknown_to_spark_are_indexed_in_a_separate_file(
    tmp_path: Path, type: pa.DataType, values: list[Any]
) -> None:
    table, where, column = tmp_path / "table", tmp_path / "store", pa.array(values, type)
    table.mkdir()
    for at, one in enumerate(column):
        pq.write_table(pa.table({"c": [one]}, pa.schema([("c", type)])), table / f"{at}.parquet")
    skipping.build(table, [skipping.MinMax("c"), skipping.ValueList("c")], where)
    assert pq.read_schema(next(where.glob("part-*"))).names == ["obj_name"]
    pq.write_table(pa.table({"c": column}), table / "both.parquet")
    assert skipping.refresh(table, where).added == 1
    scan = pqext.scan(table, filter=col("c") == column[0].as_py(), skipping=where)
    assert scan.count() == 2
    assert "skips by skipping store: 1" in scan.explain()
