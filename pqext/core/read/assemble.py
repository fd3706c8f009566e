"""Assemble leaf columns into nested Arrow arrays, using the levels of the first leaf of each field."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import allocate, trim
from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.kernels.encodings import levels
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.schema.arrow_schema.arrays import null_list_length, plain_container, restore_type
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.core.schema.types import leaf

_FILLED = 32
"""Approximate size in bytes of an element of a null fixed-size list."""
_FLAT = np.empty(0, np.int16)


def assemble(
    shape: Shape, columns: Mapping[int, LeafColumn], options: ReadOptions, arrow_type: pa.DataType | None = None
) -> pa.Array:
    """Assemble the Arrow array of ``shape``. ``columns`` maps column indices to leaf columns, which have the same rows.

    ``arrow_type`` is the type of the shape's Arrow field, if it is known. Types are then built once per column instead
    of once per level.
    """
    if shape.annotation is None and shape.original is None:
        return _assemble_storage(shape, columns, options, shape.storage_field(options).type if arrow_type is None else
        arrow_type)
    if shape.annotation is None:
        container = shape.storage_field(options).type if arrow_type is None else plain_container(arrow_type)
        return _restore_type(shape, _assemble_storage(shape, columns, options, container))
    stored = None if isinstance(shape, LeafShape) else shape.storage_field(options).type
    return shape.annotation.load().from_storage(shape.node, _assemble_storage(shape, columns, options, stored), options)


def _restore_type(shape: Shape, array: pa.Array) -> pa.Array:
    assert shape.original is not None
    try:
        return restore_type(array, shape.original.type)
    except ParquetError as error:
        error.locate(column=shape.node.dotted_path)
        raise


def assembled_bytes(shape: Shape, columns: Mapping[int, LeafColumn]) -> int:
    """Return the maximum number of bytes that :func:`assemble` allocates for offsets, validity and annotated values.
    """
    if isinstance(shape, LeafShape):
        return 2 * columns[shape.node.leaf_start].nbytes if shape.annotation is not None else 0
    entries = columns[shape.first_leaf].entries
    if isinstance(shape, GroupShape):
        size = entries * 2 + sum(assembled_bytes(child, columns) for child in shape.children)
    else:
        assert isinstance(shape, ListShape)
        size = entries * 6 + assembled_bytes(shape.element, columns)
        definition = columns[shape.first_leaf].definition
        if shape.original is not None and definition is not None:
            nulls = int(np.count_nonzero(definition < shape.value_level))
            size += nulls * null_list_length(shape.original.type) * _FILLED
    if shape.annotation is not None:
        size += 2 * sum(columns[leaf.node.leaf_start].nbytes for leaf in shape.leaves())
    return size


def _assemble_storage(
    shape: Shape, columns: Mapping[int, LeafColumn], options: ReadOptions, arrow_type: pa.DataType | None
) -> pa.Array:
    if isinstance(shape, LeafShape):
        try:
            return leaf.convert_int96(shape.node.leaf_type, columns[shape.node.leaf_start].array, options.int96_unit)
        except ParquetError as error:
            error.locate(column=shape.node.dotted_path)
            raise
    if isinstance(shape, GroupShape):
        return _assemble_group(shape, columns, options, arrow_type)
    assert isinstance(shape, ListShape)
    return _assemble_list(shape, columns, options, arrow_type)


def _assemble_group(
    shape: GroupShape, columns: Mapping[int, LeafColumn], options: ReadOptions, arrow_type: pa.StructType
) -> pa.Array:
    children = [
        assemble(child, columns, options, arrow_type.field(place).type) for place, child in enumerate(shape.children)
    ]
    slots = len(children[0])
    validity = None
    # A required group below a null group has slots without values. An annotation must not report them as corruption.
    if shape.nullable or (shape.annotation is not None and shape.value_level > shape.slot_level):
        first = columns[shape.first_leaf]
        assert first.definition is not None
        present = np.empty(len(first.definition), np.uint8)
        repetition = first.repetition if first.repetition is not None else _FLAT
        count, valid = levels.group_validity(
            repetition, first.definition, shape.repetition_level, shape.slot_level, shape.value_level, present
        )
        _check_count(shape, count, slots)
        if valid < slots:
            validity = _pack_bits(present[:slots])
    for child in children:
        _check_count(shape, len(child), slots)
    return pa.Array.from_buffers(arrow_type, slots, [validity], children=children)


def _assemble_list(
    shape: ListShape, columns: Mapping[int, LeafColumn], options: ReadOptions, arrow_type: pa.DataType
) -> pa.Array:
    first = columns[shape.first_leaf]
    assert first.definition is not None
    assert first.repetition is not None
    entries = len(first.definition)
    offsets, present = allocate((entries + 1) * 4).view(np.int32), allocate(entries)
    slots, elements = levels.list_offsets(
        first.repetition, first.definition, shape.element_repetition,
        shape.slot_level, shape.value_level, shape.element_level, offsets, present,
    )
    if slots < 0:
        raise CorruptFileError("a list element precedes the first list", column=shape.node.dotted_path)
    is_map = pa.types.is_map(arrow_type)
    pairs_type = pa.struct([arrow_type.key_field, arrow_type.item_field]) if is_map else None
    element = assemble(shape.element, columns, options, pairs_type if is_map else arrow_type.value_type)
    _check_count(shape, len(element), elements)
    validity = _pack_bits(present[:slots]) if not present[:slots].all() else None
    buffers = [validity, pa.py_buffer(trim(offsets, slots + 1))]
    if is_map:
        if element.null_count or element.field(0).null_count:
            raise CorruptFileError("a map has a null key", column=shape.node.dotted_path)
        children = [element.field(0), element.field(1)]
        pairs = pa.Array.from_buffers(pairs_type, elements, [None], children=children)
        return pa.Array.from_buffers(arrow_type, slots, buffers, children=[pairs])
    return pa.Array.from_buffers(arrow_type, slots, buffers, children=[element])


def _check_count(shape: Shape, count: int, expected: int) -> None:
    if count != expected:
        raise CorruptFileError(
            f"columns of a field differ in length: {count} values instead of {expected}", column=shape.node.dotted_path
        )


def _pack_bits(flags: NDArray[np.uint8]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
