"""Analyse a file's bounding boxes: their overlap, and the expected cost of spatial queries."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.base.text import escape_text
from pqext.core.read.pages.page_selection import pages_of
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.schema.nodes import SchemaNode
from pqext.geo import page_boxes
from pqext.geo.annotation import HANDLER
from pqext.geo.box import BoundingBox
from pqext.geo.geoparquet import covering_box
from pqext.geo.layout.order import PAGE_ROWS
from pqext.geo.predicates.predicate import SpatialPredicate
from pqext.geo.summary import union
from pqext.geo.types import GeospatialType

_Doubles = NDArray[np.float64]
_WORTH_SORTING = 2.0
"""Read cost, relative to an even grid of pages, above which sorting is suggested; Hilbert order reaches 1.3."""

_FEWEST, _SPREAD, _NEAR = 4, 0.3, 0.5
"""Criteria for ordered boxes: their number, the spread of their centers within the extent, and short steps between
neighbors relative to the mean distance."""


@dataclass(frozen=True, slots=True)
class Part:
    """Row group or page. Every query reads a part without a box, unless the part has no coordinates."""

    row_group: int
    rows: int
    bytes: int
    box: BoundingBox | None
    has_no_coordinates: bool = False
    """Whether all rows are null or empty, so that no query reads the part."""
    own: bool = True
    """Whether the page has its own box, and not the box of its row group."""


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """Boxes of all row groups or pages, with the size of the geometry column in bytes.

    ``depth`` is the average number of boxes that contain a point of the extent. ``covered`` is the share of the extent
    that lies in a box. ``overlap`` is the ratio of the total area of all boxes to the area that they cover: 1 if none
    overlap. ``read``, ``rows_read`` and ``bytes_read`` are expected for a query of the given size anywhere in the
    extent.
    """

    count: int
    with_box: int
    depth: float
    covered: float
    overlap: float
    read: float
    rows_read: float
    bytes_read: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Result of :func:`explain_layout`. ``str`` formats it.

    ``extent`` is the box around all boxes, which wraps around the antimeridian if that is narrower; it is None if there
    are no boxes. A page without a box has the box of its row group. ``suggestions`` lists changes that would reduce the
    data that queries read.
    """

    path: str
    column: str
    rows: int
    bytes: int
    extent: BoundingBox | None
    query_width: float
    query_height: float
    row_groups: BoxLayout
    pages: BoxLayout
    suggestions: tuple[str, ...]

    def __str__(self) -> str:
        from pqext.core.base.text import format_size, with_noun

        subject = f"{escape_text(self.path)}, column {escape_text(self.column)}"
        lines = [f"{subject}: {with_noun(self.rows, 'row')}, {format_size(self.bytes)}"]
        if self.extent is not None:
            box = self.extent
            wraps = " (wraps around)" if box.wraps else ""
            lines += [
                f"  extent x {box.xmin:g} to {box.xmax:g}{wraps}, y {box.ymin:g} to {box.ymax:g}",
                f"  a query of {self.query_width:.4g} by {self.query_height:.4g} is expected to read",
            ]
            for name, part in (("row groups", self.row_groups), ("pages", self.pages)):
                lines.append(
                    f"    {part.read:,.1f} of {part.count:,} {name}, {part.rows_read:,.0f} rows, "
                    f"{format_size(round(part.bytes_read))} of this column"
                )
            for name, part in (("row groups", self.row_groups), ("pages", self.pages)):
                lines.append(
                    f"  boxes of {name}: {part.depth:.2f} over a point on average, {part.covered:.0%} of the extent "
                    f"covered, overlap {part.overlap:.2f}"
                )
        return "\n".join([*lines, *(f"  suggestion: {text}" for text in self.suggestions)])


