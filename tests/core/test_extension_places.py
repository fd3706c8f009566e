"""Extensions are written and listed by their place in the metadata."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.extension.framing import CONTAINER, ExtensionContainer
from pqext.core.read.second_copy import SECOND_COPY, find_second_copy
from reference import thrift_package

MINE = UUID(int=99)
TABLE = pa.table(
    {
        "a": pa.array(range(1000)),
        "b": pa.array([i / 7 for i in range(1000)]),
        "n": pa.array([{"x": i if i % 3 else None} for i in range(1000)]),
    }
)


def written(table: pa.Table = TABLE, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, row_group_rows=400, **options)
    return out.getvalue()


def same_everywhere(data: bytes, table: pa.Table, tmp_path: Any) -> None:
    """Readers that know nothing of extensions read the table."""
    path = tmp_path / "file.parquet"
    path.write_bytes(data)
    assert pq.read_table(path) == table
    assert duckdb.connect().read_parquet(str(path)).to_arrow_table().to_pylist() == table.to_pylist()
    assert pl.read_parquet(path).to_arrow().to_pylist() == table.to_pylist()
    assert pqext.open(path).read() == table


@pytest.mark.spec("extension.any-structure", "extension.ignored")
def test_extensions_are_written_and_listed_by_path(tmp_path: Any) -> None:
    extensions = {
        "file": b"of the file",
        "n.x": b"of the column",
        "schema[1]": b"",
        "row_groups[0]": b"of a row group",
        "row_groups[*].columns[0]": b"of every chunk",
        "row_groups[1].columns[1].meta_data.statistics": b"of statistics",
        "column_orders[2]": b"of an order",
    }
    data = written(extensions=extensions)
    with pqext.open(data) as file:
        assert file.extensions == {
            "file": b"of the file",
            "schema[1]": b"",
            "row_groups[0]": b"of a row group",
            "row_groups[1].columns[1].meta_data.statistics": b"of statistics",
            "column_orders[2]": b"of an order",
            **{f"row_groups[{i}].columns[0]": b"of every chunk" for i in range(3)},
            **{f"row_groups[{i}].columns[2].meta_data": b"of the column" for i in range(3)},
        }
        raw = bytes(file.footer.raw)
    same_everywhere(data, TABLE, tmp_path)
    assert thrift_package.read("FileMetaData", raw).num_rows == 1000


def test_file_without_extensions_lists_none() -> None:
    assert pqext.open(written()).extensions == {}


@pytest.mark.spec("extension.container")
def test_several_extensions_at_one_path_form_a_container() -> None:
    data = written(extensions={"file": {MINE: b"one", UUID(int=5): b"two"}})
    stored = pqext.open(data).extensions["file"]
    assert dict(ExtensionContainer.decode(stored) or {}) == {MINE: b"one", UUID(int=5): b"two"}
    assert ExtensionContainer.parse(pqext.extension.find_framed(data, CONTAINER) or b"")[MINE] == b"one"


@pytest.mark.parametrize(
    ("extensions", "message"),
    [
        ({"nowhere": b""}, "'nowhere', which is neither a metadata path nor one of a, b, n.x"),
        ({"n": b""}, "'n', which is neither"),
        ({"row_groups[9]": b""}, r"unknown metadata path 'row_groups\[9\]'"),
        ({"row_groups[0].num_rows": b""}, "the file has no structure 'num_rows'"),
        ({"row_groups[0].columns": b""}, "the file has no structure 'columns'"),
        ({"row_groups[0].a b": b""}, "'a b' is not a field"),
        ({"schema[0].unknown": b""}, "the file has no structure 'unknown'"),
        ({"file": b"", "row_groups[0].fields[0]": b""}, "the file has no structure 'fields'"),
    ],
)
def test_missing_extension_path_is_rejected_by_name(
    extensions: dict[str, bytes], message: str, tmp_path: Any
) -> None:
    path = tmp_path / "file.parquet"
    with pytest.raises(ValueError, match=message):
        pqext.write_table(TABLE, path, extensions=extensions)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("payload", ["text", 5, {MINE: "text"}, {"name": b""}])
def test_payload_must_be_bytes(payload: Any) -> None:
    with pytest.raises(TypeError):
        written(extensions={"file": payload})


@pytest.mark.spec("extension.second-copy", "extension.disambiguation")
@pytest.mark.parametrize("version", [1, 2])
def test_only_readers_that_support_it_use_the_second_copy_of_a_column(version: int, tmp_path: Any) -> None:
    table = TABLE.append_column("c", pa.array([None if i % 5 else [i / 3, None] for i in range(1000)]))
    options: dict[str, Any] = {"dictionary": False, "page_version": version}
    plain = written(table, **options)
    data = written(
        table, second_encodings={"b": "byte_stream_split", "c.list.element": "byte_stream_split"},
        extensions={"b": {MINE: b"mine"}}, **options,
    )
    same_everywhere(data, table, tmp_path)
    with pqext.open(data) as file, pqext.open(plain) as ordinary:
        for group, before in zip(file.row_groups, ordinary.row_groups, strict=True):
            old = [chunk.byte_range for chunk in group.chunks()]
            new = [find_second_copy(chunk).byte_range for chunk in group.chunks()]
            # The copies lie together at the start of the row group, the old chunks behind them as they always did.
            assert new[0] == old[0]
            assert new[2] == old[2]
            assert new[1][0] < new[3][0] < old[0][0] < old[1][0] < old[2][0] < old[3][0]
            assert sum(new[1]) == new[3][0]
            assert sum(new[3]) == old[0][0]
            assert group.metadata.file_offset == old[0][0]
            for chunk, same in zip(group.chunks(), before.chunks(), strict=True):
                mine, theirs = chunk.byte_range, same.byte_range
                assert data[mine[0] : sum(mine)] == plain[theirs[0] : sum(theirs)]
            copied = find_second_copy(group.chunk(1)).metadata
            assert pqext.core.format.enums.Encoding.BYTE_STREAM_SPLIT in copied.encodings
            stored = file.extensions[f"row_groups[{group.index}].columns[1].meta_data"]
            assert (ExtensionContainer.decode(stored) or {})[MINE] == b"mine"

    # Whoever reads the copies does not touch the old pages: ruin these, and then the others.
    knowing = pqext.ReadOptions(second_copies=True)
    for chosen, option in ((1, knowing), (0, None)):
        ruined = bytearray(data)
        with pqext.open(data) as file:
            for group in file.row_groups:
                for leaf in (1, 3):
                    chunk = group.chunk(leaf)
                    start, length = (chunk if chosen else find_second_copy(chunk)).byte_range
                    ruined[start : start + length] = b"\xff" * length
        with pqext.open(bytes(ruined), option) as file:
            assert file.read() == table


@pytest.mark.spec("extension.second-copy")
def test_small_second_copies_are_read() -> None:
    data = bytearray(written(second_encodings={"b": "byte_stream_split"}, dictionary=False))
    with pqext.open(bytes(data)) as file:
        for group in file.row_groups:
            start, length = find_second_copy(group.chunk(1)).byte_range
            data[start : start + length] = b"\xff" * length
    with pqext.open(bytes(data)) as file:
        assert file.read() == TABLE
    with pqext.open(bytes(data), pqext.ReadOptions(second_copies=True)) as file, pytest.raises(CorruptFileError):
        file.read()


@pytest.mark.spec("extension.second-copy")
def test_second_copies_remain_valid_after_concatenation(tmp_path: Any) -> None:
    data = written(second_encodings={"b": "byte_stream_split"}, dictionary=False)
    joined = io.BytesIO()
    pqext.concatenate([data, data], joined, extensions="keep")
    twice = pa.concat_tables([TABLE, TABLE])
    same_everywhere(joined.getvalue(), twice, tmp_path)
    with pqext.open(joined.getvalue(), pqext.ReadOptions(second_copies=True)) as file:
        assert all(find_second_copy(group.chunk(1)).byte_range < group.chunk(1).byte_range for group in file.row_groups)
        assert file.read() == twice


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"second_encodings": {"nope": "plain"}}, "second_encodings has column 'nope'"),
        ({"second_encodings": {"b": "fancy"}}, "second_encodings must be one of"),
        ({"second_encodings": {"b": "plain"}, "extensions": {"b": b"raw"}}, "must be a mapping from UUIDs to bytes"),
    ],
)
def test_unwritable_second_copies_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(**options)


def test_second_copy_of_another_column_is_rejected() -> None:
    data = written(second_encodings={"a": "plain", "b": "plain"}, dictionary=False)
    with pqext.open(data) as file:
        stored = ExtensionContainer.decode(file.extensions["row_groups[0].columns[0].meta_data"])
    assert stored is not None
    wrong = {"row_groups[*].columns[1].meta_data": {SECOND_COPY: stored[SECOND_COPY]}}
    with pqext.open(written(extensions=wrong), pqext.ReadOptions(second_copies=True)) as file:
        assert file.read(["a"]).num_rows == 1000
        with pytest.raises(pqext.CorruptFileError, match=r"belongs to another column chunk \[.*column b"):
            file.read(["b"])
