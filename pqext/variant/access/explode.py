"""Explode arrays and objects into one row per element or field, like Spark's ``variant_explode``."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from pqext.variant.access.cast import Group, cast_group, descend, list_elements, map_error_rows, reconstruct_group
from pqext.variant.access.nested import CastTask, cast_cells
from pqext.variant.access.path import ManyPath, Path, Wildcard, as_wildcard_path
from pqext.variant.access.targets import target_type
from pqext.variant.coercion import as_variants, replace_views, restore_views
from pqext.variant.kernels.get import Cells, PathSteps
from pqext.variant.shredding.schema import is_list
from pqext.variant.timezones import DEFAULT, find_timezone
from pqext.variant.types import VariantLike, child, is_variant_type, struct_chunks, variant_field


def explode(
    array: VariantLike,
    path: str | Sequence[str | int | Wildcard] = "$",
    type: str | pa.DataType | builtins.type = "variant",
    *,
    outer: bool = False,
    strict: bool = False,
    timezone: str = DEFAULT,
) -> pa.Table:
    """Explode the array or object at ``path`` of each variant into a table with one row per element or field.

    The table has the columns ``row`` (int64, the index in ``array``), ``pos`` (int32, from 0), ``key`` (string, the
    name of the field; null for elements) and ``value``, a variant, or the value cast to ``type`` in ``timezone`` as by
    :func:`pqext.variant.get`. Rows are in the order of ``array``, elements in array order, fields in the order of their
    names.

    Wildcards select several values: ``$.orders[*].price`` selects the price of each element of ``orders`` (null if it
    has none), and ``.*`` selects every field. With several wildcards, ``pos`` and ``key`` refer to the last. A path
    without wildcards selects the array or object to explode. If the value is neither, or is missing, there is no row.
    With ``outer``, these variants and empty ones have a row of nulls.

    Of a shredded array, only the columns on the path are read. Invalid bytes on the path raise ``VariantError`` with
    the row. With ``strict``, values that cannot be cast also raise ``VariantError``.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"tags": ["a", "b"]}', "{}", '{"tags": ["c"]}'])
    >>> variant.explode(array, "$.tags", str).select(["row", "pos", "value"]).to_pydict()
    {'row': [0, 0, 2], 'pos': [0, 1, 0], 'value': ['a', 'b', 'c']}
    """
    steps = as_wildcard_path(path)
    target, zone = target_type(type), find_timezone(timezone)
    value = variant_field("value") if is_variant_type(target) else pa.field("value", target)
    schema = pa.schema([("row", pa.int64()), ("pos", pa.int32()), ("key", pa.string()), value])
    tables = []
    first_row = 0
    for chunk in struct_chunks(as_variants(array)):
        columns = _explode_chunk(chunk, CastTask(steps, strict, first_row, zone), target, outer)
        tables.append(pa.Table.from_arrays(columns, schema=schema))
        first_row += len(chunk)
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _explode_chunk(
    chunk: pa.StructArray, task: CastTask, target: pa.DataType, outer: bool
) -> list[pa.Array]:
    parts = _split_path(task.path)
    metadata = child(chunk, "metadata")
    assert metadata is not None
    group, rest = descend(chunk, parts[0][1])
    rows, pos, keys, values = _explode_group(Group(group, metadata), rest, parts, replace_views(target), task)
    task.raise_if_failed(target)
    if outer:
        missing = np.setdiff1d(np.arange(len(chunk)), rows)
        order = np.argsort(np.concatenate([rows, missing]), kind="stable")
        indices = pa.array(order, mask=order >= len(rows))
        rows = np.concatenate([rows, missing])[order]
        pos, keys, values = pos.take(indices), keys.take(indices), values.take(indices)
    return [pa.array(rows + task.first_row, pa.int64()), pos, keys, restore_views(values, target)]


def _split_path(steps: ManyPath) -> list[tuple[Wildcard | None, Path]]:
    """Split a path at its wildcards. Returns each wildcard with the steps after it.

    The first item contains the steps before the first wildcard, and None instead of a wildcard.
    """
    parts: list[tuple[Wildcard | None, list[str | int]]] = [(None, [])]
    for step in steps:
        if isinstance(step, Wildcard):
            parts.append((step, []))
        else:
            parts[-1][1].append(step)
    if len(parts) == 1:
        parts.append((None, []))
    return [(wildcard, tuple(path)) for wildcard, path in parts]


_Exploded = tuple[np.ndarray, pa.Array, pa.Array, pa.Array]
"""Rows, positions, keys and values of exploded variants."""


def _explode_group(
    group: Group, path: Path, parts: list[tuple[Wildcard | None, Path]], target: pa.DataType, task: CastTask
) -> _Exploded:
    """Explode the values at ``path`` of a group, through list columns if they exist, otherwise in encoded values."""
    wildcard, after = parts[1]
    typed = group.typed_value
    value = group.value
    if (
        not path
        and typed is not None
        and is_list(typed.type)
        and wildcard in (None, Wildcard.ELEMENTS)
        and (value is None or value.null_count == len(value))
    ):
        typed = group.masked_typed_value()
        elements, offsets, parents = list_elements(typed)
        rows = parents if group.rows is None else group.rows.take(parents)
        inner, below = descend(elements, after)
        result = Group(inner, group.metadata, rows)
        if len(parts) > 2:
            return _explode_group(result, below, parts[1:], target, task)
        starts = offsets.to_numpy()
        pos = np.arange(len(elements)) - np.repeat(starts[:-1], np.diff(starts))
        values = cast_group(result, below, target, task)
        return rows.to_numpy(), pa.array(pos, pa.int32()), pa.nulls(len(elements), pa.string()), values
    if not path and typed is not None:
        if group.rows is None:
            whole = reconstruct_group(group, task.first_row)
            return _explode_cells(whole.cells((), task.first_row), whole.metadata, parts[1:], target, task)
        inner_task = replace(task, first_row=0, failed=None)
        with map_error_rows(group, task):
            whole = reconstruct_group(group)
            exploded = _explode_cells(whole.cells((), 0), whole.metadata, parts[1:], target, inner_task)
        origin = group.rows.to_numpy()
        if inner_task.failed is not None:
            row, place, type = inner_task.failed
            task.record_failures((1, int(origin[row])), place, type)
        return origin[exploded[0]], *exploded[1:]
    if group.value is None:
        empty = pa.array([], pa.int32()), pa.array([], pa.string()), pa.array([], target)
        return np.empty(0, np.int64), *empty
    return _explode_cells(group.cells(path, task.first_row), group.metadata, parts[1:], target, task)


def _explode_cells(
    cells: Cells, metadata: pa.Array, parts: list[tuple[Wildcard | None, Path]], target: pa.DataType, task: CastTask
) -> _Exploded:
    for wildcard, after in parts:
        arrays, objects = wildcard is not Wildcard.FIELDS, wildcard is not Wildcard.ELEMENTS
        _, _, offsets, names, inner, _ = cells.open(arrays, objects, True)
        starts = np.frombuffer(offsets, np.int32)
        cells = inner.find(PathSteps(after)) if after else inner
    pos = np.arange(cells.count) - np.repeat(starts[:-1], np.diff(starts))
    rows = np.frombuffer(cells.rows(), np.int64)
    keys = pa.nulls(cells.count, pa.string())
    if objects:
        keys = pa.Array.from_buffers(pa.string(), cells.count, list(map(pa.py_buffer, names)))
    return rows, pa.array(pos, pa.int32()), keys, cast_cells(cells, metadata, target, task)
