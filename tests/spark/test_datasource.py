"""Data source pqext: what is written is read back equal by everyone, and row groups that cannot match stay unread."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from spark.sessions import SPARK_4_1, native_geometry

import pqext
from pqext import col
from pqext.core.base.errors import CorruptFileError
from pqext.core.read.reader import ParquetFile
from pqext.dataset.notations.json_text import to_json
from pqext.dataset.planning.plan import RowGroupPlan, Task
from pqext.dataset.planning.planner import FilePlanner
from pqext.spark import explain_read, functions, read, read_json, read_metrics, shred_variant, where
from pqext.spark.reading.planning import ReadPlan
from pqext.spark.reading.request import Query
from pqext.spark.sources.data_sources import Reader

SCHEMA = "properties STRUCT<mag: DECIMAL(9,2), place: STRING, time: BIGINT, magType: STRING>"
FIJI = (175.0, -30.0, -175.0, -10.0)


@pytest.fixture(scope="module")
def quakes(spark: Any, events_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The earthquakes, shredded and sorted along a Hilbert curve, in one file of many row groups."""
    folder = tmp_path_factory.mktemp("written") / "quakes"
    events = read_json(spark, str(events_file), column="event")
    lon, lat, depth = (functions.variant_get("event", f"$.geometry.coordinates[{i}]", "double") for i in range(3))
    df = shred_variant(events.withColumn("geom", functions.st_point(lon, lat, depth)), {"event": SCHEMA})
    ordered = df.repartition(1).sortWithinPartitions(functions.st_hilbert("geom"))
    ordered.write.format("pqext").option("row_group_rows", 50).mode("overwrite").save(str(folder))
    return folder


@pytest.fixture(scope="module")
def quakes_file(quakes: Path) -> Path:
    (file,) = quakes.glob("*.parquet")
    return file


def save(df: DataFrame, path: Path | str, mode: str = "append", **options: Any) -> None:
    df.coalesce(1).write.format("pqext").options(**options).mode(mode).save(str(path))


def coordinates(event: dict[str, Any]) -> tuple[float, float]:
    x, y = event["geometry"]["coordinates"][:2]
    return x, y


def near_fiji(event: dict[str, Any]) -> bool:
    x, y = coordinates(event)
    return (x >= FIJI[0] or x <= FIJI[2]) and FIJI[1] <= y <= FIJI[3]


def strong(event: dict[str, Any]) -> bool:
    magnitude = event["properties"]["mag"]
    return magnitude is not None and magnitude >= 5


Ask = Callable[[Any, str, str], DataFrame]
QUESTIONS: dict[str, tuple[Ask, Callable[[dict[str, Any]], bool]]] = {
    "box": (lambda spark, path, metrics: read(spark, path, bbox=FIJI, metrics_path=metrics), near_fiji),
    "variant": (
        lambda spark, path, metrics: where(
            read(spark, path, metrics_path=metrics), col("event").variant("$.properties.mag", "double") >= 5
        ),
        strong,
    ),
    "both": (
        lambda spark, path, metrics: read(
            spark,
            path,
            where=col("geom").intersects(FIJI) & (col("event").variant("$.properties.mag", "double") >= 5),
            metrics_path=metrics,
        ),
        lambda event: near_fiji(event) and strong(event),
    ),
}


def identifiers(df: DataFrame) -> list[str]:
    return sorted(row[0] for row in df.select(F.try_variant_get("event", "$.id", "string")).collect())


@native_geometry
def test_spark_reader_returns_the_same_rows(
    spark: Any, quakes: Path, events: list[dict[str, Any]]
) -> None:
    df = spark.read.parquet(str(quakes))
    assert df.schema["event"].dataType == T.VariantType()
    assert df.schema["geom"].dataType == T.GeometryType(4326)
    rows = df.select(F.to_json("event"), F.st_asbinary("geom")).collect()
    found = {json.loads(row[0])["id"]: row for row in rows}
    assert len(rows) == len(events)
    for event in events:
        text, wkb = found[event["id"]]
        assert json.loads(text) == event
        assert len(wkb) == 29


