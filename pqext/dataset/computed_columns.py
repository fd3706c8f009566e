"""Compute VARIANT columns from JSON text, and geometry columns from coordinates or text, also within variants."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pqext.core.base.errors import GeometryError, ParquetError

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["points", "wkt", "geojson", "json"]


@dataclass(frozen=True)
class ColumnRecipe:
    """Definition of a computed column: its input format (``kind``), its name and the ``paths`` of its inputs.

    The paths are paths within a VARIANT column, or column names if there is no VARIANT column.
    """

    kind: Kind
    name: str | None
    paths: tuple[str, ...]


def variant_path(path: str) -> str:
    """Add the root ``$`` to a path within a VARIANT if the path does not start with it."""
    return path if path.startswith("$") else f"$.{path}"


def column_function(recipe: ColumnRecipe, variant: str | None) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that computes the column of ``recipe`` from a batch.

    ``variant`` is the name of the VARIANT column that the paths of ``recipe`` refer to. If it is None, the paths are
    column names.
    """
    import pyarrow as pa

    from pqext.geo.text.geojson import from_geojson
    from pqext.geo.text.wkt import from_wkt
    from pqext.geo.wkb import from_points
    from pqext.variant.access.cast import extract
    from pqext.variant.json.parser import parse_json
    from pqext.variant.json.text import to_json

    paths = tuple(path if variant is None else variant_path(path) for path in recipe.paths)

    def part(batch: pa.RecordBatch, path: str, derivation: str) -> pa.Array:
        if variant is None:
            return _cast(batch.column(path), path, pa.float64() if derivation == "double" else pa.string())
        result = extract(batch.column(variant), path, derivation)
        return to_json(result) if derivation == "variant" else result

    if recipe.kind == "points":
        return lambda batch: from_points(*(part(batch, path, "double") for path in paths))
    if recipe.kind == "wkt":
        return lambda batch: from_wkt(part(batch, paths[0], "string"))
    if recipe.kind == "geojson":
        return lambda batch: from_geojson(part(batch, paths[0], "variant"))
    return lambda batch: parse_json(part(batch, paths[0], "variant"))


def _cast(array: pa.Array, column: str, type_: pa.DataType) -> pa.Array:
    """Cast the values of a column to ``type_``.

    Raises ``GeometryError`` if a cast fails, with the row number of the first value that failed. The error has no row
    number if the two types are incompatible.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(array, type_)
    except pa.ArrowNotImplementedError:
        raise GeometryError(f"column {column!r} has type {array.type}, which cannot be cast to {type_}") from None
    except pa.ArrowInvalid as error:
        for row in range(len(array)):
            try:
                pc.cast(array.slice(row, 1), type_)
            except pa.ArrowInvalid:
                value = str(array[row].as_py())[:100]
                raise GeometryError(f"column {column!r} contains {value!r}, which is not a {type_}", row=row) from None
        raise GeometryError(f"column {column!r} cannot be cast to {type_}: {error}") from None


def compute_column(
    function: Callable[[pa.RecordBatch], pa.Array], batch: pa.RecordBatch
) -> tuple[pa.Array, list[tuple[int, str]]]:
    """Compute a column of a batch with ``function``. Rows for which ``function`` raises ``ParquetError`` are null.

    Return the column, and for each row with an error its number in the batch and the error message.
    """
    import pyarrow as pa

    try:
        return function(batch), []
    except ParquetError:
        pass
    faults: list[tuple[int, str]] = []
    parts: list[pa.Array] = []
    rest = [(0, batch.num_rows)]
    while rest:  # by bisection, so that a few faults in many rows cost little
        start, rows = rest.pop()
        try:
            parts.append(function(batch.slice(start, rows)))
        except ParquetError as error:
            if rows > 1:
                rest += [(start + rows // 2, rows - rows // 2), (start, rows // 2)]
                continue
            faults.append((start, strip_row_number(error)))
            parts.append(null_rows(1, parts[0].type if parts else pa.binary()))
    kind: Any = next((made.type for made in parts if made.null_count < len(made)), parts[0].type)
    return pa.concat_arrays([made if made.type == kind else null_rows(len(made), kind) for made in parts]), faults


def null_rows(rows: int, type: pa.DataType) -> pa.Array:
    """Return an array of ``rows`` nulls. The children of a null VARIANT are not nullable and contain empty binary."""
    import pyarrow as pa

    if not pa.types.is_struct(type):
        return pa.nulls(rows, type)
    children = [pa.array([b""] * rows, field.type) for field in type]
    return pa.StructArray.from_arrays(children, fields=list(type), mask=pa.array([True] * rows, pa.bool_()))


def strip_row_number(error: ParquetError) -> str:
    """Return the message of an error without the row number, which is relative to the batch."""
    return re.sub(r"^row \d+: ", "", error.message)
