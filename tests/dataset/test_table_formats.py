"""Folders of Delta, Iceberg and Hudi tables: an error for readers and writers, while named files are read."""

from __future__ import annotations

import io
import os
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem

import pqext
from pqext.cli.app import app
from pqext.cli.errors import describe
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.io.table_formats import TableFormatError, TableGuard
from pqext.dataset.files.folders import list_files

deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed (extra 'delta')")

UUID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """A table of which a file was removed that is still there."""
    folder = tmp_path / "lake" / "delta"
    table = pa.table({"id": [1, 2], "day": ["a", "b"]})
    deltalake.write_deltalake(folder, table, partition_by=["day"])
    deltalake.write_deltalake(folder, pa.table({"id": [3], "day": ["a"]}), mode="overwrite")
    return folder


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The folder of a table in the layout of Iceberg, of which the newest snapshot has one of two files."""
    folder = tmp_path / "warehouse" / "t"
    touch(folder, "metadata/v1.metadata.json")
    touch(folder, "metadata/snap-1.avro")
    (folder / "data" / "k=1").mkdir(parents=True)
    for place, value in (("data/a", 1), ("data/k=1/b", 2)):
        pqext.write_table(pa.table({"id": [value]}), folder / f"{place}.parquet", ignore_table_format=True)
    return folder


def touch(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).mkdir() if name.endswith("/") else (folder / name).touch()


@pytest.mark.spec("spark.tables.refused")
def test_delta_folder_is_an_error_but_the_files_of_its_log_are_readable(delta: Path) -> None:
    for source in (
        delta, delta / "day=a", delta.parent, f"{delta}/*.parquet", f"{delta}/**/*.parquet", f"{delta}/day={{a,b}}/*",
        [str(delta / "day=a"), str(delta / "day=b")],
    ):
        message = r"a Delta table, .*pqext\.scan\('delta:PATH'\).*ignore_table_format=True"
        with pytest.raises(UnsupportedError, match=message) as caught:
            pqext.scan(source)
        assert (caught.value.path, caught.value.feature) == (str(delta), "Delta tables")
        with pytest.raises(UnsupportedError, match="Delta"):
            pqext.read_table(source)
    found = deltalake.DeltaTable(delta)
    ours = pqext.read_table(found.file_uris(), ["id"])["id"].to_pylist()
    assert ours == found.to_pyarrow_table()["id"].to_pylist() == [3]
    every = pqext.read_table(delta, ["id"], ignore_table_format=True)
    assert sorted(every["id"].to_pylist()) == [1, 2, 3]
    assert list(list_files(str(delta / "_delta_log")))  # the log itself can be listed


@pytest.mark.spec("spark.tables.refused")
def test_iceberg_folder_is_an_error_but_named_files_are_read(iceberg: Path) -> None:
    for source in (iceberg, iceberg / "data", iceberg / "data" / "k=1", iceberg.parent, f"{iceberg}/data/**/*.parquet"):
        with pytest.raises(UnsupportedError, match=r"an Iceberg table, .*pqext\.scan\('iceberg:") as caught:
            pqext.scan(source)
        assert caught.value.path == str(iceberg)
    assert pqext.read_table([f"{iceberg}/data/a.parquet"])["id"].to_pylist() == [1]
    for source in (iceberg / "data", iceberg, iceberg.parent):
        every = pqext.read_table(source, ["id"], ignore_table_format=True)
        assert sorted(every["id"].to_pylist()) == [1, 2]
    with pytest.raises(CorruptFileError, match=r"v1\.metadata\.json|snap-1\.avro"):
        pqext.scan(iceberg / "metadata", ignore_table_format=True).count()  # which is named itself


@pytest.mark.parametrize("name", ["data", "metadata", "metadata=1", "zone=1"])
def test_only_the_metadata_folder_of_an_iceberg_table_is_skipped(iceberg: Path, name: str) -> None:
    touch(iceberg, f"{name}/v2.metadata.json")
    pyarrow.parquet.write_table(pa.table({"id": [3]}), iceberg / name / "c.parquet")
    source = f"{iceberg}/**/*.parquet"
    every = pqext.read_table(source, ["id"], ignore_table_format=True)["id"].to_pylist()
    assert sorted(every) == ([1, 2] if name == "metadata" else [1, 2, 3])


@pytest.mark.spec("spark.tables.refused")
def test_hudi_folder_and_its_partitions_are_errors(tmp_path: Path) -> None:
    touch(tmp_path / "t", ".hoodie/hoodie.properties")
    touch(tmp_path / "t", "2020/01/.hoodie_partition_metadata")
    pqext.write_table(pa.table({"id": [1]}), tmp_path / "t" / "2020" / "01" / "a.parquet", ignore_table_format=True)
    for source in (tmp_path / "t", tmp_path / "t" / "2020", tmp_path / "t" / "2020" / "01"):
        with pytest.raises(UnsupportedError, match="a Hudi table"):
            pqext.scan(source)
    assert pqext.scan(tmp_path / "t" / "2020" / "01" / "a.parquet").count() == 1


@pytest.mark.spec("spark.tables.others")
def test_ordinary_folders_are_read(tmp_path: Path) -> None:
    for name in (
        "metadata/_a.json", "_delta_logs/x", ".hoodies/x", "data/_x.metadata.json", "_delta_log/readme.txt",
        ".hoodie/x", "_delta_log/notes.json", "_delta_log/a.checkpoint.json",
    ):
        touch(tmp_path / "t", name)
    for name in ("metadata", "data"):
        pqext.write_table(pa.table({"id": [1]}), tmp_path / "t" / name / "a.parquet")
    assert pqext.read_table(tmp_path / "t")["id"].to_pylist() == [1, 1]
    for name in ("schema.metadata.json", "1.metadata.json", "1-2.metadata.json", "v.metadata.json"):
        touch(tmp_path / "t" / "metadata", name)
    assert pqext.read_table(f"{tmp_path}/t/**/*.parquet")["id"].to_pylist() == [1, 1]


@pytest.mark.spec("spark.tables.refused")
@pytest.mark.parametrize(
    "name",
    [
        f"_delta_log/{7:020}.json", f"_delta_log/{7:020}.checkpoint.parquet", "_delta_log/_last_checkpoint",
        f"_delta_log/{7:020}.checkpoint.{1:010}.{2:010}.parquet", f"_delta_log/{7:020}.checkpoint.{UUID}.json",
        "metadata/v12.metadata.json", "metadata/v1.gz.metadata.json", f"metadata/00001-{UUID}.metadata.json",
        f"metadata/00001-{UUID}.gz.metadata.json", f"metadata/00001-{UUID}.metadata.json.gz",
        "metadata/version-hint.text", "_delta_log/",
    ],
)
def test_each_marker_file_identifies_a_table(tmp_path: Path, name: str) -> None:
    touch(tmp_path, name)
    pqext.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet", ignore_table_format=True)
    with pytest.raises(TableFormatError):
        pqext.scan(tmp_path)


@pytest.mark.spec("spark.tables.refused", "spark.tables.others")
def test_table_includes_its_own_folders_but_not_all_below(delta: Path, iceberg: Path) -> None:
    guard = TableGuard()
    for folder, name in ((delta, "project/out"), (delta, "a.parquet.d/x/y=1"), (iceberg, "other/data")):
        (folder / name).mkdir(parents=True)
        pqext.write_table(pa.table({"id": [1]}), folder / name / "a.parquet")
        guard.check(str(folder / name))
        guard.check_target(str(folder / name))
        assert pqext.read_table(folder / name, ["id"]).num_rows == 1
    below_delta = (".", "day=a", "day=a/hour=1", "_delta_log", "x.parquet", "day=b/x.parquet", "new", "aB/x.parquet")
    below_iceberg = (".", "data", "data/k=1", "data/0101/1100/0011/10101010/k=1", "metadata", "data/a.parquet")
    for folder, names in ((delta, below_delta), (iceberg, below_iceberg)):
        for name in names:
            with pytest.raises(TableFormatError) as caught:
                TableGuard().check_target(str(folder / name))
            assert caught.value.folder == str(folder), name


@pytest.mark.spec("spark.tables.refused")
def test_links_to_a_table_are_detected(delta: Path, tmp_path: Path) -> None:
    for name, target in (("table", delta), ("partition", delta / "day=a"), ("lakes", delta.parent)):
        (tmp_path / name).symlink_to(target, target_is_directory=True)
    for link in ("table", "partition", "lakes/delta/day=a", "part*", "p*/*.parquet"):
        with pytest.raises(UnsupportedError, match="a Delta table"):
            pqext.scan(tmp_path / link)
        if "*" in link:
            assert pqext.scan(tmp_path / link, ignore_table_format=True).count() == 2
            continue
        with pytest.raises(TableFormatError, match="a Delta table"):
            TableGuard().check_target(str(tmp_path / link))


@pytest.mark.spec("spark.tables.others")
def test_partition_folders_are_inspected_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / "t" / f"k={number}" for number in range(20)]
    for folder in folders:
        folder.mkdir(parents=True)
        pqext.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    looked: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path=".": looked.append(str(path)) or scandir(path))
    assert pqext.scan([*map(str, folders)]).count() == 20
    assert [path for path in looked if "k=" not in path] == [
        str(tmp_path / "t" / name) for name in ("_delta_log", ".hoodie", "metadata")
    ]


@pytest.mark.spec("spark.tables.refused", "spark.tables.others")
def test_tables_and_partitions_in_stores_are_detected_with_few_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryFileSystem(skip_instance_cache=True)
    store.store, store.pseudo_dirs = {}, [""]
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table({"id": [1]}), sink)
    data = sink.getvalue().to_pybytes()
    for name in ("d/day=1", "i/data", "i/data/k=1", "p/k=1", "h/2020", "j"):
        store.pipe(f"/lake/{name}/a.parquet", data)
    markers = (f"d/_delta_log/{0:020}.json", "i/metadata/v1.metadata.json", "h/2020/.hoodie_partition_metadata")
    for name in (*markers, "j/metadata/version-hint.text"):
        store.pipe(f"/lake/{name}", b"{}")

    def scan(path: str, **options: Any) -> pqext.Scan:
        return pqext.scan(path, filesystem=store, partitioning=None, **options)

    for path, table in (
        ("lake/d", "lake/d"), ("lake/d/day=1", "lake/d"), ("lake/d/day=*/*.parquet", "lake/d"), ("lake/i", "lake/i"),
        ("lake/i/data", "lake/i"), ("lake/i/data/k=1", "lake/i"), ("lake/h", "lake/h/2020"), ("lake", "lake/d"),
        ("lake/j", "lake/j"),
    ):
        with pytest.raises(UnsupportedError, match="table") as caught:
            scan(path)
        assert str(caught.value.path).endswith(table), path
        assert scan(path, ignore_table_format=True).count() == {"lake": 6, "lake/i": 2, "lake/i/data": 2}.get(path, 1)
    for pattern in ("lake/p*", "lake/p/k=*", "lake/[^dhij]/**/*.parquet"):
        assert scan(pattern).count() == 1  # which leads to no table
    for pattern in ("lake/*/k=1", "lake/[^p]*", "lake/**/a.parquet"):
        with pytest.raises(UnsupportedError, match="table"):
            scan(pattern)
    assert scan("lake/d/day=1/a.parquet").count() == scan("lake/p").count() == scan("lake/p/k=1").count() == 1
    listings: list[str] = []
    find = MemoryFileSystem.find
    monkeypatch.setattr(MemoryFileSystem, "find", lambda self, *a, **k: listings.append(str(a)) or find(self, *a, **k))
    counts = []
    for path in ("lake/p", "lake/p/k=1"):
        listings.clear()
        scan(path)
        counts.append(len(listings))
    assert counts[1] - counts[0] <= 1


@pytest.mark.spec("spark.tables.refused")
def test_reading_commands_reject_a_table_folder(delta: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out.parquet")
    run = CliRunner().invoke
    for arguments in (["query", str(delta)], ["head", str(delta)], ["count", str(delta)], ["convert", str(delta), out]):
        result = run(app, arguments)
        assert result.exit_code != 0
        assert isinstance(result.exception, UnsupportedError), result.output
        told = describe(result.exception)
        assert "Delta table" in told
        assert "--ignore-table-format" in told
    assert run(app, ["count", str(delta), "--ignore-table-format"]).output.strip() == "3"
    assert run(app, ["convert", str(delta), out, "--ignore-table-format"]).exit_code == 0
    assert pqext.scan(out).count() == 3
    assert run(app, ["verify", str(delta)]).exit_code == 0  # of files, whatever table they belong to


@pytest.mark.spec("spark.tables.others")
def test_text_inputs_are_not_mistaken_for_tables(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "metadata").mkdir(parents=True)
    (folder / "a.json").write_text('{"id": 1}\n')
    (folder / "metadata" / "a.metadata.json").write_text('{"id": 2}\n')
    result = CliRunner().invoke(app, ["convert", str(folder), str(tmp_path / "out.parquet"), "--input-format", "json"])
    assert result.exit_code == 0, result.output
    assert pqext.scan(tmp_path / "out.parquet").count() == 2


@pytest.mark.spec("spark.tables.refused")
def test_single_files_are_not_written_into_tables_by_mistake(delta: Path, iceberg: Path, tmp_path: Path) -> None:
    table = pa.table({"id": [9]})
    for path in (delta / "a.parquet", delta / "day=a" / "new.parquet", iceberg / "data" / "new.parquet"):
        before = sorted(path.parent.iterdir())
        message = r"files that are added.*corrupt it: .*; ignore_table_format=True writes a file"
        for write in (pqext.write_table, partial(pqext.write_table, append=True)):
            with pytest.raises(UnsupportedError, match=message):
                write(table, path)
        with pytest.raises(UnsupportedError, match=message):
            pqext.ParquetWriter(path, table.schema)
        assert sorted(path.parent.iterdir()) == before
    pqext.write_table(table, delta / "day=a" / "new.parquet", ignore_table_format=True)
    assert deltalake.DeltaTable(delta).to_pyarrow_table()["id"].to_pylist() == [3]  # it is no file of the table
    (tmp_path / "metadata").mkdir()
    pqext.write_table(table, tmp_path / "metadata" / "a.parquet")
    pqext.write_table(table, tmp_path / "a.parquet")
    sink = io.BytesIO()
    pqext.write_table(table, sink)
    assert pqext.read_table(tmp_path / "a.parquet").equals(pqext.read_table(sink))
