"""Functions on VARIANT and GEOMETRY columns, evaluated by pqext on Arrow batches, or by Spark if possible.

They work on any column. Conditions that Spark pushes down need the schema of a data frame: see
:func:`pqext.spark.variant` and :func:`pqext.spark.where`. ``pqext.spark.register`` registers the functions in SQL, as
``pq_st_area`` and so on.
"""

from __future__ import annotations

from types import FunctionType

from pqext.spark.base.arguments import check_arguments
from pqext.spark.functions.geometry_accessors import (
    st_area,
    st_distance,
    st_dwithin,
    st_geometrytype,
    st_isempty,
    st_isvalid,
    st_length,
    st_m,
    st_npoints,
    st_x,
    st_xmax,
    st_xmin,
    st_y,
    st_ymax,
    st_ymin,
    st_z,
)
from pqext.spark.functions.geometry_formats import (
    st_asbinary,
    st_asgeojson,
    st_astext,
    st_aswkb,
    st_aswkt,
    st_geomfromgeojson,
    st_geomfromtext,
    st_geomfromwkb,
    st_geomfromwkt,
    st_point,
)
from pqext.spark.functions.geometry_keys import (
    st_geohash,
    st_hilbert,
    st_quadkey,
)
from pqext.spark.functions.geometry_operations import (
    st_buffer,
    st_centroid,
    st_envelope,
    st_envelope_agg,
    st_envelope_aggr,
    st_makevalid,
    st_simplify,
    st_transform,
    st_union_agg,
    st_union_aggr,
)
from pqext.spark.functions.geometry_predicates import (
    st_contains,
    st_coveredby,
    st_covers,
    st_crosses,
    st_disjoint,
    st_equals,
    st_intersects,
    st_intersects_box,
    st_overlaps,
    st_relates,
    st_touches,
    st_within,
)
from pqext.spark.functions.variant_changes import (
    variant_delete,
    variant_merge,
    variant_set,
    variant_strip_nulls,
)
from pqext.spark.functions.variant_paths import (
    try_variant_get,
    variant_explode,
    variant_explode_outer,
    variant_get,
)
from pqext.spark.functions.variant_schemas import (
    schema_of_variant,
    schema_of_variant_agg,
)
from pqext.spark.functions.variant_values import (
    is_valid_variant,
    is_variant_null,
    parse_json,
    to_json,
    try_parse_json,
    variant_equals,
    variant_hash,
    variant_key,
    variant_type,
)

__all__ = [
    "is_valid_variant",
    "is_variant_null",
    "parse_json",
    "schema_of_variant",
    "schema_of_variant_agg",
    "st_area",
    "st_asbinary",
    "st_asgeojson",
    "st_astext",
    "st_aswkb",
    "st_aswkt",
    "st_buffer",
    "st_centroid",
    "st_contains",
    "st_coveredby",
    "st_covers",
    "st_crosses",
    "st_disjoint",
    "st_distance",
    "st_dwithin",
    "st_envelope",
    "st_envelope_agg",
    "st_envelope_aggr",
    "st_equals",
    "st_geohash",
    "st_geometrytype",
    "st_geomfromgeojson",
    "st_geomfromtext",
    "st_geomfromwkb",
    "st_geomfromwkt",
    "st_hilbert",
    "st_intersects",
    "st_intersects_box",
    "st_isempty",
    "st_isvalid",
    "st_length",
    "st_m",
    "st_makevalid",
    "st_npoints",
    "st_overlaps",
    "st_point",
    "st_quadkey",
    "st_relates",
    "st_simplify",
    "st_touches",
    "st_transform",
    "st_union_agg",
    "st_union_aggr",
    "st_within",
    "st_x",
    "st_xmax",
    "st_xmin",
    "st_y",
    "st_ymax",
    "st_ymin",
    "st_z",
    "to_json",
    "try_parse_json",
    "try_variant_get",
    "variant_delete",
    "variant_equals",
    "variant_explode",
    "variant_explode_outer",
    "variant_get",
    "variant_hash",
    "variant_key",
    "variant_merge",
    "variant_set",
    "variant_strip_nulls",
    "variant_type",
]

for _name in __all__:
    if isinstance(globals()[_name], FunctionType):
        globals()[_name] = check_arguments(globals()[_name])
