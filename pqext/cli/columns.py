"""Columns that ``pqext convert`` makes of others: VARIANT from JSON text, geometries from coordinates or text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pqext.cli.inputs import Losses, OnError, Stream
from pqext.core.errors import ParquetError

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["points", "wkt", "geojson", "json"]
GEOMETRY = "geom"
"""The name of a geometry column that takes no other one's place."""


@dataclass(frozen=True)
class Made:
    """A column ``name`` made of ``paths``: paths within the variant of JSON input, else columns.

    ``name`` is None where none was given.
    """

    kind: Kind
    name: str | None
    paths: tuple[str, ...]


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
        from pqext.core.suggest import not_a_column

        for path in one.paths:
            if path not in stream.schema.names:
                raise ValueError(not_a_column(path, stream.schema.names))
    name = one.name or replaced or GEOMETRY
    if name in stream.schema.names and name != replaced:
        raise ValueError(f"there is a column {name!r} already: give the new one another name, as in NAME=...")
    marked: Any = geometry_field(name, crs, edges)  # type: ignore[arg-type]
    made_field = variant_field(name) if one.kind == "json" else marked
    at = stream.schema.names.index(replaced) if replaced is not None else len(stream.schema)
    fields = list(stream.schema)
    fields[at : at + (replaced is not None)] = [made_field]
    schema = pa.schema(fields, stream.schema.metadata)
    maker = _maker(one, variant)

    def batches() -> Iterator[pa.RecordBatch]:
        row, some = 0, False
        lacking = dict.fromkeys(one.paths if variant is not None else ())
        keys: dict[str, None] = {}
        for batch in stream.batches:
            array, bad = _tolerant(maker, batch, on_error, row, losses)
            columns = list(batch.columns)
            columns[at : at + (replaced is not None)] = [array.cast(made_field.type)]
            some = some or array.null_count < len(array)
            if not some and variant is not None:
                lacking = {path: None for path in lacking if not _holds(batch.column(variant), path)}
                keys |= _keys(batch.column(variant))
            row += batch.num_rows
            made = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield made.filter(pa.array(bad)) if bad is not None else made
        if row and not some and lacking:
            from pqext.core.suggest import did_you_mean, listed

            near = did_you_mean(next(iter(lacking)), keys)
            there = f"the first rows have {listed(keys)}" if keys else "the first rows have none"
            raise ValueError(f"column {name}: no row has the path {' or '.join(lacking)}{near}; {there}")
        if row and not some:
            losses.add(f"column {name}: no row has a value at {', '.join(one.paths)}", 0)

    return Stream(schema, batches())


def _holds(documents: pa.Array, path: str) -> bool:
    """Is there a value, a null of JSON's included, at ``path`` in any row?"""
    from pqext.variant.access.cast import get

    return bool(get(documents, _path(path), "variant").null_count < len(documents))


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


def _path(path: str) -> str:
    return path if path.startswith("$") else f"$.{path}"


def _maker(one: Made, variant: str | None) -> Callable[[pa.RecordBatch], pa.Array]:
    """What makes the column of a batch."""
    import pyarrow as pa

    from pqext.geo.text.geojson import from_geojson
    from pqext.geo.text.wkt import from_wkt
    from pqext.geo.wkb import from_points
    from pqext.variant.access.cast import get
    from pqext.variant.json.parse import parse_json
    from pqext.variant.json.text import to_json

    paths = tuple(path if variant is None else _path(path) for path in one.paths)

    def part(batch: pa.RecordBatch, path: str, kind: str) -> pa.Array:
        if variant is None:
            return _cast(batch.column(path), path, pa.float64() if kind == "double" else pa.string())
        found = get(batch.column(variant), path, kind)
        return to_json(found) if kind == "variant" else found

    if one.kind == "points":
        return lambda batch: from_points(*(part(batch, path, "double") for path in paths))
    if one.kind == "wkt":
        return lambda batch: from_wkt(part(batch, paths[0], "string"))
    if one.kind == "geojson":
        return lambda batch: from_geojson(part(batch, paths[0], "variant"))
    return lambda batch: parse_json(part(batch, paths[0], "variant"))


def _cast(array: pa.Array, column: str, kind: pa.DataType) -> pa.Array:
    """The values of a column as ``kind``; ``GeometryError`` with the row of the first that has no such value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from pqext.core.errors import GeometryError

    try:
        return pc.cast(array, kind)
    except pa.ArrowInvalid as error:
        for row in range(len(array)):
            try:
                pc.cast(array.slice(row, 1), kind)
            except pa.ArrowInvalid:
                value = str(array[row].as_py())[:100]
                raise GeometryError(f"column {column!r} has {value!r}, which is no {kind}", row=row) from None
        raise GeometryError(f"column {column!r} is no {kind}: {error}") from None


def _tolerant(
    maker: Callable[[pa.RecordBatch], pa.Array], batch: pa.RecordBatch, on_error: OnError, first: int, losses: Losses
) -> tuple[pa.Array, Any]:
    """What ``maker`` gives, with nulls for rows on which it fails; and which rows stay, None for all."""
    import numpy as np
    import pyarrow as pa

    try:
        return maker(batch), None
    except ParquetError as error:
        if on_error == "stop":
            row = getattr(error, "row", None)
            error.message = error.message if row is None else f"row {first + row}: {_without_row(error)}"
            raise
    good = np.ones(batch.num_rows, np.bool_)
    parts: list[pa.Array] = []
    rest = [(0, batch.num_rows)]
    while rest:  # by halves, so that a few faults in many rows cost little
        start, rows = rest.pop()
        try:
            parts.append(maker(batch.slice(start, rows)))
        except ParquetError as error:
            if rows > 1:
                rest += [(start + rows // 2, rows - rows // 2), (start, rows // 2)]
                continue
            losses.add(f"row {first + start}: {_without_row(error)}")
            good[start] = False
            parts.append(pa.nulls(1, parts[0].type if parts else pa.binary()))
    kind = next((made.type for made in parts if made.null_count < len(made)), parts[0].type)
    array = pa.concat_arrays([made if made.type == kind else pa.nulls(len(made), kind) for made in parts])
    return array, good if on_error == "skip" else None


def _without_row(error: ParquetError) -> str:
    """The message without the row, which counts from the start of a batch."""
    return re.sub(r"^row \d+: ", "", error.message)
