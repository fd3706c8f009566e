"""Dates and instants in Spark's legacy calendar: what its own reader returns of files that it wrote in it."""

from __future__ import annotations

import datetime
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
import pytest

import pqext
from pqext import col
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import KeyValue
from pqext.core.schema.types.legacy_calendar import DATES, INT96, VERSION, ZONE, LegacyCalendar, offsets_of
from pqext.spark import explain_write, ingest_json, read, write
from pqext.spark.reading.parquet_reader import Reader
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query

REBASE = "spark.sql.parquet."
START = -62135596800000000
"""The year 1 in microseconds."""
ROWS = """
select id, date_add(date'0001-01-01', int(id * 997)) as day,
    timestamp_micros({start} + id * 135000123456789) as instant,
    array(named_struct('at', timestamp_micros({start} + id * 135000123456789))) as list
from range(450)"""
"""Days of the years 1 to 1229, and instants of the years 1 to 1926."""
FORMS = [
    ("America/Los_Angeles", "TIMESTAMP_MICROS"), ("Europe/Amsterdam", "INT96"), ("Asia/Shanghai", "TIMESTAMP_MILLIS"),
    ("UTC", "INT96"), ("+05:30", "TIMESTAMP_MICROS"),
    pytest.param("PST", "INT96", marks=pytest.mark.slow),
    pytest.param("Africa/Monrovia", "TIMESTAMP_MICROS", marks=pytest.mark.slow),
]


@contextmanager
def settings(spark: Any, zone: str, timestamps: str) -> Iterator[None]:
    chosen = {
        "spark.sql.session.timeZone": zone, f"{REBASE}datetimeRebaseModeInWrite": "LEGACY",
        f"{REBASE}int96RebaseModeInWrite": "LEGACY", f"{REBASE}outputTimestampType": timestamps,
    }
    before = {name: spark.conf.get(name) for name in chosen}
    try:
        for name, value in chosen.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def written(spark: Any, path: Path, zone: str, timestamps: str) -> Path:
    """The only file that Spark writes of the rows, in its legacy calendar."""
    with settings(spark, zone, timestamps):
        spark.sql(ROWS.format(start=START)).coalesce(1).write.parquet(str(path))
    (file,) = path.glob("*.parquet")
    return file


def by_spark(spark: Any, path: Path) -> list[tuple[int, ...]]:
    return values_of(spark.read.parquet(str(path)))


def values_of(frame: Any) -> list[tuple[int, ...]]:
    rows = frame.selectExpr(
        "id", "unix_date(day) d", "unix_micros(instant) t", "unix_micros(list[0].at) l"
    )
    return sorted(zip(*(column.to_pylist() for column in rows.toArrow().columns), strict=True))


def by_pqext(table: pa.Table) -> list[tuple[int, ...]]:
    table = table.sort_by("id")
    instants = [table["instant"].combine_chunks(), table["list"].combine_chunks().flatten().field(0)]
    counts = [column.cast(pa.timestamp("us", column.type.tz)).cast("int64") for column in instants]
    columns = table["id"], table["day"].cast("int32"), *counts
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.fixture(scope="module")
def legacy(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, ...]]]:
    """A file in the legacy calendar, and its values as Spark reads them."""
    file = written(spark, tmp_path_factory.mktemp("legacy") / "t", "Europe/Amsterdam", "TIMESTAMP_MICROS")
    return file, by_spark(spark, file)


def with_pairs(file: Path, path: Path, changes: dict[str, str | None]) -> Path:
    """A copy of a file with other key-value metadata."""

    def change(metadata: Any) -> None:
        pairs = {pair.key: pair.value for pair in metadata.key_value_metadata} | changes
        stated = {key: value for key, value in pairs.items() if value is not None}
        metadata.key_value_metadata = [KeyValue(key=key, value=value) for key, value in stated.items()]

    path.parent.mkdir(exist_ok=True)
    rewrite_footer(str(file), change, str(path))
    return path


