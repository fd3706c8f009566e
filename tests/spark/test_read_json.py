"""JSON lines into VARIANT, and what becomes of lines that are not JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from pqext.spark import read_json


def test_every_line_is_parsed_to_the_same_variant_as_in_spark(spark: Any, events_file: Path) -> None:
    ours = read_json(spark, str(events_file), column="event", partition_bytes=200_000)
    assert ours.schema.simpleString() == "struct<event:variant>"
    theirs = spark.read.text(str(events_file)).select(F.parse_json("value").alias("event"))
    text = F.to_json("event").alias("event")
    assert sorted(ours.select(text).collect()) == sorted(theirs.select(text).collect())


def test_folders_and_patterns_include_all_but_hidden_files(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name, text in (("a.json", "1\n\n2"), ("deep/b.json", "\r\n3\r\n"), ("_hidden", "not JSON"), ("empty.json", "")):
        (tmp_path / name).write_text(text)

    def values(path: str) -> list[int]:
        return sorted(row[0] for row in read_json(spark, path).select(F.col("value").cast("int")).collect())

    assert values(str(tmp_path)) == [1, 2, 3]
    assert values(f"file:{tmp_path}/*.json") == [1, 2]
    assert values(str(tmp_path / "empty.json")) == []


def test_invalid_json_line_aborts_the_job_with_file_line_and_reason(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    lines = [json.dumps({"n": n}) for n in range(1, 100)]
    lines[72] = '{"n": 0x10}'
    path.write_text("\n".join(lines))
    with pytest.raises(Exception, match=r"events\.ndjson, line 73, byte 7: a comma or the closing brace"):
        read_json(spark, str(path), partition_bytes=64).collect()


def test_invalid_json_lines_are_null_on_request_and_counted(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(b'{"n": 1}\n{"n"\n\nnull\n\xff\n{"n": 2}\n')
    df = read_json(spark, str(path), on_error="null", error_column="_error", partition_bytes=5).cache()
    assert df.count() == 5
    faults = sorted(row[0] for row in df.where("_error IS NOT NULL").select("_error").collect())
    assert [fault.rpartition("events.ndjson, ")[2] for fault in faults] == [
        "line 2, byte 4: the text ends within a value",
        "line 5, byte 0: the text is not UTF-8",
    ]
    assert df.where("value IS NULL").count() == 2
    assert df.where("_error IS NULL AND is_variant_null(value)").count() == 1
    df.unpersist()


def test_missing_file_and_unknown_option_are_named(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nothing-here"):
        read_json(spark, str(tmp_path / "nothing-here")).collect()
    with pytest.raises(Exception, match="unknown option 'colum'"):
        spark.read.format("pqext_json").option("colum", "v").load(str(tmp_path)).collect()
    (tmp_path / "a.json.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(Exception, match=r"the compressed file cannot be read: .*a\.json\.gz"):
        read_json(spark, str(tmp_path)).collect()


@pytest.mark.slow
def test_schema_may_only_name_the_columns(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    path.write_text('{"a": 1}\nnot JSON\n')
    reader = spark.read.format("pqext_json").option("on_error", "null")
    rows = reader.schema("v VARIANT").load(str(path)).select(F.expr("try_variant_get(v, '$.a', 'int')")).collect()
    assert [row[0] for row in rows] == [1, None]
    both = reader.option("error_column", "e").schema("e STRING, v VARIANT").load(str(path)).collect()
    assert [row.e is None for row in both] == [True, False]
    plain = spark.read.format("pqext_json")
    for schema in ("a int", "v VARIANT, a INT", "v VARIANT, w VARIANT", "v VARIANT, e STRING"):
        with pytest.raises(Exception, match=r"the schema has `\w` .* omit schema\(\), and extract fields"):
            plain.schema(schema).load(str(path)).collect()
    with pytest.raises(Exception, match="`other` VARIANT"):
        plain.option("column", "other").schema("v VARIANT").load(str(path)).collect()
    with pytest.raises(Exception, match="unknown option 'colum'"):
        plain.option("colum", "v").schema("v VARIANT").load(str(path)).collect()