def test_pyarrow_sees_annotated_variants_and_geometries_with_boxes(quakes_file: Path) -> None:
    file = pq.ParquetFile(quakes_file)
    assert file.metadata.num_row_groups == 35
    schema = str(file.schema)
    assert "Variant" in schema
    assert "Geometry" in schema
    leaf = [file.schema.column(i).path for i in range(len(file.schema))].index(
        "event.typed_value.properties.typed_value.mag.typed_value"
    )
    geom = [file.schema.column(i).path for i in range(len(file.schema))].index("geom")
    for group in range(file.metadata.num_row_groups):
        chunks = file.metadata.row_group(group)
        assert chunks.column(leaf).statistics.has_min_max
        assert chunks.column(geom).geo_statistics.geospatial_types == [1001]


@native_geometry
def test_data_source_returns_the_same_rows(spark: Any, quakes: Path) -> None:
    ours, theirs = read(spark, str(quakes)), spark.read.parquet(str(quakes))
    assert ours.schema == theirs.schema
    columns = [F.to_json("event").alias("e"), F.st_asbinary("geom").alias("g"), F.st_srid("geom").alias("s")]
    assert sorted(ours.select(*columns).collect()) == sorted(theirs.select(*columns).collect())


@pytest.mark.parametrize("question", ["box", "variant", pytest.param("both", marks=pytest.mark.slow)])
def test_query_is_correct_and_reads_at_most_a_third_of_the_row_groups(
    spark: Any, quakes: Path, quakes_file: Path, events: list[dict[str, Any]], tmp_path: Path, question: str
) -> None:
    ask, matches = QUESTIONS[question]
    expected = sorted(event["id"] for event in events if matches(event))
    assert expected
    assert identifiers(ask(spark, str(quakes), str(tmp_path / "metrics"))) == expected
    metrics = read_metrics(str(tmp_path / "metrics"))
    assert 0 < metrics.row_groups <= 35 / 3
    assert metrics.bytes <= quakes_file.stat().st_size / 3


@pytest.mark.parametrize("question", ["box", "variant", pytest.param("both", marks=pytest.mark.slow)])
def test_skipped_row_groups_are_never_read(
    spark: Any, quakes_file: Path, events: list[dict[str, Any]], tmp_path: Path, question: str
) -> None:
    ask, matches = QUESTIONS[question]
    condition = {
        "box": col("geom").intersects(FIJI),
        "variant": col("event").variant("$.properties.mag", "double") >= 5,
    }
    both = condition["box"] & condition["variant"]
    plan = explain_read(str(quakes_file), where=condition.get(question, both))
    damaged = tmp_path / "damaged.parquet"
    content = bytearray(quakes_file.read_bytes())
    with ParquetFile(quakes_file) as file:
        for index in plan.tasks[0].reasons:
            for chunk in file.row_groups[index].chunks():
                start, length = chunk.byte_range
                content[start : start + length] = b"\xff" * length
    damaged.write_bytes(content)
    expected = sorted(event["id"] for event in events if matches(event))
    assert identifiers(ask(spark, str(damaged), str(tmp_path / "metrics"))) == expected
    with pytest.raises(Exception, match="CorruptFileError"):
        read(spark, str(damaged)).collect()


def test_plan_states_what_a_read_covers(quakes: Path, quakes_file: Path) -> None:
    plan = explain_read(str(quakes), bbox=FIJI)
    assert plan.row_groups_total == 35
    assert 0 < plan.row_groups <= 11
    assert plan.bytes < plan.bytes_total < quakes_file.stat().st_size
    assert str(plan).startswith(f"reads {plan.row_groups} of 35 row groups")
    slices = plan.slices(1 << 20)
    read = [group.index for part in slices for task in part.tasks for group in task.row_groups]
    assert read == list(plan.tasks[0].kept_row_groups)


