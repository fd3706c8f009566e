"""GEOMETRY and GEOGRAPHY columns: every value, and whether boxes and type codes tell the truth about them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, EncryptionError, GeometryError, LimitError, UnsupportedError
from pqext.core.format.extension.container import entry
from pqext.core.format.metadata import GeospatialStatistics, Type
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.leaf_runs import runs
from pqext.core.read.reader import ColumnChunk, ParquetFile, RowGroup
from pqext.core.schema.annotations import PAGE_BOXES
from pqext.core.schema.shape import LeafShape, Shape
from pqext.geo import crs as crs_
from pqext.geo import geoparquet, page_boxes
from pqext.geo.box import BoundingBox
from pqext.geo.coordinate_range import within_range
from pqext.geo.geography import Globe, globe_of
from pqext.geo.summary import bounding_box, only_points, row_values
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import columns, summaries
from pqext.verification import geoparquet_metadata
from pqext.verification.model import Fault, Findings
from pqext.verification.selection import ChunkSelection

EDGE_SLACK = 1e-6
"""Degrees by which our box around an edge may lie outside one that holds it: ours is rounded outward."""

_FARTHEST = 20 * 150.0
"""Degrees that an edge may run beside its geodesic, for each radian by which its algorithm turns it."""

_CODES = frozenset(1000 * dims + base for dims in range(4) for base in range(1, 8))
_Claim = tuple[str, str, BoundingBox]
"""A rule, words for a box that is to hold all geometries, and that box."""

_CONTAIN, _PAGE_CONTAIN = "geo.box.contains", "geo.page_boxes.contain"


def check(file: ParquetFile, tops: Sequence[Shape], selection: ChunkSelection, findings: Findings) -> None:
    """Check every GEOMETRY and GEOGRAPHY column below ``tops``."""
    text = _metadata(file)
    boxes = geoparquet.boxes(text) if text else {}
    codes: dict[str, set[int] | None] = {}
    for top in tops:
        for leaf in top.leaves():
            if leaf.node.logical_name in ("GEOMETRY", "GEOGRAPHY"):
                type = _type(file, leaf, findings)
                if type is not None:
                    first_row = 0
                    adopted = leaf.node.is_adopted and leaf.node.declared_type is None
                    whole = boxes.get(leaf.node.name) if len(leaf.node.path) == 1 else None
                    for group in file.row_groups:
                        checked = None
                        if selection.includes(group, leaf):
                            checked = _ChunkCheck(file, group, leaf, type, first_row, findings, adopted, whole).run()
                        known = codes.setdefault(leaf.node.dotted, set())
                        codes[leaf.node.dotted] = None if checked is None or known is None else known | checked
                        first_row += group.num_rows
    if text:
        geoparquet_metadata.check(file, text, {top.node.name: top for top in tops}, codes, selection, findings)


def _type(file: ParquetFile, leaf: LeafShape, findings: Findings) -> GeospatialType | None:
    column, logical = leaf.node.dotted, leaf.node.logical_type
    assert logical is not None
    if leaf.node.physical_type != Type.BYTE_ARRAY:
        message = leaf.node.leaf_type.passed_over or f"{leaf.node.logical_name} annotates a BYTE_ARRAY only"
        findings.add(Fault(f"{str(leaf.node.logical_name).lower()}.physical", message, column=column))
        return None
    try:
        found = GeospatialType.from_logical_type(logical, file.options.properties)
    except GeometryError as error:
        findings.add(Fault(error.rule or "geo.crs.custom", error.reason, column=column))
        return None
    if not found.planar and crs_.is_geographic(found.crs) is not True:
        message = f"GEOGRAPHY needs a geographic CRS, not {found.crs}"
        findings.add(Fault("geography.crs", message, column=column))
    return found


def _metadata(file: ParquetFile) -> str | None:
    """The file's GeoParquet metadata."""
    return next((one.value for one in file.metadata.key_value_metadata or () if one.key == geoparquet.KEY), None)


