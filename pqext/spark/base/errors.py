"""Errors for Spark users: checks of arguments and types, and messages with Spark's names for options.

Spark would report wrong arguments far from the call, and puts the Python traceback of a data source's method into the
message of its own exception. An error about an option or a path should state its reason without the frames inside
pqext. :func:`check_arguments` compares arguments with the annotations of a function. The function itself checks
arguments annotated with ``Any`` and the values of ``Literal`` types, including None.
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from inspect import Parameter, Signature, signature, unwrap
from numbers import Real
from types import NoneType, SimpleNamespace
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.base.text import escape_text
from pqext.core.base.usage import ADVICE, RAISE_LIMIT

P = ParamSpec("P")
R = TypeVar("R")
_WIDER: dict[Any, tuple[type, ...]] = {
    str: (str, os.PathLike), int: (Real,), float: (Real,), bool: (bool, Real), bytes: (bytes, bytearray, memoryview),
    tuple: (Sequence,),
}  # fmt: skip
"""Additional types that are accepted where a type is expected."""
_TEXT = _WIDER[str]
_DESCRIPTIONS = {
    "float | ColumnOrName": "a number or a column", "Box | str | None": "four numbers (xmin, ymin, xmax, ymax)",
}  # fmt: skip
_HINTS = dict.fromkeys(("ColumnOrName", "ColumnOrName | None"), ": F.lit makes a column of a value") | {
    "Box | str | None": "; name the column with bbox_column"
}
_OPEN = "Mapping[str, Any]"
"""Annotation of arguments that functions check themselves, because the message has an example."""
_ERRORS = (ValueError, TypeError, ImportError, AttributeError)


def concise_errors(method: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``method`` so that errors omit inner stack frames and use Spark's names of options."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with spark_option_names():
                return method(*args, **kwargs)
        except (ValueError, TypeError, OSError) as error:
            raise error.with_traceback(None) from None

    return call


_SPARK_PHRASES = (
    (ADVICE, "raise it with memory_bytes="), (RAISE_LIMIT, "raise the limit with memory_bytes="),
    ("read fewer rows at a time with iter_batches", "read fewer columns"),
    ('skip the row, or read it as null with invalid_values="null"', "exclude the row with where="),
    (
        "omit the column with columns=, or set its type with schema=pyarrow.schema(...)",
        "cast it in one of the files",
    ),
    ("timestamptz '", "timestamp_ltz '"),
    ('pass legacy_timezone="...", or legacy_calendar="stored" for instants as stored', 'pass legacy_timezone="..."'),
    ("more deeply than max_depth allows", "more than 1,000 levels deep"),
)
"""Phrases in messages that name Python or command-line options, and their replacements for Spark."""


@contextmanager
def spark_option_names() -> Iterator[None]:
    """Context manager that replaces the names of Python and command-line options in errors with Spark's names."""
    try:
        yield
    except (ParquetError, ValueError, TypeError) as error:
        if isinstance(error, ParquetError):
            error.message = use_spark_names(error.message)
        if error.args and isinstance(error.args[0], str):
            error.args = (use_spark_names(error.args[0]), *error.args[1:])
        raise


