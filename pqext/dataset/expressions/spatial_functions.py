"""Functions of geometry columns in expressions, by their names in SQL: measures and constructions.

The table in :mod:`pqext.geo.functions.table` defines them. It is imported when the first function is used.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pqext.core.schema.types.geometries import crs_label
from pqext.dataset.expressions.conditions import Operand, StoredOperand
from pqext.dataset.expressions.spatial import Box, canonical_geometry, geometry_text

if TYPE_CHECKING:
    from pqext.geo.functions.table import GeometryFunction

Argument: TypeAlias = Operand | Box | bytes | float | int | bool | str
"""A column or a computed geometry, a constant geometry as a box or ISO WKB, a number, a flag or a CRS."""

Result = TypeVar("Result", covariant=True)


class SpatialFunctions(Generic[Result]):
    """Measures, properties and constructions of a geometry column. Their results are null for null geometries.

    Measures of GEOMETRY are in units of its coordinates, and measures of GEOGRAPHY in metres on the ellipsoid of its
    CRS. Constructions require GEOMETRY. Constant geometries are in the CRS of the column. If GEOS fails for a row, as
    it does for some invalid polygons, an error is raised; the result is not null.
    """

    __slots__ = ()

    @abstractmethod
    def _spatial_value(self, function: str, *arguments: Any) -> Result: ...

    def st_area(self) -> Result:
        """Return the area in square units of the coordinates, or in square metres on the ellipsoid for GEOGRAPHY.

        >>> from pqext import col
        >>> str(col("geom").st_area() > 1e6)
        'st_area(geom) > 1000000.0'
        """
        return self._spatial_value("st_area")

    def st_length(self) -> Result:
        """Return the length of lines and polygon boundaries, in coordinate units, or in metres for GEOGRAPHY."""
        return self._spatial_value("st_length")

    def st_perimeter(self) -> Result:
        """Return the length of polygon boundaries, in coordinate units, or in metres for GEOGRAPHY."""
        return self._spatial_value("st_perimeter")

    def st_distance(self, other: Any) -> Result:
        """Return the shortest distance to ``other``, in units of the coordinates, or in metres for GEOGRAPHY.

        ``other`` is a shapely geometry, WKB, a box ``(xmin, ymin, xmax, ymax)`` for GEOMETRY, or another column.
        """
        return self._spatial_value("st_distance", other)

    def st_azimuth(self, other: Any) -> Result:
        """Return the direction from a point to the point ``other``, in radians clockwise from north."""
        return self._spatial_value("st_azimuth", other)

    def st_x(self) -> Result:
        """Return the X coordinate of a point; null for other geometries.

        Row groups and pages are skipped by their boxes.
        """
        return self._spatial_value("st_x")

    def st_y(self) -> Result:
        """Return the Y coordinate of a point; null for other geometries.

        Row groups and pages are skipped by their boxes.
        """
        return self._spatial_value("st_y")

    def st_z(self) -> Result:
        """Return the Z coordinate of a point; null for other geometries."""
        return self._spatial_value("st_z")

    def st_m(self) -> Result:
        """Return the M value of a point; null for other geometries."""
        return self._spatial_value("st_m")

    def st_xmin(self) -> Result:
        """Return the least X of the geometry, including its edges."""
        return self._spatial_value("st_xmin")

    def st_xmax(self) -> Result:
        """Return the greatest X of the geometry, including its edges."""
        return self._spatial_value("st_xmax")

    def st_ymin(self) -> Result:
        """Return the least Y of the geometry, including its edges."""
        return self._spatial_value("st_ymin")

    def st_ymax(self) -> Result:
        """Return the greatest Y of the geometry, including its edges."""
        return self._spatial_value("st_ymax")

    def st_geometrytype(self) -> Result:
        """Return the name of the geometry type: ``ST_Point``, ``ST_Polygon`` and so on."""
        return self._spatial_value("st_geometrytype")

    def st_npoints(self) -> Result:
        """Return the number of vertices."""
        return self._spatial_value("st_npoints")

    def st_isempty(self) -> Result:
        """Test whether the geometry has no vertices."""
        return self._spatial_value("st_isempty")

    def st_isvalid(self) -> Result:
        """Test whether the planar geometry is valid by the rules of simple features."""
        return self._spatial_value("st_isvalid")

    def st_envelope(self) -> Result:
        """Return the smallest axis-parallel rectangle around the planar geometry."""
        return self._spatial_value("st_envelope")

    def st_centroid(self) -> Result:
        """Return the centroid of the planar geometry.

        >>> from pqext import col
        >>> str(col("geom").st_centroid().st_x() < 5)
        'st_x(st_centroid(geom)) < 5'
        """
        return self._spatial_value("st_centroid")

    def st_pointonsurface(self) -> Result:
        """Return a point that lies on the planar geometry."""
        return self._spatial_value("st_pointonsurface")

    def st_convexhull(self) -> Result:
        """Return the convex hull of the planar geometry."""
        return self._spatial_value("st_convexhull")

    def st_boundary(self) -> Result:
        """Return the rings of a planar polygon or the ends of a line; null for collections."""
        return self._spatial_value("st_boundary")

    def st_buffer(self, distance: float, quad_segs: int = 8) -> Result:
        """Return the area within ``distance``, in coordinate units, of the planar geometry.

        ``quad_segs`` segments approximate a quarter of a circle.
        """
        return self._spatial_value("st_buffer", distance, quad_segs)

    def st_simplify(self, tolerance: float, preserve_topology: bool = True) -> Result:
        """Remove vertices of the planar geometry. The result deviates from the original by at most ``tolerance``.

        ``preserve_topology=False`` is faster and may return invalid polygons.
        """
        return self._spatial_value("st_simplify", tolerance, preserve_topology)

    def st_snaptogrid(self, size: float) -> Result:
        """Round the coordinates of the planar geometry to multiples of ``size``."""
        return self._spatial_value("st_snaptogrid", size)

    def st_makevalid(self) -> Result:
        """Return a valid planar geometry that covers the same points."""
        return self._spatial_value("st_makevalid")

    def st_transform(self, crs: Any) -> Result:
        """Return the geometry with coordinates in another CRS, for example ``"EPSG:3857"``.

        Vertices are transformed, edges are not subdivided. Row groups and pages are skipped by predicates on the result
        unless X and Y depend on Z, as they do for some changes of datum.
        """
        return self._spatial_value("st_transform", crs)

    def st_forcepolygonccw(self) -> Result:
        """Return the geometry with counterclockwise shells and clockwise holes.

        On the globe, a ring encloses its smaller side.
        """
        return self._spatial_value("st_forcepolygonccw")

    def st_forcepolygoncw(self) -> Result:
        """Return the planar geometry with clockwise shells and counterclockwise holes."""
        return self._spatial_value("st_forcepolygoncw")

    def st_union(self, other: Any) -> Result:
        """Return the union of the planar geometry and ``other``. For ``other``, see :meth:`st_distance`."""
        return self._spatial_value("st_union", other)

    def st_intersection(self, other: Any) -> Result:
        """Return the points that the planar geometry shares with ``other``. For ``other``, see :meth:`st_distance`."""
        return self._spatial_value("st_intersection", other)


def spatial_function(name: str) -> GeometryFunction:
    """Return the function called ``name``. Raises ``ValueError`` if the name is unknown."""
    from pqext.geo.functions.table import FUNCTIONS

    function = FUNCTIONS.get(name)
    if function is None:
        raise ValueError(f"unknown geometry function {name!r}; use one of {', '.join(FUNCTIONS)}")
    return function


def returns_geometry(name: str) -> bool:
    """Return whether the results of a function are geometries."""
    return spatial_function(name).result == "geometry"


def arguments_of(name: str, arguments: tuple[Any, ...]) -> tuple[Argument, ...]:
    """Check the arguments of a function and convert them to canonical form.

    At least one argument must be a column or a computed value. Raises ``TypeError`` or ``ValueError`` for invalid
    arguments.
    """
    result: list[Any] = []
    for parameter, argument in spatial_function(name).match_parameters(arguments):
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
        raise ValueError(f"{name} requires at least one column")
    return tuple(result)


def argument_text(argument: Argument) -> str:
    """Format an argument of a function for display."""
    if isinstance(argument, bytes | tuple):
        return geometry_text(argument)
    if isinstance(argument, str):
        return repr(crs_label(argument))
    return str(argument).lower() if isinstance(argument, bool) else str(argument)


def argument_key(argument: Argument) -> Any:
    """Return a key that is equal for equal arguments."""
    return argument._key() if isinstance(argument, Operand) else repr(argument)
