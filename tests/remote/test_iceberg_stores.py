"""Iceberg tables in an object store: data files are opened with the settings of pyiceberg's file IO."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pqext

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

from pyiceberg.catalog.sql import SqlCatalog

from tests.remote.conftest import BUCKET, KEY, S3, SECRET


def test_table_in_s3_is_read_with_the_settings_of_its_catalog(s3: S3, tmp_path: Path) -> None:
    settings = {
        "s3.endpoint": s3.url, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "s3.region": "us-east-1",
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
    }
    catalog = SqlCatalog("local", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"s3://{BUCKET}/lake %20", **settings)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for first in (0, 5):
        table.append(pa.table({"id": pa.array(range(first, first + 5), pa.int64())}))
    named = pqext.scan(f"iceberg:{table.metadata_location}", storage_options=settings)
    for scan in (pqext.scan(table), named):
        assert sorted(scan.to_table()["id"].to_pylist()) == list(range(10))
        s3.forget()
        assert scan.filter("id >= 7").count() == 3
        assert len({path for method, path, _ in s3.asked if method == "GET" and path.endswith(".parquet")}) == 1
    s3.refused = lambda method, url: ".parquet" not in url
    for source in (table, f"iceberg:{table.metadata_location}", f"iceberg:{table.location()}"):
        with pytest.raises(pqext.SourceError) as caught:
            pqext.scan(source, storage_options=None if source is table else settings)
        assert SECRET not in str(caught.value)
        assert KEY not in str(caught.value)
