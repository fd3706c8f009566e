"""What a user asks of an open file: options, columns, row groups and batches, refused before anything is read."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import CorruptDataWarning, UnsupportedError


def file_of(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2)
    return sink.getvalue()


FILE = file_of(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))


def test_options_are_accepted_as_an_object_or_by_name() -> None:
    damaged = bytearray(FILE)
    damaged[10] ^= 0xFF
    for opened in (
        pqext.open(bytes(damaged), on_corrupt="skip"),
        pqext.open(bytes(damaged), pqext.ReadOptions(on_corrupt="skip")),
        pqext.open(bytes(damaged), pqext.ReadOptions(threads=1), on_corrupt="skip"),
    ):
        with pytest.warns(CorruptDataWarning, match="column a"):
            assert opened.read()["b"].to_pylist() == ["z"]
        assert opened.damage[0].column == "a"
    with pytest.raises(pqext.CorruptFileError):
        pqext.open(bytes(damaged)).read()
    with pytest.raises(TypeError, match="on_corupt"):
        pqext.open(FILE, on_corupt="skip")
    with pytest.raises(ValueError, match="on_corrupt"):
        pqext.open(FILE, on_corrupt="ignore")


@pytest.mark.parametrize(("arguments", "error"), [
    ({"batch_rows": 0}, ValueError),
    ({"batch_rows": 1.5}, TypeError),
    ({"batch_rows": "5"}, TypeError),
    ({"columns": ["c"]}, KeyError),
    ({"row_groups": [2]}, IndexError),
])
def test_invalid_batch_arguments_are_rejected_on_the_call(arguments: dict[str, object], error: type[Exception]) -> None:
    with pqext.open(FILE) as opened, pytest.raises(error):
        opened.iter_batches(**arguments)  # type: ignore[arg-type]


def test_batches_contain_the_selected_row_groups_and_columns() -> None:
    with pqext.open(FILE) as opened:
        batches = list(opened.iter_batches(1, ["b"], [1, 0]))
    assert [batch.to_pylist() for batch in batches] == [[{"b": "z"}], [{"b": "x"}], [{"b": "y"}]]


def test_duplicate_column_name_cannot_be_selected() -> None:
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    sink = io.BytesIO()
    pqext.write_table(twice, sink)
    opened = pqext.open(sink.getvalue())
    assert opened.read().columns == twice.columns
    assert opened.read(["b"]).to_pylist() == [{"b": 3}]
    with pytest.raises(KeyError, match="several columns are named 'a'"):
        opened.read(["a"])


def test_missing_column_suggests_the_nearest_name() -> None:
    file = pqext.open(FILE)
    with pytest.raises(KeyError, match=r"no column 'A'; did you mean 'a'\?"):
        file.read(["A"])
    with pytest.raises(KeyError, match="no column 'zzz'; the file has a, b"):
        file.read(["zzz"])
    long = pqext.open(file_of(pa.table({"n" * 1_000_000: [1], "m": [1]})))
    with pytest.raises(KeyError) as caught:
        long.read(["q" * 1_000_000])
    assert len(str(caught.value)) < 5_000


def test_column_chunk_is_returned_by_path() -> None:
    source = file_of(pa.table({"id": [1, 2], "at": [{"x": 1.5}, None]}))
    (group,) = pqext.open(source).row_groups
    assert group.chunk("at.x").node is group.chunk(1).node
    assert group.chunk("id").bounds().maximum == 2
    for path, message in (
        ("at.y", r"unknown column chunk 'at.y'; did you mean 'at.x'\? The columns are id, at.x"),
        ("id.x", r"unknown column chunk 'id\.x'"),
        ("at", "'at', which is a group: name a column within it, at.x"),
    ):
        with pytest.raises(KeyError, match=message):
            group.chunk(path)


def test_urls_of_unsupported_schemes_are_rejected_by_scheme() -> None:
    with pytest.raises(UnsupportedError, match=r"is not a local file, and neither pyarrow nor fsspec supports mem://"):
        pqext.open("mem://bucket/x.parquet")
    with pytest.raises(UnsupportedError, match=r"neither pyarrow nor fsspec supports mem:// .*; did you mean 'memory'"):
        pqext.write_table(pa.table({"a": [1]}), "mem://bucket/x.parquet")


def test_local_folder_may_have_the_name_of_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    pqext.write_table(pa.table({"a": [1]}), "s3://x.parquet")
    assert pqext.read_table("s3://x.parquet").to_pydict() == {"a": [1]}
