"""Spark schema recorded in the metadata of files, for types that Parquet cannot express.

Spark records the schema of each file that it writes under :data:`KEY`, and applies it when reading. The schema has
collations, intervals, comments and other field metadata, and user-defined types, such as the vectors of Spark ML. pqext
applies a recorded schema if it is consistent with the columns of the file, and records one if Parquet cannot express
the schema.
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
from pqext.spark.columns.months import MARK as INTERVAL
from pqext.spark.columns.shredding_choice import KEY as SHREDDING

KEY = "org.apache.spark.sql.parquet.row.metadata"

_KNOWN = frozenset(f"pyspark.{name}.linalg.{type}UDT" for name in ("ml", "mllib") for type in ("Vector", "Matrix"))
"""User-defined types that are created. Other types would import a module or load a pickle."""
_INTERNAL = frozenset({EXTENSION_NAME, EXTENSION_METADATA, MARK, SHREDDING, INTERVAL})
"""Field metadata that controls how pqext writes a column. The file itself contains the same information."""


@dataclass(frozen=True)
class RecordedField:
    """Top-level column of a recorded schema, with the names of its unsupported user-defined types."""

    field: T.StructField
    unsupported: tuple[str, ...] = ()


def parse_recorded_fields(text: str | bytes | None) -> dict[str, RecordedField]:
    """Return the top-level columns of a recorded schema by name; empty if Spark cannot parse the schema."""
    try:
        columns = {}
        for data in json.loads(text or "{}").get("fields", ()):
            unsupported: list[str] = []
            field = T.StructField.fromJson(_stored_type(data, unsupported))
            type = _canonicalize_collations(field.dataType)
            columns[field.name] = RecordedField(
                T.StructField(field.name, type, field.nullable, field.metadata), tuple(unsupported)
            )
    except Exception:  # the error class for a malformed schema depends on the version of pyspark
        return {}
    return columns


def merge_recorded_schemas(texts: Iterable[bytes]) -> str:
    """Merge the recorded schemas of several files. A column is defined by the first schema that contains it."""
    fields: dict[str, Any] = {}
    for text in texts:
        if parse_recorded_fields(text):
            for field in json.loads(text)["fields"]:
                fields.setdefault(field["name"], field)
    return json.dumps({"type": "struct", "fields": [*fields.values()]})


def _stored_type(data: Any, unsupported_types: list[str]) -> Any:
    """Return the JSON of a field with each unsupported user-defined type replaced by its stored type."""
    if not isinstance(data, dict):
        return [_stored_type(item, unsupported_types) for item in data] if isinstance(data, list) else data
    if data.get("type") == "udt" and (data.get("pyClass") not in _KNOWN or "serializedClass" in data):
        unsupported_types.append(str(data.get("class") or data.get("pyClass")))
        return _stored_type(data.get("sqlType"), unsupported_types)
    return {
        key: _clean_metadata(value) if key == "metadata" else _stored_type(
            value, unsupported_types
        ) for key, value in data.items()
    }


def _canonicalize_collations(type: T.DataType) -> T.DataType:
    """Return a type with canonical collation names. Raises ``ValueError`` for an unknown collation."""
    match type:
        case T.StringType() if is_collated(type):
            return T.StringType(canonicalize_collation(type.collation))
        case T.ArrayType():
            return T.ArrayType(_canonicalize_collations(type.elementType), type.containsNull)
        case T.MapType():
            key, value = _canonicalize_collations(type.keyType), _canonicalize_collations(type.valueType)
            return T.MapType(key, value, type.valueContainsNull)
        case T.StructType():
            return T.StructType([
                T.StructField(field.name, _canonicalize_collations(field.dataType), field.nullable, field.metadata)
                for field in type
            ])
    return type


def _clean_metadata(data: Any) -> dict[str, Any]:
    """Return field metadata without the internal keys. Raises ``ValueError`` for metadata that Spark cannot parse."""
    if not isinstance(data, dict):
        raise ValueError(f"field metadata must be an object, not {type(data).__name__}")
    for value in data.values():
        values = value if isinstance(value, list) else [value]
        types = {*map(type, values)}
        if len(types) > 1 or list in types or (values is value and type(None) in types):
            raise ValueError(
                "lists in field metadata must contain only strings, only numbers, only booleans or only objects"
            )
        for item in values:
            if isinstance(item, dict):
                _clean_metadata(item)
    return {key: value for key, value in data.items() if key not in _INTERNAL}


def apply_recorded_type(field: T.StructField, record: RecordedField | None) -> T.StructField:
    """Return a file column with the type and metadata that Spark recorded, if the recorded type matches the file.

    Raises ``UnsupportedError`` for an unsupported user-defined type.
    """
    if record is None:
        return field
    if record.unsupported:
        raise UnsupportedError(
            f"the user-defined type {escape_text(record.unsupported[0])} is not supported; exclude the column with "
            "columns=, or read it with spark.read.parquet", feature="user-defined types", column=field.name,
        )
    metadata = {**(record.field.metadata or {}), **(field.metadata or {})}
    return T.StructField(field.name, _apply_type(field.dataType, record.field.dataType), field.nullable, metadata)


def _apply_type(type: T.DataType, record: T.DataType) -> T.DataType:
    if isinstance(record, T.UserDefinedType):
        is_stored = type.simpleString() == record.sqlType().simpleString()
        return record if is_stored else type
    if any(isinstance(type, stored) and isinstance(record, logical) for stored, logical in _STORED):
        return record
    if isinstance(type, T.ArrayType) and isinstance(record, T.ArrayType):
        return T.ArrayType(_apply_type(type.elementType, record.elementType), type.containsNull)
    if isinstance(type, T.MapType) and isinstance(record, T.MapType):
        key, value = _apply_type(type.keyType, record.keyType), _apply_type(type.valueType, record.valueType)
        return T.MapType(key, value, type.valueContainsNull)
    if isinstance(type, T.StructType) and isinstance(record, T.StructType):
        fields = {field.name: RecordedField(field) for field in record}
        return T.StructType([apply_recorded_type(field, fields.get(field.name)) for field in type])
    return type


_STORED = (
    (T.StringType, T.StringType), (T.IntegerType, T.YearMonthIntervalType), (T.LongType, T.DayTimeIntervalType),
)
"""Stored types, and the types to which a recorded schema may change them."""


def schema_to_record(schema: T.StructType, excluded_names: Collection[str] = ()) -> str | None:
    """Return the JSON of the schema to record for a data frame; None if Parquet can express the schema."""
    fields = [_field_to_record(field) for field in schema if field.name not in excluded_names]
    is_needed = any(field.metadata or _needs_record(field.dataType) for field in _walk_fields(fields))
    return T.StructType(fields).json() if is_needed else None


def add_recorded_schema(
    options: Mapping[str, Any], schema: T.StructType, excluded_names: Collection[str]
) -> Mapping[str, Any]:
    """Return the writer's ``options`` with the schema to record, if any, in the key-value metadata."""
    text = schema_to_record(schema, excluded_names)
    if text is None:
        return options
    return {**options, "key_value_metadata": {KEY: text, **options.get("key_value_metadata", {})}}


