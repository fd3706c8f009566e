"""Split Arrow columns into leaf columns: levels of each entry, and dense values in their stored representation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes, allocate, numbers
from pqext.core.base.errors import LimitError, ParquetError
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.annotations import WriteRecords
from pqext.core.schema.shape import GroupShape, LeafShape, ListShape, Shape
from pqext.core.write import storage
from pqext.core.write.key_value_metadata import iter_dictionaries
from pqext.core.write.storage import StoredField

Levels = NDArray[np.int16]
TOO_DEEP = "the schema is nested too deeply for Python's stack"


@dataclass(slots=True)
class DenseColumn:
    """Levels and values of one leaf in a run of rows. Only entries at the maximum definition level have a value.

    A level that is the same for all entries is an ``int``. ``values`` is an Arrow array without nulls. ``notes``
    contains the records of handlers. ``encoded`` is the input column if it was a dictionary array.
    """

    shape: LeafShape
    entries: int
    repetition: int | Levels
    definition: int | Levels
    values: pa.Array
    notes: WriteRecords = field(default_factory=WriteRecords)
    encoded: pa.Array | None = None

    def row_of_value(self, position: int) -> int:
        """Return the row that contains the value at ``position`` in ``values``."""
        entry = position
        if not isinstance(self.definition, int):
            entry = int(np.flatnonzero(self.definition == self.shape.node.max_definition_level)[position])
        if isinstance(self.repetition, int):
            return entry
        return int(np.count_nonzero(self.repetition[: entry + 1] == 0)) - 1


@dataclass(slots=True)
class _Entries:
    """Levels and slots of a column's entries, updated at each level of nesting from the root to a leaf.

    ``slot`` is the position of each entry in the current array, or -1 if the entry ended at a higher level.

    Before the first list, entry ``i`` has slot ``i``. ``slot`` is then None, and ``alive`` flags the entries that have
    not ended; ``alive`` is None if no entry has ended.
    """

    count: int
    repetition: int | Levels
    definition: int | Levels
    slot: NDArray[np.int64] | None = None
    alive: Bytes | None = None

    def levels(self, level: int | Levels) -> Levels:
        return np.full(self.count, level, np.int16) if isinstance(level, int) else level

    def slot_numbers(self) -> NDArray[np.int64]:
        if self.slot is not None:
            return self.slot
        slots = np.arange(self.count, dtype=np.int64)
        if self.alive is not None:
            slots[self.alive == 0] = -1
        return slots


def disassemble(shape: Shape, array: pa.Array) -> Iterator[DenseColumn]:
    """Yield the leaf columns of ``array``, one for each leaf of ``shape``, in column order.

    ``array`` has storage types, after handlers have converted annotated values. Raises ``ParquetError`` if a required
    field contains a null.
    """
    yield from _walk(shape, array, _Entries(len(array), 0, 0))


_NO_NOTES = WriteRecords()


def leaf_without_nulls(shape: Shape, array: pa.Array) -> DenseColumn:
    """Return the leaf column of a top-level ``array`` that has no nulls and needs no conversion by a handler."""
    assert isinstance(shape, LeafShape)
    return DenseColumn(shape, len(array), 0, shape.node.max_definition_level, array, _NO_NOTES)


def _walk(shape: Shape, array: pa.Array, entries: _Entries) -> Iterator[DenseColumn]:
    if shape.nullable:
        entries = _descend_optional(array, entries)
    elif array.null_count and _reaches_null(array, entries):
        name = shape.node.dotted_path
        advice = "declare the field nullable, or replace its nulls"
        raise ParquetError(f"column {name!r} is not nullable but contains a null; {advice}", column=name)
    if isinstance(shape, LeafShape):
        yield _leaf(shape, array, entries)
    elif isinstance(shape, GroupShape):
        for index, child in enumerate(shape.children):
            # Unlike flatten(), field() applies neither the offset of the struct nor its nulls to the children.
            yield from _walk(child, array.field(index), entries)
    elif isinstance(shape, ListShape):
        yield from _list(shape, array, entries)


def _descend_optional(array: pa.Array, entries: _Entries) -> _Entries:
    if entries.slot is not None:
        if not array.null_count:
            return replace(entries, definition=entries.definition + (entries.slot >= 0).astype(np.int16))
        definition, slot = entries.levels(entries.definition).copy(), entries.slot.copy()
        level_kernel.nullable_entries(definition, slot, np.frombuffer(array.buffers()[0], np.uint8), array.offset)
        return replace(entries, definition=definition, slot=slot)
    alive = entries.alive
    if array.null_count:
        present = _flags(array)
        alive = present if alive is None else present & alive
    deeper = 1 if alive is None else alive.astype(np.int16)
    return _Entries(entries.count, entries.repetition, entries.definition + deeper, None, alive)


def _flags(array: pa.Array) -> Bytes:
    """Return 1 for each value of an array, and 0 for each null."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.uint8)
    first, shift = divmod(array.offset, 8)
    bits = np.frombuffer(array.buffers()[0], np.uint8)[first : (array.offset + len(array) + 7) // 8]
    return np.unpackbits(bits, bitorder="little")[shift : shift + len(array)]


def _reaches_null(array: pa.Array, entries: _Entries) -> bool:
    slots = entries.slot_numbers()
    nulls = np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)
    return bool(nulls[slots[slots >= 0]].any())


