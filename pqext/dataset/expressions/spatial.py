"""Spatial predicates, with their query geometry or box in canonical form.

``pqext.geo`` is imported only when a spatial expression is created, because importing shapely is slow.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import pyarrow as pa

from pqext.geo.predicates.boxes import OPERATIONS, Operation

if TYPE_CHECKING:
    from pqext.geo.predicates.predicate import SpatialPredicate

Result = TypeVar("Result", covariant=True)
"""The result of a spatial predicate: an expression in Python, a column in Spark."""

Box: TypeAlias = tuple[float, float, float, float]
Geometry: TypeAlias = Box | bytes
"""A box ``(xmin, ymin, xmax, ymax)``, crossing the antimeridian when ``xmin > xmax``, or ISO WKB."""


def canonical_geometry(operation: str, geometry: Any) -> Geometry:
    """Return ``geometry`` as a box tuple or ISO WKB.

    It may be a sequence of four numbers, a ``pqext.geo.BoundingBox``, WKB or a shapely geometry.

    Raises ``ValueError`` for boxes that are infinite or upside down, for invalid WKB and for unknown operations, and
    ``TypeError`` for all other types.
    """
    from pqext.geo.wkb import from_shapely, to_iso_wkb, to_shapely

    if operation not in OPERATIONS:
        raise ValueError(f"unknown operation {operation!r}; use one of {', '.join(OPERATIONS)}")
    if isinstance(geometry, bytes | bytearray | memoryview):
        iso = to_iso_wkb(pa.array([bytes(geometry)], pa.binary()))
        to_shapely(iso)
        return bytes(iso[0].as_py())
    if isinstance(getattr(geometry, "geom_type", None), str):  # geom_type of a GeoSeries is a series
        return bytes(from_shapely([geometry])[0].as_py())
    return _box(geometry)


def canonical_distance(operation: str, distance: Any) -> float | None:
    """Return the distance of ``dwithin``, and None for all other operations.

    Raises the errors of ``pqext.geo.SpatialPredicate``.
    """
    from pqext.geo.predicates.query import as_distance

    return as_distance(operation, distance)


def _box(geometry: Any) -> Box:
    from pqext.geo.predicates.query import as_box

    if not hasattr(geometry, "xmin"):
        kind = type(geometry).__name__
        try:
            geometry = tuple(map(float, geometry))
        except (TypeError, ValueError):
            geometry = ()
        except OverflowError:
            raise ValueError("the bounds of a box must be finite") from None
        if len(geometry) != 4:
            hint = "; shapely.from_wkt reads WKT" if kind == "str" else ""
            if kind in ("GeoSeries", "GeoDataFrame"):
                hint = "; union_all() combines its geometries"
            if len(geometry) == 2:
                hint = "; a point is shapely.Point(x, y)"
            elif geometry:
                hint = f" of {len(geometry)} numbers"
            raise TypeError(f"expected a box (xmin, ymin, xmax, ymax), WKB or a shapely geometry, not {kind}{hint}")
    box = as_box(geometry)
    return (float(box.xmin), float(box.ymin), float(box.xmax), float(box.ymax))


def geometry_text(geometry: Geometry) -> str:
    """Format a box or geometry as text, truncated if it is long."""
    if not isinstance(geometry, bytes):
        return f"box ({', '.join(map(repr, geometry))})"
    import shapely

    text = str(shapely.to_wkt(shapely.from_wkb(geometry), rounding_precision=6))
    return text if len(text) <= 80 else text[:77] + "..."


class SpatialPredicates(Generic[Result]):
    """Spatial predicates of a geometry column. Their results are null for null geometries.

    ``geometry`` is a box ``(xmin, ymin, xmax, ymax)``, WKB or a shapely geometry, in the column's coordinates. Edges
    are straight lines for GEOMETRY. For GEOGRAPHY, the edges of the column and of ``geometry`` follow the column's edge
    algorithm. A box on GEOGRAPHY covers the area between two meridians, eastward from ``xmin``, and two parallels. The
    interior of a polygon, including the result of ``shapely.box``, is its smaller side. A warning is raised for
    polygons that cover a different area on a planar map.
    """

    __slots__ = ()

    @abstractmethod
    def _spatial(self, operation: Operation, geometry: Any, distance: float | None = None) -> Result: ...

    def intersects(self, geometry: Any) -> Result:
        """Test whether the geometry shares a point with ``geometry``: a box, WKB or a shapely geometry.

        A box ``(xmin, ymin, xmax, ymax)`` with ``xmin > xmax`` crosses the antimeridian.
        """
        return self._spatial("intersects", geometry)

    def disjoint(self, geometry: Any) -> Result:
        """Test whether the geometry shares no point with ``geometry``."""
        return self._spatial("disjoint", geometry)

    def within(self, geometry: Any) -> Result:
        """Test whether the geometry lies within ``geometry`` and not only on its boundary."""
        return self._spatial("within", geometry)

    def contains(self, geometry: Any) -> Result:
        """Test whether ``geometry`` lies within the geometry and not only on its boundary."""
        return self._spatial("contains", geometry)

    def touches(self, geometry: Any) -> Result:
        """Test whether the geometries share points but their interiors do not."""
        return self._spatial("touches", geometry)

    def crosses(self, geometry: Any) -> Result:
        """Test whether the geometry lies partly inside and partly outside ``geometry``.

        The intersection must have a lower dimension than the geometry of higher dimension.
        """
        return self._spatial("crosses", geometry)

    def overlaps(self, geometry: Any) -> Result:
        """Test whether the geometries and their intersection have the same dimension, but neither covers the other."""
        return self._spatial("overlaps", geometry)

    def covers(self, geometry: Any) -> Result:
        """Test whether ``geometry`` lies within the geometry or on its boundary."""
        return self._spatial("covers", geometry)

    def covered_by(self, geometry: Any) -> Result:
        """Test whether the geometry lies within ``geometry`` or on its boundary."""
        return self._spatial("covered_by", geometry)

    def geom_equals(self, geometry: Any) -> Result:
        """Test whether both geometries are the same set of points. (:meth:`equals` compares operands.)"""
        return self._spatial("equals", geometry)

    def dwithin(self, geometry: Any, distance: float) -> Result:
        """Test whether the distance between the geometry and ``geometry`` is at most ``distance``.

        ``distance`` is in units of the coordinates for GEOMETRY, in metres on the ellipsoid for GEOGRAPHY.
        """
        return self._spatial("dwithin", geometry, distance)


_LARGE = 16 << 10
"""Bytes of WKB above which fewer predicates are cached, because each thread copies and indexes the geometry."""


def predicate(operation: Operation, geometry: Geometry, distance: float | None) -> SpatialPredicate:
    """Return the cached ``pqext.geo`` predicate that evaluates ``operation`` on rows and row groups."""
    is_large = isinstance(geometry, bytes) and len(geometry) > _LARGE
    return (_large_predicate if is_large else _small_predicate)(operation, geometry, distance)


def _make_predicate(operation: Operation, geometry: Geometry, distance: float | None) -> SpatialPredicate:
    from pqext.geo.predicates.predicate import SpatialPredicate

    return SpatialPredicate(operation, query_of(geometry), distance)


def query_of(geometry: Geometry) -> Any:
    """Convert a canonical geometry to a box or a shapely geometry."""
    from pqext.geo.wkb import to_shapely

    return to_shapely(pa.array([geometry], pa.binary()))[0] if isinstance(geometry, bytes) else geometry


_small_predicate = lru_cache(maxsize=256)(_make_predicate)
_large_predicate = lru_cache(maxsize=16)(_make_predicate)
