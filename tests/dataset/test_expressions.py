"""Expressions are built with operators, compare structurally and read as they were meant."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
import shapely

from pqext import geo
from pqext.dataset.expressions import (
    MAX_DEPTH,
    And,
    Column,
    Comparison,
    Expression,
    IsNotNull,
    IsNull,
    Not,
    Or,
    Spatial,
    VariantField,
    all_of,
    any_of,
    col,
)
from pqext.dataset.expressions.visitors import columns, paths, push_down_not

A, B, C = col("a") > 1, col("b") == "x", col("c").is_null()


def test_operators_build_comparisons() -> None:
    assert str((col("a") == 1) & (col("a") != 2)) == "(a == 1 and a != 2)"
    assert str((col("a") < 1) | (col("a") <= 2)) == "(a < 1 or a <= 2)"
    assert str(~((col("a") > 1) & (col("a") >= 2))) == "not ((a > 1 and a >= 2))"
    assert str(col("a").isin([1, 2])) == "a in (1, 2)"
    for shown in (col("a") == 1, ~(col("a") > 1), col("a"), col("a") + 1, col("a").is_null()):
        assert repr(shown) == str(shown)
    assert str(col("a").is_null() | col("a").is_not_null()) == "(a is null or a is not null)"


def test_literal_of_any_library_may_be_on_the_left() -> None:
    assert (col("a") > 5) == (col("a") > 5)
    assert (np.int64(5) >= col("a")) == (col("a") <= 5)
    assert (np.float64(5) == col("a")) == (col("a") == 5.0)


def test_paths_are_dotted_or_sequences() -> None:
    assert col("a.b").path == ("a", "b")
    assert col(["a.b"]).path == ("a.b",)
    for wrong in ([], [1]):
        with pytest.raises(TypeError, match="sequence of names"):
            col(wrong)  # type: ignore[arg-type]


def test_variant_and_geometry_expressions_read_their_column() -> None:
    field = col("event").variant("$.user['uid']", "int64")
    assert field.equals(VariantField(Column(("event",)), "$.user.uid", "int64"))
    assert col("event").variant(["user", "uid"], pa.int64()).type == "BIGINT"
    assert columns(field > 5) == ("event",)
    assert str(field > 5) == "event[$.user.uid: int64] > 5"
    assert str(col("g").intersects((1, 2, 3, 4))) == "g intersects box (1.0, 2.0, 3.0, 4.0)"
    assert str(col("g").dwithin((1, 2, 3, 4), 500)) == "g dwithin 500.0 of box (1.0, 2.0, 3.0, 4.0)"
    assert str(col("g").within(shapely.Point(1, 2.5))) == "g within POINT (1 2.5)"
    assert str(col("g").within(shapely.Point(1, 2).buffer(1))).endswith("...")
    with pytest.raises(ValueError, match="position 0"):
        col("event").variant("user", "int64")


def test_geometries_are_accepted_as_boxes_wkb_or_objects() -> None:
    point = shapely.Point(1, 2)
    assert col("g").within(point) == col("g").within(shapely.to_wkb(point))
    with pytest.raises(TypeError, match="expected a box"):
        col("g").contains((1, 2, 3))
    with pytest.raises(TypeError, match="expected a box"):
        col("g").contains(5)
    with pytest.raises(TypeError, match=r"not str; shapely\.from_wkt reads WKT"):
        col("g").intersects("POINT (1 2)")
    for box in ((0, 2, 1, 1), (float("nan"), 0, 1, 1), (0, 0, float("inf"), 1), (200, 0, 100, 1)):
        with pytest.raises(ValueError, match="query box"):
            col("g").disjoint(box)
    with pytest.raises(ValueError, match="row 0"):
        col("g").intersects(b"\x01\x02")
    assert col("g").intersects(geo.BoundingBox(1, 2, 3, 4)) == col("g").intersects((1, 3, 2, 4))


def test_endlessly_nested_geometry_is_rejected() -> None:
    depth = 100_000
    with pytest.raises(ValueError, match="row 0"):
        col("g").intersects(struct.pack("<BII", 1, 7, 1) * depth + struct.pack("<BIdd", 1, 1, 0, 0))


def test_and_and_or_are_flat() -> None:
    assert (A & B) & C == A & (B & C) == And((A, B, C))
    assert (A | B) | C == A | (B | C) == Or((A, B, C))
    assert len(((A & B) | C).operands) == 2  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="at least two"):
        And((A,))
    assert all_of([A]) is A
    assert any_of([A]) is A
    assert all_of([A, B]) == A & B
    assert any_of([A, B]) == A | B


def test_double_negations_cancel() -> None:
    assert ~~A is A


def test_expressions_have_no_truth_value() -> None:
    with pytest.raises(TypeError, match="write & for and"):
        bool(A)
    with pytest.raises(TypeError, match="low <= c"):
        1 < col("a") < 5  # noqa: B015
    with pytest.raises(TypeError, match="write & for and"):
        bool(col("a"))


def test_objects_that_are_not_expressions_do_not_combine() -> None:
    for combine in (lambda: A & 1, lambda: A | "x", lambda: col("a") & 1, lambda: "x" | col("a")):
        with pytest.raises(TypeError):
            combine()
    with pytest.raises(TypeError, match="not with a condition"):
        col("a") == A  # noqa: B015
    with pytest.raises(TypeError, match="requires a list"):
        col("a").isin("abc")
    with pytest.raises(TypeError, match="expected an expression"):
        Not(col("a"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a column"):
        IsNull(A)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a column"):
        Spatial("g", "intersects", (0, 0, 1, 1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown operator"):
        Comparison(col("a"), "like", 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown operation"):
        Spatial(col("g"), "near", (0, 0, 1, 1))  # type: ignore[arg-type]


def test_equality_compares_structure_and_literal_types() -> None:
    assert hash(A) == hash(col("a") > 1)
    assert len({A, col("a") > 1, B}) == 2
    assert (col("a") > 1) != (col("a") > 1.0)
    literals = [1, 1.0, True, "1", b"1", float("nan"), 0.0, -0.0]
    assert len({col("a") == literal for literal in literals}) == len(literals)
    assert (col("a") == float("nan")).equals(col("a") == float("nan"))
    assert not A.equals("a > 1")  # type: ignore[arg-type]
    assert A != "a > 1"
    assert col("a").equals(col("a"))
    assert not col("a").equals(col("a").variant("$", "int64"))


def test_null_literals_are_rejected_with_advice() -> None:
    with pytest.raises(ValueError, match="is_null"):
        col("a") == None  # noqa: B015, E711


def test_not_is_pushed_to_the_leaves() -> None:
    box = (0, 0, 1, 1)
    assert push_down_not(~(A & B)) == (col("a") <= 1) | (col("b") != "x")
    assert push_down_not(~(A | ~B)) == (col("a") <= 1) & B
    assert push_down_not(~C) == col("c").is_not_null()
    assert push_down_not(Not(Not(C))) == C
    assert push_down_not(~col("g").intersects(box)) == col("g").disjoint(box)
    assert push_down_not(~col("g").disjoint(box)) == col("g").intersects(box)
    for leaf in (col("a").isin([1]), col("g").within(box), col("g").contains(box)):
        assert push_down_not(~(leaf & A)) == ~leaf | (col("a") <= 1)


def test_columns_are_listed_once_in_order() -> None:
    expression = (col("b.x") > 1) & ~(col("a").isin([1]) | col("b.y").is_null()) & col("g").within((0, 0, 1, 1))
    assert columns(expression) == ("b", "a", "g")
    assert paths(expression) == (("b", "x"), ("a",), ("b", "y"), ("g",))


def test_unprintable_names_and_values_are_escaped() -> None:
    assert str(col(["a\x1b"]) == "\n") == r"a\x1b == '\n'"


def test_excessively_nested_trees_are_rejected_on_construction() -> None:
    deep: Expression = A
    while deep.depth < MAX_DEPTH:
        deep = (deep & B) | C
    with pytest.raises(ValueError, match="levels deep"):
        deep & B
    with pytest.raises(ValueError, match="levels deep"):
        Not(deep)
    wide = A
    for number in range(500):
        wide = wide & (col("a") > number)
    assert wide.depth == 1
    assert isinstance(push_down_not(~wide), Or)
    assert isinstance(IsNotNull(col("a")), Expression)
