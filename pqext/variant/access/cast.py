"""Look up the value at a path of a variant and cast it, like Spark's ``variant_get`` and ``try_variant_get``."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import LimitError, UnsupportedError, VariantError
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.variant import faults
from pqext.variant.access.nested import (
    CastTask,
    cast_cells,
    leaf_array,
    take_within_limit,
    to_dictionary_type,
    to_list_type,
    to_metadata_child,
)
from pqext.variant.access.path import Path, as_path
from pqext.variant.access.targets import VARIANT, describe_leaf_type, target_type, widen_column
from pqext.variant.coercion import as_variants, replace_views, restore_views, take_without_views
from pqext.variant.kernels import get as kernel
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.get import Cells
from pqext.variant.shredding.plan import compile_schema
from pqext.variant.shredding.reconstruct import build
from pqext.variant.shredding.schema import ShreddingSchema, is_list, schema_of_group, schema_of_storage
from pqext.variant.timezones import DEFAULT, find_timezone
from pqext.variant.types import (
    VariantLike,
    child,
    is_variant_type,
    match_chunking,
    plain_list,
    storage_array,
    struct_chunks,
    variant_array,
)

_PathLike: TypeAlias = str | Sequence[str | int]
_TypeLike: TypeAlias = str | pa.DataType | builtins.type
_Values: TypeAlias = pa.Array | pa.ChunkedArray


def get(
    array: VariantLike, path: _PathLike, type: _TypeLike = "variant", strict: bool = False, *, timezone: str = DEFAULT
) -> _Values:
    """Return the value at ``path`` of each variant, cast to ``type``.

    ``array`` is an unshredded or shredded variant array; of a shredded array, only the columns on the path are read. It
    may also be a list of :class:`~pqext.variant.Variant`, or anything with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``. ``path`` is text (``"$.a.b[0]['x.y']"``) or a sequence of field names and indexes; a
    negative index counts from the end of an array. It selects one value; :func:`pqext.variant.explode` supports
    wildcards. ``type`` is a Python type (``bool``, ``int``, ``float``, ``str``, ``bytes``), an Arrow type or the name
    of one, Spark's or Arrow's (``"double"``, ``"decimal(9,2)"``, ``"uint8"``, ``"array<struct<a: int>>"``,
    ``"map<string, double>"``), or ``"variant"``, the default, for the value itself. The result is null if the variant
    or the path is missing, and for a JSON null (unless ``type`` is variant). Values are cast as in Spark's ANSI mode
    with the session time zone ``timezone``. Numbers cast to each other, rounded half up to the scale of a decimal and
    towards zero to an integer. Numbers and booleans cast to each other, as 1 and 0; a number other than 0 is true. Text
    casts to every type, and every type to text, with objects and arrays as JSON. Conditions on a path without a type
    cast in the same way; :func:`pqext.variant.equals` compares without a cast. Dates and timestamps cast to each other.
    Numbers and timestamps cast to each other as seconds since 1970. ``timezone``, an IANA name or an offset such as
    ``"+02:00"``, is the zone of local times. It applies when text without a zone, dates or timestamps without a time
    zone are cast to instants, and when instants are cast to text, dates, times or timestamps without a time zone. An
    array becomes a list. An object becomes a struct, with null for missing fields, or a map. Their elements are cast by
    the same rules.

    A value that cannot be cast, because of its type, its range or malformed text, becomes null; with ``strict``, the
    first such row raises ``VariantError``. Invalid bytes on the path always raise it, with the row and the byte offset
    in the value. Values that are equal by equivalence class have equal results.

    Raises ``ValueError`` for an invalid path and an unknown type or time zone, and ``LimitError`` if a result does not
    fit into one Arrow array.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"a": [1, 2.5]}', '{"a": []}'])
    >>> variant.get(array, "$.a[-1]", float).to_pylist()
    [2.5, None]
    >>> variant.get(variant.parse_json(["1", "true", '"1"', '"a"']), "$", float).to_pylist()
    [1.0, 1.0, 1.0, None]
    """
    return extract(as_variants(array), path, type, strict, timezone)


def extract(
    array: VariantLike, path: _PathLike, type: _TypeLike = "variant", strict: bool = False, timezone: str = DEFAULT
) -> _Values:
    """Return the result of :func:`get` for an array that is known to be valid.

    Validation takes longer than reading a shredded path.
    """
    steps = as_path(path, from_end=True)
    target = target_type(type)
    zone = find_timezone(timezone)
    chunks = struct_chunks(array)
    results = []
    row = 0
    for chunk in chunks:
        results.append(_get_chunk(chunk, CastTask(steps, strict, row, zone), target))
        row += len(chunk)
    return match_chunking(array, results, target)


_LARGE = (pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view())


def _get_chunk(chunk: pa.StructArray, task: CastTask, target: pa.DataType) -> pa.Array:
    """Evaluate a cast on a chunk, or on halves of the chunk if the result exceeds the size limit of an array."""
    metadata = child(chunk, "metadata")
    assert metadata is not None
    try:
        group, rest = descend(chunk, cast(Path, task.path))
        result = restore_views(cast_group(Group(group, metadata), rest, replace_views(target), task), target)
    except LimitError:
        if target not in _LARGE or len(chunk) < 2:
            raise
        half = len(chunk) // 2
        parts = (chunk.slice(0, half), chunk.slice(half))
        tasks = [replace(task, first_row=task.first_row + place * half, failed=None) for place in (0, 1)]
        halves = [_get_chunk(part, own, target) for part, own in zip(parts, tasks, strict=True)]
        return pa.concat_arrays(halves)
    task.raise_if_failed(target)
    return result


@dataclass(frozen=True, slots=True)
class Group:
    """A group of ``value`` and ``typed_value``, or an unshredded variant, with the metadata of its rows.

    ``rows`` contains, for each row of the group, the row of its metadata; None if the row numbers are equal.
    """

    array: pa.StructArray
    metadata: pa.Array
    rows: pa.Array | None = None

    @property
    def value(self) -> pa.Array | None:
        """Column of encoded values; None if the group has no such column."""
        return child(self.array, "value")

    @property
    def typed_value(self) -> pa.Array | None:
        """Column of typed values; None if the group has no such column."""
        return child(self.array, "typed_value")

    def masked_typed_value(self) -> pa.Array:
        """Return ``typed_value`` with nulls in the rows where the group is null."""
        return _apply_group_nulls(self.typed_value, self.array)

    @property
    def validity(self) -> tuple[pa.Buffer, int] | None:
        """Validity bitmap of the group and its offset in bits; None if no row is null."""
        return (self.array.buffers()[0], self.array.offset) if self.array.null_count else None

    def cells(self, steps: Path, first_row: int, validity: tuple[pa.Buffer, int] | None = None) -> Cells:
        """Return, for each row, the cell of the value at ``steps`` within its encoded ``value``."""
        rows = None
        if self.rows is not None:
            rows = self.rows.buffers()[1].slice(8 * self.rows.offset, 8 * len(self.rows))
        return Cells.of(
            BinaryInput(self.metadata),
            BinaryInput(self.value),
            validity or self.validity,
            rows,
            kernel.PathSteps(steps),
            first_row,
        )


def cast_group(group: Group, path: Path, target: pa.DataType, task: CastTask, parent_path: str = "") -> pa.Array:
    """Return the value at ``path`` in each row of the group, cast to ``target``. Only columns on the path are read."""
    typed = group.typed_value
    if path or typed is None:
        # Below a typed group without the field, and below a primitive, only the residual contains values.
        return _cast_value(group, path, target, task, parent_path)
    typed = _apply_group_nulls(typed, group.array)
    if pa.types.is_dictionary(target):
        return to_dictionary_type(cast_group(group, path, target.value_type, task, parent_path), target)
    if pa.types.is_dictionary(typed.type):
        typed = decode_dictionary(typed)
    if describe_leaf_type(target) is not None and describe_leaf_type(typed.type) == describe_leaf_type(target):
        return _complete_values(
            typed if typed.type == target else typed.cast(target), group, typed, target, task, parent_path
        )
    wide = widen_column(typed, target)
    if wide is not None:
        return _complete_values(wide, group, typed, target, task, parent_path)
    if pa.types.is_struct(target) and not is_variant_type(target) and pa.types.is_struct(typed.type):
        return _complete_values(
            _build_struct(group, typed, target, task, parent_path), group, typed, target, task, parent_path
        )
    if is_list(target) and is_list(typed.type):
        return _complete_values(
            _build_list(group, typed, target, task, parent_path), group, typed, target, task, parent_path
        )
    if group.rows is None:
        return _cast_value(reconstruct_group(group, task.first_row), (), target, task, parent_path)
    inner = replace(task, first_row=0, failed=None)
    with map_error_rows(group, task):
        result = _cast_value(reconstruct_group(group), (), target, inner, parent_path)
    if inner.failed is not None:
        row, place, type = inner.failed
        task.record_failures((1, group.rows[row].as_py()), place, type)
    return result


@contextmanager
def map_error_rows(group: Group, task: CastTask) -> Iterator[None]:
    """Context manager that converts the row number in an error from a row of ``group`` to a row of the task."""
    try:
        yield
    except (UnsupportedError, VariantError) as error:
        assert group.rows is not None
        if error.row is None:
            raise
        row = group.rows[error.row].as_py() + task.first_row
        raise faults.shift_row(error, row - error.row) from None


def _cast_value(group: Group, steps: Path, target: pa.DataType, task: CastTask, parent_path: str) -> pa.Array:
    """Cast the value at ``steps`` within the encoded ``value`` of each row; null if the group or its ``value`` is null.
    """
    value = group.value
    if value is None:
        return pa.nulls(len(group.array), target)
    described = VARIANT if is_variant_type(target) else describe_leaf_type(target)
    if group.rows is not None or described is None:
        return cast_cells(group.cells(steps, task.first_row), group.metadata, target, task, parent_path)
    names = BinaryInput(group.metadata)
    result = kernel.get(
        names, BinaryInput(value), group.validity, kernel.PathSteps(steps), described, task.first_row, task.kernel_zone
    )
    task.record_failures(result[4], parent_path, target)
    if described != VARIANT:
        return leaf_array(result, len(value), target, group.metadata, None, task)
    validity, nulls, offsets, data, _, _ = result
    values = pa.Array.from_buffers(pa.binary(), len(value), [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)
    return variant_array(to_metadata_child(group.metadata), values, pa.py_buffer(validity) if nulls else None)


def _complete_values(
    result: pa.Array, group: Group, typed_value: pa.Array, target: pa.DataType, task: CastTask, parent_path: str
) -> pa.Array:
    """Fill nulls of ``result``, the cast typed column, with values from the residual."""
    value = group.value
    if value is None or value.null_count == len(value) or typed_value.null_count == 0:
        return result
    lacking = pc.and_(typed_value.is_null(), value.is_valid())
    if group.array.null_count:
        lacking = pc.and_(lacking, group.array.is_valid())
    if not pc.any(lacking).as_py():
        return result
    cells = group.cells((), task.first_row, (lacking.buffers()[1], lacking.offset))
    others = cast_cells(cells, group.metadata, target, task, parent_path)
    if others.null_count == len(others):
        return result
    if describe_leaf_type(target) is not None:
        return pc.if_else(lacking, others, result)
    indices = pa.array(range(len(result)), pa.int64())
    return pa.concat_arrays([result, others]).take(pc.if_else(lacking, pc.add(indices, len(result)), indices))


def _build_struct(
    group: Group, typed_value: pa.StructArray, target: pa.StructType, task: CastTask, parent_path: str
) -> pa.Array:
    """Build a struct array from shredded objects.

    Fields with columns are read from their columns, other fields from the object in ``value``.
    """
    children = []
    cells = None
    value = group.value
    for member in target:
        name = f"{parent_path}.{member.name}"
        index = typed_value.type.get_field_index(member.name)
        if index >= 0:
            inner = _require_group(pc.struct_field(typed_value, [index]))
            children.append(cast_group(Group(inner, group.metadata, group.rows), (), member.type, task, name))
        elif value is None or value.null_count == len(value):
            children.append(pa.nulls(len(typed_value), member.type))
        else:
            if cells is None:
                partial = pc.and_(typed_value.is_valid(), value.is_valid())
                cells = group.cells((), task.first_row, (partial.buffers()[1], partial.offset))
            result = cells.find(kernel.PathSteps((member.name,)))
            children.append(cast_cells(result, group.metadata, member.type, task, name))
    mask = typed_value.is_null() if typed_value.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _build_list(group: Group, typed_value: pa.Array, target: pa.DataType, task: CastTask, parent_path: str) -> pa.Array:
    """Build a list from the element columns of a shredded array."""
    elements, offsets, parents = list_elements(typed_value)
    rows = parents if group.rows is None else group.rows.take(parents)
    items = cast_group(Group(elements, group.metadata, rows), (), target.value_type, task, f"{parent_path}[]")
    bitmap = typed_value.is_valid().buffers()[1] if typed_value.null_count else None
    plain = pa.list_(target.value_field)
    lists = pa.Array.from_buffers(plain, len(typed_value), [bitmap, offsets.buffers()[1]], children=[items])
    return to_list_type(lists, target, task, parent_path, None if group.rows is None else lambda: group.rows.to_numpy())


def list_elements(lists: pa.Array) -> tuple[pa.StructArray, pa.Array, pa.Array]:
    """Return the elements of all non-null lists, the int32 offsets of the lists, and the list number of each element.

    Raises ``LimitError`` if 32-bit offsets do not suffice.
    """
    if len(lists) == 0:  # an empty list array may have no offsets
        lists = pa.array([], pa.list_(lists.type.value_field))
    lists = plain_list(lists)
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    total = ends[-1].as_py() if len(ends) else 0
    if total > 0x7FFFFFFF:
        raise LimitError(f"the lists have {total} elements, more than 2^31 - 1; pass fewer rows at a time")
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    return _require_group(lists.flatten()), offsets, pc.list_parent_indices(lists).cast(pa.int64())


def reconstruct_group(group: Group, first_row: int = 0) -> Group:
    """Return the group as unshredded variants, reconstructed from all columns. Each row has its own metadata."""
    metadata = group.metadata
    if group.rows is not None:
        metadata = take_within_limit(to_metadata_child(metadata), group.rows)
    schema = _schema_of(group.array.type)
    whole = build(group.array, metadata, compile_schema(schema), missing_is_null=True, first_row=first_row)
    return Group(whole, child(whole, "metadata"))


@lru_cache(maxsize=256)
def _schema_of(type: pa.DataType) -> ShreddingSchema:
    """Return the shredding schema of a group, with or without ``metadata``."""
    return schema_of_storage(type) if type.get_field_index("metadata") >= 0 else schema_of_group(type)


# --- Paths through columns -----------------------------------------------------------------------


def descend(group: pa.StructArray, path: Path) -> tuple[pa.StructArray, Path]:
    """Follow a path through typed objects and arrays. Returns the last group on the path and the rest of the path.

    A group is null in rows where the ``typed_value`` of an ancestor is null. The field is missing in these rows,
    because every object or array has a ``typed_value`` (Variant Shredding, "Objects", "Arrays").
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
            typed = _apply_group_nulls(typed, group)
            group = _require_group(pc.struct_field(typed, [index]))
        elif is_list(typed.type) and isinstance(step, int):
            group = _element_at(_apply_group_nulls(typed, group), step)
        else:
            break
        path = path[1:]
    return group, path


