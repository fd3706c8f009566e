"""Least and greatest values, nulls, counts and boxes: those of the rows, from metadata alone where that proves them."""

from __future__ import annotations

import io
import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from dataset.strategies import expressions, tables
from dataset.test_stages import Recorded
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, geo
from pqext.core.format import metadata
from pqext.core.format.thrift import decode, encode
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Expression
from pqext.dataset.planning.certainty import certain_rows
from reference.effort import share

ROWS = 400
CHANCE = np.random.default_rng(12)
NUMBERS = CHANCE.permutation(ROWS)
TABLE = pa.table(
    {
        "k": np.arange(ROWS),
        "i": pa.array(NUMBERS, mask=NUMBERS % 7 == 0),
        "x": NUMBERS / 8 + 0.5,
        "s": [f"text {n:03}" if n % 5 else None for n in NUMBERS.tolist()],
        "d": [date(2020, 1, 1 + n % 28) for n in NUMBERS.tolist()],
        "t": [datetime(2020, 1, 1, n % 24, 30, tzinfo=UTC) for n in NUMBERS.tolist()],
        "p": [Decimal(n) / 100 for n in NUMBERS.tolist()],
        "b": (NUMBERS % 2).astype(bool),
        "f": pa.array([bytes([n % 200, 1]) for n in NUMBERS.tolist()], pa.binary(2)),
        "nothing": pa.nulls(ROWS, pa.int32()),
        "o": [{"a": n, "b": None} if n % 3 else None for n in NUMBERS.tolist()],
    }
)


def stored(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **{"row_group_rows": 100, "page_rows": 20, **options})
    return out.getvalue()


FILE = stored(TABLE)
OTHER = io.BytesIO()
pq.write_table(TABLE, OTHER, row_group_size=150)


@pytest.mark.spec("querying.aggregates")
@pytest.mark.parametrize("name", [name for name in TABLE.schema.names if name != "o"])
@pytest.mark.parametrize("question", [None, col("k") < 250, col("i") > 100, col("k") < -1], ids=str)
def test_aggregates_match_the_rows(name: str, question: Expression | None) -> None:
    rows = TABLE if question is None else TABLE.filter(evaluate(question, TABLE.combine_chunks()))
    for data in (FILE, OTHER.getvalue()):
        scan = pqext.scan(data, filter=question)
        both = pc.min_max(rows[name]).as_py()
        assert {"min": scan.min(name).as_py(), "max": scan.max(name).as_py()} == both
        assert scan.min(name).type == TABLE.schema.field(name).type
        assert scan.null_count(name) == rows[name].null_count
    scan = pqext.scan(FILE, filter=question).limit(30, offset=7)
    assert scan.max(name).as_py() == pc.min_max(rows[name].slice(7, 30)).as_py()["max"]


def test_struct_fields_are_aggregated_under_null_structs() -> None:
    inner = pc.struct_field(TABLE["o"], "a")
    for column in ("o.a", col("o.a")):
        assert pqext.scan(FILE).null_count(column) == inner.null_count
        assert pqext.scan(FILE).min(column).as_py() == pc.min(inner).as_py()
    assert pqext.scan(FILE).null_count("o") == TABLE["o"].null_count


@pytest.mark.spec("querying.aggregates")
@pytest.mark.parametrize("name", ["k", "i", "x", "s", "d", "t", "b", "nothing"])
def test_aggregates_proven_by_metadata_read_nothing_else(name: str) -> None:
    source = Recorded(FILE)
    scan = pqext.scan(source)
    found = scan.min(name).as_py(), scan.max(name).as_py(), scan.null_count(name)
    both = pc.min_max(TABLE[name]).as_py()
    assert found == (both["min"], both["max"], TABLE[name].null_count)
    assert source.pages() == set()


@pytest.mark.spec("querying.aggregates")
def test_fully_matching_row_groups_are_counted_without_reading() -> None:
    source = Recorded(FILE)
    assert pqext.scan(source, filter=col("k") >= 0).count() == ROWS
    assert pqext.scan(source, filter=(col("k") >= 0) & (col("b").is_not_null())).count() == ROWS
    assert pqext.scan(source, filter=col("k") >= 100).count() == 300
    assert pqext.scan(source, filter=(col("k") < 200) | (col("k") > 199)).count() == ROWS
    assert pqext.scan(source, filter=col("nothing").is_null()).count() == ROWS
    assert pqext.scan(source, filter=col("k") < 200).max("k").as_py() == 199
    assert source.pages() == set()
    assert pqext.scan(source, filter=col("k") >= 130).count() == 270
    with pqext.open(FILE) as file:
        pages = file.page_index[1]["k"]
        start, length = pages.byte_range(1)
    assert source.pages() == set(range(start, start + length))


