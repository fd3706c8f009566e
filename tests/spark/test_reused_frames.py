"""Data frames that are used again, under other filters, in views, unions and caches, give what Spark's reader gives."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from pqext import col
from pqext.dataset.expressions import Expression
from pqext.spark import local_session, read, read_json, read_metrics, where
from pqext.spark.frames import parquet as reading
from pqext.spark.reading.planning import ReadMetrics, write_metrics
from reference.effort import share

ROWS = 60
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
CONDITIONS: list[tuple[str, Expression]] = [
    ("id = 5", col("id") == 5),
    ("id < 3 OR id > 57", (col("id") < 3) | (col("id") > 57)),
    ("NOT (x <= 40)", ~(col("x") <= 40)),
    ("x IS NULL", col("x").is_null()),
    ("name IN ('k7', 'k41')", col("name").isin(["k7", "k41"])),
    ("s.b >= 55", col("s.b") >= 55),
    ("x = double('NaN')", col("x") == math.nan),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two files of three row groups, with nulls and NaN."""
    path = tmp_path_factory.mktemp("frames") / "reused"
    for name in (path, path.with_name("plain")):
        name.mkdir()
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "x": pa.array([None if i % 7 == 0 else math.nan if i % 11 == 0 else i for i in range(ROWS)], pa.float64()),
            "name": [f"k{i}" for i in range(ROWS)],
            "s": [{"b": i} if i % 5 else None for i in range(ROWS)],
        }
    )
    for number in range(2):
        rows = table.slice(number * ROWS // 2, ROWS // 2)
        pq.write_table(rows, path / f"{number}.parquet", row_group_size=10, write_statistics=True)
        # By the bounds of pyarrow, which leave NaN out, Spark's own reader would lose it.
        pq.write_table(rows, path.with_name("plain") / f"{number}.parquet", write_statistics=False)
    return str(path)


@pytest.fixture(params=["false", "true"], ids=["pushdown off", "pushdown on"])
def pushdown(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The setting under which Spark pushes filters to Python data sources."""
    spark.conf.set(PUSHDOWN, request.param)
    yield request.param
    spark.conf.unset(PUSHDOWN)


def rows(df: DataFrame) -> list[Any]:
    return sorted(row[0] for row in df.select("id").collect())


def filters(df: DataFrame, number: int, by_pqext: bool) -> DataFrame:
    text, expression = CONDITIONS[number]
    return where(df, expression) if by_pqext else df.where(text)


def test_local_session_disables_the_setting(spark: Any) -> None:
    assert spark.conf.get(PUSHDOWN) == "false"
    assert local_session().conf.get(PUSHDOWN) == "false"


def test_filter_does_not_affect_later_actions(spark: Any, folder: str, pushdown: str) -> None:
    df = read(spark, folder)
    assert [df.where("id = 5").count(), df.count()] == [1, ROWS]
    df.createOrReplaceTempView("reused")
    assert spark.sql("SELECT count(*) FROM reused WHERE x > 50").collect()[0][0] > 0
    assert spark.sql("SELECT count(*) FROM reused").collect()[0][0] == ROWS
    assert df.where("id < 3").union(df.where("id > 57")).count() == 5


# A step is what becomes of a frame (or of two), and an action that follows it.
frames = st.integers(0, 5)
steps = st.one_of(
    st.tuples(st.just("filter"), frames, st.integers(0, len(CONDITIONS) - 1), st.booleans()),
    st.tuples(st.just("union"), frames, frames),
    st.tuples(st.just("view"), frames),
    st.tuples(st.just("cache"), frames),
    st.tuples(st.just("act"), frames),
)


@pytest.mark.slow
@settings(
    max_examples=share(0.04),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(steps=st.lists(steps, min_size=3, max_size=7))
def test_reused_frames_match_the_spark_reader_in_any_order(
    spark: Any, folder: str, pushdown: str, steps: list[tuple[Any, ...]]
) -> None:
    ours, theirs = [read(spark, folder)], [spark.read.parquet(str(Path(folder).with_name("plain")))]
    cached = []
    for step in steps:
        kind, at = step[0], step[1] % len(ours)
        if kind == "filter":
            ours.append(filters(ours[at], step[2], step[3]))
            theirs.append(filters(theirs[at], step[2], False))
        elif kind == "union":
            other = step[2] % len(ours)
            ours.append(ours[at].union(ours[other]))
            theirs.append(theirs[at].union(theirs[other]))
        elif kind == "view":
            ours[at].createOrReplaceTempView("again")
            ours.append(spark.table("again"))
            theirs.append(theirs[at])
        elif kind == "cache":
            cached.append(ours[at].cache())
        else:
            assert rows(ours[at]) == rows(theirs[at])
    try:
        assert rows(ours[-1]) == rows(theirs[-1])
        assert ours[0].count() == ROWS
    finally:
        for df in cached:
            df.unpersist()


def test_cached_frame_preserves_its_rows_when_reused(spark: Any, folder: str, tmp_path: Path) -> None:
    for file in Path(folder).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    df = read(spark, str(tmp_path)).cache()
    assert df.count() == ROWS
    for file in tmp_path.iterdir():
        file.unlink()
    assert rows(where(df, col("id") < 3)) == [0, 1, 2]
    df.unpersist()


def test_files_changed_between_two_actions_are_reported(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"id": range(10)}), path, row_group_size=5)
    df = read(spark, str(tmp_path))
    assert df.count() == 10
    pq.write_table(pa.table({"id": range(40)}), path, row_group_size=5)
    with pytest.raises(Exception, match=r"the file was replaced since .* new data frame.*file\.parquet"):
        df.count()
    assert where(df, col("id") >= 0).count() == read(spark, str(tmp_path)).count() == 40
    path.rename(tmp_path / "other.parquet")
    with pytest.raises(Exception, match="The file was removed since this data frame was planned: read it again"):
        df.count()
    lines = tmp_path / "lines.json"
    lines.write_text("1\n2\n3\n")
    values = read_json(spark, str(lines))
    assert values.count() == 3
    lines.write_text("1\n")
    with pytest.raises(Exception, match=r"was planned \(planned 6 bytes, found 2\).*lines\.json"):
        values.count()


def test_every_read_option_is_preserved_when_planning_again(spark: Any, folder: str) -> None:
    repeat = reading._reads[read(spark, folder, ignore_missing_files=True)].repeat
    assert isinstance(repeat, partial)
    given = {"spark", "path", "columns", "where"}
    options = set(inspect.signature(read).parameters) - given - {"file_options"}
    assert {*options, "ignore_missing_files"} == set(repeat.keywords)
    assert len(repeat.args) == len(given) - 1


def test_repeated_task_is_counted_once(tmp_path: Path) -> None:
    write_metrics(str(tmp_path), "task", ReadMetrics(files=1, rows_read=3))
    write_metrics(str(tmp_path), "task", ReadMetrics(files=1, rows_read=5))
    write_metrics(str(tmp_path), "other", ReadMetrics(files=1, rows_read=7))
    assert read_metrics(tmp_path.as_uri()) == ReadMetrics(files=2, rows_read=12)
