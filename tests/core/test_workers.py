"""Work shared among threads: in order, bounded, ended with its context, and safe to nest and to fork."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.threads import BATCH_BYTES, Workers
from pqext.core.read import row_group_reader


def test_results_are_ordered_and_threads_are_limited() -> None:
    names: set[str] = set()

    def work(number: int) -> int:
        names.add(threading.current_thread().name)
        time.sleep(0.002 * (5 - number % 5))
        return number * number

    with Workers(2, 20) as workers:
        assert list(workers.map(work, range(20))) == [number * number for number in range(20)]
    assert len(names) <= 2
    assert threading.current_thread().name not in names


@pytest.mark.parametrize(("threads", "jobs"), [(1, 9), (4, 1), (4, 0)])
def test_one_thread_or_one_job_runs_in_place(threads: int, jobs: int) -> None:
    with Workers(threads, jobs) as workers:
        assert set(workers.map(lambda _: threading.current_thread(), range(3))) == {threading.current_thread()}


def test_few_and_many_jobs_share_threads() -> None:
    def work(together: threading.Barrier) -> threading.Thread:
        together.wait()
        return threading.current_thread()

    with Workers(5, 5) as many:
        used = set(many.map(work, [threading.Barrier(5, timeout=60)] * 5))
    assert len(used) == 5
    with Workers(5, 2) as few:
        assert set(few.map(work, [threading.Barrier(2, timeout=60)] * 2)) < used


def test_small_items_share_a_batch() -> None:
    """One after another on one thread, until they are large enough; all of them in place where one turn is enough."""
    turns, large_items = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)

    def thread(together: threading.Barrier | None) -> int:
        if together is not None:
            together.wait()
        return threading.get_ident()

    small = BATCH_BYTES // 4
    with Workers(2, 8) as workers:
        found = list(workers.map(thread, [turns, None, None, None] * 2, sizes=[small] * 8))
        assert len(set(found[:4])) == len(set(found[4:])) == 1
        assert found[0] != found[4]
        assert set(workers.map(thread, [None] * 4, sizes=[small] * 4)) == {threading.get_ident()}
        assert list(workers.map(thread, [], sizes=[])) == []
        large = list(workers.map(thread, [large_items] * 2, sizes=[BATCH_BYTES] * 2))
        assert len(set(large)) == 2
        mixed = workers.map(pow, range(6), repeat(2), sizes=[0, BATCH_BYTES, 0, 0, BATCH_BYTES * 9, 0])
        assert list(mixed) == [number * number for number in range(6)]


def test_largest_batch_starts_first_and_results_stay_ordered() -> None:
    first: set[int] = set()
    both = threading.Barrier(2, timeout=60)

    def work(number: int) -> int:
        if len(first) < 2:  # nothing else begins before the first two have met
            first.add(number)
            both.wait()
        return number

    sizes = [BATCH_BYTES * size for size in (1, 3, 2, 9, 1)]
    with Workers(2, 5) as workers:
        assert list(workers.map(work, range(5), sizes=sizes)) == list(range(5))
    assert first == {1, 3}


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_items_are_processed_in_order(threads: int) -> None:
    """Also where an item has one part, or none."""
    counts = [3, 1, 0, 1, 5]
    with Workers(threads, 5) as workers:
        found = workers.map_split(lambda item, count: [(item, part) for part in range(count)], pow, range(5), counts)
        assert list(found) == [item**part for item, count in enumerate(counts) for part in range(count)]
        assert not workers._pending


@pytest.mark.parametrize("fails", ["split", "function"])
def test_error_in_a_part_is_raised_and_nothing_remains(fails: str) -> None:
    def split(item: int) -> list[tuple[int]]:
        return [(1 // item if fails == "split" else item,)] * (1 + item % 2)

    with pytest.raises(ZeroDivisionError), Workers(2, 9) as workers:
        list(workers.map_split(split, lambda part: 1 // part, [5, 4, 3, 0, 2, 1]))
    assert not workers._pending


def test_error_in_a_batch_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), Workers(2, 8) as workers:
        list(workers.map(lambda number: 1 // number, range(8, -1, -1), sizes=[BATCH_BYTES // 2] * 9))


def test_shortest_input_ends_the_iteration() -> None:
    for threads in (1, 2):
        with Workers(threads, 3) as workers:
            assert list(workers.map(pow, [2, 3], repeat(2))) == [4, 9]


def test_error_is_raised_and_pending_jobs_never_start() -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("the first")
        time.sleep(0.05)
        ended.append(number)

    with pytest.raises(ValueError, match="the first"), Workers(2, 50) as workers:
        list(workers.map(work, range(50)))
    seen = len(begun)
    assert seen < 50
    assert len(ended) == seen - 1  # the context has waited for all that had begun
    time.sleep(0.1)
    assert len(begun) == seen


def test_nested_work_does_not_deadlock() -> None:
    def outer(number: int) -> int:
        with Workers(2, 2) as inner:
            return sum(inner.map(lambda value: value + number, range(3)))

    with Workers(2, 4) as workers:
        assert list(workers.map(outer, range(4))) == [3, 6, 9, 12]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_child_uses_its_own_threads() -> None:
    script = """
