"""Calls of one object that come one after another, whatever threads they are from."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_turn(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """A method that waits for the other methods so decorated, by the lock ``_turn`` of its object."""

    @wraps(method)
    def waiting(*arguments: _P.args, **keywords: _P.kwargs) -> _T:
        owner: Any = arguments[0]
        with owner._turn:
            return method(*arguments, **keywords)

    return waiting
