"""GeoDataFrames of what a scan gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pqext.core.options.keywords import ScanKeywords
from pqext.dataset.expressions import col
from pqext.dataset.notations.dnf import Filter
from pqext.dataset.reading import scan
from pqext.geo.frames import active_geometry, bounds_of, geometry_columns, geoparquet_columns, require_geopandas

if TYPE_CHECKING:
    from geopandas import GeoDataFrame


def read_geopandas(
    sources: Any,
    columns: Sequence[Any] | Mapping[str, Any] | None = None,
    filter: Filter = None,
    bbox: Any = None,
    geometry: str | None = None,
    **keywords: Unpack[ScanKeywords],
) -> GeoDataFrame:
    """Read the rows that match ``filter`` and intersect ``bbox`` as a GeoDataFrame.

    ``bbox`` is ``(xmin, ymin, xmax, ymax)`` in the CRS of the column ``geometry``, which becomes the active one: by
    default the primary column of the file's GeoParquet metadata, or its first geometry column. As in geopandas, a
    shapely geometry stands for its bounds, and a GeoSeries or GeoDataFrame for its total bounds in that CRS. Without
    ``columns`` all columns are read except the covering columns of GeoParquet metadata. Other arguments and errors are
    those of :func:`pqext.scan`.

    Raises:
        ValueError: If a file has no geometry column.
    """
    require_geopandas()
    query = scan(sources, None, filter, **keywords)
    types, (_, coverings) = geometry_columns(query.schema), geoparquet_columns(query.schema)
    if geometry is None:
        geometry = active_geometry(query.schema)
    if geometry not in types:
        if not types:
            raise ValueError("the file has no geometry column")
        raise ValueError(f"no geometry column {geometry!r}; there is {', '.join(map(repr, types))}")
    if columns is None:
        columns = [name for name in query.schema.names if name not in coverings or name in types]
    else:
        included = (geometry, keywords.get("include_file_paths"), keywords.get("include_row_numbers"))
        columns = [*columns, *(name for name in included if name is not None and name not in columns)]
    if bbox is not None:
        query = query.filter(col([geometry]).intersects(bounds_of(bbox, types[geometry])))
    return query.select(list(columns)).to_geopandas(geometry)
