"""Compare GeoParquet metadata with the file: columns, geometry types, boxes, coverings, CRS and edges."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError, ParquetError
from pqext.core.format.metadata import Type
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import Shape
from pqext.core.schema.types.geometries import NAMES
from pqext.geo import crs as crs_
from pqext.geo import geoparquet, geoparquet_types
from pqext.geo.coordinates import orient_rings
from pqext.geo.summary import bounding_box, row_values
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import binary_chunks, columns, summaries
from pqext.verification.chunk_selection import ChunkSelection
from pqext.verification.report import Fault, Findings

_Numbers = NDArray[np.float64]
_Flags = NDArray[np.bool_]
_COLUMNS, _TYPES, _BBOX, _COVERING = "geoparquet.columns", "geoparquet.types", "geoparquet.bbox", "geoparquet.covering"
_PRECEDENCE, _ORIENTATION = "geoparquet.precedence", "geoparquet.orientation"


def check(
    file: ParquetFile, text: str, tops: Mapping[str, Shape], codes: Mapping[str, set[int] | None],
    selection: ChunkSelection, findings: Findings,
) -> None:  # fmt: skip
    """Check the GeoParquet metadata ``text`` for the top-level columns ``tops``, a mapping by column name.

    ``codes`` contains the type codes of the values of each WKB column, or None if some values could not be read.
    """
    try:
        described = geoparquet.parse_metadata(text)
    except GeometryError as error:
        findings.add(Fault("geoparquet.damaged", error.message))
        return
    primary = json.loads(text).get("primary_column")
    if primary not in described:
        findings.add(Fault(_COLUMNS, f"the metadata does not describe its primary column {primary!r}"))
    for name, about in described.items():
        node = file.schema.root.child(name)
        if node is None:
            findings.add(Fault(_COLUMNS, "the metadata describes a column that the file does not have", column=name))
        elif name in tops:
            _ColumnCheck(file, tops[name], node, about, selection, findings).run(codes)


class _ColumnCheck:
    """Check of the GeoParquet metadata of one column."""

    def __init__(
        self, file: ParquetFile, top: Shape, node: SchemaNode, description: Mapping[str, Any],
        selection: ChunkSelection,
        findings: Findings,
    ) -> None:  # fmt: skip
        self._file = file
        self._top = top
        self._name = node.name
        self._selection = selection
        self._node = node
        self._about = description
        self._findings = findings
        self._is_oriented = description.get("orientation") == "counterclockwise"

    def run(self, codes: Mapping[str, set[int] | None]) -> None:
        if self._node.logical_name not in ("GEOMETRY", "GEOGRAPHY"):
            encoding = self._about.get("encoding")
            self._report_fault(
                _COLUMNS, f"the metadata states the encoding {encoding!r}, which the column does not have"
            )
            return
        assert self._node.logical_type is not None
        try:
            type = GeospatialType.from_logical_type(self._node.logical_type, self._file.options.properties)
        except GeometryError:
            return  # reported by the check of geometries
        self._check_type(type)
        self._check_box(type)
        paths = self._check_covering()
        if paths or not self._node.is_leaf or self._is_oriented:
            own = self._check_rows(type, paths)
            codes = codes if self._node.is_leaf else {self._name: own}
        self._check_types(codes.get(self._name))

    def _report_fault(self, rule: str, message: str, row_group: int | None = None, row: int | None = None) -> None:
        self._findings.add(Fault(rule, message, row_group, row, self._name))

    def _check_type(self, type: GeospatialType) -> None:
        """Report a CRS or edges that contradict ``type``, and a CRS that other readers would interpret as OGC:CRS84."""
        node = self._node
        stated = node.declared_type if node.is_adopted else node.logical_type
        if stated is None or not node.is_leaf or self._about.get("encoding") != "WKB":
            return
        try:
            described = geoparquet_types.type_of(self._name, self._about)
            declared = GeospatialType.from_logical_type(stated, self._file.options.properties)
        except GeometryError:
            return
        if not geoparquet_types.states_crs(node) and crs_.is_geographic(described.crs) is None:
            declared = GeospatialType(described.crs, declared.edges)  # an unknown CRS takes effect
        for message in geoparquet_types.list_contradictions(self._name, declared, described):
            self._report_fault(_PRECEDENCE, message.partition(": the type's")[0])

    def _check_box(self, type: GeospatialType) -> None:
        if "bbox" not in self._about:
            return
        box = geoparquet.box_of(self._about)
        if box is None or not box.usable:
            self._report_fault(_BBOX, f"the metadata has a bbox that is not a box: {str(self._about['bbox'])[:80]}")
        elif box.wraps and not type.geographic:
            self._report_fault(
                _BBOX, "the metadata has a bbox that is inverted in x, which is only valid in a geographic CRS"
            )

    def _check_types(self, codes: set[int] | None) -> None:
        """Report geometry types that the metadata lacks, and types in the metadata without any geometry."""
        listed = self._about.get("geometry_types")
        if not isinstance(listed, list) or not listed or codes is None:
            return
        stated = {str(name) for name in listed}
        present = {NAMES[code] for code in codes if code in NAMES}
        if unknown := stated - set(NAMES.values()):
            self._report_fault(
                _TYPES, f"the metadata lists {', '.join(sorted(unknown))}, which are not types of geometries"
            )
        if missing := present - stated:
            self._report_fault(
                _TYPES, f"the metadata lacks the types {', '.join(sorted(missing))}, which the column has"
            )
        elif present and (absent := stated & set(NAMES.values()) - present):
            self._report_fault(_TYPES, f"the metadata lists {', '.join(sorted(absent))}, which no geometry is")

    def _check_covering(self) -> list[tuple[str, ...]]:
        """Return the paths of the columns that contain the covering's bounds. An invalid covering is a fault.

        The list is empty if the metadata has no covering or an invalid covering.
        """
        if "covering" not in self._about:
            return []
        paths = geoparquet.parse_covering(self._about)
        if not paths:
            self._report_fault(_COVERING, "the metadata has a covering without xmin, ymin, xmax and ymax")
        for path in paths:
            node = self._file.schema.find(path)
            if node is None:
                missing = ".".join(path)
                self._report_fault(
                    _COVERING, f"the metadata names the covering {missing}, which the file does not have"
                )
                return []
            if node.max_repetition_level or node.physical_type not in (Type.FLOAT, Type.DOUBLE):
                self._report_fault(_COVERING, f"the covering {'.'.join(path)} is not a number for each row")
                return []
        return paths

    def _check_rows(self, type: GeospatialType, paths: list[tuple[str, ...]]) -> set[int] | None:
        """Check each row: the covering box, the box of the column and the orientation of rings.

        Return the type codes of all rows; None if some rows are not read.
        """
        codes: set[int] = set()
        names = list(dict.fromkeys([self._name, *(path[0] for path in paths)]))
        first_row, is_complete = 0, True
        try:
            for row_group in self._file.row_groups:
                group = row_group.index
                if not self._selection.includes(row_group, self._top):
                    first_row, is_complete = first_row + row_group.num_rows, False
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for batch in self._file.iter_batches(columns=names, row_groups=[group]):
                        (values,) = binary_chunks(batch.column(self._name))
                        codes.update(code for part in summaries(values) for code in part.types)
                        if paths:
                            self._check_covering_boxes(values, batch, type, paths, group, first_row)
                        if not self._node.is_leaf:
                            self._check_bbox(values, group)
                        if self._is_oriented:
                            self._check_orientation(values, type, group, first_row)
                        first_row += batch.num_rows
        except ParquetError:
            return None  # reported by the checks of chunks and of geometries
        return codes if is_complete else None

    def _check_covering_boxes(
        self, values: pa.Array, batch: pa.RecordBatch, type: GeospatialType, paths: list[tuple[str, ...]],
        group: int, first_row: int,
    ) -> None:  # fmt: skip
        (column,) = columns(values)
        xmin, xmax, ymin, ymax = row_values(column)[0][:4]
        low_x, low_y, high_x, high_y = (
            _covering_bounds(batch, path, side) for path, side in zip(paths, (0, 0, 1, 1), strict=True)
        )
        placed = ~np.isnan(xmin) & ~np.isnan(ymin)
        without = placed & (np.isnan(low_x) | np.isnan(low_y) | np.isnan(high_x) | np.isnan(high_y))
        self._report_rows(_COVERING, without, "a geometry has no box in its covering column", group, first_row)
        inverted = low_x > high_x
        if not type.geographic:
            message = "a box of the covering column is inverted in x"
            self._report_rows(_COVERING, placed & inverted, message, group, first_row)
        # A geometry that crosses the antimeridian may have vertices at both ends of a box that wraps.
        between = inverted & type.geographic & (xmin > high_x) & (xmax < low_x)
        beside = ~inverted & ((xmin < low_x) | (xmax > high_x))
        outside = placed & ~without & (between | beside | (ymin < low_y) | (ymax > high_y))
        self._report_rows(_COVERING, outside, "a geometry is outside its box in the covering column", group, first_row)

    def _check_orientation(self, values: pa.Array, type: GeospatialType, group: int, first_row: int) -> None:
        oriented = orient_rings(values, type)
        if oriented is not values:
            differ = pc.fill_null(pc.not_equal(values, oriented), False).to_numpy(zero_copy_only=False)
            message = "a polygon is not counterclockwise, although the metadata states it"
            self._report_rows(_ORIENTATION, differ, message, group, first_row)

    def _report_rows(self, rule: str, rows: _Flags, message: str, group: int, first_row: int) -> None:
        numbers = np.flatnonzero(rows).tolist()
        shown = max(self._findings.capacity, 0)
        for number in numbers[:shown]:
            self._report_fault(rule, message, group, first_row + number)
        if len(numbers) > shown:
            self._findings.count(rule, message, len(numbers) - shown)

    def _check_bbox(self, values: pa.Array, group: int) -> None:
        """Report geometries of a native encoding outside the box of the column."""
        stated, own = geoparquet.box_of(self._about), bounding_box(summaries(values))
        if stated is None or own is None or not stated.usable or stated.wraps:
            return
        if not stated.contains(own):
            self._report_fault(_BBOX, "a geometry is outside the box in the GeoParquet metadata", group)


def _covering_bounds(batch: pa.RecordBatch, path: tuple[str, ...], side: int) -> _Numbers:
    """Return the bounds in the covering column at ``path``, NaN for nulls. ``side`` is 1 for upper bounds, otherwise 0.

    FLOAT bounds are moved outward by one ulp, because some writers round to the nearest float.
    """
    array = batch.column(path[0])
    array = pc.struct_field(array, list(path[1:])) if len(path) > 1 else array
    values: _Numbers = pc.fill_null(array.cast(pa.float64()), np.nan).to_numpy(zero_copy_only=False)
    if pa.types.is_float32(array.type):
        values = np.nextafter(values.astype(np.float32), np.float32(np.inf if side else -np.inf)).astype(np.float64)
    return values
