"""Index of the bounding boxes of objects, for planar geometries and geographies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import GeometryError, ParquetError
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import RowGroup
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.expressions import Base, Column, Expression, Spatial
from pqext.dataset.expressions.spatial import predicate
from pqext.dataset.pruning.binding import find
from pqext.geo import page_boxes
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import box_within_range
from pqext.geo.summary import statistics, union
from pqext.geo.types import EDGES, GeospatialType, type_of
from pqext.skipping.indexes.index import Collector, Index

EDGES_KEY, CRS = "io.pqext.edges", "io.pqext.crs"
_ENDS = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")
_CELL = pa.struct([(end, pa.float64()) for end in _ENDS])


@dataclass(frozen=True, init=False)
class Box(Index):
    """Bounding box of the geometries of each object, with Z if all geometries have Z.

    If ``xmin`` exceeds ``xmax``, the box crosses the antimeridian. Spatial conditions exclude objects whose boxes
    cannot match, using the edges of the column. The index is built from footers if these contain boxes.
    """

    name = "box"
    type: GeospatialType | None = None
    """Geospatial type of the column; None before the index is bound to a column."""

    def __init__(self, operand: str | Base, type: GeospatialType | None = None) -> None:
        Index.__init__(self, operand)
        if not isinstance(self.operand, Column):
            raise TypeError(f"a Box index needs a column of geometries, not {self.operand}")
        object.__setattr__(self, "type", type)

    @property
    def params(self) -> Mapping[str, str]:
        type = self.type
        if type is None:
            return {}
        return {EDGES_KEY: type.edges} | ({} if type.crs is None else {CRS: type.crs})

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> Box:
        edges = params.get(EDGES_KEY)
        if edges not in EDGES:
            raise ValueError(f"a Box index has edges {edges!r}, not one of {', '.join(EDGES)}; rebuild the index")
        return cls(operand, GeospatialType(params.get(CRS), edges))

    def for_field(self, field: pa.Field) -> Box:
        type = type_of(field)
        if type is None:
            raise TypeError(f"a Box index needs a column of geometries; {self.operand} has type {field.type}")
        return Box(self.operand, type)

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return _CELL

    def entry_from_footer(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        column, type = self.operand, self.type
        if type is None or not isinstance(column, Column):
            return None
        try:
            node = find(file.schema, column)
            boxes = [_box(node, group, type) for group in file.row_groups if not _is_empty(node, group)]
        except (ParquetError, TypeError, ValueError):
            return None
        return None if None in boxes else _cell([box for box in boxes if box is not None], type)

    def collector(self, values: pa.DataType) -> Collector:
        if self.type is None:
            raise TypeError(f"{self} is not bound to a geometry column; call for_field first")
        return _Boxes(self.type)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if not isinstance(leaf, Spatial) or not isinstance(leaf.operand, Column) or self.type is None:
            return None
        spatial = predicate(leaf.operation, leaf.geometry, leaf.distance)
        if spatial.keeps_empty:  # boxes do not cover empty geometries
            return None
        ends = [np.asarray(pc.fill_null(pc.struct_field(cells, [end]), np.nan)) for end in _ENDS[:4]]
        is_known = np.isfinite(ends).all(axis=0) & (ends[2] <= ends[3])
        xmin, xmax, ymin, ymax = (np.where(is_known, end, 0.0) for end in ends)
        return pa.array(spatial.may_match_boxes(xmin, xmax, ymin, ymax, self.type), mask=~is_known)


def _box(node: SchemaNode, group: RowGroup, type: GeospatialType) -> BoundingBox | None:
    """Return a box that contains all geometries of a row group; None if the statistics have no usable box."""
    statistics = group.chunk(node).geospatial_statistics
    if statistics is None or statistics.bbox is None or not group.trust_statistics:
        return None
    box = BoundingBox.from_metadata(statistics.bbox)
    if page_boxes.extend_beyond(box, group.chunk(node)):
        return None
    if not type.planar:
        return box_within_range(box)
    return box if box.usable else None


def _is_empty(node: SchemaNode, group: RowGroup) -> bool:
    """Return whether the statistics of a row group prove that it contains no geometries."""
    statistics = group.chunk(node).geospatial_statistics
    has_geometries = statistics is not None and (statistics.bbox or statistics.geospatial_types)
    return not has_geometries and bool(group.chunk(node).bounds().all_null)


class _Boxes:
    def __init__(self, type: GeospatialType) -> None:
        self._type = type
        self._boxes: list[BoundingBox] = []
        self._is_known = True

    def add(self, values: pa.Array) -> None:
        if not self._is_known or values.null_count == len(values):
            return
        try:
            stored = statistics(values, self._type.edges, self._type.crs).bbox
        except GeometryError:
            stored = None
        box = None if stored is None else BoundingBox.from_metadata(stored)
        if box is not None and not self._type.planar:
            box = box_within_range(box)
        self._is_known = box is not None and box.usable
        if box is not None:
            self._boxes.append(box)

    def cell(self) -> pa.Array:
        return _cell(self._boxes if self._is_known else [], self._type)


def _cell(boxes: list[BoundingBox], type: GeospatialType) -> pa.Array:
    """Return the union of ``boxes`` as an index entry.

    The entry is null if there are no boxes or the union is unusable.
    """
    total = union(boxes, type.geographic) if boxes else None
    if total is None or not total.usable:
        return pa.nulls(1, _CELL)
    if any(box.zmin is None or box.zmax is None for box in boxes):
        total = replace(total, zmin=None, zmax=None)
    return pa.array([{end: getattr(total, end) for end in _ENDS}], _CELL)
