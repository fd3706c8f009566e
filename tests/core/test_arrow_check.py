"""Arrays whose buffers contradict each other are refused by column; nothing is written of them, nothing crashes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import LimitError
from pqext.core.schema.arrow_check import check_array

LONG = b"abcdefghijklmnopqrstuvwxyz"


def buffer(values: Any, kind: str) -> pa.Buffer:
    return pa.py_buffer(np.array(values, kind).tobytes())


def views(length: int, place: int, offset: int, kind: pa.DataType) -> pa.Array:
    """Two views: one that holds its bytes, and one into the first of one buffers."""
    entries = struct.pack("<i12s", 1, b"a") + struct.pack("<i4sii", length, LONG[:4], place, offset)
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(entries), pa.py_buffer(LONG)])


def list_view(offset: int, size: int) -> pa.Array:
    offsets, sizes = buffer([0, offset], "i4"), buffer([1, size], "i4")
    return pa.Array.from_buffers(pa.list_view(pa.int64()), 2, [None, offsets, sizes], children=[pa.array([1, 2, 3])])


def listed(kind: pa.DataType, offsets: pa.Buffer, child: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(kind, 3, [pa.py_buffer(b"\x05"), offsets], children=[child])


def text(kind: pa.DataType, validity: bytes) -> pa.Array:
    return pa.Array.from_buffers(
        kind, 3, [pa.py_buffer(validity), buffer([0, 3, 1, 3], "i4"), pa.py_buffer(b"abc")]
    )


def indexed(*indices: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), pa.array(["a", "b"]), safe=False)


INTEGERS = pa.array([1, 2, 3])
BROKEN: dict[str, pa.Array] = {
    "a view into no buffer": views(20, 7, 0, pa.string_view()),
    "a view into a buffer before the first": views(20, -1, 0, pa.string_view()),
    "a view behind its buffer": views(20, 0, 99_999_999, pa.binary_view()),
    "a view before its buffer": views(20, 0, -99_999_999, pa.binary_view()),
    "a view longer than its buffer": views((1 << 31) - 1, 0, 0, pa.string_view()),
    "a view of negative length": views(-20, 0, 0, pa.string_view()),
    "a list view behind its values": list_view(99_999_999, 2),
    "a list view before its values": list_view(-4, 2),
    "a list view of negative size": list_view(1, -2),
    "a list view of more than all values": list_view(1, (1 << 31) - 1),
    "lists whose offsets descend": listed(pa.list_(pa.int64()), buffer([0, 3, 1, 3], "i4"), INTEGERS),
    "large lists whose offsets leap": listed(pa.large_list(pa.int64()), buffer([0, 1 << 33, 2, 3], "i8"), INTEGERS),
    "strings whose offsets descend": text(pa.string(), b"\x07"),
    "strings and nulls whose offsets descend": text(pa.binary(), b"\x05"),
    "strings in a struct": pa.StructArray.from_arrays([text(pa.string(), b"\x05")], ["x"]),
    "indices behind a dictionary": indexed(0, 1, 99_999_999),
    "indices before a dictionary": indexed(0, -1),
    "indices into an empty dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int32()), pa.array([], pa.string()), safe=False
    ),
    "indices below a list": pa.ListArray.from_arrays([0, 2], indexed(0, 99)),
    "run ends that begin below zero": pa.Array.from_buffers(
        pa.run_end_encoded(pa.int32(), pa.int64()), 10, [None],
        children=[pa.array([-5, 10], pa.int32()), pa.array([1, 2])],
    ),
    "a number of nulls": pa.Array.from_buffers(
        pa.string(), 3, [pa.py_buffer(b"\x00"), buffer([0, 1, 2, 3], "i4"), pa.py_buffer(b"abc")], null_count=1
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_inconsistent_array_is_rejected_by_column_and_leaves_no_file(fault: str, tmp_path: Path) -> None:
    table = pa.table({"good": [1] * len(BROKEN[fault]), "c": BROKEN[fault]})
    with pytest.raises(ValueError, match="column 'c' is not a valid Arrow array") as caught:
        pqext.write_table(table, tmp_path / "x.parquet")
    assert not isinstance(caught.value, pa.ArrowException)
    assert not list(tmp_path.iterdir())


def test_invalid_data_under_nulls_is_accepted_like_arrow() -> None:
    indices = pa.Array.from_buffers(pa.int32(), 2, [pa.py_buffer(b"\x01"), buffer([0, 77_777_777], "i4")])
    hidden = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x01"), buffer([0, 1, 3], "i4"), pa.py_buffer(b"a\xff\xfe")]
    )
    table = pa.table({"d": pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False), "s": hidden})
    out = pa.BufferOutputStream()
    pqext.write_table(table, out)
    found = pqext.open(out.getvalue()).read()
    assert found["d"].to_pylist() == found["s"].to_pylist() == ["a", None]


@pytest.mark.parametrize("wrap", [lambda map: map, pa.list_, lambda map: pa.struct({"a": map})])
def test_maps_with_keys_of_the_null_type_are_rejected_by_column(wrap: Any) -> None:
    """Arrow's own views of them abort the process."""
    keys = pa.field("key", pa.int8(), False).with_type(pa.null())
    array = pa.array([None], wrap(pa.map_(keys, pa.string())))
    check_array(array)
    with pytest.raises(TypeError, match=r"column 'm.*' is a map with keys of the null type"):
        pqext.write_table(pa.table({"m": array}), pa.BufferOutputStream())


