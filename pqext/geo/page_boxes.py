"""Bounding boxes of the pages of a geometry column, stored as an extension of the column chunk's metadata.

Parquet has boxes for chunks only. Page boxes are a framed extension (:mod:`pqext.core.format.extension.framing`) in the
chunk's ColumnMetaData, or an entry of a container of extensions, with this payload:

    1 byte    version, 1
    4 bytes   number of pages, little-endian
    32 bytes  the frame, around all pages: xmin, xmax, ymin, ymax as little-endian doubles
    8 a page  xmin, xmax, ymin, ymax as little-endian 16-bit codes within the frame

Code ``c`` means ``low * (1 - c / 65535) + high * (c / 65535)``, computed in doubles. Boxes are rounded outward.
They may wrap if the frame is the circle of longitudes, -180 to 180. A page without a box has a ymin of 1 (only nulls),
2 (no coordinates either) or 3 (unknown), and zeros otherwise.
The rules are in ``specs/geospatial.md``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, GeometryError, LimitError, UnsupportedError
from pqext.core.schema.annotations import PAGE_BOXES
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import box_within_range
from pqext.geo.kernels.wraparound import Longitudes
from pqext.geo.summary import EdgeBoxes, enclosing_box, is_planar_on_globe
from pqext.geo.wkb import columns

if TYPE_CHECKING:
    from pqext.core.format.metadata import GeospatialStatistics
    from pqext.core.schema.facts import LeafFacts, PageFacts
    from pqext.geo.kernels.boxes import Summary
    from pqext.geo.predicates.predicate import SpatialPredicate
    from pqext.geo.types import GeospatialType

VERSION = 1
HEADER = struct.Struct("<BI4d")
CODES = 65535
PAGE_BYTES = 8
MAX_SEARCHED_SHARE = 1 / 8
"""Maximum share of a chunk's pages that are searched for their own gaps; the search costs as much as computing their
boxes.
"""
_NULLS, _EMPTY, _UNKNOWN = 1, 2, 3
_OUTWARD = np.array([[-1], [1], [-1], [1]])  # xmin, xmax, ymin, ymax
_BESIDE_POINTS = 0xFDFDFDFD  # the types that are not Point, in the kernel's mask

_Doubles = NDArray[np.float64]
_Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Boxes of the pages of a chunk, as arrays of equal length with finite bounds for pages that have a box.

    A box with ``xmin > xmax`` wraps around the antimeridian. ``nulls`` flags pages with only nulls, ``empty`` pages
    without coordinates, and ``unknown`` pages without information. The bounds of these pages are 0 and meaningless.
    """

    xmin: _Doubles
    xmax: _Doubles
    ymin: _Doubles
    ymax: _Doubles
    nulls: _Flags
    empty: _Flags
    unknown: _Flags

    def __len__(self) -> int:
        return len(self.xmin)

    @property
    def has_box(self) -> _Flags:
        """Mask of the pages that have a box."""
        flags: _Flags = ~(self.nulls | self.empty | self.unknown)
        return flags

    @property
    def wraps(self) -> bool:
        """Whether any box crosses the antimeridian."""
        return bool((self.xmin > self.xmax).any())

    def contain_x(self, x: float) -> bool:
        """Return whether any box contains ``x``. The values 180 and -180 are the same longitude."""
        result = np.zeros(len(self), dtype=np.bool_)
        for place in {x, -x} if abs(x) == 180 else {x}:
            east, west = self.xmin <= place, place <= self.xmax
            result |= np.where(self.xmin <= self.xmax, east & west, east | west)
        return bool(result[self.has_box].any())

    def box(self, page: int) -> BoundingBox:
        """Return the box of a page that has a box."""
        return BoundingBox(*(float(line[page]) for line in (self.xmin, self.xmax, self.ymin, self.ymax)))

    @classmethod
    def from_bounds(cls, bounds: _Doubles, nulls: _Flags) -> PageBoxes:
        """Create boxes from ``bounds``, with rows xmin, xmax, ymin, ymax, and a mask of the pages with only nulls.

        Pages with NaN bounds have no coordinates. Pages with infinite bounds are unknown.
        """
        missing: _Flags = np.logical_or.reduce(np.isnan(bounds))
        unknown: _Flags = np.logical_or.reduce(np.isinf(bounds)) & ~missing
        xmin, xmax, ymin, ymax = np.where(missing | unknown, 0.0, bounds)
        return cls(xmin, xmax, ymin, ymax, nulls=nulls & missing, empty=missing & ~nulls, unknown=unknown)


