"""The writer: a file appears whole or not at all, and bad arguments are named."""

from __future__ import annotations

import io
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext

TABLE = pa.table({"a": list(range(100)), "s": [str(i) for i in range(100)]})


def test_path_appears_only_when_the_file_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pqext.ParquetWriter(path, TABLE.schema) as writer:
        writer.write_table(TABLE)
        assert not path.exists()
        assert all(name.startswith(".") for name in os.listdir(tmp_path))
    assert os.listdir(tmp_path) == ["t.parquet"]
    assert pq.read_table(path).equals(TABLE)


def test_error_leaves_the_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"old")

    def fail() -> None:
        with pqext.ParquetWriter(path, TABLE.schema) as writer:
            writer.write_table(TABLE)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.listdir(tmp_path) == ["t.parquet"]
    assert path.read_bytes() == b"old"


def test_value_that_cannot_be_stored_leaves_no_file(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    table = pa.table([pa.array([1, None])], schema=schema)
    with pytest.raises(ValueError, match="'a' is not nullable"):
        pqext.write_table(table, tmp_path / "t.parquet")
    assert os.listdir(tmp_path) == []


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    pqext.write_table(TABLE, tmp_path / "t.parquet")
    (tmp_path / "plain").touch()
    assert (tmp_path / "t.parquet").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.spec("layout.row-group-size")
def test_row_groups_have_the_requested_rows_for_any_input_batches() -> None:
    out = io.BytesIO()
    with pqext.ParquetWriter(out, TABLE.schema, row_group_rows=30) as writer:
        writer.write_table(TABLE.slice(0, 7))
        writer.write_table(TABLE.slice(7, 80))
        for batch in TABLE.slice(87).to_batches():
            writer.write_batch(batch)
    file = pqext.open(out.getvalue())
    assert [group.num_rows for group in file.row_groups] == [30, 30, 30, 10]
    assert file.read().equals(TABLE.cast(file.arrow_schema))


@pytest.mark.spec("layout.row-group-size")
def test_row_groups_are_also_limited_by_bytes() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"s": ["x" * 96] * 1000}), out, row_group_bytes=10_000)
    with pqext.open(out.getvalue()) as file:
        assert [group.num_rows for group in file.row_groups] == [100] * 10


def test_row_larger_than_a_row_group_is_written_alone() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"s": ["x" * 96] * 3}), out, row_group_bytes=10)
    with pqext.open(out.getvalue()) as file:
        assert [group.num_rows for group in file.row_groups] == [1, 1, 1]


def test_rows_that_cannot_be_stored_abort_the_file(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    writer = pqext.ParquetWriter(tmp_path / "t.parquet", schema, row_group_rows=2)
    with pytest.raises(ValueError, match="not nullable"):
        writer.write_table(pa.table([pa.array([1, None])], schema=schema))
    writer.close()
    assert os.listdir(tmp_path) == []


def test_table_with_other_columns_or_types_is_rejected_by_name() -> None:
    writer = pqext.ParquetWriter(io.BytesIO(), TABLE.schema)
    with pytest.raises(ValueError, match=r"missing \['s'\], unexpected \['x'\]"):
        writer.write_table(TABLE.rename_columns(["a", "x"]))
    with pytest.raises(ValueError, match="'a' has type double"):
        writer.write_table(TABLE.set_column(0, "a", pa.array([1.0] * 100)))
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write_table(TABLE)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compresion": "snappy"}, TypeError, "compresion"),
        ({"compression": "lzma"}, ValueError, "lzma"),
        ({"compression": {"s": "lzma"}}, ValueError, "lzma"),
        ({"compression": {"nope": "zstd"}}, ValueError, "nope"),
        ({"dictionary": {"nope": True}}, ValueError, "nope"),
        ({"row_group_rows": 0}, ValueError, "row_group_rows"),
        ({"row_group_bytes": 0}, ValueError, "row_group_bytes"),
        ({"page_rows": -1}, ValueError, "page_rows"),
        ({"page_bytes": 0}, ValueError, "page_bytes"),
        ({"page_version": 3}, ValueError, "page_version"),
        ({"shredding": {"nope": "infer"}}, ValueError, "nope"),
        ({"geometry": {"nope": "OGC:CRS84"}}, ValueError, "nope"),
    ],
)
def test_invalid_options_are_rejected_before_writing(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        pqext.write_table(TABLE, tmp_path / "t.parquet", **options)
    assert os.listdir(tmp_path) == []


def test_duplicate_column_names_are_distinguished_by_position() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], ["a", "a"])
    with pqext.ParquetWriter(io.BytesIO(), twice.schema) as writer:
        writer.write_table(twice)
        with pytest.raises(ValueError, match="has type string"):
            writer.write_table(twice.select([1, 0]))
    third = pa.Table.from_arrays([*twice.columns, pa.array([2])], ["a", "a", "b"])
    message = "column names are not unique"
    with pqext.ParquetWriter(io.BytesIO(), third.schema) as writer, pytest.raises(ValueError, match=message):
        writer.write_table(third.select([2, 0, 1]))


