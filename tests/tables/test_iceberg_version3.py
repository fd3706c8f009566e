"""Iceberg tables of format version 3: VARIANT and geometry columns, and initial defaults.

pyiceberg writes no such tables, so the metadata and the manifests are made here.
"""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import pqext
import pqext.geo.types
from pqext import col, geo, table_metrics, variant

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.tables.iceberg_tables import (
    commit,
    deletion_vectors,
    describe,
    equality_deletes,
    local,
    new_catalog,
    reopen,
    with_ids,
)

ID = {"id": 1, "name": "id", "required": False, "type": "long"}


class Version3:
    """A table whose first column is ``id``; ``fields`` are all its fields as JSON."""

    def __init__(self, folder: Path, fields: Sequence[dict[str, Any]], *, partition: str | None = None) -> None:
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), partition)) if partition else PartitionSpec()
        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "other", StringType()))
        self.empty: Table = new_catalog(folder).create_table("db.t", schema, partition_spec=spec)
        self.folder = folder
        self.fields = list(fields)
        self.latest = self.empty
        self.path = ""

    def append(self, name: str, table: pa.Table, ids: Sequence[int], *, metrics: bool = True, **options: Any) -> Path:
        """Write a file with pqext, and add it with the metrics of :mod:`pqext.table_metrics`."""
        path = self.folder / f"{name}.parquet"
        schema = pa.schema([
            field.with_metadata({**(field.metadata or {}), "PARQUET:field_id": str(id)})
            for field, id in zip(table.schema, ids, strict=True)
        ])
        pqext.write_table(table.cast(schema), path, **options)
        found = table_metrics.iceberg(path, exact=True)
        counts = {
            "value_counts": dict(found.value_counts), "null_value_counts": dict(found.null_value_counts),
            "nan_value_counts": dict(found.nan_value_counts), "lower_bounds": dict(found.lower_bounds),
            "upper_bounds": dict(found.upper_bounds),
        }
        self.add(path, table.num_rows, **(counts if metrics else {}))
        return path

    def add(self, path: Path, rows: int, **fields: Any) -> None:
        self.commit([describe(f"file://{path}", rows, format=3, **fields)], is_data=True)

    def commit(self, files: Sequence[Any], **arguments: Any) -> None:
        schemas = [{"type": "struct", "schema-id": 0, "fields": self.fields}]
        metadata = {"schemas": schemas, "last-column-id": max(field["id"] for field in self.fields)}
        self.path = commit(self.latest, files, format=3, metadata=metadata, **arguments)
        self.latest = _Opened(self.path, self.empty)  # type: ignore[assignment]

    @property
    def name(self) -> str:
        return f"iceberg:{self.path}"


class _Opened:
    """A table whose schema pyiceberg cannot load, as far as ``commit`` needs it."""

    def __init__(self, path: str, empty: Table) -> None:
        state = json.loads(Path(path).read_text("utf-8"))
        for schema in state["schemas"]:
            schema["fields"] = [field for field in schema["fields"] if '"variant"' not in json.dumps(field)]
        readable = Path(path).with_suffix(".readable.metadata.json")
        readable.write_text(json.dumps(state), "utf-8")
        self._table = reopen(str(readable))
        self.metadata_location = path
        readable.unlink()
        self._empty = empty

    def schema(self) -> Schema:
        return self._empty.schema()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


VARIANT = {"id": 2, "name": "event", "required": False, "type": "variant"}


def documents(ids: Sequence[int]) -> pa.Table:
    texts = [None if i % 5 == 0 else json.dumps({"kind": f"k{i % 3}", "user": {"age": i}}) for i in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "event": variant.parse_json(texts)})


@pytest.mark.spec("tables.iceberg.variants")
@pytest.mark.parametrize("shredding", [None, "infer"])
def test_variant_columns_are_read_and_prune_files(shredding: Any, tmp_path: Path) -> None:
    table = Version3(tmp_path, [ID, VARIANT])
    age_only = pa.struct([("user", pa.struct([("age", "int64")]))])
    options = {} if shredding is None else {"shredding": {"event": age_only}}
    first = table.append("first", documents(range(10)), [1, 2], **options)
    table.append("second", documents(range(10, 20)), [1, 2], **options)
    scan = pqext.scan(table.name)
    texts = dict(zip(scan.to_table()["id"].to_pylist(), variant.to_json(scan.to_table()["event"].combine_chunks()),
                     strict=True))
    assert {id: text.as_py() and json.loads(text.as_py()) for id, text in texts.items()} == {
        i: None if i % 5 == 0 else {"kind": f"k{i % 3}", "user": {"age": i}} for i in range(20)
    }
    age = col("event").variant("$.user.age", "int64")
    assert sorted(scan.filter(age >= 7).to_table()["id"].to_pylist()) == [i for i in range(7, 20) if i % 5]
    assert scan.filter("event is null").count() == 4
    first.write_bytes(b"damage")
    assert sorted(scan.filter(age > 9).to_table()["id"].to_pylist()) == [i for i in range(10, 20) if i % 5]
    assert "skips by table log: 1 file" in str(scan.filter(age > 9).explain())
    table.commit(equality_deletes_of(table, [12, 14]))
    left = pqext.scan(table.name).filter(age > 9)
    assert sorted(left.to_table()["id"].to_pylist()) == [11, 13, 16, 17, 18, 19]
    assert pickle.loads(pickle.dumps(left)).count() == 6