@pytest.mark.parametrize("sizes", [[300 << 10] * 5, [5 << 18] * 7, [10, 3 << 20, 10, 10], [0, 0, 0]])
def test_tasks_read_balanced_bytes(sizes: list[int]) -> None:
    groups = [RowGroupPlan(index, 1, size, None) for index, size in enumerate(sizes)]
    plan = ReadPlan(tuple(Task("a.parquet", (group,)) for group in groups))
    slices = [[group.bytes_read for task in part.tasks for group in task.row_groups] for part in plan.slices(64 << 20)]
    assert [size for part in slices for size in part] == sizes
    share = sum(sizes) / len(slices)
    assert all(abs(sum(part) - share) < max(1 << 20, *sizes) for part in slices)


@pytest.mark.parametrize(
    ("paths", "location"),
    [
        (["/a/x.parquet", "/b/y.parquet"], ", /"), (["/a/b/x.parquet", "/a/bc/y.parquet"], ", /a"),
        (["s3://one/t/x.parquet", "s3://two/t/x.parquet"], ""),
        (["s3://one/x.parquet", "s3://one/y.parquet"], ", s3://one/"),
        (["s3://one/t/x.parquet", "s3://one/t/k=1/x.parquet"], ", s3://one/t"), (["x.parquet", "y.parquet"], ""),
        (["file:///a/x.parquet", "file:///b/x.parquet"], ", file:///"), (["/a/x.parquet", "s3://a/x.parquet"], ""),
        (["s3://one/x.parquet"], ", s3://one/x.parquet"), (["/a/x.parquet", "x.parquet"], ""),
    ],
)  # fmt: skip
def test_plan_names_the_common_folder_if_there_is_one(paths: list[str], location: str) -> None:
    plan = ReadPlan(tuple(Task(path, ()) for path in paths))
    assert plan.describe().splitlines()[1] == f"  files: 0 of {len(paths)}{location}"


@pytest.mark.slow
def test_plain_column_expressions_use_statistics_and_stay_exact(spark: Any, tmp_path: Path) -> None:
    df = spark.range(1000).select(
        F.col("id"),
        F.when(F.col("id") % 7 != 0, F.col("id") * 1.5).alias("x"),
        F.concat(F.lit("k"), F.lpad(F.col("id").cast("string"), 4, "0")).alias("name"),
        F.struct(F.col("id").cast("int").alias("b")).alias("s"),
        F.expr("timestamp_seconds(id)").alias("at"),
    )
    path = str(tmp_path / "plain")
    save(df, path, row_group_rows=100)
    cases = [
        ("id BETWEEN 250 AND 255", (col("id") >= 250) & (col("id") <= 255), 1),
        ("s.b IN (7, 950)", col("s.b").isin([7, 950]), 2),
        ("x <=> 1498.5", col("x") == 1498.5, 1),
        ("name LIKE 'k05%'", (col("name") >= "k05") & (col("name") < "k06"), 1),
        ("at >= timestamp_seconds(990)", col("at") >= datetime.fromtimestamp(990, UTC), 1),
        ("NOT (id < 901)", ~(col("id") < 901), 1),
        ("id = 5 OR id = 950", (col("id") == 5) | (col("id") == 950), 2),
    ]
    for number, (condition, expression, groups) in enumerate(cases):
        metrics = str(tmp_path / f"metrics{number}")
        found = where(read(spark, path, metrics_path=metrics), expression)
        assert sorted(found.collect()) == sorted(df.where(condition).collect()), condition
        assert read_metrics(metrics).row_groups == groups, condition
        assert read(spark, path).where(condition).count() == df.where(condition).count()


