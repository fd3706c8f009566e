"""A guard holds wherever the exact comparison does, so it never loses a row, and is null only with it."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import zip_longest
from typing import Any

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from spark.sessions import INTERPRETED
from spark.test_settings import settings

from pqext.spark.pushdown.guards import OPERATORS, is_widening_cast, leaf_guard, list_guard, spark_literal

DOUBLES = [0.0, -0.0, 1.0, 4.9, 4.899999999999999, 4.900000000000001, -7.25, 1e300, -1e300, float("inf"), float("nan")]
LEAVES: dict[str, list[Any]] = {
    "decimal(9,2)": [Decimal(text) for text in ("0", "4.90", "4.89", "4.91", "5.00", "-7.25", "9999999.99")],
    "decimal(38,18)": [Decimal(text) for text in ("4.9", "4.899999999999999999", "4.900000000000000001", "1e19")],
    "bigint": [0, 5, -5, 2**53 + 1, 2**63 - 1, -(2**63)],
    "tinyint": [0, 5, -5, 127, -128],
    "float": [0.0, 4.9, -7.25, 3e38, float("inf"), float("nan")],
    "double": DOUBLES,
    "string": ["", "a", "b", "ü"],
    "boolean": [True, False],
    "date": [datetime.date(2018, 2, 6), datetime.date(1, 1, 1)],
}
CASES: list[tuple[str, str, list[Any]]] = [
    ("decimal(9,2)", "double", [4.9, 5, Decimal("4.9"), 4.905, -1e30, 1e30, 9999999.99]),
    ("decimal(9,2)", "float", [4.9, 5, 4.900001]),
    ("decimal(9,2)", "decimal(9,2)", [4.9, Decimal("4.9"), Decimal("4.905"), 5]),
    ("decimal(9,2)", "bigint", [4, 5, -7, -8]),
    ("decimal(38,18)", "double", [4.9, 1e19]),
    ("decimal(38,18)", "float", [4.9]),
    ("bigint", "bigint", [5, 5.5, Decimal("5.5"), 2**63 - 1, 2**70, -(2**70), 10**40]),
    ("bigint", "double", [5, 5.5, float(2**53), 2.0**63, float(2**53 + 2)]),
    ("bigint", "decimal(38,2)", [5, Decimal("5.01")]),
    ("tinyint", "int", [5, 127, 1000, -1000]),
    ("float", "double", [4.9, 4.900000095367432, 0, 1e300]),
    ("float", "float", [4.9, 0.0]),
    ("double", "double", [4.9, 0.0, -0.0, 5, Decimal("4.9"), 2**60]),
    ("string", "string", ["a", ""]),
    ("boolean", "boolean", [True]),
    ("date", "date", [datetime.date(2018, 2, 6)]),
]


def guards(leaf: str, requested: str, literals: list[Any]) -> Iterator[tuple[str, Column, Column]]:
    """Each guard of a case, with its name before it and what it guards after it."""
    type, wanted = (T._parse_datatype_string(name) for name in (leaf, requested))
    x = F.col(f"`{leaf}`")
    for literal in literals:
        for op, compare in OPERATORS.items():
            guard = leaf_guard(x, type, wanted, op, literal)
            if guard is not None:
                yield f"{op} {literal!r}", guard, compare(x.cast(wanted), spark_literal(literal))
    guard = list_guard(x, type, wanted, literals)
    if guard is not None:
        yield "isin", guard, x.cast(wanted).isin([spark_literal(value) for value in literals])


def test_matching_row_never_fails_its_guard(spark: Any) -> None:
    fields = [T.StructField(leaf, T._parse_datatype_string(leaf)) for leaf in LEAVES]
    rows = [*zip_longest(*LEAVES.values()), (None,) * len(LEAVES)]
    cases = {(leaf, requested): [*guards(leaf, requested, literals)] for leaf, requested, literals in CASES}
    assert all(cases.values())
    conditions = [(leaf, requested, *one) for (leaf, requested), every in cases.items() for one in every]
    pairs = [F.struct(guard.alias("guard"), exact.alias("exact")) for *_, guard, exact in conditions]
    with settings(spark, **INTERPRETED):
        found = spark.createDataFrame(rows, T.StructType(fields)).select(F.array(*pairs)).collect()
    for row, (truths,) in zip(rows, found, strict=True):
        values = dict(zip(LEAVES, row, strict=True))
        for (leaf, requested, name, *_), (guarded, exact) in zip(conditions, truths, strict=True):
            assert guarded is True or exact is not True, f"{values[leaf]!r} as {requested} {name}"
            assert (guarded is None) == (exact is None), f"{values[leaf]!r} as {requested} {name}"


@pytest.mark.parametrize(
    ("leaf", "requested", "literal"),
    [
        ("bigint", "int", 5),
        ("string", "double", 5.0),
        ("double", "decimal(9,2)", Decimal(5)),
        ("decimal(38,0)", "bigint", 5),
        ("bigint", "string", "5"),
        ("bigint", "bigint", "5"),
        ("double", "double", float("nan")),
        ("boolean", "int", 1),
    ],
)
def test_fallible_or_reordering_cast_has_no_guard(
    spark: Any, leaf: str, requested: str, literal: Any
) -> None:
    type, wanted = (T._parse_datatype_string(name) for name in (leaf, requested))
    assert leaf_guard(F.col("x"), type, wanted, ">=", literal) is None


def test_widened_leaf_is_rounded_once(spark: Any) -> None:
    chosen = random.Random(1)
    types = {"decimal(18,6)": (18, 6), "decimal(38,18)": (38, 18), "decimal(38,0)": (38, 0), "bigint": (18, 0)}
    rows = [
        [Decimal(chosen.randrange(-(10**digits), 10**digits)).scaleb(-scale) for digits, scale in types.values()]
        for _ in range(500)
    ]
    schema = ", ".join(f"c{number} {type}" for number, type in enumerate(types))
    with localcontext(prec=60):
        df = spark.createDataFrame([(*row[:3], int(row[3])) for row in rows], schema)
        found = df.select([F.col(name).cast("double") for name in df.columns]).collect()
        assert [tuple(row) for row in found] == [tuple(map(float, row)) for row in rows]
    for name in types:
        assert is_widening_cast(T._parse_datatype_string(name), T.DoubleType())
    for leaf, requested in (("bigint", "int"), ("double", "float"), ("bigint", "float"), ("string", "double")):
        assert not is_widening_cast(T._parse_datatype_string(leaf), T._parse_datatype_string(requested))


def test_literal_has_the_leaf_type_rounded_outward(spark: Any) -> None:
    guard = leaf_guard(F.col("x"), T.DecimalType(9, 2), T.DoubleType(), ">=", 4.905)
    df = spark.createDataFrame([(Decimal("4.91"),), (Decimal("4.90"),)], "x decimal(9,2)")
    assert [row.x for row in df.where(guard).collect()] == [Decimal("4.91")]
    plan = df.where(guard)._jdf.queryExecution().optimizedPlan().toString()
    assert "cast(x" not in plan
    assert "4.91" in plan
