"""Spark's generic options of files and its settings of reading mean what they mean to Spark's own reader."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from spark.sessions import one_query
from spark.test_settings import settings

import pqext
from pqext import col
from pqext.spark import explain_read, explain_write, query, read, where, write
from pqext.spark.options.file import FileFilter, check_base_path

CASE = "spark.sql.caseSensitive"
TYPES = "spark.sql.sources.partitionColumnTypeInference.enabled"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files in folders of two days, modified at noon of the first days of 2024 in UTC."""
    root = tmp_path_factory.mktemp("files") / "table"
    for number in range(4):
        path = root / f"day={number % 2}" / f"{'ab'[number // 2]}{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [number], "S": [{"A": number, "b": 1}]}), path)
        noon = datetime.fromisoformat(f"2024-01-0{number + 1}T12:00:00Z").timestamp()
        os.utime(path, (noon, noon))
    return root


def rows(df: Any) -> tuple[list[tuple[str, str]], list[str]]:
    return df.dtypes, sorted(map(str, df.collect()))


def rows_of_each(*frames: Any) -> list[tuple[list[tuple[str, str]], list[str]]]:
    """The same of each frame, by one query."""
    one_by_one = one_query(*(frame.select(F.struct("*").alias("row")) for frame in frames))
    return [(df.dtypes, sorted(str(row.row) for row in found)) for df, found in zip(frames, one_by_one, strict=True)]


def frames(spark: Any, path: Any, engines: tuple[str, ...] = ("python", "native"), **options: Any) -> Iterator[Any]:
    """Spark's own data frame of the files, then those of pqext."""
    by_spark = {
        "base_path": "basePath", "ignore_missing_files": "ignoreMissingFiles", "modified_after": "modifiedAfter",
        "modified_before": "modifiedBefore", "on_invalid": "ignoreCorruptFiles", "path_glob_filter": "pathGlobFilter",
    }
    words = {True: "true", "skip": "true"}
    named = {by_spark[name]: words.get(value, value) for name, value in options.items()}
    yield spark.read.options(**named).parquet(str(path))
    zone = spark.conf.get("spark.sql.session.timeZone")
    yield spark.read.format("pqext").options(timeZone=zone, **named).load(str(path))
    for engine in engines:
        yield read(spark, str(path), engine=engine, **options)


@pytest.mark.spec("spark.files.options")
@pytest.mark.parametrize(
    ("path", "options", "ids"),
    [
        ("", {"modified_after": "2024-01-02T12:00:00"}, [2, 3]),
        ("", {"modified_after": "2024-01-02T11:59:59", "modified_before": "2024-01-04T12:00:00"}, [1, 2]),
        ("", {"modified_after": "2024-01-02T13:00:00+02:00"}, [1, 2, 3]),
        ("", {"modified_before": "2024-01-03", "path_glob_filter": "a*"}, [0, 1]),
        ("day=1", {"base_path": ""}, [1, 3]),
        ("", {"path_glob_filter": "[^b]*"}, [0, 1]),
        ("", {"path_glob_filter": "[!b]*"}, [0, 1]),
        ("*/[^a]*", {"base_path": ""}, [2, 3]),
        ("day=[^0]", {"base_path": ""}, [1, 3]),
    ],
)
def test_files_are_selected_like_in_spark(
    spark: Any, folder: Path, path: str, options: dict[str, Any], ids: list[int]
) -> None:
    options = {name: str(folder) if name == "base_path" else value for name, value in options.items()}
    with settings(spark, **{"spark.sql.session.timeZone": "UTC"}):
        theirs, *ours = rows_of_each(*frames(spark, folder / path, **options))
    assert ours == [theirs] * len(ours)
    assert len(theirs[1]) == len(ids)
    assert all(f"id={number}," in row for number, row in zip(ids, theirs[1], strict=True))


@pytest.mark.spec("spark.files.options")
def test_times_without_an_offset_are_local_to_the_session(spark: Any, folder: Path) -> None:
    """Spark 4.3 adds the offset of the zone to the time of the file as well, so that it is no oracle here."""
    noon = datetime(2024, 1, 2, 12, tzinfo=UTC)
    with settings(spark, **{"spark.sql.session.timeZone": "America/New_York"}):
        for time in (noon, "2024-01-02T12:00:00Z", "2024-01-02T07:00:00", datetime(2024, 1, 2, 7)):
            plan = explain_read(str(folder), spark=spark, modified_after=time)
            assert sorted(Path(task.path).name for task in plan.tasks) == ["b2.parquet", "b3.parquet"]