class _ChunkCheck:
    def __init__(
        self, file: ParquetFile, group: RowGroup, leaf: LeafShape, type: GeospatialType, first_row: int,
        findings: Findings, adopted: bool, whole: BoundingBox | None,
    ) -> None:  # fmt: skip
        """``adopted``: a plain column by the schema, whose bytes have an order, and a geometry by GeoParquet alone.

        ``whole`` is the box that GeoParquet's metadata gives to the column.
        """
        self._file = file
        self._group = group
        self._leaf = leaf
        self._type = type
        self._first_row = first_row
        self._findings = findings
        self._adopted = adopted
        self._whole = whole
        self._said: set[str] = set()
        self._codes: set[int] = set()

    def run(self) -> set[int] | None:
        """Report the chunk's faults; return the type codes of its values, None if some cannot be read."""
        column, index = self._leaf.node.dotted, self._group.index
        try:
            chunk = self._group.chunk(self._leaf.node)
            if not (chunk.num_values or self._group.num_rows):
                return self._codes
            if not self._adopted:
                self._no_order(chunk)
            said = chunk.geospatial_statistics
            box = self._box(said)
            pages = self._pages(chunk)
            boxes = [] if box is None else [(_CONTAIN, "the bounding box of its column chunk", box)]
            self._values(chunk, pages, boxes + self._geoparquet(), self._page_boxes(chunk, pages))
            if said is not None and said.geospatial_types:
                self._type_codes(said.geospatial_types)
            return self._codes
        except (UnsupportedError, EncryptionError, LimitError) as error:
            self._findings.skip(column, index, error.message)
        except CorruptFileError as error:
            self._findings.damaged(Fault("layout.page-lost", error.message, index, None, column, error.offset))
        return None

    def _fault(self, rule: str, message: str, row: int | None = None, offset: int | None = None) -> None:
        where = None if row is None else self._first_row + row
        part = "file" if offset is None else "value"
        self._findings.add(Fault(rule, message, self._group.index, where, self._leaf.node.dotted, offset, part))

    def _once(self, rule: str, message: str, row: int | None = None) -> None:
        if message not in self._said:
            self._said.add(message)
            self._fault(rule, message, row)

    def _no_order(self, chunk: ColumnChunk) -> None:
        said = chunk.metadata.statistics
        rule = f"{self._leaf.node.logical_name}".lower() + ".order"
        bounds = () if said is None else (said.min, said.max, said.min_value, said.max_value)
        if any(value is not None for value in bounds):
            self._fault(rule, "the statistics have a minimum and maximum, which geometries have no order for")
        try:
            index = chunk.column_index
        except CorruptFileError:
            return  # says the check of chunks
        if index is not None and any(value for value in (*index.min_values, *index.max_values)):
            self._fault(rule, "the column index has minima and maxima, which geometries have no order for")

    def _box(self, said: GeospatialStatistics | None) -> BoundingBox | None:
        """The chunk's box, where it is one that can be true."""
        if said is None or said.bbox is None:
            return None
        box = BoundingBox.from_metadata(said.bbox)
        if box.wraps and not self._type.geographic:
            self._fault("geo.box.wraparound_only", "a bounding box that is inverted in x is no box in this CRS")
        elif not box.usable:
            self._fault("geo.box.xy", "the bounding box has NaN or infinite bounds, or is inverted")
        else:
            return box
        return None

    def _geoparquet(self) -> list[_Claim]:
        """The box of the column in GeoParquet metadata, if it can be true."""
        box = self._whole
        if box is None or not box.usable or (box.wraps and not self._type.geographic):
            return []
        return [("geoparquet.bbox", "the box in the GeoParquet metadata", box)]

    def _pages(self, chunk: ColumnChunk) -> IndexedPages | None:
        """The pages by a page index that is sound; whether it is says the check of chunks."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return chunk.page_locations
        except CorruptFileError:
            return None

    def _page_boxes(self, chunk: ColumnChunk, pages: IndexedPages | None) -> page_boxes.PageBoxes | None:
        try:
            payload = entry(chunk.metadata, PAGE_BOXES) if pages is not None else None
            return None if payload is None or pages is None else page_boxes.decode(payload, len(pages))
        except UnsupportedError:
            return None  # of a later version
        except CorruptFileError as error:
            self._fault("geo.page_boxes.damaged", error.message)
            return None

    def _type_codes(self, said: Sequence[int]) -> None:
        if len(set(said)) != len(said):
            self._fault("geo.types.unique", "a type code is listed twice")
        if not _CODES.issuperset(said):
            self._fault("geo.types.codes", f"the type codes {sorted(set(said) - _CODES)} are none of WKB")
        if not self._codes.issubset(said):
            missing = sorted(self._codes.difference(said))
            self._fault("geo.types.several", f"the list of types lacks {missing}, which are there")

    def _values(
        self, chunk: ColumnChunk, pages: IndexedPages | None, claims: Sequence[_Claim],
        boxes: page_boxes.PageBoxes | None,
    ) -> None:
        start, counts = 0, None if pages is None else pages.row_counts
        for number, column in enumerate(runs(self._file, self._group, self._leaf, chunk, counts)):
            rows = _rows_of(column, self._leaf.slot_level) + start
            start += column.rows
            values = self._sound(column.array, rows)
            for rule, words, box in claims:
                outside = _outside(values, self._type, box)
                if outside is not None:
                    self._once(rule, f"a geometry leaves {words}", int(rows[outside]))
            if boxes is not None:
                self._page(boxes, number, values, rows)

    def _without_faults(self, values: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
        encoded = values.dictionary_encode()  # few bytes of a file can repeat one value millions of times
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
        shown = max(self._findings.room, 0)
        for slot in bad[:shown].tolist():
            fault = faults[int(codes[slot])]
            self._fault(fault.rule or "geo.wkb.iso", fault.reason, int(rows[slot]), fault.offset)
        others, counts = np.unique(codes[bad[shown:]], return_counts=True)
        for code, number in zip(others.tolist(), counts.tolist(), strict=True):
            self._findings.count(faults[code].rule or "geo.wkb.iso", faults[code].reason, number)
        return _without(values, bad)

    def _sound(self, values: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
        """The values that are geometries of this type, null in place of others, which are reported."""
        try:
            summaries(values, strict=True)
        except GeometryError:
            values = self._without_faults(values, rows)
        parts = summaries(values)
        self._codes.update(code for part in parts for code in part.types)
        if any(part.extended for part in parts):
            slot = _first_extended(values)
            self._once("geo.wkb.iso", "a value is EWKB, where the format has ISO WKB", int(rows[slot]))
        around = bounding_box(parts)
        if not self._type.planar and (around is None or not within_range(around)):
            values = self._in_range(values, rows)
        return values

    def _in_range(self, values: pa.Array, rows: NDArray[np.int64]) -> pa.Array:
        (west, east), (south, north) = crs_.LONGITUDES, crs_.LATITUDES
        (column,) = columns(values)
        xmin, xmax, ymin, ymax = row_values(column)[0][:4]
        outside = np.flatnonzero(
            (xmin < west - crs_.SLACK) | (xmax > east + crs_.SLACK) | (ymin < south - crs_.SLACK)
            | (ymax > north + crs_.SLACK)
        )  # fmt: skip
        message = "coordinates leave the longitudes -180 to 180 or latitudes -90 to 90"
        shown = max(self._findings.room, 0)
        for slot in outside[:shown].tolist():
            self._fault("geography.range", message, int(rows[slot]))
        if len(outside) > shown:
            self._findings.count("geography.range", message, len(outside) - shown)
        return _without(values, outside)

    def _page(
        self, boxes: page_boxes.PageBoxes, number: int, values: pa.Array, rows: NDArray[np.int64]
    ) -> None:
        if boxes.unknown[number]:
            return
        if boxes.nulls[number] or boxes.empty[number]:
            parts = summaries(values)
            if boxes.nulls[number] and any(part.rows for part in parts):
                self._once("geo.page_boxes.without", f"page {number}, which is called null, holds geometries")
            elif any(bound is not None for part in parts for bound in part.box[:4]):
                self._once("geo.page_boxes.without", f"page {number}, which is called empty, holds coordinates")
            return
        box = BoundingBox(*(float(line[number]) for line in (boxes.xmin, boxes.xmax, boxes.ymin, boxes.ymax)))
        if box.wraps and not self._type.geographic:
            self._once("geo.page_boxes.wraparound", f"the box of page {number} is inverted in x")
            return
        outside = _outside(values, self._type, box)
        if outside is not None:
            self._once(_PAGE_CONTAIN, f"a geometry leaves the box of page {number}", int(rows[outside]))


def _rows_of(column: LeafColumn, slot_level: int) -> NDArray[np.int64]:
    """The row, counted from the run's first, of each slot."""
    if column.repetition is None:
        return np.arange(len(column.array), dtype=np.int64)
    rows = np.cumsum(column.repetition == 0, dtype=np.int64) - 1
    return rows if column.definition is None else rows[column.definition >= slot_level]