@pytest.mark.spec("logical.legacy-calendar")
@pytest.mark.parametrize(("zone", "timestamps"), FORMS)
def test_legacy_calendar_values_match_spark(
    spark: Any, tmp_path: Path, zone: str, timestamps: str
) -> None:
    file = written(spark, tmp_path / "t", zone, timestamps)
    expected = by_spark(spark, file)
    assert by_pqext(pqext.read_table(file)) == expected
    assert by_pqext(pqext.read_table(file, legacy_calendar="stored")) != expected


@pytest.mark.spec("logical.legacy-calendar")
@pytest.mark.parametrize("engine", ["python", "auto", "native"])
def test_every_engine_matches_spark(
    spark: Any, legacy: tuple[Path, list[tuple[int, ...]]], engine: Any
) -> None:
    assert by_pqext(read(spark, str(legacy[0]), engine=engine).toArrow()) == legacy[1]


@pytest.mark.spec("logical.legacy-calendar")
@pytest.mark.parametrize(
    "changes",
    [
        {"org.apache.spark.version": "2.4.8", DATES: None, ZONE: None}, {"org.apache.spark.version": "3.0.1"},
        {DATES: None}, {"org.apache.spark.version": None},
    ],
    ids=["Spark 2.4", "Spark 3.0", "without the key", "without a version"],
)  # fmt: skip
def test_versions_and_keys_select_the_calendar_like_in_spark(
    spark: Any, legacy: tuple[Path, list[tuple[int, ...]]], tmp_path: Path, changes: dict[str, str | None]
) -> None:
    file = with_pairs(legacy[0], tmp_path / "t" / "t.parquet", changes)
    jvm_zone = spark.sparkContext._jvm.java.util.TimeZone.getDefault().getID()
    assert by_pqext(pqext.read_table(file, legacy_timezone=jvm_zone)) == by_spark(spark, file)


def test_int96_is_legacy_before_spark_3_1(spark: Any, tmp_path: Path) -> None:
    file = written(spark, tmp_path / "t", "Asia/Shanghai", "INT96")
    for version in ("3.0.3", "3.1.0"):
        changes = {"org.apache.spark.version": version, INT96: None, DATES: None}
        other = with_pairs(file, tmp_path / version / "t.parquet", changes)
        assert by_pqext(pqext.read_table(other)) == by_spark(spark, other)


@pytest.mark.spec("logical.legacy-calendar")
def test_old_instants_without_a_time_zone_require_one(legacy: tuple[Path, Any], tmp_path: Path) -> None:
    file = with_pairs(legacy[0], tmp_path / "t.parquet", {ZONE: None})
    assert pqext.read_table(file, columns=["day"]).num_rows == 450
    with pytest.raises(pqext.UnsupportedError, match=r"time zone of its writer.*; pass legacy_timezone=") as error:
        pqext.read_table(file)
    assert error.value.column == "instant"
    unknown = with_pairs(legacy[0], tmp_path / "u.parquet", {ZONE: "Mars/Olympus"})
    with pytest.raises(pqext.UnsupportedError, match="time zone 'Mars/Olympus'"):
        pqext.read_table(unknown)


@pytest.mark.spec("logical.legacy-calendar")
@pytest.mark.parametrize("zone", ["+99:99", "+99:99:99", "+18:01", "-05:60"])
def test_offsets_of_no_time_zone_are_rejected(spark: Any, legacy: tuple[Path, Any], tmp_path: Path, zone: str) -> None:
    with pytest.raises(Exception, match="INVALID_CONF_VALUE"):
        spark.conf.set("spark.sql.session.timeZone", zone)
    file = with_pairs(legacy[0], tmp_path / "t.parquet", {ZONE: zone})
    with pytest.raises(pqext.UnsupportedError, match=r"time zone '.*' of a file in Spark's legacy calendar is unknown"):
        pqext.read_table(file)
    file = with_pairs(legacy[0], tmp_path / "u.parquet", {ZONE: None})
    with pytest.raises(ValueError, match=r"^legacy_timezone '.*' is unknown"):
        pqext.read_table(file, legacy_timezone=zone)


def instants(path: Path, **options: str) -> list[int]:
    """The instants that a task reads from a file, in microseconds."""
    query = Query.from_options({**options, "path": str(path)}).resolve()
    reader = Reader(query, query.schema())
    batches = [batch for part in reader.partitions() if isinstance(part, Slice) for batch in reader.rows(part)]
    return [value for batch in batches for value in batch.column(0).cast(pa.int64()).to_pylist()]