@pytest.mark.spec("spark.files.options")
def test_invalid_file_options_are_rejected(spark: Any, folder: Path, tmp_path: Path) -> None:
    source = spark.read.format("pqext")
    with pytest.raises(Exception, match="has no UTC offset: append an offset, as in 2024-01-02T12:00:00Z, or"):
        source.option("modifiedAfter", "2024-01-02T12:00:00").load(str(folder))
    with pytest.raises(Exception, match="supports only engine 'python', not 'native'"):
        spark.read.format("pqext").option("engine", "native").load(str(folder))
    assert spark.read.format("pqext").option("engine", "auto").load(str(folder)).count() == 4
    assert spark.read.format("pqext").option("recursiveFileLookup", "true").load(str(folder)).columns == ["id", "S"]
    refused: Any = (
        ({"modified_after": "2025-01-01"}, "no file has a modification time that matches modified_after=2025-01-01"),
        ({"modified_before": "yesterday"}, "expected a time such as"),
        ({"base_path": str(tmp_path)}, "is not below"),
    )
    for wrong, message in refused:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            read(spark, str(folder), engine="native", **wrong)
    with pytest.raises(TypeError, match="did you mean 'modified_after'"):
        read(spark, str(folder), modifiedAfter="2024-01-01")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no argument 'modified_afte'; did you mean 'modified_after'"):
        read(spark, str(folder), modified_afte="2024-01-01")  # type: ignore[call-arg]


@pytest.mark.parametrize("wrong", [{"name_pattern": "b*"}, {"modified_after": datetime(2025, 1, 1, tzinfo=UTC)}])
def test_errors_of_selected_files_name_urls_without_secrets(folder: Path, wrong: dict[str, Any]) -> None:
    file = str(folder / "day=0" / "a0.parquet")
    urls = ["https://h/a.parquet?X-Amz-Signature=SECRET", "https://user:SECRET@h/b.parquet"]
    with pytest.raises(FileNotFoundError) as caught:
        FileFilter(**wrong).apply([(file, file)], urls)
    assert caught.value.filename == "https://h/a.parquet, https://h/b.parquet"
    with pytest.raises(ValueError, match=r"is not below https://h/t$"):
        check_base_path("https://user:SECRET@h/t", "/t", [file])


@pytest.mark.spec("spark.files.options")
@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ({"path_glob_filter": "*.parquet"}, "abs(id) = 1"),
        ({"ignore_table_format": True, "path_glob_filter": "*.parquet"}, "abs(id) = 1"),
        ({"partition_types": {"day": "string"}, "path_glob_filter": "*.parquet"}, "abs(id) = 1 and day like '1'"),
    ],
)
def test_plan_with_a_spark_condition_accepts_all_read_arguments(
    spark: Any, folder: Path, tmp_path: Path, arguments: dict[str, Any], condition: str
) -> None:
    files = tmp_path / "t"
    shutil.copytree(folder, files)
    (files / "day=0" / "0.txt").write_text("no Parquet")
    if "ignore_table_format" in arguments:
        (files / "_delta_log").mkdir()
        (files / "_delta_log" / f"{0:020}.json").touch()
    assert [row.id for row in read(spark, str(files), where=condition, **arguments).collect()] == [1]
    plan = explain_read(str(files), where=condition, spark=spark, **arguments)
    kept = {Path(task.path).name for task in plan.tasks if task.prune_reason is None}
    assert "a1.parquet" in kept
    assert "0.txt" not in {Path(task.path).name for task in plan.tasks}


@pytest.mark.spec("spark.files.faulty")
@pytest.mark.parametrize("by", ["option", "setting"])
def test_corrupt_and_missing_files_are_skipped(spark: Any, folder: Path, tmp_path: Path, by: str) -> None:
    files = tmp_path / "t"
    shutil.copytree(folder, files)
    (files / "day=0" / "b2.parquet").write_bytes(b"PAR1 is no file PAR1")
    named: dict[str, Any] = {"option": {"on_invalid": "skip", "ignore_missing_files": True}, "setting": {}}[by]
    stated = {f"spark.sql.files.{name}": "true" for name in ("ignoreCorruptFiles", "ignoreMissingFiles")}
    with pytest.raises(Exception, match=r"b2\.parquet"):
        read(spark, str(files)).collect()
    with settings(spark, **(stated if by == "setting" else {})):
        theirs, source, *ours = list(frames(spark, files, **named))
        (files / "day=1" / "b3.parquet").unlink()
        expected = rows(theirs)
        assert len(expected[1]) == 2
        assert [rows(df) for df in ours] == [expected] * len(ours)
        if by == "option":
            assert rows(source) == expected
    file = files / "day=0" / "b2.parquet"
    table = pa.table({"id": range(2000), "S": [{"A": 1, "b": 1}] * 2000})
    pq.write_table(table, file, row_group_size=1000, compression="none", use_dictionary=False)
    data = bytearray(file.read_bytes())
    start = pq.read_metadata(file).row_group(1).column(0).data_page_offset
    data[start : start + 40] = b"\xff" * 40
    file.write_bytes(data)
    ids = [df.where("id < 1000").count() for df in frames(spark, files, ("python",), on_invalid="skip")]
    assert ids == [1000 + 2] * 3  # a0 and a1 have a row each


