"""Convert between Arrow fields and Spark types, including VARIANT, GEOMETRY and GEOGRAPHY declared in field metadata.

There are three schemas. The *file* schema is the Arrow schema that pqext reads and writes, with field metadata that
declares types. The *Spark* schema is what users see: VARIANT, GEOMETRY(srid), GEOGRAPHY(srid) and plain types. The
*exchange* schema is Spark's own Arrow representation of its types, which batches must match exactly.
:func:`pqext.spark.base.arrays.conform` converts arrays between them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.metadata import version

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import _parse_datatype_json_string

from pqext.core.base.errors import UnsupportedError
from pqext.core.schema.annotations import SparkTypeHandler, find_by_mark
from pqext.core.schema.types.spark_profile import SPARK_NANOSECONDS
from pqext.geo import crs as geo_crs
from pqext.geo import types as geo
from pqext.variant.shredding.ddl import DdlType, parse_ddl
from pqext.variant.shredding.schema import Primitive, schema_of_storage, storage_struct, walk
from pqext.variant.types import (
    CHILD_MARK,
    CHILD_MARK_VALUE,
    is_marked,
    is_variant_type,
    variant_field,
    variant_type,
)

MARK = CHILD_MARK.decode()
"""Key in the field metadata of a struct's ``metadata`` child that marks a variant."""
EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"

_SIMPLE: dict[pa.DataType, T.DataType] = {
    pa.null(): T.NullType(),
    pa.bool_(): T.BooleanType(),
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(),
    pa.uint32(): T.LongType(),
    pa.uint64(): T.DecimalType(20, 0),
    pa.float16(): T.FloatType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.string(): T.StringType(),
    pa.large_string(): T.StringType(),
    pa.string_view(): T.StringType(),
    pa.binary(): T.BinaryType(),
    pa.large_binary(): T.BinaryType(),
    pa.binary_view(): T.BinaryType(),
    pa.date32(): T.DateType(),
    pa.date64(): T.DateType(),
}


_TIME_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
MOST_TIME_DIGITS = 9 if tuple(map(int, version("pyspark").split(".")[:2])) >= (4, 3) else 6
"""Maximum number of fractional digits of Spark's TIME."""


def spark_schema(schema: pa.Schema) -> T.StructType:
    """Return the Spark schema of a file with Arrow ``schema``. All columns are nullable.

    Raises ``UnsupportedError`` for a type without a counterpart in Spark.
    """
    return T.StructType([_spark_field(field, field.name) for field in schema])


def _spark_field(field: pa.Field, path: str) -> T.StructField:
    if geo.type_of(field) is not None:
        type = _spark_geospatial_type(field)
        metadata = _extension_metadata(field) if isinstance(type, T.BinaryType) else {}
        return T.StructField(field.name, type, True, metadata)
    annotation = find_by_mark(field)
    handler = annotation.load() if annotation is not None else None
    seen = handler.spark_type(field) if isinstance(handler, SparkTypeHandler) else field.type
    return T.StructField(field.name, spark_type(seen, path, is_marked=is_marked(field)), True)


def spark_type(type: pa.DataType, path: str = "$", is_marked: bool = False) -> T.DataType:
    """Return the Spark type of an Arrow type. ``is_marked`` means that the metadata of the field declares a VARIANT."""
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    if pa.types.is_dictionary(type):
        type = type.value_type
    if type in _SIMPLE:
        return _SIMPLE[type]
    if pa.types.is_decimal(type) and type.precision <= 38:
        return T.DecimalType(type.precision, type.scale)
    if pa.types.is_fixed_size_binary(type):
        return T.BinaryType()
    if pa.types.is_time(type):
        return T.TimeType(min(_TIME_DIGITS[type.unit], MOST_TIME_DIGITS))
    if pa.types.is_timestamp(type):
        return T.TimestampNTZType() if type.tz is None else T.TimestampType()
    if pa.types.is_duration(type):
        return T.DayTimeIntervalType()
    if pa.types.is_struct(type):
        return _spark_struct(type, path, is_marked)
    if pa.types.is_map(type):
        key, item = (_spark_field(field, f"{path}.{field.name}") for field in (type.key_field, type.item_field))
        return T.MapType(key.dataType, item.dataType, True)
    if hasattr(type, "value_field"):
        return T.ArrayType(_spark_field(type.value_field, f"{path}.element").dataType, True)
    raise UnsupportedError(
        f"Spark has no type for {type}; exclude the column with columns=", feature=str(type), column=path
    )


