"""Reconstruct unshredded variants from shredded columns."""

from __future__ import annotations

import pyarrow as pa

from pqext.core.base.errors import VariantError
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.variant import faults
from pqext.variant.coercion import as_variants
from pqext.variant.kernels import reconstruct as kernel
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.shredding import Sources
from pqext.variant.shredding.plan import CompiledNode, CompiledSchema, compile_schema
from pqext.variant.shredding.schema import Array, Object, Primitive, schema_of_storage
from pqext.variant.types import (
    VariantLike,
    child,
    is_variant_type,
    match_chunking,
    plain_binary,
    plain_list,
    storage_array,
    struct_chunks,
    variant_array,
    variant_type,
)


def unshred(array: VariantLike, *, strict: bool = False) -> pa.Array | pa.ChunkedArray:
    """Reconstruct a shredded variant array as ``struct<metadata, value>``, row by row.

    Any valid storage struct is accepted: columns are looked up by name in any order, ``value`` or ``typed_value`` may
    be absent, and strings, binary values, lists and decimals may have any Arrow layout. A required value that is
    missing becomes a variant null. ``metadata`` is shared with the input, except that rows whose dictionary lacks the
    name of a shredded field get a new dictionary.

    If ``value`` contradicts ``typed_value``, ``typed_value`` takes precedence, as Variant Shredding requires of
    readers. With ``strict``, contradictions raise ``VariantError``, as do optional field groups, missing array
    elements, and objects or arrays in ``value`` whose sibling ``typed_value`` is null. Columns of types that shredded
    values cannot have, values other than objects next to a shredded object, and invalid bytes always raise
    ``VariantError``, with the row.

    Implements Variant Shredding, "Reconstructing a Shredded Variant".

    >>> from pqext import variant
    >>> shredded = variant.shred(variant.parse_json(['{"id": 1}', '{"id": "x"}']), "id INT")
    >>> variant.to_json(variant.unshred(shredded)).to_pylist()
    ['{"id":1}', '{"id":"x"}']
    """
    array = as_variants(array)
    chunks = struct_chunks(array)
    if is_variant_type(array.type):
        return match_chunking(array, [_to_canonical_layout(chunk) for chunk in chunks], variant_type())
    compiled = compile_schema(schema_of_storage(array.type))
    if strict:
        _check_required(array.type)
    rebuilt = []
    row = 0
    for chunk in chunks:
        rebuilt.append(build(chunk, _require_child(chunk, "metadata"), compiled, strict=strict, first_row=row))
        row += len(chunk)
    return match_chunking(array, rebuilt, variant_type())


def build(
    group: pa.StructArray,
    metadata: pa.Array,
    compiled_schema: CompiledSchema,
    *,
    strict: bool = False,
    missing_is_null: bool = False,
    first_row: int = 0,
) -> pa.StructArray:
    """Reconstruct variants from the ``value`` and ``typed_value`` of a ``group`` and the metadata of its rows.

    Rows are null if the group is null and, with ``missing_is_null``, if both of its columns are null.
    """
    metadata = plain_binary(metadata)
    status, row, validity, nulls, offsets, data, *extended = kernel.reconstruct(
        compiled_schema.plan, BinaryInput(metadata), open_columns(group, compiled_schema), strict, missing_is_null
    )
    if status != 0:
        raise faults.error(status, row=first_row + row)
    if extended[0] is not None:
        metadata = _build_binary(len(group), *extended)
    else:
        metadata = metadata.cast(pa.binary())
        metadata = metadata.fill_null(b"") if metadata.null_count else metadata
    bitmap = pa.py_buffer(validity) if nulls else None
    return variant_array(metadata, _build_binary(len(group), offsets, data), bitmap)


def open_columns(group: pa.StructArray, compiled_schema: CompiledSchema) -> Sources:
    """Open the columns of a ``group`` for the kernels, and return the columns of each node of the plan."""
    walked = zip(compiled_schema.nodes, _list_columns(group, compiled_schema), strict=True)
    return Sources([_kernel_inputs(node, columns) for node, columns in walked])


