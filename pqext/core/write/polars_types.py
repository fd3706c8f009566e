"""Types of polars that Arrow lacks: 128-bit integers become decimals, Python objects are rejected."""

from __future__ import annotations

import sys
from typing import Any

_DIGITS = 38
_OBJECTS = (
    "holds Python objects (polars type Object), which Arrow exports as memory addresses; cast the column, for example "
    "with .map_elements(str, return_dtype=pl.String)"
)


def with_arrow_types(data: Any) -> Any:
    """A polars DataFrame or Series whose types Arrow has; other data unchanged.

    Int128 and UInt128, also within lists, arrays and structs, become ``Decimal(38, 0)``.

    Raises:
        TypeError: If a column holds Python objects.
        ValueError: If an integer has more than 38 digits.
    """
    polars = sys.modules.get("polars")
    if polars is None:
        return data
    if isinstance(data, polars.Series):
        return _converted(polars, data, f"the Series {data.name!r}" if data.name else "the Series")
    if not isinstance(data, polars.DataFrame):
        return data
    changed = []
    for name, dtype in data.schema.items():
        if dtype == polars.Object or _arrow_type(polars, dtype) != dtype:
            changed.append(_converted(polars, data.get_column(name), f"column {name!r}"))
    return data.with_columns(changed) if changed else data


def _converted(polars: Any, series: Any, name: str) -> Any:
    if series.dtype == polars.Object:
        raise TypeError(f"{name} {_OBJECTS}")
    target = _arrow_type(polars, series.dtype)
    if target == series.dtype:
        return series
    try:
        return series.cast(target)
    except polars.exceptions.InvalidOperationError:
        raise ValueError(
            f"{name} of polars type {series.dtype} holds an integer of more than {_DIGITS} digits, the most of a "
            "Parquet DECIMAL; cast the column to String or Float64"
        ) from None


def _arrow_type(polars: Any, dtype: Any) -> Any:
    """``dtype`` with ``Decimal(38, 0)`` in place of integers of 128 bits."""
    if dtype in (polars.Int128, polars.UInt128):
        return polars.Decimal(_DIGITS, 0)
    if isinstance(dtype, polars.List):
        return polars.List(_arrow_type(polars, dtype.inner))
    if isinstance(dtype, polars.Array):
        return polars.Array(_arrow_type(polars, dtype.inner), dtype.size)
    if isinstance(dtype, polars.Struct):
        return polars.Struct([polars.Field(field.name, _arrow_type(polars, field.dtype)) for field in dtype.fields])
    return dtype
