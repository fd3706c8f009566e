"""Convert Delta schemas to Arrow, and map the columns of a table to names and ids in files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import UnsupportedError
from pqext.geo.storage import COVERING_FIELDS
from pqext.geo.types import GeospatialType, mark
from pqext.tables.renaming import TableField
from pqext.variant.types import variant_field

_TYPES: Mapping[str, pa.DataType] = {
    "string": pa.string(), "long": pa.int64(), "integer": pa.int32(), "short": pa.int16(), "byte": pa.int8(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "binary": pa.binary(), "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us"), "void": pa.null(),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
PHYSICAL_NAME = "delta.columnMapping.physicalName"
ID = "delta.columnMapping.id"
GEOMETRY = "geoarrow.wkb"
"""Metadata key of a binary column of WKB. The value states the CRS and the edges, as in GeoArrow."""
COVERING = "geoparquet.covering"
"""Metadata key of a geometry column. The value is the name of the covering column, as in GeoParquet."""


def arrow_schema(struct: Mapping[str, Any]) -> pa.Schema:
    """Convert the JSON of a table's schema. Raises ``UnsupportedError`` for an unknown type."""
    return pa.schema([_field(member) for member in struct["fields"]])


def _field(member: Mapping[str, Any]) -> pa.Field:
    name, nullable = member["name"], member.get("nullable", True)
    if member["type"] == "variant":
        return variant_field(name, nullable)
    field = pa.field(name, _type(member["type"], name), nullable=nullable)
    geometry = member.get("metadata", {}).get(GEOMETRY)
    if isinstance(geometry, str) and member["type"] == "binary":
        return mark(field, GeospatialType.from_extension_metadata(geometry.encode()))
    return field


def _type(type: Any, name: str) -> pa.DataType:
    if isinstance(type, str):
        if type in _TYPES:
            return _TYPES[type]
        decimal = _DECIMAL.fullmatch(type)
        if decimal is not None:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
    elif type["type"] == "struct":
        return pa.struct([_field(member) for member in type["fields"]])
    elif type["type"] == "array":
        return pa.list_(_field({"name": "element", "type": type["elementType"], "nullable": type["containsNull"]}))
    elif type["type"] == "map":
        key = _field({"name": "key", "type": type["keyType"], "nullable": False})
        return pa.map_(key, _field({"name": "value", "type": type["valueType"], "nullable": type["valueContainsNull"]}))
    raise UnsupportedError(f"column {name!r} has the unsupported Delta type {type!r}", feature="Delta types")


def covering_columns(struct: Mapping[str, Any]) -> dict[str, str]:
    """Map the names of top-level geometry columns to the names of their covering columns."""
    pairs = ((member["name"], member.get("metadata", {}).get(COVERING)) for member in struct["fields"])
    boxes = {member["name"] for member in struct["fields"] if _is_box(member["type"])}
    return {name: covering for name, covering in pairs if covering in boxes}


def _is_box(type: Any) -> bool:
    if isinstance(type, str) or type["type"] != "struct":
        return False
    bounds = {member["name"]: member["type"] for member in type["fields"]}
    return bounds.keys() == {*COVERING_FIELDS} and [*bounds.values()] in (["float"] * 4, ["double"] * 4)


def mapped_fields(struct: Mapping[str, Any], mode: str) -> dict[int | str, TableField]:
    """Return the fields of a table by field id if ``mode`` is ``id``, otherwise by their names in files."""
    return dict(_mapped(member, _key_by(mode)) for member in struct["fields"])


def _key_by(mode: str) -> Callable[[Mapping[str, Any]], int | str]:
    def key(member: Mapping[str, Any]) -> int | str:
        metadata = member.get("metadata", {})
        result: int | str = metadata[ID] if mode == "id" else metadata.get(PHYSICAL_NAME, member["name"])
        return result

    return key


def _mapped(
    member: Mapping[str, Any], key: Callable[[Mapping[str, Any]], int | str]
) -> tuple[int | str, TableField]:
    return key(member), TableField(member["name"], _children(member["type"], key))


def _children(type: Any, key: Callable[[Mapping[str, Any]], int | str]) -> dict[int | str, TableField]:
    if isinstance(type, str):
        return {}
    if type["type"] == "struct":
        return dict(_mapped(member, key) for member in type["fields"])
    parts = {"element": "elementType"} if type["type"] == "array" else {"key": "keyType", "value": "valueType"}
    return {name: TableField(name, _children(type[member], key)) for name, member in parts.items()}
