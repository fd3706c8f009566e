"""Create Spark columns from functions on Arrow arrays. Argument types are checked when a query is analysed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas import functions as pandas_functions

from pqext.core.base.errors import ParquetError
from pqext.spark.base.errors import spark_option_names
from pqext.spark.base.types import drop_metadata

ColumnOrName: TypeAlias = "Column | str"


@dataclass(frozen=True)
class ArgumentType:
    """Types that an argument accepts: a pattern of Spark's type names, a description, and a remedy."""

    pattern: str
    description: str
    hint: str


VARIANTS = ArgumentType(
    r"^(variant|void|struct<(.*,)?metadata:binary.*)$",
    "VARIANT, or a struct of metadata and value",
    "parse JSON text with parse_json, or convert structs, arrays and maps with to_variant_object",
)
GEOMETRIES = ArgumentType(
    r"^(geometry.*|geography.*|binary|void)$",
    "GEOMETRY, GEOGRAPHY or BINARY with WKB",
    "create geometries with st_point, st_geomfromwkt or st_geomfromgeojson",
)
FLAT = ArgumentType(
    r"^(geometry.*|binary|void)$",
    "GEOMETRY or BINARY with WKB",
    "create geometries with st_geomfromwkt, or cast GEOGRAPHY to planar geometries with CAST(... AS GEOMETRY(4326))",
)
CONVERT_EDGES = (
    "convert GEOMETRY with CAST(st_setsrid(..., 4326) AS GEOGRAPHY(4326)), "
    "or GEOGRAPHY with CAST(... AS GEOMETRY(4326))"
)
"""Remedy for a function of two geometries that is called with GEOMETRY and GEOGRAPHY."""
TEXT = ArgumentType(r"^(string.*|varchar.*|char.*|void)$", "STRING", "cast it")
TEXT_OR_BYTES = ArgumentType(r"^(string.*|varchar.*|char.*|binary|void)$", "STRING or BINARY of UTF-8", "cast it")
NUMBER = ArgumentType(r"^(tinyint|smallint|int|bigint|float|double|decimal.*|void)$", "a number", "cast it")
ANYTHING = ArgumentType("", "", "")


@dataclass(frozen=True)
class ArrowFunction:
    """Function on columns that Python workers evaluate on Arrow arrays."""

    name: str
    argument_types: tuple[ArgumentType, ...]
    type: T.DataType
    evaluate: Callable[..., pa.Array]

    def __call__(self, *arguments: ColumnOrName, **constants: Any) -> Column:
        """Return the column of results. ``constants`` are keyword arguments of every evaluation."""
        columns = [
            check_argument(self.name, type, argument)
            for type, argument in zip(self.argument_types, arguments, strict=False)
        ]
        if self.argument_types[:2] == (GEOMETRIES, GEOMETRIES):
            columns[1] = _check_edges(self.name, arguments[0], arguments[1], columns[1])
        evaluate = partial(self.evaluate, **constants) if constants else self.evaluate
        names = [*map(display_name, arguments), *map(str, constants.values())]
        call = f"{self.name}({', '.join(map(display_name, arguments))})"
        result = arrow_udf(wrap_evaluation(evaluate, call), self.type, self.name)(*columns)
        return name_column(result, self.name, names, self.type.simpleString())


def check_argument(function: str, argument_type: ArgumentType, argument: ColumnOrName) -> Column:
    """Return the column of an argument, with a type check that Spark runs when it analyses the query.

    Only Spark knows the type of a column, and it has no function that fails for chosen types. However, it evaluates the
    schema argument of ``from_json`` during analysis. This schema has a field of type BOOLEAN for an accepted type, and
    of a STRUCT named like the error message for a wrong type. NOT takes BOOLEAN alone, so that analysis fails with the
    error of Spark's own functions for a wrong type. Otherwise the optimizer removes the expression. Raises
    ``TypeError`` directly for the result of another function of this package, whose type is known.
    """
    column = as_column(argument)
    if not argument_type.pattern:
        return column
    name, known_type = display_name(argument).replace("`", "'"), vars(column).get(_KNOWN_TYPE)
    before, after = f"{function} takes {argument_type.description}, but {name} is ", f": {argument_type.hint}"
    if known_type is None:
        type_name = F.typeof(column)
        message = F.concat(F.lit(before), F.translate(type_name, "`", "'"), F.lit(after))
        column = _require(function, type_name.rlike(argument_type.pattern), message, column)
    elif re.match(argument_type.pattern, known_type) is None:
        raise TypeError(before + known_type + after)
    return column.cast("double") if argument_type is NUMBER else column


