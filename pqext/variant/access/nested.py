"""Cast values to nested types by casting their contents to build lists, structs and maps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base import buffers
from pqext.core.base.errors import LimitError, UnsupportedError, VariantError
from pqext.core.base.suggestions import excerpt
from pqext.variant import faults
from pqext.variant.access.path import ManyPath, format_path
from pqext.variant.access.targets import VARIANT, describe_leaf_type, kernel_type
from pqext.variant.coercion import replace_views
from pqext.variant.kernels.get import Cells, PathSteps
from pqext.variant.kernels.zone import Zone
from pqext.variant.shredding.schema import is_list
from pqext.variant.timezones import DEFAULT, TimeZone
from pqext.variant.types import is_variant_type, plain_binary, variant_array

CAST_FAILED = "does not cast to"
"""Phrase in messages about values that cannot be cast."""


@dataclass(slots=True)
class CastTask:
    """State of a cast of an array: the path, the first row, the time zone, and the first value that failed to cast."""

    path: ManyPath
    strict: bool
    first_row: int = 0
    zone: TimeZone | None = None
    failed: tuple[int, str, pa.DataType] | None = field(default=None)

    @property
    def kernel_zone(self) -> Zone | None:
        """Time zone for the kernels; None for UTC."""
        return None if self.zone is None else self.zone.kernel

    def record_failures(self, failures: tuple[int, int], parent_path: str, type: pa.DataType) -> None:
        """Record the first of several values at ``parent_path`` that failed to cast, if no earlier row has failed.

        ``failures`` is the number of these values and the row of the first. ``parent_path`` is relative to the path of
        the task.
        """
        count, row = failures
        if count and (self.failed is None or row < self.failed[0]):
            self.failed = (row, parent_path, type)

    def raise_if_failed(self, target: pa.DataType) -> None:
        """Raise ``VariantError`` for the first row whose value could not be cast to ``target``, if the task is strict.
        """
        if self.strict and self.failed is not None:
            row, below, type = self.failed
            type = target if type == replace_views(target) else type
            name = "VARIANT" if is_variant_type(type) else type
            place = excerpt(format_path(self.path), limit=300) + below
            raise VariantError(f"the value at {place} {CAST_FAILED} {name}", row=self.first_row + row)


def cast_cells(
    cells: Cells, metadata: pa.Array, target: pa.DataType, task: CastTask, parent_path: str = ""
) -> pa.Array:
    """Cast each cell to ``target``; empty cells become null. Rows of the cells index into ``metadata``."""
    types = pa.types
    if is_variant_type(target):
        return _cast_variants(cells, metadata)
    if describe_leaf_type(target) is not None:
        return _cast_leaves(cells, metadata, target, task, parent_path)
    if types.is_struct(target):
        validity, nulls, _, _, _, failures = cells.open(False, True, False)
        task.record_failures(failures, parent_path, target)
        children = [
            cast_cells(
                cells.find(PathSteps((member.name,))), metadata, member.type, task, f"{parent_path}.{member.name}"
            )
            for member in target
        ]
        bitmap = pa.py_buffer(validity) if nulls else None
        return pa.StructArray.from_buffers(target, cells.count, [bitmap], nulls, children=children)
    if types.is_dictionary(target):
        return to_dictionary_type(cast_cells(cells, metadata, target.value_type, task, parent_path), target)
    return _cast_lists(cells, metadata, target, task, parent_path)


def _cast_leaves(cells: Cells, metadata: pa.Array, target: pa.DataType, task: CastTask, parent_path: str) -> pa.Array:
    described = describe_leaf_type(target)
    assert described is not None
    result = cells.cast(described, task.kernel_zone)
    task.record_failures(result[4], parent_path, target)
    rows = cells.rows if result[5] is not None else None
    return leaf_array(result, cells.count, target, metadata, rows, task)


def leaf_array(result: Any, count: int, target: pa.DataType, metadata: pa.Array, rows: Any, task: CastTask) -> pa.Array:
    """Build the array of leaf values from a kernel's result.

    ``rows`` returns, for each value, the row of its metadata; None if the row numbers are equal.
    """
    validity, nulls, offsets, data, _, nested = result
    plain = kernel_type(target)
    if pa.types.is_null(target):
        return pa.nulls(count)
    bitmap = pa.py_buffer(validity) if nulls else None
    variable = pa.types.is_string(plain) or pa.types.is_binary(plain)
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)] if variable else [bitmap, pa.py_buffer(data)]
    array = pa.Array.from_buffers(plain, count, buffers, nulls)
    if nested is not None:
        array = _insert_json(array, metadata, rows, task, *nested)
    return array if plain == target else array.cast(target)


def _insert_json(
    array: pa.Array, metadata: pa.Array, rows: Any, task: CastTask, validity: Any, offsets: Any, data: Any
) -> pa.Array:
    """Return ``array`` with JSON text in the rows whose values are objects or arrays."""
    from pqext.variant.json.text import to_json

    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    values = pa.Array.from_buffers(pa.binary(), len(array), buffers, 0)
    bitmap = pa.py_buffer(validity)
    of_row = None if rows is None else pa.Array.from_buffers(pa.int64(), len(array), [None, pa.py_buffer(rows())])
    names = to_metadata_child(metadata)
    if of_row is not None:
        # Rows without JSON need no metadata.
        mask = pa.Array.from_buffers(pa.bool_(), len(array), [None, bitmap])
        names = to_metadata_child(take_within_limit(names, pc.if_else(mask, of_row, pa.scalar(None, pa.int64()))))
    try:
        name = DEFAULT if task.zone is None else task.zone.name
        return pc.coalesce(array, to_json(variant_array(names, values, bitmap), timezone=name).cast(array.type))
    except (UnsupportedError, VariantError) as error:
        if of_row is not None and error.row is not None:
            error = faults.shift_row(error, of_row[error.row].as_py() - error.row)
        raise faults.shift_row(error, task.first_row) from None


def to_metadata_child(metadata: pa.Array) -> pa.Array:
    """Convert metadata to the ``metadata`` child of a variant array: a ``binary`` array without nulls."""
    names = plain_binary(metadata).cast(pa.binary())
    return names.fill_null(b"") if names.null_count else names


_NO_NAMES = b"\x11\0\0"


def _cast_variants(cells: Cells, metadata: pa.Array) -> pa.Array:
    """Build a variant array from the cells.

    Values without field names get empty metadata, so that elements do not repeat the dictionary of their row.
    """
    validity, nulls, offsets, data, _, _ = cells.cast(VARIANT)
    rows = pa.Array.from_buffers(pa.int64(), cells.count, [None, pa.py_buffer(cells.rows())])
    bitmap = pa.py_buffer(validity) if nulls else None
    values = pa.Array.from_buffers(pa.binary(), cells.count, [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)
    holder, some, *_ = cells.open(True, True, False)
    if some == cells.count:
        names = pa.repeat(pa.scalar(_NO_NAMES, pa.binary()), cells.count)
    else:
        if some:
            mask = pa.Array.from_buffers(pa.bool_(), cells.count, [None, pa.py_buffer(holder)])
            rows = pc.if_else(mask, rows, pa.scalar(None, pa.int64()))
        names = take_within_limit(to_metadata_child(metadata), rows)
        names = names.fill_null(_NO_NAMES) if names.null_count else names
    return variant_array(names, values, bitmap)


def take_within_limit(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Return ``values.take(indices)`` for metadata. Raises ``LimitError`` if the result exceeds 2 GiB."""
    sizes = pc.sum(pc.binary_length(values).cast(pa.int64()).take(indices)).as_py() or 0
    if sizes > buffers.ARRAY_BYTES:
        raise LimitError(
            f"the metadata of {len(indices)} values takes {sizes} bytes, more than 2^31 - 1; pass fewer rows at a time"
        )
    return values.take(indices)


