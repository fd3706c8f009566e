"""Check VARIANT columns: their groups, every value, and the consistency of ``value`` and ``typed_value``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import EncryptionError, LimitError, ParquetError, UnsupportedError, VariantError
from pqext.core.format.metadata import FieldRepetitionType, LogicalType, Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape as shapes
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import GroupShape, ListShape, Shape
from pqext.variant.faults import MEANINGS
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.schema import schema_of_storage
from pqext.variant.validation import PARTS, examine
from pqext.verification.chunk_selection import ChunkSelection
from pqext.verification.report import Fault, Findings

BATCH_ROWS = 65_536
"""Number of rows of a column that are decoded at a time."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ReadableVariant:
    """VARIANT column with readable groups. ``paths`` contains the schema path of each node in ``compiled``."""

    shape: GroupShape
    compiled: CompiledSchema
    paths: tuple[str, ...]


def iter_groups(top: Shape) -> Iterator[GroupShape]:
    """Yield the VARIANT groups at or below a shape. Groups inside a VARIANT are not included."""
    if isinstance(top, GroupShape):
        if top.node.logical_name == "VARIANT":
            yield top
        else:
            for child in top.children:
                yield from iter_groups(child)
    elif isinstance(top, ListShape):
        yield from iter_groups(top.element)


def check(file: ParquetFile, tops: Sequence[Shape], selection: ChunkSelection, findings: Findings) -> None:
    """Check every VARIANT column below ``tops``."""
    for top in tops:
        readable = [variant for group in iter_groups(top) if (variant := _check_group(group, findings)) is not None]
        if readable:
            _check_rows(file, top, readable, selection, findings)


def _check_group(group: GroupShape, findings: Findings) -> ReadableVariant | None:
    """Report faults in the groups of a column. Return the column, or None if its rows cannot be read."""
    for fault in find_group_faults(group.node):
        findings.add(fault)
    try:
        compiled = compile_schema(schema_of_storage(shapes.strip_annotations(group).storage_field(ReadOptions()).type))
    except (VariantError, ValueError) as error:
        findings.skip(group.node.dotted_path, None, f"its rows cannot be read: {error}")
        return None
    return ReadableVariant(group, compiled, tuple(_paths(group, compiled)))


def _paths(group: GroupShape, compiled_schema: CompiledSchema) -> list[str]:
    """Return, for each node of ``compiled_schema``, its path in the file's schema."""
    result: list[Shape] = [group] * len(compiled_schema.nodes)
    for index, node in enumerate(compiled_schema.nodes):  # parents precede their children
        held = result[index]
        assert isinstance(held, GroupShape)
        typed = next((child for child in held.children if child.node.name == "typed_value"), None)
        if isinstance(typed, ListShape):
            result[node.children[0]] = typed.element
        elif isinstance(typed, GroupShape):
            for number, child in zip(node.children, typed.children, strict=True):
                result[number] = child
    return [held.node.dotted_path for held in result]


def _check_rows(
    file: ParquetFile, top: Shape, readable: Sequence[ReadableVariant], selection: ChunkSelection, findings: Findings
) -> None:
    first_row = 0
    for group in file.row_groups:
        at = first_row
        first_row += group.num_rows
        if not selection.includes(group, top):
            continue
        try:
            for array in file.iter_storage_arrays(top, group.index, BATCH_ROWS):
                for variant, values, rows in _iter_variants(top, readable, array, None):
                    _check_values(variant, values, rows, at, group.index, findings)
                at += len(array)
        except (UnsupportedError, EncryptionError, LimitError) as error:
            findings.skip(top.node.dotted_path, group.index, error.message)
        except ParquetError as error:
            findings.add_damage(
                Fault("layout.page-lost", error.message, group.index, None, error.column, error.offset)
            )


