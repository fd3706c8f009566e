"""Properties of GeoJSON: exact integers, as `json` and DuckDB read them, and bounds for features of very many names."""

from __future__ import annotations

import datetime
import gzip
import json
import lzma
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import geo
from pqext.core.base.errors import LimitError
from pqext.geo.kernels.property_paths import measure
from reference.pace import SLOWER

CELLS = [9749618424903892992, (1 << 64) - 1, 1 << 63, None, -5]  # the first is a cell of S2


def collection(properties: list[dict[str, Any]]) -> str:
    features = [{"type": "Feature", "geometry": None, "properties": one} for one in properties]
    return json.dumps({"type": "FeatureCollection", "features": features})


def plain(value: Any) -> Any:
    """A value with integers in the place of decimals, and without members that are null."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return int(value) if isinstance(value, Decimal) else value


def read(properties: list[dict[str, Any]]) -> pa.Table:
    return geo.read_geojson(collection(properties)).drop(["geometry"])


def test_integers_beyond_int64_are_exact(tmp_path: Path) -> None:
    given = [{"cell": cell, "at": {"cell": cell, "x": 0.5}, "near": [cell, 1], "n": 1} for cell in CELLS]
    table = read(given)
    assert table["cell"].type == pa.decimal128(38, 0)
    assert table["n"].type == pa.int64()
    assert [plain(row) for row in table.to_pylist()] == [plain(one) for one in given]
    (tmp_path / "p.json").write_text("\n".join(json.dumps(one) for one in given))
    expected = duckdb.sql(f"SELECT cell::VARCHAR, \"at\".cell::VARCHAR FROM read_json('{tmp_path}/p.json')").fetchall()
    ours = table.to_pylist()
    assert [tuple(v and str(v) for v in (row["cell"], row["at"]["cell"])) for row in ours] == expected


def test_integers_over_38_digits_are_text_and_fractions_are_doubles() -> None:
    assert read([{"a": 1}, {"a": 10**38}])["a"].to_pylist() == ["1", str(10**38)]
    assert read([{"a": 1.5}, {"a": 1 << 64}])["a"].to_pylist() == [1.5, float(1 << 64)]
    mixed = read([{"a": 1, "b": "x"}, {"a": 1 << 64, "b": 2}])
    assert (mixed["a"].to_pylist(), mixed["b"].to_pylist()) == ([1, 1 << 64], ['"x"', "2"])


@given(st.lists(st.one_of(st.none(), st.integers(), st.integers(-(1 << 70), 1 << 70)), min_size=1))
def test_integers_of_any_size_match_the_text(values: list[int | None]) -> None:
    table = read([{"a": one} for one in values])
    assert [None if one is None else int(one) for one in table["a"].to_pylist()] == values
    within = read([{"a": {"b": one}} for one in values])["a"]
    if not pa.types.is_string(within.type):  # JSON text, for integers of more than 38 digits
        assert [None if one["b"] is None else int(one["b"]) for one in within.to_pylist()] == values


def test_ids_beyond_int64_are_exact() -> None:
    feature = {"type": "Feature", "geometry": None, "properties": {}, "id": CELLS[0]}
    assert geo.read_geojson(json.dumps(feature))["id"].to_pylist() == [CELLS[0]]


def test_sparse_features_with_many_names_are_rejected_or_one_text_column() -> None:
    """Both in time and memory that grow with the text, not with the product of names and features."""
    given = [{f"name{n}": n} for n in range(30_000)]
    text, start = collection(given), time.process_time()
    with pytest.raises(LimitError, match=r"30,000 property names, .* pass properties="):
        geo.read_geojson(text)
    table = geo.read_geojson(text, properties="tags")
    assert time.process_time() - start < 5 * SLOWER
    assert table.column_names == ["geometry", "tags"]
    assert [json.loads(one) for one in table["tags"].to_pylist()] == given
    deep = {"type": "Feature", "geometry": None, "properties": {"l": [*([None] * 30_000), *given]}}
    with pytest.raises(LimitError, match="30,001 property names"):
        geo.read_geojson(json.dumps(deep))
    assert geo.read_geojson(collection([{f"n{n}": n for n in range(30_000)}])).num_columns == 30_001


def test_properties_as_text_are_objects_without_whitespace_around_them() -> None:
    given: list[dict[str, Any]] = [{"a": 1}, {}, {"b": "\n"}, {"c": [{"d": "é"}]}]
    texts = geo.read_geojson(collection(given), properties="tags")["tags"].to_pylist()
    assert [json.loads(text) for text in texts] == given
    assert [text.strip() for text in texts] == texts


_VALUES = st.recursive(
    st.one_of(st.none(), st.integers(-9, 9), st.just('"{[,:\\')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('ab"'), inner, max_size=3),
)


def slots(values: list[Any]) -> int:
    """The cells of the values of one path."""
    names = {name for value in values if isinstance(value, dict) for name in value}
    elements = [one for value in values if isinstance(value, list) for one in value]
    lists = [value for value in values if isinstance(value, list)]
    own = sum(
        len(values) + slots([value.get(name) if isinstance(value, dict) else None for value in values])
        for name in names
    )
    return own + (slots(elements + [None] * sum(not one for one in lists)) if lists else 0)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3), min_size=1), st.integers(0, 1 << 60))
def test_cells_are_counted_per_name_and_row_or_element(rows: list[dict[str, Any]], seed: int) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert measure(lines, seed, 1 << 20)[0] == slots(rows)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_file_is_read_under_any_name(tmp_path: Path, compress: Any) -> None:
    path = tmp_path / "a.geojson"
    path.write_bytes(compress(collection([{"a": 1}]).encode()))
    assert geo.read_geojson(path)["a"].to_pylist() == [1]


TIMES = {
    "offset": ["2026-07-01T12:00:00+02:00", None, "2026-01-01T12:00:00-05:30"], "utc": ["2026-07-01T12:00:00Z"] * 3,
    "day": ["2026-07-01", "1969-12-31", None], "local": ["2026-07-01T12:00:00", "2026-07-01 12:00", "2026-07-01"],
    "mixed": ["2026-07-01T12:00:00Z", "2026-07-01T12:00:00", None],
    "half": ["2026-07-01", "2026-07-01T12:00:00Z", None],
}  # fmt: skip


def instants(texts: Sequence[str | None]) -> list[datetime.datetime | None]:
    return [text and datetime.datetime.fromisoformat(text) for text in texts]


def test_times_with_an_offset_are_instants() -> None:
    table = read([dict(zip(TIMES, values, strict=True)) for values in zip(*TIMES.values(), strict=True)])
    instant, local = pa.timestamp("s", "UTC"), pa.timestamp("s")
    types = {name: table.schema.field(name).type for name in TIMES}
    assert types == {
        "offset": instant, "utc": instant, "day": pa.date32(), "local": local, "mixed": pa.string(),
        "half": pa.string(),
    }  # fmt: skip
    for name in ("offset", "utc", "local"):
        assert table[name].to_pylist() == instants(TIMES[name])
    days = [text and datetime.date.fromisoformat(text) for text in TIMES["day"]]
    assert table["day"].to_pylist() == days
    for name in ("mixed", "half"):
        assert table[name].to_pylist() == TIMES[name]


def test_nested_times_with_an_offset_are_instants() -> None:
    texts = TIMES["offset"]
    table = read([{"at": {"t": text, "n": 1 << 64}, "all": [text, None], "deep": [{"d": text}]} for text in texts])
    expected = instants(texts)
    assert [row["t"] for row in table["at"].to_pylist()] == expected
    assert [row["n"] for row in table["at"].to_pylist()] == [1 << 64] * 3
    assert table["all"].to_pylist() == [[instant, None] for instant in expected]
    assert table["deep"].to_pylist() == [[{"d": instant}] for instant in expected]
    sparse = read([{}, {"at": None, "all": None}, {"at": {"t": texts[0]}, "all": [texts[0]]}])
    assert sparse.to_pylist() == [
        {"at": None, "all": None}, {"at": None, "all": None}, {"at": {"t": expected[0]}, "all": [expected[0]]}
    ]


def test_times_in_many_blocks_have_one_type() -> None:
    texts = [f"2026-07-01T12:00:00+{hour % 14:02}:00" for hour in range(60_000)]
    table = read([{"t": text, "pad": "x" * 20} for text in texts])
    assert table["t"].type == pa.timestamp("s", "UTC")
    assert table["t"].to_pylist() == instants(texts)


FRACTIONS = {
    "s": ["2026-07-01T12:00:00Z", "2026-07-01T12:00Z"],
    "ms": ["2026-07-01T00:00:00.000Z", "2026-07-01T12:00:00.5+02:00", "2026-07-01T12:00:00Z", None],
    "us": ["2026-07-01 12:00:00.123456", "2026-07-01T12:00:00.1", "2026-07-01", "0001-01-01T00:00:00.000001"],
}


@pytest.mark.parametrize("unit", FRACTIONS)
def test_fraction_of_a_second_determines_the_unit(unit: str) -> None:
    texts = FRACTIONS[unit]
    for other in ("x", 1):  # a property of mixed types
        rows: list[dict[str, Any]] = [{"t": text, "nested": [{"t": text}], "other": "x"} for text in texts]
        table = read([*rows, {"other": other}])
        assert table["t"].type == pa.timestamp(unit, None if unit == "us" else "UTC")
        assert table["t"].to_pylist() == [*instants(texts), None]
        assert [row and row[0]["t"] for row in table["nested"].to_pylist()] == [*instants(texts), None]


def test_nanoseconds_are_those_of_pandas() -> None:
    texts = ["2026-07-01T12:00:00.123456789Z", "2026-07-01T12:00:00.1234567+02:00", "1969-12-31T23:59:59Z"]
    times = read([{"t": text} for text in texts])["t"]
    assert times.type == pa.timestamp("ns", "UTC")
    assert times.cast(pa.int64()).to_pylist() == [pandas.Timestamp(text).value for text in texts]


@pytest.mark.parametrize(
    "text", ["2026-07-01T12:00:00.1234567890Z", "2300-01-01T00:00:00.123456789Z", "2026-07-01T12:00:00.5",
             "2026-13-01T12:00:00.5Z", "2026-07-01T12:00:00.Z", "2026-07-01T12:00:00.5Zulu"],
)  # fmt: skip
def test_texts_that_no_unit_represents_remain_text(text: str) -> None:
    texts = ["2026-07-01T12:00:00.5Z", text]
    assert read([{"t": text} for text in texts])["t"].to_pylist() == texts


def test_times_are_those_of_gdal(tmp_path: Path) -> None:
    pytest.importorskip("pyogrio")
    path = tmp_path / "a.geojson"
    path.write_text(collection([{"t": "2026-07-01T00:00:00.000Z"}, {"t": "2026-07-01T12:00:00.25+02:00"}]))
    times = geo.read_file(path)["t"]
    assert geo.read_geojson(path)["t"].equals(times)
