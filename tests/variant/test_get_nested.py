"""``get`` makes lists, structs and maps of arrays and objects, on whole and on shredded variants alike."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import UnsupportedError, VariantError
from pqext.variant.access.targets import target_type
from pqext.variant.shredding.schema import ShreddingSchema
from pqext.variant.types import is_variant_type, variant_type
from reference import variant_shred as reference
from reference.variant_strategies import NAMES, fewer, schemas, variants
from reference.variant_value import encode

prim = reference.primitive
ROWS = ['{"a":[1,"2",{"b":3}],"c":{"x":1.5,"y":null}}', '{"a":"no"}', "null", None, "[4]", '{"a":[]}']


def parsed(rows: list[str | None] = ROWS) -> pa.StructArray:
    return variant.parse_json(pa.array(rows))


@pytest.mark.parametrize(
    ("type", "wanted"),
    [
        ("array<int>", [None, None, None, None, [4], None]),
        ("struct<a: array<int>>", [{"a": [1, 2, None]}, {"a": None}, None, None, None, {"a": []}]),
        ("struct<a: array<string>>", [{"a": ["1", "2", '{"b":3}']}, {"a": None}, None, None, None, {"a": []}]),
        ("struct<A: int>", [{"A": None}, {"A": None}, None, None, None, {"A": None}]),
        (
            "struct<c: map<string, double>, a: string>",
            [
                {"c": [("x", 1.5), ("y", None)], "a": '[1,"2",{"b":3}]'},
                {"c": None, "a": "no"},
                None,
                None,
                None,
                {"c": None, "a": "[]"},
            ],
        ),
        ("a array<struct<b: tinyint>>", [{"a": [None, None, {"b": 3}]}, {"a": None}, None, None, None, {"a": []}]),
    ],
)
@pytest.mark.parametrize("schema", [None, "a ARRAY<INT>", "a ARRAY<STRUCT<b: INT>>, c STRUCT<x: DOUBLE>", "a STRING"])
@pytest.mark.spec("casts.nested", "casts.try", "casts.shredded")
def test_arrays_and_objects_cast_to_lists_structs_and_maps(type: str, wanted: list[Any], schema: str | None) -> None:
    array = parsed() if schema is None else variant.shred(parsed(), schema)
    result = variant.get(array, "$", type)
    result.validate(full=True)
    assert result.type == target_type(type)
    assert result.to_pylist() == wanted
    assert variant.get(array.slice(1, 4), "$", type).to_pylist() == wanted[1:5]
    chunked = pa.chunked_array([array.slice(0, 1), array.slice(1)])
    assert variant.get(chunked, "$", type).to_pylist() == wanted


@pytest.mark.spec("casts.nested", "casts.shredded")
@pytest.mark.parametrize("schema", [None, "A INT", "a INT", "b INT"])
def test_struct_fields_match_names_exactly(schema: str | None) -> None:
    array = parsed(['{"A": 1, "a": 2}', '{"a": 3}', '{"A": 4}'])
    shredded = array if schema is None else variant.shred(array, schema)
    kind = pa.struct([("A", pa.int64()), ("a", pa.int64())])
    assert variant.get(shredded, "$", kind).to_pylist() == [{"A": 1, "a": 2}, {"A": None, "a": 3}, {"A": 4, "a": None}]


@pytest.mark.parametrize("schema", [None, "a ARRAY<INT>", "c STRUCT<x: DOUBLE>"])
@pytest.mark.parametrize(
    ("type", "fault"),
    [
        ("struct<a: array<int>>", r"row 0: the value at \$\.a\[\] does not cast to int32"),
        ("struct<c: struct<x: boolean>>", r"row 4: the value at \$ does not cast to struct"),
        ("map<string, variant>", r"row 4: the value at \$ does not cast to map"),
        ("array<int>", r"row 0: the value at \$ does not cast to list"),
        ("struct<c: struct<x: date>, a: int>", r"row 0: the value at \$\.[ac](\.x)? does not cast to"),
    ],
)
@pytest.mark.spec("casts.strict")
def test_strict_casts_name_the_first_row_and_the_nested_path(
    type: str, fault: str, schema: str | None
) -> None:
    array = parsed() if schema is None else variant.shred(parsed(), schema)
    with pytest.raises(VariantError, match=fault):
        variant.get(array, "$", type, strict=True)
    good = variant.parse_json(pa.array(['{"a":[1,null],"c":{"x":null}}']))
    good = good if schema is None else variant.shred(good, schema)
    assert variant.get(good, "$", "struct<a: array<int>, c: map<string, int>>", strict=True).to_pylist() == [
        {"a": [1, None], "c": [("x", None)]}
    ]


@pytest.mark.spec("casts.variant-null")
def test_nested_variants_distinguish_json_null_from_missing() -> None:
    array = parsed(['{"a":null}', "{}", '{"a":{"b":1}}'])
    for given_array in (array, variant.shred(array, "a STRUCT<b: INT>")):
        result = variant.get(given_array, "$", "struct<a: variant>").field("a")
        assert is_variant_type(result.type)
        assert result.is_valid().to_pylist() == [True, False, True]
        assert variant.to_json(result).to_pylist() == ["null", None, '{"b":1}']


@pytest.mark.parametrize("schema", [None, "ARRAY<VARIANT>"])
@pytest.mark.parametrize("row", ['[1,"x",{"a":[]},null]', '[{"a":1},{"b":2}]', "[1,[2],[]]", '[1,"x"]', "[[[{}]],0]"])
def test_nested_scalars_have_no_dictionary_and_containers_have_that_of_their_row(row: str, schema: str | None) -> None:
    array = parsed([row]) if schema is None else variant.shred(parsed([row]), schema)
    elements = variant.get(array, "$", "array<variant>").values
    names = [reference.decode_metadata(metadata) for metadata in elements.field("metadata").to_pylist()]
    own = reference.decode_metadata(parsed([row]).field("metadata")[0].as_py())
    assert names == [own if isinstance(value, list | dict) else [] for value in json.loads(row)]


@pytest.mark.parametrize("schema", [None, "ARRAY<INT>"])
def test_lists_support_any_layout_and_an_exact_fixed_size(schema: str | None) -> None:
    array = parsed(["[1,2]", "[3]", None, "[]", "[4,5]", "7"])
    array = array if schema is None else variant.shred(array, schema)
    plain = [[1, 2], [3], None, [], [4, 5], None]
    for type in (pa.large_list(pa.int64()), pa.list_view(pa.uint8()), pa.large_list_view(pa.int8())):
        result = variant.get(array, "$", type)
        assert (result.type, result.to_pylist()) == (type, plain)
    for rows in (array, array.slice(1)):
        result = variant.get(rows, "$", pa.list_(pa.int32(), 2))
        result.validate(full=True)
        wanted = [[1, 2], None, None, None, [4, 5], None]
        assert result.to_pylist() == wanted[len(array) - len(rows) :]
    with pytest.raises(VariantError, match="row 1: the value at \\$ does not cast to fixed_size_list"):
        variant.get(array, "$", pa.list_(pa.int32(), 2), strict=True)
    inner = parsed(['{"l":[[1],[2,3]]}', '{"l":[[4,5]]}'])
    inner = inner if schema is None else variant.shred(inner, "l ARRAY<ARRAY<INT>>")
    with pytest.raises(VariantError, match=r"row 0: the value at \$\.l\[\] does not cast to fixed_size_list"):
        variant.get(inner, "$.l", pa.list_(pa.list_(pa.int32(), 2)), strict=True)
    assert variant.get(inner, "$.l", pa.list_(pa.list_(pa.int32(), 2))).to_pylist() == [[None, [2, 3]], [[4, 5]]]


def test_result_fields_are_nullable_and_preserve_their_metadata() -> None:
    field = pa.field("a", pa.int32(), nullable=False, metadata={"k": "v"})
    result = variant.get(parsed(["{}"]), "$", pa.struct([field]))
    assert result.type.field("a").nullable
    assert result.type.field("a").metadata == {b"k": b"v"}


TYPES = [
    "array<string>",
    "array<double>",
    "array<array<bigint>>",
    "array<variant>",
    "map<string, string>",
    "map<string, array<int>>",
    "struct<a: string, b: bigint, `x.y`: array<date>>",
    "struct<a: struct<a: double, z: variant>, c: map<string, variant>>",
    "array<struct<a: int, typed_value: string>>",
]
steps = st.lists(st.one_of(st.sampled_from(NAMES), st.integers(0, 2)), max_size=2)


def plain(result: Any) -> Any:
    """Arrow scalars as Python values, variants by their equivalence class, JSON by its kind, NaN as text."""
    if not result.is_valid:
        return None
    if is_variant_type(result.type):
        names = reference.decode_metadata(result["metadata"].as_py())
        return reference.equivalent(reference.decode(result["value"].as_py(), names))
    if pa.types.is_map(result.type):
        return {key: plain(value) for key, value in zip(*(result.values.field(i) for i in (0, 1)), strict=True)}
    if pa.types.is_list(result.type):
        return [plain(item) for item in result.values]
    if pa.types.is_struct(result.type):
        return {field.name: plain(result[field.name]) for field in result.type}
    if pa.types.is_temporal(result.type):
        return result.value  # days, of which Python's dates have few
    value = result.as_py()
    # The JSON of an object may differ in how its equal numbers are written.
    if isinstance(value, str) and value.startswith(("[", "{")):
        return value[0]
    return repr(value) if isinstance(value, float) else value


@fewer
@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4), schemas(), steps, st.sampled_from(TYPES))
@pytest.mark.spec("casts.shredded")
def test_shredded_variants_match_unshredded_ones(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema, path: list[str | int], type: str
) -> None:
    array = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    before = variant.get(array, path, type)
    before.validate(full=True)
    after = variant.get(variant.shred(array, schema), path, type)
    after.validate(full=True)
    assert list(map(plain, after)) == list(map(plain, before))
    assert failing(variant.shred(array, schema), path, type) == failing(array, path, type)


def failing(array: pa.Array, path: list[str | int], type: str) -> int | None:
    try:
        variant.get(array, path, type, strict=True)
    except VariantError as error:
        return error.row
    return None


def exact(scalar: pa.Scalar) -> str | None:
    """A scalar as text: a date as its days, of which Python's dates have few, so that no value is out of reach."""
    if not scalar.is_valid:
        return None
    return repr(scalar.value if pa.types.is_temporal(scalar.type) else scalar.as_py())


