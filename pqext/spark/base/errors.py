"""Error messages for Spark users: without stack frames of pqext, and with Spark's names for options.

Spark puts the Python traceback of a data source's method into the message of its own exception. An error about an
option or a path should state its reason without the frames inside pqext.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from pqext.core.base.errors import ParquetError
from pqext.core.base.usage import ADVICE

P = ParamSpec("P")
R = TypeVar("R")


def concise_errors(method: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``method`` to raise errors without stack frames below it, and with Spark's names for options."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with spark_option_names():
                return method(*args, **kwargs)
        except (ValueError, TypeError, OSError) as error:
            raise error.with_traceback(None) from None

    return call


_SPARK_PHRASES = (
    (ADVICE, "raise it with memory_bytes="),
    ("read fewer rows at a time with iter_batches", "read fewer columns"),
    (', on the command line --union, reads files', " reads files"),
    ('skip the row, or read it as null with invalid_values="null"', "exclude the row with where="),
    (
        "omit the column with columns=, or pass the type to read it as in schema=pyarrow.schema(...)",
        "cast it in one of the files",
    ),
    ("timestamptz '", "timestamp_ltz '"),
    ("more deeply than max_depth allows", "more than 1,000 levels deep"),
)
"""Phrases in messages that name Python or command-line options, and their replacements for Spark."""


@contextmanager
def spark_option_names() -> Iterator[None]:
    """Replace the names of Python and command-line options in errors raised in the block by Spark's names."""
    try:
        yield
    except (ParquetError, ValueError, TypeError) as error:
        if isinstance(error, ParquetError):
            error.message = with_spark_names(error.message)
        if error.args and isinstance(error.args[0], str):
            error.args = (with_spark_names(error.args[0]), *error.args[1:])
        raise


def with_spark_names(text: str) -> str:
    """Return a message with Spark's names for options."""
    for python, spark in _SPARK_PHRASES:
        text = text.replace(python, spark)
    return text