def test_tasks_execute_the_driver_plan_and_fetch_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": range(50_000), "x": [n * 0.5 for n in range(50_000)], "s": [f"k{n}" for n in range(50_000)]})
    pqext.write_table(table, tmp_path / "t.parquet", page_rows=1000)
    where = to_json((col("n") >= 20_100) & (col("n") < 20_103))
    query = Query.from_options({"path": str(tmp_path), "where": where, "metrics_path": str(tmp_path / "metrics")})
    reader = Reader(query.resolve(), query.schema())
    slices = pickle.loads(pickle.dumps(reader.partitions()))
    (group,) = slices[0].tasks[0].row_groups
    assert group.rows == [range(20_000, 21_000)]

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a task plans")

    monkeypatch.setattr(FilePlanner, "row_groups", fail)
    monkeypatch.setattr(FilePlanner, "__init__", fail)
    batches = [batch for part in slices for batch in reader.read(part)]
    assert pa.Table.from_batches(batches).to_pydict() == table.slice(20_100, 3).to_pydict()
    metrics = read_metrics(str(tmp_path / "metrics"))
    assert (metrics.rows_read, metrics.rows_returned) == (1000, 3)
    assert metrics.bytes < (tmp_path / "t.parquet").stat().st_size / 5


def test_filter_without_matches_reads_nothing(spark: Any, quakes: Path, tmp_path: Path) -> None:
    huge = col("event").variant("$.properties.mag", "double") > 11
    df = read(spark, str(quakes), where=huge, metrics_path=str(tmp_path))
    assert df.count() == 0
    assert read_metrics(str(tmp_path)).row_groups == 0


def test_columns_are_selected_by_option_and_misspellings_are_named(spark: Any, quakes: Path) -> None:
    assert read(spark, str(quakes), columns=["geom"]).columns == ["geom"]
    with pytest.raises(Exception, match="no column 'geo'; the columns are event, geom"):
        read(spark, str(quakes), columns=["geo"]).collect()
    with pytest.raises(AnalysisException, match="unknown option 'colums'; did you mean 'columns'") as caught:
        spark.read.format("pqext").option("colums", "geom").load(str(quakes)).collect()
    assert str(caught.value).count('File "') == 1, "no frame within pqext but the one that shortens"


@pytest.mark.slow
def test_user_schema_selects_columns_without_changing_types(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "plain.parquet")
    pq.write_table(pa.table({"a": [1], "s": [{"b": 2}]}), path)
    plain = spark.read.format("pqext")
    assert plain.schema("s STRUCT<b: BIGINT>").load(path).collect() == [((2,),)]
    for schema in ("a INT", "a STRING", "s STRUCT<c: BIGINT>", "s STRUCT<b: BIGINT, c: INT>", "z INT"):
        with pytest.raises(Exception, match=r"the schema has `\w` .*, but in the files it .* Omit schema"):
            plain.schema(schema).load(path).collect()


def test_missing_path_is_reported_by_the_system_and_a_save_needs_a_mode(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match=r"FileNotFoundError: .* No such file or directory: '.*nowhere'"):
        read(spark, str(tmp_path / "nowhere")).collect()
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(1).write.format("pqext").save(str(tmp_path / "new"))


def test_shredded_read_returns_structs_usable_in_conditions_and_writes(
    spark: Any, quakes: Path, events: list[dict[str, Any]], tmp_path: Path
) -> None:
    df = read(spark, str(quakes), shredded=True)
    found = where(df, col("event").variant("$.properties.mag", "double") >= 5)
    expected = sorted(event["id"] for event in events if strong(event))
    assert sorted(r[0] for r in found.select(functions.variant_get("event", "$.id", "string")).collect()) == expected
    save(found, tmp_path / "copy")
    copy = str(tmp_path / "copy")
    assert identifiers(read(spark, copy) if SPARK_4_1 else spark.read.parquet(copy)) == expected


