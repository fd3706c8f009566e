"""Scan Delta tables: equal rows to deltalake, files pruned by the log, deleted rows, and errors."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
import shapely
from deltalake import DeltaTable, Field, Schema, VariantType, write_deltalake
from deltalake.transaction import AddAction, create_table_with_add_actions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables.delta_logs import adds, delete_rows, own_rows

import pqext
from pqext import col, geo, tables, variant
from pqext.tables import log_statistics
from pqext.tables.opening import open_table
from reference.effort import share

PUBLIC = os.environ.get("DELTA_RS_TEST_DATA")


PLACES = st.one_of(st.sampled_from([0.0, 0.1, 89.99999, -1e-9]), st.floats(-90, 90))


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def variant_table(folder: Path, texts: list[list[str]], shredding: Any = None) -> str:
    """Create a table of a VARIANT column with one file for each list of JSON texts."""
    folder.mkdir()
    actions = []
    for number, part in enumerate(texts):
        path = folder / f"{number}.parquet"
        options = {} if shredding is None else {"shredding": {"v": shredding}}
        pqext.write_table(pa.table({"v": variant.parse_json(part)}), path, **options)
        statistics = pqext.table_metrics.delta(path, exact=True)
        actions.append(AddAction(path.name, statistics.size, {}, 0, True, statistics.to_json()))
    create_table_with_add_actions(str(folder), Schema([Field("v", VariantType())]), actions)
    return f"delta:{folder}"


def overwrite_files(folder: str | Path, paths: list[str]) -> None:
    """Overwrite data files, so that reading them fails."""
    for path in paths:
        Path(folder, unquote(path)).write_bytes(b"not Parquet")


@pytest.mark.parametrize("mode", ["none", "name"])
def test_rows_equal_those_of_deltalake(tmp_path: Path, mode: str) -> None:
    folder = str(tmp_path / "a b é")
    table = pa.table({
        "p": ["a b", "é/%", "x=y", None, "a b"], "d": [date(2024, 1, 1)] * 4 + [date(2025, 1, 1)],
        "n": [1, 2, 3, 4, None], "x": [1.5, float("nan"), None, -0.0, 9.0], "b": [b"1", b"", None, b"\xff", b"2"],
        "at": pa.array([0, 1, None, 10**15, -1], pa.timestamp("us", "UTC")), "list": [[1], [], None, [None, 2], [3]],
        "s": [{"y": "q" * 100}, None, {"y": None}, {"y": ""}, {"y": "z"}],
        "money": pa.array([Decimal("1.1"), None, Decimal(-3), Decimal(4), Decimal(5)], pa.decimal128(20, 2)),
    })  # fmt: skip
    configuration = {} if mode == "none" else {"delta.columnMapping.mode": mode}
    write_deltalake(folder, table, partition_by=["p", "d"], configuration=configuration)
    write_deltalake(folder, table, mode="append")
    scan = pqext.scan(f"delta:{folder}")
    own = own_rows(DeltaTable(folder))
    assert ordered(scan.to_table().to_pylist()) == ordered(own)
    assert scan.schema.names == table.column_names
    assert scan.count() == len(own) == 10
    assert pickle.loads(pickle.dumps(scan)).count() == 10
    assert pqext.scan(DeltaTable(folder), version=0).count() == 5
    assert ordered(scan.filter("p = 'a b' and n >= 1").to_table().to_pylist()) == ordered(
        [row for row in own if row["p"] == "a b" and row["n"] == 1]
    )


def test_new_columns_are_null_in_old_files(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write_deltalake(folder, pa.table({"n": [1, 2]}))
    write_deltalake(folder, pa.table({"n": [3], "new": [True]}), mode="append", schema_mode="merge")
    scan = pqext.scan(f"delta:{folder}")
    assert ordered(scan.to_table().to_pylist()) == ordered(own_rows(DeltaTable(folder)))
    assert scan.filter("new is null").count() == 2
    assert scan.filter("new").to_table().to_pylist() == [{"n": 3, "new": True}]


def test_renamed_columns(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    table = pa.table({"n": [1, 2], "old": ["a", "b"], "s": [{"old": 1}, {"old": 2}]})
    write_deltalake(folder, table, configuration={"delta.columnMapping.mode": "name"})
    log = Path(folder, "_delta_log")
    version = DeltaTable(folder).version() + 1
    last = [json.loads(line) for file in sorted(log.glob("*.json")) for line in file.read_text().splitlines()]
    metadata = [action["metaData"] for action in last if "metaData" in action][-1]
    metadata["schemaString"] = metadata["schemaString"].replace('"name":"old"', '"name":"new"')
    (log / f"{version:020}.json").write_text(json.dumps({"metaData": metadata}) + "\n")
    scan = pqext.scan(f"delta:{folder}")
    assert ordered(scan.to_table().to_pylist()) == ordered(own_rows(DeltaTable(folder)))
    assert scan.filter("new = 'b' and s.new = 2").to_table().to_pylist() == [{"n": 2, "new": "b", "s": {"new": 2}}]
    overwrite_files(folder, [*adds(folder)])
    assert scan.filter("new > 'b' or s.new > 2").count() == 0


def test_log_prunes_files_before_they_are_opened(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    for start in range(0, 50, 10):
        rows = range(start, start + 10)
        write_deltalake(folder, pa.table({
            "n": rows, "t": [f"k{row:02}" for row in rows], "day": [date(2024, 1, 1) + timedelta(row) for row in rows],
            "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=row) for row in rows]),
            "s": [{"x": row * 2} for row in rows],
            "money": pa.array([Decimal(row) for row in rows], pa.decimal128(30, 4)),
        }), mode="append")  # fmt: skip
    kept = [path for path, add in adds(folder).items() if json.loads(add["stats"])["minValues"]["n"] == 20]
    overwrite_files(folder, [path for path in adds(folder) if path not in kept])
    scan = pqext.scan(f"delta:{folder}")
    for condition in (
        "n between 21 and 22", "t in ('k21', 'k22')", "day = date '2024-01-22' or day = date '2024-01-23'",
        "s.x > 41 and s.x < 45", "money > 20.5 and money < 22.5", "n * 2 = 42 or n = 22",
    ):
        assert scan.filter(condition).to_table()["n"].to_pylist() == [21, 22], condition
    assert "skips by table log: 4 files" in scan.filter("n = 25").explain()
    with pytest.raises(pqext.CorruptFileError):
        scan.filter("t like '%1'").count()
    # Milliseconds in the log cover all microseconds.
    with pytest.raises(pqext.CorruptFileError):
        scan.filter(col("at") > datetime(2024, 1, 1, 0, 0, 0, 21, tzinfo=UTC)).count()


def test_bounds_of_numbers_lose_no_nan(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write_deltalake(folder, pa.table({"x": [1.0, float("nan")]}))
    large = pa.table({"money": pa.array([Decimal("12345678901234567.89")], pa.decimal128(30, 2)), "x": [2.0]})
    write_deltalake(folder, large, mode="append", schema_mode="merge")
    scan = pqext.scan(f"delta:{folder}")
    assert scan.filter("x > 5").count() == pqext.scan([*DeltaTable(folder).file_uris()], ["x"], "x > 5").count() == 1
    assert scan.filter(col("money") == Decimal("12345678901234567.89")).count() == 1  # a double in the log


def points_table(folder: Path, parts: list[list[tuple[float, float] | None]]) -> str:
    """A table with a covering column, in which each part is a file; None is a null geometry."""
    start = 0
    for part in parts:
        wkb = [None if place is None else shapely.to_wkb(shapely.Point(place)) for place in part]
        schema = pa.schema([("id", pa.int64()), geo.geometry_field("at")])
        ids = pa.array(range(start, start + len(part)), pa.int64())
        rows = pa.table([ids, pa.array(wkb, pa.binary())], schema=schema)
        tables.append(f"delta:{folder}", rows, geoparquet="1.1")
        start += len(part)
    return f"delta:{folder}"


@pytest.mark.spec("tables.delta.covering")
def test_log_prunes_files_by_covering_columns(tmp_path: Path) -> None:
    name = points_table(tmp_path, [[(10.0 * part, 0.0), (10.0 * part + 4, 5.0), None] for part in range(3)])
    near = pqext.scan(name, ["id"], col("at").intersects((9, -1, 11, 1)))
    assert "skips by table log: 2 files" in str(near.explain())
    kept = next(path for path, add in adds(str(tmp_path)).items() if json.loads(add["stats"])["minValues"]["id"] == 3)
    overwrite_files(tmp_path, [path for path in adds(str(tmp_path)) if path != kept])
    assert near.to_table()["id"].to_pylist() == [3]


@pytest.mark.spec("tables.delta.covering")
def test_boxes_of_other_writers_prune_nothing(tmp_path: Path) -> None:
    """Another writer may omit boxes, or copy those of the geometries before a change."""
    name = points_table(tmp_path, [[(0.0, 0.0)]])
    box = {"xmin": 50.0, "ymin": 50.0, "xmax": 51.0, "ymax": 51.0}
    for boxes in ([None, box], [box, box]):
        sides = pa.struct([(side, pa.float32()) for side in box])
        rows = pa.table({"id": [8, 9], "at": [shapely.Point(7, 7).wkb] * 2, "at_bbox": pa.array(boxes, sides)})
        write_deltalake(str(tmp_path), rows, mode="append")
    for log in (tmp_path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for add in (action["add"] for action in actions if "add" in action):
            stats = json.loads(add["stats"])
            stats["nullCount"]["at"] = 0  # no geometry is null, which deltalake does not state
            add["stats"] = json.dumps(stats)
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    found = pqext.scan(name, ["id"], col("at").intersects((6, 6, 8, 8)))
    assert sorted(found.to_table()["id"].to_pylist()) == [8, 8, 9, 9]
    assert "skips by table log: 1 file" in str(found.explain())


@pytest.mark.spec("tables.delta.covering")
@pytest.mark.parametrize("call", ["append", "overwrite", "compact", "recluster"])
def test_boxes_are_computed_by_each_write(call: str, tmp_path: Path) -> None:
    """Rows that were read and changed have the boxes of the geometries before the change."""
    name = points_table(tmp_path, [[(0.0, 0.0)], [(20.0, 0.0)]])
    rows = pqext.scan(name).to_table()
    moved = rows.set_column(1, rows.schema.field(1), geo.from_points([40.0, 60.0], [0.0, 0.0]).storage)
    if call in ("append", "overwrite"):
        getattr(tables, call)(name, moved)
        tables.append(name, moved.drop_columns(["at_bbox"]))
    else:
        write_deltalake(str(tmp_path), moved.replace_schema_metadata(), mode="append")
        getattr(tables, call)(name, *(["id"] if call == "recluster" else []))
    places = [40.0] * (1 if call in ("compact", "recluster") else 2)
    found = pqext.scan(name, filter=col("at").intersects((39, -1, 41, 1))).to_table()
    assert [shapely.from_wkb(wkb).x for wkb in found["at"].to_pylist()] == places
    assert {box["xmin"] for box in found["at_bbox"].to_pylist()} == {40.0}
    assert "skips by table log" in str(pqext.scan(name, filter=col("at").intersects((99, -1, 100, 1))).explain())


@pytest.mark.spec("tables.delta.covering")
@settings(max_examples=share(0.4), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.one_of(st.none(), st.tuples(PLACES, PLACES)), min_size=1, max_size=4), min_size=1, max_size=4),
    st.tuples(PLACES, PLACES), st.sampled_from([0.0, 0.25, 1e-7, 3.0]),
)
def test_covering_columns_lose_no_row(
    tmp_path: Path, parts: list[list[tuple[float, float] | None]], corner: tuple[float, float], size: float
) -> None:
    folder = tmp_path / str(len([*tmp_path.iterdir()]))
    name = points_table(folder, parts)
    box = (*corner, corner[0] + size, corner[1] + size)
    found = pqext.scan(name, ["id"], col("at").intersects(box)).to_table()["id"].to_pylist()
    places = [place for part in parts for place in part]
    area = shapely.box(*box)
    expected = [at for at, place in enumerate(places) if place is not None and area.intersects(shapely.Point(place))]
    assert sorted(found) == expected


def test_bounds_of_widened_floats_lose_no_row(tmp_path: Path) -> None:
    """The log has the shortest text of a float, which is another number as a double."""
    table = pa.table({"x": pa.array([0.1], pa.float32())})
    write_deltalake(str(tmp_path), table)
    log = tmp_path / "_delta_log/00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["schemaString"] = action["metaData"]["schemaString"].replace('"float"', '"double"')
        if "protocol" in action:
            features = {"readerFeatures": ["typeWidening"], "writerFeatures": ["typeWidening"]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
        if "add" in action:
            bounds = {"minValues": {"x": 0.1}, "maxValues": {"x": 0.1}}
            action["add"]["stats"] = json.dumps({"numRecords": 1, "nullCount": {"x": 0}, **bounds})
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    scan = pqext.scan(f"delta:{tmp_path}")
    assert scan.schema.field("x").type == pa.float64()
    assert scan.filter(col("x") == table["x"][0].as_py()).count() == 1
    assert "skips by table log: 1 file" in str(scan.filter(col("x") < 0.0999).explain())


def test_bounds_of_text_lose_no_character(tmp_path: Path) -> None:
    texts = ["𠮷野家", "a", "\U0010ffff", "z" * 32 + "\U0010ffff1q", "😀", "\ufffd"]
    escaped, own = str(tmp_path / "escaped"), f"delta:{tmp_path / 'own'}"
    for text in texts:
        pqext.tables.append(own, pa.table({"t": [text], "s": [{"x": text}]}))
        write_deltalake(escaped, pa.table({"t": [text], "s": [{"x": text}]}), mode="append")
    for file in Path(escaped, "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for action in lines:
            if "add" in action:
                action["add"]["stats"] = json.dumps(json.loads(action["add"]["stats"]))
        file.write_text("".join(json.dumps(action) + "\n" for action in lines))
    for name in (own, f"delta:{escaped}"):
        scan = pqext.scan(name)
        for text in texts:
            assert scan.filter((col("t") == text) & (col("s.x") >= text)).count() == 1, (name, text)


def test_struct_that_contains_a_variant_may_be_null(tmp_path: Path) -> None:
    values = variant.parse_json(['{"a": 1}', '{"a": 2}'])
    fields = [variant.variant_field("v"), pa.field("k", "int64")]
    inside = pa.StructArray.from_arrays([values, pa.array([1, 2])], fields=fields)
    name = f"delta:{tmp_path / 't'}"
    pqext.tables.append(name, pa.table({"id": [1, 2], "s": inside}))
    assert pqext.scan(name).filter(col("s").is_null()).count() == 0
    assert pqext.scan(name).filter(col("s.v").is_not_null()).count() == 2


@pytest.mark.parametrize("prefix", ["file:", "file://", ""])
def test_absolute_paths_in_the_log(tmp_path: Path, prefix: str) -> None:
    folder = tmp_path / "t"
    write_deltalake(str(folder), pa.table({"n": [1, 2]}))
    (log,) = (folder / "_delta_log").glob("*.json")
    (path,) = adds(str(folder))
    log.write_text(log.read_text().replace(f'"path":"{path}"', f'"path":"{prefix}{folder}/{path}"'))
    assert pqext.scan(f"delta:{folder}").count() == 2
    assert pqext.tables.clean(f"delta:{folder}", older_than=timedelta(0), dry_run=False).files == ()


def test_log_prunes_files_by_variant_paths(tmp_path: Path) -> None:
    parts = [[json.dumps({"user": {"id": 10 * part + at}, "kind": f"k{part}"}) for at in range(5)] for part in range(4)]
    for number, shredding in enumerate([None, "infer"]):
        folder = tmp_path / f"t{number}"
        scan = pqext.scan(variant_table(folder, parts, shredding))
        overwrite_files(folder, ["0.parquet", "1.parquet", "3.parquet"])
        user = col("v").variant("$.user.id", "int64")
        assert scan.filter(user == 22).count() == 1
        assert scan.filter(col("v").variant("$.kind", "string") == "k2").count() == 5
        assert "skips by table log: 3 files" in scan.filter(user.between(21, 23)).explain()
        with pytest.raises(pqext.CorruptFileError):
            scan.filter(col("v").variant("$.other", "int64").is_null()).count()


def test_bounds_of_variant_paths_lose_no_row(tmp_path: Path) -> None:
    texts = [['{"a": 1}', '{"a": null}', "{}"], ['{"a": "1"}', '{"a": 2.5}'], ['{"a": {"b": 3}}', "7", "null"], ["[1]"]]
    scan = pqext.scan(variant_table(tmp_path / "t", texts))
    every = variant.parse_json([text for part in texts for text in part])
    for path, type, test in (
        ("$.a", "int64", lambda value: value == 1), ("$.a", "double", lambda value: value > 2),
        ("$.a", "string", lambda value: value == "1"), ("$.a.b", "int64", lambda value: value >= 3),
        ("$", "int64", lambda value: value < 10),
    ):
        values = variant.get(every, path, type).to_pylist()
        field = col("v").variant(path, type)
        conditions = {
            "int64": {"$.a": field == 1, "$.a.b": field >= 3, "$": field < 10}, "double": {"$.a": field > 2},
            "string": {"$.a": field == "1"},
        }
        expected = sum(value is not None and test(value) for value in values)
        assert scan.filter(conditions[type][path]).count() == expected > 0
        assert scan.filter(field.is_null()).count() == sum(value is None for value in values)


def test_deleted_rows_are_excluded_everywhere(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write_deltalake(
        folder, pa.table({"n": range(3000), "t": [f"k{row % 7}" for row in range(3000)]}),
        configuration={"delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    gone = {0, 5, 6, 2999, *range(100, 200), *range(0, 3000, 13)}
    (path,) = adds(folder)
    delete_rows(folder, path, gone)
    kept = [row for row in range(3000) if row not in gone]
    scan = pqext.scan(f"delta:{folder}")
    assert [row["n"] for row in own_rows(DeltaTable(folder))] == kept
    assert scan.to_table()["n"].to_pylist() == kept
    assert scan.count() == len(kept)
    assert (scan.min("n").as_py(), scan.max("n").as_py()) == (kept[0], kept[-1])
    for condition, test in (
        ("n >= 150 and t = 'k3'", lambda row: row >= 150 and row % 7 == 3), ("n < 9", lambda row: row < 9)
    ):
        expected = [row for row in kept if test(row)]
        assert scan.filter(condition).to_table()["n"].to_pylist() == expected
        assert scan.filter(condition).count() == len(expected)
        assert scan.filter(condition).select("t").to_table().num_rows == len(expected)
    assert scan.limit(5, offset=2).to_table()["n"].to_pylist() == kept[2:7]
    assert scan.order_by("n", descending=True).limit(2).to_table()["n"].to_pylist() == kept[:-3:-1]
    assert scan.head(3).num_rows == 3
    numbered = pqext.scan(f"delta:{folder}", include_row_numbers="row", filter="n < 300").to_table()
    assert numbered["row"].to_pylist() == numbered["n"].to_pylist() == [row for row in kept if row < 300]
    assert pqext.scan(f"delta:{folder}", version=0).count() == 3000
    with pytest.raises(pqext.UnsupportedError, match="on_corrupt"):
        pqext.scan(f"delta:{folder}", on_corrupt="skip").count()


def test_deleted_rows_beyond_a_file_are_an_error(tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    write_deltalake(folder, pa.table({"n": range(10)}), configuration={"delta.enableDeletionVectors": "true"})
    (path,) = adds(folder)
    delete_rows(folder, path, [3])
    scan = pqext.scan(f"delta:{folder}")
    pqext.write_table(pa.table({"n": range(3)}), os.path.join(folder, path), ignore_table_format=True)
    with pytest.raises(pqext.CorruptFileError, match="deletes row 3, but the file has 3 rows"):
        scan.count()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_scans_equal_a_list_of_rows(tmp_path: Path, data: st.DataObject) -> None:
    folder = str(tmp_path / "t")
    shutil.rmtree(folder, ignore_errors=True)
    expected: list[dict[str, Any]] = []
    numbers = st.one_of(st.none(), st.integers(-5, 5))
    drawn = st.tuples(st.sampled_from("ab"), numbers, st.one_of(st.none(), st.text("xyz", max_size=2)))
    for step in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.lists(drawn))
        batch = [{"p": p, "n": n, "t": t, "step": step} for p, n, t in rows]
        table = pa.Table.from_pylist(batch, pa.schema(
            [("p", pa.string()), ("n", pa.int64()), ("t", pa.string()), ("step", pa.int64())]
        ))
        write_deltalake(
            folder, table, mode="append", partition_by=["p"], configuration={"delta.enableDeletionVectors": "true"}
        )
        expected += batch
    # Names of files are random, and draws must not depend on them.
    paths = sorted(adds(folder), key=lambda path: path[: path.rindex("/")])
    for number in data.draw(st.lists(st.sampled_from(range(len(paths))), unique=True)) if paths else []:
        path = paths[number]
        rows = pqext.read_table(os.path.join(folder, unquote(path))).to_pylist()
        gone = data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))
        value = adds(folder)[path]["partitionValues"]["p"]
        for row in gone:
            expected.remove({"p": value, **rows[row]})
        delete_rows(folder, path, gone)
    low = data.draw(st.integers(-6, 6))
    scan = pqext.scan(f"delta:{folder}")
    for condition, test in (
        (f"n > {low}", lambda row: row["n"] is not None and row["n"] > low), ("p = 'a'", lambda row: row["p"] == "a"),
        ("t is null or n = 0", lambda row: row["t"] is None or row["n"] == 0),
        (f"p = 'b' and t >= 'y' and n <= {low}", lambda row: row["p"] == "b" and row["t"] is not None
         and row["t"] >= "y" and row["n"] is not None and row["n"] <= low),
    ):
        matching = [row for row in expected if test(row)]
        assert ordered(scan.filter(condition).to_table().to_pylist()) == ordered(matching)
        assert scan.filter(condition).count() == len(matching)
    assert scan.count() == len(expected)


def test_errors_name_the_table(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a Delta table"):
        pqext.scan(f"delta:{tmp_path}")
    folder = str(tmp_path / "t")
    write_deltalake(folder, pa.table({"n": [1]}))
    with pytest.raises(FileNotFoundError, match="no version 9; its last version is 0"):
        pqext.scan(f"delta:{folder}", version=9)
    with pytest.raises(ValueError, match=r"a snapshot of delta:.* has one version"):
        pqext.scan(open_table(f"delta:{folder}"), version=0)
    with pytest.raises(ValueError, match="either version or timestamp"):
        pqext.scan(f"delta:{folder}", version=0, timestamp="2024-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="apply to tables only"):
        pqext.scan(folder, version=0)
    assert pqext.scan(f"delta:{folder}", storage_options={"anonymous": True}).count() == 1
    scan = pqext.scan(f"delta:{folder}")
    (path,) = adds(folder)
    os.remove(os.path.join(folder, path))
    with pytest.raises(FileNotFoundError, match=r"the log of delta:file://.* lists the file, but it does not exist"):
        scan.to_table()


@pytest.mark.parametrize("name", ["delta:t", "iceberg:c.n.t"])
def test_names_of_tables_are_not_paths_of_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"id": [1]})
    for call in (
        lambda: pqext.write_table(rows, name), lambda: pqext.write_dataset(rows, name), lambda: pqext.open(name),
        lambda: pqext.verify(name), lambda: pqext.scan([name]).count(),
    ):
        with pytest.raises(ValueError, match=r"is the name of a table, not of a file: .*pqext\.tables\.append"):
            call()
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(PUBLIC is None, reason="DELTA_RS_TEST_DATA does not name crates/test/tests/data of delta-rs")
def test_public_tables_equal_deltalake() -> None:
    different, compared = [], 0
    for log in sorted(Path(str(PUBLIC)).rglob("_delta_log")):
        folder = str(log.parent)
        try:
            own = own_rows(DeltaTable(folder))
        except Exception:  # its files are missing, or deltalake cannot read it
            continue
        compared += 1
        if ordered(pqext.scan(f"delta:{folder}").to_table().to_pylist()) != ordered(own):
            different.append(log.parent.name)
    assert compared > 30
    assert different == ["table_with_edge_timestamps"]  # deltalake reads the year 9999 of INT96 as 1816


def test_row_numbers_without_other_columns_exclude_deleted_rows(tmp_path: Path) -> None:
    folder = str(tmp_path)
    write_deltalake(folder, pa.table({"n": range(100)}), configuration={"delta.enableDeletionVectors": "true"})
    [path] = adds(folder)
    delete_rows(folder, path, [3, 70])
    result = pqext.scan(f"delta:{folder}", [], include_row_numbers="row").to_table()
    assert result.to_pydict() == {"row": [row for row in range(100) if row not in (3, 70)]}


@pytest.mark.parametrize(("nulls", "filter"), [(5, col("x") == 2), (-1, col("x").is_null())])
def test_impossible_null_counts_prune_no_row(
    tmp_path: Path, nulls: int, filter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The null counts of files are added up when the log tests several files together."""
    monkeypatch.setattr(log_statistics, "_REASONS", 0)
    for values in ([1], [2], [None]):
        write_deltalake(str(tmp_path), pa.table({"x": pa.array(values, pa.int64())}), mode="append")
    log = tmp_path / "_delta_log/00000000000000000000.json"
    log.write_text(log.read_text().replace(r'\"nullCount\":{\"x\":0}', rf'\"nullCount\":{{\"x\":{nulls}}}'))
    assert DeltaTable(str(tmp_path)).get_add_actions(flatten=True)["null_count.x"].to_pylist() == [1, 0, nulls]
    rows = pa.table(DeltaTable(str(tmp_path)).scan())
    assert pqext.scan(f"delta:{tmp_path}", filter=filter).to_table().to_pylist() == [
        row for row in rows.to_pylist() if row["x"] == (None if nulls < 0 else 2)
    ]
