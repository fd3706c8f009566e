"""A scan as a polars lazy source: columns, conditions and row limits are pushed down to it.

polars passes its condition as an expression. The translatable part is pushed down to the files, which prunes rows that
cannot match. polars then evaluates the complete condition on the remaining rows, so the result never depends on the
translation.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from pqext.dataset.engines.pushdown import ScanSource, batches_of
from pqext.dataset.expressions import Column, Expression, all_of, any_of, col
from pqext.dataset.presentation.columns import STORED, Formats
from pqext.dataset.presentation.frames import require_package

if TYPE_CHECKING:
    import polars as pl

BATCH_ROWS = 65_536
_COMPARE: dict[str, Callable[[Column, Any], Expression]] = {
    "Eq": lambda column, value: column == value,
    "NotEq": lambda column, value: column != value,
    "Lt": lambda column, value: column < value,
    "LtEq": lambda column, value: column <= value,
    "Gt": lambda column, value: column > value,
    "GtEq": lambda column, value: column >= value,
}
_TURNED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq", "Eq": "Eq", "NotEq": "NotEq"}
_INTEGERS = {f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_TICKS = {"Nanoseconds": 1000, "Microseconds": 1, "Milliseconds": 1}
_KINDS = {"String": "String", "Boolean": "Boolean", "Date": "Date", "Float32": "Float32", "Float64": "Float64"}


class UntranslatableError(Exception):
    """Raised if part of a condition cannot be translated. Only polars evaluates that part."""


def lazy_frame(scan: ScanSource, formats: Formats = STORED) -> pl.LazyFrame:
    """Return a lazy frame that reads ``scan`` when it is collected.

    Raises ``ValueError`` if ``formats`` returns values as Python objects, which Arrow cannot represent.
    """
    require_package("polars")
    from polars.io.plugins import register_io_source

    formats.check_arrow("lazy=False returns them")

    def schema() -> pl.Schema:
        return _frame(formats.schema(scan.schema).empty_table()).schema

    def unconverted_columns() -> pl.Schema:
        """Return the columns that are not converted. Conditions on these columns can be pushed down to the files."""
        import polars as pl

        converted = {field.name for field in scan.schema if formats.converts(field)}
        return pl.Schema({name: kind for name, kind in schema().items() if name not in converted})

    def read(
        names: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        result = scan if names is None else scan.select(list(names))
        pushed = None if predicate is None or n_rows is not None else translate(predicate, unconverted_columns())
        for batch in batches_of(result.limit(n_rows), pushed, batch_size or BATCH_ROWS):
            frame = _frame(formats.convert_batch(batch, result.schema))
            yield frame if predicate is None else frame.filter(predicate)

    return register_io_source(read, schema=schema, is_pure=True)


def _frame(data: Any) -> pl.DataFrame:
    import polars as pl

    arrow = pl.from_arrow(data)
    assert isinstance(arrow, pl.DataFrame)
    return arrow


def translate(predicate: pl.Expr, schema: pl.Schema) -> Expression | None:
    """Translate ``predicate`` to a condition that is true for all matching rows, and possibly for other rows.

    Return None if no part of it can be translated.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the JSON format is not stable: unknown nodes are left to polars
        try:
            tree = json.loads(predicate.meta.serialize(format="json"))
        except Exception:  # polars raises various errors for expressions without a JSON form
            return None
    parts = []
    for part in _conjuncts(tree):
        try:
            parts.append(_condition(part, schema))
        except (UntranslatableError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            continue
    return all_of(parts) if parts else None


def _conjuncts(tree: Any) -> Iterator[Any]:
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield tree


def _condition(tree: Any, schema: pl.Schema) -> Expression:
    """Translate a polars condition to a pqext condition that is true, false and null for the same rows."""
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return all_of([_condition(left, schema), _condition(right, schema)])
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return any_of([_condition(left, schema), _condition(right, schema)])
        case {"BinaryExpr": {"left": {"Literal": literal}, "op": operator, "right": right}}:
            column, dtype = _column(right, schema)
            return _COMPARE[_TURNED[operator]](column, _literal(literal, dtype))
        case {"BinaryExpr": {"left": left, "op": operator, "right": {"Literal": literal}}}:
            column, dtype = _column(left, schema)
            return _COMPARE[operator](column, _literal(literal, dtype))
        case {"Function": {"input": [operand], "function": {"Boolean": "Not"}}}:
            return ~_condition(operand, schema)
        case {"Function": {"input": [operand], "function": {"Boolean": "IsNull" | "IsNotNull" as asked}}}:
            column, _ = _column(operand, schema)
            return column.is_null() if asked == "IsNull" else column.is_not_null()
        case {"Function": {"input": [operand, {"Literal": low}, {"Literal": high}], "function": {"Boolean": {
            "IsBetween": {"closed": closed}
        }}}}:
            column, dtype = _column(operand, schema)
            above = {"Both": "GtEq", "Left": "GtEq", "Right": "Gt", "None": "Gt"}[closed]
            below = {"Both": "LtEq", "Left": "Lt", "Right": "LtEq", "None": "Lt"}[closed]
            return _COMPARE[above](column, _literal(low, dtype)) & _COMPARE[below](column, _literal(high, dtype))
        case {"Function": {"input": [operand, {"Literal": {"Scalar": {"List": values}}}], "function": {"Boolean": {
            "IsIn": {"nulls_equal": False}
        }}}}:
            column, dtype = _column(operand, schema)
            return column.isin(_values(bytes(values), dtype))
        case {"Function": {"input": [operand, {"Literal": literal}], "function": {"StringExpr": "StartsWith"}}}:
            column, dtype = _column(operand, schema)
            return column.starts_with(_literal(literal, dtype))
        case {"Column": _} | {"Function": {"function": {"StructExpr": _}}}:
            column, dtype = _column(tree, schema)
            if dtype == "Boolean":
                return column == True  # noqa: E712
    raise UntranslatableError


def _column(tree: Any, schema: pl.Schema) -> tuple[Column, str]:
    """Return a column or struct field, and the name of its polars type.

    Raises :exc:`UntranslatableError` unless polars and pqext compare values of this type in the same way.
    """
    path, kind = _path(tree, schema)
    name = type(kind).__name__ if not isinstance(kind, type) else kind.__name__
    if name not in _KINDS and name not in _INTEGERS and name != "Datetime":
        raise UntranslatableError
    return col(list(path)), name


def _path(tree: Any, schema: pl.Schema) -> tuple[tuple[str, ...], Any]:
    match tree:
        case {"Column": str(name)}:
            return (name,), schema[name]
        case {"Function": {"input": [operand], "function": {"StructExpr": {"FieldByName": str(name)}}}}:
            path, kind = _path(operand, schema)
            return (*path, name), {field.name: field.dtype for field in kind.fields}[name]
    raise UntranslatableError


def _literal(tree: Any, dtype: str) -> Any:
    """Return the value of a literal. Raises :exc:`UntranslatableError` if polars did not cast it to ``dtype``."""
    ((kind, value),) = tree["Scalar"].items()
    if kind == dtype == "Datetime":
        ticks, unit, zone = value
        whole, rest = divmod(ticks, _TICKS[unit])
        if rest:
            raise UntranslatableError
        step = timedelta(milliseconds=whole) if unit == "Milliseconds" else timedelta(microseconds=whole)
        return (datetime(1970, 1, 1, tzinfo=None if zone is None else UTC)) + step
    if kind != dtype:
        raise UntranslatableError
    return _literal_value(value, dtype)


def _literal_value(value: Any, dtype: str) -> Any:
    if dtype == "Date" and isinstance(value, int):
        return date(1970, 1, 1) + timedelta(days=value)
    if dtype == "Float32":
        return float(np.float32(value))  # the text has the fewest digits that identify the float
    known = {"String": str, "Boolean": bool, "Float64": float}.get(dtype, int)
    if not isinstance(value, known) or (known is int and isinstance(value, bool)):
        raise UntranslatableError
    return value


def _values(data: bytes, dtype: str) -> list[Any]:
    """Return the values of a list literal: an Arrow stream with one column."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        array = reader.read_all().column(0)
    if pa.types.is_nested(array.type):
        array = pa.chunked_array([chunk.flatten() for chunk in array.chunks])
    values: list[Any] = array.to_pylist()
    if dtype == "Datetime" or any(value is None for value in values):
        raise UntranslatableError
    if dtype == "Date":
        return values
    return [_literal_value(value, dtype) for value in values]
