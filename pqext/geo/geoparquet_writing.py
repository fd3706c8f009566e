"""GeoParquet 2.0 metadata of a written file's geometry columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pqext.core.schema.types.geometries import NAMES
from pqext.geo.box import BoundingBox
from pqext.geo.covering import BOUNDS
from pqext.geo.geoparquet import VERSION, numbers, of_type
from pqext.geo.summary import merge
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.core.format.metadata import ColumnMetaData
    from pqext.core.schema.annotations import WrittenColumn


def metadata(
    columns: Sequence[tuple[WrittenColumn, GeospatialType]], primary: str | bool, properties: Mapping[str, str]
) -> str:
    """Return the JSON that describes ``columns``, top-level geometry columns of a file.

    ``primary`` names the primary column; True is the first. Raises ValueError if ``primary`` is not one of the columns.
    """
    names = [column.node.name for column, _ in columns]
    if primary is True:
        primary = names[0]
    if primary not in names:
        raise ValueError(f"geoparquet names column {primary!r}; the geometry columns are {', '.join(names)}")
    about = {column.node.name: _column(column, type, properties) for column, type in columns}
    return json.dumps({"version": VERSION, "primary_column": primary, "columns": about}, separators=(",", ":"))


def _column(column: WrittenColumn, type: GeospatialType, properties: Mapping[str, str]) -> dict[str, Any]:
    box, codes = (None, []) if column.encrypted else _statistics(column.chunks, type)
    found = {**of_type(type, properties), "geometry_types": [NAMES[code] for code in codes]}
    if box is not None:
        found["bbox"] = numbers(box)
    if column.derived is not None:  # not part of 2.0, but readers of 1.1 prune by it
        found["covering"] = {"bbox": {bound: [column.derived, bound] for bound in BOUNDS}}
    return found


def _statistics(chunks: Sequence[ColumnMetaData], type: GeospatialType) -> tuple[BoundingBox | None, list[int]]:
    """The box and the types of all chunks; chunks of nothing but nulls have no part in them."""
    told = [
        chunk.geospatial_statistics
        for chunk in chunks
        if chunk.geospatial_statistics is not None
        or chunk.statistics is None
        or chunk.statistics.null_count != chunk.num_values
    ]
    if not told:
        return None, []
    whole = merge(told, type.crs)
    box = BoundingBox.from_metadata(whole.bbox) if whole.bbox is not None else None
    return box, list(whole.geospatial_types or [])
