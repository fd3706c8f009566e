"""Expressions go through JSON unchanged; JSON that is not an expression is refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
import shapely
from dataset.strategies import tables_and_expressions
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext.dataset.expressions import Comparison, Expression, Not, col
from pqext.dataset.notations.json_text import from_json, to_json
from pqext.geo.predicates.boxes import OPERATIONS


@given(tables_and_expressions(max_rows=0))
def test_expressions_round_trip(case: tuple[pa.RecordBatch, Expression]) -> None:
    _, expression = case
    assert from_json(to_json(expression)).equals(expression)


SPATIAL = [name for name in OPERATIONS if name not in ("equals", "dwithin")]

LITERALS = [
    True, 1, -(2**70), 1.0, 0.1, -0.0, 1e300, float("inf"), float("-inf"), float("nan"), "", "é\x00\"", b"",
    b"\x00\xff", Decimal("1.50"), Decimal("-1E+30"), Decimal("0.000"), UUID(int=7), date(1, 1, 1), date(9999, 12, 31),
    time(23, 59, 59, 999_999), datetime(2020, 1, 1, 0, 0, 0, 1), datetime(2020, 1, 1, tzinfo=UTC), datetime.max,
    pa.scalar(1, pa.timestamp("ns")), pa.scalar(-1, pa.timestamp("ns", "UTC")), pa.scalar(2**62, pa.timestamp("s")),
    pa.scalar(1, pa.time64("ns")),
]  # fmt: skip


@pytest.mark.parametrize("literal", LITERALS, ids=repr)
def test_every_type_of_literal_round_trips(literal: Any) -> None:
    expression = col("a") == literal
    back = from_json(to_json(expression))
    assert isinstance(back, Comparison)
    assert back.equals(expression)
    assert type(back.value) is type(expression.value)
    json.loads(to_json(expression), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "expression",
    [
        col("v").variant("$.a[0]['x.y']", "decimal(9,2)") >= 1,
        col("s.v").variant("$", "string").isin(["x"]),
        col("g").within(shapely.Point(1, 2)),
        ~col("s.g").intersects((170, -10, -170, 90.5)),
        *(getattr(col("g"), name)((1, 2, 3, 4)) for name in SPATIAL),
        col("g").geom_equals((1, 2, 3, 4)),
        col("g").dwithin((1, 2, 3, 4), 1500),
        col("g").dwithin(b"\x01\x01\0\0\0" + b"\0" * 16, 0.1),
        Not(Not(col("a").is_null())),
        (col("a") + 1) * col("b") > col("c") / 2.5,
        -col("a") % Decimal("0.10") != col("v").variant("$.a", "int64"),
        1 - col("a").cast("decimal(9,2)").cast("string").cast("int8") >= 0,
        col("l").list_length().isin([1, 2]),
        (col("a") * 2).is_null() | col("s.t").like("a!%", "!"),
        col("s").starts_with("a") & ~col("s").ilike("%b_") | col("b").ends_with(b"\xff") | col("s").contains(""),
        (col(["a.b", "c"]) > 1) | (col("é") < 1) & col("x").is_not_null(),
    ],
    ids=str,
)
def test_every_type_of_node_round_trips(expression: Expression) -> None:
    assert from_json(to_json(expression)).equals(expression)
    assert from_json(to_json(expression).encode()).equals(expression)


LEAF = '{"op":"is_null","column":["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "1", "[]", "{}", '"a"', "{", b"\xff",
        '{"op":"is_null"}',
        '{"op":"is_null","column":[]}',
        '{"op":"is_null","column":"a"}',
        '{"op":"is_null","column":[1]}',
        '{"op":"is_null","column":["a"],"more":1}',
        '{"op":"is_null","op":"is_null","column":["a"]}',
        '{"op":["is_null"],"column":["a"]}',
        '{"op":"like","column":["a"],"value":"x"}',
        '{"op":"like","column":["a"],"pattern":5}',
        '{"op":"like","column":["a"],"pattern":{"bytes":"00"}}',
        '{"op":"like","column":["a"],"pattern":"x!","escape":"!"}',
        '{"op":"like","column":["a"],"pattern":"x","escape":"ab"}',
        '{"op":"starts_with","column":["a"],"pattern":"x","escape":"!"}',
        '{"op":"contains","column":["a"],"pattern":"x","more":1}',
        '{"op":"<","column":["a"],"other":["b"]}',
        '{"op":"<","column":["a"],"other":{"column":["b"],"op":"<"}}',
        '{"op":"<","column":["a"],"other":{"constant":5}}',
        '{"op":"<","constant":5,"value":5}',
        '{"op":"<","arithmetic":{"operator":"**","of":[{"column":["a"]},{"constant":1}]},"value":5}',
        '{"op":"<","arithmetic":{"operator":["+"],"of":[{"column":["a"]},{"constant":1}]},"value":5}',
        '{"op":"<","arithmetic":{"operator":"+","of":[{"column":["a"]}]},"value":5}',
        '{"op":"<","arithmetic":{"operator":"+","of":[{"constant":1},{"constant":1}]},"value":5}',
        '{"op":"<","arithmetic":{"operator":"+","of":[{"column":["a"]},{"constant":"x"}]},"value":5}',
        '{"op":"<","arithmetic":{"operator":"+","of":{"column":["a"]}},"value":5}',
        '{"op":"<","arithmetic":{"operator":"+","of":[1,2]},"value":5}',
        '{"op":"<","cast":{"of":{"column":["a"]},"type":"nope"},"value":5}',
        '{"op":"<","cast":{"of":{"column":["a"]},"type":"array<int>"},"value":5}',
        '{"op":"<","cast":{"of":{"column":["a"]},"type":5},"value":5}',
        '{"op":"<","cast":{"of":{"constant":1},"type":"int"},"value":5}',
        '{"op":"<","cast":["a"],"value":5}',
        '{"op":"<","list_length":{"constant":1},"value":5}',
        '{"op":"<","list_length":{"cast":{"of":{"column":["a"]},"type":"int"}},"value":5}',
        '{"op":"<",' + '"cast":{"type":"int","of":{' * 300 + '"column":["a"]' + "}}" * 300 + ',"value":5}',
        '{"op":"<",' + '"cast":{"type":"int","of":{' * 50_000 + '"column":["a"]' + "}}" * 50_000 + ',"value":5}',
        '{"op":"intersects","cast":{"of":{"column":["g"]},"type":"int"},"box":[1.0,2.0,3.0,4.0]}',
        '{"op":"==","column":["a"]}',
        '{"op":"==","column":["a"],"value":null}',
        '{"op":"==","column":["a"],"value":[1]}',
        '{"op":"==","column":["a"],"value":{}}',
        '{"op":"==","column":["a"],"value":NaN}',
        '{"op":"==","column":["a"],"value":1e999}',
        '{"op":"==","column":["a"],"value":{"float":"1.5"}}',
        '{"op":"==","column":["a"],"value":{"float":1}}',
        '{"op":"==","column":["a"],"value":{"decimal":"x"}}',
        '{"op":"==","column":["a"],"value":{"decimal":"sNaN"}}',
        '{"op":"==","column":["a"],"value":{"decimal":"1E+999999999"}}',
        '{"op":"==","column":["a"],"value":{"decimal":"1E-999999999"}}',
        '{"op":"==","column":["a"],"value":{"bytes":"0"}}',
        '{"op":"==","column":["a"],"value":{"uuid":"x"}}',
        '{"op":"==","column":["a"],"value":{"date":"2020-13-01"}}',
        '{"op":"==","column":["a"],"value":{"timestamp":"2020-01-01T00:00:00+01:00"}}',
        '{"op":"==","column":["a"],"value":{"timestamp_ns":1.5}}',
        '{"op":"==","column":["a"],"value":{"timestamp_ns":true}}',
        '{"op":"==","column":["a"],"value":{"timestamp_ns":' + "9" * 60 + "}}",
        '{"op":"==","column":["a"],"value":{"time_ns":-1}}',
        '{"op":"==","column":["a"],"value":{"pickle":"x"}}',
        '{"op":"==","column":["a"],"value":{"date":"2020-01-01","time":"00:00"}}',
        '{"op":"==","column":["a"],"value":' + "9" * 5000 + "}",
        '{"op":"==","column":["a"],"value":' + "9" * 2000 + "}",
        r'{"op":"==","column":["a"],"value":"\ud800"}',
        '{"op":"in","column":["a"],"values":"x"}',
        '{"op":"in","column":["a"],"values":[[]]}',
        '{"op":"==","variant":["v"],"value":1}',
        '{"op":"==","variant":{"column":["v"],"path":"$"},"value":1}',
        '{"op":"==","variant":{"column":["v"],"path":"a","type":"int64"},"value":1}',
        '{"op":"==","variant":{"column":["v"],"path":"$","type":1},"value":1}',
        '{"op":"==","variant":{"column":["v"],"path":"$","type":"int64"},"column":["a"],"value":1}',
        '{"op":"intersects","column":["g"],"box":[1,2,3]}',
        '{"op":"intersects","column":["g"],"box":[1.0,2.0,3.0,"4"]}',
        '{"op":"intersects","column":["g"],"box":[1.0,2.0,3.0,4.0],"wkb":""}',
        '{"op":"intersects","column":["g"],"wkb":"00"}',
        '{"op":"intersects","column":["g"],"wkb":1}',
        '{"op":"dwithin","column":["g"],"box":[1.0,2.0,3.0,4.0]}',
        '{"op":"dwithin","column":["g"],"box":[1.0,2.0,3.0,4.0],"distance":1}',
        '{"op":"dwithin","column":["g"],"box":[1.0,2.0,3.0,4.0],"distance":-1.0}',
        '{"op":"touches","column":["g"],"box":[1.0,2.0,3.0,4.0],"distance":1.0}',
        '{"op":"intersects","variant":{"column":["v"],"path":"$","type":"int64"},"box":[1.0,2.0,3.0,4.0]}',
        f'{{"and":{LEAF}}}',
        f'{{"and":[{LEAF}]}}',
        f'{{"and":[{LEAF},1]}}',
        f'{{"and":[{LEAF},{LEAF}],"or":[{LEAF},{LEAF}]}}',
        '{"not":null}',
        '{"not":' * 200 + LEAF + "}" * 200,
        '{"not":' * 100_000 + LEAF + "}" * 100_000,
    ],
)  # fmt: skip
def test_invalid_expression_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reasons differ
        from_json(text)


def test_error_for_an_unknown_literal_type_lists_the_types() -> None:
    with pytest.raises(ValueError, match="unknown literal type 'instant'; use one of float, decimal, bytes, uuid"):
        from_json('{"op":"==","column":["a"],"value":{"instant":"1"}}')


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["op", "==", "a", "$"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["op", "column", "value", "values", "and", "or", "not", "variant", "box", "wkb", "date"]),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=8,
)


@given(JSON)
def test_arbitrary_json_is_parsed_or_rejected(tree: Any) -> None:
    try:
        expression = from_json(json.dumps(tree))
    except ValueError:
        return
    assert from_json(to_json(expression)).equals(expression)


def test_readers_accept_the_serialised_filter(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, None, 4], "v": pqext.variant.parse_json(['{"x": 1}', "{}", None, '{"x": 4}'])})
    pqext.write_table(table, tmp_path / "file.parquet")
    question = (pqext.col("a") > 1) & pqext.col("v").variant("$.x", "int64").is_not_null()
    text = pqext.filters.to_json(question)
    assert pqext.filters.from_json(text) == question
    path = str(tmp_path / "file.parquet")
    assert pqext.read_table(path, filter=text)["a"].to_pylist() == [4]
    assert pqext.scan(path, filter=text).to_table().equals(pqext.read_table(path, filter=question))
    with pytest.raises(TypeError, match=r"expected an expression like .* not Column"):
        pqext.filters.to_json(pqext.col("a"))  # type: ignore[arg-type]
