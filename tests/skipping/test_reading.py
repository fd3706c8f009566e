"""The parts of a store read as one table, against a reading with pyarrow and json alone."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import CorruptFileError, LimitError, ParquetError
from pqext.core.io.sources.locations import locate
from pqext.skipping.format import parts, spark_schema
from pqext.skipping.format.metadata import IndexColumn, StoreMetadata, to_spark
from pqext.skipping.format.parts import part_files, read_parts
from reference import skipping_store

BOUNDS = pa.struct({"min": pa.int64(), "max": pa.int64()})


def put(path: Path, table: pa.Table, about: StoreMetadata) -> str:
    """A part by pyarrow, in the form of the version that ``about`` has."""
    text = spark_schema.write(to_spark(about, table.schema))
    pq.write_table(table.replace_schema_metadata({spark_schema.KEY: text}), path)
    return str(path)


def part(path: Path, rows: Sequence[Any], *columns: str, version: int | None = 4, table: str = "t") -> str:
    """A part with min/max indexes over ``columns``, each with the same ``rows``."""
    indexes = tuple(IndexColumn(f"{one}_x", "minmax", (one,)) for one in columns)
    names = [f"{path.stem}-{at}#1" for at in range(len(rows))]
    made = pa.table({"obj_name": names, **{one.name: pa.array(rows, BOUNDS) for one in indexes}})
    return put(path, made, StoreMetadata(version, table, None, (), indexes))


@pytest.mark.spec("store.row", "store.minmax", "store.valuelist", "store.partition-columns", "store.index.params-map")
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_published_stores_are_read(xskipper: Path, version: int) -> None:
    folders = sorted((xskipper / f"parquet_version_tests/end_to_end/version={version}").glob("*/*"))
    assert len(folders) == 24
    for folder in folders:
        told = skipping_store.read(folder)
        found = read_parts(part_files(folder))
        assert (found.metadata.version, found.metadata.table_identifier) == (version, told.table)
        assert list(found.metadata.partitions) == told.partitions
        assert [(one.name, one.index, list(one.columns), dict(one.params)) for one in found.metadata.indexes] == [
            (name, index["name"], index["cols"], skipping_store.params(version, index))
            for name, index in told.indexes.items()
        ]
        rows = found.table.to_pylist()
        assert {row.pop("obj_name"): row for row in rows} == told.rows


@pytest.mark.spec("store.timestamps")
def test_int96_columns_are_timestamps(xskipper: Path) -> None:
    [folder] = (xskipper / "parquet_version_tests/end_to_end/version=1/testID=5").iterdir()
    [part] = part_files(folder)
    assert pq.ParquetFile(part).schema.column(1).physical_type == "INT96"
    found = read_parts([part]).table.schema.field("timestamp_minmax").type
    assert [one.type for one in found] == [pa.timestamp("us")] * 2


@pytest.mark.spec("store.row")
def test_parts_are_combined_with_nulls_for_missing_indexes(tmp_path: Path) -> None:
    rows = [{"min": 1, "max": 2}, None]
    parts = [part(tmp_path / "p.parquet", rows, "a"), part(tmp_path / "q.parquet", rows, "b", "a")]
    found = read_parts(parts)
    assert found.table.to_pydict() == {
        "obj_name": ["p-0#1", "p-1#1", "q-0#1", "q-1#1"], "a_x": rows + rows, "b_x": [None, None, *rows],
    }  # fmt: skip
    assert [one.name for one in found.metadata.indexes] == ["a_x", "b_x"]


def test_only_requested_columns_are_read(tmp_path: Path) -> None:
    parts = [part(tmp_path / "p.parquet", [None], "a", "b"), part(tmp_path / "q.parquet", [None], "b", "c")]
    assert read_parts(parts, ["b_x"]).table.column_names == ["obj_name", "b_x"]
    assert read_parts(parts, []).table.column_names == ["obj_name"]
    assert len(read_parts(parts, ["a_x"]).metadata.indexes) == 3
    chosen = read_parts(parts, lambda about: [one.name for one in about.indexes if one.columns == ("c",)])
    assert chosen.table.column_names == ["obj_name", "c_x"]
    with pytest.raises(KeyError, match="no column 'd_x'"):
        read_parts(parts, ["a_x", "d_x"])


@pytest.mark.spec("store.parts.agree")
def test_parts_of_several_versions_or_tables_are_rejected_with_both_files(tmp_path: Path) -> None:
    one = part(tmp_path / "p.parquet", [None], "a")
    for other in (
        part(tmp_path / "q.parquet", [None], "a", version=3),
        part(tmp_path / "r.parquet", [None], "a", table="u"),
    ):
        with pytest.raises(CorruptFileError, match=r"contradict each other: .* in .*p\.parquet") as refused:
            read_parts([one, other])
        assert refused.value.path == other


@pytest.mark.spec("store.parts.agree")
def test_parts_with_different_column_types_are_rejected_with_both_files(tmp_path: Path) -> None:
    one = part(tmp_path / "p.parquet", [None], "a")
    about = StoreMetadata(4, "t", None, (), (IndexColumn("a_x", "minmax", ("a",)),))
    narrow = pa.array([None], pa.struct({"min": pa.int32(), "max": pa.int32()}))
    other = put(tmp_path / "q.parquet", pa.table({"obj_name": ["q#1"], "a_x": narrow}), about)
    with pytest.raises(CorruptFileError, match=r"type struct<min: int64.* in .*p\.parquet, but .*int32") as refused:
        read_parts([one, other])
    assert (refused.value.path, refused.value.column) == (other, "a_x")


@pytest.mark.spec("store.version.unusable", "store.version.absent", "store.cell.v0", "store.name.v0")
@pytest.mark.parametrize("version", [None, 0, 5])
def test_unusable_store_returns_only_its_objects(tmp_path: Path, version: int | None) -> None:
    name = "n.a:b_minmax" if version != 5 else "n$#$a_b_minmax_5-1"
    index = {"cols": ["n.a", "b"], "name": "minmax", "tableIdentifier": "t"}
    about = {"tableIdentifier": "t"} if version == 5 else {}
    if version is not None:
        about["version"] = version  # type: ignore[assignment]
    text = spark_schema.write([
        spark_schema.SparkField("obj_name", "string", False, about),
        spark_schema.SparkField(name, {"type": "udt", "class": "x.Y", "sqlType": "binary"}, True, {"index": index}),
    ])  # fmt: skip
    table = pa.table({"obj_name": ["o#1"], name: [b"serialised"]}).replace_schema_metadata({spark_schema.KEY: text})
    pq.write_table(table, tmp_path / "p.parquet")
    found = read_parts([str(tmp_path / "p.parquet")])
    assert found.table.to_pydict() == {"obj_name": ["o#1"]}
    assert not found.metadata.is_usable
    assert [(one.name, one.index, one.columns) for one in found.metadata.indexes] == [(name, "minmax", ("n.a", "b"))]


@pytest.mark.spec("store.name.v1")
def test_names_with_dots_are_separate_columns(tmp_path: Path) -> None:
    index = IndexColumn("n.a_minmax", "minmax", ("n.a",))
    rows = [{"min": 1, "max": 2}]
    table = pa.table({"obj_name": ["o#1"], "n.a_minmax": pa.array(rows, BOUNDS)})
    read = read_parts([put(tmp_path / "p.parquet", table, StoreMetadata(1, "t", None, (), (index,)))])
    assert read.table.column("n.a_minmax").to_pylist() == rows


def test_files_that_are_not_store_parts_are_rejected(tmp_path: Path) -> None:
    plain = str(tmp_path / "plain.parquet")
    pqext.write_table({"obj_name": pa.array(["a#1"])}, plain)
    with pytest.raises(CorruptFileError, match="not a part of a data-skipping store") as refused:
        read_parts([plain])
    assert refused.value.path == plain
    about = StoreMetadata(4, "t", None, (), (IndexColumn("gone", "minmax", ("a",)),))
    text = spark_schema.write(to_spark(about, pa.schema({"gone": BOUNDS})))
    pqext.write_table({"obj_name": pa.array(["a#1"])}, plain, key_value_metadata={spark_schema.KEY: text})
    with pytest.raises(CorruptFileError, match=r"a column in the metadata is missing \[file .*, column gone\]"):
        read_parts([plain])
    with pytest.raises(ValueError, match="parts must not be empty"):
        read_parts([])


def test_rows_beyond_the_memory_limit_are_rejected(tmp_path: Path) -> None:
    rows = [{"min": at, "max": at} for at in range(1000)]
    parts = [part(tmp_path / f"{at}.parquet", rows, "a") for at in range(3)]
    limits = pqext.Limits(memory_bytes=150_000, memory_expansion=0)
    assert len(read_parts(parts[:2], limits=limits).table) == 2000
    with pytest.raises(LimitError, match="read fewer columns"):
        read_parts(parts * 2, limits=limits)


@pytest.mark.spec("store.files")
def test_files_of_a_store_match_those_seen_by_spark(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "_c.parquet", ".d.parquet", "e.crc", "_SUCCESS", "f.parquet/g.parquet"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert part_files(tmp_path) == [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]
    assert part_files(tmp_path / "missing") == []


@pytest.mark.spec("store.files")
def test_store_is_read_from_a_bucket(tmp_path: Path) -> None:
    from obstore.store import LocalStore

    part(tmp_path / "p.parquet", [None], "a")
    (tmp_path / "below").mkdir()
    shutil.copy(tmp_path / "p.parquet", tmp_path / "below/q.parquet")
    shutil.copy(tmp_path / "p.parquet", tmp_path / "_r.parquet")
    folder = locate("", LocalStore(tmp_path))
    files = part_files(folder)
    assert [one.key for one in files] == ["p.parquet"]
    assert read_parts(files).table.column("obj_name").to_pylist() == ["p-0#1"]
    assert [one.key for one in part_files(folder.with_key("below/"))] == ["below/q.parquet"]
    assert part_files(folder.with_key("missing")) == []


def test_remote_parts_are_read_concurrently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from obstore.store import LocalStore

    for at in range(4):
        part(tmp_path / f"{at}.parquet", [None], "a")
    together, read = threading.Barrier(4, timeout=30), parts._read_part

    def wait_and_read(*arguments: Any, **keywords: Any) -> Any:
        together.wait()
        return read(*arguments, **keywords)

    monkeypatch.setattr(parts, "_read_part", wait_and_read)
    found = read_parts(part_files(locate("", LocalStore(tmp_path))))
    assert found.table.column("obj_name").to_pylist() == [f"{at}-0#1" for at in range(4)]


@pytest.mark.filterwarnings("ignore::pqext.AnnotationWarning")
@given(data=st.data())
def test_corrupt_part_is_read_or_rejected(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("part") / "p.parquet"
    part(path, [{"min": 1, "max": 2}] * 5, "a", "b")
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: len(raw) - data.draw(st.sampled_from([0, 0, 0, 1, 9, 500]))])
    try:
        found = read_parts([path])
    except ParquetError:
        return
    assert found.table.column_names[0] == "obj_name"