def _field_to_record(field: T.StructField) -> T.StructField:
    metadata = {key: value for key, value in (field.metadata or {}).items() if key not in _INTERNAL}
    return T.StructField(field.name, _type_to_record(field.dataType), field.nullable, metadata)


def _type_to_record(type: T.DataType) -> T.DataType:
    if is_marked_struct(type):
        return T.VariantType()
    if isinstance(type, T.StructType):
        return T.StructType([_field_to_record(field) for field in type])
    if isinstance(type, T.ArrayType):
        return T.ArrayType(_type_to_record(type.elementType), type.containsNull)
    if isinstance(type, T.MapType):
        return T.MapType(_type_to_record(type.keyType), _type_to_record(type.valueType), type.valueContainsNull)
    return type


def _walk_fields(fields: Collection[T.StructField]) -> Iterator[T.StructField]:
    """Yield ``fields`` and all nested fields. Elements, keys and values count as fields without metadata."""
    for field in fields:
        yield field
        yield from _walk_fields(_children(field.dataType))


def _children(type: T.DataType) -> list[T.StructField]:
    if isinstance(type, T.StructType):
        return type.fields
    if isinstance(type, T.ArrayType):
        return [T.StructField("element", type.elementType)]
    if isinstance(type, T.MapType):
        return [T.StructField("key", type.keyType), T.StructField("value", type.valueType)]
    return []


def _needs_record(type: T.DataType) -> bool:
    beyond = T.UserDefinedType | T.YearMonthIntervalType | T.DayTimeIntervalType | T.NullType
    return is_collated(type) or isinstance(type, beyond)


def is_collated(type: T.DataType) -> bool:
    """Return whether the type is a string type with a collation other than UTF8_BINARY, the order of bytes."""
    return isinstance(type, T.StringType) and type.simpleString() not in ("string", "string collate UTF8_BINARY")


def has_collation(column: T.StructField) -> bool:
    """Return whether a column contains strings, at any depth, with a collation other than UTF8_BINARY."""
    return any(is_collated(field.dataType) for field in _walk_fields([column]))


