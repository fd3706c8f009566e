"""A dataset over a scan gives DuckDB and others what they find in the table, and reads little for it."""

from __future__ import annotations

import datetime as dt
import functools
import io
import json
import math
import operator
import pickle
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col, variant
from pqext.dataset.engines.arrow_dataset import conjuncts, translate
from reference.effort import share

ROWS = 300
TABLE = pa.table(
    {
        "i": pa.array([None if n % 13 == 0 else n for n in range(ROWS)], pa.int32()),
        "a b": [n % 50 for n in range(ROWS)],
        "a": [ROWS - n for n in range(ROWS)],
        "f": pa.array([math.nan if n % 17 == 0 else None if n % 11 == 0 else n / 8 - 20 for n in range(ROWS)]),
        "s": [None if n % 7 == 0 else f'x"{n % 9}\n' if n % 3 else f"é{n}" for n in range(ROWS)],
        "b": [None if n % 5 == 0 else n % 2 == 0 for n in range(ROWS)],
        "d": [dt.date(2024, 1, 1) + dt.timedelta(days=n // 10) for n in range(ROWS)],
        "t": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=n, microseconds=n) for n in range(ROWS)],
        "st": [None if n % 23 == 0 else {"x": n % 9, "y": str(n)} for n in range(ROWS)],
    }
)


def _stored() -> bytes:
    sink = io.BytesIO()
    pqext.write_table(TABLE, sink, row_group_rows=100, page_rows=20, compression="uncompressed", dictionary=False)
    return sink.getvalue()


