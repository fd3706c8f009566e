"""Arrow arrays in layouts that are rare, or that break Arrow's own rules as the C interface lets them through."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.types import plain_list

ROWS = 10
METADATA = pa.array([b"\x01\0\0"] * ROWS, pa.binary())
NONE = pa.nulls(ROWS, pa.binary())
VALUES = pa.array([b"\x0c\x05"] * ROWS, pa.binary())
NUMBERS = pa.array(range(ROWS), pa.int64())


def struct(**children: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(children.values()), list(children))


def shredded(typed: pa.Array) -> pa.StructArray:
    rows = len(typed)
    return struct(metadata=METADATA[:rows], value=NONE[:rows], typed_value=typed)


ELEMENTS = struct(value=NONE, typed_value=NUMBERS)
ELEMENT = pa.field("element", ELEMENTS.type)


def buffer(numbers: Any, width: type) -> pa.Buffer:
    return pa.py_buffer(np.array(numbers, width).tobytes())


class _ArrowArray(ctypes.Structure):
    """The C struct, of which only what stands before and at the children is looked at."""


_ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.c_void_p), ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
    *((name, ctypes.c_void_p) for name in ("dictionary", "release", "private_data")),
]  # fmt: skip


def with_false_length(array: pa.Array, path: tuple[int, ...], length: int) -> pa.Array:
    """``array`` as the C interface gives it when its child at ``path`` says that it is of another length."""
    exported, schema = _ArrowArray(), ctypes.create_string_buffer(256)
    array._export_to_c(ctypes.addressof(exported), ctypes.addressof(schema))
    place = exported
    for step in path:
        place = place.children[step].contents
    place.length = length
    return pa.Array._import_from_c(ctypes.addressof(exported), ctypes.addressof(schema))


READERS: dict[str, Callable[[pa.Array], Any]] = {
    "to_json": variant.to_json,
    "infer_schema": variant.infer_schema,
    "validate": variant.validate,
    "find_faults": variant.find_faults,
    "unshred": variant.unshred,
    "shred": lambda array: variant.shred(array, "ARRAY<INT>"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("array", "path", "length"),
    [
        (struct(metadata=METADATA, value=VALUES), (), 100_000),
        (struct(metadata=METADATA, value=VALUES), (1,), 2),
        (shredded(NUMBERS), (1,), 2),
        (shredded(NUMBERS), (2,), 2),
    ],
)
def test_short_children_are_rejected(
    reader: str, array: pa.StructArray, path: tuple[int, ...], length: int
) -> None:
    for cut in (0, 4):
        broken = with_false_length(array, path, length)[cut:]
        if reader == "unshred" and array.type == variant.variant_type():
            continue  # which looks at nothing
        with pytest.raises((ValueError, VariantError)):
            READERS[reader](broken)


def views(width: type, make: Callable[[pa.Field], pa.DataType]) -> pa.Array:
    """Lists of 9, null, [7, 8], [6, 7], [] and so on: out of order, sharing elements."""
    starts, sizes = [9, 0, 7, 6, 0], [1, 3, 2, 2, 0]
    buffers = [pa.py_buffer(b"\x1d"), buffer(starts, width), buffer(sizes, width)]
    array = pa.Array.from_buffers(make(ELEMENT), 5, buffers, children=[ELEMENTS])
    array.validate(full=True)
    return array


@pytest.mark.parametrize(("width", "make"), [(np.int32, pa.list_view), (np.int64, pa.large_list_view)])
def test_list_views_preserve_their_order(width: type, make: Callable[[pa.Field], pa.DataType]) -> None:
    array = shredded(views(width, make))
    expected = ["[9]", "null", "[7,8]", "[6,7]", "[]"]
    for given, wanted in ((array, expected), (array[1:], expected[1:])):
        assert variant.to_json(given).to_pylist() == wanted
        assert variant.to_json(variant.unshred(given)).to_pylist() == wanted
        assert variant.validate(given[2:]) is None
    assert variant.get(array, "$[1]", "INT").to_pylist() == [None, None, 8, 7, None]
    assert variant.get(array, "$", pa.list_(pa.int32())).to_pylist() == [[9], None, [7, 8], [6, 7], []]
    assert variant.explode(array, "$", "INT").column("value").to_pylist() == [9, 7, 8, 6, 7]
    plain = plain_list(array.field("typed_value"))
    plain.validate(full=True)
    assert [None if item is None else len(item) for item in plain.to_pylist()] == [1, None, 2, 2, 0]


def test_empty_array_of_lists_needs_no_offsets() -> None:
    lists = pa.Array.from_buffers(pa.list_(ELEMENT), 0, [None, None], 0, children=[ELEMENTS])
    for path in ("$", "$[*]", "$[*][*]"):
        assert variant.explode(shredded(lists), path).num_rows == 0
    assert len(variant.get(shredded(lists), "$[0]", "INT")) == 0


@pytest.mark.spec("shredding.layout.member")
@pytest.mark.parametrize("kind", [pa.list_(pa.null()), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_invalid_group_is_rejected_on_every_path(kind: pa.DataType) -> None:
    array = shredded(pa.nulls(2, kind))
    for path in ("$[0]", "$.a", "$[0].b"):
        if path[1] == "[" or pa.types.is_struct(kind):
            with pytest.raises(VariantError, match=r"value, typed_value or both"):
                variant.get(array, "$.a" if pa.types.is_struct(kind) else path, "INT")
    with pytest.raises(VariantError, match=r"value, typed_value or both"):
        variant.explode(array, "$.a" if pa.types.is_struct(kind) else "$")