def old_instants(path: Path, zone: str | None) -> Path:
    """A file of instants before 1900 in the legacy calendar of a time zone."""
    pairs = {VERSION: "3.5.0", DATES: "", **({} if zone is None else {ZONE: zone})}
    column = pa.array([START, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"instant": column}).replace_schema_metadata(pairs), path)
    return path


@pytest.mark.spec("logical.legacy-calendar")
def test_time_zone_option_replaces_an_unknown_zone_of_the_file(tmp_path: Path) -> None:
    expected = instants(old_instants(tmp_path / "known.parquet", "Europe/Amsterdam"))
    for zone in (None, "", "Mars/Olympus", "+99:99"):
        file = old_instants(tmp_path / "t.parquet", zone)
        assert instants(file, legacy_timezone="Europe/Amsterdam") == expected
        with pytest.raises(ValueError, match=r"^legacy_timezone 'Mars/X' is unknown; pass the name of a time zone"):
            instants(file, legacy_timezone="Mars/X")
    known = tmp_path / "known.parquet"
    assert instants(known, legacy_timezone="Asia/Shanghai") == expected


def test_unknown_time_zone_option_is_rejected_for_every_file(tmp_path: Path) -> None:
    known = old_instants(tmp_path / "known.parquet", "Europe/Amsterdam")
    pqext.write_table(pa.table({"id": [1]}), plain := tmp_path / "plain.parquet")
    for file in (known, plain):
        for use in (pqext.open, pqext.read_table, lambda path, **options: pqext.scan(path, **options).count()):
            with pytest.raises(ValueError, match=r"^legacy_timezone 'Mars/X' is unknown; pass the name of a time zone"):
                use(file, legacy_timezone="Mars/X")
        with pytest.raises(ValueError, match=r"^legacy_timezone 'Mars/X' is unknown"):
            Query.from_options({"legacy_timezone": "Mars/X", "path": str(file)}).resolve().schema()


@pytest.mark.spec("logical.legacy-calendar")
def test_spark_is_advised_only_of_its_own_options(tmp_path: Path) -> None:
    file = old_instants(tmp_path / "t.parquet", None)
    with pytest.raises(pqext.UnsupportedError, match=r'pass legacy_timezone="\.\.\."') as error:
        instants(file)
    assert "legacy_calendar=" not in str(error.value)


@pytest.mark.spec("logical.legacy-calendar.pruning")
@pytest.mark.parametrize("filters", [False, True], ids=["statistics", "Bloom filters"])
def test_pruning_loses_no_matching_row(
    legacy: tuple[Path, list[tuple[int, ...]]], tmp_path: Path, filters: bool
) -> None:
    stored = pqext.read_table(legacy[0], legacy_calendar="stored")
    many = tmp_path / "t.parquet"
    pqext.write_table(stored, many, row_group_rows=60, page_rows=9, bloom_filters=filters)
    table = pqext.read_table(many)
    assert by_pqext(table) == legacy[1]
    for name in ("day", "instant"):
        extremes = pc.min_max(table[name])
        assert (pqext.scan(many).min(name), pqext.scan(many).max(name)) == (extremes["min"], extremes["max"])
        for value in table[name].to_pylist()[::67]:
            for condition in (col(name) == value, col(name) < value, col(name) >= value):
                expected = pqext.scan(many, trust_statistics=False).filter(condition).count()
                assert pqext.scan(many).filter(condition).count() == expected
    recent = pqext.scan(many).filter(col("day") > datetime.date(1200, 1, 1)).explain()
    assert "1 of 8 row groups" in recent