def _list(shape: ListShape, array: pa.Array, entries: _Entries) -> Iterator[DenseColumn]:
    offsets = np.zeros(1, np.int32)
    if len(array):
        offsets = numbers(array.buffers()[1], np.int32, array.offset, len(array) + 1)
    slots = entries.slot_numbers()
    room = level_kernel.entries_below(slots, offsets)
    repetition, definition = allocate(room * 2).view(np.int16), allocate(room * 2).view(np.int16)
    slot = allocate(room * 8).view(np.int64)
    level_kernel.repeated_entries(
        entries.levels(entries.repetition), entries.levels(entries.definition), slots, offsets,
        shape.element_repetition, repetition, definition, slot,
    )
    below = _Entries(room, repetition, definition, slot)
    if pa.types.is_map(array.type):
        # The entries of a map are a child struct. keys and items return its fields with offsets applied.
        element = pa.Array.from_buffers(
            pa.struct([array.type.key_field, array.type.item_field]),
            len(array.keys), [None], children=[array.keys, array.items],
        )
        yield from _walk(shape.element, element, below)
    else:
        yield from _walk(shape.element, array.values, below)


def _compact(array: pa.Array, flags: Bytes) -> pa.Array:
    """Return the values of ``array`` in the slots that ``flags`` selects. These slots must not be null."""
    kind, count = array.type, int(np.count_nonzero(flags))
    if not count:
        return array[:0]
    if not (pa.types.is_primitive(kind) and kind.bit_width >= 8):
        return array.drop_null() if len(array) - array.null_count == count else array.filter(flags.view(np.bool_))
    width = kind.bit_width // 8
    held = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    values = allocate((count + 1) * width)
    level_kernel.compact(held, width, flags, values)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(values)])


def _leaf(shape: LeafShape, array: pa.Array, entries: _Entries) -> DenseColumn:
    if entries.slot is None:
        values = array if entries.alive is None else _compact(array, entries.alive)
    else:
        count, first, last = level_kernel.occupied(entries.slot)  # slots are ascending
        if count and last - first == count - 1:
            values = array.slice(first, count)
        else:
            values = array.take(pa.array(entries.slot[entries.slot >= 0]))
    return DenseColumn(shape, entries.count, entries.repetition, entries.definition, values)


class DenseColumns:
    """Splitter of columns into leaf columns.

    ``unbounded`` collects the names of columns whose dictionaries exceed the index type.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self.unbounded: set[str] = set()

    def leaves(self, field: StoredField, top: Shape, column: pa.ChunkedArray) -> list[DenseColumn]:
        """Return the leaf columns of one top-level column."""
        try:
            array = self._combine_chunks(field, column)
            if field.is_stored_unchanged and not array.null_count:
                return [leaf_without_nulls(top, array)]
            notes = WriteRecords()
            leaves = list(disassemble(top, self._to_storage(field, array, notes)))
            if isinstance(array, pa.Array):
                for leaf, encoded in zip(leaves, iter_dictionaries(field, array), strict=True):
                    leaf.encoded = encoded
        except pa.ArrowInvalid as error:
            if "overflow" not in str(error):
                raise
            raise LimitError(storage.TOO_MUCH, column=top.node.dotted_path) from error
        except RecursionError:
            raise LimitError(TOO_DEEP, column=field.field.name) from None
        for leaf in leaves:
            leaf.notes = notes
        return leaves

    def _combine_chunks(self, field: StoredField, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Return one array, or the chunks unchanged if their dictionaries together exceed the index type."""
        if column.num_chunks == 1:
            return column.chunk(0)
        try:
            return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        except pa.ArrowInvalid:
            self.unbounded.add(field.field.name)
            return column

    def _to_storage(self, field: StoredField, array: pa.Array | pa.ChunkedArray, records: WriteRecords) -> pa.Array:
        if isinstance(array, pa.ChunkedArray):  # storage types are not dictionaries
            return pa.concat_arrays([field.store(chunk, self._options, records) for chunk in array.chunks])
        return field.store(array, self._options, records)
