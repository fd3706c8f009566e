"""Statistics of data files in the log of a table, and of several files merged to one file with all their rows.

A filter that matches no row of the merged file matches no row of any of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pqext.core.format.metadata import GeospatialStatistics
from pqext.core.format.predicate import Bounds, Predicate, Value
from pqext.geo.box import BoundingBox
from pqext.geo.summary import union
from pqext.tables.variant_paths import PathRange


class FileStatistics(Protocol):
    """Statistics of one data file in the log of a table."""

    @property
    def num_rows(self) -> int | None:
        """Number of rows, including deleted ones."""

    def bounds(self, path: tuple[str, ...]) -> Bounds:
        """Return the bounds of a column, in the type of the table."""

    def variant_bounds(self, path: tuple[str, ...]) -> tuple[bytes | None, bytes | None]:
        """Return the lower and upper bound of a VARIANT column as bytes; None for an unknown bound."""

    def covers(self, columns: Collection[str]) -> bool:
        """Return whether the covering boxes of all ``columns`` were computed from the geometries in the file."""

    def box(self, path: tuple[str, ...]) -> GeospatialStatistics | None:
        """Return the bounding box of a geometry column; None if unknown."""

    def may_contain(self, path: tuple[str, ...], predicate: Predicate) -> bool:
        """Return False if the buckets of the file's partition exclude all values of an equality ``predicate``."""


@dataclass(frozen=True, slots=True)
class MergedStatistics:
    """Statistics of one file with the rows of all ``files``."""

    files: Sequence[FileStatistics]

    @property
    def num_rows(self) -> int | None:
        """Number of rows, including deleted ones."""
        return _total([file.num_rows for file in self.files])

    def bounds(self, path: tuple[str, ...]) -> Bounds:
        """Return the bounds of a column."""
        return merge_bounds([file.bounds(path) for file in self.files])

    def variant_bounds(self, path: tuple[str, ...]) -> tuple[bytes | None, bytes | None]:
        """Return None for both bounds, because :func:`merge_ranges` merges decoded bounds."""
        return None, None

    def covers(self, columns: Collection[str]) -> bool:
        """Return whether the covering boxes of all ``columns`` were computed from the geometries in each file."""
        return all(file.covers(columns) for file in self.files)

    def box(self, path: tuple[str, ...]) -> GeospatialStatistics | None:
        """Return the bounding box of a geometry column; None if a box is unknown or wraps."""
        boxes = [None if box is None else box.bbox for box in (file.box(path) for file in self.files)]
        known = [BoundingBox.from_metadata(box) for box in boxes if box is not None]
        merged = union(known, geographic=False) if len(known) == len(boxes) else None
        return None if merged is None else GeospatialStatistics(bbox=merged.to_metadata())

    def may_contain(self, path: tuple[str, ...], predicate: Predicate) -> bool:
        """Return False if the buckets of all files exclude all values of an equality ``predicate``."""
        return any(file.may_contain(path, predicate) for file in self.files)


def merge_ranges(parts: Sequence[Mapping[tuple[str, ...], PathRange]]) -> dict[tuple[str, ...], PathRange]:
    """Merge the bounds of paths in several files. All files have bounds for the same paths, of the same types."""
    return {
        path: PathRange(first.type, merge_bounds([part[path].bounds for part in parts]))
        for path, first in parts[0].items()
    }


def merge_bounds(parts: Sequence[Bounds]) -> Bounds:
    """Return the bounds of the values of all ``parts``."""
    return Bounds(
        _outermost(min, [part.minimum for part in parts]),
        _outermost(max, [part.maximum for part in parts]),
        _total([part.null_count for part in parts]),
        _total([part.num_values for part in parts]),
        None if any(part.has_nan is not False for part in parts) else False,
    )


def _outermost(choose: Callable[[Sequence[Any]], Any], values: Sequence[Value | None]) -> Value | None:
    """Return the minimum or maximum of ``values``; None if a value is unknown or values are not comparable."""
    if None in values:
        return None
    try:
        result: Value = choose(values)
    except TypeError:
        return None
    return result


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
