"""Byte arrays beyond what one Arrow array holds: an error that says what to do, or rows that are read one by one."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base import buffers
from pqext.core.base.errors import ArrayLimitError
from pqext.core.base.usage import Account
from pqext.core.read import leaf_column
from pqext.core.read.leaf_column import LeafColumn


def zeros_array(size: int) -> pa.Array:
    """One value of so many zeros, for which the system keeps no memory until they are looked at."""
    offsets = pa.py_buffer(np.array([0, size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(np.zeros(size, np.uint8))])


def test_batch_over_two_gibibytes_is_an_error_with_remedy() -> None:
    levels = np.zeros(1, np.int16)
    piece = LeafColumn(levels, levels, zeros_array((1 << 30) + 5))
    with pytest.raises(ArrayLimitError, match="read fewer rows at a time"):
        leaf_column.join([piece, piece])


WORDS = ["", "aa", "bbb", None, "cccc", "dd"]
NUMBERS = pa.array([1, 2, 3, 4, 5, 6])
TEXT = pa.array(WORDS)


@pytest.mark.parametrize(
    ("arrays", "size"),
    [
        ([TEXT, TEXT], 22),
        ([TEXT.slice(1, 2), TEXT.slice(3), TEXT.slice(2, 0)], 11),
        ([TEXT.slice(2, 1), TEXT.slice(5, 1), pa.array([], pa.string())], 5),
        ([TEXT.cast(pa.binary()).slice(4), TEXT.cast(pa.binary()).slice(0, 3)], 11),
        ([TEXT.dictionary_encode(), TEXT.slice(2).dictionary_encode()], 20),
    ],
    ids=["whole", "slices", "single values", "binary", "dictionaries"],
)
def test_joined_byte_arrays_have_exactly_the_maximum_size(
    arrays: list[pa.Array], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = [LeafColumn(None, None, array) for array in arrays]
    for bound in (size, size + 1):
        monkeypatch.setattr(buffers, "ARRAY_BYTES", bound)
        assert leaf_column.join(pieces).array.to_pylist() == [value for array in arrays for value in array.to_pylist()]
    monkeypatch.setattr(buffers, "ARRAY_BYTES", size - 1)
    with pytest.raises(ArrayLimitError, match=f"more than {size - 1} bytes"):
        leaf_column.join(pieces)
    monkeypatch.setattr(buffers, "ARRAY_BYTES", 0)
    assert leaf_column.join(pieces[:1]) is pieces[0]


def test_arrays_without_text_are_joined_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "ARRAY_BYTES", 0)
    once = TEXT.dictionary_encode()
    for array in (NUMBERS, pa.array([b"abc"], pa.binary(3)), once):
        pieces = [LeafColumn(None, None, part) for part in (array, array)]
        assert leaf_column.join(pieces).array.to_pylist() == array.to_pylist() * 2


def test_copies_of_views_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["x" * 101, "y" * 90, None] * 1000
    out = io.BytesIO()
    pqext.write_table(pa.table({"s": words}), out)
    sizes: list[int] = []
    reserve = Account.reserve
    monkeypatch.setattr(Account, "reserve", lambda account, size: (sizes.append(size), reserve(account, size))[1])
    monkeypatch.setattr(buffers, "ARRAY_BYTES", 40_000)
    with pqext.open(out.getvalue()) as file:
        batches = list(file.iter_batches(3000))
    assert [value for batch in batches for value in batch["s"].to_pylist()] == words
    for batch in batches:
        values = batch["s"].to_pylist()
        assert sum(len(value or "") for value in values) + 4 * len(values) in sizes


@pytest.mark.parametrize("page_rows", [1, 2])
def test_rows_that_fill_their_pages_are_read_without_copying(
    page_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"l": [["a"], ["b", "c"], [], ["d"]], "s": ["w", "x", "y", "z"]})
    out = io.BytesIO()
    pqext.write_table(table, out, page_rows=page_rows)
    joined: list[int] = []
    real = pa.concat_arrays

    def counted(arrays: list[pa.Array], *rest: object) -> pa.Array:
        joined.append(len(arrays))
        return real(arrays, *rest)

    monkeypatch.setattr(pa, "concat_arrays", counted)
    with pqext.open(out.getvalue()) as file:
        batches = list(file.iter_batches(page_rows))
        schema = file.arrow_schema
    assert joined == []
    assert pa.Table.from_batches(batches, schema).equals(table)


def texts(rows: int) -> dict[str, Any]:
    names = [f"{number:03d}" * (number % 7) for number in range(rows)]
    return {
        "text": names,
        "again": [names[number % 5] for number in range(rows)],
        "lists": [names[number : number + number % 4] for number in range(rows)],
        "struct": [{"deep": [{"text": name}]} if len(name) % 2 else None for name in names],
        "map": pa.array([[(name, 1)] for name in names], pa.map_(pa.string(), pa.int32())),
        "number": list(range(rows)),
    }


@pytest.mark.parametrize("options", [
    {}, {"page_version": 2, "dictionary": False}, {"encodings": {"text": "delta_byte_array"}}, {"page_rows": 400},
], ids=str)
@pytest.mark.parametrize("bound", [pytest.param(200, marks=pytest.mark.slow), 1000, 5000])
def test_row_group_larger_than_one_array_is_read_in_chunks(
    bound: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table(texts(400))
    out = io.BytesIO()
    pqext.write_table(table, out, **{"page_rows": 2, **options})
    with pqext.open(out.getvalue()) as file:
        monkeypatch.setattr(buffers, "ARRAY_BYTES", bound)
        for name in table.column_names:
            found = file.read([name])
            found.validate(full=True)
            assert found.equals(table.select([name])), name
        found = file.read()
        assert found.equals(table)
        assert found["text"].num_chunks > 1
        assert pa.Table.from_batches(list(file.iter_batches(300)), file.arrow_schema).equals(table)
        some = file.read(rows={0: [range(5, 150), range(180, 390)]})
        assert some.equals(pa.concat_tables([table.slice(5, 145), table.slice(180, 210)]))
    assert pqext.read_table(out.getvalue()).equals(table)


@pytest.mark.parametrize("form", ["string", "view", "dictionary"])
@pytest.mark.parametrize(("rows", "page_rows"), [(3000, 3000), (300_000, 300_000), (50_000, 20_000)])
def test_page_that_expands_beyond_one_array_is_read_in_chunks(
    rows: int, page_rows: int, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indices of few bytes name long values many times."""
    words = pa.array([["x" * 100], ["y" * 90]]).take(pa.array(np.arange(rows) % 2))
    table = pa.table({"s": words.flatten(), "l": words})
    out = io.BytesIO()
    pqext.write_table(table, out, page_rows=page_rows, page_bytes=1 << 30)
    monkeypatch.setattr(buffers, "ARRAY_BYTES", 2_000_000 if rows > 3000 else 40_000)
    for name in table.column_names:
        found = pqext.read_table(out.getvalue(), [name], strings=form)
        assert found[name].num_chunks > 1 or form != "string"
        found.validate(full=True)
        assert found.cast(table.select([name]).schema).equals(table.select([name]))
    with pqext.open(out.getvalue(), strings=form) as file:
        some = file.read(["s"], rows={0: [range(5, 1500), range(1800, 2900)]})
        assert some["s"].to_pylist() == table["s"].to_pylist()[5:1500] + table["s"].to_pylist()[1800:2900]


