"""Objects that threads use one at a time, and values private to a thread.

A prepared GEOS geometry builds its indexes while it is evaluated. Before GEOS 3.12 (shapely 2.0 carries 3.11) every
geometry also computes its envelope when it is first evaluated. Neither is safe when two threads evaluate one object.
pyproj's CRS and Transformer (from 3.1) hold an object of PROJ for each thread themselves, and a Geod does not change.
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
    """A value that each thread makes for itself when it first needs it.

    The value lasts as long as both the thread and this object.

    Args:
        make: Returns a value that no other thread holds. It may run in several threads at the same time.
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


def in_turn(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """A method that waits for the other methods so decorated, by the lock ``_turn`` of its object."""

    @wraps(method)
    def waiting(*arguments: _P.args, **keywords: _P.kwargs) -> _T:
        owner: Any = arguments[0]
        with owner._turn:
            return method(*arguments, **keywords)

    return waiting
