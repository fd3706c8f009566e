"""``profile="spark"``, the sink's default: Spark's own reader finds every row and reads every value."""

from __future__ import annotations

import operator
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions
from pyspark.sql import types as T
from spark.test_settings import settings

import pqext
from pqext import variant
from pqext.core.format.metadata import Encoding
from pqext.core.options.layout import parse_checkpoint, to_checkpoint
from pqext.spark.options.save import encode_option, write_options
from pqext.spark.writing.sink import Sink
from reference import packed_integers

VECTORIZED = "spark.sql.parquet.enableVectorizedReader"
NAN = float("nan")
GROUPS = [[NAN, 1.0, 2.0], [NAN] * 3, [-0.0] * 3, [0.0] * 3, [1.0, 2.0, None], [1.5] * 3, [float("inf"), 0.0, -1.0]]
"""Floats of row groups by each of which a reader could wrongly pass."""


@pytest.mark.slow
@pytest.mark.spec("statistics.type-order-floats")
def test_spark_finds_nan_and_zeros_in_files_of_the_spark_profile(spark: Any, tmp_path: Path) -> None:
    """By bounds of chunks and pages, dictionaries and Bloom filters; NaN is above all numbers and zeros are equal."""
    floats = [value for group in GROUPS for value in group]
    doubles = pa.array(floats, pa.float64())
    struct = pa.StructArray.from_arrays([pa.array(floats, pa.float32())], ["f"])
    documents = [variant.Variant.from_python({"d": value}) for value in floats]
    variants = pa.array([{"metadata": one.metadata, "value": one.value} for one in documents], variant.variant_type())
    schema = [("a", doubles.type), ("b", doubles.type), ("s", struct.type), variant.variant_field("v")]
    table = pa.Table.from_arrays([doubles, doubles, struct, variants], schema=pa.schema(schema))
    path = tmp_path / "t.parquet"
    pqext.write_table(
        table, path, profile="spark", row_group_rows=3, page_rows=2, dictionary={"b": False},
        bloom_filters={"b": True, "s.f": True}, shredding={"v": "d DOUBLE"},
    )
    check_bounds(path, "v.typed_value.d.typed_value")
    frame = spark.read.parquet(str(tmp_path))
    operators = {
        "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    }
    present = [value for value in floats if value is not None]
    questions = [
        (f"{column} {sign} {kind}('{literal!r}')", sum(compare(_rank(value), _rank(literal)) for value in present))
        for column, kind in (
            ("a", "double"), ("b", "double"), ("s.f", "float"), ("variant_get(v, '$.d', 'double')", "double"),
        )
        for literal in (NAN, 0.0, -0.0)
        for sign, compare in operators.items()
    ]
    asked = [frame.where(text).select(functions.lit(at)) for at, (text, _) in enumerate(questions)]
    found = Counter(row[0] for row in reduce(DataFrame.unionAll, asked).collect())
    assert {text: found[at] for at, (text, _) in enumerate(questions)} == dict(questions)


def check_bounds(path: Path, leaf: str) -> None:
    """No chunk of ``leaf`` with NaN has bounds, and all others have."""
    footer = pq.read_metadata(path)
    chunks = [footer.row_group(0).column(at) for at in range(footer.num_columns)]
    (place,) = [at for at, chunk in enumerate(chunks) if chunk.path_in_schema == leaf]
    bounded = [footer.row_group(group).column(place).statistics.has_min_max for group in range(footer.num_row_groups)]
    assert bounded == [not any(value != value for value in group if value is not None) for group in GROUPS]


def _rank(value: float) -> tuple[bool, float]:
    return (True, 0.0) if value != value else (False, value)


@pytest.mark.parametrize("kind", [pa.timestamp("ms", "UTC"), pa.timestamp("s", "UTC")])
def test_spark_reads_timestamps_within_its_profile_only(
    spark: Any, kind: pa.DataType, tmp_path: Path
) -> None:
    last = (2**63 - 1) // (10**3 if kind.unit == "ms" else 10**6)
    for name, most in (("within", last), ("beyond", last + 2)):
        table = pa.table({"c": pa.array([most, -most, None], kind)})
        (tmp_path / name).mkdir()
        pqext.write_table(table, tmp_path / name / "t.parquet", profile="spark" if name == "within" else None)
    frames = {
        name: spark.read.parquet(str(tmp_path / name)).selectExpr("unix_micros(c)") for name in ("within", "beyond")
    }
    scale = 10**3 if kind.unit == "ms" else 10**6
    before = spark.conf.get(VECTORIZED)
    try:
        for vectorized in ("true", "false"):
            spark.conf.set(VECTORIZED, vectorized)
            assert [row[0] for row in frames["within"].collect()] == [last * scale, -last * scale, None]
            with pytest.raises((PySparkException, Py4JJavaError), match="overflow"):
                frames["beyond"].collect()
    finally:
        spark.conf.set(VECTORIZED, before)


def test_sink_uses_the_spark_profile_by_default(tmp_path: Path) -> None:
    schema = T.StructType([T.StructField("d", T.DoubleType())])
    for name, options, bounds in (("default", {}, False), ("spark", {"profile": "spark"}, False),
                                  ("none", {"Profile": "None"}, True)):
        sink = Sink({"path": str(tmp_path / name), **options}, schema, False)
        sink.commit([sink.write(iter([pa.record_batch({"d": [1.0, NAN]})]))])
        (file,) = (tmp_path / name).glob("*.parquet")
        assert pq.read_metadata(file).row_group(0).column(0).statistics.has_min_max == bounds


def test_options_forbidden_by_the_profile_are_rejected_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"choose another compression, or pass option profile=none$"):
        write_options({"compression": "brotli"})
    assert write_options({"compression": "brotli", "profile": "none"}) == {"compression": "brotli", "profile": None}
    with pytest.raises(ValueError, match=r'choose another compression, or omit profile="spark"$'):
        write_options({"compression": "brotli", "profile": "spark"})


