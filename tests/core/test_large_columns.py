"""Byte arrays beyond what one Arrow array holds: an error that says what to do, or rows that are read one by one."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext.core import leaf_column
from pqext.core.leaf_column import LeafColumn


def hollow(size: int) -> pa.Array:
    """One value of so many zeros, for which the system keeps no memory until they are looked at."""
    offsets = pa.py_buffer(np.array([0, size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, pa.py_buffer(np.zeros(size, np.uint8))])


def test_more_than_two_gibibytes_in_one_batch_is_an_error_that_says_what_to_do() -> None:
    levels = np.zeros(1, np.int16)
    piece = LeafColumn(levels, levels, hollow((1 << 30) + 5))
    with pytest.raises(pqext.LimitError, match="read fewer rows at a time"):
        leaf_column.join([piece, piece])


@pytest.mark.parametrize("page_rows", [1, 2])
def test_rows_that_fill_their_pages_are_read_without_joining_them(
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
