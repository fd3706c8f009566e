"""Data-skipping stores in object stores: built, refreshed, merged, upgraded and used there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

import pqext
from pqext import skipping
from pqext.skipping import DataSkipping, MinMax, open_store
from pqext.skipping.maintenance import object_cells


def data(number: int) -> pa.Table:
    return pa.table({"x": [number], "s": [f"{number:03}"]})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written again within the second in these tests."""
    monkeypatch.setattr(object_cells, "_SETTLED_REMOTE_MS", 0)


@pytest.mark.parametrize("kind", ["url", pytest.param("pyarrow", marks=pytest.mark.slow), "obstore", "memory"])
def test_store_is_kept_next_to_its_table(request: pytest.FixtureRequest, kind: str) -> None:
    options: dict[str, Any]
    if kind == "memory":
        filesystem = fsspec.filesystem("memory")
        if filesystem.exists("/skipped"):
            filesystem.rm("/skipped", recursive=True)
        table, options = "/skipped/t", {"filesystem": filesystem}
    else:
        s3 = request.getfixturevalue("s3")
        table = {"url": "s3://bucket/t", "pyarrow": "bucket/t", "obstore": "t"}[kind]
        given = {"url": None, "pyarrow": s3.arrow, "obstore": s3.obstore}[kind]
        options = {"storage_options": s3.options} if given is None else {"filesystem": given()}
    for day in (1, 2):
        for number in (0, 1):
            pqext.write_table(data(10 * day + number), f"{table}/day={day}/{number}.parquet", **options)
    indexed = DataSkipping(table, **options)
    assert not indexed.is_indexed()
    done = indexed.index_builder().add_min_max_index("x").add_prefix_index("s", length=3).build()
    assert (done.objects, done.added, done.failed) == (4, 4, ())
    assert indexed.is_indexed()
    assert indexed.scan(["x"], filter=pqext.col("x") == 11).to_table().to_pylist() == [{"x": 11}]
    assert indexed.scan(filter=pqext.col("s") == "020").count() == 1
    assert [one.skipped for one in (indexed.latest_query_stats(),) if one is not None] == [3]
    assert indexed.latest_query_aggregated_stats().skipped_bytes > 0

    pqext.write_table(pa.concat_tables([data(100), data(101)]), f"{table}/day=1/0.parquet", **options)
    assert indexed.scan(filter=pqext.col("x") == 101).count() == 1
    assert indexed.refresh_index().added == 1
    told = indexed.describe_index()
    assert (told.objects, told.fresh, told.unknown) == (4, 4, 0)
    assert told.rows - told.stale == 4  # what was written in the same second as its successor is dropped at once
    assert told.partitions == ("day",)
    assert indexed.compact() == told.stale
    again = DataSkipping(table, **options)
    assert again.scan(filter=pqext.col("x") == 101).count() == 1
    assert again.latest_query_stats() == skipping.SkippingStatistics(
        4,
        3,
        again.latest_query_stats().bytes,
        again.latest_query_stats().skipped_bytes,  # type: ignore[union-attr]
    )
    again.index_builder().add_value_list_index("x").build(overwrite=True)
    assert [str(one) for one in again.list_indexes()] == ["valuelist of x"]
    assert again.describe_index().parts == 1
    again.drop_index()
    assert not again.is_indexed()


def test_store_is_refreshed_with_part_of_the_table(s3: Any) -> None:
    options = {"storage_options": s3.options}
    for day in (1, 2):
        pqext.write_table(data(day), f"s3://bucket/t/day={day}/a.parquet", **options)
    skipping.build("s3://bucket/t", [MinMax("x")], "s3://bucket/store", **options)
    pqext.write_table(data(3), "s3://bucket/t/day=2/b.parquet", **options)
    assert skipping.refresh("s3://bucket/t/day=2/", "s3://bucket/store", **options).added == 1
    skipping.compact("s3://bucket/store", "s3://bucket/t/day=2/", **options)
    told = skipping.describe("s3://bucket/store", "s3://bucket/t", **options)
    assert (told.table, told.objects, told.fresh, told.stale, told.parts) == ("/t", 3, 3, 0, 1)


def test_old_store_is_upgraded_in_an_object_store(s3: Any, xskipper: Path) -> None:
    [folder] = (xskipper / "parquet_version_tests/end_to_end/version=2/testID=1").iterdir()
    for path in folder.glob("*.parquet"):
        s3.put(f"store/{path.name}", path.read_bytes())
    before = open_store("s3://bucket/store", storage_options=s3.options)
    assert before.metadata.version == 2
    skipping.compact("s3://bucket/store", storage_options=s3.options)
    after = open_store("s3://bucket/store", storage_options=s3.options)
    assert after.metadata.version == 4
    assert [str(one) for one in after.indexes] == [str(one) for one in before.indexes]
    left = s3.keys()
    assert [key for key in left if "_pending" in key] == []


def test_stores_below_a_prefix_are_listed(s3: Any) -> None:
    options = {"storage_options": s3.options}
    for name in ("a", "b"):
        pqext.write_table(data(1), f"s3://bucket/{name}/x.parquet", **options)
        table = DataSkipping(f"s3://bucket/{name}", base="s3://bucket/stores", **options)
        table.index_builder().add_min_max_index("x").build()
    assert sorted(str(one.table) for one in skipping.list_stores("s3://bucket/stores", **options)) == ["/a", "/b"]
