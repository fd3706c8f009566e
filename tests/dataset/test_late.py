"""Late materialization held from outside: pyarrow's rows, a count of pages of its own, damage in what is skipped."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import col
from pqext.dataset.execution import parallel_decoding, stages
from pqext.dataset.expressions import Expression
from pqext.dataset.planning import planner
from reference.effort import share

ROWS = 600
Truth = Callable[[dict[str, Any]], bool]


OBJECT = pa.struct([("a", pa.int64()), ("t", pa.struct([("b", pa.string())]))])


def table(seed: int, rows: int = ROWS) -> pa.Table:
    chance = random.Random(seed)
    keys = [chance.randrange(200) if chance.random() < 0.9 else None for _ in range(rows)]
    texts = [f"text {chance.randrange(40):02}" if chance.random() < 0.9 else None for _ in range(rows)]
    reals = [chance.choice([math.nan, -0.0, chance.uniform(-9, 9), None]) for _ in range(rows)]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()), "k": pa.array(keys, pa.int32()),
            "s": pa.array(texts, pa.string()), "x": pa.array(reals, pa.float64()),
            "o": pa.array([{"a": key, "t": {"b": text}} if chance.random() < 0.8 else None
                           for key, text in zip(keys, texts, strict=True)], OBJECT),
            "l": pa.array([None if chance.random() < 0.2 else [chance.randrange(9) for _ in range(chance.randrange(4))]
                           for _ in range(rows)], pa.list_(pa.int64())),
        }
    )  # fmt: skip


def holds(value: Any, test: Callable[[Any], bool]) -> bool:
    return value is not None and test(value)


LEAVES: list[tuple[str, Callable[[Any], tuple[Expression, Truth]]]] = [
    ("id <", lambda n: (col("id") < n * 3, lambda row: row["id"] < n * 3)),
    ("id in", lambda n: (col("id").isin([n, 3 * n, 599 - n]), lambda row: row["id"] in (n, 3 * n, 599 - n))),
    ("k =", lambda n: (col("k") == n, lambda row: row["k"] == n)),
    ("k >", lambda n: (col("k") > n, lambda row: holds(row["k"], lambda k: k > n))),
    ("k null", lambda n: (col("k").is_null(), lambda row: row["k"] is None)),
    ("s =", lambda n: (col("s") == f"text {n % 40:02}", lambda row: row["s"] == f"text {n % 40:02}")),
    ("s <", lambda n: (col("s") < f"text {n % 40:02}", lambda row: holds(row["s"], lambda s: s < f"text {n % 40:02}"))),
    ("x <", lambda n: (col("x") < n / 20 - 5, lambda row: holds(row["x"], lambda x: x < n / 20 - 5))),
    ("o.a", lambda n: (col("o.a") < n, lambda row: row["o"] is not None and holds(row["o"]["a"], lambda a: a < n))),
    ("o.t.b", lambda n: (col("o.t.b") == f"text {n % 40:02}",
                         lambda row: row["o"] is not None and row["o"]["t"]["b"] == f"text {n % 40:02}")),
]  # fmt: skip


@st.composite
def questions(draw: st.DrawFn, depth: int = 2) -> tuple[Expression, Truth]:
    """A condition, and its truth of a row in Python."""
    if depth and draw(st.booleans()):
        (one, first), (two, second) = draw(questions(depth=depth - 1)), draw(questions(depth=depth - 1))
        if draw(st.booleans()):
            return one & two, lambda row: first(row) and second(row)
        return one | two, lambda row: first(row) or second(row)
    _, make = draw(st.sampled_from(LEAVES))
    return make(draw(st.integers(0, 199)))


@st.composite
def files(draw: st.DrawFn) -> tuple[pa.Table, bytes]:
    """A table, and its file by us or by pyarrow, cut into pages and row groups of any size."""
    data = table(draw(st.integers(0, 9)), draw(st.sampled_from([1, 40, ROWS])))
    if draw(st.booleans()):
        data = data.sort_by(draw(st.sampled_from(["k", "s", "id"])))
    out = io.BytesIO()
    group = draw(st.sampled_from([7, 150, 1000]))
    if draw(st.booleans()):
        pqext.write_table(
            data, out, row_group_rows=group, page_rows=draw(st.sampled_from([1, 13, 90])),
            page_version=draw(st.sampled_from([1, 2])), dictionary=draw(st.booleans()),
            page_index=draw(st.booleans()), compression=draw(st.sampled_from(["zstd", "snappy", "uncompressed"])),
            bloom_filters=draw(st.booleans()),
        )  # fmt: skip
    else:
        pq.write_table(
            data, out, row_group_size=group, data_page_size=draw(st.sampled_from([60, 900])),
            write_page_index=draw(st.booleans()), use_dictionary=draw(st.booleans()),
            data_page_version=draw(st.sampled_from(["1.0", "2.0"])),
        )  # fmt: skip
    return data, out.getvalue()


def plain(rows: Any) -> str:
    """Rows as text, in which NaN equals itself and zeros keep their sign."""
    return repr(rows)


@pytest.mark.spec("querying.late")
@settings(max_examples=share(0.5))
@given(files(), questions(), st.sampled_from([1, 2, 3]), st.sampled_from([3, 50, 65_536]), st.data())
def test_rows_match_the_full_table_of_pyarrow(
    file: tuple[pa.Table, bytes], question: tuple[Expression, Truth], threads: int, batch_rows: int, data: st.DataObject
) -> None:
    condition, truth = question
    whole = pq.read_table(io.BytesIO(file[1])).to_pylist()
    expected = [row for row in whole if truth(row)]
    columns = data.draw(st.none() | st.lists(st.sampled_from(file[0].schema.names), min_size=1, unique=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "WORTH_BYTES", 0)
        patch.setattr(stages, "AHEAD_BYTES", 0)
        patch.setattr(parallel_decoding, "_FEWEST_ROWS", 2)
        patch.setattr(stages, "_FEWEST_ROWS", 2)
        patch.setattr(stages, "_STAGE_ROWS", data.draw(st.sampled_from([5, 64, 1 << 18])))
        scan = pqext.scan(file[1], columns, condition, threads=threads)
        chosen = [{name: row[name] for name in columns or row} for row in expected]
        assert plain(scan.to_table().select(columns or file[0].schema.names).to_pylist()) == plain(chosen)
        batches = [row for batch in scan.to_batches(batch_rows) for row in batch.to_pylist()]
        assert len(batches) == len(expected)
        assert scan.count() == len(expected)
        assert scan.head(3).num_rows == min(3, len(expected))


def pages_of(data: bytes, column: str) -> list[range]:
    """The rows of each page of a file of one row group."""
    with pqext.open(data) as file:
        pages = file.page_index[0][column]
        return [pages.rows(page) for page in range(len(pages))]


@pytest.mark.spec("querying.pages")
@settings(max_examples=share(0.3))
@given(st.integers(0, 9), st.integers(0, 199), st.sampled_from([5, 40]), st.booleans())
def test_only_pages_that_may_match_are_decoded(seed: int, key: int, rows: int, is_sorted: bool) -> None:
    """Of the filter's column those whose values reach around the key, of others those that hold a row that matches."""
    data = table(seed)
    data = data.sort_by("k") if is_sorted else data
    out = io.BytesIO()
    pqext.write_table(data, out, page_rows=rows, page_bytes=400, row_group_rows=ROWS)
    keys = data["k"].to_pylist()
    may = []
    for page in pages_of(out.getvalue(), "k"):
        values = [keys[row] for row in page if keys[row] is not None]
        may += [page] if values and min(values) <= key <= max(values) else []
    matching = [row for row, value in enumerate(keys) if value == key]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "WORTH_BYTES", 0)
        for column in ("s", "x", "id"):
            allowed = len(may) + sum(any(row in page for row in matching) for page in pages_of(out.getvalue(), column))
            scan = pqext.scan(out.getvalue(), [column], col("k") == key)
            expected = data[column].take(pa.array(matching, pa.int64()))
            assert plain(scan.to_table()[column].to_pylist()) == plain(expected.to_pylist())
            metrics = scan.metrics
            assert metrics is not None
            assert metrics.pages <= allowed


