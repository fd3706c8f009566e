"""Arrow types of VARIANT columns, their metadata, and access to their children by name.

A variant array is a struct of ``metadata`` and ``value`` (binary), in any field order, of any Arrow binary type, inside
or outside an extension type. A shredded array has ``typed_value`` as well. Null rows are nulls of the struct. pqext
always returns :func:`variant_type`.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import LimitError
from pqext.core.schema.types.arrow_compute import decode_dictionary

EXTENSION_NAME = "arrow.parquet.variant"
"""Canonical Arrow extension name, stored as field metadata because registering the type crashes pyarrow."""
CHILD_MARK = b"pqext:variant"
"""Field metadata key that marks the ``metadata`` child of a variant struct; Spark and column access preserve it."""
CHILD_MARK_VALUE = b"1"

VariantLike: TypeAlias = "pa.Array | pa.ChunkedArray"

_METADATA_FIELD = pa.field("metadata", pa.binary(), nullable=False, metadata={CHILD_MARK: CHILD_MARK_VALUE})
_VARIANT_TYPE = pa.struct([_METADATA_FIELD, pa.field("value", pa.binary(), nullable=False)])


def metadata_field() -> pa.Field:
    """Return the field of the ``metadata`` child of variant structs.

    Its field metadata marks the struct as a variant.
    """
    return _METADATA_FIELD


def variant_type() -> pa.StructType:
    """Return the Arrow type of an unshredded variant: ``struct<metadata: binary not null, value: binary not null>``.

    >>> from pqext import variant
    >>> variant.parse_json(["1"]).type == variant.variant_type()
    True
    """
    return _VARIANT_TYPE


def variant_field(name: str, nullable: bool = True) -> pa.Field:
    """Return a field of :func:`variant_type` with the field metadata that DuckDB, polars and others recognise.

    >>> from pqext import variant
    >>> variant.variant_field("event").metadata[b"ARROW:extension:name"]
    b'arrow.parquet.variant'
    """
    marks = {"ARROW:extension:name": EXTENSION_NAME, "ARROW:extension:metadata": ""}
    return pa.field(name, _VARIANT_TYPE, nullable=nullable, metadata=marks)


def storage_type(type: pa.DataType) -> pa.DataType:
    """Return ``type`` without enclosing extension types."""
    while isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    return type


def _is_bytes(type: pa.DataType) -> bool:
    type = storage_type(type)
    if pa.types.is_dictionary(type):
        type = type.value_type
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_binary_view(type))


def is_variant_type(type: pa.DataType) -> bool:
    """Return whether ``type`` is a struct of exactly binary ``metadata`` and binary ``value``.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"id": 1}'])
    >>> variant.is_variant_type(array.type), variant.is_variant_type(variant.shred(array, "id INT").type)
    (True, False)
    """
    type = storage_type(type)
    if not pa.types.is_struct(type) or type.num_fields != 2:
        return False
    children = {child.name: child.type for child in type}
    return children.keys() == {"metadata", "value"} and all(_is_bytes(child) for child in children.values())


def is_shredded_type(type: pa.DataType) -> bool:
    """Return whether ``type`` is a shredded variant: binary ``metadata``, ``typed_value`` and optionally ``value``.

    ``typed_value`` may have any type.
    """
    type = storage_type(type)
    if not pa.types.is_struct(type):
        return False
    children = {child.name: child.type for child in type}
    names = children.keys()
    return (
        len(names) == type.num_fields
        and names in ({"metadata", "typed_value"}, {"metadata", "value", "typed_value"})
        and _is_bytes(children["metadata"])
        and ("value" not in children or _is_bytes(children["value"]))
    )


def is_marked(field: pa.Field) -> bool:
    """Return whether ``field`` is declared as a variant, by extension type, field metadata or child metadata."""
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == EXTENSION_NAME)
    if (field.metadata or {}).get(b"ARROW:extension:name") == EXTENSION_NAME.encode():
        return True
    return pa.types.is_struct(field.type) and any(CHILD_MARK in (child.metadata or {}) for child in field.type)


def storage_array(array: pa.Array) -> pa.Array:
    """Return ``array`` without enclosing extension arrays."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array


def struct_chunks(array: VariantLike) -> list[pa.StructArray]:
    """Return the struct arrays of a variant column, without extension types.

    Raises ``TypeError`` if ``array`` is not a variant array, shredded or unshredded.
    """
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise TypeError(f"expected a variant array, not {type(array).__name__}")
    if not (is_variant_type(array.type) or is_shredded_type(array.type)):
        held = storage_type(array.type)
        inner = [field.name for field in held if is_variant_type(field.type)] if pa.types.is_struct(held) else []
        is_text = pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held)
        hint = "; parse JSON with variant.parse_json" if is_text else ""
        raise TypeError(
            f"expected a variant array, struct<metadata: binary, value: binary>, not {held}"
            + (f"; pass its column {inner[0]!r}" if inner else hint)
        )
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [storage_array(chunk) for chunk in chunks]


def child(array: pa.StructArray, name: str) -> pa.Array | None:
    """Return the child ``name``, without extension types and as long as ``array``. Returns None if it does not exist.

    Binary children have type ``binary`` or ``large_binary``. Nulls of ``array`` are not applied to the child.
    """
    index = array.type.get_field_index(name)
    if index < 0:
        return None
    values = storage_array(array.field(index))
    return plain_binary(values) if _is_bytes(values.type) else values


def plain_binary(array: pa.Array) -> pa.Array:
    """Convert a binary or string array of any layout to a layout with 32-bit or 64-bit offsets."""
    if pa.types.is_dictionary(array.type):
        array = decode_dictionary(array)
    if pa.types.is_null(array.type):
        return array.cast(pa.binary())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array


def plain_list(array: pa.Array) -> pa.ListArray:
    """Convert a list array of any layout to a list array with 32-bit offsets. List views keep their order."""
    if pa.types.is_list(array.type):
        return array
    plain = pa.list_(array.type.value_field)
    if not (pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type)):
        return array.cast(plain)
    # Arrow's cast assumes that views are in ascending order.
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64()))
    if len(ends) and ends[-1].as_py() > 0x7FFFFFFF:
        raise LimitError(f"the lists have {ends[-1]} elements, more than 2^31 - 1; pass fewer rows at a time")
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(offsets, array.flatten(), plain, mask=mask)


def variant_array(metadata: pa.Array, value: pa.Array, valid: pa.Buffer | None = None) -> pa.StructArray:
    """Build an array of :func:`variant_type` from ``binary`` children without nulls.

    ``valid`` is the validity bitmap.
    """
    if len(metadata) != len(value):
        raise ValueError(f"metadata and value must have equal lengths, not {len(metadata)} and {len(value)}")
    return pa.StructArray.from_buffers(_VARIANT_TYPE, len(value), [valid], children=[metadata, value])


def match_chunking(array: VariantLike, chunks: list[pa.Array], type: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return ``chunks`` as a chunked array if ``array`` is chunked, otherwise the only chunk."""
    return pa.chunked_array(chunks, type=type) if isinstance(array, pa.ChunkedArray) else chunks[0]
