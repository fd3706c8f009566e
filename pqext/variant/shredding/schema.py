"""Shredding schemas, which define the parts of a variant that are stored as typed columns.

A schema is a small immutable tree of :class:`Object`, :class:`Array`, :class:`Primitive` and
:class:`Untyped`, equivalent to an Arrow storage struct ``metadata, value, typed_value``
(Variant Shredding, "Value Shredding"). :func:`shredding_schema` parses DDL, an Arrow type,
a Spark type or a storage struct.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Union

import pyarrow as pa

from pqext.core.base.errors import VariantError
from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.core.base.text import escape_text
from pqext.core.schema.types.marks import UUID_MARK
from pqext.variant.shredding.ddl import DdlType, ddl_error, parse_ddl
from pqext.variant.types import is_shredded_type, is_variant_type, metadata_field, storage_type, variant_type

MAX_DEPTH = 100
"""Maximum nesting of objects and arrays in a schema. Deeper values stay in the residual."""
MAX_NODES = 20_000
"""Maximum number of objects, arrays, primitives and untyped fields in a schema."""


_SHOWN = 2_000


class _Node:
    __slots__ = ()

    def __repr__(self) -> str:
        return f"<shredding schema {excerpt(escape_text(str(self)), 0, _SHOWN)}>"

    def explain(self: ShreddingSchema) -> str:  # type: ignore[misc]
        """Format the schema as an indented tree with one node per line, and the reasons for choices."""
        lines = []
        for depth, name, node in walk(self):
            kind = {Object: "STRUCT", Array: "ARRAY"}.get(type(node)) or str(node)
            label = f"{quote_name(name)}: {kind}" if depth else f"$: {kind}"
            lines.append("  " * depth + escape_text(label + (f"  -- {node.note}" if node.note else "")))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class Untyped(_Node):
    """Node without a typed column. All its values stay in ``value``."""

    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        return "VARIANT"


@dataclass(frozen=True, slots=True, repr=False)
class Primitive(_Node):
    """Node with a typed column, for values of an equivalence class that the Arrow ``type`` represents exactly.
    """

    type: pa.DataType
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", leaf_type(self.type))

    def __str__(self) -> str:
        return ddl_name(self.type)


@dataclass(frozen=True, slots=True, repr=False)
class Array(_Node):
    """Node that stores arrays in a typed list. ``element`` is the schema of the elements."""

    element: ShreddingSchema
    note: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True, repr=False)
class Object(_Node):
    """Node that stores objects in a typed group, with a member for each of ``fields``.

    Other fields stay in ``value``.
    """

    fields: tuple[tuple[str, ShreddingSchema], ...]
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.fields:
            raise ValueError("an object in a shredding schema needs at least one field")
        seen: set[str] = set()
        for name, _ in self.fields:
            _check_name(name)
            if name in seen:
                raise ValueError(f"duplicate field {excerpt(name)!r} in an object of the shredding schema")
            seen.add(name)

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{quote_name(name)}: {child}' for name, child in self.fields)}>"


ShreddingSchema = Union[Object, Array, Primitive, Untyped]  # noqa: UP007 - the classes above name it


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a field in a shredding schema must be a string, not {type(name).__name__}")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"field name {excerpt(name)!r} cannot be encoded as UTF-8") from None


def shredding_schema(spec: Any) -> ShreddingSchema:
    """Parse a shredding schema.

    ``spec`` can be DDL, either a list of fields, ``"mag DECIMAL(9,2), place STRING"``, or one type,
    ``"ARRAY<BIGINT>"``. It can be an Arrow type, where structs are objects, lists are arrays and ``pa.null()`` is an
    untyped value, or an Arrow storage struct of ``metadata``, ``value`` and ``typed_value``. A Spark type with
    ``jsonValue``, such as ``StructType``, and a shredding schema are also accepted.

    Raises ``ValueError`` (with the position, in DDL) or ``TypeError`` if ``spec`` is invalid, or contains a type that
    is not listed in Variant Shredding, "Shredded Value Types".

    >>> print(shredding_schema("mag DECIMAL(9,2), tags ARRAY<STRING>"))
    STRUCT<mag: DECIMAL(9,2), tags: ARRAY<STRING>>
    """
    if isinstance(spec, Object | Array | Primitive | Untyped):
        schema: ShreddingSchema = spec
    elif isinstance(spec, str):
        schema = _from_ddl(parse_ddl(spec), spec)
    elif isinstance(spec, pa.DataType):
        is_storage = is_variant_type(spec) or is_shredded_type(spec)
        schema = schema_of_storage(spec) if is_storage else _from_arrow(spec, 0)
    elif hasattr(spec, "jsonValue"):
        schema = _from_spark(spec.jsonValue(), 0)
    else:
        raise TypeError(f"a shredding schema must be DDL, an Arrow type or a Spark type, not {type(spec).__name__}")
    check_size(schema)
    return schema


def check_size(schema: ShreddingSchema) -> None:
    """Raise ``ValueError`` if a schema exceeds ``MAX_DEPTH`` or ``MAX_NODES``."""
    for nodes, (depth, _, _) in enumerate(walk(schema), 1):
        if depth > MAX_DEPTH:
            raise ValueError(f"the shredding schema is nested more than {MAX_DEPTH} levels deep")
        if nodes > MAX_NODES:
            raise ValueError(f"the shredding schema has more than {MAX_NODES} fields")


def walk(schema: ShreddingSchema) -> Iterator[tuple[int, str, ShreddingSchema]]:
    """Yield every node with its depth and name, parents first. The root has no name; array elements are ``element``."""
    stack: list[tuple[int, str, ShreddingSchema]] = [(0, "", schema)]
    while stack:
        depth, name, node = stack.pop()
        yield depth, name, node
        if isinstance(node, Array):
            stack.append((depth + 1, "element", node.element))
        elif isinstance(node, Object):
            stack.extend((depth + 1, name, child) for name, child in reversed(node.fields))


# --- Storage -------------------------------------------------------------------------------------


def storage_struct(schema: ShreddingSchema) -> pa.StructType:
    """Return the Arrow type of a storage struct. It has a ``typed_value`` unless the schema is untyped."""
    if isinstance(schema, Untyped):
        return variant_type()
    return pa.struct([metadata_field(), *_value_fields(schema)])


def typed_type(schema: ShreddingSchema) -> pa.DataType:
    """Return the Arrow type of ``typed_value``. Raises ``TypeError`` for an untyped node."""
    if isinstance(schema, Object):
        return pa.struct(
            [pa.field(name, pa.struct(_value_fields(child)), nullable=False) for name, child in schema.fields]
        )
    if isinstance(schema, Array):
        return pa.list_(pa.field("element", pa.struct(_value_fields(schema.element)), nullable=False))
    if isinstance(schema, Primitive):
        return schema.type
    raise TypeError("an untyped value has no typed_value")


def _value_fields(schema: ShreddingSchema) -> list[pa.Field]:
    fields = [pa.field("value", pa.binary())]
    if not isinstance(schema, Untyped):
        is_uuid = isinstance(schema, Primitive) and schema.type == UUID
        fields.append(pa.field("typed_value", typed_type(schema), metadata=UUID_MARK if is_uuid else None))
    return fields


def schema_of_storage(type: pa.DataType) -> ShreddingSchema:
    """Return the shredding schema of a storage struct.

    Fields are looked up by name, in any order. Raises ``VariantError`` if the struct violates the layout of
    Variant Shredding, "Value Shredding".
    """
    type = storage_type(type)
    if not (is_variant_type(type) or is_shredded_type(type)):
        raise VariantError(f"not a struct of metadata, value and typed_value: {type}", rule="shredding.layout.group")
    return _parse_group(type, "$", 0)


def schema_of_group(type: pa.DataType) -> ShreddingSchema:
    """Return the shredding schema of an inner group of ``value`` and ``typed_value``.

    Raises the errors of :func:`schema_of_storage`.
    """
    return _parse_member(type, "$", 0)


def _parse_group(type: pa.StructType, path: str, depth: int) -> ShreddingSchema:
    if depth > MAX_DEPTH:
        raise VariantError(f"columns are nested more than {MAX_DEPTH} levels deep", rule="shredding.layout.group")
    index = type.get_field_index("typed_value")
    if index < 0:
        return Untyped()
    typed = storage_type(type.field(index).type)
    if pa.types.is_struct(typed):
        if typed.num_fields == 0:
            raise VariantError(f"the typed_value group of {path} has no fields", rule="shredding.object.group")
        if len({child.name for child in typed}) < typed.num_fields:
            raise VariantError(f"{path} has two fields with the same name", rule="shredding.object.group")
        members = ((child, f"{path}.{child.name}") for child in typed)
        return Object(tuple((child.name, _parse_member(child.type, name, depth + 1)) for child, name in members))
    if is_list(typed):
        return Array(_parse_member(typed.value_type, f"{path}[]", depth + 1))
    try:
        return Primitive(type.field(index).type)
    except ValueError as error:
        raise VariantError(f"typed_value of {path}: {error}", rule="shredding.types") from None


def _parse_member(type: pa.DataType, path: str, depth: int) -> ShreddingSchema:
    type = storage_type(type)
    names = [child.name for child in type] if pa.types.is_struct(type) else []
    if sorted(names) not in (["typed_value"], ["typed_value", "value"], ["value"]):
        raise VariantError(
            f"{path} must be a group with value, typed_value or both, not {type}",
            rule="shredding.layout.member",
        )
    index = type.get_field_index("value")
    if index >= 0 and not _is_binary(type.field(index).type):
        raise VariantError(
            f"value of {path} must be binary, not {type.field(index).type}", rule="shredding.layout.value"
        )
    return _parse_group(type, path, depth)


# --- Leaf types ----------------------------------------------------------------------------------

UUID = pa.binary(16)
"""Arrow type of UUIDs. In a storage struct, the field has the extension name ``arrow.uuid``, like all UUIDs in core."""

_LEAF_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.time64("us"): "TIME",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
    pa.timestamp("ns", "UTC"): "TIMESTAMP_NS",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("ns"): "TIMESTAMP_NTZ_NS",
    pa.binary(): "BINARY",
    pa.string(): "STRING",
    UUID: "UUID",
}
_LEAF_TYPES = {name: type for type, name in _LEAF_NAMES.items()}
_ALIASES = {
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}


def leaf_type(type: pa.DataType) -> pa.DataType:
    """Return the standard Arrow type of a typed leaf. ``type`` may be any Arrow type with the same Parquet type.

    Raises ``ValueError`` for a type that Variant Shredding, "Shredded Value Types", does not list.
    """
    if isinstance(type, pa.BaseExtensionType):
        if type.extension_name == "arrow.uuid":
            return UUID
        type = storage_type(type)
    if pa.types.is_dictionary(type):
        type = type.value_type
    if type in _LEAF_NAMES:
        return type
    if pa.types.is_timestamp(type) and type.unit in ("us", "ns") and type.tz is not None:
        return pa.timestamp(type.unit, "UTC")  # the zone affects display only; the instants are the same
    if pa.types.is_decimal(type) and type.precision <= 38 and 0 <= type.scale <= type.precision:
        return pa.decimal128(type.precision, type.scale)
    if _is_binary(type):
        return pa.binary()
    if pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.string()
    if pa.types.is_fixed_size_binary(type) and type.byte_width == 16:
        return UUID
    raise ValueError(f"{type} cannot be a shredded type{_advice(type)}")


def _advice(type: pa.DataType) -> str:
    if pa.types.is_unsigned_integer(type):
        return "; variants have signed integers only"
    if pa.types.is_timestamp(type) or pa.types.is_time(type):
        return "; use microseconds, or nanoseconds for timestamps"
    if pa.types.is_fixed_size_binary(type):
        return "; use binary, or 16 bytes for a UUID"
    if pa.types.is_decimal(type):
        return "; a decimal has up to 38 digits and a scale from 0 to its precision"
    if pa.types.is_map(type):
        return "; use a struct for an object"
    return ""


def ddl_name(type: pa.DataType) -> str:
    """Return the DDL name of a leaf type."""
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    return _LEAF_NAMES[type]


def parse_leaf_name(name: str, arguments: tuple[int, ...] = ()) -> pa.DataType:
    """Return the leaf type for a DDL name and its arguments. Raises ``ValueError`` if either is invalid."""
    upper = name.upper()
    upper = _ALIASES.get(upper, upper)
    if upper == "DECIMAL":
        if len(arguments) > 2:
            raise ValueError(f"DECIMAL accepts a precision and a scale, not {len(arguments)} arguments")
        precision, scale = (*(arguments or (10,)), 0)[:2]
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise ValueError(f"DECIMAL({precision},{scale}): precision must be 1 to 38, and scale 0 to precision")
        return pa.decimal128(precision, scale)
    if upper == "TIME" and len(arguments) == 1 and arguments[0] <= 6:
        return pa.time64("us")
    if upper not in _LEAF_TYPES:
        meant = did_you_mean(name, type_names())
        there = f"{meant} The types are" if meant else "; the types are"
        raise ValueError(f"{excerpt(name)} is not a type{there} {supported_types()}")
    if arguments:
        raise ValueError(f"{name} accepts no arguments")
    return _LEAF_TYPES[upper]


def type_names() -> list[str]:
    """Return the DDL names of the types of the variant encoding, in upper case."""
    return [*_LEAF_TYPES, *_ALIASES, "DECIMAL"]


def supported_types() -> str:
    """Return the DDL names of all types of the variant encoding as text for error messages."""
    return ", ".join(sorted([*_LEAF_TYPES, "DECIMAL(precision,scale)"]))


def quote_name(name: str) -> str:
    """Quote a field name for DDL, with backticks unless it is a plain word."""
    if name.isascii() and name.isidentifier():
        return name
    return "`" + name.replace("`", "``") + "`"


def is_list(type: pa.DataType) -> bool:
    """Return whether ``type`` is an Arrow list layout."""
    return bool(
        pa.types.is_list(type)
        or pa.types.is_large_list(type)
        or pa.types.is_fixed_size_list(type)
        or pa.types.is_list_view(type)
        or pa.types.is_large_list_view(type)
    )


def _is_binary(type: pa.DataType) -> bool:
    type = storage_type(type)
    if pa.types.is_dictionary(type):
        type = type.value_type
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type))


# --- Other forms ---------------------------------------------------------------------------------


def _from_ddl(ddl_type: DdlType, text: str) -> ShreddingSchema:
    if ddl_type.name == "STRUCT":
        return Object(tuple((name, _from_ddl(child, text)) for name, child in ddl_type.fields))
    if ddl_type.element is not None:
        return Array(_from_ddl(ddl_type.element, text))
    if ddl_type.name == "VARIANT" and not ddl_type.arguments:
        return Untyped()
    try:
        return Primitive(parse_leaf_name(ddl_type.name, ddl_type.arguments))
    except ValueError as error:
        unknown = "is not a type" in str(error)
        more = ", STRUCT<name: type, ...>, ARRAY<type> and VARIANT" if unknown else ""
        if unknown and text.strip().upper() == ddl_type.name:
            more += f" (a field is written with its type, like '{excerpt(text.strip(), limit=60)} STRING')"
        raise ddl_error(text, ddl_type.position, f"{error}{more}") from None


def _from_arrow(type: pa.DataType, depth: int) -> ShreddingSchema:
    if depth > MAX_DEPTH:
        raise ValueError(f"the shredding schema is nested more than {MAX_DEPTH} levels deep")
    if pa.types.is_null(type) or is_variant_type(type):
        return Untyped()
    if pa.types.is_struct(type):
        return Object(tuple((child.name, _from_arrow(child.type, depth + 1)) for child in type))
    if is_list(type):
        return Array(_from_arrow(type.value_type, depth + 1))
    return Primitive(type)


def _from_spark(type_json: Any, depth: int) -> ShreddingSchema:
    """Parse the result of ``DataType.jsonValue()``: a type name, or a dict for a struct or an array."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the shredding schema is nested more than {MAX_DEPTH} levels deep")
    if isinstance(type_json, str):
        return _from_ddl(parse_ddl(type_json), type_json)
    try:
        if type_json["type"] == "struct":
            fields = type_json["fields"]
            return Object(tuple((child["name"], _from_spark(child["type"], depth + 1)) for child in fields))
        if type_json["type"] == "array":
            return Array(_from_spark(type_json["elementType"], depth + 1))
    except (KeyError, TypeError) as error:
        raise ValueError(f"Spark type {excerpt(repr(type_json))} is not a result of jsonValue(): {error!r}") from None
    raise ValueError(f"Spark type {excerpt(repr(type_json))} cannot be shredded")
