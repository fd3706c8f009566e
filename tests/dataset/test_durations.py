"""Conditions on durations: ``timedelta`` and the like in Python, ``interval`` in SQL."""

from __future__ import annotations

import datetime
import pickle
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import col, filters
from pqext.core.format.predicate import COMPARE
from pqext.dataset.expressions import Comparison, IsIn, Not, Relation
from pqext.dataset.notations.sql import from_sql
from reference.evaluate import truths

UNITS = ["s", "ms", "us", "ns"]
LITERALS = st.one_of(
    st.sampled_from([timedelta(0), timedelta(seconds=1), timedelta(milliseconds=-1500), timedelta(microseconds=1)]),
    st.sampled_from([timedelta.max, timedelta.min]),
    st.integers(-3, 3).map(lambda nanoseconds: pa.scalar(nanoseconds, pa.duration("ns"))),
)


@given(
    st.sampled_from(UNITS), st.lists(st.none() | st.integers(-3, 3) | st.sampled_from([10**9, -(2**62)]), max_size=6),
    st.sampled_from(sorted(COMPARE)), LITERALS, st.lists(st.none() | LITERALS, max_size=3), st.booleans(),
)  # fmt: skip
def test_comparison_is_exact_for_every_unit_and_layout(
    unit: str, ticks: list[Any], operator: Any, literal: Any, listed: list[Any], negated: bool
) -> None:
    batch = pa.record_batch({"d": pa.array(ticks, pa.duration(unit)), "n": pa.array(range(len(ticks)))})
    sink = pa.BufferOutputStream()
    pqext.write_table(pa.Table.from_batches([batch]), sink, row_group_rows=2, page_rows=1)
    for condition in (Comparison(col("d"), operator, literal), IsIn(col("d"), tuple(listed))):
        asked = Not(condition) if negated else condition
        scan = pqext.scan(sink.getvalue().to_pybytes(), ["n"], asked)
        expected = [row for row, truth in enumerate(truths(asked, batch)) if truth]
        assert scan.to_table()["n"].to_pylist() == expected
        assert scan.count() == len(expected)


ROWS = pa.table({
    "d": pa.array([None, timedelta(0), timedelta(hours=1), timedelta(days=-1), timedelta(days=2)], pa.duration("us")),
    "n": range(5),
})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pqext.write_table(ROWS, tmp_path / "durations.parquet", row_group_rows=2)
    return tmp_path / "durations.parquet"


def numbers(path: Path, filter: Any) -> list[int]:
    return list(pqext.read_table(path, ["n"], filter)["n"].to_pylist())


@pytest.mark.parametrize(
    ("condition", "theirs"),
    [
        (col("d") > timedelta(minutes=30), pl.col("d") > timedelta(minutes=30)),
        (col("d") <= timedelta(0), pl.col("d") <= timedelta(0)),
        (col("d").isin([timedelta(days=2), timedelta(5)]), pl.col("d").is_in([timedelta(days=2), timedelta(5)])),
        (~(col("d") == timedelta(hours=1)), ~(pl.col("d") == timedelta(hours=1))),
        (col("d").between(timedelta(0), timedelta(1)), pl.col("d").is_between(timedelta(0), timedelta(1))),
    ],
    ids=str,
)  # fmt: skip
def test_polars_returns_the_same_rows(path: Path, condition: Any, theirs: pl.Expr) -> None:
    frame = pl.from_arrow(ROWS)
    assert isinstance(frame, pl.DataFrame)
    expected = frame.filter(theirs)["n"].to_list()
    assert numbers(path, condition) == numbers(path, filters.to_json(condition)) == expected
    assert numbers(path, pickle.loads(pickle.dumps(condition))) == expected


@pytest.mark.parametrize(
    "literal",
    [
        timedelta(hours=1), np.timedelta64(1, "h"), np.timedelta64(3600, "s"), np.timedelta64(3_600 * 10**9, "ns"),
        pd.Timedelta(hours=1), pa.scalar(3600, pa.duration("s")),
    ],
    ids=repr,
)  # fmt: skip
def test_durations_of_all_libraries_are_equal_literals(path: Path, literal: Any) -> None:
    assert numbers(path, col("d") == literal) == [2]
    assert (col("d") == literal) == (col("d") == timedelta(hours=1))


