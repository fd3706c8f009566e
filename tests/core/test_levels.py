"""Taking nested arrays apart and putting them together, against record shredding value by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.base.errors import CorruptFileError
from pqext.core.options.read_write import ReadOptions, WriteOptions
from pqext.core.read.assemble import assemble
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.schema import shape
from pqext.core.schema.shape import LeafShape
from pqext.core.write import storage
from pqext.core.write.disassemble import DenseColumn, disassemble
from reference import dremel


def arrow_type(kind: dremel.Type) -> pa.DataType:
    tag = kind[1]
    if tag[0] == "leaf":
        return pa.int64()
    if tag[0] == "list":
        return pa.list_(pa.field("element", arrow_type(tag[1]), tag[1][0]))
    return pa.struct([pa.field(name, arrow_type(child), child[0]) for name, child in tag[1].items()])


def types(depth: int = 4) -> st.SearchStrategy[dremel.Type]:
    tags: st.SearchStrategy[Any] = st.just(("leaf",))
    if depth:
        inner = types(depth - 1)
        tags = st.one_of(
            tags,
            st.tuples(st.just("list"), inner),
            st.tuples(st.just("struct"), st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)),
        )
    return st.tuples(st.booleans(), tags)


def values(kind: dremel.Type) -> st.SearchStrategy[Any]:
    nullable, tag = kind
    if tag[0] == "leaf":
        some: st.SearchStrategy[Any] = st.integers(0, 99)
    elif tag[0] == "list":
        some = st.lists(values(tag[1]), max_size=3)
    else:
        some = st.fixed_dictionaries({name: values(child) for name, child in tag[1].items()})
    return st.one_of(st.none(), some) if nullable else some


@st.composite
def columns(draw: st.DrawFn) -> tuple[dremel.Type, list[Any]]:
    kind = draw(types())
    return kind, draw(st.lists(values(kind), max_size=8))


def split_rows(kind: dremel.Type, rows: list[Any]) -> tuple[pa.Array, shape.Shape, list[DenseColumn]]:
    field = pa.field("c", arrow_type(kind), kind[0])
    # A slice, so that every array has an offset.
    array = pa.array([*rows[:1], *rows], field.type).slice(len(rows[:1]))
    (stored,) = storage.plan(pa.schema([field]), WriteOptions())
    top = shape.from_node(storage.to_schema([stored]).root.children[0])
    return array, top, list(disassemble(top, array))


def levels(level: int | np.ndarray[Any, Any], entries: int) -> list[int]:
    return [level] * entries if isinstance(level, int) else level.tolist()


@pytest.mark.spec("levels.definition", "levels.repetition", "levels.every-entry", "nulls.not-stored")
@given(columns())
def test_levels_and_values_match_record_shredding(case: tuple[dremel.Type, list[Any]]) -> None:
    kind, rows = case
    _, _, leaves = split_rows(kind, rows)
    expected = dremel.shred(kind, rows)
    for column, path in zip(leaves, dremel.leaf_paths(kind), strict=True):
        assert levels(column.repetition, column.entries) == [entry[0] for entry in expected[path]]
        assert levels(column.definition, column.entries) == [entry[1] for entry in expected[path]]
        assert column.values.to_pylist() == [entry[2] for entry in expected[path] if entry[2] is not None]


def from_entries(leaf: LeafShape, entries: list[dremel.Entry]) -> LeafColumn:
    node = leaf.node
    slots = [value for _, level, value in entries if level >= leaf.slot_level]
    return LeafColumn(
        np.array([entry[0] for entry in entries], np.int16) if node.max_repetition_level else None,
        np.array([entry[1] for entry in entries], np.int16),
        pa.array(slots, pa.int64()),
    )


@given(columns())
def test_arrays_are_assembled_from_record_shredding(case: tuple[dremel.Type, list[Any]]) -> None:
    kind, rows = case
    array, top, _ = split_rows(kind, rows)
    expected = dremel.shred(kind, rows)
    leaves = {
        leaf.node.leaf_start: from_entries(leaf, expected[path])
        for leaf, path in zip(top.leaves(), dremel.leaf_paths(kind), strict=True)
    }
    built = assemble(top, leaves, ReadOptions())
    built.validate(full=True)
    assert built.to_pylist() == array.to_pylist()


def test_inconsistent_struct_columns_are_rejected() -> None:
    kind = (True, ("struct", {"a": (True, ("leaf",)), "b": (True, ("leaf",))}))
    _, top, _ = split_rows(kind, [])
    first, second = top.leaves()
    leaves = {0: from_entries(first, [(0, 2, 5)]), 1: from_entries(second, [(0, 2, 5), (0, 2, 6)])}
    with pytest.raises(CorruptFileError, match="columns of a field differ in length"):
        assemble(top, leaves, ReadOptions())


def test_element_before_any_list_is_rejected() -> None:
    _, top, _ = split_rows((True, ("list", (True, ("leaf",)))), [])
    (leaf,) = top.leaves()
    with pytest.raises(CorruptFileError, match="precedes the first list"):
        assemble(top, {0: from_entries(leaf, [(1, 3, 5)])}, ReadOptions())


def test_null_in_a_required_field_is_rejected_by_name() -> None:
    field = pa.field("c", pa.struct([pa.field("x", pa.int64(), False)]), True)
    (stored,) = storage.plan(pa.schema([field]), WriteOptions())
    top = shape.from_node(storage.to_schema([stored]).root.children[0])
    hidden = pa.StructArray.from_arrays([pa.array([1, None])], fields=list(field.type), mask=pa.array([False, True]))
    assert [column.values.to_pylist() for column in disassemble(top, hidden)] == [[1]]
    shown = pa.StructArray.from_arrays([pa.array([1, None])], fields=list(field.type))
    with pytest.raises(ValueError, match=r"c\.x"):
        list(disassemble(top, shown))
