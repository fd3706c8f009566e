"""Geometries made of numbers, WKB, WKT and GeoJSON."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import geometries
from pqext.spark.functions.udf import NUMBER, TEXT, ArrowFunction, ColumnOrName, Takes, named, taken, text_of

_BYTES = Takes(r"^(binary|void)$", "BINARY of WKB", "st_geomfromwkt takes text, and unhex makes bytes of it")


def st_point(x: ColumnOrName, y: ColumnOrName, z: ColumnOrName | None = None, srid: int = 4326) -> Column:
    """GEOMETRY(``srid``) points, POINT or POINT Z, from numeric columns; null where ``x`` or ``y`` is.

    A null ``z`` gives a point whose Z is NaN, which has no value in that dimension.
    """
    wkb = POINT(x, y) if z is None else POINT_Z(x, y, z)
    return _typed("st_point", wkb, srid, *(column for column in (x, y, z) if column is not None))


def st_geomfromwkb(wkb: ColumnOrName, srid: int = 4326) -> Column:
    """GEOMETRY(``srid``) of a BINARY column of WKB, by Spark's own function. Null on null.

    Spark fails on bytes that are not WKB, on EWKB and on rings that are not closed.
    """
    return _typed("st_geomfromwkb", taken("st_geomfromwkb", _BYTES, wkb), srid, wkb)


def st_geomfromwkt(wkt: ColumnOrName, srid: int = 4326) -> Column:
    """GEOMETRY(``srid``) of well-known text, as :func:`pqext.geo.from_wkt` reads it. Null on null.

    Text that is not WKT fails the query, with the row in its batch and the byte.
    """
    return _typed("st_geomfromwkt", FROM_WKT(wkt), srid, wkt)


st_geomfromtext = st_geomfromwkt


def st_geomfromgeojson(geojson: ColumnOrName, srid: int = 4326) -> Column:
    """GEOMETRY(``srid``) of GeoJSON geometries or features as text, as :func:`pqext.geo.from_geojson` reads it.

    Null on null. Other text fails the query, with the row in its batch and the byte.
    """
    return _typed("st_geomfromgeojson", FROM_GEOJSON(geojson), srid, geojson)


def _typed(function: str, wkb: Column, srid: int, *arguments: ColumnOrName) -> Column:
    """GEOMETRY(``srid``) of WKB."""
    takes_srid = len(signature(F.st_geomfromwkb).parameters) > 1  # not yet in Spark 4.1
    made = F.st_geomfromwkb(wkb, F.lit(srid)) if takes_srid else F.st_setsrid(F.st_geomfromwkb(wkb), F.lit(srid))
    return named(made, function, map(text_of, arguments), f"geometry({srid})")


def _points(x: pa.Array, y: pa.Array, z: pa.Array | None = None) -> pa.Array:
    from pqext.geo.wkb import from_points

    return from_points(x, y, z)


def _from_wkt(texts: pa.Array) -> pa.Array:
    from pqext.geo.text.wkt import from_wkt

    return from_wkt(texts).cast(pa.binary())


def _from_geojson(texts: pa.Array) -> pa.Array:
    from pqext.geo.text.geojson import from_geojson

    return from_geojson(texts).cast(pa.binary())


def made(array: pa.Array) -> pa.Array:
    """WKB as GEOMETRY(ANY) of SRID 4326, which SQL names return."""
    return geometries(array, 4326)


POINT = ArrowFunction("st_point", (NUMBER, NUMBER), T.BinaryType(), _points)
POINT_Z = ArrowFunction("st_point", (NUMBER, NUMBER, NUMBER), T.BinaryType(), _points)
FROM_WKT = ArrowFunction("st_geomfromwkt", (TEXT,), T.BinaryType(), _from_wkt)
FROM_GEOJSON = ArrowFunction("st_geomfromgeojson", (TEXT,), T.BinaryType(), _from_geojson)
