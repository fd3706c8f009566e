"""Target types of casts from variants, as Arrow types and by name, and lossless casts of complete columns."""

from __future__ import annotations

import builtins
import re
from functools import lru_cache

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import allocate, numbers
from pqext.core.kernels.encodings.decimals import quotients
from pqext.variant.kernels.shredding import Leaf
from pqext.variant.shredding.ddl import MAX_DEPTH, DdlType, parse_ddl
from pqext.variant.shredding.schema import UUID, ddl_name, is_list, parse_leaf_name, quote_name
from pqext.variant.types import is_variant_type, variant_type

Described = tuple[int, int, int, int, int]
"""Type description for the kernels: leaf or target, precision, scale, bytes per value (0 for bits or any), nanoseconds
per tick.
"""

_UINT64, _HALF, _FIXED, _NULL, _VARIANT = 23, 24, 25, 26, 100
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_PLAIN: dict[pa.DataType, Described] = {
    pa.null(): (_NULL, 0, 0, 0, 0),
    pa.bool_(): (Leaf.LEAF_BOOLEAN, 0, 0, 0, 0),
    **{type: (Leaf.LEAF_INT64, 0, 0, type.byte_width, 0) for type in _SIGNED},
    **{type: (_UINT64, 0, 0, type.byte_width, 0) for type in _UNSIGNED},
    pa.float16(): (_HALF, 0, 0, 2, 0),
    pa.float32(): (Leaf.LEAF_FLOAT, 0, 0, 4, 0),
    pa.float64(): (Leaf.LEAF_DOUBLE, 0, 0, 8, 0),
    pa.date32(): (Leaf.LEAF_DATE, 0, 0, 4, 0),
    pa.date64(): (Leaf.LEAF_DATE, 0, 0, 8, 0),
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), (Leaf.LEAF_STRING, 0, 0, 0, 0)),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), (Leaf.LEAF_BINARY, 0, 0, 0, 0)),
    UUID: (Leaf.LEAF_UUID, 0, 0, 16, 0),
}
VARIANT: Described = (_VARIANT, 0, 0, 0, 0)
_EXACT_DIGITS = 22
"""Largest exponent of a power of ten that a double represents exactly."""
_EXACT_INTEGERS = 1 << 53
"""Largest integer up to which doubles represent all integers."""


@lru_cache(maxsize=1024)
def describe_leaf_type(type: pa.DataType) -> Described | None:
    """Return the kernels' description of a leaf type.

    Returns None for nested types, dictionaries, and types that no value can be cast to.
    """
    types = pa.types
    if type in _PLAIN:
        return _PLAIN[type]
    if types.is_decimal(type):
        return (Leaf.LEAF_DECIMAL, type.precision, type.scale, type.bit_width // 8, 0) if type.scale >= 0 else None
    if types.is_timestamp(type):
        leaf = Leaf.LEAF_TIMESTAMP_NTZ if type.tz is None else Leaf.LEAF_TIMESTAMP
        return leaf, 0, 0, 8, _NANOSECONDS[type.unit]
    if types.is_time(type):
        return Leaf.LEAF_TIME, 0, 0, type.bit_width // 8, _NANOSECONDS[type.unit]
    if types.is_fixed_size_binary(type):
        return _FIXED, 0, 0, type.byte_width, 0
    return None


def kernel_type(type: pa.DataType) -> pa.DataType:
    """Return the type of the array that the kernels build for a leaf type.

    Large and view types of text and binary become ``string`` and ``binary``, which have 32-bit offsets.
    """
    if type in (pa.large_string(), pa.string_view()):
        return pa.string()
    return pa.binary() if type in (pa.large_binary(), pa.binary_view()) else type


_OF_PYTHON = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}


def target_type(type: str | pa.DataType | builtins.type) -> pa.DataType:
    """Return the Arrow type of the result of ``get``, ``variant_type()`` for a variant.

    Names are Spark's (``BIGINT``, ``ARRAY<STRUCT<a: INT>>``, ``MAP<STRING, DOUBLE>``, a list of fields for a STRUCT) or
    Arrow's (``uint8``, ``timestamp[ms, tz=Europe/Paris]``). The supported Python types are bool, int, float, str and
    bytes. Fields and elements are always nullable. Raises ``ValueError`` if variants cannot be cast to the type,
    and ``TypeError`` if ``type`` is not a type or a name.
    """
    if isinstance(type, str):
        return _parse_type_name(type)
    if type in _OF_PYTHON:
        return _OF_PYTHON[type]
    if not isinstance(type, pa.DataType):
        raise TypeError(f"a type must be an Arrow type or its name, or bool, int, float, str or bytes, not {type!r}")
    return _check_target(type, 0)


