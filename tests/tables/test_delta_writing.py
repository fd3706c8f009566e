"""Append to and overwrite Delta tables: equal rows in deltalake and polars, statistics, schemas, conflicts, errors."""

from __future__ import annotations

import json
import threading
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import UnsupportedError, col, geo, tables, variant

deltalake = pytest.importorskip("deltalake")
from deltalake import DeltaTable, QueryBuilder, write_deltalake  # noqa: E402

PLAIN = pa.table({
    "id": pa.array([1, 2, None], pa.int64()),
    "day": pa.array([date(2026, 11, 29), date(2026, 11, 30), None]),
    "at": pa.array([datetime(2026, 11, 30, 12, 0, 0, 123456)] * 3, pa.timestamp("us", "UTC")),
    "local": pa.array([datetime(1, 1, 1), None, datetime(9999, 12, 31)], pa.timestamp("us")),
    "price": pa.array([Decimal("1.50"), None, Decimal("-9999999.99")], pa.decimal128(9, 2)),
    "text": pa.array(["é", "", None]),
    "flag": pa.array([True, None, False]),
    "s": pa.array([{"x": 1, "y": ["a", None]}, None, {"x": None, "y": None}]),
    "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
})


def events(count: int, start: int = 0) -> pa.Table:
    values = range(start, start + count)
    rows = [pa.array(values, pa.int64()), variant.parse_json([json.dumps({"n": n, "t": f"t{n}"}) for n in values])]
    return pa.table(rows, schema=pa.schema([("id", pa.int64()), variant.variant_field("event")]))


def ids(path: Path, version: int | None = None) -> list[int]:
    found: list[int] = pqext.scan(f"delta:{path}", ["id"], version=version).to_table()["id"].to_pylist()
    return sorted(found)


