"""Folders named ``key=value`` are columns, as pyarrow, DuckDB and polars read them; filters on them open no file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import UnsupportedError
from pqext.dataset.expressions import Expression, col
from pqext.dataset.reading import read_table, scan
from reference.effort import share

ROWS = pa.table({"x": [1, 2, 3]})


def write(folder: Path, *places: str, table: pa.Table = ROWS) -> Path:
    """One file with ``table`` in each of the folders ``places``."""
    for number, place in enumerate(places):
        (folder / place).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / place / f"{number}.parquet")
    return folder


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize(
    "places",
    [
        ["y=2020", "y=-3"],
        ["y=1/m=2", "y=1/m=3", "y=2/m=2"],
        ["y=2020", "y=a"],
        ["y=1", "y=__HIVE_DEFAULT_PARTITION__"],
        ["y=a%20b", "y=%C3%A9%2F", "y=%zz", "y=é"],
        ["y%20z=1"],
        ["y=a=b", "y="],
        ["y=99999999999999999999"],
        ["y=1.5", "y=2020-01-02", "y=true", "y=+5", "y= 5"],
        ["y=1", "y=1/m=3", "m=4", "plain"],
        ["between/y=1", "y=2"],
    ],
    ids=" ".join,
)
def test_values_match_pyarrow(places: list[str], tmp_path: Path) -> None:
    folder = write(tmp_path, *places)
    read = read_table(folder)
    expected = ds.dataset(folder, partitioning="hive").to_table()
    assert read.schema.equals(expected.schema)
    assert rows(read) == rows(expected)


def test_numbers_beyond_32_bits_are_int64_like_in_other_engines(tmp_path: Path) -> None:
    folder = write(tmp_path, "y=2147483647", "y=2147483648")
    read = read_table(folder)
    assert read.schema.field("y").type == pa.int64()
    assert rows(read) == rows(pl.read_parquet(folder).to_arrow())
    assert rows(read) == rows(duckdb.sql(f"from '{folder}/**/*.parquet'").to_arrow_table())


@pytest.mark.parametrize(
    "places", [["y=2024-01-31", "y=0001-02-28"], ["y=2024-02-29", "y=__HIVE_DEFAULT_PARTITION__"]], ids=" ".join
)
def test_dates_are_date32_like_in_duckdb(places: list[str], tmp_path: Path) -> None:
    folder = write(tmp_path, *places)
    read = read_table(folder)
    assert read.schema.field("y").type == pa.date32()
    expected = duckdb.sql(f"select x, y::date as y from read_parquet('{folder}/**/*.parquet', hive_partitioning=true)")
    assert rows(read) == rows(expected.to_arrow_table())
    day = read["y"].drop_null()[0].as_py()
    for literal in (day, day.isoformat()):
        assert scan(folder, filter=col("y") == literal).count() == 3
    assert scan(folder, filter=f"y < date '{day}'").count() == 3 * (day != min(read["y"].drop_null().to_pylist()))


@pytest.mark.parametrize(
    "places",
    [
        ["zip=01234", "zip=99999"],
        ["zip=00", "zip=1"],
        ["zip=-0", "zip=1"],
        ["day=2023-02-29", "day=2023-03-01"],
        ["day=2023-2-1"],
        ["day=2023-02-01", "day=1"],
    ],
    ids=" ".join,
)
def test_leading_zeros_and_impossible_dates_remain_text(
    places: list[str], tmp_path: Path
) -> None:
    name, texts = places[0].partition("=")[0], [place.partition("=")[2] for place in places]
    folder = write(tmp_path, *places)
    assert read_table(folder)[name].unique().to_pylist() == sorted(texts)
    assert scan(folder, filter=col(name) == texts[0]).count() == 3


def test_partition_types_declare_other_types(tmp_path: Path) -> None:
    folder = write(tmp_path, "zip=01234/day=2024-01-31/n=1", "zip=1234/day=2024-02-01/n=2")
    types = {"zip": pa.int16(), "day": "string", "n": "double"}
    read = read_table(folder, partition_types=types)
    flavor = ds.partitioning(pa.schema([("zip", pa.int16()), ("day", pa.string()), ("n", pa.float64())]), flavor="hive")
    assert rows(read) == rows(ds.dataset(folder, partitioning=flavor).to_table())
    assert [read.schema.field(name).type for name in types] == [pa.int16(), pa.string(), pa.float64()]
    assert scan(folder, filter=(col("zip") == 1234) & (col("day") > "2024-01-31"), partition_types=types).count() == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partition_types": {"w": "int32"}}, "no partition column 'w'; the partition columns are big, y, z"),
        ({"partition_types": {"y": "array<int>"}}, "column 'y' must have a scalar type"),
        ({"partition_types": {"y": "int33"}}, "column 'y': INT33 is not a type"),
        ({"partition_types": {"z": "int32"}}, "partition column 'z': folder values cannot be converted to int32"),
        ({"partition_types": {"big": "decimal(38,0)"}}, "column 'big': folder values cannot be .*more than 38 digits"),
        ({"partition_types": pa.schema([("y", "int32")])}, "must map names to types, .* not Schema"),
        ({"partition_types": {"y": "int32"}, "partitioning": None}, "do not pass partitioning=None"),
    ],
)
def test_invalid_partition_types_are_errors(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        scan(write(tmp_path, f"big={(1 << 128) + 5}/y=1/z=a"), **arguments).to_table()


def test_all_null_partition_column_is_text(tmp_path: Path) -> None:
    read = read_table(write(tmp_path, "y=__HIVE_DEFAULT_PARTITION__"))
    assert read.schema.field("y").type == pa.string()
    assert read["y"].to_pylist() == [None] * 3


def test_folders_written_by_duckdb_and_polars_match_their_readers(tmp_path: Path) -> None:
    texts = ["a b", "c/d", "é", "100%", "x=y", None]
    table = pa.table({"k": texts, "n": [1, 2, 3, None, 5, 6], "x": range(6)})
    duckdb.from_arrow(table).query("t", f"copy t to '{tmp_path}/duckdb' (format parquet, partition_by (k, n))")
    pl.from_arrow(table).write_parquet(tmp_path / "polars", partition_by=["k", "n"])  # type: ignore[union-attr]
    ds.write_dataset(table, tmp_path / "arrow", format="parquet", partitioning=["k", "n"], partitioning_flavor="hive")
    for folder in ("duckdb", "polars", "arrow"):
        assert rows(read_table(tmp_path / folder, ["k", "n", "x"])) == rows(table), folder


NAMES = st.sampled_from(["1", "2", "-7", "a", "b c", "é/%", "__HIVE_DEFAULT_PARTITION__"])
LITERALS: dict[pa.DataType, list[Any]] = {pa.int32(): [1, 2, 3, -7], pa.string(): ["1", "a", "b c", "é/%", ""]}


@pytest.mark.spec("querying.partitions")
@given(st.data())
@settings(max_examples=share(0.25))
def test_filters_match_those_on_the_full_table(data: st.DataObject) -> None:
    import tempfile
    from urllib.parse import quote

    from pqext.dataset.evaluation.evaluate import evaluate

    with tempfile.TemporaryDirectory() as name:
        places = [
            f"p={quote(p, safe=' _')}/q={quote(q, safe=' _')}"
            for p, q in data.draw(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=6, unique=True))
        ]
        folder = write(Path(name), *places)
        whole = ds.dataset(folder, partitioning=ds.partitioning(flavor="hive", schema=read_table(folder).schema))
        table = whole.to_table(columns=["x", "p", "q"])

        def leaf() -> Expression:
            column = data.draw(st.sampled_from(["p", "q", "x"]))
            if data.draw(st.integers(0, 5)) == 0:
                return col(column).is_null()
            literals = [0, 1, 2, 3] if column == "x" else LITERALS[table.schema.field(column).type]
            if data.draw(st.booleans()):
                return col(column).isin(data.draw(st.lists(st.sampled_from(literals), max_size=3)))
            operator = data.draw(st.sampled_from(["__eq__", "__ne__", "__lt__", "__ge__"]))
            made: Expression = getattr(col(column), operator)(data.draw(st.sampled_from(literals)))
            return made

        filter = leaf()
        for _ in range(data.draw(st.integers(0, 4))):
            other = leaf() if data.draw(st.booleans()) else ~leaf()
            filter = filter & other if data.draw(st.booleans()) else filter | other
            filter = ~filter if data.draw(st.integers(0, 3)) == 0 else filter
        query = scan(folder, None, filter)
        expected = rows(table.filter(evaluate(filter, table.combine_chunks())))
        assert rows(query.to_table()) == expected
        assert query.count() == len(expected)
        assert rows(read_table(folder, ["q"], filter)) == sorted(({"q": row["q"]} for row in expected), key=repr)


@pytest.mark.spec("querying.partitions")
def test_files_excluded_by_a_partition_filter_are_not_opened(tmp_path: Path) -> None:
    folder = write(tmp_path, "y=2020", "y=2021", "y=2022")
    for damaged in ("y=2020/0.parquet", "y=2022/2.parquet"):
        (folder / damaged).write_bytes(b"no Parquet file")
    for filter in (col("y") == 2021, col("y").isin([2021]) & (col("x") > 0), (col("y") > 2020) & ~(col("y") >= 2022)):
        query = scan(folder, None, filter)
        assert query.count() == 3
        assert query.schema.names == ["x", "y"]
        assert query.to_table()["y"].to_pylist() == [2021] * 3
        assert [task.prune_reason is None for task in query.plan()] == [False, True, False]
    told = scan(folder, None, (col("y") == 2021) & (col("x") > 1)).explain()
    assert "reads 1 of 3 files, 1 of 1 row group" in told
    assert f"{folder}/y=2020/0.parquet skipped: y == 2021 is true for no row: by its folders y is 2020" in told


def test_invalid_name_or_type_in_a_filter_is_an_error_without_files(tmp_path: Path) -> None:
    folder = write(tmp_path, "y=2020")
    with pytest.raises(ValueError, match="no column 'z'"):
        scan(folder, None, (col("y") == 1) & (col("z") == 1)).count()
    with pytest.raises(TypeError, match="column 'y' contains integer values"):
        read_table(folder, None, col("y") == "2020")
    assert read_table(folder, None, col("y") == 1).schema.names == ["x", "y"]


def test_columns_are_selected_by_name_in_any_order(tmp_path: Path) -> None:
    folder = write(tmp_path, "y=1/m=a")
    assert read_table(folder, ["m", "x", "y"]).slice(0, 1).to_pylist() == [{"m": "a", "x": 1, "y": 1}]
    assert read_table(folder, ["m"]).to_pylist() == [{"m": "a"}] * 3
    assert read_table(folder, [], col("m") == "a").num_columns == 0
    assert scan(folder, [], col("m") == "a").count() == 3


def test_partition_column_overrides_a_file_column_like_in_spark_and_duckdb(tmp_path: Path) -> None:
    folder = write(tmp_path, "y=2020", table=pa.table({"y": ["seven"], "x": [1]}))
    read = read_table(folder)
    assert read.equals(duckdb.sql(f"from '{folder}/**/*.parquet'").to_arrow_table().cast(read.schema))
    assert read.to_pylist() == [{"y": 2020, "x": 1}]
    assert read_table(folder, ["x"], col("y") == 2020).to_pylist() == [{"x": 1}]
    assert read_table(folder, None, col("y") == 7).num_rows == 0


def test_only_folders_below_the_requested_path_are_partitions(tmp_path: Path) -> None:
    folder = write(tmp_path / "a=1", "y=2020/m=1", "y=2021/m=2")
    file = folder / "y=2020" / "m=1" / "0.parquet"
    assert read_table(file).schema.names == ["x"]
    assert read_table([file]).schema.names == ["x"]
    assert read_table(folder / "y=2020").schema.names == ["x", "m"]
    assert read_table(str(folder / "y=*" / "m=1" / "*")).schema.names == ["x", "y", "m"]
    assert read_table(str(folder / "y=2020" / "**" / "*.parquet")).schema.names == ["x", "m"]
    both = [file, str(folder / "y=2021" / "m=2" / "1.parquet")]
    expected = pq.read_table(list(map(str, both)))  # which has "a" too: it counts from the root of the file system
    assert rows(read_table(both)) == rows(expected.select(["x", "y", "m"]))
    assert rows(read_table([folder / "y=2020", folder / "y=2021"])) == rows(read_table(folder))
    assert read_table([file, file.read_bytes()]).schema.names == ["x"]


def test_paths_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "y=1", "y=2")
    monkeypatch.chdir(tmp_path)
    for source in (".", "y=*/*.parquet", "./y=*", ["y=1/0.parquet", "y=2/1.parquet"]):
        assert read_table(source, ["y"]).to_pylist() == [{"y": 1}] * 3 + [{"y": 2}] * 3
    monkeypatch.chdir(tmp_path / "y=1")
    assert read_table(["../y=1", "../y=2"], ["y"]).num_rows == 6


def test_disabled_partitioning_reads_the_files_alone(tmp_path: Path) -> None:
    folder = write(tmp_path, "y=1", "y=2")
    assert read_table(folder, partitioning=None).schema.names == ["x"]
    with pytest.raises(ValueError, match='partitioning must be "hive" or None'):
        read_table(folder, partitioning="y")


def test_partition_column_with_a_leading_underscore_is_not_hidden(tmp_path: Path) -> None:
    folder = write(tmp_path, "_y=1", "_temporary/y=2")
    assert read_table(folder).to_pylist() == [{"x": x, "_y": 1} for x in (1, 2, 3)]


def test_ambiguous_folder_names_are_rejected_with_advice(tmp_path: Path) -> None:
    for place in ("bytes/y=%FF", "twice/y=1/y=2"):
        folder = write(tmp_path, place) / place.split("/")[0]
        with pytest.raises(UnsupportedError, match="pass partitioning=None"):
            read_table(folder)
        assert read_table(folder, partitioning=None).num_rows == 3


def test_folder_name_that_is_not_text_is_rejected_with_advice(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/y=\xff"
    os.mkdir(place)
    pq.write_table(ROWS, tmp_path / "0.parquet")
    os.rename(tmp_path / "0.parquet", place + b"/0.parquet")
    with pytest.raises(UnsupportedError, match="pass partitioning=None"):
        read_table(tmp_path)


def test_variant_values_are_selected_next_to_partition_columns(tmp_path: Path) -> None:
    from pqext import variant

    events = variant.parse_json(pa.array(['{"a": 1}', '{"a": 2}']))
    for year in (1, 2):
        (tmp_path / f"y={year}").mkdir()
        pqext.write_table(pa.table({"v": events}), tmp_path / f"y={year}" / "0.parquet")
    field = col("v").variant("$.a", "int64")
    assert read_table(tmp_path, ["y", ("a", field)], (field > 1) & (col("y") != 2)).to_pylist() == [{"y": 1, "a": 2}]
    for columns, filter in (([col("y").variant("$.a", "int64")], None), (None, col("y").variant("$.a", "int64") == 1)):
        with pytest.raises(TypeError, match="column 'y' is a partition column, not a VARIANT"):
            read_table(tmp_path, columns, filter)


@pytest.mark.parametrize(
    "text",
    ["x > y", "y < x", "y = x or y is null", "x + y > 4", "not (x * y >= 4)", "y + 1 > 2", "x = y + 1 and m = 'a'",
     "(x + y) is null", "(x + y) is not null", "x + y in (3, 4)", "y % 2 = x % 2", "m like 'a%' and x > 1",
     "cast(x + y as double) / 2 = 1.5", "-y < -x"],
)  # fmt: skip
def test_conditions_on_file_and_partition_columns_match_duckdb(text: str, tmp_path: Path) -> None:
    write(tmp_path, "y=1/m=a", "y=2/m=b", "y=3/m=ab", "y=__HIVE_DEFAULT_PARTITION__/m=a")
    expected = duckdb.sql(f"from read_parquet('{tmp_path}/**/*.parquet', hive_partitioning=true) where {text}")
    found = scan(tmp_path, ["x", "y", "m"], text)
    assert rows(found.to_table()) == rows(expected.select("x, y, m").to_arrow_table())
    assert found.count() == len(expected)