def explain_layout(source: Any, column: str | None = None, query: float | tuple[float, float] = 0.001) -> Layout:
    """Analyze the boxes of a geometry column's row groups and pages, and estimate the cost of queries.

    ``source`` is a source for :func:`pqext.open`, an open file, or a list or generator of these, with row groups
    numbered consecutively. ``column`` is a dotted path, by default the only geometry column. ``query`` is the area of
    queries as a share of the extent, with the extent's proportions, or their width and height in the column's units.
    Estimates are exact for queries distributed evenly over the extent. Queries cross the antimeridian if the extent
    crosses it.
    Raises KeyError if the column does not exist, and ValueError if it is not a geometry, ``column`` is required,
    ``query`` is out of range or there are no files.

    >>> import pqext, pyarrow
    >>> from pqext import geo
    >>> points = geo.from_points([i * 37 % 90 for i in range(90)], [i * 41 % 90 for i in range(90)])
    >>> table = pyarrow.table({"geometry": points})
    >>> pqext.write_table(table, "unsorted.parquet", row_group_rows=10)
    >>> pqext.write_table(geo.sort(table, "geometry"), "sorted.parquet", row_group_rows=10)
    >>> [round(explain_layout(path).row_groups.read, 1) for path in ("unsorted.parquet", "sorted.parquet")]
    [8.0, 1.2]
    """
    share = _check_query(query)
    sources = source if isinstance(source, list | tuple | Generator) else [source]
    paths: list[str] = []
    groups: list[Part] = []
    pages: list[Part] = []
    is_geographic = True
    for item in sources:
        with nullcontext(item) if isinstance(item, ParquetFile) else ParquetFile(item) as file:
            node = geometry_leaf(file, column)
            file_groups, file_pages = parts_of(file, node, len(groups))
            groups, pages = groups + file_groups, pages + file_pages
            type = _type(file, node)
            is_geographic = is_geographic and type is not None and type.geographic
            paths.append(file.path or "(no path)")
    if not paths:
        raise ValueError("there are no files to analyse; pass at least one")
    frame = _Frame.enclosing((part.box for part in groups), is_geographic)
    width, height = frame.query(share)
    results = [_describe(parts, frame, width, height) for parts in (groups, pages)]
    advice = _suggestions(groups, pages, results, frame, width, height)
    return Layout(
        path=paths[0] if len(paths) == 1 else f"{len(paths)} files",
        column=node.dotted_path,
        rows=sum(part.rows for part in groups),
        bytes=sum(part.bytes for part in groups),
        extent=frame.extent,
        query_width=width * frame.width,
        query_height=height * frame.height,
        row_groups=results[0],
        pages=results[1],
        suggestions=advice,
    )


def _check_query(query: float | tuple[float, float]) -> float | tuple[float, float]:
    sides = query if isinstance(query, tuple) else (query,)
    numbers = all(isinstance(side, int | float) and not isinstance(side, bool) for side in sides)
    if not numbers or (isinstance(query, tuple) and len(query) != 2):
        raise TypeError(f"query must be a fraction of the extent or a pair (width, height), not {query!r}")
    if not all(isfinite(side) and side >= 0 for side in sides) or (not isinstance(query, tuple) and query > 1):
        expected = "a fraction of the extent from 0 to 1, or a pair (width, height) of finite numbers of at least 0"
        raise ValueError(f"query must be {expected}, not {query!r}")
    return query if isinstance(query, tuple) else float(query)


def geometry_leaf(file: ParquetFile, column: str | None) -> SchemaNode:
    """Return the geometry column with the dotted path ``column``, or the only geometry column if ``column`` is None.

    Raises KeyError if the column does not exist, and ValueError if it is not a geometry, or if ``column`` is None and
    there is not exactly one geometry column.
    """
    leaves = [leaf for leaf in file.schema.leaves if leaf.logical_name in ("GEOMETRY", "GEOGRAPHY")]
    if column is None:
        if len(leaves) != 1:
            if not leaves:
                raise ValueError("the file has no geometry column: create one with pqext convert --geometry lon,lat")
            named = ", ".join(leaf.dotted_path for leaf in leaves)
            raise ValueError(f"the file has several geometry columns; pass one of them as column: {named}")
        return leaves[0]
    node = file.schema.find(column)
    if node is None:
        named = ", ".join(leaf.dotted_path for leaf in leaves)
        raise KeyError(f"no column {column!r}; the geometry columns are {named or 'none'}")
    if node not in leaves:
        raise ValueError(f"column {column!r} is not a geometry")
    return node


def parts_of(file: ParquetFile, node: SchemaNode, first_index: int = 0) -> tuple[list[Part], list[Part]]:
    """Return the row groups of a file, and the pages of its geometry column ``node``.

    Row groups are numbered from ``first_index``.
    """
    groups = [replace(part, row_group=first_index + part.row_group) for part in row_group_parts(file, node)]
    pages: list[Part] = []
    for group, part in zip(file.row_groups, groups, strict=True):
        pages += _pages(group.chunk(node), part)
    return groups, pages


def count_matches(file: ParquetFile, node: SchemaNode, predicate: SpatialPredicate) -> tuple[int, int]:
    """Count the row groups, and the pages of geometry column ``node``, that a scan with ``predicate`` reads.

    A row group without a page index counts as one page, as in :func:`parts_of`.
    """
    groups = pages = 0
    for group in file.row_groups:
        if not HANDLER.may_match(node, group, predicate):
            continue
        facts, rows = group.chunk(node).pages, HANDLER.matching_rows(node, group, predicate)
        count = 1 if facts is None else len(facts if rows is None else pages_of(facts, rows))
        groups, pages = groups + bool(count), pages + count
    return groups, pages


