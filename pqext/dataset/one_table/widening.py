"""Widening of types that keeps every value, for files that are added to a folder.

A unified schema may have a type that not every value fits (a 64-bit integer as a double), which is an error when such a
value is read. Whoever adds a file to a folder needs more: all values that the old and new types can hold.
"""

from __future__ import annotations

import pyarrow as pa

from pqext.core.base.errors import SchemaMismatchError
from pqext.dataset.one_table.unified import Conflict, unify_fields

_UNITS = ("s", "ms", "us")
"""Units of timestamps between which all dates of a calendar can be converted; nanoseconds hold 584 years."""


def widened(first: pa.Schema, other: pa.Schema, first_path: str, other_path: str) -> pa.Schema:
    """The schema for rows of both. Columns and struct fields that only one has are nullable.

    Raises ``SchemaMismatchError``, which names column and types, if no type holds all values of a column, or two names
    differ in case alone.
    """
    fields = {field.name: field for field in first}
    for field in other:
        known = fields.get(field.name)
        if known is None:
            fields[field.name] = field
            continue
        try:
            unified = unify_fields(known, field)
        except Conflict:
            unified = None
        if unified is None or not (holds_all(unified.type, known.type) and holds_all(unified.type, field.type)):
            raise SchemaMismatchError(
                f"schemas cannot be merged: column {field.name!r} is {known.type} in {first_path} and {field.type} in "
                f"{other_path}, and no type holds all values of both"
            )
        fields[field.name] = unified
    _check_names(list(fields.values()))
    return pa.schema([field.with_nullable(True) for field in fields.values()], first.metadata)


def _check_names(fields: list[pa.Field], parent: str = "") -> None:
    """Raise ``SchemaMismatchError`` if names of columns, or of fields of one struct, differ in case alone."""
    names: dict[str, str] = {}
    for field in fields:
        other = names.setdefault(field.name.lower(), field.name)
        if other != field.name:
            both = f"{parent + other!r} and {parent + field.name!r}"
            raise SchemaMismatchError(f"schemas cannot be merged: columns {both} differ in case alone")
        if pa.types.is_nested(field.type):
            children = [field.type.field(number) for number in range(field.type.num_fields)]
            _check_names(children, f"{parent}{field.name}.")


def holds_all(type: pa.DataType, own: pa.DataType) -> bool:
    """Whether ``type``, which a unified schema has for a column of type ``own``, holds every value of it."""
    types = pa.types
    if type == own or types.is_null(own):
        return True
    if types.is_nested(own):
        return _are_nested(type, own)
    if types.is_decimal(type) and type.precision > 38:
        return False  # most readers have no such type, Spark among them
    if types.is_integer(own):
        if types.is_decimal(type):
            return True  # a unified decimal has all digits of the integer
        if types.is_floating(type):
            return bool(own.bit_width <= {16: 8, 32: 16, 64: 32}[type.bit_width])
        is_wider = type.bit_width > own.bit_width
        return bool(is_wider and (types.is_signed_integer(type) or types.is_unsigned_integer(own)))
    if types.is_floating(own):
        return bool(types.is_floating(type) and type.bit_width > own.bit_width)
    if types.is_timestamp(own):
        return {type.unit, own.unit} <= {*_UNITS}
    same = (types.is_decimal, _is_text, _is_bytes, types.is_time)
    return any(test(own) and test(type) for test in same)


def _are_nested(type: pa.DataType, own: pa.DataType) -> bool:
    types = pa.types
    if types.is_struct(own):
        return types.is_struct(type) and all(holds_all(type.field(one.name).type, one.type) for one in own)
    if types.is_map(own):
        return (
            types.is_map(type)
            and holds_all(type.key_type, own.key_type)
            and holds_all(type.item_type, own.item_type)
        )
    return types.is_nested(type) and holds_all(type.value_type, own.value_type)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _is_bytes(type: pa.DataType) -> bool:
    types = pa.types
    is_variable = types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type)
    return bool(is_variable or types.is_fixed_size_binary(type))