NOTHING = pa.scalar(None)
FAR_DATES = [
    encode(("array", [("date", 2**31 - 1), ("date", -(2**31))])),
    encode(("object", {"a": ("date", 2**30), "x.y": ("date", 0)})),
]


@given(st.lists(variants(), min_size=1, max_size=4), st.sampled_from(["string", "double", "bigint", "date"]))
@example(FAR_DATES, "date")
def test_list_elements_match_their_single_paths(rows: list[tuple[bytes, bytes]], type: str) -> None:
    array = pa.array([{"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    lists = variant.get(array, "$", f"array<{type}>")
    structs = variant.get(array, "$", f"struct<a: {type}, `x.y`: {type}>")
    for index in range(4):
        single = variant.get(array, (index,), type)
        items = [row.values[index] if row.is_valid and index < len(row.values) else NOTHING for row in lists]
        assert list(map(exact, items)) == list(map(exact, single))
    for name in ("a", "x.y"):
        single = variant.get(array, (name,), type)
        fields = [row[name] if row.is_valid else NOTHING for row in structs]
        assert list(map(exact, fields)) == list(map(exact, single))


@pytest.mark.spec("path.columns")
@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("$.a", "int"),
        ("$.a", "double"),
        ("$", "struct<a: int>"),
        ("$.l[0].p", "string"),
        ("$.l", "array<struct<p: int>>"),
    ],
)
def test_only_columns_on_the_path_are_accessed(path: str, type: str) -> None:
    rows = parsed(['{"a":1,"b":"x","l":[{"p":1,"q":2}]}', '{"a":"no","b":5,"l":[{"p":"3","q":true}]}', "7"])
    shredded = variant.shred(rows, "a INT, b STRING, l ARRAY<STRUCT<p: INT, q: INT>>")
    wanted = variant.get(rows, path, type)
    poisoned = replaced(shredded, {"b", "q"})
    with pytest.raises(VariantError):
        variant.unshred(poisoned)
    assert variant.get(poisoned, path, type).to_pylist() == wanted.to_pylist()
    if path == "$.l":
        exploded = variant.explode(poisoned, "$.l[*].p", "int", outer=True)
        assert exploded.column("value").to_pylist() == [1, 3, None]


def replaced(array: pa.Array, names: set[str]) -> pa.Array:
    """The array with bytes that are no variant in the ``value`` of the groups of these names."""
    if pa.types.is_list(array.type):
        values = replaced(array.values, names)
        return pa.ListArray.from_arrays(
            array.offsets, values, type=pa.list_(array.type.value_field), mask=array.is_null()
        )
    if not pa.types.is_struct(array.type):
        return array
    children = []
    for field in array.type:
        child = array.field(field.name)
        if field.name in names:
            bad = pa.array([b"\xff"] * len(child), pa.binary())
            child = pa.StructArray.from_arrays([bad, child.field("typed_value")], fields=list(field.type))
        children.append(replaced(child, names))
    return pa.StructArray.from_arrays(children, fields=list(array.type), mask=array.is_null())


def test_typed_column_of_the_requested_type_is_returned_without_copying() -> None:
    shredded = variant.shred(parsed(['{"a":1,"t":"x"}', '{"a":2,"t":"y"}']), "a BIGINT, t STRING")
    group = shredded.field("typed_value").field("a").field("typed_value")
    result = variant.get(shredded, "$.a", "bigint")
    assert result.buffers()[1].address == group.buffers()[1].address
    times = variant.shred(parsed(['"2024-01-01"']), "STRING")
    assert variant.get(times, "$", pa.large_string()).to_pylist() == ["2024-01-01"]


def element_type(typed: pa.DataType) -> pa.DataType:
    return pa.struct([("value", pa.binary()), ("typed_value", typed)])


def value_of(text: str) -> bytes:
    return bytes(parsed([text])[0].as_py()["value"])


def stored(value: list[bytes | None], typed: pa.Array) -> pa.StructArray:
    """A shredded variant whose values use no names but ``a``."""
    metadata = pa.array([parsed(['{"a":1}'])[0].as_py()["metadata"]] * len(typed), pa.binary())
    fields = [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary())]
    arrays = [metadata, pa.array(value, pa.binary()), typed]
    return pa.StructArray.from_arrays(arrays, fields=[*fields, pa.field("typed_value", typed.type)])