def test_row_that_exceeds_an_array_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"l": [["a"], ["x" * 100] * 30_000, ["b"]]})
    out = io.BytesIO()
    pqext.write_table(table, out)
    monkeypatch.setattr(buffers, "ARRAY_BYTES", 1_000_000)
    with pytest.raises(pqext.LimitError, match="more than 1000000 bytes"):
        pqext.read_table(out.getvalue())
    assert pqext.read_table(out.getvalue(), strings="view")["l"].to_pylist() == table["l"].to_pylist()


@pytest.mark.skipif(not os.environ.get("PQEXT_LARGE_FILES"), reason="PQEXT_LARGE_FILES is not set: 10 GB of memory")
def test_row_group_over_two_gibibytes_is_read_in_chunks(tmp_path: Path) -> None:
    size = 900 << 20
    chunks = [pa.chunked_array([zeros_array(size)] * 3)]
    chunks.append(pa.chunked_array([pa.ListArray.from_arrays([0, 1], zeros_array(size))] * 3))
    pq.write_table(
        pa.table(chunks, ["flat", "lists"]), tmp_path / "large.parquet", row_group_size=3, use_dictionary=False,
        compression="snappy", write_statistics=False,
    )
    for name in ("flat", "lists"):
        column = pqext.read_table(tmp_path / "large.parquet", columns=[name]).column(0)
        assert len(column) == 3
        assert column.num_chunks > 1
        for chunk in column.chunks:
            values = chunk.flatten() if name == "lists" else chunk
            assert pc.binary_length(values).to_pylist() == [size] * len(chunk)
        del column, chunk, values


@pytest.mark.skipif(not os.environ.get("PQEXT_LARGE_FILES"), reason="PQEXT_LARGE_FILES is not set: 5 GB of memory")
def test_page_that_expands_beyond_two_gibibytes_is_read(tmp_path: Path) -> None:
    rows, size = 25_000, 100_000
    values = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * size]))
    pq.write_table(pa.table({"s": values}), tmp_path / "large.parquet", store_schema=False)
    limits = pqext.Limits(memory_bytes=8 << 30)
    column = pqext.read_table(tmp_path / "large.parquet", limits=limits)["s"]
    assert column.num_chunks > 1
    assert sum(pc.sum(pc.binary_length(chunk)).as_py() for chunk in column.chunks) == rows * size