def _iter_variants(
    shape: Shape, readable: Sequence[ReadableVariant], array: pa.Array, rows: Rows | None
) -> Iterator[tuple[ReadableVariant, pa.StructArray, Rows | None]]:
    """Yield each variant below ``shape``, its array and the row of each value; None instead if rows are consecutive."""
    if isinstance(shape, GroupShape):
        variant = next((candidate for candidate in readable if candidate.shape is shape), None)
        if variant is not None:
            yield variant, array, rows
        elif shape.node.logical_name != "VARIANT":
            for i, child in enumerate(shape.children):
                yield from _iter_variants(child, readable, array.field(i), rows)
    elif isinstance(shape, ListShape) and any(True for _ in iter_groups(shape.element)):
        offsets = np.asarray(array.offsets)
        own_rows = np.arange(len(array), dtype=np.int64) if rows is None else rows
        below = np.repeat(own_rows, np.diff(offsets))
        start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        if pa.types.is_map(array.type):
            assert isinstance(shape.element, GroupShape)
            for child, values in zip(shape.element.children, (array.keys, array.items), strict=True):
                yield from _iter_variants(child, readable, values.slice(start, count), below)
        else:
            yield from _iter_variants(shape.element, readable, array.values.slice(start, count), below)


def _check_values(
    variant: ReadableVariant, array: pa.StructArray, rows: Rows | None, first: int, row_group: int, findings: Findings
) -> None:
    records, counts = examine(array, variant.compiled, max_faults=findings.capacity, first_only=False)
    for status, number in counts.items():
        meaning = MEANINGS[status]
        findings.count(meaning.rule, meaning.message, number)
    meanings = {status: MEANINGS[status] for status in counts}
    numbers = records["row"].astype(np.int64)
    places = (first + (numbers if rows is None else rows[numbers])).tolist()
    fields = (records[name].tolist() for name in ("status", "part", "node", "offset"))
    for row, status, part_number, node, offset in zip(places, *fields, strict=True):
        meaning, part, path = meanings[status], PARTS[part_number], variant.paths[node]
        if part in ("value", "typed_value") or node == 0:
            path = f"{path}.{part}"
        fault = Fault(meaning.rule, meaning.message, row_group, row, path, None if offset < 0 else offset, part)
        findings.faults.append(fault)  # counted above; `examine` returned at most as many faults as can be retained


REQUIRED, OPTIONAL, REPEATED = (
    FieldRepetitionType.REQUIRED, FieldRepetitionType.OPTIONAL, FieldRepetitionType.REPEATED
)  # fmt: skip
VERSION = 1


def find_group_faults(variant: SchemaNode) -> Iterator[Fault]:
    """Yield the faults in the groups of the VARIANT column ``variant``."""
    logical = variant.logical_type.VARIANT if variant.logical_type is not None else None
    version = logical.specification_version if logical is not None else None
    if version not in (None, VERSION):
        yield _create_fault(
            variant, "variant.version", f"the annotation states version {version} of the encoding, not 1"
        )
    names = sorted(variant.child_names)
    if names not in (["metadata", "value"], ["metadata", "typed_value"], ["metadata", "typed_value", "value"]):
        expected = "metadata, value and typed_value (value or typed_value may be absent)"
        yield _create_fault(
            variant, "shredding.layout.group", f"a variant group must have {expected}, not {', '.join(names)}"
        )
    metadata, value, typed = variant.child("metadata"), variant.child("value"), variant.child("typed_value")
    if metadata is not None:
        yield from _check_binary(metadata, "variant.group.binary")
        if metadata.repetition != REQUIRED:
            yield _create_fault(metadata, "variant.group.metadata", "metadata must be required")
    if value is not None and typed is None:
        yield from _check_binary(value, "variant.group.binary")
        if value.repetition != REQUIRED:
            yield _create_fault(value, "variant.group.value", "the value of an unshredded variant must be required")
    elif not variant.is_leaf:
        yield from _check_pair(variant)


def _check_pair(group: SchemaNode) -> Iterator[Fault]:
    """Yield the faults in ``value`` and ``typed_value`` of a group, and in the groups below."""
    value, typed = group.child("value"), group.child("typed_value")
    if value is not None:
        yield from _check_binary(value, "shredding.layout.value")
        if value.repetition != OPTIONAL:
            yield _create_fault(value, "shredding.layout.optional", "the value next to a typed_value must be optional")
    if typed is None:
        return
    if typed.repetition != OPTIONAL:
        yield _create_fault(typed, "shredding.layout.optional", "typed_value must be optional")
    if typed.is_leaf:
        if not is_shredded_type(typed):
            yield _create_fault(typed, "shredding.types", f"{_describe(typed)} is not in the table of shredded types")
    elif typed.logical_name == "LIST":
        yield from _check_list(typed)
    elif typed.logical_type is not None:
        yield _create_fault(
            typed, "shredding.types", f"a typed_value group must be a LIST or bare, not {typed.logical_name}"
        )
    else:
        names = typed.child_names
        if not names or len(set(names)) < len(names):
            yield _create_fault(
                typed, "shredding.object.group", "a shredded object must have fields with distinct names"
            )
        for field in typed.children:
            yield from _check_member(
                field, "shredding.object.required", "the group of a shredded field must be required"
            )


