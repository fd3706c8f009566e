"""Objects that are not as a store knows them: changed, replaced at the same time, gone or renamed; no row is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs

import pqext
from pqext import skipping
from pqext.core.io.sources import fsspec_files
from pqext.core.io.sources.store import ListedFile
from pqext.skipping import MinMax, Prefix, ValueList, open_store
from pqext.skipping.maintenance import compaction, part_layout
from pqext.skipping.store import folders
from pqext.skipping.store.objects import Objects
from pqext.skipping.store.store import match_rows

OWN_AND_SIDE = [MinMax("x"), Prefix("s")]


def put(path: Path, number: int) -> Path:
    pqext.write_table(pa.table({"x": [number], "s": [chr(97 + number)]}), path)
    return path


def found(table: Any, number: int, store: Any) -> int:
    return pqext.scan(table, filter=pqext.col("x") == number, skipping=store).count()


def test_changed_removed_renamed_and_new_objects_are_read(tmp_path: Path) -> None:
    table, store = tmp_path / "t", tmp_path / "store"
    table.mkdir()
    for number, name in enumerate("abcd"):
        put(table / f"{name}.parquet", number)
    skipping.build(str(table), OWN_AND_SIDE, store)
    put(table / "a.parquet", 5)
    (table / "b.parquet").unlink()
    os.rename(table / "c.parquet", table / "b.parquet")  # with the time of the old one
    put(table / "e.parquet", 6)
    for number, rows in ((0, 0), (1, 0), (2, 1), (3, 1), (5, 1), (6, 1)):
        assert found(table, number, store) == rows, number
    told = skipping.describe(store, table)
    assert (told.fresh, told.unknown, told.stale) == (1, 3, 3)
    skipping.refresh(table, store)
    assert [found(table, number, store) for number in range(7)] == [0, 0, 1, 1, 0, 1, 1]


def test_object_with_equal_time_and_another_size_is_read(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", 1)
    skipping.build(str(path), OWN_AND_SIDE, tmp_path / "store")
    times = os.stat(path)
    pqext.write_table(pa.table({"x": [2, 3], "s": ["b", "c"]}), path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert found(path, 2, tmp_path / "store") == 1
    for _ in range(3):
        skipping.refresh(path, tmp_path / "store")
        assert [found(path, number, tmp_path / "store") for number in (1, 2, 3)] == [0, 1, 1]
    skipping.compact(tmp_path / "store", path)
    assert [found(path, number, tmp_path / "store") for number in (1, 2, 3)] == [0, 1, 1]


def test_touched_object_is_current_again_after_a_refresh(tmp_path: Path) -> None:
    path = put(tmp_path / "a.parquet", 1)
    skipping.build(str(path), OWN_AND_SIDE, tmp_path / "store")
    for mode in (0o600, 0o644):
        path.chmod(mode)
        known = open_store(tmp_path / "store")
        assert [found(path, 2, known), known.total.skipped] == [0, 0]
        assert skipping.refresh(path, tmp_path / "store").added == 1
        assert [found(path, 2, known), known.total.skipped] == [0, 1]


@pytest.mark.spec("keep.changed")
def test_replacement_with_equal_time_and_size_is_read(tmp_path: Path) -> None:
    for number in (1, 2):
        put(tmp_path / f"{number}.parquet", number)
        os.utime(tmp_path / f"{number}.parquet", ns=(10**18, 10**18))
    path = tmp_path / "1.parquet"
    assert path.stat().st_size == (tmp_path / "2.parquet").stat().st_size
    skipping.build(str(path), OWN_AND_SIDE, tmp_path / "store")
    os.replace(tmp_path / "2.parquet", path)
    assert found(path, 2, tmp_path / "store") == 1


@pytest.mark.parametrize("milliseconds", [0, 1, 57, 500, 999])
def test_modification_times_are_those_of_pyarrow(tmp_path: Path, milliseconds: int) -> None:
    path = put(tmp_path / "a.parquet", 1)
    time = (1_600_000_000_000 + milliseconds) * 10**6
    os.utime(path, ns=(time, time))
    listed = fsspec_files._to_listed_file(str(path), fsspec.filesystem("file").info(str(path)))
    assert listed.modified_ms == fs.LocalFileSystem().get_file_info(str(path)).mtime_ns // 10**6


class Versions:
    """One object that is replaced within one tick of the clock: each version has its own etag."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.filesystem = fsspec.filesystem("memory", use_listings_cache=False)
        if self.filesystem.exists("/versions"):
            self.filesystem.rm("/versions", recursive=True)
        self.etag = ""
        listed = fsspec_files._to_listed_file

        def at_one_time(name: str, info: Any) -> ListedFile:
            return ListedFile(name, listed(name, info).size, 1_600_000_000_000, self.etag)

        monkeypatch.setattr(fsspec_files, "_to_listed_file", at_one_time)

    def put(self, number: int) -> None:
        pqext.write_table(
            pa.table({"x": [number], "s": [chr(97 + number)]}), "/versions/t/a.parquet", filesystem=self.filesystem
        )
        self.etag = f"e{number}"

    def found(self, number: int) -> int:
        store = open_store("/versions/store", filesystem=self.filesystem)
        filter = pqext.col("x") == number
        return pqext.scan("/versions/t", filter=filter, skipping=store, filesystem=self.filesystem).count()


