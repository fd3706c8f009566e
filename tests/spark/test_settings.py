"""Settings of the session mean to pqext what they mean to Spark's own reader and writer of Parquet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark.sessions import SPARK_4_1, ids

import pqext
from pqext.spark import explain_write, ingest_json, read, where, write

OVERWRITE = "spark.sql.sources.partitionOverwriteMode"
CODEC = "spark.sql.parquet.compression.codec"
MAX_RECORDS = "spark.sql.files.maxRecordsPerFile"


@contextmanager
def settings(spark: Any, **values: str) -> Iterator[None]:
    """Settings, whose names are written with ``__`` for a full stop, for a while."""
    named = {name.replace("__", "."): value for name, value in values.items()}
    for name, value in named.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in named:
            spark.conf.unset(name)


def spark_sink(df: Any, path: str) -> None:
    df.write.mode("overwrite").partitionBy("day").parquet(path)


def data_source(df: Any, path: str) -> None:
    df.write.format("pqext").mode("overwrite").option("partition_by", "day").save(path)


def front(df: Any, path: str) -> None:
    write(df, path, "overwrite", partition_by="day")


SINKS: dict[str, Callable[[Any, str], None]] = {"spark": spark_sink, "pqext": data_source, "write": front}


def counts(path: str) -> dict[int, int]:
    return dict(Counter(pq.read_table(path)["day"].to_pylist()))


@pytest.mark.spec("spark.settings.overwrite")
@pytest.mark.parametrize("mode", ["dynamic", pytest.param("STATIC", marks=pytest.mark.slow), None])
def test_session_overwrite_mode_replaces_the_same_partitions_as_spark(
    spark: Any, tmp_path: Path, mode: str | None
) -> None:
    days = spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 AS day")
    part, none = days.where("day = 1").limit(3), days.where("day = 2")
    results = {}
    for name, sink in SINKS.items():
        path = str(tmp_path / name)
        sink(days, path)
        with settings(spark, **{} if mode is None else {OVERWRITE: mode}):
            sink(part, path)
            results[name] = [counts(path)]
            if mode == "dynamic":
                sink(none, path)
                results[name].append(counts(path))
    assert results["pqext"] == results["write"] == results["spark"]
    assert (results["spark"][0] == {0: 10, 1: 3}) == (mode == "dynamic")


@pytest.mark.spec("spark.settings.overwrite")
def test_overwrite_option_takes_precedence_over_the_session(spark: Any, tmp_path: Path) -> None:
    days = spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 AS day")
    part = days.where("day = 1").limit(3)
    modes: Any = (("static", "dynamic"), ("dynamic", "static"))
    for mode, other in modes:
        with settings(spark, **{OVERWRITE: other}):
            results = []
            for source in ("parquet", "pqext"):
                path = str(tmp_path / f"{mode} {source}")
                spark_sink(days, path)
                writer = part.write.format(source).mode("overwrite").option("partitionOverwriteMode", mode)
                (writer.partitionBy("day") if source == "parquet" else writer.option("partition_by", "day")).save(path)
                results.append(counts(path))
            assert results[0] == results[1]
            write(days, path, "overwrite", partition_by="day", partition_overwrite="static")
            write(part, path, "overwrite", partition_by="day", partition_overwrite=mode)
            assert counts(path) == results[0]
            write(part, path, "overwrite")  # without partitions all is replaced, as in Spark
            assert spark.read.parquet(path).count() == 3


@pytest.mark.spec("spark.settings.write")
@pytest.mark.parametrize("codec", ["GZIP", pytest.param("none", marks=pytest.mark.slow)])
def test_codec_and_rows_per_file_follow_the_session(spark: Any, tmp_path: Path, codec: str) -> None:
    rows = spark.range(0, 25, 1, 2)
    with settings(spark, **{CODEC: codec, MAX_RECORDS: "4"}):
        rows.write.parquet(str(tmp_path / "spark"))
        rows.write.format("pqext").mode("append").save(str(tmp_path / "pqext"))
        write(rows, str(tmp_path / "write"))
        plan = explain_write(rows)
        assert plan.division.max_records_per_file == 4
        write(rows, str(tmp_path / "given"), compression="snappy", max_records_per_file=1000)
    described = {}
    for name in ("spark", "pqext", "write", "given"):
        metadata = [pq.read_metadata(path) for path in (tmp_path / name).glob("*.parquet")]
        codecs = {one.row_group(0).column(0).compression for one in metadata}
        described[name] = codecs, sorted(one.num_rows for one in metadata)
    assert described["pqext"] == described["write"] == described["spark"]
    assert described["given"] == ({"SNAPPY"}, [12, 13])
    with settings(spark, **{MAX_RECORDS: "-1"}):
        assert explain_write(rows).division.max_records_per_file is None


@pytest.mark.spec("spark.settings.write")
def test_ingest_follows_the_session_and_preserves_partitions(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("".join(f'{{"day": {number % 2}}}\n' for number in range(6)))
    arguments = spark, str(tmp_path / "a.ndjson"), str(tmp_path / "t")
    by: Any = {"partition_by": {"day": ("$.day", "int")}}
    with settings(spark, **{CODEC: "zstd", MAX_RECORDS: "2", OVERWRITE: "dynamic"}):
        files = ingest_json(*arguments, **by).written
        assert sorted(file.rows for file in files) == [1, 1, 2, 2]
        metadata = pq.read_metadata(tmp_path / "t" / files[0].name)
        assert metadata.row_group(0).column(0).compression == "ZSTD"
        with pytest.raises(ValueError, match="partitionOverwriteMode is dynamic"):
            ingest_json(*arguments, mode="overwrite", **by)
    assert counts(str(tmp_path / "t")) == {0: 3, 1: 3}


@pytest.mark.spec("spark.settings.write")
def test_codecs_unsupported_for_writing_are_rejected(spark: Any, tmp_path: Path) -> None:
    for codec, advice in (("lzo", "=zstd"), ("lz4", "=lz4_raw"), ("brotli", "pass option profile=none")):
        with settings(spark, **{CODEC: codec}):
            for sink in (data_source, front):
                with pytest.raises(Exception, match=advice):
                    sink(spark.range(3).selectExpr("id", "id AS day"), str(tmp_path / "t"))
            assert not (tmp_path / "t").exists()
            write(spark.range(3), str(tmp_path / codec), compression="zstd")
    for option in ("compression", "parquet.compression"):
        spark.range(0, 3, 1, 1).write.format("pqext").mode("append").option(option, "none").save(str(tmp_path / option))
        (file,) = (tmp_path / option).glob("*.parquet")
        assert pq.read_metadata(file).row_group(0).column(0).compression == "UNCOMPRESSED"


@pytest.mark.parametrize("is_case_sensitive", ["false", "true"])
def test_partition_columns_replace_columns_of_files_as_in_spark(
    spark: Any, tmp_path: Path, is_case_sensitive: str
) -> None:
    for number in (2, 3):
        (tmp_path / f"K={number}").mkdir()
        pq.write_table(pa.table({"k": [9, 8], "id": [number, -number]}), tmp_path / f"K={number}" / "x.parquet")
    path = str(tmp_path)
    with settings(spark, **{"spark.sql.caseSensitive": is_case_sensitive}):
        theirs = spark.read.parquet(path).orderBy("id")
        for engine in ("python", "native", "auto"):
            frame = read(spark, path, engine=engine).orderBy("id")
            assert (frame.columns, frame.collect()) == (theirs.columns, theirs.collect()), engine
            found = read(spark, path, ["id", "k"], where="k = 2 or k = 9", engine=engine).orderBy("id").collect()
            assert found == theirs.where("k = 2 or k = 9").select("id", "k").collect(), engine
        option = {"case_sensitive": is_case_sensitive}
        assert spark.read.format("pqext").options(**option).load(path).orderBy("id").collect() == theirs.collect()
        if is_case_sensitive == "true":
            with pytest.raises(Exception, match="pass option case_sensitive=true"):
                spark.read.format("pqext").load(path).collect()


@pytest.mark.slow
def test_char_columns_compare_padded_text_like_spark(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    spark.sql("create or replace temp view texts as select * from values (1, 'ab'), (2, 'abc'), (3, null) t(id, c)")
    columns = "id int, c char(5), v varchar(5), longer char(8), same char(5)"
    spark.sql(f"create table chars ({columns}) using parquet location '{tmp_path / 'chars'}'")
    try:
        spark.sql("insert into chars select id, c, c, c, c from texts")
        write(spark.table("chars"), path)
        theirs = spark.read.parquet(path)
        conditions = [
            "c = 'ab'", "c = 'ab       '", "c in ('ab', 'abcdef')", "c > 'ab'", "c <= 'ab '", "not c = 'ab'",
            "c like 'ab%'", "c = 'abcdef' or id = 3", "v = 'ab'", "v = 'ab '", "c <=> 'abc'",
            "c = longer", "longer <= c and c > 'ab'", "c = same", "c = v", "not c = longer", "c <=> longer",
        ]
        expected = dict(zip(conditions, ids(*map(theirs.where, conditions)), strict=True))
        engines: list[Any] = ["python", "native", "auto"]
        frames = [[read(spark, path, ["id"], where=one, engine=engine) for one in conditions] for engine in engines]
        for made in (*frames, [where(read(spark, path), one) for one in conditions]):
            assert dict(zip(conditions, ids(*made), strict=True)) == expected
        assert expected["c = longer"] == expected["c = same"] == [1, 2]
        for other in ("same", "longer"):
            with pytest.raises(Exception, match=f"c == {other} is a condition on a CHAR column.*spark.where"):
                read(spark, path, where=pqext.col("c") == pqext.col(other))
    finally:
        spark.sql("drop table chars")


def test_every_spark_file_setting_is_documented(spark: Any) -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "spark-settings.md"
    named = re.findall(r"`(spark\.[\w.*]+)`", page.read_text("utf-8"))
    families = tuple(name.removesuffix("*") for name in named if name.endswith(".*"))
    listed = {row["key"] for row in spark.sql("SET -v").collect()}
    of_files = {
        name for name in listed if name.startswith(("spark.sql.parquet.", "spark.sql.files.", "spark.sql.sources."))
    }
    assert of_files
    assert {name for name in of_files if name not in named and not name.startswith(families)} == set()
    known = {name for name in named if name.startswith(("spark.sql.parquet.", "spark.sql.files."))}
    assert SPARK_4_1 or all(name in listed or spark.conf.get(name) for name in known)  # some are not listed
