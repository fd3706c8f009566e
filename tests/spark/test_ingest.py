"""JSON files to shredded Parquet in Spark's tasks: what is written, what is told, and what a second start does."""

from __future__ import annotations

import bz2
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from spark.sessions import SPARK_4_1

import pqext
from pqext import variant
from pqext.core.base.errors import CorruptFileError, GeometryError, VariantError
from pqext.dataset.writing import commit
from pqext.spark import ingest_json, read


def lines(path: Path, documents: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(document) + "\n" for document in documents).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def numbers_and_text(frame: Any) -> list[str]:
    """The JSON of the rows; a number is the same however it is written, 7.482E-4 or 0.0007482."""
    documents = (json.loads(text, parse_float=Decimal) for (text,) in frame.collect())
    return sorted(json.dumps(document, sort_keys=True, default=_normal) for document in documents)


def _normal(number: Decimal) -> str:
    return str(number.normalize())


def test_residual_shares_are_reported(spark: Any, tmp_path: Path) -> None:
    source = lines(tmp_path / "in" / "a.json", [{"x": i if i % 8 == 0 else i / 7, "a": [i / 7]} for i in range(4000)])
    done = ingest_json(spark, str(source), str(tmp_path / "out"), task_bytes=20_000)
    assert len(done.written) > 1
    group = pq.read_table(tmp_path / "out")["value"].combine_chunks().field("typed_value").field("x")
    left, typed = (len(group) - group.field(name).null_count for name in ("value", "typed_value"))
    assert (left, typed) == (500, 3500)
    # 0/7 and every other 7th quotient is a whole number, which Python writes with a point.
    assert done.residual == {"value: $.x": 0.125}
    size = sum(path.stat().st_size for path in (tmp_path / "out").glob("*.parquet"))
    assert repr(done) == (
        f"<pqext.spark.IngestResult: 4,000 rows, {size:,} bytes in {len(done.written)} files in {tmp_path / 'out'}\n"
        "  value: STRUCT<a: ARRAY<DOUBLE>, x: DOUBLE>\n  in the residual: 12.5% of value: $.x>"
    )
    assert "ingested before and skipped: 1 file" in str(ingest_json(spark, str(source), str(tmp_path / "out")))
    with pytest.warns(UserWarning, match=r"the residual contains 75.0% of value: \$.x; use types that fit"):
        ingest_json(spark, str(source), str(tmp_path / "out"), "x INT", mode="overwrite")


def values(folder: Path) -> list[Any]:
    return [*variant.to_python(pqext.read_table(folder)["value"])]


def test_documents_are_ingested_as_shredded_rows_readable_by_spark(
    spark: Any, events_file: Path, tmp_path: Path
) -> None:
    done = ingest_json(spark, str(events_file), str(tmp_path / "out"), task_bytes=100_000, compression="zstd")
    assert len(done.written) > 3
    assert done.rows == done.files[0].rows == len(events_file.read_text().splitlines())
    assert done.files[0].bytes == done.bytes == events_file.stat().st_size
    assert "mag" in str(done.schema)
    theirs = spark.read.text(str(events_file)).select(F.to_json(F.parse_json("value")))
    expected = numbers_and_text(theirs)
    assert numbers_and_text(spark.read.parquet(str(tmp_path / "out")).select(F.to_json("value"))) == expected
    assert numbers_and_text(read(spark, str(tmp_path / "out")).select(F.to_json("value"))) == expected
    assert sum(one.rows for one in done.written) == done.rows
    for one in done.written:
        file = tmp_path / "out" / one.name
        assert file.stat().st_size == one.bytes
        assert one.shredded == {"value": done.schema}
        assert any("typed_value" in str(column) for column in pq.read_schema(file).field("value").type)


