"""JSON straight into shredded columns: what parsing first and shredding then gives, byte for byte."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import variant
from pqext.core.base.errors import LimitError, VariantError, VariantLimitError
from pqext.variant.shredding.schema import ShreddingSchema, storage_struct
from reference import variant_shred as reference
from reference.variant_strategies import NAMES, fewer, schemas

NUMBERS = [
    "0", "-1", "127", "128", "-129", "40000", "3000000000", "9223372036854775807", "-9223372036854775808",
    "9223372036854775808", "12345678901234567890123456789012345678", "1" + "0" * 38, "2.50", "2.5", "2.0", "-0.0",
    "0.001", "123456789.123456789", "123456789012345678.5", "0.00000000000000000001", "1e2", "1.5e-3", "1e308",
]  # fmt: skip
TEXTS = ['""', '"x"', '"é"', '"\\u00e9\\n"', '"' + "y" * 63 + '"', '"' + "y" * 64 + '"', '"2024-01-02"']

_SCALARS = st.sampled_from(["null", "true", "false", *TEXTS, *NUMBERS])


def _object(fields: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}: {text}" for name, text in fields) + "}"


DOCUMENTS: st.SearchStrategy[str] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(st.tuples(st.sampled_from([*NAMES, "unused"]), inner), max_size=6).map(_object),
        st.lists(inner, max_size=4).map(lambda items: "[" + " ,".join(items) + "]"),
    ),
    max_leaves=14,
)
ROWS = st.lists(st.one_of(st.none(), DOCUMENTS), min_size=1, max_size=8)


def parse_then_shred(array: Any, shredding: Any, **options: Any) -> Any:
    choice = shredding if isinstance(shredding, dict) else {"schema": shredding}
    return variant.shred(
        variant.parse_json(array, **options), choice["schema"], coerce=choice.get("coerce", "equivalent")
    )


def check(array: Any, shredding: Any, **options: Any) -> Any:
    """The shredded array, once it was found to be that of the two steps."""
    found = variant.parse_json(array, shredding=shredding, **options)
    expected = parse_then_shred(array, shredding, **options)
    found.validate(full=True)
    assert found.type == expected.type
    assert found.equals(expected)
    return found


@fewer
@given(
    ROWS, schemas(), st.sampled_from(["equivalent", "exact", "json"]), st.booleans(), st.sampled_from(["first", "last"])
)
def test_columns_match_shredding_the_parsed_documents(
    rows: list[str | None], schema: ShreddingSchema, coerce: str, doubles: bool, duplicates: Any
) -> None:
    numbers: Any = "double" if doubles else "decimal"
    check(pa.array(rows, pa.string()), {"schema": schema, "coerce": coerce}, numbers=numbers, duplicate_keys=duplicates)


@fewer
@given(ROWS, schemas())
@pytest.mark.spec("shredding.metadata.names", "shredding.object.disjoint", "shredding.value.partial")
def test_every_column_matches_the_reference(rows: list[str | None], schema: ShreddingSchema) -> None:
    array = pa.array(rows, pa.string())
    columns: list[Any] = []
    for row in variant.parse_json(array, duplicate_keys="last").to_pylist():
        if row is None:
            columns.append(None)
            continue
        value = reference.decode(row["value"], reference.decode_metadata(row["metadata"]))
        columns.append({"metadata": row["metadata"], **reference.shred(value, schema)})
    found = variant.parse_json(array, duplicate_keys="last", shredding=schema)
    assert found.equals(pa.array(columns, storage_struct(schema)))
    assert variant.validate(found) is None


@pytest.mark.spec("shredding.metadata.names")
def test_metadata_contains_exactly_the_names_of_its_row() -> None:
    found = check(pa.array(['{"b":1,"a":{"c":2}}', "1"]), "a STRUCT<c: INT>, z INT")
    assert [reference.decode_metadata(row) for row in found.field("metadata").to_pylist()] == [["a", "b", "c"], []]


def test_object_shape_may_occur_at_several_schema_paths() -> None:
    texts = ['{"a":{"a":{"a":1,"x":2},"x":3},"x":4}', '{"x":{"a":1,"x":{"a":2}},"a":[{"a":1},{"a":{"a":2}}]}'] * 50
    check(pa.array(texts), "a STRUCT<a: STRUCT<x: INT>, x: INT>, x STRUCT<a: INT, x: STRUCT<a: INT>>")
    check(pa.array(texts), "a ARRAY<STRUCT<a: STRUCT<a: INT>>>, x STRUCT<x: VARIANT>")


@pytest.mark.parametrize("wide", [1, 127, 128, 255, 256, 257, 1023, 1024, 1025, 3000])
def test_objects_of_any_width_are_shredded(wide: int) -> None:
    fields = {f"k{i}": i for i in reversed(range(wide))}
    nested = {**fields, "inner": {**fields, "list": [fields, {"k0": fields}]}}
    texts = [json.dumps(fields), json.dumps(nested), '{"k0":1}', json.dumps([fields])]
    check(pa.array(texts), "k0 INT, zz STRING, inner STRUCT<k1: INT, list: ARRAY<STRUCT<k0: INT>>>")
    repeated = '{"k0":1,' + json.dumps(nested)[1:]
    check(pa.array([*texts, repeated]), "k0 INT, inner STRUCT<k1: INT>", duplicate_keys="first")


def test_shape_cache_evicts_many_shapes() -> None:
    generator = np.random.default_rng(1)
    texts = []
    for i in range(7000):
        names = [f"k{n}" for n in generator.integers(0, 5000 if i % 4 else 12, 6)]
        texts.append(json.dumps({name: {"n": i, name: [i]} for name in names}))
    check(pa.array(texts), "k1 STRUCT<n: INT, k1: ARRAY<INT>>, k7 STRUCT<k7: VARIANT>, k9 BIGINT")


@pytest.mark.parametrize("coerce", ["json", "equivalent", "exact"])
@pytest.mark.parametrize("leaf", ["DOUBLE", "FLOAT"])
def test_decimals_of_any_length_are_stored_in_float_columns(leaf: str, coerce: str) -> None:
    digits = str(3**80)
    cut = [
        f"{digits[: size - scale] or 0}.{digits[size - scale : size]}"
        for size in range(1, 38)
        for scale in range(1, size)
    ]
    shortest = [repr(n / 7919) for n in range(1, 500)]  # up to 17 digits, each the text of its double
    found = check(pa.array([*cut, *shortest]), {"schema": leaf, "coerce": coerce})
    typed = found.field("typed_value").to_pylist()
    if (leaf, coerce) == ("DOUBLE", "json"):
        assert all(value in (None, float(text)) for value, text in zip(typed, [*cut, *shortest], strict=True))
        assert sum(value is not None for value in typed[len(cut) :]) > len(shortest) / 2


def test_errors_match_those_of_parsing() -> None:
    array = pa.array(['{"a":1}', None, "[1 2]", '{"a":"x"}'])
    with pytest.raises(VariantError, match="row 2: a comma or the closing bracket") as caught:
        variant.parse_json(array, shredding="a INT")
    assert (caught.value.row, caught.value.offset) == (2, 3)
    found = check(array, "a INT", on_error="null")
    assert found.is_null().to_pylist() == [False, True, True, False]


def test_slices_chunks_and_threads_do_not_change_the_result() -> None:
    texts = [json.dumps({"id": i, "tags": ["x"] * (i % 3), "more": {"n": i / 2}}) for i in range(15_000)]
    array = pa.array(texts)
    schema = "id BIGINT, tags ARRAY<STRING>, more STRUCT<n: DECIMAL(9,1)>"
    whole = check(array, schema)
    for threads in (0, 2, 3):
        assert variant.parse_json(array, shredding=schema, threads=threads).equals(whole)
        assert variant.parse_json(array, threads=threads).equals(variant.parse_json(array))
    assert check(array.slice(7, 100), schema).equals(whole.slice(7, 100))
    chunked = pa.chunked_array([texts[:10], [], texts[10:]])
    found = variant.parse_json(chunked, shredding=schema, threads=2)
    assert isinstance(found, pa.ChunkedArray)
    assert found.equals(pa.chunked_array([whole]))
    assert variant.parse_json(chunked.cast(pa.large_string()), shredding=schema).equals(found)
    broken = pa.array([*texts, "x", "y"])
    with pytest.raises(VariantError, match="row 15000"):
        variant.parse_json(broken, shredding=schema, threads=3)


def test_json_lines_are_shredded() -> None:
    text = b'{"a":1}\n\n{"a":"x","b":2}\r\noops\nnull\n' * 20_000
    found, faults = variant.parse_json_lines(text, shredding="a INT", on_error="null", threads=2)
    alone, alike = variant.parse_json_lines(text, shredding="a INT", on_error="null")
    assert (found.equals(alone), faults) == (True, alike)
    assert [fault.line for fault in faults] == list(range(4, 100_000, 5))
    assert found.equals(variant.shred(variant.parse_json_lines(text, on_error="null")[0], "a INT"))
    with pytest.raises(VariantError, match="line 50004: no JSON value"):
        variant.parse_json_lines(text, shredding="a INT", threads=2, base_line=50_001)


def test_schema_may_be_inferred() -> None:
    texts = [
        json.dumps({"id": i, "name": f"n{i}", "rare": 1} if i % 97 == 0 else {"id": i, "name": "x"}) for i in range(500)
    ]
    schema = variant.infer_schema(variant.parse_json(pa.array(texts)))
    found = variant.parse_json(pa.array(texts), shredding="infer")
    assert found.type == storage_struct(schema)
    text = "\n".join(texts).encode()
    assert variant.parse_json_lines(text, shredding={"schema": "infer", "coerce": "json"})[0].type == found.type
    assert variant.parse_json(pa.array([], pa.string()), shredding="infer").type == variant.variant_type()
    assert variant.parse_json(pa.array(["1", "x"]), shredding="infer", on_error="null").null_count == 1


def test_untyped_schema_leaves_variants_unshredded() -> None:
    array = pa.array(['{"a":1}', None])
    assert variant.parse_json(array, shredding="VARIANT").equals(variant.parse_json(array))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"numbers": "float"}, ValueError),
        ({"max_bytes": 0}, ValueError),
        ({"max_bytes": 1 << 31}, ValueError),
        ({"threads": -1}, ValueError),
        ({"shredding": "a NONSENSE"}, ValueError),
        ({"shredding": 5}, TypeError),
        ({"shredding": {"schema": "a INT", "coerce": "maybe"}}, ValueError),
    ],
)
def test_invalid_arguments_are_rejected_before_any_work(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        variant.parse_json(pa.array(["no JSON"]), **options)
    with pytest.raises(error):
        variant.parse_json_lines(b"no JSON", **options)


def test_limit_error_is_a_variant_error_and_a_limit_error() -> None:
    for options, text in (({"max_depth": 2}, "[[[1]]]"), ({"max_bytes": 5}, "[1,2,3]")):
        for shredding in (None, "ARRAY<INT>"):
            with pytest.raises(VariantLimitError) as caught:
                variant.parse_json(pa.array(["1", text]), shredding=shredding, **options)
            assert isinstance(caught.value, VariantError)
            assert isinstance(caught.value, LimitError)
            assert caught.value.row == 1
            found = variant.parse_json(pa.array(["1", text]), shredding=shredding, on_error="null", **options)
            assert found.is_null().to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2.5", ("double", 2.5)), ("2.50", ("double", 2.5)), ("-0.0", ("double", -0.0)), ("1e2", ("double", 100.0)),
        ("0.1", ("double", 0.1)), ("9007199254740993.0", ("double", 9007199254740992.0)),
        ("123456789012345678.25", ("double", 123456789012345680.0)), ("0." + "0" * 40 + "1", ("double", 1e-41)),
        ("3.141592653589793238462643383279", ("double", 3.141592653589793)), ("2", ("int8", 2)),
        ("123456789012345678901234567890", ("decimal16", (123456789012345678901234567890, 0))),
    ],
)  # fmt: skip
def test_numbers_with_a_point_are_doubles_on_request(text: str, value: Any) -> None:
    row = variant.parse_json(pa.array([f"[{text}]"]), numbers="double")[0].as_py()
    (element,) = reference.decode(row["value"], []).data
    assert (element.type, repr(element.data)) == (value[0], repr(value[1]))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_round_trip(number: float) -> None:
    row = variant.parse_json(pa.array([repr(number)]), numbers="double")[0].as_py()
    value = reference.decode(row["value"], [])
    assert repr(float(value.data)) == repr(number)


def test_column_shredded_from_json_round_trips_through_a_file() -> None:
    texts = [json.dumps({"id": i, "place": {"name": f"p{i}", "x": [i]}, "mag": i / 4}) for i in range(1000)]
    array = variant.parse_json(pa.array([*texts, None, "[]"]), shredding="id BIGINT, place STRUCT<name: STRING>")
    out = io.BytesIO()
    pqext.write_table(pa.table({"v": array}), out)
    back = pqext.open(out.getvalue()).read(["v"])["v"]
    assert (
        variant.to_json(back).to_pylist()
        == variant.to_json(variant.parse_json(pa.array([*texts, None, "[]"]))).to_pylist()
    )
