"""The columns of a table in DDL: Spark's types, as ``pqext schema --format exact`` prints them."""

from __future__ import annotations

import pyarrow as pa

from pqext.geo.crs import UNKNOWN
from pqext.geo.types import Edges, geometry_field
from pqext.variant.access.targets import target_type
from pqext.variant.shredding.ddl import DdlType, parse_ddl
from pqext.variant.types import variant_type

_SPATIAL = ("GEOMETRY", "GEOGRAPHY")
_UNITS = {3: "ms", 6: "us", 9: "ns"}
_PRECISE: dict[str, dict[int, pa.DataType]] = {
    "TIMESTAMP": {digits: pa.timestamp(unit, "UTC") for digits, unit in _UNITS.items()},
    "TIMESTAMP_NTZ": {digits: pa.timestamp(unit) for digits, unit in _UNITS.items()},
    "TIME": {0: pa.time32("ms"), 3: pa.time32("ms"), 6: pa.time64("us"), 9: pa.time64("ns")},
}
_OTHERS = (
    "ARRAY<type>, BINARY(bytes), FLOAT16, GEOGRAPHY, GEOMETRY, MAP<type, type>, STRUCT<name: type>, UINT8 to UINT64, "
    "VARIANT"
)
_SHORT, _LONG = 38, 76
"""Digits of decimals at most that Spark and Arrow have."""
_CRS84 = 4326
"""Spark's number of OGC:CRS84, which pqext writes as the default of the format."""


def columns(text: str) -> pa.Schema:
    """The Arrow schema of DDL. Columns and fields with NOT NULL are required, others may be null.

    Beyond the types of variants there are ``GEOMETRY(srid)`` and ``GEOGRAPHY(srid)``, in which ``ANY`` is an unknown
    CRS, ``TIMESTAMP(3)``, ``(6)`` and ``(9)``, ``BINARY(n)`` for values of n bytes each, ``VOID``, decimals of up to 76
    digits, maps with keys of any type, and Arrow's names of types, like ``UINT32``. Raises ``ValueError`` for text that
    is no list of columns.
    """
    text = text.removeprefix("\ufeff").strip().removesuffix(";")
    parsed = parse_ddl(text, "schema", maps=True, words=_SPATIAL)
    if parsed.name != "STRUCT" or not parsed.fields:
        raise ValueError("schema needs the columns of the file, like 'id BIGINT, name STRING'")
    return pa.schema(_fields(parsed, text))


def _fields(parsed: DdlType, text: str) -> list[pa.Field]:
    names = [name for name, _ in parsed.fields]
    if len(set(names)) < len(names):
        raise ValueError(f"two fields of {text!r} have the same name")
    return [_field(name, kind, text) for name, kind in parsed.fields]


def _field(name: str, parsed: DdlType, text: str) -> pa.Field:
    if parsed.name in _SPATIAL:
        edges: Edges = "planar" if parsed.name == "GEOMETRY" else "spherical"
        return geometry_field(name, _crs(parsed), edges, nullable=not parsed.required)
    return pa.field(name, _type(parsed, text), nullable=not parsed.required)


def _crs(parsed: DdlType) -> str | None:
    if (parsed.word is not None and parsed.word.upper() != "ANY") or len(parsed.arguments) > 1:
        raise ValueError(f"{parsed.name} takes the number of a CRS, like {parsed.name}(4326), or ANY")
    if parsed.word is not None or parsed.arguments == (0,):
        return UNKNOWN
    srid = parsed.arguments[0] if parsed.arguments else _CRS84
    return None if srid == _CRS84 else f"EPSG:{srid}"


def _type(parsed: DdlType, text: str) -> pa.DataType:
    name, arguments = parsed.name, parsed.arguments
    if name == "STRUCT":
        return pa.struct(_fields(parsed, text))
    if parsed.element is not None and parsed.key is not None:
        item = _field("value", parsed.element, text)
        return pa.map_(_field("key", parsed.key, text).with_nullable(False), item)
    if parsed.element is not None:
        return pa.list_(_field("element", parsed.element, text))
    if name == "VARIANT" and not arguments:
        return variant_type()
    if name == "VOID" and not arguments:
        return pa.null()
    if name in _PRECISE and len(arguments) == 1:
        return _precise(name, arguments[0], _PRECISE[name])
    if name == "BINARY" and len(arguments) == 1 and arguments[0]:
        return pa.binary(arguments[0])
    if name == "DECIMAL" and len(arguments) == 2 and arguments[1] <= arguments[0] and _SHORT < arguments[0] <= _LONG:
        return pa.decimal256(*arguments)
    if name in ("CHAR", "VARCHAR") and len(arguments) == 1:
        return pa.string()
    try:
        return target_type(f"{name}({','.join(map(str, arguments))})" if arguments else name)
    except ValueError as error:
        told = str(error).replace("is not a type of the variant encoding", "is no type of a column")
        raise ValueError(told.replace("types are ", f"types are {_OTHERS}, ")) from None


def _precise(name: str, digits: int, kinds: dict[int, pa.DataType]) -> pa.DataType:
    if digits not in kinds:
        raise ValueError(f"{name}({digits}): the digits after the second are one of {', '.join(map(str, kinds))}")
    return kinds[digits]
