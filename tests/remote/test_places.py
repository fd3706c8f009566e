"""One file in every kind of place: read equal, written whole or not at all; folders and patterns in stores."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from obstore.store import LocalStore, MemoryStore

import pqext
from pqext import col
from pqext.core.io.sources.locations import list_files
from pqext.core.io.sources.store import clear_stores

from .conftest import BUCKET, S3

TABLE = pa.table({"a": list(range(3_000)), "b": [f"text {at}" for at in range(3_000)]})
FILTER = col("a").isin([5, 2_500])


@pytest.fixture
def memory() -> Iterator[Any]:
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    clear_stores()
    yield filesystem
    filesystem.store.clear()


Given = dict[str, Any]
PLACES: dict[str, Callable[[Path, S3, ExitStack], tuple[Any, Given]]] = {
    "path": lambda folder, s3, stack: (str(folder / "x.parquet"), {}),
    "pathlib": lambda folder, s3, stack: (folder / "x.parquet", {}),
    "file URL": lambda folder, s3, stack: ((folder / "x.parquet").as_uri(), {}),
    "local of pyarrow": lambda folder, s3, stack: (str(folder / "x.parquet"), {"filesystem": fs.LocalFileSystem()}),
    "below a folder of pyarrow": lambda folder, s3, stack: (
        "x.parquet", {"filesystem": fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())}
    ),
    "fsspec of pyarrow": lambda folder, s3, stack: (
        "d/x.parquet", {"filesystem": fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem("memory")))}
    ),
    "pair": lambda folder, s3, stack: ((s3.arrow(), f"{BUCKET}/x.parquet"), {}),
    "S3 of pyarrow": lambda folder, s3, stack: (f"{BUCKET}/x.parquet", {"filesystem": s3.arrow()}),
    "S3 URL": lambda folder, s3, stack: (f"s3://{BUCKET}/x.parquet", {"storage_options": s3.options}),
    "S3 of obstore": lambda folder, s3, stack: ("d/x.parquet", {"filesystem": s3.obstore()}),
    "memory of obstore": lambda folder, s3, stack: ("d/x.parquet", {"filesystem": KEPT}),
    "local of obstore": lambda folder, s3, stack: ("x.parquet", {"filesystem": LocalStore(str(folder))}),
    "memory URL": lambda folder, s3, stack: ("memory://d/x.parquet", {}),
    "memory of fsspec": lambda folder, s3, stack: ("/d/x.parquet", {"filesystem": fsspec.filesystem("memory")}),
    "folder of fsspec": lambda folder, s3, stack: (
        "x.parquet", {"filesystem": fsspec.filesystem("dir", path="/d", fs=fsspec.filesystem("memory"))}
    ),
    "local of fsspec": lambda folder, s3, stack: (str(folder / "x.parquet"), {"filesystem": fsspec.filesystem("file")}),
    "unopened of fsspec": lambda folder, s3, stack: (fsspec.open("memory://d/x.parquet"), {}),
}
KEPT = MemoryStore()


@pytest.mark.parametrize("name", PLACES)
def test_file_is_equal_at_every_location(name: str, tmp_path: Path, s3: S3, memory: Any) -> None:
    with ExitStack() as stack:
        place, given = PLACES[name](tmp_path, s3, stack)
        pqext.write_table(TABLE, place, row_group_rows=1_000, page_rows=100, **given)
        assert pqext.read_table(place, **given).equals(TABLE)
        assert pqext.scan(place, ["b"], FILTER, **given).to_table()["b"].to_pylist() == ["text 5", "text 2500"]
        with pqext.open(place, **given) as file:
            assert file.read(["a"]).equals(TABLE.select(["a"]))
            assert file.path is not None
            assert file.path.endswith("x.parquet")
        assert pqext.inspect(place, **given).num_rows == 3_000
        assert pqext.verify(place, **given).ok


@pytest.mark.spec("querying.uploads")
@pytest.mark.parametrize("name", PLACES)
def test_file_appears_only_when_complete(name: str, tmp_path: Path, s3: S3, memory: Any) -> None:
    def visible_files() -> list[str]:
        local = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".pqext-")]
        kept = [meta["path"] for part in KEPT.list() for meta in part]
        found = [*local, *s3.keys(), *memory.find("/"), *kept]
        return [path for path in found if ".pqext-" not in path]

    for part in KEPT.list():
        KEPT.delete([meta["path"] for meta in part])
    with ExitStack() as stack:
        place, given = PLACES[name](tmp_path, s3, stack)
        for there in range(2):
            with suppress(ZeroDivisionError), pqext.ParquetWriter(place, TABLE.schema, **given) as writer:
                writer.write_table(TABLE)
                writer.end_row_group()
                assert len(visible_files()) == there
                raise ZeroDivisionError
            assert len(visible_files()) == there
            forgotten = pqext.ParquetWriter(place, TABLE.schema, **given)
            forgotten.write_table(TABLE)
            del forgotten
            assert len(visible_files()) == there
            with pqext.ParquetWriter(place, TABLE.schema, **given) as writer:
                writer.write_table(TABLE)
                assert len(visible_files()) == there
            assert len(visible_files()) == 1
        assert pqext.read_table(place, **given).equals(TABLE)


def test_fsspec_open_files_are_read_by_ranges(memory: Any, tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink)
    memory.pipe_file("/d/x.parquet", sink.getvalue())
    (tmp_path / "x.parquet").write_bytes(sink.getvalue())
    with fsspec.open("memory://d/x.parquet") as file:
        assert pqext.read_table(file).equals(TABLE)
    with fsspec.open(str(tmp_path / "x.parquet")) as file:
        assert pqext.read_table(file).equals(TABLE)
    cached = fsspec.open("simplecache::memory://d/x.parquet", simplecache={"cache_storage": str(tmp_path / "kept")})
    with cached as file:
        assert pqext.read_table(file).equals(TABLE)
    assert pqext.read_table(
        "simplecache::memory://d/x.parquet", storage_options={"simplecache": {"cache_storage": str(tmp_path / "other")}}
    ).equals(TABLE)
    with pytest.raises(ValueError, match="opened with compression='gzip', which prevents random access"):
        pqext.open(fsspec.open("memory://d/x.parquet.gz", compression="gzip"))


def put_all(write: Callable[[str, pa.Table], None]) -> None:
    for year in (2020, 2021):
        for part in (0, 1):
            write(f"t/y={year}/part-{part}.parquet", TABLE.slice(100 * part + year - 2020, 10))
    write("t/_hidden/x.parquet", TABLE)
    write("t/y=2020/.x.parquet", TABLE)
    write("u/x.parquet", TABLE)


@pytest.mark.parametrize("way", ["s3", "obstore", "memory"])
def test_folders_and_patterns_in_stores_are_read(way: str, s3: S3, memory: Any) -> None:
    given: Given
    base, given = {
        "s3": (f"s3://{BUCKET}/", {"storage_options": s3.options}),
        "obstore": ("", {"filesystem": s3.obstore()}),
        "memory": ("memory://", {}),
    }[way]
    put_all(lambda key, table: pqext.write_table(table, base + key, **given))
    for folder in ("t", "t/", "t/*", "t/y=*/*.parquet", "t/**/*.parquet", "**/part-*"):
        found = pqext.scan(base + folder, **given)
        assert len(found.plan()) == 4, folder
        assert found.to_table().num_rows == 40
        assert "y" in found.schema.names or folder == "none"
    kept = pqext.scan(base + "t", filter=col("y") == 2021, **given)
    assert kept.to_table()["y"].to_pylist() == [2021] * 20
    assert sum(task.prune_reason is not None for task in kept.plan()) == 2
    listed = [base + f"t/y=2020/part-{part}.parquet" for part in (1, 0)]
    assert pqext.scan(listed, **given).to_table()["a"].to_pylist() == [*range(100, 110), *range(10)]
    mixed = [base + "t/y=2020/part-0.parquet", base + "t/y=2021/part-0.parquet"]
    assert set(pqext.scan(mixed, **given).to_table()["y"].to_pylist()) == {2020, 2021}
    for missing in ("none", "none/*.parquet", "t/none.parquet"):
        with pytest.raises(FileNotFoundError) as told:
            pqext.scan(base + missing, **given)
        assert re.search(r"none", str(told.value.filename))
    assert len(list_files(base + "t", **given)) == 6


def test_storage_options_apply_to_the_stores_they_support(tmp_path: Path, memory: Any) -> None:
    for source in (tmp_path / "x.parquet", b"PAR1", io.BytesIO()):
        with pytest.raises(ValueError, match="storage_options are for URLs"):
            pqext.open(source, storage_options={"key": "x"})
    with pytest.raises(ValueError, match="configure the filesystem instead"):
        pqext.open("x", filesystem=memory, storage_options={"key": "x"})
    with pytest.raises(TypeError, match="storage_options must map names to values"):
        pqext.open("s3://b/x", storage_options="key")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"filesystem must be a file system of pyarrow\.fs, fsspec or obstore"):
        pqext.open("x", filesystem=3)
    with pytest.raises(TypeError, match="if filesystem is passed, the source must be a path"):
        pqext.open(b"x", filesystem=memory)
    with pytest.raises(ValueError, match="refers to another machine"):
        pqext.open("file://machine/x.parquet")
    with pytest.raises(ValueError, match="no storage option") as told:
        pqext.open("s3://bucket/x", storage_options={"secret_key": "sesame-open", "nothing": 1})
    assert "sesame" not in str(told.value)
