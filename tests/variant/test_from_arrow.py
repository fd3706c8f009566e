"""Arrow columns of every type become variants of the type of the same name."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant import Variant
from reference.variant_strategies import fewer

MOMENT = datetime(2024, 2, 29, 12, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("array", "kind", "value"),
    [
        (pa.array([True]), "boolean", True),
        (pa.array([5], pa.int8()), "int8", 5),
        (pa.array([5], pa.int16()), "int16", 5),
        (pa.array([5], pa.int32()), "int32", 5),
        (pa.array([5], pa.int64()), "int64", 5),
        (pa.array([255], pa.uint8()), "int16", 255),
        (pa.array([65535], pa.uint16()), "int32", 65535),
        (pa.array([2**32 - 1], pa.uint32()), "int64", 2**32 - 1),
        (pa.array([2**64 - 1], pa.uint64()), "decimal16", 2**64 - 1),
        (pa.array([np.float16(1.5)], pa.float16()), "float", 1.5),
        (pa.array([1.5], pa.float32()), "float", 1.5),
        (pa.array([1.5], pa.float64()), "double", 1.5),
        (pa.array([Decimal("1.50")], pa.decimal32(9, 2)), "decimal4", Decimal("1.50")),
        (pa.array([Decimal("1.50")], pa.decimal64(18, 2)), "decimal8", Decimal("1.50")),
        (pa.array([Decimal("1.50")], pa.decimal128(38, 2)), "decimal16", Decimal("1.50")),
        (pa.array([Decimal("1.50")], pa.decimal256(50, 2)), "decimal16", Decimal("1.50")),
        (pa.array([Decimal("1E-38")], pa.decimal128(38, 38)), "decimal16", Decimal("1E-38")),
        (pa.array([Decimal("1E+3")], pa.decimal128(5, -2)), "decimal4", 1000),
        (pa.array([date(2024, 2, 29)], pa.date32()), "date", date(2024, 2, 29)),
        (pa.array([date(2024, 2, 29)], pa.date64()), "date", date(2024, 2, 29)),
        (pa.array([time(1, 2, 3)], pa.time32("s")), "time_ntz", time(1, 2, 3)),
        (pa.array([time(1, 2, 3, 4)], pa.time64("ns")), "time_ntz", time(1, 2, 3, 4)),
        (pa.array([MOMENT], pa.timestamp("s", "Europe/Paris")), "timestamp", MOMENT),
        (pa.array([MOMENT], pa.timestamp("ns", "UTC")), "timestamp_nanos", MOMENT),
        (pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("ms")), "timestamp_ntz", MOMENT.replace(tzinfo=None)),
        (pa.array(["é"]), "string", "é"),
        (pa.array(["é"], pa.large_string()), "string", "é"),
        (pa.array(["é"], pa.string_view()), "string", "é"),
        (pa.array(["é"]).dictionary_encode(), "string", "é"),
        (pa.array([b"\xff"]), "binary", b"\xff"),
        (pa.array([b"\xff"], pa.binary_view()), "binary", b"\xff"),
        (pa.array([b"ab"], pa.binary(2)), "binary", b"ab"),
        (pa.array([bytes(16)], pa.binary(16)), "binary", bytes(16)),
        (pa.array([uuid.UUID(int=3).bytes], pa.uuid()), "uuid", uuid.UUID(int=3)),
        (pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([7])), "int64", 7),
        (pa.array([[1, None]]), "array", [1, None]),
        (pa.array([[1, None]], pa.large_list(pa.int32())), "array", [1, None]),
        (pa.array([[1, None]], pa.list_(pa.int32(), 2)), "array", [1, None]),
        (pa.array([[1, None]], pa.list_view(pa.int32())), "array", [1, None]),
        (pa.array([[1, None]], pa.large_list_view(pa.int32())), "array", [1, None]),
        (pa.array([[("b", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32())), "object", {"a": 2, "b": 1}),
        (pa.array([[("b", 1)]], pa.map_(pa.large_string(), pa.int32())), "object", {"b": 1}),
        (pa.array([{"b": 1, "a": {"é": [None]}}]), "object", {"b": 1, "a": {"é": [None]}}),
        (pa.array([{}], pa.struct([])), "object", {}),
    ],
    ids=str,
)
def test_each_arrow_type_has_a_variant_type(array: pa.Array, kind: str, value: Any) -> None:
    made = variant.from_arrow(pa.concat_arrays([array, array]).slice(1) if array.type.id != 45 else array)
    assert variant.validate(made) is None
    row = made.to_pylist()[0]
    assert Variant(row["value"], row["metadata"]).type == kind
    assert variant.to_python(made) == [value]


_ELEMENTS = st.fixed_dictionaries({"x": st.booleans()})
_MAPS = st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=3).map(lambda entries: list(entries.items()))
_VALUES = st.fixed_dictionaries(
    {
        "i": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        "s": st.one_of(st.none(), st.text(max_size=4)),
        "l": st.one_of(st.none(), st.lists(st.one_of(st.none(), _ELEMENTS), max_size=3)),
        "o": st.one_of(st.none(), st.fixed_dictionaries({"f": st.floats(allow_nan=False), "n": st.none()})),
        "m": st.one_of(st.none(), _MAPS),
    }
)  # fmt: skip
_TYPE = pa.struct(
    [
        ("i", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.struct([("x", pa.bool_())]))),
        ("o", pa.struct([("f", pa.float64()), ("n", pa.null())])), ("m", pa.map_(pa.string(), pa.int64())),
    ]
)  # fmt: skip


def _present(value: Any, name: str = "") -> Any:
    """What arrow's own Python form has, without the fields that are null; maps are dicts."""
    if isinstance(value, dict):
        return {key: _present(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return dict(value) if name == "m" else [_present(item) for item in value]
    return value


@given(st.lists(st.one_of(st.none(), _VALUES), max_size=5), st.integers(0, 2))
@fewer
def test_rows_match_the_objects_of_pyarrow(rows: list[Any], skipped: int) -> None:
    array = pa.array(rows, _TYPE).slice(skipped)
    made = variant.from_arrow(array)
    assert variant.validate(made) is None
    assert variant.to_python(made) == [_present(row) for row in array.to_pylist()]
    kept = variant.to_python(variant.from_arrow(array, nulls="null"))
    wanted = [None if row is None else {**row, "m": row["m"] and dict(row["m"])} for row in array.to_pylist()]
    assert [row and {**row, "m": row["m"] or {}} for row in kept] == [
        row and {**row, "m": row["m"] or {}} for row in wanted
    ]


def test_tables_batches_streams_and_frames_become_rows_of_objects() -> None:
    table = pa.table({"b": [1, 2, None], "a": ["x", None, "z"]})
    wanted = [{"a": "x", "b": 1}, {"b": 2}, {"a": "z"}]
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert [len(chunk) for chunk in variant.from_arrow(chunked).chunks] == [1, 2]
    for data in (table, chunked, table.to_batches()[0], pl.from_arrow(table), table.to_reader()):
        assert variant.to_python(variant.from_arrow(data)) == wanted
    frame = pd.DataFrame({"a": ["x", None], "n": [1, 2]})
    assert variant.to_python(variant.from_arrow(frame)) == [{"a": "x", "n": 1}, {"n": 2}]
    assert variant.to_python(variant.from_arrow(pl.Series([[1], None]))) == [[1], None]
    assert len(variant.from_arrow(table.slice(0, 0))) == 0


def test_nested_variants_are_unchanged_shredded_or_not() -> None:
    inner = variant.parse_json(['{"z":1,"a":[2.50]}', None, '"x"'])
    for column in (inner, variant.shred(inner, "a ARRAY<DECIMAL(9,2)>")):
        table = pa.table([pa.array([1, 2, 3]), column], ["id", "v"])
        assert variant.to_json(variant.from_arrow(table)).to_pylist() == [
            '{"id":1,"v":{"a":[2.5],"z":1}}', '{"id":2}', '{"id":3,"v":"x"}',
        ]  # fmt: skip


def test_nulls_are_omitted_or_preserved() -> None:
    array = pa.array(
        [{"a": None, "m": [("k", None)]}, None], pa.struct([("a", pa.int8()), ("m", pa.map_(pa.string(), pa.int8()))])
    )
    assert variant.to_json(variant.from_arrow(array)).to_pylist() == ['{"m":{}}', None]
    assert variant.to_json(variant.from_arrow(array, nulls="null")).to_pylist() == ['{"a":null,"m":{"k":null}}', None]
    with pytest.raises(ValueError, match="'absent' or 'null'"):
        variant.from_arrow(array, nulls="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (pa.array([1], pa.duration("s")), TypeError, r"no type for duration\[s\]; cast it"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.duration("s"))), TypeError, r"column \{\}"),
        (pa.array([[(1, 1)]], pa.map_(pa.int32(), pa.int32())), TypeError, "keys must be strings"),
        (pa.StructArray.from_arrays([[1], [2]], ["a", "a"]), ValueError, "two fields have the name 'a'"),
        (pa.array([{"t": 2**62}], pa.struct([("t", pa.timestamp("s"))])), ValueError, "column t: .*out of bounds"),
        (pa.array([1], pa.time64("ns")), ValueError, "would lose data"),
        (pa.array([Decimal(10**40)], pa.decimal256(50, 0)), ValueError, "does not fit"),
        (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int8())), VariantError, "row 0: .*same name"),
    ],
    ids=str,
)
def test_unsupported_types_are_rejected_by_column(array: pa.Array, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        variant.from_arrow(array)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string_view(), ["a", None, "b"]),
        (pa.binary_view(), [b"", None, b"x" * 20]),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None, "b"]),
        (pa.list_view(pa.int8()), [[1], None, [2, 3]]),
        (pa.struct([("a", pa.int8())]), [{"a": 1}, None, {}]),
        (pa.null(), [None, None, None]),
    ],
    ids=str,
)
def test_run_ends_of_any_values_are_decoded_in_slices(kind: pa.DataType, values: list[Any]) -> None:
    array = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], pa.int32()), pa.array(values, kind))
    expected = [values[0], values[0], values[1], *[values[2]] * 3]
    for start, stop in ((0, 6), (1, 4), (3, 3), (5, 6)):
        found = variant.from_arrow(array[start:stop])
        assert variant.to_python(found) == expected[start:stop]


