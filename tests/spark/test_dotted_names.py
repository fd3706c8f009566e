"""A column whose name has a dot wins over the field of a struct at that path, in Spark too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from spark.sessions import one_query

import pqext
import pqext.spark
from pqext import col, filters, skipping

ROWS = pa.table({"a.b": [1, 2, 3], "a": [{"b": 30}, {"b": 20}, {"b": 10}], "n": [0, 1, 2]})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dots") / "dots.parquet"
    pqext.write_table(ROWS, path, row_group_rows=1)
    return path


def numbers(frame: Any) -> list[int]:
    return sorted(row["n"] for row in frame.select("n").collect())


FILTERS: list[tuple[Any, str]] = [
    (col("a.b") > 2, "`a.b` > 2"), ("a.b > 2", "`a.b` > 2"), ([("a.b", ">", 2)], "`a.b` > 2"),
    (filters.to_json(col("a.b") > 2), "`a.b` > 2"), (col("a").field("b") > 10, "a.b > 10"),
    ("a['b'] > 10", "a.b > 10"), (col("a.b").isin([1, None]), "`a.b` in (1, null)"),
    (~col("a.b").isin([1, None]), "not `a.b` in (1, null)"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["python", "native", "auto"])
def test_filters_match_spark(spark: Any, path: Path, engine: Any) -> None:
    theirs, ours = spark.read.parquet(str(path)), pqext.spark.read(spark, str(path), engine=engine)
    frames = [theirs.where(text) for _, text in FILTERS]
    frames += [pqext.spark.read(spark, str(path), where=where, engine=engine) for where, _ in FILTERS]
    frames += [pqext.spark.where(frame, where) for frame in (theirs, ours) for where, _ in FILTERS]
    found = [sorted(row.n for row in rows) for rows in one_query(*(frame.select("n") for frame in frames))]
    for at, filter in enumerate(FILTERS):
        expected, *others = found[at :: len(FILTERS)]
        assert others == [expected] * 3, filter


def test_options_and_columns_refer_to_the_column(spark: Any, path: Path) -> None:
    assert numbers(spark.read.format("pqext").option("where", "a.b > 2").load(str(path))) == [2]
    rows = spark.read.format("pqext").option("columns", "a.b").load(str(path)).collect()
    assert sorted(row["a.b"] for row in rows) == [1, 2, 3]
    named = pqext.spark.read(spark, str(path), columns=[("x", col("a.b")), ("y", col("a").field("b"))]).collect()
    assert sorted(map(tuple, named)) == [(1, 30), (2, 20), (3, 10)]
    for column, expected in (("a.b", 3), (col("a.b"), 3), (col("a").field("b"), 30)):
        ((most,),) = pqext.spark.query(spark, str(path), {"most": ("max", column)}).collect()
        assert most == expected


def test_stores_of_the_struct_field_exclude_no_file_for_the_column(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    for at in range(3):
        pqext.write_table(ROWS.slice(at, 1), folder / f"{at}.parquet")
    skipping.build(folder, [skipping.MinMax(col("a").field("b"))], tmp_path / "store")
    found = pqext.spark.read_with_skipping(spark, str(folder), col("a.b") > 2, str(tmp_path / "store"))
    assert numbers(found) == [2]
    assert numbers(pqext.spark.read(spark, str(folder), where=col("a.b") > 2, skipping=str(tmp_path / "store"))) == [2]
