"""Check GEOMETRY and GEOGRAPHY columns: validate each value, and compare boxes and type codes with the values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, EncryptionError, GeometryError, LimitError, UnsupportedError
from pqext.core.format.extension.framing import entry
from pqext.core.format.metadata import GeospatialStatistics, Type
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.leaf_runs import iter_runs
from pqext.core.read.reader import ColumnChunk, ParquetFile, RowGroup
from pqext.core.schema.annotations import PAGE_BOXES
from pqext.core.schema.shape import LeafShape, Shape
from pqext.geo import crs as crs_
from pqext.geo import geoparquet, page_boxes
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import within_range
from pqext.geo.summary import Globe, bounding_box, globe_of, only_points, row_values
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import columns, summaries
from pqext.verification import geoparquet_metadata
from pqext.verification.chunk_selection import ChunkSelection
from pqext.verification.report import Fault, Findings

EDGE_SLACK = 1e-6
"""Tolerance in degrees between pqext's box around an edge, which is rounded outward, and another writer's box."""

_FARTHEST = 20 * 150.0
"""Maximum distance in degrees between an edge and its geodesic, per radian of the azimuth error of its algorithm."""

_CODES = frozenset(1000 * dims + base for dims in range(4) for base in range(1, 8))
_StatedBox = tuple[str, str, BoundingBox]
"""Rule, description of a box that must contain all geometries, and the box."""

_CONTAIN, _PAGE_CONTAIN = "geo.box.contains", "geo.page_boxes.contain"


def check(file: ParquetFile, tops: Sequence[Shape], selection: ChunkSelection, findings: Findings) -> None:
    """Check every GEOMETRY and GEOGRAPHY column below ``tops``."""
    text = _geoparquet_metadata(file)
    boxes = geoparquet.boxes(text) if text else {}
    codes: dict[str, set[int] | None] = {}
    for top in tops:
        for leaf in top.leaves():
            if leaf.node.logical_name in ("GEOMETRY", "GEOGRAPHY"):
                type = _check_type(file, leaf, findings)
                if type is not None:
                    first_row = 0
                    adopted = leaf.node.is_adopted and leaf.node.declared_type is None
                    column_box = boxes.get(leaf.node.name) if len(leaf.node.path) == 1 else None
                    for group in file.row_groups:
                        chunk_codes = None
                        if selection.includes(group, leaf):
                            check = _ChunkCheck(file, group, leaf, type, first_row, findings, adopted, column_box)
                            chunk_codes = check.run()
                        known = codes.setdefault(leaf.node.dotted_path, set())
                        codes[
                            leaf.node.dotted_path
                        ] = None if chunk_codes is None or known is None else known | chunk_codes
                        first_row += group.num_rows
    if text:
        geoparquet_metadata.check(file, text, {top.node.name: top for top in tops}, codes, selection, findings)


def _check_type(file: ParquetFile, leaf: LeafShape, findings: Findings) -> GeospatialType | None:
    """Report faults of a column's geospatial type. Return the type, or None if it is invalid."""
    column, logical = leaf.node.dotted_path, leaf.node.logical_type
    assert logical is not None
    if leaf.node.physical_type != Type.BYTE_ARRAY:
        message = leaf.node.leaf_type.ignored_reason or f"{leaf.node.logical_name} must annotate BYTE_ARRAY"
        findings.add(Fault(f"{str(leaf.node.logical_name).lower()}.physical", message, column=column))
        return None
    try:
        type = GeospatialType.from_logical_type(logical, file.options.properties)
    except GeometryError as error:
        findings.add(Fault(error.rule or "geo.crs.custom", error.reason, column=column))
        return None
    if not type.planar and crs_.is_geographic(type.crs) is not True:
        message = f"GEOGRAPHY needs a geographic CRS, not {type.crs}"
        findings.add(Fault("geography.crs", message, column=column))
    return type


def _geoparquet_metadata(file: ParquetFile) -> str | None:
    """Return the GeoParquet metadata of the file; None if the file has no GeoParquet metadata."""
    return next((pair.value for pair in file.metadata.key_value_metadata or () if pair.key == geoparquet.KEY), None)


