import collections.abc
import typing

import geopandas

import pqext.core.options.keywords

from . import crs as crs
from .box import BoundingBox as BoundingBox
from .constructors import from_geoarrow as from_geoarrow
from .constructors import from_geojson as from_geojson
from .constructors import from_points as from_points
from .constructors import from_shapely as from_shapely
from .constructors import from_wkt as from_wkt
from .coordinate_range import clamp as clamp
from .frames import from_geopandas as from_geopandas
from .frames import to_geopandas as to_geopandas
from .frames import write_geopandas as write_geopandas
from .layout.curves import (
    hilbert_index as hilbert_index,
)
from .layout.curves import (
    sort as sort,
)
from .layout.curves import (
    sort_indices as sort_indices,
)
from .layout.curves import (
    zorder_index as zorder_index,
)
from .layout.explain import Layout as Layout
from .layout.explain import explain_layout as explain_layout
from .predicates.densified import densify as densify
from .predicates.predicate import (
    SpatialPredicate as SpatialPredicate,
)
from .predicates.predicate import (
    contains as contains,
)
from .predicates.predicate import (
    covered_by as covered_by,
)
from .predicates.predicate import (
    covers as covers,
)
from .predicates.predicate import (
    crosses as crosses,
)
from .predicates.predicate import (
    disjoint as disjoint,
)
from .predicates.predicate import (
    dwithin as dwithin,
)
from .predicates.predicate import (
    equals as equals,
)
from .predicates.predicate import (
    intersects as intersects,
)
from .predicates.predicate import (
    intersects_box as intersects_box,
)
from .predicates.predicate import (
    overlaps as overlaps,
)
from .predicates.predicate import (
    touches as touches,
)
from .predicates.predicate import (
    within as within,
)
from .summary import bounds as bounds
from .summary import merge as merge
from .summary import statistics as statistics
from .text.geojson import (
    read_geojson as read_geojson,
)
from .text.geojson import (
    to_geojson as to_geojson,
)
from .text.geojson import (
    write_geojson as write_geojson,
)
from .text.wkt import to_wkt as to_wkt
from .transformation import transform as transform
from .types import GeospatialType as GeospatialType
from .types import as_extension as as_extension
from .types import geometry_field as geometry_field
from .validation import GeometryFault as GeometryFault
from .validation import find_faults as find_faults
from .validation import validate as validate
from .wkb import (
    to_iso_wkb as to_iso_wkb,
)
from .wkb import (
    to_shapely as to_shapely,
)

# It lies above geo, in pqext.dataset.frames.
def read_geopandas(
    source: typing.Any,
    columns: collections.abc.Sequence[typing.Any] | None = None,
    filter: typing.Any = None,
    bbox: typing.Any = None,
    geometry: str | None = None,
    **keywords: typing.Unpack[pqext.core.options.keywords.ScanKeywords],
) -> geopandas.GeoDataFrame: ...
