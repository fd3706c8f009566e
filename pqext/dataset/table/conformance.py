"""Cast arrays of a file to the types of the unified schema.

Struct fields are matched by name. Fields that a file lacks have the value that its table states
(:attr:`pqext.core.read.reader.ParquetFile.missing_values`), or are null. These values are Arrow scalars by name, or
mappings of them for fields of structs (by name), lists (``element``) and maps (``key``, ``value``). A value that does
not fit the type is an error; it never changes.

Geometry columns keep their CRS and edges. A cast converts bytes, not coordinates: the same WKB with another CRS or
other edges would represent different geometries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pqext.core.base.text import escape_text
from pqext.core.schema.types.arrow_compute import cast_exactly, decode_dictionary
from pqext.geo.crs import equal
from pqext.geo.types import GeospatialType, describe_difference, type_of

_NONE: Mapping[str, Any] = MappingProxyType({})


def nulls(rows: int, type: pa.DataType) -> pa.Array:
    """Create an array of ``rows`` nulls of any type."""
    if isinstance(type, pa.BaseExtensionType):
        return type.wrap_array(nulls(rows, type.storage_type))
    return pa.nulls(rows, type)


def build_missing_column(rows: int, field: pa.Field, missing: Mapping[str, Any]) -> pa.Array:
    """Create the array of a column that a file lacks: its value in ``missing``, or nulls."""
    value = missing.get(field.name)
    if not isinstance(value, pa.Scalar):
        return nulls(rows, field.type)
    return conform(pa.repeat(value, rows), field.type, field.name)


def conform(array: pa.Array, type: pa.DataType, name: str, missing: Mapping[str, Any] = _NONE) -> pa.Array:
    """Cast ``array`` to ``type``. Fields that the file lacks are added with the values in ``missing``, or with nulls.

    Raises ``ValueError`` with the column ``name`` if a value does not fit.
    """
    types = pa.types
    if array.type == type:
        return array
    if types.is_null(array.type):
        return nulls(len(array), type)
    if isinstance(type, pa.BaseExtensionType):
        return type.wrap_array(conform(array, type.storage_type, name, missing))
    if isinstance(array, pa.ExtensionArray):
        return conform(array.storage, type, name, missing)
    if types.is_dictionary(type):
        return _conform_dictionary(array, type, name)
    if types.is_dictionary(array.type):
        return conform(decode_dictionary(array), type, name)
    if types.is_struct(array.type) and types.is_struct(type):
        return _conform_struct(array, type, name, missing)
    if types.is_map(array.type) and types.is_map(type):
        return _conform_map(array, type, name, missing)
    if types.is_nested(array.type) and types.is_nested(type) and not (types.is_struct(type) or types.is_map(type)):
        return _conform_list(array, type, name, missing)
    return _cast(array, type, name)


def _conform_dictionary(array: pa.Array, type: pa.DictionaryType, name: str) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        array = conform(array, type.value_type, name).dictionary_encode()
    entries = conform(array.dictionary, type.value_type, name)
    indices = _cast(array.indices, type.index_type, name)
    return pa.DictionaryArray.from_arrays(indices, entries, ordered=type.ordered, safe=False)


def _conform_struct(array: pa.StructArray, type: pa.StructType, name: str, missing: Mapping[str, Any]) -> pa.Array:
    places = {field.name: index for index, field in enumerate(array.type)}
    if len(places) < array.type.num_fields:
        raise ValueError(f"column {name!r} of {array.type} has duplicate field names")
    children = [
        conform(array.field(places[field.name]), field.type, f"{name}.{field.name}", _values_below(missing, field.name))
        if field.name in places
        else build_missing_column(len(array), field, missing)
        for field in type
    ]
    return pa.StructArray.from_arrays(children, fields=list(type), mask=array.is_null() if array.null_count else None)


def _values_below(missing: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    values = missing.get(name)
    return values if isinstance(values, Mapping) else _NONE


def _conform_map(array: pa.MapArray, type: pa.MapType, name: str, missing: Mapping[str, Any]) -> pa.Array:
    keys = conform(array.keys, type.key_type, f"{name}.key", _values_below(missing, "key"))
    items = conform(array.items, type.item_type, f"{name}.value", _values_below(missing, "value"))
    pair = pa.struct([type.key_field, type.item_field])
    entries = pa.Array.from_buffers(pair, len(keys), [None], children=[keys, items])
    return pa.Array.from_buffers(type, len(array), array.buffers()[:2], offset=array.offset, children=[entries])


def _conform_list(array: pa.Array, type: pa.DataType, name: str, missing: Mapping[str, Any]) -> pa.Array:
    types = pa.types
    values = conform(array.values, type.value_type, f"{name}.element", _values_below(missing, "element"))
    value = type.value_field
    if types.is_fixed_size_list(array.type):
        kind, buffers = pa.list_(value, array.type.list_size), 1
    elif types.is_list_view(array.type):
        kind, buffers = pa.list_view(value), 3
    elif types.is_large_list_view(array.type):
        kind, buffers = pa.large_list_view(value), 3
    else:
        kind, buffers = (pa.large_list(value) if types.is_large_list(array.type) else pa.list_(value)), 2
    same = pa.Array.from_buffers(
        kind, len(array), array.buffers()[:buffers], offset=array.offset, children=[values]
    )
    return same if kind == type else _cast(same, type, name)


def _cast(array: pa.Array, type: pa.DataType, name: str) -> pa.Array:
    try:
        return cast_exactly(array, type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"column {name!r} of {array.type} cannot be read as {type}: {error}") from None


def check_geometry_types(schema: pa.Schema, file_schema: pa.Schema, path: str | None) -> None:
    """Raise ``ValueError`` if the CRS or edges of a geometry column differ between ``schema`` and ``file_schema``.

    Columns and nested fields are compared only if they have a geometry type in both schemas. ``path`` is the path of
    the file.
    """
    _check_fields(schema, file_schema, path, ())


def _check_fields(
    schema: Iterable[pa.Field], file_fields: Iterable[pa.Field], path: str | None, parents: tuple[str, ...]
) -> None:
    held = {field.name: field for field in file_fields}
    for field in schema:
        own = held.get(field.name)
        if own is None or own.equals(field, check_metadata=True):
            continue
        names = (*parents, field.name)
        first, second = type_of(own), type_of(field)
        if first is not None and second is not None and not _is_same_type(first, second):
            stored, requested = describe_difference(first, second)
            raise ValueError(
                f"column {escape_text('.'.join(names))!r} has {stored} in {path}, but {requested} in schema=; read it "
                "as stored, then reproject it with pqext.geo.transform"
            )
        if pa.types.is_nested(own.type) and pa.types.is_nested(field.type):
            _check_fields(_children(field.type), _children(own.type), path, names)


def _is_same_type(first: GeospatialType, second: GeospatialType) -> bool:
    return first.edges == second.edges and (first.crs == second.crs or equal(first.crs, second.crs))


def _children(type: pa.DataType) -> list[pa.Field]:
    """Return the child fields of a nested type. The children of lists and maps get the standard names."""
    if pa.types.is_map(type):
        return [type.key_field.with_name("key"), type.item_field.with_name("value")]
    if pa.types.is_struct(type):
        return list(type)
    return [type.value_field.with_name("element")] if hasattr(type, "value_field") else []
