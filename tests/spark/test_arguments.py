"""Arguments of another type than a public function takes are a TypeError with the parameter's name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from inspect import Parameter
from typing import Any

import pytest

import pqext.spark
from pqext.spark import functions


class Odd:
    """An argument that no function takes."""


def _functions() -> Iterator[Any]:
    for module in (pqext.spark, functions):
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and not isinstance(value, type):
                yield value


def _is_open(parameter: Parameter) -> bool:
    """Whether the function itself checks a parameter, or takes anything for it."""
    if str(parameter.annotation) == "Mapping[str, Any]":
        return True
    return parameter.kind is Parameter.VAR_KEYWORD or "Any" in str(parameter.annotation).split(" | ")


VALID: dict[str, Any] = {
    "Any": "v", "ColumnOrName": "v", "ColumnOrName | Any": "v", "Mapping[str, Any]": {}, "Operation": "intersects",
    "Sequence[Index]": [], "Steps": "$.a", "float": 1.0, "float | ColumnOrName": 1.0, "int": 1,
    "int | str | Column": 4326, "str": "x", "str | Sequence[str]": "x", "str | Sequence[str | int]": "$.a",
    "str | os.PathLike[str]": "x",
}  # fmt: skip
"""An argument for each annotation of a parameter that has no default."""


@pytest.mark.spec("spark.arguments")
def test_every_public_function_names_the_argument_of_a_wrong_type(spark: Any) -> None:
    valid = VALID | {"SparkSession": spark, "DataFrame": spark.range(1)}
    count = 0
    for function in _functions():
        parameters = inspect.signature(function).parameters.values()
        single = [one for one in parameters if one.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
        needed = {one.name: valid.get(str(one.annotation), "x") for one in single if one.default is Parameter.empty}
        for parameter in parameters:
            if _is_open(parameter):
                continue
            is_list = parameter.kind is Parameter.VAR_POSITIONAL
            call = partial(function, *needed.values(), Odd()) if is_list else (
                partial(function, **(needed | {parameter.name: Odd()}))
            )
            with pytest.raises(TypeError, match=f"^{parameter.name} must be .*, not Odd"):
                call()
            count += 1
    assert count > 200


SPARK: Any = pqext.spark
FUNCTIONS: Any = functions


@pytest.mark.spec("spark.arguments")
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda spark, df: SPARK.read(spark, 5), r"path must be str \| Sequence\[str\], not int"),
        (lambda spark, df: SPARK.read(df, "a"), "spark must be SparkSession, not DataFrame"),
        (lambda spark, df: SPARK.where("id > 5", df), "df must be DataFrame, not str"),
        (lambda spark, df: SPARK.read(spark, "a", memory_bytes="1"), r"memory_bytes must be int \| None"),
        (lambda spark, df: FUNCTIONS.st_area(5), "geometry must be a column or its name, not int: F.lit"),
        (lambda spark, df: FUNCTIONS.variant_get("v", "$.a", 5), r"type must be str \| T.DataType, not int"),
        (lambda spark, df: FUNCTIONS.st_point("x", 2), "y must be a column or its name, not int"),
        (lambda spark, df: SPARK.ingest_json(spark, [None], "d"), "^paths must be .*, not a list with NoneType"),
        (lambda spark, df: SPARK.ingest_json(spark, b"a", "d"), "^paths must be .*, not bytes"),
        (lambda spark, df: SPARK.read(spark, ("a", 5)), "^path must be .*, not a tuple with int"),
        (lambda spark, df: SPARK.read_json(spark, [b"a"]), "^path must be .*, not a list with bytes"),
    ],
)
def test_messages_name_parameter_and_types(spark: Any, call: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        call(spark, spark.range(1))
