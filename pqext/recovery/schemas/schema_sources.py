"""Resolve the schema of a file without a footer from a sibling file, an Arrow schema, or DDL with Spark types."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import Limits
from pqext.core.base.local_paths import scheme_of
from pqext.core.format.metadata import KeyValue, SchemaElement
from pqext.core.read.reader import ParquetFile
from pqext.core.write.writer import write_table
from pqext.geo.crs import UNKNOWN
from pqext.geo.types import Edges, geometry_field
from pqext.recovery.candidates.candidates import Candidates, remove_value_metadata
from pqext.variant.access.targets import target_type
from pqext.variant.shredding.ddl import DdlType, parse_ddl
from pqext.variant.types import variant_type

_MOST_TEXT = 1 << 20
_SUFFIXES = (".parquet", ".parq", ".ddl", ".sql", ".txt")
ProvidedSchema = tuple[Candidates, list[int | None], bool]
"""Schema, the codec of each leaf if known, and whether its physical types are guessed by pqext."""
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
"""Maximum number of decimal digits in Spark and in Arrow."""
_CRS84 = 4326
"""Spark's SRID of OGC:CRS84, which pqext writes as the default CRS."""


def resolve_schema(schema: Any, limits: Limits) -> ProvidedSchema:
    """Read a schema, and the codec of each leaf if the source is a Parquet file.

    ``schema`` is a Parquet file, an Arrow schema, or DDL, which may be in a text file. Raises ``ValueError`` for text
    that is neither a file nor DDL.
    """
    if isinstance(schema, pa.Schema):
        return _schema_from_arrow(schema, "the provided Arrow schema")
    if isinstance(schema, str) and not _is_file_name(schema):
        try:
            parsed = parse_columns(schema)
        except (ValueError, TypeError) as error:
            raise ValueError(f"schema is neither an existing file nor valid DDL: {error}") from None
        return _schema_from_arrow(parsed, "the provided DDL")
    if (text := _read_text(schema)) is not None:
        try:
            return _schema_from_arrow(parse_columns(text), f"the DDL in {os.fspath(schema)}")
        except (ValueError, TypeError) as error:
            raise ValueError(f"schema is a text file but not valid DDL: {error}") from None
    if isinstance(schema, Mapping | list | tuple | set | int | float):
        raise TypeError(f"schema must be a Parquet file, an Arrow schema or DDL, not a {type(schema).__name__}")
    try:
        file = ParquetFile(schema, limits=limits)
    except CorruptFileError as error:
        message = f"the schema file cannot be read: {error.message.partition(': ')[0]}"
        raise CorruptFileError(message, path=error.path) from None
    with file:
        metadata = file.metadata
        codecs: list[int | None] = [None] * len(file.schema.leaves)
        for group in file.row_groups:
            codecs = [int(chunk.codec) for chunk in group.chunks()]
            break
        elements: Sequence[SchemaElement] = list(metadata.schema)
        pairs: list[KeyValue] | None = remove_value_metadata(metadata.key_value_metadata)
        schema_from = f"the file {file.path}" if file.path else "the provided file"
        return Candidates(elements, schema_from, [], pairs, None), codecs, False


def _is_file_name(text: str) -> bool:
    """Return whether ``text`` is an existing path, a URL, or a name with the suffix of a schema file."""
    return os.path.exists(text) or scheme_of(text) is not None or text.endswith(_SUFFIXES)


def _read_text(schema: Any) -> str | None:
    """Read a short local text file. Returns None for Parquet files and other sources."""
    if not isinstance(schema, str | os.PathLike) or scheme_of(os.fspath(schema)) is not None:
        return None
    try:
        with open(schema, "rb") as file:
            data = file.read(_MOST_TEXT + 1)
        if len(data) > _MOST_TEXT or data[:3] == b"PAR" or b"\0" in data:
            return None
        return data.decode()
    except (OSError, UnicodeDecodeError):
        return None


def _schema_from_arrow(schema: pa.Schema, schema_from: str) -> ProvidedSchema:
    if not schema.names:
        raise ValueError("schema has no columns; pass the columns of the file")
    sink = io.BytesIO()
    try:
        write_table(schema.empty_table(), sink)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"schema has a column that Parquet cannot store: {error}") from None
    with ParquetFile(sink.getvalue()) as file:
        leaves = len(file.schema.leaves)
        candidates = Candidates(list(file.metadata.schema), schema_from, [], file.metadata.key_value_metadata)
    return candidates, [None] * leaves, True


