"""Convert stored values to the type of their column, and replace or report invalid values.

All values of a page are decoded together with the column's type. If one of them is invalid, the column is decoded as
stored values instead, and each batch of rows is converted individually.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, view
from pqext.core.base.errors import InvalidValueError
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import ReadOptions
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.core.schema.types import leaf
from pqext.core.schema.types.arrow_compute import is_view
from pqext.core.schema.types.logical import LeafType
from pqext.core.schema.types.physical_types import canonical_type
from pqext.core.schema.types.utf8 import replace_invalid_bytes

_REMEDY = 'skip the row, or read it as null with invalid_values="null"'
_TEXT_REMEDY = 'pass invalid_utf8="replace" or "binary"'


def may_be_invalid(node: SchemaNode) -> bool:
    """Return whether the stored values of a leaf may be invalid for its type.

    False for types that cannot be converted.
    """
    if node.physical_type == Type.INT96 or node.leaf_type.logical is None or node.leaf_type.ignored_reason is not None:
        return False
    arrow = node.leaf_type.arrow_type()
    is_small = pa.types.is_integer(arrow) and arrow.bit_width < 32
    return bool(is_small or any(test(arrow) for test in (pa.types.is_time, pa.types.is_decimal, pa.types.is_string)))


def strip_type(shape: LeafShape) -> LeafShape:
    """Return the leaf without its logical type."""
    return replace(shape, node=replace(shape.node, logical_type=None), annotation=None, encoded=False)


def unannotated_leaves(shape: Shape) -> set[int]:
    """Return the column indexes of the leaves of ``shape`` that are neither annotated nor within an annotated group."""
    if shape.annotation is not None:
        return set()
    if isinstance(shape, LeafShape):
        return {shape.node.leaf_start}
    if isinstance(shape, GroupShape):
        return set().union(*map(unannotated_leaves, shape.children))
    return unannotated_leaves(shape.element) if isinstance(shape, ListShape) else set()


def convert_values(shape: LeafShape, array: pa.Array, options: ReadOptions) -> tuple[pa.Array, int]:
    """Convert stored values to the leaf's type. Return the array and the number of invalid values that became null.

    Raises ``InvalidValueError`` for an invalid value unless ``options`` replace it.
    """
    if is_view(array.type):
        array = array.cast(canonical_type(array.type))
    kind, count = shape.node.leaf_type, 0
    try:
        made = _build_array(kind, array, None)
    except InvalidValueError as error:
        is_text = kind.width is None and pa.types.is_string(kind.arrow_type())
        invalid = _find_invalid(kind, array)
        if is_text and options.invalid_utf8 == "replace":
            made = _build_array(kind, replace_invalid_bytes(array), None)
        elif options.invalid_values == "null" and shape.nullable:
            count = int(np.count_nonzero(invalid))
            made = _build_array(kind, array, invalid)
        else:
            remedy = _REMEDY if shape.nullable else "the column is required and has no nulls"
            error.message += f"; {_TEXT_REMEDY}; {remedy}" if is_text else f"; {remedy}"
            error.slot = int(np.argmax(invalid))
            raise
    return made.dictionary_encode() if shape.encoded else made, count


def _build_array(leaf_type: LeafType, array: pa.Array, invalid: NDArray[np.bool_] | None) -> pa.Array:
    """Return an array of ``leaf_type`` with ``invalid`` values replaced by nulls."""
    valid = np.asarray(array.is_valid()) if invalid is None else np.asarray(array.is_valid()) & ~invalid
    validity = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    if leaf_type.width is None:
        if invalid is not None:
            array = pc.if_else(pa.array(valid), array, pa.scalar(b"", pa.binary()))  # all bytes are validated
        array = pa.concat_arrays([array.slice(0, 0), array]) if array.offset else array
        _, offsets, data = array.buffers()
        return leaf.from_byte_arrays(leaf_type, len(array), validity, offsets, EMPTY if data is None else view(data))
    width = leaf_type.width
    values: Any = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :][: len(array) * width]
    values = values.reshape(len(array), leaf_type.width)
    if not valid.all():
        values = np.where(valid[:, None], values, np.uint8(0))
    return leaf.from_fixed_width(leaf_type, len(array), validity, np.ascontiguousarray(values).reshape(-1))


def _find_invalid(leaf_type: LeafType, array: pa.Array) -> NDArray[np.bool_]:
    """Return a mask of invalid values. The array is bisected, since few values are invalid."""
    result = np.zeros(len(array), np.bool_)
    parts = [(0, len(array))]
    while parts:
        start, stop = parts.pop()
        try:
            _build_array(leaf_type, array.slice(start, stop - start), None)
        except InvalidValueError:
            if stop - start == 1:
                result[start] = True
            else:
                middle = (start + stop) // 2
                parts += [(start, middle), (middle, stop)]
    return result
