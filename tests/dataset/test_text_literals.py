"""Text in ISO form compares with dates, times of day and timestamps as the values that DuckDB reads it as."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from pqext.dataset.expressions.literals import ValueType, to_value

DATES = st.dates().map(date.isoformat)
TIMES = st.tuples(
    st.times().map(lambda one: one.isoformat("seconds")), st.text("0123456789", max_size=9)
).map(lambda one: f"{one[0]}.{one[1]}" if one[1] else one[0]) | st.times().map(lambda one: one.isoformat("minutes"))
ZONES = st.sampled_from(["Z", "+00", "-08", "+05:30", "-0330", "+14:00", "-12:00"])
IN_NANOSECONDS = st.dates(date(1700, 1, 1), date(2200, 1, 1)).map(date.isoformat)


def _duckdb(text: str, type: str, function: str) -> Any:
    ((found,),) = duckdb.execute(f"set timezone = 'UTC'; select {function}(cast(? as {type}))", [text]).fetchall()
    return found


@pytest.mark.spec("querying.text-literals")
@given(DATES)
def test_dates_match_duckdb(text: str) -> None:
    assert to_value(text, ValueType("date"), "a") == (_duckdb(text, "date", "") - date(1970, 1, 1)).days


@pytest.mark.spec("querying.text-literals")
@given(TIMES)
def test_times_of_day_match_duckdb(text: str) -> None:
    assert to_value(text, ValueType("time"), "a") == _duckdb(text, "time_ns", "epoch_ns")


@pytest.mark.spec("querying.text-literals")
@given(IN_NANOSECONDS, st.sampled_from("T "), TIMES)
def test_timestamps_match_duckdb(day: str, between: str, clock: str) -> None:
    for text in (day, day + between + clock):
        assert to_value(text, ValueType("timestamp"), "a") == _duckdb(text, "timestamp_ns", "epoch_ns")


@pytest.mark.spec("querying.text-literals")
@given(DATES.filter(lambda text: "0002" < text < "9998"), st.times(), ZONES)
def test_instants_match_duckdb(day: str, clock: time, zone: str) -> None:
    text = f"{day}T{clock.isoformat('microseconds')}"
    read = _duckdb(text + zone, "timestamptz", "epoch_us") * 1000
    assert to_value(text + zone, ValueType("timestamp", True), "a") == read


DAYS = [date(2026, 5, 1) + timedelta(days=n) for n in range(8)]
STAMPS = [datetime(2026, 5, 1) + timedelta(hours=12 * n) for n in range(8)]
ZONED = [one.replace(tzinfo=UTC) for one in STAMPS]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "log.parquet"
    table = pa.table({
        "id": range(8), "day": DAYS, "local": STAMPS, "instant": pa.array(ZONED, pa.timestamp("ns", "UTC")),
        "seconds": pa.array(STAMPS, pa.timestamp("s")), "clock": [time(n, 30) for n in range(8)],
        "event": variant.from_python([{"day": day, "at": at} for day, at in zip(DAYS, ZONED, strict=True)]),
        "name": [str(day) for day in DAYS],
    })
    pqext.write_table(table, path, row_group_rows=2, shredding={"event": "day DATE, at TIMESTAMP"})
    return path


QUESTIONS: list[tuple[str, Any, Any, list[int], int]] = [
    ("day >= '2026-05-07'", col("day") >= "2026-05-07", col("day") >= date(2026, 5, 7), [6, 7], 1),
    ("'2026-05-02' > day", col("day") < "2026-05-02", col("day") < date(2026, 5, 2), [0], 1),
    ("not (day <> '2026-05-04')", ~(col("day") != "2026-05-04"), col("day") == date(2026, 5, 4), [3], 1),
    ("local < '2026-05-02'", [("local", "<", "2026-05-02")], col("local") < datetime(2026, 5, 2), [0, 1], 1),
    (
        "local between '2026-05-03 00:00' and '2026-05-03T23:59:59.999999999'",
        col("local").between("2026-05-03 00:00", "2026-05-03T23:59:59.999999999"),
        col("local").between(datetime(2026, 5, 3), datetime(2026, 5, 3, 23, 59, 59, 999999)), [4, 5], 1,
    ),
    ("instant > '2026-05-04T14:00:00+02:00'", col("instant") > "2026-05-04T14:00:00+02:00",
     col("instant") > datetime(2026, 5, 4, 12, tzinfo=UTC), [], 0),
    ("seconds = '2026-05-01 12:00:00.0'", col("seconds") == "2026-05-01 12:00:00.0",
     col("seconds") == datetime(2026, 5, 1, 12), [1], 1),
    ("seconds >= '2026-05-04 00:00:00.000000001'", col("seconds") >= "2026-05-04 00:00:00.000000001",
     col("seconds") > datetime(2026, 5, 4), [7], 1),
    ("clock in ('00:30', '07:30:00', '09:00')", col("clock").isin(["00:30", "07:30:00", "09:00"]),
     col("clock").isin([time(0, 30), time(7, 30), time(9)]), [0, 7], 2),
    ("event:$.day::date = '2026-05-03'", col("event").variant("$.day", "date") == "2026-05-03",
     col("event").variant("$.day", "date") == date(2026, 5, 3), [2], 1),
    ("event:$.at::timestamptz > '2026-05-04T00:00:00Z'",
     col("event").variant("$.at", "timestamp") > "2026-05-04T00:00:00Z",
     col("event").variant("$.at", "timestamp") > datetime(2026, 5, 4, tzinfo=UTC), [7], 1),
    ("name::date < '2026-05-02'", col("name").cast("date") < "2026-05-02",
     col("name").cast("date") < date(2026, 5, 2), [0], 4),
]  # fmt: skip


@pytest.mark.spec("querying.text-literals")
@pytest.mark.parametrize(("text", "written", "typed", "ids", "groups"), QUESTIONS, ids=[one[0] for one in QUESTIONS])
def test_text_literal_prunes_like_a_typed_literal(
    file: Path, text: str, written: Any, typed: Any, ids: list[int], groups: int
) -> None:
    for filter in (text, written, typed):
        scan = pqext.scan(file, ["id"], filter)
        assert scan.to_table()["id"].to_pylist() == ids
        assert sum(len(task.kept_row_groups) for task in scan.plan()) == groups


def test_date_partitions_are_filtered_with_text(tmp_path: Path) -> None:
    for day in DAYS[:3]:
        (tmp_path / f"day={day}").mkdir()
        pqext.write_table(pa.table({"id": [day.day]}), tmp_path / f"day={day}" / "a.parquet")
    assert pqext.read_table(tmp_path, ["id"], "day >= '2026-05-02'")["id"].to_pylist() == [2, 3]


WRONG = [
    ("day", "2026-05-32", "date does not exist in the calendar"),
    ("day", "2026-5-1", "a date must be written as '2026-05-31'"),
    ("day", "20260501", "a date must be written as '2026-05-31'; write date '2026-05-01'"),
    ("day", "2026-05-01 12:00", "must not have a time of day or a time zone; write date '2026-05-01'"),
    ("day", "01/05/2026", "a date must be written as"),
    ("day", "٢٠٢٦-05-01", "a date must be written as"),
    ("local", "2026-05", "a timestamp must be written as '2026-05-31' or '2026-05-31T23:59:59'"),
    ("local", "2026-05-01Z", "must not have a UTC offset"),
    ("local", "2026-05-01 24:00:00", "time of day is out of range"),
    ("local", "2026-05-01 12:00:00.0000000001", "a timestamp must be written as"),
    ("instant", "2026-05-01", "the text needs a UTC offset, because"),
    ("instant", "2026-05-01", "the column contains instants; write timestamptz '2026-05-01 00:00:00Z'"),
    ("instant", "2026-05-01T12:00:00+19:00", "UTC offset is out of range"),
    ("local", "9999-12-31T23:59:59-01:00", "must not have a UTC offset"),
    ("day", "0001-01-01T00:00", "must not have a time of day or a time zone; write date '0001-01-01'"),
    ("instant", "soon", "a timestamp must be written as '2026-05-31T23:59:59Z'"),
    ("clock", "7:30", "a time of day must be written as '23:59:59'"),
    ("clock", "07:60", "time of day is out of range"),
    ("clock", "07:30Z", "a time of day must be written as"),
]


@pytest.mark.spec("querying.text-literals")
@pytest.mark.parametrize(("column", "text", "why"), WRONG)
def test_other_text_gets_a_hint(file: Path, column: str, text: str, why: str) -> None:
    with pytest.raises(TypeError, match=f"^column '{column}' contains .* cannot be compared with") as told:
        pqext.read_table(file, ["id"], f"{column} = '{text}'")
    assert why in str(told.value)
    assert str(told.value).endswith(f"\n  {column} = '{text}'\n  ^")
    with pytest.raises(TypeError, match=f"^column '{column}' contains .* cannot be compared with"):
        pqext.read_table(file, ["id"], col(column).isin([text]))


UUIDS = [UUID(int=number) for number in (0, 7, 1 << 127, (1 << 128) - 1)]


@pytest.mark.parametrize(
    "text",
    [
        f"u = '{UUIDS[1]}'", f"u <> '{str(UUIDS[1]).upper()}'", f"u > '{UUIDS[1]}'", f"'{UUIDS[2]}' >= u",
        f"u in ('{UUIDS[3]}', '{UUIDS[0].hex}')", f"u between '{UUIDS[1]}' and '{UUIDS[2]}'",
    ],
)  # fmt: skip
def test_text_compares_with_uuids_like_in_duckdb(text: str, tmp_path: Path) -> None:
    path = tmp_path / "uuids.parquet"
    pqext.write_table(pa.table({"u": pa.array([one.bytes for one in UUIDS], pa.uuid())}), path, row_group_rows=1)
    expected = [found for (found,) in duckdb.sql(f"select u from '{path}' where {text}").fetchall()]
    scan = pqext.scan(path, filter=text)
    assert scan.to_table()["u"].to_pylist() == expected
    assert sum(len(task.kept_row_groups) for task in scan.plan()) == len(expected)


def test_invalid_uuid_is_rejected_with_the_expected_format(tmp_path: Path) -> None:
    path = tmp_path / "uuids.parquet"
    pqext.write_table(pa.table({"u": pa.array([UUIDS[0].bytes], pa.uuid())}), path)
    with pytest.raises(TypeError, match="a UUID is written as '123e4567-"):
        pqext.read_table(path, filter=col("u") == "7")


def test_uuids_as_text_match_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "uuids.parquet"
    values = [*(one.bytes for one in UUIDS), None]
    table = pa.table({"u": pa.array(values, pa.uuid()), "b": pa.array(values, pa.binary(16))})
    pqext.write_table(table, path, row_group_rows=2)
    expected = [text for (text,) in duckdb.sql(f"select u::varchar from '{path}'").fetchall()]
    assert pqext.read_table(path, [("t", col("u").cast("string"))])["t"].to_pylist() == expected
    found = pqext.read_table(path, [("t", col("u").cast("string"))], f"u::varchar like '%7' or u = '{UUIDS[2]}'")
    assert found["t"].to_pylist() == expected[1:3]
    assert pqext.read_table(path, [("t", col("u").cast("binary"))])["t"].to_pylist() == values
