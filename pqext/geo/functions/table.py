"""Function table: SQL names, parameters, results, and evaluation on geometry columns and Arrow arrays.

:mod:`pqext.geo`, expressions of scans, SQL text and Spark all evaluate the functions in this table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import GeometryError
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.functions import shapes
from pqext.geo.functions.shapes import Sides, extend_boxes, keep_boxes, shapely_function, transform_boxes, widen_boxes
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.predicates.query import as_box
from pqext.geo.summary import resolve_type
from pqext.geo.transformation import type_in_crs
from pqext.geo.types import GeospatialType, array_type, mark_array
from pqext.geo.wkb import GeometryArray, binary_chunks, from_shapely, match_chunking

if TYPE_CHECKING:
    from pqext.geo.types import Edges, GeospatialType

Result: TypeAlias = Literal["double", "int64", "bool", "string", "geometry"]
Argument: TypeAlias = "GeometryColumn | np.ndarray[Any, np.dtype[np.float64]] | float | int | bool | str"

_ARROW_TYPES: dict[Result, pa.DataType] = {
    "double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(), "string": pa.string(), "geometry": pa.binary(),
}  # fmt: skip
MOST_SEGMENTS = 1000
"""Maximum number of segments of a quarter of a circle."""


@dataclass(frozen=True)
class Parameter:
    """Parameter of a function: a geometry, a finite number, a positive number, a count, a flag or a CRS."""

    name: str
    type: Literal["geometry", "number", "size", "count", "flag", "crs"]
    is_optional: bool = False

    def check(self, value: Any) -> Any:
        """Validate a constant argument that is not a geometry and return the converted value.

        Raises ``TypeError`` or ``ValueError`` if the argument is invalid, and ``GeometryError`` if a CRS is unknown.
        """
        if self.type == "flag":
            if not isinstance(value, bool):
                raise TypeError(f"{self.name} must be true or false, not {value!r}")
            return value
        if self.type == "crs":
            return crs_.require(value) or crs_.DEFAULT
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | np.integer | np.floating):
            raise TypeError(f"{self.name} must be a number, not {value!r}")
        try:
            number = float(value)
        except (OverflowError, ValueError):  # a huge integer or a signaling NaN
            number = math.inf
        if self.type == "count":
            if not number.is_integer() or not 1 <= number <= MOST_SEGMENTS:
                raise ValueError(f"{self.name} must be a whole number from 1 to {MOST_SEGMENTS}, not {value}")
            return int(number)
        if not math.isfinite(number):
            raise ValueError(f"{self.name} must be finite, not {value}")
        if self.type == "size" and number <= 0:
            raise ValueError(f"{self.name} must be greater than 0, not {value}")
        return number


GEOMETRY, OTHER = Parameter("geometry", "geometry"), Parameter("other", "geometry")


@dataclass(frozen=True)
class GeometryFunction:
    """Function of geometries, identified by its SQL name."""

    sql_name: str
    compute: Callable[..., Any]
    result: Result
    parameters: tuple[Parameter, ...] = (GEOMETRY,)
    is_planar: bool = False
    """Whether the function requires GEOMETRY. Other functions measure GEOGRAPHY on the ellipsoid."""
    sides: Callable[..., Sides] | None = None
    """Function of :mod:`pqext.geo.functions.shapes` that returns boxes around results; None if unknown."""

    def __call__(self, *arguments: Argument) -> pa.Array:
        """Return the results as an Arrow array, null if a geometry is null or a number is NaN.

        Args:
            arguments: Geometry columns of equal length or with one row, and scalars or arrays of numbers.

        Raises:
            GeometryError: With the row, if WKB is invalid or GEOS fails.
            TypeError: If the function is planar and a column is GEOGRAPHY, or if columns differ in CRS or planarity.
            ValueError: If a size is not greater than 0.
        """
        pairs = list(zip(self.parameters, arguments, strict=False))
        columns = [argument for argument in arguments if isinstance(argument, GeometryColumn)]
        self.check_types([column.type for column in columns])
        for parameter, argument in pairs:
            if parameter.type == "size" and (np.asarray(argument, np.float64) <= 0).any():
                raise ValueError(f"{parameter.name} must be greater than 0 in every row")
        numbers = [number for number in arguments if isinstance(number, float | np.ndarray)]
        masks = np.broadcast_arrays(*(column.missing for column in columns), *map(np.isnan, numbers))
        missing = np.logical_or.reduce(masks)
        values = self.compute(
            *(_without_nan(argument) for parameter, argument in pairs if not parameter.is_optional),
            **{parameter.name: argument for parameter, argument in pairs if parameter.is_optional},
        )
        if isinstance(values, pa.Array):
            return values
        if self.result == "geometry":
            made = from_shapely(np.where(missing, None, values))
            return made if isinstance(made, pa.Array) else made.cast(pa.large_binary()).combine_chunks()
        if self.result == "double":
            missing = missing | np.isnan(values)
        return pa.array(values, self.arrow_type, mask=missing)

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of the results; a geometry is WKB."""
        return _ARROW_TYPES[self.result]

    def result_type(self, type: GeospatialType, arguments: Sequence[Any]) -> GeospatialType:
        """Return the CRS and edges of geometries that the function returns for geometries of ``type``."""
        pairs = zip(self.parameters, arguments, strict=False)
        target = next((argument for parameter, argument in pairs if parameter.type == "crs"), None)
        return type if target is None else type_in_crs(type, target)

    def result_sides(
        self, sides: Sides, type: GeospatialType, constants: Sequence[Any], *, has_heights: bool = True
    ) -> Sides:
        """Return boxes around the results for geometries of ``type`` within ``sides``; NaN for unknown boxes.

        ``constants`` are the other arguments. Without ``has_heights``, no geometry has Z.
        """
        if self.sides is None:
            return np.full_like(sides, np.nan)
        return self.sides(sides, type, *constants, has_heights=has_heights)

    def match_parameters(self, arguments: Sequence[Any]) -> list[tuple[Parameter, Any]]:
        """Return pairs of parameter and argument. Raises ``TypeError`` if the number of arguments is wrong."""
        required = sum(not parameter.is_optional for parameter in self.parameters)
        most = len(self.parameters)
        if not required <= len(arguments) <= most:
            counts = f"{required} to {most}" if required < most else str(most)
            raise TypeError(f"wrong number of arguments for {self.sql_name}: expected {counts}, not {len(arguments)}")
        return list(zip(self.parameters, arguments, strict=False))

    def check_types(self, types: list[GeospatialType]) -> None:
        """Raise ``TypeError`` unless the function accepts geometries of these types in one call."""
        if self.is_planar and not all(type.planar for type in types):
            raise TypeError(
                f"{self.sql_name} requires planar geometries, not GEOGRAPHY; project the coordinates with geo.transform"
            )
        if len({type.planar for type in types}) > 1:
            raise TypeError(f"{self.sql_name} requires two GEOMETRY or two GEOGRAPHY columns, not one of each")
        first = types[0]
        for other in types[1:]:
            if first.crs != other.crs and not crs_.equal(first.crs, other.crs):
                raise TypeError(
                    f"{self.sql_name} requires geometries in one CRS, not {first.crs or 'OGC:CRS84'} and "
                    f"{other.crs or 'OGC:CRS84'}; transform one of them with geo.transform"
                )