def test_options_can_be_set_for_each_leaf() -> None:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, compression={"a": "zstd", "s": "uncompressed"}, dictionary={"s": False})
    row_group = pq.ParquetFile(io.BytesIO(out.getvalue())).metadata.row_group(0)
    assert [row_group.column(i).compression for i in range(2)] == ["ZSTD", "UNCOMPRESSED"]
    assert not row_group.column(1).has_dictionary_page


def test_key_value_metadata_is_written() -> None:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, key_value_metadata={"who": "mé", "empty": ""}, arrow_schema=False)
    assert pq.ParquetFile(io.BytesIO(out.getvalue())).metadata.metadata == {b"who": "mé".encode(), b"empty": b""}


def test_arrow_schema_metadata_is_preserved() -> None:
    out = io.BytesIO()
    table = TABLE.replace_schema_metadata({"pandas": "{}", "who": "schema"})
    pqext.write_table(table, out, key_value_metadata={"who": "option"})
    assert pq.read_schema(io.BytesIO(out.getvalue())).metadata == {b"pandas": b"{}", b"who": b"option"}
    with pqext.open(out.getvalue()) as file:
        assert file.read().schema.metadata == {b"pandas": b"{}", b"who": b"option"}


def test_nonempty_file_object_is_rejected() -> None:
    out = io.BytesIO(b"before")
    out.seek(0, io.SEEK_END)
    with pytest.raises(ValueError, match="not at its start"):
        pqext.write_table(TABLE, out)


def test_forgotten_writer_leaves_no_temporary_file(tmp_path: Path) -> None:
    writer = pqext.ParquetWriter(tmp_path / "t.parquet", TABLE.schema)
    writer.write_table(TABLE)
    del writer
    assert os.listdir(tmp_path) == []


def test_batch_is_written_like_a_table_and_other_data_is_rejected() -> None:
    out = io.BytesIO()
    pqext.write_table(TABLE.to_batches()[0], out)
    assert pq.read_table(io.BytesIO(out.getvalue())).num_rows == 100
    with pytest.raises(TypeError, match="not list"):
        pqext.write_table([1], io.BytesIO())
    with pytest.raises(TypeError, match=r"schema must be a pyarrow\.Schema, not Table"):
        pqext.ParquetWriter(io.BytesIO(), TABLE)


@pytest.mark.spec("layout.page-size")
def test_pages_of_many_entries_and_few_values_are_split() -> None:
    out = io.BytesIO()
    lists = pa.array([[None] * 1000] * 500, pa.list_(pa.int32()))
    pqext.write_table(pa.table({"l": lists}), out, page_bytes=64 << 10, page_rows=10**6)
    with pqext.open(out.getvalue()) as file:
        stats = file.row_groups[0].chunk(0).metadata.encoding_stats
        assert stats is not None
        assert stats[-1].count > 10


@pytest.mark.parametrize("metadata", [{"PARQUET:physical_type": "INT33"}, {"PARQUET:field_id": "x"}])
def test_invalid_field_metadata_names_the_column(metadata: dict[str, str]) -> None:
    schema = pa.schema([pa.field("d", pa.decimal128(9, 2), metadata=metadata)])
    with pytest.raises(ValueError, match="'d'"):
        pqext.write_table(schema.empty_table(), io.BytesIO())


def test_data_that_arrow_cannot_convert_is_rejected_by_column() -> None:
    far = pa.array([2**62], pa.int64()).cast(pa.timestamp("s"))
    with pytest.raises(ValueError, match="'c'"):
        pqext.write_table(pa.table({"c": far}), io.BytesIO())


def test_excessively_deep_schema_is_rejected() -> None:
    kind = pa.int32()
    for _ in range(400):
        kind = pa.struct([pa.field("x", kind)])
    with pytest.raises(pqext.LimitError, match="nested too deeply"):
        pqext.ParquetWriter(io.BytesIO(), pa.schema([pa.field("deep", kind)]))


@pytest.mark.parametrize("depth", [200, 290])
def test_lists_near_the_depth_limit_of_the_stack_are_written_or_rejected(depth: int) -> None:
    column = pa.array([1])
    for _ in range(depth):
        column = pa.ListArray.from_arrays([0, 1], column)
    out = io.BytesIO()
    try:
        pqext.write_table(pa.table({"deep": column}), out)
    except pqext.LimitError:
        return
    assert pqext.open(out.getvalue(), limits=pqext.Limits(schema_depth=1000)).num_rows == 1