def field_at_path(field: T.StructField, path: Sequence[str]) -> T.StructField:
    """Return the field at a path within a column, named by the path. Steps after the last struct are ignored."""
    type = field.dataType
    for step in path[1:]:
        if not isinstance(type, T.StructType) or step not in type.names:
            break
        type = type[step].dataType
    return T.StructField(".".join(path), type)


def is_interval(type: T.DataType) -> bool:
    """Return whether the type is an interval, which files store as a number."""
    return isinstance(type, T.DayTimeIntervalType | T.YearMonthIntervalType)


def reject_intervals(columns: Iterable[T.StructField], advice: str) -> None:
    """Raise ``UnsupportedError`` if a column is an interval, because pqext would compare its values as numbers."""
    for column in columns:
        if is_interval(column.dataType):
            raise UnsupportedError(
                f"pqext cannot compare values of type {column.dataType.simpleString()}, because files store them as "
                f"numbers; {advice}",
                feature="intervals", column=column.name,
            )


def reject_collations(columns: Iterable[T.StructField], advice: str) -> None:
    """Raise ``UnsupportedError`` if a column has a collation, because pqext would compare strings by bytes."""
    for column in columns:
        for type in (field.dataType for field in _walk_fields([column]) if is_collated(field.dataType)):
            raise UnsupportedError(
                f"the column has type {type.simpleString()} with a collation, but pqext compares strings by their "
                f"bytes; {advice}",
                feature="collations", column=column.name,
            )


_LOCALES = [
    "UNICODE", "af", "am", "ar", "ar_SAU", "as", "az", "be", "bg", "blo", "bn", "bo", "br", "bs", "bs_Cyrl", "ca",
    "ceb", "chr", "cs", "cy", "da", "de", "de_AUT", "dsb", "dz", "ee", "el", "en", "en_USA", "eo", "es", "et",
    "fa", "fa_AFG", "ff", "ff_Adlm", "fi", "fil", "fo", "fr", "fr_CAN", "fy", "ga", "gl", "gu", "ha", "haw", "he",
    "he_ISR", "hi", "hr", "hsb", "hu", "hy", "id", "id_IDN", "ig", "is", "it", "ja", "ka", "kk", "kk_Arab", "kl",
    "km", "kn", "ko", "kok", "ku", "ky", "lb", "lij", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms",
    "mt", "my", "nb", "nb_NOR", "ne", "nl", "nn", "no", "nso", "om", "or", "pa", "pa_Guru", "pa_Guru_IND", "pl",
    "ps", "pt", "ro", "ru", "sa", "se", "si", "sk", "sl", "smn", "sq", "sr", "sr_Cyrl", "sr_Cyrl_BIH",
    "sr_Cyrl_MNE", "sr_Cyrl_SRB", "sr_Latn", "sr_Latn_BIH", "sr_Latn_SRB", "st", "sv", "sw", "ta", "te", "th",
    "tk", "tn", "to", "tr", "ug", "uk", "ur", "uz", "vi", "wae", "wo", "xh", "yi", "yo", "zh", "zh_Hans",
    "zh_Hans_CHN", "zh_Hans_SGP", "zh_Hant", "zh_Hant_HKG", "zh_Hant_MAC", "zh_Hant_TWN", "zu",
]  # fmt: skip
_BASES = {name.lower(): name for name in ("UTF8_BINARY", "UTF8_LCASE", *_LOCALES)}
_SPECIFIERS = (("CI", "CS"), ("AI", "AS"), ("RTRIM",))
"""Groups of specifiers after the name.

A collation has at most one specifier of each group; CS and AS are the defaults.
"""


def canonicalize_collation(name: str) -> str:
    """Return Spark's spelling of a collation name. Raises ``ValueError`` for an unknown collation.

    >>> canonicalize_collation("de_ai_CI"), canonicalize_collation("utf8_lcase"), canonicalize_collation("UNICODE_CS")
    ('de_CI_AI', 'UTF8_LCASE', 'UNICODE')
    """
    words = name.split("_")
    bases = [count for count in (3, 2, 1) if "_".join(words[:count]).lower() in _BASES]
    if not bases:
        raise ValueError(f"unknown collation {name!r}")
    base = _BASES["_".join(words[: bases[0]]).lower()]
    specifiers = [word.upper() for word in words[bases[0] :]]
    groups = _SPECIFIERS[2:] if base.startswith("UTF8") else _SPECIFIERS
    chosen = [[word for word in specifiers if word in group] for group in groups]
    if sum(map(len, chosen)) != len(specifiers) or any(len(words) > 1 for words in chosen):
        raise ValueError(f"unknown collation {name!r}")
    return "_".join([base, *(word for words in chosen for word in words if word not in ("CS", "AS"))])
