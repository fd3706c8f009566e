"""Spark's own schema in a file's metadata: what Parquet has no name for.

Spark notes the schema of what it writes under :data:`KEY`, and its reader believes the note: collations of strings,
intervals, comments and other metadata of columns, and user-defined types, such as the vectors of Spark ML. pqext reads
by the note where it agrees with the columns of the file, and writes one where a schema needs it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.text import escape_text
from pqext.spark.base.types import EXTENSION_METADATA, EXTENSION_NAME, MARK, is_marked_struct
from pqext.spark.columns.collations import canonical_collation
from pqext.spark.columns.months import MARK as INTERVAL
from pqext.spark.columns.shredding_choice import KEY as SHREDDING

KEY = "org.apache.spark.sql.parquet.row.metadata"

_KNOWN = frozenset(f"pyspark.{place}.linalg.{kind}UDT" for place in ("ml", "mllib") for kind in ("Vector", "Matrix"))
"""User-defined types that are made of a note. Others name a module to import, or hold a pickle."""
_INTERNAL = frozenset({EXTENSION_NAME, EXTENSION_METADATA, MARK, SHREDDING, INTERVAL})
"""Metadata of columns that says how pqext writes them, which the file itself states."""


@dataclass(frozen=True)
class NotedField:
    """A top-level column of a note; ``foreign`` names the user-defined types in it that are not known."""

    field: T.StructField
    foreign: tuple[str, ...] = ()


def noted_fields(text: str | bytes | None) -> dict[str, NotedField]:
    """The top-level columns of a note by name; none if the text is not a schema that Spark reads."""
    try:
        found = {}
        for data in json.loads(text or "{}").get("fields", ()):
            foreign: list[str] = []
            field = T.StructField.fromJson(_without_foreign(data, foreign))
            type = _with_known_collations(field.dataType)
            found[field.name] = NotedField(
                T.StructField(field.name, type, field.nullable, field.metadata), tuple(foreign)
            )
    except Exception:  # pyspark has an error class a version for a malformed schema
        return {}
    return found


def merged(notes: Iterable[bytes]) -> str:
    """A note of the columns of several files, each as the first note of it that Spark reads."""
    fields: dict[str, Any] = {}
    for text in notes:
        if noted_fields(text):
            for field in json.loads(text)["fields"]:
                fields.setdefault(field["name"], field)
    return json.dumps({"type": "struct", "fields": [*fields.values()]})


def _without_foreign(data: Any, foreign: list[str]) -> Any:
    """The JSON of a field with the stored type in the place of a user-defined type that is not known."""
    if not isinstance(data, dict):
        return [_without_foreign(one, foreign) for one in data] if isinstance(data, list) else data
    if data.get("type") == "udt" and (data.get("pyClass") not in _KNOWN or "serializedClass" in data):
        foreign.append(str(data.get("class") or data.get("pyClass")))
        return _without_foreign(data.get("sqlType"), foreign)
    return {
        key: _metadata(value) if key == "metadata" else _without_foreign(value, foreign) for key, value in data.items()
    }


def _with_known_collations(type: T.DataType) -> T.DataType:
    """A type with the names of its collations as Spark spells them; ``ValueError`` for one that Spark does not have."""
    match type:
        case T.StringType() if is_collated(type):
            return T.StringType(canonical_collation(type.collation))
        case T.ArrayType():
            return T.ArrayType(_with_known_collations(type.elementType), type.containsNull)
        case T.MapType():
            key, value = _with_known_collations(type.keyType), _with_known_collations(type.valueType)
            return T.MapType(key, value, type.valueContainsNull)
        case T.StructType():
            return T.StructType([
                T.StructField(field.name, _with_known_collations(field.dataType), field.nullable, field.metadata)
                for field in type
            ])
    return type


def _metadata(data: Any) -> dict[str, Any]:
    """Metadata of a column without what pqext alone may say there; ``ValueError`` for what Spark does not read."""
    if not isinstance(data, dict):
        raise ValueError("metadata is an object")
    for value in data.values():
        values = value if isinstance(value, list) else [value]
        types = {*map(type, values)}
        if len(types) > 1 or list in types or (values is value and type(None) in types):
            raise ValueError("a list in metadata holds texts, numbers, booleans or objects")
        for one in values:
            if isinstance(one, dict):
                _metadata(one)
    return {key: value for key, value in data.items() if key not in _INTERNAL}


def as_noted(field: T.StructField, noted: NotedField | None) -> T.StructField:
    """A column of a file as Spark noted it, as far as the note agrees with the file.

    Raises ``UnsupportedError`` for a user-defined type that is not known.
    """
    if noted is None:
        return field
    if noted.foreign:
        raise UnsupportedError(
            f"the user-defined type {escape_text(noted.foreign[0])} is not known; leave the column out with "
            "columns=, or "
            "read it with spark.read.parquet", feature="user-defined types", column=field.name,
        )
    metadata = {**(noted.field.metadata or {}), **(field.metadata or {})}
    return T.StructField(field.name, _as_noted(field.dataType, noted.field.dataType), field.nullable, metadata)


def _as_noted(type: T.DataType, noted: T.DataType) -> T.DataType:
    if isinstance(noted, T.UserDefinedType):
        is_stored = type.simpleString() == noted.sqlType().simpleString()
        return noted if is_stored else type
    if any(isinstance(type, stored) and isinstance(noted, meant) for stored, meant in _STORED):
        return noted
    if isinstance(type, T.ArrayType) and isinstance(noted, T.ArrayType):
        return T.ArrayType(_as_noted(type.elementType, noted.elementType), type.containsNull)
    if isinstance(type, T.MapType) and isinstance(noted, T.MapType):
        key, value = _as_noted(type.keyType, noted.keyType), _as_noted(type.valueType, noted.valueType)
        return T.MapType(key, value, type.valueContainsNull)
    if isinstance(type, T.StructType) and isinstance(noted, T.StructType):
        known = {field.name: NotedField(field) for field in noted}
        return T.StructType([as_noted(field, known.get(field.name)) for field in type])
    return type


_STORED = (
    (T.StringType, T.StringType), (T.IntegerType, T.YearMonthIntervalType), (T.LongType, T.DayTimeIntervalType),
)
"""Types as Parquet has them, and what a note may make of them."""


def note_of(schema: T.StructType, without: Collection[str] = ()) -> str | None:
    """The note for a file with the columns of a data frame, but those ``without``; None where Parquet says it all."""
    fields = [_to_note(field) for field in schema if field.name not in without]
    needed = any(field.metadata or _is_beyond_parquet(field.dataType) for field in _fields(fields))
    return T.StructType(fields).json() if needed else None


def with_note(options: Mapping[str, Any], schema: T.StructType, without: Collection[str]) -> Mapping[str, Any]:
    """The writer's ``options`` with the note, if there is one, among the key-value metadata."""
    note = note_of(schema, without)
    if note is None:
        return options
    return {**options, "key_value_metadata": {KEY: note, **options.get("key_value_metadata", {})}}