def by_deltalake(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(
        QueryBuilder().register("t", DeltaTable(str(path))).execute("select * from t")
    ).to_pylist()
    return found


def log_entries(path: Path, version: int, action: str) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text("utf-8").splitlines()
    return [entry[action] for entry in map(json.loads, lines) if action in entry]


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def test_appended_rows_are_equal_in_deltalake_polars_and_pqext(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "table"
    assert tables.append(f"delta:{path}", PLAIN).version == 0
    assert tables.append(f"delta:{path}", PLAIN.slice(0, 1)).version == 1
    expected = sorted([*PLAIN.to_pylist(), *PLAIN.slice(0, 1).to_pylist()], key=repr)
    assert sorted(by_deltalake(path), key=repr) == expected
    assert sorted(pqext.scan(f"delta:{path}").to_table().to_pylist(), key=repr) == expected
    frame = polars.scan_delta(str(path)).select("id", "day", "price", "text", "flag").collect()
    assert sorted(frame.to_dicts(), key=repr) == sorted(
        [{name: row[name] for name in frame.columns} for row in expected], key=repr
    )


def test_paths_may_contain_spaces_and_percent_signs(tmp_path: Path) -> None:
    path = tmp_path / "a table é%#?"
    for value in (1, 2):
        tables.append(f"delta:{path}", pa.table({"id": [value]}))
    assert tables.compact(f"delta:{path}").files_after == 1
    assert ids(path) == [1, 2]
    assert sorted(row["id"] for row in by_deltalake(path)) == [1, 2]
    assert tables.describe(f"delta:{path}", older_than=timedelta(0)).leftovers == ()


def test_table_of_deltalake_accepts_rows_of_pqext(tmp_path: Path) -> None:
    write_deltalake(tmp_path, PLAIN)
    tables.append(DeltaTable(str(tmp_path)), PLAIN)
    assert len(by_deltalake(tmp_path)) == 6


@pytest.mark.parametrize("version", [None, 0])
def test_commits_update_a_delta_table_object_as_deltalake_does(tmp_path: Path, version: int | None) -> None:
    """The object moves to the new version, also from an earlier version that was loaded on purpose."""
    objects = []
    for name in ("pqext", "deltalake"):
        write_deltalake(tmp_path / name, PLAIN)
        write_deltalake(tmp_path / name, PLAIN, mode="append")
        objects.append(DeltaTable(tmp_path / name, version=version))
    own, peer = objects
    tables.append(own, PLAIN)
    write_deltalake(peer, PLAIN, mode="append")
    assert (own.version(), own.count()) == (peer.version(), peer.count()) == (2, 9)
    assert pqext.scan(own).count() == own.to_pyarrow_table().num_rows == 9
    tables.overwrite(own, PLAIN)
    write_deltalake(peer, PLAIN, mode="overwrite")
    assert (own.version(), own.count()) == (peer.version(), peer.count()) == (3, 3)
    tables.append(own, PLAIN)
    tables.compact(own)
    assert len(own.file_uris()) == 1
    tables.recluster(own, "id")
    assert own.version() == DeltaTable(tmp_path / "pqext").version() == 6
    assert own.count() == 6


def test_overwrite_can_be_repeated_after_a_conflict(tmp_path: Path) -> None:
    write_deltalake(tmp_path, PLAIN)
    table = DeltaTable(tmp_path)
    write_deltalake(tmp_path, PLAIN, mode="append")
    with pytest.raises(tables.TableConflictError, match="repeat the call"):
        tables.overwrite(table, PLAIN.slice(0, 1))
    assert tables.overwrite(table, PLAIN.slice(0, 1)).files_removed == 2
    assert len(by_deltalake(tmp_path)) == table.to_pyarrow_table().num_rows == 1


def test_failed_update_of_a_delta_table_object_does_not_fail_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(tmp_path, PLAIN)
    table = DeltaTable(tmp_path)

    def fail(_: DeltaTable) -> None:
        raise OSError("the store cannot be reached")

    monkeypatch.setattr(DeltaTable, "update_incremental", fail)
    assert tables.append(table, PLAIN).version == 1
    assert len(by_deltalake(tmp_path)) == 6


@pytest.mark.spec("tables.delta.partitions")
def test_partition_values_of_all_types_are_read_back(tmp_path: Path) -> None:
    rows = pa.table({
        "id": [1, 2, 3, 4],
        "city": ["S:1 é%/=", "x", None, "x"],
        "day": pa.array([date(2026, 1, 2), None, date(2026, 1, 2), None]),
        "flag": [True, False, None, False],
    })
    tables.append(f"delta:{tmp_path}", rows, partition_by=["city", "day", "flag"])
    expected = sorted(rows.to_pylist(), key=lambda row: row["id"])
    assert sorted(by_deltalake(tmp_path), key=lambda row: row["id"]) == expected
    assert sorted(pqext.scan(f"delta:{tmp_path}").to_table().to_pylist(), key=lambda row: row["id"]) == expected
    scan = pqext.scan(f"delta:{tmp_path}", filter="city = 'S:1 é%/='")
    assert scan.to_table()["id"].to_pylist() == [1]


def test_statistics_of_variant_paths_prune_files(tmp_path: Path) -> None:
    for start in (0, 100, 200):
        tables.append(f"delta:{tmp_path}", events(100, start))
    scan = pqext.scan(f"delta:{tmp_path}").filter(col("event").variant("$.n", "int64") >= 250)
    for name in [*DeltaTable(str(tmp_path)).file_uris()]:
        if pq.read_table(name, columns=["id"])["id"][0].as_py() < 200:
            Path(name).write_bytes(b"damaged")
    assert sorted(scan.to_table()["id"].to_pylist()) == list(range(250, 300))


@pytest.mark.spec("tables.delta.statistics")
def test_statistics_follow_the_properties_of_the_table(tmp_path: Path) -> None:
    rows = pa.table({"a": [1], "b": [2], "c": [3]})
    write_deltalake(tmp_path / "few", rows, configuration={"delta.dataSkippingNumIndexedCols": "1"})
    write_deltalake(tmp_path / "named", rows, configuration={"delta.dataSkippingStatsColumns": "c"})
    for name, columns in (("few", {"a"}), ("named", {"c"})):
        tables.append(f"delta:{tmp_path / name}", rows)
        (entry,) = log_entries(tmp_path / name, 1, "add")
        assert set(json.loads(entry["stats"])["minValues"]) == columns


def test_geometry_keeps_its_crs_and_is_readable_by_polars(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = pa.table(
        [pa.array([1, 2]), geo.from_points([1.0, 50.0], [2.0, 60.0])],
        schema=pa.schema([("id", pa.int64()), geo.geometry_field("at", 3857)]),
    )
    tables.append(f"delta:{tmp_path}", rows)
    scan = pqext.scan(f"delta:{tmp_path}")
    assert scan.schema.field("at").metadata == rows.schema.field("at").metadata
    assert scan.filter(col("at").intersects((0, 0, 5, 5))).to_table()["id"].to_pylist() == [1]
    assert polars.scan_delta(str(tmp_path)).collect()["at"].to_list() == rows["at"].to_pylist()
    other = rows.cast(pa.schema([("id", pa.int64()), geo.geometry_field("at", 4326)]))
    with pytest.raises(pqext.ParquetError, match=r"CRS EPSG:4326 .* in the rows, but CRS EPSG:3857 .* in the table"):
        tables.append(f"delta:{tmp_path}", other)


def test_covering_column_is_added_only_on_request(tmp_path: Path) -> None:
    rows = pa.table([geo.from_points([1.0], [2.0])], schema=pa.schema([geo.geometry_field("at")]))
    tables.append(f"delta:{tmp_path / 'plain'}", rows)
    tables.append(f"delta:{tmp_path / 'boxes'}", rows, geoparquet="1.1")
    assert by_deltalake(tmp_path / "plain") == [{"at": rows["at"][0].as_py()}]
    (row,) = by_deltalake(tmp_path / "boxes")
    assert row["at_bbox"] == {"xmin": 1.0, "ymin": 2.0, "xmax": 1.0, "ymax": 2.0}


def test_values_in_the_residual_are_reported(tmp_path: Path) -> None:
    table, message = f"delta:{tmp_path}", r"the residual contains 100\.0% of event: \$\.n; use types that fit"
    shredding = {"event": "n BOOLEAN"}
    for write in (tables.append, tables.overwrite):
        with pytest.warns(UserWarning, match=message):
            write(table, events(10), shredding=shredding, allow_undeclared_shredding=True)
    with pytest.warns(UserWarning, match=message):
        tables.reshred(table, shredding, allow_undeclared_shredding=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tables.append(table, events(10), shredding={"event": "n BIGINT"}, allow_undeclared_shredding=True)
        tables.compact(table)


def test_warning_as_an_error_prevents_the_commit(tmp_path: Path) -> None:
    table, shredding = f"delta:{tmp_path}", {"event": "n BOOLEAN"}
    tables.append(table, events(10))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "typed columns do not fit")
        for write in (tables.append, tables.overwrite):
            with pytest.raises(UserWarning, match="typed columns do not fit most values"):
                write(table, events(10), shredding=shredding, allow_undeclared_shredding=True)
        with pytest.raises(UserWarning, match="typed columns do not fit most values"):
            tables.reshred(table, shredding, allow_undeclared_shredding=True)
    assert DeltaTable(str(tmp_path)).version() == 0
    assert len([*tmp_path.glob("*.parquet")]) == 1


@pytest.mark.spec("tables.delta.shredding")
def test_shredding_needs_permission(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"variantShredding.*allow_undeclared_shredding=True") as error:
        tables.append(f"delta:{tmp_path}", events(2), shredding={"event": "infer"})
    assert error.value.feature == "shredding in Delta tables"
    assert [*tmp_path.iterdir()] == []
    tables.append(
        f"delta:{tmp_path}", events(2), shredding={"event": "infer"}, allow_undeclared_shredding=True
    )
    (file,) = data_files(tmp_path)
    assert "typed_value" in pq.read_schema(tmp_path / file).field("event").type.names
    found = pqext.scan(f"delta:{tmp_path}").to_table()
    assert variant.to_json(found["event"]).to_pylist() == variant.to_json(events(2)["event"]).to_pylist()


@pytest.mark.spec("tables.delta.mapping")
def test_column_mapping_uses_physical_names_and_ids(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "s": [{"x": 1}]})
    write_deltalake(tmp_path, rows, configuration={"delta.columnMapping.mode": "name"})
    tables.append(f"delta:{tmp_path}", pa.table({"s": [{"x": 5}], "id": [7]}))
    struct = json.loads(DeltaTable(tmp_path).schema().to_json())
    fields = {field["name"]: field["metadata"] for field in struct["fields"]}
    (entry,) = log_entries(tmp_path, 1, "add")
    stored = pq.read_schema(tmp_path / unquote(entry["path"]))
    names = {name: metadata["delta.columnMapping.physicalName"] for name, metadata in fields.items()}
    assert set(stored.names) == set(names.values())
    assert int(stored.field(names["id"]).metadata[b"PARQUET:field_id"]) == fields["id"]["delta.columnMapping.id"]
    assert set(json.loads(entry["stats"])["minValues"]) == set(names.values())
    assert {"id": 7, "s": {"x": 5}} in pqext.scan(f"delta:{tmp_path}").to_table().to_pylist()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"id": [1]}, "the rows lack column 'name'"),
        ({"id": [1], "name": ["x"], "nam": [1]}, "the table has no column 'nam'"),
        ({"id": ["1"], "name": ["x"]}, "id is string in the rows and long in the table"),
        ({"id": [1], "name": [["x"]]}, "name is array in the rows and string in the table"),
    ],
)
def test_rows_of_another_schema_are_rejected_before_writing(
    tmp_path: Path, rows: dict[str, Any], message: str
) -> None:
    tables.append(f"delta:{tmp_path}", pa.table({"id": [1], "name": ["x"]}))
    before = data_files(tmp_path)
    with pytest.raises(pqext.ParquetError, match=message):
        tables.append(f"delta:{tmp_path}", pa.table(rows))
    assert data_files(tmp_path) == before


