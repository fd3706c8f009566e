"""Storage of a geometry column in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pqext.core.schema.annotations import Storage
from pqext.geo.geoarrow import as_wkb
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.geo.coordinate_range import CheckRange
    from pqext.geo.wkb import GeometryArray

Curve = Literal["hilbert", "zorder"]
"""Curves along which rows can be ordered."""


@dataclass(frozen=True, slots=True)
class GeometryStorage(Storage):
    """Storage of a geometry column. ``check_range`` controls how coordinates out of range are handled.

    ``order`` is the curve along which the rows of the file are ordered by this column. ``encoding`` is the GeoArrow
    layout of the input, if it is not WKB. ``is_oriented`` makes outer rings counterclockwise. ``epoch`` is the decimal
    year of coordinates in a dynamic CRS.
    """

    type: GeospatialType
    check_range: CheckRange
    order: Curve | None = None
    encoding: str | None = None
    is_oriented: bool = False
    epoch: float | None = None

    def wkb(self, values: GeometryArray) -> GeometryArray:
        """Return the values as WKB, converting the input layout."""
        return as_wkb(values, self.encoding)

    @classmethod
    def from_storage(cls, storage: Storage) -> GeometryStorage:
        """Return ``storage`` as a GeometryStorage. Raises TypeError if another handler created it."""
        if not isinstance(storage, cls):
            raise TypeError(f"expected the GeometryStorage of a geometry column, not {type(storage).__name__}")
        return storage
