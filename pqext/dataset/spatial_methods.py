"""Methods of a scan for geometry columns: transform to another CRS, and select the nearest rows."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa

from pqext.core.base.suggestions import join_names, suggest_arguments, unknown_column_message
from pqext.dataset.expressions import Column, GeometryValue, col
from pqext.dataset.planning.projection import ComputedColumn, parse_columns
from pqext.dataset.scan_planner import ScanPlanner
from pqext.dataset.scan_request import ScanRequest
from pqext.geo.frames import geometry_columns


class Query(Protocol):
    """Interface of a scan that :class:`SpatialMethods` uses."""

    _request: ScanRequest
    _planner: ScanPlanner

    @property
    def schema(self) -> pa.Schema: ...

    def _replace(self, **changes: Any) -> Self: ...

    def filter(self, *conditions: Any) -> Self: ...

    def order_by(self, *columns: Any) -> Self: ...

    def limit(self, rows: int | None) -> Self: ...

    def _check_unlimited(self, method: str) -> None: ...


Q = TypeVar("Q", bound=Query)


class SpatialMethods:
    """Methods of :class:`pqext.Scan` for geometry columns."""

    def to_crs(self: Q, crs: Any, column: str | None = None) -> Q:
        """Return a scan that transforms a geometry column to another CRS.

        A later :meth:`filter` compares the transformed geometries, and skips row groups and pages by their transformed
        bounding boxes. Files in several CRSs become one result in ``crs``.

        Args:
            crs: The CRS as for :func:`pqext.geo.geometry_field`, such as ``"EPSG:3857"``.
            column: A geometry column of the result; by default all of them.

        Returns:
            A new scan; this one is unchanged. Vertices are transformed as by :func:`pqext.geo.transform`; the edges of
            a projected result are straight lines.

        Raises:
            ValueError: If the result lacks a geometry column, or the column ``column``.
            GeometryError: If ``crs`` is unknown. When rows are read, if the CRS of the column is unknown or a vertex
                cannot be transformed to ``crs``.

        Example:
            >>> import pqext, pyarrow
            >>> places = pyarrow.table({"at": pqext.geo.from_points([180.0], [0.0])})
            >>> pqext.write_table(places, "places.parquet", geometry={"at": "OGC:CRS84"})
            >>> table = pqext.scan("places.parquet").to_crs("EPSG:3857").to_table()
            >>> pqext.geo.to_wkt(table["at"], precision=0).to_pylist()
            ['POINT (20037508 0)']
        """
        schema, selected = self.schema, self._request.result
        result = parse_columns(schema.names if selected is None else list(selected))
        by_name = {item if isinstance(item, str) else item.name: item for item in result}
        if column is not None and column not in by_name:
            raise ValueError(unknown_column_message(column, by_name).replace("the file has", "the scan has"))
        names = [*geometry_columns(schema)] if column is None else [column]
        if not names:
            raise ValueError("the result has no geometry column; select one, or call to_crs before select")
        for name in names:
            item = by_name[name]
            value = col([item]) if isinstance(item, str) else item.field
            if not isinstance(value, GeometryValue):
                raise TypeError(f"column {name!r} contains no geometries")
            by_name[name] = ComputedColumn(name, value.st_transform(crs))
        return self._replace(result=tuple(by_name.values()))

    @suggest_arguments
    def nearest(
        self: Q, geometry: Any, k: int = 1, *, column: str | None = None, max_distance: float | None = None,
        distance_column: str = "distance",
    ) -> Q:
        """Return a scan of the ``k`` nearest rows to a geometry, with a distance column, sorted by distance.

        Row groups and pages are read in the order of their distance, until no other row can be nearer.

        Args:
            geometry: A shapely geometry, WKB, or for GEOMETRY a box ``(xmin, ymin, xmax, ymax)``, in the CRS of the
                column.
            k: Number of rows. Of rows at the same distance, the first ones are returned.
            column: The geometry column; by default the only one of the result. If the result has none, the only one of
                the columns that earlier selections computed, or else of the files.
            max_distance: Maximum distance, in units of the coordinates, in metres for GEOGRAPHY.
            distance_column: Name of the additional column with the shortest distance between the two geometries.

        Returns:
            A new scan; this one is unchanged. Rows without a geometry are not returned.

        Raises:
            ValueError: If ``k`` is below 1, if ``max_distance`` is negative or NaN, if no column is named and not
                exactly one, if the result already has a column named ``distance_column``, or after :meth:`limit`.
            TypeError: If an argument has the wrong type, or the column contains no geometries.

        Example:
            >>> import pqext, pyarrow, shapely
            >>> places = pyarrow.table({"id": [1, 2], "at": pqext.geo.from_points([9.0, 3.0], [0.0, 4.0])})
            >>> pqext.write_table(places, "places.parquet", geometry={"at": "EPSG:3857"})
            >>> scan = pqext.scan("places.parquet").nearest(shapely.Point(0, 0))
            >>> scan.select("id", "distance").to_table().to_pylist()
            [{'id': 2, 'distance': 5.0}]
        """
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k must be a positive integer, not {k!r}")
        if isinstance(max_distance, bool) or not isinstance(max_distance, Real | Decimal | None):
            raise TypeError(f"max_distance must be a number, not {max_distance!r}")
        if max_distance is not None and not max_distance >= 0:
            raise ValueError(f"max_distance must be a number of at least 0, not {max_distance!r}")
        self._check_unlimited("nearest")
        distance = _geometry_column(self, column).st_distance(geometry)
        near = self.filter(distance.is_not_null() if max_distance is None else distance <= max_distance)
        result = self.schema.names if self._request.result is None else self._request.result
        column_of_distances = ComputedColumn(distance_column, self._planner.resolve(distance))
        ordered = near.order_by(distance)._replace(result=parse_columns([*result, column_of_distances]))
        return ordered.limit(int(k))._replace(limit_method="nearest")


def _geometry_column(scan: Query, name: str | None) -> Column:
    """Return the column ``name``. If None, return the only geometry column of the result, or else of the files.

    Geometry columns computed by earlier selections precede geometry columns of the files. Raises ``ValueError`` unless
    there is exactly one.
    """
    if name is not None:
        return col(name)
    request = scan._request
    owner, names = "the result has", [*geometry_columns(scan.schema)]
    if not names and request.earlier:
        owner, names = "earlier selections computed", _geometry_names(scan, request.earlier)
    if not names:
        owner, names = "the files have", _geometry_names(scan, None)
    if len(names) != 1:
        problem = f"{owner} several geometry columns, {join_names(names)}" if names else (
            "the files have no geometry column"
        )
        raise ValueError(f"{problem}; select a column with column=")
    return col([names[0]])


def _geometry_names(scan: Query, selection: tuple[str | ComputedColumn, ...] | None) -> list[str]:
    return [*geometry_columns(scan._replace(result=selection, order=()).schema)]
