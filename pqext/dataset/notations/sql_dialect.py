"""SQL dialect of filters for sqlglot: its tokens, syntax and functions.

Both kinds of quotes around names are accepted, and numbers can have Spark's suffixes: ``1L`` and ``1.5BD``. A function
is only a name with arguments, so sqlglot cannot rewrite one function as another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import sqlglot
from sqlglot import TokenType

from pqext.core.base.suggestions import excerpt
from pqext.dataset.evaluation.arithmetic import arithmetic, constant_scalar, constant_type
from pqext.dataset.expressions import (
    ArithmeticOperator,
    Expression,
    IsNotNull,
    IsNull,
    SpatialValue,
    all_of,
    any_of,
    check_number,
)
from pqext.dataset.expressions.visitors import leaf_operands
from pqext.dataset.notations import sql_literals as literals
from pqext.dataset.notations.sql_literals import restore_interval
from pqext.geo.functions.table import FUNCTIONS as MEASURES


class Filter(sqlglot.Dialect):
    """SQL dialect in which names may be in double quotes or backticks, and functions keep their names."""

    class Tokenizer(sqlglot.Tokenizer):
        """Tokenizer of SQL filters."""

        IDENTIFIERS: ClassVar[list[Any]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[Any]] = [("x'", "'"), ("X'", "'")]
        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {
            "L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT", "BD": "DECIMAL",
        }  # fmt: skip

    class Parser(sqlglot.Parser):
        """Parser of SQL filters."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser for name, parser in sqlglot.Parser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **sqlglot.Parser.PRIMARY_PARSERS, TokenType.NULL: literals.parse_null,
        }  # fmt: skip

        def _parse_interval(self, *arguments: Any, **keywords: Any) -> Any:
            start = self._index
            interval = super()._parse_interval(*arguments, **keywords)
            return restore_interval(interval, self._tokens[start : self._index])

        def _warn_unsupported(self) -> None:
            self.raise_error("a statement")  # sqlglot would log a warning and continue


@dataclass(frozen=True, slots=True)
class Shape:
    """A geometry literal: a box, WKB or a shapely geometry."""

    geometry: Any


def fold_constants(operator: ArithmeticOperator, left: Any, right: Any) -> Any:
    """Compute an arithmetic operation on two literals, with the semantics of the operation on columns."""
    whole = pa.int64()
    for side in (left, right):
        check_number(side)
    types = [constant_type(side, whole) for side in (left, right)]
    array = pa.array([constant_scalar(left, types[0]).as_py()], types[0])
    result = arithmetic(operator, array, constant_scalar(right, types[1]))[0].as_py()
    if result is None:
        raise ValueError(f"{left} {operator} {right} is undefined")
    return result


def parse_wkt(text: str) -> Any:
    import shapely

    try:
        return shapely.from_wkt(text)
    except shapely.errors.GEOSException as error:
        raise ValueError(f"{excerpt(text)!r} is not valid WKT: {excerpt(str(error))}") from None


def _check_wkb(value: Any) -> bytes:
    if not isinstance(value, bytes):  # bytes(n) would return n zero bytes
        raise ValueError("WKB must be written as x'0101...'")
    return value


def _make_point(x: Any, y: Any) -> Any:
    import shapely

    return shapely.Point(float(x), float(y))


def _make_box(*sides: Any) -> tuple[float, ...]:
    with suppress(TypeError):
        if len(sides) == 4:
            return tuple(map(float, sides))
    raise ValueError("a box requires four numbers: xmin, ymin, xmax, ymax")


def spatial_value(name: str, arguments: Sequence[Any]) -> SpatialValue:
    """Build a call of a spatial function. Text is parsed as WKT if the parameter is a geometry."""
    values: list[Any] = []
    for parameter, argument in MEASURES[name].match_parameters(arguments):
        is_text = parameter.type == "geometry" and isinstance(argument, str)
        value = parse_wkt(argument) if is_text else argument
        values.append(argument.geometry if isinstance(argument, Shape) else value)
    return SpatialValue(name, tuple(values))


def null_safe_equality(equality: Expression) -> Expression:
    """Build an equality that is never null: true if both sides are null, and false if only one side is null."""
    sides = leaf_operands(equality)
    same = all_of([equality, *(IsNotNull(side) for side in sides)])
    return same if len(sides) == 1 else any_of([same, all_of([IsNull(side) for side in sides])])


TEXT = {
    "starts_with": "starts_with", "startswith": "starts_with", "ends_with": "ends_with", "endswith": "ends_with",
    "contains": "contains",
}  # fmt: skip
LENGTH = ("list_length", "array_length", "array_size", "cardinality", "len", "size")
NAN = ("isnan", "is_nan")
VARIANT = ("try_variant_get",)
GEOMETRIES: dict[str, Callable[..., Any]] = {
    "st_geomfromtext": parse_wkt, "st_geomfromwkt": parse_wkt, "st_geogfromtext": parse_wkt,
    "st_geomfromwkb": _check_wkb, "st_point": _make_point, "st_makepoint": _make_point, "st_makeenvelope": _make_box,
    "box": _make_box,
}  # fmt: skip
SPATIAL = {
    "st_intersects": ("intersects", "intersects"),
    "st_disjoint": ("disjoint", "disjoint"),
    "st_within": ("within", "contains"),
    "st_contains": ("contains", "within"),
    "st_touches": ("touches", "touches"),
    "st_crosses": ("crosses", "crosses"),
    "st_overlaps": ("overlaps", "overlaps"),
    "st_covers": ("covers", "covered_by"),
    "st_coveredby": ("covered_by", "covers"),
    "st_equals": ("geom_equals", "geom_equals"),
    "st_dwithin": ("dwithin", "dwithin"),
}
"""The predicate of each spatial function, and its converse if the column is the second argument."""

FUNCTIONS = (*GEOMETRIES, *SPATIAL, *MEASURES, *TEXT, *LENGTH, *NAN, *VARIANT)