def use_spark_names(text: str) -> str:
    """Replace the names of options in a message with Spark's names."""
    for python, spark in _SPARK_PHRASES:
        text = text.replace(python, spark)
    return text


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``function`` to raise ``TypeError`` with the parameter's name if an argument has the wrong type.

    Path objects are passed to ``function`` as text.
    """
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = parameters.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises an error with the missing or unknown argument
        for name, value in bound.arguments.items():
            _check(function, parameters, name, value)
            bound.arguments[name] = _path_to_text(value)
        with spark_option_names():
            return function(*bound.args, **bound.kwargs)

    return call


def _check(function: Callable[..., Any], parameters: Signature, name: str, value: Any) -> None:
    parameter = parameters.parameters[name]
    annotation = str(parameter.annotation)
    if parameter.kind is Parameter.VAR_KEYWORD or annotation == _OPEN:
        return
    for item in value if parameter.kind is Parameter.VAR_POSITIONAL else (value,):
        if _is_instance(item, _type_of(function, annotation)):
            continue
        expected = _DESCRIPTIONS.get(annotation, annotation.replace("ColumnOrName", "a column or its name"))
        raise TypeError(f"{name} must be {expected}, not {_describe_type(item)}{_HINTS.get(annotation, '')}")


def _path_to_text(value: Any) -> Any:
    """Convert a path object, or the path objects in a list, to text. Other values are returned unchanged."""
    if isinstance(value, list | tuple) and any(isinstance(item, os.PathLike) for item in value):
        return [_path_to_text(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _describe_type(value: Any) -> str:
    """Return the name of a value's type; for a list, also the type of the first element that is not text."""
    others = [item for item in value if not isinstance(item, _TEXT)] if isinstance(value, list | tuple) else []
    return f"a {type(value).__name__} with {type(others[0]).__name__}" if others else type(value).__name__


class _Names(dict[str, Any]):
    """Namespace for resolving annotations. Names that are imported only for type checking are ``Any``."""

    def __missing__(self, name: str) -> Any:
        return vars(builtins).get(name, Any)


@cache  # the keys are module-level functions, which are never collected
def _type_of(function: Callable[..., Any], annotation: str) -> Any:
    known = {"SparkSession": SparkSession, "DataFrame": DataFrame, "Column": Column, "Sequence": Sequence}
    holder = SimpleNamespace(__annotations__={"it": annotation.replace("ColumnOrName", "str | Column")})
    return get_type_hints(holder, {}, _Names(unwrap(function).__globals__ | known))["it"]


def _is_instance(value: Any, type: Any) -> bool:
    if type is Any:
        return True
    origin = get_origin(type)
    if origin is Literal:
        options = {option.__class__ for option in get_args(type)}
        return value is None or any(_is_instance(value, option) for option in options)
    if origin is Sequence and get_args(type) == (str,):
        is_list = isinstance(value, Sequence) and not isinstance(value, _WIDER[bytes])
        return is_list and all(isinstance(item, _TEXT) for item in value)
    if origin in (Mapping, Sequence, Iterable, Callable, tuple):
        return isinstance(value, _WIDER.get(origin, (origin,)))
    if origin is not None:
        return any(_is_instance(value, member) for member in get_args(type))  # a union
    if type is None or type is NoneType:
        return value is None
    if type is SparkSession:
        return any(base.__name__ == "SparkSession" for base in value.__class__.__mro__)  # including Spark Connect's
    return isinstance(value, _WIDER.get(type, type))


@contextmanager
def explain_user_types(df: DataFrame) -> Iterator[None]:
    """Context manager that raises ``UnsupportedError`` if a user-defined type in ``df`` makes its block fail."""
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
            raise _import_error("of a column", error, "drop the column") from error
        return
    for field in json.loads(frame.schema().json())["fields"]:
        for type in _iter_user_types(field["type"]):
            try:
                T.UserDefinedType.fromJson(type)
            except Exception as error:  # any error of the imported module
                name = escape_text(str(type.get("pyClass") or type.get("class")))
                advice = f"drop the column with df.drop({field['name']!r})"
                raise _import_error(name, error, advice, field["name"]) from error


def _import_error(name: str, error: Exception, advice: str, column: str | None = None) -> UnsupportedError:
    return UnsupportedError(
        f"the user-defined type {name} cannot be imported ({escape_text(str(error))}): install its module, or {advice}",
        feature="user-defined types", column=column,
    )


def _iter_user_types(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the user-defined types in the JSON of a type."""
    if isinstance(data, dict) and data.get("type") == "udt":
        yield data
    elif isinstance(data, dict | list):
        for item in data.values() if isinstance(data, dict) else data:
            yield from _iter_user_types(item)
