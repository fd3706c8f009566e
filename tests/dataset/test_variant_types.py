"""Conditions on variants take every type that compares, and give the rows that casting every value gives."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pqext import variant
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import col
from pqext.dataset.reading import scan
from pqext.variant.access.targets import target_type, type_name

ROWS = [
    '{"n":1,"t":"2024-01-01T00:00:00.4Z","s":"a","l":[1,2]}',
    '{"n":2,"t":"2024-01-01T00:00:00.6Z","s":"b","l":[]}',
    '{"n":300,"t":"2024-01-01T00:00:01.1Z","s":"c","l":"no"}',
    '{"n":-1,"t":"2024-01-02","s":"d"}',
    '{"n":2.5,"t":null,"s":"12:30:00"}',
    "null",
]
UTC = datetime.UTC
SECOND = datetime.datetime(2024, 1, 1, 0, 0, 1, tzinfo=UTC)


@pytest.fixture(
    scope="module", params=[None, "n BIGINT, t TIMESTAMP, s STRING, l ARRAY<INT>", "n DECIMAL(9,2), t STRING"]
)
def file(request: pytest.FixtureRequest) -> bytes:
    # As timestamps where they are shredded so: text stays text.
    stamps = [datetime.datetime(2024, 1, 1, 0, 0, 0, micros, UTC) for micros in (400_000, 600_000)]
    values = variant.parse_json(pa.array(ROWS))
    if request.param and "TIMESTAMP" in request.param:
        rows = [variant.Variant(row["value"], row["metadata"]).to_python() for row in values.to_pylist()]
        for row, stamp in zip(rows, stamps, strict=False):
            row["t"] = stamp
        made = [variant.Variant.from_python(row) for row in rows]
        values = pa.array([{"metadata": v.metadata, "value": v.value} for v in made], variant.variant_type())
    sink = pa.BufferOutputStream()
    options: dict[str, Any] = {"shredding": {"v": request.param}} if request.param else {}
    schema = pa.schema([variant.variant_field("v"), pa.field("row", pa.int64())])
    table = pa.table([values, pa.array(range(len(ROWS)), pa.int64())], schema=schema)
    write_table(table, sink, row_group_rows=1, **options)
    result: bytes = sink.getvalue().to_pybytes()
    return result


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (col("v").variant("$.n", "uint8") >= 1, [0, 1, 4]),
        (col("v").variant("$.n", pa.uint64()) == 300, [2]),
        (col("v").variant("$.n", "uint8").is_null(), [2, 3, 5]),
        (col("v").variant("$.n", pa.float16()) == 2.5, [4]),
        (col("v").variant("$.n", pa.decimal256(50, 1)) == Decimal("2.5"), [4]),
        (col("v").variant("$.n", "decimal32(5, 1)") < 2, [0, 3]),
        (col("v").variant("$.s", pa.large_string()).isin(["b", "d"]), [1, 3]),
        (col("v").variant("$.s", pa.string_view()) > "c", [3]),
        (col("v").variant("$.s", pa.binary(1)) == b"a", [0]),
        (col("v").variant("$.s", pa.time32("s")) == datetime.time(12, 30), [4]),
        (col("v").variant("$.t", pa.timestamp("s", "UTC")) == datetime.datetime(2024, 1, 1, tzinfo=UTC), [0, 1]),
        (col("v").variant("$.t", pa.timestamp("ms", "Europe/Paris")) > SECOND, [2, 3]),
        (col("v").variant("$.t", pa.timestamp("s", "UTC")) <= datetime.datetime(2024, 1, 1, tzinfo=UTC), [0, 1]),
        (col("v").variant("$.t", pa.date64()) == datetime.date(2024, 1, 2), [3]),
        (col("v").variant("$.s", pa.dictionary(pa.int8(), pa.string())) == "a", [0]),
        (col("v").variant("$.l", "array<int>").is_not_null(), [0, 1]),
        (col("v").variant("$", pa.struct([("n", pa.uint8())])).is_not_null(), [0, 1, 2, 3, 4]),
        (col("v").variant("$.l", "variant").is_null(), [3, 4, 5]),
    ],
    ids=str,
)  # fmt: skip
def test_rows_match_the_condition_on_the_cast_value(file: bytes, condition: Any, rows: list[int]) -> None:
    assert scan(file, ["row"], condition).to_table()["row"].to_pylist() == rows


@pytest.mark.parametrize("type", ["array<int>", "struct<n: int>", "map<string, int>"])
def test_nested_values_do_not_compare(file: bytes, type: str) -> None:
    with pytest.raises(TypeError, match="can only be compared with null"):
        scan(file, ["row"], col("v").variant("$", type) > 5).to_table()
    with pytest.raises(ValueError, match="variant values cannot be cast"):
        col("v").variant("$", pa.duration("s"))


@pytest.mark.parametrize(
    "type",
    [
        pa.int64(),
        pa.uint8(),
        pa.decimal256(40, 2),
        pa.timestamp("ms", "Europe/Paris"),
        pa.timestamp("us", "UTC"),
        pa.time32("s"),
        pa.binary(7),
        pa.large_string(),
        pa.list_(pa.uint16()),
        pa.map_(pa.string(), pa.list_(pa.date32())),
        pa.struct([("x y", pa.struct([("`", variant.variant_type())])), ("b", pa.decimal128(9, 2))]),
    ],
    ids=str,
)
def test_type_name_parses_back_to_its_type(type: pa.DataType) -> None:
    assert target_type(type_name(type)) == type
    with pytest.raises(ValueError, match="has no name"):
        type_name(pa.list_(pa.timestamp("ms")))
