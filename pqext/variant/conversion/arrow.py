"""Convert Arrow columns of any type to variants, and assemble the rows that kernels write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.core.base.text import escape_text
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.data_frames import to_arrow_types
from pqext.core.schema.types.arrow_compute import decode_dictionary, decode_run_ends
from pqext.variant.binary_value import EMPTY_METADATA
from pqext.variant.coercion import as_arrow
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.convert import ArrowRows, Form
from pqext.variant.shredding.plan import compile_schema
from pqext.variant.shredding.reconstruct import build, unshred
from pqext.variant.shredding.schema import UUID, Primitive
from pqext.variant.shredding.shredder import build_binary
from pqext.variant.types import (
    CHILD_MARK,
    child,
    is_shredded_type,
    is_variant_type,
    plain_binary,
    plain_list,
    storage_array,
    storage_type,
    variant_array,
    variant_type,
)

Written = tuple[Any, ...]
"""Rows, nulls, validity, metadata offsets, metadata, value offsets, value, and additional kernel results."""
Nulls = Literal["absent", "null"]


def _to_array(values: Written) -> pa.StructArray:
    """Return rows that a kernel wrote as an array of :func:`pqext.variant.variant_type`."""
    rows, nulls, validity, metadata_offsets, metadata, value_offsets, value = values[:7]
    return variant_array(
        build_binary(pa.binary(), rows, metadata_offsets, metadata),
        build_binary(pa.binary(), rows, value_offsets, value),
        pa.py_buffer(validity) if nulls else None,
    )


def write_rows(write: Callable[[int], Written], rows: int) -> list[pa.StructArray]:
    """Call ``write(start)`` until all rows are written, and return the arrays.

    Each call returns the rows from ``start`` on that fit into 2 GiB. Raises ``LimitError`` if one variant exceeds 2
    GiB.
    """
    arrays: list[pa.StructArray] = []
    start = 0
    while start < rows or not arrays:
        array = _to_array(write(start))
        arrays.append(array)
        start += len(array)
        if start < rows and not len(array):
            raise LimitError(f"row {start}: the variant exceeds the limit of 2 GiB")
    return arrays


def concatenate_variants(arrays: list[pa.StructArray]) -> pa.StructArray:
    """Concatenate all rows into one array. Raises ``LimitError`` if 32-bit offsets do not suffice."""
    if len(arrays) == 1:
        return arrays[0]
    try:
        return pa.concat_arrays(arrays) if arrays else pa.array([], variant_type())
    except pa.ArrowInvalid:
        raise LimitError("the variants exceed 2 GiB; pass fewer rows at a time, or a chunked array") from None


def from_arrow(data: Any, *, nulls: Nulls = "absent") -> pa.StructArray | pa.ChunkedArray:
    """Convert the rows of an Arrow array, record batch or table of any type to variants.

    ``data`` is an Arrow array, chunked array, ``RecordBatch`` or ``Table``, or any object with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``, such as polars and pandas frames and Series. The result is a chunked array for a table, a
    chunked array and a stream, and otherwise an array. Each row of a table or batch becomes an object.

    Integers, floats, booleans, dates, strings and binary become the variant type of the same name; uint8 to uint32 the
    next wider integer and uint64 a decimal; float16 a float; ``decimal256`` a decimal of at most 38 digits; ``time32``
    and ``time64`` a time; and ``arrow.uuid`` a UUID. A ``timestamp`` becomes a timestamp, in UTC if it has a time zone,
    in nanoseconds if that is its unit and otherwise in microseconds. Structs and maps with string keys become objects,
    and lists of every layout become arrays. Dictionaries and run-end encoded arrays are decoded. Variants are
    unchanged; shredded variants with extension metadata are reconstructed.

    A null row is null. A null in a list is a variant null. ``nulls="absent"`` omits null fields of structs, null
    columns and null values of maps from the object; ``"null"`` converts them to variant nulls. Every row has a sorted
    dictionary with exactly the names that it uses.

    Raises ``TypeError`` with the column for a type that variants do not support (durations, intervals, unions, maps
    with other keys); ``ValueError`` for two columns with the same name and for values that the variant type cannot
    represent (a timestamp out of range, a decimal of 39 digits, nanoseconds in a time); ``VariantError`` with the row
    for a map that repeats a key and for invalid variants; and ``LimitError`` if an array would exceed 2 GiB.

    >>> import pyarrow as pa
    >>> from pqext import variant
    >>> table = pa.table({"id": [1, 2], "tags": [["a", None], None]})
    >>> variant.to_json(variant.from_arrow(table)).to_pylist()
    ['{"id":1,"tags":["a",null]}', '{"id":2}']
    """
    if nulls not in ("absent", "null"):
        raise ValueError(f"nulls must be 'absent' or 'null', not {nulls!r}")
    keep = nulls == "null"
    data = to_arrow_types(data)
    if isinstance(data, pa.RecordBatch):
        check_table(pa.Table.from_batches([data]))
        return _convert_rows(_to_struct(data), keep, 0)
    if not isinstance(data, pa.Table | pa.Array | pa.ChunkedArray) and hasattr(data, "__arrow_c_stream__"):
        data = _from_stream(data)
    if isinstance(data, pa.Table):
        check_table(data)
        chunks = [_to_struct(batch) for batch in data.to_batches()]
    else:
        data = as_arrow(data)
        if isinstance(data, pa.Array):
            return _convert_rows(data, keep, 0)
        chunks = data.chunks
    results = []
    row = 0
    for chunk in chunks:
        results.append(_convert_rows(chunk, keep, row))
        row += len(chunk)
    return pa.chunked_array(results, type=variant_type())


def _from_stream(data: Any) -> pa.Table | pa.ChunkedArray:
    """Read an Arrow stream of record batches into a table, and any other stream into a chunked array."""
    try:
        return pa.chunked_array(data)
    except (TypeError, ValueError, NotImplementedError, pa.ArrowException):
        return pa.table(data)


def _to_struct(batch: pa.RecordBatch) -> pa.StructArray:
    if batch.num_columns:
        return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return pa.array([{}] * batch.num_rows, pa.struct([]))


def _convert_rows(array: pa.Array, keep_nulls: bool, first_row: int) -> pa.StructArray:
    rows = ArrowRows(_list_columns(array), keep_nulls)
    return concatenate_variants(write_rows(lambda start: rows.rows(start, len(array), first_row), len(array)))


_Part = tuple[Any, ...]
"""Layout, name, validity, offset, offsets, whether these are wide, width, length, columns, first child, children."""


def _list_columns(array: pa.Array) -> list[_Part]:
    """Return ``array`` and the columns below it for the kernel.

    Parents precede their children, and the children of a column are consecutive.
    """
    queue: list[tuple[pa.Array, bytes | None, pa.Field | None, str]] = [(array, None, None, "")]
    parts: list[_Part] = []
    for column, name, field, path in queue:  # the loop extends the queue
        column = _to_plain_layout(column, path)
        type = column.type
        validity = column.buffers()[0] if column.null_count and not pa.types.is_null(type) else None
        if validity is not None and validity.size * 8 < column.offset + len(column):
            raise ValueError(f"{_format_path(path)}: the validity buffer is too short")
        first = len(queue)
        form, offsets, wide, width, length = Form.FORM_LEAF, None, False, 0, 0
        columns: list[BinaryInput] = []
        if is_variant_type(type):
            form = Form.FORM_VARIANT
            columns = [BinaryInput(child(column, part)) for part in ("value", "metadata")]
        elif pa.types.is_struct(type):
            form = Form.FORM_STRUCT
            _check_names([member.name for member in type], path)
            for i in sorted(range(type.num_fields), key=lambda i: _encode_name(type.field(i).name)):
                member = type.field(i)
                below = f"{path}.{member.name}" if path else member.name
                queue.append((column.field(i), _encode_name(member.name), member, below))
        elif pa.types.is_map(type):
            form = Form.FORM_MAP
            keys = storage_array(column.keys)
            if pa.types.is_dictionary(keys.type):
                keys = decode_dictionary(keys)
            if not _is_text(keys.type):
                raise TypeError(
                    f"{_format_path(path)}: a map with {keys.type} keys is not an object; keys must be strings"
                )
            columns, offsets, length = [BinaryInput(plain_binary(keys))], column.buffers()[1], len(column.items)
            queue.append((column.items, None, type.item_field, f"{path}{{}}"))
        elif pa.types.is_fixed_size_list(type):
            form, width, length = Form.FORM_LIST, type.list_size, len(column.values)
            queue.append((column.values, None, type.value_field, f"{path}[]"))
        elif pa.types.is_list(type) or pa.types.is_large_list(type):
            form, offsets, wide, length = (
                Form.FORM_LIST,
                column.buffers()[1],
                pa.types.is_large_list(type),
                len(column.values),
            )
            queue.append((column.values, None, type.value_field, f"{path}[]"))
        else:
            columns = [BinaryInput(_encode_leaves(column, path, _is_uuid(column.type, field)))]
            if pa.types.is_null(type):
                validity = pa.py_buffer(bytes((len(column) + column.offset + 7) // 8 or 1))
        if (
            offsets is not None
            and offsets.size < (column.offset + len(column) + 1) * (8 if wide else 4)
            and len(column)
        ):
            raise ValueError(f"{_format_path(path)}: the offsets buffer is too short")
        part = (form, name, validity, column.offset, offsets, wide, width, length, columns, first, len(queue) - first)
        parts.append(part)
    return parts


def _to_plain_layout(column: pa.Array, path: str) -> pa.Array:
    """Return ``column`` in a layout that the kernel supports, without extension types, dictionaries and run ends."""
    if isinstance(column, pa.ExtensionArray) and column.type.extension_name == "arrow.uuid":
        return column
    column = storage_array(column)
    if pa.types.is_dictionary(column.type):
        return _to_plain_layout(decode_dictionary(column), path)
    if pa.types.is_run_end_encoded(column.type):
        try:
            return _to_plain_layout(decode_run_ends(column), path)
        except pa.ArrowNotImplementedError as error:
            raise TypeError(
                f"{_format_path(path)}: pyarrow cannot decode the run ends of {column.type}: {error}"
            ) from None
    if is_shredded_type(column.type) and any(CHILD_MARK in (member.metadata or {}) for member in column.type):
        return unshred(column)
    if pa.types.is_list_view(column.type) or pa.types.is_large_list_view(column.type):
        return plain_list(column)
    return column


def _check_names(names: list[str], path: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{_format_path(path)}: two fields have the name {escape_text(repeated[0])!r}; rename one")


def _encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _format_path(path: str) -> str:
    return f"column {escape_text(path)}" if path else "the array"


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def _is_uuid(type: pa.DataType, field: pa.Field | None) -> bool:
    """Return whether a column contains UUIDs, according to its type or field metadata."""
    if isinstance(type, pa.BaseExtensionType):
        return bool(type.extension_name == "arrow.uuid")
    marks = (field.metadata or {}) if field is not None else {}
    return bool(type == UUID and marks.get(b"ARROW:extension:name") == b"arrow.uuid")


def _encode_leaves(column: pa.Array, path: str, is_uuid: bool) -> pa.Array:
    """Encode each value of a leaf column as a variant primitive. Null rows contain arbitrary bytes."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.binary())
    try:
        type = UUID if is_uuid else _leaf_type(column.type)
        if type is None:
            raise TypeError(
                f"{_format_path(path)}: variants have no type for {column.type}; cast it to an integer or a string"
            )
        plain = storage_array(column)
        typed = plain if type == plain.type or _is_text(plain.type) or type == pa.binary() else plain.cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{_format_path(path)}: {error}") from None
    if pa.types.is_fixed_size_binary(typed.type) and type == pa.binary():
        typed = typed.cast(pa.binary())
    group = pa.StructArray.from_arrays([typed], ["typed_value"])
    rows = len(column)
    offsets = pa.py_buffer(np.arange(rows + 1, dtype=np.int64) * len(EMPTY_METADATA))
    names = pa.Array.from_buffers(pa.large_binary(), rows, [None, offsets, pa.py_buffer(EMPTY_METADATA * rows)])
    try:
        whole = build(group, names, compile_schema(Primitive(type)))
    except LimitError:
        raise LimitError(f"{_format_path(path)} exceeds 2 GiB; pass fewer rows at a time") from None
    return whole.field("value")


def _leaf_type(type: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type of the variant leaf for values of ``type``; None if variants have no such type."""
    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return _leaf_type(storage_type(type))
    if types.is_timestamp(type):
        return pa.timestamp("ns" if type.unit == "ns" else "us", None if type.tz is None else "UTC")
    if types.is_decimal(type):
        negative = max(0, -type.scale)
        return pa.decimal128(min(38, type.precision + negative), max(0, type.scale)) if type.scale <= 38 else None
    if types.is_time(type):
        return pa.time64("us")
    if types.is_date(type):
        return pa.date32()
    if _is_text(type):
        return pa.string()
    if (
        types.is_binary(type)
        or types.is_large_binary(type)
        or types.is_binary_view(type)
        or types.is_fixed_size_binary(type)
    ):
        return pa.binary()
    return _WIDENED.get(type)


_WIDENED = {
    **{type: type for type in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())},
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
