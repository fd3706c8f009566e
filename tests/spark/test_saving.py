"""Saves as users ask for them: modes, partitions, sizes of files, SQL, and what is told of them."""

from __future__ import annotations

import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

import pqext
from pqext import variant
from pqext.dataset.files.folders import COMMIT, list_files
from pqext.dataset.writing import commit
from pqext.spark import explain_read, explain_write, functions, layout, shred_variant, write
from pqext.spark.streams.parquet import StreamSink
from pqext.spark.writing.sink import Sink, read_summary
from pqext.spark.writing.table_sink import TableSink

SCHEMA = T.StructType([T.StructField("k", T.StringType()), T.StructField("n", T.LongType())])


def save(target: Path, rows: dict[str, list[Any]], overwrite: bool = False, **options: str) -> None:
    """What Spark does with a data source, without Spark."""
    sink = Sink({"path": str(target), **options}, SCHEMA, overwrite)
    batch = pa.record_batch({"k": pa.array(rows["k"], pa.string()), "n": pa.array(rows["n"], pa.int64())})
    sink.commit([sink.write(iter([batch.slice(at, 2) for at in range(0, len(batch), 2)]))])


def saved_rows(target: Path) -> dict[int, Any]:
    table = pqext.read_table(target)
    return dict(zip(table["n"].to_pylist(), table["k"].to_pylist(), strict=True))


def test_dynamic_overwrite_replaces_the_written_partitions(tmp_path: Path) -> None:
    save(tmp_path, {"k": ["a b", "b", None, "b"], "n": [1, 2, 3, 4]}, partition_by="k")
    escaped = tmp_path / "k=a b"
    escaped.rename(tmp_path / "k=a%20b")  # as other writers name it
    (tmp_path / "k=a%20b" / "deeper").mkdir()
    pq.write_table(pa.table({"n": [9]}), tmp_path / "k=a%20b" / "deeper" / "x.parquet")
    dynamic = {"partition_by": '["k"]', "partitionOverwriteMode": "DYNAMIC"}
    save(tmp_path, {"k": ["a b", "c"], "n": [5, 6]}, True, **dynamic)
    assert saved_rows(tmp_path) == {5: "a b", 6: "c", 2: "b", 4: "b", 3: None}
    save(tmp_path, {"k": [], "n": []}, True, **dynamic)
    assert len(saved_rows(tmp_path)) == 5
    save(tmp_path, {"k": ["z"], "n": [7]}, True, partition_by="k")
    assert saved_rows(tmp_path) == {7: "z"}


