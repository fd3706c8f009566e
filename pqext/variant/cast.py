"""The value at a path of a variant, cast to one type: Spark's ``variant_get`` and ``try_variant_get``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.errors import VariantError
from pqext.variant import shredding_faults
from pqext.variant.ddl import parse_ddl
from pqext.variant.kernels import get as kernel
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.path import Path, as_path, format_path
from pqext.variant.plan import compile_schema, leaf_code
from pqext.variant.reconstruct import build
from pqext.variant.schema import (
    UUID,
    ShreddingSchema,
    is_list,
    leaf_of_name,
    leaf_type,
    schema_of_group,
    schema_of_storage,
)
from pqext.variant.types import (
    VariantLike,
    child,
    is_variant_type,
    like_input,
    plain_binary,
    storage_array,
    struct_chunks,
    variant_array,
    variant_type,
)


def get(
    array: VariantLike, path: str | Sequence[str | int], type: str | pa.DataType, strict: bool = False
) -> pa.Array | pa.ChunkedArray:
    """The value at ``path`` of each variant, cast to ``type``, row by row.

    ``array`` is a variant array or a shredded one; of the latter only the columns on the path are touched.
    ``type`` is a leaf type as Arrow type or by its DDL or Arrow name (``"double"``, ``"decimal(9,2)"``,
    ``"timestamp"``), or ``"variant"`` for the value itself. The result is null where the variant or the path
    is missing, and where a JSON null stands (except as a variant). Values cast as in Spark's ANSI mode with the
    session time zone UTC: numbers among each other, rounded half up to a decimal's scale, towards zero to an
    integer; text to everything; everything to text, objects and arrays as JSON; dates and timestamps among each
    other; numbers and timestamps as seconds since 1970.

    A value that does not cast (to that type at all, out of range, or malformed text) is null; with
    ``strict`` the first one raises ``VariantError`` with its row. Broken bytes on the path always do.
    Values equal by equivalence class give equal results.
    """
    steps = as_path(path)
    target = target_type(type)
    chunks = struct_chunks(array)
    results = []
    row = 0
    for chunk in chunks:
        results.append(_get_chunk(chunk, steps, target, strict, row))
        row += len(chunk)
    return like_input(array, results, target)


@lru_cache(maxsize=256)
def target_type(type: str | pa.DataType) -> pa.DataType:
    """The Arrow type of ``get``'s result, ``variant_type()`` for a variant; ``ValueError`` for an unknown type."""
    if isinstance(type, pa.DataType):
        return variant_type() if is_variant_type(type) else leaf_type(type)
    name = type.strip().lower()
    if name == "variant":
        return variant_type()
    if name in _ARROW_NAMES:
        return _ARROW_NAMES[name]
    decimal = re.fullmatch(r"decimal(?:32|64|128)\((\d+),\s*(\d+)\)", name)
    if decimal is not None:
        return leaf_of_name("DECIMAL", (int(decimal[1]), int(decimal[2])))
    parsed = parse_ddl(type)
    if parsed.fields or parsed.element is not None:
        raise ValueError(f"a value of a variant casts to a single value, not to {type!r}; use 'variant'")
    return leaf_of_name(parsed.name, parsed.arguments)


_ARROW_NAMES: dict[str, pa.DataType] = {
    **{
        str(leaf): leaf
        for leaf in (
            pa.bool_(),
            pa.int8(),
            pa.int16(),
            pa.int32(),
            pa.int64(),
            pa.float32(),
            pa.float64(),
            pa.date32(),
            pa.time64("us"),
            pa.timestamp("us"),
            pa.timestamp("ns"),
            pa.binary(),
            pa.string(),
        )
    },
    "timestamp[us, tz=utc]": pa.timestamp("us", "UTC"),
    "timestamp[ns, tz=utc]": pa.timestamp("ns", "UTC"),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date32": pa.date32(),
    "utf8": pa.string(),
    "large_string": pa.string(),
    "extension<arrow.uuid>": UUID,
    "fixed_size_binary[16]": UUID,
}


def _get_chunk(chunk: pa.StructArray, path: Path, target: pa.DataType, strict: bool, first_row: int) -> pa.Array:
    metadata = child(chunk, "metadata")
    assert metadata is not None
    if is_variant_type(chunk.type):
        return _from_bytes(chunk, metadata, child(chunk, "value"), path, path, target, strict, first_row)
    group, rest = _descend(chunk, path)
    value, typed = child(group, "value"), child(group, "typed_value")
    if rest or typed is None:
        # Below a typed group that has no such field, and below a primitive, only the residual holds the rest.
        return _from_bytes(group, metadata, value, rest, path, target, strict, first_row)
    if typed.type == target:
        return _from_leaf(group, metadata, value, typed, path, target, strict, first_row)
    schema = schema_of_storage(chunk.type) if group is chunk else _schema_at(group.type)
    whole = build(group, metadata, compile_schema(schema), missing_is_null=True, first_row=first_row)
    return _from_bytes(whole, child(whole, "metadata"), child(whole, "value"), (), path, target, strict, first_row)


