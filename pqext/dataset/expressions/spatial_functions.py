"""Functions of geometry columns in expressions, by their names in SQL: measures and constructions.

The table in :mod:`pqext.geo.functions.table` defines them. It is imported when the first function is used.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pqext.dataset.expressions.conditions import Operand, StoredOperand
from pqext.dataset.expressions.spatial import Box, canonical_geometry, geometry_text

if TYPE_CHECKING:
    from pqext.geo.functions.table import GeometryFunction

Argument: TypeAlias = Operand | Box | bytes | float | int | bool
"""A column or a computed geometry, a constant geometry as a box or ISO WKB, a number or a flag."""

Result = TypeVar("Result", covariant=True)


class SpatialFunctions(Generic[Result]):
    """Measures, properties and constructions of a geometry column, null for null.

    Measures of GEOMETRY are in units of its coordinates, measures of GEOGRAPHY in metres on the ellipsoid of its CRS.
    Constructions require GEOMETRY. Constant geometries are in the CRS of the column. A row for which GEOS fails, as for
    some invalid polygons, is an error and not null.
    """

    __slots__ = ()

    @abstractmethod
    def _spatial_value(self, function: str, *arguments: Any) -> Result: ...

    def st_area(self) -> Result:
        """The area, in square units of the coordinates, or in square metres on the ellipsoid for GEOGRAPHY.

        >>> from pqext import col
        >>> str(col("geom").st_area() > 1e6)
        'st_area(geom) > 1000000.0'
        """
        return self._spatial_value("st_area")

    def st_length(self) -> Result:
        """The length of lines and of the boundaries of polygons, in units of the coordinates or in metres."""
        return self._spatial_value("st_length")

    def st_perimeter(self) -> Result:
        """The length of the boundaries of polygons, in units of the coordinates or in metres."""
        return self._spatial_value("st_perimeter")

    def st_distance(self, other: Any) -> Result:
        """The least distance to ``other``, in units of the coordinates, or in metres for GEOGRAPHY.

        ``other`` is a shapely geometry, WKB, a box ``(xmin, ymin, xmax, ymax)`` for GEOMETRY, or another column.
        """
        return self._spatial_value("st_distance", other)

    def st_azimuth(self, other: Any) -> Result:
        """The direction from a point to the point ``other``, in radians clockwise from north."""
        return self._spatial_value("st_azimuth", other)

    def st_x(self) -> Result:
        """The X of a point; null for other geometries. Bounding boxes of row groups and pages skip rows."""
        return self._spatial_value("st_x")

    def st_y(self) -> Result:
        """The Y of a point; null for other geometries. Bounding boxes of row groups and pages skip rows."""
        return self._spatial_value("st_y")

    def st_z(self) -> Result:
        """The Z of a point; null for other geometries."""
        return self._spatial_value("st_z")

    def st_m(self) -> Result:
        """The M of a point; null for other geometries."""
        return self._spatial_value("st_m")

    def st_xmin(self) -> Result:
        """The least X of the geometry and its edges."""
        return self._spatial_value("st_xmin")

    def st_xmax(self) -> Result:
        """The greatest X of the geometry and its edges."""
        return self._spatial_value("st_xmax")

    def st_ymin(self) -> Result:
        """The least Y of the geometry and its edges."""
        return self._spatial_value("st_ymin")

    def st_ymax(self) -> Result:
        """The greatest Y of the geometry and its edges."""
        return self._spatial_value("st_ymax")

    def st_geometrytype(self) -> Result:
        """The name of the type: ``ST_Point``, ``ST_Polygon`` and so on."""
        return self._spatial_value("st_geometrytype")

    def st_npoints(self) -> Result:
        """The number of vertices."""
        return self._spatial_value("st_npoints")

    def st_isempty(self) -> Result:
        """Whether the geometry has no vertices."""
        return self._spatial_value("st_isempty")

    def st_isvalid(self) -> Result:
        """Whether the planar geometry is valid by the rules of simple features."""
        return self._spatial_value("st_isvalid")

    def st_envelope(self) -> Result:
        """The smallest rectangle around the planar geometry."""
        return self._spatial_value("st_envelope")

    def st_centroid(self) -> Result:
        """The centre of mass of the planar geometry.

        >>> from pqext import col
        >>> str(col("geom").st_centroid().st_x() < 5)
        'st_x(st_centroid(geom)) < 5'
        """
        return self._spatial_value("st_centroid")

    def st_pointonsurface(self) -> Result:
        """A point that lies on the planar geometry."""
        return self._spatial_value("st_pointonsurface")

    def st_convexhull(self) -> Result:
        """The smallest convex geometry around the planar geometry."""
        return self._spatial_value("st_convexhull")

    def st_boundary(self) -> Result:
        """The rings of a planar polygon or the ends of a line; null for collections."""
        return self._spatial_value("st_boundary")

    def st_buffer(self, distance: float, quad_segs: int = 8) -> Result:
        """The area within ``distance`` of the planar geometry, in units of the coordinates.

        ``quad_segs`` segments approximate a quarter of a circle.
        """
        return self._spatial_value("st_buffer", distance, quad_segs)

    def st_simplify(self, tolerance: float, preserve_topology: bool = True) -> Result:
        """The planar geometry with fewer vertices, at most ``tolerance`` from the original line.

        ``preserve_topology=False`` is faster and may return invalid polygons.
        """
        return self._spatial_value("st_simplify", tolerance, preserve_topology)

    def st_snaptogrid(self, size: float) -> Result:
        """The planar geometry with coordinates that are multiples of ``size``."""
        return self._spatial_value("st_snaptogrid", size)

    def st_makevalid(self) -> Result:
        """A valid planar geometry that covers the same points."""
        return self._spatial_value("st_makevalid")

    def st_forcepolygonccw(self) -> Result:
        """The geometry with counterclockwise shells and clockwise holes.

        On the globe a ring encloses the smaller of its sides.
        """
        return self._spatial_value("st_forcepolygonccw")

    def st_forcepolygoncw(self) -> Result:
        """The planar geometry with clockwise shells and counterclockwise holes."""
        return self._spatial_value("st_forcepolygoncw")

    def st_union(self, other: Any) -> Result:
        """The union of the planar geometry and ``other``, as in :meth:`st_distance`."""
        return self._spatial_value("st_union", other)

    def st_intersection(self, other: Any) -> Result:
        """The points that the planar geometry shares with ``other``, as in :meth:`st_distance`."""
        return self._spatial_value("st_intersection", other)


def spatial_function(name: str) -> GeometryFunction:
    """Return a function of the table. Raises ``ValueError`` for an unknown name."""
    from pqext.geo.functions.table import FUNCTIONS

    function = FUNCTIONS.get(name)
    if function is None:
        raise ValueError(f"no function {name!r} of geometries")
    return function


def returns_geometry(name: str) -> bool:
    """Return whether the values of a function are geometries."""
    return spatial_function(name).result == "geometry"


def arguments_of(name: str, arguments: tuple[Any, ...]) -> tuple[Argument, ...]:
    """Return the arguments of a function in canonical form; raise ``TypeError`` or ``ValueError`` if they are invalid.

    One of them must be a column or computed.
    """
    result: list[Any] = []
    for parameter, argument in spatial_function(name).parameters_of(arguments):
        if isinstance(argument, Operand):
            is_geometry = isinstance(argument, StoredOperand) or getattr(argument, "is_geometry", False)
            if parameter.type != "geometry" or not is_geometry:
                expected = "a column of geometries" if parameter.type == "geometry" else "a constant"
                raise TypeError(f"{name}: {parameter.name} must be {expected}, not {argument}")
            result.append(argument)
        elif parameter.type == "geometry":
            result.append(canonical_geometry("intersects", argument))
        else:
            result.append(parameter.check(argument))
    if not any(isinstance(argument, Operand) for argument in result):
        raise ValueError(f"{name} needs a column")
    return tuple(result)


def argument_text(argument: Argument) -> str:
    """Format an argument."""
    if isinstance(argument, bytes | tuple):
        return geometry_text(argument)
    return str(argument).lower() if isinstance(argument, bool) else str(argument)


def argument_key(argument: Argument) -> Any:
    """Return a key that is equal for equal arguments."""
    return argument._key() if isinstance(argument, Operand) else repr(argument)
