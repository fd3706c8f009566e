"""Columns derived by ``pqext convert``: VARIANTs from JSON text, and geometries from coordinates or text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pqext.cli.inputs import Losses, OnError, Stream
from pqext.core.base.errors import ParquetError
from pqext.dataset.computed_columns import (
    ColumnRecipe,
    Kind,
    column_function,
    compute_column,
    null_rows,
    strip_row_number,
    variant_path,
)

if TYPE_CHECKING:
    import pyarrow as pa

GEOMETRY = "geom"
"""Default name of a geometry column that replaces no other column."""


def parse_recipe(derivation: Kind, text: str) -> ColumnRecipe:
    """Parse ``[NAME=]PATH``, or ``[NAME=]lon,lat[,z]`` for points. Raises ``ValueError`` for other text."""
    name, equals, rest = text.rpartition("=")
    paths = tuple(path.strip() for path in rest.split(",")) if derivation == "points" else (rest.strip(),)
    if not all(paths) or (equals and not name.strip()):
        raise ValueError(f"missing name or path in {text!r}; expected PATH or NAME=PATH")
    if derivation == "points" and len(paths) not in (2, 3):
        raise ValueError("points require two or three paths, as in lon,lat or $.at.x,$.at.y,$.at.z")
    return ColumnRecipe(derivation, name.strip() or None, paths)


def add_columns(
    stream: Stream, columns: Sequence[ColumnRecipe], variant: str | None, crs: str | None, edges: str,
    on_error: OnError, losses: Losses,
) -> Stream:
    """Add derived columns to ``stream``. Paths refer to values in ``variant``, or to columns if ``variant`` is None.

    A column derived from a single column replaces that column, except from JSON input. Geometries and JSON texts that
    cannot be parsed raise an error, become null, or cause their row to be skipped, depending on ``on_error``.

    Raises:
        ValueError: If a source column does not exist, if a name is already in use, or, once the batches are read, if no
            document has any of the paths.
    """
    for column in columns:
        stream = _add_column(stream, column, variant, crs, edges, on_error, losses)
    return stream


def _add_column(
    stream: Stream, column: ColumnRecipe, variant: str | None, crs: str | None, edges: str, on_error: OnError,
    losses: Losses,
) -> Stream:
    import pyarrow as pa

    from pqext.geo.types import geometry_field
    from pqext.variant.types import variant_field

    replaced = column.paths[0] if variant is None and column.kind != "points" else None
    if variant is None:
        from pqext.core.base.suggestions import unknown_column_message

        for path in column.paths:
            if path not in stream.schema.names:
                raise ValueError(unknown_column_message(path, stream.schema.names))
    name = column.name or replaced or GEOMETRY
    if name in stream.schema.names and name != replaced:
        raise ValueError(f"column {name!r} already exists; choose another name with NAME=...")
    geometry: Any = geometry_field(name, crs, edges)  # type: ignore[arg-type]
    field = variant_field(name) if column.kind == "json" else geometry
    index = stream.schema.names.index(replaced) if replaced is not None else len(stream.schema)
    fields = list(stream.schema)
    fields[index : index + (replaced is not None)] = [field]
    schema = pa.schema(fields, stream.schema.metadata)
    derive = column_function(column, variant)

    def batches() -> Iterator[pa.RecordBatch]:
        row, has_values = 0, False
        missing = dict.fromkeys(column.paths if variant is not None else ())
        keys: dict[str, None] = {}
        for batch in stream.batches:
            array, mask = _derive(derive, batch, on_error, row, losses)
            columns = list(batch.columns)
            is_empty = array.null_count == len(array)
            values = null_rows(len(array), field.type) if is_empty else array.cast(field.type)
            columns[index : index + (replaced is not None)] = [values]
            has_values = has_values or not is_empty
            if not has_values and variant is not None:
                missing = {path: None for path in missing if not _has_path(batch.column(variant), path)}
                keys |= _field_paths(batch.column(variant))
            row += batch.num_rows
            result = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield result if mask is None else result.filter(mask)
        if row and not has_values and missing:
            from pqext.core.base.suggestions import did_you_mean, join_names

            hint = did_you_mean(next(iter(missing)), keys)
            known = f"the first rows have {join_names(keys)}" if keys else "the first rows have no fields"
            raise ValueError(f"column {name}: no row contains the path {' or '.join(missing)}{hint}; {known}")
        if row and not has_values:
            losses.add(f"column {name}: no row has a value at {', '.join(column.paths)}", 0)

    return Stream(schema, batches())


def _has_path(documents: pa.Array, path: str) -> bool:
    """Return whether any document has a value, including JSON null, at ``path``."""
    from pqext.variant.access.cast import get

    return bool(get(documents, variant_path(path), "variant").null_count < len(documents))


def _field_paths(documents: pa.Array) -> dict[str, None]:
    """Return the dotted paths of fields in the first documents, with at most two levels, as dictionary keys."""
    from pqext.variant.conversion.objects import to_python

    paths: dict[str, None] = {}
    for document in to_python(documents.slice(0, 10)):
        for key, value in document.items() if isinstance(document, dict) else ():
            fields = value if isinstance(value, dict) else {}
            paths.update(dict.fromkeys([f"{key}.{inner}" for inner in fields] or [key]))
    return paths


_PAIRS = (("lon", "lat"), ("lng", "lat"), ("long", "lat"), ("longitude", "latitude"))


def suggest_geometry(documents: pa.Array) -> str | None:
    """Return an option that adds a geometry column from fields such as ``lon`` and ``lat``; None if there are none."""
    keys = _field_paths(documents)
    for key in keys:
        parent, dot, name = key.rpartition(".")
        if name == "coordinates" and f"{parent}{dot}type" in keys:
            return f"--geojson {parent}" if parent else None
        for lon, lat in _PAIRS:
            if name.lower() == lon:
                match = next((other for other in keys if other.lower() == f"{parent}{dot}{lat}".lower()), None)
                if match is not None:
                    return f"--geometry {key},{match}"
    return None


def _derive(
    derive: Callable[[pa.RecordBatch], pa.Array], batch: pa.RecordBatch, on_error: OnError, first_row: int,
    losses: Losses,
) -> tuple[pa.Array, Any]:
    """Derive a column. If ``derive`` rejects a row, raise the error if ``on_error`` is "stop", or make the row null.

    Return the column and a mask of the rows to retain; None to retain all rows. ``first_row`` is the number of the
    batch's first row in error messages.
    """
    import pyarrow as pa

    if on_error == "stop":
        try:
            return derive(batch), None
        except ParquetError as error:
            row = getattr(error, "row", None)
            error.message = error.message if row is None else f"row {first_row + row}: {strip_row_number(error)}"
            raise
    array, faults = compute_column(derive, batch)
    for row, reason in faults:
        losses.add(f"row {first_row + row}: {reason}")
    if not faults or on_error == "null":
        return array, None
    bad = {row for row, _ in faults}
    return array, pa.array([row not in bad for row in range(batch.num_rows)])
