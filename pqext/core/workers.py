"""Columns worked on in parallel: on threads, or in place where one is enough."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


def thread_count(threads: int) -> int:
    """``threads``, or one a processor for 0; ``ValueError`` for fewer."""
    if threads < 0:
        raise ValueError(f"threads must be 0, for one a processor, or more, not {threads}")
    return threads or os.cpu_count() or 1


class Workers:
    """At most ``threads`` threads, 0 for one a processor, and no more than there are ``jobs``."""

    def __init__(self, threads: int, jobs: int) -> None:
        count = min(threads or os.cpu_count() or 1, jobs)
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def map(self, function: Callable[..., T], *items: Iterable[Any]) -> Iterator[T]:
        """The results in the order of the items, begun on at once when there are threads."""
        return map(function, *items) if self._pool is None else self._pool.map(function, *items)

    def map_ahead(self, function: Callable[[Any], T], items: Iterable[Any], ahead: int) -> Iterator[T]:
        """As :meth:`map`, but items are taken as results are: at most ``ahead`` before the results they are for."""
        if self._pool is None:
            yield from map(function, items)
            return
        pending: deque[Future[T]] = deque()
        for item in items:
            pending.append(self._pool.submit(function, item))
            if len(pending) > ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
