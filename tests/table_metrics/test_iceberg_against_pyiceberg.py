"""Metrics held against pyiceberg: what it computes of the same footers, and tables that it scans by ours."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import BooleanExpression, EqualTo, GreaterThan, IsNaN, IsNull, LessThan, StartsWith
from pyiceberg.io.pyarrow import (
    PyArrowFileIO,
    _pyarrow_to_schema_without_ids,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, write_manifest, write_manifest_list
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import DoubleType, IntegerType, ListType, LongType, NestedField, StringType, StructType
from table_metrics.tables import numbered, written, written_by_pyarrow

import pqext
from pqext import table_metrics
from pqext.core.base.errors import CorruptFileError

NESTED = pa.table({
    "a": [1, None, 3], "b": [{"x": "p", "y": [1, 2]}, None, {"x": None, "y": []}],
    "c": pa.array([[("k", {"z": 1.5})], [], None], pa.map_(pa.string(), pa.struct([("z", pa.float64())]))),
    "d": ["a long text of more than sixteen letters", "b", None], "e": [b"\xff" * 20, b"", None],
})  # fmt: skip


def fresh(table: pa.Table) -> Schema:
    """The schema of a new table of pyiceberg with these columns."""
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(table.schema))


@pytest.mark.spec("metrics.iceberg.ids")
def test_columns_are_numbered_like_in_a_new_table() -> None:
    schema, found = fresh(NESTED), table_metrics.iceberg(written(NESTED))
    named = {id: name for id in found.names if (name := schema.find_column_name(id)) is not None}
    assert found.names == named
    assert {id: str(schema.find_type(id)) for id in found.types} == found.types


@pytest.mark.spec("metrics.iceberg.counts", "metrics.iceberg.sizes", "metrics.iceberg.offsets")
@pytest.mark.parametrize("writer", [written, written_by_pyarrow])
def test_counts_sizes_offsets_and_bounds_match_pyiceberg(writer: Any) -> None:
    option = {"row_group_rows": 2} if writer is written else {"row_group_size": 2}
    file, schema = writer(NESTED, **option), fresh(NESTED)
    theirs = data_file_statistics_from_parquet_metadata(
        pq.read_metadata(pa.BufferReader(file)), compute_statistics_plan(schema, {}), parquet_path_to_id_mapping(schema)
    ).to_serialized_dict()
    ours = table_metrics.iceberg(file, schema=schema)
    assert ours.column_sizes == theirs["column_sizes"]
    assert ours.value_counts == theirs["value_counts"]
    assert ours.null_value_counts == theirs["null_value_counts"]
    assert list(ours.split_offsets) == theirs["split_offsets"]
    assert ours.record_count == theirs["record_count"]
    top = {id for id, name in ours.names.items() if "." not in name}  # pyiceberg bounds no field of a struct
    assert {id: one for id, one in ours.lower_bounds.items() if id in top} == theirs["lower_bounds"]
    assert {id: one for id, one in ours.upper_bounds.items() if id in top} == theirs["upper_bounds"]


@pytest.mark.spec("metrics.iceberg.ids")
def test_field_ids_of_the_file_take_precedence_over_names() -> None:
    table = pa.table({"n": [1], "s": ["x"]})
    ids = pa.schema([
        pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "20"}),
        pa.field("s", pa.string(), metadata={"PARQUET:field_id": "10"}),
    ])  # fmt: skip
    schema = Schema(
        NestedField(10, "n", StringType(), required=False), NestedField(30, "new", LongType(), required=False)
    )
    file = written(table.cast(ids))
    assert table_metrics.iceberg(file).names == {10: "s", 20: "n"}
    found = table_metrics.iceberg(file, schema=schema)  # in which column 10 has another name, and 20 is not any more
    assert (found.names, found.lower_bounds) == ({10: "s"}, {10: b"x"})


@pytest.mark.spec("metrics.iceberg.ids")
def test_columns_without_ids_are_matched_by_schema_names() -> None:
    element = StructType(NestedField(9, "x", LongType(), required=False))
    schema = Schema(
        NestedField(5, "s", StringType(), required=False),
        NestedField(7, "l", ListType(8, element, element_required=False), required=False),
    )
    table = pa.table({"other": [1], "l": [[{"x": 1}]], "s": ["t"]})
    for told in (schema, schema.model_dump_json(), json.loads(schema.model_dump_json())):
        found = table_metrics.iceberg(written(table), schema=told)
        assert found.names == {5: "s", 9: "l.element.x"}
        assert found.lower_bounds == {5: b"t"}


def test_bound_has_the_table_type() -> None:
    table = pa.table({"i": pa.array([3], pa.int32()), "f": pa.array([0.5], pa.float32()), "t": pa.array([b"t"])})
    schema = Schema(
        NestedField(1, "i", LongType(), required=False), NestedField(2, "f", DoubleType(), required=False),
        NestedField(3, "t", StringType(), required=False),
    )  # fmt: skip
    found = table_metrics.iceberg(written(table), schema=schema)
    assert found.lower_bounds == {1: (3).to_bytes(8, "little"), 2: b"\0\0\0\0\0\0\xe0\x3f", 3: b"t"}
    text = Schema(NestedField(1, "i", StringType(), required=False))
    assert table_metrics.iceberg(written(table), schema=text).lower_bounds == {}  # which no file of the table may hold
    narrow = Schema(NestedField(1, "i", IntegerType(), required=False))
    assert table_metrics.iceberg(written(pa.table({"i": [1 << 40]})), schema=narrow).lower_bounds == {}


def test_duplicate_field_ids_are_rejected() -> None:
    same = pa.schema([pa.field(name, pa.int64(), metadata={"PARQUET:field_id": "1"}) for name in "ab"])
    with pytest.raises(CorruptFileError, match="'a' and 'b' both have field id 1"):
        table_metrics.iceberg(written(pa.table({"a": [1], "b": [2]}).cast(same)))


@pytest.mark.parametrize(
    ("schema", "error", "message"),
    [
        (5, TypeError, "schema must be a pyiceberg Schema or its JSON, not int"),
        ("{", ValueError, "the schema is not JSON"),
        ({"type": "list"}, ValueError, "the schema of a table must have type struct"),
        ({"type": "struct", "fields": [{"id": 1}]}, ValueError, "the JSON is not an Iceberg schema"),
        ({"type": "struct", "fields": [{"id": 1, "type": "int"}]}, ValueError, "the JSON is not an Iceberg"),
        ({"type": "struct", "fields": [{"id": "1", "name": "a", "type": "int"}]}, ValueError, "an integer id"),
        ({"type": "struct", "fields": 5}, ValueError, "the JSON is not an Iceberg schema"),
        ("[" * 100_000, ValueError, "the schema is not JSON"),
        ({"type": "struct", "fields": [{"id": 1, "name": "a", "type": {"type": "set"}}]}, ValueError, "'set' is not"),
    ],
)
def test_invalid_schema_is_rejected(schema: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        table_metrics.iceberg(written(pa.table({"a": [1]})), schema=schema)


@pytest.mark.spec("metrics.iceberg.modes")
def test_modes_select_the_metrics_of_columns() -> None:
    table = pa.table({"a": ["abc"], "b": ["abc"], "c": ["abc"], "d": ["abc"]})
    modes = {"a": "none", "b": "counts", "c": "truncate(2)"}
    found = table_metrics.iceberg(written(table), mode="full", modes=modes)
    assert set(found.column_sizes) == set(found.value_counts) == {2, 3, 4}
    assert found.lower_bounds == {3: b"ab", 4: b"abc"}
    assert found.upper_bounds == {3: b"ac", 4: b"abc"}
    for wrong in ("truncate(0)", "truncate", "all", "truncate(-1)"):
        with pytest.raises(ValueError, match=r"metrics mode must be none, counts, truncate\(N\) or full"):
            table_metrics.iceberg(written(table), mode=wrong)
    with pytest.raises(ValueError, match="unknown column 'aa'"):
        table_metrics.iceberg(written(table), modes={"aa": "none"})


SCHEMA = Schema(
    NestedField(1, "i", LongType(), required=False), NestedField(2, "s", StringType(), required=False),
    NestedField(3, "f", DoubleType(), required=False),
)  # fmt: skip


def of_data_files(folder: Path, data_files: Sequence[DataFile]) -> Table:
    """A table whose one snapshot has these files."""
    (folder / "metadata").mkdir()
    files, manifest, snapshots = PyArrowFileIO(), f"{folder}/metadata/m.avro", f"{folder}/metadata/l.avro"
    with write_manifest(2, PartitionSpec(), SCHEMA, files.new_output(manifest), 1, "null") as writer:
        for one in data_files:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=1, sequence_number=1, file_sequence_number=1,
                data_file=one,
            )  # fmt: skip
            writer.add_entry(entry)
    with write_manifest_list(2, files.new_output(snapshots), 1, None, 1, "null") as listed:
        listed.add_manifests([writer.to_manifest_file()])
    snapshot = {
        "snapshot-id": 1, "sequence-number": 1, "timestamp-ms": 1000, "manifest-list": snapshots,
        "summary": {"operation": "append"}, "schema-id": 0,
    }  # fmt: skip
    told = {
        "format-version": 2, "table-uuid": str(uuid.UUID(int=1)), "location": str(folder), "last-sequence-number": 1,
        "last-updated-ms": 1000, "last-column-id": 3, "schemas": [json.loads(SCHEMA.model_dump_json())],
        "current-schema-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0,
        "last-partition-id": 999, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
        "properties": {}, "current-snapshot-id": 1, "snapshots": [snapshot], "refs": {},
    }  # fmt: skip
    path = folder / "metadata" / "v1.metadata.json"
    path.write_text(json.dumps(told))
    return StaticTable.from_metadata(str(path))


@pytest.mark.parametrize("exact", [False, True])
def test_table_of_our_data_files_scans_only_files_that_may_match(exact: bool, tmp_path: Path) -> None:
    data_files = []
    for k in range(3):
        rows = range(10 * k, 10 * k + 10)
        table = pa.table({
            "i": pa.array([None if k == 2 and n == 25 else n for n in rows], pa.int64()),
            "s": [f"{k}-{n:02d}-{'x' * 30}" for n in rows],
            "f": [float("nan") if k == 0 and n == 5 else n / 2 for n in rows],
        })  # fmt: skip
        path = tmp_path / f"{k}.parquet"
        pqext.write_table(table.cast(numbered(table.schema)), path)
        data_files.append(table_metrics.iceberg(path, exact, schema=SCHEMA).to_data_file(str(path)))
    table = of_data_files(tmp_path, data_files)
    cases: list[tuple[BooleanExpression, int, int]] = [
        (GreaterThan("i", 24), 1, 4), (EqualTo("s", f"1-13-{'x' * 30}"), 1, 1), (LessThan("f", 2.0), 1, 4),
        (IsNull("i"), 1, 1), (IsNaN("f"), 1, 1), (StartsWith("s", "2-"), 1, 10), (GreaterThan("i", 100), 0, 0),
        (LessThan("i", 15), 2, 15),
    ]  # fmt: skip
    for condition, files, rows in cases:
        scan = table.scan(row_filter=condition)
        assert (len(list(scan.plan_files())), scan.to_arrow().num_rows) == (files, rows)
