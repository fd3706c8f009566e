"""Evaluate functions of the function table on Arrow arrays, chunk by chunk."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.geo.functions.table import ARROW_TYPES, FUNCTIONS, constant_column
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.summary import resolve_type
from pqext.geo.types import array_type, mark_array
from pqext.geo.wkb import GeometryArray, binary_chunks, like_input

if TYPE_CHECKING:
    from pqext.geo.types import Edges, GeospatialType


def evaluate(
    name: str, array: GeometryArray, *arguments: Any, edges: Edges | None = None, crs: Any = None
) -> GeometryArray:
    """Evaluate the function ``name`` on each row of an array.

    Args:
        name: The SQL name of the function.
        array: An array of WKB, in chunks or not.
        arguments: The other arguments: numbers, and geometries as a constant or as an array of the same length.
        edges: Edges of all geometries; by default those of each extension array, or planar.
        crs: CRS of all geometries; by default that of each extension array, or OGC:CRS84.

    Returns:
        An array, chunked if ``array`` is. Geometries have the extension type of ``array``.

    Raises:
        GeometryError: With the row, if WKB is invalid or GEOS fails.
        TypeError: If an argument has the wrong type.
        ValueError: If an array has a different length, or a number is not finite.
    """
    function, type = FUNCTIONS[name], resolve_type(array, crs, edges)
    function.check_types([type])
    chunks = binary_chunks(array)
    rows = sum(map(len, chunks))
    others = [
        _geometries(value, type, rows, edges, crs) if parameter.type == "geometry" else parameter.check(value)
        for parameter, value in function.match_parameters([None, *arguments])[1:]
    ]
    parts, start = [], 0
    for chunk in chunks:
        sides = [other(start, len(chunk)) if callable(other) else other for other in others]
        try:
            parts.append(function(GeometryColumn(chunk, type), *sides))
        except GeometryError as error:
            if error.row is None or not start:
                raise
            raise GeometryError(error.reason, rule=error.rule, row=error.row + start, offset=error.offset) from error
        start += len(chunk)
    is_large = any(pa.types.is_large_binary(part.type) for part in parts)
    parts = [part.cast(pa.large_binary()) for part in parts] if is_large else parts
    result = like_input(array, parts, parts[0].type if parts else ARROW_TYPES[function.result])
    is_marked = function.result == "geometry" and array_type(array.type) is not None
    return mark_array(result, type) if is_marked else result


def _geometries(argument: Any, type: GeospatialType, rows: int, edges: Edges | None, crs: Any) -> Any:
    """Return a constant as a column of one row, and an array as a function from a row range to a column."""
    if not isinstance(argument, pa.Array | pa.ChunkedArray):
        return constant_column(argument, type)
    if len(argument) != rows:
        raise ValueError(f"arrays of geometries must have equal lengths, not {rows} and {len(argument)} rows")
    other = type if array_type(argument.type) is None else resolve_type(argument, crs, edges)
    chunks = [chunk.cast(pa.large_binary()) for chunk in binary_chunks(argument)]
    wkb = pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_binary())
    return partial(_slice, wkb, other)


def _slice(wkb: pa.Array, type: GeospatialType, start: int, rows: int) -> GeometryColumn:
    return GeometryColumn(wkb.slice(start, rows), type)
