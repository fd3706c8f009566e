"""Errors in Spark name what a user of Spark can change: its options, functions and types."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import pqext
from pqext.spark import functions as PF
from pqext.spark import ingest_json, read, read_json, write
from pqext.spark.base.errors import spark_option_names

PYTHON = ("iter_batches", "Limits(", "--union", "pyarrow.schema", "invalid_values")
"""What errors say in Python and on the command line alone."""


def _message(call: Any) -> str:
    with pytest.raises((PySparkException, ValueError)) as caught:
        call()
    text = str(caught.value)
    assert not [word for word in PYTHON if word in text], text
    return text


@pytest.mark.spec("spark.messages")
def test_limits_and_schemas_name_spark_options(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "large.parquet")
    pqext.write_table(pa.table({"a": ["x" * 1000] * 100}), path, dictionary=False)
    assert "raise it with memory_bytes=" in _message(lambda: read(spark, path, memory_bytes=1000).collect())
    folder = tmp_path / "differ"
    folder.mkdir()
    pqext.write_table(pa.table({"a": [1], "b": [1]}), folder / "1.parquet")
    pqext.write_table(pa.table({"a": ["x"]}), folder / "2.parquet")
    told = _message(lambda: read(spark, str(folder), schema="union").collect())
    assert "2.parquet; cast it in one of the files" in told
    told = _message(lambda: read(spark, str(folder), ["a"]).collect())
    assert "column 'a' is int64 in" in told
    assert 'schema="union"' not in told  # which could not read both either
    pqext.write_table(pa.table({"a": [1.5]}), folder / "2.parquet")
    told = _message(lambda: read(spark, str(folder), ["a"]).collect())
    assert 'schema="union" reads files whose schemas differ' in told


@pytest.mark.spec("spark.messages")
def test_invalid_text_error_names_spark_options(tmp_path: Path) -> None:
    path = str(tmp_path / "text.parquet")
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"a\xff"]).buffers())
    pq.write_table(pa.table({"s": text}), path)
    with pytest.raises(pqext.CorruptFileError) as caught, spark_option_names():
        pqext.read_table(path)
    message = str(caught.value)
    assert not [word for word in PYTHON if word in message], message
    assert 'row 1 of the row group' in message
    assert 'pass invalid_utf8="replace" or "binary"; exclude the row with where=' in message


@pytest.mark.spec("spark.messages")
def test_rejected_append_states_which_readers_could_read_both(spark: Any, tmp_path: Path) -> None:
    target = str(tmp_path / "out")
    write(spark.sql("select 1 as a").coalesce(1), target)
    told = _message(lambda: write(spark.sql("select 1 as a, 2 as b").coalesce(1), target, "append"))
    assert 'only readers with schema="union" could read both' in told
    told = _message(lambda: write(spark.sql("select 'x' as a").coalesce(1), target, "append"))
    assert "no reader could read both" in told
    pqext.write_table(pa.table({"a": [1], "b": [2]}), Path(target) / "beside.parquet")
    assert read(spark, target, schema="union").count() == 2


@pytest.mark.spec("spark.messages")
def test_strict_cast_error_names_value_path_type_and_remedy(spark: Any) -> None:
    df = spark.sql("""select parse_json('{"a": "zz", "b": [1, "x"]}') as v""")
    for path, type, told in (
        ("$.a", "int", 'the value "zz" at $.a does not cast to INT'),
        ("$.b", "array<int>", 'the value [1,"x"] at $.b does not cast to ARRAY<INT>'),
    ):
        told += "; try_variant_get returns null for it"
        assert told in _message(lambda path=path, type=type: df.select(PF.variant_get("v", path, type)).collect())
        assert df.select(PF.try_variant_get("v", path, type).isNotNull()).count() == 1


@pytest.mark.spec("spark.messages")
def test_error_for_multiline_documents_names_the_formats(spark: Any, tmp_path: Path) -> None:
    documents = [{"a": number} for number in range(5)]
    path, target = tmp_path / "array.json", str(tmp_path / "out")
    path.write_text(json.dumps(documents, indent=1))
    for call in (lambda: read_json(spark, str(path)).collect(), lambda: ingest_json(spark, str(path), target)):
        told = _message(call)
        assert 'line 1, byte 1: the text ends within a value; an array or a document that spans lines needs' in told
        assert 'ingest_json(format="array") or format="documents"' in told
    assert ingest_json(spark, str(path), target, format="array").rows == 5


@pytest.mark.spec("spark.messages")
def test_xz_files_are_read_and_errors_name_the_codec(spark: Any, tmp_path: Path) -> None:
    data = lzma.compress("".join(json.dumps({"a": number}) + "\n" for number in range(5)).encode())
    packed, target = tmp_path / "lines.ndjson.xz", str(tmp_path / "out")
    packed.write_bytes(data)
    assert read_json(spark, str(packed)).count() == ingest_json(spark, str(packed), target).rows == 5
    short, unnamed = tmp_path / "short.ndjson.xz", tmp_path / "lines.ndjson"
    short.write_bytes(data[:-20])
    unnamed.write_bytes(data)
    for path, size, reason in (
        (short, None, "xz: Compressed file ended before the end-of-stream marker was reached"),
        (unnamed, 20, "the file is compressed with xz, but its name does not end in .xz: rename it"),
    ):
        for call in (
            lambda path=path, size=size: read_json(spark, str(path), partition_bytes=size).collect(),
            lambda path=path, size=size: ingest_json(spark, str(path), target, task_bytes=size),
        ):
            message = _message(call)
            assert reason in message
            assert path.name in message