def test_unshredded_lists_and_objects_complete_those_of_typed_columns() -> None:
    one = {"value": None, "typed_value": 1}
    elements = pa.array([[one, one], None, None], pa.list_(element_type(pa.int32())))
    lists = stored([None, value_of("[2,3]"), b"\0"], elements)
    objects = pa.array([{"a": one}, None, None], pa.struct([("a", element_type(pa.int32()))]))
    structs = stored([None, value_of('{"a":2}'), b"\0"], objects)
    for start in range(3):
        assert variant.get(lists[start:], "$", "array<int>").to_pylist() == [[1, 1], [2, 3], None][start:]
        assert variant.get(structs[start:], "$", "struct<a: int>").to_pylist() == [{"a": 1}, {"a": 2}, None][start:]


def test_paths_below_a_list_without_residuals_are_null() -> None:
    elements = pa.struct([("typed_value", pa.int32())])
    array = stored([None, None], pa.array([[{"typed_value": 1}], []], pa.list_(elements)))
    assert variant.get(array, "$[0]", "int").to_pylist() == [1, None]
    assert variant.get(array, "$[0].a", "int").to_pylist() == [None, None]
    assert variant.get(array, "$[0][0]", "array<int>").to_pylist() == [None, None]
    assert variant.explode(array, "$[*].a[*]").num_rows == 0


