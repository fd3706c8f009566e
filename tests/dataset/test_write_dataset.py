"""Folders of files written in one call: what other readers find in them, whole or not at all."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import shapely
from remote.conftest import S3, s3, server

import pqext
from pqext import geo, variant
from pqext.core.base.errors import InvalidValueError, SchemaMismatchError, UnsupportedError

__all__ = ["s3", "server"]

TABLE = pa.table(
    {
        "id": range(100),
        "kind": [["click", "view=1/2", "ä"][number % 3] for number in range(100)],
        "day": [dt.date(2026, 5, 1 + number % 2) for number in range(100)],
        "text": [f"text {number}" for number in range(100)],
    }
)


VIEWS = TABLE.cast(
    pa.schema([field.with_type(pa.string_view()) if field.type == pa.string() else field for field in TABLE.schema])
)


def visible_files(folder: Path) -> list[str]:
    """The files of a folder that readers see."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def by_id(table: pa.Table) -> list[dict[str, Any]]:
    return table.select(TABLE.schema.names).cast(TABLE.schema).sort_by("id").to_pylist()


@pytest.mark.spec("writing.folder-names")
def test_partitions_are_readable_by_duckdb_and_pyarrow(tmp_path: Path) -> None:
    saved = pqext.write_dataset(TABLE, tmp_path / "out", ["kind", "day"], compression="zstd")
    assert (saved.rows, len(saved.files), saved.path) == (100, 6, str(tmp_path / "out"))
    assert by_id(pqext.read_table(tmp_path / "out")) == TABLE.to_pylist()
    files = f"read_parquet('{tmp_path}/out/**/*.parquet', hive_partitioning=true)"
    query = f"SELECT id, kind, day, text FROM {files} ORDER BY id"
    assert duckdb.sql(query).fetchall() == [tuple(row.values()) for row in TABLE.to_pylist()]
    types = pa.schema([("kind", pa.string()), ("day", pa.date32())])
    peer = ds.dataset(tmp_path / "out", partitioning=ds.partitioning(types, flavor="hive"))
    assert by_id(peer.to_table()) == TABLE.to_pylist()
    assert pq.read_metadata(tmp_path / "out" / saved.files[0].name).row_group(0).column(0).compression == "ZSTD"


@pytest.mark.spec("writing.division")
def test_files_are_split_by_rows_and_bytes(tmp_path: Path) -> None:
    saved = pqext.write_dataset(TABLE, tmp_path / "rows", max_records_per_file=30)
    assert [file.rows for file in saved.files] == [30, 30, 30, 10]
    rows = [pq.read_metadata(path).num_rows for path in (tmp_path / "rows").glob("*.parquet")]
    assert sorted(rows) == [10, 30, 30, 30]
    small = TABLE.to_reader(max_chunksize=20)
    saved = pqext.write_dataset(small, tmp_path / "batches", max_records_per_file=30)
    assert [file.rows for file in saved.files] == [30, 30, 30, 10]
    many = pa.table({"id": range(400_000)})
    options: dict[str, Any] = {"row_group_rows": 50_000, "encodings": "plain"}
    saved = pqext.write_dataset(many, tmp_path / "bytes", target_file_bytes=500_000, **options)
    assert len(saved.files) > 2
    assert all(file.bytes < 1_000_000 for file in saved.files)
    assert pqext.read_table(tmp_path / "bytes").num_rows == 400_000


@pytest.mark.parametrize(
    "data",
    [
        TABLE, TABLE.to_reader(7), TABLE.to_pandas(), pl.from_arrow(TABLE),
        pl.DataFrame(pl.from_arrow(TABLE)).cast({"kind": pl.Categorical}), TABLE.to_pydict(),
        TABLE.set_column(1, "kind", TABLE["kind"].dictionary_encode()),
        VIEWS,
    ],
    ids=["table", "reader", "pandas", "polars", "polars-categories", "mapping", "dictionary", "view"],
)  # fmt: skip
def test_data_accepted_by_write_table_is_accepted(tmp_path: Path, data: Any) -> None:
    pqext.write_dataset(data, tmp_path / "out", "kind")
    found = by_id(pqext.read_table(tmp_path / "out"))
    assert found == TABLE.to_pylist()


