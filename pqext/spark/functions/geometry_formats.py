"""Geometries as WKB, WKT and GeoJSON."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.functions.udf import GEOMETRIES, ArrowFunction, ColumnOrName


def st_aswkb(geometry: ColumnOrName) -> Column:
    """ISO WKB as BINARY; EWKB in a BINARY column loses its flags and SRID. Null on null.

    Of GEOMETRY and GEOGRAPHY, Spark's own ``F.st_asbinary`` gives the same without Python.
    """
    return AS_WKB(geometry)


st_asbinary = st_aswkb


def st_aswkt(geometry: ColumnOrName, precision: int | None = None) -> Column:
    """Well-known text, with ``precision`` decimals or as many digits as read back the same. Null on null."""
    return AS_WKT(geometry, precision=precision) if precision is not None else AS_WKT(geometry)


st_astext = st_aswkt


def st_asgeojson(geometry: ColumnOrName, precision: int | None = None) -> Column:
    """GeoJSON geometries as text, in the coordinates as they are: RFC 7946 has longitude and latitude only.

    ``precision`` as in :func:`st_aswkt`. Null on null; M is left out.
    """
    return AS_GEOJSON(geometry, precision=precision) if precision is not None else AS_GEOJSON(geometry)


def _wkb(array: pa.Array) -> pa.Array:
    from pqext import geo

    return geo.to_iso_wkb(Geometries.of(array).wkb)


def _wkt(array: pa.Array, precision: int | None = None) -> pa.Array:
    from pqext import geo

    return geo.to_wkt(Geometries.of(array).wkb, precision).cast(pa.string())


def _geojson(array: pa.Array, precision: int | None = None) -> pa.Array:
    from pqext import geo

    return geo.to_geojson(Geometries.of(array).wkb, precision).cast(pa.string())


AS_WKB = ArrowFunction("st_aswkb", (GEOMETRIES,), T.BinaryType(), _wkb)
AS_WKT = ArrowFunction("st_aswkt", (GEOMETRIES,), T.StringType(), _wkt)
AS_GEOJSON = ArrowFunction("st_asgeojson", (GEOMETRIES,), T.StringType(), _geojson)
