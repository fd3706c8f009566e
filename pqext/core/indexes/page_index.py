"""Page index: location, rows and bounds of each page of a chunk.

Implements "Parquet page index: Layout to Support Page Skipping". ColumnIndex and OffsetIndex are stored near the
footer, separately from the pages. An index that contradicts itself or its chunk is rejected completely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import ge, le
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError
from pqext.core.format.metadata import BoundaryOrder, ColumnIndex, OffsetIndex
from pqext.core.format.predicate import COMPARE, Bounds, Comparison, IsIn, Operator, Predicate, Value, may_match
from pqext.core.kernels.encode.page_boundaries import PageBoundaries
from pqext.core.kernels.thrift import page_index as page_index_kernel
from pqext.core.kernels.thrift.page_index import read_page_locations
from pqext.core.schema.orders import BoundOrder
from pqext.core.schema.row_ranges import RowRanges, rows_of_pages
from pqext.core.schema.statistics import (
    PageExtremes,
    bounds_of,
    bounds_of_values,
    is_truncatable,
    plausible_null_count,
    truncate_lower,
    truncate_upper,
)

if TYPE_CHECKING:
    from pqext.core.schema.facts import PageFacts
    from pqext.core.schema.nodes import SchemaNode

_Counts = NDArray[np.int64]
_EXACT = 1 << 53
"""Maximum integer up to which a double represents every integer exactly."""


def column_index(
    order: BoundOrder, pages: PageExtremes, boundaries: PageBoundaries, definition: _Counts | None,
    repetition: _Counts | None, bound_bytes: int,
) -> bytes | None:
    """Return the serialised column index of the pages in ``boundaries``, with level histograms if available.

    Bounds of byte arrays are truncated to ``bound_bytes``. Return None if the mandatory bounds do not
    exist, because the order is undefined, or because a page contains only NaN and ``order`` defines no bounds for NaN.
    """
    if not order.is_defined:
        return None
    minima, maxima = list(pages.minima), list(pages.maxima)
    if None in minima or None in maxima:
        for page in range(boundaries.count):
            if minima[page] is None or maxima[page] is None:
                if boundaries.page(page)[2]:
                    return None
                minima[page] = maxima[page] = b""
    lows, highs = cast("list[bytes]", minima), cast("list[bytes]", maxima)
    if is_truncatable(order.leaf):
        lows = [low if len(low) <= bound_bytes else truncate_lower(order.leaf, low, bound_bytes)[0] for low in lows]
        highs = [
            high if len(high) <= bound_bytes else truncate_upper(order.leaf, high, bound_bytes)[0] for high in highs
        ]
    boundary = BoundaryOrder.ASCENDING if boundaries.count < 2 else _boundary_order(order, lows, highs, boundaries)
    return page_index_kernel.column_index(boundaries, lows, highs, boundary, definition, repetition, pages.nan_counts)


def _boundary_order(
    order: BoundOrder, minima: Sequence[bytes], maxima: Sequence[bytes], boundaries: PageBoundaries
) -> BoundaryOrder:
    """Return the order of the minima and maxima of all pages with values."""
    starts = boundaries.starts("values")
    filled = np.flatnonzero(np.diff(starts)).tolist()
    keys = [order.keys([side[page] for page in filled]) for side in (minima, maxima)]
    for direction, follows in ((BoundaryOrder.ASCENDING, le), (BoundaryOrder.DESCENDING, ge)):
        if all(all(map(follows, side, side[1:])) for side in keys):
            return direction
    return BoundaryOrder.UNORDERED


def check_offset_index(index: OffsetIndex, chunk: tuple[int, int], num_rows: int) -> None:
    """Raise ``CorruptFileError`` unless the pages are in order, and within ``chunk`` (offset, length) and ``num_rows``.
    """
    locations = index.page_locations
    start, stop = chunk[0], chunk[0] + chunk[1]
    at, row = start, 0
    for number, page in enumerate(locations):
        if page.offset < at or page.compressed_page_size <= 0 or page.offset > stop - page.compressed_page_size:
            message = f"offset index: page {number} is outside its column chunk or overlaps the preceding page"
            raise CorruptFileError(message)
        if page.first_row_index < row or page.first_row_index >= num_rows or (not number and page.first_row_index):
            raise CorruptFileError(
                f"offset index: page {number} starts at row {page.first_row_index}, which is invalid in a row group of "
                f"{num_rows} rows"
            )
        at, row = page.offset + page.compressed_page_size, page.first_row_index
    if num_rows > 0 and not locations:
        raise CorruptFileError(f"the offset index lists no pages, but the row group has {num_rows} rows")
    sizes = index.unencoded_byte_array_data_bytes
    if sizes is not None and len(sizes) != len(locations):
        raise CorruptFileError(
            f"the offset index lists {len(locations)} pages, but byte array sizes of {len(sizes)} pages"
        )


def check_column_index(index: ColumnIndex, pages: int | None, node: SchemaNode) -> None:
    """Raise ``CorruptFileError`` unless all lists have the same number of pages.

    ``pages`` is the required number. If it is None, any number is accepted.
    """
    count = len(index.null_pages)
    if pages is not None and count != pages:
        raise CorruptFileError(f"the column index has {count} pages, but the offset index has {pages}")
    lists = (index.min_values, index.max_values, index.null_counts, index.nan_counts)
    histograms = (
        (index.repetition_level_histograms, node.max_repetition_level),
        (index.definition_level_histograms, node.max_definition_level),
    )
    # Histograms of levels that are always 0 may be empty.
    if any(values is not None and len(values) != count for values in lists) or any(
        values and len(values) != count * (highest + 1) for values, highest in histograms
    ):
        raise CorruptFileError("the lists of the column index differ in length")


def check_agreement(pages: IndexedPages, index: ColumnIndex, chunk: Bounds, exact: tuple[bool, bool]) -> None:
    """Raise ``CorruptFileError`` if a checked column index contradicts the rows of ``pages`` or the chunk's bounds.

    The two values of ``exact`` are true if the minimum and the maximum of ``chunk`` are exact.
    """
    counts, rows = index.null_counts, pages.row_counts
    if counts and min(counts) >= 0 and chunk.null_count is not None and sum(counts) != chunk.null_count:
        raise CorruptFileError(
            f"the column index counts {sum(counts)} nulls, but the statistics count {chunk.null_count}"
        )
    started = index.definition_level_histograms if pages.is_flat else index.repetition_level_histograms
    if started:
        step = len(started) // len(rows)
        parts = [started[at : at + step] for at in range(0, len(started), step)]
        if rows != [sum(part) if pages.is_flat else part[0] for part in parts]:
            raise CorruptFileError("the level histograms of the column index do not match the rows of its offset index")
        if pages.is_flat and counts and list(counts) != [sum(part[:-1]) for part in parts] and min(counts) >= 0:
            raise CorruptFileError("the level histograms of the column index do not match its null counts")
    numbers = pages.number_bounds
    if numbers is not None:
        lows: list[Value | None] = [numbers.minimum.min().item()] if len(pages) else []
        highs: list[Value | None] = [numbers.maximum.max().item()] if len(pages) else []
    else:
        held = [bounds for bounds in pages.bounds if not bounds.all_null]
        lows, highs = [bounds.minimum for bounds in held], [bounds.maximum for bounds in held]
    sides = ((exact[0], chunk.minimum, lows, COMPARE["<="]), (exact[1], chunk.maximum, highs, COMPARE[">="]))
    for known, bound, result, reaches in sides:
        if known and bound is not None and None not in result and not any(reaches(item, bound) for item in result):
            raise CorruptFileError("the bounds of the column index are narrower than the chunk's statistics")


@dataclass(frozen=True, slots=True)
class PageLocations:
    """Offsets, sizes (including headers) and first rows of pages: an offset index without an object per page."""

    offsets: list[int]
    sizes: list[int]
    starts: list[int]

    @classmethod
    def read(cls, raw: Any, chunk: tuple[int, int], num_rows: int) -> PageLocations | None:
        """Parse a serialised offset index.

        Return None if the index is unusual or wrong. The caller then decodes and checks the index.
        """
        start, stop = chunk[0], chunk[0] + chunk[1]
        if not 0 <= start <= stop < 1 << 62 or not 0 <= num_rows < 1 << 62:
            return None
        page_locations = read_page_locations(raw, start, stop, num_rows)
        return None if page_locations is None else cls(*page_locations)

    @classmethod
    def from_index(cls, index: OffsetIndex) -> PageLocations:
        """Convert a checked offset index."""
        pages = index.page_locations
        return cls(
            [page.offset for page in pages],
            [page.compressed_page_size for page in pages],
            [page.first_row_index for page in pages],
        )


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """Bounds of all pages of a numeric column as arrays, if no page is null and all bounds are known.

    Minima and maxima are inclusive. ``may_be_nan`` is true for pages that may contain NaN.
    """

    minimum: NDArray[Any]
    maximum: NDArray[Any]
    may_be_nan: NDArray[np.bool_]

    @classmethod
    def from_index(cls, order: BoundOrder, index: ColumnIndex) -> NumberBounds | None:
        """Return the bounds in a checked column index.

        Return None if a page is null, or a bound is unknown, not a number, or too large in nanoseconds.
        """
        stored = order.numbers
        if stored is None or any(index.null_pages):
            return None
        width = stored.itemsize
        if not all(len(raw) == width for side in (index.min_values, index.max_values) for raw in side):
            return None
        lows = np.frombuffer(b"".join(index.min_values), stored)
        highs = np.frombuffer(b"".join(index.max_values), stored)
        if not (lows <= highs).all():  # false for NaN
            return None
        if order.is_float:  # predicates are evaluated with doubles
            lows, highs = lows.astype(np.float64), highs.astype(np.float64)
        unit = order.leaf.nanoseconds
        if unit != 1:
            most = np.iinfo(np.int64).max // unit
            if len(lows) and (int(lows.min()) < -most or int(highs.max()) > most):
                return None
            lows, highs = lows.astype(np.int64) * unit, highs.astype(np.int64) * unit
        may_be_nan = np.full(len(lows), order.is_float)
        if order.is_float and index.nan_counts:
            may_be_nan = np.array(index.nan_counts) != 0
        return cls(lows, highs, may_be_nan)

    @property
    def may_be_null(self) -> NDArray[np.bool_]:
        """Always true, since null counts are not evaluated."""
        return np.ones(len(self.minimum), np.bool_)

    may_be_valid = may_be_null
    """Always true, since no page contains only nulls."""

    def compare(self, bound: NDArray[Any], operator: Operator, value: Any) -> NDArray[np.bool_]:
        """Compare ``bound`` with a number that its data type can represent."""
        return cast("NDArray[np.bool_]", COMPARE[operator](bound, bound.dtype.type(value)))

    def may_contain_any(self, values: tuple[Any, ...], ascending: bool) -> NDArray[np.bool_]:
        """Return, for each page, whether any of the ascending ``values`` lies between its bounds."""
        numbers = np.array(values, self.minimum.dtype)
        return np.searchsorted(numbers, self.maximum, "right") > np.searchsorted(numbers, self.minimum)

    def matching_pages(self, predicate: Predicate) -> list[int] | None:
        """Return the pages that may contain a value satisfying ``predicate``; None if arrays cannot evaluate the
        predicate.
        """
        match predicate:
            case Comparison() if self._are_exact((predicate.value,)):
                return np.flatnonzero(may_match(predicate, self)).tolist()
            case IsIn(ascending=True) if self._are_exact(predicate.values):
                return np.flatnonzero(may_match(predicate, self)).tolist()
        return None

    def _are_exact(self, values: Sequence[Value]) -> bool:
        """Return whether the data type of the bounds represents the ascending ``values`` exactly."""
        kinds = set(map(type, values))
        if not kinds or not kinds <= ({int, float} if self.minimum.dtype.kind == "f" else {int}):
            return False
        low, high = cast("tuple[float, float]", (values[0], values[-1]))  # NaN is last
        if kinds == {float}:
            return high == high
        limits = np.iinfo(self.minimum.dtype) if kinds == {int} and self.minimum.dtype.kind != "f" else None
        least, most = (-_EXACT, _EXACT) if limits is None else (limits.min, limits.max)
        return least <= low and high <= most  # false for NaN


class IndexedPages(Sequence[Bounds]):
    """Pages of one column chunk according to its checked indexes. As a sequence, it contains the bounds of each page.

    ``num_rows`` is the number of rows of the row group, and ``starts`` contains the first row of each page. Without a
    column index the bounds are unknown.
    """

    def __init__(
        self,
        node: SchemaNode,
        order: BoundOrder,
        offsets: OffsetIndex | PageLocations,
        columns: ColumnIndex | None,
        num_rows: int,
    ) -> None:
        self._node = node
        self._order = order
        self._columns = columns
        self._places = offsets if isinstance(offsets, PageLocations) else PageLocations.from_index(offsets)
        self.starts = self._places.starts
        self.num_rows = num_rows

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, page: Any) -> Any:
        return self.bounds[page]

    @property
    def is_flat(self) -> bool:
        """Whether every row has exactly one value or null."""
        return not self._node.max_repetition_level

    @property
    def has_bounds(self) -> bool:
        """Whether the chunk has a column index with bounds of the pages."""
        return self._columns is not None

    def covers_bytes_to(self, stop: int) -> bool:
        """Return whether the pages fill all bytes from the first page to offset ``stop``, and every page has rows."""
        offsets, sizes = self._places.offsets, self._places.sizes
        return not offsets or (sum(sizes) == stop - offsets[0] and len(set(self.starts)) == len(offsets))

    @cached_property
    def row_counts(self) -> list[int]:
        """Number of rows of each page."""
        stops = [*self.starts[1:], self.num_rows]
        return [max(stop - start, 0) for start, stop in zip(self.starts, stops, strict=True)]

    def rows(self, page: int) -> range:
        """Return the rows in ``page``, as a range of positions in the row group."""
        stop = self.starts[page + 1] if page + 1 < len(self.starts) else self.num_rows
        return range(self.starts[page], stop)

    def byte_range(self, page: int) -> tuple[int, int]:
        """Return offset and length of ``page`` in the file, including its header."""
        return self._places.offsets[page], self._places.sizes[page]

    @cached_property
    def bounds(self) -> list[Bounds]:
        """Bounds of each page."""
        index = self._columns
        if index is None:
            has_nan = None if self._order.is_float else False
            return [Bounds(num_values=self._entries(page), has_nan=has_nan) for page in range(len(self))]
        order, known = self._order, [page for page, is_null in enumerate(index.null_pages) if not is_null]
        lows: Iterable[Value | None] = repeat(None)
        highs = lows
        if order.is_defined:
            lows = order.values([index.min_values[page] for page in known])
            highs = order.values([index.max_values[page] for page in known])
        of_values = dict(zip(known, zip(lows, highs, strict=False), strict=False))
        return [self._bounds(index, page, of_values.get(page)) for page in range(len(self))]

    @cached_property
    def number_bounds(self) -> NumberBounds | None:
        """Bounds of all pages as arrays; None if they are not numbers or a page is null."""
        return None if self._columns is None else NumberBounds.from_index(self._order, self._columns)

    def _entries(self, page: int) -> int | None:
        """Return the number of values of a page, including nulls; None if it is unknown."""
        if not self._node.max_repetition_level:
            return self.row_counts[page]
        counts = self._columns.definition_level_histograms if self._columns is not None else None
        if not counts:
            return None
        levels = self._node.max_definition_level + 1
        histogram = counts[page * levels : (page + 1) * levels]
        return sum(histogram) if min(histogram) >= 0 else None

    def _bounds(self, index: ColumnIndex, page: int, values: tuple[Value | None, Value | None] | None) -> Bounds:
        """Return the bounds of a page. ``values`` are the decoded minimum and maximum; None for a null page."""
        entries = self._entries(page)
        nulls = index.null_counts[page] if index.null_counts else None
        nans = index.nan_counts[page] if index.nan_counts else None
        stored = index.min_values[page], index.max_values[page]
        if values is None:
            if any(stored) or (nulls is not None and (nulls <= 0 or (entries is not None and nulls != entries))):
                # Contradictory: some versions of parquet-java mark pages as null if nothing is known about them.
                return bounds_of(self._order, None, None, None, nans, entries)
            known = nulls if nulls is not None else entries if entries is not None else self.row_counts[page]
            return Bounds(null_count=known, num_values=known)
        return bounds_of_values(self._order, *values, plausible_null_count(stored, nulls, entries), nans, entries)

    def matching_pages(self, predicate: Predicate) -> list[int]:
        """Return the pages, in order, that may contain a value satisfying ``predicate``.

        All other pages can be skipped.
        """
        result = None if self.number_bounds is None else self.number_bounds.matching_pages(predicate)
        if result is not None:
            return result
        return [page for page, bounds in enumerate(self.bounds) if may_match(predicate, bounds)]


def matching_rows(pages: PageFacts, predicate: Predicate) -> RowRanges:
    """Return the rows of the row group that may satisfy ``predicate``. All other rows can be skipped.

    The results of several columns can be combined with :func:`pqext.core.schema.row_ranges.intersection` and ``union``.
    """
    return rows_of_pages(pages, pages.matching_pages(predicate))
