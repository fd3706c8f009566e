"""Calls with one right answer each, which threads repeat, and the loop that repeats them."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

ROW_GROUP_ROWS = 500


@dataclass(frozen=True)
class Case:
    """A call with as many threads as its argument, and the answer of another library where there is one.

    Without one the answer is that of a single thread.
    """

    name: str
    call: Callable[[int], Any]
    expected: Any = None


def same(one: Any, other: Any) -> bool:
    """Whether two answers are equal, NaN to NaN."""
    if isinstance(one, pa.ChunkedArray | pa.Array | pa.Table | pa.Schema):
        return bool(one.equals(other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@dataclass
class Outcome:
    """How often each case was called, and what went wrong."""

    calls: Counter[str] = field(default_factory=Counter)
    by_threads: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def known_answers(cases: Sequence[Case]) -> dict[str, Any]:
    """The answer of each case, with that of a single thread checked against the other library's."""
    answers = {}
    for case in cases:
        answer = case.call(1)
        if case.expected is not None and not same(answer, case.expected):
            raise AssertionError(f"{case.name} gives another answer than the reference in a single thread")
        answers[case.name] = answer
    return answers


def repeat(cases: Sequence[Case], thread_counts: Sequence[int], seconds: float, seed: int = 0) -> Outcome:
    """Call the cases from several threads at the same time until the time is over or an answer is wrong.

    Each thread count has an equal share of the time, in turns: as many threads call, each with as many threads.
    """
    answers = known_answers(cases)
    outcome = Outcome()
    lock, stop = threading.Lock(), threading.Event()
    turn = min(20.0, seconds / len(thread_counts))
    end = time.monotonic() + seconds

    def work(threads: int, number: int, until: float) -> None:
        drawn = random.Random(f"{seed} {threads} {number} {until}")
        while not stop.is_set() and time.monotonic() < until:
            case = drawn.choice(cases)
            fault = ""
            try:
                if not same(case.call(threads), answers[case.name]):
                    fault = f"{case.name} with {threads} threads gives another answer"
            except Exception:
                fault = f"{case.name} with {threads} threads:\n{traceback.format_exc()}"
            with lock:
                outcome.calls[case.name] += 1
                outcome.by_threads[threads] += 1
                if fault:
                    outcome.faults.append(fault)
                    stop.set()

    while time.monotonic() < end and not stop.is_set():
        for threads in thread_counts:
            until = min(end, time.monotonic() + turn)
            workers = [threading.Thread(target=work, args=(threads, number, until)) for number in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
    return outcome
