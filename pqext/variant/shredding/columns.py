"""The columns that the shredding kernels fill, as the Arrow storage struct of the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from pqext.variant.shredding.plan import CompiledSchema
from pqext.variant.shredding.schema import Object, Primitive, Untyped, storage_struct, typed_type

Buffer: TypeAlias = Any  # whatever lends its bytes through the buffer protocol


def storage_of(
    compiled: CompiledSchema, metadata: pa.Array, columns: Sequence[Sequence[Any]], validity: Buffer | None, nulls: int
) -> pa.StructArray:
    """The storage struct of ``columns``, one entry a node of the plan as the kernels' ``take_columns`` gives them.

    ``validity`` has a bit a row and is not looked at unless there are ``nulls``.
    """
    groups: list[list[pa.Array]] = [[] for _ in columns]
    for index in reversed(range(len(columns))):  # children come after their parents
        node = compiled.nodes[index]
        rows, value_count, *value, typed_count, typed_validity, typed_offsets, typed_data = columns[index]
        groups[index] = [_variable(pa.binary(), rows, value_count, *value)]
        if isinstance(node.schema, Untyped):
            continue
        type = typed_type(node.schema)
        if isinstance(node.schema, Primitive):
            groups[index].append(_leaf(type, rows, typed_count, typed_validity, typed_offsets, typed_data))
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
    type = storage_struct(compiled.nodes[0].schema)
    bitmap = pa.py_buffer(validity) if nulls else None
    return pa.StructArray.from_buffers(type, len(metadata), [bitmap], nulls, children=[metadata, *groups[0]])


def binary_of(type: pa.DataType, rows: int, offsets: Buffer, data: Buffer) -> pa.Array:
    """A binary or string array without nulls."""
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)


def _variable(type: pa.DataType, rows: int, count: int, validity: Buffer, offsets: Buffer, data: Buffer) -> pa.Array:
    if count == 0:
        return pa.nulls(rows, type)
    bitmap = pa.py_buffer(validity) if count < rows else None
    return pa.Array.from_buffers(type, rows, [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)], rows - count)


def _leaf(type: pa.DataType, rows: int, count: int, validity: Buffer, offsets: Buffer | None, data: Buffer) -> pa.Array:
    if count == 0:
        return pa.nulls(rows, type)
    if offsets is not None:
        return _variable(type, rows, count, validity, offsets, data)
    bitmap = pa.py_buffer(validity) if count < rows else None
    return pa.Array.from_buffers(type, rows, [bitmap, pa.py_buffer(data)], rows - count)
