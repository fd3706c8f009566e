"""Types of arguments, checked where the public functions are called: Spark itself would report them far from the call.

:func:`checked` compares arguments with the annotations of a function. What an annotation leaves open, ``Any`` and the
values of ``Literal`` types, None among them, is for the function to check.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, Signature, signature, unwrap
from numbers import Real
from types import NoneType, SimpleNamespace
from typing import Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from pyspark.sql import Column, DataFrame, SparkSession

from pqext.spark.base.errors import spark_words

P = ParamSpec("P")
R = TypeVar("R")

_WIDER: dict[Any, tuple[type, ...]] = {
    str: (str, os.PathLike), int: (Real,), float: (Real,), bool: (bool, Real), bytes: (bytes, bytearray, memoryview),
    tuple: (Sequence,),
}  # fmt: skip
"""Types whose values functions take in place of a type."""
_WORDS = {"float | ColumnOrName": "a number or a column"}
_HINTS = dict.fromkeys(("ColumnOrName", "ColumnOrName | None"), ": F.lit makes a column of a value")
_OPEN = "Mapping[str, Any]"
"""Arguments that functions check themselves, with an example of what they take."""


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which raises ``TypeError`` with the parameter's name for arguments of another type."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = parameters.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # which says what is missing or unknown
        for name, value in given.items():
            _check(function, parameters, name, value)
        with spark_words():
            return function(*args, **kwargs)

    return call


def _check(function: Callable[..., Any], parameters: Signature, name: str, value: Any) -> None:
    parameter = parameters.parameters[name]
    annotation = str(parameter.annotation)
    if parameter.kind is Parameter.VAR_KEYWORD or annotation == _OPEN:
        return
    for one in value if parameter.kind is Parameter.VAR_POSITIONAL else (value,):
        if _fits(one, _type_of(function, annotation)):
            continue
        words = _WORDS.get(annotation, annotation.replace("ColumnOrName", "a column or its name"))
        raise TypeError(f"{name} is {words}, not {type(one).__name__}{_HINTS.get(annotation, '')}")


class _Names(dict[str, Any]):
    """The names of a module, and ``Any`` for those that it imports for type checks alone."""

    def __missing__(self, name: str) -> Any:
        return vars(builtins).get(name, Any)


@cache  # functions of modules, which stay
def _type_of(function: Callable[..., Any], annotation: str) -> Any:
    known = {"SparkSession": SparkSession, "DataFrame": DataFrame, "Column": Column, "Sequence": Sequence}
    holder = SimpleNamespace(__annotations__={"it": annotation.replace("ColumnOrName", "str | Column")})
    return get_type_hints(holder, {}, _Names(unwrap(function).__globals__ | known))["it"]


def _fits(value: Any, type: Any) -> bool:
    if type is Any:
        return True
    origin = get_origin(type)
    if origin is Literal:
        return value is None or any(_fits(value, kind) for kind in {option.__class__ for option in get_args(type)})
    if origin in (Mapping, Sequence, Iterable, Callable, tuple):
        return isinstance(value, _WIDER.get(origin, (origin,)))
    if origin is not None:
        return any(_fits(value, one) for one in get_args(type))  # a union
    if type is None or type is NoneType:
        return value is None
    if type is SparkSession:
        return any(kind.__name__ == "SparkSession" for kind in value.__class__.__mro__)  # of Connect too
    return isinstance(value, _WIDER.get(type, type))
