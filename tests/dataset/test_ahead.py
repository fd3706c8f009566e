"""Row groups run side by side: rows in order, bounded, once, and nothing left running."""

from __future__ import annotations

import gc
import io
import threading
import time
import weakref
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.threads import Workers
from pqext.dataset.execution import parallel_decoding, stages
from pqext.dataset.execution.parallel_decoding import Part, decode_in_parallel

ROWS = 300_000


def part(*numbers: int) -> Part:
    return pa.record_batch({"n": list(numbers)}), []


def numbers(parts: Iterator[Part]) -> list[int]:
    return [number for batch, _ in parts for number in batch["n"].to_pylist()]


def file(rows: int = ROWS, groups: int = 6) -> bytes:
    chance = np.random.default_rng(3)
    table = pa.table({"k": chance.integers(0, 100, rows), "x": chance.random(rows), "i": np.arange(rows)})
    out = io.BytesIO()
    pqext.write_table(table, out, row_group_rows=rows // groups, page_rows=5000, dictionary=False)
    return out.getvalue()


FILE = file()


@pytest.mark.spec("querying.ahead")
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_parts_are_returned_in_row_group_order(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_decoding, "_FIRST_BYTES", 1)

    def run(first: int, shares: int) -> Iterator[Part]:
        assert shares == (1 if threads == 1 else min(threads + 1, 7))  # one waits for the first thread that is done
        for number in range(first, first + 5):
            time.sleep(0.001 * (number % 3))
            yield part(number)

    assert numbers(decode_in_parallel([partial(run, 5 * n) for n in range(7)], threads, 7)) == list(range(35))


def test_row_groups_run_concurrently_up_to_the_thread_count() -> None:
    all_running = threading.Barrier(5, timeout=60)

    def run(number: int, shares: int) -> Iterator[Part]:
        all_running.wait()
        yield part(number)

    assert numbers(decode_in_parallel([partial(run, number) for number in range(5)], 5, 5)) == [0, 1, 2, 3, 4]


def test_row_group_too_large_to_run_concurrently_is_read_alone() -> None:
    shares_seen: list[int] = []

    def greedy(shares: int) -> Iterator[Part]:
        shares_seen.append(shares)
        yield part(1, 2)
        if shares > 1:
            raise MemoryLimitError("too much")
        yield part(3)
        yield part(4, 5)

    def run_part(shares: int) -> Iterator[Part]:
        yield part(6)

    assert numbers(decode_in_parallel([greedy, run_part], 2, 2)) == [1, 2, 3, 4, 5, 6]
    assert shares_seen == [2, 1]


def test_row_group_too_large_on_its_own_is_an_error() -> None:
    def greedy(shares: int) -> Iterator[Part]:
        yield part(1)
        raise MemoryLimitError("too much")

    with pytest.raises(MemoryLimitError, match="too much"):
        numbers(decode_in_parallel([greedy], 2, 2))


@pytest.mark.spec("querying.ahead")
def test_memory_is_limited_to_one_step_per_row_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_BYTES", "STEP_BYTES"):
        monkeypatch.setattr(parallel_decoding, name, 1)
    made = taken = most = 0
    lock = threading.Lock()

    def run(shares: int) -> Iterator[Part]:
        nonlocal made, most
        for number in range(20):
            with lock:
                made += 1
                most = max(most, made - taken)
            yield part(number)

    for _ in decode_in_parallel([run] * 4, 2, 4):
        taken += 1
        time.sleep(0.001)
    assert taken == 80
    assert most <= 4  # one taken, one to come, one of the row group behind, and one that has just begun


@pytest.mark.spec("querying.ahead")
def test_abandoned_iterator_stops_all_work() -> None:
    begun: list[int] = []
    ended: list[int] = []
    made = 0
    running = threading.Event()

    def run(number: int, shares: int) -> Iterator[Part]:
        nonlocal made
        begun.append(number)
        yield part(*range(1 << 17))  # which ends a step
        running.set()
        for at in range(3000):
            time.sleep(0.001)
            made += 1
            yield part(at)
        ended.append(number)

    parts = decode_in_parallel([partial(run, number) for number in range(50)], 2, 50)
    next(parts)
    assert running.wait(60)
    parts.close()
    seen = list(begun), made
    assert len(begun) <= 3
    assert not ended
    time.sleep(0.02)
    assert (begun, made) == seen


def test_abandoned_batches_release_memory_and_file() -> None:
    gc.collect()
    before = pa.total_allocated_bytes()
    scan = pqext.scan(FILE, filter=col("x") < 0.9)
    batches = scan.to_batches(1000)
    batch = next(iter(batches))
    source = weakref.ref(batch)
    del batch
    batches.close()  # type: ignore[attr-defined]
    del batches
    assert source() is None
    assert pa.total_allocated_bytes() - before < 1 << 16
    with Workers(2, 2) as workers:  # threads are free again
        assert list(workers.map(abs, [-1, -2])) == [1, 2]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("share", [0.001, 0.3, 1.0])
def test_threads_do_not_change_rows(threads: int, share: float) -> None:
    table = pqext.read_table(FILE, threads=1)
    expected = table.filter(pa.compute.less(table["x"], share))
    found = pqext.scan(FILE, filter=col("x") < share, threads=threads)
    assert found.to_table().equals(expected)
    assert pa.Table.from_batches(found.to_batches(777)).equals(expected)
    assert found.count() == expected.num_rows


def test_next_rows_are_read_while_current_ones_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "AHEAD_BYTES", 0)
    began = threading.Event()
    read = stages._GroupRun._run_in_one_stage

    def record(self: stages._GroupRun, *arguments: object) -> Iterator[Part]:
        if self._plan.index == 1:
            began.set()
        return read(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(stages._GroupRun, "_run_in_one_stage", record)
    batches = pqext.scan(FILE, ["k"], col("k") < 90, threads=2).to_batches(100)
    next(iter(batches))
    assert began.wait(60)
    batches.close()  # type: ignore[attr-defined]


def test_first_few_rows_are_read_without_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "AHEAD_BYTES", 0)
    monkeypatch.setattr(stages, "decode_in_parallel", None)
    assert pqext.scan(FILE, filter=col("k") >= 0, threads=2).head(3)["i"].to_pylist() == [0, 1, 2]
