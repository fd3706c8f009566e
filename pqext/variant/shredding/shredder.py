"""Shred variants into the storage struct of a shredding schema. The kernels fill its columns.

The storage struct has one layout in files. Arrays with other layouts are converted to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.variant import faults
from pqext.variant.coercion import as_variants
from pqext.variant.kernels import shredding as kernel
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.shredding.schema import (
    Array,
    Object,
    Primitive,
    ShreddingSchema,
    Untyped,
    shredding_schema,
    storage_struct,
    typed_type,
)
from pqext.variant.types import (
    VariantLike,
    child,
    is_shredded_type,
    match_chunking,
    plain_binary,
    plain_list,
    storage_array,
    struct_chunks,
)

Coerce = Literal["equivalent", "exact", "json"]
COERCE: dict[Coerce, int] = {"equivalent": 0, "exact": 1, "json": 2}
"""The kernels' number for each coercion."""
Buffer: TypeAlias = Any  # any object with the buffer protocol


def shred(array: VariantLike, schema: Any, *, coerce: Coerce = "equivalent") -> pa.Array | pa.ChunkedArray:
    """Shred a variant array into ``struct<metadata, value, typed_value>`` of the schema, row by row.

    ``schema`` is a value that :func:`pqext.variant.shredding_schema` accepts, or ``"infer"``, which infers one with
    :func:`pqext.variant.infer_schema`'s defaults for ``coerce``. A shredded array is reconstructed first. Null rows
    remain null. ``metadata`` is shared with the input.

    With ``coerce="equivalent"``, a value is stored in a typed column of its equivalence class that can represent it
    exactly (2 in a ``DECIMAL(9,2)``, 2.00 in a ``BIGINT``), and is reconstructed as an equal value of the column's
    type. With ``"exact"``, only values with exactly the column's variant type and representation are stored in it, so
    canonical values are reconstructed with the same bytes (see specs/variant-shredding.md). With ``"json"``, equivalent
    values are stored in typed columns, and decimals in a ``DOUBLE`` that is written as the same JSON number (2.5 and
    2.0, but not 2). All other values stay in ``value``. Raises ``VariantError`` with the row for invalid bytes in
    values that are inspected. Values that stay in the residual are copied without validation.

    Implements Variant Shredding, "Value Shredding".

    >>> from pqext import variant
    >>> shredded = variant.shred(variant.parse_json(['{"id": 1}', '{"id": "x"}']), "id INT")
    >>> shredded.field("typed_value").field("id").field("typed_value").to_pylist()
    [1, None]
    """
    check_coerce(coerce)
    array = as_variants(array)
    chunks = struct_chunks(array)
    if is_shredded_type(array.type):
        array = unshred(array)
        chunks = struct_chunks(array)
    if isinstance(schema, str) and schema == "infer":
        from pqext.variant.shredding.infer import infer_schema

        schema = infer_schema(array, coerce=coerce)
    compiled = compile_schema(shredding_schema(schema))
    shredded = []
    row = 0
    for chunk in chunks:
        shredded.append(_shred_chunk(chunk, compiled, COERCE[coerce], row))
        row += len(chunk)
    return match_chunking(array, shredded, storage_struct(compiled.nodes[0].schema))


def check_coerce(coerce: Any) -> Coerce:
    """Return ``coerce`` if it is a valid coercion; raise ``ValueError`` otherwise."""
    if not isinstance(coerce, str) or coerce not in COERCE:
        raise ValueError(f"coerce must be one of {', '.join(map(repr, COERCE))}, not {coerce!r}")
    return coerce


def _shred_chunk(chunk: pa.StructArray, compiled_schema: CompiledSchema, coerce: int, first_row: int) -> pa.StructArray:
    status, row, offset, validity, columns = kernel.shred(compiled_schema.plan, VariantInput(chunk), coerce)
    if status != 0:
        raise faults.error(status, row=first_row + row, offset=offset if offset >= 0 else None)
    metadata = child(chunk, "metadata")
    assert metadata is not None
    return build_storage(compiled_schema, metadata.cast(pa.binary()), columns, validity, chunk.null_count)


