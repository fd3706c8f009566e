"""Dates and instants in Spark's legacy calendar, compared with the formula of the Julian day number."""

from __future__ import annotations

import datetime
import io
import pathlib
import random
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.schema.types.legacy_calendar import DATES, VERSION, ZONE
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import row_group_may_match

DAY = 86_400
EPOCH = datetime.date(1970, 1, 1).toordinal()
LAST_JULIAN, FIRST_GREGORIAN = (1582, 10, 4), (1582, 10, 15)


def julian_days(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date in the Julian calendar, by its Julian day number (J. Meeus, and Wikipedia)."""
    before = (14 - month) // 12
    years, months = year + 4800 - before, month + 12 * before - 3
    return day + (153 * months + 2) // 5 + 365 * years + years // 4 - 32_083 - 2_440_588


def dates() -> list[tuple[int, int, int]]:
    chance = random.Random(4)
    drawn = [(chance.randrange(1, 1582), chance.randrange(1, 13), chance.randrange(1, 29)) for _ in range(300)]
    ends = product([1, 4, 99, 100, 101, 400, 1000, 1500, 1581], [(1, 1), (2, 28), (3, 1), (12, 31)])
    return [*drawn, *((year, month, day) for year, (month, day) in ends), LAST_JULIAN]


def written(column: pa.Array, zone: str | None, version: str | None = "3.5.0") -> io.BytesIO:
    notes = {VERSION: version, DATES: "", ZONE: zone} if version else {}
    notes = {key: value for key, value in notes.items() if value is not None}
    pq.write_table(pa.table({"a": column}).replace_schema_metadata(notes), out := io.BytesIO())
    return out


def read(column: pa.Array, zone: str) -> pa.ChunkedArray:
    return pqext.read_table(written(column, zone))["a"]


def test_dates_keep_their_year_month_and_day() -> None:
    assert julian_days(*LAST_JULIAN) + 1 == datetime.date(*FIRST_GREGORIAN).toordinal() - EPOCH
    first = datetime.date(*FIRST_GREGORIAN)
    stored = [*(julian_days(*date) for date in dates()), first.toordinal() - EPOCH, 0]
    expected = [*(datetime.date(*date) for date in dates()), first, datetime.date(1970, 1, 1)]
    assert read(pa.array(stored, pa.int32()).cast(pa.date32()), "UTC").to_pylist() == expected


@pytest.mark.parametrize(("unit", "per_second"), [("ms", 1_000), ("us", 1_000_000)])
@pytest.mark.parametrize(("zone", "offset"), [("UTC", 0), ("+05:30", 19_800), ("-08:00", -28_800), ("Z", 0)])
def test_instants_keep_their_local_date_and_time(zone: str, offset: int, unit: str, per_second: int) -> None:
    stored, expected = [], []
    for date, second in product(dates(), (0, 1, 40_000, DAY - 1)):
        stored.append((julian_days(*date) * DAY + second - offset) * per_second)
        expected.append(((datetime.date(*date).toordinal() - EPOCH) * DAY + second - offset) * per_second)
    for date in (FIRST_GREGORIAN, (1899, 12, 31), (1900, 1, 1), (2024, 2, 29)):
        stored.append(((datetime.date(*date).toordinal() - EPOCH) * DAY - offset) * per_second)
        expected.append(stored[-1])
    column = pa.array(stored, pa.int64()).cast(pa.timestamp(unit, "UTC"))
    assert read(column, zone).cast(pa.int64()).to_pylist() == expected


@pytest.mark.parametrize("year", [100, 200, 300, 500, 600, 700, 900, 1000, 1100, 1300, 1400, 1500])
@pytest.mark.parametrize("hours", [0, 7])
def test_bounds_include_leap_days_that_are_read_after_later_instants(year: int, hours: int) -> None:
    local = [(julian_days(year, 2, 29), 12), (julian_days(year, 3, 1), 1)]
    stored = [(days * 24 + hour - hours) * 3_600_000_000 for days, hour in local]
    out = written(pa.array(stored, pa.int64()).cast(pa.timestamp("us", "UTC")), f"+{hours:02}:00")
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    noon, one, between = (datetime.datetime(year, 3, 1, hour, tzinfo=zone) for hour in (12, 1, 6))
    assert pqext.read_table(out)["a"].to_pylist() == [noon, one]
    for condition, expected in ((pqext.col("a") < between, one), (pqext.col("a") > between, noon)):
        assert pqext.read_table(out, filter=condition)["a"].to_pylist() == [expected]
    midnight, a_day = datetime.datetime(year, 3, 1, tzinfo=zone), datetime.timedelta(days=1)
    with pqext.open(out) as file:
        for condition in (pqext.col("a") < midnight, pqext.col("a") >= midnight + a_day):
            assert not row_group_may_match(bind(condition, file.schema), file.row_groups[0])


def may_match(out: io.BytesIO, condition: pqext.Expression, **options: Any) -> bool:
    with pqext.open(out, **options) as file:
        return row_group_may_match(bind(condition, file.schema), file.row_groups[0])


def test_row_groups_are_pruned_by_converted_dates() -> None:
    stored = [julian_days(1000, 6, 1), julian_days(1500, 6, 1)]
    out = written(pa.array(stored, pa.int32()).cast(pa.date32()), "UTC")
    first, last, a = datetime.date(1000, 6, 1), datetime.date(1500, 6, 1), pqext.col("a")
    assert [may_match(out, condition) for condition in (a <= first, a >= last)] == [True, True]
    assert [may_match(out, condition) for condition in (a < first, a > last)] == [False, False]


ANCIENT = datetime.datetime(1000, 6, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
MODERN = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


def ancient_and_modern(zone: str | None) -> io.BytesIO:
    """A file with ``ANCIENT``, as stored by a writer at +02:00, and ``MODERN``."""
    stored = [(julian_days(1000, 6, 1) * 24 + 10) * 3_600_000_000, int(MODERN.timestamp()) * 1_000_000]
    return written(pa.array(stored, pa.int64()).cast(pa.timestamp("us", "UTC")), zone)


@pytest.mark.parametrize("zone", [None, "Mars/Utopia", "+19:00"])
def test_option_replaces_a_missing_or_unknown_time_zone(zone: str | None) -> None:
    out = ancient_and_modern(zone)
    assert pqext.read_table(out, legacy_timezone="+02:00")["a"].to_pylist() == [ANCIENT, MODERN]
    with pytest.raises(pqext.UnsupportedError, match="time zone"):
        pqext.read_table(out)
    # Without the zone, the bounds of the ancient instant are unknown.
    assert may_match(out, pqext.col("a") < ANCIENT)
    assert not may_match(out, pqext.col("a") < ANCIENT, legacy_timezone="+02:00")


def test_recorded_time_zone_takes_precedence_over_the_option() -> None:
    found = pqext.read_table(ancient_and_modern("+02:00"), legacy_timezone="+05:00")
    assert found["a"].to_pylist() == [ANCIENT, MODERN]


@pytest.mark.parametrize("zone", ["Mars/Utopia", "+19:00"])
def test_unknown_time_zone_in_the_option_is_rejected(zone: str) -> None:
    with pytest.raises(ValueError, match="legacy_timezone"):
        pqext.read_table(ancient_and_modern(None), legacy_timezone=zone)


@pytest.mark.parametrize("options", [{}, {"datetime_rebase_mode": "exception"}])
def test_modern_instants_need_no_calendar(options: Any) -> None:
    column = pa.array([MODERN], pa.timestamp("us", "UTC"))
    out = written(column, None, None if options else "3.5.0")
    assert pqext.read_table(out, **options)["a"].to_pylist() == [MODERN]
    a = pqext.col("a")
    assert [may_match(out, condition, **options) for condition in (a < MODERN, a == MODERN, a > MODERN)] == [
        False, True, False
    ]


@pytest.mark.parametrize(
    ("type", "below", "value", "above"),
    [
        (pa.date32(), datetime.date(1582, 10, 14), datetime.date(1582, 10, 15), datetime.date(2000, 1, 1)),
        (
            pa.timestamp("us", "UTC"),
            datetime.datetime(1899, 12, 31, 23, tzinfo=datetime.UTC),
            datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC),
            MODERN,
        ),
    ],
)
def test_ambiguous_values_are_an_error_on_request(type: pa.DataType, below: Any, value: Any, above: Any) -> None:
    a, options = pqext.col("a"), {"datetime_rebase_mode": "exception"}
    known = written(pa.array([value, above], type), None, None)
    assert pqext.read_table(known, **options)["a"].to_pylist() == [value, above]
    assert [may_match(known, condition, **options) for condition in (a < value, a > above)] == [False, False]
    ambiguous = written(pa.array([below, value], type), None, None)
    assert pqext.read_table(ambiguous)["a"].to_pylist() == [below, value]
    with pytest.raises(pqext.UnsupportedError, match="READ_ANCIENT_DATETIME"):
        pqext.read_table(ambiguous, **options)
    # A bound that is ambiguous prunes nothing.
    assert [may_match(ambiguous, condition, **options) for condition in (a < below, a > value)] == [True, False]


def test_files_of_different_calendars_are_neither_joined_nor_appended_to(tmp_path: pathlib.Path) -> None:
    dates, modern = pa.array([0, 1], pa.int32()).cast(pa.date32()), tmp_path / "modern"
    modern.write_bytes(written(dates, None, None).getvalue())
    (tmp_path / "legacy").write_bytes(written(dates, "UTC").getvalue())
    (tmp_path / "zone").write_bytes(written(dates, "Asia/Tokyo").getvalue())
    with pytest.raises(pqext.UnsupportedError, match="column a uses Spark's legacy calendar"):
        pqext.write_table(pa.table({"a": dates}), tmp_path / "legacy", append=True)
    with pytest.raises(pqext.UnsupportedError, match="use a different Spark calendar"):
        pqext.concatenate([tmp_path / "legacy", modern], tmp_path / "joined")
    with pytest.raises(ValueError, match="must contain the keys that declare the calendar"):
        pqext.concatenate([tmp_path / "legacy"] * 2, tmp_path / "joined", key_value_metadata={"a": "b"})
    pqext.concatenate([tmp_path / "legacy", tmp_path / "zone"], tmp_path / "joined")  # dates have no time zone
    assert pqext.read_table(tmp_path / "joined")["a"].to_pylist() == dates.to_pylist() * 2
