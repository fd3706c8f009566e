"""Filters on columns whose small dictionary expands to large strings: sizes of batches, types and limits."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.dataset import scan_executor
from pqext.dataset.execution import row_selection, stages
from pqext.dataset.expressions import Expression, col
from pqext.dataset.planning import planner

ROWS, PART = 5000, 1 << 16
TEXTS = pa.array([None, "", *(f"{key} " * 500 for key in range(20))])


def table() -> pa.Table:
    chance = np.random.default_rng(8)
    return pa.table(
        {
            "number": pa.array(range(ROWS)),
            "text": TEXTS.take(pa.array(chance.integers(0, len(TEXTS), ROWS))),
            "bytes": TEXTS.cast(pa.large_binary()).take(pa.array(chance.integers(0, len(TEXTS), ROWS))),
            "other": pa.array(chance.integers(0, 9, ROWS)),
        }
    )


TABLE = table()
FILTERS: dict[str, tuple[Expression, Callable[[Any], bool]]] = {
    "one column": (col("text") > "1", lambda row: (row["text"] or "") > "1"),
    "few rows": (
        (col("text") == TEXTS[7].as_py()) & (col("other") < 4),
        lambda row: row["text"] == TEXTS[7].as_py() and row["other"] < 4,
    ),
    "two columns of strings": (
        (col("text") > "3") & (col("bytes") > b"2"),
        lambda row: (row["text"] or "") > "3" and (row["bytes"] or b"") > b"2",
    ),
    "first few rows, then strings": (
        (col("number") < 2000) & (col("text") > "1") & (col("bytes") > b"0"),
        lambda row: row["number"] < 2000 and (row["text"] or "") > "1" and (row["bytes"] or b"") > b"0",
    ),
    "null": (
        col("text").is_null() | (col("bytes") == b""),
        lambda row: row["text"] is None or row["bytes"] == b"",
    ),
}


def stored(**options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=3000, data_page_size=1000, **options)
    return sink.getvalue()


FILES = {"dictionary": stored(), "dictionary, then plain pages": stored(dictionary_pagesize_limit=5000)}


@pytest.mark.parametrize("has_stages", [False, True])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("question", FILTERS)
def test_batches_of_filtered_strings_are_small(
    question: str, name: str, has_stages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_selection, "PART_BYTES", PART)
    monkeypatch.setattr(planner, "WORTH_BYTES", 0 if has_stages else 1 << 62)
    monkeypatch.setattr(stages, "_KEPT_BYTES", 4 * PART)
    condition, matches = FILTERS[question]
    types: set[tuple[pa.DataType, ...]] = set()
    original = stages.iter_matching_batches

    def record_types(*arguments: Any, **keywords: Any) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        for batch, arrays in original(*arguments, **keywords):
            types.add(tuple(batch.schema.field(name).type for name in ("text", "bytes")))
            yield batch, arrays

    monkeypatch.setattr(scan_executor, "iter_matching_batches", record_types)
    scan = pqext.scan(FILES[name], filter=condition)
    batches = list(scan.to_batches())
    result = pa.Table.from_batches(batches, schema=scan.schema)
    assert result.equals(TABLE.filter(pa.array(map(matches, TABLE.to_pylist()))))
    assert types == {(pa.string(), pa.large_binary())}
    if not has_stages:
        rows = TABLE.nbytes // ROWS
        assert max(batch.nbytes for batch in batches) <= PART + 32 * rows


def test_filter_does_not_exceed_the_memory_limit() -> None:
    sink = io.BytesIO()
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 400_000, pa.int32()), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"text": repeated}), sink, store_schema=False, compression="zstd")
    limits = pqext.Limits(memory_bytes=16 << 20)
    conditions: list[Expression | None] = [None, col("text") > "a", col("text").is_not_null()]
    for condition in conditions:
        batches = pqext.scan(sink.getvalue(), filter=condition, limits=limits).to_batches()
        assert next(iter(batches)).nbytes <= 16 << 20
        with pytest.raises(pqext.LimitError, match="decoding would produce"):
            for _ in batches:
                pass
    assert pqext.scan(sink.getvalue(), filter=col("text") > "a", limits=limits).count() == 400_000