def _to_note(field: T.StructField) -> T.StructField:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key not in _INTERNAL}
    return T.StructField(field.name, _type_to_note(field.dataType), field.nullable, metadata)


def _type_to_note(type: T.DataType) -> T.DataType:
    if is_marked_struct(type):
        return T.VariantType()
    if isinstance(type, T.StructType):
        return T.StructType([_to_note(field) for field in type])
    if isinstance(type, T.ArrayType):
        return T.ArrayType(_type_to_note(type.elementType), type.containsNull)
    if isinstance(type, T.MapType):
        return T.MapType(_type_to_note(type.keyType), _type_to_note(type.valueType), type.valueContainsNull)
    return type


def _fields(fields: Collection[T.StructField]) -> Iterator[T.StructField]:
    """All fields at and below ``fields``; elements, keys and values count as fields without metadata."""
    for field in fields:
        yield field
        yield from _fields(_below(field.dataType))


def _below(type: T.DataType) -> list[T.StructField]:
    if isinstance(type, T.StructType):
        return type.fields
    if isinstance(type, T.ArrayType):
        return [T.StructField("element", type.elementType)]
    if isinstance(type, T.MapType):
        return [T.StructField("key", type.keyType), T.StructField("value", type.valueType)]
    return []


def _is_beyond_parquet(type: T.DataType) -> bool:
    beyond = T.UserDefinedType | T.YearMonthIntervalType | T.DayTimeIntervalType | T.NullType
    return is_collated(type) or isinstance(type, beyond)


def is_collated(type: T.DataType) -> bool:
    """Whether strings of the type compare by other rules than their bytes."""
    return isinstance(type, T.StringType) and type.simpleString() not in ("string", "string collate UTF8_BINARY")


def holds_collated(column: T.StructField) -> bool:
    """Whether a column holds strings with a collation."""
    return any(is_collated(field.dataType) for field in _fields([column]))


def at_path(field: T.StructField, path: Sequence[str]) -> T.StructField:
    """The member of a struct that a path within the column leads to, by the path; as far as structs have its steps."""
    type = field.dataType
    for step in path[1:]:
        if not isinstance(type, T.StructType) or step not in type.names:
            break
        type = type[step].dataType
    return T.StructField(".".join(path), type)


def is_interval(type: T.DataType) -> bool:
    """Whether values of the type are intervals, which files store as numbers."""
    return isinstance(type, T.DayTimeIntervalType | T.YearMonthIntervalType)


def refuse_intervals(columns: Iterable[T.StructField], advice: str) -> None:
    """Raise ``UnsupportedError`` for a column of intervals, which pqext would compare as numbers."""
    for column in columns:
        if is_interval(column.dataType):
            raise UnsupportedError(
                f"pqext compares stored numbers, and the column is an {column.dataType.simpleString()}: {advice}",
                feature="intervals", column=column.name,
            )


def refuse_collated(columns: Iterable[T.StructField], advice: str) -> None:
    """Raise ``UnsupportedError`` for a column of strings with a collation, which pqext would compare by their bytes."""
    for column in columns:
        for type in (field.dataType for field in _fields([column]) if is_collated(field.dataType)):
            raise UnsupportedError(
                f"pqext compares strings by their bytes, and the column is a {type.simpleString()}: {advice}",
                feature="collations", column=column.name,
            )
