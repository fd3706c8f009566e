"""Columns worked on in parallel: on threads, or in place where one is enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


class Workers:
    """At most ``threads`` threads, 0 for one a processor, and no more than there are ``jobs``."""

    def __init__(self, threads: int, jobs: int) -> None:
        count = min(threads or os.cpu_count() or 1, jobs)
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def map(self, function: Callable[..., T], *items: Iterable[Any]) -> Iterator[T]:
        """The results in the order of the items, begun on at once when there are threads."""
        return map(function, *items) if self._pool is None else self._pool.map(function, *items)

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
