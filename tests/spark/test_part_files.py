"""The files of a task: by partition, by size, and none that is half."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as T

import pqext
from pqext import variant
from pqext.dataset.writing.appending import empty_file
from pqext.dataset.writing.part_files import Division, PartFiles, StagedFile, check_division
from pqext.dataset.writing.staging import StagedFolder
from pqext.dataset.writing.targets import check_folder
from pqext.spark.writing.sink import Sink, append_check
from pqext.variant.types import variant_field


def write(
    folder: Path, table: pa.Table, division: Division, rows: int = 1000, **options: Any
) -> tuple[StagedFile, ...]:
    folder.mkdir(exist_ok=True)
    with PartFiles(StagedFolder(str(folder)), "part-7", table.schema, options, division) as files:
        for batch in table.to_batches(rows):
            files.write(batch)
        return files.close()


def test_folder_names_match_spark_and_hive(tmp_path: Path) -> None:
    values = ["a/b", None, "", "x=1%", "é", "a/b"]
    days = [date(2020, 1, 2), None, date(1999, 12, 31), date(1, 1, 1), date(2020, 1, 2), date(2020, 1, 2)]
    table = pa.table({"k": values, "n": range(6), "day": pa.array(days), "yes": [True, False, None, True, True, True]})
    done = write(tmp_path, table, Division(("k", "day", "yes")))
    assert {one.file.name.rpartition("/")[0]: one.file.rows for one in done} == {
        "k=a%2Fb/day=2020-01-02/yes=true": 2,
        "k=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__/yes=false": 1,
        "k=__HIVE_DEFAULT_PARTITION__/day=1999-12-31/yes=__HIVE_DEFAULT_PARTITION__": 1,
        "k=x%3D1%25/day=0001-01-01/yes=true": 1,
        "k=é/day=2020-01-02/yes=true": 1,
    }
    assert pq.ParquetFile(tmp_path / done[0].file.name).schema_arrow.names == ["n"]
    theirs = pa.dataset.dataset(tmp_path, partitioning="hive").to_table().sort_by("n")
    assert theirs["k"].to_pylist() == ["a/b", None, None, "x=1%", "é", "a/b"]
    ours = pqext.read_table(tmp_path, filter=pqext.col("k") == "x=1%")
    assert ours.to_pylist() == [{"n": 3, "k": "x=1%", "day": date(1, 1, 1), "yes": "true"}]


def test_files_are_limited_in_rows_and_approximately_in_bytes(tmp_path: Path) -> None:
    table = pa.table({"k": [n % 2 for n in range(1000)], "n": range(1000)})
    done = write(tmp_path / "rows", table, Division(("k",), max_records_per_file=150), rows=170)
    assert sorted(one.file.rows for one in done) == [50, 50, *[150] * 6]
    assert sorted(pqext.read_table(tmp_path / "rows")["n"].to_pylist()) == [*range(1000)]
    text = pa.table({"t": [f"{n * 7919 % 10007} and {n * n % 65537}" for n in range(60_000)]})
    whole = write(tmp_path / "whole", text, Division())[0].file.bytes
    done = write(tmp_path / "bytes", text, Division(target_file_bytes=whole // 5))
    sizes = [one.file.bytes for one in done]
    assert 4 <= len(sizes) <= 7
    assert all(0.7 * whole / 5 < size < 1.4 * whole / 5 for size in sizes[:-1]), sizes
    assert all((tmp_path / "bytes" / one.file.name).stat().st_size == one.file.bytes for one in done)
    assert pqext.read_table(tmp_path / "bytes").num_rows == 60_000


def test_each_file_of_a_partition_infers_and_reports_its_shredding(tmp_path: Path) -> None:
    texts = ['{"a": 1}' if n % 2 else '{"b": "x"}' for n in range(100)]
    values = variant.parse_json(texts)
    schema = pa.schema([pa.field("k", pa.int64()), variant_field("v")])
    table = pa.table([pa.array([n % 2 for n in range(100)]), values], schema=schema)
    done = write(tmp_path, table, Division(("k",)), rows=7, shredding={"v": "infer"})
    told = {one.file.name.partition("/")[0]: one.file.shredded["v"] for one in done}
    assert told.keys() == {"k=0", "k=1"}
    assert "b: STRING" in told["k=0"]
    assert "a: " in told["k=1"]
    for one in done:
        assert pq.ParquetFile(tmp_path / one.file.name).schema_arrow.field("v").type.num_fields == 3


def test_partitions_beyond_the_open_file_limit_are_written_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqext.dataset.writing.part_files._OPEN_FILES", 3)
    monkeypatch.setattr("pqext.dataset.writing.part_files._HELD_BYTES", 200)
    table = pa.table({"k": [n % 5 for n in range(50)], "n": range(50)})
    done = write(tmp_path, table, Division(("k",)), rows=20)
    assert len({one.file.name for one in done}) == len(done) > 5
    assert sorted(pqext.read_table(tmp_path)["n"].to_pylist()) == [*range(50)]


def test_every_text_is_a_folder_name_that_round_trips(tmp_path: Path) -> None:
    texts = ["\0", "a\0b", ".", "..", "a/b", "a=b", "%41", "é", " ", "\n", "_", "\\"]
    write(tmp_path, pa.table({"k": texts, "n": range(len(texts))}), Division(("k",)))
    found = pqext.read_table(tmp_path).sort_by("n")
    assert found["k"].to_pylist() == texts


def test_error_leaves_no_file(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2], "n": [1, 2]})
    staged = StagedFolder(str(tmp_path))

    def fail() -> None:
        with PartFiles(staged, "p", table.schema, {}, Division(("k",), max_records_per_file=1)) as files:
            files.write(table.to_batches()[0])
            files.write(table.to_batches()[0])
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        fail()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    with pytest.raises(FileNotFoundError):  # a job that was aborted gets no folder anew
        StagedFolder(str(tmp_path / "gone")).create("k=1/a.parquet")


@pytest.mark.parametrize("shredding", ["infer", "a INT"])
def test_invalid_variant_in_a_save_names_its_column(tmp_path: Path, shredding: str) -> None:
    schema = T.StructType([T.StructField("id", T.LongType()), T.StructField("event", T.VariantType())])
    sink = Sink({"path": str(tmp_path / "t"), "shredding": json.dumps({"event": shredding})}, schema, False)
    values = [{"value": value, "metadata": b"\x01\0\0"} for value in (b"\x0c\x01", b"\xff\xff")]
    with pytest.raises(pqext.VariantError, match=r"row 1: the value is truncated.*column event") as error:
        sink.write(iter([pa.record_batch({"id": [1, 2], "event": values})]))
    assert (error.value.row, error.value.column) == (1, "event")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (("kk",), ValueError, r"no column 'kk'; did you mean 'k'\?"),
        (("k", "k"), ValueError, "contains duplicate columns: k, k"),
        (("x",), TypeError, "column 'x' of type double; cast the column to text, a date or an integer"),
        (("k", "x", "n"), TypeError, "folder names cannot represent"),
    ],
)
def test_columns_unsuitable_for_partitioning_are_rejected(columns: Any, error: Any, message: str) -> None:
    schema = pa.schema([("k", pa.int32()), ("x", pa.float64()), ("n", pa.string())])
    with pytest.raises(error, match=message):
        check_division(Division(columns), schema)
    with pytest.raises(ValueError, match=r"readers skip folders whose name starts with '\.x'"):
        check_division(Division((".x",)), schema.append(pa.field(".x", pa.int32())))
    with pytest.raises(ValueError, match="contains all columns"):
        check_division(Division(("k", "n")), schema.remove(1))
    with pytest.raises(ValueError, match="max_records_per_file must be positive"):
        check_division(Division(max_records_per_file=0), schema)


def test_files_with_partition_columns_are_not_mixed_with_partitioned_files(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2], "n": [1, 2]})
    write(tmp_path, table, Division(("k",)))
    check_folder(tmp_path, False, append_check(lambda: empty_file(table.select(["n"]).schema, {}), ("k",)))
    with pytest.raises(ValueError, match=r"is partitioned by k, so its files must not contain k; .* add the partition"):
        check_folder(tmp_path, False, append_check(lambda: empty_file(table.schema, {})))
    pq.write_table(table, tmp_path / "beside.parquet")
    with pytest.raises(pqext.UnsupportedError, match="column 'k' is stored in this file, but is a partition column"):
        pqext.read_table(tmp_path)