def _spark_struct(type: pa.StructType, path: str, is_marked: bool) -> T.DataType:
    mark_inside = any(CHILD_MARK in (child.metadata or {}) for child in type)
    if is_variant_type(type) and (is_marked or mark_inside):
        return T.VariantType()
    if mark_inside:
        check_leaves(type, path)
    fields = [_spark_field(field, f"{path}.{field.name}") for field in type]
    for spark_field, field in zip(fields, type, strict=True):
        if CHILD_MARK in (field.metadata or {}):
            spark_field.metadata = {MARK: CHILD_MARK_VALUE.decode()}
    return T.StructType(fields)


def check_leaves(storage: pa.StructType, path: str) -> None:
    """Raise ``UnsupportedError`` if Spark would change the type of a leaf in a shredded struct."""
    for _, name, node in walk(schema_of_storage(storage)):
        if isinstance(node, Primitive) and _file_type(spark_type(node.type), path) != node.type:
            raise UnsupportedError(
                f"Spark has no type for shredded field {name!r} of {node.type}: shred it as another type, "
                "or read the column unshredded",
                feature=f"shredded {node.type}",
                column=path,
            )


def _spark_geospatial_type(field: pa.Field) -> T.DataType:
    """Return GEOMETRY or GEOGRAPHY if Spark supports the CRS, otherwise BINARY with the WKB."""
    type = geo.type_of(field)
    assert type is not None
    type_class = {"planar": T.GeometryType, "spherical": T.GeographyType}.get(type.edges)
    srid = srid_of_crs(type.crs)
    if type_class is None or srid is None:
        return T.BinaryType()
    try:
        spatial: T.DataType = type_class(srid)
    except Exception:  # an error class of pyspark, for an unknown SRID
        return T.BinaryType()
    return spatial


def srid_of_crs(crs: str | None) -> int | None:
    """Return Spark's SRID for the CRS of a file; None if the CRS has no SRID.

    PROJJSON definitions are recognized for the systems that PySpark supports.
    """
    if crs is None or crs.upper() == "EPSG:4326":
        return 4326
    authority, _, code = crs.partition(":")
    if authority.upper() in ("EPSG", "SRID") and code.isascii() and code.isdecimal():
        return int(code) if len(code) < 10 else None
    if geo_crs.is_projjson(crs):
        return next((srid for srid, other in ((4326, None), (3857, "EPSG:3857")) if geo_crs.equal(crs, other)), None)
    return None


def crs_of_srid(srid: int) -> str | None:
    """Return the CRS that Spark writes for an SRID; None for the default CRS of the format."""
    return {4326: None, 0: geo_crs.UNKNOWN_TO_SPARK}.get(srid, f"EPSG:{srid}")


def to_exchange_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark uses to pass ``schema`` to and from Python.

    Raises ``UnsupportedError`` for maps with VOID keys, which Arrow does not support.
    """
    for field in schema:
        if "map<void," in field.dataType.simpleString():
            raise UnsupportedError(
                "Spark cannot pass a map with void keys to Python; select other columns with columns=, or read the "
                "files with spark.read.parquet", feature="void", column=field.name,
            )
    try:
        exchange: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # Spark 4.1 has no such argument
        exchange = to_arrow_schema(schema)
    return exchange


def to_exchange_type(type: T.DataType) -> pa.DataType:
    """Return the Arrow type that Spark uses to pass ``type`` to and from Python."""
    return to_exchange_schema(T.StructType([T.StructField("c", type)])).field(0).type


def file_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema, with field metadata, for writing a data frame with Spark ``schema``.

    A struct whose ``metadata`` child is marked becomes a shredded VARIANT. A VARIANT becomes an unshredded VARIANT.
    GEOMETRY and GEOGRAPHY become WKB with their CRS. Raises ``UnsupportedError`` for types that Parquet cannot store.
    """
    return pa.schema([_file_field(field, field.name) for field in schema])


