"""Apply the option ``strings``: read string and binary columns as dictionaries or views, and widen dictionary indices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Type
from pqext.core.options.read_write import StringForm
from pqext.core.schema.annotations import EXTENSION_NAME
from pqext.core.schema.arrow_schema.types import has_narrow_indices
from pqext.core.schema.facts import RowGroupDescription
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape


def apply_string_option(
    shape: Shape, string_type: StringForm, is_selected: Callable[[LeafShape], bool] | None = None
) -> Shape:
    """Return ``shape`` with its string and binary leaves as ``string_type``, including nested leaves.

    ``"string"`` changes nothing. Columns with annotations or Arrow extension types keep their type, and a stored
    dictionary keeps its index type. Leaves that ``is_selected`` rejects are not changed.
    """
    if string_type == "string" or shape.annotation is not None or _is_extension(shape.original):
        return shape
    if isinstance(shape, GroupShape):
        children = tuple(apply_string_option(child, string_type, is_selected) for child in shape.children)
        return replace(shape, children=children)
    if isinstance(shape, ListShape):
        return replace(shape, element=apply_string_option(shape.element, string_type, is_selected))
    assert isinstance(shape, LeafShape)
    plain = _plain_type(shape)
    is_same = shape.encoded and string_type == "dictionary"
    if plain is None or is_same or (is_selected is not None and not is_selected(shape)):
        return shape
    requested = pa.dictionary(pa.int32(), plain) if string_type == "dictionary" else _VIEWS[plain]
    metadata = None if shape.original is None else shape.original.metadata
    field = pa.field("", requested, metadata=metadata)
    return replace(shape, original=field, encoded=string_type == "dictionary", viewed=string_type == "view")


def has_dictionary_in(group: RowGroupDescription) -> Callable[[LeafShape], bool]:
    """Return a function that tests whether the chunk of a leaf in ``group`` has dictionary-encoded pages."""
    return lambda leaf: not DICTIONARY_ENCODINGS.isdisjoint(group.chunk(leaf.node).encodings)


_VIEWS = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}


def widen_shape_indices(shape: Shape) -> Shape:
    """Return ``shape`` with dictionary indices of at least 32 bits, because other files may have more values."""
    if isinstance(shape, GroupShape):
        return replace(shape, children=tuple(map(widen_shape_indices, shape.children)))
    if isinstance(shape, ListShape):
        return replace(shape, element=widen_shape_indices(shape.element))
    original = shape.original
    if original is None or not pa.types.is_dictionary(original.type) or not has_narrow_indices(original.type):
        return shape
    wide = pa.dictionary(pa.int32(), original.type.value_type, original.type.ordered)
    return replace(shape, original=original.with_type(wide))


def _plain_type(shape: LeafShape) -> pa.DataType | None:
    """Return the Arrow type of a leaf of strings or byte arrays; None for other leaves."""
    if shape.node.physical_type != Type.BYTE_ARRAY:
        return None
    try:
        result = shape.node.leaf_type.arrow_type()
    except ParquetError:  # raised when the column is read
        return None
    return result if result in _VIEWS else None


def _is_extension(original: pa.Field | None) -> bool:
    if original is None:
        return False
    return isinstance(original.type, pa.BaseExtensionType) or EXTENSION_NAME in (original.metadata or {})