def _cast_lists(cells: Cells, metadata: pa.Array, target: pa.DataType, task: CastTask, parent_path: str) -> pa.Array:
    is_map = pa.types.is_map(target)
    validity, nulls, offsets, keys, children, failures = cells.open(not is_map, is_map, True)
    task.record_failures(failures, parent_path, target)
    bitmap = pa.py_buffer(validity) if nulls else None
    starts = pa.py_buffer(offsets)
    if is_map:
        items = cast_cells(children, metadata, target.item_type, task, f"{parent_path}[]")
        names = pa.Array.from_buffers(pa.string(), children.count, [None, *map(pa.py_buffer, keys[1:])], 0)
        if target.key_type != pa.string():
            names = names.cast(target.key_type)
        entry = pa.struct([target.key_field, target.item_field])
        entries = pa.StructArray.from_buffers(entry, children.count, [None], 0, children=[names, items])
        return pa.Array.from_buffers(target, cells.count, [bitmap, starts], nulls, children=[entries])
    items = cast_cells(children, metadata, target.value_type, task, f"{parent_path}[]")
    plain = pa.list_(target.value_field)
    lists = pa.Array.from_buffers(plain, cells.count, [bitmap, starts], nulls, children=[items])
    return to_list_type(lists, target, task, parent_path, cells.rows)


def to_list_type(lists: pa.Array, target: pa.DataType, task: CastTask, parent_path: str, rows: Any = None) -> pa.Array:
    """Convert lists to the list layout of ``target``, which is not a view.

    If ``target`` has a fixed size, lists of another length fail to cast. ``rows`` returns the row of each list; None if
    list i is in row i.
    """
    assert is_list(target)
    if not pa.types.is_fixed_size_list(target):
        return lists if lists.type == target else lists.cast(target)
    size = target.list_size
    wrong = pc.fill_null(pc.not_equal(pc.list_value_length(lists), size), False)
    if pc.any(wrong).as_py():
        first = pc.index(wrong, True).as_py()
        row = np.frombuffer(rows(), np.int64)[first] if rows is not None else first
        task.record_failures((1, int(row)), parent_path, target)
    right = pc.and_(lists.is_valid(), pc.invert(wrong))
    starts = lists.offsets.slice(0, len(lists)).to_numpy(zero_copy_only=False).astype(np.int64)
    at = (starts[:, None] + np.arange(size)).ravel()
    present = np.repeat(right.to_numpy(zero_copy_only=False), size)
    items = lists.values.take(pa.array(np.where(present, at, 0), mask=~present))
    mask = pc.invert(right)
    bitmap = right.buffers()[1] if pc.any(mask).as_py() else None
    return pa.Array.from_buffers(target, len(lists), [bitmap], children=[items], offset=0)


def to_dictionary_type(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Encode values as the dictionary type ``target``. Raises ``ValueError`` if its index type is too narrow."""
    encoded = values.dictionary_encode()
    limit = 1 << (target.index_type.bit_width - (not pa.types.is_unsigned_integer(target.index_type)))
    if len(encoded.dictionary) > limit:
        count, index_type = len(encoded.dictionary), target.index_type
        raise ValueError(f"{count} distinct values exceed the range of {index_type} indices; use a wider index type")
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(target.index_type), encoded.dictionary, ordered=target.ordered
    )
