"""Rows of variants are equal by equivalence class: compared, hashed, and in one canonical form."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext import variant
from pqext.variant import Timestamp, Variant
from pqext.variant.types import variant_type
from reference import variant_shred as reference
from reference.variant_strategies import fewer, schemas, valid_variants, variants

EMPTY = reference.encode_metadata([])
PAIRS = st.one_of(st.tuples(variants(), variants()), variants().map(lambda one: (one, one)))


def column(values: list[tuple[bytes, bytes]]) -> pa.StructArray:
    return pa.array([{"metadata": m, "value": v} for m, v in values], variant_type())


def decoded(array: pa.StructArray) -> list[Variant]:
    return [Variant(row["value"], row["metadata"]) for row in array.to_pylist()]


@given(st.lists(PAIRS, min_size=1, max_size=4))
@fewer
@pytest.mark.spec("variant.equivalence")
def test_row_equality_matches_single_values(pairs: list[Any]) -> None:
    left, right = (column([pair[i] for pair in pairs]) for i in (0, 1))
    wanted = [a == b for a, b in zip(decoded(left), decoded(right), strict=True)]
    assert variant.equals(left, right).to_pylist() == wanted
    hashes = zip(variant.hash(left).to_pylist(), variant.hash(right).to_pylist(), strict=True)
    assert [a == b for a, b in hashes] == wanted


@given(st.lists(valid_variants(), min_size=1, max_size=3), schemas())
@fewer
def test_canonical_form_equals_the_value_and_is_idempotent(values: list[Any], schema: Any) -> None:
    array = column(values)
    canonical = variant.canonical(array)
    assert variant.validate(canonical) is None
    assert decoded(canonical) == decoded(array)
    assert variant.canonical(canonical).equals(canonical)
    assert variant.canonical(variant.shred(array, schema)).equals(canonical)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, Decimal("1.00"), True),
        (2**70, Decimal(2**70), True),
        (1, 1.0, False),
        (1.0, np.float32(1), False),
        (float("nan"), -float("nan"), True),
        (0.0, -0.0, True),
        (np.float32("nan"), np.float32("-nan"), True),
        (datetime(2024, 1, 2), datetime(2024, 1, 2, tzinfo=UTC), False),
        (Timestamp(1_000_000, "ns", True), Timestamp(1_000, "us", True), True),
        (Timestamp(1_000_001, "ns", False), Timestamp(1_000, "us", False), False),
        ({"a": 1, "b": [1]}, {"b": [Decimal("1.0")], "a": 1}, True),
        ({"a": None}, {}, False),
        (True, 1, False),
        ("a", b"a", False),
    ],
)
@pytest.mark.spec("variant.equivalence")
def test_values_are_equal_only_within_their_equivalence_class(one: Any, other: Any, equal: bool) -> None:
    left, right = variant.from_python([one]), variant.from_python([other])
    assert variant.equals(left, right).to_pylist() == [equal]
    assert variant.equals(left, other).to_pylist() == [equal]
    assert (variant.hash(left)[0] == variant.hash(right)[0]) == equal


def test_long_string_encoding_equals_the_short_one() -> None:
    long = column([(EMPTY, b"\x40\x01\0\0\0a")])
    assert variant.equals(long, "a").to_pylist() == [True]
    assert variant.canonical(long).field("value").to_pylist() == [b"\x05a"]


def test_null_rows_compare_as_null() -> None:
    left = variant.parse_json(["1", None, "null", None])
    right = variant.parse_json(["1", "1", "null", None])
    assert variant.equals(left, right).to_pylist() == [True, None, True, None]
    assert variant.hash(left).is_valid().to_pylist() == [True, False, True, False]
    assert variant.canonical(left).is_valid().to_pylist() == [True, False, True, False]


def test_chunks_of_different_lengths_compare() -> None:
    array = variant.parse_json([str(i) for i in range(6)])
    left = pa.chunked_array([array.slice(0, 1), array.slice(1)])
    right = pa.chunked_array([array.slice(0, 4), array.slice(4)])
    assert variant.equals(left, right).to_pylist() == [True] * 6
    with pytest.raises(ValueError, match="the arrays must have the same length, not 6 and 5 rows"):
        variant.equals(left, array.slice(1))


def test_variants_are_grouped_by_hash_and_by_canonical_bytes() -> None:
    array = variant.parse_json(['{"a":1,"b":"x"}', '{"b":"x","a":1.0}', "2", '{"a":1}', "2.0"])
    table = pa.table({"key": variant.hash(array), "n": [1] * 5})
    assert sorted(table.group_by("key").aggregate([("n", "sum")])["n_sum"].to_pylist()) == [1, 2, 2]
    canonical = variant.canonical(array)
    keys = pa.table({"metadata": canonical.field("metadata"), "value": canonical.field("value"), "n": [1] * 5})
    groups = keys.group_by(["metadata", "value"]).aggregate([("n", "sum")])
    assert sorted(groups["n_sum"].to_pylist()) == [1, 2, 2]


def test_hashes_do_not_collide() -> None:
    array = variant.from_python([{"i": i, "s": str(i % 7)} for i in range(20_000)])
    hashes = variant.hash(array).to_numpy()
    assert len(np.unique(hashes)) == 20_000
    assert len(np.unique(hashes % 1024)) == 1024