def _without(values: pa.Array, slots: NDArray[np.int64]) -> pa.Array:
    if not len(slots):
        return values
    kept = np.ones(len(values), dtype=np.bool_)
    kept[slots] = False
    taken = pa.array(np.arange(len(values)), mask=~kept)
    return values.take(taken)


def _first_extended(values: pa.Array) -> int:
    low, high = 0, len(values)  # one lies in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        if any(part.extended for part in summaries(values[low:middle])):
            high = middle
        else:
            low = middle
    return low


def _outside(values: pa.Array, type: GeospatialType, box: BoundingBox) -> int | None:
    """The first value that the box does not hold, None when it holds all; whole edges where they are not planar.

    Edges on an ellipsoid reach as far as those on a sphere at least (``geo.edges.rise``), unless it is longer than
    wide. Our own boxes hold the most that they may reach, which no other writer's need to.
    """
    whole = bounding_box(summaries(values)) if type.planar and not box.wraps else None
    if whole is not None and box.contains(whole) and _holds_others(box, whole):
        return None
    (column,) = columns(values)
    try:
        globe = Globe() if type.planar else globe_of(type)
        least = GeospatialType(edges="spherical") if globe.e2 > 0 else type
        lines = row_values(column, least)[0] if globe.e2 >= 0 else row_values(column)[0]
        slack = 0.0 if type.planar or globe.e2 < 0 else EDGE_SLACK + _FARTHEST * globe.turn
    except (GeometryError, UnsupportedError):  # no ellipsoid: the corners alone
        lines, slack = row_values(column)[0], 0.0
    xmin, xmax, ymin, ymax = lines[:4]
    west, east = xmin < box.xmin - slack, xmax > box.xmax + slack
    crossing = xmin > xmax
    if box.wraps:
        beside = np.where(crossing, west | east, west & east)
    elif box.xmin <= -180 and box.xmax >= 180:
        beside = ~crossing & (west | east)
    else:
        beside = west | east | crossing
    if not type.planar:  # a pole has every longitude, and a point there the one that is written
        for slot in np.flatnonzero(beside & (xmin <= -180) & (xmax >= 180)).tolist():
            beside[slot] = not only_points(summaries(values[slot : slot + 1])[0].types)
    outside = beside | (ymin < box.ymin - slack) | (ymax > box.ymax + slack)
    for index, low, high in ((4, box.zmin, box.zmax), (6, box.mmin, box.mmax)):
        if low is not None and high is not None and len(lines) > index:
            outside |= (lines[index] < low) | (lines[index + 1] > high)
    found = np.flatnonzero(outside)
    return int(found[0]) if len(found) else None


def _holds_others(box: BoundingBox, whole: BoundingBox) -> bool:
    pairs = ((box.zmin, box.zmax, whole.zmin, whole.zmax), (box.mmin, box.mmax, whole.mmin, whole.mmax))
    return all(
        low is None or high is None or least is None or most is None or (low <= least and most <= high)
        for low, high, least, most in pairs
    )
