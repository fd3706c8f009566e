"""Variants are changed row by row: set, deleted, merged, rid of nulls; what is not changed keeps its value."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant import Variant
from pqext.variant.types import variant_type
from reference import variant_edits as reference
from reference.variant_strategies import NAMES, fewer, schemas, variants

RFC_7396 = [
    # Appendix A: original, patch, result.
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('["a","b"]', '["c","d"]', '["c","d"]'),
    ('{"a":"b"}', '["c"]', '["c"]'),
    ('{"a":"foo"}', "null", "null"),
    ('{"a":"foo"}', '"bar"', '"bar"'),
    ('{"e":null}', '{"a":1}', '{"a":1,"e":null}'),
    ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]
ROWS = ['{"a":1,"b":[1,2]}', '{"a":{"c":1}}', "null", None, "[1]", '{"b":[]}']


def rows_of(texts: list[str | None] = ROWS) -> pa.StructArray:
    return variant.parse_json(pa.array(texts, pa.string()))


def texts(array: Any) -> list[str | None]:
    return variant.to_json(array).to_pylist()  # type: ignore[no-any-return]


def column(values: list[tuple[bytes, bytes]]) -> pa.StructArray:
    return pa.array([{"metadata": m, "value": v} for m, v in values], variant_type())


def decoded(array: pa.StructArray) -> list[Variant]:
    return [Variant(row["value"], row["metadata"]) for row in array.to_pylist()]


STEPS = st.lists(st.one_of(st.sampled_from(NAMES[:5]), st.integers(-3, 3)), max_size=3)


SECTION_3 = '{"author":{"familyName":"Doe","givenName":"John"},"title":"Goodbye!"}', '{"author":{"familyName":null}}'


@pytest.mark.parametrize(
    ("original", "patch", "result"), [*RFC_7396, (*SECTION_3, '{"author":{"givenName":"John"},"title":"Goodbye!"}')]
)
@pytest.mark.spec("merge.replace", "merge.object", "merge.null", "merge.keep")
def test_merge_patch_matches_the_appendix_of_rfc_7396(original: str, patch: str, result: str) -> None:
    array = rows_of([original])
    assert texts(variant.merge(array, Variant.from_json(patch))) == [result]
    assert texts(variant.merge(array, rows_of([patch]))) == [result]
    if not isinstance(json.loads(patch), str):
        assert texts(variant.merge(array, json.loads(patch))) == [result]


@given(st.lists(st.tuples(variants(), variants()), min_size=1, max_size=3))
@fewer
def test_merge_patch_matches_python_values(pairs: list[Any]) -> None:
    targets, patches = (column([pair[i] for pair in pairs]) for i in (0, 1))
    merged = variant.merge(targets, patches)
    assert variant.validate(merged) is None
    wanted = [
        reference.merge_patch(target.to_python(), patch.to_python())
        for target, patch in zip(decoded(targets), decoded(patches), strict=True)
    ]
    assert decoded(merged) == [Variant.from_python(value) for value in wanted]


@given(st.lists(variants(), min_size=1, max_size=3), STEPS, variants(), st.booleans())
@fewer
def test_set_and_delete_match_python_values(values: list[Any], path: Any, new: Any, create: bool) -> None:
    array = column(values)
    value = decoded(column([new]))[0]
    changed = variant.set(array, path, value, create=create)
    assert variant.validate(changed) is None
    wanted = [reference.set_at(row.to_python(), path, value.to_python(), create) for row in decoded(array)]
    assert decoded(changed) == [Variant.from_python(row) for row in wanted]
    if path:
        deleted = variant.delete(array, path)
        assert variant.validate(deleted) is None
        wanted = [reference.delete_at(row.to_python(), path) for row in decoded(array)]
        assert decoded(deleted) == [Variant.from_python(row) for row in wanted]


@given(st.lists(variants(), min_size=1, max_size=3), schemas(), STEPS)
@fewer
def test_shredded_columns_are_edited_like_unshredded_ones(values: list[Any], schema: Any, path: Any) -> None:
    array = column(values)
    shredded = variant.shred(array, schema, coerce="exact")
    changed = variant.set(shredded, path, 1)
    assert variant.equals(changed, variant.set(array, path, 1)).to_pylist() == [True] * len(values)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("$.a", ['{"a":9,"b":[1,2]}', '{"a":9}', "null", None, "[1]", '{"a":9,"b":[]}']),
        ("$.a.c", ['{"a":1,"b":[1,2]}', '{"a":{"c":9}}', "null", None, "[1]", '{"a":{"c":9},"b":[]}']),
        ("$.b[-1]", ['{"a":1,"b":[1,9]}', '{"a":{"c":1}}', "null", None, "[1]", '{"b":[]}']),
        ("$.b[2]", ['{"a":1,"b":[1,2,9]}', '{"a":{"c":1}}', "null", None, "[1]", '{"b":[]}']),
        ("$[0]", ['{"a":1,"b":[1,2]}', '{"a":{"c":1}}', "null", None, "[9]", '{"b":[]}']),
        ("$", ["9", "9", "9", None, "9", "9"]),
    ],
)
def test_value_is_set_if_the_path_can_be_followed(path: str, wanted: list[str | None]) -> None:
    assert texts(variant.set(rows_of(), path, 9)) == wanted


def test_only_existing_values_are_replaced_without_create() -> None:
    assert texts(variant.set(rows_of(), "$.b[0]", 9, create=False)) == [
        '{"a":1,"b":[9,2]}', '{"a":{"c":1}}', "null", None, "[1]", '{"b":[]}',
    ]  # fmt: skip


def test_values_may_be_an_array_with_one_row_each_including_nulls() -> None:
    array = rows_of(['{"a":1}', "{}", None])
    assert texts(variant.set(array, "$.p", pa.array([1.5, None, 2]))) == ['{"a":1,"p":1.5}', '{"p":null}', None]
    assert texts(variant.set(array, "$.p", pa.array([{"q": 1}, {"q": None}, None]))) == [
        '{"a":1,"p":{"q":1}}', '{"p":{}}', None,
    ]  # fmt: skip
    assert texts(variant.set(array, "$.p", rows_of(["[]", None, None]))) == ['{"a":1,"p":[]}', '{"p":null}', None]


def test_text_patch_does_not_replace_every_value() -> None:
    with pytest.raises(TypeError, match=r"Variant\.from_json"):
        variant.merge(rows_of(['{"a":1}']), '{"a":2}')


def test_null_patch_rows_change_nothing() -> None:
    assert texts(variant.merge(rows_of(["1", '{"a":1}']), rows_of([None, '{"a":null}']))) == ["1", "{}"]


def test_chunks_and_slices_are_edited_by_row() -> None:
    array = pa.chunked_array([rows_of().slice(1, 2), rows_of().slice(4), rows_of([])])
    patch = pa.chunked_array([rows_of(['{"n":0}'] * 3), rows_of(['{"n":1}'])])
    merged = variant.merge(array, patch)
    assert [len(chunk) for chunk in merged.chunks] == [2, 2, 0]
    assert texts(merged) == ['{"a":{"c":1},"n":0}', '{"n":0}', '{"n":0}', '{"b":[],"n":1}']


def test_dictionary_contains_exactly_the_names_of_the_row() -> None:
    array = rows_of(['{"a":1,"b":2}', '{"c":3}'])
    names = [row.dictionary for row in decoded(variant.delete(array, "$.a"))]
    assert [(part.names, part.is_sorted) for part in names] == [(("b",), True), (("c",), True)]


def test_strict_names_the_first_row_that_does_not_match_the_path() -> None:
    with pytest.raises(VariantError, match=r"row 1: the variant has no value at \$\.b\[0\]"):
        variant.set(rows_of(['{"b":[1]}', '{"b":{}}', "1"]), "$.b[0]", 1, strict=True)
    with pytest.raises(VariantError, match=r"row 2: the variant has no value at \$\.a"):
        variant.delete(pa.chunked_array([rows_of(['{"a":1}'] * 2), rows_of(["1"])]), "$.a", strict=True)


def test_invalid_edits_are_rejected() -> None:
    with pytest.raises(ValueError, match="root value cannot be deleted"):
        variant.delete(rows_of(), "$")
    with pytest.raises(ValueError, match=r"variant\.explode"):
        variant.set(rows_of(), "$.b[*]", 1)
    with pytest.raises(ValueError, match=r"have 6 rows like the array, not 2"):
        variant.set(rows_of(), "$.a", pa.array([1, 2]))
    with pytest.raises(TypeError, match="set objects cannot be represented as variants"):
        variant.set(rows_of(), "$.a", {1})
    with pytest.raises(VariantError, match="nested too deeply"):
        variant.set(variant.from_python([{}]), ["a"] * 1001, 1)


def without_nulls(value: Any, arrays: bool) -> Any:
    """A Python value without its null fields and, with ``arrays``, null elements."""
    if isinstance(value, dict):
        return {key: without_nulls(child, arrays) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [without_nulls(child, arrays) for child in value if child is not None or not arrays]
    return value


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["", "a"]),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from("abc"), children, max_size=3),
    max_leaves=8,
)


@given(values=st.lists(JSON, max_size=5), arrays=st.booleans(), shredded=st.booleans())
def test_null_fields_and_elements_are_removed_with_their_names(values: list[Any], arrays: bool, shredded: bool) -> None:
    rows = variant.parse_json(pa.array([None, *map(json.dumps, values)], pa.string()))
    given = variant.shred(rows, "STRUCT<a: STRUCT<b: INT>, b: ARRAY<INT>>") if shredded else rows
    expected = variant.parse_json(
        pa.array([None, *(json.dumps(without_nulls(value, arrays)) for value in values)], pa.string())
    )
    found = variant.strip_nulls(given, arrays=arrays)
    assert variant.canonical(found) == variant.canonical(expected)
    assert found.field("metadata").to_pylist()[1:] == expected.field("metadata").to_pylist()[1:]
    assert variant.validate(found) is None