def parse_columns(text: str) -> pa.Schema:
    """Convert DDL to an Arrow schema. Columns and fields are nullable, unless they are NOT NULL.

    In addition to the types of variants, DDL can contain ``GEOMETRY(srid)`` and ``GEOGRAPHY(srid)``, with ``ANY`` for
    an unknown CRS, ``TIMESTAMP(3)``, ``(6)`` and ``(9)``, ``BINARY(n)`` for values of n bytes each, ``VOID``, decimals
    of up to 76 digits, maps with keys of any type, and Arrow's type names, like ``UINT32``. Raises ``ValueError`` for
    text that is not a list of columns.
    """
    text = text.removeprefix("\ufeff").strip().removesuffix(";")
    parsed = parse_ddl(text, "schema", allow_maps=True, word_types=_SPATIAL)
    if parsed.name != "STRUCT" or not parsed.fields:
        raise ValueError("schema must list the columns of the file, such as 'id BIGINT, name STRING'")
    return pa.schema(_fields(parsed, text))


def _fields(ddl_type: DdlType, text: str) -> list[pa.Field]:
    names = [name for name, _ in ddl_type.fields]
    if len(set(names)) < len(names):
        raise ValueError(f"{text!r} has two fields with the same name")
    return [_field(name, field_type, text) for name, field_type in ddl_type.fields]


def _field(name: str, ddl_type: DdlType, text: str) -> pa.Field:
    if ddl_type.name in _SPATIAL:
        edges: Edges = "planar" if ddl_type.name == "GEOMETRY" else "spherical"
        return geometry_field(name, _crs(ddl_type), edges, nullable=not ddl_type.required)
    return pa.field(name, _type(ddl_type, text), nullable=not ddl_type.required)


def _crs(ddl_type: DdlType) -> str | None:
    if (ddl_type.word is not None and ddl_type.word.upper() != "ANY") or len(ddl_type.arguments) > 1:
        raise ValueError(f"{ddl_type.name} requires an SRID, as in {ddl_type.name}(4326), or ANY")
    if ddl_type.word is not None or ddl_type.arguments == (0,):
        return UNKNOWN
    srid = ddl_type.arguments[0] if ddl_type.arguments else _CRS84
    return None if srid == _CRS84 else f"EPSG:{srid}"


def _type(ddl_type: DdlType, text: str) -> pa.DataType:
    name, arguments = ddl_type.name, ddl_type.arguments
    if name == "STRUCT":
        return pa.struct(_fields(ddl_type, text))
    if ddl_type.element is not None and ddl_type.key is not None:
        item = _field("value", ddl_type.element, text)
        return pa.map_(_field("key", ddl_type.key, text).with_nullable(False), item)
    if ddl_type.element is not None:
        return pa.list_(_field("element", ddl_type.element, text))
    if name == "VARIANT" and not arguments:
        return variant_type()
    if name == "VOID" and not arguments:
        return pa.null()
    if name in _PRECISE and len(arguments) == 1:
        return _type_with_precision(name, arguments[0], _PRECISE[name])
    if name == "BINARY" and len(arguments) == 1 and arguments[0]:
        return pa.binary(arguments[0])
    if name == "DECIMAL" and len(arguments) == 2 and arguments[1] <= arguments[0] and _SHORT < arguments[0] <= _LONG:
        return pa.decimal256(*arguments)
    if name in ("CHAR", "VARCHAR") and len(arguments) == 1:
        return pa.string()
    try:
        return target_type(f"{name}({','.join(map(str, arguments))})" if arguments else name)
    except ValueError as error:
        raise ValueError(str(error).replace("types are ", f"types are {_OTHERS}, ")) from None


def _type_with_precision(name: str, digits: int, types: dict[int, pa.DataType]) -> pa.DataType:
    if digits not in types:
        raise ValueError(f"{name}({digits}): the fractional digits must be one of {', '.join(map(str, types))}")
    return types[digits]