FILE = _stored()
SCAN = pqext.scan(FILE)
CONDITIONS = [
    "i > 200", "i = 7", "i <> 7", "i IN (3, 299, 1000)", "i IS NULL", "i IS NOT NULL", "i BETWEEN 150 AND 160", "i > a",
    "\"a b\" = 3", "f > 1.5", "f <> 2", "f = 'nan'::DOUBLE", "f < -10", "f IN (1.5, 2)", "f IS NULL", "isnan(f)",
    "s = 'é3'", "s > 'x'", "s LIKE 'é2%'", "s IN ('é3', 'q', 'é6')", "s IS NULL", "b", "NOT b", "b IS NULL",
    "d >= DATE '2024-01-20'", "d = DATE '2024-01-02'", "t < TIMESTAMP '2024-01-02 05:00:00.000029'",
    "t IN (TIMESTAMP '2024-01-02 05:00:00.000029')", "st.x = 3", "st.y IS NULL", "i % 3 = 0", "length(s) > 3",
]  # fmt: skip
SQL = st.recursive(
    st.sampled_from(CONDITIONS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=5,
)


def run_duckdb(given: Any, condition: str, names: str = "a, f, s") -> list[Any]:
    with duckdb.connect() as connection:
        connection.register("given", given)
        rows = connection.sql(f"SELECT {names} FROM given WHERE {condition} ORDER BY a").fetchall()
    return [tuple("NaN" if value != value else value for value in row) for row in rows]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_each_condition_type_matches_duckdb(condition: str) -> None:
    dataset = SCAN.to_dataset()
    for one in (condition, f"NOT ({condition})"):
        assert run_duckdb(dataset, one) == run_duckdb(TABLE, one)


@settings(max_examples=share(0.3))
@given(SQL, st.sampled_from(["a", "a, s", "f, st, a", "*"]))
def test_queries_match_duckdb(condition: str, names: str) -> None:
    assert run_duckdb(SCAN.to_dataset(), condition, names) == run_duckdb(TABLE, condition, names)


F = pc.field
EXPRESSIONS = [
    (F("i") > pa.scalar(200, pa.int32()), "i > 200"),
    (F("a b") == 3, "a b == 3"),
    ((F("a") > 1) & ((F("s") < 'x"') | (F("b") == True)), "(a > 1 and (s < 'x\"' or b == True))"),  # noqa: E712
    (F("st", "x") == 3, "st.x == 3"),
    (F("i").is_valid(), "i is not null"),
    (F("i").is_null(), "i is null"),
    (F("d") > dt.date(2024, 1, 2), "d > 2024-01-02"),
    (F("f") > 1.25, "f > 1.25"),
    (F("f") > math.nan, None),
    (~(F("f") > 1), None),  # NaN is greater than 1 here, and not there
    (F("a") + 1 > 3, None),
    ((F("a") > 1) & (F("i") + 1 > 3), "a > 1"),
    ((F("a") + 1 > 3) & ((F("i").is_valid() & (F("a b") == 3)) & (F("i") > 200)), "(i is not null and a b == 3)"),
    (((F("a") > 1) & (F("i") + 1 > 3)) | (F("b").is_null()), None),
    (F("b") & (F("st", "x").is_valid() & (F("i") + 1 > 3)), "st.x is not null"),
    (F("i") > 200, None),  # an int64, where the column is an int32
]


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
def test_supported_conditions_are_pushed_down(number: int) -> None:
    expression, expected = EXPRESSIONS[number]
    ours = translate(expression, TABLE.schema)
    assert (None if ours is None else str(ours)) == expected
    assert repr(SCAN.to_dataset().to_table(filter=expression).to_pylist()) == repr(TABLE.filter(expression).to_pylist())


@pytest.mark.parametrize("name", ["a == 1)", "(a", "FieldRef.Name(a)", "is_valid(a)", "and", 'q"'])
def test_names_resembling_conditions_are_not_misread(name: str) -> None:
    table = pa.table({"a": [1, 2, 3], name: [3, 2, 1]})
    sink = io.BytesIO()
    pqext.write_table(table, sink, row_group_rows=1)
    dataset = pqext.scan(sink.getvalue()).to_dataset()
    for expression in (F(name) == 1, (F(name) > 1) & (F("a") > 1), F(name).is_valid() | (F(name) == 2)):
        assert dataset.to_table(filter=expression).equals(table.filter(expression))


@settings(max_examples=share(0.3))
@given(
    st.recursive(
        st.sampled_from(
            [F("a") > 1, F("b"), F("st", "x").is_valid(), F("i") + 1 > 3, F("s").isin(["é3", None]), F("i") > 200]
        ),
        lambda inner: st.one_of(
            *(st.tuples(inner, inner).map(lambda two, join=join: join(*two)) for join in (operator.and_, operator.or_)),
            inner.map(operator.invert),
        ),
        max_leaves=8,
    )
)
def test_conjuncts_together_equal_the_condition(condition: Any) -> None:
    parts = conjuncts(condition)
    assert TABLE.filter(functools.reduce(operator.and_, parts))["a"].equals(TABLE.filter(condition)["a"])
    assert all(not str(part).startswith("(") or _outermost(str(part)) != "and" for part in parts)


def _outermost(text: str) -> str | None:
    """What joins the two sides of the text of a condition."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 1 and text.startswith((" and ", " or "), at):
            return text[at:].split()[0]
    return None


def test_supported_part_of_a_query_prunes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    keep = pqext.Scan.to_batches

    def record(self: Any, *arguments: Any) -> Any:
        asked.append(self)
        return keep(self, *arguments)

    monkeypatch.setattr(pqext.Scan, "to_batches", record)
    condition = F("a") == 7
    for other in (F("i") + 1 > 3, pc.utf8_length(F("s")) > 1, pc.starts_with(F("s"), "é")):
        assert SCAN.to_dataset().to_table(filter=condition & other)["a"].equals(
            TABLE.filter(condition & other)["a"]
        )
        assert (asked[-1].metrics.row_groups, asked[-1].metrics.rows) == (1, 1)


def test_query_reads_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    keep = pqext.Scan.to_batches

    def record(self: Any, *arguments: Any) -> Any:
        seen.append(self)
        return keep(self, *arguments)

    monkeypatch.setattr(pqext.Scan, "to_batches", record)
    assert run_duckdb(SCAN.to_dataset(), "a = 1", "s") == [('x"2\n',)]
    metrics = seen[-1].metrics
    assert (metrics.row_groups, metrics.rows) == (1, 1)
    assert seen[-1].schema.names == ["a", "s"]
    assert run_duckdb(SCAN.to_dataset(), "a > 100000", "s") == []
    assert seen[-1].metrics.pages == 0


def test_methods_built_on_datasets_work() -> None:
    dataset = SCAN.to_dataset()
    assert dataset.schema == TABLE.schema
    assert dataset.count_rows() == ROWS
    assert dataset.count_rows(filter=F("a") <= 10) == 10
    assert repr(dataset.head(3).to_pylist()) == repr(TABLE.slice(0, 3).to_pylist())
    assert dataset.to_table(columns=["s", "a"]).equals(TABLE.select(["s", "a"]))
    assert dataset.to_table(columns={"twice": F("a") * 2})["twice"].to_pylist() == [2 * n for n in range(ROWS, 0, -1)]
    assert dataset.take([5, 7])["a"].to_pylist() == [295, 293]
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("a") == 7).select("a").collect()["a"].to_list() == [7]


def test_methods_that_bypass_the_scan_are_rejected() -> None:
    dataset = SCAN.to_dataset()
    for name in ("filter", "get_fragments", "replace_schema", "join", "join_asof"):
        with pytest.raises(NotImplementedError, match=rf"a dataset of a pqext scan does not support {name}\(\)"):
            getattr(dataset, name)(F("a") > 1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(dataset)
    with pytest.raises(NotImplementedError):
        ds.dataset([dataset, dataset]).to_table()
    with pytest.raises(FileNotFoundError, match="a scan of pqext"):
        next(iter(ds.FileSystemDataset.get_fragments(dataset))).to_table()


def test_duckdb_filters_values_within_variants() -> None:
    events = variant.parse_json([json.dumps({"n": n, "user": f"u{n}"}) for n in range(10)])
    sink = io.BytesIO()
    pqext.write_table(pa.table({"event": events}), sink, shredding={"event": "infer"})
    columns = [("n", col("event").variant("$.n", "int64")), ("user", col("event").variant("$.user", "string"))]
    dataset = pqext.scan(sink.getvalue(), columns).to_dataset()
    with duckdb.connect() as connection:
        connection.register("given", dataset)
        assert connection.sql("SELECT user FROM given WHERE n >= 8").fetchall() == [("u8",), ("u9",)]
