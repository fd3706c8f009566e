"""The groups of a VARIANT column as the schema has them: names, repetition, annotations and types."""

from __future__ import annotations

from collections.abc import Iterator

from pqext.core.format.metadata import FieldRepetitionType, LogicalType, Type
from pqext.core.schema.nodes import SchemaNode
from pqext.verification.model import Fault

REQUIRED, OPTIONAL, REPEATED = (
    FieldRepetitionType.REQUIRED, FieldRepetitionType.OPTIONAL, FieldRepetitionType.REPEATED
)  # fmt: skip
VERSION = 1


def group_faults(variant: SchemaNode) -> Iterator[Fault]:
    """What is wrong with the groups of the VARIANT column ``variant``."""
    logical = variant.logical_type.VARIANT if variant.logical_type is not None else None
    version = logical.specification_version if logical is not None else None
    if version not in (None, VERSION):
        yield _fault(variant, "variant.version", f"the annotation names version {version} of the encoding, not 1")
    names = sorted(variant.child_names)
    if names not in (["metadata", "value"], ["metadata", "typed_value"], ["metadata", "typed_value", "value"]):
        wanted = "metadata, value and typed_value, of which value or typed_value may be absent"
        yield _fault(variant, "shredding.layout.group", f"a variant is a group of {wanted}, not of {', '.join(names)}")
    metadata, value, typed = variant.child("metadata"), variant.child("value"), variant.child("typed_value")
    if metadata is not None:
        yield from _binary(metadata, "variant.group.binary")
        if metadata.repetition != REQUIRED:
            yield _fault(metadata, "variant.group.metadata", "metadata must be required")
    if value is not None and typed is None:
        yield from _binary(value, "variant.group.binary")
        if value.repetition != REQUIRED:
            yield _fault(value, "variant.group.value", "the value of a variant that is not shredded must be required")
    elif not variant.is_leaf:
        yield from _pair(variant)


def _pair(group: SchemaNode) -> Iterator[Fault]:
    """``value`` and ``typed_value`` of a group, and what lies below."""
    value, typed = group.child("value"), group.child("typed_value")
    if value is not None:
        yield from _binary(value, "shredding.layout.value")
        if value.repetition != OPTIONAL:
            yield _fault(value, "shredding.layout.optional", "the value beside a typed_value must be optional")
    if typed is None:
        return
    if typed.repetition != OPTIONAL:
        yield _fault(typed, "shredding.layout.optional", "typed_value must be optional")
    if typed.is_leaf:
        if not is_shredded_type(typed):
            yield _fault(typed, "shredding.types", f"{_describe(typed)} is not in the table of shredded types")
    elif typed.logical_name == "LIST":
        yield from _list(typed)
    elif typed.logical_type is not None:
        yield _fault(typed, "shredding.types", f"a typed_value group is a LIST or bare, not {typed.logical_name}")
    else:
        names = typed.child_names
        if not names or len(set(names)) < len(names):
            yield _fault(typed, "shredding.object.group", "a shredded object has at least one field, each name once")
        for field in typed.children:
            yield from _member(field, "shredding.object.required", "the group of a shredded field must be required")


def _list(typed: SchemaNode) -> Iterator[Fault]:
    repeated = typed.children[0] if len(typed.children) == 1 else None
    if repeated is None or repeated.is_leaf or repeated.repetition != REPEATED or len(repeated.children) != 1:
        yield _fault(typed, "shredding.array.list", "a shredded array is a list of three levels: LIST, list, element")
        return
    yield from _member(repeated.children[0], "shredding.array.list", "the element of a shredded array must be required")


def _member(group: SchemaNode, rule: str, reason: str) -> Iterator[Fault]:
    if group.repetition != REQUIRED:
        yield _fault(group, rule, reason)
    names = [] if group.is_leaf else sorted(group.child_names)
    if names not in (["typed_value"], ["typed_value", "value"], ["value"]):
        yield _fault(group, "shredding.layout.member", "a field or element is a group of value, typed_value or both")
    else:
        yield from _pair(group)


def _binary(node: SchemaNode, rule: str) -> Iterator[Fault]:
    if node.physical_type != Type.BYTE_ARRAY or node.logical_type is not None:
        yield _fault(node, rule, f"{node.name} must be BYTE_ARRAY without an annotation, not {_describe(node)}")


def is_shredded_type(leaf: SchemaNode) -> bool:
    """Is the leaf's type in the table "Shredded Value Types"?"""
    physical, logical = leaf.physical_type, leaf.logical_type
    if logical is None:
        plain = (Type.BOOLEAN, Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.BYTE_ARRAY)
        return physical in plain
    if logical.DECIMAL is not None:
        digits = {Type.INT32: 9, Type.INT64: 18, Type.BYTE_ARRAY: 38, Type.FIXED_LEN_BYTE_ARRAY: 38}
        precision, scale = logical.DECIMAL.precision, logical.DECIMAL.scale
        return physical in digits and 0 <= scale <= precision <= digits[physical]
    return (physical, _kind(logical)) in _TABLE


_TABLE = {
    (Type.INT32, "INT(8, signed)"), (Type.INT32, "INT(16, signed)"), (Type.INT32, "INT(32, signed)"),
    (Type.INT64, "INT(64, signed)"), (Type.INT32, "DATE"), (Type.INT64, "TIME(MICROS, local)"),
    (Type.INT64, "TIMESTAMP(MICROS, UTC)"), (Type.INT64, "TIMESTAMP(NANOS, UTC)"),
    (Type.INT64, "TIMESTAMP(MICROS, local)"), (Type.INT64, "TIMESTAMP(NANOS, local)"),
    (Type.BYTE_ARRAY, "STRING"), (Type.FIXED_LEN_BYTE_ARRAY, "UUID"),
}  # fmt: skip


def _kind(logical: LogicalType) -> str:
    if logical.INTEGER is not None:
        return f"INT({logical.INTEGER.bitWidth}, {'signed' if logical.INTEGER.isSigned else 'unsigned'})"
    timed = logical.TIME or logical.TIMESTAMP
    if timed is not None:
        return f"{logical.member}({timed.unit.member}, {'UTC' if timed.isAdjustedToUTC else 'local'})"
    return logical.member or "an unknown annotation"


def _describe(node: SchemaNode) -> str:
    name = node.physical_type.name if node.physical_type is not None else "a group"
    return f"{name} {_kind(node.logical_type)}" if node.logical_type is not None else name


def _fault(node: SchemaNode, rule: str, message: str) -> Fault:
    return Fault(rule, message, column=node.dotted)
