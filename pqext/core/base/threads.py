"""Thread safety: values private to a thread, and methods of an object that run one at a time.

A prepared GEOS geometry builds its indexes while it is evaluated. Before GEOS 3.12 (shapely 2.0 bundles 3.11) every
geometry also computes its envelope when it is first evaluated. Neither is safe if two threads evaluate the same object.
pyproj's CRS and Transformer (from 3.1) create a PROJ object for each thread, and a Geod is immutable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar, cast

T = TypeVar("T")
_P = ParamSpec("_P")
_T = TypeVar("_T")


class PerThread(Generic[T]):
    """A value that each thread creates on first use.

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


def synchronized(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a method so that only one synchronized method of an object runs at a time, using its ``_method_lock``.
    """

    @wraps(method)
    def call_locked(*arguments: _P.args, **keywords: _P.kwargs) -> _T:
        owner: Any = arguments[0]
        with owner._method_lock:
            return method(*arguments, **keywords)

    return call_locked