def row_group_parts(file: ParquetFile, node: SchemaNode) -> list[Part]:
    """Return the row groups of a file with the boxes of its geometry column ``node``."""
    type = _type(file, node)
    return [_row_group_part(group.chunk(node), group, type) for group in file.row_groups]


def _type(file: ParquetFile, node: SchemaNode) -> GeospatialType | None:
    """Return the column's type, or None if the edge algorithm is unknown."""
    assert node.logical_type is not None  # of a geometry column
    try:
        return GeospatialType.from_logical_type(node.logical_type, file.options.properties)
    except GeometryError:
        return None


def _row_group_part(chunk: ColumnChunk, group: RowGroup, type: GeospatialType | None) -> Part:
    """Return a row group and its box from statistics or the covering. The box is None unless it can prune."""
    result = chunk.geospatial_statistics
    geographic = type is not None and type.geographic
    box = None if result is None or result.bbox is None else BoundingBox.from_metadata(result.bbox)
    if box is None and type is not None and type.planar:
        box = covering_box(group, chunk.node, geographic)
    box = box if box is not None and box.usable and (geographic or not box.wraps) else None
    return Part(group.index, group.num_rows, chunk.byte_range[1], box, box is None and chunk.bounds().all_null)


def _pages(chunk: ColumnChunk, group_part: Part) -> list[Part]:
    places = chunk.pages
    if places is None:
        return [group_part]
    boxes = page_boxes.read(chunk)
    parts = []
    for page in range(len(places)):
        box, is_empty = group_part.box, group_part.has_no_coordinates
        own = boxes is not None and bool(boxes.has_box[page])
        if boxes is not None:
            is_empty = bool(boxes.nulls[page] or boxes.empty[page])
            if boxes.has_box[page]:
                box = _clip(
                    BoundingBox(*(float(line[page]) for line in (boxes.xmin, boxes.xmax, boxes.ymin, boxes.ymax))), box
                )
        rows, size = len(places.rows(page)), places.byte_range(page)[1]
        parts.append(Part(group_part.row_group, rows, size, None if is_empty else box, is_empty, own))
    return parts


def _clip(page: BoundingBox, group: BoundingBox | None) -> BoundingBox:
    """Clip the box of a page, which is rounded outward, to the box of its row group."""
    if group is None or page.wraps or group.wraps:
        return page
    clipped = BoundingBox(
        max(page.xmin, group.xmin), min(page.xmax, group.xmax), max(page.ymin, group.ymin), min(page.ymax, group.ymax)
    )
    return clipped if clipped.xmin <= clipped.xmax and clipped.ymin <= clipped.ymax else page


@dataclass(frozen=True, slots=True)
class _Frame:
    """Transformation of boxes and queries to the unit square, which represents the extent eastward from its xmin."""

    extent: BoundingBox | None

    @classmethod
    def enclosing(cls, boxes: Iterable[BoundingBox | None], geographic: bool) -> _Frame:
        return cls(union([box for box in boxes if box is not None], geographic))

    @property
    def width(self) -> float:
        return 0.0 if self.extent is None else self.extent.width

    @property
    def height(self) -> float:
        return 0.0 if self.extent is None else self.extent.ymax - self.extent.ymin

    def query(self, query: float | tuple[float, float]) -> tuple[float, float]:
        """Return the width and height of a query as fractions of the extent."""
        if not isinstance(query, tuple):
            return sqrt(query), sqrt(query)
        sides = zip(query, (self.width, self.height), strict=True)
        width, height = (min(side / whole, 1.0) if whole > 0 else 1.0 for side, whole in sides)
        return width, height

    def relative(self, boxes: list[BoundingBox]) -> _Doubles:
        """Return the bounds of boxes in the unit square, as rows xmin, xmax, ymin, ymax."""
        lines = np.array([[box.xmin, box.xmax, box.ymin, box.ymax] for box in boxes]).reshape(-1, 4).T.copy()
        if self.extent is None:
            return lines
        if self.extent.wraps:  # no box wraps within the unrolled extent
            middle = self.extent.xmin + self.width / 2
            widths = np.array([box.width for box in boxes])
            lines[0] = middle + np.mod(lines[0] - middle + 180, 360) - 180
            lines[1] = lines[0] + widths
        east = self.extent.xmin + self.width if self.extent.wraps else self.extent.xmax
        for first, low, high in ((0, self.extent.xmin, east), (2, self.extent.ymin, self.extent.ymax)):
            # Halves, because the extent may be wider than the largest double.
            span = high / 2 - low / 2
            lines[first : first + 2] = (lines[first : first + 2] / 2 - low / 2) / span if span > 0 else [[0.0], [1.0]]
        return lines.clip(0.0, 1.0)