@pytest.mark.spec("spark.settings.case")
def test_names_are_case_insensitive_like_in_spark(spark: Any, folder: Path, tmp_path: Path) -> None:
    theirs = spark.read.parquet(str(folder)).where("ID > 1 AND s.a < 3").select("ID", "day")
    ours = read(spark, str(folder), ["ID", "Day"], where="ID > 1 and s.a < 3")
    assert rows(ours) == rows(theirs)
    assert rows(read(spark, str(folder), ["ID", "Day"], where="ID > 1 and s.a < 3", engine="native")) == rows(theirs)
    source = spark.read.format("pqext").options(columns="ID,Day", where="ID > 1 and s.a < 3").load(str(folder))
    assert rows(source) == rows(theirs)
    assert rows(where(read(spark, str(folder)), "ID = 2").select("ID")) == rows(theirs.where("id = 2").select("ID"))
    assert rows(where(spark.read.parquet(str(folder)), pqext.col("ID") == 2).select("ID")) == rows(
        theirs.where("id = 2").select("ID")
    )
    grouped = query(spark, str(folder), {"n": "count"}, by=["day"], where="Id >= 0")
    assert rows(grouped) == rows(spark.read.parquet(str(folder)).groupBy("day").agg(F.count("*").alias("n")))
    days = spark.range(4).selectExpr("id", "id % 2 AS day")
    with settings(spark, **{CASE: "true"}):
        for attempt in (
            lambda: spark.read.parquet(str(folder)).select("ID"),
            lambda: read(spark, str(folder), ["ID"], engine="native"),
            lambda: read(spark, str(folder), where="ID = 1", engine="native"),
            lambda: where(spark.read.parquet(str(folder)), "ID = 1"),
            lambda: source.collect(),
            lambda: write(days, str(tmp_path / "no"), partition_by="DAY"),
            lambda: days.write.format("pqext").mode("append").option("partition_by", "DAY").save(str(tmp_path / "no")),
        ):
            with pytest.raises(Exception, match=r"`ID`|'ID'|'DAY'; did you mean 'day'|caseSensitive=true when"):
                attempt()
        assert not (tmp_path / "no").exists()
    pq.write_table(pa.table({"x": [1], "X": [2]}), tmp_path / "two.parquet")
    assert read(spark, str(tmp_path / "two.parquet"), {"a": "X"}).collect() == [(2,)]


@pytest.mark.spec("spark.settings.case")
def test_folders_have_the_spelling_of_partition_by_like_in_spark(spark: Any, tmp_path: Path) -> None:
    days = spark.range(6).selectExpr("id", "id % 2 AS day", "id % 3 AS Hour")
    theirs, front, source = (tmp_path / name for name in ("theirs", "write", "format"))
    for folder in (theirs, front, source):
        days.write.partitionBy("DAY", "hour").parquet(str(folder))
    days.write.mode("append").partitionBy("DAY", "hour").parquet(str(theirs))
    write(days, str(front), "append", partition_by=["DAY", "hour"])
    by = json.dumps(["DAY", "hour"])
    days.write.format("pqext").mode("append").option("partition_by", by).save(str(source))
    expected = {str(file.parent.relative_to(theirs)) for file in theirs.rglob("*.parquet")}
    for folder in (front, source):
        assert {str(file.parent.relative_to(folder)) for file in folder.rglob("*.parquet")} == expected
        assert rows(spark.read.parquet(str(folder))) == rows(spark.read.parquet(str(theirs)))
    assert explain_write(days, partition_by=by).division.partition_by == ("DAY", "hour")
    assert "DAY: bigint" in str(explain_write(days, partition_by=by))
    with pytest.raises(Exception, match="day"):
        write(days, str(tmp_path / "twice"), partition_by=["day", "DAY"])


