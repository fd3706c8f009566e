"""Create geometries from coordinates, WKB, WKT and GeoJSON, and format them."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import Geometries, geometry_array
from pqext.spark.functions.udf import (
    GEOMETRIES,
    NUMBER,
    TEXT,
    ArgumentType,
    ArrowFunction,
    ColumnOrName,
    check_argument,
    display_name,
    name_column,
)

_BYTES = ArgumentType(
    r"^(binary|void)$", "BINARY with WKB", "use st_geomfromwkt for text, or unhex for hexadecimal text"
)


def st_point(x: ColumnOrName, y: ColumnOrName, z: ColumnOrName | None = None, srid: int = 4326) -> Column:
    """Create GEOMETRY(``srid``) points, POINT or POINT Z, from numeric columns; null if ``x`` or ``y`` is null.

    If ``z`` is null, the Z of the point is NaN.

    Example:
        >>> df.withColumn("geom", st_point("longitude", "latitude"))  # doctest: +SKIP
    """
    wkb = POINT(x, y) if z is None else POINT_Z(x, y, z)
    return _create_with_srid("st_point", wkb, srid, *(column for column in (x, y, z) if column is not None))


def st_geomfromwkb(wkb: ColumnOrName, srid: int = 4326) -> Column:
    """Create GEOMETRY(``srid``) from a BINARY column of WKB with Spark's own function. Return null for null.

    Spark raises an error for malformed WKB, EWKB and rings that are not closed.

    Example:
        >>> df.withColumn("geom", st_geomfromwkb("wkb", srid=3857))  # doctest: +SKIP
    """
    return _create_with_srid("st_geomfromwkb", check_argument("st_geomfromwkb", _BYTES, wkb), srid, wkb)


def st_geomfromwkt(wkt: ColumnOrName, srid: int = 4326) -> Column:
    """Create GEOMETRY(``srid``) from well-known text, as :func:`pqext.geo.from_wkt` does. Return null for null.

    Malformed WKT fails the query; the error states the row in its batch and the byte.

    Example:
        >>> df.withColumn("geom", st_geomfromwkt("wkt"))  # doctest: +SKIP
    """
    return _create_with_srid("st_geomfromwkt", FROM_WKT(wkt), srid, wkt)


st_geomfromtext = st_geomfromwkt


def st_geomfromgeojson(geojson: ColumnOrName, srid: int = 4326) -> Column:
    """Create GEOMETRY(``srid``) from GeoJSON geometries or features, as :func:`pqext.geo.from_geojson` does.

    Null for null. Malformed GeoJSON fails the query; the error states the row in its batch and the byte.

    Example:
        >>> df.withColumn("geom", st_geomfromgeojson("geojson"))  # doctest: +SKIP
    """
    return _create_with_srid("st_geomfromgeojson", FROM_GEOJSON(geojson), srid, geojson)


def _create_with_srid(function: str, wkb: Column, srid: int, *arguments: ColumnOrName) -> Column:
    """Apply ``function`` to ``wkb`` and return GEOMETRY(``srid``)."""
    has_srid = len(signature(F.st_geomfromwkb).parameters) > 1  # false in Spark 4.1
    result = F.st_geomfromwkb(wkb, F.lit(srid)) if has_srid else F.st_setsrid(F.st_geomfromwkb(wkb), F.lit(srid))
    return name_column(result, function, map(display_name, arguments), f"geometry({srid})")


def _create_points(x: pa.Array, y: pa.Array, z: pa.Array | None = None) -> pa.Array:
    from pqext.geo.wkb import from_points

    return from_points(x, y, z)


def _from_wkt(texts: pa.Array) -> pa.Array:
    from pqext.geo.text.wkt import from_wkt

    return from_wkt(texts).cast(pa.binary())


def _from_geojson(texts: pa.Array) -> pa.Array:
    from pqext.geo.text.geojson import from_geojson

    return from_geojson(texts).cast(pa.binary())


def set_default_srid(array: pa.Array) -> pa.Array:
    """Convert WKB to GEOMETRY(ANY) with SRID 4326, the result type of the SQL functions."""
    return geometry_array(array, 4326)


def st_aswkb(geometry: ColumnOrName) -> Column:
    """Return ISO WKB as BINARY, without the flags and SRID of EWKB. Return null for null.

    For GEOMETRY and GEOGRAPHY, Spark's own ``F.st_asbinary`` returns the same without Python.

    Example:
        >>> df.withColumn("wkb", st_aswkb("geom"))  # doctest: +SKIP
    """
    return AS_WKB(geometry)


st_asbinary = st_aswkb


def st_aswkt(geometry: ColumnOrName, precision: int | None = None) -> Column:
    """Return well-known text with ``precision`` decimals, by default enough to round-trip. Return null for null.

    Example:
        >>> df.select(st_aswkt("geom", precision=5))  # doctest: +SKIP
    """
    return AS_WKT(geometry, precision=precision) if precision is not None else AS_WKT(geometry)


st_astext = st_aswkt


def st_asgeojson(geometry: ColumnOrName, precision: int | None = None) -> Column:
    """Return GeoJSON geometries as text, without M. Return null for null.

    Coordinates are not transformed, although RFC 7946 requires longitude and latitude. See :func:`st_aswkt` for
    ``precision``.

    Example:
        >>> df.select(st_asgeojson("geom", precision=6))  # doctest: +SKIP
    """
    return AS_GEOJSON(geometry, precision=precision) if precision is not None else AS_GEOJSON(geometry)


def _to_wkb(array: pa.Array) -> pa.Array:
    from pqext import geo

    return geo.to_iso_wkb(Geometries.from_arrow(array).wkb)


def _to_wkt(array: pa.Array, precision: int | None = None) -> pa.Array:
    from pqext import geo

    return geo.to_wkt(Geometries.from_arrow(array).wkb, precision).cast(pa.string())


def _to_geojson(array: pa.Array, precision: int | None = None) -> pa.Array:
    from pqext import geo

    return geo.to_geojson(Geometries.from_arrow(array).wkb, precision).cast(pa.string())


POINT = ArrowFunction("st_point", (NUMBER, NUMBER), T.BinaryType(), _create_points)
POINT_Z = ArrowFunction("st_point", (NUMBER, NUMBER, NUMBER), T.BinaryType(), _create_points)
FROM_WKT = ArrowFunction("st_geomfromwkt", (TEXT,), T.BinaryType(), _from_wkt)
FROM_GEOJSON = ArrowFunction("st_geomfromgeojson", (TEXT,), T.BinaryType(), _from_geojson)
AS_WKB = ArrowFunction("st_aswkb", (GEOMETRIES,), T.BinaryType(), _to_wkb)
AS_WKT = ArrowFunction("st_aswkt", (GEOMETRIES,), T.StringType(), _to_wkt)
AS_GEOJSON = ArrowFunction("st_asgeojson", (GEOMETRIES,), T.StringType(), _to_geojson)