def hit_probabilities(boxes: _Doubles, width: float, height: float) -> _Doubles:
    """Return, for each box, the probability that a query touches it, for queries spread evenly over the square."""
    x = _share(boxes[0], boxes[1], width)
    wraps = boxes[0] > boxes[1]
    if wraps.any():
        # Boxes that touch neither end lie between the ends.
        between = _share(boxes[1] + width, boxes[0] - width, width) if width < 1 else np.zeros_like(x)
        x = np.where(wraps, 1 - between, x)
    result: _Doubles = x * _share(boxes[2], boxes[3], height)
    return result


def _share(low: _Doubles, high: _Doubles, side: float) -> _Doubles:
    if side >= 1:
        return np.ones_like(low)
    result: _Doubles = (np.minimum(high, 1 - side) - np.maximum(low - side, 0)).clip(0) / (1 - side)
    return result


def _describe(parts: list[Part], frame: _Frame, width: float, height: float) -> BoxLayout:
    boxed = [index for index, part in enumerate(parts) if part.box is not None]
    boxes = frame.relative([box for part in parts if (box := part.box) is not None])
    chances = np.array([0.0 if part.has_no_coordinates else 1.0 for part in parts])
    chances[boxed] = hit_probabilities(boxes, width, height)
    wraps = boxes[0] > boxes[1]
    areas = (boxes[1] - boxes[0] + wraps) * (boxes[3] - boxes[2])
    depth, covered = float(areas.sum()), _covered_area(boxes)
    return BoxLayout(
        count=len(parts),
        with_box=len(boxed),
        depth=depth,
        covered=covered,
        overlap=depth / covered if covered > 0 else 1.0,
        read=float(chances.sum()),
        rows_read=float(chances @ np.array([part.rows for part in parts], dtype=np.float64)),
        bytes_read=float(chances @ np.array([part.bytes for part in parts], dtype=np.float64)),
    )


def _covered_area(boxes: _Doubles) -> float:
    """Return the area of the unit square that the boxes cover."""
    import shapely

    wraps = boxes[0] > boxes[1]
    west, east = boxes[:, wraps], boxes[:, wraps]
    west[0], east[1] = 0.0, 1.0
    lines = np.concatenate([boxes[:, ~wraps], west, east], axis=1)
    lines = lines[:, (lines[1] > lines[0]) & (lines[3] > lines[2])]
    return min(float(shapely.union_all(shapely.box(lines[0], lines[2], lines[1], lines[3])).area), 1.0)


def _suggestions(
    groups: list[Part], pages: list[Part], layouts: list[BoxLayout], frame: _Frame, width: float, height: float
) -> tuple[str, ...]:
    groups_layout, pages_layout = layouts
    if not groups_layout.with_box:
        return ("no row group has a box, so every query reads the complete column; write the file with statistics",)
    results = []
    rows = sum(part.rows for part in groups)
    own = any(part.own and part.box is not None for part in pages)  # otherwise pages do not show the order of rows
    name, parts, layout = ("pages", pages, pages_layout) if own else ("row groups", groups, groups_layout)
    per_side = sqrt(layout.count)
    even = (1 + per_side * width) * (1 + per_side * height)
    if layout.count > 1 and layout.read > _WORTH_SORTING * even and not _is_ordered(parts, frame):
        results.append(
            "sort the rows of the file with geo.sort, or write_table with geometry={COLUMN: {'order': 'hilbert'}} "
            "(ParquetWriter and pqext convert sort within row groups only): a query would read about "
            f"{even:,.0f} {name} of an even grid instead of {layout.read:,.0f}"
        )
    if not own and pages_layout.count >= 2 * groups_layout.count:
        results.append("pages have no boxes, so queries read complete row groups; set the writer option page_boxes")
    mean = rows / max(pages_layout.count, 1)
    if mean > 2 * PAGE_ROWS and pages_layout.rows_read > 3 * rows * width * height:
        results.append(
            f"write smaller pages, page_rows={PAGE_ROWS:,} instead of {mean:,.0f} on average, to read fewer rows"
        )
    return tuple(results)


def _is_ordered(parts: list[Part], frame: _Frame) -> bool:
    """Return whether the rows of a file are already ordered spatially.

    Overlap then comes from the size of the geometries. Rows are ordered if the centers of the boxes spread in both
    directions, and neighbors in the file are neighbors in space.
    """
    west, east, south, north = frame.relative([box for part in parts if (box := part.box) is not None])
    middles = np.column_stack([west + east + (west > east), south + north]) / 2
    if len(middles) < _FEWEST or (np.ptp(middles, axis=0) < _SPREAD).any():
        return False
    steps = np.hypot(*np.diff(middles, axis=0).T).mean()
    apart = np.hypot(*(middles - np.roll(middles, len(middles) // 2, axis=0)).T).mean()
    return bool(steps < _NEAR * apart)
