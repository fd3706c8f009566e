"""Statistics for Delta: held against the values, against those that delta-rs writes, and used by it for skipping."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from table_metrics.tables import written, written_by_pyarrow
from table_metrics.test_variant_bounds import column as variants
from table_metrics.test_variant_bounds import decoded

import pqext
from pqext import geo, table_metrics
from pqext.core.base.errors import UnsupportedError
from pqext.table_metrics.variant_bounds import decode_z85, encode_z85
from reference.effort import share

VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    "integer": (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "double": (pa.float64(), st.floats()),
    "float": (pa.float32(), st.floats(width=32)),
    "date": (pa.date32(), st.dates()),
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=50)),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes().map(lambda one: one.replace(tzinfo=UTC))),
    "timestamp_ntz": (pa.timestamp("us"), st.datetimes()),
    "decimal(38,2)": (pa.decimal128(38, 2), st.decimals(-(10**35), 10**35, places=2)),
}
COLUMNS = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.tuples(st.just(name), st.lists(st.none() | VALUES[name][1], max_size=10))
)


def read(found: table_metrics.DeltaStatistics) -> dict[str, Any]:
    """The statistics as a reader of JSON sees them, numbers exact."""
    whole: dict[str, Any] = json.loads(found.to_json(), parse_float=Decimal)
    return whole


def parsed(name: str, bound: Any) -> Any:
    """A bound of JSON as a value of its type."""
    if name == "date":
        return date.fromisoformat(bound)
    if name.startswith("timestamp"):
        assert bound.endswith("Z") is (name == "timestamp")
        return datetime.fromisoformat(bound)
    return float(bound) if name in ("double", "float") else bound


@pytest.mark.spec("metrics.delta.counts", "metrics.delta.values", "metrics.delta.text", "metrics.delta.nan")
@settings(max_examples=share(2.0))
@given(COLUMNS, st.booleans(), st.sampled_from([1, 3, 100]))
def test_statistics_match_the_values(column: tuple[str, list[Any]], exact: bool, row_group_rows: int) -> None:
    name, given_values = column
    table = pa.table({"c": pa.array(given_values, VALUES[name][0])})
    found = read(table_metrics.delta(written(table, row_group_rows=row_group_rows), exact))
    values = table["c"].to_pylist()
    present = [value for value in values if value is not None]
    assert (found["numRecords"], found["nullCount"]) == (len(values), {"c": len(values) - len(present)})
    nan = any(isinstance(value, float) and math.isnan(value) for value in present)
    low, high = (found[side].get("c") for side in ("minValues", "maxValues"))
    if not present or nan:
        assert (low, high) == (None, None)
        return
    least, most = min(present), max(present)
    if name in ("float", "double"):
        assert (low is None, high is None) == (math.isinf(least), math.isinf(most))
    if low is not None:
        low = parsed(name, low)
        assert low <= least
        if name.startswith("timestamp"):
            assert least - low < timedelta(milliseconds=1)
        else:
            assert low == (least[:32] if name == "string" else least)
    if high is not None:
        high = parsed(name, high)
        assert high >= most
        if name.startswith("timestamp"):
            assert high - most < timedelta(milliseconds=1)
        elif name != "string" or len(most) <= 32:
            assert high == most
        else:
            assert re.fullmatch(re.escape(most[:32]) + "\U0010ffff*", high)
    else:
        assert name in ("float", "double", "timestamp", "timestamp_ntz")


@pytest.mark.spec("metrics.delta.nan")
@pytest.mark.parametrize("exact", [False, True])
def test_floats_have_bounds_if_there_is_no_nan(exact: bool) -> None:
    table = pa.table({"n": [1.0, math.nan], "f": [1.0, 2.0], "g": [-math.inf, 2.0]})
    found = table_metrics.delta(written(table), exact)
    assert (found.min_values, found.max_values) == ({"f": 1.0}, {"f": 2.0, "g": 2.0})
    uncounted = table_metrics.delta(written_by_pyarrow(table), exact)
    assert (set(uncounted.min_values), set(uncounted.max_values)) == (({"f"}, {"f", "g"}) if exact else (set(), set()))


@pytest.mark.spec("metrics.delta.text")
def test_tie_breaker_sorts_after_text_that_continues() -> None:
    last = "\U0010ffff"
    for tail, expected in (("b", "a" * 32 + last), (last + "b", "a" * 32 + last * 2), (last, "a" * 32 + last)):
        value = "a" * 32 + tail
        found = table_metrics.delta(written(pa.table({"c": [value]})))
        assert found.max_values == {"c": expected}
        assert found.max_values["c"] >= value
        assert found.min_values == {"c": "a" * 32}


@pytest.mark.spec("metrics.delta.timestamps")
def test_timestamps_are_truncated_to_milliseconds_outward() -> None:
    moments = pa.array([-1, 1_000_001], pa.timestamp("us", "UTC"))
    found = table_metrics.delta(written(pa.table({"c": moments, "n": moments.cast(pa.timestamp("us"))})))
    assert found.min_values == {"c": "1969-12-31T23:59:59.999Z", "n": "1969-12-31T23:59:59.999"}
    assert found.max_values == {"c": "1970-01-01T00:00:01.001Z", "n": "1970-01-01T00:00:01.001"}


@pytest.mark.spec("metrics.delta.timestamps")
def test_years_out_of_range_are_omitted() -> None:
    far = 400_000 * 10**6
    table = pa.table({"d": pa.array([0, 4_000_000], pa.date32()), "t": pa.array([0, far * 10**6], pa.timestamp("us"))})
    found = table_metrics.delta(written(table))
    assert (found.min_values, found.max_values) == ({"d": "1970-01-01", "t": "1970-01-01T00:00:00.000"}, {})
    before = table_metrics.delta(written(pa.table({"d": pa.array([-1_000_000, 0], pa.date32())})))
    assert (before.min_values, before.max_values) == ({}, {"d": "1970-01-01"})


@pytest.mark.spec("metrics.delta.counts")
@pytest.mark.parametrize("exact", [False, True])
def test_columns_are_nested_like_structs_and_lists_and_maps_are_omitted(exact: bool) -> None:
    table = pa.table({
        "s": [{"x": 1, "t": {"y": "a"}}, None, {"x": None, "t": {"y": "b"}}], "l": [[1], [], None],
        "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())), "b": [b"x", None, b"y"],
    })  # fmt: skip
    found = read(table_metrics.delta(written(table), exact))
    assert found["nullCount"] == {"s": {"x": 2, "t": {"y": 1}}, "b": 1}
    assert found["minValues"] == {"s": {"x": 1, "t": {"y": "a"}}}
    assert found["maxValues"] == {"s": {"x": 1, "t": {"y": "b"}}}
    assert read(table_metrics.delta(written(table), exact, columns=["b"]))["nullCount"] == {"b": 1}


@pytest.mark.spec("metrics.delta.values")
def test_types_unsupported_by_delta_have_no_bounds() -> None:
    table = pa.table({
        "time": pa.array([1], pa.time64("us")), "fixed": pa.array([b"abc"], pa.binary(3)),
        "half": pa.array([0.5], pa.float16()), "big": pa.array([1 << 63], pa.uint64()),
        "byte": pa.array([3], pa.int8()), "point": geo.from_points([1.0], [2.0]),
    })  # fmt: skip
    found = table_metrics.delta(written(table), exact=True)
    assert (found.min_values, found.max_values) == ({"byte": 3}, {"byte": 3})
    assert set(found.null_count) == set(table.column_names)


@pytest.mark.spec("metrics.delta.tight")
def test_bounds_are_tight_if_known_to_be_values() -> None:
    short, long = pa.table({"a": [1, 2], "b": ["x", "y"]}), pa.table({"a": [1, 2], "b": ["x" * 100, "y"]})
    assert table_metrics.delta(written(short)).tight_bounds is True
    assert table_metrics.delta(written(long)).tight_bounds is False  # whose footer has 64 bytes of the text
    assert table_metrics.delta(written(long), columns=["a"]).tight_bounds is True
    assert table_metrics.delta(written(long), exact=True).tight_bounds is True
    shredded = written(variants({"a": 1}), shredding={"v": "a BIGINT"})
    assert table_metrics.delta(shredded).tight_bounds is False
    assert table_metrics.delta(shredded, exact=True).tight_bounds is True


@pytest.mark.spec("metrics.delta.variant")
@pytest.mark.parametrize("exact", [False, True])
def test_variant_bounds_are_z85(exact: bool) -> None:
    table = variants({"a": 3, "b": "x" * 20}, None, {"a": 5}, {"b": 1})
    found = table_metrics.delta(written(table, shredding={"v": "a BIGINT, b STRING"}), exact)
    assert found.null_count == {"v": 1}
    low, high = decode_z85(found.min_values["v"]), decode_z85(found.max_values["v"])
    assert (_padded(low), _padded(high)) == ({"$['a']": 3}, {"$['a']": 5})
    both = table_metrics.iceberg(written(table, shredding={"v": "a BIGINT, b STRING"}), exact)
    assert low.rstrip(b"\0") == both.lower_bounds[1].rstrip(b"\0")


def _padded(bound: bytes) -> dict[str, Any]:
    """A bound behind which zeros stand, as the decoder of Delta cuts them off."""
    for end in range(len(bound), len(bound) - 4, -1):
        if not any(bound[end:]):
            try:
                return decoded(bound[:end])
            except ValueError:
                continue
    raise AssertionError("no end of the padding gives a variant")


def test_unshredded_variant_has_statistics_from_its_values() -> None:
    file = written(variants({"a": 3}, {"a": 4}))
    assert (table_metrics.delta(file).min_values, set(table_metrics.delta(file, exact=True).min_values)) == ({}, {"v"})


@pytest.mark.spec("metrics.delta.variant")
@given(st.binary(max_size=30))
def test_z85_round_trips_with_zero_padding(data: bytes) -> None:
    text = encode_z85(data)
    assert len(text) == (len(data) + 3) // 4 * 5
    assert decode_z85(text) == data + bytes(-len(data) % 4)


@pytest.mark.spec("metrics.delta.variant")
def test_z85_matches_its_specification() -> None:
    assert encode_z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert encode_z85(b"\0\0\0\0\xff\xff\xff\xff") == "00000%nSc0"
    faults = {"1234": "4 characters", "1234 ": "' ' is not a Z85 character", "#####": "more than four bytes"}
    for wrong, message in faults.items():
        with pytest.raises(ValueError, match=message):
            decode_z85(wrong)


def test_missing_and_duplicate_columns_are_rejected() -> None:
    file = written(pa.table({"a": [1]}))
    with pytest.raises(KeyError, match="b"):
        table_metrics.delta(file, columns=["b"])
    with pytest.raises(TypeError, match="list"):
        table_metrics.delta(file, columns="a")
    twice = written_by_pyarrow(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(UnsupportedError, match="two columns are named 'a'"):
        table_metrics.delta(twice)


def test_statistics_match_delta_rs(tmp_path: Path) -> None:
    table = pa.table({
        "i": pa.array([1, 2, None], pa.int32()), "f": [1.5, -0.0, 2.5], "s": ["a" * 10, "b", "c"],
        "t": [True, False, None], "d": [date(2020, 1, 1), date(1969, 5, 5), None],
        "at": pa.array([5_000, 7_000, None], pa.timestamp("us", "UTC")),
        "n": [{"x": 1, "y": None}, None, {"x": 3, "y": "q"}], "l": [[1], None, []], "b": [b"1", b"2", None],
        "m": pa.array([Decimal("1.25"), Decimal("-3.50"), None], pa.decimal128(10, 2)),
    })  # fmt: skip
    write_deltalake(tmp_path / "t", table)
    (log,) = (tmp_path / "t" / "_delta_log").glob("*.json")
    (add,) = (one["add"] for one in map(json.loads, log.read_text().splitlines()) if "add" in one)
    theirs = json.loads(add["stats"])
    ours = json.loads(table_metrics.delta(tmp_path / "t" / add["path"], exact=True).to_json())
    assert ours["numRecords"] == theirs["numRecords"]
    assert ours["nullCount"] == {**theirs["nullCount"], "b": 1}
    assert ours["minValues"] == theirs["minValues"]
    assert ours["maxValues"] == theirs["maxValues"]


TYPES = {
    "i": "long", "s": "string", "ts": "timestamp", "n": "timestamp_ntz", "m": "decimal(38,2)", "d": "date",
    "f": "double",
}  # fmt: skip


@pytest.mark.parametrize("exact", [False, True])
def test_delta_rs_skips_by_our_statistics(exact: bool, tmp_path: Path) -> None:
    features = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"]}
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in TYPES.items()]
    about = {
        "id": "0", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "createdTime": 1,
    }  # fmt: skip
    lines: list[dict[str, Any]] = [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}]
    lines.append({"metaData": about})
    for k in range(3):
        moments = [10_000_000 * k + 1_000 * j + 1 for j in range(10)]
        table = pa.table({
            "i": [10 * k + j for j in range(10)], "s": [f"{k}-{j}" + "x" * 40 for j in range(10)],
            "ts": pa.array(moments, pa.timestamp("us", "UTC")), "n": pa.array(moments, pa.timestamp("us")),
            "m": pa.array([Decimal("12345678901234567890.50") + k] * 10, pa.decimal128(38, 2)),
            "d": pa.array([10 * k] * 10, pa.date32()), "f": [k + 0.5] * 9 + [None],
        })  # fmt: skip
        pqext.write_table(table, tmp_path / f"{k}.parquet")
        found = table_metrics.delta(tmp_path / f"{k}.parquet", exact)
        lines.append({"add": found.add_action(f"{k}.parquet", 1_000)})
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    table = DeltaTable(tmp_path)
    actions = pa.table(table.get_add_actions(flatten=True))
    assert sorted(actions["max.m"].to_pylist())[0] == Decimal("12345678901234567890.50")  # no digit is lost
    assert actions["null_count.f"].to_pylist() == [1, 1, 1]
    queries = QueryBuilder().register("t", table)
    for condition, rows, files in (
        ("i >= 25", 5, 1), (f"s = '1-3{'x' * 40}'", 1, 1), ("d >= date '1970-01-15'", 10, 1), ("f > 1", 18, 2),
        ("ts = timestamp '1970-01-01T00:00:10.009001Z'", 1, 1), ("n > timestamp '1970-01-01T00:00:20.009'", 1, 1),
        ("i > 100", 0, 0),
    ):  # fmt: skip
        assert pa.table(queries.execute(f"select * from t where {condition}")).num_rows == rows
        plan = str(pa.table(queries.execute(f"explain analyze select * from t where {condition}")).to_pylist())
        assert len(set(re.findall(r"(\d)\.parquet", plan))) == files


def test_int96_column_has_statistics_from_its_values() -> None:
    moments = pa.array([1_500_000, 2_500_001], pa.timestamp("us"))
    file = written_by_pyarrow(pa.table({"c": moments}), use_deprecated_int96_timestamps=True)
    assert table_metrics.delta(file).min_values == {}
    found = table_metrics.delta(file, exact=True)
    assert (found.min_values, found.max_values) == (
        {"c": "1970-01-01T00:00:01.500Z"}, {"c": "1970-01-01T00:00:02.501Z"},
    )  # fmt: skip
