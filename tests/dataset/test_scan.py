"""Scans read what they need of many files, and the rows they give are those that match."""

from __future__ import annotations

import io
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset.strategies import expressions, tables
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.dataset.expressions import col
from pqext.dataset.reading import read_table, scan
from pqext.dataset.scan import Scan
from reference import evaluate as twin
from reference.pace import SLOWER

TABLE = pa.table(
    {
        "a": pa.array(range(100)),
        "b": [f"k{row:03}" if row % 9 else None for row in range(100)],
        "s": [{"x": row, "y": str(row), "z": [{"p": row, "q": -row}]} for row in range(100)],
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of the halves of TABLE, in row groups of ten."""
    for number, start in enumerate((0, 50)):
        pq.write_table(TABLE.slice(start, 50), tmp_path / f"part-{number}.parquet", row_group_size=10)
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


@given(st.data())
def test_returned_rows_match_the_filter(data: st.DataObject) -> None:
    batch = data.draw(tables())
    expression = data.draw(expressions(batch))
    sink = io.BytesIO()
    pq.write_table(pa.table(batch), sink, row_group_size=data.draw(st.integers(1, 4)), store_schema=False)
    columns = data.draw(st.lists(st.sampled_from(batch.schema.names), min_size=1, unique=True))
    matching = [row for row, truth in enumerate(twin.truths(expression, batch)) if truth]
    query = scan(sink.getvalue(), columns, expression)
    table = query.to_table()
    assert table.schema.names == columns
    assert table.num_rows == query.count() == len(matching)
    whole = pq.read_table(sink)
    assert str(table.to_pylist()) == str(whole.select(columns).take(pa.array(matching, pa.int64())).to_pylist())


def test_directory_is_read_as_one_table(folder: Path) -> None:
    assert read_table(folder).equals(TABLE)
    assert read_table([folder / "part-0.parquet", folder / "part-1.parquet"]).equals(TABLE)
    assert read_table(str(folder / "*-1.parquet")).equals(TABLE.slice(50))
    assert pqext.read_table(folder, columns=["b"]).equals(TABLE.select(["b"]))
    assert isinstance(pqext.scan(folder), Scan)


def test_columns_are_returned_in_the_requested_order(folder: Path) -> None:
    assert read_table(folder, columns=["b", "a"]).equals(TABLE.select(["b", "a"]))
    table = read_table(folder, columns=["s.y", "a", "s.z.list.element.q"], filter=col("a") == 7)
    assert table.to_pylist() == [{"s": {"y": "7", "z": [{"q": -7}]}, "a": 7}]


def test_filter_only_columns_are_dropped(folder: Path) -> None:
    table = read_table(folder, columns=["s.y"], filter=(col("s.x") >= 98) & col("b").is_not_null())
    assert table.to_pylist() == [{"s": {"y": "98"}}]
    assert table.schema == read_table(folder, columns=["s.y"]).schema
    lists = read_table(folder, columns=["s.z.list.element.q"], filter=col("s.z").is_null() | (col("a") < 1))
    assert lists.to_pylist() == [{"s": {"z": [{"q": 0}]}}]


def test_partially_selected_groups_preserve_their_nulls(tmp_path: Path) -> None:
    value = pa.struct([("p", pa.int64()), ("q", pa.int64())])
    table = pa.table(
        {
            "m": pa.array([[("k", {"p": 1, "q": 2})], None], pa.map_(pa.string(), value)),
            "l": pa.array([None, [{"p": 1, "q": 2}]], pa.list_(value)),
            "s": pa.array([{"p": None, "q": None}, None], value),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", store_schema=False)
    for name, part, row in (("m", "m.key_value.value.q", 0), ("l", "l.list.element.q", 1), ("s", "s.q", 0)):
        assert read_table(tmp_path, [part], col(name).is_not_null()).num_rows == 1
        assert read_table(tmp_path, [name], col(name).is_not_null()).equals(table.select([name]).slice(row, 1))
        assert scan(tmp_path, [part], col(name).is_null()).count() == 1


def test_names_with_dots_are_found_next_to_structs(tmp_path: Path) -> None:
    table = pa.table({"s.x": [1, 2], "s": [{"x": 3}, {"x": 4}]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path, ["s"], col(["s.x"]) == 1).to_pylist() == [{"s": {"x": 3}}]
    assert read_table(tmp_path, ["s.x"], col("s").field("x") == 4).to_pylist() == [{"s.x": 2}]


def test_plan_states_what_is_read_and_why_the_rest_is_not(folder: Path) -> None:
    tasks = scan(folder, columns=["b"], filter=(col("a") >= 15) & (col("a") < 22)).plan()
    assert [task.path for task in tasks] == [str(folder / "part-0.parquet"), str(folder / "part-1.parquet")]
    first, second = tasks
    assert (first.kept_row_groups, first.total, first.rows_kept, first.rows_total) == ((1, 2), 5, 20, 50)
    assert first.reasons == {
        0: "a >= 15 is true for no row: values lie between 0 and 9",
        3: "a < 22 is true for no row: values lie between 30 and 39",
        4: "a < 22 is true for no row: values lie between 40 and 49",
    }
    assert (second.kept_row_groups, second.bytes_kept) == ((), 0)
    chunks = [
        pq.read_metadata(first.path).row_group(group).column(column).total_compressed_size
        for group in range(5)
        for column in (0, 1)
    ]
    assert first.bytes_total == sum(chunks)
    assert first.bytes_kept == sum(chunks[2:6])
    assert scan(folder, columns=[]).plan()[0].bytes_total == 0


def test_only_planned_parts_are_read(folder: Path) -> None:
    query = scan(folder, columns=["b"], filter=col("a") == 33)
    expected = query.to_table()
    for task in query.plan():
        with open(task.path, "r+b") as file:
            footer = pq.read_metadata(task.path)
            for group in range(footer.num_row_groups):
                for leaf in range(footer.num_columns):
                    chunk = footer.row_group(group).column(leaf)
                    if group not in task.kept_row_groups or chunk.path_in_schema not in ("a", "b"):
                        start = chunk.dictionary_page_offset or chunk.data_page_offset
                        file.seek(start)
                        file.write(b"\xff" * chunk.total_compressed_size)
    assert query.to_table().equals(expected)
    assert expected.to_pylist() == [{"b": "k033"}]
    with pytest.raises(CorruptFileError, match=r"part-0\.parquet"):
        scan(folder, columns=["s"]).to_table()


def test_explanation_is_readable_text(folder: Path) -> None:
    text = scan(folder, columns=["b"], filter=col("a") > 90).explain()
    head = (
        "scan of 2 files\n  columns: b\n  filter: a > 90\n  reads 1 of 10 row groups, 10 of 100 rows, "
    )
    assert text.startswith(head)
    assert f"{folder / 'part-0.parquet'}: 0 of 5 row groups" in text
    assert "  row group 3 skipped: a > 90 is true for no row: values lie between 80 and 89" in text
    assert "filter: none" in scan(folder).explain()


def test_batches_are_small_and_never_empty(folder: Path) -> None:
    batches = list(scan(folder, filter=col("a") >= 45).to_batches(batch_rows=4))
    assert all(0 < batch.num_rows <= 4 for batch in batches)
    assert pa.Table.from_batches(batches).equals(TABLE.slice(45))


def test_unfiltered_count_uses_footers(folder: Path) -> None:
    path = folder / "part-0.parquet"
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 100)
    assert scan(folder).count() == 100
    assert scan(folder / "part-1.parquet", filter=col("b").is_null()).count() == 6


def test_filter_without_matches_returns_an_empty_table_of_the_schema(folder: Path) -> None:
    table = read_table(folder, filter=col("a") < 0)
    assert table.num_rows == 0
    assert table.schema == TABLE.schema


def test_table_without_columns_preserves_its_row_count(folder: Path) -> None:
    assert read_table(folder, columns=[], filter=col("a") < 3).num_rows == 3


def write(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, store_schema=False)


def test_columns_are_matched_by_name(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", pa.table({"a": [1], "b": ["x"]}))
    write(tmp_path / "2.parquet", pa.table({"b": ["y"], "a": [2]}))
    assert read_table(tmp_path).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_later_file_may_contain_nulls_in_a_required_column(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", pa.table([[1]], schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])))
    write(tmp_path / "2.parquet", pa.table({"a": pa.array([None], pa.int64())}))
    table = read_table(tmp_path)
    table.validate(full=True)
    assert table["a"].to_pylist() == [1, None]
    assert not read_table(tmp_path / "1.parquet").schema.field("a").nullable


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"a": [1.5], "b": ["x"]}), r"column 'a' is int64 in .*1\.parquet and double in .*2\.parquet"),
        (pa.table({"a": [1]}), r"2\.parquet lacks b"),
        (pa.table({"a": [1], "b": ["x"], "c": [1]}), r"2\.parquet has additional columns c"),
    ],
)
def test_conflicting_files_are_named(tmp_path: Path, other: pa.Table, message: str) -> None:
    write(tmp_path / "1.parquet", pa.table({"a": [1], "b": ["x"]}))
    write(tmp_path / "2.parquet", other)
    for run in (scan(tmp_path).to_table, scan(tmp_path).plan):
        with pytest.raises(ValueError, match=message):
            run()


def test_files_may_differ_in_unselected_columns(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", pa.table({"a": [1], "b": ["x"]}))
    write(tmp_path / "2.parquet", pa.table({"a": [2], "b": [1.5], "c": [1]}))
    assert read_table(tmp_path, columns=["a"])["a"].to_pylist() == [1, 2]


def test_files_with_different_crs_are_not_mixed(tmp_path: Path) -> None:
    for number, crs in enumerate(("EPSG:4326", "EPSG:3857")):
        field = pqext.geo.geometry_field("g", crs)
        pqext.write_table(
            pa.table([pqext.geo.from_points([1.0], [2.0])], schema=pa.schema([field])), tmp_path / f"{number}.parquet"
        )
    message = r"'g' has CRS EPSG:4326 and planar edges in .*, but CRS EPSG:3857 and planar edges in .*; read the files"
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path)


def test_invalid_arguments_are_named(folder: Path) -> None:
    with pytest.raises(TypeError, match="columns is a list"):
        scan(folder, columns="a")
    with pytest.raises(ValueError, match="selected twice"):
        scan(folder, columns=["a", "a"])
    with pytest.raises(TypeError, match="unknown option 'colour'"):
        scan(folder, colour="red")
    with pytest.raises(ValueError, match="no column 'aa'; did you mean 'a'"):
        read_table(folder, columns=["aa"])
    with pytest.raises(ValueError, match="no column 'c'"):
        read_table(folder, filter=col("c") > 1)
    with pytest.raises(TypeError, match="column 'a' contains integer values"):
        read_table(folder, filter=col("a") > "x")
    with pytest.raises(FileNotFoundError):
        scan(folder / "none")


def test_corrupt_file_is_named(folder: Path) -> None:
    shutil.copy(folder / "part-0.parquet", folder / "part-2.parquet")
    with open(folder / "part-2.parquet", "r+b") as file:
        file.truncate(1000)
    with pytest.raises(CorruptFileError, match=r"part-2\.parquet"):
        scan(folder).to_table()


def test_many_computed_columns_take_linear_time(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "t.parquet")
    began = time.process_time()
    found = read_table(tmp_path, {f"c{number}": "a" for number in range(8000)})
    assert time.process_time() - began < 3 * SLOWER
    assert found.num_columns == 8000
    assert found["c7999"].to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="column 'a' is selected twice"):
        read_table(tmp_path, ["a", ("a", col("a") + 1)])