def constant_column(geometry: Any, type: GeospatialType) -> GeometryColumn:
    """Return a constant geometry as a column of one row: WKB, a shapely geometry, or a box as a polygon.

    Raises:
        TypeError: For other values, and for a box on the globe, because its sides are not geodesics.
        ValueError: If a box crosses the antimeridian or is not finite.
    """
    import shapely

    if isinstance(geometry, bytes):
        return GeometryColumn(pa.array([geometry], pa.binary()), type)
    if not isinstance(getattr(geometry, "geom_type", None), str):
        if not isinstance(geometry, BoundingBox | tuple | list):
            raise TypeError(f"expected a shapely geometry, WKB or a box, not {geometry.__class__.__name__}")
        box = as_box(geometry)
        if not type.planar:
            raise TypeError("a box is not supported for GEOGRAPHY, because its sides are not geodesics; pass a polygon")
        if box.xmin > box.xmax:
            raise ValueError("a box that crosses the antimeridian is not a polygon; split it at the antimeridian")
        geometry = shapely.box(box.xmin, box.ymin, box.xmax, box.ymax)
    return GeometryColumn(from_shapely([geometry]), type)


def _without_nan(argument: Any) -> Any:
    """Replace NaN with 0, because GEOS rejects NaN. Rows with NaN are null in the result."""
    return np.where(np.isnan(argument), 0.0, argument) if isinstance(argument, float | np.ndarray) else argument


_PAIR = (GEOMETRY, OTHER)
_BUFFER = (GEOMETRY, Parameter("distance", "number"), Parameter("quad_segs", "count", is_optional=True))
_SIMPLIFY = (GEOMETRY, Parameter("tolerance", "number"), Parameter("preserve_topology", "flag", is_optional=True))
_GRID = (GEOMETRY, Parameter("size", "size"))
_CRS = (GEOMETRY, Parameter("crs", "crs"))

_construction = partial(GeometryFunction, result="geometry", is_planar=True, sides=keep_boxes)
"""A function that returns geometries; most of them lie within their arguments."""