def test_null_in_a_required_column_leaves_no_file(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    tables.append(f"delta:{tmp_path}", pa.table({"id": [1]}, schema=schema))
    before = data_files(tmp_path)
    with pytest.raises(pqext.CorruptFileError, match="requires values in this column"):
        tables.append(f"delta:{tmp_path}", pa.table({"id": pa.array([1, None], pa.int64())}))
    assert data_files(tmp_path) == before
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize("type", [pa.uint32(), pa.timestamp("ns"), pa.float16(), pa.time64("us"), pa.null()])
def test_types_without_equivalent_are_rejected(tmp_path: Path, type: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="Delta has no type for") as error:
        tables.append(f"delta:{tmp_path / 't'}", pa.table({"x": pa.array([None], type), "y": [1]}))
    assert error.value.column == "x"
    assert not (tmp_path / "t").exists()


def edit_log(path: Path, edit: Any) -> None:
    log = path / "_delta_log" / f"{0:020}.json"
    entries = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for entry in entries:
        edit(entry)
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")


@pytest.mark.parametrize(
    "feature", ["rowTracking", "identityColumns", "variantShredding-preview", "icebergCompatV2", "of-tomorrow"]
)
@pytest.mark.spec("tables.delta.features")
def test_unsupported_writer_features_are_rejected(tmp_path: Path, feature: str) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))

    def edit(entry: dict[str, Any]) -> None:
        if "protocol" in entry:
            read = [feature] if feature.startswith("variant") else []
            entry["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": read, "writerFeatures": [feature]
            }

    edit_log(tmp_path, edit)
    before = data_files(tmp_path)
    for call in (
        lambda: tables.append(f"delta:{tmp_path}", pa.table({"id": [2]})), lambda: tables.compact(f"delta:{tmp_path}")
    ):
        with pytest.raises(UnsupportedError, match=f"writer features {feature}"):
            call()
    assert data_files(tmp_path) == before


