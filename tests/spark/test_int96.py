"""INT96 timestamps through Spark: what its own reader gives, of files by Spark and by others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T
from spark.sessions import by_conditions, ids

import pqext
from pqext import col
from pqext.core.format.metadata import Type
from pqext.spark import explain_read, query, read, where
from pqext.spark.reading.request import Query

# What Spark's own file of far timestamps holds (parquet-testing, int96_from_spark.md), in microseconds.
FAR = [1704141296123456, 1704070800000000, 253402225200000000, 1735599600000000, None, 9089380393200000000]
SPARK = {"org.apache.spark.version": "3.4.3"}


def write(path: Path, metadata: dict[str, str]) -> None:
    leaf = pa.field("a", pa.timestamp("us"), metadata={"PARQUET:physical_type": "INT96"})
    array = pa.array(FAR, leaf.type)
    nested = pa.StructArray.from_arrays([array, array], fields=[leaf, pa.field("local", pa.timestamp("us"))])
    lists = pa.ListArray.from_arrays(pa.array(range(len(FAR) + 1), pa.int32()), nested)
    schema = pa.schema([leaf, pa.field("l", lists.type), pa.field("local", pa.timestamp("us"))])
    path.parent.mkdir(exist_ok=True)
    pqext.write_table(pa.table([array, lists, array], schema=schema), path, key_value_metadata=metadata)


@pytest.mark.spec("logical.int96.unit")
@pytest.mark.parametrize("metadata", [SPARK, {}], ids=["by Spark", "by others"])
def test_schema_has_instants_for_int96(tmp_path: Path, metadata: dict[str, str]) -> None:
    write(tmp_path / "t.parquet", metadata)
    schema = Query.from_options({"path": str(tmp_path)}).schema()
    instant, local = T.TimestampType(), T.TimestampNTZType()
    assert (schema["a"].dataType, schema["local"].dataType) == (instant, local)
    inner = schema["l"].dataType.elementType
    assert (inner["a"].dataType, inner["local"].dataType) == (instant, local)


@pytest.mark.spec("logical.int96.unit")
def test_distant_timestamps_match_the_spark_reader(spark: Any, tmp_path: Path) -> None:
    for name, metadata in (("spark", SPARK), ("others", {})):
        write(tmp_path / "t" / f"{name}.parquet", metadata)
    wanted = (F.expr("unix_micros(a)"), F.expr("unix_micros(l[0].a)"))
    ours, theirs = read(spark, str(tmp_path / "t")), spark.read.parquet(str(tmp_path / "t"))
    assert ours.schema == theirs.schema
    expected = sorted([(value, value) for value in FAR * 2], key=str)
    for frame in (ours, theirs):
        assert sorted((tuple(row) for row in frame.select(*wanted).collect()), key=str) == expected


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_spark_reader_reads_int96(spark: Any, tmp_path: Path, engine: Any) -> None:
    for name, metadata in (("spark", SPARK), ("others", {})):
        write(tmp_path / "t" / f"{name}.parquet", metadata)
    assert explain_read(str(tmp_path / "t"), engine=engine, spark=spark).engine == "native"
    theirs = spark.read.parquet(str(tmp_path / "t"))
    bound = "timestamp_micros(1704070800000000)"
    ours = read(spark, str(tmp_path / "t"), engine=engine)
    conditional = read(spark, str(tmp_path / "t"), where=col("a") > datetime(2024, 1, 1, 1), engine="auto")
    micros = [F.expr("unix_micros(a)"), F.expr("unix_micros(l[0].a)")]
    after = theirs.where(f"a > {bound}")
    for found, expected in ((ours, theirs), (ours.where(f"a > {bound}"), after), (conditional, after)):
        assert found.schema == expected.schema
        rows, wanted = (sorted(map(tuple, frame.select(*micros).collect()), key=str) for frame in (found, expected))
        assert rows == wanted


MOMENT = datetime(2024, 1, 1, 15, tzinfo=UTC)
TEXTS = [
    "at = timestamp'2024-01-01 10:00:00'", "year(at) = 2024", "at > '2024-01-01'", "at > date'2024-01-01'",
    "at between timestamp'2023-01-01' and timestamp'2024-01-01 10:00:00'", "date(at) = date'2024-01-01'",
    "at in (timestamp'2024-01-01 10:00:00', timestamp'2023-06-01', null)", "at is null",
    "not (at <=> timestamp'2024-01-01 10:00:00')", "id = 3 or at = timestamp'2024-01-01 10:00:00'",
    "at >= timestamp_ntz'2024-01-01 10:00:00'", "at = timestamp'2024-01-01 10:00:00Z'",
    "s.at = timestamp'2024-01-01 10:00:00'", "hour(at) = 10",
]  # fmt: skip
"""Times of texts are those of New York."""


@pytest.fixture(scope="module")
def by_spark(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder in which Spark has stored timestamps as it does by default."""
    path = str(tmp_path_factory.mktemp("by_spark") / "t")
    rows = ", ".join([
        "(1, timestamp'2024-01-01 10:00:00Z')", "(2, timestamp'2024-01-01 15:00:00.123456Z')",
        "(3, timestamp'2023-06-01 04:00:00Z')", "(4, null)", "(5, timestamp'2024-01-01 15:00:00Z')",
        "(6, timestamp'2024-01-01 04:59:59Z')",
    ])  # fmt: skip
    spark.sql(f"select id, at, struct(at) as s from values {rows} as t(id, at)").coalesce(1).write.parquet(path)
    (file,) = Path(path).glob("*.parquet")
    with pqext.ParquetFile(file) as parquet:
        assert parquet.schema.leaves[1].physical_type == Type.INT96
    return path


