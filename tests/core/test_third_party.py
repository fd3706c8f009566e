"""A third party's annotation takes part in writing, with options of its own, in reading and in Spark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.third_party import CELSIUS, ROWS, field, registered

import pqext


@pytest.fixture(autouse=True)
def _third_party() -> Iterator[None]:
    with registered():
        yield


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


def test_marked_column_round_trips_through_its_handler() -> None:
    table = pa.table([pa.array([*ROWS, None])], schema=pa.schema([field("t")]))
    data = written(table)
    assert pq.read_table(io.BytesIO(data))["t"].to_pylist() == [b"2731", b"3000", b"3105", None]
    assert pq.read_metadata(io.BytesIO(data)).schema.column(0).logical_type.type == "BSON"
    found = pqext.read_table(data)
    assert found["t"].to_pylist() == [*ROWS, None]
    assert found.schema.field("t").metadata == field("t").metadata


def test_handler_option_selects_columns_and_their_settings() -> None:
    table = pa.table({"t": ROWS - CELSIUS, "s": [pa.scalar(1.0)] * 3})
    data = written(table, annotations={"temperature": {"t": "celsius"}})
    assert pqext.read_table(data)["t"].to_pylist() == ROWS.tolist()
    assert pqext.read_table(data)["s"].to_pylist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("choices", "text"),
    [
        ({"temperature": {"u": "celsius"}}, "option 'temperature' has column 'u', which the schema lacks"),
        ({"temperature": {"t": "feet"}}, "in kelvin or celsius, not 'feet'"),
        ({"temprature": {"t": "kelvin"}}, "annotations has the key 'temprature', which is not the option of"),
    ],
)
def test_invalid_choices_are_named(choices: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        written(pa.table({"t": ROWS}), annotations=choices)


def test_spark_uses_the_type_named_by_the_handler() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")
    from pyspark.sql import types as T

    from pqext.spark.base.arrays import conform_batch
    from pqext.spark.base.types import spark_schema, to_exchange_schema

    schema = pa.schema([field("t")])
    seen = spark_schema(schema)
    assert seen["t"].dataType == T.FloatType()
    batch = conform_batch(pa.record_batch([pa.array(ROWS)], schema=schema), to_exchange_schema(seen))
    assert batch.schema.field("t").type == pa.float32()
    assert batch["t"].to_pylist() == pytest.approx(ROWS.tolist())