@pytest.mark.spec("tables.delta.rules")
def test_rules_that_are_not_evaluated_are_rejected(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "constraint", pa.table({"id": [1]}))
    DeltaTable(tmp_path / "constraint").alter.add_constraint({"positive": "id > 0"})
    with pytest.raises(UnsupportedError, match=r"delta\.constraints\.positive"):
        tables.append(f"delta:{tmp_path / 'constraint'}", pa.table({"id": [-1]}))
    write_deltalake(tmp_path / "generated", pa.table({"id": [1]}))

    def edit(entry: dict[str, Any]) -> None:
        if "metaData" in entry:
            schema = json.loads(entry["metaData"]["schemaString"])
            schema["fields"][0]["metadata"]["delta.generationExpression"] = "1 + 1"
            entry["metaData"]["schemaString"] = json.dumps(schema)

    edit_log(tmp_path / "generated", edit)
    with pytest.raises(UnsupportedError, match="a generation expression") as error:
        tables.append(f"delta:{tmp_path / 'generated'}", pa.table({"id": [1]}))
    assert error.value.column == "id"


@pytest.mark.spec("tables.delta.append-only")
def test_append_only_table_accepts_rows_and_rejects_overwrites(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}), configuration={"delta.appendOnly": "true"})
    tables.append(f"delta:{tmp_path}", pa.table({"id": [2]}))
    with pytest.raises(UnsupportedError, match=r"delta\.appendOnly"):
        tables.overwrite(f"delta:{tmp_path}", pa.table({"id": [3]}))
    assert tables.compact(f"delta:{tmp_path}").files_after == 1
    assert ids(tmp_path) == [1, 2]