def test_files_are_split_combined_and_decompressed(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    documents = [{"n": n} for n in range(2000)]
    lines(source / "a.ndjson", documents[:1500])
    lines(source / "b" / "b.ndjson.gz", documents[1500:1900])
    for n in range(1900, 2000):
        lines(source / f"small-{n}.json", documents[n : n + 1])
    lines(source / "_hidden.json", [{"n": -1}])
    done = ingest_json(spark, str(source), str(tmp_path / "out"), "n INT", task_bytes=6000)
    assert sorted(one["n"] for one in values(tmp_path / "out")) == [*range(2000)]
    assert 4 <= len(done.written) <= 12
    assert {Path(one.path).name: one.rows for one in done.files}["b.ndjson.gz"] == 400
    assert done.schema == "STRUCT<n: INT>"


def test_multiline_and_compressed_documents_are_read_completely(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.json").write_text('[{"n": 1,\n "m": 2},\n {"n": 3}]')
    (source / "b.json.bz2").write_bytes(bz2.compress(b'{"n":\n 4}\n{"n": 5}'))
    (source / "c.json.zst").write_bytes(pa.compress(b'{"n": 6}\n', "zstd", asbytes=True))
    ingest_json(spark, str(source), str(tmp_path / "out"), format="auto")
    assert sorted(one["n"] for one in values(tmp_path / "out")) == [1, 3, 4, 5, 6]
    (source / "d.json.gz").write_bytes(gzip.compress(b'{"n": 7}\n' * 1000)[:-9])
    with pytest.raises(CorruptFileError, match=r"Truncated compressed stream \[file .*d\.json\.gz.*\]; "):
        ingest_json(spark, str(source), str(tmp_path / "out"), format="auto")
    assert len(values(tmp_path / "out")) == 5


def test_invalid_json_line_aborts_the_job_and_leaves_no_files(spark: Any, tmp_path: Path) -> None:
    source = lines(tmp_path / "in.json", [{"n": n} for n in range(400)])
    source.write_text(source.read_text() + '{"n": 0x10}\n' + '{"n": 1}\n' * 200)
    with pytest.raises(VariantError, match=r"in\.json, line 401, byte 7: a comma or the closing brace"):
        ingest_json(spark, str(source), str(tmp_path / "out"), task_bytes=500)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("schema", ["n INT", None])
def test_invalid_lines_become_null_rows_with_reasons_or_are_skipped(spark: Any, tmp_path: Path, schema: Any) -> None:
    source = tmp_path / "in.json"
    source.write_bytes(b'{"n": 1}\n{"n"\n\nnull\n\xff\n{"n": 2}\n')
    out = tmp_path / "out"
    done = ingest_json(spark, str(source), str(out), schema, on_error="null", error_column="why", task_bytes=9)
    assert (done.rows, done.bad_lines) == (5, 2)
    told = pqext.read_table(out).to_pylist()
    assert sorted(row["why"].rpartition("in.json, ")[2] for row in told if row["value"] is None) == [
        "line 2, byte 4: the text ends within a value",
        "line 5, byte 0: the text is not UTF-8",
    ]
    assert sum(row["why"] is None for row in told) == 3
    done = ingest_json(spark, str(source), str(out), schema, on_error="skip", mode="overwrite", task_bytes=9)
    assert (done.rows, done.bad_lines) == (3, 2)
    assert sorted(map(str, values(out))) == ["None", "{'n': 1}", "{'n': 2}"]


def test_side_file_lists_each_invalid_line(spark: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out"
    source.write_bytes(b'\xef\xbb\xbf{"n": 1}\n{"n"\r\n\n \n{"lon": 1}\n\xff\n{"n": 2}\n')
    made = {"at": ("lon", "n")}
    for on_error in ("null", "skip"):
        options: dict[str, Any] = {"on_error": on_error, "bad_lines_file": True, "mode": "overwrite"}
        done = ingest_json(spark, str(source), str(out), "n INT", task_bytes=9, **options)
        assert done.bad_lines_file is not None
        told = [json.loads(line) for line in Path(done.bad_lines_file).read_text().splitlines()]
        assert [(one["offset"], one.get("raw"), one.get("raw_base64")) for one in told] == [
            (12, '{"n"', None), (32, None, "/w=="),
        ]
        assert all(one["file"] == str(source) for one in told)
        assert told[0]["message"].endswith("in.json, line 2, byte 5: the text ends within a value")
        assert len([*out.glob("_pqext_bad_lines-*")]) == 1
    done = ingest_json(spark, str(source), str(out), None, made, on_error="skip", mode="overwrite", format="auto")
    assert (done.bad_lines_file, [*out.glob("_pqext_bad_lines-*")]) == (None, [])
    multi = tmp_path / "multi.json"
    multi.write_text('[{"n":\n 1},\n {"n": x},\n {"n": 3}]')
    done = ingest_json(
        spark, str(multi), str(out), format="auto", on_error="null", bad_lines_file=True, mode="overwrite"
    )
    assert done.bad_lines_file is not None
    (one,) = [json.loads(line) for line in Path(done.bad_lines_file).read_text().splitlines()]
    assert (one["offset"], one["raw"]) == (None, '{"n": x}')


def test_document_paths_name_partition_folders(spark: Any, tmp_path: Path) -> None:
    documents = [
        {"kind": ["a", "b/c", None][n % 3], "time": f"2020-01-0{1 + n % 2}T10:00:00", "n": n} for n in range(120)
    ]
    source, out = lines(tmp_path / "in.json", documents), tmp_path / "out"
    by = {"kind": "$.kind", "day": ("time", "date")}
    done = ingest_json(spark, str(source), str(out), partition_by=by, task_bytes=2500, max_records_per_file=8)
    assert {one.name.rpartition("/")[0] for one in done.written} == {
        f"kind={kind}/day=2020-01-0{day}" for kind in ("a", "b%2Fc", "__HIVE_DEFAULT_PARTITION__") for day in (1, 2)
    }
    assert max(one.rows for one in done.written) <= 8
    theirs = spark.read.parquet(str(out)).where("kind = 'b/c' AND day = '2020-01-01'")
    assert theirs.selectExpr("variant_get(value, '$.n', 'int') n").orderBy("n").toPandas()["n"].tolist() == [
        n for n in range(120) if n % 3 == 1 and n % 2 == 0
    ]
    kept = pqext.read_table(out, filter=pqext.col("kind") == "b/c")
    assert sorted(one["n"] for one in variant.to_python(kept["value"])) == [*range(1, 120, 3)]
    assert ingest_json(spark, str(source), str(out), partition_by=by, max_records_per_file=8).files == ()
    more = lines(tmp_path / "more.json", [{"kind": "d", "n": 1}])
    with pytest.raises(ValueError, match=r"has folders by kind, day, but partition_by names kind; nothing was written"):
        ingest_json(spark, str(more), str(out), partition_by=["$.kind"])
    assert ingest_json(spark, str(more), str(out), partition_by=by).rows == 1


def test_job_is_described_and_reports_progress(spark: Any, tmp_path: Path) -> None:
    source = lines(tmp_path / "in.json", [{"n": n} for n in range(400)])
    spark.sparkContext.setJobGroup("mine", "my description")
    told: list[tuple[int, int]] = []
    out = str(tmp_path / "out")
    done = ingest_json(spark, str(source), out, "n INT", task_bytes=500, progress=lambda *at: told.append(at))
    assert told[0] == (0, len(done.written))
    assert told[-1] == (len(done.written), len(done.written))
    assert told == sorted(told)
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "my description"

    def fail(*_: Any) -> None:
        raise ValueError("the telling ends, not the job")

    ingest_json(spark, str(source), out, "n INT", mode="overwrite", progress=fail)


def test_geometries_are_built_from_coordinates_text_and_geojson_in_documents(spark: Any, tmp_path: Path) -> None:
    places = [
        {"lon": n, "at": {"lat": n / 2}, "wkt": f"POINT ({n} 1)", "shape": {"type": "Point", "coordinates": [n, 2]}}
        for n in range(60)
    ]
    places[30]["wkt"] = "POINT (("
    places[40]["shape"] = 5
    source, out = lines(tmp_path / "in.json", places), tmp_path / "out"
    made = {
        "at": ("lon", "$.at.lat"),
        "text": {"wkt": "$.wkt"},
        "shape": {"geojson": "$.shape", "edges": "spherical"},
    }
    with pytest.raises(GeometryError, match=r"in\.json, document \d+ from byte \d+, column text: .*; on_error="):
        ingest_json(spark, str(source), str(out), geometry=made, task_bytes=1000)
    assert not out.exists()
    done = ingest_json(
        spark, str(source), str(out), None, made, on_error="null", error_column="why", task_bytes=1000
    )
    assert (done.rows, done.bad_lines) == (60, 2)
    table = pqext.read_table(out)
    assert [table[name].null_count for name in ("value", "at", "text", "shape", "why")] == [0, 0, 1, 1, 58]
    strong = pqext.read_table(out, filter=pqext.col("at").intersects((10, 5, 12, 6)))
    assert sorted(one["lon"] for one in variant.to_python(strong["value"])) == [10, 11, 12]
    frame = read(spark, str(out)) if SPARK_4_1 else spark.read.parquet(str(out))
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    assert (types["at"], types["shape"]) == ("geometry(4326)", "geography(4326)")
    assert ingest_json(spark, str(source), str(out), None, made, on_error="skip", mode="overwrite").rows == 58


def test_second_run_ingests_only_new_and_changed_files(spark: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    lines(source / "a.json", [1])
    lines(source / "b.json", [2])
    ingest_json(spark, str(source), str(out))
    again = ingest_json(spark, str(source), str(out))
    assert (again.files, [Path(path).name for path in again.skipped], again.rows) == ((), ["a.json", "b.json"], 0)
    lines(source / "b.json", [3, 4])
    lines(source / "c.json", [5])
    third = ingest_json(spark, str(source), str(out))
    assert [(Path(one.path).name, one.rows) for one in third.files] == [("b.json", 2), ("c.json", 1)]
    assert sorted(values(out)) == [1, 2, 3, 4, 5]
    assert ingest_json(spark, str(source / "a.json"), str(out), again=True).rows == 1
    assert sorted(values(out)) == [1, 1, 2, 3, 4, 5]
    assert ingest_json(spark, str(source), str(out), mode="overwrite").rows == 4
    assert sorted(values(out)) == [1, 3, 4, 5]
    assert len(commit.ingest_records(out)) == 1
    commit.ingest_records(out)[0].write_text("{")
    with pytest.raises(CorruptFileError, match="remove the record to ingest the files again"):
        ingest_json(spark, str(source), str(out))


def test_files_without_documents_produce_an_empty_folder(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("\n\n")
    done = ingest_json(spark, str(tmp_path / "in.json"), str(tmp_path / "out"))
    assert (done.rows, done.written) == (0, ())
    assert pqext.read_table(tmp_path / "out").num_rows == 0


def test_errors_are_reported_before_a_task_starts(spark: Any, tmp_path: Path) -> None:
    source = str(lines(tmp_path / "in.json", [1]))
    out = str(tmp_path / "out")
    with pytest.raises(ValueError, match="on_error must be one of 'fail', 'null', 'skip', not 'raise'"):
        ingest_json(spark, source, out, on_error="raise")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="compresion"):
        ingest_json(spark, source, out, compresion="zstd")
    with pytest.raises(TypeError, match=r"replaces all rows of dest; .* write the rows with pqext.spark.write"):
        ingest_json(spark, source, out, mode="overwrite", partition_overwrite="dynamic")
    with pytest.raises(ValueError, match=r'error_column requires on_error="null"'):
        ingest_json(spark, source, out, error_column="e")
    for wrong, message in (
        ({"at": ("lon",)}, r"geometry 'at': points needs two or three paths"),
        ({"at": {"crs": "EPSG:4326"}}, r"geometry 'at' has no paths"),
        ({"value": ("lon", "lat")}, r"several columns are named 'value': rename them in"),
        ({"at": {"wkt": "$.w", "ordr": "hilbert"}}, r"unknown geometry option 'ordr'; did you mean 'order'"),
    ):
        with pytest.raises(ValueError, match=message):
            ingest_json(spark, source, out, geometry=wrong)
    with pytest.raises(FileNotFoundError):
        ingest_json(spark, str(tmp_path / "nothing"), out)
    with pytest.raises(ValueError, match=r"from several tasks is not supported on hdfs://"):
        ingest_json(spark, source, "hdfs://bucket/out")
    with pytest.raises(ValueError, match=r'bad_lines_file requires on_error="null" or "skip"'):
        ingest_json(spark, source, out, bad_lines_file=True)
    with pytest.raises(ValueError, match=r"several columns are named 'value': rename them in"):
        ingest_json(spark, source, out, partition_by=["$.value"])
    with pytest.raises(ValueError, match=r"'\$.a\[0\]' does not end with a key; pass a mapping"):
        ingest_json(spark, source, out, partition_by=["$.a[0]"])
    with pytest.raises(TypeError, match=r"folder names cannot represent column 'x' of type double"):
        ingest_json(spark, source, out, partition_by={"x": ("$.x", "double")})
    with pytest.raises(ValueError, match=r"the path is an existing file, not a folder"):
        ingest_json(spark, source, source)
    assert not (tmp_path / "out").exists()
