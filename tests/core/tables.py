"""Tables of every type that core writes, for the suites here: drawn ones and one fixed one."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

LEAVES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "boolean": (pa.bool_(), st.booleans()),
    **{
        f"{sign}int{width}": (
            pa.type_for_alias(f"{sign}int{width}"),
            st.integers(0, 2**width - 1) if sign else st.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1),
        )
        for sign in ("", "u")
        for width in (8, 16, 32, 64)
    },
    "float": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=80)),
    "large_string": (pa.large_string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
    "binary": (pa.binary(), st.binary(max_size=80)),
    "fixed": (pa.binary(5), st.binary(min_size=5, max_size=5)),
    "decimal9": (pa.decimal128(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))),
    "decimal18": (pa.decimal128(18, 0), st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal)),
    "decimal38": (
        pa.decimal128(38, 5),
        st.integers(-(10**30), 10**30).map(lambda n: Decimal(n).scaleb(-5)),
    ),
    "date": (pa.date32(), st.dates()),
    "time_ms": (pa.time32("ms"), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    "time_us": (pa.time64("us"), st.times()),
    "time_ns": (pa.time64("ns"), st.times()),
    **{
        f"timestamp_{unit}{'_utc' if zone else ''}": (pa.timestamp(unit, zone), st.integers(-(2**53), 2**53))
        for unit in ("ms", "us", "ns")
        for zone in (None, "UTC")
    },
}
"""Name -> Arrow type and what its values are drawn from."""

DRAWN = {
    **LEAVES,
    "half": (pa.float16(), st.floats(width=16, allow_nan=False)),
    "decimal76": (
        pa.decimal256(76, 9),
        st.integers(-(10**76) + 1, 10**76 - 1).map(lambda n: Decimal(n).scaleb(-9, Context(prec=80))),
    ),
    "null": (pa.null(), st.none()),
}
"""The same and types that not all other writers have."""


def nested(leaf: pa.DataType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    """The leaf itself, or a list, struct or map around it, with a strategy for the values."""
    some = st.one_of(st.none(), values)
    plain = (leaf, some)
    as_list = (pa.list_(leaf), st.one_of(st.none(), st.lists(some, max_size=4)))
    as_struct = (
        pa.struct([pa.field("x", leaf), pa.field("y", pa.list_(leaf))]),
        st.one_of(st.none(), st.fixed_dictionaries({"x": some, "y": as_list[1]})),
    )
    as_map = (
        pa.map_(pa.string(), leaf),
        st.one_of(st.none(), st.dictionaries(st.text("ab", max_size=3), some, max_size=3).map(lambda d: [*d.items()])),
    )
    deep = (pa.list_(as_struct[0]), st.one_of(st.none(), st.lists(as_struct[1], max_size=3)))
    return st.sampled_from([plain, as_list, as_struct, as_map, deep])


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of one to four columns of any type and nesting, nulls everywhere."""
    names = draw(st.lists(st.sampled_from(sorted(DRAWN)), min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(0, 40))
    columns = {}
    for name in names:
        kind, values = draw(nested(*DRAWN[name]))
        # Few distinct values, so that dictionaries and runs occur.
        pool = draw(st.lists(values, min_size=1, max_size=8))
        columns[name] = pa.array(draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows)), kind)
    return pa.table(columns)


def fixed() -> pa.Table:
    """A table of 1,000 rows with every leaf type, flat, in lists and in structs."""
    samples: dict[str, list[Any]] = {
        "boolean": [True, False],
        "float": [0.0, -1.5, 3.25e20],
        "double": [0.1, -0.0, 1e300],
        "string": ["", "a", "é漢字🎈", "x" * 70],
        "large_string": ["l", "m"],
        "binary": [b"", b"\0\xff", b"q" * 100],
        "fixed": [b"12345", b"\0\0\0\0\xff"],
        "decimal9": [Decimal("0.00"), Decimal("-1234567.89")],
        "decimal18": [Decimal(10**18 - 1), Decimal(-5)],
        "decimal38": [Decimal("-1.00000"), Decimal("123456789012345678901234567890.12345")],
        "date": [dt.date(1970, 1, 1), dt.date(1815, 6, 18), dt.date(2924, 2, 29)],
        "time_ms": [dt.time(0), dt.time(23, 59, 59, 999000)],
        "time_us": [dt.time(1, 2, 3, 4)],
        "time_ns": [dt.time(5, 6, 7, 8)],
    }
    columns = {}
    for name, (kind, _) in LEAVES.items():
        values = samples.get(name, [0, 1, 100] if name.startswith("u") else [0, -1, 100])
        cycle = [None if i % 7 == 3 else values[i % len(values)] for i in range(1000)]
        flat = pa.array(cycle, kind)
        columns[name] = flat
        columns[f"{name}_list"] = pa.array(
            [None if i % 5 == 1 else cycle[i : i + i % 4] for i in range(1000)], pa.list_(kind)
        )
        mask = pa.array([i % 11 == 2 for i in range(1000)])
        columns[f"{name}_struct"] = pa.StructArray.from_arrays([flat], ["inner"], mask=mask)
    return pa.table(columns)
