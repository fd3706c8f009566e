"""Content of a map of a geometry column: the CRS, the boxes and, if there are few, the geometries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import GeometryError, ParquetError
from pqext.core.base.text import html_summary, with_noun
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.geo import crs as crs_
from pqext.geo.layout.explain import geometry_leaf, row_group_parts
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import to_shapely
from pqext.report.boxes import describe_crs
from pqext.report.map import Shapes, draw_small_map
from pqext.report.model import Box
from pqext.report.projection import Projection

_MAX_ROWS, _MAX_BYTES = 1_000, 2_000_000
"""Limits of the sample that the map of an array draws."""
_MAX_BOXES = 150
"""Maximum number of row groups that the map of a scan draws."""


def column_crs(file: ParquetFile, node: SchemaNode) -> Any:
    """Return the ``pyproj.CRS`` of a geometry column, or None if it is unknown."""
    assert node.logical_type is not None
    try:
        properties = file.options.properties
        return parse_crs(GeospatialType.from_logical_type(node.logical_type, properties), properties)
    except GeometryError:
        return None


def parse_crs(type: GeospatialType, properties: Mapping[str, str] | None = None) -> Any:
    """Return the ``pyproj.CRS`` of a type, or None if it is unknown."""
    try:
        return crs_.parse(type.crs, properties)
    except GeometryError:
        return None


def read_shapes(file: ParquetFile, node: SchemaNode, vertices: int) -> Shapes | None:
    """Return the geometries of a top-level column; None if they have more than ``vertices`` or cannot be read."""
    if node.dotted_path not in file.arrow_schema.names or sum(group.num_rows for group in file.row_groups) > vertices:
        return None
    read = []
    try:
        for batch in file.iter_batches(1024, [node.dotted_path]):
            geometries = to_shapely(batch.column(0))
            read.append(Shapes(geometries[geometries != None], node.logical_name == "GEOGRAPHY"))  # noqa: E711
            vertices -= read[-1].vertices
            if vertices < 0:
                return None
    except ParquetError:
        return None
    return join_shapes(read)


def join_shapes(shapes: Sequence[Shapes | None]) -> Shapes | None:
    """Concatenate geometries. Returns None if any item is None, or if there are no items."""
    known = [part for part in shapes if part is not None]
    if not known or len(known) < len(shapes):
        return None
    return Shapes(np.concatenate([part.geometries for part in known]), known[0].on_globe)


def array_html(array: pa.ExtensionArray, type: GeospatialType) -> str:
    """Return a summary of a geometry array as HTML, with a small map of a sample of its geometries."""
    rows, size = len(array), max(array.nbytes, 1)
    step = max(1, -(-rows // _MAX_ROWS), -(-size // _MAX_BYTES))
    facts = [("rows", f"{rows:,}"), ("nulls", f"{array.null_count:,}")]
    crs = parse_crs(type)
    facts.append(("CRS", describe_crs(crs)))
    name = f"{'GEOMETRY' if type.planar else 'GEOGRAPHY'} array"
    try:
        geometries = to_shapely(array.storage.take(pa.array(range(0, rows, step), pa.int64())))
    except GeometryError as error:
        return html_summary(name, [*facts, ("map", f"none: {error}")])
    import shapely

    bounds = shapely.bounds(geometries)
    is_drawn = np.isfinite(bounds).all(axis=1)
    if not is_drawn.any():
        return html_summary(name, facts)
    shapes = Shapes(geometries[is_drawn], not type.planar)
    boxes = [Box(xmin, xmax, ymin, ymax) for xmin, ymin, xmax, ymax in _globe_bounds(shapes, bounds[is_drawn]).tolist()]
    caption = "All rows are drawn" if step == 1 else f"One of {step:,} rows is drawn"
    return html_summary(name, facts, draw_small_map(Projection.from_boxes(boxes, crs), caption, shapes))


def _globe_bounds(shapes: Shapes, bounds: Any) -> Any:
    """Return the bounds of shapes. On the globe, bounds wrap around the antimeridian if that is narrower."""
    if shapes.on_globe:
        wide = bounds[:, 2] - bounds[:, 0] > 180
        for row in np.flatnonzero(wide):
            import shapely

            x = shapely.get_coordinates(shapes.geometries[row])[:, 0]
            east, west = x[x >= 0], x[x < 0]
            if len(east) and len(west) and east.min() - west.max() > 180:
                bounds[row, 0], bounds[row, 2] = east.min(), west.max()
    return bounds


def row_group_map(file: ParquetFile, column: str, read: Collection[int]) -> str:
    """Return a small map of the boxes of row groups as HTML; empty without boxes.

    The boxes of row groups that are not in ``read`` are dashed.
    """
    node = geometry_leaf(file, column)
    boxes = [
        (Box(part.box.xmin, part.box.xmax, part.box.ymin, part.box.ymax), part.row_group in read)
        for part in row_group_parts(file, node)
        if part.box is not None
    ]
    drawn = boxes[:: -(-len(boxes) // _MAX_BOXES) or 1]
    if not drawn:
        return ""
    crs = column_crs(file, node)
    count = with_noun(len(file.row_groups), "row group")
    label = f"Boxes of column {column} in {describe_crs(crs)}: {len(drawn):,} of {count}"
    label += "; dashed boxes are skipped" if len(read) < len(file.row_groups) else ""
    return draw_small_map(Projection.from_boxes((box for box, _ in boxes), crs), label, None, drawn)
