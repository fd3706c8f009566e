"""Select the Arrow type of a field from its Parquet type and the stored Arrow schema.

The rules match Arrow's reader (``ApplyOriginalMetadata``), so that both return the same types.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

_EXTENSION = b"ARROW:extension:"
_PARQUET = b"PARQUET:"
"""Prefix of metadata keys that duplicate the Parquet schema, which takes precedence."""


def type_of(parquet: pa.DataType, original: pa.DataType) -> pa.DataType:
    """Return ``original`` if it can represent the values of ``parquet``, the type in the file; otherwise the nearest
    type.

    Children of ``parquet`` are used unchanged.
    """
    types = pa.types
    if isinstance(original, pa.BaseExtensionType):
        storage = type_of(parquet, original.storage_type)
        return original if storage == original.storage_type else storage
    if types.is_list(parquet):
        return _list(parquet.value_field, original) or parquet
    if types.is_map(parquet):
        sorted_keys = types.is_map(original) and original.keys_sorted
        return pa.map_(parquet.key_field, parquet.item_field, keys_sorted=True) if sorted_keys else parquet
    if types.is_timestamp(parquet):
        known = types.is_timestamp(original) and parquet.tz == "UTC" and original.tz and is_known_time_zone(original.tz)
        return pa.timestamp(parquet.unit, original.tz) if known else parquet
    if types.is_duration(original):
        return original if types.is_int64(parquet) else parquet
    if types.is_dictionary(original):
        if types.is_string(parquet) or types.is_binary(parquet):
            return pa.dictionary(original.index_type, parquet, original.ordered)
        return parquet
    if types.is_decimal(parquet):
        same = types.is_decimal(original) and (original.precision, original.scale) == (parquet.precision, parquet.scale)
        return original if same else parquet
    if types.is_string(parquet):
        return original if types.is_large_string(original) or types.is_string_view(original) else parquet
    if types.is_binary(parquet):
        return original if types.is_large_binary(original) or types.is_binary_view(original) else parquet
    return parquet


def _list(value: pa.Field, original: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_fixed_size_list(original):
        return pa.list_(value, original.list_size)
    if types.is_large_list(original):
        return pa.large_list(value)
    if types.is_list_view(original):
        return pa.list_view(value)
    return pa.large_list_view(value) if types.is_large_list_view(original) else None


def durations(arrow_type: pa.DataType) -> list[str]:
    """Return a string for each leaf: the name of its type for a duration, otherwise an empty string."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return durations(arrow_type.storage_type)
    if pa.types.is_dictionary(arrow_type):
        return durations(arrow_type.value_type)
    if arrow_type.num_fields:
        return [unit for index in range(arrow_type.num_fields) for unit in durations(arrow_type.field(index).type)]
    return [str(arrow_type) if pa.types.is_duration(arrow_type) else ""]


def has_narrow_indices(arrow_type: pa.DataType) -> bool:
    """Return whether a dictionary in the type has indices of fewer than 32 bits."""
    if pa.types.is_dictionary(arrow_type):
        return bool(arrow_type.index_type.bit_width < 32)
    return any(has_narrow_indices(arrow_type.field(index).type) for index in range(arrow_type.num_fields))


@lru_cache(maxsize=256)
def is_known_time_zone(name: str) -> bool:
    """Return whether the time zone ``name`` is known. Arrow cannot display timestamps in an unknown time zone."""
    try:
        pa.lib.string_to_tzinfo(name)
    except Exception:  # the type depends on the time zone library
        return False
    return True


def type_category(arrow_type: pa.DataType) -> str:
    """Return the category of a type's values as stored by Parquet. Types of different categories never match."""
    types = pa.types
    while True:
        if isinstance(arrow_type, pa.BaseExtensionType):
            arrow_type = arrow_type.storage_type
        elif types.is_dictionary(arrow_type) or types.is_run_end_encoded(arrow_type):
            arrow_type = arrow_type.value_type
        else:
            break
    return _KINDS.get(arrow_type.id, "number")


_KINDS: dict[int, str] = {
    id: kind
    for kind, ids in {
        "nulls": (pa.lib.Type_NA,),
        "structs": (pa.lib.Type_STRUCT,),
        "maps": (pa.lib.Type_MAP,),
        "lists": (
            pa.lib.Type_LIST, pa.lib.Type_LARGE_LIST, pa.lib.Type_FIXED_SIZE_LIST, pa.lib.Type_LIST_VIEW,
            pa.lib.Type_LARGE_LIST_VIEW,
        ),
        "bytes": (
            pa.lib.Type_STRING, pa.lib.Type_LARGE_STRING, pa.lib.Type_STRING_VIEW, pa.lib.Type_BINARY,
            pa.lib.Type_LARGE_BINARY, pa.lib.Type_BINARY_VIEW, pa.lib.Type_FIXED_SIZE_BINARY,
            pa.lib.Type_INTERVAL_MONTH_DAY_NANO,
        ),
        "decimals": (
            pa.lib.Type_DECIMAL32, pa.lib.Type_DECIMAL64, pa.lib.Type_DECIMAL128, pa.lib.Type_DECIMAL256,
        ),
        "unions": (pa.lib.Type_SPARSE_UNION, pa.lib.Type_DENSE_UNION),
    }.items()
    for id in ids
}  # fmt: skip
"""Category by the id of Arrow's type."""


def strip_extension_metadata(field: pa.Field) -> pa.Field:
    """Return ``field`` without metadata of extension types and metadata that duplicates the Parquet schema."""
    held = (field.metadata or {}).items()
    return field.with_metadata({k: v for k, v in held if not k.startswith((_EXTENSION, _PARQUET))} or None)


def metadata_of(
    parquet_metadata: Mapping[bytes, bytes] | None, original: Mapping[bytes, bytes] | None, *, is_typed: bool
) -> dict[bytes, bytes]:
    """Merge the field metadata of the Parquet schema, which takes precedence, and of the stored Arrow schema.

    With ``is_typed``, the extension metadata of the Parquet schema is ignored.
    """
    mine = {
        key: value for key, value in (parquet_metadata or {}).items() if not (is_typed and key.startswith(_EXTENSION))
    }
    held = dict(original or {})
    if any(key.startswith(_EXTENSION) for key in mine):
        held = {key: value for key, value in held.items() if not key.startswith(_EXTENSION)}
    return {**{key: value for key, value in held.items() if not key.startswith(_PARQUET)}, **mine}
