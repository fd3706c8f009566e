"""Dates and instants in Spark's legacy calendar, compared with the formula of the Julian day number."""

from __future__ import annotations

import datetime
import io
import random
from itertools import product

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


def written(column: pa.Array, zone: str) -> io.BytesIO:
    notes = {VERSION: "3.5.0", DATES: "", ZONE: zone}
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