def test_scans_are_copied_with_variants_and_geometries(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": [1, 2, 3],
            "event": variant.parse_json(['{"n": 1}', '{"n": 2}', '{"n": "x"}']),
            "at": geo.from_points([2.5, 2.4, 0.0], [48.5, 48.6, 0.0]),
        }
    )
    source = tmp_path / "source.parquet"
    pqext.write_table(table, source, geometry={"at": "OGC:CRS84"})
    scan = pqext.scan(source).filter("id < 3")
    saved = pqext.write_dataset(
        scan, tmp_path / "out", "id", shredding={"event": "n BIGINT"}, geometry={"at": {"crs": "EPSG:4326"}}
    )
    assert saved.shredded == {"event": ("STRUCT<n: BIGINT>",)}
    found = pqext.scan(tmp_path / "out")
    assert found.to_table(variants="json", geometry="wkt").to_pylist() == [
        {"event": '{"n":1}', "at": "POINT (2.5 48.5)", "id": 1}, {"event": '{"n":2}', "at": "POINT (2.4 48.6)", "id": 2}
    ]  # fmt: skip
    assert "typed_value" in str(pq.read_schema(tmp_path / "out" / saved.files[0].name).field("event").type)


@pytest.mark.spec("writing.modes")
def test_modes_match_spark(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    first = pqext.write_dataset(TABLE.slice(0, 10), folder, "kind")
    with pytest.raises(FileExistsError, match='the folder contains files: pass mode="append"'):
        pqext.write_dataset(TABLE, folder, "kind")
    assert pqext.write_dataset(TABLE, folder, "kind", mode="ignore").files == ()
    pqext.write_dataset(TABLE.slice(10), folder, "kind", mode="append")
    assert by_id(pqext.read_table(folder)) == TABLE.to_pylist()
    (folder / "notes.md").write_text("mine")  # which pqext.scan does not read as Parquet
    (folder / "notes.md").rename(folder / "_notes.md")
    pqext.write_dataset(TABLE.filter(pa.compute.equal(TABLE["kind"], "ä")), folder, "kind", mode="overwrite",
                        partition_overwrite="dynamic", compression="gzip")
    assert by_id(pqext.read_table(folder)) == TABLE.to_pylist()
    assert sum(name.startswith("kind=click") for name in visible_files(folder)) == 2
    assert sum("kind=ä" in name for name in visible_files(folder)) == 1
    pqext.write_dataset(TABLE.slice(0, 5), folder, "kind", mode="overwrite")
    assert by_id(pqext.read_table(folder)) == TABLE.slice(0, 5).to_pylist()
    assert (folder / "_notes.md").read_text() == "mine"
    assert not any(file.name in visible_files(folder) for file in first.files)


@pytest.mark.spec("writing.folder-names")
def test_null_and_empty_text_use_the_null_folder(tmp_path: Path) -> None:
    pqext.write_dataset({"id": [1, 2, 3], "kind": [None, "", "a"]}, tmp_path / "out", "kind")
    rows = pqext.scan(tmp_path / "out").order_by("id").to_table()["kind"].to_pylist()
    assert rows == [None, None, "a"]


@pytest.mark.spec("writing.folder-names")
def test_reserved_null_text_is_rejected(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "kind": ["__HIVE_DEFAULT_PARTITION__", None]})
    by_kind = ds.partitioning(pa.schema([("kind", pa.string())]), flavor="hive")
    ds.write_dataset(data, tmp_path / "peer", format="parquet", partitioning=by_kind)
    assert ds.dataset(tmp_path / "peer", partitioning=by_kind).to_table()["kind"].to_pylist() == [None, None]
    with pytest.raises(UnsupportedError, match=r"represents null in folder names.* \[column kind\]; replace the value"):
        pqext.write_dataset(data, tmp_path / "out", "kind")
    assert not (tmp_path / "out").exists()