def _file_field(field: T.StructField, path: str) -> pa.Field:
    plain = _nullable_field(field.name, _file_type(field.dataType, path), field.nullable)
    if isinstance(field.dataType, T.VariantType):
        return plain.with_metadata(variant_field(field.name).metadata)
    if isinstance(field.dataType, T.GeometryType | T.GeographyType):
        return geo.mark(plain, _geospatial_type(field.dataType, path))
    if isinstance(field.dataType, T.TimeType) and pa.types.is_time64(plain.type) and plain.type.unit == "ns":
        return plain.with_metadata({SPARK_NANOSECONDS: b"true"})
    return plain.with_metadata({key: str(field.metadata[key]) for key in _MARK_KEYS if key in field.metadata} or None)


def _nullable_field(name: str, type: pa.DataType, is_nullable: bool) -> pa.Field:
    """Create a field. A VOID field is always nullable, because VOID contains only nulls."""
    return pa.field(name, type, is_nullable or pa.types.is_null(type))


def _file_type(type: T.DataType, path: str) -> pa.DataType:
    if isinstance(type, T.VariantType):
        return variant_type()
    if isinstance(type, T.GeometryType | T.GeographyType):
        return pa.binary()
    if isinstance(type, T.StructType):
        struct = pa.struct([_file_field(field, f"{path}.{field.name}") for field in type])
        return storage_struct(schema_of_storage(struct)) if is_marked_struct(type) else struct
    if isinstance(type, T.ArrayType):
        element = T.StructField("element", type.elementType, type.containsNull)
        return pa.list_(_file_field(element, f"{path}.element"))
    if isinstance(type, T.MapType):
        if isinstance(type.keyType, T.NullType):
            raise UnsupportedError("map keys cannot be void; cast the column", feature="void", column=path)
        value = T.StructField("value", type.valueType, type.valueContainsNull)
        return pa.map_(_file_type(type.keyType, f"{path}.key"), _file_field(value, f"{path}.value"))
    if isinstance(type, T.DayTimeIntervalType):  # as in Spark, which records the type in the metadata of the file
        return pa.int64()
    if isinstance(type, T.UserDefinedType):
        return _file_type(type.sqlType(), path)
    if isinstance(type, T.YearMonthIntervalType):
        return pa.int32()
    if isinstance(type, T.TimeType):  # as in Spark, which does not read TIME in milliseconds
        return pa.time64("ns" if type.precision > _TIME_DIGITS["us"] else "us")
    return to_exchange_type(type)


def is_marked_struct(type: T.DataType) -> bool:
    """Return whether ``type`` is the struct of a shredded VARIANT, with :data:`MARK` in its child's metadata."""
    return isinstance(type, T.StructType) and any(MARK in (field.metadata or {}) for field in type)


def create_marked_struct(type: pa.StructType) -> T.StructType:
    """Return the Spark struct, with :data:`MARK`, for the Arrow storage struct of a VARIANT."""
    struct = _spark_struct(type, "$", is_marked=False)
    if isinstance(struct, T.VariantType):
        fields = [T.StructField("metadata", T.BinaryType(), True), T.StructField("value", T.BinaryType(), True)]
        struct = T.StructType(fields)
    assert isinstance(struct, T.StructType)
    struct["metadata"].metadata = {MARK: CHILD_MARK_VALUE.decode()}
    return struct