def equality_deletes_of(table: Version3, ids: Sequence[int]) -> list[Any]:
    return [equality_deletes(table.empty, "gone", pa.table({"id": pa.array(ids, pa.int64())}), [1], format=3)]


def test_nested_variants_and_folder_names(tmp_path: Path) -> None:
    wrapper = {"id": 3, "name": "box", "required": False, "type": {
        "type": "struct", "fields": [{"id": 4, "name": "event", "required": False, "type": "variant"}]}}
    table = Version3(tmp_path, [ID, wrapper])
    values = variant.parse_json(['{"a": 1}', "2"])
    event = variant.types.variant_field("event").with_metadata({
        **variant.types.variant_field("event").metadata, b"PARQUET:field_id": b"4"})
    boxes = pa.StructArray.from_arrays([values], fields=[event])
    table.append("f", pa.table({"id": pa.array([1, 2], pa.int64()), "box": boxes}), [1, 3], metrics=False)
    for name in (table.name, f"iceberg:{local(table.empty.location())}"):
        read = pqext.scan(name).to_table().sort_by("id")
        assert variant.to_json(read["box"].combine_chunks().field("event")).to_pylist() == ['{"a":1}', "2"]


def test_variant_tables_of_a_catalog_are_an_error_with_remedy(tmp_path: Path) -> None:
    table = Version3(tmp_path, [ID, VARIANT])
    table.append("first", documents(range(3)), [1, 2])
    from sqlalchemy import create_engine, text

    with create_engine(f"sqlite:///{tmp_path}/catalog.db").begin() as connection:
        connection.execute(text("update iceberg_tables set metadata_location = :path"), {"path": table.path})
    options = {"uri": f"sqlite:///{tmp_path}/catalog.db", "type": "sql"}
    with pytest.raises(pqext.UnsupportedError, match="pass the metadata file"):
        pqext.scan("iceberg:local.db.t", storage_options=options)


def points(ids: Sequence[int], field: pa.Field) -> pa.Table:
    wkb = [None if i == 3 else shapely.to_wkb(shapely.Point(i, -i)) for i in ids]
    schema = pa.schema([pa.field("id", pa.int64()), field])
    return pa.table([pa.array(ids, pa.int64()), pa.array(wkb, pa.binary())], schema=schema)


@pytest.mark.parametrize(("type", "crs", "edges"), [
    ("geometry", None, "planar"), ("geometry('EPSG:3857')", "EPSG:3857", "planar"),
    ("geography", None, "spherical"), ("geography('OGC:CRS84', 'karney')", None, "karney"),
])
def test_geometry_columns_are_marked_and_prune_files(type: str, crs: Any, edges: Any, tmp_path: Path) -> None:
    field = geo.types.geometry_field("geom", crs, edges)
    table = Version3(tmp_path, [ID, {"id": 2, "name": "geom", "required": False, "type": type}])
    first = table.append("first", points(range(10), field), [1, 2])
    table.append("second", points(range(10, 20), field), [1, 2])
    scan = pqext.scan(table.name)
    read = geo.types.type_of(scan.schema.field("geom"))
    assert read == geo.types.type_of(field)
    found = scan.filter(col("geom").intersects((12, -14, 14, -12))).to_table()
    assert sorted(found["id"].to_pylist()) == [12, 13, 14]
    assert scan.filter("geom is null").to_table()["id"].to_pylist() == [3]
    first.write_bytes(b"damage")
    again = scan.filter(col("geom").intersects((12, -14, 14, -12)))
    assert again.to_table() == found
    assert "skips by table log: 1 file" in str(again.explain())


