"""Local times in casts are those of Spark's session time zone: every route equals Spark's own answers in five zones.

The oracle is Spark's ``try_variant_get`` and ``cast``, all expressions of a zone in one query.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

from pyspark.sql import functions as F

import pqext
from pqext import col, variant
from pqext.spark import explain_read, query, read, where
from pqext.spark import functions as P
from pqext.variant.timezones import find_timezone

ZONES = [
    "Australia/Lord_Howe",
    *(
        pytest.param(zone, marks=pytest.mark.slow)
        for zone in ("America/New_York", "Europe/London", "Asia/Kathmandu", "PST")
    ),
]  # fmt: skip
"""Clocks that move by an hour in both halves of the year, by half an hour, never, and a name of Java's."""
NAMES = {"PST": "America/Los_Angeles"}
TYPES = ("timestamp", "timestamp_ntz", "date", "string", "array<timestamp>", "struct<d: date>")
EPOCH = datetime(1970, 1, 1)
CHANGES = (
    datetime(2024, 3, 10, 7), datetime(2024, 11, 3, 6), datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 1),
    datetime(2024, 4, 6, 15), datetime(2024, 10, 5, 15, 30), datetime(2024, 3, 10, 10), datetime(2024, 11, 3, 9),
    datetime(1883, 11, 18, 17), datetime(1985, 12, 31, 18, 30), datetime(2024, 12, 31, 23), datetime(2350, 7, 1, 4),
)  # fmt: skip
"""Instants near which one of the zones changes its offset, or another day begins."""


def instants() -> list[datetime]:
    """Times around each change, in minutes that tell gaps, overlaps and midnights apart."""
    minutes = (-361, -61, -31, -1, 0, 1, 29, 59, 61, 121)
    return [change + timedelta(minutes=step, microseconds=step * 7) for change in CHANGES for step in minutes]


def documents() -> pa.Array:
    """Variants of every form that a time takes: instants, local times, days, and texts with and without a zone."""
    values: list[Any] = []
    for number, time in enumerate(instants()):
        zoned = time.replace(tzinfo=UTC)
        text = time.isoformat(" ", "milliseconds")
        values += [
            {"t": zoned, "n": time, "d": time.date(), "s": text, "mixed": (zoned, time, text, time.date())[number % 4]},
            {"t": text, "n": f"{text}-03:00", "d": text[:10], "s": f"{text}Z", "mixed": [time, {"d": text}, zoned]},
        ]
    return variant.from_python(values)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows unshredded, and with a leaf for each form, in small row groups."""
    folder = tmp_path_factory.mktemp("zones")
    documents_ = documents()
    moments = [time for time in instants() for _ in range(2)]
    table = pa.table(
        {
            "id": pa.array(range(len(documents_)), pa.int32()),
            "v": documents_,
            "t": pa.array([moment.replace(tzinfo=UTC) for moment in moments], pa.timestamp("us", "UTC")),
            "n": pa.array(moments, pa.timestamp("us")),
            "d": pa.array([moment.date() for moment in moments], pa.date32()),
            "s": pa.array([moment.isoformat(" ") for moment in moments]),
        }
    )
    leaves = "struct<t: timestamp, n: timestamp_ntz, d: date, s: string>"
    pqext.write_table(table, str(folder / "plain.parquet"))
    pqext.write_table(table, str(folder / "shredded.parquet"), shredding={"v": leaves}, row_group_rows=20, page_rows=5)
    return folder


@pytest.fixture(params=ZONES)
def zone(spark: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


PATHS = ("t", "n", "d", "s", "mixed")
PLAIN = {"t": ("timestamp_ntz", "date", "string"), "n": ("timestamp", "date"), "d": ("timestamp",), "s": ("timestamp",)}


def pqext_casts() -> dict[str, Any]:
    """Each cast as pqext has it, by name."""
    within = {f"v.{path} {type}": col("v").variant(f"$.{path}", type) for path in PATHS for type in TYPES}
    plain = {f"{name} {type}": col(name).cast(type) for name, types in PLAIN.items() for type in types}
    return within | plain


def spark_casts() -> dict[str, Any]:
    """Each cast as Spark has it, by the same names."""
    within = {f"v.{path} {type}": F.try_variant_get("v", f"$.{path}", type) for path in PATHS for type in TYPES}
    plain = {f"{name} {type}": F.col(name).try_cast(type) for name, types in PLAIN.items() for type in types}
    return within | plain


def table_values(table: pa.Table) -> dict[str, list[Any]]:
    return {name: table.column(name).to_pylist() for name in table.column_names}


_known: dict[tuple[str, Path], dict[str, list[Any]]] = {}


def oracle(spark: Any, path: Path) -> dict[str, list[Any]]:
    """What Spark's own functions give of rows that pqext has read without a cast, once for each zone and file."""
    key = spark.conf.get("spark.sql.session.timeZone"), path
    if key not in _known:
        ours = {"json": P.to_json("v"), "udf": P.try_variant_get("v", "$.mixed", "string")}
        columns = spark_casts() | {"to_json": F.to_json("v")} | ours
        rows = read(spark, str(path)).select("id", *(column.alias(name) for name, column in columns.items()))
        _known[key] = table_values(rows.orderBy("id").toArrow())
    return _known[key]