import os, signal
from pqext.core.base.threads import BATCH_BYTES, Workers
def work():
    with Workers(2, 4) as workers:
        return list(workers.map(abs, [-1, -2, -3]))
assert work() == [1, 2, 3]
child = os.fork()
if not child:
    signal.alarm(120)
    os._exit(0 if work() == [1, 2, 3] else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_child_does_not_wait_for_jobs_of_its_parent() -> None:
    script = """
import os, signal, threading
from pqext.core.base.threads import Workers
def squares(let_go):
    with Workers(2, 4) as workers:
        begun = [workers.start(lambda: let_go.wait(100) and 4) for _ in range(3)]
        yield 0
        for one in begun:
            yield one()
let_go = threading.Event()
found = squares(let_go)
assert next(found) == 0
for ask in (True, False):
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            if ask:
                next(found)
        except RuntimeError as error:
            assert "before a fork" in str(error)
        else:
            found.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
let_go.set()
assert [*found] == [4, 4, 4]
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_nested_jobs_use_idle_threads_or_run_in_place() -> None:
    """Three levels of jobs on two threads, more of them than threads, all wait for one another, and none for ever."""
    names: set[str] = set()

    def work(depth: int) -> int:
        names.add(threading.current_thread().name)
        if not depth:
            time.sleep(0.001)
            return 1
        with Workers(2, 3) as inner:
            return sum(inner.map(work, [depth - 1] * 3))

    with Workers(2, 2) as workers:
        assert list(workers.map(work, [2, 2, 2])) == [9, 9, 9]
        assert workers.start(work, 1)() == 3
    assert len(names) <= 2


def test_waiting_job_runs_other_work() -> None:
    """Each part of the job needs another one at the same time, and there are two threads."""
    together = threading.Barrier(2, timeout=60)

    def part(number: int) -> tuple[int, int]:
        together.wait()
        return number, threading.get_ident()

    def job(number: int) -> list[tuple[int, int]]:
        if number:
            return []
        with Workers(2, 6) as workers:
            return list(workers.map(part, range(6)))

    with Workers(2, 2) as jobs:
        found, _ = jobs.map(job, range(2))
    assert [number for number, _ in found] == [*range(6)]
    assert len({thread for _, thread in found}) == 2


def test_concurrent_failures_do_not_wait_for_pending_jobs() -> None:
    both = threading.Barrier(2, timeout=60)

    def job(_: int) -> None:
        with Workers(2, 8) as workers:
            workers.map(time.sleep, [0] * 8)
            both.wait()
            raise LookupError("before any result")

    with Workers(2, 2) as jobs:
        for _ in range(2):
            with pytest.raises(LookupError):
                list(jobs.map(job, range(2)))
            jobs.wait()


def test_error_of_a_job_run_while_waiting_is_raised_by_its_own_call() -> None:
    together = threading.Barrier(2, timeout=60)

    def part(number: int) -> int:
        if number < 2:
            together.wait()
        if number == 1:
            raise LookupError(str(number))
        return number

    def job(number: int) -> int:
        if number:
            return 0
        with Workers(2, 4) as workers:
            results = workers.map(part, range(4))
            assert next(results) == 0
            with pytest.raises(LookupError, match="1"):
                next(results)
            return 1

    with Workers(2, 2) as jobs:
        assert list(jobs.map(job, range(2))) == [1, 0]


def test_single_call_starts_immediately_or_runs_in_place() -> None:
    begun = threading.Event()
    with Workers(2, 2) as workers:
        ready = workers.start(begun.set)
        assert begun.wait(60)
        assert ready() is None
    with Workers(1, 2) as workers:
        ready = workers.start(threading.get_ident)
        assert ready() == threading.get_ident()


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of jobs with which row groups are read."""
    jobs_of_readers: list[int] = []

    class Counted(Workers):
        def __init__(self, threads: int, jobs: int) -> None:
            jobs_of_readers.append(jobs)
            super().__init__(threads, jobs)

    monkeypatch.setattr(row_group_reader, "Workers", Counted)
    return jobs_of_readers


@pytest.mark.parametrize(("rows", "jobs"), [(1000, 1), (200_000, 2)])
def test_columns_too_small_for_threads_form_one_job(rows: int, jobs: int, begun: list[int]) -> None:
    table = pa.table({"a": [[row] for row in range(rows)], "b": [[str(row)] for row in range(rows)]})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_dictionary=False)
    assert pqext.read_table(sink) == table
    assert begun[0] == jobs