@pytest.mark.spec("writing.folder-names")
def test_special_characters_round_trip(tmp_path: Path) -> None:
    texts = ["a/b", "a=b", "50%", "%2F", "..", "é 😀", "\"'", "\\", "*?#", "\n\t\x01\x7f", "a:b", " ", "null", "[]{}^"]
    data = pa.table({"id": range(len(texts)), "a/b=c": texts})
    pqext.write_dataset(data, tmp_path / "out", "a/b=c")
    assert pqext.scan(tmp_path / "out").order_by("id").to_table().to_pylist() == data.to_pylist()
    named = data.rename_columns(["id", "kind"])
    pqext.write_dataset(named, tmp_path / "named", "kind")
    files = f"read_parquet('{tmp_path}/named/**/*.parquet', hive_partitioning=true)"
    assert duckdb.sql(f"SELECT id, kind FROM {files} ORDER BY id").fetchall() == [*enumerate(texts)]
    peer = ds.dataset(tmp_path / "named", partitioning="hive").to_table().sort_by("id")
    assert peer["kind"].to_pylist() == texts


@pytest.mark.spec("writing.folder-names")
def test_value_too_long_for_a_folder_name_is_rejected(tmp_path: Path) -> None:
    for kind in ("x" * 300, "ä" * 130):
        with pytest.raises(OSError, match="name too long"):  # what the file system says
            (tmp_path / f"kind={kind}").mkdir()
        with pytest.raises(UnsupportedError, match=r"of \d+ bytes.* \[column kind\]; shorten the value"):
            pqext.write_dataset({"id": [1, 2], "kind": ["a", kind]}, tmp_path / "out", "kind")
        assert not (tmp_path / "out").exists()
    pqext.write_dataset({"id": [1], "kind": ["x" * 250]}, tmp_path / "out", "kind")
    assert ds.dataset(tmp_path / "out", partitioning="hive").to_table()["kind"].to_pylist() == ["x" * 250]


def test_invalid_utf8_is_rejected_as_a_folder_name(tmp_path: Path) -> None:
    invalid = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff"))
    with pytest.raises(InvalidValueError, match=r"UTF-8 \[column kind\]; replace it, or partition by another column"):
        pqext.write_dataset(pa.table({"id": [1], "kind": invalid}), tmp_path / "out", "kind")


def test_duplicate_columns_are_allowed_unless_partitioned(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    saved = pqext.write_dataset(table, tmp_path / "out", "b")
    stored = pq.ParquetFile(tmp_path / "out" / saved.files[0].name).metadata
    assert [stored.row_group(0).column(index).statistics.min for index in range(2)] == [1, 2]
    with pytest.raises(ValueError, match="several columns 'a'; rename all but one"):
        pqext.write_dataset(table, tmp_path / "other", "a")


@pytest.mark.spec("writing.no-rows")
def test_empty_data_leaves_a_file_with_the_schema(tmp_path: Path) -> None:
    pqext.write_dataset(TABLE.slice(0, 0), tmp_path / "out")
    assert ds.dataset(tmp_path / "out").schema.names == TABLE.schema.names
    assert pqext.read_table(tmp_path / "out").num_rows == 0


@pytest.mark.spec("writing.no-rows")
def test_empty_partitioned_data_leaves_a_file_with_the_schema(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    pqext.write_dataset(TABLE.slice(0, 0), folder, ["kind", "day"])
    types = pa.schema([("kind", pa.string()), ("day", pa.date32())])
    peer = ds.dataset(folder, partitioning=ds.partitioning(types, flavor="hive"))
    for names in (peer.schema.names, pqext.scan(folder).schema.names):
        assert names == ["id", "text", "kind", "day"]
    files = f"read_parquet('{folder}/**/*.parquet', hive_partitioning=true)"
    assert duckdb.sql(f"SELECT id, kind, day, text FROM {files}").fetchall() == []
    assert pqext.read_table(folder).num_rows == 0
    pqext.write_dataset(TABLE, folder, ["kind", "day"], mode="append")
    assert by_id(pqext.read_table(folder)) == TABLE.to_pylist()
    before = visible_files(folder)
    pqext.write_dataset(TABLE.slice(0, 0), folder, ["kind", "day"], mode="append")
    pqext.write_dataset(
        TABLE.slice(0, 0), folder, ["kind", "day"], mode="overwrite", partition_overwrite="dynamic"
    )
    assert visible_files(folder) == before
    pqext.write_dataset(TABLE.slice(0, 0), folder, ["kind", "day"], mode="overwrite")
    assert pqext.read_table(folder).num_rows == 0
    assert [path.rpartition("/")[0] for path in visible_files(folder)] == [
        "kind=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__"
    ]


def test_rows_without_columns_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="data without columns cannot be saved"):
        pqext.write_dataset(TABLE.select([]), tmp_path / "out")


def test_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "within" / "it"):
        for mode in ("error", "ignore", "append", "overwrite"):
            with pytest.raises(UnsupportedError, match=r"is an existing file.* \[file .*/file\]; remove the file"):
                pqext.write_dataset(TABLE, folder, mode=mode)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.spec("writing.whole")