class _ChunkCheck:
    def __init__(
        self, file: ParquetFile, group: RowGroup, leaf: LeafShape, type: GeospatialType, first_row: int,
        findings: Findings, is_adopted: bool, column_box: BoundingBox | None,
    ) -> None:  # fmt: skip
        """Prepare the check of one chunk.

        ``is_adopted`` means that the schema has a plain column, whose bytes have an order, and only GeoParquet metadata
        declares it as a geometry. ``column_box`` is the bounding box of the column in the GeoParquet metadata.
        """
        self._file = file
        self._group = group
        self._leaf = leaf
        self._type = type
        self._first_row = first_row
        self._findings = findings
        self._is_adopted = is_adopted
        self._column_box = column_box
        self._messages: set[str] = set()
        self._codes: set[int] = set()

    def run(self) -> set[int] | None:
        """Report the chunk's faults, and return the type codes of its values; None if any value cannot be read."""
        column, index = self._leaf.node.dotted_path, self._group.index
        try:
            chunk = self._group.chunk(self._leaf.node)
            if not (chunk.num_values or self._group.num_rows):
                return self._codes
            if not self._is_adopted:
                self._check_no_order(chunk)
            stated = chunk.geospatial_statistics
            box = self._check_box(stated)
            pages = self._read_page_index(chunk)
            boxes = [] if box is None else [(_CONTAIN, "the bounding box of its column chunk", box)]
            self._check_values(chunk, pages, boxes + self._geoparquet_boxes(), self._decode_page_boxes(chunk, pages))
            if stated is not None and stated.geospatial_types:
                self._check_type_codes(stated.geospatial_types)
            return self._codes
        except (UnsupportedError, EncryptionError, LimitError) as error:
            self._findings.skip(column, index, error.message)
        except CorruptFileError as error:
            self._findings.add_damage(Fault("layout.page-lost", error.message, index, None, column, error.offset))
        return None

    def _report_fault(self, rule: str, message: str, row: int | None = None, offset: int | None = None) -> None:
        file_row = None if row is None else self._first_row + row
        part = "file" if offset is None else "value"
        self._findings.add(Fault(rule, message, self._group.index, file_row, self._leaf.node.dotted_path, offset, part))

    def _report_once(self, rule: str, message: str, row: int | None = None) -> None:
        if message not in self._messages:
            self._messages.add(message)
            self._report_fault(rule, message, row)

    def _check_no_order(self, chunk: ColumnChunk) -> None:
        stated = chunk.metadata.statistics
        rule = f"{self._leaf.node.logical_name}".lower() + ".order"
        bounds = () if stated is None else (stated.min, stated.max, stated.min_value, stated.max_value)
        if any(value is not None for value in bounds):
            self._report_fault(rule, "the statistics have a minimum and maximum, but geometries have no order")
        try:
            index = chunk.column_index
        except CorruptFileError:
            return  # reported by the check of chunks
        if index is not None and any(value for value in (*index.min_values, *index.max_values)):
            self._report_fault(rule, "the column index has minima and maxima, but geometries have no order")

    def _check_box(self, declared_box: GeospatialStatistics | None) -> BoundingBox | None:
        """Return the declared bounding box of the chunk; None if it is missing or invalid. Invalid boxes are faults."""
        if declared_box is None or declared_box.bbox is None:
            return None
        box = BoundingBox.from_metadata(declared_box.bbox)
        if box.wraps and not self._type.geographic:
            self._report_fault(
                "geo.box.wraparound_only", "the bounding box is inverted in x, which is invalid in this CRS"
            )
        elif not box.usable:
            self._report_fault("geo.box.xy", "the bounding box has NaN or infinite bounds, or is inverted")
        else:
            return box
        return None

    def _geoparquet_boxes(self) -> list[_StatedBox]:
        """Return the box of the column in the GeoParquet metadata as a list; empty if there is no valid box."""
        box = self._column_box
        if box is None or not box.usable or (box.wraps and not self._type.geographic):
            return []
        return [("geoparquet.bbox", "the box in the GeoParquet metadata", box)]

    def _read_page_index(self, chunk: ColumnChunk) -> IndexedPages | None:
        """Return the pages in the page index; None if it is invalid, which the check of chunks reports."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return chunk.page_locations
        except CorruptFileError:
            return None

    def _decode_page_boxes(self, chunk: ColumnChunk, pages: IndexedPages | None) -> page_boxes.PageBoxes | None:
        try:
            payload = entry(chunk.metadata, PAGE_BOXES) if pages is not None else None
            return None if payload is None or pages is None else page_boxes.decode(payload, len(pages))
        except UnsupportedError:
            return None  # page boxes of a later version
        except CorruptFileError as error:
            self._report_fault("geo.page_boxes.damaged", error.message)
            return None

    def _check_type_codes(self, declared_codes: Sequence[int]) -> None:
        if len(set(declared_codes)) != len(declared_codes):
            self._report_fault("geo.types.unique", "a type code is listed twice")
        if not _CODES.issuperset(declared_codes):
            self._report_fault(
                "geo.types.codes", f"the type codes {sorted(set(declared_codes) - _CODES)} are not WKB type codes"
            )
        if not self._codes.issubset(declared_codes):
            missing = sorted(self._codes.difference(declared_codes))
            self._report_fault("geo.types.several", f"the list of types lacks {missing}, which geometries have")

    def _check_values(
        self, chunk: ColumnChunk, pages: IndexedPages | None, stated_boxes: Sequence[_StatedBox],
        boxes: page_boxes.PageBoxes | None,
    ) -> None:
        start, counts = 0, None if pages is None else pages.row_counts
        for number, column in enumerate(iter_runs(self._file, self._group, self._leaf, chunk, counts)):
            rows = _find_rows(column, self._leaf.slot_level) + start
            start += column.rows
            values = self._clear_invalid(column.array, rows)
            for rule, words, box in stated_boxes:
                outside = _find_outside(values, self._type, box)
                if outside is not None:
                    self._report_once(rule, f"a geometry is outside {words}", int(rows[outside]))
            if boxes is not None:
                self._check_page_box(boxes, number, values, rows)

    def _clear_faults(self, values: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
        encoded = values.dictionary_encode()  # a few bytes of a file can repeat one value millions of times
        faults: dict[int, GeometryError] = {}
        start = 0
        while start < len(encoded.dictionary):
            try:
                summaries(encoded.dictionary[start:], strict=True)
                break
            except GeometryError as error:
                code = start + (error.row or 0)
                faults[code] = error
                start = code + 1
        codes = encoded.indices.fill_null(-1).to_numpy()
        bad = np.flatnonzero(np.isin(codes, list(faults)))
        shown = max(self._findings.capacity, 0)
        for slot in bad[:shown].tolist():
            fault = faults[int(codes[slot])]
            self._report_fault(fault.rule or "geo.wkb.iso", fault.reason, int(rows[slot]), fault.offset)
        others, counts = np.unique(codes[bad[shown:]], return_counts=True)
        for code, number in zip(others.tolist(), counts.tolist(), strict=True):
            self._findings.count(faults[code].rule or "geo.wkb.iso", faults[code].reason, number)
        return _clear_positions(values, bad)

    def _clear_invalid(self, values: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
        """Report values that are not geometries of this type, and replace them with null."""
        try:
            summaries(values, strict=True)
        except GeometryError:
            values = self._clear_faults(values, rows)
        parts = summaries(values)
        self._codes.update(code for part in parts for code in part.types)
        if any(part.extended for part in parts):
            slot = _find_ewkb(values)
            self._report_once("geo.wkb.iso", "a value is EWKB instead of ISO WKB", int(rows[slot]))
        around = bounding_box(parts)
        if not self._type.planar and (around is None or not within_range(around)):
            values = self._clear_out_of_range(values, rows)
        return values

    def _clear_out_of_range(self, values: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
        (west, east), (south, north) = crs_.LONGITUDES, crs_.LATITUDES
        (column,) = columns(values)
        xmin, xmax, ymin, ymax = row_values(column)[0][:4]
        outside = np.flatnonzero(
            (xmin < west - crs_.SLACK) | (xmax > east + crs_.SLACK) | (ymin < south - crs_.SLACK)
            | (ymax > north + crs_.SLACK)
        )  # fmt: skip
        message = "coordinates are outside the longitudes -180 to 180 or latitudes -90 to 90"
        shown = max(self._findings.capacity, 0)
        for slot in outside[:shown].tolist():
            self._report_fault("geography.range", message, int(rows[slot]))
        if len(outside) > shown:
            self._findings.count("geography.range", message, len(outside) - shown)
        return _clear_positions(values, outside)

    def _check_page_box(
        self, boxes: page_boxes.PageBoxes, number: int, values: pa.Array, rows: NDArray[np.int64]
    ) -> None:
        if boxes.unknown[number]:
            return
        if boxes.nulls[number] or boxes.empty[number]:
            parts = summaries(values)
            if boxes.nulls[number] and any(part.rows for part in parts):
                self._report_once("geo.page_boxes.without", f"page {number}, marked as null, contains geometries")
            elif any(bound is not None for part in parts for bound in part.box[:4]):
                self._report_once("geo.page_boxes.without", f"page {number}, marked as empty, contains coordinates")
            return
        box = BoundingBox(*(float(line[number]) for line in (boxes.xmin, boxes.xmax, boxes.ymin, boxes.ymax)))
        if box.wraps and not self._type.geographic:
            self._report_once("geo.page_boxes.wraparound", f"the box of page {number} is inverted in x")
            return
        outside = _find_outside(values, self._type, box)
        if outside is not None:
            self._report_once(_PAGE_CONTAIN, f"a geometry is outside the box of page {number}", int(rows[outside]))


def _find_rows(column: LeafColumn, slot_level: int) -> NDArray[np.int64]:
    """Return the row of each slot, counted from the first row of the run."""
    if column.repetition is None:
        return np.arange(len(column.array), dtype=np.int64)
    rows = np.cumsum(column.repetition == 0, dtype=np.int64) - 1
    return rows if column.definition is None else rows[column.definition >= slot_level]


def _clear_positions(values: pa.Array, positions: NDArray[np.int64]) -> pa.Array:
    if not len(positions):
        return values
    is_valid = np.ones(len(values), dtype=np.bool_)
    is_valid[positions] = False
    return values.take(pa.array(np.arange(len(values)), mask=~is_valid))


def _find_ewkb(values: pa.Array) -> int:
    """Return the position of the first value that is EWKB."""
    low, high = 0, len(values)  # an extended value is in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        if any(part.extended for part in summaries(values[low:middle])):
            high = middle
        else:
            low = middle
    return low


def _find_outside(values: pa.Array, type: GeospatialType, box: BoundingBox) -> int | None:
    """Return the position of the first value that is not within the box; None if all values are within the box.

    Edges are included unless they are planar. Edges on an ellipsoid rise at least as far as edges on a sphere
    (``geo.edges.rise``), unless the ellipsoid is prolate. pqext's boxes contain the farthest point that an edge may
    reach; boxes of other writers may not.
    """
    total = bounding_box(summaries(values)) if type.planar and not box.wraps else None
    if total is not None and box.contains(total) and _contains_zm(box, total):
        return None
    (column,) = columns(values)
    try:
        globe = Globe() if type.planar else globe_of(type)
        least = GeospatialType(edges="spherical") if globe.e2 > 0 else type
        lines = row_values(column, least)[0] if globe.e2 >= 0 else row_values(column)[0]
        slack = 0.0 if type.planar or globe.e2 < 0 else EDGE_SLACK + _FARTHEST * globe.turn
    except (GeometryError, UnsupportedError):  # no ellipsoid: compare only the corners
        lines, slack = row_values(column)[0], 0.0
    xmin, xmax, ymin, ymax = lines[:4]
    west, east = xmin < box.xmin - slack, xmax > box.xmax + slack
    crossing = xmin > xmax
    if box.wraps:
        outside_x = np.where(crossing, west | east, west & east)
    elif box.xmin <= -180 and box.xmax >= 180:
        outside_x = ~crossing & (west | east)
    else:
        outside_x = west | east | crossing
    if not type.planar:  # a pole has every longitude, but a point at a pole has only its stored longitude
        for slot in np.flatnonzero(outside_x & (xmin <= -180) & (xmax >= 180)).tolist():
            outside_x[slot] = not only_points(summaries(values[slot : slot + 1])[0].types)
    outside = outside_x | (ymin < box.ymin - slack) | (ymax > box.ymax + slack)
    for index, low, high in ((4, box.zmin, box.zmax), (6, box.mmin, box.mmax)):
        if low is not None and high is not None and len(lines) > index:
            outside |= (lines[index] < low) | (lines[index + 1] > high)
    rows = np.flatnonzero(outside)
    return int(rows[0]) if len(rows) else None


def _contains_zm(box: BoundingBox, other: BoundingBox) -> bool:
    pairs = ((box.zmin, box.zmax, other.zmin, other.zmax), (box.mmin, box.mmax, other.mmin, other.mmax))
    return all(
        low is None or high is None or least is None or most is None or (low <= least and most <= high)
        for low, high, least, most in pairs
    )