@pytest.mark.spec("casts.timezone")
@pytest.mark.parametrize("name", ["plain", "shredded"])
def test_selected_casts_match_spark_in_every_zone(spark: Any, zone: str, folder: Path, name: str) -> None:
    path = folder / f"{name}.parquet"
    expected = oracle(spark, path)
    columns = ["id", *(value.alias(key) for key, value in pqext_casts().items())]
    found = table_values(read(spark, str(path), columns).toArrow())
    of_variants = ["id", *(value.alias(key) for key, value in pqext_casts().items() if key.startswith("v."))]
    native = table_values(read(spark, str(path), of_variants, engine="native").orderBy("id").toArrow())
    local = table_values(pqext.read_table(str(path), columns, timezone=NAMES.get(zone, zone)))
    assert expected["json"] == expected["to_json"]
    assert expected["udf"] == expected["v.mixed string"]
    for key in found:
        assert found[key] == expected[key], key
        assert native.get(key, expected[key]) == expected[key], key  # pqext alone casts other columns
        assert local[key] == expected[key], key


def bounds() -> list[tuple[str, Any, Any]]:
    """Conditions: a cast, the operator's name and a literal, near the changes of the zones."""
    conditions: list[tuple[str, Any, Any]] = []
    for place, change in enumerate(CHANGES[:-1]):
        near = change.replace(tzinfo=UTC)
        every: list[tuple[str, Any, Any]] = [
            ("v.t date", "==", change.date()), ("v.n timestamp", ">=", near), ("n timestamp", "<=", near),
            ("t date", "==", change.date() - timedelta(1)), ("v.t timestamp_ntz", "<", change),
            ("d timestamp", ">", near), ("v.s timestamp", ">=", near), ("v.d timestamp", "<", near),
            ("t timestamp_ntz", ">=", change), ("t string", "<", change.isoformat(" ")),
        ]  # fmt: skip
        conditions += every[place % 3 :: 3]
    return conditions


_OPERATORS: dict[str, Any] = {
    "==": lambda value, literal: value == literal, "<": lambda value, literal: value < literal,
    "<=": lambda value, literal: value <= literal, ">": lambda value, literal: value > literal,
    ">=": lambda value, literal: value >= literal,
}  # fmt: skip


def of_spark(literal: Any) -> Any:
    """A literal in Spark that no zone moves."""
    if isinstance(literal, datetime):
        return F.timestamp_micros(F.lit((literal.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1)))
    return F.lit(literal.isoformat()).cast("date")