def test_overwrite_replaces_the_table_or_partitions(tmp_path: Path) -> None:
    first = pa.table({"id": [1, 2, 3], "p": ["a", "b", "b"]})
    tables.append(f"delta:{tmp_path}", first, partition_by="p")
    result = tables.overwrite(f"delta:{tmp_path}", pa.table({"id": [4], "p": ["b"]}), filter="p = 'b'")
    assert (result.version, result.files_removed, ids(tmp_path)) == (1, 1, [1, 4])
    before = data_files(tmp_path)
    with pytest.raises(ValueError, match="partition p=a, which filter= does not select"):
        tables.overwrite(f"delta:{tmp_path}", pa.table({"id": [5], "p": ["a"]}), filter="p = 'b'")
    with pytest.raises(ValueError, match="no column 'id'"):
        tables.overwrite(f"delta:{tmp_path}", pa.table({"id": [5], "p": ["b"]}), filter="id = 4")
    assert data_files(tmp_path) == before
    tables.overwrite(f"delta:{tmp_path}", pa.table({"id": [9], "p": ["c"]}))
    assert sorted(row["id"] for row in by_deltalake(tmp_path)) == [9]
    assert ids(tmp_path, version=0) == [1, 2, 3]


def test_replace_files_replaces_exactly_these(tmp_path: Path) -> None:
    for value in (1, 2):
        tables.append(f"delta:{tmp_path}", pa.table({"id": [value]}))
    (entry,) = log_entries(tmp_path, 0, "add")
    tables.replace_files(f"delta:{tmp_path}", [entry["path"]], pa.table({"id": [10, 11]}))
    assert ids(tmp_path) == [2, 10, 11]
    with pytest.raises(FileNotFoundError, match="has no file"):
        tables.replace_files(f"delta:{tmp_path}", [entry["path"]], pa.table({"id": [12]}))