@dataclass(frozen=True, slots=True)
class PageSummaries:
    """Summary of the values of each page. Page ``i`` contains the rows from ``starts[i]`` to ``starts[i + 1]``.

    ``bounds`` has the rows xmin, xmax, ymin, ymax, with NaN for pages without values. ``types`` is the kernel's bit
    mask, with bit 8 * dims + base for each type. ``rows`` is the number of values that are not null.
    """

    starts: NDArray[np.int64]
    bounds: _Doubles
    types: NDArray[np.uint32]
    rows: NDArray[np.int64]


def summarize_pages(summary: Summary, starts: NDArray[np.int64]) -> PageSummaries:
    """Summarise the values of each page, given the summary of their chunk and the first row of each page."""
    count = len(starts) - 1
    pages = PageSummaries(starts, np.empty((4, count)), np.empty(count, np.uint32), np.empty(count, np.int64))
    summary.parts(starts, pages.bounds, pages.types, pages.rows)
    return pages


def encode(boxes: PageBoxes) -> bytes | None:
    """Encode page boxes as the payload of the extension; None if no page has a box."""
    known = boxes.has_box
    if not known.any():
        return None
    west, east = (-180.0, 180.0) if boxes.wraps else (boxes.xmin[known].min(), boxes.xmax[known].max())
    south, north = boxes.ymin[known].min(), boxes.ymax[known].max()
    codes = np.zeros((4, len(boxes)), dtype=np.int64)
    bounds = np.array([boxes.xmin, boxes.xmax, boxes.ymin, boxes.ymax])[:, known]
    low, high = np.array([[west, west, south, south], [east, east, north, north]])[:, :, np.newaxis]
    codes[:, known] = _codes(bounds, low, high)
    # A wrapping box whose ends have met is the whole circle, and must not become a narrow one.
    wraps = boxes.xmin > boxes.xmax
    met = known & wraps & (codes[0] <= codes[1])
    codes[0, met], codes[1, met] = 0, CODES
    if boxes.wraps:  # boxes beyond the circle do not fit into the frame
        known &= (np.minimum(boxes.xmin, boxes.xmax) >= west) & (np.maximum(boxes.xmin, boxes.xmax) <= east)
        codes[:, ~known] = 0
    codes[2, ~known] = np.select(
        [flag[~known] for flag in (boxes.nulls, boxes.empty)], [_NULLS, _EMPTY], default=_UNKNOWN
    )
    head = HEADER.pack(VERSION, len(boxes), west, east, south, north)
    return head + codes.T.astype("<u2").tobytes()


def build_boxes(pages: PageSummaries, statistics: GeospatialStatistics, edges: EdgeBoxes) -> PageBoxes:
    """Return the boxes of a chunk's pages, given the statistics of the chunk.

    A gap in x that the chunk's box excludes is also excluded from each page box that becomes narrower. A few wide pages
    are searched for gaps of their own.
    """
    boxes = PageBoxes.from_bounds(pages.bounds, pages.rows == 0)
    if not edges.type.planar:
        boxes = _geography_boxes(boxes, pages, edges)
    if not edges.type.geographic:
        return boxes
    within = (boxes.xmin >= -180) & (boxes.xmax <= 180)
    wide = np.flatnonzero(boxes.has_box & within & (boxes.xmax - boxes.xmin > 180)).tolist()
    if edges.type.planar and len(wide) <= max(1, len(boxes) * MAX_SEARCHED_SHARE):
        for page in wide:
            longitudes = Longitudes()
            for column in columns(edges.array[pages.starts[page] : pages.starts[page + 1]]):
                longitudes.add(column)
            result = boxes.box(page).wrap_around(longitudes.widest_gap())
            boxes.xmin[page], boxes.xmax[page] = result.xmin, result.xmax
    box = statistics.bbox
    if box is not None and box.xmin > box.xmax:
        spans = boxes.has_box & (boxes.xmin <= box.xmax) & (boxes.xmax >= box.xmin)
        spans &= boxes.xmax - boxes.xmin > 360 - (box.xmin - box.xmax)
        boxes.xmin[spans], boxes.xmax[spans] = box.xmin, box.xmax
    return boxes


