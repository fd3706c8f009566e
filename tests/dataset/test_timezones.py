"""``timezone=`` of readers: casts of columns and filters, and what their statistics still prove."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pqext
from pqext import col, filters
from pqext.dataset.expressions.visitors import set_timezone

ZONE = "America/New_York"
HOURS = [datetime(2024, 3, 9, tzinfo=UTC) + timedelta(hours=hour) for hour in range(72)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    at = pa.array(HOURS, pa.timestamp("us", "UTC"))
    local = pc.local_timestamp(at.cast(pa.timestamp("us", ZONE)))
    table = pa.table({"at": at, "local": local, "day": local.cast(pa.date32())})
    pqext.write_table(table, str(tmp_path / "t.parquet"), row_group_rows=6)
    return str(tmp_path / "t.parquet")


@pytest.mark.spec("casts.timezone")
def test_casts_of_plain_columns_match_arrow(path: str) -> None:
    table = pqext.read_table(path)
    casts = [col("at").cast("timestamp_ntz").alias("ntz"), col("at").cast("date").alias("date"),
             col("local").cast("timestamp").alias("back")]  # fmt: skip
    found = pqext.read_table(path, casts, timezone=ZONE)
    assert found.column("ntz").equals(table.column("local"))
    assert found.column("date").equals(table.column("day"))
    assert found.column("back").equals(table.column("at"))
    assert pqext.read_table(path, casts).column("ntz").equals(table.column("at").cast(pa.timestamp("us")))


@pytest.mark.spec("casts.timezone")
def test_filters_prune_by_zone_without_losing_rows(path: str) -> None:
    days = pqext.read_table(path).column("day").to_pylist()
    for day in sorted(set(days)):
        scan = pqext.scan(path, timezone=ZONE).filter(col("at").cast("date") == day)
        assert scan.count() == days.count(day)
        assert sum(group.prune_reason is not None for group in scan.plan()[0].row_groups) >= 6
    saturday = pqext.scan(path, filter="at::date = date '2024-03-09'", timezone=ZONE)
    assert saturday.count() == days.count(date(2024, 3, 9))


@pytest.mark.spec("casts.timezone")
def test_expressions_preserve_their_zone_in_json() -> None:
    whole = set_timezone((col("v").variant("$.a", "date") > date(2024, 1, 1)) & (col("t").cast("string") == "x"), ZONE)
    text = filters.to_json(whole)
    assert text.count(ZONE) == 2
    assert filters.to_json(filters.from_json(text)) == text
    with pytest.raises(ValueError, match="time zone"):
        filters.from_json(text.replace(ZONE, "Mars/Base"))


@pytest.mark.spec("casts.timezone")
def test_casts_that_ignore_the_zone_are_unchanged() -> None:
    whole = (col("v").variant("$.a", "bigint") > 1) & (col("t").cast("double") == 2.5)
    assert set_timezone(whole, ZONE) is whole


def test_unknown_zone_is_an_immediate_error(path: str) -> None:
    with pytest.raises(ValueError, match="time zone 'Mars/Base' is unknown"):
        pqext.scan(path, timezone="Mars/Base")
