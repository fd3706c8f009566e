"""Errors for data frames with user-defined types whose Python class cannot be imported.

PySpark imports the classes to return the schema of a data frame, and its error does not name the column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.text import escape_text

_ERRORS = (ValueError, TypeError, ImportError, AttributeError)


@contextmanager
def named_user_types(df: DataFrame) -> Iterator[None]:
    """Raise ``UnsupportedError`` for errors of the block that a user-defined type of ``df`` causes."""
    try:
        yield
    except _ERRORS:
        check_user_types(df)
        raise


def check_user_types(df: DataFrame) -> None:
    """Raise ``UnsupportedError`` for a column with a user-defined type that cannot be imported.

    Spark Connect does not return the name of the column.
    """
    frame = getattr(df, "_jdf", None)  # None on Spark Connect
    if frame is None:
        try:
            df.schema  # noqa: B018
        except _ERRORS as error:
            raise _unknown("of a column", error, "drop the column") from error
        return
    for field in json.loads(frame.schema().json())["fields"]:
        for type in _user_types(field["type"]):
            try:
                T.UserDefinedType.fromJson(type)
            except Exception as error:  # any error of the imported module
                name = escape_text(str(type.get("pyClass") or type.get("class")))
                advice = f"drop the column with df.drop({field['name']!r})"
                raise _unknown(name, error, advice, field["name"]) from error


def _unknown(name: str, error: Exception, advice: str, column: str | None = None) -> UnsupportedError:
    return UnsupportedError(
        f"the user-defined type {name} cannot be imported ({escape_text(str(error))}): install its module, or {advice}",
        feature="user-defined types", column=column,
    )


def _user_types(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the user-defined types in the JSON of a type."""
    if isinstance(data, dict) and data.get("type") == "udt":
        yield data
    elif isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _user_types(item)