def test_columns_of_one_file_are_read_by_many_threads(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(TABLE, path, row_group_rows=10)
    with pqext.open(path) as file:
        found: list[pa.Table] = []
        threads = [threading.Thread(target=lambda: found.append(file.read())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(table.equals(TABLE.cast(table.schema)) for table in found)
    assert len(found) == 8


def test_table_without_columns_preserves_its_row_count() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"a": [1, 2, 3]}).select([]), out, row_group_rows=2)
    with pqext.open(out.getvalue()) as file:
        assert [group.num_rows for group in file.row_groups] == [2, 1]
        assert file.read().num_rows == 3
    assert pq.ParquetFile(io.BytesIO(out.getvalue())).metadata.num_rows == 3


def test_zero_length_fixed_binary_is_rejected() -> None:
    with pytest.raises(TypeError, match="'b' has type fixed_size_binary"):
        pqext.write_table(pa.table({"b": pa.array([b""], pa.binary(0))}), io.BytesIO())


def test_writing_never_changes_the_process_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads create files meanwhile"))
    pqext.write_table(TABLE, tmp_path / "t.parquet")


def test_missing_folder_is_named_by_the_requested_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        pqext.write_table(TABLE, tmp_path / "no" / "t.parquet")
    assert caught.value.filename == str(tmp_path / "no" / "t.parquet")


@pytest.mark.parametrize("text", [b"\xff\xfe", b"a" * 63 + b"\xff" * 70, b"\x80" * 200])
def test_invalid_utf8_is_rejected_before_writing(text: bytes) -> None:
    table = pa.table({"s": pa.array([b"fine", text]).view(pa.string())})
    with pytest.raises(ValueError, match="not valid UTF-8"):
        pqext.write_table(table, io.BytesIO())


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("form", ["plain", "nulls", "lists", "lists and nulls"])
def test_invalid_utf8_is_located_by_its_row(form: str, row: int) -> None:
    texts: list[bytes | None] = [b"a"] * 6
    texts[row] = b"\xff"
    lists: list[list[bytes | None] | None] = [[text] if i % 2 else [b"b", b"b", text] for i, text in enumerate(texts)]
    if "nulls" in form:
        texts = [text if i == row else None for i, text in enumerate(texts)]
        lists = [[None, b"b", text] if i == row else [[], None, [None]][i % 3] for i, text in enumerate(texts)]
    values = pa.array(lists) if "lists" in form else pa.array(texts)
    if "lists" in form:
        values = pa.ListArray.from_arrays(values.offsets, values.values.view(pa.string()), mask=values.is_null())
    else:
        values = values.view(pa.string())
    with pytest.raises(ValueError, match=f"row {row} of the row group: .*not valid UTF-8"):
        pqext.write_table(pa.table({"s": values}), io.BytesIO())


def test_chunks_with_combined_dictionaries_beyond_their_index_type_are_written() -> None:
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array([f"{name}{i}" for i in range(100)]))
        for name in "ab"
    ]
    table = pa.table({"d": pa.chunked_array(chunks)})
    out = io.BytesIO()
    pqext.write_table(table, out)
    assert pq.read_table(io.BytesIO(out.getvalue()))["d"].to_pylist() == table["d"].to_pylist()


def test_device_or_pipe_is_not_replaced_and_a_folder_is_rejected_early(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is not a regular file"):
        pqext.ParquetWriter(tmp_path / "pipe", pa.schema([]))
    with pytest.raises(IsADirectoryError):
        pqext.ParquetWriter(tmp_path, pa.schema([]))
    assert os.listdir(tmp_path) == ["pipe"]
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_overwritten_file_preserves_its_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "file.parquet", tmp_path / "link.parquet"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    pqext.write_table(pa.table({"a": [1]}), link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert pqext.read_table(path).to_pydict() == {"a": [1]}


def test_path_may_be_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.parquet"
    pqext.write_table(pa.table({"a": [1]}), path)
    assert pqext.read_table(os.fsdecode(path)).to_pydict() == {"a": [1]}


def test_raw_file_with_partial_writes_receives_all_bytes() -> None:
    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.held = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.held += bytes(data)[:100]
            return min(len(data), 100)

    pipe = Pipe()
    pqext.write_table(TABLE, pipe)
    assert pqext.read_table(bytes(pipe.held)).equals(TABLE)


def test_created_by_follows_the_format_that_parquet_java_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    from pqext.core.format import created_by

    def unknown(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    for version in (lambda name: "1.2.3", unknown):
        monkeypatch.setattr(metadata, "version", version)
        name = created_by.created_by.__wrapped__()
        assert re.fullmatch(r"pqext version [\w.+]+", name)


@pytest.mark.parametrize("call", [
    lambda writer: writer.write_table(TABLE), lambda writer: writer.write_batch(TABLE.to_batches()[0]),
    lambda writer: writer.end_row_group(), lambda writer: writer.abort(), lambda writer: writer.close(),
])  # fmt: skip
def test_methods_of_a_writer_wait_for_each_other(call: Callable[[pqext.ParquetWriter], None]) -> None:
    writer = pqext.ParquetWriter(io.BytesIO(), TABLE.schema)
    thread = threading.Thread(target=call, args=(writer,))
    with writer._method_lock:
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
    thread.join()
    writer.abort()