def _build_binary(rows: int, offsets: object, data: object) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)


def _require_child(chunk: pa.StructArray, name: str) -> pa.Array:
    result = child(chunk, name)
    if result is None:
        raise TypeError(f"expected a variant array, not {chunk.type}")
    return result


def _to_canonical_layout(chunk: pa.StructArray) -> pa.StructArray:
    """Convert an unshredded array to pqext's canonical layout.

    A missing ``value`` in a row that is not null becomes a variant null.
    """
    if chunk.type == variant_type():
        return chunk
    metadata, value = (_require_child(chunk, name).cast(pa.binary()) for name in ("metadata", "value"))
    valid = chunk.is_valid() if chunk.null_count else None
    if metadata.null_count > chunk.null_count or (valid is not None and metadata.filter(valid).null_count):
        raise VariantError("a row of the variant array has no metadata", rule="variant.group.metadata")
    metadata = metadata.fill_null(b"") if metadata.null_count else metadata
    value = value.fill_null(b"\0") if value.null_count else value
    if valid is None:
        return variant_array(metadata, value)
    return pa.StructArray.from_arrays([metadata, value], fields=list(variant_type()), mask=chunk.is_null())


_Columns = tuple[pa.StructArray | None, pa.Array | None, pa.Array | None]


def _list_columns(group: pa.StructArray, compiled_schema: CompiledSchema) -> list[_Columns]:
    """Return, for each node of the plan, its group, ``value`` and ``typed_value``."""
    result: list[_Columns] = [(None, None, None)] * len(compiled_schema.nodes)
    groups: dict[int, pa.StructArray] = {0: group}
    for index, node in enumerate(compiled_schema.nodes):  # parents come before their children
        members = groups.pop(index)
        typed = _to_kernel_layout(node, child(members, "typed_value"))
        result[index] = (members, child(members, "value"), typed)
        if typed is None:
            continue
        if isinstance(node.schema, Object):
            for i, number in enumerate(node.children):
                groups[number] = storage_array(typed.field(i))
        elif isinstance(node.schema, Array):
            groups[node.children[0]] = storage_array(typed.values)
    return result


def _to_kernel_layout(node: CompiledNode, typed_value: pa.Array | None) -> pa.Array | None:
    """Convert ``typed_value`` to the layout that the kernels read."""
    if typed_value is None:
        return None
    if isinstance(node.schema, Array):
        return plain_list(typed_value)
    if isinstance(node.schema, Primitive):
        if pa.types.is_dictionary(typed_value.type):
            typed_value = decode_dictionary(typed_value)
        if pa.types.is_decimal(typed_value.type):
            return typed_value.cast(node.schema.type)
        return plain_binary(typed_value)
    return typed_value


def _kernel_inputs(node: CompiledNode, columns: _Columns) -> tuple[object, object, object, object]:
    """Return the kernel inputs of a node: its arrays and the width of its typed values."""
    width: object = None
    if isinstance(node.schema, Array):
        width = "list"
    elif isinstance(node.schema, Primitive):
        typed = columns[2]
        assert typed is not None
        type = typed.type
        width = type.bit_width if pa.types.is_primitive(type) or pa.types.is_fixed_size_binary(type) else "bytes"
        if pa.types.is_decimal(type):
            width = 128
    return (*columns, width)


def _check_required(type: pa.DataType) -> None:
    """Raise ``VariantError`` if the group of a shredded field or element is optional."""
    pending = [(type, "$")]
    while pending:
        type, path = pending.pop()
        index = type.get_field_index("typed_value")
        typed = type.field(index).type if index >= 0 else pa.null()
        if pa.types.is_struct(typed):
            members = [(member, f"{path}.{member.name}") for member in typed]
        elif hasattr(typed, "value_field"):
            members = [(typed.value_field, f"{path}[]")]
        else:
            continue
        for member, name in members:
            if member.nullable:
                raise VariantError(f"group {name} must be required, not optional", rule="shredding.layout.required")
            pending.append((member.type, name))
