"""Spatial joins of tables, scans and files: by a predicate, or with the nearest rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
import pyarrow as pa

from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.schema.types.geometries import crs_label
from pqext.dataset.geometry_rows import GeometryRows
from pqext.geo import crs as crs_
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.joins.matching import Condition, Matcher, Nearest, Rows, add_unmatched_rows, sides_of
from pqext.geo.predicates.boxes import Operation
from pqext.geo.types import Edges, GeospatialType

How = Literal["inner", "left", "semi", "anti"]
On = str | tuple[str, str] | None
MOST_HELD = 256 << 20
"""Maximum stored bytes of a right side that is held in memory."""

Index = TypeVar("Index")


class _RightSide(Generic[Index]):
    """Right side of a join, with an index of its geometries.

    The rows and the index are held in memory, except the rows of a scan of more than :data:`MOST_HELD` stored bytes. Of
    this scan, only the rows near each table of left rows are read.
    """

    def __init__(
        self, side: GeometryRows, reach: Condition, build_index: Callable[[GeometryColumn], Index]
    ) -> None:
        self.side = side
        self.reach = reach
        self.build_index = build_index
        is_held = reach == Condition("dwithin") or not side.exceeds(MOST_HELD)
        self.held = self._load(side) if is_held else None

    def _load(self, side: GeometryRows) -> tuple[pa.Table, Index]:
        table = side.table().combine_chunks()
        return table, self.build_index(side.geometries(table))

    def extent(self) -> tuple[float, float, float, float] | None:
        """Return a box that intersects all matching geometries; None if it is unknown or rows are not in memory."""
        return None if self.held is None else _extent(self.side, self.held[0], self.reach)

    def load_near_rows(self, left: GeometryRows, rows: pa.Table) -> tuple[pa.Table, Index]:
        """Return right rows that may match ``rows`` of the left side, and an index of their geometries."""
        return self._load(self.side.clip(_extent(left, rows, self.reach))) if self.held is None else self.held


def join(
    left: Any,
    right: Any,
    predicate: Operation = "intersects",
    *,
    on: On = None,
    distance: float | None = None,
    columns: Sequence[str] | None = None,
    how: How = "inner",
    suffix: str = "_right",
    edges: Edges | None = None,
) -> pa.Table:
    """Join the rows of two tables, scans or files by a spatial predicate: ``left.geometry predicate right.geometry``.

    The right side is held in memory and indexed; a scan or file on the left is read in batches. For planar geometries,
    a scan or file is read only where its bounding boxes intersect the extent of the other side. Of a planar scan or
    file of more than 256 MiB on the right, only the rows near each batch of the left side are in memory, so that two
    large files in Hilbert order join row group by row group.

    Args:
        left: A pyarrow Table or any other input of :func:`pqext.write_table`, a :class:`pqext.Scan`, or a path to scan.
        right: Like ``left``; it should be the smaller side.
        predicate: ``intersects``, ``within``, ``contains``, ``covers``, ``covered_by``, ``touches``, ``crosses``,
            ``overlaps``, ``equals``, or ``dwithin`` with ``distance``. They are spherical for GEOGRAPHY.
        on: The geometry column of both sides, or a pair of names; by default the only geometry column of each. A plain
            column of WKB has the CRS and edges of the other side.
        distance: The distance for ``dwithin``, in units of the CRS, or in metres for GEOGRAPHY.
        columns: Names of the columns of the result. Other columns are not read.
        how: ``inner`` returns matching pairs; ``left`` also returns rows of the left side without a match, with nulls;
            ``semi`` and ``anti`` return the rows of the left side with or without a match, once each and without
            columns of the right side.
        suffix: Suffix for names of the right side that also occur on the left.
        edges: Edges of the geometries of both sides, such as ``"planar"`` or ``"spherical"``, to join GEOMETRY with
            GEOGRAPHY; by default the edges of the columns. Boxes do not prune a file whose column has other edges.

    Returns:
        The matching pairs in the order of the left side, without duplicates. Null and empty geometries match nothing.

    Raises:
        ValueError: If a name or option is unknown, or the CRSs differ.
        TypeError: If a column does not contain geometries, or only one side is GEOGRAPHY and ``edges`` is
            not passed.
        GeometryError: With the row, if WKB is invalid or GEOS cannot evaluate a pair.

    Example:
        >>> import pyarrow as pa, shapely
        >>> from pqext import geo
        >>> points = pa.table({"id": [1, 2], "at": geo.from_points([1.0, 9.0], [1.0, 9.0])})
        >>> zones = pa.table({"zone": ["a"], "area": geo.from_shapely([shapely.box(0, 0, 5, 5)])})
        >>> geo.join(points, zones, "within", columns=["id", "zone"]).to_pylist()
        [{'id': 1, 'zone': 'a'}]
    """
    condition = Condition.from_arguments(predicate, distance)
    if how not in get_args(How):
        choices = get_args(How)
        raise ValueError(f"how must be one of {', '.join(choices)}, not {how!r}{did_you_mean(str(how), choices)}")
    left_side, right_side = _sides(left, right, on, edges)
    names = _Names.from_sides(left_side, right_side if how in ("inner", "left") else None, suffix, columns)
    left_side, right_side = names.select_columns(left_side, right_side)
    if isinstance(left_side.rows, pa.Table):
        right_side = right_side.clip(_extent(left_side, left_side.rows, condition))
    searched = _RightSide(right_side, condition, lambda geometries: Matcher(geometries, condition))
    if how in ("inner", "semi"):
        left_side = left_side.clip(searched.extent())

    def match_rows(rows: pa.Table) -> pa.Table:
        table, matcher = searched.load_near_rows(left_side, rows)
        first, second = matcher.pairs(left_side.geometries(rows))
        if how in ("semi", "anti"):
            has_match = np.zeros(len(rows), np.bool_)
            has_match[first] = True
            return names.select_left(rows.filter(pa.array(has_match if how == "semi" else ~has_match)))
        numbers = pa.array(second, pa.int64())
        if how == "left":
            first, numbers = add_unmatched_rows(len(rows), first, second)
        return names.combine(rows, first, table, numbers)

    return names.concatenate(map(match_rows, left_side.tables()))


def nearest(
    left: Any,
    right: Any,
    k: int = 1,
    *,
    on: On = None,
    max_distance: float | None = None,
    columns: Sequence[str] | None = None,
    distance_column: str = "distance",
    suffix: str = "_right",
    edges: Edges | None = None,
) -> pa.Table:
    """Join each row of ``left`` with its ``k`` nearest rows of ``right``, and return the distances.

    Args:
        left: As for :func:`join`; null and empty geometries have no neighbours and are omitted.
        right: The side that is searched, which is held in memory.
        k: Number of neighbours. Ties go to earlier rows of ``right``.
        on: The geometry columns, as for :func:`join`.
        max_distance: Maximum distance of neighbours. Rows of ``left`` without a neighbour are omitted.
        columns: Columns of the result, as for :func:`join`.
        distance_column: Name of the column with the minimum distance of both geometries in units of the CRS.
        suffix: Added to names of the right side that the left side has too.
        edges: ``"planar"`` for the planar distance of GEOGRAPHY in degrees, as for :func:`join`.

    Returns:
        The pairs in the order of the left side, the nearest first.

    Raises:
        ValueError: If ``k`` is below 1, ``max_distance`` is not positive, a name is unknown, or the CRSs differ.
        TypeError: If a column does not contain geometries, or contains GEOGRAPHY: project it with
            ``geo.transform``, or pass ``edges="planar"``.

    Example:
        >>> import pyarrow as pa
        >>> from pqext import geo
        >>> people = pa.table({"id": [1], "at": geo.from_points([0.0], [0.0])})
        >>> shops = pa.table({"shop": ["far", "near"], "at": geo.from_points([9.0, 3.0], [0.0, 4.0])})
        >>> geo.nearest(people, shops, columns=["id", "shop", "distance"]).to_pylist()
        [{'id': 1, 'shop': 'near', 'distance': 5.0}]
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k must be a positive integer, not {k!r}")
    if not isinstance(distance_column, str):
        raise TypeError(f"distance_column must be the name of a column, not {distance_column!r}")
    limit = _max_distance(max_distance)
    left_side, right_side = _sides(left, right, on, edges)
    if left_side.type is not None and not left_side.type.planar:
        raise TypeError(
            "nearest requires planar geometries; project both sides with geo.transform, or pass "
            'edges="planar" for distances in degrees'
        )
    names = _Names.from_sides(left_side, right_side, suffix, columns, distance_column)
    left_side, right_side = names.select_columns(left_side, right_side)
    reach = Condition("dwithin", limit)
    if isinstance(left_side.rows, pa.Table) and limit is not None:
        right_side = right_side.clip(_extent(left_side, left_side.rows, reach))
    searched = _RightSide(right_side, reach, lambda geometries: Nearest(geometries, int(k), limit))
    if limit is not None:
        left_side = left_side.clip(searched.extent())

    def match_rows(rows: pa.Table) -> pa.Table:
        table, index = searched.load_near_rows(left_side, rows)
        first, second, distances = index.pairs(left_side.geometries(rows))
        return names.combine(rows, first, table, pa.array(second, pa.int64()), pa.array(distances))

    return names.concatenate(map(match_rows, left_side.tables()))