@pytest.mark.spec("tables.iceberg.boxes")
@pytest.mark.parametrize(("type", "low", "high", "box", "is_pruned"), [
    ("geography", (170.0, -5.0), (-170.0, 5.0), (0, 0, 1, 1), True),
    ("geography", (170.0, -5.0), (-170.0, 5.0), (175, 0, 176, 1), False),
    ("geometry", (170.0, -5.0), (-170.0, 5.0), (0, 0, 1, 1), False),
    ("geometry", (0.0, 5.0), (1.0, -5.0), (100, 0, 101, 1), False),
    ("geometry", (0.0, 0.0, 7.0), (1.0, 1.0, 8.0), (5, 5, 6, 6), True),
    ("geometry", (0.0, 0.0, float("nan"), 7.0), (1.0, 1.0, float("nan"), 8.0), (5, 5, 6, 6), True),
    ("geometry", (float("nan"), 0.0), (1.0, 1.0), (5, 5, 6, 6), False),
    ("geometry", (0.0,), (1.0,), (5, 5, 6, 6), False),
])
def test_boxes_of_the_log(
    type: str, low: Sequence[float], high: Sequence[float], box: Any, is_pruned: bool, tmp_path: Path
) -> None:
    edges: Any = "spherical" if type == "geography" else "planar"
    field = geo.types.geometry_field("geom", None, edges)
    table = Version3(tmp_path, [ID, {"id": 2, "name": "geom", "required": False, "type": type}])
    path = table.append("f", points([0], field), [1, 2], metrics=False)
    bounds = {name: {2: struct.pack(f"<{len(side)}d", *side)} for name, side in (("lower", low), ("upper", high))}
    table.latest = table.empty
    table.add(path, 1, lower_bounds=bounds["lower"], upper_bounds=bounds["upper"])
    plan = str(pqext.scan(table.name).filter(col("geom").intersects(box)).explain())
    assert ("skips by table log: 1 file" in plan) is is_pruned


@pytest.mark.spec("tables.iceberg.boxes")
def test_tables_whose_schemas_differ_in_metadata_only(tmp_path: Path) -> None:
    """Arrow calls the schemas of a binary and a geometry column equal, so a cache by schema would mix them up."""
    shapes = {"binary": pa.field("shape", pa.binary()), "geometry": geo.types.geometry_field("shape")}
    filters = {"binary": col("shape") == b"x", "geometry": col("shape").intersects((5, 5, 6, 6))}
    for type, field in shapes.items():
        (tmp_path / type).mkdir()
        table = Version3(tmp_path / type, [ID, {"id": 2, "name": "shape", "required": False, "type": type}])
        table.append("f", points([0], field), [1, 2])
        assert "skips by table log: 1 file" in str(pqext.scan(table.name).filter(filters[type]).explain())