def test_failure_leaves_the_folder_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    pqext.write_dataset(TABLE, folder, "kind")
    before = sorted(folder.rglob("*"))

    def failing() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise RuntimeError("the source broke")

    for mode in ("append", "overwrite"):
        with pytest.raises(RuntimeError, match="the source broke"):
            pqext.write_dataset(pa.RecordBatchReader.from_batches(TABLE.schema, failing()), folder, "kind", mode=mode)
        assert sorted(folder.rglob("*")) == before
    with pytest.raises(RuntimeError, match="the source broke"):
        pqext.write_dataset(pa.RecordBatchReader.from_batches(TABLE.schema, failing()), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.spec("writing.appended")
def test_appended_files_must_match(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    pqext.write_dataset(TABLE, folder, "kind")
    for data, by, message in (
        (TABLE.drop_columns("text"), "kind", "lacks text.*nothing was written"),
        (TABLE.set_column(0, "id", TABLE["id"].cast(pa.string())), "kind", "'id' is int64.*and string in the data"),
        (TABLE, "day", "has folders by kind, but partition_by names day"),
        (TABLE, (), "is partitioned by kind, so its files must not contain kind"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            pqext.write_dataset(data, folder, by, mode="append")
        assert by == "day" or by == () or isinstance(caught.value, SchemaMismatchError)
    assert by_id(pqext.read_table(folder)) == TABLE.to_pylist()


def leaf_paths(folder: Path, saved: pqext.SaveResult) -> list[str]:
    """The leaves of the first file of a save, as pyarrow lists them."""
    footer = pq.read_metadata(folder / saved.files[0].name)
    return [footer.schema.column(index).path for index in range(footer.num_columns)]


def test_appended_variants_are_shredded_like_the_newest_file(tmp_path: Path) -> None:
    events = variant.parse_json(['{"a": 1, "b": "x"}', '{"a": 2, "b": "y"}'])
    plain = pa.table({"day": [1, 2], "v": events})
    shredded = pa.table({"day": [1, 2], "v": variant.shred(events, "c INT")})
    by: dict[str, Any] = {"partition_by": ["day"], "mode": "append"}
    pqext.write_dataset(plain, tmp_path, by["partition_by"], shredding={"v": "infer"})
    inferred = pqext.write_dataset(plain, tmp_path, **by)
    assert leaf_paths(tmp_path, inferred)[2:] == [
        "v.typed_value.a.value", "v.typed_value.a.typed_value", "v.typed_value.b.value", "v.typed_value.b.typed_value",
    ]  # fmt: skip
    assert "v.typed_value.c.value" in leaf_paths(tmp_path, pqext.write_dataset(shredded, tmp_path, **by))
    narrow = pqext.write_dataset(plain, tmp_path, shredding={"v": "b STRING"}, **by)
    assert leaf_paths(tmp_path, narrow)[2:] == ["v.typed_value.b.value", "v.typed_value.b.typed_value"]
    for file in narrow.files:
        (tmp_path / file.name).touch()  # within the resolution of the clock, all files may be equally old
    assert pqext.write_dataset(plain, tmp_path, **by).shredded == {"v": ("STRUCT<b: STRING>",)}
    unshredded = pqext.write_dataset(plain, tmp_path, shredding={}, **by)
    assert leaf_paths(tmp_path, unshredded) == ["v.metadata", "v.value"]
    assert variant.to_json(pqext.read_table(tmp_path)["v"]).to_pylist().count('{"a":1,"b":"x"}') == 6
    dynamic = pqext.write_dataset(
        plain.slice(0, 1), tmp_path, "day", mode="overwrite", partition_overwrite="dynamic", shredding={"v": "a INT"}
    )
    assert leaf_paths(tmp_path, dynamic)[2:] == ["v.typed_value.a.value", "v.typed_value.a.typed_value"]


@pytest.mark.parametrize(
    "choice", ["EPSG:3857", {"edges": "spherical"}, {"crs": "EPSG:3857", "covering": {"name": "box", "type": "float"}}]
)
def test_appended_wkb_has_the_type_and_covering_of_the_folder(choice: Any, tmp_path: Path) -> None:
    points = pa.table({"id": [1, 2], "at": pa.array(shapely.to_wkb(shapely.points([1, 2], [3, 4])), pa.binary())})
    first = pqext.write_dataset(points, tmp_path, geometry={"at": choice})
    schema = pq.read_schema(tmp_path / first.files[0].name)
    for geometry in ({}, {"at": {"order": "hilbert"}}):
        appended = pqext.write_dataset(points, tmp_path, mode="append", geometry=geometry)
        assert pq.read_schema(tmp_path / appended.files[0].name).equals(schema, check_metadata=True)
    for other in ("EPSG:4267", {"crs": "EPSG:4267"}):
        with pytest.raises(SchemaMismatchError, match=r"column 'at' has CRS .* edges in .*, but CRS EPSG:4267 and"):
            pqext.write_dataset(points, tmp_path, mode="append", geometry={"at": other})


@pytest.mark.spec("writing.tables")
def test_folders_of_other_table_formats_are_rejected(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "delta", TABLE)
    for folder in (tmp_path / "delta", tmp_path / "delta" / "day=1"):
        for mode in ("error", "ignore", "append", "overwrite"):
            with pytest.raises(UnsupportedError, match=r"a Delta table.*save to another folder"):
                pqext.write_dataset(TABLE, folder, mode=mode)
    assert len(deltalake.DeltaTable(tmp_path / "delta").file_uris()) == len(visible_files(tmp_path / "delta"))


def test_invalid_arguments_write_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    for arguments, error, message in (
        ({"mode": "replace"}, ValueError, "mode must be one of 'error', .*, not 'replace'"),
        ({"partition_by": "kid"}, ValueError, "no column 'kid'"),
        ({"partition_by": TABLE.schema.names}, ValueError, "contains all columns"),
        ({"partition_overwrite": "dynamic", "mode": "overwrite"}, ValueError, "requires partition columns; pass"),
        ({"max_records_per_file": 0}, ValueError, "must be positive"),
        ({"partition_by": 5}, TypeError, "partition_by must be a column name or a list of column names, not 5"),
        ({"partition_by": [5]}, TypeError, "not \\[5\\]"),
        ({"shredding": "auto"}, TypeError, r"shredding=\{.column.: .infer.\}"),
        ({"compresion": "zstd"}, TypeError, "did you mean 'compression'"),
        ({"shredding": {"text": "BIGINT"}}, TypeError, "has column 'text', which is not a VARIANT"),
        ({"storage_options": {"key": "x"}}, ValueError, "storage_options are for URLs"),
    ):
        with pytest.raises(error, match=message):
            pqext.write_dataset(TABLE, folder, **arguments)
    with pytest.raises(TypeError, match="cannot represent column 'x' of type double; cast the column"):
        pqext.write_dataset({"x": [1.5], "id": [1]}, folder, "x")
    with pytest.raises(InvalidValueError, match=r"a partition value is a date outside the years 1 to 9999.*column x"):
        pqext.write_dataset({"x": pa.array([1 << 30], pa.int32()).cast(pa.date32()), "id": [1]}, folder, "x")
    with pytest.raises(TypeError, match="folder must be a path or a URL, not BytesIO"):
        pqext.write_dataset(TABLE, __import__("io").BytesIO())
    with pytest.raises(UnsupportedError, match="memory://"):
        pqext.write_dataset(TABLE, "memory://folder/out")
    assert not folder.exists()


def test_object_stores_receive_the_same_files(s3: S3) -> None:
    url = "s3://bucket/data/written"
    saved = pqext.write_dataset(TABLE, url, "kind", storage_options=s3.options)
    assert (saved.rows, saved.path) == (100, url)
    read = pqext.read_table(url, storage_options=s3.options)
    assert by_id(read) == TABLE.to_pylist()
    with pytest.raises(FileExistsError):
        pqext.write_dataset(TABLE, url, "kind", storage_options=s3.options)
    pqext.write_dataset(TABLE.slice(0, 3), url, "kind", mode="overwrite", storage_options=s3.options)
    assert by_id(pqext.read_table(url, storage_options=s3.options)) == TABLE.slice(0, 3).to_pylist()


def test_appended_variants_in_object_stores_are_shredded_like_the_newest_file(s3: S3) -> None:
    url, options = "s3://bucket/data/shredded", s3.options
    events = pa.table({"v": variant.parse_json(['{"a": 1}'])})
    pqext.write_dataset(events, url, storage_options=options, shredding={"v": "infer"})
    assert pqext.write_dataset(events, url, mode="append", storage_options=options).shredded == {
        "v": ("STRUCT<a: BIGINT>",)
    }


def test_derived_columns_are_written(tmp_path: Path) -> None:
    points = pa.table({"id": [1, 2], "at": geo.from_points([1.0, 2.0], [3.0, 4.0])})
    for number, options in enumerate(({"geoparquet": "1.1"}, {"geometry": {"at": {"covering": True}}})):
        pqext.write_dataset(points, tmp_path / str(number), **options)
        (file,) = (tmp_path / str(number)).glob("*.parquet")
        assert pqext.read_schema(file).names == ["id", "at", "at_bbox"]


@pytest.mark.parametrize("by", [[], ["kind"]])
def test_pandas_indexes_are_restored_as_from_pyarrow(by: list[str], tmp_path: Path) -> None:
    frame = pd.DataFrame({"kind": ["a", "b"], "n": [1, 2]}, index=pd.Index([10, 20], name="key"))
    table = pa.Table.from_pandas(frame)
    pqext.write_dataset(table, tmp_path / "ours", by)
    pq.write_to_dataset(table, tmp_path / "theirs", partition_cols=by)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "ours"), pd.read_parquet(tmp_path / "theirs"))


def test_folder_that_another_save_fills_first_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "out"

    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        pqext.write_dataset(TABLE, folder)  # while the first save runs

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(FileExistsError, match="the folder contains files"):
        pqext.write_dataset(reader, folder)
    assert pqext.scan(folder).count() == len(TABLE)


def test_save_warns_if_most_values_are_in_the_residual(tmp_path: Path) -> None:
    for share, documents in ((0.5, ["0.5", "1"]), (0.75, ["0.5", "0.5", "0.5", "1"])):
        table = pa.table({"v": variant.parse_json([f'{{"x": {number}}}' for number in documents])})
        folder = tmp_path / str(share)
        if share > 0.5:
            with pytest.warns(UserWarning, match=r"the residual contains 75.0% of v: \$.x; use types that fit"):
                saved = pqext.write_dataset(table, folder, shredding={"v": "x INT"})
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                saved = pqext.write_dataset(table, folder, shredding={"v": "x INT"})
        residual = pq.read_table(folder)["v"].combine_chunks().field("typed_value").field("x").field("value")
        assert residual.null_count == len(documents) * (1 - share)
        assert saved.residual == {"v: $.x": share}
        assert repr(saved).startswith(f"<pqext.SaveResult: {len(documents)} rows, ")


def test_struct_that_the_shredding_names_is_a_variant(tmp_path: Path) -> None:
    binary = variant.parse_json(['{"x": 1}', '{"x": "a"}'])
    bare = pa.StructArray.from_arrays([binary.field("value"), binary.field("metadata")], ["value", "metadata"])
    saved = pqext.write_dataset(pa.table({"v": bare}), tmp_path, shredding={"v": "x BIGINT"})
    assert (saved.shredded, saved.residual) == ({"v": ("STRUCT<x: BIGINT>",)}, {"v: $.x": 0.5})
    assert variant.to_python(pqext.read_table(tmp_path)["v"]) == [{"x": 1}, {"x": "a"}]