@pytest.mark.parametrize("item", [pa.null(), pa.struct({"b": pa.null()})])
def test_maps_with_nulls_of_the_null_type_are_read_by_pyarrow(item: pa.DataType) -> None:
    array = pa.array([[("a", None), ("b", None)]], pa.map_(pa.string(), item))
    out = pa.BufferOutputStream()
    pqext.write_table(pa.table({"m": array}), out)
    assert pq.read_table(pa.BufferReader(out.getvalue()))["m"].to_pylist() == array.to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_over_4_gib_are_rejected_like_other_byte_arrays(kind: Any, tmp_path: Path) -> None:
    """One buffer of a mebibyte, seen so often that Arrow's cast to 32-bit offsets runs over."""
    once, count = b"a" * (1 << 20), 2049
    entries = struct.pack("<i4sii", len(once), once[:4], 0, 0) * count
    validity = pa.py_buffer(b"\xfe" + b"\xff" * (count // 8))
    array = pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(entries), pa.py_buffer(once)])
    with pytest.raises(LimitError, match=r"more than 2 GiB of byte arrays in one row group.*column c"):
        pqext.write_table(pa.table({"c": array}), tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())
    nested = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), array.slice(0, 3))
    pqext.write_table(pa.table({"l": nested}), tmp_path / "x.parquet", row_group_rows=1)
    assert pqext.open(tmp_path / "x.parquet").read()["l"].to_pylist() == nested.to_pylist()


HIDDEN = pa.struct([("word", pa.dictionary(pa.int8(), pa.string()))])  # pyarrow hides an index into nothing


@pytest.mark.parametrize("array", [
    pa.array([None], HIDDEN),
    pa.array([{"inner": None}], pa.struct([("inner", HIDDEN)])),
    pa.array([[None, None], None, []], pa.list_(HIDDEN)),
    pa.array([[None], None], pa.large_list(HIDDEN)),
    pa.array([[None, None], None], pa.list_(HIDDEN, 2)),
    pa.array([[("a", None)], None], pa.map_(pa.string(), HIDDEN)),
], ids=lambda array: str(array.type))
def test_values_under_null_structs_are_not_checked(array: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        array.validate(full=True)
    pqext.write_table(pa.table({"c": array}), tmp_path / "c")
    assert pqext.read_table(tmp_path / "c")["c"].to_pylist() == array.to_pylist()


@pytest.mark.parametrize("wrap", [
    lambda lists: lists,
    lambda lists: pa.StructArray.from_arrays([lists], ["x"]),
    lambda lists: pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), lists),
    lambda lists: pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), lists),
], ids=["alone", "in a struct", "in a list", "run-end encoded"])
def test_fixed_size_lists_too_short_for_their_offset_are_rejected(wrap: Any, tmp_path: Path) -> None:
    kind, values = pa.list_(pa.int64(), 2), pa.array([1, 2, 3, 4])
    good = pa.Array.from_buffers(kind, 2, [None], offset=0, children=[values])
    bad = pa.Array.from_buffers(kind, 2, [None], offset=1, children=[values])
    bad.validate(full=True)  # Arrow ignores the offset here; the format requires (offset + length) * 2 elements
    pqext.write_table(pa.table({"c": wrap(good)}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match="column 'c' is not a valid Arrow array: 2 lists of 2 elements at offset 1"):
        pqext.write_table(pa.table({"c": wrap(bad)}), tmp_path / "y.parquet")
    assert not (tmp_path / "y.parquet").exists()


@pytest.mark.parametrize(("type", "width"), [(pa.string(), "i4"), (pa.large_binary(), "i8")])
def test_offsets_with_odd_padding_are_accepted(type: pa.DataType, width: str) -> None:
    offsets = np.array([0, 9, 1, 3], width).tobytes() + b"\0"
    array = pa.Array.from_buffers(type, 1, [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")], offset=2)
    array.validate(full=True)
    assert check_array(array).equals(pa.array(["bc"]).cast(type))
