"""Errors of pqext that come back from Spark's workers wrapped in text, made errors again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pqext.core.base import errors

_RAISED = re.compile(r"^(?:\w+\.)*errors\.(\w+Error): (.+)$", re.MULTILINE)
_ANY = re.compile(r"^(?:[A-Za-z_]\w*\.)*([A-Z]\w*(?:Error|Exception)): (.+)$", re.MULTILINE)


def typed(error: Exception) -> Exception:
    """The error of pqext that a worker raised, as far as Spark's text tells; else one with Spark's last reason."""
    text = str(error)
    for name, message in _RAISED.findall(text):
        kind = getattr(errors, name, None)
        if kind is errors.UnsupportedError:
            return errors.UnsupportedError(message, feature="")
        if isinstance(kind, type) and issubclass(kind, errors.ParquetError):
            return kind(message)
    reasons = _ANY.findall(text)
    first = text.strip().partition("\n")[0]
    return RuntimeError("Spark: " + (": ".join(reasons[-1]) if reasons else first))


@contextmanager
def unwrapped() -> Iterator[None]:
    """Turn Spark's exceptions into the errors that caused them."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise typed(error) from error