def _check_target(type: pa.DataType, depth: int) -> pa.DataType:
    types = pa.types
    if depth > MAX_DEPTH:
        raise ValueError(f"the type is nested more than {MAX_DEPTH} levels deep")
    if is_variant_type(type):
        return variant_type()
    if isinstance(type, pa.BaseExtensionType):
        if type.extension_name == "arrow.uuid":
            return UUID
        raise ValueError(f"variant values cannot be cast to extension type {type.extension_name}")
    if describe_leaf_type(type) is not None:
        return type
    if types.is_struct(type):
        if len({field.name for field in type}) < type.num_fields:
            raise ValueError(f"{type} has two fields with the same name; rename one of them")
        return pa.struct([_field(field, depth) for field in type])
    if types.is_map(type):
        if describe_leaf_type(type.key_type) != describe_leaf_type(pa.string()):
            raise ValueError(
                f"map keys must be strings, because they are field names of an object, not {type.key_type}; use "
                "pyarrow.map_(pyarrow.string(), ...)"
            )
        return pa.map_(type.key_field, _field(type.item_field, depth), type.keys_sorted)
    if is_list(type):
        return _list_type(type, _field(type.value_field, depth))
    if types.is_dictionary(type):
        if describe_leaf_type(type.value_type) in (None, describe_leaf_type(pa.null())):
            raise ValueError(f"dictionary values must have a primitive type, not {type.value_type}")
        return type
    raise ValueError(f"variant values cannot be cast to type {type}{_advice(type)}")


def _field(field: pa.Field, depth: int) -> pa.Field:
    return field.with_type(_check_target(field.type, depth + 1)).with_nullable(True)


def _list_type(type: pa.DataType, element: pa.Field) -> pa.DataType:
    """Return the list type with the layout of ``type`` and with ``element`` as its element field."""
    if pa.types.is_fixed_size_list(type):
        return pa.list_(element, type.list_size)
    for is_kind, make in (
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_list_view, pa.list_view),
        (pa.types.is_large_list_view, pa.large_list_view),
    ):
        if is_kind(type):
            return make(element)
    return pa.list_(element)


def _advice(type: pa.DataType) -> str:
    if pa.types.is_duration(type) or pa.types.is_interval(type):
        return ": variants have no intervals; cast to a number or a string and compute with that"
    if pa.types.is_decimal(type):
        return ": a decimal's scale is 0 or more"
    return ""


def depends_on_timezone(type: pa.DataType) -> bool:
    """Return whether casts to ``type``, a type from :func:`target_type`, can depend on the time zone."""
    if is_variant_type(type):
        return False
    if pa.types.is_nested(type):
        return any(depends_on_timezone(type.field(place).type) for place in range(type.num_fields))
    if pa.types.is_dictionary(type):
        return depends_on_timezone(type.value_type)
    return bool(kernel_type(type) == pa.string() or pa.types.is_temporal(type))


# --- Names ---------------------------------------------------------------------------------------

_ARROW_NAMES: dict[str, pa.DataType] = {
    **{str(type): type for type in _PLAIN},
    **{str(type): type for unit in ("s", "ms") for type in (pa.time32(unit), pa.timestamp(unit))},
    **{str(type): type for unit in ("us", "ns") for type in (pa.time64(unit), pa.timestamp(unit))},
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    "utf8": pa.string(),
    "large_utf8": pa.large_string(),
    "extension<arrow.uuid>": UUID,
    "null": pa.null(),
}
_DECIMALS = {"32": pa.decimal32, "64": pa.decimal64, "128": pa.decimal128, "256": pa.decimal256}


@lru_cache(maxsize=256)
def _parse_type_name(name: str) -> pa.DataType:
    lower = name.strip().lower()
    if lower == "variant":
        return variant_type()
    if lower in _ARROW_NAMES:
        return _ARROW_NAMES[lower]
    if match := re.fullmatch(r"decimal(32|64|128|256)\((\d{1,9}),\s*(\d{1,9})\)", lower):
        return _check_target(_DECIMALS[match[1]](int(match[2]), int(match[3])), 0)
    if match := re.fullmatch(r"fixed_size_binary\[(\d{1,9})\]", lower):
        return pa.binary(int(match[1]))
    if match := re.fullmatch(r"timestamp\[(s|ms|us|ns),\s*tz=([\w/+:-]+)\]", name.strip(), re.IGNORECASE):
        zone = "UTC" if match[2].upper() == "UTC" else match[2]
        return pa.timestamp(match[1].lower(), zone)
    if re.match(r"(interval|duration|month_)", lower):
        raise ValueError(f"variant values cannot be cast to {name}{_advice(pa.duration('us'))}")
    return _convert_ddl(parse_ddl(name, "type", allow_maps=True), name)


