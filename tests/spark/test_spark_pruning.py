"""Spark's filters, projections, counts and joins of what pqext reads: what they skip, beside Spark's own reader."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from spark.sessions import ids, one_query

import pqext
from pqext import col
from pqext import variant as variants
from pqext.spark import explain_read, read, read_metrics, where
from pqext.spark.reading.parquet_reader import COUNTED_FILES

GROUP = 50
ROWS = 10 * GROUP


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten row groups of numbers, one of which is NaN in each, and text."""
    path = tmp_path_factory.mktemp("pruning") / "table.parquet"
    numbers = [math.nan if row % GROUP == 3 else float(row) for row in range(ROWS)]
    columns = {"id": range(ROWS), "x": numbers, "name": [f"n{row % 7}" for row in range(ROWS)]}
    pq.write_table(pa.table(columns), path, row_group_size=GROUP)
    return str(path)


@pytest.fixture
def exact_spark(spark: Any) -> Iterator[None]:
    """Spark's own reader without its filters on bounds, which lose rows of NaN."""
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    yield
    spark.conf.unset("spark.sql.parquet.filterPushdown")


def plan_of(df: Any, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    df.explain()
    return capsys.readouterr().out


def pushed(plan: str) -> str:
    (found,) = re.findall(r"PushedFilters: \[(.*?)\], ReadSchema: \S+", plan)
    return str(found)


CONDITIONS = ["id = 5", "x > 1000", "id < 120 AND x >= 3", "x IN (1, 2)", "NOT (x <= 1000)", "x IS NULL OR id = 7"]


def test_explain_read_states_the_condition_that_spark_evaluates(spark: Any, table: str) -> None:
    whole = read(spark, table)
    mixed = where(whole, "id < 60 and crc32(name) > 0")
    plan = explain_read(mixed)
    assert (plan.row_groups, plan.filter, plan.spark_filter) == (2, "id < 60", "crc32(name) > 0")
    assert "\n  Spark evaluates: crc32(name) > 0\n" in str(plan)
    again = explain_read(where(mixed, col("x") > 1))
    assert (again.row_groups, again.spark_filter) == (2, "(crc32(name) > 0) AND (x > 1)")
    every = explain_read(where(whole, F.crc32("name") > 0))
    assert (every.row_groups, every.filter) == (10, None)
    assert "crc32(name)" in str(every.spark_filter)
    assert explain_read(where(whole, col("id") < 60)).spark_filter is None
    with pytest.raises(TypeError, match="a data frame from read"):
        explain_read(whole.where("id < 60"))



@pytest.mark.spec("spark.engines")
def test_filters_on_exact_bounds_apply_next_to_inexact_bounds(
    spark: Any, exact_spark: None, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = (
        [frame.where(condition).select("id") for condition in CONDITIONS]
        for frame in (read(spark, table, engine="auto"), spark.read.parquet(table))
    )
    found = ids(*ours, *theirs)
    assert found[: len(CONDITIONS)] == found[len(CONDITIONS) :]
    for condition, df in zip(CONDITIONS, ours, strict=True):
        filters = pushed(plan_of(df, capsys))
        assert ("id" in filters) == (condition.startswith("id"))
        assert "x" not in filters.replace("EqualTo", "")


def test_sql_over_a_view_reads_the_same_columns_and_row_groups_as_spark(
    spark: Any, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plans, rows = [], []
    for df in (read(spark, table, engine="auto"), spark.read.parquet(table)):
        df.createOrReplaceTempView("viewed")
        found = spark.sql("SELECT name, count(*) n FROM viewed WHERE id < 10 GROUP BY name ORDER BY name")
        rows.append(found.collect())
        plans.append(re.findall(r"PushedFilters: .*", plan_of(found, capsys)))
    assert rows[0] == rows[1]
    assert plans[0] == plans[1] != []
    assert "LessThan(id,10)" in plans[0][0]
    assert "struct<id:bigint,name:string>" in plans[0][0]


def _documents(folder: Path, shredding: str | None, *odd: Any) -> str:
    """Documents of JSON, and ``odd`` values of other types."""
    values = [json.dumps({"kind": f"k{row % 3}", "n": row, "tags": ["a", "b"][: row % 3]}) for row in range(60)]
    column = pa.concat_arrays([variants.parse_json(values), *([variants.from_python([*odd])] if odd else [])])
    path = folder / "documents.parquet"
    column_table = pa.table([column], schema=pa.schema([variants.variant_field("v")]))
    pqext.write_table(column_table, path, shredding={} if shredding is None else {"v": shredding}, row_group_rows=20)
    return str(path)


ALL = "kind STRING, n INT, tags ARRAY<STRING>"


@pytest.mark.spec("spark.engines")
@pytest.mark.parametrize(
    ("shredding", "odd", "engine"),
    [
        (None, False, "native"),
        (None, True, "native"),
        (ALL, False, "native"),
        (ALL, True, "python"),
        ("kind STRING, n INT", False, "python"),
    ],
)
def test_spark_reads_unshredded_variants_if_it_supports_all_their_types(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], shredding: str | None, odd: bool, engine: str
) -> None:
    path = _documents(tmp_path, shredding, *([{"at": dt.time(1, 2, 3)}] if odd else []))
    plan = explain_read(path, engine="auto", spark=spark)
    assert plan.engine == engine, plan.reasons
    question = "SELECT variant_get(v, '$.kind', 'string') k, count(*) n FROM viewed GROUP BY k"
    frames = [read(spark, path, engine="auto"), spark.read.parquet(path), read(spark, path)]
    answers = []
    for df in frames[:2]:
        df.createOrReplaceTempView("viewed")
        answers.append(spark.sql(question))
    ours, theirs = (sorted((row.k or "", row.n) for row in rows) for rows in one_query(*answers))
    assert ours == theirs != []
    assert ("ReadSchema: struct<v:struct<0:string>>" in plan_of(answers[0], capsys)) == (engine == "native")
    if not odd:
        texts = one_query(*(df.select(F.to_json("v").alias("text")) for df in frames))
        first, second, third = (sorted(row.text for row in rows) for rows in texts)
        assert first == second == third


def test_spark_reads_unshredded_variants_of_its_own_files(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(20).select(F.parse_json(F.concat(F.lit('{"n": '), "id", F.lit(', "m": [1]}'))).alias("v"))
    rows.coalesce(1).write.parquet(str(tmp_path / "spark"))
    assert explain_read(str(tmp_path / "spark"), engine="auto", spark=spark).engine == "native"
    # Its properties alone prove nothing: another writer has copied them.
    (file,) = (tmp_path / "spark").glob("*.parquet")
    copied = pqext.read_table(file)
    shredded = {"v": "n INT"}
    metadata = {"org.apache.spark.version": "4.3.0"}
    pqext.write_table(copied.replace_schema_metadata(metadata), tmp_path / "copied.parquet", shredding=shredded)
    assert explain_read(str(tmp_path / "copied.parquet"), engine="auto", spark=spark).engine == "python"


@pytest.mark.spec("spark.counts")
def test_count_reads_no_pages_and_matches_spark(spark: Any, table: str, tmp_path: Path) -> None:
    data = bytearray(Path(table).read_bytes())
    length = int.from_bytes(data[-8:-4], "little")
    data[4 : -8 - length] = b"\xff" * (len(data) - 12 - length)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(data)
    df = read(spark, str(damaged))
    assert df.count() == spark.read.parquet(str(damaged)).count() == ROWS
    with pytest.raises(Exception, match=r"damaged\.parquet"):
        df.collect()


@pytest.mark.spec("spark.counts")
@pytest.mark.parametrize("counted_files", [COUNTED_FILES, 0])
def test_count_matches_the_rows_of_every_read(
    spark: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted_files: int
) -> None:
    monkeypatch.setattr("pqext.spark.reading.parquet_reader.COUNTED_FILES", counted_files)
    theirs = spark.read.parquet(table)
    assert read(spark, table, where=col("id") < 120).count() == theirs.where("id < 120").count()
    named = where(read(spark, table, columns=["name"]), col("name") == "n3")
    assert named.count() == theirs.where("name = 'n3'").count()
    assert read(spark, table, where=col("id") < 0).count() == 0
    assert read(spark, table, include_file_paths="file", where=col("file").is_not_null()).count() == ROWS
    for day in (1, 2):
        (tmp_path / f"days/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": range(day)}), tmp_path / f"days/day={day}/part.parquet")
    parts = read(spark, str(tmp_path / "days"), where=col("day") == 2)
    assert parts.count() == spark.read.parquet(str(tmp_path / "days")).where("day = 2").count() == 2
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(Path(table).read_bytes())
    cached = read(spark, str(copy), columns=["id"]).cache()
    assert cached.count() == ROWS
    copy.unlink()
    assert cached.count() == ROWS
    cached.unpersist()


@pytest.mark.spec("spark.counts")
@pytest.mark.parametrize("counted_files", [COUNTED_FILES, 0])
def test_count_reads_only_the_filter_columns(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted_files: int
) -> None:
    monkeypatch.setattr("pqext.spark.reading.parquet_reader.COUNTED_FILES", counted_files)
    path = tmp_path / "blobs.parquet"
    blobs = pa.table({"id": [3, 1, 2], "blob": [b"a" * 50, b"b" * 50, b"c" * 50]})
    pq.write_table(blobs, path, compression="none", use_dictionary=False)
    blob = pq.read_metadata(path).row_group(0).column(1)
    data = bytearray(path.read_bytes())
    start, size = blob.data_page_offset, blob.total_compressed_size
    data[start : start + size] = b"\xff" * size
    path.write_bytes(data)
    theirs = spark.read.parquet(str(path)).where("id < 3").count()
    assert read(spark, str(path), where=col("id") < 3).count() == theirs == 2
    lenient = read(spark, str(path), where=col("id") < 3, on_invalid="skip")
    assert lenient.count() == len(lenient.collect()) == 0


@pytest.mark.spec("spark.counts")
@pytest.mark.parametrize("engine", ["python", "native"])
def test_count_matches_rows_planned_before_new_files(spark: Any, engine: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    ours, theirs = read(spark, str(tmp_path), engine=engine), spark.read.parquet(str(tmp_path))
    assert (len(ours.collect()), len(theirs.collect())) == (2, 2)
    pq.write_table(pa.table({"id": [3, 4, 5]}), tmp_path / "b.parquet")
    assert ours.count() == theirs.count() == len(ours.collect()) == 2


@pytest.mark.spec("spark.counts")
@pytest.mark.parametrize("engine", ["python", "native"])
def test_few_files_are_counted_without_a_job(spark: Any, table: str, engine: Any, tmp_path: Path) -> None:
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(Path(table).read_bytes())
    df = read(spark, str(copy), engine=engine)
    few = read(spark, str(copy), where=col("id") < 120, engine=engine)
    expected = ROWS, spark.read.parquet(table).where("id < 120").count()
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    spark.sparkContext.setJobGroup(engine, "counts")
    try:
        assert (df.count(), few.count()) == expected
        assert [*jobs(engine)] == []
        spark.range(3).count()
        assert len(jobs(engine)) > 0
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    pq.write_table(pa.table({"id": range(5)}), copy)
    with pytest.raises(pqext.ParquetError, match="the file was replaced"):
        df.count()


def test_view_with_options_skips_row_groups_and_columns(spark: Any, table: str, tmp_path: Path) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW narrow USING pqext OPTIONS (path '{table}', where 'id < 40', "
        f"columns 'id, name', metrics_path '{tmp_path}')"
    )
    spark.read.parquet(table).createOrReplaceTempView("by_spark")
    question = "SELECT name, max(id) FROM {} WHERE id < 40 GROUP BY name ORDER BY name"
    assert spark.sql(question.format("narrow")).collect() == spark.sql(question.format("by_spark")).collect()
    done = read_metrics(str(tmp_path))
    assert (done.row_groups, done.rows_returned) == (1, 40)


def test_options_of_a_select_do_not_reach_a_view(spark: Any, table: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW narrow USING pqext OPTIONS (path '{table}', where 'id < 40')")
    assert spark.sql("SELECT count(*) FROM narrow WITH (where = 'id < 7')").collect()[0][0] == 40


def test_explain_prints_path_filter_columns_files_and_row_groups(
    spark: Any, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    df = where(read(spark, table, columns=["id", "name"]), col("id") < 70)
    plan = plan_of(df, capsys)
    assert "BatchScan pqext[id" in plan
    for text in ("reads 2 of 10 row groups", f"files: 1 of 1, {table}", "columns: id, name", "filter: id < 70"):
        assert text in plan
    assert explain_read(df).row_groups == explain_read(table, ["id", "name"], col("id") < 70).row_groups == 2
    partly = plan_of(where(read(spark, table), "id < 70 and reverse(name) <> 'x'"), capsys)  # Spark reverses
    assert "reads 2 of 10 row groups" in partly
    assert "filter: id < 70" in partly
    native = plan_of(read(spark, table, engine="native"), capsys)
    assert "FileScan parquet" in native
    assert "Spark's reader reads 1 of 1 files" in native
    with pytest.raises(TypeError, match="accepts paths, or a data frame from read"):
        explain_read(df.select("id"))
    with pytest.raises(TypeError, match=r"call pqext\.spark\.where"):
        explain_read(df, where=col("id") < 3)


def test_explain_names_the_folder_of_several_files(table: str, tmp_path: Path) -> None:
    for name in ("a.parquet", "k=1/b.parquet", "k=1/c.parquet"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_bytes(Path(table).read_bytes())
    for path, named in (("t", "t"), ("t/k=1", "t/k=1"), ("t/k=1/b.parquet", "t/k=1/b.parquet")):
        text = explain_read(str(tmp_path / path), ["id"], partitioning=None).describe()
        assert re.search(rf"files: (\d) of \1, {re.escape(str(tmp_path / named))}\n", text), text


def test_joins_broadcast_a_small_read_by_hint_or_spark_reader(
    spark: Any, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.range(3).selectExpr("id AS big").write.parquet(str(tmp_path / "big"))
    big = spark.read.parquet(str(tmp_path / "big"))
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(Path(table).stat().st_size + 1))
    try:
        # Data source pqext reports no size, which Spark takes for the largest there is.
        small, theirs = read(spark, table), spark.read.parquet(table)
        left = "leftouter"  # of which only the right side can be broadcast
        assert "SortMergeJoin" in plan_of(big.join(small, big.big == small.id, left), capsys)
        for one in (F.broadcast(small), read(spark, table, engine="native"), theirs):
            joined = big.join(one, big.big == one.id, left)
            assert "BroadcastHashJoin" in plan_of(joined, capsys)
            assert joined.count() == 3
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_filters_pushed_by_spark_leak_into_other_scans_of_a_python_source(spark: Any) -> None:
    """The reason why data source pqext takes no such filters. Remove both once this test fails."""

    class PushedReader(DataSourceReader):
        def __init__(self) -> None:
            self.wanted: Any = None

        def pushFilters(self, filters: Any) -> Any:
            for one in filters:
                if type(one).__name__ == "EqualTo":
                    self.wanted = one.value
                yield one  # which Spark evaluates again

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(0)]

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            yield from ((value,) for value in range(100) if self.wanted in (None, value))

    class Pushed(DataSource):
        """A source of the numbers up to 99 that takes filters of the form ``id = n``, as Spark documents."""

        @classmethod
        def name(cls) -> str:
            return "pushed"

        def schema(self) -> str:
            return "id INT"

        def reader(self, schema: Any) -> DataSourceReader:
            return PushedReader()

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(Pushed)
        df = spark.read.format("pushed").load()
        assert df.where("id = 5").count() == 1
        assert df.count() != 100  # a later action
        df = spark.read.format("pushed").load()
        assert df.where("id = 5").union(df.where("id = 7")).count() != 2  # another scan of one action
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