def test_killed_partitioned_save_is_visible_and_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, {"k": ["a", "b"], "n": [1, 2]}, partition_by="k")

    def killed(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(commit, "_finish", killed)
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, {"k": ["a", "c"], "n": [3, 4]}, True, partition_by="k", partition_overwrite="dynamic")
    assert saved_rows(tmp_path) == {3: "a", 2: "b", 4: "c"}
    (decided,) = tmp_path.glob(f"{COMMIT}*")
    for pattern, count in (("k=a/*", 1), ("*/*.parquet", 3), ("**/*.parquet", 3), ("k=[bc]", 2), ("*.parquet", 0)):
        assert len(list_files(str(tmp_path), pattern.split("/"))) == count, pattern
    (moved,) = (decided / "k=a").iterdir()
    moved.rename(tmp_path / "k=a" / moved.name)
    assert saved_rows(tmp_path) == {3: "a", 2: "b", 4: "c"}
    commit.clean(tmp_path)
    assert saved_rows(tmp_path) == {3: "a", 2: "b", 4: "c"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_SUCCESS", "k=a", "k=b", "k=c"]
    assert (tmp_path / "k=c").is_dir()


@pytest.mark.spec("spark.settings.overwrite")
@pytest.mark.parametrize("step", ["_write", "_finish"])
def test_dynamic_overwrite_of_the_session_is_atomic_when_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    save(tmp_path, {"k": ["a", "b"], "n": [1, 2]}, partition_by="k")
    session = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
    monkeypatch.setattr("pqext.spark.writing.sink.task_setting", lambda: session.get)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(commit, step, killed)
        changed.setattr("pqext.dataset.writing.targets.commit.abort", lambda *_: None)  # the process is gone
        with pytest.raises(KeyboardInterrupt):
            save(tmp_path, {"k": ["a", "c"], "n": [3, 4]}, True, partition_by="k")
    before, after = {1: "a", 2: "b"}, {3: "a", 2: "b", 4: "c"}
    assert saved_rows(tmp_path) == (before if step == "_write" else after)
    commit.clean(tmp_path)
    assert saved_rows(tmp_path) == (before if step == "_write" else after)
    save(tmp_path, {"k": ["a"], "n": [5]}, True, partition_by="k")
    assert saved_rows(tmp_path) == ({5: "a", 2: "b"} if step == "_write" else {5: "a", 2: "b", 4: "c"})


def test_rows_per_file_follow_the_spark_option(tmp_path: Path) -> None:
    sink = Sink({"path": str(tmp_path), "maxRecordsPerFile": "3"}, SCHEMA, False)
    batch = pa.record_batch({"k": ["a"] * 8, "n": range(8)})
    sink.commit([sink.write(iter([batch]))])
    assert sorted(pq.ParquetFile(path).metadata.num_rows for path in tmp_path.glob("*.parquet")) == [2, 3, 3]
    Sink({"path": str(tmp_path), "maxRecordsPerFile": "0"}, SCHEMA, False)


def test_written_files_are_reported(tmp_path: Path) -> None:
    told = tmp_path / "summary.json"
    save(tmp_path / "out", {"k": ["a", "b", "a"], "n": [1, 2, 3]}, partition_by="k", summary_path=str(told))
    done = read_summary(told, "")
    assert (done.path, done.rows, len(done.files), done.shredded) == (str(tmp_path / "out"), 3, 2, {})
    assert done.bytes == sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.parquet"))
    assert str(done) == f"3 rows, {done.bytes:,} bytes in 2 files in {tmp_path / 'out'}"


@pytest.mark.parametrize("sink", [Sink, StreamSink, TableSink])
def test_commit_warns_about_columns_that_fit_few_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: type[Any]
) -> None:
    """Saves without a summary warn in the process that commits, whose output is that of Spark's driver."""
    monkeypatch.setattr("pqext.spark.streams.parquet._identify_job", lambda: ("query", "0" * 32))
    events = variant.parse_json(['{"mag": 0.5, "n": 1}'] * 4)
    schema = T.StructType([T.StructField("event", T.VariantType())])
    options = {"shredding": '{"event": "mag INT, n INT"}', "path": str(tmp_path / "out")}
    if sink is TableSink:
        options |= {"path": f"delta:{tmp_path}/out", "allow_undeclared_shredding": "true"}
    writer = sink(options, schema, False)
    messages = [writer.write(iter([pa.record_batch([events], names=["event"])]))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer.commit(messages, 0) if sink is StreamSink else writer.commit(messages)
    assert [str(each.message).partition(";")[0] for each in caught] == [
        "typed columns do not fit most values: the residual contains 100.0% of event: $.mag"
    ]
    if sink is not StreamSink:
        summary = sink({**options, "summary_path": str(tmp_path / "summary.json")}, schema, True)
        messages = [summary.write(iter([pa.record_batch([events], names=["event"])]))]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            summary.commit(messages)
        assert caught == []  # the process that reads the summary warns


def test_warning_as_an_error_does_not_fail_a_commit(tmp_path: Path) -> None:
    schema = T.StructType([T.StructField("event", T.VariantType())])
    writer = Sink({"shredding": '{"event": "mag INT"}', "path": str(tmp_path)}, schema, False)
    rows = pa.record_batch([variant.parse_json(['{"mag": 0.5}'])], names=["event"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        writer.commit([writer.write(iter([rows]))])
    assert pqext.scan(tmp_path).count() == 1


def test_save_warns_about_columns_that_fit_few_values(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(0, 4, 1, 1).selectExpr("parse_json('{\"mag\": 0.5, \"n\": 1}') AS event")
    doubles = shred_variant(rows, {"event": "mag DOUBLE, n INT"})
    assert "such as 0.5, are exact and fit no FLOAT or DOUBLE column (mag): use DECIMAL" in str(explain_write(doubles))
    with pytest.warns(UserWarning, match=r"the residual contains 100.0% of event: \$.mag; use types that fit"):
        done = write(doubles, str(tmp_path / "doubles"))
    field = pq.read_table(tmp_path / "doubles")["event"].combine_chunks().field("typed_value").field("mag")
    assert (field.field("typed_value").null_count, field.field("value").null_count) == (4, 0)
    assert str(done).splitlines() == [
        f"4 rows, {done.bytes:,} bytes in 1 file in {tmp_path / 'doubles'}",
        "  event: STRUCT<mag: DOUBLE, n: INT>",
        "  in the residual: 100.0% of event: $.mag",
    ]
    for choice in ("mag DECIMAL(9,2), n INT", {"schema": "mag DOUBLE, n INT", "coerce": "json"}):
        fitting = shred_variant(rows, {"event": choice})
        assert explain_write(fitting).warnings == ()
        assert write(fitting, str(tmp_path / "fitting"), "overwrite").residual == {}


def test_save_succeeds_if_its_summary_cannot_be_written(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path / "out", {"k": ["a"], "n": [1]}, summary_path=str(tmp_path / "absent" / "summary.json"))
    assert saved_rows(tmp_path / "out") == {1: "a"}
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path / "absent"))  # the driver is another machine
    with pytest.warns(UserWarning, match="the save is committed, but the driver cannot report its files"):
        saved = write(spark.range(3), str(tmp_path / "ids"))
    assert (saved.path, saved.files) == (str(tmp_path / "ids"), ())
    assert spark.read.parquet(str(tmp_path / "ids")).count() == 3


def test_partition_columns_with_collations_are_rejected(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("select id, 'A' collate UTF8_LCASE as k, 'B' collate UTF8_BINARY as b from range(2)")
    reason, ours = "INVALID_PARTITION_COLUMN_DATA_TYPE", str(tmp_path / "ours")
    with pytest.raises(Exception, match=reason):
        frame.write.partitionBy("k").parquet(str(tmp_path / "theirs"))
    with pytest.raises(Exception, match=f"{reason}: column 'k' of type string collate UTF8_LCASE"):
        write(frame, ours, partition_by="k")
    with pytest.raises(Exception, match=reason):
        frame.write.format("pqext").option("partition_by", "K").mode("append").save(ours)
    with pytest.raises(TypeError, match=reason):
        StreamSink({"path": ours, "partition_by": "k"}, frame.schema, False)
    with pytest.raises(TypeError, match=reason):
        explain_write(frame, partition_by="k")
    assert not Path(ours).exists()
    write(frame, ours, partition_by="b")
    assert spark.read.parquet(ours).schema["k"].dataType == frame.schema["k"].dataType


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition_by": "kk"}, r"no column 'kk'; did you mean 'k'\?"),
        ({"codec": "zstd"}, "unknown option 'codec'; use compression"),
        ({"partition_bye": "k"}, r"unknown option 'partition_bye'; did you mean 'partition_by'\?"),
        ({"partition_overwrite": "dynamic"}, "name their columns in partition_by"),
        ({"partition_overwrite": "some", "partition_by": "k"}, "must be static or dynamic, not 'some'"),
        ({"target_file_bytes": "1 MB"}, "target_file_bytes must be an integer, not '1 MB'"),
        ({"target_file_bytes": "0"}, "target_file_bytes must be positive"),
        ({"maxRecordsPerFile": "1", "max_records_per_file": "2"}, "max_records_per_file is set twice"),
        ({"partition_by": '["k", 1]'}, "partition_by must be a list of columns"),
    ],
)
def test_invalid_options_are_rejected_before_a_task_runs(
    tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Sink({"path": str(tmp_path / "out"), **options}, SCHEMA, True)
    assert not (tmp_path / "out").exists()


def test_data_frames_are_written_and_reported_in_every_mode(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    rows = spark.range(0, 40, 1, 2).selectExpr(
        "id", "id % 2 = 0 AS even", "date_add(DATE'2024-01-01', int(id % 3)) AS day",
        "parse_json('{\"a\": ' || id || '}') AS v",
    )
    events = shred_variant(rows, {"v": "a INT"})
    done = write(events, path, partition_by=["even", "day"], max_records_per_file=3, compression="zstd")
    assert (done.rows, done.path) == (40, path)
    assert done.shredded == {"v": ("STRUCT<a: INT>",)}
    assert all(one.rows <= 3 for one in done.files)
    theirs = spark.read.parquet(path).where("even AND day = DATE'2024-01-02'")
    assert sorted(row[0] for row in theirs.select(F.col("id")).collect()) == [4, 10, 16, 22, 28, 34]
    with pytest.raises(FileExistsError, match=r'the folder contains files: pass mode="append"'):
        write(events, path)
    assert write(events, path, "ignore").files == ()
    assert pqext.scan(path).count() == 40
    part = events.where("even AND day = DATE'2024-01-01'").limit(1)
    by: dict[str, Any] = {"partition_by": ["even", "day"]}
    assert write(part, path, "overwrite", partition_overwrite="dynamic", **by).rows == 1
    assert pqext.scan(path).count() == 40 - 7 + 1
    with pytest.raises(ValueError, match=r"mode must be one of .*, not 'apend'; did you mean 'append'\?"):
        write(events, path, "apend")  # type: ignore[arg-type]
    assert pqext.read_table(path, filter=(pqext.col("day") == str(date(2024, 1, 3)))).num_rows == 13


def test_appended_variants_are_shredded_like_the_newest_file(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    rows = spark.range(0, 4, 1, 1).selectExpr("id", "parse_json('{\"a\": ' || id || '}') AS v", "parse_json('1') AS w")
    write(shred_variant(rows, {"v": "a INT"}), path)
    appended = write(rows, path, "append")
    footer = pq.read_metadata(tmp_path / "out" / appended.files[0].name)
    leaves = [footer.schema.column(index).path for index in range(footer.num_columns)]
    assert leaves == ["id", "v.metadata", "v.value", "v.typed_value.a.value", "v.typed_value.a.typed_value",
                      "w.metadata", "w.value"]
    assert write(shred_variant(rows, {"w": "INT"}), path, "append").shredded == {
        "v": ("STRUCT<a: INT>",), "w": ("INT",)
    }
    assert write(rows, path, "append", shredding={}).shredded == {}
    assert write(rows, path, "append", shredding={"v": "a BIGINT"}).shredded == {"v": ("STRUCT<a: BIGINT>",)}
    assert pqext.scan(path).count() == 20


def test_sql_reads_and_inserts_through_a_view_within_known_limits(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    rows = spark.range(5).selectExpr("id", "id % 2 AS k")
    rows.write.format("pqext").mode("append").save(path)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW saved USING pqext OPTIONS (path '{path}', compression 'zstd')")
    spark.sql("INSERT INTO saved SELECT id + 10, id % 2 FROM range(3)")
    assert pqext.scan(path).count() == 8
    spark.sql("INSERT OVERWRITE saved SELECT id, 7L FROM range(2)")
    assert pqext.read_table(path).to_pylist() == [{"id": 0, "k": 7}, {"id": 1, "k": 7}]
    assert pq.ParquetFile(next(tmp_path.glob("out/*.parquet"))).metadata.row_group(0).column(0).compression == "ZSTD"
    for attempt, message in (
        (lambda: rows.write.format("pqext").save(path), "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        (lambda: rows.write.format("pqext").mode("ignore").save(path), "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        (lambda: rows.write.format("pqext").mode("append").partitionBy("k").save(path), "do not match the existing"),
        (lambda: rows.write.format("pqext").mode("append").saveAsTable("t"), r"pqext\.spark\.write\(df, path\)"),
    ):
        with pytest.raises(Exception, match=message):
            attempt()


@pytest.mark.slow
def test_spatial_layout_gives_files_small_boxes(spark: Any, tmp_path: Path) -> None:
    points = spark.range(0, 4000, 1, 4).selectExpr("id", "rand(1) * 360 - 180 x", "rand(2) * 180 - 90 y", "id % 2 k")
    places = points.withColumn("g", functions.st_point("x", "y"))
    box = (10, 10, 20, 20)
    kept = {}
    for name, df in (("apart", places), ("along", layout(places, "g", partitions=8))):
        done = write(df, str(tmp_path / name), row_group_rows=100)
        assert done.rows == 4000
        kept[name] = explain_read(str(tmp_path / name), bbox=box).row_groups
    assert len([*(tmp_path / "along").glob("*.parquet")]) == 8
    assert kept["along"] <= 4 < kept["apart"]
    values = write(layout(places, "k", "g", partitions=4), str(tmp_path / "values"), partition_by="k")
    assert len(values.files) <= 6
    for arguments, message in (
        (("yy",), r"there is no column 'yy'; did you mean 'y'"), ((), "requires the name of at least one column"),
    ):
        with pytest.raises(ValueError, match=message):
            layout(places, *arguments)
    with pytest.raises(ValueError, match="SRID 3857: pass bounds="):
        layout(places.withColumn("g", F.expr("st_setsrid(g, 3857)")), "g")
    with pytest.raises(TypeError, match="has no order"):
        layout(places.selectExpr("parse_json('1') v"), "v")


def test_secondary_thread_saves_like_the_main_thread(spark: Any, tmp_path: Path) -> None:
    def save() -> int:
        df = spark.range(3)
        written = write(df, str(tmp_path / "by write"))
        df.write.format("pqext").mode("append").save(str(tmp_path / "by Spark"))
        return written.rows

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(save).result() == 3
    assert pqext.read_table(tmp_path / "by Spark").num_rows == 3


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_data_frame_without_columns_is_rejected_and_the_folder_is_unchanged(
    spark: Any, tmp_path: Path, mode: Any
) -> None:
    path, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    write(spark.range(3), path)
    spark.range(3).write.parquet(theirs)
    empty = spark.range(2).select()
    with pytest.raises(Exception, match="EMPTY_SCHEMA_NOT_SUPPORTED_FOR_DATASOURCE"):
        empty.write.mode(mode).parquet(theirs)
    with pytest.raises(Exception, match="a data frame without columns cannot be saved"):
        write(empty, path, mode)
    with pytest.raises(Exception, match="a data frame without columns cannot be saved"):
        empty.write.format("pqext").mode(mode).save(path)
    assert pqext.scan(path).count() == spark.read.parquet(theirs).count() == 3


@pytest.mark.spec("spark.settings.case")
def test_columns_that_differ_only_in_case_need_a_case_sensitive_session(
    spark: Any, tmp_path: Path
) -> None:
    path, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    both, nested = spark.sql("SELECT 1 AS id, 2 AS ID"), spark.sql("SELECT struct(1 AS id, 2 AS ID) AS s")
    write(spark.range(3), path)
    with pytest.raises(Exception, match="COLUMN_ALREADY_EXISTS"):
        both.write.parquet(theirs)
    source = tmp_path / "in"
    spark.sql("SELECT 1 AS x").write.parquet(str(source))
    stream = spark.readStream.schema("x INT").parquet(str(source)).selectExpr("x AS id", "x AS ID")
    writer = stream.writeStream.format("pqext").option("checkpointLocation", str(tmp_path / "log"))
    query = writer.trigger(availableNow=True)
    for save in (
        lambda: write(both, path, "append"),
        lambda: write(both, path, "overwrite", partition_by="id"),
        lambda: both.write.format("pqext").mode("append").save(str(tmp_path / "new")),
        lambda: both.write.format("pqext").mode("overwrite").option("case_sensitive", "false").save(path),
        lambda: query.start(str(tmp_path / "new")).awaitTermination(),
    ):
        with pytest.raises(Exception, match="columns 'id' and 'ID' differ in case only"):
            save()
    assert pqext.scan(path).count() == 3
    assert not [*(tmp_path / "new").rglob("*.parquet")]
    # Spark's sink takes fields of structs.
    nested.write.parquet(theirs)
    write(nested, str(tmp_path / "nested"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        write(both, path, "overwrite")
        both.write.format("pqext").mode("append").save(path)
        assert spark.read.parquet(path).collect() == [(1, 2), (1, 2)]
        assert spark.read.parquet(str(tmp_path / "nested")).collect() == spark.read.parquet(theirs).collect()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
