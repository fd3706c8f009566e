"""Delta tables in an object store: written, compacted, read and cleaned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import sleep
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import tables
from pqext.core.io.sources.locations import list_files

from .conftest import BUCKET, KEY, S3, SECRET

pytest.importorskip("deltalake")
from deltalake import DeltaTable


def options(s3: S3) -> dict[str, Any]:
    return {
        "aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_endpoint_url": s3.url,
        "aws_region": "us-east-1", "aws_allow_http": "true",
    }


def test_delta_table_in_a_store_is_written_compacted_and_cleaned(s3: S3) -> None:
    name, settings = f"delta:s3://{BUCKET}/lake/t", options(s3)
    for value in (1, 2, 3):
        rows = pa.table({"id": [value], "p": ["a b"]})
        assert tables.append(name, rows, partition_by="p", storage_options=settings).version == value - 1
    result = tables.compact(name, storage_options=settings)
    assert (result.files_before, result.files_after, result.rows) == (3, 1, 3)
    found = pqext.scan(name, storage_options=settings).to_table().to_pylist()
    assert sorted(row["id"] for row in found) == [1, 2, 3]
    s3.put("lake/t/part-9.parquet", b"xyz")
    for name_of_log, data in (("_delta_log/00000000000000000000.json", "1"), ("metadata/v1.metadata.json", "2")):
        s3.put(f"lake/t/inside{data}/{name_of_log}", b"xyz")  # another table
        s3.put(f"lake/t/inside{data}/part.parquet", b"xyz")
    cleaned = tables.clean(name, older_than=timedelta(0), dry_run=False, storage_options=settings)
    assert [path.rpartition("/")[2] for path in cleaned.files] == ["part-9.parquet"]
    remaining = s3.keys()
    assert not any(key.endswith("part-9.parquet") for key in remaining)
    assert all(any(key.endswith(f"inside{number}/part.parquet") for key in remaining) for number in (1, 2))
    assert pqext.scan(name, storage_options=settings).count() == 3


def test_delta_table_objects_bring_their_options(s3: S3) -> None:
    name, settings = f"delta:s3://{BUCKET}/lake/o", options(s3)
    tables.append(name, pa.table({"id": [1]}), storage_options=settings)
    table = DeltaTable(name.removeprefix("delta:"), storage_options=settings)
    tables.append(table, pa.table({"id": [2]}))
    assert pqext.scan(table, version=0).to_table()["id"].to_pylist() == [1]
    assert tables.compact(name, storage_options={**settings, "aws_allow_http": True}).files_after == 1


def test_failed_append_leaves_no_object_and_no_secret_in_the_message(s3: S3) -> None:
    name, settings = f"delta:s3://{BUCKET}/lake/u", options(s3)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    tables.append(name, pa.table({"id": [1]}, schema=schema), storage_options=settings)
    before = s3.keys()
    with pytest.raises(pqext.CorruptFileError, match="requires values in this column"):
        tables.append(name, pa.table({"id": pa.array([2, None])}), storage_options=settings)
    assert s3.keys() == before
    wrong = {**settings, "aws_endpoint_url": "http://127.0.0.1:9", "max_retries": "0", "retry_timeout": "1s"}
    with pytest.raises((pqext.ParquetError, OSError)) as error:
        tables.append(name, pa.table({"id": [1]}), storage_options=wrong)
    assert SECRET not in str(error.value)


def test_delta_table_in_a_store_is_read_as_of_a_time(s3: S3) -> None:
    name, settings = f"delta:s3://{BUCKET}/lake/v", options(s3)
    for value in (1, 2):
        tables.append(name, pa.table({"id": [value]}), storage_options=settings)
        if value == 1:
            sleep(1.1)  # the store's times are in whole seconds
    log = [file.listed for file in list_files(f"s3://{BUCKET}/lake/v/_delta_log", None, settings)]
    times = [
        datetime.fromtimestamp(file.modified_ms / 1000, UTC)
        for file in log if file and file.modified_ms and file.path.endswith(".json")
    ]
    assert len(times) == 2
    for time in times:
        table = DeltaTable(name.removeprefix("delta:"), storage_options=settings)
        table.load_as_version(time)
        ids = pqext.scan(name, timestamp=time, storage_options=settings).to_table()["id"].to_pylist()
        assert sorted(ids) == [*range(1, table.version() + 2)]
    with pytest.raises(FileNotFoundError, match="no version at"):
        pqext.scan(name, timestamp=times[0] - timedelta(seconds=1), storage_options=settings)
