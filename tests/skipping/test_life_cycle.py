"""Stores built, refreshed, merged, dropped and described: nothing is lost, and no row is ever skipped wrongly."""

from __future__ import annotations

import os
import shutil
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pqext
from pqext import skipping
from pqext.core.base.errors import EncryptionError, ParquetError
from pqext.dataset.expressions import Expression
from pqext.skipping import MinMax, NullCount, Prefix, StoreKeys, ValueList, open_store
from pqext.skipping.format.metadata import IndexColumn, StoreMetadata
from pqext.skipping.format.names import index_column
from pqext.skipping.format.parts import write_part
from pqext.skipping.store import folders

KEYS = {"k1": b"0123456789abcdef", "k2": b"fedcba9876543210"}


def put(path: Path, *numbers: int, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pqext.write_table(pa.table({"x": list(numbers), "s": [text or path.stem] * len(numbers)}), path)
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six files in three partitions: file n of day d holds 10 d + n."""
    for day in (1, 2, 3):
        for number in (0, 1):
            put(tmp_path / "t" / f"day={day}" / f"{number}.parquet", 10 * day + number)
    return tmp_path / "t"


def rows(table: Any, filter: Expression, store: Any, **options: Any) -> list[int]:
    found = pqext.scan(table, ["x"], filter=filter, skipping=store, **options).to_table()
    expected = pqext.scan(table, ["x"], filter=filter, **options).to_table()
    assert found.column("x").to_pylist() == expected.column("x").to_pylist()
    return sorted(found.column("x").to_pylist())


def opened(table: Any, filter: Expression, store: Any) -> list[str]:
    plan = pqext.scan(table, filter=filter, skipping=store).plan()
    return sorted(os.path.relpath(task.path, table) for task in plan if task.prune_reason is None)


def names(store: Path) -> list[str]:
    """The objects that the store has rows about."""
    found = pa.concat_tables(pqext.read_table(one, columns=["obj_name"]) for one in sorted(store.glob("*.parquet")))
    return sorted(name.rpartition("#")[0] for name in found.column("obj_name").to_pylist())


@pytest.mark.spec("keep.part")
def test_refreshing_part_of_the_table_preserves_the_rest(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    skipping.build(str(table), [MinMax("x"), Prefix("s")], store)
    put(table / "day=2" / "0.parquet", 200)
    for _ in range(12):  # more parts than a store keeps
        put(table / "day=2" / "2.parquet", 201)
        done = skipping.refresh(str(table / "day=2"), store)
        (table / "day=2" / "2.parquet").unlink()
    assert (done.objects, done.added) == (3, 1)
    every = [str(one) for one in sorted(table.rglob("*.parquet"))]
    assert set(every) <= set(names(store))
    assert opened(table, pqext.col("x") == 31, store) == ["day=3/1.parquet"]
    assert opened(table, pqext.col("x") == 200, store) == ["day=2/0.parquet"]
    partitions = pa.concat_tables(pqext.read_table(one, columns=["virtual_day"]) for one in store.glob("*.parquet"))
    assert set(partitions.column(0).to_pylist()) == {1, 2, 3}


@pytest.mark.spec("keep.part")
def test_merge_drops_only_outdated_entries(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    skipping.build(str(table), [MinMax("x"), Prefix("s")], store)
    put(table / "day=1" / "0.parquet", 100)
    (table / "day=1" / "1.parquet").unlink()
    (table / "day=3" / "1.parquet").unlink()
    assert skipping.compact(store, table / "day=1") == 2
    left = ("day=2/0.parquet", "day=2/1.parquet", "day=3/0.parquet", "day=3/1.parquet")
    assert names(store) == [str(table / one) for one in left]
    assert skipping.compact(store, table) == 1
    assert skipping.compact(store) == 0
    assert len([*store.glob("*.parquet")]) == len([*(store / "_pqext").glob("*.parquet")]) == 1
    assert rows(table, pqext.col("x") >= 100, store) == [100]


def test_refresh_with_files_of_another_table_is_rejected(table: Path, tmp_path: Path) -> None:
    skipping.build(str(table / "day=1"), [MinMax("x")], tmp_path / "store")
    with pytest.raises(ValueError, match=r"belongs to .*day=1, but .*day=2.* is not in it"):
        skipping.refresh(str(table), tmp_path / "store")


def test_store_of_another_table_is_rejected_or_ignored(table: Path, tmp_path: Path) -> None:
    other = put(tmp_path / "other" / "a.parquet", 31)
    skipping.build(str(other), [MinMax("x")], tmp_path / "store")
    with pytest.raises(ValueError, match="none of the files"):
        rows(table, pqext.col("x") == 31, tmp_path / "store")
    assert rows(table, pqext.col("x") == 31, open_store(tmp_path / "store", on_foreign="ignore")) == [31]


@pytest.mark.spec("keep.stored")
def test_partition_column_is_not_evaluated_by_file_statistics(tmp_path: Path) -> None:
    for day in (1, 2):
        path = tmp_path / "t" / f"day={day}" / "a.parquet"
        path.parent.mkdir(parents=True)
        pqext.write_table(pa.table({"day": [99], "x": [day]}), path)
    skipping.build(str(tmp_path / "t"), [MinMax("day"), MinMax("x")], tmp_path / "store")
    assert rows(tmp_path / "t", pqext.col("day") == 1, tmp_path / "store") == [1]
    assert rows(tmp_path / "t", (pqext.col("day") == 1) & (pqext.col("x") == 2), tmp_path / "store") == []
    assert rows(tmp_path / "t", (pqext.col("day") == 1) | (pqext.col("x") == 2), tmp_path / "store") == [1, 2]


@pytest.mark.spec("keep.stored")
def test_cast_column_is_not_evaluated_by_file_statistics(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pqext.write_table(pa.table({"t": [datetime(2020, 1, 1, 5)]}), path)
    skipping.build(str(path), [MinMax("t"), ValueList("t")], tmp_path / "store")
    as_dates = pa.schema([("t", pa.date32())])
    filter = pqext.col("t") == date(2020, 1, 1)
    assert pqext.scan(path, filter=filter, schema=as_dates, skipping=tmp_path / "store").count() == 1


@pytest.mark.spec("keep.params")
def test_parameters_not_shared_by_all_parts_are_ignored(tmp_path: Path) -> None:
    """A store of pqext that the original refreshed: of its rows nobody knows whether NaN is the greatest."""
    nan = float("nan")
    old, new = tmp_path / "t" / "old.parquet", tmp_path / "t" / "new.parquet"
    old.parent.mkdir()
    for path in (old, new):
        pqext.write_table(pa.table({"x": [1.0, nan if path == new else 2.0]}), path)
    skipping.build(str(old), [MinMax("x")], tmp_path / "store")
    skipping.build(str(new), [MinMax("x", shows_nan=False)], tmp_path / "other")
    (part,) = (tmp_path / "other").glob("*.parquet")
    cells = pqext.read_table(part).to_pylist()
    kind = pa.struct([("min", pa.float64()), ("max", pa.float64())])
    without_nan = pa.table(
        {"obj_name": [cells[0]["obj_name"]], "x_minmax_1": pa.array([{"min": 1.0, "max": 1.0}], kind)}
    )
    about = StoreMetadata(4, str(tmp_path / "t"), None, (), (IndexColumn.create("minmax", ["x"]),))
    write_part(str(tmp_path / "store" / "part-1.parquet"), without_nan, about)
    shutil.rmtree(tmp_path / "store" / "_pqext")
    found = pqext.scan(tmp_path / "t", filter=pqext.col("x") > 5, skipping=tmp_path / "store").to_table()
    assert found.num_rows == 1
    assert opened(tmp_path / "t", pqext.col("x") < 0, tmp_path / "store") == []


@pytest.mark.spec("keep.upgraded")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_store_of_an_older_version_is_upgraded_to_the_latest(xskipper: Path, tmp_path: Path, version: int) -> None:
    [folder] = (xskipper / f"parquet_version_tests/end_to_end/version={version}/testID=1").iterdir()
    shutil.copytree(folder, tmp_path / "store")
    before = open_store(tmp_path / "store")
    facts = before.list_parts(before.location)[1]
    assert before.metadata.version == version
    skipping.compact(tmp_path / "store")
    after = open_store(tmp_path / "store")
    found = after.list_parts(after.location)[1]
    assert after.metadata.version == 4
    assert [str(one) for one in after.indexes] == [str(one) for one in before.indexes]
    assert [one.name for one in after.metadata.indexes] == [
        index_column(one.columns, one.index) for one in before.metadata.indexes
    ]
    assert sorted(map(str, (row.values() for row in found.table.to_pylist()))) == sorted(
        map(str, (row.values() for row in facts.table.to_pylist()))
    )
    assert not (tmp_path / "store" / "_pending").exists()


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_store_supports_the_full_life_cycle(table: Path, tmp_path: Path, plaintext_footer: bool) -> None:
    store = tmp_path / "store"
    keys = StoreKeys(KEYS, "k1", {"x": "k2"}, plaintext_footer)
    assert "0123" not in repr(keys)
    skipping.build(str(table), [MinMax("x"), Prefix("s"), NullCount("x")], store, encryption=keys)
    for _ in range(10):
        put(table / "day=2" / "0.parquet", 200)
        skipping.refresh(table, store, decryption=KEYS)
    skipping.compact(store, table, decryption=KEYS)
    skipping.drop(store, [NullCount("x")], decryption=KEYS)
    known = open_store(store, decryption=KEYS)
    assert rows(table, pqext.col("x") == 200, known) == [200]
    assert known.latest is not None
    assert known.latest.skipped == 5
    told = skipping.describe(store, table, decryption=KEYS)
    assert [(one.name, one.key) for one in told.indexes] == [("minmax", "k2"), ("prefix", "k1")]
    assert (told.fresh, told.unknown, told.stale) == (6, 0, 0)
    for part in store.rglob("*.parquet"):
        data = part.read_bytes()
        assert b"day=2/0.parquet" not in data
        assert not any(key in data for key in KEYS.values())
    with pytest.raises(EncryptionError, match="omit skipping= to read every file") as raised:
        rows(table, pqext.col("x") == 200, store)
    assert str(store) in str(raised.value)
    wrong = {"k1": b"x" * 16, "k2": b"y" * 16}
    with pytest.raises(ParquetError) as failed:
        rows(table, pqext.col("x") == 200, open_store(store, decryption=wrong))
    assert "xxxx" not in str(failed.value)


def test_replacement_store_may_contradict_the_old_one(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    skipping.build(str(table), [ValueList("x")], store)
    with pytest.raises(FileExistsError):
        skipping.build(str(table / "day=1"), [ValueList("s")], store)
    for path in table.rglob("*.parquet"):
        pqext.write_table(pa.table({"x": ["a"], "s": ["b"]}), path)
    skipping.build(str(table / "day=1"), [ValueList("x")], store, overwrite=True)
    told = skipping.describe(store)
    assert (told.table, told.objects, told.parts) == (str(table / "day=1"), 2, 1)
    assert sorted(os.listdir(store)) == ["_pqext", *sorted(one.name for one in store.glob("*.parquet"))]


@pytest.mark.spec("keep.replaced")
def test_interrupted_replacement_leaves_the_old_or_the_new_store(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    skipping.build(str(table), [ValueList("x")], store)

    def breaks(*_: object) -> None:
        raise KeyboardInterrupt

    for name, left in (("remove_parts", "valuelist"), ("move_parts", "minmax")):
        with monkeypatch.context() as patched:
            patched.setattr(folders, name, breaks)
            with pytest.raises(KeyboardInterrupt):
                skipping.build(str(table), [MinMax("x"), Prefix("s")], store, overwrite=True)
        assert next(one.name for one in open_store(store).indexes) == left
        assert opened(table, pqext.col("x") == 31, store) == ["day=3/1.parquet"]
    assert [*store.glob("*.parquet")] == []
    put(table / "day=1" / "0.parquet", 100)
    assert skipping.refresh(table, store).added == 1
    assert [one.name for one in open_store(store).indexes] == ["minmax", "prefix"]
    assert opened(table, pqext.col("x") == 100, store) == ["day=1/0.parquet"]
    assert skipping.describe(store, table).fresh == 6


def test_index_on_a_column_that_some_files_lack_applies_to_the_others(table: Path, tmp_path: Path) -> None:
    skipping.build(str(table), [MinMax("x")], tmp_path / "store")
    pqext.write_table(pa.table({"y": [1]}), table / "day=1" / "0.parquet")
    put(table / "day=2" / "0.parquet", 200)
    skipping.refresh(table, tmp_path / "store")
    told = opened(table / "day=2", pqext.col("x") == 200, tmp_path / "store")
    assert told == ["0.parquet"]
    files = pqext.scan(table, filter=pqext.col("x") == 21, schema="union", skipping=tmp_path / "store").plan()
    assert sorted(one.path[-15:] for one in files if one.prune_reason is None) == ["day=2/1.parquet"]


def test_dropping_an_index_preserves_the_others(table: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    skipping.build(str(table), [MinMax("x"), Prefix("s"), ValueList("x")], store)
    with pytest.raises(ValueError, match="no nulls index on x; it has minmax on x, prefix on s, valuelist on x"):
        skipping.drop(store, [NullCount("x")])
    skipping.drop(store, [MinMax("x"), Prefix("s")])
    assert [str(one) for one in open_store(store).indexes] == ["valuelist of x"]
    assert opened(table, pqext.col("x") == 31, store) == ["day=3/1.parquet"]
    skipping.drop(store)
    assert not skipping.is_indexed(store)
    with pytest.raises(FileNotFoundError, match="omit skipping="):
        rows(table, pqext.col("x") == 31, store)
