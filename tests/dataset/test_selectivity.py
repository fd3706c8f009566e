"""The condition that spares most for its cost is asked first: by statistics, then by what row groups have taught."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.dataset.execution import stages
from pqext.dataset.expressions import Expression
from pqext.dataset.planning import planner
from pqext.dataset.planning.conjuncts import estimate_selectivity

ROWS = 12_000
CHANCE = np.random.default_rng(2)
TABLE = pa.table(
    {
        "even": CHANCE.integers(0, 1000, ROWS),
        "skewed": np.where(CHANCE.random(ROWS) < 0.001, CHANCE.integers(0, 1000, ROWS), 999),
        "null": pa.array(CHANCE.integers(0, 10, ROWS), mask=CHANCE.random(ROWS) < 0.25),
        "text": [f"text {n}" for n in CHANCE.integers(0, 10, ROWS).tolist()],
        "wide": [f"{n:0200}" for n in range(ROWS)],
    }
)


def stored(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, row_group_rows=2000, dictionary=False, compression="uncompressed", **options)
    return out.getvalue()


FILE = stored()


@pytest.mark.parametrize(
    ("condition", "least", "most"),
    [
        (col("even") < 100, 0.05, 0.15), (col("even") >= 100, 0.85, 0.95), (col("even") == 5, 0, 0.01),
        (col("even") != 5, 0.99, 1), (col("even").isin([1, 2, 3]), 0, 0.01), (col("null").is_null(), 0.2, 0.3),
        (col("null").is_not_null(), 0.7, 0.8), (~(col("even") < 100), 0.85, 0.95), (col("text") == "text 3", 0.01, 0.5),
        ((col("even") < 500) & (col("even") >= 500), 0.2, 0.3), ((col("even") < 500) | (col("even") >= 500), 0.9, 1),
        (col("even") < -5, 0, 0), (col("even") < 5000, 1, 1), (col("text") < "text 3", 0.01, 0.99),
    ],
    ids=str,
)  # fmt: skip
def test_selectivity_is_estimated_from_statistics(condition: Expression, least: float, most: float) -> None:
    with pqext.open(FILE) as file:
        assert least <= estimate_selectivity(condition, file.row_groups[0]) <= most


@pytest.mark.parametrize("data", [stored(statistics=False, page_index=False), FILE])
def test_estimate_is_a_share_for_any_known_facts(data: bytes) -> None:
    with pqext.open(data) as file:
        for condition in (col("even") < 3, col("text") == "a", col("wide").is_null(), col("even").isin([])):
            assert 0 <= estimate_selectivity(condition, file.row_groups[0]) <= 1


def order(question: Expression, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first column that was looked at in each row group."""
    monkeypatch.setattr(planner, "WORTH_BYTES", 0)
    seen: list[str] = []
    run = stages._GroupRun.run_stages

    def record(self: stages._GroupRun, first: Any, *more: Any) -> Iterator[Any]:
        seen.append(first.columns[0])
        return run(self, first, *more)

    monkeypatch.setattr(stages._GroupRun, "run_stages", record)
    rows = pqext.read_table(FILE, ["wide"], question, threads=1)
    expected = TABLE.filter(question_of(question))
    assert rows.equals(expected.select(["wide"]))
    return seen


def question_of(question: Expression) -> pa.BooleanArray:
    from pqext.dataset.evaluation.evaluate import evaluate

    return evaluate(question, TABLE.combine_chunks())


@pytest.mark.spec("querying.order")
def test_most_selective_condition_is_evaluated_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(order((col("even") < 990) & (col("null") < 1), monkeypatch)) == {"null"}
    assert set(order((col("even") < 10) & (col("null") < 9), monkeypatch)) == {"even"}


@pytest.mark.spec("querying.order")
def test_observed_selectivity_reorders_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that do not lie evenly between their bounds mislead the first row group alone."""
    seen = order((col("even") < 600) & (col("skewed") < 999), monkeypatch)
    assert seen[0] == "even"
    assert set(seen[1:]) == {"skewed"}