@pytest.mark.spec("logical.legacy-calendar.pruning")
def test_bounds_cover_instants_reordered_by_the_calendar() -> None:
    calendar = LegacyCalendar("America/Los_Angeles")
    day = 86_400 * 10**9
    for change in calendar._offsets().changes:
        for start in range(change * 10**9 - 3 * day, change * 10**9 + 3 * day, day // 2):
            for length in (0, day // 3, day, 2 * day):
                micros = np.arange(start // 1000, (start + length) // 1000 + 1, day // 12000, np.int64)
                read = calendar.convert_instants(micros, 10**6)
                low, high = calendar.convert_instant_bounds(int(micros[0]) * 1000, int(micros[-1]) * 1000)
                assert low is None or low <= int(read.min()) * 1000
                assert high is None or high >= int(read.max()) * 1000


@pytest.mark.spec("logical.legacy-calendar.writing")
def test_converted_values_are_not_converted_again(
    spark: Any, legacy: tuple[Path, list[tuple[int, ...]]], tmp_path: Path
) -> None:
    again = tmp_path / "again.parquet"
    pqext.write_table(pqext.read_table(legacy[0]), again)
    assert by_pqext(pqext.read_table(again)) == by_spark(spark, again) == legacy[1]
    stored = tmp_path / "stored.parquet"
    pqext.write_table(pqext.read_table(legacy[0], legacy_calendar="stored"), stored)
    assert by_pqext(pqext.read_table(stored)) == by_spark(spark, stored) == legacy[1]
    with pytest.raises(pqext.UnsupportedError, match="different Spark calendar"):
        pqext.concatenate([stored, again], tmp_path / "both.parquet")
    with pytest.raises(pqext.UnsupportedError, match="column day uses Spark's legacy calendar"):
        pqext.write_table(pqext.read_table(legacy[0]), stored, append=True)
    with pytest.raises(ValueError, match="declare the calendar"):
        pqext.concatenate([stored, stored], tmp_path / "both.parquet", key_value_metadata={"a": "b"})
    pqext.concatenate([stored, stored], tmp_path / "both.parquet")
    assert by_pqext(pqext.read_table(tmp_path / "both.parquet").slice(0, 450)) == legacy[1]


@pytest.mark.spec("logical.legacy-calendar")
@pytest.mark.parametrize("timestamps", [pytest.param("TIMESTAMP_MICROS", marks=pytest.mark.slow), "INT96"])
def test_files_without_a_version_follow_the_rebase_modes_of_the_session(
    spark: Any, tmp_path: Path, timestamps: str
) -> None:
    known = written(spark, tmp_path / "known", "Europe/Amsterdam", timestamps)
    file = with_pairs(known, tmp_path / "t" / "x.parquet", {VERSION: None, DATES: None, INT96: None})
    path, names = str(file), [f"{REBASE}{name}RebaseModeInRead" for name in ("datetime", "int96")]
    condition = "day < date'0700-01-01' or instant > timestamp'1900-01-05 00:00:00'"
    expected = by_spark(spark, known)
    try:
        for mode in ("CORRECTED", "LEGACY"):
            for name in names:
                spark.conf.set(name, mode)
            theirs = by_spark(spark, file)
            assert (theirs == expected) is (mode == "LEGACY")
            filtered = values_of(spark.read.parquet(path).where(condition))
            for engine in ("python", "native", "auto"):
                assert values_of(read(spark, path, engine=engine)) == theirs, (mode, engine)
                assert values_of(read(spark, path, engine=engine, where=condition)) == filtered, (mode, engine)
                assert values_of(read(spark, str(known), engine=engine)) == expected, (mode, engine)
        with pytest.raises(Exception, match=r"RebaseModeInRead=legacy when it plans.*rebase_mode=legacy"):
            values_of(spark.read.format("pqext").load(path))
        assert spark.read.format("pqext").load(path).schema == spark.read.parquet(path).schema
        options = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
        theirs = values_of(spark.read.options(**options).parquet(path))
        assert values_of(spark.read.format("pqext").options(**options).load(path)) == theirs != expected
        assert values_of(read(spark, path, datetime_rebase_mode="corrected", int96_rebase_mode="corrected")) == theirs
        for name in names:
            spark.conf.set(name, "EXCEPTION")
        for engine in ("python", "native", "auto"):
            assert values_of(read(spark, str(known), engine=engine)) == expected
            for column in ("day", "instant"):
                frame = read(spark, path, [column], engine=engine)
                for rows in (frame, spark.read.parquet(path).select(column)):
                    with pytest.raises(Exception, match="READ_ANCIENT_DATETIME"):
                        rows.collect()
            assert read(spark, path, ["id"], engine=engine, where="id = 449").collect() == [(449,)]
    finally:
        for name in names:
            spark.conf.unset(name)


def test_verify_checks_stored_values(legacy: tuple[Path, Any]) -> None:
    assert pqext.verify(legacy[0]).ok
    types = [field.logical_type or "" for field in pqext.inspect(legacy[0]).schema]
    assert sum("legacy calendar" in text for text in types) == 3


@pytest.mark.spec("logical.legacy-calendar")
def test_zones_match_the_table_of_spark(spark: Any) -> None:
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-sql-api_*.jar")
    with zipfile.ZipFile(jar) as opened:
        table = json.loads(opened.read("julian-gregorian-rebase-micros.json"))
    for row in table:
        calendar, offsets = LegacyCalendar(row["tz"]), offsets_of(row["tz"])
        assert list(offsets.changes) == row["switches"], row["tz"]
        probes = np.array([second + apart for second in row["switches"] for apart in (0, 1, 40_000)], np.int64)
        places = np.searchsorted(row["switches"], probes, side="right") - 1
        assert (calendar.convert_instants(probes, 1) - probes == np.array(row["diffs"])[places]).all(), row["tz"]


def version_of(path: str) -> list[str | None]:
    """The version of Spark in each file of a folder."""
    files = sorted(Path(path).rglob("*.parquet"))
    return [(pq.read_metadata(file).metadata or {}).get(VERSION.encode(), b"").decode() for file in files]


def test_saves_record_the_version_and_follow_the_rebase_mode_of_the_session(spark: Any, tmp_path: Path) -> None:
    ours, theirs, lines = (str(tmp_path / name) for name in ("ours", "theirs", "lines"))
    frame = spark.sql(ROWS.format(start=START)).coalesce(1)
    write(frame, ours)
    frame.write.parquet(theirs)
    (tmp_path / "in.json").write_text("{}")
    ingest_json(spark, str(tmp_path / "in.json"), lines, None)
    assert version_of(ours) == version_of(theirs) == version_of(lines) == [spark.version]
    names = [f"{REBASE}{name}" for name in ("datetimeRebaseModeInRead", "datetimeRebaseModeInWrite")]
    names.append(f"{REBASE}outputTimestampType")
    nested = "array(named_struct('f', if(id = 0, date'1500-01-01', current_date()))) l", "map('k', now()) m"
    later = spark.sql("select date'1582-10-15' d, timestamp'1900-01-02 00:00:00' t, timestamp_ntz'0001-01-01 00:00' n")
    try:
        spark.conf.set(names[0], "LEGACY")
        spark.conf.set(names[1], "EXCEPTION")
        spark.conf.set(names[2], "TIMESTAMP_MICROS")
        expected = by_spark(spark, Path(theirs))
        assert by_spark(spark, Path(ours)) == by_pqext(pqext.read_table(ours)) == expected
        for rows in (frame.select("day"), frame.select("instant"), spark.range(2).selectExpr(*nested)):
            for save in (
                lambda rows=rows: rows.write.mode("append").parquet(f"{theirs}-2"),
                lambda rows=rows: write(rows, f"{ours}-2"),
                lambda rows=rows: rows.write.format("pqext").mode("append").save(f"{ours}-3"),
            ):
                with pytest.raises(Exception, match="WRITE_ANCIENT_DATETIME"):
                    save()
        write(later, f"{ours}-2")
        assert read(spark, f"{ours}-2").collect() == later.collect()
        spark.conf.set(names[1], "LEGACY")
        for save in (
            lambda: write(later, f"{ours}-4"), lambda: explain_write(later),
            lambda: later.write.format("pqext").mode("append").save(f"{ours}-4"),
        ):
            with pytest.raises(Exception, match=r"column 'd' has dates.*InWrite is LEGACY: set it to CORRECTED"):
                save()
        assert not list(tmp_path.glob("ours-4/*.parquet"))
        write(spark.range(2), f"{ours}-5")
    finally:
        for name in names:
            spark.conf.unset(name)
