"""Columns worked on in parallel: on threads, or in place where one is enough.

The threads stay for the next file: a thread's first allocations are fresh memory, which costs more than the work
on a small column.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from itertools import chain, starmap
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

TURN_BYTES = 1 << 20
"""What a thread is given at least: threads wait for one another more than they work on less."""

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()
_thread = threading.local()


def _pool_of(threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, "pqext", initializer=_enter)
        return _pools[threads]


def _enter() -> None:
    _thread.is_worker = True


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _pools_lock
    _pools.clear()
    _pools_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@cache
def _processors() -> int:
    return os.cpu_count() or 1  # which asks the system each time


def thread_count(threads: int) -> int:
    """``threads``, or one a processor for 0; ``ValueError`` for fewer."""
    if threads < 0:
        raise ValueError(f"threads must be 0, for one a processor, or more, not {threads}")
    return threads or _processors()


def _turns(calls: Iterable[tuple[Any, ...]], sizes: Sequence[int]) -> list[list[tuple[Any, ...]]]:
    """Calls that are made one after another on one thread."""
    turns: list[list[tuple[Any, ...]]] = []
    held = TURN_BYTES
    for call, size in zip(calls, sizes, strict=True):
        if held >= TURN_BYTES:
            turns.append([])
            held = 0
        turns[-1].append(call)
        held += size
    return turns


def _call_all(function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    return [function(*call) for call in calls]


class Workers:
    """At most ``threads`` threads, 0 for one a processor, and no more than there are ``jobs``.

    What is still running when the context ends is waited for, and what has not begun never does.
    """

    def __init__(self, threads: int, jobs: int) -> None:
        count = min(thread_count(threads), jobs)
        # A job that waits for jobs of its own would take a thread from them.
        nested = getattr(_thread, "is_worker", False)
        self._pool = _pool_of(count) if count > 1 and not nested else None
        self._pending: deque[Future[Any]] = deque()

    @property
    def are_threads(self) -> bool:
        """Does work begin before its results are asked for?"""
        return self._pool is not None

    def map(
        self, function: Callable[..., T], *items: Iterable[Any], sizes: Sequence[int] | None = None
    ) -> Iterator[T]:
        """The results in the order of the items, begun on at once when there are threads.

        ``sizes``: bytes that each item is about; small ones share a turn on a thread.
        """
        calls = zip(*items, strict=False)  # like map, as long as the shortest
        if self._pool is None:
            return starmap(function, calls)
        turns = [[call] for call in calls] if sizes is None else _turns(calls, sizes)
        if sizes is not None and len(turns) < 2:
            return starmap(function, chain.from_iterable(turns))
        begun: deque[Future[list[T]]] = deque(self._begin(_call_all, function, turn) for turn in turns)
        return (result for _ in range(len(begun)) for result in self._end(begun.popleft()))

    def map_ahead(self, function: Callable[[Any], T], items: Iterable[Any], ahead: int) -> Generator[T, None, None]:
        """As :meth:`map`, but items are taken as results are: at most ``ahead`` before the results they are for."""
        if self._pool is None:
            yield from map(function, items)
            return
        begun: deque[Future[T]] = deque()
        for item in items:
            begun.append(self._begin(function, item))
            if len(begun) > ahead:
                yield self._end(begun.popleft())
        while begun:
            yield self._end(begun.popleft())

    def _begin(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        assert self._pool is not None
        self._pending.append(self._pool.submit(function, *arguments))
        return self._pending[-1]

    def _end(self, future: Future[T]) -> T:
        result = future.result()
        self._pending.remove(future)  # which lets go of the result
        return result

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def abandon(self) -> None:
        """Wait for what is still running, and never begin what has not begun; its results are lost."""
        if self._pending:
            for future in self._pending:
                future.cancel()
            wait(self._pending)
            self._pending.clear()