@pytest.mark.parametrize(
    "checkpoint", [pqext.Checkpoint(row_groups=2, seconds=60), pqext.Checkpoint(bytes=64_000_000), 16, "30s"]
)
def test_checkpoint_option_round_trips_as_text(checkpoint: Any) -> None:
    expected = to_checkpoint(parse_checkpoint(checkpoint) if isinstance(checkpoint, str) else checkpoint)
    assert write_options({"checkpoint": encode_option(checkpoint)})["checkpoint"] == expected


@pytest.mark.parametrize("text", ["abc", "0", '{"rows": 3}', "[1]", "true"])
def test_invalid_checkpoints_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="option checkpoint"):
        write_options({"checkpoint": text})


def test_durable_saves_are_rejected() -> None:
    assert write_options({"durable": "false"})["durable"] is False
    with pytest.raises(ValueError, match="the commit publishes the files of tasks"):
        write_options({"durable": "true"})


@pytest.mark.parametrize("is_vectorized", [True, False])
def test_spark_reads_packed_integers_of_every_type(spark: Any, tmp_path: Path, is_vectorized: bool) -> None:
    table = packed_integers.table()
    pqext.write_table(table, tmp_path / "t.parquet", profile="spark", dictionary=False)
    with pqext.open(tmp_path / "t.parquet") as file:
        assert all(Encoding.DELTA_BINARY_PACKED in chunk.metadata.encodings for chunk in file.row_groups[0].chunks())
    with settings(spark, **{VECTORIZED: str(is_vectorized).lower(), "spark.sql.session.timeZone": "UTC"}):
        result = spark.read.parquet(str(tmp_path)).toArrow()
    assert {name: [str(value) for value in result[name].to_pylist()] for name in result.schema.names} == {
        name: [str(value) for value in table[name].to_pylist()] for name in table.schema.names
    }
