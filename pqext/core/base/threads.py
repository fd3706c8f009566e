"""Threads: shared pools that run jobs in parallel, values private to a thread, and methods that run one at a time.

The pools are reused across files: the first allocations of a new thread use fresh memory, which costs more than
decoding a small column. Jobs run on the calling thread if there is only one thread.

A prepared GEOS geometry builds its indexes while it is evaluated. Before GEOS 3.12 (shapely 2.0 bundles 3.11) every
geometry also computes its envelope when it is first evaluated. Neither is safe if two threads evaluate the same object.
pyproj's CRS and Transformer (from 3.1) create a PROJ object for each thread, and a Geod is immutable.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial, wraps
from itertools import chain, starmap
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import pyarrow as pa

T = TypeVar("T")
_P = ParamSpec("_P")

BATCH_BYTES = 1 << 20
"""Minimum number of bytes per batch of calls.

For less work, threads spend more time waiting for one another than working.
"""

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()
_thread = threading.local()
_forks = 0
"""Number of forks between the original process and this one."""
MIN_JOB_BYTES = 256 << 10
"""Minimum number of bytes that justify a thread, because each thread collects keys and shapes separately."""


class ThreadLocalValue(Generic[T]):
    """Value that each thread creates on first use.

    The value lasts as long as both the thread and this object.

    Args:
        make: Function that creates a new value. It may run in several threads at the same time.
    """

    __slots__ = ("_local", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._local = threading.local()

    def get(self) -> T:
        """Return the value of the calling thread."""
        try:
            return cast(T, self._local.value)
        except AttributeError:
            pass
        value = self._local.value = self._make()
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._make,)


def synchronized(method: Callable[_P, T]) -> Callable[_P, T]:
    """Decorate a method to hold the object's ``_method_lock``, so that only one synchronized method runs at a time.
    """

    @wraps(method)
    def call_locked(*arguments: _P.args, **keywords: _P.kwargs) -> T:
        owner: Any = arguments[0]
        with owner._method_lock:
            return method(*arguments, **keywords)

    return call_locked


def _get_pool(threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, "pqext")
        return _pools[threads]


def _run(pool: ThreadPoolExecutor, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    """Call ``function`` on a thread of ``pool``, and record the pool for nested jobs."""
    _thread.pool = pool
    return function(*arguments)


_Call = tuple[Callable[..., Any], tuple[Any, ...]]


def _reset_after_fork() -> None:
    """Drop the pools in a forked child process, because their threads do not exist there."""
    global _pools_lock, _forks
    _forks += 1
    _pools.clear()
    _pools_lock = threading.Lock()
    _thread.pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


@cache
def _processors() -> int:
    return os.cpu_count() or 1  # cached: it is a system call


def thread_count(threads: int) -> int:
    """Return ``threads``, or the number of processors if it is 0. Raises ``ValueError`` if it is negative."""
    if threads < 0:
        raise ValueError(f"threads must be 0 (one per processor) or more, not {threads}")
    return threads or _processors()


def _batch(calls: Iterable[tuple[Any, ...]], sizes: Sequence[int]) -> tuple[list[list[tuple[Any, ...]]], list[int]]:
    """Group calls into batches of at least ``BATCH_BYTES``; return the batches and their total sizes."""
    batches: list[list[tuple[Any, ...]]] = []
    totals: list[int] = []
    for call, size in zip(calls, sizes, strict=True):
        if not totals or totals[-1] >= BATCH_BYTES:
            batches.append([])
            totals.append(0)
        batches[-1].append(call)
        totals[-1] += size
    return batches, totals


def _call_all(function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
    return [function(*call) for call in calls]


class Workers:
    """Context that runs jobs on ``threads`` threads (0 is one thread per processor).

    Jobs run on the calling thread if ``threads`` is 1, or if ``jobs``, the number of jobs, is at most 1.
    Workers with equal thread counts share a pool. When the context ends, it waits for running jobs and cancels jobs
    that have not started.
    """

    def __init__(self, threads: int, jobs: int) -> None:
        count = min(thread_count(threads), jobs)
        # Nested jobs use the pool of the outer job. While that waits, it runs nested jobs that have not started.
        self._outer: ThreadPoolExecutor | None = getattr(_thread, "pool", None)
        self._pool = None if count < 2 else _get_pool(thread_count(threads)) if self._outer is None else self._outer
        self._forks = _forks
        self._pending: dict[Future[Any], _Call] = {}
        self._inline: dict[Future[Any], Future[Any]] = {}
        """Results of jobs that ran on the calling thread."""

    @property
    def is_parallel(self) -> bool:
        """Whether jobs start before their results are requested."""
        return self._pool is not None

    def map(
        self, function: Callable[..., T], *items: Iterable[Any], sizes: Sequence[int] | None = None
    ) -> Iterator[T]:
        """Call ``function`` for each item on the worker threads, and return the results in the order of the items.

        All jobs start immediately if there are threads.

        ``sizes`` are the approximate sizes of the items in bytes. Small items are batched. The largest batches start
        first, so that the threads finish at about the same time.
        """
        calls = zip(*items, strict=False)  # stops at the shortest, like map
        if self._pool is None:
            return starmap(function, calls)
        if sizes is None:
            started = deque(self._start(_call_all, function, [call]) for call in calls)
        else:
            batches, totals = _batch(calls, sizes)
            if len(batches) < 2:
                return starmap(function, chain.from_iterable(batches))
            largest_first = sorted(range(len(batches)), key=totals.__getitem__, reverse=True)
            futures = {index: self._start(_call_all, function, batches[index]) for index in largest_first}
            started = deque(futures[index] for index in range(len(batches)))
        return self._results(started)

    def map_split(
        self, split: Callable[..., Sequence[tuple[Any, ...]]], function: Callable[..., T], *items: Iterable[Any]
    ) -> Iterator[T]:
        """Split each item into calls of ``function`` with ``split``, and return the results of the calls in order.

        Both ``split`` and the calls run on the threads if there are any.
        """
        pairs = zip(*items, strict=False)
        if self._pool is None:
            return (function(*call) for item in pairs for call in split(*item))

        def split_job(item: tuple[Any, ...]) -> deque[Future[list[T]]] | list[T]:
            calls = split(*item)
            if len(calls) == 1:
                return [function(*calls[0])]
            return deque(self._start(_call_all, function, [call]) for call in calls)

        started = deque(self._start(split_job, item) for item in pairs)
        return (result for _ in range(len(started)) for result in self._split_results(self._finish(started.popleft())))

    def _split_results(self, results: deque[Future[list[T]]] | list[T]) -> Iterable[T]:
        return self._results(results) if isinstance(results, deque) else results

    def _results(self, futures: deque[Future[list[T]]]) -> Iterator[T]:
        return (result for _ in range(len(futures)) for result in self._finish(futures.popleft()))

    def map_ahead(self, function: Callable[[Any], T], items: Iterable[Any], lookahead: int) -> Generator[T, None, None]:
        """Yield results like :meth:`map`, but consume items lazily, at most ``lookahead`` items ahead of the results.
        """
        if self._pool is None:
            yield from map(function, items)
            return
        started: deque[Future[T]] = deque()
        for item in items:
            started.append(self._start(function, item))
            if len(started) > lookahead:
                yield self._finish(started.popleft())
        while started:
            yield self._finish(started.popleft())

    def start(self, function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
        """Start one call; return a function that waits for its result and returns it.

        That function can be called once. Without threads, it makes the call itself.
        """
        if self._pool is None:
            return partial(function, *arguments)
        return partial(self._finish, self._start(function, *arguments))

    def _start(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        assert self._pool is not None
        self._check_process()
        future = self._pool.submit(_run, self._pool, function, arguments)
        self._pending[future] = function, arguments
        return future

    def _check_process(self) -> None:
        if self._forks != _forks:
            raise RuntimeError("this iterator was created before a fork; create a new iterator in the child process")

    def _finish(self, future: Future[T]) -> T:
        self._check_process()
        if self._outer is not None:
            # A waiting thread runs jobs that have not started, beginning with the job that it waits for.
            for job in (future, *self._pending):
                if future.done():
                    break
                if job not in self._inline and job.cancel():
                    self._run_inline(job)
        result = cast(T, self._inline.pop(future, future).result())
        self._pending.pop(future, None)  # which releases the result
        return result

    def _run_inline(self, future: Future[Any]) -> None:
        function, arguments = self._pending[future]
        inline: Future[Any] = Future()
        self._inline[future] = inline
        try:
            inline.set_result(function(*arguments))
        except BaseException as error:
            inline.set_exception(error)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def wait(self) -> None:
        """Wait for all jobs that were submitted."""
        for future in list(self._pending):
            if self._outer is not None and future not in self._inline and future.cancel():
                self._run_inline(future)
        wait([future for future in self._pending if future not in self._inline])

    def abandon(self) -> None:
        """Wait for running jobs, and cancel jobs that have not started. All results are discarded."""
        if self._forks != _forks:  # the jobs belong to the parent process
            self._pending.clear()
            return
        while pending := list(self._pending):  # a running job may start further jobs
            running = [future for future in pending if not future.cancel()]
            # A pool drops cancelled jobs only when it reaches them. While its threads wait, this may never happen.
            wait(pending if self._outer is None else running)
            for future in pending:
                self._pending.pop(future, None)
                self._inline.pop(future, None)


def even_ranges(chunk: pa.Array, threads: int) -> Iterator[tuple[int, int]]:
    """Yield the start and stop of at most ``threads`` ranges that divide the rows of ``chunk`` evenly.

    If there are several ranges, each has about ``MIN_JOB_BYTES`` bytes or more.
    """

    rows = len(chunk)
    jobs = max(1, min(threads, chunk.nbytes // MIN_JOB_BYTES, rows)) if threads > 1 else 1
    for i in range(jobs):
        yield rows * i // jobs, rows * (i + 1) // jobs
