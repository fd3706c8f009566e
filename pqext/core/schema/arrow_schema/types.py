"""The Arrow type of a field whose Parquet type shows one type and whose stored schema names another of the same values.

The rules are those of Arrow's own reader (``ApplyOriginalMetadata``), so that both show a file alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

_EXTENSION = b"ARROW:extension:"
_PARQUET = b"PARQUET:"
"""Metadata keys whose content duplicates the Parquet schema, which takes precedence."""


def type_of(shown: pa.DataType, original: pa.DataType) -> pa.DataType:
    """``original`` where it holds the values of ``shown``, a type made from Parquet's, else what is nearest to it.

    Children of ``shown`` are used unchanged.
    """
    types = pa.types
    if isinstance(original, pa.BaseExtensionType):
        storage = type_of(shown, original.storage_type)
        return original if storage == original.storage_type else storage
    if types.is_list(shown):
        return _list(shown.value_field, original) or shown
    if types.is_map(shown):
        sorted_keys = types.is_map(original) and original.keys_sorted
        return pa.map_(shown.key_field, shown.item_field, keys_sorted=True) if sorted_keys else shown
    if types.is_timestamp(shown):
        known = types.is_timestamp(original) and shown.tz == "UTC" and original.tz and is_zone(original.tz)
        return pa.timestamp(shown.unit, original.tz) if known else shown
    if types.is_duration(original):
        return original if types.is_int64(shown) else shown
    if types.is_dictionary(original):
        if types.is_string(shown) or types.is_binary(shown):
            return pa.dictionary(original.index_type, shown, original.ordered)
        return shown
    if types.is_decimal(shown):
        same = types.is_decimal(original) and (original.precision, original.scale) == (shown.precision, shown.scale)
        return original if same else shown
    if types.is_string(shown):
        return original if types.is_large_string(original) or types.is_string_view(original) else shown
    if types.is_binary(shown):
        return original if types.is_large_binary(original) or types.is_binary_view(original) else shown
    return shown


def _list(value: pa.Field, original: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if types.is_fixed_size_list(original):
        return pa.list_(value, original.list_size)
    if types.is_large_list(original):
        return pa.large_list(value)
    if types.is_list_view(original):
        return pa.list_view(value)
    return pa.large_list_view(value) if types.is_large_list_view(original) else None


def durations(arrow: pa.DataType) -> list[str]:
    """Return the type of each duration leaf, others unnamed: only the type states the unit of its integers."""
    if isinstance(arrow, pa.BaseExtensionType):
        return durations(arrow.storage_type)
    if pa.types.is_dictionary(arrow):
        return durations(arrow.value_type)
    if arrow.num_fields:
        return [unit for index in range(arrow.num_fields) for unit in durations(arrow.field(index).type)]
    return [str(arrow) if pa.types.is_duration(arrow) else ""]


def has_narrow_indices(arrow: pa.DataType) -> bool:
    """Whether a dictionary in the type has indices of fewer than 32 bits."""
    if pa.types.is_dictionary(arrow):
        return bool(arrow.index_type.bit_width < 32)
    return any(has_narrow_indices(arrow.field(index).type) for index in range(arrow.num_fields))


@lru_cache(maxsize=256)
def is_zone(name: str) -> bool:
    """Is there a time zone of this name? With others, values could not be shown."""
    try:
        pa.lib.string_to_tzinfo(name)
    except Exception:  # depends on the library that knows zones
        return False
    return True


def kind_of(arrow: pa.DataType) -> str:
    """Return the category of a type's values as Parquet stores them; types of different categories never match."""
    types = pa.types
    while True:
        if isinstance(arrow, pa.BaseExtensionType):
            arrow = arrow.storage_type
        elif types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
            arrow = arrow.value_type
        else:
            break
    return _KINDS.get(arrow.id, "number")


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
"""By number of Arrow's type."""


def unmarked(field: pa.Field) -> pa.Field:
    """``field`` without the marks of an extension type and what Parquet says itself."""
    held = (field.metadata or {}).items()
    return field.with_metadata({k: v for k, v in held if not k.startswith((_EXTENSION, _PARQUET))} or None)


def metadata_of(
    shown: Mapping[bytes, bytes] | None, original: Mapping[bytes, bytes] | None, *, typed: bool
) -> dict[bytes, bytes]:
    """Field metadata of both, where Parquet's goes first; ``typed``: the field has an extension type that says more."""
    mine = {key: value for key, value in (shown or {}).items() if not (typed and key.startswith(_EXTENSION))}
    held = dict(original or {})
    if any(key.startswith(_EXTENSION) for key in mine):
        held = {key: value for key, value in held.items() if not key.startswith(_EXTENSION)}
    return {**{key: value for key, value in held.items() if not key.startswith(_PARQUET)}, **mine}
