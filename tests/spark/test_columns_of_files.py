"""Columns that only some files of a folder have: an error on every path, whatever file is first, unless unified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.spark import explain_read, read

WIDER = {
    "column": ({"id": [1]}, {"id": [2], "x": [3]}),
    "struct field": ({"id": [1], "s": [{"a": 1}]}, {"id": [2], "s": [{"a": 2, "b": 3}]}),
    "list element": ({"id": [1], "l": [[{"a": 1}]]}, {"id": [2], "l": [[{"a": 2, "b": 3}]]}),
    "type": ({"id": [1], "x": pa.array([1], pa.int32())}, {"id": [2], "x": pa.array([3], pa.int64())}),
}
"""Rows of two files, the second of which has more."""

ROUTES: dict[str, Callable[[Any, str], Any]] = {
    "scan": lambda spark, path: pqext.scan(path).to_table(),
    "read_table": lambda spark, path: pqext.read_table(path),
    "explain": lambda spark, path: explain_read(path),
    "read": lambda spark, path: read(spark, path).collect(),
    "count": lambda spark, path: read(spark, path).count(),
    "where": lambda spark, path: read(spark, path, where=pqext.col("id") > 0).collect(),
    "native": lambda spark, path: read(spark, path, engine="native").collect(),
    "auto": lambda spark, path: read(spark, path, engine="auto").collect(),
    "load": lambda spark, path: spark.read.format("pqext").load(path).collect(),
}


def folder(tmp_path: Path, first: dict[str, Any], second: dict[str, Any]) -> str:
    for name, rows in (("a", first), ("b", second)):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    return str(tmp_path)


@pytest.mark.spec("spark.read.columns")
@pytest.mark.parametrize(
    ("difference", "reverse"),
    [
        *((difference, False) for difference in WIDER),
        ("column", True),
        *(pytest.param(difference, True, marks=pytest.mark.slow) for difference in WIDER if difference != "column"),
    ],
)
def test_files_with_different_columns_are_an_error_on_every_path(
    spark: Any, tmp_path: Path, difference: str, reverse: bool
) -> None:
    first, second = WIDER[difference][:: -1 if reverse else 1]
    path = folder(tmp_path, first, second)
    for name in ROUTES if difference == "column" else ("scan", "read"):
        with pytest.raises(Exception, match=r"schemas differ.*[ab]\.parquet"):
            print(name, ROUTES[name](spark, path))
    assert pqext.scan(path).count() == 2  # a scan counts rows without a schema for all files
    found = {tuple(row) for row in read(spark, path, columns=["id"]).collect()}
    assert found == {tuple(row) for row in spark.read.parquet(path).select("id").collect()} == {(1,), (2,)}
    chosen = spark.read.format("pqext").schema("id BIGINT").load(path)
    assert [tuple(row) for row in chosen.collect()] == [(first["id"][0],), (second["id"][0],)]


@pytest.mark.spec("spark.read.columns")
@pytest.mark.parametrize("reverse", [False, True])
def test_union_has_the_columns_of_spark_merge_schema(spark: Any, tmp_path: Path, reverse: bool) -> None:
    for number, name in enumerate(("column", "struct field", "list element")):
        first, second = WIDER[name][:: -1 if reverse else 1]
        (tmp_path / str(number)).mkdir()
        path = folder(tmp_path / str(number), first, second)
        theirs = spark.read.option("mergeSchema", "true").parquet(path)
        ours = read(spark, path, schema="union")
        assert sorted(ours.columns) == sorted(theirs.columns)
        assert sorted(map(str, ours.select(theirs.columns).collect())) == sorted(map(str, theirs.collect()))


@pytest.mark.spec("spark.read.columns")
@pytest.mark.parametrize("reverse", [False, True])
def test_partition_column_stored_in_some_files_is_an_error_on_every_path(
    spark: Any, tmp_path: Path, reverse: bool
) -> None:
    for name, rows in (("a=1", {"id": [1]}), ("0" if reverse else "b", {"id": [2], "a": [5]})):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(rows), tmp_path / name / "f.parquet")
    for route in ROUTES.values():
        with pytest.raises(Exception, match=r"column 'a' is stored in|'a'? .*(folder|schemas differ)|are not a="):
            print(route(spark, str(tmp_path)))


@pytest.mark.spec("spark.read.columns")
def test_column_added_after_the_schema_was_read_is_an_error(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "in")
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "in" / "b.parquet")
    frame = read(spark, path)
    assert frame.columns == ["id"]
    pq.write_table(pa.table({"id": [1], "x": [3]}), tmp_path / "in" / "b.parquet")
    with pytest.raises(Exception, match="files have columns x, which were missing"):
        frame.collect()


@pytest.mark.slow
@pytest.mark.spec("spark.read.columns")
def test_stream_stops_at_a_file_with_a_new_column_without_a_schema(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "in" / "a.parquet")
    inferred = spark.readStream.format("pqext").load(str(tmp_path / "in"))
    chosen = spark.readStream.format("pqext").schema("id BIGINT").load(str(tmp_path / "in"))

    def run(frame: Any, name: str) -> None:
        writer = frame.writeStream.format("parquet").trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / name)).start(str(tmp_path / f"{name}-out"))
        try:
            query.awaitTermination(60)
        finally:
            query.stop()

    run(inferred, "inferred")
    pq.write_table(pa.table({"id": [2], "x": [3]}), tmp_path / "in" / "b.parquet")
    with pytest.raises(Exception, match="files have columns x, which were missing"):
        run(inferred, "inferred")
    run(chosen, "chosen")
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "chosen-out")).collect()) == [1, 2]
