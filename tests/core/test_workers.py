"""Work shared among threads: in order, bounded, ended with its context, and safe to nest and to fork."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from itertools import repeat

import pytest

from pqext.core.workers import TURN_BYTES, Workers


def test_results_come_in_the_order_of_the_items_from_no_more_threads_than_asked_for() -> None:
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
def test_one_thread_or_one_job_is_worked_on_in_place(threads: int, jobs: int) -> None:
    with Workers(threads, jobs) as workers:
        assert set(workers.map(lambda _: threading.current_thread(), range(3))) == {threading.current_thread()}


def test_small_items_share_a_turn() -> None:
    """One after another on one thread, until they are large enough; all of them in place where one turn is enough."""
    def thread(_: int) -> int:
        time.sleep(0.01)
        return threading.get_ident()

    small = TURN_BYTES // 4
    with Workers(2, 8) as workers:
        found = list(workers.map(thread, range(8), sizes=[small] * 8))
        assert len(set(found[:4])) == len(set(found[4:])) == 1
        assert found[0] != found[4]
        assert set(workers.map(thread, range(4), sizes=[small] * 4)) == {threading.get_ident()}
        assert list(workers.map(thread, [], sizes=[])) == []
        large = list(workers.map(thread, range(2), sizes=[TURN_BYTES] * 2))
        assert len(set(large)) == 2
        mixed = workers.map(pow, range(6), repeat(2), sizes=[0, TURN_BYTES, 0, 0, TURN_BYTES * 9, 0])
        assert list(mixed) == [number * number for number in range(6)]


def test_an_error_in_a_turn_comes_out() -> None:
    with pytest.raises(ZeroDivisionError), Workers(2, 8) as workers:
        list(workers.map(lambda number: 1 // number, range(8, -1, -1), sizes=[TURN_BYTES // 2] * 9))


def test_the_shortest_input_ends_the_work() -> None:
    for threads in (1, 2):
        with Workers(threads, 3) as workers:
            assert list(workers.map(pow, [2, 3], repeat(2))) == [4, 9]


def test_an_error_comes_out_and_what_had_not_begun_never_does() -> None:
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


def test_work_within_work_does_not_wait_for_itself() -> None:
    def outer(number: int) -> int:
        with Workers(2, 2) as inner:
            return sum(inner.map(lambda value: value + number, range(3)))

    with Workers(2, 4) as workers:
        assert list(workers.map(outer, range(4))) == [3, 6, 9, 12]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_works_with_threads_of_its_own() -> None:
    script = """
import os, signal
from pqext.core.workers import TURN_BYTES, Workers
def work():
    with Workers(2, 4) as workers:
        return list(workers.map(abs, [-1, -2, -3]))
assert work() == [1, 2, 3]
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(0 if work() == [1, 2, 3] else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