@pytest.mark.spec("keep.doubt")
@pytest.mark.parametrize("break_off", ["nothing", "own parts", "further parts", "compaction"])
def test_object_with_equal_time_and_size_and_another_etag_is_read(
    monkeypatch: pytest.MonkeyPatch, break_off: str
) -> None:
    object = Versions(monkeypatch)
    options: Any = {"filesystem": object.filesystem}
    object.put(1)
    skipping.build("/versions/t", [MinMax("x"), ValueList("x"), Prefix("s")], "/versions/store", **options)
    assert [object.found(number) for number in (1, 2)] == [1, 0]
    assert open_store("/versions/store", **options).metadata.table_identifier is not None
    object.put(2)
    assert [object.found(number) for number in (1, 2)] == [0, 1]

    calls = {"count": 0}
    original = part_layout.write_split_part

    def failing(folder: Any, *arguments: Any) -> None:
        is_side = str(folder).rstrip("/").endswith("_pqext")
        calls["count"] += 1
        if (break_off == "own parts" and not is_side) or (break_off == "further parts" and is_side):
            raise KeyboardInterrupt
        original(folder, *arguments)

    monkeypatch.setattr(part_layout, "write_split_part", failing)
    try:
        skipping.refresh("/versions/t", "/versions/store", **options)
    except KeyboardInterrupt:
        assert break_off != "nothing"
    monkeypatch.setattr(part_layout, "write_split_part", original)
    assert calls["count"] > 0
    assert [object.found(number) for number in (1, 2)] == [0, 1]
    removals = {"left": 1}
    remove = folders.remove_parts

    def once(parts: Any) -> None:
        if break_off == "compaction" and not removals["left"]:
            raise KeyboardInterrupt
        removals["left"] -= 1
        remove(parts)

    monkeypatch.setattr(compaction, "remove_parts", once)
    try:
        skipping.compact("/versions/store", "/versions/t", **options)
    except KeyboardInterrupt:
        assert break_off == "compaction"
    monkeypatch.setattr(compaction, "remove_parts", remove)
    assert [object.found(number) for number in (1, 2)] == [0, 1]
    skipping.refresh("/versions/t", "/versions/store", **options)
    assert [object.found(number) for number in (1, 2)] == [0, 1]
    object.put(1)  # the first one is back: what was known of it is true again
    assert [object.found(number) for number in (1, 2)] == [1, 0]


def test_objects_without_a_time_are_never_current() -> None:
    objects = Objects(
        ("a",), pa.array(["/a"], pa.string()), np.array([-1]), np.array([5]), pa.array([None], pa.string())
    )
    stored = pa.table({"obj_name": ["/a#-1", "/a#5"]})
    rows, numbers = match_rows(stored, objects)
    assert (rows.tolist(), numbers.tolist()) == ([], [])
