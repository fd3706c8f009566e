"""Stores that are damaged, foreign, mixed or hostile: typed errors that name the file, from scans and writers alike."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import skipping
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.skipping import MinMax, Prefix, open_store

KEY = "org.apache.spark.sql.parquet.row.metadata"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    for number in range(3):
        data = pa.table({"x": [number], "s": [str(number)]})
        pqext.write_table(data, tmp_path / "t" / f"{number}.parquet")
    skipping.build(str(tmp_path / "t"), [MinMax("x"), Prefix("s")], tmp_path / "store")
    return tmp_path / "t"


def part(store: Path) -> Path:
    (found,) = store.glob("*.parquet")
    return found


def changed(store: Path, change: Callable[[Any], Any]) -> None:
    """The part with another JSON in its footer: what ``change`` makes of it, text as it stands."""
    path = part(store)
    held = pq.read_table(path)
    text = change(json.loads(held.schema.metadata[KEY.encode()]))
    text = text if isinstance(text, str) else json.dumps(text)
    pq.write_table(held.replace_schema_metadata({KEY: text}), path)


def truncated(store: Path) -> None:
    part(store).write_bytes(part(store).read_bytes()[:-20])


def flipped(store: Path) -> None:
    data = bytearray(part(store).read_bytes())
    for at in range(4, 60):
        data[at] ^= 0xFF
    part(store).write_bytes(data)


def foreign(store: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), store / "part-z.parquet")


def side(store: Path) -> None:
    for one in (store / "_pqext").iterdir():
        one.write_bytes(b"PAR1" + bytes(40) + b"PAR1")


def _field(at: int, **changes: Any) -> Callable[[Any], Any]:
    def change(schema: Any) -> Any:
        schema["fields"][at].update(changes)
        return schema

    return change


def without_version(schema: Any) -> Any:
    schema["fields"][0]["metadata"] = {}
    schema["fields"][1]["metadata"]["index"].pop("params")
    return schema


def mixed(store: Path) -> None:
    shutil.copy(part(store), store / "part-0.parquet")
    path = store / "part-0.parquet"
    held = pq.read_table(path)
    schema = json.loads(held.schema.metadata[KEY.encode()])
    schema["fields"][0]["metadata"]["version"] = 3
    pq.write_table(held.replace_schema_metadata({KEY: json.dumps(schema)}), path)


DAMAGES: dict[str, tuple[Callable[[Path], Any], type[ParquetError], str]] = {
    "truncated": (truncated, CorruptFileError, "part-"),
    "flipped": (flipped, ParquetError, "part-"),
    "foreign": (foreign, CorruptFileError, "part-z.parquet"),
    "further indexes": (side, CorruptFileError, "_pqext"),
    "mixed versions": (mixed, CorruptFileError, "part-0.parquet"),
    "no JSON": (lambda store: changed(store, lambda _: '{"type": '), CorruptFileError, "part-"),
    "JSON of another form": (lambda store: changed(store, lambda _: "[]"), CorruptFileError, "part-"),
    "deep JSON": (lambda store: changed(store, lambda _: "[" * 100_000), CorruptFileError, "part-"),
    "lone surrogates": (
        lambda store: changed(store, lambda schema: json.dumps(schema).replace('["x"]', '["\\udcff"]')),
        CorruptFileError, "part-",
    ),
    "version of text": (
        lambda store: changed(store, _field(0, metadata={"version": "4", "tableIdentifier": "/"})), CorruptFileError,
        "part-",
    ),
    "index without columns": (
        lambda store: changed(store, _field(1, metadata={"index": {"name": "minmax"}})), CorruptFileError, "part-",
    ),
    "column that is not there": (lambda store: changed(store, _field(1, name="y_minmax_1")), CorruptFileError, "part-"),
    "later version": (
        lambda store: changed(store, _field(0, metadata={"version": 5, "tableIdentifier": "/"})), UnsupportedError,
        "store",
    ),
    "version 0": (lambda store: changed(store, without_version), UnsupportedError, "store"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_corrupt_store_is_an_error_that_names_its_file(table: Path, tmp_path: Path, damage: str) -> None:
    spoil, kind, named = DAMAGES[damage]
    store = tmp_path / "store"
    spoil(store)
    scan = pqext.scan(table, filter=(pqext.col("x") == 1) & (pqext.col("s") == "1"), skipping=store)
    with pytest.raises(kind) as raised:
        scan.to_table()
    assert named in str(raised.value)
    assert str(store) in str(raised.value)
    assert "omit skipping= to read every file" in str(raised.value)
    assert pqext.scan(table, filter=pqext.col("x") == 1).count() == 1
    for step in (lambda: skipping.refresh(table, store), lambda: skipping.compact(store)):
        with pytest.raises(ParquetError, match=r"part-|store"):
            step()
    skipping.build(str(table), [MinMax("x")], store, overwrite=True)
    assert pqext.scan(table, filter=pqext.col("x") == 1, skipping=store).count() == 1


def test_store_with_invalid_object_names_is_an_error(table: Path, tmp_path: Path) -> None:
    path = part(tmp_path / "store")
    held = pq.read_table(path)
    pq.write_table(held.set_column(0, "obj_name", pa.array(["nothing"] * 3)), path)
    with pytest.raises(CorruptFileError, match="is not an object name") as raised:
        pqext.scan(table, filter=pqext.col("x") == 1, skipping=tmp_path / "store").to_table()
    assert str(tmp_path / "store") in str(raised.value)


@pytest.mark.parametrize("column", ["obj_name", "obj_name_object_8"])
def test_names_and_versions_of_other_types_are_errors(table: Path, tmp_path: Path, column: str) -> None:
    for path in (tmp_path / "store").rglob("part-*"):
        held = pq.read_table(path)
        if column in held.column_names:
            pq.write_table(held.set_column(held.column_names.index(column), column, pa.array([[1]] * 3)), path)
    filter = (pqext.col("x") == 1) & (pqext.col("s") == "1")
    with pytest.raises(CorruptFileError, match=r"(object names|object versions) must") as raised:
        pqext.scan(table, filter=filter, skipping=tmp_path / "store").to_table()
    assert str(tmp_path / "store") in str(raised.value)
    with pytest.raises(CorruptFileError, match=r"(object names|object versions) must"):
        skipping.drop(tmp_path / "store", [MinMax("x")])


def test_cells_of_other_types_exclude_nothing(table: Path, tmp_path: Path) -> None:
    for cells in (
        pa.array(["a"] * 3), pa.array([[1]] * 3), pa.array([{"min": 5}] * 3),
        pa.array([{"min": b"x", "max": b"y"}] * 3),
        pa.array([{"min": "9", "max": "9"}] * 3), pa.nulls(3, pa.struct([("min", pa.int64()), ("max", pa.int64())])),
    ):  # fmt: skip
        path = part(tmp_path / "store")
        held = pq.read_table(path)
        pq.write_table(held.set_column(1, "x_minmax_1", cells), path)
        assert pqext.scan(table, filter=pqext.col("x") == 1, skipping=tmp_path / "store").count() == 1


def test_value_list_that_is_not_a_list_excludes_nothing() -> None:
    for cells in (pa.array(["a"]), pa.array([1]), pa.array([b"a"])):
        assert skipping.ValueList("s").may_match(pqext.col("s") == "1", cells) is None


def test_store_beyond_the_memory_limit_is_an_error(table: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", limits=Limits(memory_bytes=64, memory_expansion=0))
    with pytest.raises(LimitError, match="omit skipping="):
        pqext.scan(table, filter=pqext.col("x") == 1, skipping=store).to_table()


def test_index_with_invalid_parameters_is_not_used(table: Path, tmp_path: Path) -> None:
    (path,) = (tmp_path / "store" / "_pqext").glob("*.parquet")
    held = pq.read_table(path)
    for length in ("-1", "x", "9" * 5000, ""):
        schema = json.loads(held.schema.metadata[KEY.encode()])
        schema["fields"][-1]["metadata"]["index"]["params"]["io.pqext.length"] = length
        pq.write_table(held.replace_schema_metadata({KEY: json.dumps(schema)}), path)
        assert [str(one) for one in open_store(tmp_path / "store").indexes] == ["minmax of x"]
        assert pqext.scan(table, filter=pqext.col("s") == "1", skipping=tmp_path / "store").count() == 1


@pytest.mark.parametrize("given", [3, b"store", object()])
def test_folder_that_is_not_a_store_is_rejected(table: Path, given: Any) -> None:
    with pytest.raises(TypeError, match="skipping must be a data-skipping store or its path"):
        pqext.scan(table, skipping=given)
