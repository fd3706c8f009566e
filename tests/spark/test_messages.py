"""Errors in Spark name what a user of Spark can change: its options, functions and types."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pqext
from pqext import geo, variant
from pqext.spark import explain_read, ingest_json, query, read, read_json, write
from pqext.spark import functions as PF
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
    assert "; cast it in one of the files" in told
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


JSON_FAULTS: dict[str, tuple[bytes, str]] = {
    "deep.ndjson": (b'{"a":' * 1001 + b"1" + b"}" * 1001, "the value is nested more than 1,000 levels deep"),
    "twice.ndjson": (b'{"a": 1, "a": 2}', "; duplicate_keys=\"first\" or \"last\""),
    "little.ndjson": ('{"a": 1}\n'.encode("utf-16"), "the text is UTF-16: convert it to UTF-8, as iconv"),
    "big.ndjson": ('{"a": 1}\n'.encode("utf-16-be"), "the text is UTF-16: convert it to UTF-8, as iconv"),
    "short.ndjson.gz": (gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-20], "; copy it again, or exclude it from the"),
}
"""Files that are not JSON lines, with the reason and its remedy."""


@pytest.mark.spec("spark.messages")
def test_faults_of_json_files_have_remedies(spark: Any, tmp_path: Path) -> None:
    for name, (data, remedy) in JSON_FAULTS.items():
        (tmp_path / name).write_bytes(data)
        path = str(tmp_path / name)
        ingested = _message(lambda path=path: ingest_json(spark, path, str(tmp_path / "out")))
        assert remedy in ingested, ingested
        assert "max_depth" not in ingested
        if name != "deep.ndjson":  # a limit that Python's readers name
            with pytest.raises(pqext.ParquetError, match=re.escape(remedy)):
                pqext.variant.read_json(path).read_all()
    for name in ("deep.ndjson", "twice.ndjson", "little.ndjson"):
        message = _message(lambda name=name: read_json(spark, str(tmp_path / name)).collect())
        assert JSON_FAULTS[name][1] in message
        assert "max_depth" not in message


@pytest.mark.spec("spark.messages")
def test_errors_in_functions_name_the_call(spark: Any) -> None:
    df = spark.sql("select X'0102' as shape, X'0102' as other, '{\"a\": 1, \"a\": 2}' as text").coalesce(1)
    for column, words in (
        (PF.st_area("shape"), "st_area(shape): "),
        (PF.st_intersects("shape", "other"), "st_intersects(shape, other): "),
        (PF.parse_json("text"), "parse_json(text): row 0: an object has a duplicate key: 'a' [offset 0]; "),
    ):  # fmt: skip
        assert words in _message(lambda column=column: df.select(column).collect())


@pytest.mark.spec("spark.messages")
def test_condition_on_a_column_that_a_file_lacks_names_the_file(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2]}), tmp_path / "b.parquet")
    for condition in ("x = 1", pqext.col("x") == 1):
        message = _message(lambda condition=condition: read(spark, str(tmp_path), ["id"], condition).collect())
        assert re.search(r"no column 'x' \[file \S*b\.parquet\]; .*; schema=\"union\" reads files", message), message
        merged = spark.read.option("mergeSchema", "true").parquet(str(tmp_path)).where("x = 1").select("id")
        assert read(spark, str(tmp_path), ["id"], condition, schema="union").collect() == merged.collect()


def _replace_partitions(spark: Any, target: str) -> Any:
    write(spark.sql("select 1 a, 1 day").coalesce(1), target, partition_by="day")
    changed = spark.sql("select 'x' a, 1 day").coalesce(1)
    return write(changed, target, "overwrite", partition_by="day", partition_overwrite="dynamic")


ANCIENT = "select date'1500-01-01' d"
SAVES: dict[str, tuple[Any, str]] = {
    "partitions": (_replace_partitions, 'or replace all partitions with partition_overwrite="static"'),
    "null character": (lambda spark, path: write(spark.range(1), f"{path}\0x"), "it contains a null character"),
    "link": (lambda spark, path: write(spark.range(1), f"{path}-link"), "is a symbolic link to 'nowhere'"),
    "below a link": (lambda spark, path: write(spark.range(1), f"{path}-link/x", "append"), "or remove the link"),
    "data source": (
        lambda spark, path: spark.range(1).write.format("pqext").mode("append").save(f"{path}-link"),
        "is a symbolic link to 'nowhere'",
    ),
    "codec": (lambda spark, path: write(spark.range(1), path, compression="lzo"), "pass compression=zstd"),
    "calendar": (
        lambda spark, path: write(spark.sql(ANCIENT), path, datetime_rebase_mode="legacy"),
        "option datetime_rebase_mode or spark.sql.parquet.datetimeRebaseModeInWrite is LEGACY: set it to CORRECTED",
    ),
    "type of an option": (
        lambda spark, path: write(spark.range(1), "s3://b/t", storage_options={"access_key": b"SECRET"}),
        "storage_options access_key must be text, a number or a boolean, not bytes",
    ),
}  # fmt: skip
"""Saves that fail, with the remedy."""


@pytest.mark.spec("spark.messages")
def test_failed_saves_name_the_remedy(spark: Any, tmp_path: Path) -> None:
    for name, (save, words) in SAVES.items():
        link = tmp_path / f"{name}-link"
        link.symlink_to("nowhere")
        with pytest.raises(Exception, match=re.escape(words)) as caught:
            save(spark, str(tmp_path / name))
        assert os.readlink(link) == "nowhere"
        assert "SECRET" not in str(caught.value)
        assert name != "codec" or "parquet.compression.codec" not in str(caught.value)


def test_names_and_types_of_storage_options_are_reported() -> None:
    for options, words in (
        ({"region": 5}, "a storage option has the wrong type (region is int)"),
        ({5: "x"}, "names in storage_options must be strings, not int"),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(words)):
            pqext.scan("s3://b/t", storage_options=options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["id = 1 /* it's", "id = 1 /*", "id = '/*' /* x"])
def test_open_comments_are_reported_as_comments(spark: Any, tmp_path: Path, text: str) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(ValueError, match=rf"at character {text.rindex('/*') + 1}: .*a comment is not closed"):
        pqext.read_table(path, filter=text)
    with pytest.raises(PySparkException, match="UNCLOSED_BRACKETED_COMMENT"):
        spark.read.parquet(path).where(text)
    closed = f"{text} */"
    assert read(spark, path, where=closed.replace("'/*'", "1")).count() == 1


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with a shredded VARIANT and a geometry column."""
    events = variant.parse_json(pa.array(['{"mag":6.0,"place":"a"}', '{"mag":1.0,"place":"b"}']))
    schema = pa.schema([("id", pa.string()), variant.variant_field("event"), geo.geometry_field("at", "OGC:CRS84")])
    table = pa.table([pa.array(["a", "b"]), events, geo.from_points([1.0, 2.0], [2.0, 3.0])], schema=schema)
    path = str(tmp_path_factory.mktemp("places") / "places.parquet")
    pqext.write_table(table, path, shredding={"event": "mag DOUBLE, place STRING"})
    return path


