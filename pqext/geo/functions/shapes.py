"""Implementations of the functions on geometry columns, with shapely on the plane and pyproj on the globe.

Arguments are columns of equal length or with one row, and scalars or arrays of numbers. NaN and None in results are
missing values.

A predicate on a computed geometry, such as ``st_intersects(st_buffer(geom, 10), ...)``, prunes row groups and pages by
boxes around the results of functions, from boxes around their arguments (:data:`Sides`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo import crs as crs_
from pqext.geo.coordinates import orient_rings
from pqext.geo.joins.geometry_column import GeometryColumn, call_shapely
from pqext.geo.summary import bounds
from pqext.geo.transformation import cached_transformer, transform
from pqext.geo.types import GeospatialType

_Shapes = NDArray[np.object_]
_Doubles = NDArray[np.float64]

LARGEST = 1e300
"""Largest coordinate that GEOS simplifies and buffers. GEOS may hang or crash for larger coordinates and NaN."""
Sides: TypeAlias = NDArray[np.float64]
"""Boxes as four rows, xmin, xmax, ymin and ymax, with a column for each box.

They may be larger than necessary, never smaller; NaN stands for an unknown box. Boxes that wrap around the antimeridian
are passed as NaN.
"""

_ROUNDING = 1e-12
"""Relative error of constructions, thousands of times the error of a double."""
_CURVES = 1.02
"""Factor on the distance of a buffer, because GEOS simplifies lines by up to 1 % of the distance first."""
_STEPS = np.linspace(0, 1, 9)
"""Positions along each side of a box at which coordinates are transformed."""
_HEIGHT = 1e5
"""A height at which a transformation shows whether X and Y depend on Z."""


def area(column: GeometryColumn) -> _Doubles:
    """Return the area of polygons."""
    import shapely

    from pqext.geo.predicates import metres

    shapes = column.shapes()
    areas: _Doubles = _apply_by_row(shapely.area, shapes) if column.type.planar else metres.areas(shapes, column.type)
    return areas


def length(column: GeometryColumn) -> _Doubles:
    """Return the length of lines and of the boundaries of polygons."""
    import shapely

    from pqext.geo.predicates import metres

    shapes = column.shapes()
    lengths: _Doubles = (
        _apply_by_row(shapely.length, shapes) if column.type.planar else metres.lengths(shapes, column.type)
    )
    return lengths


def perimeter(column: GeometryColumn) -> _Doubles:
    """Return the length of the boundaries of polygons."""
    import shapely

    from pqext.geo.predicates import metres, unrolling

    shapes = column.shapes()
    if not column.type.planar:
        return metres.perimeters(shapes, column.type)
    parts, owners = unrolling.explode(shapes)
    is_polygon = shapely.get_type_id(parts) == 3
    lengths = call_shapely(shapely.length, parts[is_polygon])
    return np.bincount(owners[is_polygon], weights=lengths, minlength=len(shapes)).astype(np.float64)


def distance(column: GeometryColumn, other: GeometryColumn) -> _Doubles:
    """Return the shortest distance between the two geometries of each row."""
    import shapely

    from pqext.geo.predicates import metres

    if not column.type.planar:
        return metres.distances(column.shapes(), other.shapes(), column.type)
    places, others = _coordinates(column), _coordinates(other)
    if places is not None and others is not None:
        with np.errstate(all="ignore"):
            dx, dy = places[0] - others[0], places[1] - others[1]
            of_points: _Doubles = np.sqrt(dx * dx + dy * dy)
        return of_points
    distances: _Doubles = _apply_by_row(shapely.distance, column.shapes(), other.shapes())
    return distances


def _coordinates(column: GeometryColumn) -> tuple[_Doubles, _Doubles] | None:
    """Return X and Y of a column of points; None if there are nulls or other geometries."""
    from pqext.geo.predicates.planar import points_of

    return None if column.wkb.null_count else points_of(column.wkb)


def azimuth(column: GeometryColumn, other: GeometryColumn) -> _Doubles:
    """Return the direction from each point to the other point of the row, in radians clockwise from north."""
    from pqext.geo.predicates import metres

    sides = np.broadcast_arrays(column.shapes(), other.shapes())
    are_points = _are_points(sides[0]) & _are_points(sides[1])
    points = sides[0][are_points], sides[1][are_points]
    angles = metres.azimuths(*points, column.type) if not column.type.planar else _angles(*points)
    turns = np.mod(angles, 2 * np.pi)
    turns[turns == 2 * np.pi] = 0.0  # the modulus of a tiny negative angle
    result = np.full(len(are_points), np.nan)
    result[are_points] = turns
    return result


def geometry_type(column: GeometryColumn) -> NDArray[np.str_]:
    """Return the name of the type of each geometry."""
    import shapely

    names: NDArray[np.str_] = _TYPES[shapely.get_type_id(column.shapes())]
    return names


def num_points(column: GeometryColumn) -> NDArray[np.int64]:
    """Return the number of vertices of each geometry, including the repeated last vertex of a ring."""
    import shapely

    counts: NDArray[np.int64] = shapely.get_num_coordinates(column.shapes()).astype(np.int64)
    return counts


def is_empty(column: GeometryColumn) -> NDArray[np.bool_]:
    """Return whether geometries have no points."""
    import shapely

    result: NDArray[np.bool_] = shapely.is_empty(column.shapes())
    return result


def shapely_function(name: str) -> Callable[..., Any]:
    """Wrap the shapely function ``name`` as a function of geometry columns."""

    def evaluate(*arguments: Any, **options: Any) -> Any:
        import shapely

        sides = [item.shapes() if isinstance(item, GeometryColumn) else item for item in arguments]
        return _apply_by_row(getattr(shapely, name), *sides, **options)

    return evaluate


def union(column: GeometryColumn, other: GeometryColumn) -> Any:
    """Return the union of the two geometries of each row."""
    return _equalize_dimensions(shapely_function("union")(column, other))


def intersection(column: GeometryColumn, other: GeometryColumn) -> Any:
    """Return the intersection of the two geometries of each row."""
    return _equalize_dimensions(shapely_function("intersection")(column, other))


def simplify(column: GeometryColumn, tolerance: _Doubles, preserve_topology: bool = True) -> Any:
    """Return geometries with fewer vertices."""
    import shapely

    shapes = column.shapes()
    if preserve_topology:
        _check_extent(shapes, "simplify")
    return _apply_by_row(shapely.simplify, shapes, tolerance, preserve_topology=preserve_topology)


def buffer(column: GeometryColumn, distance: _Doubles, quad_segs: int = 8) -> Any:
    """Return the area within a distance of each geometry."""
    import shapely

    shapes = column.shapes()
    _check_extent(shapes, "buffer")
    return _apply_by_row(shapely.buffer, shapes, distance, quad_segs=quad_segs)


def to_crs(column: GeometryColumn, crs: str) -> Any:
    """Return geometries as WKB with the coordinates of another CRS."""
    return transform(column.wkb, column.type.crs, crs)


def ordinate(column: GeometryColumn, side: str) -> _Doubles:
    """Return one coordinate of each point: x if ``side`` is ``xmin``, y if it is ``ymin``, and so on.

    The result is NaN for geometries that are not points.
    """
    import shapely

    values = np.array(bounds(column.wkb).field(side).to_numpy(zero_copy_only=False), np.float64)
    values[shapely.get_type_id(column.shapes()) != 0] = np.nan
    return values


def bound(column: GeometryColumn, side: str) -> _Doubles:
    """Return one side, such as ``xmin``, of the bounding box of each geometry, including its edges."""
    boxes = bounds(column.wkb, column.type.edges, column.type.crs)
    return np.array(boxes.field(side).to_numpy(zero_copy_only=False), np.float64)


def counterclockwise(column: GeometryColumn) -> Any:
    """Return geometries as WKB, with counterclockwise polygon shells and clockwise holes."""
    return orient_rings(column.wkb, column.type)


def clockwise(column: GeometryColumn) -> Any:
    """Return geometries with clockwise polygon shells and counterclockwise holes."""
    import shapely

    shapes = column.shapes()
    if hasattr(shapely, "orient_polygons"):
        return _apply_by_row(shapely.orient_polygons, shapes, exterior_cw=True)
    result = np.empty(len(shapes), dtype=object)
    for row, shape in enumerate(shapes):
        result[row] = None if shape is None else _clockwise_shape(shape)
    return result


_TYPES = np.array([
    "ST_Point", "ST_LineString", "ST_LinearRing", "ST_Polygon", "ST_MultiPoint", "ST_MultiLineString",
    "ST_MultiPolygon", "ST_GeometryCollection", "",
])  # fmt: skip
"""Type names by GEOS type id; the last is for a missing geometry, -1."""


def _are_points(shapes: _Shapes) -> NDArray[np.bool_]:
    import shapely

    result: NDArray[np.bool_] = (shapely.get_type_id(shapes) == 0) & ~shapely.is_empty(shapes)
    return result


def _angles(first_points: _Shapes, second_points: _Shapes) -> _Doubles:
    """Return the directions from the first to the second points, in radians clockwise from the Y axis.

    NaN for equal points.
    """
    import shapely

    dx, dy = (shapely.get_coordinates(second_points) - shapely.get_coordinates(first_points)).T
    angles: _Doubles = np.where((dx == 0) & (dy == 0), np.nan, np.arctan2(dx, dy))
    return angles


def _equalize_dimensions(shapes: _Shapes) -> _Shapes:
    """Remove Z and M from collections whose parts differ in dimensions, because WKB cannot encode mixed dimensions."""
    import shapely

    rows = np.flatnonzero(shapely.get_type_id(shapes) == 7)
    parts, owners = shapely.get_parts(shapes[rows], return_index=True)
    dimensions = shapely.get_coordinate_dimension(shapes[rows])
    mixed = rows[np.unique(owners[shapely.get_coordinate_dimension(parts) != dimensions[owners]])]
    shapes[mixed] = shapely.force_2d(shapes[mixed])
    return shapes


def _check_extent(shapes: _Shapes, function: str) -> None:
    """Raise GeometryError with the row of the first coordinate that is NaN or beyond ``LARGEST``."""
    import shapely

    corners, rows = shapely.get_coordinates(shapes, return_index=True)
    is_ordinary = (np.abs(corners) <= LARGEST).all(axis=1)
    if not is_ordinary.all():
        row = int(rows[np.flatnonzero(~is_ordinary)[0]])
        raise GeometryError(f"{function} is not supported for coordinates that are NaN or beyond {LARGEST:g}", row=row)


def _clockwise_shape(shape: Any) -> Any:
    """Return a geometry with clockwise polygon shells, for shapely versions before 2.1."""
    from shapely.geometry.polygon import orient

    if shape.geom_type == "Polygon":
        return shape if shape.is_empty else orient(shape, -1.0)
    if hasattr(shape, "geoms") and shape.geom_type in ("MultiPolygon", "GeometryCollection"):
        return type(shape)([_clockwise_shape(part) for part in shape.geoms])
    return shape


def _apply_by_row(function: Callable[..., Any], *sides: Any, **options: Any) -> Any:
    """Call a vectorised function of shapely; raise GeometryError with the first row that fails."""
    try:
        return call_shapely(function, *sides, **options)
    except GeometryError:
        for row, arguments in enumerate(zip(*np.broadcast_arrays(*sides), strict=True)):
            try:
                call_shapely(function, *arguments, **options)
            except GeometryError as error:
                raise GeometryError(error.reason, row=row) from error
        raise


def keep_boxes(sides: Sides, type: GeospatialType, *constants: Any, has_heights: bool = True) -> Sides:
    """Return the boxes of the arguments, for functions such as centroid, which return geometries within these boxes."""
    return _widen(sides, 0.0)


def widen_boxes(
    sides: Sides, type: GeospatialType, distance: float, *constants: Any, has_heights: bool = True
) -> Sides:
    """Return the boxes of the arguments, widened by ``distance`` so that they contain buffers."""
    return _widen(sides, abs(distance) * _CURVES)


def extend_boxes(
    sides: Sides, type: GeospatialType, other: bytes | tuple[float, float, float, float], *, has_heights: bool = True
) -> Sides:
    """Extend boxes to contain ``other``, which is WKB or a box ``(xmin, ymin, xmax, ymax)``."""
    if isinstance(other, bytes):
        box = bounds(pa.array([other], pa.binary()))[0].as_py()
        corners = (box[side] for side in ("xmin", "ymin", "xmax", "ymax"))
        xmin, ymin, xmax, ymax = (np.nan if side is None else side for side in corners)
    else:
        xmin, ymin, xmax, ymax = other
    low, high = np.array([[xmin], [ymin]]), np.array([[xmax], [ymax]])
    result = np.empty_like(sides)
    result[0::2], result[1::2] = np.minimum(sides[0::2], low), np.maximum(sides[1::2], high)
    return _widen(result, 0.0)


def transform_boxes(sides: Sides, type: GeospatialType, crs: str, *, has_heights: bool = True) -> Sides:
    """Return boxes around geometries transformed to ``crs``.

    A lattice of points in each box is transformed. The box around them is widened on each side by the largest
    difference between neighbours. A box is unknown if PROJ rejects one of its points, or if geometries may have heights
    and X or Y depends on them, as between systems of different datums.
    """
    transformer = cached_transformer(crs_.resolve(type.crs), crs_.resolve(crs))
    low, size = sides[0::2], sides[1::2] - sides[0::2]
    x = (low[0] + size[0] * _STEPS[:, None, None]) + np.zeros((1, len(_STEPS), 1))
    y = (low[1] + size[1] * _STEPS[None, :, None]) + np.zeros((len(_STEPS), 1, 1))
    flat = np.stack(transformer.transform(x.ravel(), y.ravel()))
    if has_heights:
        high = np.stack(transformer.transform(x.ravel(), y.ravel(), np.full(x.size, _HEIGHT))[:2])
        flat[flat != high] = np.nan
    result = np.full_like(sides, np.nan)
    for side, values in enumerate(flat.reshape(2, *x.shape)):
        values[~np.isfinite(values)] = np.nan
        gap = np.maximum(*(np.abs(np.diff(values, axis=axis)).max(axis=(0, 1)) for axis in (0, 1)))
        result[2 * side], result[2 * side + 1] = values.min(axis=(0, 1)) - gap, values.max(axis=(0, 1)) + gap
    result[:, np.isnan(result).any(axis=0)] = np.nan
    return _widen(result, 0.0)


def _widen(sides: Sides, distance: float) -> Sides:
    """Return boxes widened on each side by ``distance`` and by the rounding error of constructions."""
    margin = distance + _ROUNDING * np.abs(sides).max(axis=0)
    widened: Sides = sides + np.array([[-1.0], [1.0], [-1.0], [1.0]]) * margin
    return widened