@pytest.mark.spec("spark.settings.partitions")
def test_partition_values_are_text_if_the_session_infers_no_types(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    days = spark.range(4).selectExpr("id", "id % 2 AS n", "date '2024-02-28' + int(id) AS day")
    days.write.partitionBy("n", "day").parquet(path)
    assert read(spark, path).dtypes == spark.read.parquet(path).dtypes
    with settings(spark, **{TYPES: "false"}):
        theirs = rows(spark.read.parquet(path))
        assert theirs[0] == [("id", "bigint"), ("n", "string"), ("day", "string")]
        for engine in ("python", "native"):
            assert rows(read(spark, path, engine=engine)) == theirs
        assert read(spark, path, partition_types={"n": "int64"}).dtypes[1:] == [("n", "bigint"), ("day", "string")]
        with pytest.raises(Exception, match=r'pass option partition_types=\{"\*": "string"\}'):
            spark.read.format("pqext").load(path).collect()
        source = spark.read.format("pqext").option("partition_types", '{"*": "string"}').load(path)
        assert rows(source) == theirs
    assert pqext.scan(path, partition_types={"*": "string"}).schema.field("n").type == pa.string()


@pytest.mark.spec("spark.settings.schema")
def test_schemas_are_merged_as_configured_in_the_session(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2], "x": ["b"]}), tmp_path / "b.parquet")
    with settings(spark, **{"spark.sql.parquet.mergeSchema": "true"}):
        theirs = rows(spark.read.parquet(path))
        assert rows(read(spark, path)) == theirs
    assert rows(spark.read.format("pqext").option("mergeSchema", "true").load(path)) == theirs


@pytest.mark.spec("spark.files.provenance")
def test_file_and_row_number_columns_have_configurable_names(spark: Any, folder: Path) -> None:
    theirs = spark.read.parquet(str(folder)).select("id", "_metadata.file_path")
    expected = {row.id: row.file_path.replace("file:", "").replace("///", "/") for row in theirs.collect()}
    options: Any = {"include_file_paths": "file", "include_row_numbers": "row"}
    for df in (
        read(spark, str(folder), ["id", "file", "row"], **options),
        spark.read.format("pqext").options(columns="id,file,row", **options).load(str(folder)),
    ):
        assert {row.id: row.file for row in df.collect()} == expected
        assert {row.row for row in df.collect()} == {0}
        assert df.inputFiles() == []  # Spark asks only its own sources
        assert {row[0] for row in df.select(F.input_file_name()).collect()} == {""}
    ours = pqext.scan(folder, ["id", "file", "row"], **options).to_table().to_pylist()
    assert {row["id"]: row["file"] for row in ours} == expected


def test_where_accepts_nested_variants_of_any_data_frame(spark: Any, tmp_path: Path) -> None:
    df = spark.range(6).selectExpr("id", "named_struct('v', parse_json('{\"a\": ' || id || '}')) AS s")
    df.write.parquet(str(tmp_path / "t"))
    expected = [row.id for row in df.where("try_variant_get(s.v, '$.a', 'bigint') > 3").select("id").collect()]
    condition = pqext.col(["s", "v"]).variant("$.a", "int64") > 3
    for one in (df, spark.read.parquet(str(tmp_path / "t"))):
        assert sorted(row.id for row in where(one, condition).select("id").collect()) == expected == [4, 5]
        assert where(one, pqext.col("s.V").variant("$.a", "uint32") >= 3).count() == 3
    with pytest.raises(TypeError, match=r"column 's\.id' is bigint|neither VARIANT"):
        where(df.selectExpr("named_struct('id', id) AS s"), pqext.col("s.id").variant("$.a", "int64") > 3)


def test_local_session_has_the_sql_functions(spark: Any) -> None:
    ours, theirs = spark.sql("SELECT pq_to_json(v), to_json(v) FROM (SELECT parse_json('{\"a\": 1}') AS v)").first()
    assert ours == theirs


@pytest.mark.spec("spark.files.provenance")
@pytest.mark.parametrize("columns", [None, ["id"]])
def test_conditions_accept_the_row_number_column(spark: Any, tmp_path: Path, columns: list[str] | None) -> None:
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"id": range(100)}), path, row_group_size=10)
    theirs = spark.read.parquet(path).where("_metadata.row_index = 35 AND id > 5").select("id")
    for condition in ("row = 35 and id > 5", "ROW = 35 and id > 5", (col("row") == 35) & (col("id") > 5)):
        filtered = read(spark, path, columns, condition, include_row_numbers="row")
        assert filtered.select("id").collect() == theirs.collect()
        if columns is None:
            numbered = where(read(spark, path, include_row_numbers="row"), condition)
            assert numbered.collect() == filtered.collect() == [(35, 35)]
