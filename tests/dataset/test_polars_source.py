"""A lazy frame over a scan gives what polars finds in the table, and reads little for it."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import pqext
from pqext import col, variant
from pqext.dataset.engines.polars_source import translate
from reference.effort import share

ROWS = 400
FRAME = pl.DataFrame(
    {
        "i": [None if n % 13 == 0 else n for n in range(ROWS)],
        "u": pl.Series([n % 250 for n in range(ROWS)], dtype=pl.UInt8),
        "f": [math.nan if n % 17 == 0 else -0.0 if n % 19 == 0 else n / 8 - 20 for n in range(ROWS)],
        "g": pl.Series([n / 10 for n in range(ROWS)], dtype=pl.Float32),
        "s": [None if n % 7 == 0 else f"{'ab' if n % 2 else 'b'}{n // 40}" for n in range(ROWS)],
        "b": [None if n % 5 == 0 else n % 2 == 0 for n in range(ROWS)],
        "d": [dt.date(2024, 1, 1) + dt.timedelta(days=n // 10) for n in range(ROWS)],
        "t": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=n) for n in range(ROWS)],
        "z": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=n) for n in range(ROWS)],
        "st": [None if n % 23 == 0 else {"x": n % 9, "y": str(n)} for n in range(ROWS)],
        "c": pl.Series([f"k{n % 5}" for n in range(ROWS)], dtype=pl.Categorical),
        "l": [[n, None] for n in range(ROWS)],
    }
)


def _stored() -> bytes:
    sink = io.BytesIO()
    pqext.write_table(FRAME, sink, row_group_rows=100, page_rows=20)
    return sink.getvalue()


FILE = _stored()
SCAN = pqext.scan(FILE)

C = pl.col
LEAVES = [
    C("i") > 200, C("i") == 7, C("i") != 7, C("i") <= 12, C("i").is_null(), C("i").is_not_null(),
    C("i").is_in([3, 399]),
    C("i").is_between(150, 160), C("i").is_between(150, 160, closed="left"), C("u") >= 249, C("u") < 3, C("i") > C("u"),
    C("f") > 1.5, C("f") == math.nan, C("f") == 0.0, C("f") != 2.0, C("f") < -10, C("f").is_nan(), C("f").is_in([1.5]),
    C("g") == 0.7, C("g") > 39.8, C("g").is_in([0.3]), C("s") == "ab3", C("s") > "b2", C("s").str.starts_with("ab1"),
    C("s").str.contains("9"), C("s").is_in(["b0", "x"]), C("s").is_in(["b0", None]), C("b"), ~C("b"), C("b").eq(False),
    C("d") >= dt.date(2024, 1, 20), C("d") == dt.date(2024, 2, 2), C("t") < dt.datetime(2024, 1, 2, 5),
    C("t").is_in([dt.datetime(2024, 1, 2, 5)]), C("d").is_in([dt.date(2024, 1, 2)]),
    C("z") > dt.datetime(2024, 1, 10, tzinfo=dt.UTC), C("st").struct.field("x") == 3,
    C("st").struct.field("y").is_null(), C("st").is_null(), C("c") == "k3", C("c").is_in(["k1"]), C("i") + 1 > 300,
    C("i").cast(pl.Float64) > 300.5, C("l").list.len() > 1, C("l").list.get(0) == 5, pl.lit(True),
    C("i").eq_missing(None),
    C("i") < 2, C("t").dt.hour() == 3, C("i") % 50 == 0, C("s").str.len_chars() > 3,
]  # fmt: skip
PREDICATES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
        inner.map(lambda one: ~one),
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("number", range(len(LEAVES)))
def test_each_condition_type_matches_polars(number: int) -> None:
    leaf = LEAVES[number]
    for predicate in (leaf, ~leaf):
        assert_frame_equal(SCAN.to_polars(lazy=True).filter(predicate).collect(), FRAME.filter(predicate))


@settings(max_examples=share(0.4))
@given(
    PREDICATES, st.sampled_from([None, ["i"], ["s", "f"], ["st", "c"]]), st.none() | st.integers(0, 450), st.booleans()
)
def test_queries_match_polars(predicate: Any, names: Any, rows: Any, first: bool) -> None:
    def collect(frame: pl.LazyFrame) -> pl.DataFrame:
        if rows is not None and first:
            frame = frame.head(rows)
        frame = frame.filter(predicate)
        if names is not None:
            frame = frame.select(names)
        return (frame if rows is None or first else frame.head(rows)).collect()

    assert_frame_equal(collect(SCAN.to_polars(lazy=True)), collect(FRAME.lazy()))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (C("i") > 200, "i > 200"),
        (C("i").is_in([3, 5]) & C("s").str.starts_with("a"), "(i in (3, 5) and starts_with(s, 'a'))"),
        ((C("i") % 2 == 0) & (C("s") == "b0"), "s == 'b0'"),
        ((C("i") % 2 == 0) | (C("s") == "b0"), None),
        (~C("b"), "not (b == True)"),
        (C("st").struct.field("x") == 3, "st.x == 3"),
        (C("c") == "k3", None),
        (C("t") < dt.datetime(2024, 1, 2), "t < timestamp '2024-01-02 00:00:00'"),
        (C("g") == 0.7, f"g == {FRAME['g'][7]!r}"),
    ],
)
def test_supported_conditions_are_pushed_down(predicate: Any, expected: str | None) -> None:
    found: list[str | None] = []

    def source(_: Any, pushed: Any, *rest: Any) -> Any:
        one = translate(pushed, FRAME.schema)
        found.append(None if one is None else str(one))
        return iter([FRAME])

    from polars.io.plugins import register_io_source

    register_io_source(source, schema=FRAME.schema).filter(predicate).collect()
    if expected is not None and "timestamp" in expected:
        assert found[0] is not None
        assert found[0].startswith("t < ")
    else:
        assert found == [expected]


def test_query_reads_few_bytes() -> None:
    scan = pqext.scan(FILE)
    frame = scan.to_polars(lazy=True)
    assert scan.metrics is None
    sizes = {}
    seen = []
    keep = pqext.Scan.to_batches

    def record(self: Any, *arguments: Any) -> Any:
        seen.append(self)
        return keep(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pqext.Scan, "to_batches", record)
        for name, query in (
            ("all", frame), ("one column", frame.select("i")), ("one row", frame.filter(C("i") == 150).select("s")),
            ("none", frame.filter(C("i") > 1000)),
        ):
            seen.clear()
            query.collect()
            sizes[name] = seen[-1].metrics
    assert sizes["one column"].bytes < sizes["all"].bytes / 3
    assert sizes["one row"].row_groups == 1
    assert sizes["one row"].rows == 1
    assert sizes["none"].pages == 0


def test_variant_and_partition_values_are_filtered(tmp_path: Path) -> None:
    for year in (2025, 2026):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        events = variant.parse_json([json.dumps({"n": n, "user": f"u{n}"}) for n in range(10)])
        pqext.write_table(pa.table({"event": events}), folder / "a.parquet", shredding={"event": "infer"})
    columns = [("n", col("event").variant("$.n", "int64")), ("user", col("event").variant("$.user", "string")), "year"]
    frame = pqext.scan(tmp_path, columns).to_polars(lazy=True)
    found = frame.filter((C("year") == 2026) & (C("n") >= 8)).select("user", "year").collect()
    assert found.to_dicts() == [{"user": "u8", "year": 2026}, {"user": "u9", "year": 2026}]
    sums = frame.group_by("year").agg(C("n").sum()).sort("year").collect()
    assert sums["n"].to_list() == [45, 45]


def test_limits_of_the_scan_apply_first() -> None:
    scan = pqext.scan(FILE).limit(50, offset=10)
    assert_frame_equal(
        scan.to_polars(lazy=True).filter(C("u") > 40).collect(), FRAME.slice(10, 50).filter(pl.col("u") > 40)
    )
    assert scan.to_polars(lazy=True).head(5).collect().height == 5


def test_corrupt_file_is_a_polars_error_with_our_message() -> None:
    data = bytearray(FILE)
    with pqext.open(FILE) as file:
        start, length = file.row_groups[2].chunk("i").byte_range
    data[start : start + length] = b"\xff" * length
    with pytest.raises(Exception, match="row group 2"):
        pqext.scan(bytes(data)).to_polars(lazy=True).collect()