def _convert_ddl(ddl_type: DdlType, text: str) -> pa.DataType:
    if ddl_type.name == "STRUCT":
        names = [name for name, _ in ddl_type.fields]
        if len(set(names)) < len(names):
            raise ValueError(f"{text!r} has two fields with the same name; rename one of them")
        return pa.struct([pa.field(name, _convert_ddl(child, text)) for name, child in ddl_type.fields])
    if ddl_type.element is not None:
        item = _convert_ddl(ddl_type.element, text)
        if ddl_type.key is None:
            return pa.list_(item)
        if _convert_ddl(ddl_type.key, text) != pa.string():
            raise ValueError(
                f"the map keys in {text!r} must be strings, because they are field names of an object; use "
                "map<string, ...>"
            )
        return pa.map_(pa.string(), item)
    if ddl_type.name == "VARIANT" and not ddl_type.arguments:
        return variant_type()
    if ddl_type.name == "TIME" and len(ddl_type.arguments) == 1:
        units = {0: pa.time32("s"), 3: pa.time32("ms"), 6: pa.time64("us"), 9: pa.time64("ns")}
        if ddl_type.arguments[0] not in units:
            raise ValueError(f"TIME({ddl_type.arguments[0]}): Arrow supports times with 0, 3, 6 or 9 fractional digits")
        return units[ddl_type.arguments[0]]
    if ddl_type.name.lower() in _ARROW_NAMES and not ddl_type.arguments:
        return _ARROW_NAMES[ddl_type.name.lower()]
    return parse_leaf_name(ddl_type.name, ddl_type.arguments)


def type_name(type: str | pa.DataType) -> str:
    """Return a name that :func:`target_type` parses as ``type``: in DDL if possible, otherwise Arrow's name.

    A dictionary type has the name of its value type. Raises ``ValueError`` like :func:`target_type`, and if a type
    within a nested type has no name in DDL.
    """
    target = target_type(type)
    if isinstance(type, str):
        return type
    if pa.types.is_dictionary(target):
        target = target.value_type
    try:
        return _format_type_name(target)
    except KeyError:
        if describe_leaf_type(target) is not None:
            return str(target)
        raise ValueError(f"{type} has no name in DDL; nested types can only contain types with a name in DDL") from None


def _format_type_name(type: pa.DataType) -> str:
    if is_variant_type(type):
        return "VARIANT"
    if pa.types.is_struct(type):
        return f"STRUCT<{', '.join(f'{quote_name(field.name)}: {_format_type_name(field.type)}' for field in type)}>"
    if pa.types.is_map(type):
        return f"MAP<STRING, {_format_type_name(type.item_type)}>"
    if pa.types.is_list(type):
        return f"ARRAY<{_format_type_name(type.value_type)}>"
    if pa.types.is_unsigned_integer(type):
        return str(type)
    if pa.types.is_decimal(type) and not pa.types.is_decimal128(type):
        raise KeyError(type)
    return ddl_name(type)


def widen_column(typed_value: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Return a typed column cast to ``target``, with the same nulls; None if values must be cast individually."""
    source = typed_value.type
    if pa.types.is_signed_integer(source):
        wider = pa.types.is_signed_integer(target) and target.bit_width >= source.bit_width
        return typed_value.cast(target, safe=False) if wider or pa.types.is_float64(target) else None
    if pa.types.is_float32(source):
        return typed_value.cast(target) if pa.types.is_float64(target) else None
    if pa.types.is_decimal128(source) and pa.types.is_float64(target):
        return _to_doubles(typed_value)
    return None


def _to_doubles(decimals: pa.Array) -> pa.Array | None:
    """Return the nearest double of each decimal; None if dividing doubles may not yield the nearest double."""
    kind, count = decimals.type, len(decimals)
    validity, words = decimals.buffers()
    if kind.precision > 18 or not 0 <= kind.scale <= _EXACT_DIGITS or not count:
        return None
    unscaled = numbers(words, np.int64, 2 * decimals.offset, 2 * count)
    doubles = allocate(8 * count)
    if not quotients(unscaled, _EXACT_INTEGERS, 10.0**kind.scale, doubles.view(np.float64)) and kind.precision > 15:
        return None
    if validity is not None and decimals.offset:
        validity = decimals.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.float64(), count, [validity, pa.py_buffer(doubles)])
