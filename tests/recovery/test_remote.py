"""Recovery of files in stores: each is fetched once, a failing store is no damage, and no file replaces itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from recovery.cut_files import by_pqext

import pqext
from pqext.core.io.sources.locations import locate, may_be_same_file
from pqext.variant.rewriting import LossError

ROWS = 20_000
TABLE = pa.table({"id": range(ROWS), "name": [f"x{row}" for row in range(ROWS)]})
WHOLE = by_pqext(TABLE, row_group_rows=5_000, compression="uncompressed")


class Failing(MemoryFileSystem):
    """Counts the bytes that are asked for, and refuses one request."""

    protocol = "failing"
    cachable = False

    def __init__(self, refused: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.store: dict[str, Any] = {}
        self.refused, self.asked, self.given = refused, 0, 0

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self.asked += 1
        if self.asked == self.refused:
            raise PermissionError("the token has expired")
        found: bytes = super().cat_file(path, start=start, end=end, **options)
        self.given += len(found)
        return found


@pytest.fixture
def damaged() -> bytes:
    """The file without its last byte, and with another one changed."""
    data = bytearray(WHOLE[:-1])
    data[100] ^= 1
    return bytes(data)


@pytest.mark.spec("recovery.original")
def test_remote_file_is_fetched_once(tmp_path: Path, damaged: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    store = Failing()
    store.pipe("/in.parquet", damaged)
    report = pqext.recover("/in.parquet", tmp_path / "out.parquet", filesystem=store)
    assert store.given < len(damaged) * 1.1 + 100_000
    assert report.rows == 15_000
    assert str(report.path).endswith("in.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(TABLE.slice(5_000))
    assert os.listdir(tmp_path) == ["out.parquet"]


@pytest.mark.spec("recovery.original")
def test_failing_store_is_not_reported_as_damage(tmp_path: Path, damaged: bytes) -> None:
    store = Failing()
    store.pipe("/in.parquet", damaged)
    pqext.recover("/in.parquet", tmp_path / "out.parquet", filesystem=store)
    requests = store.asked
    (tmp_path / "out.parquet").write_bytes(b"before")
    for refused in range(1, requests + 1):
        failing = Failing(refused)
        failing.pipe("/in.parquet", damaged)
        with pytest.raises((PermissionError, pqext.SourceError)):
            pqext.recover("/in.parquet", tmp_path / "out.parquet", filesystem=failing)
        assert (tmp_path / "out.parquet").read_bytes() == b"before"


@pytest.mark.spec("recovery.original")
def test_file_changed_during_recovery_is_reported(
    tmp_path: Path, damaged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in.parquet"
    path.write_bytes(damaged)
    assess = pqext.recovery.run.assess

    def change_file(*arguments: Any) -> Any:
        with open(path, "ab") as file:
            file.write(b"?")
        return assess(*arguments)

    monkeypatch.setattr("pqext.recovery.run.assess", change_file)
    with pytest.raises(pqext.ChangedFileError):
        pqext.recover(path, tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize(
    "name", ["memory:///same/in.parquet", "memory://same//in.parquet", "memory://same/x/../in.parquet"]
)
@pytest.mark.spec("recovery.original")
def test_destination_may_not_be_the_source_under_another_url(name: str, damaged: bytes) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/same/in.parquet", damaged)
    with pytest.raises(ValueError, match="must differ from the damaged source"):
        pqext.recover("memory://same/in.parquet", name)
    changed = damaged + WHOLE[-1:]
    store.pipe("/same/in.parquet", changed)
    with pytest.raises(LossError):
        pqext.repair("memory://same/in.parquet", name)
    assert store.cat("/same/in.parquet") == changed


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("s3://bucket/a/b.parquet", "s3a://bucket/a/b.parquet", True),
        ("s3://bucket/a/b.parquet", "S3://bucket/a/./b.parquet", True),
        ("s3://bucket/a/b.parquet", "s3://bucket/a/c.parquet", False),
        ("s3://bucket/a/b.parquet", "gs://bucket/a/b.parquet", False),
        ("s3://bucket/a/b.parquet", "a/b.parquet", False),
    ],
)
@pytest.mark.spec("recovery.original")
def test_possibly_equal_urls_are_detected(one: str, other: str, same: bool) -> None:
    assert may_be_same_file(one, other) is same


@pytest.mark.spec("recovery.original")
def test_local_file_is_identified_under_every_name(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    data = bytearray(WHOLE)
    data[100] ^= 1
    path.write_bytes(data)
    (tmp_path / "link.parquet").symlink_to(path)
    for name in (f"local://{path}", f"file://{path}", str(tmp_path / "link.parquet")):
        with pytest.raises(ValueError, match="must differ from the damaged source"):
            pqext.recover(path, name)
        with pytest.raises(LossError):
            pqext.repair(path, name)
        assert may_be_same_file(str(path), locate(name))
    with open(path, "rb") as file, pytest.raises(LossError):
        pqext.repair(file, path)
    assert path.read_bytes() == data
