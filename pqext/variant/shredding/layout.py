"""Shredded arrays in the one layout that is written: the storage struct of their schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pqext.variant.shredding.schema import Array, Object, ShreddingSchema, Untyped, storage_struct
from pqext.variant.types import child, plain_binary, plain_list, storage_array


def normalise(array: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """``array``, which is shredded by ``schema``, as ``storage_struct(schema)`` says.

    Fields are put in order, ``value`` columns that were left out are added, optional groups become required
    ones, and types become the one Arrow type of their leaf. The values stay as they are.
    """
    type = storage_struct(schema)
    metadata = child(array, "metadata")
    assert metadata is not None
    parts = [metadata.cast(pa.binary()), *_parts(array, schema, type)]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(type), mask=mask)


def masked_child(group: pa.StructArray, name: str) -> pa.Array | None:
    """The child called ``name`` with the nulls of its group as well as its own; None when there is none."""
    index = group.type.get_field_index(name)
    if index < 0 or not group.null_count:
        return child(group, name)
    found = storage_array(pc.struct_field(group, [index]))
    return found if pa.types.is_nested(found.type) else plain_binary(found)


def _parts(group: pa.StructArray, schema: ShreddingSchema, type: pa.StructType) -> list[pa.Array]:
    """``value`` and ``typed_value`` of a group, whose storage struct is ``type``."""
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
            members.append(_member(member, node, target.field(i).type))
        parts.append(pa.StructArray.from_arrays(members, fields=list(target), mask=mask))
    elif isinstance(schema, Array):
        typed = plain_list(typed)
        elements = _member(storage_array(typed.values), schema.element, target.value_type)
        parts.append(_list(typed, elements, target))
    else:
        if pa.types.is_dictionary(typed.type):
            typed = typed.dictionary_decode()
        parts.append(typed.cast(target))
    return parts


def _member(group: pa.Array | None, schema: ShreddingSchema, type: pa.StructType) -> pa.StructArray:
    assert group is not None
    return pa.StructArray.from_arrays(_parts(group, schema, type), fields=list(type))


def _list(lists: pa.ListArray, elements: pa.StructArray, type: pa.ListType) -> pa.ListArray:
    """``lists`` with other elements. The bitmap keeps its offset, because the list offsets are a slice as well."""
    validity, offsets = lists.buffers()[:2]
    return pa.Array.from_buffers(
        type, len(lists), [validity, offsets], lists.null_count, lists.offset, children=[elements]
    )
