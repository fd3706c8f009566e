"""A column whose name has a dot wins over the field of a struct at that path, wherever a name is read."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import pqext
from pqext import col, filters, skipping
from pqext.core.base.errors import SchemaMismatchError
from pqext.dataset.expressions.visitors import resolve_dotted_names

ROWS = pa.table({"a.b": [1, 2, 3], "a": [{"b": 30, "c": 1}, {"b": 20, "c": 2}, {"b": 10, "c": 3}], "n": [0, 1, 2]})
COLUMN: list[Any] = [
    col("a.b") > 2, [("a.b", ">", 2)], ("a.b", ">", 2), "a.b > 2", '"a.b" > 2', col(["a.b"]) > 2, "a.b in (3, 4)",
    filters.from_json(filters.to_json(col("a.b") > 2)), filters.to_json(col("a.b") > 2), "a.b + 1 > 3", "n < a.b - 0.5",
    "cast(a.b as string) = '3'", pickle.loads(pickle.dumps(col("a.b") > 2)),
]  # fmt: skip
FIELD: list[Any] = [
    col("a").field("b") > 10, col(["a", "b"]) > 10, [(["a", "b"], ">", 10)], "a['b'] > 10", '"a"."b" > 10',
    filters.to_json(col(["a", "b"]) > 10),
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pqext.write_table(ROWS, tmp_path / "dots.parquet", row_group_rows=1)
    return tmp_path / "dots.parquet"


def rows_of_duckdb(path: Path, condition: str) -> list[int]:
    return [n for (n,) in duckdb.sql(f"select n from '{path}' where {condition}").fetchall()]


@pytest.mark.parametrize("filter", COLUMN, ids=str)
def test_filters_on_a_dotted_name_refer_to_the_column(path: Path, filter: Any) -> None:
    expected = rows_of_duckdb(path, '"a.b" > 2' if "n <" not in str(filter) else 'n < "a.b" - 0.5')
    for sources, schema in ((path, None), ([path, path], None), (path, "union"), (path, ROWS.schema)):
        scan = pqext.scan(sources, filter=filter, schema=schema)
        times = 2 if isinstance(sources, list) else 1
        assert scan.to_table()["n"].to_pylist() == expected * times
        assert scan.count() == len(expected) * times


@pytest.mark.parametrize("filter", FIELD, ids=str)
def test_struct_field_is_accessible_by_path(path: Path, filter: Any) -> None:
    scan = pqext.scan(path, filter=filter)
    assert scan.to_table()["n"].to_pylist() == rows_of_duckdb(path, "a.b > 10") == [0, 1]
    assert sum(len(task.kept_row_groups) for task in scan.plan()) == 2


def test_dotted_name_prunes_by_the_statistics_of_the_column(path: Path) -> None:
    assert sum(len(task.kept_row_groups) for task in pqext.scan(path, filter="a.b > 2").plan()) == 1


def test_result_columns_match_those_of_filters(path: Path) -> None:
    for columns in (["a.b"], [col("a.b")], {"a.b": "a.b"}, [col(["a.b"])], [("a.b", col("a.b") + 0)]):
        assert pqext.read_table(path, columns).to_pydict() == {"a.b": [1, 2, 3]}
    for columns in ([col("a").field("b")], [("a.b", col(["a", "b"]))]):
        assert pqext.read_table(path, columns).to_pydict() == {"a.b": [30, 20, 10]}
    both = pqext.scan(path, [("x", col("a.b")), ("y", col("a").field("b"))], "a.b > 1").to_table()
    assert both.to_pydict() == {"x": [2, 3], "y": [20, 10]}


@pytest.mark.parametrize(
    "values", [[1, 1], [40, 40], pa.array([1, 1], pa.duration("s"))], ids=["smaller", "larger", "of another type"]
)
def test_field_of_the_first_file_is_the_field_in_all_files(tmp_path: Path, values: Any) -> None:
    fields = pa.array([{"b": 30}, {"b": 1}])
    pqext.write_table(pa.table({"a": fields, "n": [0, 1]}), tmp_path / "0.parquet")
    pqext.write_table(pa.table({"a.b": values, "a": fields, "n": [2, 3]}), tmp_path / "1.parquet")
    for filter in (col("a.b") > 2, "a.b + 1 > 3"):
        scan = pqext.scan(tmp_path, ["n"], filter)
        assert scan.to_table()["n"].to_pylist() == rows_of_duckdb(tmp_path / "*.parquet", "a.b > 2") == [0, 2]
        assert scan.count() == 2


@pytest.mark.parametrize("names", [["a.b", "a"], ["a.b"]], ids=["another type", "missing"])
def test_dotted_name_of_the_first_file_never_changes_its_meaning(tmp_path: Path, names: list[str]) -> None:
    pqext.write_table(pa.table({"a": [{"b": 30}, {"b": 1}]}), tmp_path / "0.parquet")
    pqext.write_table(pa.table({name: [1, 2] for name in names}), tmp_path / "1.parquet")
    for scan in (pqext.scan(tmp_path, {"x": col("a.b")}), pqext.scan(tmp_path, ["a.b"]).order_by("a.b")):
        with pytest.raises(SchemaMismatchError, match=r"1\.parquet"):
            scan.to_table()


def test_other_struct_fields_are_accessible_by_dotted_names(path: Path) -> None:
    assert pqext.read_table(path, ["a.c"], "a.c > 1 and a.b < 3").to_pylist() == [{"a": {"c": 2}}]


def test_aggregates_refer_to_the_column(path: Path) -> None:
    scan = pqext.scan(path)
    for name in ("a.b", col("a.b"), col(["a.b"])):
        assert (scan.min(name).as_py(), scan.max(name).as_py(), scan.null_count(name)) == (1, 3, 0)
    assert scan.max(col("a").field("b")).as_py() == 30


def test_selected_columns_retain_dotted_names_in_later_filters(path: Path) -> None:
    scan = pqext.scan(path, [("p.q", col("n") + 1), col("a.b")])
    assert scan.filter("p.q > 1 and a.b < 3").to_table().to_pylist() == [{"p.q": 2, "a.b": 2}]


def test_partition_column_takes_precedence(tmp_path: Path) -> None:
    for value in (1, 2):
        (tmp_path / f"a.b={value}").mkdir()
        pqext.write_table(pa.table({"a": [{"b": 7}]}), tmp_path / f"a.b={value}" / "x.parquet")
    assert pqext.read_table(tmp_path, filter=col("a.b") == 2).to_pylist() == [{"a": {"b": 7}, "a.b": 2}]
    assert pqext.scan(tmp_path, filter=col("a").field("b") == 7).count() == 2


def test_skipping_stores_index_and_exclude_by_the_column(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    for at in range(3):
        pqext.write_table(ROWS.slice(at, 1), folder / f"{at}.parquet")
    for at, name in enumerate(("a.b", col("a").field("b"))):
        store = tmp_path / f"store {at}"
        skipping.build(folder, [skipping.MinMax(name)], store)
        for filter, expected in ((col("a.b") > 2, [2]), (col("a").field("b") > 10, [0, 1])):
            scan = pqext.scan(folder, filter=filter, skipping=store)
            assert sorted(scan.to_table()["n"].to_pylist()) == expected
            is_indexed = expected == ([2] if isinstance(name, str) else [0, 1])
            refused = sum(task.prune_reason is not None for task in scan.plan())
            assert refused == (3 - len(expected) if is_indexed else 0)


def test_command_line_accepts_dotted_names(path: Path) -> None:
    command = [sys.executable, "-m", "pqext", "query", str(path), "--where", "a.b > 2", "--select", "a.b,n"]
    done = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"a.b": 3, "n": 2}


def test_long_lists_are_not_traversed_for_dotted_names() -> None:
    condition = col("n").isin(range(1000)) & (col("a.b") > 2)
    found = resolve_dotted_names(condition, ["a.b"])
    assert found == col("n").isin(range(1000)) & (col(["a.b"]) > 2)
    assert resolve_dotted_names(found, ["a.b"]) is found
