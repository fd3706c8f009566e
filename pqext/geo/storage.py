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
    """Storage of a geometry column. ``check_range`` is the handling of coordinates out of range.

    ``order`` is the curve along which the column orders the file's rows. ``encoding`` is the GeoArrow layout of
    the input, if it is not WKB. ``is_oriented`` makes outer rings counterclockwise. ``epoch`` is the decimal year of
    coordinates in a dynamic CRS.
    """

    type: GeospatialType
    check_range: CheckRange
    order: Curve | None = None
    encoding: str | None = None
    is_oriented: bool = False
    epoch: float | None = None

    def wkb(self, values: GeometryArray) -> GeometryArray:
        """The values, as users give them, as WKB."""
        return as_wkb(values, self.encoding)

    @classmethod
    def from_storage(cls, storage: Storage) -> GeometryStorage:
        """Wrap ``storage`` in this extension type. Raises TypeError if another handler chose it."""
        if not isinstance(storage, cls):
            raise TypeError("a geometry column needs the GeometryStorage that storage() returned")
        return storage
