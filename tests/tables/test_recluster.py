"""Recluster tables by names, expressions and their text, against Python's sort; unchanged partitions are not sorted."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import col, geo, tables, variant
from pqext.dataset.expressions import Value

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
from deltalake import DeltaTable

from tests.tables.iceberg_tables import new_catalog

IDS = [5, 0, 3, 1, 4, 2]
DOCUMENTS = [{"n": n % 2, "t": -n} for n in IDS]
SCHEMA = pa.schema([
    ("id", pa.int64()), ("s", pa.struct([("k", pa.int64())])), variant.variant_field("v"), ("a.b", pa.int64())
])
ROWS = pa.table(
    [IDS, [{"k": -n} for n in IDS], variant.parse_json(list(map(json.dumps, DOCUMENTS))), [n % 3 for n in IDS]],
    schema=SCHEMA,
)
BY: list[tuple[Any, Any, Callable[[int], Any]]] = [
    ("id", col("id"), lambda n: n),
    (["a.b", "id"], [col("a.b"), col("id")], lambda n: (n % 3, n)),
    ("s.k", col("s").field("k"), lambda n: -n),
    ("v:$.t::int", col("v").variant("$.t", "int"), lambda n: -n),
    (("v:$.n::bigint", "s.k"), (col("v").variant("$.n", pa.int64()), col("s.k")), lambda n: (n % 2, -n)),
    ("0 - id", 0 - col("id"), lambda n: -n),
    (["v:$.n::int + 1", "id"], [col("v").variant("$.n", "int") + 1, "id"], lambda n: (n % 2, n)),
]


def ids_in_order(path: Path) -> list[int]:
    """Ids in the order of the only file of a table, as pyarrow reads it."""
    (file,) = DeltaTable(path).file_uris()
    result: list[int] = pq.ParquetFile(file).read(["id"])["id"].to_pylist()
    return result


@pytest.mark.parametrize(("text", "value", "key"), BY, ids=[str(case[0]) for case in BY])
def test_keys_are_names_expressions_and_their_text(
    tmp_path: Path, text: Any, value: Any, key: Callable[[int], Any]
) -> None:
    for name, by in (("text", text), ("value", value)):
        tables.append(f"delta:{tmp_path / name}", ROWS)
        assert tables.recluster(f"delta:{tmp_path / name}", by).rows == 6
        assert ids_in_order(tmp_path / name) == sorted(IDS, key=key)


@pytest.mark.parametrize(("text", "value", "key"), BY, ids=[str(case[0]) for case in BY])
def test_only_computed_keys_sort_the_same_rows_again(
    tmp_path: Path, text: Any, value: Any, key: Callable[[int], Any]
) -> None:
    tables.append(f"delta:{tmp_path}", ROWS)
    tables.recluster(f"delta:{tmp_path}", text)
    result = tables.recluster(f"delta:{tmp_path}", value)
    is_computed = "id" in str(text) and ("-" in str(text) or "+" in str(text))
    assert (result.files_before, result.clustered, result.version) == ((1, 0, 2) if is_computed else (0, 1, 1))
    assert ids_in_order(tmp_path) == sorted(IDS, key=key)


def test_geometry_column_as_expression(tmp_path: Path) -> None:
    cells = [(x, y) for y in (2, 0, 3, 1) for x in range(4)]
    points = geo.from_points([float(x) for x, _ in cells], [float(y) for _, y in cells])
    rows = pa.table([range(16), points], schema=pa.schema([("id", pa.int64()), geo.geometry_field("at")]))
    tables.append(f"delta:{tmp_path}", rows)
    tables.recluster(f"delta:{tmp_path}", col("at"))
    order = [cells[position] for position in ids_in_order(tmp_path)]
    steps = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(order)]
    assert steps == [1] * 15  # neighbours on a Hilbert curve are neighbours in the plane
    assert tables.recluster(f"delta:{tmp_path}", "at").clustered == 1
    for by in (["at", "id"], [col("id"), col("at")]):
        with pytest.raises(ValueError, match=r"geometry column .* must be the only key"):
            tables.recluster(f"delta:{tmp_path}", by)


@pytest.mark.parametrize("by", [col("zz"), col("zz").variant("$.n", "int"), "zz:$.n::int", ["id", 2 * col("zz")]])
def test_unknown_column_of_an_expression(tmp_path: Path, by: Any) -> None:
    tables.append(f"delta:{tmp_path}", ROWS)
    with pytest.raises(ValueError, match=r"by: no column 'zz'; the file has id, s, v, a\.b"):
        tables.recluster(f"delta:{tmp_path}", by)


@pytest.mark.parametrize("by", [b"id", [b"id"], [5], [col("id"), None], col("id") > 5])
def test_keys_of_another_type(tmp_path: Path, by: Any) -> None:
    with pytest.raises(TypeError, match="by must be a column name, a value such as"):
        tables.recluster(f"delta:{tmp_path}", by)


def test_expression_of_partition_columns_only(tmp_path: Path) -> None:
    tables.append(f"delta:{tmp_path}", pa.table({"id": [1], "p": [7]}), partition_by="p")
    with pytest.raises(ValueError, match=r"by contains only partition columns \(p\)"):
        tables.recluster(f"delta:{tmp_path}", [col("p"), col("p") * 2])


class Log:
    """A table partitioned by ``p``, and its files."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def append(self, *ids: int, p: str) -> None:
        tables.append(self.table, pa.table({"id": pa.array(ids, pa.int64()), "p": [p] * len(ids)}), partition_by="p")

    def files(self, p: str) -> set[Any]:
        return {path for path in tables.open_table(self.table, None).files if f"p={p}/" in str(path)}

    def recluster(self, by: str | Value = "id", **options: Any) -> tuple[int, int]:
        result = tables.recluster(self.table, by, **options)
        return result.files_before, result.clustered


