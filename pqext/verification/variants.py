"""VARIANT columns: their groups, every value in them, and how ``value`` and ``typed_value`` go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import EncryptionError, LimitError, ParquetError, UnsupportedError, VariantError
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema import shape as shapes
from pqext.core.schema.shape import GroupShape, ListShape, Shape
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.schema import schema_of_storage
from pqext.variant.validation import PARTS, examine, meaning_of
from pqext.verification.model import Fault, Findings
from pqext.verification.selection import ChunkSelection
from pqext.verification.variant_groups import group_faults

BATCH_ROWS = 65_536
"""Decoded bytes of a column that are looked at at a time, as far as one row has no more."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Readable:
    """A VARIANT column whose groups allow its rows to be read; ``paths`` names the group of each node of the plan."""

    shape: GroupShape
    compiled: CompiledSchema
    paths: tuple[str, ...]


def within(top: Shape) -> Iterator[GroupShape]:
    """The VARIANT groups at or below a shape; what lies within one is its own affair."""
    if isinstance(top, GroupShape):
        if top.node.logical_name == "VARIANT":
            yield top
        else:
            for child in top.children:
                yield from within(child)
    elif isinstance(top, ListShape):
        yield from within(top.element)


def check(file: ParquetFile, tops: Sequence[Shape], selection: ChunkSelection, findings: Findings) -> None:
    """Check every VARIANT column below ``tops``."""
    for top in tops:
        readable = [found for group in within(top) if (found := _readable(group, findings)) is not None]
        if readable:
            _check_rows(file, top, readable, selection, findings)


def _readable(group: GroupShape, findings: Findings) -> Readable | None:
    """Report what is wrong with a column's groups; ``None`` when its rows cannot be told."""
    for fault in group_faults(group.node):
        findings.add(fault)
    try:
        compiled = compile_schema(schema_of_storage(shapes.bare(group).storage_field(ReadOptions()).type))
    except (VariantError, ValueError) as error:
        findings.skip(group.node.dotted, None, f"its rows cannot be read: {error}")
        return None
    return Readable(group, compiled, tuple(_paths(group, compiled)))


def _paths(group: GroupShape, compiled: CompiledSchema) -> list[str]:
    """The path in the file's schema of the group of each node of the plan."""
    found: list[Shape] = [group] * len(compiled.nodes)
    for index, node in enumerate(compiled.nodes):  # parents come before their children
        held = found[index]
        assert isinstance(held, GroupShape)
        typed = next((child for child in held.children if child.node.name == "typed_value"), None)
        if isinstance(typed, ListShape):
            found[node.children[0]] = typed.element
        elif isinstance(typed, GroupShape):
            for number, child in zip(node.children, typed.children, strict=True):
                found[number] = child
    return [held.node.dotted for held in found]


def _check_rows(
    file: ParquetFile, top: Shape, readable: Sequence[Readable], selection: ChunkSelection, findings: Findings
) -> None:
    first_row = 0
    for group in file.row_groups:
        at = first_row
        first_row += group.num_rows
        if not selection.includes(group, top):
            continue
        try:
            for array in file.iter_stored(top, group.index, BATCH_ROWS):
                for variant, found, rows in _variants_within(top, readable, array, None):
                    _judge(variant, found, rows, at, group.index, findings)
                at += len(array)
        except (UnsupportedError, EncryptionError, LimitError) as error:
            findings.skip(top.node.dotted, group.index, error.message)
        except ParquetError as error:
            findings.damaged(
                Fault("layout.page-lost", error.message, group.index, None, error.column, error.offset)
            )


def _variants_within(
    shape: Shape, readable: Sequence[Readable], array: pa.Array, rows: Rows | None
) -> Iterator[tuple[Readable, pa.StructArray, Rows | None]]:
    """Each variant below ``shape`` with its array and the row of each of its values, ``None`` for their own number."""
    if isinstance(shape, GroupShape):
        own = next((found for found in readable if found.shape is shape), None)
        if own is not None:
            yield own, array, rows
        elif shape.node.logical_name != "VARIANT":
            for i, child in enumerate(shape.children):
                yield from _variants_within(child, readable, array.field(i), rows)
    elif isinstance(shape, ListShape) and any(True for _ in within(shape.element)):
        offsets = np.asarray(array.offsets)
        own_rows = np.arange(len(array), dtype=np.int64) if rows is None else rows
        below = np.repeat(own_rows, np.diff(offsets))
        start, count = int(offsets[0]), int(offsets[-1] - offsets[0])
        if pa.types.is_map(array.type):
            assert isinstance(shape.element, GroupShape)
            for child, values in zip(shape.element.children, (array.keys, array.items), strict=True):
                yield from _variants_within(child, readable, values.slice(start, count), below)
        else:
            yield from _variants_within(shape.element, readable, array.values.slice(start, count), below)


def _judge(
    variant: Readable, array: pa.StructArray, rows: Rows | None, first: int, row_group: int, findings: Findings
) -> None:
    records, counts = examine(array, variant.compiled, most=findings.room, first_only=False)
    for status, number in counts.items():
        meaning = meaning_of(status)
        findings.count(meaning.rule, meaning.message, number)
    meanings = {status: meaning_of(status) for status in counts}
    numbers = records["row"].astype(np.int64)
    places = (first + (numbers if rows is None else rows[numbers])).tolist()
    fields = (records[name].tolist() for name in ("status", "part", "node", "offset"))
    for row, status, part_number, node, offset in zip(places, *fields, strict=True):
        meaning, part, path = meanings[status], PARTS[part_number], variant.paths[node]
        if part in ("value", "typed_value") or node == 0:
            path = f"{path}.{part}"
        fault = Fault(meaning.rule, meaning.message, row_group, row, path, None if offset < 0 else offset, part)
        findings.faults.append(fault)  # counted above; there is room, which `examine` was given
