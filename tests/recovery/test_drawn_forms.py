"""Drawn files of pyarrow without footers, and DDL that tells their logical types alone: no value comes out wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recovery.cut_files import by_pyarrow, without_footer

from pqext.cli.schema import ddl_type
from pqext.recovery.row_groups.search import AMBIGUOUS
from reference.effort import share

Drawn = tuple[pa.DataType, Callable[[], Any]]
"""A type, and what draws a value of it."""
_FLAT: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int64": (pa.int64(), lambda draw: draw.getrandbits(40)),
    "int32": (pa.int32(), lambda draw: draw.getrandbits(20)),
    "text": (pa.string(), lambda draw: f"name {draw.randrange(50)}"),
    "bytes": (pa.binary(), lambda draw: draw.randbytes(draw.randrange(9))),
    "double": (pa.float64(), lambda draw: draw.random()),
    "float": (pa.float32(), lambda draw: float(draw.randrange(99))),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "date": (pa.date32(), lambda draw: date(2000, 1, 1 + draw.randrange(28))),
    "timestamp": (pa.timestamp("us"), lambda draw: datetime(2020, 1, 1 + draw.randrange(28), draw.randrange(24))),
}


def _decimal(draw: random.Random) -> Drawn:
    precision = draw.randrange(1, 39)
    scale, most = draw.randrange(precision + 1), 10 ** draw.randrange(1, precision + 1)
    return pa.decimal128(precision, scale), lambda: Decimal(draw.randrange(1 - most, most)).scaleb(-scale)


def _type(draw: random.Random, depth: int = 0) -> Drawn:
    kind = draw.choice([*_FLAT, "decimal", "decimal", "decimal", *(("list", "map", "struct") if depth < 2 else ())])
    if kind == "decimal":
        return _decimal(draw)
    if kind in _FLAT:
        type, make = _FLAT[kind]
        return type, lambda: make(draw)
    if kind == "list":
        (item, value), optional = _type(draw, depth + 1), draw.random() < 0.5
        return pa.list_(pa.field("element", item, optional)), lambda: [
            None if optional and draw.random() < 0.2 else value() for _ in range(draw.randrange(4))
        ]
    if kind == "map":
        item, value = _type(draw, depth + 1)
        return pa.map_(pa.string(), item), lambda: [(f"k{i}", value()) for i in range(draw.randrange(3))]
    parts = [(f"f{i}", *_type(draw, depth + 1), draw.random() < 0.5) for i in range(draw.randrange(1, 4))]
    return pa.struct([pa.field(name, item, optional) for name, item, _, optional in parts]), lambda: {
        name: None if optional and draw.random() < 0.2 else value() for name, _, value, optional in parts
    }


@pytest.mark.spec("recovery.forms", "recovery.forms.levels")
@settings(max_examples=share(0.6), suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 1 << 32))
def test_recovery_by_ddl_returns_the_written_values(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randrange(20, 200)
    fields, columns, told = [], [], []
    for number in range(draw.randrange(1, 6)):
        (type, value), optional = _type(draw), draw.random() < 0.5
        fields.append(pa.field(f"c{number}", type, optional))
        columns.append([None if optional and draw.random() < 0.2 else value() for _ in range(count)])
        # Of flat columns the pages tell whether they are required; of others the schema has to.
        required = not optional if pa.types.is_nested(type) else draw.random() < 0.5
        told.append(f"c{number} {ddl_type(fields[-1])}{' NOT NULL' * required}")
    schema = pa.schema(fields)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    data = by_pyarrow(
        table, row_group_size=draw.choice((count, 50, 30)), use_dictionary=draw.random() < 0.5,
        compression=draw.choice(("none", "zstd", "snappy")), data_page_version=draw.choice(("1.0", "2.0")),
        store_decimal_as_integer=draw.random() < 0.4, use_deprecated_int96_timestamps=draw.random() < 0.3,
    )  # fmt: skip
    report, found = without_footer(data, schema=", ".join(told))
    if found is None:
        assert report.losses[0].reason.startswith(AMBIGUOUS), report
    else:
        assert found.to_pydict() == table.slice(0, found.num_rows).to_pydict()
        assert report.losses or found.num_rows == count