FUNCTIONS: dict[str, GeometryFunction] = {
    function.sql_name: function
    for function in (
        GeometryFunction("st_area", shapes.area, "double"),
        GeometryFunction("st_length", shapes.length, "double"),
        GeometryFunction("st_perimeter", shapes.perimeter, "double"),
        GeometryFunction("st_distance", shapes.distance, "double", _PAIR),
        GeometryFunction("st_azimuth", shapes.azimuth, "double", _PAIR),
        GeometryFunction("st_x", partial(shapes.ordinate, side="xmin"), "double"),
        GeometryFunction("st_y", partial(shapes.ordinate, side="ymin"), "double"),
        GeometryFunction("st_z", partial(shapes.ordinate, side="zmin"), "double"),
        GeometryFunction("st_m", partial(shapes.ordinate, side="mmin"), "double"),
        GeometryFunction("st_xmin", partial(shapes.bound, side="xmin"), "double"),
        GeometryFunction("st_xmax", partial(shapes.bound, side="xmax"), "double"),
        GeometryFunction("st_ymin", partial(shapes.bound, side="ymin"), "double"),
        GeometryFunction("st_ymax", partial(shapes.bound, side="ymax"), "double"),
        GeometryFunction("st_geometrytype", shapes.geometry_type, "string"),
        GeometryFunction("st_npoints", shapes.num_points, "int64"),
        GeometryFunction("st_isempty", shapes.is_empty, "bool"),
        GeometryFunction("st_isvalid", shapely_function("is_valid"), "bool", is_planar=True),
        _construction("st_envelope", shapely_function("envelope")),
        _construction("st_centroid", shapely_function("centroid")),
        _construction("st_pointonsurface", shapely_function("point_on_surface")),
        _construction("st_convexhull", shapely_function("convex_hull")),
        _construction("st_boundary", shapely_function("boundary")),
        _construction("st_buffer", shapes.buffer, parameters=_BUFFER, sides=widen_boxes),
        _construction("st_simplify", shapes.simplify, parameters=_SIMPLIFY),
        _construction("st_snaptogrid", shapely_function("set_precision"), parameters=_GRID, sides=widen_boxes),
        _construction("st_makevalid", shapely_function("make_valid")),
        _construction("st_transform", shapes.to_crs, parameters=_CRS, is_planar=False, sides=transform_boxes),
        _construction("st_forcepolygonccw", shapes.counterclockwise, is_planar=False),
        _construction("st_forcepolygoncw", shapes.clockwise),
        _construction("st_union", shapes.union, parameters=_PAIR, sides=extend_boxes),
        _construction("st_intersection", shapes.intersection, parameters=_PAIR),
    )
}
"""Functions by SQL name."""


def evaluate(
    name: str, array: GeometryArray, *arguments: Any, edges: Edges | None = None, crs: Any = None
) -> GeometryArray:
    """Evaluate the function ``name`` on each row of an array.

    Args:
        name: The SQL name of the function.
        array: An array of WKB, in chunks or not.
        arguments: The other arguments: numbers, and geometries as a constant or as an array of the same length.
        edges: Edges of all geometries; by default the edges of each extension array, or planar.
        crs: CRS of all geometries; by default the CRS of each extension array, or OGC:CRS84.

    Returns:
        An array, chunked if ``array`` is. Geometries have the extension type of ``array``.

    Raises:
        GeometryError: With the row, if WKB is invalid or GEOS fails.
        TypeError: If an argument has the wrong type.
        ValueError: If an array has a different length, or a number is not finite.
    """
    function, type = FUNCTIONS[name], resolve_type(array, crs, edges)
    function.check_types([type])
    chunks = binary_chunks(array)
    rows = sum(map(len, chunks))
    others = [
        _geometries(value, type, rows, edges, crs) if parameter.type == "geometry" else parameter.check(value)
        for parameter, value in function.match_parameters([None, *arguments])[1:]
    ]
    parts, start = [], 0
    for chunk in chunks:
        sides = [other(start, len(chunk)) if callable(other) else other for other in others]
        try:
            parts.append(function(GeometryColumn(chunk, type), *sides))
        except GeometryError as error:
            if error.row is None or not start:
                raise
            raise GeometryError(error.reason, rule=error.rule, row=error.row + start, offset=error.offset) from error
        start += len(chunk)
    is_large = any(pa.types.is_large_binary(part.type) for part in parts)
    parts = [part.cast(pa.large_binary()) for part in parts] if is_large else parts
    result = match_chunking(array, parts, parts[0].type if parts else function.arrow_type)
    is_marked = function.result == "geometry" and array_type(array.type) is not None
    return mark_array(result, type) if is_marked else result


def _geometries(argument: Any, type: GeospatialType, rows: int, edges: Edges | None, crs: Any) -> Any:
    """Convert a constant to a column of one row, and an array to a function that slices a range of rows."""
    if not isinstance(argument, pa.Array | pa.ChunkedArray):
        return constant_column(argument, type)
    if len(argument) != rows:
        raise ValueError(f"arrays of geometries must have equal lengths, not {rows} and {len(argument)} rows")
    other = type if array_type(argument.type) is None else resolve_type(argument, crs, edges)
    chunks = [chunk.cast(pa.large_binary()) for chunk in binary_chunks(argument)]
    wkb = pa.concat_arrays(chunks) if chunks else pa.array([], pa.large_binary())
    return partial(_slice, wkb, other)


def _slice(wkb: pa.Array, type: GeospatialType, start: int, rows: int) -> GeometryColumn:
    return GeometryColumn(wkb.slice(start, rows), type)
