"""Files of several schemas as one data frame, and where each row comes from."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types as T

import pqext
from pqext import col
from pqext.spark import explain_read, query, read
from pqext.spark.reading.request import Query


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An older and a newer file; an INT96 timestamp is in both."""
    root = tmp_path_factory.mktemp("schemas")
    at = pa.array([dt.datetime(2024, 1, day) for day in (1, 2, 3, 4)])
    old = pa.table({"id": pa.array([1, 2, 3, 4], pa.int32()), "at": at, "word": ["a", "b", "c", "d"]})
    pq.write_table(old, root / "a.parquet", use_deprecated_int96_timestamps=True, row_group_size=2)
    new = pa.table({"id": pa.array([1 << 40, 6]), "at": at[:2], "size": [1.5, None]})
    pq.write_table(new, root / "b.parquet", use_deprecated_int96_timestamps=True)
    return root


def test_columns_are_matched_by_name(spark: Any, folder: Path) -> None:
    rows = read(spark, str(folder), schema="union", include_file_paths="file", include_row_numbers="row")
    assert [(field.name, field.dataType) for field in rows.schema] == [
        ("id", T.LongType()), ("at", T.TimestampType()), ("word", T.StringType()), ("size", T.DoubleType()),
        ("file", T.StringType()), ("row", T.LongType()),
    ]  # fmt: skip
    found = sorted((row.id, row.word, row.size, Path(row.file).name, row.row) for row in rows.collect())
    assert found == [
        (1, "a", None, "a.parquet", 0), (2, "b", None, "a.parquet", 1), (3, "c", None, "a.parquet", 2),
        (4, "d", None, "a.parquet", 3), (6, None, None, "b.parquet", 1), (1 << 40, None, 1.5, "b.parquet", 0),
    ]  # fmt: skip
    agg = {"rows": "count", "most": ("max", "id")}
    few = query(spark, str(folder), agg, where=col("size").is_null(), schema="union")
    assert [tuple(row) for row in few.collect()] == [(5, 6)]
    agg = {"rows": "count", "words": ("count", "word"), "least": ("min", "size"), "most": ("max", "id")}
    assert [tuple(row) for row in query(spark, str(folder), agg, schema="union").collect()] == [(6, 4, 1.5, 1 << 40)]
    theirs = spark.read.parquet(str(folder / "a.parquet")).select("at")
    assert {row["at"] for row in rows.collect()} == {row["at"] for row in theirs.collect()}


def test_different_files_without_union_are_an_error_that_names_both(spark: Any, folder: Path) -> None:
    with pytest.raises(PySparkException, match=r"(?s)b\.parquet.*a\.parquet"):
        read(spark, str(folder)).collect()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("schema", "strict", "expected 'union'"),
        ("include_row_numbers", "", "expected the name"),
        ("memory_bytes", "x", "option memory_bytes: expected a positive integer, not 'x'"),
        ("partition_bytes", "-1", "option partition_bytes: expected a positive integer, not '-1'"),
    ],
)
def test_invalid_options_are_reported(folder: Path, option: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Query.from_options({"path": str(folder), option: value}).schema()


def test_types_without_a_common_type_are_named_with_both_files(folder: Path, tmp_path: Path) -> None:
    pqext.write_table(pa.table({"id": ["x"]}), tmp_path / "c.parquet")
    paths = f'["{folder}/a.parquet", "{tmp_path}/c.parquet"]'
    with pytest.raises(ValueError, match=r"id.*int32.*string.*c\.parquet"):
        Query.from_options({"paths": paths, "schema": "union"})


def test_columns_may_be_a_mapping_and_errors_use_the_filter_notation(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pqext.write_table(pa.table({"i": [1, 2], "tz": pa.array([0, 1], pa.timestamp("us", "UTC"))}), path)
    columns = {"twice": col("i") * 2, "j": "i"}
    assert read(spark, path, columns, "i > 1", engine="python").collect() == [(4, 2)]
    with pytest.raises(Exception, match=r"write timestamp_ltz '2026-05-01 00:00:00Z'"):
        spark.read.format("pqext").option("where", "tz > '2026-05-01'").load(path).collect()
    assert explain_read(path, where="tz > '2026-05-01'").tasks  # the active session casts the text
    with pytest.raises(TypeError, match=r"write datetime.datetime\(2026, 5, 1, tzinfo"):
        explain_read(path, where=col("tz") > "2026-05-01")


@pytest.mark.spec("spark.read.columns")
def test_union_of_names_differing_in_case_follows_the_session(spark: Any, tmp_path: Path) -> None:
    for number, name in enumerate(("a", "A")):
        pq.write_table(pa.table({"id": [number], name: [10 + number]}), tmp_path / f"{number}.parquet")
    path = str(tmp_path)
    different = r"'a' and 'A' differ only in case.*caseSensitive=true"
    with pytest.raises(PySparkException, match=different):
        read(spark, path, schema="union")
    with pytest.raises(PySparkException, match=different):
        spark.read.format("pqext").option("mergeSchema", "true").load(path)
    assert pqext.scan(path, schema="union").to_table().to_pydict() == {"id": [0, 1], "a": [10, None], "A": [None, 11]}
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        theirs = spark.read.option("mergeSchema", "true").parquet(path)
        ours = read(spark, path, schema="union")
        assert sorted(ours.columns) == sorted(theirs.columns)
        assert sorted(map(str, ours.select(theirs.columns).collect())) == sorted(map(str, theirs.collect()))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("names", [("s.a", "s.A"), ("l.element.a", "l.element.A")])
def test_fields_that_differ_in_case_are_named_by_path(tmp_path: Path, names: tuple[str, str]) -> None:
    for number, name in enumerate(names):
        struct = [{name[-1]: number}]
        table = pa.table({name[0]: pa.array([struct if "." in name[2:] else struct[0]])})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    options = {"path": str(tmp_path), "schema": "union"}
    with pytest.raises(ValueError, match=f"'{names[0]}' and '{names[1]}' differ only in case"):
        Query.from_options(options)
    assert Query.from_options(options | {"case_sensitive": "true"}).schema().names == [names[0][0]]