def _geography_boxes(boxes: PageBoxes, pages: PageSummaries, edges: EdgeBoxes) -> PageBoxes:
    """Extend boxes of vertices so that they include geodesic edges. Boxes that cannot be computed become unknown."""
    result = np.array([boxes.xmin, boxes.xmax, boxes.ymin, boxes.ymax])
    unknown = boxes.unknown.copy()
    for page in np.flatnonzero(boxes.has_box).tolist():
        planar = box_within_range(boxes.box(page))
        if planar is not None and is_planar_on_globe(planar, not pages.types[page] & _BESIDE_POINTS):
            continue
        part = slice(pages.starts[page], pages.starts[page + 1])
        try:
            box = enclosing_box([values[:, part] for values in edges.parts]) if planar is not None else None
        except GeometryError:
            box = None
        unknown[page] = box is None
        if box is not None:
            result[:, page] = box.xmin, box.xmax, box.ymin, box.ymax
    xmin, xmax, ymin, ymax = result
    return PageBoxes(xmin, xmax, ymin, ymax, nulls=boxes.nulls, empty=boxes.empty, unknown=unknown)


def may_match(boxes: PageBoxes, predicate: SpatialPredicate, type: GeospatialType) -> _Flags:
    """Return, for each page, whether a row may satisfy ``predicate``; False if all rows are null."""
    result = predicate.may_match_boxes(boxes.xmin, boxes.xmax, boxes.ymin, boxes.ymax, type)
    result[boxes.unknown] = True
    result[boxes.nulls] = False
    result[boxes.empty] = predicate.keeps_empty
    return result


def _codes(bounds: _Doubles, low: _Doubles, high: _Doubles) -> NDArray[np.int64]:
    """Encode bounds, as rows xmin, xmax, ymin, ymax, as codes within the frame. Codes are rounded outward."""
    # Halves, because the frame may be wider than the largest double.
    span = high / 2 - low / 2
    share = np.clip((bounds / 2 - low / 2) / np.where(span > 0, span, 1.0), 0.0, 1.0) * (span > 0)
    share[::2], share[1::2] = np.floor(share[::2] * CODES), np.ceil(share[1::2] * CODES)
    codes = share.astype(np.int64)
    for _ in range(2):
        short = _is_too_narrow(codes, bounds, low, high)
        if not short.any():
            return codes
        codes = np.clip(codes + short * _OUTWARD, 0, CODES)
    return np.where(_is_too_narrow(codes, bounds, low, high), np.where(_OUTWARD > 0, CODES, 0), codes)


def _is_too_narrow(codes: NDArray[np.int64], bounds: _Doubles, low: _Doubles, high: _Doubles) -> _Flags:
    """Flag codes whose decoded values lie inside the bounds, so that the encoded box would be too small."""
    flags: _Flags = _values(codes, low, high) * _OUTWARD < bounds * _OUTWARD
    return flags


def _values(codes: NDArray[np.integer], low: float | _Doubles, high: float | _Doubles) -> _Doubles:
    """Decode codes to bounds within the frame. The lowest and highest codes are exactly the bounds of the frame."""
    share = codes / CODES
    values: _Doubles = low * (1.0 - share) + high * share
    return values


