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
from functools import cache, partial
from itertools import chain, starmap
from types import TracebackType
from typing import Any, TypeVar, cast

import pyarrow as pa

T = TypeVar("T")

TURN_BYTES = 1 << 20
"""What a thread is given at least: threads wait for one another more than they work on less."""

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()
_thread = threading.local()
_forks = 0
"""How many processes lie between this one and the first that came to be by forking."""
MIN_JOB_BYTES = 256 << 10
"""What a thread is worth starting for: what is learnt of keys and shapes is learnt by each."""


def _pool_of(threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, "pqext")
        return _pools[threads]


def _on(pool: ThreadPoolExecutor, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """A call on a thread of ``pool``, which knows that it is one."""
    _thread.pool = pool
    return function(*arguments)


_Call = tuple[Callable[..., Any], tuple[Any, ...]]


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _pools_lock, _forks
    _forks += 1
    _pools.clear()
    _pools_lock = threading.Lock()
    _thread.pool = None


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


def _turns(calls: Iterable[tuple[Any, ...]], sizes: Sequence[int]) -> tuple[list[list[tuple[Any, ...]]], list[int]]:
    """Calls that are made one after another on one thread, and the size of each of these turns."""
    turns: list[list[tuple[Any, ...]]] = []
    held: list[int] = []
    for call, size in zip(calls, sizes, strict=True):
        if not held or held[-1] >= TURN_BYTES:
            turns.append([])
            held.append(0)
        turns[-1].append(call)
        held[-1] += size
    return turns, held


def _call_all(function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    return [function(*call) for call in calls]


class Workers:
    """At most ``threads`` threads, 0 for one per processor; none where there is one of ``jobs``.

    All workers of as many threads share them.

    What is still running when the context ends is waited for, and what has not begun never does.
    """

    def __init__(self, threads: int, jobs: int) -> None:
        count = min(thread_count(threads), jobs)
        # Jobs of a job go to the threads of that: those it waits for and that no thread has begun it does itself.
        self._outer: ThreadPoolExecutor | None = getattr(_thread, "pool", None)
        self._pool = None if count < 2 else _pool_of(thread_count(threads)) if self._outer is None else self._outer
        self._forks = _forks
        self._pending: dict[Future[Any], _Call] = {}
        self._own: dict[Future[Any], Future[Any]] = {}
        """What was done here and not by a thread of the pool."""

    @property
    def are_threads(self) -> bool:
        """Does work begin before its results are asked for?"""
        return self._pool is not None

    def map(
        self, function: Callable[..., T], *items: Iterable[Any], sizes: Sequence[int] | None = None
    ) -> Iterator[T]:
        """The results in the order of the items, begun on at once when there are threads.

        ``sizes``: bytes that each item is about. Small items share a turn on a thread, and the largest turns come
        first, so that the threads end at about the same time.
        """
        calls = zip(*items, strict=False)  # like map, as long as the shortest
        if self._pool is None:
            return starmap(function, calls)
        if sizes is None:
            begun = deque(self._begin(_call_all, function, [call]) for call in calls)
        else:
            turns, held = _turns(calls, sizes)
            if len(turns) < 2:
                return starmap(function, chain.from_iterable(turns))
            largest_first = sorted(range(len(turns)), key=held.__getitem__, reverse=True)
            futures = {turn: self._begin(_call_all, function, turns[turn]) for turn in largest_first}
            begun = deque(futures[turn] for turn in range(len(turns)))
        return self._results(begun)

    def map_parts(
        self, split: Callable[..., Sequence[tuple[Any, ...]]], function: Callable[..., T], *items: Iterable[Any]
    ) -> Iterator[T]:
        """``split`` makes calls of each item; the results of ``function`` for these, in their order.

        Where there are threads they do both, without anyone waiting for the calls in between.
        """
        pairs = zip(*items, strict=False)
        if self._pool is None:
            return (function(*call) for item in pairs for call in split(*item))

        def part(item: tuple[Any, ...]) -> deque[Future[list[T]]] | list[T]:
            calls = split(*item)
            if len(calls) == 1:
                return [function(*calls[0])]
            return deque(self._begin(_call_all, function, [call]) for call in calls)

        begun = deque(self._begin(part, item) for item in pairs)
        return (result for _ in range(len(begun)) for result in self._parts(self._end(begun.popleft())))

    def _parts(self, made: deque[Future[list[T]]] | list[T]) -> Iterable[T]:
        return self._results(made) if isinstance(made, deque) else made

    def _results(self, begun: deque[Future[list[T]]]) -> Iterator[T]:
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

    def begin(self, function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
        """Begin on one call; what comes back gives its result, and may be called once."""
        if self._pool is None:
            return partial(function, *arguments)
        return partial(self._end, self._begin(function, *arguments))

    def _begin(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        assert self._pool is not None
        self._check_process()
        future = self._pool.submit(_on, self._pool, function, arguments)
        self._pending[future] = function, arguments
        return future

    def _check_process(self) -> None:
        if self._forks != _forks:
            raise RuntimeError("this began before the process was forked, and its threads are in the other: begin anew")

    def _end(self, future: Future[T]) -> T:
        self._check_process()
        if self._outer is not None:
            # A thread that waits does what no thread has begun, at first what it waits for.
            for one in (future, *self._pending):
                if future.done():
                    break
                if one not in self._own and one.cancel():
                    self._do(one)
        result = cast(T, self._own.pop(future, future).result())
        self._pending.pop(future, None)  # which lets go of the result
        return result

    def _do(self, future: Future[Any]) -> None:
        function, arguments = self._pending[future]
        own: Future[Any] = Future()
        self._own[future] = own
        try:
            own.set_result(function(*arguments))
        except BaseException as error:
            own.set_exception(error)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def settle(self) -> None:
        """Wait for what has begun."""
        for future in list(self._pending):
            if self._outer is not None and future not in self._own and future.cancel():
                self._do(future)
        wait([future for future in self._pending if future not in self._own])

    def abandon(self) -> None:
        """Wait for what is still running, and never begin what has not begun; its results are lost."""
        if self._forks != _forks:  # all of it runs elsewhere
            self._pending.clear()
            return
        while pending := list(self._pending):  # one that runs may begin others
            running = [future for future in pending if not future.cancel()]
            # A pool lets go of what is cancelled when it comes to it, which it may never do while its threads wait.
            wait(pending if self._outer is None else running)
            for future in pending:
                self._pending.pop(future, None)
                self._own.pop(future, None)


def even_ranges(chunk: pa.Array, threads: int) -> Iterator[tuple[int, int]]:
    """The rows of a chunk in ranges for ``threads`` threads, none much below ``MIN_JOB_BYTES``."""
    rows = len(chunk)
    jobs = max(1, min(threads, chunk.nbytes // MIN_JOB_BYTES, rows)) if threads > 1 else 1
    for i in range(jobs):
        yield rows * i // jobs, rows * (i + 1) // jobs