def changed(data: bytes, change: Any) -> bytes:
    """The file with other statistics, without page indexes."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = decode(metadata.FileMetaData, data[-8 - size : -8])[0]
    for group in footer.row_groups:
        for chunk in group.columns:
            chunk.column_index_offset = chunk.column_index_length = None
            chunk.offset_index_offset = chunk.offset_index_length = None
            if chunk.meta_data.statistics is not None:
                change(chunk.meta_data)
    raw = encode(footer)
    return data[: -8 - size] + raw + len(raw).to_bytes(4, "little") + b"PAR1"


WIDER = {"i": (b"\xff" * 8, (1 << 40).to_bytes(8, "little")), "s": (b"", b"z")}
"""Bounds that values lie between and do not reach."""


def widened(chunk: Any) -> None:
    known = WIDER.get(chunk.path_in_schema[0])
    if known is not None:
        chunk.statistics.min_value, chunk.statistics.max_value = known


def inexact(chunk: Any) -> None:
    widened(chunk)
    chunk.statistics.is_min_value_exact = chunk.statistics.is_max_value_exact = False


def shorten_bounds(chunk: Any) -> None:
    if chunk.path_in_schema == ["s"]:
        widened(chunk)
    chunk.statistics.is_min_value_exact = chunk.statistics.is_max_value_exact = None


def drop_float_bounds(chunk: Any) -> None:
    """Who does not count NaN may have lost the least value behind one."""
    if chunk.path_in_schema == ["x"]:
        chunk.statistics.min_value = chunk.statistics.max_value = struct.pack("<d", 7.25)
        chunk.statistics.nan_count = None


def deprecated(chunk: Any) -> None:
    widened(chunk)
    found = chunk.statistics
    found.min, found.max, found.min_value, found.max_value = found.min_value, found.max_value, None, None


def missing(chunk: Any) -> None:
    chunk.statistics = None


@pytest.mark.spec("querying.aggregates")
@pytest.mark.parametrize("change", [inexact, shorten_bounds, drop_float_bounds, deprecated, missing])
def test_inconclusive_bounds_are_not_used_as_results(change: Any) -> None:
    data = changed(stored(TABLE, page_index=False), change)
    for name in ("i", "x", "s"):
        both = pc.min_max(TABLE[name]).as_py()
        scan = pqext.scan(data)
        assert {"min": scan.min(name).as_py(), "max": scan.max(name).as_py()} == both
        assert scan.null_count(name) == TABLE[name].null_count


@pytest.mark.spec("querying.aggregates")
def test_truncated_bounds_of_long_text_require_reading() -> None:
    table = pa.table({"s": ["a" * 200 + "z", "b", "c" * 200]})
    scan = pqext.scan(stored(table))
    assert (scan.min("s").as_py(), scan.max("s").as_py()) == ("a" * 200 + "z", "c" * 200)


@pytest.mark.spec("querying.aggregates")
@pytest.mark.parametrize(
    ("values", "least", "greatest"),
    [
        ([math.nan, 2.0, 1.0], 1.0, 2.0), ([math.nan, math.nan], None, None), ([0.0, 3.0], 0.0, 3.0),
        ([-3.0, -0.0], -3.0, -0.0), ([0.0], 0.0, 0.0), ([-0.0], -0.0, -0.0),
        ([math.inf, -math.inf], -math.inf, math.inf),
    ],
)  # fmt: skip
def test_extremes_ignore_nan_and_preserve_the_sign_of_zero(
    values: list[float], least: float | None, greatest: float | None
) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": values}), out)
    for data in (stored(pa.table({"x": values})), out.getvalue()):
        found = pqext.scan(data).min("x").as_py(), pqext.scan(data).max("x").as_py()
        assert found == (least, greatest)
        assert [math.copysign(1, one) for one in found if one is not None] == [
            math.copysign(1, one) for one in (least, greatest) if one is not None
        ]


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Paris"), pa.float16(),
             pa.string_view(), pa.binary_view()], ids=str,
)  # fmt: skip
def test_types_unordered_in_python_or_arrow_have_extremes(kind: pa.DataType, statistics: bool) -> None:
    first, last = -5_000_000, 3_000_000
    if pa.types.is_float16(kind):
        values = pa.array([2.5, None, -1.5, math.nan], pa.float32()).cast(kind)
        least, greatest = values[2], values[0]
    elif pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        scale = 1 if pa.types.is_date32(kind) else 10**12
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        values = pa.array([last * scale, None, first * scale], width).cast(kind)
        least, greatest = values[2], values[0]
    else:
        values = pa.array(["b", None, "", "ab"]).cast(kind)
        least, greatest = values[2], values[0]
    scan = pqext.scan(stored(pa.table({"x": values}), statistics=statistics))
    found = scan.min("x"), scan.max("x")
    assert pa.concat_arrays([pa.repeat(one, 1) for one in found]).equals(
        pa.concat_arrays([pa.repeat(one, 1) for one in (least, greatest)])
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.uint8(), pa.int8()], ids=str)
def test_impossible_bounds_are_not_used_as_results(kind: pa.DataType) -> None:
    def impossible(chunk: Any) -> None:
        raw = b"\xff" if pa.types.is_string(kind) else (1000).to_bytes(4, "little")
        chunk.statistics.min_value = chunk.statistics.max_value = raw

    values = pa.array(["a", "b"] if pa.types.is_string(kind) else [1, 2], kind)
    data = changed(stored(pa.table({"x": values}), page_index=False), impossible)
    scan = pqext.scan(data)
    assert (scan.min("x").as_py(), scan.max("x").as_py()) == (values[0].as_py(), values[1].as_py())


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 3), pa.decimal128(38, 5), pa.decimal256(60, 9)])
def test_decimal_extremes_of_every_width_match_arrow(kind: pa.DataType, statistics: bool) -> None:
    values = pa.array([Decimal("1.30"), None, Decimal("-2.00"), Decimal("999.25")], kind)
    scan = pqext.scan(stored(pa.table({"x": values}), statistics=statistics))
    assert scan.min("x").equals(pa.scalar(Decimal("-2.00"), kind))
    assert scan.max("x").equals(pa.scalar(Decimal("999.25"), kind))
    assert scan.filter("x < 900").max("x").equals(pa.scalar(Decimal("1.30"), kind))


def test_column_without_an_order_is_rejected_by_name() -> None:
    table = pa.table({"l": [[1], [2]], "n": [1, 2]})
    with pytest.raises(TypeError):
        pqext.scan(stored(table)).min("l")
    with pytest.raises(ValueError, match="no column"):
        pqext.scan(stored(table)).max("m")
    with pytest.raises(TypeError, match="no geometries"):
        pqext.scan(stored(table)).bounds("n")


def test_partitions_and_several_files_are_aggregated(tmp_path: Any) -> None:
    for year in (2020, 2021):
        folder = tmp_path / f"y={year}"
        folder.mkdir()
        pqext.write_table(pa.table({"n": [year, None, 5]}), folder / "a.parquet")
    scan = pqext.scan(tmp_path)
    assert (scan.min("n").as_py(), scan.max("n").as_py(), scan.null_count("n")) == (5, 2021, 2)
    assert (scan.min("y").as_py(), scan.max("y").as_py(), scan.null_count("y")) == (2020, 2021, 0)
    assert scan.filter(col("y") == 2020).max("n").as_py() == 2020


@pytest.mark.spec("querying.aggregates")
def test_union_aggregates_use_the_unified_values(tmp_path: Any) -> None:
    pqext.write_table(pa.table({"a": pa.array([9, 10], pa.int32()), "s": [{"x": 3}, {"x": None}]}), tmp_path / "1")
    pqext.write_table(pa.table({"b": [1.5]}), tmp_path / "2")
    pqext.write_table(pa.table({"a": pa.array([2**40, None]), "s": [{"y": 1}, None]}), tmp_path / "3")
    scan = pqext.scan(tmp_path, schema="union")
    rows = scan.to_table()
    for name, column in {"a": rows["a"], "b": rows["b"], "s.x": rows["s"].combine_chunks().flatten()[0]}.items():
        assert scan.min(name).as_py() == pc.min(column).as_py()
        assert scan.max(name).as_py() == pc.max(column).as_py()
        assert scan.null_count(name) == column.null_count
    assert scan.filter("b > 1").null_count("a") == 1
    assert scan.min("a").type == pa.int64()


@pytest.mark.spec("querying.aggregates")
def test_extremes_are_computed_after_a_cast(tmp_path: Any) -> None:
    pqext.write_table(pa.table({"text": ["9", "10"], "number": [9, 10], "small": [9, 10]}), tmp_path / "1")
    schema = pa.schema([("text", pa.int64()), ("number", pa.string()), ("small", pa.float64())])
    scan = pqext.scan(tmp_path / "1", schema=schema)
    for name, column in zip(schema.names, scan.to_table().columns, strict=True):
        assert (scan.min(name), scan.max(name)) == (pc.min(column), pc.max(column))


@pytest.mark.spec("querying.aggregates")
def test_box_of_all_geometries_is_read_from_metadata() -> None:
    x, y = CHANCE.uniform(-10, 10, 300), CHANCE.uniform(-5, 5, 300)
    source = Recorded(stored(pa.table({"at": geo.from_points(x, y), "n": np.arange(300)}), geometry={"at": {}}))
    box = pqext.scan(source).bounds("at")
    assert box is not None
    assert (box.xmin, box.xmax, box.ymin, box.ymax) == (x.min(), x.max(), y.min(), y.max())
    assert source.pages() == set()
    part = pqext.scan(source, filter=col("n") < 50).bounds("at")
    assert part is not None
    assert (part.xmin, part.xmax) == (x[:50].min(), x[:50].max())
    assert pqext.scan(source, filter=col("n") < 0).bounds("at") is None


@pytest.mark.spec("querying.aggregates")
@pytest.mark.parametrize("crs", ["EPSG:25832", "OGC:CRS84"])
def test_box_ignores_row_groups_of_empty_geometries(crs: str) -> None:
    texts = ["POINT (1 2)", "POINT (3 4)", "POINT EMPTY", None, "LINESTRING EMPTY", "POINT EMPTY"]
    table = pa.table({"n": range(6), "at": geo.from_wkt(texts)})
    pqext.write_table(table, sink := io.BytesIO(), geometry={"at": crs}, row_group_rows=2)
    scan = pqext.scan(sink.getvalue())
    expected = tuple(geopandas.GeoSeries.from_wkt(texts).total_bounds)
    for query in (scan, scan.filter(col("n") > -1)):
        box = query.bounds("at")
        assert box is not None
        assert (box.xmin, box.ymin, box.xmax, box.ymax) == expected
    assert scan.filter(col("n") >= 2).bounds("at") is None



@pytest.mark.spec("querying.aggregates")
@settings(max_examples=share(0.3))
@given(tables(), st.data())
def test_rows_proven_to_match_are_included(batch: pa.RecordBatch, data: st.DataObject) -> None:
    condition, table = data.draw(expressions(batch)), pa.Table.from_batches([batch])
    file = pqext.open(stored(table, row_group_rows=max(len(table) // 2, 1), page_rows=2))
    at = 0
    truth = evaluate(condition, batch).fill_null(False).to_pylist()
    for group in file.row_groups:
        for rows in certain_rows(condition, group):
            assert all(truth[at + rows.start : at + rows.stop])
        at += group.num_rows
    assert pqext.scan(stored(table, page_rows=3), filter=condition).count() == sum(truth)


@pytest.mark.parametrize("strings", ["string", "view", "dictionary"])
def test_extremes_of_dictionary_pages_match_pyarrow(strings: Any) -> None:
    words = pa.array([None, "b", "aa", "c", "ä", "", None] * 50, pa.string())
    table = pa.table({"s": words, "b": words.cast(pa.binary()), "n": pa.nulls(len(words), pa.string())})
    pqext.write_table(table, sink := io.BytesIO(), statistics=False, row_group_rows=100)
    scan = pqext.scan(sink, strings=strings)
    for name in table.column_names:
        assert scan.min(name).as_py() == pc.min(table[name]).as_py()
        assert scan.max(name).as_py() == pc.max(table[name]).as_py()
        assert scan.null_count(name) == table[name].null_count


def test_aggregates_do_not_expand_repeated_values() -> None:
    values = pa.array(["x" * (1 << 20), "y" * (1 << 20)])
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(2_000_000) % 2, pa.int32()), values)
    pq.write_table(pa.table({"s": column}), sink := io.BytesIO(), write_statistics=False, store_schema=False)
    assert sink.tell() < 1 << 20
    scan = pqext.scan(sink, limits=pqext.Limits.untrusted())  # two terabytes of text
    assert (scan.min("s").as_py()[0], scan.max("s").as_py()[0], scan.null_count("s")) == ("x", "y", 0)


def test_required_columns_have_no_nulls_without_being_read() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    pqext.write_table(pa.table({"a": range(1000)}, schema), sink := io.BytesIO(), statistics=False)
    damaged = bytearray(sink.getvalue())
    damaged[4:200] = bytes(196)
    assert pqext.scan(bytes(damaged)).null_count("a") == 0
    with pytest.raises(pqext.ParquetError):
        pqext.scan(bytes(damaged)).min("a")