def list_paths(table: Any) -> list[str]:
    """Paths of the data files of a table, as its log states them."""
    if isinstance(table, str):
        paths: list[str] = pa.table(DeltaTable(table.partition(":")[2]).get_add_actions())["path"].to_pylist()
        return paths
    return [task.file.file_path for task in table.scan().plan_files()]


@pytest.fixture(params=["delta", "iceberg"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    if request.param == "delta":
        return Log(f"delta:{tmp_path / 't'}")
    table = new_catalog(tmp_path).create_table("db.t", schema=pa.schema([("id", pa.int64()), ("p", pa.string())]))
    with table.update_spec() as update:
        update.add_identity("p")
    return Log(table.refresh())


def test_unchanged_partitions_are_not_sorted_again(log: Log) -> None:
    for start in (3, 0):
        log.append(start + 1, start, p="a")
        log.append(start, start + 1, p="b")
    assert log.recluster() == (4, 0)
    before = {p: log.files(p) for p in "ab"}
    result = tables.recluster(log.table, col("id"), dry_run=True)
    assert (result.files_before, result.clustered) == (0, 2)
    assert "2 files already in this order" in str(result)
    assert log.recluster() == (0, 2)
    assert log.recluster(filter="p = 'a'") == (0, 1)
    log.append(2, p="a")
    assert log.recluster() == (2, 1)
    assert log.files("b") == before["b"]
    assert not log.files("a") & before["a"]
    assert pqext.scan(log.table, filter="p = 'a'").to_table()["id"].to_pylist() == [0, 1, 2, 3, 4]
    assert log.recluster() == (0, 2)


def test_other_keys_sizes_and_options_sort_again(log: Log) -> None:
    log.append(1, 0, p="a")
    assert log.recluster("id") == (1, 0)
    changes: list[tuple[Any, dict[str, Any]]] = [
        (["p", "id"], {}), ("id", {"target_file_bytes": 1000}), ("id", {"compression": "uncompressed"}), ("id", {}),
    ]
    for by, options in changes:
        assert log.recluster(by, **options) == (1, 0)
        assert log.recluster(by, **options) == (0, 1)


def test_combined_and_replaced_files_are_sorted_again(log: Log) -> None:
    log.append(*range(140_000), p="a")
    options: dict[str, Any] = {"target_file_bytes": 1000, "encodings": "plain"}
    log.recluster(**options)
    assert log.recluster(**options) == (0, 3)
    first = next(iter(log.files("a")))
    tables.compact(log.table)
    assert log.recluster(**options) == (1, 0)
    assert first not in log.files("a")
    removed = list_paths(log.table)[:1]
    tables.replace_files(log.table, removed, pa.table({"id": [2, 1], "p": ["a", "a"]}))
    assert log.recluster(target_file_bytes=1000) == (3, 0)


def test_order_is_known_after_a_checkpoint(tmp_path: Path) -> None:
    table = Log(f"delta:{tmp_path}")
    table.append(1, 0, p="a")
    table.recluster()
    DeltaTable(tmp_path).create_checkpoint()
    for path in (tmp_path / "_delta_log").glob("*.json"):
        path.unlink()
    assert table.recluster() == (0, 1)


@pytest.mark.parametrize("recorded", ['{"a": 1}', '"x"', '["a"]', '["a", 5]', "null", "[[], {}]"])
def test_invalid_record_of_the_order_is_ignored(tmp_path: Path, recorded: str) -> None:
    table = Log(f"delta:{tmp_path}")
    table.append(1, 0, p="a")
    table.recluster()
    path = tmp_path / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            statistics = json.loads(line["add"]["stats"])
            assert len(statistics["pqext.clustered"]) == 2
            line["add"]["stats"] = json.dumps(statistics | {"pqext.clustered": json.loads(recorded)})
    path.write_text("\n".join(map(json.dumps, lines)))
    assert table.recluster() == (1, 0)


def test_renamed_columns_are_sorted_again(tmp_path: Path) -> None:
    """The columns exchange their names and positions. The table then has the same names and types as before."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    table = new_catalog(tmp_path).create_table("db.t", schema=schema)
    tables.append(table, pa.table({"a": [1, 0, 2], "b": [0, 2, 1]}))
    log = Log(table)
    assert [log.recluster("a"), log.recluster("a")] == [(1, 0), (0, 1)]
    for old, new in (("a", "x"), ("b", "a"), ("x", "b")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    with table.update_schema() as update:
        update.move_first("a")
    log = Log(table.refresh())
    assert table.schema().as_arrow().names == ["a", "b"]
    assert log.recluster("a") == (1, 0)
    assert table.refresh().scan().to_arrow().to_pydict() == {"a": [0, 1, 2], "b": [1, 2, 0]}
    assert log.recluster("a") == (0, 1)


def test_changed_metadata_of_a_field_sorts_again(tmp_path: Path) -> None:
    """The CRS of a geometry column is in its metadata only, and determines its order on the curve."""
    rows = pa.table([geo.from_points([1.0, 0.0], [2.0, 0.0])], schema=pa.schema([geo.geometry_field("at", 3857)]))
    tables.append(f"delta:{tmp_path}", rows)
    log = Log(f"delta:{tmp_path}")
    assert [log.recluster("at"), log.recluster("at")] == [(1, 0), (0, 1)]
    path = tmp_path / "_delta_log" / f"{0:020}.json"
    text = path.read_text()
    assert text.count("3857") > 0
    path.write_text(text.replace("3857", "4326"))
    assert log.recluster("at") == (1, 0)


def test_decimal_statistics_keep_their_digits(tmp_path: Path) -> None:
    values = pa.array([20000000000000000.75, 1], pa.float64()).cast(pa.decimal128(30, 10))
    tables.append(f"delta:{tmp_path}", pa.table({"d": values}))
    texts = []
    for version in (0, 1):
        lines = (tmp_path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
        (stats,) = [json.loads(line)["add"]["stats"] for line in lines if '"add"' in line]
        texts.append(json.loads(stats, parse_float=str)["maxValues"])
        if version == 0:
            tables.recluster(f"delta:{tmp_path}", "d")
    assert texts[0] == texts[1]


def test_files_of_an_earlier_partition_spec_are_rewritten(tmp_path: Path) -> None:
    """New files of one partition come from two groups of files, so that a further call sorts them together."""
    table = new_catalog(tmp_path).create_table("db.t", schema=pa.schema([("id", pa.int64()), ("p", pa.string())]))
    tables.append(table, pa.table({"id": [4, 0], "p": ["a", "a"]}))
    log = Log(table)
    assert log.recluster() == (1, 0)
    assert log.recluster() == (0, 1)
    with table.update_spec() as update:
        update.add_identity("p")
    log = Log(table.refresh())
    tables.append(log.table, pa.table({"id": [3, 1], "p": ["a", "a"]}))
    assert log.recluster() == (2, 0)
    assert log.recluster() == (2, 0)
    assert pqext.scan(log.table).to_table()["id"].to_pylist() == [0, 1, 3, 4]
    assert log.recluster() == (0, 1)
