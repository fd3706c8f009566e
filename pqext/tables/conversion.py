"""Convert columns to the types of a table, and format the names of these types."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from pqext.core.base.errors import InvalidValueError
from pqext.geo.crs import DEFAULT
from pqext.geo.geoarrow import as_wkb, encoding_of
from pqext.geo.types import mark, marked_type, type_of
from pqext.variant.types import is_marked, storage_array, variant_field

Convert = Callable[[pa.Array], pa.Array]


def column_conversion(source: pa.Field, target: pa.Field) -> tuple[pa.Field, Convert]:
    """Return the field of a column for the writer, and a function that converts arrays to the type of the field.

    ``target`` is the column in the table. The writer of the file converts VARIANT columns and annotated geometries.
    """
    if is_marked(target):
        field = source if is_marked(source) else variant_field(target.name).with_type(source.type)
        return field.with_nullable(target.nullable), _reject_nulls(target, lambda array: array)
    if type_of(target) is not None or encoding_of(target) is not None:  # annotated in the file
        field = source if encoding_of(source) is not None else mark(source, marked_type(target))
        return field.with_nullable(target.nullable), _reject_nulls(target, lambda array: array)
    encoding = encoding_of(source)

    def convert(array: pa.Array) -> pa.Array:
        array = storage_array(array) if encoding is None else as_wkb(array, encoding)
        array = storage_array(array)
        return array if array.type == target.type else array.cast(target.type)

    return target, _reject_nulls(target, convert)


def _reject_nulls(target: pa.Field, convert: Convert) -> Convert:
    """Return a function that converts an array, but first raises an error if a required column has nulls."""

    def convert_valid(array: pa.Array) -> pa.Array:
        if not target.nullable and array.null_count:
            message = "a value is null, but the table requires values in this column; replace the nulls"
            raise InvalidValueError(message, column=target.name)
        return convert(array)

    return convert_valid


def type_name(field: pa.Field) -> str:
    """Return the name of a column's type: VARIANT, GEOMETRY or GEOGRAPHY with its CRS, or the Arrow type."""
    if is_marked(field):
        return "VARIANT"
    geometry = type_of(field)
    if geometry is None:
        return str(field.type)
    crs = geometry.crs if geometry.crs is None or not geometry.crs.startswith("{") else "PROJJSON"
    return f"{'GEOMETRY' if geometry.planar else 'GEOGRAPHY'}({crs or DEFAULT})"