def test_types_and_nulls_round_trip_through_both_readers(spark: Any, tmp_path: Path) -> None:
    rows = """SELECT * FROM VALUES
        (1Y, 2S, 3, 4L, 1.5F, 2.5D, 12.34BD, true, 'text', X'00FF', DATE'2024-02-29',
         TIMESTAMP'2024-02-29 12:00:00.123456Z', TIMESTAMP_NTZ'2024-02-29 12:00:00.123456',
         array(1, NULL), map('k', array(1.5D)), struct(1 AS a, struct('x' AS c) AS b), parse_json('{"a":[1]}'),
         st_setsrid(st_geomfromwkb(X'0101000000000000000000F03F0000000000000040'), 3857),
         st_geogfromwkb(X'0101000000000000000000F03F0000000000000040')),
        (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
        AS t(b, s, i, l, f, d, dec, bool, str, bin, date, ts, ntz, arr, m, st, v, geom, geog)"""
    df = spark.sql(rows)
    path = str(tmp_path / "all")
    save(df, path)
    readable = [F.to_json("v").alias("v"), F.st_asbinary("geom").alias("geom"), F.st_asbinary("geog").alias("geog")]
    plain = [name for name in df.columns if name not in ("v", "geom", "geog")]
    expected = df.select(*plain, *readable).collect()
    for back in [read(spark, path)] if SPARK_4_1 else [read(spark, path), spark.read.parquet(path)]:
        assert back.schema.simpleString() == df.schema.simpleString()
        assert back.select(*plain, *readable).collect() == expected
    table = pq.read_table(path)
    assert table.column("dec").to_pylist() == [expected[0].dec, None]
    assert table.column("m").to_pylist() == [[("k", [1.5])], None]