@pytest.mark.parametrize("type", ["string", "binary", "int", "double", "timestamp", "variant", "array<string>"])
@pytest.mark.parametrize("values", [
    pa.array(["12", "a", None, "12"]), pa.array(["12", "a", None, "12"], pa.large_string()),
    pa.array(["12", "a", None, "12"], pa.string_view()), pa.array([5, 6, None, 5]),
    pa.array([5, 6, None, 5], pa.timestamp("us", "UTC")),
], ids=lambda values: str(values.type))  # fmt: skip
def test_typed_columns_may_be_dictionaries(type: str, values: pa.Array) -> None:
    second_and_first = pa.array([values[1].as_py(), values[0].as_py()], values.type)
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), second_and_first)
    plain, coded = (stored([None, None, value_of("true"), None], typed) for typed in (values, codes))
    assert variant.get(coded, "$", type).equals(variant.get(plain, "$", type))
    assert variant.to_json(coded).to_pylist() == variant.to_json(plain).to_pylist()
    name = {pa.int64(): "BIGINT", pa.timestamp("us", "UTC"): "TIMESTAMP"}.get(values.type, "STRING")
    assert variant.shred(coded, name).field("typed_value").to_pylist() == values.to_pylist()


@pytest.mark.parametrize(("wrong", "error"), [(b"\xfc", UnsupportedError), (b"\x03\2", VariantError)])
@pytest.mark.parametrize(("path", "type"), [("$", "array<string>"), ("$[1]", "string"), ("$", "array<array<string>>")])
def test_corrupt_elements_of_a_list_are_reported_with_their_row(
    path: str, type: str, wrong: bytes, error: Any
) -> None:
    inner = element_type(pa.list_(element_type(pa.int32())))
    good = {"value": None, "typed_value": [{"value": None, "typed_value": 5}]}
    corrupt = {"value": None, "typed_value": [{"value": wrong, "typed_value": None}]}
    array = stored([None] * 3, pa.array([[good, good], [], [good, corrupt]], pa.list_(inner)))
    assert variant.get(array[:2], path, type).validate() is None
    for start in range(3):
        with pytest.raises(error, match=f"row {2 - start}: ") as caught:
            variant.get(pa.chunked_array([array[start:2], array[2:]]), path, type)
        assert caught.value.row == 2 - start


def test_element_of_a_later_type_is_reported_with_its_row() -> None:
    array = parsed(["[1,2]", "[[3],4]", "[5]"])
    inner = b"\x03\x01\x00\x01\xfc"  # an array with a primitive of type 63
    values = [*array.field("value").to_pylist()[:2], b"\x03\x01\x00\x05" + inner]
    later = variant.types.variant_array(array.field("metadata"), pa.array(values, pa.binary()))
    for start in range(3):
        with pytest.raises(UnsupportedError, match=f"row {2 - start}: the value is of a primitive type added later"):
            variant.get(later[start:], "$", "array<string>")
