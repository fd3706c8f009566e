"""Names of objects and of tables."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pqext import CorruptFileError
from pqext.core.io.sources.locations import locate
from pqext.skipping.format import names
from reference import skipping_store

OBJECTS = st.tuples(st.text(), st.integers(-(10**17), 10**17))


@pytest.mark.spec("store.obj-name")
@given(st.lists(OBJECTS))
@example([("/a#b/c#1", 2), ("/a\nb", -3), ("", 0)])
def test_object_names_round_trip_for_any_path(objects: list[tuple[str, int]]) -> None:
    made = [names.object_name(path, time) for path, time in objects]
    assert [names.parse_object_name(one) for one in made] == objects
    assert [skipping_store.object_of(one) for one in made] == objects
    paths, times = names.split_object_names(pa.array(made, pa.string()))
    assert (paths.to_pylist(), times.tolist()) == ([path for path, _ in objects], [time for _, time in objects])
    assert times.dtype == np.int64


@pytest.mark.spec("store.obj-name")
@pytest.mark.parametrize(
    "name", ["", "a.parquet", "a#", "a#1 ", "a#1\n", "a#１", "a#--1", "a#1.5", "a#" + "9" * 19, "#"]
)
def test_object_name_without_a_time_is_rejected(name: str) -> None:
    for read in (names.parse_object_name, lambda one: names.split_object_names(pa.array(["a#1", one]))):
        with pytest.raises(CorruptFileError, match="is not an object name"):
            read(name)


@pytest.mark.spec("store.obj-name")
def test_object_without_a_name_is_rejected() -> None:
    with pytest.raises(CorruptFileError, match="row 1 has no object name"):
        names.split_object_names(pa.chunked_array([["a#1"], [None]], pa.string()))


@pytest.mark.spec("store.table.path", "store.table.cos")
@pytest.mark.parametrize(
    ("uri", "identifier"),
    [
        ("/tables/weather/", "/tables/weather"),
        ("file:///tables/weather", "/tables/weather"),
        ("file:/tables/weather/", "/tables/weather"),
        ("s3a://bucket/tables/a%20b", "/tables/a%20b"),
        ("hdfs://node:8020/tables", "/tables"),
        ("s3://bucket", ""),
        ("default.weather", "default.weather"),
        ("cos://bucket.service/tables/weather/", "bucket/tables/weather"),
        ("COS://my.bucket.service", "my.bucket"),
        ("cos://bucket/a", "bucket/a"),
    ],
)
def test_table_is_identified_by_its_path(uri: str, identifier: str) -> None:
    assert names.table_identifier(uri) == identifier


@pytest.mark.spec("store.location")
def test_store_is_below_the_hash_of_its_table(xskipper: Path) -> None:
    for folder in (xskipper / "parquet_version_tests/end_to_end/version=4").glob("*/*"):
        table = skipping_store.read(folder).table
        assert names.default_location(str(folder.parent), table) == f"{folder.parent}/{folder.name}"


@pytest.mark.spec("store.location")
def test_store_in_a_bucket_is_below_the_hash_of_its_table() -> None:
    from obstore.store import MemoryStore

    base = locate("metadata", MemoryStore())
    below = names.default_location(base, "/tables/weather")
    assert below.key == "metadata/" + hashlib.sha256(b"/tables/weather").hexdigest()
    assert below.store is base.store