def _require(function: str, condition: Column, message: Column, column: Column) -> Column:
    """Return ``column`` with a check: unless ``condition`` is true, Spark's analyser raises ``message``."""
    wrong = F.concat(F.lit(f"{function} STRUCT<`"), message, F.lit("`: INT>"))
    schema = F.when(condition, F.lit(f"{function} BOOLEAN")).otherwise(wrong)
    return F.when((~F.from_json(F.lit(None).cast("string"), schema)[function]).isNull(), column)


def _check_edges(function: str, first: ColumnOrName, second: ColumnOrName, column: Column) -> Column:
    """Add a check to ``column``, the column of ``second``: both arguments must have the same type of edges."""
    types = [F.typeof(as_column(argument)) for argument in (first, second)]
    names = [display_name(argument).replace("`", "'") for argument in (first, second)]
    is_mixed = F.concat_ws(" ", *types).rlike(r"^geometry\S* geography|^geography\S* geometry")
    message = F.concat(
        F.lit(f"{function} takes two GEOMETRY or two GEOGRAPHY columns, but {names[0]} is "), types[0],
        F.lit(f", and {names[1]} is "), types[1], F.lit(f": {CONVERT_EDGES}"),
    )  # fmt: skip
    return _require(function, ~is_mixed, message, column)


_KNOWN_TYPE = "_pqext_type"


def name_column(column: Column, function: str, arguments: Iterable[str], type: str) -> Column:
    """Return ``column`` named ``function(arguments)``, with its type recorded for :func:`check_argument`."""
    result = column.alias(f"{function}({', '.join(arguments)})")
    setattr(result, _KNOWN_TYPE, type)
    return result


def display_name(argument: ColumnOrName) -> str:
    """Return the name or the shortened expression of a column, for messages."""
    text = argument if isinstance(argument, str) else str(argument)[8:-2].rpartition(" AS ")[2].strip("`")
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_column(argument: ColumnOrName) -> Column:
    """Convert a name to a column, and return a column unchanged. Raises ``TypeError`` for other values."""
    if isinstance(argument, str):
        return F.col(argument)
    if not isinstance(argument, Column):
        raise TypeError(f"expected a column or its name, not {type(argument).__name__}: use F.lit for a value")
    return argument


def to_number_column(value: Any, name: str) -> Column:
    """Convert a number, or a column of numbers or its name, to a column. Raises ``TypeError`` for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Column):
        raise TypeError(f"{name} must be a number or a column, not {type(value).__name__}")
    return F.lit(float(value)) if isinstance(value, int | float) else as_column(value)


def wrap_evaluation(evaluate: Callable[..., pa.Array], name: str) -> Callable[..., pa.Array]:
    """Wrap ``evaluate`` in a new function that :func:`arrow_udf` can annotate.

    Messages of errors begin with ``name``, the function with its columns, and contain Spark's names for options.
    """

    def call(*arrays: pa.Array) -> pa.Array:
        try:
            with spark_option_names():
                return evaluate(*arrays)
        except ParquetError as error:
            error.message = f"{name}: {error.message}"
            raise
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None

    return call


def arrow_udf(
    function: Callable[..., Any], type: T.DataType, name: str, return_annotation: Any = pa.Array
) -> Callable[..., Column]:
    """Create an Arrow UDF. Spark determines its type from annotations, which this function sets."""
    function.__annotations__ = dict.fromkeys(function.__annotations__, pa.Array) | {"return": return_annotation}
    function.__name__ = name
    make: Callable[..., Callable[..., Column]] = pandas_functions.arrow_udf
    return make(function, drop_metadata(type))