@lru_cache(maxsize=256)
def _schema_at(type: pa.DataType) -> ShreddingSchema:
    return schema_of_group(type)


def _descend(group: pa.StructArray, path: Path) -> tuple[pa.StructArray, Path]:
    """Follow the path through typed objects and arrays as far as they go.

    A group is null where an ancestor's ``typed_value`` is: the field is missing there, since a value that is
    an object (an array) has its ``typed_value`` (Variant Shredding, "Objects", "Arrays").
    """
    while path:
        typed = child(group, "typed_value")
        if typed is None:
            break
        step = path[0]
        if pa.types.is_struct(typed.type) and isinstance(step, str):
            index = typed.type.get_field_index(step)
            if index < 0:
                break
            typed = _masked(typed, group)
            group = storage_array(pc.struct_field(typed, [index]))
        elif is_list(typed.type) and isinstance(step, int):
            group = _element(_masked(typed, group), step)
        else:
            break
        path = path[1:]
    return group, path


def _masked(typed: pa.Array, group: pa.StructArray) -> pa.Array:
    """``typed`` with the nulls of the group around it."""
    if not group.null_count:
        return typed
    return storage_array(pc.struct_field(group, [group.type.get_field_index("typed_value")]))


def _element(lists: pa.Array, index: int) -> pa.StructArray:
    """The element at ``index`` of each list, null where there is none."""
    if not pa.types.is_large_list(lists.type):
        lists = lists.cast(pa.large_list(lists.type.value_field))
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    starts = lists.offsets.slice(0, len(lists))
    positions = pc.if_else(pc.greater(lengths, index), pc.add(starts, index), pa.scalar(None, pa.int64()))
    return storage_array(lists.values).take(positions)


def _from_leaf(
    group: pa.StructArray,
    metadata: pa.Array,
    value: pa.Array | None,
    typed: pa.Array,
    path: Path,
    target: pa.DataType,
    strict: bool,
    first_row: int,
) -> pa.Array:
    """The typed column as it is, completed from the residual."""
    result = _masked(typed, group)
    if value is None or value.null_count == len(value) or result.null_count == 0:
        return result
    others = _from_bytes(group, metadata, value, (), path, target, strict, first_row)
    return result if others.null_count == len(others) else pc.coalesce(result, others)


def _from_bytes(
    group: pa.StructArray,
    metadata: pa.Array,
    value: pa.Array | None,
    steps: Path,
    path: Path,
    target: pa.DataType,
    strict: bool,
    first_row: int,
) -> pa.Array:
    """Evaluate ``steps`` in the encoded ``value`` of each row; null where ``group`` or ``value`` is."""
    rows = len(group)
    if value is None:
        return pa.nulls(rows, target)
    is_variant = isinstance(target, pa.StructType)
    decimal = (target.precision, target.scale) if pa.types.is_decimal(target) else (0, 0)
    leaf = int(kernel.Target.TARGET_VARIANT) if is_variant else leaf_code(target)
    groups = (group.buffers()[0], group.offset) if group.null_count else None
    status, row, validity, nulls, offsets, data, failures, nested = kernel.get(
        BinaryInput(metadata), BinaryInput(value), groups, kernel.PathSteps(steps), leaf, *decimal
    )
    if status != 0:
        raise shredding_faults.error(status, row=first_row + row)
    if failures[0] and strict:
        raise VariantError(
            f"the value at {format_path(path)} does not cast to {'VARIANT' if is_variant else target}",
            row=first_row + failures[1],
        )
    bitmap = pa.py_buffer(validity) if nulls else None
    if is_variant:
        values = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)
        return variant_array(_names(metadata), values, bitmap)
    variable = pa.types.is_string(target) or pa.types.is_binary(target)
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)] if variable else [bitmap, pa.py_buffer(data)]
    result = pa.Array.from_buffers(target, rows, buffers, nulls)
    return _with_json(result, metadata, *nested, first_row) if nested is not None else result


def _with_json(
    result: pa.Array, metadata: pa.Array, validity: Any, offsets: Any, data: Any, first_row: int
) -> pa.Array:
    """Put the JSON of objects and arrays into the rows where they stand."""
    from pqext.variant.json import to_json

    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.binary(), len(result), buffers, 0)
    nested = variant_array(_names(metadata), values, pa.py_buffer(validity))
    try:
        return pc.coalesce(result, to_json(nested).cast(result.type))
    except VariantError as error:
        raise shredding_faults.moved(error, first_row) from None


def _names(metadata: pa.Array) -> pa.Array:
    """The metadata as the child of a variant array."""
    names = plain_binary(metadata).cast(pa.binary())
    return names.fill_null(b"") if names.null_count else names
