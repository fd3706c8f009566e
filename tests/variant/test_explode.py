"""``explode`` gives the elements of arrays and the fields of objects rows of their own, shredded or not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.core.base.errors import VariantError
from pqext.variant.access.path import Wildcard
from pqext.variant.shredding.schema import ShreddingSchema
from pqext.variant.types import is_variant_type, variant_type
from reference import variant_shred as reference
from reference.variant_strategies import NAMES, fewer, schemas, variants

ROWS = [
    '[1,null,{"a":2}]',
    '{"b":1,"a":2}',
    "5",
    None,
    "[]",
    '{"o":[{"p":1,"q":[1,2]},{"p":"2"},{"q":[3]}],"*":[7]}',
    "null",
]
SCHEMAS = [None, "o ARRAY<STRUCT<p: INT, q: ARRAY<INT>>>", "ARRAY<INT>", "o ARRAY<VARIANT>"]


def rows_of(schema: str | None = None) -> pa.StructArray:
    array = variant.parse_json(pa.array(ROWS))
    return array if schema is None else variant.shred(array, schema)


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in ("row", "pos", "key", "value")), strict=True))


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (
            "$",
            [
                (0, 0, None, "1"),
                (0, 1, None, None),
                (0, 2, None, '{"a":2}'),
                (1, 0, "a", "2"),
                (1, 1, "b", "1"),
                (5, 0, "*", "[7]"),
                (5, 1, "o", '[{"p":1,"q":[1,2]},{"p":"2"},{"q":[3]}]'),
            ],
        ),
        ("$[*]", [(0, 0, None, "1"), (0, 1, None, None), (0, 2, None, '{"a":2}')]),
        ("$[*].a", [(0, 0, None, None), (0, 1, None, None), (0, 2, None, "2")]),
        ("$[2]", [(0, 0, "a", "2")]),
        ("$.o[*].p", [(5, 0, None, "1"), (5, 1, None, "2"), (5, 2, None, None)]),
        ("$.o[*].q[*]", [(5, 0, None, "1"), (5, 1, None, "2"), (5, 0, None, "3")]),
        ("$.o[0].q", [(5, 0, None, "1"), (5, 1, None, "2")]),
        (("o", 0, Wildcard.FIELDS), [(5, 0, "p", "1"), (5, 1, "q", "[1,2]")]),
        ("$.o[*].*", [(5, 0, "p", "1"), (5, 1, "q", "[1,2]"), (5, 0, "p", "2"), (5, 0, "q", "[3]")]),
        ("$['*']", [(5, 0, None, "7")]),
        ("$.*[0]", [(1, 0, "a", None), (1, 1, "b", None), (5, 0, "*", "7"), (5, 1, "o", '{"p":1,"q":[1,2]}')]),
        ("$.nothing", []),
    ],
)
@pytest.mark.spec("explode.rows", "explode.order", "explode.wildcards")
def test_elements_and_fields_are_separate_rows(path: Any, wanted: list[Any], schema: str | None) -> None:
    array = rows_of(schema)
    table = variant.explode(array, path, "string")
    table.validate(full=True)
    assert table.schema.types == [pa.int64(), pa.int32(), pa.string(), pa.string()]
    assert tuples(table) == wanted
    assert tuples(variant.explode(array.slice(1), path, "string")) == [(r - 1, *rest) for r, *rest in wanted if r]
    chunked = pa.chunked_array([array.slice(0, 2), array.slice(2, 0), array.slice(2)])
    assert tuples(variant.explode(chunked, path, "string")) == wanted
    values = variant.explode(array, path).column("value")
    assert is_variant_type(values.type)
    assert variant.get(values, "$", "string").to_pylist() == [value for *_, value in wanted]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.spec("explode.outer")
def test_outer_preserves_rows_without_elements(schema: str | None) -> None:
    table = variant.explode(rows_of(schema), "$[*]", "string", outer=True)
    found = [(0, 0, None, "1"), (0, 1, None, None), (0, 2, None, '{"a":2}')]
    assert tuples(table) == [*found, *((row, None, None, None) for row in range(1, 7))]
    whole = variant.explode(rows_of(schema), "$", outer=True)
    assert whole.column("row").to_pylist() == [0, 0, 0, 1, 1, 2, 3, 4, 5, 5, 6]
    value = whole.column("value").combine_chunks()
    assert value.is_valid().to_pylist() == [True] * 5 + [False] * 3 + [True] * 2 + [False]


def test_empty_table_has_the_same_columns() -> None:
    for empty in (rows_of().slice(0, 0), pa.chunked_array([], variant_type()), rows_of().slice(2, 1)):
        table = variant.explode(empty, "$", "int")
        assert (table.num_rows, table.schema.field("value").type) == (0, pa.int32())
    assert variant.explode(rows_of().slice(2, 1)).schema.field("value").metadata  # marked as a variant


def test_strict_rejects_values_that_cannot_be_cast() -> None:
    with pytest.raises(VariantError, match=r"row 0: the value at \$\[\*\] does not cast to int32"):
        variant.explode(rows_of(), "$[*]", "int", strict=True)
    assert variant.explode(rows_of(), "$.o[*].p", "int", strict=True).column("value").to_pylist() == [1, 2, None]


def test_failed_cast_within_a_list_of_shredded_objects_names_its_row() -> None:
    array = variant.parse_json(pa.array(["[]", '[{"a":1},{"a":2}]', '[{"a":3},{"a":"x"}]']))
    shredded = variant.shred(array, "ARRAY<STRUCT<a: INT>>")
    for rows in (array, shredded):
        assert variant.explode(rows, "$[*].*", "int").column("value").to_pylist() == [1, 2, 3, None]
        with pytest.raises(VariantError) as caught:
            variant.explode(rows, "$[*].*", "int", strict=True)
        assert caught.value.row == 2


@pytest.mark.parametrize("path", ["$[*", "$.a[**]", "$[-1]", "[*]"])
def test_invalid_path_is_rejected(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        variant.explode(rows_of(), path)


Tree = Any
steps = st.lists(st.one_of(st.sampled_from(NAMES), st.integers(0, 2), st.sampled_from(Wildcard)), max_size=3)


def twin(value: reference.Value, path: list[Any]) -> list[tuple[int, str | None, reference.Value | None]]:
    """(position, key, value) of each value at the path, by walking the decoded value."""
    found: list[tuple[int, str | None, reference.Value | None]] = [(0, None, value)]
    for step in path if any(isinstance(step, Wildcard) for step in path) else [*path, None]:
        stepped: list[tuple[int, str | None, reference.Value | None]] = []
        for position, key, at in found:
            kind = "" if at is None else at.type
            if step is None or isinstance(step, Wildcard):
                if kind == "array" and step is not Wildcard.FIELDS:
                    stepped.extend((i, None, child) for i, child in enumerate(at.data))  # type: ignore[union-attr]
                if kind == "object" and step is not Wildcard.ELEMENTS:
                    fields = at.data  # type: ignore[union-attr]
                    stepped.extend((i, name, child) for i, (_, name, child) in enumerate(fields))
                continue
            child = None
            if isinstance(step, str) and kind == "object":
                child = next((c for _, name, c in at.data if name == step), None)  # type: ignore[union-attr]
            if isinstance(step, int) and kind == "array":
                child = at.data[step] if step < len(at.data) else None  # type: ignore[union-attr]
            stepped.append((position, key, child))
        found = stepped
    return found


@fewer
@given(st.lists(st.one_of(st.none(), variants()), min_size=1, max_size=4), st.one_of(st.none(), schemas()), steps)
@pytest.mark.spec("explode.rows", "explode.order")
def test_explode_matches_walking_the_values(
    rows: list[tuple[bytes, bytes] | None], schema: ShreddingSchema | None, path: list[Any]
) -> None:
    array = pa.array([row and {"metadata": row[0], "value": row[1]} for row in rows], variant_type())
    wanted = []
    for number, row in enumerate(rows):
        if row is not None:
            found = twin(reference.decode(row[1], reference.decode_metadata(row[0])), path)
            wanted += [(number, i, key, v and reference.equivalent(v)) for i, key, v in found]
    shredded = array if schema is None else variant.shred(array, schema)
    table = variant.explode(shredded, path)
    table.validate(full=True)
    found_rows = []
    for number, position, key, value in tuples(table):
        names = reference.decode_metadata(value["metadata"]) if value else []
        found_rows.append(
            (number, position, key, value and reference.equivalent(reference.decode(value["value"], names)))
        )
    assert found_rows == wanted
    outer = variant.explode(shredded, path, outer=True)
    assert set(outer.column("row").to_pylist()) == set(range(len(rows)))
    assert outer.num_rows == table.num_rows + len(set(range(len(rows))) - set(table.column("row").to_pylist()))
