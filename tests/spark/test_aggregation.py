"""Groups, counts, sums and extremes that tasks make of files: as Spark's own functions make them of the rows."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql import functions as F

import pqext
from pqext import col
from pqext import variant as variants
from pqext.spark import query, read
from pqext.spark.reading.aggregation import Aggregate, Aggregation
from pqext.spark.reading.encoding import encode_options
from pqext.spark.reading.request import Query

ROWS = 400
EVENTS = ["click", "view", "sell", "buy"]


def _values(row: int) -> dict[str, Any]:
    return {
        "id": row,
        "word": ["ä", "", None, "\U0001f600", "b"][row % 5],
        "few": [None, True, False][row % 3],
        "i8": row % 100 - 50,
        "i64": (1 << 61) + row,
        "u64": (1 << 64) - 1 - row,
        "f32": [1.5, -0.0, math.inf, None][row % 4],
        "f64": math.nan if row % 97 == 5 else row * 0.25,
        "nan": math.nan if row % 2 else None,
        "d9": Decimal(row).scaleb(-2),
        "d18": Decimal(row * row + 1).scaleb(-4),
        "d38": Decimal(10**36 + row),
        "day": dt.date(2024, 1, 1) + dt.timedelta(row % 30),
        "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=row),
        "wall": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=row),
        "bytes": bytes([row % 256]),
    }


TYPES = {
    "id": pa.int64(), "word": pa.string(), "few": pa.bool_(), "i8": pa.int8(), "i64": pa.int64(), "u64": pa.uint64(),
    "f32": pa.float32(), "f64": pa.float64(), "nan": pa.float64(), "d9": pa.decimal128(9, 2),
    "d18": pa.decimal128(18, 4), "d38": pa.decimal128(38, 0),
    "day": pa.date32(), "at": pa.timestamp("us", "UTC"), "wall": pa.timestamp("us"),
    "bytes": pa.binary(),
}  # fmt: skip
ADDED = ["i8", "u64", "f32", "f64", "nan", "d9", "d18"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hive partitions of several row groups."""
    root = tmp_path_factory.mktemp("groups")
    documents = [json.dumps({"event": EVENTS[row % 4], "price": row / 4}) for row in range(ROWS)]
    for part in range(2):
        rows = range(part * ROWS // 2, (part + 1) * ROWS // 2)
        data = [_values(row) for row in rows]
        columns = {name: pa.array([one[name] for one in data], type) for name, type in TYPES.items()}
        columns["v"] = variants.parse_json(pa.array([documents[row] for row in rows]))
        fields = [pa.field(name, array.type) for name, array in columns.items()]
        fields[-1] = variants.types.variant_field("v")
        table = pa.table([*columns.values()], schema=pa.schema(fields))
        target = root / f"part={part}" / "rows.parquet"
        target.parent.mkdir()
        shredding = {"v": "STRUCT<event: STRING, price: DECIMAL(9,2)>"}
        pqext.write_table(table, target, row_group_rows=64, shredding=shredding)
    return root


def _rows(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows in an order of their own, with floats as text, of which NaN equals itself, and without the last digits."""

    def plain(value: Any) -> Any:
        return f"{value:.9g}" if isinstance(value, float) else value

    return sorted(({name: plain(value) for name, value in row.asDict().items()} for row in rows), key=str)


def _spark_rows(spark: Any, folder: Path) -> Any:
    return spark.read.parquet(str(folder)).drop("v")


@pytest.mark.parametrize("by", [(), pytest.param(("word",), marks=pytest.mark.slow), ("few", "part")])
def test_all_functions_match_spark(spark: Any, folder: Path, by: tuple[str, ...]) -> None:
    ordered = [name for name in TYPES if name != "id"]
    agg: dict[str, Any] = {f"{name}_{how}": (how, name) for name in ordered for how in ("min", "max")}
    agg |= {f"{name}_count": ("count", name) for name in ("word", "nan", "day")}
    agg |= {f"{name}_{how}": (how, name) for name in ADDED for how in ("sum", "avg")}
    agg |= {"i64_avg": ("avg", "i64"), "rows": "count"}
    ours = query(spark, str(folder), agg, by=by, where=col("id") >= 7)
    made = {name: "count(*)" if how == "count" else f"{how[0]}({how[1]})" for name, how in agg.items()}
    asked = ", ".join(f"{function} AS {name}" for name, function in made.items())
    _spark_rows(spark, folder).createOrReplaceTempView("events")
    groups = ", ".join(by)
    theirs = spark.sql(
        f"SELECT {groups + ', ' if by else ''}{asked} FROM events WHERE id >= 7 {'GROUP BY ' + groups if by else ''}"
    )
    assert _rows(ours.collect()) == _rows(theirs.collect())
    assert [(field.name, field.dataType) for field in ours.schema] == [
        (field.name, field.dataType) for field in theirs.schema
    ]


def test_empty_input_has_one_group_without_keys_and_none_with_keys(spark: Any, folder: Path) -> None:
    agg = {"rows": "count", "total": ("sum", "i8"), "mean": ("avg", "d9"), "last": ("max", "word")}
    nothing = col("id") < 0
    assert query(spark, str(folder), agg, where=nothing).collect() == [Row(rows=0, total=None, mean=None, last=None)]
    assert query(spark, str(folder), agg, by=["word"], where=nothing).collect() == []


@pytest.mark.parametrize("name", ["i64", "d38"])
def test_sum_overflow_is_an_error_like_in_spark(spark: Any, folder: Path, name: str) -> None:
    with pytest.raises(PySparkException):
        _spark_rows(spark, folder).agg({name: "sum"}).collect()
    with pytest.raises(PySparkException, match=r"OVERFLOW|more than 38 digits"):
        query(spark, str(folder), {"total": ("sum", name)}).collect()
    few = query(spark, str(folder), {"total": ("sum", "i64")}, where=col("id") < 3).collect()
    assert few == [Row(total=3 * (1 << 61) + 3)]


def _damaged(path: Path, target: Path, spared: tuple[str, ...]) -> Path:
    """A copy of a file in which the values of all leaves but those ``spared`` are overwritten."""
    raw = bytearray(path.read_bytes())
    with pqext.ParquetFile(path) as file:
        for chunk in (chunk for group in file.row_groups for chunk in group.chunks()):
            if chunk.node.dotted_path not in spared:
                start, length = chunk.byte_range
                raw[start : start + length] = b"\xff" * length
    target.write_bytes(raw)
    return target


def test_variant_values_are_read_from_their_leaf_alone(spark: Any, folder: Path, tmp_path: Path) -> None:
    leaves = tuple(f"v.typed_value.{name}.typed_value" for name in ("event", "price"))
    path = _damaged(folder / "part=0" / "rows.parquet", tmp_path / "damaged.parquet", leaves)
    event, price = col("v").variant("$.event", "string"), col("v").variant("$.price", "double")
    found = query(spark, str(path), {"rows": "count", "total": ("sum", price)}, by=[event.alias("event")])
    rows = {row.event: (row.rows, row.total) for row in found.collect()}
    assert rows == {
        kind: (ROWS // 8, sum(row / 4 for row in range(number, ROWS // 2, 4))) for number, kind in enumerate(EVENTS)
    }


def test_computed_values_are_grouped_and_aggregated(spark: Any, folder: Path) -> None:
    tens = (col("id") - col("i8")).alias("tens")
    ours = query(spark, str(folder), {"rows": "count", "most": ("max", (col("id") * 2).alias("twice"))}, by=[tens])
    groups = _spark_rows(spark, folder).selectExpr("id - i8 AS tens", "id * 2 AS twice").groupBy("tens")
    theirs = groups.agg(F.count("*").alias("rows"), F.max("twice").alias("most"))
    assert _rows(ours.collect()) == _rows(theirs.collect())
    rows = read(spark, str(folder), columns=["id", tens, col("v").variant("$.price", "double"), "part"])
    assert rows.columns == ["id", "tens", "v.price", "part"]
    assert rows.where("id = 301").collect() == [(301, 350, 75.25, 1)]


def test_extremes_and_counts_use_metadata_if_conclusive(spark: Any, folder: Path, tmp_path: Path) -> None:
    path = _damaged(folder / "part=0" / "rows.parquet", tmp_path / "damaged.parquet", ())
    agg = {"rows": "count", "words": ("count", "word"), "most": ("max", "d9"), "id": ("max", "id"), "at": ("min", "at")}
    (found,) = query(spark, str(path), agg, where=col("id") >= 0).collect()
    assert (found.rows, found.words, found.most, found.id) == (ROWS // 2, ROWS // 2 * 4 // 5, Decimal("1.99"), 199)
    with pytest.raises(PySparkException, match=r"damaged\.parquet"):
        query(spark, str(path), agg, where=col("id") >= 1).collect()


@pytest.mark.parametrize(
    ("agg", "by", "error", "message"),
    [
        ({"n": "median"}, (), ValueError, "unknown function 'median'"),
        ({"n": "summ"}, (), ValueError, "did you mean 'sum'"),
        ({"n": "sum"}, (), ValueError, r"sum needs a column"),
        ({"n": ("sum", "i8", "d9")}, (), TypeError, "a pair of a function and a column"),
        ({}, (), TypeError, "agg must map"),
        ("count", (), TypeError, "agg must map"),
        ({"word": "count"}, ("word",), ValueError, "columns of the result are named 'word'"),
        ({"n": ("sum", col("i8") > 5)}, (), TypeError, "a column must be a name"),
        ({"n": ("sum", "word")}, (), PySparkException, "sum is not defined for column 'word' of type string"),
    ],
)
def test_errors_are_reported_before_reading(
    spark: Any, folder: Path, agg: Any, by: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        query(spark, str(folder), agg, by=by)


@pytest.mark.parametrize(
    ("by", "function", "name", "message"),
    [
        (0, "max", "v", "max is not defined for column 'v' of type variant"),
        (0, "avg", "few", "avg is not defined for column 'few' of type boolean"),
        (1, "count", "v", "cannot be grouped by column 'v'"),
        (0, "max", "wrod", "no column 'wrod'"),
    ],
)
def test_unsuitable_columns_are_rejected(folder: Path, by: int, function: str, name: str, message: str) -> None:
    asked = encode_options([name], aggregation=Aggregation(by, (Aggregate("n", function, 0),)))
    with pytest.raises((TypeError, ValueError), match=message):
        Query.from_options({"path": str(folder), **asked}).schema()


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{}", '{"by": 2, "aggregates": []}', '{"by": true, "aggregates": []}',
        '{"by": 0, "aggregates": [["n", "max", 9]]}',
        '{"by": 0, "aggregates": [["n", "max", null]]}', '{"by": 0, "aggregates": [1]}', "nonsense",
    ],
)  # fmt: skip
def test_hostile_options_are_rejected(folder: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"option aggregation|by must be the number|expected"):
        Query.from_options({"path": str(folder), "columns": '["word"]', "aggregation": text})
