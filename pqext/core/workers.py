"""Columns worked on in parallel: on threads, or in place where one is enough.

The threads stay for the next file: a thread's first allocations are fresh memory, which costs more than the work
on a small column.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

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


def thread_count(threads: int) -> int:
    """``threads``, or one a processor for 0; ``ValueError`` for fewer."""
    if threads < 0:
        raise ValueError(f"threads must be 0, for one a processor, or more, not {threads}")
    return threads or os.cpu_count() or 1


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

    def map(self, function: Callable[..., T], *items: Iterable[Any]) -> Iterator[T]:
        """The results in the order of the items, begun on at once when there are threads."""
        if self._pool is None:
            return map(function, *items)
        begun: deque[Future[T]] = deque()
        for arguments in zip(*items):  # noqa: B905 - like map, as long as the shortest
            begun.append(self._begin(function, *arguments))
        return (self._end(begun.popleft()) for _ in range(len(begun)))

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
        if self._pending:
            for future in self._pending:
                future.cancel()
            wait(self._pending)
            self._pending.clear()