@pytest.mark.spec("spark.messages")
def test_unknown_argument_names_the_called_function(spark: Any) -> None:
    misspelt: Any = {"colums": ["id"]}
    with pytest.raises(TypeError, match=r"^explain_read has no argument 'colums'; did you mean 'columns'\?"):
        explain_read("x.parquet", **misspelt)
    with pytest.raises(TypeError, match=r"^read has no argument 'modified_aftr'; did you mean 'modified_after'\?"):
        read(spark, "x.parquet", modified_aftr="2026-01-01")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^query has no argument 'bbox_colum'; did you mean 'bbox_column'\?"):
        query(spark, "x.parquet", {"n": "count"}, bbox_colum="at")


@pytest.mark.spec("spark.messages")
def test_condition_of_spark_needs_a_session(places: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    for condition in ("variant_get(event, '$.mag', 'double') > 5", "upper(id) = 'X'"):
        with pytest.raises(ValueError, match="pass spark= if Spark evaluates it"):
            explain_read(places, where=condition)
    assert explain_read(places, where="id = 'a'").row_groups == 1


@pytest.mark.spec("spark.messages")
def test_explain_uses_the_active_session(spark: Any, places: str) -> None:
    plan = explain_read(places, where="upper(id) = 'X' AND id > 'b'")
    assert (plan.filter, plan.row_groups) == ("id > 'b'", 0)


@pytest.mark.spec("spark.messages")
def test_explain_warns_of_likely_mistakes(places: str) -> None:
    plan = explain_read(places, where="event:$.magg > 5 and st_intersects(at, st_geomfromtext('POINT (181 0)'))")
    assert len(plan.warnings) == 2
    assert "event has no shredded 'magg', which $.magg needs; did you mean 'mag'?" in str(plan)
    assert "beyond longitudes -180 to 180" in str(plan)


@pytest.mark.spec("spark.messages")
def test_box_is_four_numbers(places: str) -> None:
    assert explain_read(places, bbox="0, 0, 1, 9").filter == explain_read(places, bbox=(0, 0, 1, 9)).filter
    boxes: list[Any] = ["0,0,1", "a,b", (1, 2, "x", 4)]
    for box in boxes:
        with pytest.raises(ValueError, match=r"bbox must be four numbers \(xmin, ymin, xmax, ymax\), not "):
            explain_read(places, bbox=box)
    columns: Any = {"at": (0, 0, 1, 9)}
    with pytest.raises(TypeError, match=r"bbox must be four numbers .*, not dict; name the column with bbox_column"):
        explain_read(places, bbox=columns)