@pytest.mark.parametrize(("factor", "jobs"), [(0.01, 1), (0.98, 1), (1.02, 2), (3, 2)])
def test_batches_too_small_for_threads_form_one_job(factor: float, jobs: int, begun: list[int]) -> None:
    table = pa.table({"a": [[row] for row in range(60_000)], "b": [[str(row)] for row in range(60_000)]})
    pq.write_table(table, sink := io.BytesIO(), use_dictionary=False)
    group = pq.read_metadata(sink).row_group(0)
    row_bytes = sum(group.column(index).total_uncompressed_size for index in range(2)) / table.num_rows
    with pqext.open(sink) as file:  # 64 KiB a column are worth a thread
        batches = file.iter_batches(int(factor * 2 * (64 << 10) / row_bytes))
        assert pa.Table.from_batches(batches) == table
    assert begun[0] == jobs


@pytest.mark.parametrize("batch_rows", [40_000, 20_000, 10_000])
def test_work_of_columns_follows_their_sizes_and_the_rows_of_a_batch(
    batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"a": range(40_000), "b": [f"{row:09}" for row in range(40_000)]})
    pq.write_table(table, sink := io.BytesIO(), use_dictionary=False)
    group = pq.read_metadata(sink).row_group(0)
    work: list[Sequence[int]] = []
    map_jobs = Workers.map

    def record(self: Workers, *arguments: Any, sizes: Sequence[int] | None = None) -> Any:
        if sizes is not None and any(sizes):
            work.append(sizes)
        return map_jobs(self, *arguments, sizes=sizes)

    monkeypatch.setattr(Workers, "map", record)
    with pqext.open(sink) as file:
        assert pa.Table.from_batches(file.iter_batches(batch_rows)) == table
    assert len(work) == 40_000 // batch_rows
    for index in range(2):
        stored = group.column(index).total_uncompressed_size * batch_rows // 40_000
        assert all(stored <= sizes[index] <= 1.5 * stored for sizes in work)
