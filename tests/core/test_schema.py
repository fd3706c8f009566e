"""The schema tree and its levels, the backward-compatibility rules of lists, and schemas that are no tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import tables

import pqext
from pqext.core.base.errors import CorruptFileError, LimitError, UnsupportedError
from pqext.core.base.limits import Limits
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import (
    ConvertedType,
    FieldRepetitionType,
    FileMetaData,
    ListType,
    LogicalType,
    SchemaElement,
    Type,
)
from pqext.core.format.thrift import decode, encode
from pqext.core.options.read_write import ReadOptions, WriteOptions
from pqext.core.schema import lazy_tree, nodes, shape
from pqext.core.schema.types import logical
from pqext.core.write.storage import plan, to_schema

REQUIRED, OPTIONAL, REPEATED = FieldRepetitionType


def group(name: str, repetition: FieldRepetitionType, children: int, **more: Any) -> SchemaElement:
    return SchemaElement(name=name, repetition_type=repetition, num_children=children, **more)


def leaf(name: str, repetition: FieldRepetitionType, kind: Type = Type.INT32, **more: Any) -> SchemaElement:
    return SchemaElement(name=name, repetition_type=repetition, type=kind, **more)


def tree(*elements: SchemaElement, roots: int = 1) -> nodes.Schema:
    return lazy_tree.from_elements([SchemaElement(name="schema", num_children=roots), *elements])


def stored(elements: list[SchemaElement]) -> Sequence[SchemaElement]:
    """The elements as they are in an opened file."""
    footer = FileMetaData(version=2, schema=elements, num_rows=0, row_groups=[])
    return decode(FileMetaData, encode(footer))[0].schema


def field(*elements: SchemaElement) -> pa.Field:
    (top,) = (shape.from_node(node) for node in tree(*elements).root.children)
    return top.field(ReadOptions())


def test_levels_count_optional_and_repeated_fields_of_the_path() -> None:
    found = tree(
        group("a", OPTIONAL, 2), leaf("x", REQUIRED), group("b", REPEATED, 1), leaf("y", OPTIONAL), leaf("c", REQUIRED),
        roots=2,
    )
    assert [(n.dotted_path, n.max_definition_level, n.max_repetition_level) for n in found.leaves] == [
        ("a.x", 1, 0), ("a.b.y", 3, 1), ("c", 0, 0),
    ]
    assert found.find("a.b.y") is found.leaves[1]
    assert found.find(("a", "x")) is found.leaves[0]
    assert found.find("a.nope.y") is None
    assert found.find("a.x.y") is None
    assert "x" not in found.leaves[0]
    a = found.find("a")
    assert a is not None
    assert (a.leaf_start, a.leaf_stop) == (0, 2)


LIST = {"logicalType": LogicalType(LIST=ListType())}


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        pytest.param(
            [group("l", OPTIONAL, 1, **LIST), leaf("element", REPEATED)],
            pa.field("l", pa.list_(pa.field("element", pa.int32(), False))),
            id="rule 1: a repeated leaf is the element",
        ),
        pytest.param(
            [group("l", OPTIONAL, 1, **LIST), group("element", REPEATED, 2), leaf("a", REQUIRED), leaf("b", OPTIONAL)],
            pa.field(
                "l",
                pa.list_(
                    pa.field("element", pa.struct([pa.field("a", pa.int32(), False), pa.field("b", pa.int32())]), False)
                ),
            ),
            id="rule 2: a repeated group of several fields is the element",
        ),
        pytest.param(
            [group("l", OPTIONAL, 1, **LIST), group("element", REPEATED, 1), leaf("a", REPEATED)],
            pa.field(
                "l",
                pa.list_(
                    pa.field(
                        "element",
                        pa.struct([pa.field("a", pa.list_(pa.field("a", pa.int32(), False)), False)]),
                        False,
                    )
                ),
            ),
            id="rule 3: a repeated group of one repeated field is the element",
        ),
        pytest.param(
            [group("l", OPTIONAL, 1, **LIST), group("array", REPEATED, 1), leaf("a", REQUIRED)],
            pa.field("l", pa.list_(pa.field("array", pa.struct([pa.field("a", pa.int32(), False)]), False))),
            id="rule 4: a repeated group called array is the element",
        ),
        pytest.param(
            [group("l", OPTIONAL, 1, **LIST), group("l_tuple", REPEATED, 1), leaf("a", REQUIRED)],
            pa.field("l", pa.list_(pa.field("l_tuple", pa.struct([pa.field("a", pa.int32(), False)]), False))),
            id="rule 4: a repeated group called after the list is the element",
        ),
        pytest.param(
            [group("l", OPTIONAL, 1, converted_type=ConvertedType.LIST), group("x", REPEATED, 1), leaf("a", OPTIONAL)],
            pa.field("l", pa.list_(pa.field("a", pa.int32()))),
            id="rule 5: otherwise the one field of the group is the element, whatever the names",
        ),
        pytest.param(
            [group("l", OPTIONAL, 1, **LIST), group("array", REPEATED, 1, **LIST), leaf("array", REPEATED)],
            pa.field(
                "l",
                pa.list_(pa.field("array", pa.list_(pa.field("array", pa.int32(), False)), False)),
            ),
            id="a list of lists, both of two levels",
        ),
        pytest.param(
            [leaf("l", REPEATED)],
            pa.field("l", pa.list_(pa.field("l", pa.int32(), False)), False),
            id="a repeated field without annotation is a required list",
        ),
        pytest.param(
            [
                group("m", OPTIONAL, 1, converted_type=ConvertedType.MAP_KEY_VALUE), group("map", REPEATED, 2),
                leaf("str", REQUIRED), leaf("num", OPTIONAL),
            ],
            pa.field("m", pa.map_(pa.field("str", pa.int32(), False), pa.field("num", pa.int32()))),
            id="MAP_KEY_VALUE in place of MAP, with keys and values by position",
        ),
    ],
)
def test_lists_and_maps_of_every_format_version_are_read(elements: list[SchemaElement], expected: pa.Field) -> None:
    found = field(*elements)
    assert found == expected
    if pa.types.is_list(found.type):
        assert found.type.value_field == expected.type.value_field


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([], "fewer children"),
        ([leaf("a", REQUIRED), leaf("b", REQUIRED)], "elements outside any group"),
        ([group("a", REQUIRED, 5), leaf("b", REQUIRED)], "fewer children"),
        ([group("a", REQUIRED, 0)], "neither a type nor children"),
        ([group("a", REQUIRED, -3)], "neither a type nor children"),
        ([SchemaElement(name="a", type=Type.INT32, repetition_type=9)], "repetition type"),
        ([leaf("a", REQUIRED, Type.FIXED_LEN_BYTE_ARRAY)], "FIXED_LEN_BYTE_ARRAY with invalid length None"),
        ([leaf("a", REQUIRED, Type.FIXED_LEN_BYTE_ARRAY, type_length=-1)], "length -1"),
    ],
)
def test_schema_elements_that_do_not_form_a_tree_are_rejected(elements: list[SchemaElement], message: str) -> None:
    whole = [SchemaElement(name="schema", num_children=1), *elements]
    for form in (whole, stored(whole)):
        with pytest.raises(CorruptFileError, match=message):
            _ = list(lazy_tree.from_elements(form).leaves)


def test_unknown_physical_type_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="physical type 77"):
        _ = tree(SchemaElement(name="a", type=77, repetition_type=REQUIRED)).leaves[0]


def test_unreadable_column_does_not_affect_other_columns() -> None:
    found = tree(SchemaElement(name="a", type=77, repetition_type=REQUIRED), leaf("b", REQUIRED), roots=2)
    assert found.find("b") is found.leaves[1]
    with pytest.raises(UnsupportedError, match="physical type 77"):
        found.find("a")


def test_schema_deeper_than_the_limit_is_rejected() -> None:
    elements = [SchemaElement(name="schema", num_children=1)]
    elements += [group("g", OPTIONAL, 1) for _ in range(300)] + [leaf("x", REQUIRED)]
    with pytest.raises(LimitError, match=r"schema_depth=100 levels; raise the limit with limits=Limits\(schema_depth"):
        lazy_tree.from_elements(elements)
    assert lazy_tree.from_elements(elements, Limits(schema_depth=400)).leaves[0].max_definition_level == 300


def test_pyarrow_sees_the_same_types_as_from_its_own_writer(tmp_path: Any) -> None:
    table = tables.fixed()
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    pqext.write_table(table, ours)
    pq.write_table(table, theirs, store_schema=False, version="2.6", store_decimal_as_integer=True)
    found, expected = pq.ParquetFile(ours).schema, pq.ParquetFile(theirs).schema
    for index in range(len(expected)):
        mine, their = found.column(index), expected.column(index)
        for attribute in ("path", "physical_type", "converted_type", "max_definition_level", "max_repetition_level"):
            assert getattr(mine, attribute) == getattr(their, attribute), mine.path
        assert str(mine.logical_type) == str(their.logical_type), mine.path


@pytest.mark.parametrize("converted", [c for c in ConvertedType if c.name != "MAP_KEY_VALUE"])
def test_converted_type_alone_implies_its_logical_type(converted: ConvertedType) -> None:
    element = SchemaElement(name="a", converted_type=converted, precision=5, scale=2)
    found = logical.from_element(element)
    assert logical.converted_type(found) == converted


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.struct([]), "struct without fields"),
        (pa.list_(pa.dictionary(pa.int8(), pa.binary(0))), "fixed_size_binary"),
        (pa.decimal128(5, -2), "decimal"),
        (pa.decimal256(60, 61), "decimal256"),
        (pa.binary(0), "fixed_size_binary"),
        (pa.union([pa.field("x", pa.int8())], "sparse"), "sparse_union"),
    ],
)
def test_unsupported_types_are_rejected_by_name(kind: pa.DataType, message: str) -> None:
    with pytest.raises(TypeError, match=f"'col.*{message}"):
        plan(pa.schema([pa.field("col", kind)]), WriteOptions())


def test_field_ids_are_preserved() -> None:
    kind = pa.field("a", pa.int32(), metadata={"PARQUET:field_id": "17"})
    (node,) = to_schema(plan(pa.schema([kind]), WriteOptions())).root.children
    assert node.field_id == 17


def test_schema_too_deep_for_the_stack_is_rejected() -> None:
    elements = [SchemaElement(name="schema", num_children=1)]
    elements += [group("g", FieldRepetitionType.REPEATED, 1) for _ in range(250)] + [leaf("x", REQUIRED)]
    data = b"PAR1" + serialise_footer(FileMetaData(version=2, schema=elements, num_rows=0, row_groups=[]))
    with pqext.open(data, limits=Limits(schema_depth=300)) as file:
        for ask in (lambda: file.arrow_schema, file.read, lambda: next(file.iter_batches(), None)):
            with pytest.raises(LimitError, match="is nested too deeply"):
                ask()


def test_duplicate_name_returns_the_first_field_and_is_not_unique() -> None:
    root = tree(leaf("a", REQUIRED), leaf("b", REQUIRED), leaf("a", OPTIONAL), roots=3).root
    found = root.child("a")
    assert found is root.children[0]
    assert (root.is_unique("a"), root.is_unique("b")) == (False, True)


def test_groups_among_many_children_are_found() -> None:
    elements = [SchemaElement(name="schema", num_children=100)]
    for number in range(50):
        elements += [leaf(f"leaf {number}", OPTIONAL), group(f"group {number}", OPTIONAL, 1), leaf("x", OPTIONAL)]
    root = lazy_tree.from_elements(stored(list(elements))).root
    assert [root.position(name) for name in ("leaf 7", "group 49", "x")] == [14, 99, None]
    assert root.is_unique("group 3")


@pytest.mark.parametrize("count", [20, 58, 59, 100])  # 64 children are few enough to read all names
def test_children_are_found_by_linear_search_or_index(count: int) -> None:
    names = [*(f"column {i}" for i in range(count)), "", "column 7", "é", "é\u0301", "column 7", "x" * 300]
    root = SchemaElement(name="schema", num_children=len(names))
    elements = stored([root, *(leaf(name, OPTIONAL) for name in names)])
    for sought in (names, ["column", "column 500", "schema", "x" * 299, "\udce9", "\ud800"]):
        for name in sought:
            found = lazy_tree.from_elements(stored(list(elements))).root
            assert found.position(name) == (names.index(name) if name in names else None)
            assert found.is_unique(name) == (names.count(name) <= 1)
            assert ("child_names" in vars(found)) == (len(names) <= 64)
    found = lazy_tree.from_elements(stored(list(elements))).root
    for number, name in enumerate(dict.fromkeys(names)):
        assert ("child_names" in vars(found)) == (number > 16 or (number > 0 and len(names) <= 64))
        assert found.position(name) == names.index(name)
    for _ in range(2):  # from the 17th on by an index of all
        assert [found.position(name) for name in names] == [names.index(name) for name in names]
        assert [found.is_unique(name) for name in names] == [names.count(name) == 1 for name in names]
    assert found.child_names == names