def drop_metadata(type: T.DataType) -> T.DataType:
    """Return ``type`` without field metadata, as required for return types of Arrow UDFs."""
    if isinstance(type, T.StructType):
        return T.StructType([T.StructField(f.name, drop_metadata(f.dataType), f.nullable) for f in type])
    if isinstance(type, T.ArrayType):
        return T.ArrayType(drop_metadata(type.elementType), type.containsNull)
    return type


@lru_cache(maxsize=1024)
def parse_type(name: str) -> T.DataType:
    """Parse a Spark type in DDL, such as ``double``, ``decimal(9,2)`` or ``array<struct<a: int>>``, without a session.

    Raises ``ValueError`` if ``name`` is not a Spark type.
    """
    return _parse_atomic_type(name) or _from_ddl(parse_ddl(name, "Spark type", allow_maps=True))


def _parse_atomic_type(name: str) -> T.DataType | None:
    plain = "".join(name.lower().split())
    try:
        return _parse_datatype_json_string(json.dumps(_JSON_NAMES.get(plain, plain)))
    except Exception:  # the error class depends on the version of pyspark
        return None


def _from_ddl(ddl_type: DdlType) -> T.DataType:
    if ddl_type.name == "STRUCT":
        return T.StructType([T.StructField(name, _from_ddl(child)) for name, child in ddl_type.fields])
    if ddl_type.element is not None:
        element = _from_ddl(ddl_type.element)
        return T.ArrayType(element) if ddl_type.key is None else T.MapType(_from_ddl(ddl_type.key), element)
    alias = "DECIMAL" if ddl_type.name in ("DEC", "NUMERIC") else ddl_type.name
    name = alias + (f"({','.join(map(str, ddl_type.arguments))})" if ddl_type.arguments else "")
    type = _parse_atomic_type(name)
    if type is None:
        raise ValueError(f"{name!r} is not the name of a Spark type")
    return type


def variant_target(type: T.DataType) -> pa.DataType:
    """Return the Arrow type to which VARIANT values are cast for the Spark type ``type``.

    Raises ``ValueError`` for a TIME precision that Arrow does not support.
    """
    if isinstance(type, T.VariantType):
        return variant_type()
    if isinstance(type, T.StructType):
        return pa.struct([pa.field(field.name, variant_target(field.dataType)) for field in type])
    if isinstance(type, T.ArrayType):
        return pa.list_(variant_target(type.elementType))
    if isinstance(type, T.MapType):
        return pa.map_(variant_target(type.keyType), variant_target(type.valueType))
    if isinstance(type, T.TimeType):
        units = {0: pa.time32("s"), 3: pa.time32("ms"), 6: pa.time64("us")}
        if type.precision not in units:
            raise ValueError(f"{type.simpleString()}: VARIANT values can be cast to TIME with 0, 3 or 6 digits only")
        return units[type.precision]
    return to_exchange_type(type)


_JSON_NAMES = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "real": "float",
    "bool": "boolean",
    "timestamp_ltz": "timestamp",
}
_MARK_KEYS = (EXTENSION_NAME, EXTENSION_METADATA, MARK)


def _geospatial_type(type: T.GeometryType | T.GeographyType, path: str) -> geo.GeospatialType:
    if type.srid == type.MIXED_SRID:
        raise UnsupportedError(
            "a Parquet column has one coordinate reference system, but the SRID of this type varies by row; "
            f"set it with st_setsrid({path}, 4326)",
            feature=type.simpleString(),
            column=path,
        )
    return geo.GeospatialType(crs_of_srid(type.srid), "spherical" if isinstance(type, T.GeographyType) else "planar")


def _extension_metadata(field: pa.Field) -> dict[str, str]:
    """Return the extension metadata of a field as Spark field metadata, which the writer converts back."""
    if isinstance(field.type, pa.BaseExtensionType):
        type = geo.type_of(field)
        return {} if type is None else {EXTENSION_NAME: geo.GEOARROW, EXTENSION_METADATA: type.extension_metadata()}
    return {key: field.metadata[key.encode()].decode() for key in _MARK_KEYS if key.encode() in (field.metadata or {})}
