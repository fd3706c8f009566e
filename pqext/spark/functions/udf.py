"""Functions of whole Arrow buffers as Spark columns, whose arguments are checked when a query is analysed."""

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

from pqext.spark.base.types import without_metadata

ColumnOrName: TypeAlias = "Column | str"


@dataclass(frozen=True)
class Takes:
    """What an argument may be: a pattern of Spark's type names, these in words, and what to do about another."""

    pattern: str
    words: str
    hint: str


VARIANTS = Takes(
    r"^(variant|void|struct<(.*,)?metadata:binary.*)$",
    "VARIANT, or a struct of metadata and value",
    "parse_json makes VARIANT of JSON text, to_variant_object of structs, arrays and maps",
)
GEOMETRIES = Takes(
    r"^(geometry.*|geography.*|binary|void)$",
    "GEOMETRY, GEOGRAPHY or BINARY of WKB",
    "make geometries with st_point, st_geomfromwkt or st_geomfromgeojson",
)
FLAT = Takes(
    r"^(geometry.*|binary|void)$",
    "GEOMETRY or BINARY of WKB",
    "make geometries with st_geomfromwkt; of GEOGRAPHY, which is no figure in the plane, CAST(... AS GEOMETRY(4326))",
)
TEXT = Takes(r"^(string.*|varchar.*|char.*|void)$", "STRING", "cast it")
TEXT_OR_BYTES = Takes(r"^(string.*|varchar.*|char.*|binary|void)$", "STRING or BINARY of UTF-8", "cast it")
NUMBER = Takes(r"^(tinyint|smallint|int|bigint|float|double|decimal.*|void)$", "a number", "cast it")
ANYTHING = Takes("", "", "")


@dataclass(frozen=True)
class ArrowFunction:
    """A function of Arrow arrays, evaluated in Python workers, as a function of columns."""

    name: str
    takes: tuple[Takes, ...]
    type: T.DataType
    evaluate: Callable[..., pa.Array]

    def __call__(self, *arguments: ColumnOrName, **constants: Any) -> Column:
        """The column; ``constants`` go to every call as they are."""
        checked = [taken(self.name, what, of) for what, of in zip(self.takes, arguments, strict=False)]
        given = partial(self.evaluate, **constants) if constants else self.evaluate
        names = [*map(text_of, arguments), *map(str, constants.values())]
        found = arrow_udf(of_arrays(given), self.type, self.name)(*checked)
        return named(found, self.name, names, self.type.simpleString())


def taken(function: str, takes: Takes, argument: ColumnOrName) -> Column:
    """The column of an argument, which Spark refuses when it analyses the query unless its type is one of ``takes``.

    A column's type is known to Spark alone, which has no function that fails for a type of our choice, but evaluates
    the schema of ``from_json`` when it analyses: for a wrong type this one is our message, at which it stops, and for a
    right one it is a schema, whose use is optimised away. Of our own functions' results the type is known: raises
    ``TypeError`` then.
    """
    column = as_column(argument)
    if not takes.pattern:
        return column
    name, known = text_of(argument).replace("`", "'"), vars(column).get(_KNOWN_TYPE)
    # What follows a type between back quotes is an error in a schema, and is shown whole.
    before, after = f"{function} takes {takes.words}, but {name} is ", f": {takes.hint}"
    if known is None:
        quoted_before, quoted_after = (text.replace("\\", "\\\\").replace("$", "\\$") for text in (before, after))
        fits = F.regexp_replace(F.typeof(column), takes.pattern, "a INT")
        plain = F.translate(fits, "`", "'")
        schema = F.regexp_replace(plain, "^(?!a INT$)(.*)$", f"a `{quoted_before}$1{quoted_after}`")
        column = F.when(F.from_json(F.lit(None).cast("string"), schema).isNull(), column)
    elif re.match(takes.pattern, known) is None:
        raise TypeError(before + known + after)
    return column.cast("double") if takes is NUMBER else column


_KNOWN_TYPE = "_pqext_type"


def named(column: Column, function: str, arguments: Iterable[str], type: str) -> Column:
    """A function's result under the name ``function(arguments)``, whose type :func:`taken` knows."""
    found = column.alias(f"{function}({', '.join(arguments)})")
    setattr(found, _KNOWN_TYPE, type)
    return found


def text_of(argument: ColumnOrName) -> str:
    """A column as people know it: its name, or the beginning of its expression."""
    text = argument if isinstance(argument, str) else str(argument)[8:-2].rpartition(" AS ")[2].strip("`")
    return text if len(text) <= 60 else f"{text[:57]}..."


def as_column(argument: ColumnOrName) -> Column:
    """The column of a name; TypeError for what is neither."""
    if isinstance(argument, str):
        return F.col(argument)
    if not isinstance(argument, Column):
        raise TypeError(f"expected a column or its name, not {type(argument).__name__}: F.lit makes one of a value")
    return argument


def number(value: Any, what: str) -> Column:
    """A number or a column of numbers as a column."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Column):
        raise TypeError(f"{what} is a number or a column, not {type(value).__name__}")
    return F.lit(float(value)) if isinstance(value, int | float) else as_column(value)


def of_arrays(evaluate: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    """``evaluate`` as a function of its own that :func:`arrow_udf` may annotate."""

    def call(*arrays: pa.Array) -> pa.Array:
        return evaluate(*arrays)

    return call


def arrow_udf(
    function: Callable[..., Any], type: T.DataType, name: str, returns: Any = pa.Array
) -> Callable[..., Column]:
    """An Arrow UDF; ``function``'s annotations are made types, which is how Spark recognises its kind."""
    function.__annotations__ = dict.fromkeys(function.__annotations__, pa.Array) | {"return": returns}
    function.__name__ = name
    make: Callable[..., Callable[..., Column]] = pandas_functions.arrow_udf
    return make(function, without_metadata(type))