def decode(payload: bytes, pages: int) -> PageBoxes:
    """Decode the boxes of a chunk with ``pages`` pages.

    Raises ``CorruptFileError`` if the payload contradicts itself or the chunk, and ``UnsupportedError`` if the version
    is not supported.
    """
    if not payload or payload[0] != VERSION:
        if not payload:
            raise CorruptFileError("page boxes are empty; expected a version byte")
        message = f"page boxes have version {payload[0]}; the supported version is {VERSION}"
        raise UnsupportedError(message, feature="page boxes")
    if len(payload) < HEADER.size:
        raise CorruptFileError(f"page boxes have {len(payload)} bytes, but their header alone has {HEADER.size} bytes")
    _, count, west, east, south, north = HEADER.unpack_from(payload)
    if count != pages or len(payload) != HEADER.size + PAGE_BYTES * count:
        raise CorruptFileError(
            f"page boxes do not match the column chunk: {len(payload) - HEADER.size} bytes for {count} pages, "
            f"but the chunk has {pages} pages"
        )
    if not (np.isfinite([west, east, south, north]).all() and west <= east and south <= north):
        raise CorruptFileError(f"the frame of page boxes is invalid: x {west} to {east}, y {south} to {north}")
    codes = np.frombuffer(payload, "<u2", offset=HEADER.size).reshape(count, 4).T
    without = codes[2] > codes[3]
    kinds = codes[2]
    if (codes[:, without][[0, 1, 3]] != 0).any() or (kinds[without] > _UNKNOWN).any():
        raise CorruptFileError("a page box has its ymin above its ymax")
    if (codes[0] > codes[1]).any() and (west, east) != crs_.LONGITUDES:
        raise CorruptFileError("a page box crosses the antimeridian, but its x values are not longitudes")
    x, y = _values(codes[:2], west, east), _values(codes[2:], south, north)
    x[:, without] = y[:, without] = 0.0
    return PageBoxes(*x, *y, *(without & (kinds == kind) for kind in (_NULLS, _EMPTY, _UNKNOWN)))


def extend_beyond(box: BoundingBox, chunk: LeafFacts) -> bool:
    """Return whether the frame of the page boxes extends beyond ``box``, the box in the chunk's statistics.

    X is not compared if ``box`` wraps or the frame is the circle of longitudes. Returns False if page boxes are
    missing, corrupt or of another version.
    """
    try:
        payload = chunk.extension(PAGE_BOXES)
    except (CorruptFileError, LimitError):
        return False
    if payload is None or len(payload) < HEADER.size or payload[0] != VERSION:
        return False
    _, _, west, east, south, north = HEADER.unpack_from(payload)
    beside = not box.wraps and (west, east) != crs_.LONGITUDES and (west < box.xmin or east > box.xmax)
    return bool(beside or south < box.ymin or north > box.ymax)


def _check_agreement(boxes: PageBoxes, pages: PageFacts, chunk: LeafFacts) -> None:
    """Raise ``CorruptFileError`` if page boxes contradict the chunk's box or its null count."""
    nulls = chunk.bounds().null_count
    flagged = sum(len(pages.rows(page)) for page in np.flatnonzero(boxes.nulls).tolist())
    if pages.is_flat and nulls is not None and flagged > nulls:
        raise CorruptFileError(f"page boxes count {flagged} nulls, but the statistics count {nulls}")
    result, known = chunk.geospatial_statistics, boxes.has_box
    box = None if result is None else result.bbox
    if box is None or boxes.unknown.any():
        return
    narrower = boxes.ymin[known].min(initial=np.inf) > box.ymin or boxes.ymax[known].max(initial=-np.inf) < box.ymax
    if narrower or not (boxes.contain_x(box.xmin) and boxes.contain_x(box.xmax)):
        raise CorruptFileError("page boxes are narrower than the box of their chunk")


def read(chunk: LeafFacts) -> PageBoxes | None:
    """Read the boxes of a chunk's pages, one per page of the offset index; None if they are missing or ignored.

    Corrupt boxes raise an error if reading is strict, and are otherwise ignored with a ``DamagedIndexWarning``. Boxes
    of other versions are ignored without a warning.
    """
    pages = chunk.pages
    if pages is None:
        return None
    try:
        payload = chunk.extension(PAGE_BOXES)
        if payload is None:
            return None
        boxes = decode(payload, len(pages))
        _check_agreement(boxes, pages, chunk)
        return boxes
    except UnsupportedError:
        return None
    except (CorruptFileError, LimitError) as error:
        error.locate(column=chunk.node.dotted_path, row_group=chunk.row_group)
        chunk.ignore_corrupt("page boxes", error)
        return None