def test_writer_options_have_the_same_names(spark: Any, tmp_path: Path) -> None:
    df = spark.range(100).select("id", F.parse_json(F.lit('{"a": 1}')).alias("v"))
    options = {"compression": "zstd", "row_group_rows": 30, "dictionary": False, "page_version": 2}
    save(df, tmp_path / "out", **options, shredding='{"v": "a INT"}', key_value_metadata='{"who": "us"}')
    (file,) = (tmp_path / "out").glob("*.parquet")
    metadata = pq.ParquetFile(file).metadata
    assert metadata.num_row_groups == 4
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.metadata[b"who"] == b"us"
    assert [metadata.schema.column(i).path for i in range(metadata.num_columns)][-1] == "v.typed_value.a.typed_value"
    with pytest.raises(Exception, match="unknown option 'row_groups'"):
        save(df, tmp_path / "refused", row_groups=1)
    with pytest.raises(Exception, match="page_version must be 1 or 2"):
        save(df, tmp_path / "refused", page_version=3)
    assert not (tmp_path / "refused").exists()


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_append_adds_rows_and_overwrite_may_replace_its_source(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    for _ in range(2):
        save(spark.range(10), path)
    assert read(spark, str(path)).count() == 20
    (path / "_notes").write_text("not ours")
    save(read(spark, str(path)).where("id < 3"), path, "overwrite")
    assert sorted(row[0] for row in spark.read.parquet(str(path)).collect()) == [0, 0, 1, 1, 2, 2]
    assert len(listing(path)) == 3
    assert {"_SUCCESS", "_notes"} < set(listing(path))


@pytest.mark.slow
def test_append_with_another_schema_is_rejected_before_writing(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    save(spark.range(10).select("id", F.lit("x").alias("s")), path)
    before = listing(path)
    for other, words in (
        (spark.range(3), "the data frame lacks s"),
        (spark.range(3).select("id", F.lit("y").alias("s"), F.lit(1).alias("n")), "has additional columns n"),
        (spark.range(3).select(F.col("id").cast("int"), F.lit("y").alias("s")), "column 'id' is int64 in .* and int32"),
    ):
        with pytest.raises(Exception, match=words) as caught:
            save(other, path)
        assert "select and cast the columns" in str(caught.value)
        assert listing(path) == before
    save(spark.range(10, 13).select(F.lit("z").alias("s"), "id"), path)  # by name, in any order
    save(spark.range(20, 23).selectExpr("if(id = 21, null, id) id", "cast(null as string) s"), path)
    assert read(spark, str(path)).count() == 16
    save(spark.range(3), path, "overwrite")
    assert read(spark, str(path)).columns == ["id"]


def test_append_to_partitioned_folders_leaves_them_readable(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    for year in (2020, 2021):
        save(spark.range(3), path / f"y={year}")
    save(spark.range(5), path)
    found = read(spark, str(path)).groupBy("y").count().collect()
    assert {(row["y"], row["count"]) for row in found} == {(2020, 3), (2021, 3), (None, 5)}


def test_empty_data_frame_is_written_with_its_schema(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "empty")
    save(spark.range(0).select("id", F.parse_json(F.lit("1")).alias("v")), path)
    for back in (read(spark, path), spark.read.parquet(path)):
        assert back.schema.simpleString() == "struct<id:bigint,v:variant>"
        assert back.count() == 0


def test_failed_task_leaves_existing_files_only(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "table"
    save(spark.range(10), path)
    before = listing(path)
    failing = spark.range(0, 1000, 1, 2).select(F.expr("if(id = 900, raise_error('broken row'), id)").alias("id"))
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match="broken row"):
            failing.write.format("pqext").mode(mode).save(str(path))
        assert listing(path) == before
    with pytest.raises(Exception, match="broken row"):
        failing.write.format("pqext").mode("append").save(str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_types_unsupported_by_parquet_are_rejected_before_writing(spark: Any, tmp_path: Path) -> None:
    point = "st_setsrid(st_geomfromwkb(X'0101000000000000000000F03F0000000000000040'), 4326)"
    mixed = spark.sql(f"SELECT CAST({point} AS GEOMETRY(ANY)) AS g")
    with pytest.raises(Exception, match=r"set it with st_setsrid\(g, 4326\)"):
        save(mixed, tmp_path / "mixed")
    assert not (tmp_path / "mixed").exists()
    save(mixed.selectExpr("st_setsrid(g, 4326) AS g"), tmp_path / "mixed")


def test_corrupt_file_is_reported_by_name(spark: Any, quakes_file: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(quakes_file.read_bytes()[:-20])
    with pytest.raises(Exception, match=r"CorruptFileError.*cut\.parquet"):
        read(spark, str(cut)).count()
    with pytest.raises(CorruptFileError, match=r"cut\.parquet"):
        explain_read(str(cut))


def test_box_requires_a_geometry_column(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "plain.parquet")
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(Exception, match=r"bbox requires one geometry column, but .*plain\.parquet has no geometry"):
        read(spark, path, bbox=FIJI).count()


def test_files_with_different_schemas_are_rejected_by_name(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(Exception, match=r"schemas differ.*b\.parquet"):
        read(spark, str(tmp_path)).count()


def test_untrusted_statistics_prune_nothing(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    plain: dict[str, Any] = {"compression": "uncompressed", "dictionary": False, "checksums": False}
    pqext.write_table(pa.table({"id": [5] * 9 + [6]}), path, **plain)
    data = Path(path).read_bytes()
    # The data holds 7 where the statistics saw 6.
    Path(path).write_bytes(data.replace((6).to_bytes(8, "little"), (7).to_bytes(8, "little"), 1))
    seven = col("id") == 7
    plans = [explain_read(path, where=seven, trust_statistics=trusted) for trusted in (True, False)]
    assert [plan.row_groups for plan in plans] == [0, 1]
    found = [read(spark, path, where=seven, trust_statistics=trusted).collect() for trusted in (True, False)]
    assert [[row.id for row in rows] for rows in found] == [[], [7]]
    with pytest.raises(Exception, match="trust_statistics"):
        spark.read.format("pqext").option("trust_statistics", "perhaps").load(path).count()