def test_concurrent_appends_all_succeed(tmp_path: Path) -> None:
    tables.append(f"delta:{tmp_path}", pa.table({"id": [0]}))
    start = threading.Barrier(4)

    def write(value: int) -> None:
        start.wait()
        tables.append(f"delta:{tmp_path}", pa.table({"id": [value]}))

    threads = [threading.Thread(target=write, args=(value,)) for value in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(tmp_path) == [0, 1, 2, 3, 4]
    assert DeltaTable(tmp_path).version() == 4


def test_append_during_an_append_is_not_a_change_of_the_schema(tmp_path: Path) -> None:
    """deltalake writes the metadata of a field in a random order when it converts the schema to text."""
    table = f"delta:{tmp_path}"
    rows = pa.table([geo.from_points([1.0], [2.0])], schema=pa.schema([geo.geometry_field("at", 3857)]))
    tables.append(table, rows, geoparquet="1.1")

    def batches() -> Any:
        yield from rows.to_batches()
        tables.append(table, rows, geoparquet="1.1")

    for _ in range(20):
        source = DeltaTable(str(tmp_path))
        tables.append(source, pa.RecordBatchReader.from_batches(rows.schema, batches()), geoparquet="1.1")
    assert len(by_deltalake(tmp_path)) == 41


def test_rows_are_sorted_and_divided_by_size(tmp_path: Path) -> None:
    values = [(n * 7919) % 300_000 for n in range(300_000)]
    rows, options = pa.table({"id": values}), {"target_file_bytes": 300_000, "encodings": "plain"}
    result = tables.append(f"delta:{tmp_path}", rows.to_reader(50_000), sort_by="id", **options)
    assert result.files > 2
    files = DeltaTable(str(tmp_path)).file_uris()
    ranges = sorted((pq.read_table(file)["id"][0].as_py(), pq.read_table(file)["id"][-1].as_py()) for file in files)
    assert all(first[1] < second[0] for first, second in pairwise(ranges))


def test_append_without_rows_creates_the_table_once(tmp_path: Path) -> None:
    empty = pa.table({"id": pa.array([], pa.int64())})
    assert tables.append(f"delta:{tmp_path}", empty).version == 0
    assert tables.append(f"delta:{tmp_path}", empty).version == 0
    assert by_deltalake(tmp_path) == []


def test_invalid_tables_are_typed_errors_without_credentials(tmp_path: Path) -> None:
    for url in ("s3://AK:SECRET@b/x", "https://h/x?X-Amz-Signature=SECRET"):
        with pytest.raises(ValueError, match="write 'delta:") as error:
            tables.append(url, pa.table({"id": [1]}))
        assert "SECRET" not in str(error.value)
    for name in ("delta:\0", "delta:\ud800"):
        with pytest.raises(ValueError, match="is not a valid path"):
            tables.append(name, pa.table({"id": [1]}))
    with pytest.raises(ValueError, match="write 'delta:somewhere'"):
        tables.append("somewhere", PLAIN)
    for call in (tables.describe, tables.compact, tables.clean):
        with pytest.raises(FileNotFoundError, match="is not a Delta table"):
            call(f"delta:{tmp_path}")
    tables.append(f"delta:{tmp_path / 't'}", PLAIN)
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    log.write_text("{ not JSON\n")
    with pytest.raises(pqext.CorruptFileError, match="cannot be opened"):
        tables.append(f"delta:{tmp_path / 't'}", PLAIN)
    secret = "pass-w0rd"
    with pytest.raises((pqext.ParquetError, OSError)) as error:
        tables.append(
            f"delta:s3://bucket/t?token={secret}", PLAIN,
            storage_options={
                "aws_secret_access_key": secret, "aws_access_key_id": "me", "aws_endpoint_url": "http://127.0.0.1:9",
                "aws_region": "x", "allow_http": "true", "max_retries": "0", "retry_timeout": "1s",
            },
        )
    assert secret not in str(error.value)


def test_empty_string_is_not_a_partition_value(tmp_path: Path) -> None:
    with pytest.raises(pqext.CorruptFileError, match="an empty string cannot be a partition value"):
        tables.append(f"delta:{tmp_path / 't'}", pa.table({"p": ["x", ""], "n": [1, 2]}), partition_by="p")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("value", [1.5, datetime(2024, 1, 1, tzinfo=UTC)])
def test_partitions_of_other_types_are_refused_before_writing(tmp_path: Path, value: Any) -> None:
    folder = str(tmp_path / "t")
    for number in (1, 2):
        write_deltalake(folder, pa.table({"p": [value], "n": [number]}), partition_by="p", mode="append")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for call in (
        lambda: tables.compact(f"delta:{folder}", dry_run=True),
        lambda: tables.append(f"delta:{folder}", pa.table({"p": [value], "n": [3]})),
    ):
        with pytest.raises(pqext.UnsupportedError, match="the partition column 'p' has the type"):
            call()
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert pqext.scan(f"delta:{folder}", filter=pqext.col("p") == value).count() == 2
