"""Arrow types and what of them comes back from a Parquet file, by hand, and columns of extension types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import types as is_

MAKERS = (
    (is_.is_large_list, pa.large_list), (is_.is_list_view, pa.list_view), (is_.is_large_list_view, pa.large_list_view),
)


def comes_back(arrow: pa.DataType) -> pa.DataType:
    """The type in which a column of type ``arrow`` is read."""
    if isinstance(arrow, pa.BaseExtensionType):
        return arrow
    if is_.is_run_end_encoded(arrow):
        return comes_back(arrow.value_type)
    if is_.is_dictionary(arrow):
        value = comes_back(arrow.value_type)
        text = {pa.large_string(): pa.string(), pa.string_view(): pa.string()}.get(value, value)
        is_text = is_.is_string(text) or is_.is_binary(text)
        return pa.dictionary(arrow.index_type, text, arrow.ordered) if is_text else value
    if is_.is_struct(arrow):
        return pa.struct([field.with_type(comes_back(field.type)) for field in arrow])
    if is_.is_map(arrow):
        key, item = (f.with_type(comes_back(f.type)) for f in (arrow.key_field, arrow.item_field))
        return pa.map_(key, item, arrow.keys_sorted)
    if is_.is_fixed_size_list(arrow):
        return pa.list_(_element(arrow), arrow.list_size)
    if is_.is_list(arrow):
        return pa.list_(_element(arrow))
    for is_kind, make in MAKERS:
        if is_kind(arrow):
            return make(_element(arrow))
    if is_.is_timestamp(arrow) and arrow.unit == "s":
        return pa.timestamp("ms", arrow.tz)
    return {pa.time32("s"): pa.time32("ms"), pa.date64(): pa.date32()}.get(arrow, arrow)


def _element(arrow: pa.DataType) -> pa.Field:
    return arrow.value_field.with_type(comes_back(arrow.value_type))


def holds(arrow: pa.DataType, *checks: Any) -> bool:
    """Is a type that passes any of the ``checks`` at or in ``arrow``?"""
    if any(check(arrow) for check in checks):
        return True
    if isinstance(arrow, pa.BaseExtensionType):
        return holds(arrow.storage_type, *checks)
    if is_.is_dictionary(arrow):
        return holds(arrow.value_type, *checks)
    return any(holds(arrow.field(at).type, *checks) for at in range(arrow.num_fields))


def dictionary(indices: pa.DataType, values: pa.Array, *, ordered: bool = False) -> pa.Array:
    """Five values, null among them, and an entry that none refers to."""
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1, 1], indices), values, ordered=ordered)


def wrapped(kind: pa.BaseExtensionType, values: list[Any]) -> pa.Array:
    """An array of an extension type from values of its storage."""
    return kind.wrap_array(pa.array(values, kind.storage_type))


_LETTERS = pa.array(["z", "a", "unused"])
UNITS = ("s", "ms", "us", "ns")
_UUIDS = [bytes(range(16)), None, b"\xff" * 16]
_LISTS = pa.array([[[1, 2], None], None, [[3, None], [4, 5]]], pa.list_(pa.list_(pa.int32(), 2), 2))
_INDICES = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())

COLUMNS: dict[str, pa.Array] = {
    **{f"dictionary_{kind}": dictionary(kind, _LETTERS) for kind in _INDICES},
    "dictionary_ordered": dictionary(pa.int8(), _LETTERS, ordered=True),
    "dictionary_binary": dictionary(pa.int8(), _LETTERS.cast(pa.binary())),
    "dictionary_large": dictionary(pa.int8(), _LETTERS.cast(pa.large_string())),
    "dictionary_integers": dictionary(pa.int8(), pa.array([3, 2, 1])),
    "dictionary_doubles": dictionary(pa.int8(), pa.array([3.0, 2.0, 1.0])),
    "dictionary_decimals": dictionary(pa.int8(), pa.array([Decimal("1.5"), Decimal("-2.5")])),
    "dictionary_fixed": dictionary(pa.int8(), pa.array([b"ab", b"cd"], pa.binary(2))),
    "dictionary_null": pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), _LETTERS),
    "dictionary_struct": pa.StructArray.from_arrays([dictionary(pa.int8(), _LETTERS)], ["d"]),
    "dictionary_list": pa.ListArray.from_arrays(pa.array([0, 2, 2, 5], pa.int32()), dictionary(pa.int8(), _LETTERS)),
    "dictionary_map": pa.MapArray.from_arrays(
        pa.array([0, 2, 2, 5], pa.int32()), pa.array(list("abcde")), dictionary(pa.int16(), _LETTERS, ordered=True)
    ),
    **{f"duration_{unit}": pa.array([1, None, -(2**62)], pa.duration(unit)) for unit in UNITS},
    **{f"zone_{unit}": pa.array([1, None, -(2**40)], pa.timestamp(unit, "Asia/Tokyo")) for unit in UNITS},
    "zone_offset": pa.array([1, None], pa.timestamp("us", "-03:30")),
    "zone_utc": pa.array([1, None], pa.timestamp("us", "UTC")),
    "seconds": pa.array([1, None], pa.timestamp("s")),
    "time_seconds": pa.array([1, None], pa.time32("s")),
    "date64": pa.array([86_400_000, None], pa.date64()),
    "fixed_size_list": pa.array([[1, None], None, [3, 4]], pa.list_(pa.int32(), 2)),
    "fixed_size_lists": _LISTS,
    "fixed_size_struct": pa.array(
        [{"a": [b"x"]}, None, {"a": None}], pa.struct([("a", pa.list_(pa.binary_view(), 1))])
    ),
    "large_string": pa.array(["a", None, "é"], pa.large_string()),
    "large_binary": pa.array([b"a", None, b"\xff"], pa.large_binary()),
    "large_list": pa.array([["a"], None, []], pa.large_list(pa.large_string())),
    "string_view": pa.array(["a", None, "b" * 20], pa.string_view()),
    "binary_view": pa.array([b"a", None, b"b" * 20], pa.binary_view()),
    "list_view": pa.array([["a"], None, []], pa.list_view(pa.string_view())),
    "large_list_view": pa.array([[1], None, []], pa.large_list_view(pa.int8())),
    "float16": pa.array([1.5, None], pa.float16()),
    "decimal32": pa.array([Decimal("1.2"), None], pa.decimal32(5, 1)),
    "decimal64": pa.array([Decimal("1.2"), None], pa.decimal64(5, 1)),
    "decimal128": pa.array([Decimal("1.2"), None], pa.decimal128(5, 1)),
    "decimal256": pa.array([Decimal("1.2"), None], pa.decimal256(5, 1)),
    "decimal256_wide": pa.array([Decimal("1.2"), None], pa.decimal256(50, 1)),
    "null": pa.nulls(3),
    "uuid": wrapped(pa.uuid(), _UUIDS),
    "json": wrapped(pa.json_(), ["{}", None]),
    "json_large": wrapped(pa.json_(pa.large_string()), ["{}", None]),
    "json_view": wrapped(pa.json_(pa.string_view()), ["{}", None]),
    "bool8": wrapped(pa.bool8(), [1, None, 0]),
    "opaque": wrapped(pa.opaque(pa.large_binary(), "kind", "vendor"), [b"a", None]),
    "opaque_dictionary": pa.opaque(pa.dictionary(pa.int8(), pa.string()), "kind", "vendor").wrap_array(
        dictionary(pa.int8(), _LETTERS)
    ),
    "opaque_null": wrapped(pa.opaque(pa.null(), "kind", "vendor"), [None]),
    "tensor": wrapped(pa.fixed_shape_tensor(pa.int32(), [2, 1], dim_names=["x", "y"]), [[1, 2], None, [3, 4]]),
    "uuid_struct": pa.StructArray.from_arrays([wrapped(pa.uuid(), _UUIDS)], ["u"]),
    "json_list": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), wrapped(pa.json_(), ["[]", None])),
    "map_sorted": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32(), keys_sorted=True)),
    "map_large": pa.array([[("a", b"x")], None], pa.map_(pa.large_string(), pa.large_binary())),
}
"""Columns that pyarrow writes too."""

OURS_ONLY: dict[str, pa.Array] = {
    "run_ends": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(["a", None])),
    "intervals": pa.array([pa.MonthDayNano([1, 2, 3_000_000]), None], pa.month_day_nano_interval()),
    "dictionary_views": dictionary(pa.int8(), _LETTERS.cast(pa.string_view())),
    "dictionary_durations": dictionary(pa.int8(), pa.array([3, 2], pa.duration("s"))),
    "dictionary_zones": dictionary(pa.int8(), pa.array([3, 2], pa.timestamp("us", "Europe/Paris"))),
    "dictionary_lists": dictionary(pa.int8(), pa.array([[1], []])),
    "dictionary_uuids": dictionary(pa.int8(), wrapped(pa.uuid(), _UUIDS)),
    "no_elements": pa.array([[], None, []], pa.list_(pa.int32(), 0)),
}
"""Columns that pyarrow refuses to write, or does not read as they were."""

EXTENSIONS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "uuid": (pa.uuid(), st.binary(min_size=16, max_size=16)),
    "json": (pa.json_(), st.sampled_from(["{}", "[1]", "null"])),
    "bool8": (pa.bool8(), st.integers(0, 1)),
    "opaque": (pa.opaque(pa.list_view(pa.duration("us")), "a", "b"), st.lists(st.integers(-5, 5), max_size=3)),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [3]), st.lists(st.integers(0, 3), min_size=3, max_size=3)),
    "tensor_strings": (pa.opaque(pa.list_(pa.string_view(), 2), "a", "b"), st.just(["x", "y" * 20])),
}


@st.composite
def extension_columns(draw: st.DrawFn) -> pa.Array:
    """A column of an extension type, bare, in structs or in lists."""
    kind, values = EXTENSIONS[draw(st.sampled_from(sorted(EXTENSIONS)))]
    drawn = draw(st.lists(st.one_of(st.none(), values), min_size=4, max_size=4))
    array = wrapped(kind, drawn)
    place = draw(st.sampled_from(["column", "struct", "list", "fixed", "map"]))
    some = pa.array([True, False][: draw(st.integers(1, 2))] * 4)[:4]
    if place == "struct":
        return pa.StructArray.from_arrays([array], ["x"], mask=some)
    if place == "list":
        return pa.ListArray.from_arrays(pa.array([0, 1, 1, 4], pa.int32()), array)
    if place == "fixed":
        return pa.FixedSizeListArray.from_arrays(array, 2, mask=pa.array([draw(st.booleans()), False]))
    if place == "map":
        return pa.MapArray.from_arrays(pa.array([0, 2, 4], pa.int32()), pa.array(list("abcd")), array)
    return array