@pytest.mark.spec("casts.timezone")
def test_conditions_lose_no_row_in_any_zone(spark: Any, zone: str, folder: Path) -> None:
    path, values, casts = folder / "shredded.parquet", oracle(spark, folder / "shredded.parquet"), pqext_casts()
    skipped = 0
    for key, operator, literal in (conditions := bounds()):
        # Values of Spark, compared here: Spark's optimizer moves casts to the literal, as if clocks never went back.
        rows = [row for row, one in enumerate(values[key]) if one is not None and _OPERATORS[operator](one, literal)]
        scan = pqext.scan(str(path), timezone=NAMES.get(zone, zone)).filter(_OPERATORS[operator](casts[key], literal))
        assert scan.select("id").to_table().column("id").to_pylist() == rows, (key, operator, literal)
        assert scan.count() == len(rows), (key, operator, literal)
        skipped += sum(group.prune_reason is not None for task in scan.plan() for group in task.row_groups)
    assert skipped > len(conditions)  # row groups, of twelve in the file


@pytest.mark.spec("casts.timezone")
def test_all_code_paths_of_a_condition_agree_in_every_zone(spark: Any, zone: str, folder: Path) -> None:
    path = str(folder / "shredded.parquet")
    for key, literal in (("v.mixed timestamp", datetime(2024, 3, 10, 7, tzinfo=UTC)), ("v.t date", date(2024, 11, 2))):
        condition = pqext_casts()[key] >= literal
        rows = read(spark, path)
        exact = spark_casts()[key] >= of_spark(literal)
        frames = [
            rows.where(exact), where(rows, condition), where(rows.select("*"), condition),
            read(spark, path, where=condition), read(spark, path, where=condition, engine="native"),
            where(read(spark, path, shredded=True), condition),
            where(spark.read.parquet(path), condition),
        ]  # fmt: skip
        expected, *others = (frame.select(F.sum("id").alias("ids"), F.count("*").alias("rows")) for frame in frames)
        together = expected
        for other in others:
            together = together.unionAll(other)
        assert len({tuple(row) for row in together.collect()}) == 1, key


@pytest.mark.spec("casts.timezone")
def test_aggregates_match_spark_in_every_zone(spark: Any, zone: str, folder: Path) -> None:
    path = str(folder / "shredded.parquet")
    time, day = col("v").variant("$.t", "timestamp_ntz"), col("v").variant("$.t", "date")
    wanted = {"least": ("min", time), "rows": "count"}
    found = query(spark, path, wanted, by=[day.alias("day")], where=day > date(1900, 1, 1))
    rows = read(spark, path).select(
        *(F.try_variant_get("v", "$.t", type).alias(name) for name, type in (("day", "date"), ("t", "timestamp_ntz")))
    )
    counts = rows.where("day > date'1900-01-01'").groupBy("day").agg(F.min("t").alias("least"), F.count("*"))
    assert sorted(map(tuple, found.select("day", "least", "rows").collect())) == sorted(map(tuple, counts.collect()))


@pytest.mark.spec("casts.timezone")
def test_plan_follows_the_session_zone(spark: Any, folder: Path) -> None:
    path = str(folder / "shredded.parquet")
    condition = col("v").variant("$.t", "date") == date(2024, 3, 10)
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name in ("Asia/Kathmandu", "America/New_York"):
            spark.conf.set("spark.sql.session.timeZone", name)
            theirs = read(spark, path).where(F.try_variant_get("v", "$.t", "date") == F.lit("2024-03-10").cast("date"))
            plan = explain_read(path, where=condition, spark=spark)
            assert plan.tasks
            assert read(spark, path, where=condition).count() == theirs.count() > 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_three_letter_zone_names_match_java(spark: Any) -> None:
    from pqext.spark.base.settings import _JAVA_ZONES

    names = list(_JAVA_ZONES)
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        micros = (datetime(2024, 7, 1) - EPOCH) // timedelta(microseconds=1)
        moment = F.timestamp_micros(F.lit(micros))
        row = spark.range(1).select(*(F.from_utc_timestamp(moment, name).cast("string") for name in names)).first()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for name, text in zip(names, row, strict=True):
        found = find_timezone(_JAVA_ZONES[name])
        assert found is not None
        assert str(EPOCH + timedelta(microseconds=found.to_local.minimum_result(micros * 1000) // 1000)) == text, name