def test_dictionary_of_views_is_decoded() -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0], pa.int8()), pa.array(["a", "b" * 20], pa.string_view())
    )
    assert variant.to_python(variant.from_arrow(array)) == ["b" * 20, None, "a"]


@pytest.mark.parametrize("index", [127, -1])
@pytest.mark.parametrize("values", [pa.array(["x"]), pa.array(["x"], pa.string_view())], ids=["string", "string_view"])
def test_dictionary_indices_below_a_null_are_ignored(values: pa.Array, index: int) -> None:
    """Arrow leaves values below a null struct undefined."""
    inner = pa.DictionaryArray.from_arrays(pa.array([index, 0, None], pa.int32()), values, safe=False)
    structs = pa.StructArray.from_arrays([inner], ["a"], mask=pa.array([True, False, False]))
    assert structs.to_pylist() == [None, {"a": "x"}, {"a": None}]
    assert variant.to_json(variant.from_arrow(structs)).to_pylist() == [None, '{"a":"x"}', "{}"]


@pytest.mark.parametrize("type", [pa.string(), pa.string_view()])
def test_map_keys_may_be_dictionaries(type: pa.DataType) -> None:
    keys = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["a", "b"], type))
    maps = pa.MapArray.from_arrays(pa.array([0, 2, 3]), keys, pa.array([1, 2, 3]))
    assert variant.to_json(variant.from_arrow(maps)).to_pylist() == ['{"a":2,"b":1}', '{"b":3}']