def build_storage(
    compiled_schema: CompiledSchema, metadata: pa.Array, columns: Sequence[
        Sequence[Any]
    ], validity: Buffer | None, nulls: int
) -> pa.StructArray:
    """Build the storage struct from the results of the kernels' ``take_columns`` for each node of the plan.

    ``validity`` has one bit per row and is used only if there are ``nulls``.
    """
    groups: list[list[pa.Array]] = [[] for _ in columns]
    for index in reversed(range(len(columns))):  # children come after their parents
        node = compiled_schema.nodes[index]
        rows, value_count, *value, typed_count, typed_validity, typed_offsets, typed_data = columns[index]
        groups[index] = [_build_variable(pa.binary(), rows, value_count, *value)]
        if isinstance(node.schema, Untyped):
            continue
        type = typed_type(node.schema)
        if isinstance(node.schema, Primitive):
            groups[index].append(_build_leaf(type, rows, typed_count, typed_validity, typed_offsets, typed_data))
            continue
        bitmap = pa.py_buffer(typed_validity) if typed_count < rows else None
        if isinstance(node.schema, Object):
            members = [
                pa.StructArray.from_buffers(type.field(i).type, rows, [None], 0, children=groups[number])
                for i, number in enumerate(node.children)
            ]
            typed = pa.StructArray.from_buffers(type, rows, [bitmap], rows - typed_count, children=members)
        else:
            group = groups[node.children[0]]
            elements = pa.StructArray.from_buffers(type.value_type, len(group[0]), [None], 0, children=group)
            buffers = [bitmap, pa.py_buffer(typed_offsets)]
            typed = pa.ListArray.from_buffers(type, rows, buffers, rows - typed_count, children=[elements])
        groups[index].append(typed)
    type = storage_struct(compiled_schema.nodes[0].schema)
    bitmap = pa.py_buffer(validity) if nulls else None
    return pa.StructArray.from_buffers(type, len(metadata), [bitmap], nulls, children=[metadata, *groups[0]])


def build_binary(type: pa.DataType, rows: int, offsets: Buffer, data: Buffer) -> pa.Array:
    """Build a binary or string array without nulls from buffers."""
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)


def _build_variable(
    type: pa.DataType, rows: int, valid_count: int, validity: Buffer, offsets: Buffer, data: Buffer
) -> pa.Array:
    if valid_count == 0:
        return pa.nulls(rows, type)
    bitmap = pa.py_buffer(validity) if valid_count < rows else None
    return pa.Array.from_buffers(type, rows, [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)], rows - valid_count)


def _build_leaf(
    type: pa.DataType, rows: int, valid_count: int, validity: Buffer, offsets: Buffer | None, data: Buffer
) -> pa.Array:
    if valid_count == 0:
        return pa.nulls(rows, type)
    if offsets is not None:
        return _build_variable(type, rows, valid_count, validity, offsets, data)
    bitmap = pa.py_buffer(validity) if valid_count < rows else None
    return pa.Array.from_buffers(type, rows, [bitmap, pa.py_buffer(data)], rows - valid_count)


def to_storage_layout(array: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """Convert an array that is shredded with ``schema`` to the layout of ``storage_struct(schema)``.

    Fields are reordered, missing ``value`` columns are added, optional groups become required, and each leaf gets its
    standard Arrow type. The values are unchanged.
    """
    type = storage_struct(schema)
    metadata = child(array, "metadata")
    assert metadata is not None
    parts = [metadata.cast(pa.binary()), *_group_children(array, schema, type)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(type), mask=mask)


def masked_child(group: pa.StructArray, name: str) -> pa.Array | None:
    """Return the child ``name`` with nulls in the rows where the group is null; None if it does not exist."""
    index = group.type.get_field_index(name)
    if index < 0 or not group.null_count:
        return child(group, name)
    result = storage_array(pc.struct_field(group, [index]))
    return result if pa.types.is_nested(result.type) else plain_binary(result)


def _group_children(group: pa.StructArray, schema: ShreddingSchema, type: pa.StructType) -> list[pa.Array]:
    """Return the children ``value`` and ``typed_value`` of a group, converted to the storage struct ``type``."""
    value = masked_child(group, "value")
    parts = [value.cast(pa.binary()) if value is not None else pa.nulls(len(group), pa.binary())]
    if isinstance(schema, Untyped):
        return parts
    typed = masked_child(group, "typed_value")
    assert typed is not None
    target = type.field("typed_value").type
    mask = typed.is_null() if typed.null_count else None
    if isinstance(schema, Object):
        members = []
        for i, (name, node) in enumerate(schema.fields):
            member = masked_child(typed, name)
            members.append(_member_group(member, node, target.field(i).type))
        parts.append(pa.StructArray.from_arrays(members, fields=list(target), mask=mask))
    elif isinstance(schema, Array):
        typed = plain_list(typed)
        elements = _member_group(storage_array(typed.values), schema.element, target.value_type)
        parts.append(_replace_elements(typed, elements, target))
    else:
        if pa.types.is_dictionary(typed.type):
            typed = decode_dictionary(typed)
        parts.append(typed.cast(target))
    return parts


def _member_group(group: pa.Array | None, schema: ShreddingSchema, type: pa.StructType) -> pa.StructArray:
    assert group is not None
    return pa.StructArray.from_arrays(_group_children(group, schema, type), fields=list(type))


def _replace_elements(lists: pa.ListArray, elements: pa.StructArray, type: pa.ListType) -> pa.ListArray:
    """Return ``lists`` with ``elements`` in place of their own elements.

    The validity bitmap keeps its offset, because the list offsets are also a slice.
    """
    validity, offsets = lists.buffers()[:2]
    return pa.Array.from_buffers(
        type, len(lists), [validity, offsets], lists.null_count, lists.offset, children=[elements]
    )
