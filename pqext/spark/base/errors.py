"""Errors in Spark: without the frames inside pqext, and with Spark's names of options.

Spark puts the whole Python traceback of such a method into the message of its own exception; the user, whose option
or path is at fault, should find the reason without reading pqext's source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from pqext.core.base.budget import ADVICE
from pqext.core.base.errors import ParquetError

P = ParamSpec("P")
R = TypeVar("R")


def brief(method: Callable[P, R]) -> Callable[P, R]:
    """``method``, whose errors about options, paths and files lose the frames below it."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with spark_words():
                return method(*args, **kwargs)
        except (ValueError, TypeError, OSError) as error:
            raise error.with_traceback(None) from None

    return call


_WORDS = (
    (ADVICE, "raise it with memory_bytes="),
    ("read fewer rows at a time with iter_batches", "read fewer columns"),
    (', on the command line --union, reads files', " reads files"),
    (
        "leave the column out with columns=, or give the type to read it as in schema=pyarrow.schema(...)",
        "cast it in one of the files",
    ),
)
"""What errors say in Python, and what in Spark."""


@contextmanager
def spark_words() -> Iterator[None]:
    """Errors within name the options of Spark in place of those of Python and the command line."""
    try:
        yield
    except (ParquetError, ValueError, TypeError) as error:
        if isinstance(error, ParquetError):
            error.message = in_spark(error.message)
        if error.args and isinstance(error.args[0], str):
            error.args = (in_spark(error.args[0]), *error.args[1:])
        raise


def in_spark(text: str) -> str:
    """A message with Spark's names of options."""
    for python, spark in _WORDS:
        text = text.replace(python, spark)
    return text
