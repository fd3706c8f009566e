"""Position deletes, equality deletes and deletion vectors of Iceberg tables, against plain lists of rows."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, StructType

from tests.tables.iceberg_tables import (
    commit,
    data_paths,
    deletion_vectors,
    describe,
    equality_deletes,
    local,
    new_catalog,
    position_deletes,
    reopen,
    vector_blob,
    with_ids,
)

FIELDS = (NestedField(1, "id", LongType()), NestedField(2, "part", StringType()), NestedField(3, "n", LongType()))


def rows(ids: Sequence[int], part: str = "a") -> pa.Table:
    """Rows whose ``n`` is null for every third id."""
    return pa.table({
        "id": pa.array(ids, pa.int64()), "part": pa.array([part] * len(ids)),
        "n": pa.array([None if i % 3 == 0 else i % 4 for i in ids], pa.int64()),
    })


def create(folder: Path, *, partitioned: bool = False) -> Table:
    """A table with the rows 0 to 9 in one data file, and 10 to 19 in another of partition b."""
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part")) if partitioned else PartitionSpec()
    table = new_catalog(folder).create_table("db.t", Schema(*FIELDS), partition_spec=spec)
    table.append(rows(range(10), "a"))
    table.append(rows(range(10, 20), "b"))
    return table


def ids(source: Any, **arguments: Any) -> list[int]:
    """The ids of all rows, sorted."""
    found: list[int] = sorted(pqext.scan(source, ["id"], **arguments).to_table()["id"].to_pylist())
    return found


def without(*deleted: int, among: range = range(20)) -> list[int]:
    return [i for i in among if i not in deleted]


def paths(table: Table) -> tuple[str, str]:
    """The data files of the rows 0 to 9 and of the rows 10 to 19."""
    files = data_paths(table)
    first = next(path for path in files if pq.read_table(local(path))["id"][0].as_py() == 0)
    return first, next(path for path in files if path != first)


@pytest.mark.spec("tables.iceberg.positions")
def test_position_deletes(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, second = paths(table)
    path = commit(table, [position_deletes(table, "d", [(second, 9), (first, 3), (first, 0), (second, 9)])])
    scan = pqext.scan(f"iceberg:{path}")
    assert ids(f"iceberg:{path}") == without(0, 3, 19) == sorted(reopen(path).scan().to_arrow()["id"].to_pylist())
    assert scan.count() == 17
    assert scan.filter("id < 5").count() == 3
    assert ids(reopen(path), filter="id = 3 or id = 4") == [4]
    assert pickle.loads(pickle.dumps(scan)).count() == 17
    assert ids(f"iceberg:{path}", version=table.metadata.current_snapshot_id) == without()


@pytest.mark.spec("tables.iceberg.positions")
def test_position_deletes_apply_to_files_of_the_same_or_an_earlier_commit(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, _ = paths(table)
    path = commit(table, [position_deletes(table, "d", [(first, 1)])])
    assert ids(f"iceberg:{path}") == without(1)
    path = commit(reopen(path), [describe(first, 10)], is_data=True, without_data=True)
    assert ids(f"iceberg:{path}") == [*range(10)]


@pytest.mark.spec("tables.iceberg.positions")
def test_position_deletes_of_another_partition_do_not_apply(tmp_path: Path) -> None:
    table = create(tmp_path, partitioned=True)
    first, second = paths(table)
    deletes = position_deletes(table, "d", [(first, 1), (second, 1)], partition=["b"])
    assert ids(f"iceberg:{commit(table, [deletes])}") == without(11)


@pytest.mark.spec("tables.iceberg.positions", "tables.iceberg.equality-scope")
@pytest.mark.parametrize(("data", "deletes", "applies"), [(nan, nan, True), (0.0, 0.0, True), (0.0, -0.0, False)])
def test_deletes_in_partitions_of_floats(data: float, deletes: float, applies: bool, tmp_path: Path) -> None:
    """Partition values are compared as in Java: NaN equals NaN, and zeros differ by their sign."""
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "f"))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "f", DoubleType()))
    table = new_catalog(tmp_path).create_table("db.t", schema, partition_spec=spec)
    path = f"{table.location()}/data/d.parquet"
    local(path).parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2, 3]}).cast(with_ids(pa.schema([("id", pa.int64())]), [1])), local(path))
    files = [
        position_deletes(table, "p", [(path, 0), (path, 0), ("other", 5)], partition=[deletes]),
        equality_deletes(table, "e", pa.table({"id": [2]}), [1], partition=[deletes]),
    ]
    with_data = commit(table, [describe(path, 3, partition=[data])], is_data=True)
    assert ids(f"iceberg:{commit(reopen(with_data), files)}") == ([3] if applies else [1, 2, 3])


def test_position_deletes_are_found_by_the_bounds_of_their_path(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, second = paths(table)
    bounds = {"lower_bounds": {2147483546: first.encode()}, "upper_bounds": {2147483546: first.encode()}}
    files = [
        position_deletes(table, "only", [(first, 2)], **bounds),
        position_deletes(table, "none", [(second, 5)], lower_bounds={2147483546: b"z"}),
    ]
    path = commit(table, files)
    local(files[1].file_path).write_bytes(b"damage")
    assert ids(f"iceberg:{path}") == without(2)


def test_delete_files_of_pruned_data_files_are_not_read(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, second = paths(table)
    files = [position_deletes(table, "first", [(first, 2)], format=3, referenced_data_file=first),
             position_deletes(table, "second", [(second, 5)], format=3, referenced_data_file=second)]
    path = commit(table, files, format=3)
    assert ids(f"iceberg:{path}") == without(2, 15)
    local(files[0].file_path).write_bytes(b"damage")
    local(first).write_bytes(b"damage")
    assert ids(f"iceberg:{path}", filter="id >= 10") == without(15, among=range(10, 20))
    with pytest.raises(pqext.CorruptFileError):
        ids(f"iceberg:{path}")


@pytest.mark.spec("tables.iceberg.vectors")
def test_deletion_vectors_replace_position_deletes(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, second = paths(table)
    path = commit(table, [position_deletes(table, "old", [(first, 7), (second, 0)], format=3)], format=3)
    vectors = deletion_vectors(table, "v", {first: [0, 7, 8], "file:///no/such.parquet": [1]})
    path = commit(reopen(path), vectors, format=3)
    assert ids(f"iceberg:{path}") == without(0, 7, 8, 10)
    assert pickle.loads(pickle.dumps(pqext.scan(f"iceberg:{path}"))).count() == 16


@pytest.mark.spec("tables.iceberg.vectors")
def test_deletion_vector_is_not_applied_to_a_later_file(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, _ = paths(table)
    path = commit(table, deletion_vectors(table, "v", {first: [4]}), format=3)
    assert ids(f"iceberg:{path}") == without(4)
    path = commit(reopen(path), [describe(first, 10, format=3)], format=3, is_data=True, without_data=True)
    assert ids(f"iceberg:{path}") == [*range(10)]


def test_file_that_is_listed_twice_with_other_deletes_is_an_error(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, _ = paths(table)
    path = commit(table, [equality_deletes(table, "d", keys(id=[3]), [1])])
    path = commit(reopen(path), [describe(first, 10)], is_data=True)
    with pytest.raises(pqext.CorruptFileError, match="lists a file twice"):
        ids(f"iceberg:{path}")




@pytest.mark.spec("tables.iceberg.vector-format")
def test_vector_beyond_32_bits_and_rows_beyond_the_file_are_errors(tmp_path: Path) -> None:
    from pqext.tables.iceberg.deletes import read_vector

    positions = [1, 70_000, (3 << 32) + 5]
    blob = vector_blob(positions)
    (tmp_path / "v").write_bytes(b"PFA1" + blob)
    assert read_vector(str(tmp_path / "v"), 4, len(blob)).tolist() == positions
    table = create(tmp_path)
    first, _ = paths(table)
    path = commit(table, deletion_vectors(table, "v", {first: [10]}), format=3)
    with pytest.raises(pqext.CorruptFileError, match="deletes row 10, but the file has 10 rows"):
        ids(f"iceberg:{path}")


@pytest.mark.spec("tables.iceberg.vector-format")
@pytest.mark.parametrize("position", range(0, 60, 3))
def test_corrupt_vectors_are_errors(position: int, tmp_path: Path) -> None:
    from pqext.tables.iceberg.deletes import read_vector

    blob = bytearray(vector_blob([1, 5, 9]))
    position %= len(blob)
    blob[position] ^= 0x5A
    (tmp_path / "v").write_bytes(blob)
    with pytest.raises(pqext.CorruptFileError):
        read_vector(str(tmp_path / "v"), 0, len(blob))
    with pytest.raises(pqext.CorruptFileError):
        read_vector(str(tmp_path / "v"), 5, len(blob))


def keys(**columns: Any) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


@pytest.mark.spec("tables.iceberg.equality")
def test_equality_deletes_by_one_column_and_null(tmp_path: Path) -> None:
    table = create(tmp_path)
    path = commit(table, [equality_deletes(table, "d", keys(n=[None, 1]), [3])])
    expected = [i for i in range(20) if not (i % 3 == 0 or i % 4 == 1)]
    assert ids(f"iceberg:{path}") == expected
    assert pqext.scan(f"iceberg:{path}").count() == len(expected)
    assert ids(f"iceberg:{path}", filter="n = 2") == [i for i in expected if i % 4 == 2]


@pytest.mark.spec("tables.iceberg.equality")
def test_equality_deletes_by_several_columns(tmp_path: Path) -> None:
    table = create(tmp_path)
    deletes = keys(n=[None, 2, 2, None], id=[9, 14, 15, 4])
    files = [equality_deletes(table, "d", deletes, [3, 1]), equality_deletes(table, "e", keys(id=[0]), [1])]
    path = commit(table, files)
    assert ids(f"iceberg:{path}") == without(0, 9, 14)


@pytest.mark.spec("tables.iceberg.equality-scope")
def test_equality_deletes_do_not_apply_to_the_same_commit_or_later(tmp_path: Path) -> None:
    table = create(tmp_path)
    path = commit(table, [equality_deletes(table, "d", keys(id=[3, 30]), [1])])
    data = tmp_path / "later.parquet"
    later = rows([3, 30])
    pq.write_table(later.cast(with_ids(later.schema, [1, 2, 3])), data)
    path = commit(reopen(path), [describe(f"file://{data}", 2)], is_data=True)
    assert ids(f"iceberg:{path}") == sorted([*without(3), 3, 30])


@pytest.mark.spec("tables.iceberg.equality-scope")
def test_equality_deletes_apply_to_their_partition_or_globally(tmp_path: Path) -> None:
    table = create(tmp_path, partitioned=True)
    with table.update_spec() as update:
        update.remove_field("part")
    unpartitioned = table.spec().spec_id
    local_deletes = equality_deletes(table, "d", keys(n=[2]), [3], partition=["b"])
    path = commit(table, [local_deletes], spec_id=0)
    assert ids(f"iceberg:{path}") == [i for i in range(20) if i < 10 or i % 3 == 0 or i % 4 != 2]
    everywhere = equality_deletes(table, "e", keys(n=[1]), [3])
    path = commit(reopen(path), [everywhere], spec_id=unpartitioned)
    assert ids(f"iceberg:{path}") == [
        i for i in range(20) if i % 3 == 0 or (i % 4 != 1 and (i < 10 or i % 4 != 2))
    ]


@pytest.mark.spec("tables.iceberg.equality-columns")
def test_equality_deletes_by_renamed_promoted_dropped_and_added_columns(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    table = catalog.create_table("db.t", Schema(*FIELDS, NestedField(
        4, "user", StructType(NestedField(5, "age", LongType())))))
    data = rows(range(10)).append_column("user", pa.array([{"age": i} if i % 2 else None for i in range(10)]))
    table.append(data)
    with table.update_schema() as update:
        update.rename_column("id", "key")
        update.add_column("extra", LongType())
    with table.update_schema() as update:
        update.delete_column("n")
    extra = table.schema().find_field("extra").field_id
    for deletes, fields, expected in (
        (keys(id=[2]), [1], without(2, among=range(10))),
        (keys(n=[1]), [3], [i for i in range(10) if i % 3 == 0 or i % 4 != 1]),
        (keys(key=[1, 2], extra=[None, 3]), [1, extra], without(1, among=range(10))),
        (keys(age=[3, None]), [5], [1, 5, 7, 9]),
    ):
        path = commit(table, [equality_deletes(table, f"d{fields}", deletes, fields)])
        assert sorted(pqext.scan(f"iceberg:{path}").to_table()["key"].to_pylist()) == expected


def test_all_deletes_of_a_file_apply_together(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, second = paths(table)
    files = [
        position_deletes(table, "p", [(first, 0), (second, 0)]), position_deletes(table, "q", [(first, 0), (first, 9)]),
        equality_deletes(table, "e", keys(id=[5, 9]), [1]), equality_deletes(table, "f", keys(n=[3]), [3]),
    ]
    gone = {0, 9, 10, 5, *(i for i in range(20) if i % 3 and i % 4 == 3)}
    path = commit(table, files)
    assert ids(f"iceberg:{path}") == without(*gone)
    assert ids(f"iceberg:{path}", filter="id > 4 and n is not null") == [
        i for i in without(*gone) if i > 4 and i % 3
    ]


def test_bad_delete_files_are_errors_that_name_them(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, _ = paths(table)
    nulls = pa.table({"file_path": [first], "pos": pa.array([None], pa.int64())})
    for name, write in (("no-path", pa.table({"pos": [1]})), ("nulls", nulls)):
        file = position_deletes(table, name, [(first, 1)])
        pq.write_table(write, local(file.file_path))
        path = commit(table, [file])
        with pytest.raises(pqext.CorruptFileError, match=name):
            ids(f"iceberg:{path}")
    file = position_deletes(table, "gone", [(first, 1)])
    path = commit(table, [file])
    local(file.file_path).unlink()
    with pytest.raises(FileNotFoundError, match="gone"):
        ids(f"iceberg:{path}")
    file = equality_deletes(table, "fields", keys(id=[1]), [1])
    pq.write_table(pa.table({"id": [1]}), local(file.file_path))
    with pytest.raises(pqext.CorruptFileError, match="lacks the field with id 1"):
        ids(f"iceberg:{commit(table, [file])}")


def test_deleted_rows_and_skipped_corruption_exclude_each_other(tmp_path: Path) -> None:
    table = create(tmp_path)
    first, _ = paths(table)
    path = commit(table, [position_deletes(table, "d", [(first, 1)])])
    with pytest.raises(pqext.UnsupportedError, match="deleted rows"):
        pqext.scan(f"iceberg:{path}", on_corrupt="skip").to_table()
