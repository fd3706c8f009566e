"""Hypothesis strategies: tables of every plain type, and expressions that suit them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st

from pqext.core.format.predicate import COMPARE
from pqext.dataset.expressions import (
    ARITHMETIC,
    And,
    Arithmetic,
    Comparison,
    Constant,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Not,
    Or,
    Relation,
    Value,
    col,
)

INTEGERS = st.one_of(
    st.integers(-5, 5), st.sampled_from([2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 2**64 - 1])
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, -1.5, 0.1, 1e300, math.inf, -math.inf, math.nan, 2.0**53, 2.0**63]),
    st.floats(-5, 5),
)
DECIMALS = st.one_of(
    st.decimals(-5, 5, places=3),
    st.sampled_from([Decimal("1e40"), Decimal("-1e40"), Decimal("1e-40"), Decimal("1.10"), Decimal("999.99")]),
)
NUMBERS = st.one_of(INTEGERS, FLOATS, DECIMALS)
TEXT = st.text("ab\x00é\U0001f600\uffff", max_size=3)
BYTES = st.binary(max_size=3)
DATES = st.one_of(st.dates(date(1969, 12, 30), date(1970, 1, 3)), st.sampled_from([date.min, date.max]))
INSTANTS = st.sampled_from(
    [datetime(1969, 12, 31, 23, 59, 59, 999_999)]
    + [datetime(1970, 1, day, 0, 0, 0, micro) for day in (1, 2) for micro in (0, 1, 999, 1000, 999_999)]
)
DATETIMES = st.one_of(INSTANTS, st.sampled_from([datetime.min, datetime.max]))
NANOSECONDS = st.one_of(st.integers(-2, 2), st.sampled_from([10**9 - 1, 10**15, -(10**18)])).map(
    lambda value: pa.scalar(value, pa.timestamp("ns"))
)
TIMES = st.one_of(
    st.sampled_from([time(hour, 0, 0, micro) for hour in (0, 1, 23) for micro in (0, 1, 1000, 2000)]),
    st.integers(0, 3).map(lambda value: pa.scalar(value, pa.time64("ns"))),
)
UUIDS = st.integers(0, 3).map(lambda value: UUID(int=value))


def _integers(low: int, high: int) -> st.SearchStrategy:
    return st.one_of(st.integers(max(low, -4), min(high, 4)), st.sampled_from([low, high]))


_SMALL_DECIMALS = st.decimals(-5, 5, places=2)

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy, st.SearchStrategy]] = {
    "bool": (pa.bool_(), st.booleans(), st.booleans()),
    "i8": (pa.int8(), _integers(-128, 127), NUMBERS),
    "i32": (pa.int32(), _integers(-(2**31), 2**31 - 1), NUMBERS),
    "i64": (pa.int64(), _integers(-(2**63), 2**63 - 1), NUMBERS),
    "u32": (pa.uint32(), _integers(0, 2**32 - 1), NUMBERS),
    "u64": (pa.uint64(), _integers(0, 2**64 - 1), NUMBERS),
    "f32": (pa.float32(), st.sampled_from([0.0, -0.0, 1.0, 0.1, math.inf, -math.inf, math.nan, 16777217.0]), NUMBERS),
    "f64": (pa.float64(), FLOATS, NUMBERS),
    "d5": (pa.decimal128(5, 2), _SMALL_DECIMALS, NUMBERS),
    "d15": (pa.decimal128(15, 2), _SMALL_DECIMALS, NUMBERS),
    "d38": (pa.decimal128(38, 4), _SMALL_DECIMALS, NUMBERS),
    "text": (pa.string(), TEXT, TEXT),
    "bytes": (pa.binary(), BYTES, BYTES),
    "fixed": (pa.binary(2), st.binary(min_size=2, max_size=2), BYTES),
    "uuid": (pa.binary(16), UUIDS.map(lambda value: value.bytes), st.one_of(UUIDS, UUIDS.map(str))),
    "date": (pa.date32(), DATES, DATES),
    "ms": (pa.timestamp("ms"), INSTANTS, st.one_of(DATETIMES, NANOSECONDS, DATES)),
    "us": (pa.timestamp("us"), INSTANTS, st.one_of(DATETIMES, NANOSECONDS, DATES)),
    "ns": (pa.timestamp("ns"), INSTANTS, st.one_of(DATETIMES, NANOSECONDS, DATES)),
    "utc": (
        pa.timestamp("us", "UTC"),
        INSTANTS.map(lambda value: value.replace(tzinfo=UTC)),
        DATETIMES.map(lambda value: value.replace(tzinfo=UTC)),
    ),
    "t_ms": (pa.time32("ms"), st.sampled_from([time(0), time(1), time(0, 0, 0, 1000)]), TIMES),
    "t_us": (pa.time64("us"), st.sampled_from([time(0), time(1), time(0, 0, 0, 1)]), TIMES),
}
"""Name of a column -> its Arrow type, its values, and literals that compare with it."""


_NUMBERS = ("i8", "i32", "i64", "u32", "u64", "f32", "f64", "d5", "d15", "d38")
KINDS = (
    _NUMBERS, ("text",), ("bytes", "fixed", "uuid"), ("date", "ms", "us", "ns"), ("utc",), ("t_ms", "t_us"), ("bool",),
)  # fmt: skip
"""Columns that compare with one another."""


@st.composite
def tables(draw: st.DrawFn, *, min_rows: int = 0, max_rows: int = 12, columns: int = 3) -> pa.RecordBatch:
    """A few columns, the first of them inside a struct ``s`` as well, with nulls."""
    any_of_them = st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=columns, unique=True)
    alike = st.sampled_from(KINDS).flatmap(
        lambda kind: st.lists(st.sampled_from(kind), min_size=1, max_size=columns, unique=True)
    )
    names = draw(st.one_of(any_of_them, alike))
    rows = draw(st.integers(min_rows, max_rows))
    arrays = {}
    for name in names:
        type, values, _ = COLUMNS[name]
        # Few distinct values, so that bounds are tight and row groups are all null or all equal now and then.
        pool = draw(st.lists(st.one_of(st.none(), values), min_size=1, max_size=4))
        arrays[name] = pa.array(draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows)), _storable(type))
        arrays[name] = arrays[name].cast(type, safe=False)
    nulls = pa.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), pa.bool_())
    arrays["s"] = pa.StructArray.from_arrays([arrays[names[0]]], [names[0]], mask=nulls)
    return pa.record_batch(arrays)


def _storable(type: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_float32(type) else pa.timestamp("us") if type == pa.timestamp("ms") else type


def _conditions(path: str, literals: st.SearchStrategy) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(Comparison, st.just(col(path)), st.sampled_from(sorted(COMPARE)), literals),
        st.builds(IsIn, st.just(col(path)), st.lists(st.none() | literals, max_size=3).map(tuple)),
        st.sampled_from([IsNull(col(path)), IsNotNull(col(path))]),
    )


_SMALL = st.one_of(
    st.integers(-5, 5), st.sampled_from([2**62, 0.0, -0.0, 0.5, 2.5, math.nan, math.inf, -math.inf, -(2**63)]),
    _SMALL_DECIMALS,
)  # fmt: skip
"""Numbers to compute with, whose results have few digits."""
PATTERNS = st.text("ab\x00é_%", max_size=4)


def _values(path: str) -> st.SearchStrategy[Value]:
    """What is computed of a column of numbers and literals."""
    column = col(path)
    operators = st.sampled_from(ARITHMETIC)
    once = st.one_of(
        st.builds(lambda operator, value: Arithmetic(operator, (column, Constant(value))), operators, _SMALL),
        st.builds(lambda operator, value: Arithmetic(operator, (Constant(value), column)), operators, _SMALL),
        st.just(-column),
        st.sampled_from(["int8", "int64", "double"]).map(column.cast),
    )
    if path.endswith("d38"):
        return once  # decimals of more than 38 digits cast to nothing
    return st.one_of(once, once.map(lambda value: -value), once.map(lambda value: value.cast("int64")))


def _computed(path: str, literals: st.SearchStrategy) -> st.SearchStrategy[Expression]:
    """Conditions on what is computed of a column."""
    name = path.removeprefix("s.")
    if name == "text":
        patterns = st.one_of(
            st.builds(Matches, st.just(col(path)), st.sampled_from(["starts_with", "ends_with", "contains"]), TEXT),
            st.builds(Matches, st.just(col(path)), st.sampled_from(["like", "ilike"]), PATTERNS, st.just("\\")),
            st.builds(
                lambda first, last: Matches(col(path), "like", f"{first}!_{last}", "!"),
                TEXT.filter(lambda text: "!" not in text), TEXT,
            ),
        )  # fmt: skip
        return st.one_of(patterns, st.sampled_from([col(path).cast("int64").is_null()]))
    values = _values(path) if name in _NUMBERS else None
    if values is None:
        return _conditions(path, literals)
    return st.one_of(
        st.builds(Comparison, values, st.sampled_from(sorted(COMPARE)), NUMBERS),
        st.builds(IsIn, values, st.lists(st.none() | NUMBERS, max_size=3).map(tuple)),
        values.map(IsNull),
        values.map(IsNotNull),
        st.builds(Relation, values, st.sampled_from(sorted(COMPARE)), st.just(col(path))),
    )


def _relations(names: list[str]) -> list[st.SearchStrategy[Expression]]:
    """Comparisons of two columns."""
    kinds = [[name for name in names if name.removeprefix("s.") in kind] for kind in KINDS]
    return [
        st.builds(
            Relation, st.sampled_from(kind).map(col), st.sampled_from(sorted(COMPARE)), st.sampled_from(kind).map(col)
        )
        for kind in kinds
        if kind
    ]


_ABOUT_STRUCT = st.sampled_from([IsNull(col("s")), IsNotNull(col("s"))])
_LEAVES = {
    prefix + name: _conditions(prefix + name, literals)
    for name, (_, _, literals) in COLUMNS.items()
    for prefix in ("", "s.")
}


_COMPUTED = {
    prefix + name: _computed(prefix + name, literals)
    for name, (_, _, literals) in COLUMNS.items()
    for prefix in ("", "s.")
}


def leaves(batch: pa.RecordBatch) -> st.SearchStrategy[Expression]:
    """Conditions on columns of ``batch`` and on what is computed of them."""
    names = [name for name in batch.schema.names if name != "s"] + [f"s.{batch.schema.field('s').type.field(0).name}"]
    computed = [_COMPUTED[name] for name in names]
    return st.one_of(*(_LEAVES[name] for name in names), _ABOUT_STRUCT, *computed, *_relations(names))


def expressions(batch: pa.RecordBatch) -> st.SearchStrategy[Expression]:
    """Trees of conditions on the columns of ``batch``."""
    return st.recursive(
        leaves(batch),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda operands: And(tuple(operands))),
            st.lists(inner, min_size=2, max_size=3).map(lambda operands: Or(tuple(operands))),
            inner.map(Not),
        ),
        max_leaves=5,
    )


@st.composite
def tables_and_expressions(draw: st.DrawFn, **sizes: int) -> tuple[pa.RecordBatch, Expression]:
    """A table and an expression over it."""
    batch = draw(tables(**sizes))
    return batch, draw(expressions(batch))
