"""Arrow types with other leaves, or without the extensions around them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

_LISTS = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def mapped(arrow: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """``arrow`` with ``change`` applied to what is no struct, list or map; of extension types their storage."""

    def below(field: pa.Field) -> pa.Field:
        return field.with_type(mapped(field.type, change))

    types = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return mapped(arrow.storage_type, change)
    if types.is_struct(arrow):
        return pa.struct([below(field) for field in arrow])
    if types.is_map(arrow):
        return pa.map_(below(arrow.key_field), below(arrow.item_field), arrow.keys_sorted)
    if types.is_fixed_size_list(arrow):
        return pa.list_(below(arrow.value_field), arrow.list_size)
    for is_kind, make in _LISTS:
        if is_kind(arrow):
            return make(below(arrow.value_field))
    return change(arrow)