def _max_distance(value: Any) -> float | None:
    """Convert ``max_distance`` to a float. Raises TypeError or ValueError unless ``value`` is positive or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"max_distance must be a number, not {value!r}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not 0 < result < math.inf:
        raise ValueError(f"max_distance must be a positive number, not {value!r}")
    return result


def _sides(left: Any, right: Any, on: On, edges: Edges | None = None) -> tuple[GeometryRows, GeometryRows]:
    """Return both sides of a join. Raises ValueError or TypeError if the geometry types are incompatible."""
    names = tuple(on) if isinstance(on, list | tuple) else (on, on)
    if len(names) != 2 or not all(isinstance(name, str | None) for name in names):
        raise ValueError("on must be a column name, or a pair of the left and the right column name")
    first, second = (
        GeometryRows.from_input(rows, name, f"the {side} side", "on=(left, right)")
        for rows, name, side in ((left, names[0], "left"), (right, names[1], "right"))
    )
    if edges is not None:
        known = first.type or second.type or GeospatialType()
        first, second = (replace(side, type=side.type or known).with_edges(edges) for side in (first, second))
    if first.type is None and second.type is None:
        return replace(first, type=GeospatialType()), replace(second, type=GeospatialType())
    if first.type is None:
        return replace(first, type=second.type), second
    if second.type is None:
        return first, replace(second, type=first.type)
    if first.type.planar != second.type.planar:
        kinds = ["GEOMETRY" if side.type is not None and side.type.planar else "GEOGRAPHY" for side in (first, second)]
        raise TypeError(
            f"{first.name!r} on the left is {kinds[0]}, but {second.name!r} on the right is {kinds[1]}; "
            'pass edges="spherical" to join along geodesics, or edges="planar" to join along straight lines'
        )
    if not crs_.equal(first.type.crs, second.type.crs):
        systems = [side.type.crs or crs_.DEFAULT for side in (first, second) if side.type is not None]
        raise ValueError(
            f"{first.name!r} on the left has CRS {crs_label(systems[0])}, but {second.name!r} on the right has CRS "
            f"{crs_label(systems[1])}; transform either column with geo.transform"
        )
    return first, second


@dataclass(frozen=True)
class _Names:
    """Column names of a join: all columns (``schema``), the columns of each side, and the selected ``columns``."""

    schema: pa.Schema
    left: tuple[str, ...]
    right: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def from_sides(
        cls, left: GeometryRows, right: GeometryRows | None, suffix: str, columns: Sequence[str] | None,
        distance: str | None = None,
    ) -> _Names:
        """Name the columns of a result. Raises ValueError if a name is unknown or occurs twice."""
        if not isinstance(suffix, str):
            raise TypeError(f"suffix must be a str, not {suffix!r}")
        names = left.schema.names
        fields = list(left.schema)
        for field in right.schema if right is not None else ():
            name = field.name + suffix if field.name in names else field.name
            fields.append(field.with_name(name).with_nullable(True))
        if distance is not None:
            fields.append(pa.field(distance, pa.float64()))
        schema = pa.schema(fields)
        repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
        if repeated:
            raise ValueError(f"duplicate columns {join_names(repeated)} in the result; rename them or change suffix=")
        chosen = schema.names if columns is None else _names_of(columns)
        for name in chosen:
            if name not in schema.names:
                raise ValueError(f"the join has no column {name!r}{did_you_mean(name, schema.names)}")
        return cls(schema, tuple(names), () if right is None else tuple(right.schema.names), tuple(chosen))

    def select_columns(self, left: GeometryRows, right: GeometryRows) -> tuple[GeometryRows, GeometryRows]:
        """Drop the columns of both sides that neither the result nor the join needs."""
        both = dict(zip(self.schema.names, (*self.left, *self.right), strict=False))
        of_left = {both[name] for name in self.columns if name in self.schema.names[: len(self.left)]}
        of_right = {both[name] for name in self.columns if name in both and name not in of_left}
        return left.select([*of_left]), right.select([*of_right])

    def select_left(self, rows: pa.Table) -> pa.Table:
        """Return the columns of the result for ``rows`` of the left side, for semi and anti joins."""
        return rows.select(list(self.columns))

    def combine(
        self, left: pa.Table, first: Rows, right: pa.Table, second: pa.Array, distances: pa.Array | None = None
    ) -> pa.Table:
        """Combine the rows ``first`` of the left side with the rows ``second`` of the right side."""
        numbers = pa.array(first, pa.int64())
        arrays = []
        for name in self.columns:
            at = self.schema.names.index(name)
            if at < len(self.left):
                arrays.append(left[name].take(numbers))
            elif at < len(self.left) + len(self.right):
                arrays.append(right[self.right[at - len(self.left)]].take(second))
            else:
                arrays.append(distances)
        return pa.table(arrays, schema=self.result_schema)

    @property
    def result_schema(self) -> pa.Schema:
        """The schema of the selected columns."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    def concatenate(self, parts: Iterable[pa.Table]) -> pa.Table:
        """Concatenate partial results into one table."""
        return pa.concat_tables([self.result_schema.empty_table(), *parts])


def _names_of(columns: Any) -> list[str]:
    """Convert ``columns`` to a list of names. Raises TypeError unless ``columns`` is an iterable of names."""
    if isinstance(columns, str):
        return [columns]
    names: list[Any] = list(columns) if isinstance(columns, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"columns must be a list of column names of the result, not {columns!r}")
    return names


def _extent(side: GeometryRows, table: pa.Table, condition: Condition) -> tuple[float, float, float, float] | None:
    """Return a box that intersects every geometry that could join with a row of ``side``.

    None if the side is not planar, if it has no coordinates, or if the box is infinite.
    """
    if side.type is None or not side.type.planar:
        return None
    boxes = sides_of(side.geometries(table), condition)
    boxes = boxes[~np.isnan(boxes[:, 0])]
    if not len(boxes) or not np.isfinite(boxes).all():
        return None
    (xmin, ymin), (xmax, ymax) = boxes[:, :2].min(axis=0).tolist(), boxes[:, 2:].max(axis=0).tolist()
    return xmin, ymin, xmax, ymax