DEFAULTS = [
    ("long", 7, 7), ("string", "x", "x"), ("boolean", True, True), ("double", 1.5, 1.5),
    ("decimal(9, 2)", "12.34", "12.34"), ("date", "2024-02-03", "2024-02-03"),
    ("timestamptz", "2024-02-03T04:05:06+00:00", "2024-02-03 04:05:06+00:00"), ("binary", "00ff", b"\0\xff"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
]


def with_default(type: Any, default: Any, id: int = 2, name: str = "added") -> dict[str, Any]:
    return {"id": id, "name": name, "required": False, "type": type, "initial-default": default}


@pytest.mark.spec("tables.iceberg.missing")
@pytest.mark.parametrize(("type", "default", "value"), DEFAULTS)
def test_files_without_a_column_have_its_initial_default(type: str, default: Any, value: Any, tmp_path: Path) -> None:
    table = Version3(tmp_path, [ID, with_default(type, default)])
    table.append("old", pa.table({"id": pa.array([1, 2], pa.int64())}), [1])
    column = pa.nulls(1, pqext.scan(table.name).schema.field("added").type)
    table.append("new", pa.table({"id": pa.array([3], pa.int64()), "added": column}), [1, 2], metrics=False)
    read = pqext.scan(table.name).to_table().sort_by("id")["added"].to_pylist()
    assert [item if isinstance(item, bytes) else str(item) for item in read[:2]] == [
        value if isinstance(value, bytes) else str(value)
    ] * 2
    assert read[2] is None
    assert sorted(pqext.scan(table.name, ["id"], "added is not null").to_table()["id"].to_pylist()) == [1, 2]


@pytest.mark.spec("tables.iceberg.missing", "tables.iceberg.equality-columns")
def test_conditions_values_and_orders_use_defaults(tmp_path: Path) -> None:
    table = Version3(tmp_path, [ID, with_default("long", 7), with_default("long", 2, 3, "other")])
    table.append("old", pa.table({"id": pa.array([1, 2], pa.int64())}), [1])
    both = pa.table({"id": pa.array([3, 4], pa.int64()), "added": pa.array([7, None], pa.int64())})
    table.append("new", both, [1, 2])
    scan = pqext.scan(table.name)
    for filter, expected in (
        ("added = 7", [1, 2, 3]), ("added > 7", []), ("added is null", [4]), ("added = id + 6", [1]),
        ("added = 7 and id > 1", [2, 3]), ("added > 7 or id = 2", [2]), ("other = 2", [1, 2, 3, 4]),
        ("not (added = 7)", []), ("added + other = 9", [1, 2, 3]), ("id = other", [2]),
    ):
        assert sorted(scan.filter(filter).to_table()["id"].to_pylist()) == expected, filter
        assert scan.filter(filter).count() == len(expected), filter
    computed = scan.select(["id", ("sum", col("added") + col("other"))]).to_table().sort_by("id")
    assert computed["sum"].to_pylist() == [9, 9, 9, None]
    ordered = scan.sort(["other", "id"]).to_table() if hasattr(scan, "sort") else scan.to_table().sort_by("id")
    assert ordered["added"].to_pylist() == [7, 7, 7, None]
    assert pickle.loads(pickle.dumps(scan.filter("added = 7"))).count() == 3
    table.commit([equality_deletes(
        table.empty, "d", pa.table({"added": pa.array([7], pa.int64())}), [2], format=3)])
    assert pqext.scan(table.name).to_table()["id"].to_pylist() == [4]


@pytest.mark.spec("tables.iceberg.missing")
def test_defaults_within_structs_lists_and_maps(tmp_path: Path) -> None:
    def member(first: int) -> dict[str, Any]:
        plain = {"id": first, "name": "a", "required": False, "type": "long"}
        return {"type": "struct", "fields": [plain, with_default("string", "d", first + 1, "b")]}

    fields = [
        ID, {"id": 2, "name": "s", "required": False, "type": member(11)},
        {"id": 3, "name": "l", "required": False, "type": {
            "type": "list", "element-id": 21, "element": member(22), "element-required": False}},
        {"id": 4, "name": "m", "required": False, "type": {
            "type": "map", "key-id": 31, "key": "string", "value-id": 32, "value": member(33),
            "value-required": False}},
    ]
    table = Version3(tmp_path, fields)

    def field(name: str, type: pa.DataType, id: int) -> pa.Field:
        return pa.field(name, type, metadata={"PARQUET:field_id": str(id)})

    schema = pa.schema([
        field("id", pa.int64(), 1), field("s", pa.struct([field("a", pa.int64(), 11)]), 2),
        field("l", pa.list_(field("element", pa.struct([field("a", pa.int64(), 22)]), 21)), 3),
        field("m", pa.map_(pa.field("key", pa.string(), False, {"PARQUET:field_id": "31"}),
                           field("value", pa.struct([field("a", pa.int64(), 33)]), 32)), 4),
    ])
    data = pa.Table.from_pylist([
        {"id": 1, "s": {"a": 5}, "l": [{"a": 6}, None], "m": [("k", {"a": 7})]},
        {"id": 2, "s": None, "l": None, "m": None},
    ], schema=schema)
    pq.write_table(data, tmp_path / "f.parquet")
    table.add(tmp_path / "f.parquet", 2)
    assert pqext.scan(table.name).to_table().to_pylist() == [
        {"id": 1, "s": {"a": 5, "b": "d"}, "l": [{"a": 6, "b": "d"}, None], "m": [("k", {"a": 7, "b": "d"})]},
        {"id": 2, "s": None, "l": None, "m": None},
    ]
    filters = {"s.b = 'd'": [1], "s.b is null": [2], "s.b = 'e'": [], "s.b = 'd' and s.a = 5": [1]}
    for filter, expected in filters.items():
        assert pqext.scan(table.name, ["id"], filter).to_table()["id"].to_pylist() == expected, filter


@pytest.mark.spec("tables.iceberg.missing")
def test_identity_partition_values_fill_missing_columns(tmp_path: Path) -> None:
    table = Version3(tmp_path, [ID, {"id": 2, "name": "other", "required": False, "type": "string"}], partition="id")
    schema = with_ids(pa.schema([("other", pa.string())]), [2])
    for number in (5, 6, None):
        path = tmp_path / f"p{number}.parquet"
        pq.write_table(pa.table([[f"x{number}"]], schema=schema), path)
        table.add(path, 1, partition=[number])
    rows = pqext.scan(table.name).to_table().to_pylist()
    assert {(row["id"], row["other"]) for row in rows} == {(5, "x5"), (6, "x6"), (None, "xNone")}
    (tmp_path / "p5.parquet").write_bytes(b"damage")
    assert pqext.scan(table.name, filter="id = 6").to_table()["other"].to_pylist() == ["x6"]
    assert pqext.scan(table.name, filter="id is null").to_table()["other"].to_pylist() == ["xNone"]
    assert pqext.scan(table.name, filter="id = 6 and other = 'x6'").count() == 1
    table.commit(deletion_vectors(table.empty, "v", {f"file://{tmp_path}/p6.parquet": [0]}, partition=[6]))
    assert pqext.scan(table.name, filter="id >= 6").count() == 0
