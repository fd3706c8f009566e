"""GeoDataFrames of what a scan gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from pqext.core.keywords import ReadKeywords
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.options import ReadOptions
from pqext.dataset.dnf import Filter, as_expression
from pqext.dataset.expressions import all_of, col
from pqext.dataset.partitions import Partitioning
from pqext.dataset.scan import Scan, scan
from pqext.geo import geoparquet
from pqext.geo.frames import geometry_columns, require_geopandas, to_geopandas

if TYPE_CHECKING:
    from geopandas import GeoDataFrame


def read_geopandas(
    source: Any,
    columns: Sequence[Any] | None = None,
    filter: Filter = None,
    bbox: Sequence[float] | None = None,
    geometry: str | None = None,
    *,
    partitioning: Partitioning = "hive",
    limits: Limits = DEFAULT_LIMITS,
    options: ReadOptions | None = None,
    **keywords: Unpack[ReadKeywords],
) -> GeoDataFrame:
    """The rows of ``source`` as a GeoDataFrame: those for which ``filter`` is true and that meet ``bbox``.

    ``bbox`` is ``(xmin, ymin, xmax, ymax)`` in the CRS of the column ``geometry``, which is also the active one: by
    default the primary column of the file's GeoParquet metadata, or its first geometry column. Without ``columns``
    all are read, but for the covering columns that such metadata names. Other arguments and errors are those of
    :func:`pqext.scan`; ValueError when there is no geometry column.
    """
    require_geopandas()
    def chosen(columns: Sequence[Any] | None, filter: Filter) -> Scan:
        return scan(source, columns, filter, partitioning=partitioning, limits=limits, options=options, **keywords)

    whole = chosen(None, None).schema
    types, (primary, coverings) = geometry_columns(whole), _geoparquet(whole)
    if geometry is None:
        geometry = primary if primary in types else next(iter(types), None)
    if geometry not in types:
        if not types:
            raise ValueError("the file has no geometry column")
        raise ValueError(f"there is no geometry column {geometry!r}; there is {', '.join(map(repr, types))}")
    if columns is None:
        columns = [name for name in whole.names if name not in coverings or name in types]
    elif geometry not in columns:
        columns = [*columns, geometry]
    parts = [as_expression(filter), None if bbox is None else col([geometry]).intersects(tuple(bbox))]
    wanted = [part for part in parts if part is not None]
    table = chosen(columns, all_of(wanted) if wanted else None).to_table()
    return to_geopandas(table, geometry)


def _geoparquet(schema: pa.Schema) -> tuple[str | None, set[str]]:
    """The primary column and the covering columns that GeoParquet metadata names."""
    text = (schema.metadata or {}).get(geoparquet.KEY.encode(), b"").decode("utf-8", "replace")
    found = geoparquet.coverings(text) if text else {}
    names = {path[0] for paths in found.values() for path in paths if path}
    return geoparquet.primary_column(text) if text else None, names