@pytest.fixture
def new_york(spark: Any) -> Iterator[None]:
    setting = "spark.sql.session.timeZone"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "America/New_York")
    yield
    spark.conf.set(setting, before)


@pytest.mark.spec("logical.int96.unit")
@pytest.mark.parametrize("engine", ["python", pytest.param("native", marks=pytest.mark.slow)])
def test_int96_conditions_match_spark(
    spark: Any, by_spark: str, new_york: None, engine: Any
) -> None:
    at = F.col("at")
    columns = [
        at > F.lit(datetime(2024, 1, 1, 12)), at == MOMENT, at.isin(MOMENT), at > F.lit(date(2024, 1, 1)), at.isNull(),
        F.year("at") == 2023,
    ]  # fmt: skip
    conditions = [*TEXTS, *columns]
    theirs = spark.read.parquet(by_spark)
    frame = read(spark, by_spark, engine=engine)
    expected = by_conditions(theirs, conditions)
    assert sum(map(bool, expected)) == len(conditions)
    some = conditions[::4]
    frames = [read(spark, by_spark, where=condition, engine=engine) for condition in conditions]
    frames += [where(one, condition) for one in (frame, theirs) for condition in some]
    frames += [read(spark, by_spark, ["id"], where=condition, engine=engine) for condition in some]
    assert ids(*frames) == expected + expected[::4] * 3


@pytest.mark.slow
@pytest.mark.spec("logical.int96.unit")
def test_int96_expressions_accept_instants_and_local_utc_times(
    spark: Any, by_spark: str, new_york: None
) -> None:
    theirs = spark.read.parquet(by_spark)
    local = MOMENT.replace(tzinfo=None)
    after, same = "at > timestamp'2024-01-01 15:00:00Z'", "at = timestamp'2024-01-01 15:00:00Z'"
    cases = [
        (col("at") > MOMENT, after), (col("at") > local, after), (col("at") == MOMENT, same),
        (col("at") == local, same), (col("at").cast("date") == date(2024, 1, 1), "date(at) = '2024-01-01'"),
        (col("at").isin([MOMENT]), same), (~(col("at") != local), same), (col("at").is_null(), "at is null"),
        (col("at") == pa.scalar(local), same), (col("at") == "2024-01-01T15:00:00", same),
        (col(["s", "at"]) == local, same),
    ]  # fmt: skip
    engines: Any = ("python", "auto")
    selected = [read(spark, by_spark, where=one, engine=engine) for engine in engines for one, _ in cases]
    selected += [where(read(spark, by_spark, engine=engine), one) for engine in engines for one, _ in cases]
    expected = by_conditions(theirs, [text for _, text in cases])
    assert ids(*selected) == expected * 4
    counted = query(spark, by_spark, {"n": "count", "last": ("max", "at")}, where=col("at") <= MOMENT)
    assert counted.collect() == theirs.where(f"not {after}").selectExpr("count(*) n", "max(at) last").collect()


@pytest.mark.spec("logical.int96.unit")
def test_int96_compares_with_instants_if_read_as_instants(by_spark: str) -> None:
    table = pqext.read_table(by_spark, int96_utc=True)
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert table["at"].cast(pa.timestamp("us")) == pqext.read_table(by_spark)["at"]
    for found in (
        pqext.scan(by_spark, filter=col("at") >= MOMENT, int96_utc=True).to_table(),
        pqext.read_table(by_spark, filter=col("at") >= MOMENT.replace(tzinfo=None)),
    ):
        assert sorted(found["id"].to_pylist()) == [2, 5]
    with pytest.raises(TypeError, match=r"timestamp without timezone.*write datetime\.datetime\(2024, 1, 1, 15\)"):
        pqext.read_table(by_spark, filter=col("at") >= MOMENT)