TEXTS = [
    "interval '1 day'", "interval 1 day", "interval '1' day", "interval '01:30:00'", "interval '2 days 3 hours'",
    "interval '-1 day'", "interval '1.5 seconds'", "interval 1.5 seconds", "interval '2 weeks'", "interval '1d 2h'",
    "interval '3 ms'", "interval '3 us'", "interval '1:30'", "interval (90) minute", "interval '90 mins'",
    "interval '-01:30:00'", "interval '1 day -01:00:00'", "interval '1 hour 30 minutes 5.25 seconds'",
    "interval '100 milliseconds'", "- interval '5' minutes",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_intervals_match_duckdb(path: Path, text: str) -> None:
    ((meant,),) = duckdb.sql(f"select {text}").fetchall()
    assert from_sql(f"d > {text}") == (col("d") > meant)
    expected = ROWS.filter(pc.greater(ROWS["d"], pa.scalar(meant, pa.duration("us"))))["n"].to_pylist()
    assert numbers(path, f"d > {text}") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("interval '1 month'", "length varies"), ("interval 2 years", "length varies"),
        ("interval '1-2' year to month", "a duration must be written as"), ("interval 'soon'", "is not a duration"),
        ("interval '1 fortnight'", "is not a unit of time"), ("interval '0.1 ns us'", "is not a unit|not a duration"),
        ("interval '90'", "is not a duration"), ("interval '1 day 2'", "is not a duration"),
        ("interval '1 day' day", "'or' or the end"),
    ],
)  # fmt: skip
def test_intervals_of_variable_length_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_sql(f"d > {text}")


@pytest.mark.parametrize("operator", sorted(COMPARE))
@pytest.mark.parametrize("schema", [None, "union"])
def test_bounds_in_other_units_do_not_prune(tmp_path: Path, operator: Any, schema: Any) -> None:
    # As pyarrow compares them, the first row is equal. By the bounds of the integers that are stored none would be.
    path = tmp_path / "units.parquet"
    table = pa.table({"a": pa.array([1, 2], pa.duration("s")), "b": pa.array([1000, 2001], pa.duration("ms"))})
    assert pc.equal(table["a"], table["b"]).to_pylist() == [True, False]
    pqext.write_table(table, path)
    for condition in (Relation(col("a"), operator, col("b")), ~Relation(col("a"), operator, col("b"))):
        for trust in (True, False):
            scan = pqext.scan(path, filter=condition, schema=schema, trust_statistics=trust)
            for read in (scan.count, scan.to_table):
                with pytest.raises(TypeError, match=r"duration\[s\] values cannot be compared"):
                    read()


def test_durations_compare_only_with_durations(tmp_path: Path) -> None:
    path = tmp_path / "units.parquet"
    table = pa.table({"a": pa.array([1], pa.duration("s")), "b": pa.array([1], pa.duration("ms")), "n": [1]})
    pqext.write_table(table.append_column("c", table["a"]), path)
    assert pqext.scan(path, filter=col("a") == col("c")).count() == 1
    with pytest.raises(TypeError, match=r"duration\[s\] values cannot be compared with duration\[ms\]"):
        pqext.read_table(path, filter=col("a") == col("b"))
    with pytest.raises(TypeError, match="contains integer values"):
        pqext.read_table(path, filter=col("n") == timedelta(seconds=1))
    with pytest.raises(TypeError, match="cannot be compared with '1 s'"):
        pqext.read_table(path, filter=col("a") == "1 s")


@pytest.mark.parametrize(
    "type",
    [
        pa.bool_(), pa.binary(), pa.date32(), pa.decimal128(9, 2), pa.float32(), pa.float64(), pa.string(),
        pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC"),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [0, 1])
def test_duration_of_other_column_is_rejected_before_reading(type: pa.DataType, rows: int) -> None:
    values = pa.nulls(rows, type)
    with pytest.raises(pa.ArrowNotImplementedError, match=r"no kernel matching|Unsupported cast"):
        pc.equal(values, timedelta(days=1))
    pqext.write_table(pa.table({"a": values}), sink := BytesIO())
    for condition in (col("a") == timedelta(days=1), ~(col("a") < timedelta(days=1)), col("a").isin([timedelta(1)])):
        with pytest.raises(TypeError, match=r"column 'a' contains .* cannot be compared with datetime\.timedelta"):
            pqext.scan(sink, filter=condition).to_table()


@pytest.mark.parametrize("unit", UNITS)
def test_numbers_and_text_do_not_compare_with_durations(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "units.parquet"
    pqext.write_table(pa.table({"d": pa.array([1, 2], pa.duration(unit)), "n": [0, 1]}), path)
    with pytest.raises(pa.ArrowNotImplementedError, match="no kernel matching"):
        pc.equal(pa.array([1], pa.duration(unit)), 1)
    for condition in (col("d") == 1, col("d") > 10**6, ~(col("d") < 1.5), col("d").isin([1]), col("d") == "1 s"):
        for trust in (True, False):
            scan = pqext.scan(path, filter=condition, trust_statistics=trust)
            for read in (scan.count, scan.to_table):
                with pytest.raises(TypeError, match=rf"contains duration\[{unit}\] values, which cannot be compared"):
                    read()
    with pytest.raises(TypeError, match=rf"column 'd' contains duration\[{unit}\] values, but contains requires text"):
        pqext.read_table(path, filter=col("d").contains("x"))
    for text in (col("d") == 2, "d = 2"):
        with pytest.raises(TypeError, match="; write ") as raised:
            pqext.read_table(path, filter=text)
        written = str(raised.value).partition("; write ")[2].partition("\n")[0]
        names = {"datetime": datetime, "pyarrow": pa}
        assert numbers(path, f"d = {written}" if isinstance(text, str) else col("d") == eval(written, names)) == [1]
