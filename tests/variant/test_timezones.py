"""Time zones of casts: offsets as zoneinfo has them, and bounds that no time within them leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.dataset.evaluation.operand_values import to_shredded
from pqext.variant.monotone import monotone_cast
from pqext.variant.timezones import Shift, TimeZone, find_timezone

NAMES = (
    "America/New_York", "Europe/London", "Europe/Dublin", "Australia/Lord_Howe", "Africa/Casablanca",
    "Pacific/Apia", "America/Sao_Paulo", "Asia/Kathmandu", "Antarctica/Troll",
)  # fmt: skip
EPOCH = datetime(1970, 1, 1)


def zone_of(name: str) -> TimeZone:
    found = find_timezone(name)
    assert found is not None
    return found


def seconds(zone: TimeZone) -> st.SearchStrategy[int]:
    """Any time of Python's calendar, and times near the zone's changes."""
    near = st.builds(int.__add__, st.sampled_from(zone.transitions), st.integers(-90_000, 90_000))
    return st.one_of(near, st.integers(-60_000_000_000, 250_000_000_000))


def cast(micros: list[int], given: pa.DataType, type: str, zone: str) -> list[int]:
    array = pa.array(micros, pa.int64()).cast(given)
    result: list[int] = variant.get(to_shredded(array), "$", type, timezone=zone).cast(pa.int64()).to_pylist()
    return result


@pytest.mark.spec("casts.timezone")
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_casts_between_instants_and_local_times_match_zoneinfo(name: str, data: st.DataObject) -> None:
    zone, rules = zone_of(name), ZoneInfo(name)
    times = data.draw(st.lists(seconds(zone), min_size=1, max_size=20))
    naive = [EPOCH + timedelta(seconds=second) for second in times]
    local = [time.replace(tzinfo=UTC).astimezone(rules).replace(tzinfo=None) for time in naive]
    instants = [time.replace(tzinfo=rules).astimezone(UTC).replace(tzinfo=None) for time in naive]
    micros = [second * 1_000_000 for second in times]
    found = cast(micros, pa.timestamp("us", "UTC"), "timestamp_ntz", name)
    assert found == [(time - EPOCH) // timedelta(microseconds=1) for time in local]
    found = cast(micros, pa.timestamp("us"), "timestamp", name)
    assert found == [(time - EPOCH) // timedelta(microseconds=1) for time in instants]


@pytest.mark.spec("casts.timezone")
def test_zones_repeat_after_400_years() -> None:
    for name in NAMES:
        micros = [(datetime(2400, month, 1) - EPOCH) // timedelta(microseconds=1) for month in range(1, 13)]
        shift = 146_097 * 86_400_000_000
        near = cast(micros, pa.timestamp("us", "UTC"), "timestamp_ntz", name)
        for cycles in (1, 30, 700):
            later = cast([one + cycles * shift for one in micros], pa.timestamp("us", "UTC"), "timestamp_ntz", name)
            assert [one - cycles * shift for one in later] == near


@pytest.mark.spec("casts.timezone")
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_cast_bounds_contain_all_times_within(name: str, data: st.DataObject) -> None:
    zone = zone_of(name)
    times = sorted(data.draw(st.lists(seconds(zone), min_size=2, max_size=30)))
    micros = [second * 1_000_000 for second in times]
    for given_, type in ((pa.timestamp("us", "UTC"), "timestamp_ntz"), (pa.timestamp("us"), "timestamp")):
        target = pa.timestamp("us") if type == "timestamp_ntz" else pa.timestamp("us", "UTC")
        made = monotone_cast(given_, target, name)
        assert made is not None
        values = [one * 1000 for one in cast(micros, given_, type, name)]
        assert made.bound(micros[0] * 1000, False) <= min(values)
        assert made.bound(micros[-1] * 1000, True) >= max(values)
        assert not made.is_injective_at(values[0])


@pytest.mark.spec("casts.timezone")
def test_bounds_match_the_next_and_the_last_transition() -> None:
    back = Shift((100,), (0, -10))
    assert back.minimum_result(95 * 10**9) == 90 * 10**9
    assert back.minimum_result(100 * 10**9) == 90 * 10**9
    assert back.minimum_result(80 * 10**9) == 80 * 10**9
    assert back.maximum_result(105 * 10**9) == 100 * 10**9 - 1
    assert back.maximum_result(115 * 10**9) == 105 * 10**9
    assert back.maximum_result(99 * 10**9) == 99 * 10**9


@pytest.mark.spec("casts.timezone")
@pytest.mark.parametrize("name", ["Europe/Amsterdam", "America/New_York"])
def test_bounds_after_the_listed_transitions_contain_both_offsets(name: str) -> None:
    zone = ZoneInfo(name)
    for year in (2500, 2900):
        winter, summer = (datetime(year, month, 15, tzinfo=UTC) for month in (1, 7))
        made = monotone_cast(pa.timestamp("us", "UTC"), pa.timestamp("us"), name)
        assert made is not None
        for instant in (winter, summer):
            since = (instant - EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1) * 1000
            local = since + instant.astimezone(zone).utcoffset() // timedelta(microseconds=1) * 1000
            assert made.bound(since, False) <= local <= made.bound(since, True)
            assert made.bound(since, True) - made.bound(since, False) <= 86_400 * 10**9


@pytest.mark.spec("casts.timezone")
@pytest.mark.parametrize("name", NAMES)
def test_bounds_of_dates_contain_their_midnight(name: str) -> None:
    days = [(datetime(year, month, 9) - EPOCH).days for year in (1900, 2000, 2030) for month in (1, 4, 8, 11)]
    made = monotone_cast(pa.date32(), pa.timestamp("us", "UTC"), name)
    assert made is not None
    instants = variant.get(to_shredded(pa.array(days, pa.int32()).cast(pa.date32())), "$", "timestamp", timezone=name)
    for day, micros in zip(days, instants.cast(pa.int64()).to_pylist(), strict=True):
        midnight = (EPOCH + timedelta(days=day)).replace(tzinfo=ZoneInfo(name))
        assert (midnight - EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1) == micros
        assert made.bound(day, False) <= micros * 1000 <= made.bound(day, True)
        assert made.bound(day, True) - made.bound(day, False) <= 86_400 * 10**9


@pytest.mark.spec("casts.timezone")
def test_local_times_match_arrow() -> None:
    times = [datetime(2024, month, 1, 3, 30) for month in range(1, 13)]
    instants = pa.array(times, pa.timestamp("us", "UTC"))
    local = pc.local_timestamp(instants.cast(pa.timestamp("us", "America/New_York")))
    found = variant.get(to_shredded(instants), "$", "timestamp_ntz", timezone="America/New_York")
    assert found.equals(local)
    assert variant.get(to_shredded(local), "$", "timestamp", timezone="America/New_York").equals(instants)


@pytest.mark.spec("casts.timezone")
def test_nested_values_and_exploded_rows_use_the_zone() -> None:
    moment = datetime(2024, 7, 1, 1, tzinfo=UTC)
    values = variant.from_python([{"a": [moment]}, {"a": ["2024-07-01 01:00:00"]}])
    zone = "America/New_York"
    assert variant.get(values, "$.a", "array<date>", timezone=zone).to_pylist()[0] == [datetime(2024, 6, 30).date()]
    assert variant.get(values, "$.a", "array<timestamp>", timezone=zone).to_pylist()[1] == [
        datetime(2024, 7, 1, 5, tzinfo=UTC)
    ]
    assert variant.get(values, "$", str, timezone=zone).to_pylist()[0] == '{"a":["2024-06-30 21:00:00-04:00"]}'
    rows = variant.explode(values, "$.a", "timestamp_ntz", timezone=zone)
    assert rows.column("value").to_pylist() == [datetime(2024, 6, 30, 21), datetime(2024, 7, 1, 1)]
    shredded = variant.shred(values, "struct<a: array<timestamp>>")
    assert variant.to_json(shredded, timezone=zone).to_pylist() == variant.to_json(values, timezone=zone).to_pylist()


@pytest.mark.parametrize("name", ["Europe/Pariss", "../etc/passwd", "", "+19:00", "+01:75", "Europe"])
def test_unknown_zones_are_rejected_by_name(name: str) -> None:
    with pytest.raises(ValueError, match="time zone"):
        find_timezone(name)


def test_offsets_and_utc_names_are_accepted() -> None:
    assert [find_timezone(name) for name in ("UTC", "Z", "+00:00", "Etc/UTC", "GMT")] == [None] * 5
    assert zone_of("UTC+05:30").offsets == zone_of("+0530").offsets == (19_800,)
    assert zone_of("-8").offsets == (-28_800,)
