"""Columns that ``pqext convert`` makes of others: VARIANT from JSON text, geometries from coordinates or text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pqext.cli.inputs import Losses, OnError, Stream
from pqext.core.base.errors import ParquetError
from pqext.dataset.computed_columns import Kind, Made, make, maker, path_within, without_row

if TYPE_CHECKING:
    import pyarrow as pa

GEOMETRY = "geom"
"""The name of a geometry column that takes no other one's place."""


def parse_made(kind: Kind, text: str) -> Made:
    """Read ``[NAME=]PATH``, or ``[NAME=]lon,lat[,z]`` for points; ``ValueError`` for anything else."""
    name, equals, rest = text.rpartition("=")
    paths = tuple(part.strip() for part in rest.split(",")) if kind == "points" else (rest.strip(),)
    if not all(paths) or (equals and not name.strip()):
        raise ValueError(f"{text!r} names nothing: write PATH or NAME=PATH")
    if kind == "points" and len(paths) not in (2, 3):
        raise ValueError("points take two or three paths, as in lon,lat or $.at.x,$.at.y,$.at.z")
    return Made(kind, name.strip() or None, paths)


def with_made(
    stream: Stream, made: Sequence[Made], variant: str | None, crs: str | None, edges: str, on_error: OnError,
    losses: Losses,
) -> Stream:
    """``stream`` with further columns; ``variant`` is the column of JSON input that paths lead into.

    A column made of one other column takes its place under its own or a given name. A geometry or a JSON text that
    cannot be read stops the stream or becomes null, or its row is left out, as ``on_error`` says. Raises ``ValueError``
    for columns that are not there and names that are taken.
    """
    for one in made:
        stream = _one(stream, one, variant, crs, edges, on_error, losses)
    return stream


def _one(
    stream: Stream, one: Made, variant: str | None, crs: str | None, edges: str, on_error: OnError, losses: Losses
) -> Stream:
    import pyarrow as pa

    from pqext.geo.types import geometry_field
    from pqext.variant.types import variant_field

    replaced = one.paths[0] if variant is None and one.kind != "points" else None
    if variant is None:
        from pqext.core.base.suggestions import unknown_column_message

        for path in one.paths:
            if path not in stream.schema.names:
                raise ValueError(unknown_column_message(path, stream.schema.names))
    name = one.name or replaced or GEOMETRY
    if name in stream.schema.names and name != replaced:
        raise ValueError(f"there is a column {name!r} already: give the new one another name, as in NAME=...")
    marked: Any = geometry_field(name, crs, edges)  # type: ignore[arg-type]
    made_field = variant_field(name) if one.kind == "json" else marked
    at = stream.schema.names.index(replaced) if replaced is not None else len(stream.schema)
    fields = list(stream.schema)
    fields[at : at + (replaced is not None)] = [made_field]
    schema = pa.schema(fields, stream.schema.metadata)
    making = maker(one, variant)

    def batches() -> Iterator[pa.RecordBatch]:
        row, some = 0, False
        lacking = dict.fromkeys(one.paths if variant is not None else ())
        keys: dict[str, None] = {}
        for batch in stream.batches:
            array, bad = _tolerant(making, batch, on_error, row, losses)
            columns = list(batch.columns)
            columns[at : at + (replaced is not None)] = [array.cast(made_field.type)]
            some = some or array.null_count < len(array)
            if not some and variant is not None:
                lacking = {path: None for path in lacking if not _holds(batch.column(variant), path)}
                keys |= _keys(batch.column(variant))
            row += batch.num_rows
            made = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield made.filter(bad) if bad is not None else made
        if row and not some and lacking:
            from pqext.core.base.suggestions import did_you_mean, join_names

            near = did_you_mean(next(iter(lacking)), keys)
            there = f"the first rows have {join_names(keys)}" if keys else "the first rows have none"
            raise ValueError(f"column {name}: no row has the path {' or '.join(lacking)}{near}; {there}")
        if row and not some:
            losses.add(f"column {name}: no row has a value at {', '.join(one.paths)}", 0)

    return Stream(schema, batches())


def _holds(documents: pa.Array, path: str) -> bool:
    """Is there a value, a null of JSON's included, at ``path`` in any row?"""
    from pqext.variant.access.cast import get

    return bool(get(documents, path_within(path), "variant").null_count < len(documents))


def _keys(documents: pa.Array) -> dict[str, None]:
    """The dotted paths of the fields in the first rows, two levels deep."""
    from pqext.variant.conversion.objects import to_python

    found: dict[str, None] = {}
    for document in to_python(documents.slice(0, 10)):
        for key, value in document.items() if isinstance(document, dict) else ():
            within = value if isinstance(value, dict) else {}
            found.update(dict.fromkeys([f"{key}.{inner}" for inner in within] or [key]))
    return found


_PAIRS = (("lon", "lat"), ("lng", "lat"), ("long", "lat"), ("longitude", "latitude"))


def hint(documents: pa.Array) -> str | None:
    """Which option would make a geometry column of documents, where the names of their first fields tell."""
    keys = _keys(documents)
    for key in keys:
        parent, dot, name = key.rpartition(".")
        if name == "coordinates" and f"{parent}{dot}type" in keys:
            return f"--geojson {parent}" if parent else None
        for lon, lat in _PAIRS:
            if name.lower() == lon:
                other = next((one for one in keys if one.lower() == f"{parent}{dot}{lat}".lower()), None)
                if other is not None:
                    return f"--geometry {key},{other}"
    return None


def _tolerant(
    making: Callable[[pa.RecordBatch], pa.Array], batch: pa.RecordBatch, on_error: OnError, first: int, losses: Losses
) -> tuple[pa.Array, Any]:
    """What ``making`` gives, with nulls for rows on which it fails; and which rows stay, None for all."""
    import pyarrow as pa

    if on_error == "stop":
        try:
            return making(batch), None
        except ParquetError as error:
            row = getattr(error, "row", None)
            error.message = error.message if row is None else f"row {first + row}: {without_row(error)}"
            raise
    array, faults = make(making, batch)
    for row, reason in faults:
        losses.add(f"row {first + row}: {reason}")
    if not faults or on_error == "null":
        return array, None
    bad = {row for row, _ in faults}
    return array, pa.array([row not in bad for row in range(batch.num_rows)])