def _apply_group_nulls(typed_value: pa.Array, group: pa.StructArray) -> pa.Array:
    """Return ``typed_value`` with nulls in the rows where its group is null."""
    if not group.null_count:
        return typed_value
    return storage_array(pc.struct_field(group, [group.type.get_field_index("typed_value")]))


def _element_at(lists: pa.Array, index: int) -> pa.StructArray:
    """Return the element at ``index`` of each list; null if the index is out of range.

    Negative indexes count from the end.
    """
    if not pa.types.is_large_list(lists.type):
        lists = plain_list(lists)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
    starts = lists.offsets.slice(0, len(lists)).cast(pa.int64())
    within = pc.add(lengths, index) if index < 0 else pa.scalar(index, pa.int64())
    there = pc.greater_equal(within, 0) if index < 0 else pc.greater(lengths, index)
    positions = pc.if_else(there, pc.add(starts, within), pa.scalar(None, pa.int64()))
    return take_without_views(_require_group(lists.values), positions)


def _require_group(array: pa.Array) -> pa.StructArray:
    """Return the group of a shredded field or element. Raises ``VariantError`` if it is not a group."""
    group = storage_array(array)
    if not pa.types.is_struct(group.type):
        schema_of_group(group.type)  # raises an error with the expected layout
    return group
