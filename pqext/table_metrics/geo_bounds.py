"""Compute the bounding box of all geometries of a file, from the footer or the values, and its corners for Iceberg.

Spec: Apache Iceberg, "Bounds for Geometry and Geography" and Appendix G. The box of a geometry column never wraps. The
box of a geography column may wrap, with xmin > xmax, and is within the valid longitudes and latitudes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace

from pqext.core.base.errors import GeometryError, ParquetError
from pqext.core.base.usage import Budget
from pqext.core.format.metadata import GeospatialStatistics
from pqext.core.read.leaf_runs import iter_runs
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import LeafShape
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import box_within_range
from pqext.geo.summary import describe, union
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import summaries
from pqext.table_metrics.columns import get_chunk

_DIMENSIONS = {"z": (1, 3), "m": (2, 3)}
"""Thousands digits of the type codes of geometries with this dimension."""


def geospatial_type(file: ParquetFile, leaf: SchemaNode) -> GeospatialType | None:
    """Return the geospatial type of a column, or None if its edge algorithm is unknown."""
    assert leaf.logical_type is not None
    try:
        return GeospatialType.from_logical_type(leaf.logical_type, file.options.properties)
    except GeometryError:
        return None


def merge_footer_boxes(file: ParquetFile, leaf: SchemaNode) -> BoundingBox | None:
    """Return the union of the boxes of all column chunks; None if the union or the box of a chunk is not valid.

    Z or M is omitted if a chunk may have geometries with this dimension but its box has no range for it.
    """
    type = geospatial_type(file, leaf)
    parts: list[GeospatialStatistics] = []
    for group in file.row_groups:
        chunk = get_chunk(file, group, leaf)
        if chunk.is_hidden or not chunk.trusted:
            return None
        if not chunk.bounds().all_null:
            if chunk.geospatial_statistics is None:
                return None
            parts.append(chunk.geospatial_statistics)
    return None if type is None else _merge_boxes(parts, type)


def _merge_boxes(parts: Sequence[GeospatialStatistics], type: GeospatialType) -> BoundingBox | None:
    boxes = [BoundingBox.from_metadata(part.bbox) for part in parts if part.bbox is not None]
    if len(boxes) < len(parts):
        return None
    box = union(boxes, not type.planar)  # None if a planar box wraps
    if box is None:
        return None
    for name, thousands in _DIMENSIONS.items():
        for part, part_box in zip(parts, boxes, strict=True):
            codes = part.geospatial_types or ()
            absent = bool(codes) and not any(code // 1000 in thousands for code in codes)
            if _find_range(part_box, name) is None and not absent:
                box = _drop_dimension(box, name)
    return _restrict_box(box, type)


def _drop_dimension(box: BoundingBox, name: str) -> BoundingBox:
    return replace(box, zmin=None, zmax=None) if name == "z" else replace(box, mmin=None, mmax=None)


def _find_range(box: BoundingBox, name: str) -> tuple[float, float] | None:
    """Return the range of the box in Z or M; None if the range is missing or invalid."""
    low, high = getattr(box, f"{name}min"), getattr(box, f"{name}max")
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low <= high):
        return None
    return low, high


def compute_data_box(file: ParquetFile, leaf: LeafShape, budget: Budget) -> BoundingBox | None:
    """Compute the box of all geometries, including the curvature of non-planar edges; None if no box is valid.

    Raises ``GeometryError`` with file, column and row for invalid WKB.
    """
    type = geospatial_type(file, leaf.node)
    if type is None:
        return None
    ranges: list[_Ranges] = []
    boxes: list[BoundingBox] = []
    row = 0
    for group in file.row_groups:
        chunk = get_chunk(file, group, leaf.node)
        try:
            for column in iter_runs(file, group, leaf, chunk, budget=budget) if group.num_rows else ():
                parts = summaries(column.array)
                filled = [part.box for part in parts if part.types]
                ranges = [_merge_ranges([*ranges, *filled])]
                if not type.planar and any(part[0] is not None or part[2] is not None for part in filled):
                    box = describe(column.array, type, parts).bbox
                    if box is None:
                        return None
                    boxes = [*boxes, BoundingBox.from_metadata(box)]
                    total = union(boxes, True)
                    if total is None:
                        return None
                    boxes = [total]
                row += column.rows
        except ParquetError as error:
            raise _locate_error(error, file, leaf.node, group.index, row) from None
    if not type.planar:
        return _restrict_box(boxes[0], type) if boxes else None
    planar = _planar_box(ranges)
    return planar and _restrict_box(planar, type)


_Ranges = tuple[float | None, ...]
"""Minimum and maximum of X, Y, Z and M of some geometries; None for missing values."""


def _merge_ranges(parts: Sequence[_Ranges]) -> _Ranges:
    result: list[float | None] = []
    for at, choose in enumerate((min, max) * 4):
        values = [value for part in parts if (value := part[at]) is not None]
        result.append(choose(values) if values else None)
    return tuple(result)


def _planar_box(parts: Sequence[_Ranges]) -> BoundingBox | None:
    """Return the planar box of the ranges; None if X or Y has no range. Invalid ranges of Z and M are omitted."""
    xmin, xmax, ymin, ymax, *others = _merge_ranges(parts)
    if xmin is None or xmax is None or ymin is None or ymax is None:
        return None
    box = BoundingBox(xmin, xmax, ymin, ymax, *others)
    for name in _DIMENSIONS:
        if _find_range(box, name) is None:
            box = _drop_dimension(box, name)
    return box


def _restrict_box(box: BoundingBox, type: GeospatialType) -> BoundingBox | None:
    """Restrict the box of a geography to valid longitudes and latitudes. Return None if the box is not valid."""
    if not box.usable:
        return None
    return box if type.planar else box_within_range(box)


def _locate_error(
    error: ParquetError, file: ParquetFile, leaf: SchemaNode, row_group: int, first_row: int
) -> ParquetError:
    if isinstance(error, GeometryError):
        error = error.shift_row(first_row)
    error.locate(path=file.path, row_group=row_group, column=leaf.dotted_path)
    return error


def encode_corner(box: BoundingBox, *, upper: bool) -> bytes:
    """Encode the lower or upper corner of the box as little-endian doubles: x y, x y z, x y NaN m or x y z m."""
    side = "max" if upper else "min"
    x, y, z, m = (getattr(box, name + side) for name in "xyzm")
    if m is not None:
        return struct.pack("<4d", x, y, math.nan if z is None else z, m)
    return struct.pack("<2d", x, y) if z is None else struct.pack("<3d", x, y, z)
