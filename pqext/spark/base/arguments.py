"""Check the types of arguments when a public function is called, because Spark would report errors far from the call.

:func:`check_arguments` compares arguments with the annotations of a function. The function itself checks arguments
annotated with ``Any`` and the values of ``Literal`` types, including None.
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

from pqext.spark.base.errors import spark_option_names

P = ParamSpec("P")
R = TypeVar("R")

_WIDER: dict[Any, tuple[type, ...]] = {
    str: (str, os.PathLike), int: (Real,), float: (Real,), bool: (bool, Real), bytes: (bytes, bytearray, memoryview),
    tuple: (Sequence,),
}  # fmt: skip
"""Additional types that are accepted where a type is expected."""
_DESCRIPTIONS = {"float | ColumnOrName": "a number or a column"}
_HINTS = dict.fromkeys(("ColumnOrName", "ColumnOrName | None"), ": F.lit makes a column of a value")
_OPEN = "Mapping[str, Any]"
"""Annotation of arguments that functions check themselves, because the message has an example."""


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``function`` to raise ``TypeError`` with the parameter's name if an argument has the wrong type."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            arguments = parameters.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # raises an error with the missing or unknown argument
        for name, value in arguments.items():
            _check(function, parameters, name, value)
        with spark_option_names():
            return function(*args, **kwargs)

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
        raise TypeError(f"{name} must be {expected}, not {type(item).__name__}{_HINTS.get(annotation, '')}")


class _Names(dict[str, Any]):
    """Names of a module, with ``Any`` for names that are imported for type checking only."""

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
    if origin in (Mapping, Sequence, Iterable, Callable, tuple):
        return isinstance(value, _WIDER.get(origin, (origin,)))
    if origin is not None:
        return any(_is_instance(value, member) for member in get_args(type))  # a union
    if type is None or type is NoneType:
        return value is None
    if type is SparkSession:
        return any(base.__name__ == "SparkSession" for base in value.__class__.__mro__)  # including Spark Connect's
    return isinstance(value, _WIDER.get(type, type))
