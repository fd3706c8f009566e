# isort: skip_file

import collections.abc
import datetime
import os
import typing

import geopandas
import pystac

import pqext.core.options.keywords
import pqext.geo.predicates.boxes
import pqext.geo.types
import pyarrow

from . import crs as crs
from .box import BoundingBox as BoundingBox
from .cells import cells as cells
from .constructors import (
    from_geoarrow as from_geoarrow,
    from_geojson as from_geojson,
    from_points as from_points,
    from_shapely as from_shapely,
    from_wkt as from_wkt,
)
from .coordinates import clamp as clamp
from .frames import from_geopandas as from_geopandas, to_geopandas as to_geopandas, write_geopandas as write_geopandas
from .functions.constructions import (
    boundary as boundary,
    buffer as buffer,
    centroid as centroid,
    convex_hull as convex_hull,
    envelope as envelope,
    intersection as intersection,
    make_valid as make_valid,
    orient as orient,
    point_on_surface as point_on_surface,
    simplify as simplify,
    snap_to_grid as snap_to_grid,
    union as union,
)
from .functions.measures import (
    area as area,
    azimuth as azimuth,
    distance as distance,
    geometry_type as geometry_type,
    is_empty as is_empty,
    is_valid as is_valid,
    length as length,
    m as m,
    num_points as num_points,
    perimeter as perimeter,
    x as x,
    y as y,
    z as z,
)
from .layout.order import (
    hilbert_index as hilbert_index,
    sort as sort,
    sort_indices as sort_indices,
    zorder_index as zorder_index,
)
from .layout.explain import Layout as Layout, explain_layout as explain_layout
from .linearization import linearize as linearize
from .predicates.densification import densify as densify
from .predicates.predicate import (
    SpatialPredicate as SpatialPredicate,
    contains as contains,
    covered_by as covered_by,
    covers as covers,
    crosses as crosses,
    disjoint as disjoint,
    dwithin as dwithin,
    equals as equals,
    intersects as intersects,
    intersects_box as intersects_box,
    overlaps as overlaps,
    touches as touches,
    within as within,
)
from .summary import bounds as bounds, merge as merge, statistics as statistics
from .text.geojson import (
    read_geojson as read_geojson,
    to_geojson as to_geojson,
    write_geojson as write_geojson,
)
from .text.wkt import to_wkt as to_wkt
from .transformation import transform as transform
from .types import GeospatialType as GeospatialType, as_extension as as_extension, geometry_field as geometry_field
from .validation import GeometryFault as GeometryFault, find_faults as find_faults, validate as validate
from .vector_files import open_file as open_file, read_file as read_file
from .wkb import (
    to_iso_wkb as to_iso_wkb,
    to_shapely as to_shapely,
)

# The following lie above geo, in pqext.dataset.
def dissolve(
    rows: typing.Any,
    by: str | collections.abc.Sequence[str] = (),
    *,
    column: str | None = None,
    method: typing.Literal["union", "envelope"] = "union",
    aggregates: collections.abc.Mapping[str, str] | None = None,
) -> pyarrow.Table: ...
def join(
    left: typing.Any,
    right: typing.Any,
    predicate: pqext.geo.predicates.boxes.Operation = "intersects",
    *,
    on: str | tuple[str, str] | None = None,
    distance: float | None = None,
    columns: collections.abc.Sequence[str] | None = None,
    how: typing.Literal["inner", "left", "semi", "anti"] = "inner",
    suffix: str = "_right",
    edges: pqext.geo.types.Edges | None = None,
) -> pyarrow.Table: ...
def nearest(
    left: typing.Any,
    right: typing.Any,
    k: int = 1,
    *,
    on: str | tuple[str, str] | None = None,
    max_distance: float | None = None,
    columns: collections.abc.Sequence[str] | None = None,
    distance_column: str = "distance",
    suffix: str = "_right",
    edges: pqext.geo.types.Edges | None = None,
) -> pyarrow.Table: ...
def read_geopandas(
    sources: typing.Any,
    columns: collections.abc.Sequence[typing.Any] | None = None,
    filter: typing.Any = None,
    bbox: typing.Any = None,
    geometry: str | None = None,
    **keywords: typing.Unpack[pqext.core.options.keywords.ScanKeywords],
) -> geopandas.GeoDataFrame: ...
def stac_collection(
    rows: typing.Any,
    datetime: str | datetime.datetime | tuple[datetime.datetime, datetime.datetime],
    *,
    description: str,
    id: str | None = None,
    license: str = "other",
    column: str | None = None,
) -> pystac.Collection: ...
def stac_item(
    rows: typing.Any,
    datetime: str | datetime.datetime | tuple[datetime.datetime, datetime.datetime],
    *,
    id: str | None = None,
    column: str | None = None,
) -> pystac.Item: ...
def write_dataset(
    rows: typing.Any,
    folder: str | os.PathLike[str],
    partition_by: typing.Literal["kdtree", "quadkey", "geohash", "h3", "s2", "a5"] = "kdtree",
    *,
    column: str | None = None,
    resolution: int | None = None,
    target_file_bytes: int = 134217728,
    order: typing.Literal["hilbert", "zorder"] | None = "hilbert",
    summary: bool = True,
    mode: typing.Literal["error", "ignore", "append", "overwrite"] = "error",
    **keywords: typing.Unpack[pqext.core.options.keywords.WriteKeywords],
) -> typing.Any: ...
def write_file(
    rows: typing.Any,
    path: str | os.PathLike[str],
    *,
    layer: str | None = None,
    driver: str | None = None,
    geometry: str | None = None,
    append: bool = False,
    **options: typing.Any,
) -> None: ...
