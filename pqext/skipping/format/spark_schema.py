"""Spark's schema in a Parquet footer: JSON of fields with types, nullability and metadata.

Spark itself drops the metadata of all columns where one has a user-defined type that it does not know; here such a
type is kept as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, UnsupportedError

KEY = "org.apache.spark.sql.parquet.row.metadata"
"""The key of the footer's metadata under which the schema stands."""
VERSION_KEY = "org.apache.spark.version"
MOST_CHARACTERS = 8 << 20
"""A longer schema is refused: 25,000 indexes take less. Parsed, it may take thirty times its length."""


@dataclass(frozen=True, slots=True)
class SparkField:
    """A column: ``type`` is a name such as ``"string"``, or the JSON object of a nested or user-defined type."""

    name: str
    type: Any
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)


def parse(text: str, path: str | None = None) -> tuple[SparkField, ...]:
    """The columns of a schema. Raises ``CorruptFileError``, with the file's ``path``, for anything else."""
    if len(text) > MOST_CHARACTERS:
        raise _wrong(f"has {len(text):,} characters, and {MOST_CHARACTERS:,} are the most that is read", path)
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nests too deep" if isinstance(error, RecursionError) else f"is no JSON ({error})"
        raise _wrong(reason, path) from None
    if not isinstance(schema, dict) or schema.get("type") != "struct" or not isinstance(schema.get("fields"), list):
        raise _wrong("is no struct with a list of fields", path)
    return tuple(_field(one, at, path) for at, one in enumerate(schema["fields"]))


def _field(one: Any, at: int, path: str | None) -> SparkField:
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        raise _wrong(f"has no name at field {at}", path)
    name, kind = one["name"], one.get("type")
    if not (isinstance(kind, str) or (isinstance(kind, dict) and isinstance(kind.get("type"), str))):
        raise _wrong("gives no type", path, name)
    nullable, metadata = one.get("nullable", True), one.get("metadata", {})
    if not isinstance(nullable, bool):
        raise _wrong("does not tell whether the column has nulls", path, name)
    if not isinstance(metadata, dict):
        raise _wrong("has metadata that is no object", path, name)
    return SparkField(name, kind, nullable, metadata)


def write(fields: Sequence[SparkField]) -> str:
    """The JSON of a schema, as Spark writes it."""
    listed = [
        {"name": one.name, "type": one.type, "nullable": one.nullable, "metadata": one.metadata} for one in fields
    ]
    return json.dumps({"type": "struct", "fields": listed}, ensure_ascii=False, separators=(",", ":"))


_NAMES = {
    pa.string(): "string", pa.large_string(): "string", pa.string_view(): "string",
    pa.binary(): "binary", pa.large_binary(): "binary", pa.binary_view(): "binary",
    pa.bool_(): "boolean", pa.date32(): "date", pa.float32(): "float", pa.float64(): "double",
    pa.int8(): "byte", pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long",
    pa.uint8(): "short", pa.uint16(): "integer", pa.uint32(): "long", pa.uint64(): "decimal(20,0)",
}  # fmt: skip


def type_of(kind: pa.DataType, column: str) -> Any:
    """The type by which Spark reads a Parquet column that Arrow has as ``kind``.

    Raises ``UnsupportedError``, with the ``column``, for one that Spark has none for.
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_timestamp(kind) and kind.unit in ("us", "ms"):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    if pa.types.is_struct(kind):
        members = [kind.field(at) for at in range(kind.num_fields)]
        listed = [{"name": one.name, "type": type_of(one.type, column), "nullable": True, "metadata": {}}
                  for one in members]  # fmt: skip
        return {"type": "struct", "fields": listed}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "elementType": type_of(kind.value_type, column), "containsNull": True}
    raise UnsupportedError(
        f"Spark has no type for Arrow's {kind}: cast it", feature=f"Arrow type {kind}", column=column
    )


def _wrong(reason: str, path: str | None, column: str | None = None) -> CorruptFileError:
    return CorruptFileError(f"the schema that Spark noted in the footer ({KEY}) {reason}", path=path, column=column)
