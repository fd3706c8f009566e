"""Describe files and folders as items and collections of STAC, the SpatioTemporal Asset Catalog.

Extents and numbers of rows come from footers if these have them. Spec: STAC 1.1, extensions Table 1.2 and Projection 2.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
from itertools import takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from pqext.core.base.suggestions import unknown_column_message
from pqext.dataset.files.sources import source_name
from pqext.dataset.reading import scan
from pqext.dataset.scan import Scan
from pqext.dataset.spatial_datasets import geometry_name
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.frames import geometry_columns
from pqext.geo.summary import union
from pqext.geo.transformation import cached_transformer

if TYPE_CHECKING:
    import pystac

When: TypeAlias = "str | datetime | tuple[datetime, datetime]"
"""A column of dates or timestamps, a time, or the first and the last time."""

_MEDIA_TYPE = "application/vnd.apache.parquet"
_DENSIFIED = 21
"""Number of points on each side of a box that is transformed."""


def stac_item(rows: Any, datetime: When, *, id: str | None = None, column: str | None = None) -> pystac.Item:
    """Describe a file or folder as a STAC item, with extent, columns, number of rows, CRS and an asset per file.

    Args:
        rows: A path, a folder, a URL, or a :class:`pqext.Scan`, whose filter limits extent and number of rows.
        datetime: A column of dates or timestamps, whose range the item covers; a time; or the first and the last time.
            Times without a zone are UTC.
        id: The identifier, by default the name of the file or folder.
        column: The geometry column; by default the only geometry column.

    Returns:
        A ``pystac.Item``. Its extent is in longitudes and latitudes, and its geometry the rectangle of the extent, in
        two parts if that crosses the antimeridian.

    Raises:
        ImportError: If pystac is missing: ``pip install 'pqext[stac]'``.
        ValueError: If a column does not exist, several columns have geometries, or there is no time.
        TypeError: If the scan is not of paths, or ``datetime`` is another type.

    Example:
        >>> import datetime, pyarrow as pa, pqext
        >>> from pqext import geo
        >>> day = [datetime.date(2024, 5, 1), datetime.date(2024, 5, 3)]
        >>> places = pa.table({"day": day, "at": geo.from_points([9.0, 3.0], [1.0, 4.0])})
        >>> pqext.write_table(places, "places.parquet", geometry={"at": "OGC:CRS84"})
        >>> item = geo.stac_item("places.parquet", "day")
        >>> item.id, item.bbox, item.properties["start_datetime"], item.properties["table:row_count"]
        ('places', [3.0, 1.0, 9.0, 4.0], '2024-05-01T00:00:00Z', 2)
    """
    source = rows if isinstance(rows, Scan) else scan(rows)
    return _build_item(source, datetime, id or _default_id(rows, source), column)


def stac_collection(
    rows: Any, datetime: When, *, description: str, id: str | None = None, license: str = "other",
    column: str | None = None,
) -> pystac.Collection:
    """Describe a folder as a STAC collection, with an item for each file.

    Args:
        rows: A folder, a pattern, a list of paths, or a :class:`pqext.Scan`.
        datetime: As for :func:`stac_item`.
        description: What the data is, in CommonMark.
        id: The identifier, by default the name of the folder.
        license: An SPDX identifier, or ``"other"``.
        column: The geometry column; by default the only one.

    Returns:
        A ``pystac.Collection`` whose items are named after their files, with the folders that differ.
        ``collection.normalize_and_save(folder)`` writes it.

    Raises:
        ImportError: If pystac is missing: ``pip install 'pqext[stac]'``.
        ValueError: As for :func:`stac_item`.
        TypeError: As for :func:`stac_item`.

    Example:
        >>> import datetime, pyarrow as pa, pqext
        >>> from pqext import geo
        >>> places = pa.table({"id": range(100), "at": geo.from_points(range(100), range(-50, 50))})
        >>> saved = geo.write_dataset(places, "places", "kdtree", resolution=1)
        >>> time = datetime.datetime(2024, 5, 1)
        >>> collection = geo.stac_collection("places", time, description="Places along a line")
        >>> collection.id, [item.bbox for item in collection.get_items()]
        ('places', [[0.0, -50.0, 49.0, -1.0], [50.0, 0.0, 99.0, 49.0]])
    """
    _require_pystac()
    import pystac

    source = rows if isinstance(rows, Scan) else scan(rows)
    files, items = source._request.files, []
    names = [source_name(path) for path in files.sources]
    folders = zip(*(name.split("/")[:-1] for name in names), strict=False)
    start = sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, folders))  # number of common folders
    for path, name in zip(files.sources, names, strict=True):
        part = source._replace(files=replace(files, sources=(path,)))
        if part.count():
            items.append(_build_item(part, datetime, _stem("-".join(name.split("/")[start:])), column))
    if not items:
        raise ValueError("the files contain no rows, so the collection would be empty")
    extent = pystac.Extent.from_items(items)
    boxes = [BoundingBox(item.bbox[0], item.bbox[2], item.bbox[1], item.bbox[3]) for item in items if item.bbox]
    around = union(boxes, geographic=True) if boxes else None
    if around is not None:
        extent.spatial = pystac.SpatialExtent([[around.xmin, around.ymin, around.xmax, around.ymax]])
    result = pystac.Collection(id or _default_id(rows, source), description, extent, license=license)
    result.add_items(items)
    return result


def _build_item(source: Scan, when: When, id: str, column: str | None) -> pystac.Item:
    _require_pystac()
    import pystac
    from pystac.extensions.projection import ProjectionExtension
    from pystac.extensions.table import Column, TableExtension

    schema = source.schema
    name = geometry_name(schema, column)
    types = geometry_columns(schema)
    crs = types[name].crs
    first, last = _time_range(source, when)
    box = source.bounds(name)
    sides = None if box is None else _to_longitudes(box, crs)
    item = pystac.Item(
        id, None if sides is None else _rectangle(*sides), None if sides is None else [*sides],
        first if first == last else None, {},
        start_datetime=None if first == last else first, end_datetime=None if first == last else last,
    )
    table = TableExtension.ext(item, add_if_missing=True)
    kind = "GEOMETRY" if types[name].planar else "GEOGRAPHY"
    table.columns = [
        Column({"name": field.name, "type": kind if field.name == name else str(field.type)}) for field in schema
    ]
    table.row_count, table.primary_geometry = source.count(), name
    projection = ProjectionExtension.ext(item, add_if_missing=True)
    definition = crs_.parse(crs_.normalize(crs))
    authority = definition.to_authority()
    projection.code = None if authority is None else ":".join(authority)
    if authority is None:
        projection.projjson = json.loads(definition.to_json())
    if box is not None:
        projection.bbox = [box.xmin, box.ymin, box.xmax, box.ymax]
    paths = [source_name(path) for path in source._request.sources]
    for number, path in enumerate(paths):
        key = "data" if len(paths) == 1 else f"data-{number}"
        item.add_asset(key, pystac.Asset(path, title=PurePosixPath(path).name, media_type=_MEDIA_TYPE, roles=["data"]))
    return item


def _time_range(source: Scan, when: Any) -> tuple[datetime, datetime]:
    """Return the earliest and the latest time of the rows. Times without a timezone are interpreted as UTC."""
    if isinstance(when, str):
        if when not in source.schema.names:
            raise ValueError(unknown_column_message(when, source.schema.names))
        values = [source.min(when), source.max(when)]
        if not (pa.types.is_timestamp(values[0].type) or pa.types.is_date(values[0].type)):
            raise TypeError(f"column {when!r} contains {values[0].type}, not dates or timestamps")
        if not values[0].is_valid:
            raise ValueError(f"column {when!r} contains only nulls; pass a datetime as datetime=")
        when = [_to_datetime(value) for value in values]
    bounds = when if isinstance(when, tuple | list) else (when, when)
    if len(bounds) != 2 or not all(isinstance(value, datetime) for value in bounds):
        raise TypeError(f"datetime must be a column name, a datetime or a pair of datetimes, not {when!r}")
    first, last = (value if value.tzinfo else value.replace(tzinfo=UTC) for value in bounds)
    if first > last:
        raise ValueError(f"datetime: the start {first} is after the end {last}")
    return first, last


def _to_datetime(value: pa.Scalar) -> datetime:
    if pa.types.is_date(value.type):
        return datetime.combine(value.as_py(), time())
    result: datetime = value.cast(pa.timestamp("us", value.type.tz), safe=False).as_py()
    return result


def _to_longitudes(box: BoundingBox, crs: str | None) -> tuple[float, float, float, float]:
    """Return west, south, east and north of a box in degrees; west > east if the box crosses the antimeridian."""
    text = crs_.normalize(crs)
    sides = box.xmin, box.ymin, box.xmax, box.ymax
    if crs_.equal(text, crs_.DEFAULT):
        return sides
    result: tuple[float, float, float, float] = cached_transformer(text, crs_.DEFAULT).transform_bounds(
        *sides, densify_pts=_DENSIFIED
    )
    return result


def _rectangle(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    """Return the GeoJSON geometry of a box, with two parts if it crosses the antimeridian."""
    spans = [(west, east)] if west <= east else [(west, 180.0), (-180.0, east)]
    rings = [[[[x0, south], [x1, south], [x1, north], [x0, north], [x0, south]]] for x0, x1 in spans]
    if len(rings) == 1:
        return {"type": "Polygon", "coordinates": rings[0]}
    return {"type": "MultiPolygon", "coordinates": rings}


def _default_id(rows: Any, source: Scan) -> str:
    """Return the default identifier of the rows: the name of the folder or of a single file."""
    if isinstance(rows, str | os.PathLike):
        return _stem(os.fspath(rows))
    paths: Sequence[Any] = source._request.sources
    if len(paths) != 1:
        raise ValueError("the rows are in several files, so there is no default identifier; pass id=")
    return _stem(source_name(paths[0]))


def _stem(path: str) -> str:
    return PurePosixPath(path.rstrip("/")).name.removesuffix(".parquet")


def _require_pystac() -> None:
    try:
        import pystac  # noqa: F401
    except ImportError as error:
        raise ImportError(f"pystac is needed: pip install 'pqext[stac]' ({error})") from error
