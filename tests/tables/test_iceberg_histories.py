"""Random histories of Iceberg tables, against plain lists of rows: no row is lost, doubled or changed."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext

pytest.importorskip("pyiceberg")
pytest.importorskip("sqlalchemy")

from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, StringType

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
    with_ids,
)

Row = dict[str, Any]
TYPES: dict[type, pa.DataType] = {IntegerType: pa.int32(), LongType: pa.int64(), StringType: pa.string()}
TEXTS = ["", "a", "b", "long text that a bound truncates", "long text that a bound truncates too", "é"]


@dataclass
class History:
    """A table, and the rows that it should have. Columns are those of the present schema."""

    table: Table
    draw: Callable[[st.SearchStrategy[Any]], Any]
    rows: list[Row] = field(default_factory=list)
    versions: dict[int, list[Row]] = field(default_factory=dict)
    deleted: set[tuple[str, int]] = field(default_factory=set)
    """Rows that position deletes name."""
    path: str | None = None
    """The metadata of the table if pyiceberg has not written it."""
    format: int = 2
    next_id: int = 0
    has_vectors: bool = False

    @property
    def columns(self) -> dict[str, tuple[int, pa.DataType]]:
        """Id and type by name."""
        fields = self.table.schema().fields
        return {each.name: (each.field_id, TYPES[type(each.field_type)]) for each in fields}

    def new_rows(self) -> list[Row]:
        rows = []
        for _ in range(self.draw(st.integers(1, 6))):
            row: Row = {"id": self.next_id}
            self.next_id += 1
            for name, (_, type) in self.columns.items():
                if name != "id":
                    values = st.sampled_from(TEXTS) if type == pa.string() else st.integers(-3, 3)
                    row[name] = self.draw(st.none() | values)
                    if type == pa.int64() and row[name] == 3:
                        row[name] = 2**40
            rows.append(row)
        return rows

    def arrow(self, rows: list[Row]) -> pa.Table:
        schema = pa.schema([(name, type) for name, (_, type) in self.columns.items()])
        return pa.Table.from_pylist(rows, schema=schema)

    def record(self) -> None:
        snapshot = self.table.current_snapshot()
        if snapshot is not None:
            self.versions[snapshot.snapshot_id] = copy.deepcopy(self.rows)

    # Operations of pyiceberg

    def append(self) -> None:
        rows = self.new_rows()
        self.table.append(self.arrow(rows))
        self.rows += rows
        self.record()

    def delete(self) -> None:
        low = self.draw(st.integers(0, max(self.next_id, 1)))
        if any(low <= row["id"] < low + 2 for row in self.rows):
            self.table.delete(f"id >= {low} and id < {low + 2}")
            self.rows = [row for row in self.rows if not low <= row["id"] < low + 2]
            self.record()

    def rename(self) -> None:
        old = self.draw(st.sampled_from([name for name in self.columns if name != "id"] or ["id"]))
        new = self.draw(st.sampled_from([name for name in "pqrs" if name not in self.columns]))
        if old != "id":
            with self.table.update_schema() as update:
                update.rename_column(old, new)
            self.rows = [{new if name == old else name: value for name, value in row.items()} for row in self.rows]

    def drop(self) -> None:
        names = [name for name in self.columns if name not in ("id", "part")]
        if names:
            name = self.draw(st.sampled_from(names))
            with self.table.update_schema() as update:
                update.delete_column(name)
            self.rows = [{key: value for key, value in row.items() if key != name} for row in self.rows]

    def add(self) -> None:
        names = [name for name in "pqrs" if name not in self.columns]
        if len(self.columns) < 6 and names:
            name = self.draw(st.sampled_from(names))
            with self.table.update_schema() as update:
                update.add_column(name, self.draw(st.sampled_from([IntegerType(), LongType(), StringType()])))
            self.rows = [{**row, name: None} for row in self.rows]

    def promote(self) -> None:
        narrow = [name for name, (_, type) in self.columns.items() if type == pa.int32()]
        if narrow:
            with self.table.update_schema() as update:
                update.update_column(self.draw(st.sampled_from(narrow)), LongType())

    def reorder(self) -> None:
        with self.table.update_schema() as update:
            update.move_first(self.draw(st.sampled_from([*self.columns])))

    # Operations that pyiceberg does not have

    def commit(self, files: list[Any], **arguments: Any) -> None:
        self.path = commit(self.table, files, format=self.format, **arguments)
        self.table = reopen(self.path)

    def append_by_hand(self) -> None:
        rows = self.new_rows()
        path = f"{self.table.location()}/data/hand-{self.next_id}.parquet"
        data = self.arrow(rows)
        local(path).parent.mkdir(parents=True, exist_ok=True)
        ids = [id for id, _ in self.columns.values()]
        pq.write_table(data.cast(with_ids(data.schema, ids)), local(path))
        self.commit([describe(path, len(rows), format=self.format)], is_data=True)
        self.rows += rows
        self.record()

    def positions(self) -> dict[int, tuple[str, int]]:
        """The file and the row number of each live row, by id."""
        places = {
            id: (path, number)
            for path in data_paths(self.table)
            for number, id in enumerate(pq.read_table(local(path))["id"].to_pylist())
        }
        return {row["id"]: places[row["id"]] for row in self.rows}

    def some_positions(self) -> dict[int, tuple[str, int]]:
        places = self.positions()
        chosen = self.draw(st.lists(st.sampled_from([*places]), min_size=1, max_size=4)) if places else []
        return {id: places[id] for id in chosen}

    def delete_positions(self) -> None:
        if self.has_vectors:
            return  # vectors replace position deletes
        places = self.some_positions()
        if places:
            name = f"p{len(self.versions)}"
            self.commit([position_deletes(self.table, name, [*places.values()], format=self.format)])
            self.deleted |= set(places.values())
            self.rows = [row for row in self.rows if row["id"] not in places]
            self.record()

    def delete_by_vectors(self) -> None:
        if self.format < 3 or self.has_vectors:
            return
        places = self.some_positions()
        if places:
            by_file: dict[str, list[int]] = {path: [] for path, _ in places.values()}
            for path, number in {*places.values(), *self.deleted}:
                if path in by_file:
                    by_file[path].append(number)
            self.has_vectors = True
            self.commit(deletion_vectors(self.table, "v", by_file))
            self.rows = [row for row in self.rows if row["id"] not in places]
            self.record()

    def delete_equal(self) -> None:
        if not self.rows:
            return
        names = self.draw(st.lists(st.sampled_from([*self.columns]), min_size=1, max_size=2, unique=True))
        chosen = self.draw(st.lists(st.sampled_from(self.rows), min_size=1, max_size=2))
        keys = [{name: row[name] for name in names} for row in chosen]
        schema = pa.schema([(name, self.columns[name][1]) for name in names])
        ids = [self.columns[name][0] for name in names]
        data = pa.Table.from_pylist(keys, schema=schema)
        self.commit([equality_deletes(self.table, f"e{len(self.versions)}", data, ids, format=self.format)])
        self.rows = [row for row in self.rows if {name: row[name] for name in names} not in keys]
        self.record()

    def check(self) -> None:
        source: Any = self.table if self.path is None else f"iceberg:{self.path}"
        scan = pqext.scan(source)
        assert by_id(scan.to_table().to_pylist()) == by_id(self.rows)
        assert scan.count() == len(self.rows)
        assert scan.schema.names == [*self.columns]
        text, predicate = self.draw_filter()
        expected = [row["id"] for row in self.rows if predicate(row)]
        found = scan.filter(text)
        assert sorted(found.select(["id"]).to_table()["id"].to_pylist()) == sorted(expected), text
        assert found.count() == len(expected), text
        assert pickle.loads(pickle.dumps(found)).count() == len(expected)
        if self.versions:
            version = self.draw(st.sampled_from([*self.versions]))
            earlier = pqext.scan(source, version=version).to_table().to_pylist()
            assert by_id(earlier) == by_id(self.versions[version]), version

    def draw_filter(self) -> tuple[str, Callable[[Row], bool]]:
        parts = [self.draw_condition() for _ in range(self.draw(st.integers(1, 3)))]
        word = self.draw(st.sampled_from(["and", "or"]))
        combine = all if word == "and" else any
        return f" {word} ".join(text for text, _ in parts), lambda row: combine(test(row) for _, test in parts)

    def draw_condition(self) -> tuple[str, Callable[[Row], bool]]:
        name = self.draw(st.sampled_from([*self.columns]))
        if self.draw(st.booleans()):
            is_null = self.draw(st.booleans())
            return f"{name} is {'' if is_null else 'not '}null", lambda row: (row[name] is None) is is_null
        if self.columns[name][1] == pa.string():
            text = self.draw(st.sampled_from(TEXTS))
            return f"{name} >= '{text}'", lambda row: row[name] is not None and row[name].encode() >= text.encode()
        value = self.draw(st.integers(-3, max(self.next_id, 3)))
        return f"{name} = {value}", lambda row: row[name] == value


def by_id(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


LIBRARY = ["append", "append", "append", "delete", "rename", "drop", "add", "promote", "reorder"]
BY_HAND = ["append_by_hand", "delete_positions", "delete_by_vectors", "delete_equal", "delete_equal"]


@given(st.data())
def test_histories_equal_lists_of_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        schema = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("s", pa.string())])
        table = new_catalog(Path(folder)).create_table("db.t", schema)
        history = History(table, data.draw)
        partitioned = data.draw(st.booleans(), "partitioned")
        if partitioned:
            with table.update_spec() as update:
                update.add_field("p", IdentityTransform(), "part")
        history.append()
        for name in data.draw(st.lists(st.sampled_from(LIBRARY), max_size=5)):
            if not (partitioned and name in ("drop", "promote")):
                getattr(history, name)()
        history.check()
        if not partitioned:
            history.format = data.draw(st.sampled_from([2, 3]))
            for name in data.draw(st.lists(st.sampled_from(BY_HAND), min_size=1, max_size=5)):
                getattr(history, name)()
        history.check()
