"""Spark's schema in a Parquet footer: fields with types, nullability and metadata, as JSON.

If one column has an unknown user-defined type, Spark drops the metadata of all columns. This module preserves it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, UnsupportedError

KEY = "org.apache.spark.sql.parquet.row.metadata"
"""Key of the schema in the key-value metadata of the footer."""
VERSION_KEY = "org.apache.spark.version"
MOST_CHARACTERS = 8 << 20
"""Maximum length of a schema, enough for 25,000 indexes. Once parsed, it may take thirty times as much memory."""


@dataclass(frozen=True, slots=True)
class SparkField:
    """Column of a Spark schema.

    ``type`` is a name such as ``"string"``, or the JSON object of a nested or user-defined type.
    """

    name: str
    type: Any
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


def parse(text: str, path: str | None = None) -> tuple[SparkField, ...]:
    """Parse the columns of a schema. Raises ``CorruptFileError``, with the file's ``path``, for an invalid schema."""
    if len(text) > MOST_CHARACTERS:
        raise _schema_error(f"has {len(text):,} characters, more than {MOST_CHARACTERS:,}", path)
    try:
        schema = json.loads(text)
        json.dumps(schema, ensure_ascii=False).encode()  # lone surrogates are not valid text
    except (ValueError, RecursionError) as error:
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"is not JSON ({error})"
        raise _schema_error(reason, path) from None
    if not isinstance(schema, dict) or schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
        raise _schema_error("is not a struct with a list of fields", path)
    return tuple(_field(field, at, path) for at, field in enumerate(schema["fields"]))


def _field(field: Any, position: int, path: str | None) -> SparkField:
    if not isinstance(field, dict) or not isinstance(field.get("name"), str):
        raise _schema_error(f"has no name at field {position}", path)
    name, type = field["name"], field.get("type")
    if not (isinstance(type, str) or (isinstance(type, dict) and isinstance(type.get("type"), str))):
        raise _schema_error("has no type", path, name)
    nullable, metadata = field.get("nullable", True), field.get("metadata", {})
    if not isinstance(nullable, bool):
        raise _schema_error("has an invalid 'nullable'", path, name)
    if not isinstance(metadata, dict):
        raise _schema_error("has metadata that is not an object", path, name)
    return SparkField(name, type, nullable, metadata)


def write(fields: Sequence[SparkField]) -> str:
    """Serialise a schema to JSON in Spark's format."""
    listed = [
        {"name": field.name, "type": field.type, "nullable": field.nullable, "metadata": field.metadata}
        for field in fields
    ]
    return json.dumps({"type": "struct", "fields": listed}, ensure_ascii=False, separators=(",", ":"))


_NAMES = {
    pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string",
    pa.binary(): "binary", pa.large_binary(): "binary", pa.binary_view(): "binary",
    pa.bool_(): "boolean", pa.date32(): "date", pa.float32(): "float", pa.float64(): "double",
    pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long",
    pa.uint8(): "short", pa.uint16(): "integer", pa.uint32(): "long", pa.uint64(): "decimal(20,0)",
}  # fmt: skip


def spark_type(type: pa.DataType, column: str) -> Any:
    """Convert an Arrow type to Spark's type, as represented in the JSON of a schema.

    Raises ``UnsupportedError``, with the name ``column``, if Spark has no such type.
    """
    if type in _NAMES:
        return _NAMES[type]
    if pa.types.is_timestamp(type) and type.unit in ("us", "ms"):
        return "timestamp" if type.tz is not None else "timestamp_ntz"
    if pa.types.is_decimal(type) and 0 <= type.scale <= type.precision <= 38:
        return f"decimal({type.precision},{type.scale})"
    if pa.types.is_fixed_size_binary(type):
        return "binary"
    if pa.types.is_struct(type):
        members = [type.field(at) for at in range(type.num_fields)]
        fields = [
            {"name": member.name, "type": spark_type(member.type, column), "nullable": True, "metadata": {}}
            for member in members
        ]
        return {"type": "struct", "fields": fields}
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return {"type": "array", "elementType": spark_type(type.value_type, column), "containsNull": True}
    raise UnsupportedError(
        f"Spark has no equivalent of the Arrow type {type}: cast the column",
        feature=f"Arrow type {type}", column=column,
    )


def _schema_error(reason: str, path: str | None, column: str | None = None) -> CorruptFileError:
    return CorruptFileError(f"the Spark schema in the footer ({KEY}) {reason}", path=path, column=column)
