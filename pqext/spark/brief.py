"""Errors of a data source's methods without the frames inside pqext.

Spark puts the whole Python traceback of such a method into the message of its own exception; the user, whose option
or path is at fault, should find the reason without reading pqext's source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def brief(method: Callable[P, R]) -> Callable[P, R]:
    """``method``, whose errors about options, paths and files lose the frames below it."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (ValueError, TypeError, OSError) as error:
            raise error.with_traceback(None) from None

    return call