def _check_list(typed_node: SchemaNode) -> Iterator[Fault]:
    repeated = typed_node.children[0] if len(typed_node.children) == 1 else None
    if repeated is None or repeated.is_leaf or repeated.repetition != REPEATED or len(repeated.children) != 1:
        yield _create_fault(
            typed_node, "shredding.array.list", "a shredded array must be a three-level list: LIST, list, element"
        )
        return
    yield from _check_member(
        repeated.children[0], "shredding.array.list", "the element of a shredded array must be required"
    )


def _check_member(group: SchemaNode, rule: str, reason: str) -> Iterator[Fault]:
    if group.repetition != REQUIRED:
        yield _create_fault(group, rule, reason)
    names = [] if group.is_leaf else sorted(group.child_names)
    if names not in (["typed_value"], ["typed_value", "value"], ["value"]):
        yield _create_fault(group, "shredding.layout.member", "a field or element must have value, typed_value or both")
    else:
        yield from _check_pair(group)


def _check_binary(node: SchemaNode, rule: str) -> Iterator[Fault]:
    if node.physical_type != Type.BYTE_ARRAY or node.logical_type is not None:
        yield _create_fault(node, rule, f"{node.name} must be BYTE_ARRAY without an annotation, not {_describe(node)}")


def is_shredded_type(leaf: SchemaNode) -> bool:
    """Return whether the specification's table "Shredded Value Types" lists the type of the leaf."""
    physical, logical = leaf.physical_type, leaf.logical_type
    if logical is None:
        plain = (Type.BOOLEAN, Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.BYTE_ARRAY)
        return physical in plain
    if logical.DECIMAL is not None:
        digits = {Type.INT32: 9, Type.INT64: 18, Type.BYTE_ARRAY: 38, Type.FIXED_LEN_BYTE_ARRAY: 38}
        precision, scale = logical.DECIMAL.precision, logical.DECIMAL.scale
        return physical in digits and 0 <= scale <= precision <= digits[physical]
    return (physical, _type_name(logical)) in _TABLE


_TABLE = {
    (Type.INT32, "INT(8, signed)"), (Type.INT32, "INT(16, signed)"), (Type.INT32, "INT(32, signed)"),
    (Type.INT64, "INT(64, signed)"), (Type.INT32, "DATE"), (Type.INT64, "TIME(MICROS, local)"),
    (Type.INT64, "TIMESTAMP(MICROS, UTC)"), (Type.INT64, "TIMESTAMP(NANOS, UTC)"),
    (Type.INT64, "TIMESTAMP(MICROS, local)"), (Type.INT64, "TIMESTAMP(NANOS, local)"),
    (Type.BYTE_ARRAY, "STRING"), (Type.FIXED_LEN_BYTE_ARRAY, "UUID"),
}  # fmt: skip


def _type_name(logical: LogicalType) -> str:
    if logical.INTEGER is not None:
        return f"INT({logical.INTEGER.bitWidth}, {'signed' if logical.INTEGER.isSigned else 'unsigned'})"
    timed = logical.TIME or logical.TIMESTAMP
    if timed is not None:
        return f"{logical.member}({timed.unit.member}, {'UTC' if timed.isAdjustedToUTC else 'local'})"
    return logical.member or "an unknown annotation"


def _describe(node: SchemaNode) -> str:
    name = node.physical_type.name if node.physical_type is not None else "a group"
    return f"{name} {_type_name(node.logical_type)}" if node.logical_type is not None else name


def _create_fault(node: SchemaNode, rule: str, message: str) -> Fault:
    return Fault(rule, message, column=node.dotted_path)
