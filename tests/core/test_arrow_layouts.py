"""Arrow arrays of every layout are written as their values; what Parquet cannot hold is refused."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.columns import read, written

import pqext
from pqext.core.format.metadata import (
    Type,
)

FIXED = Type.FIXED_LEN_BYTE_ARRAY


@pytest.mark.spec("logical.json", "logical.uuid")
def test_arrow_extension_types_are_stored_by_annotation() -> None:
    table = pa.table(
        {
            "j": pa.array(["{}", None], pa.json_()),
            "u": pa.array([uuid.UUID(int=5).bytes, None], pa.uuid()),
            "l": pa.ListArray.from_arrays(pa.array([0, None, 1]), pa.array(["1"], pa.json_())),
            "b": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
        }
    )
    data = written(table)
    assert [node.logical_name for node in pqext.open(data).schema.leaves] == ["JSON", "UUID", "JSON", "INTEGER"]
    theirs = pq.read_table(io.BytesIO(data))
    assert (theirs["j"].type, theirs["u"].type) == (pa.json_(), pa.uuid())
    found = read(data)
    assert (found["j"].to_pylist(), found["l"].to_pylist()) == (["{}", None], [["1"], None])
    assert pl.from_arrow(found.select(["u"])).height == 2


ODD: dict[str, tuple[pa.Array, list[Any]]] = {
    "fixed-size list": (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    "large list": (pa.array([[1], None, []], pa.large_list(pa.int8())), [[1], None, []]),
    "list view": (pa.array([[1], None, [2, 3]], pa.list_view(pa.int16())), [[1], None, [2, 3]]),
    "large list view": (pa.array([["a"], None, []], pa.large_list_view(pa.string())), [["a"], None, []]),
    "large string": (pa.array(["a", None], pa.large_string()), ["a", None]),
    "string view": (pa.array(["a", None, "b" * 30], pa.string_view()), ["a", None, "b" * 30]),
    "binary view": (pa.array([b"a", None, b"b" * 30], pa.binary_view()), [b"a", None, b"b" * 30]),
    "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    "dictionary of lists": (
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array([[1], [2, 3]])), [[2, 3], None, [1]]
    ),
    "list of dictionaries": (
        pa.array([["a", None], None, ["a"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        [["a", None], None, ["a"]],
    ),
    "run ends": (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", None])), ["a", "a", None]),
    "struct of run ends": (
        pa.StructArray.from_arrays([pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([7, 8]))], ["x"]),
        [{"x": 7}, {"x": 8}, {"x": 8}],
    ),
    "date64": (pa.array([dt.date(2024, 2, 29), None], pa.date64()), [dt.date(2024, 2, 29), None]),
    "seconds": (pa.array([5, None], pa.timestamp("s")), [dt.datetime(1970, 1, 1, 0, 0, 5), None]),
    "seconds of the day": (pa.array([5, None], pa.time32("s")), [dt.time(0, 0, 5), None]),
    "narrow decimal": (pa.array([Decimal("1.5"), None], pa.decimal32(5, 1)), [Decimal("1.5"), None]),
    "decimal of few digits in 256 bits": (pa.array([Decimal("1.5")], pa.decimal256(5, 1)), [Decimal("1.5")]),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("cut", [False, True])
def test_arrays_of_other_layouts_are_written_by_value(name: str, cut: bool) -> None:
    array, expected = ODD[name]
    table = pa.table({"c": array})
    if cut:
        table, expected = table.slice(1), expected[1:]
    data = written(table)
    assert read(data)["c"].to_pylist() == expected
    assert pq.read_table(io.BytesIO(data))["c"].to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([86_400_000 + 5], pa.date64()), "lose data"),
        (pa.array([2**62], pa.timestamp("s")), "out of bounds"),
    ],
)
def test_types_unsupported_by_parquet_are_rejected_by_column(array: pa.Array, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"'c'.*{message}"):
        written(pa.table({"c": array}))


_PAIR = pa.list_(pa.field("element", pa.bool_(), nullable=False), 2)
_VIEWED = pa.struct([("text", pa.binary()), ("view", pa.binary_view()), ("pair", _PAIR)])


@pytest.mark.parametrize(
    "kind", [pa.list_(_VIEWED, 2), pa.list_(_VIEWED), pa.large_list(_VIEWED), pa.list_view(_VIEWED)], ids=str
)
def test_views_next_to_nulls_in_a_null_struct_are_stored(kind: pa.DataType) -> None:
    first = [None, {"text": None, "view": b"x" * 20, "pair": None}]
    array = pa.array([first, None, [{"text": b"q", "view": None, "pair": [True, False]}, None]], kind)
    for part in (array, array.slice(1), array.slice(0, 1)):
        out = io.BytesIO()
        pqext.write_table(pa.table({"c": part}), out)
        assert pqext.read_table(out.getvalue())["c"].to_pylist() == part.to_pylist()
        assert pq.read_table(io.BytesIO(out.getvalue()))["c"].to_pylist() == part.to_pylist()


def padded(array: pa.Array) -> pa.Array:
    """Copy an array with a further byte at the end of each buffer, after a first row that its offset skips."""
    if pa.types.is_dictionary(array.type):
        return pa.DictionaryArray.from_arrays(padded(array.indices), padded(array.dictionary))
    array = pa.concat_arrays([array[:1], array])
    buffers = [None if buffer is None else pa.py_buffer(buffer.to_pybytes() + b"\0") for buffer in array.buffers()]
    children = None
    if pa.types.is_list(array.type):
        buffers, children = buffers[:2], [array.values]
    return pa.Array.from_buffers(array.type, len(array) - 1, buffers, offset=1, children=children)


PADDED: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "int32, DELTA_BINARY_PACKED": (pa.array([1, None, 3], pa.int32()), {"encodings": "delta_binary_packed"}),
    "int64": (pa.array([1, None, 3]), {"bloom_filters": True}),
    "double, ALP": (pa.array([1.5, None, 3]), {"encodings": "alp"}),
    "float, BYTE_STREAM_SPLIT": (pa.array([1.5, None], pa.float32()), {"encodings": "byte_stream_split"}),
    "boolean": (pa.array([True, None, False]), {}),
    "timestamp": (pa.array([1, None, 3], pa.timestamp("us")), {}),
    "decimal": (pa.array([1, None, 3], pa.int32()).cast(pa.decimal128(12, 2)), {}),
    "string, DELTA_LENGTH_BYTE_ARRAY": (pa.array(["a", None, "bc"]), {"encodings": "delta_length_byte_array"}),
    "string, DELTA_BYTE_ARRAY": (pa.array(["a", None, "bc"]), {"encodings": "delta_byte_array"}),
    "string, PLAIN": (pa.array(["a", None, "bc"]), {"dictionary": False, "bloom_filters": True}),
    "large string": (pa.array(["a", None, "bc"], pa.large_string()), {}),
    "string view": (pa.array(["a", None, "b" * 30], pa.string_view()), {}),
    "list": (pa.array([[1], None, [2, 3]]), {}),
    "dictionary": (pa.array(["a", None, "a"]).dictionary_encode(), {}),
}


@pytest.mark.parametrize("name", PADDED)
def test_buffers_with_odd_padding_are_written_like_others(name: str) -> None:
    array, options = PADDED[name]
    table = pa.table({"a": padded(array)})
    table.validate(full=True)
    data = written(table, **{"dictionary": False, **options})
    assert read(data)["a"].to_pylist() == array.to_pylist()
    assert data == written(pa.table({"a": array}), **{"dictionary": False, **options})
    assert pq.read_table(io.BytesIO(written(table)))["a"].to_pylist() == array.to_pylist()