@pytest.mark.spec("querying.late", "querying.in-page")
@pytest.mark.parametrize("strings", ["string", "view", "dictionary"])
def test_skipped_pages_may_be_corrupt(strings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages that hold no row that is wanted are overwritten, and the answer is still right."""
    monkeypatch.setattr(planner, "WORTH_BYTES", 0)
    data = table(3).sort_by("k")
    out = io.BytesIO()
    pqext.write_table(data, out, page_rows=20, row_group_rows=300)
    raw, keys = bytearray(out.getvalue()), data["k"].to_pylist()
    condition = (col("k") == 77) | (col("k") == 140)
    wanted = {row for row, key in enumerate(keys) if key in (77, 140)}
    damaged = 0
    with pqext.open(bytes(raw)) as file:
        for group, index in zip(file.row_groups, file.page_index, strict=True):
            for pages in index.values():
                for page in range(len(pages)):
                    rows = pages.rows(page)
                    bounds = {key for key in keys[group.index * 300 :][rows.start : rows.stop] if key is not None}
                    asked = any(bounds and min(bounds) <= key <= max(bounds) for key in (77, 140))
                    if not asked and not wanted & {group.index * 300 + row for row in rows}:
                        start, length = pages.byte_range(page)
                        raw[start : start + length] = b"\xff" * length
                        damaged += 1
    assert damaged > 100
    with pytest.raises(pqext.CorruptFileError):
        pqext.read_table(bytes(raw))
    found = pqext.read_table(bytes(raw), None, condition, strings=strings)
    expected = data.filter(pc.is_in(data["k"], pa.array([77, 140], pa.int32())))
    assert plain(found.to_pylist()) == plain(expected.to_pylist())


def test_first_rows_of_a_large_row_group_decode_few_pages() -> None:
    out = io.BytesIO()
    rows = 200_000
    pqext.write_table(
        pa.table({"n": np.arange(rows), "m": np.arange(rows) % 7}), out, row_group_rows=rows, page_rows=2000,
        dictionary=False,
    )  # fmt: skip
    filtered = pqext.scan(out.getvalue(), filter=col("m") == 3)  # which looks at thousands of rows together
    for scan, most in ((pqext.scan(out.getvalue()), 4), (filtered, 10)):
        assert scan.head(5).num_rows == 5
        assert scan.head(0).num_rows == 0
        few = scan.limit(5)
        assert few.to_table().num_rows == 5
        metrics = few.metrics
        assert metrics is not None
        assert metrics.pages <= most
    assert pqext.scan(out.getvalue(), [], col("m") == 3).head(5).num_rows == 5
