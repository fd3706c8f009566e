"""Statistics of data files in the manifests of an Iceberg table.

Spec: Apache Iceberg, "Data File Fields", Appendix D, "Binary single-value serialization". Bounds have the type that the
column had when the file was written. It may be narrower than the current type.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from pqext.core.format.metadata import BoundingBox, GeospatialStatistics
from pqext.core.format.predicate import Bounds, Predicate, Value, may_contain
from pqext.tables.iceberg.partitions import DAY, UNITS, Bucket
from pqext.tables.log_statistics import UNKNOWN

_FLOATS = {4: "<f", 8: "<d"}


@dataclass(frozen=True, slots=True)
class Column:
    """Id and type of a column of the table. The type is text, as in table metadata."""

    id: int
    type: str


@dataclass(frozen=True)
class IcebergLogStatistics:
    """Statistics of a data file in a manifest. ``columns`` maps paths to the columns of the table.

    ``partition_bounds`` and ``buckets`` are the bounds and the buckets that follow from the partition of the file, by
    field id.
    """

    columns: Mapping[tuple[str, ...], Column]
    num_rows: int
    value_counts: Mapping[int, int]
    null_counts: Mapping[int, int]
    nan_counts: Mapping[int, int]
    lower: Mapping[int, bytes]
    upper: Mapping[int, bytes]
    partition_bounds: Mapping[int, Bounds] = field(default_factory=dict)
    buckets: Mapping[int, Sequence[Bucket]] = field(default_factory=dict)

    def bounds(self, path: tuple[str, ...]) -> Bounds:
        """Return the bounds of a column."""
        column = self.columns.get(path)
        if column is None:
            return UNKNOWN
        low, high = self._range(column)
        result = Bounds(low, high, *self._counts(column.id), self._has_nan(column))
        partition = self.partition_bounds.get(column.id)
        return result if partition is None else _narrow(result, partition)

    def _range(self, column: Column) -> tuple[Value | None, Value | None]:
        stored = self.lower.get(column.id), self.upper.get(column.id)
        if column.type == "uuid":
            return _uuid_range(*stored)
        low, high = (None if bound is None else decode_bound(column.type, bound) for bound in stored)
        return low, high

    def _counts(self, id: int) -> tuple[int | None, int | None]:
        """Return the null count and the value count of a column; None for both if a row has no value or several."""
        nulls, values = self.null_counts.get(id), self.value_counts.get(id)
        if nulls is None or values != self.num_rows or not 0 <= nulls <= values:
            return None, None
        return nulls, values

    def _has_nan(self, column: Column) -> bool | None:
        if column.type not in ("float", "double"):
            return False
        count = self.nan_counts.get(column.id)
        return None if count is None else count > 0

    def variant_bounds(self, path: tuple[str, ...]) -> tuple[bytes | None, bytes | None]:
        """Return the lower and upper bound of a VARIANT column as bytes; None for an unknown bound."""
        column = self.columns.get(path)
        return (None, None) if column is None else (self.lower.get(column.id), self.upper.get(column.id))

    def covers(self, columns: Collection[str]) -> bool:
        """Return False, because Iceberg has geometry bounds instead of covering columns."""
        return False

    def box(self, path: tuple[str, ...]) -> GeospatialStatistics | None:
        """Return the bounding box of a geometry column; None if unknown."""
        column = self.columns.get(path)
        if column is None or not column.type.startswith(("geometry", "geography")):
            return None
        low, high = (_corner(bounds.get(column.id)) for bounds in (self.lower, self.upper))
        if low is None or high is None:
            return None
        if low[1] > high[1] or (low[0] > high[0] and column.type.startswith("geometry")):
            return None
        return GeospatialStatistics(bbox=BoundingBox(xmin=low[0], xmax=high[0], ymin=low[1], ymax=high[1]))

    def may_contain(self, path: tuple[str, ...], predicate: Predicate) -> bool:
        """Return False if bucket partitions prove that the file contains no value of an equality ``predicate``."""
        column = self.columns.get(path)
        if column is None:
            return True
        return all(may_contain(predicate, bucket.may_contain) for bucket in self.buckets.get(column.id, ()))


def decode_bound(type: str, bound: bytes) -> Value | None:
    """Decode a column bound to comparison form. Return None for NaN, invalid bytes, and types without an order."""
    size = len(bound)
    if type in ("string", "binary") or type.startswith("fixed["):
        return bound
    if type.startswith("decimal("):
        scale = int(type.removesuffix(")").rpartition(",")[2])
        return Decimal(int.from_bytes(bound, "big", signed=True)).scaleb(-scale) if 0 < size <= 16 else None
    if type == "boolean":
        return bound != b"\0" if size == 1 else None
    if type in ("float", "double"):
        number: float | None = struct.unpack(_FLOATS[size], bound)[0] if size in _FLOATS else None
        return None if number is None or math.isnan(number) else number
    integer = int.from_bytes(bound, "little", signed=True)
    if type in ("int", "date"):
        return integer if size == 4 else None
    if type == "long":
        return integer if size in (4, 8) else None
    if type in UNITS:
        if size == 4 and type != "time":  # the column was a date
            return integer * DAY
        return integer * UNITS[type] if size == 8 else None
    return None


def _uuid_range(low: bytes | None, high: bytes | None) -> tuple[bytes | None, bytes | None]:
    """Widen UUID bounds to be valid in both orders that writers use: by bytes, and by pairs of signed integers."""
    if low is None or high is None or len(low) != 16 or len(high) != 16:
        return None, None
    if (low[0] ^ high[0]) & 0x80 or low[:8] > high[:8]:
        return None, None
    return low[:8] + bytes(8), high[:8] + b"\xff" * 8


def _corner(bound: bytes | None) -> tuple[float, float] | None:
    """Decode x and y of a geometry bound, which may also contain z and m; None if invalid."""
    if bound is None or len(bound) not in (16, 24, 32):
        return None
    x, y = struct.unpack_from("<2d", bound)
    return None if math.isnan(x) or math.isnan(y) else (x, y)


def _narrow(bounds: Bounds, partition: Bounds) -> Bounds:
    """Intersect the bounds of a column in the statistics with its bounds in the file's partition."""
    if partition.null_count:
        return partition
    low: Any = bounds.minimum
    high: Any = bounds.maximum
    if partition.minimum is not None and (low is None or low < partition.minimum):
        low = partition.minimum
    if partition.maximum is not None and (high is None or high > partition.maximum):
        high = partition.maximum
    return replace(bounds, minimum=low, maximum=high, null_count=partition.null_count, num_values=partition.num_values)
