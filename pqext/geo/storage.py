"""How a geometry column of a file is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pqext.core.schema.annotations import Storage
from pqext.geo.geoarrow import as_wkb
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.geo.coordinate_range import CheckRange
    from pqext.geo.layout.curves import Curve
    from pqext.geo.wkb import GeometryArray


@dataclass(frozen=True, slots=True)
class GeometryStorage(Storage):
    """How a geometry column is stored; ``check_range``: what is done with coordinates that are no longitude and
    latitude.

    ``order``: the curve along which the column orders the file's rows. ``encoding``: the layout of GeoArrow in which
    values are given, if not WKB.
    """

    type: GeospatialType
    check_range: CheckRange
    order: Curve | None = None
    encoding: str | None = None

    def wkb(self, values: GeometryArray) -> GeometryArray:
        """The values, as users give them, as WKB."""
        return as_wkb(values, self.encoding)

    @classmethod
    def of(cls, storage: Storage) -> GeometryStorage:
        """``storage`` as one of these. Raises TypeError for one that another handler chose."""
        if not isinstance(storage, cls):
            raise TypeError("a geometry column is stored by what its handler's storage() returned")
        return storage
