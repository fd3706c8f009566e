"""Run of rows of one leaf, stored as levels and slots. Runs are built from pages, joined and sliced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base import buffers
from pqext.core.base.buffers import EMPTY, Bytes, allocate, trim
from pqext.core.base.errors import ArrayLimitError, CorruptFileError
from pqext.core.base.usage import Account
from pqext.core.format.encodings import rle
from pqext.core.format.encodings.decoding import Counts, Dictionary
from pqext.core.format.metadata import Type
from pqext.core.kernels.decode import selected_values
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.kernels.encodings.page_run import PageRun
from pqext.core.read.pages.page import OpenedPages
from pqext.core.read.pages.value_selection import select
from pqext.core.read.value_slots import WIDTH, SlotBuilder, concatenate_arrays, is_shared
from pqext.core.schema.shape import LeafShape

Levels = NDArray[np.int16]

_LEVEL_BYTES = 6
"""Size in bytes of two levels and two flags for each entry."""
_WASTEFUL = 4
"""Ratio of entries in pages to requested entries above which pages with a long dictionary are not expanded."""
_CONVERTED: dict[str | Type, int] = {"DECIMAL": 32, "INTERVAL": 16, Type.INT96: 24}
"""Size in bytes of a value whose Arrow representation differs from the stored representation, by type."""


@dataclass(slots=True)
class LeafColumn:
    """Values of one leaf for a run of rows.

    ``array`` has a slot for each entry whose definition level is at least the shape's ``slot_level``. The levels, one
    per entry, are None if ``array`` determines them, because there is no repetition and only the leaf may be optional.
    """

    repetition: Levels | None
    definition: Levels | None
    array: pa.Array
    _nbytes: int | None = field(init=False, repr=False, compare=False, default=None)
    _rows: int | None = field(init=False, repr=False, compare=False, default=None)

    @property
    def rows(self) -> int:
        """Number of rows that begin in the run."""
        if self._rows is None:
            self._rows = len(self.array) if self.repetition is None else level_kernel.count_rows(self.repetition)
        return self._rows

    @property
    def entries(self) -> int:
        """Number of entries. This is the number of levels, or of slots if there are no repetition levels."""
        return len(self.array) if self.repetition is None else len(self.repetition)

    @property
    def nbytes(self) -> int:
        """Size of the levels and the array in bytes, computed once because the computation in Arrow is slow."""
        if self._nbytes is None:
            size = _array_bytes(self.array)
            if self.repetition is not None:
                size += self.repetition.nbytes
            if self.definition is not None:
                size += self.definition.nbytes
            self._nbytes = size
        return self._nbytes

    @property
    def begins_with_row(self) -> bool:
        """Whether the first entry begins a row."""
        return self.repetition is None or (len(self.repetition) > 0 and bool(self.repetition[0] == 0))

    def row_of_slot(self, slot: int, slot_level: int) -> int:
        """Return the number, within the run, of the row that contains ``slot`` of ``array``."""
        entry = slot if self.definition is None else int(np.flatnonzero(self.definition >= slot_level)[slot])
        return entry if self.repetition is None else level_kernel.count_rows(self.repetition[: entry + 1]) - 1

    def slice(self, start: tuple[int, int], stop: tuple[int, int]) -> LeafColumn:
        """Slice the column between two positions. A position is an entry and the first slot at or after it."""
        entries = slice(start[0], stop[0])
        return LeafColumn(
            self.repetition[entries] if self.repetition is not None else None,
            self.definition[entries] if self.definition is not None else None,
            self.array[start[1] : stop[1]],
        )

    def select_ranges(self, ranges: Sequence[tuple[int, int]]) -> LeafColumn:
        """Return the rows within ``ranges``, which must be disjoint and ascending. Each row must be one slot."""
        parts = [self.slice((start, start), (stop, stop)) for start, stop in ranges]
        return join(parts or [self.slice((0, 0), (0, 0))])

    def split(self, position: tuple[int, int]) -> tuple[LeafColumn, LeafColumn]:
        """Split the column at ``position``, an entry and its slot. Return the columns before and after the position."""
        head, rest = self.slice((0, 0), position), self.slice(position, (self.entries, len(self.array)))
        rest._rows = self.rows - head.rows
        return head, rest


def _array_bytes(array: pa.Array) -> int:
    """Return ``array.nbytes``, but faster for values of fixed width without nulls. Bitmaps of nulls are not counted."""
    if not array.null_count and not isinstance(array, pa.DictionaryArray):
        try:
            return (int(array.type.bit_width) * len(array) + 7) // 8
        except ValueError:
            pass  # the values have no fixed width
    return int(array.nbytes)


def join(columns: Sequence[LeafColumn]) -> LeafColumn:
    """Concatenate consecutive runs of one leaf.

    Raises ``ArrayLimitError`` if the byte arrays do not fit into one array.
    """
    if len(columns) == 1:
        return columns[0]

    def levels(level_arrays: Sequence[Levels | None]) -> Levels | None:
        present = [array for array in level_arrays if array is not None]
        return np.concatenate(present) if len(present) == len(level_arrays) else None

    arrays = [column.array for column in columns]
    shared = is_shared(arrays)
    if not shared and sum(map(_data_bytes, arrays)) > buffers.ARRAY_BYTES:
        raise ArrayLimitError(
            f"more than {buffers.ARRAY_BYTES} bytes of byte arrays in one batch; "
            "read fewer rows at a time with iter_batches"
        )
    array = concatenate_arrays(arrays) if shared else pa.concat_arrays(arrays)
    return LeafColumn(
        levels([column.repetition for column in columns]), levels([column.definition for column in columns]), array
    )


def _data_bytes(array: pa.Array) -> int:
    """Return the size of the values of strings or binary, or of their dictionary; 0 for other types."""
    array = array.dictionary if pa.types.is_dictionary(array.type) else array
    kind = array.type
    if not len(array) or not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return 0
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return int(offsets[array.offset + len(array)]) - int(offsets[array.offset])


def decoded_bytes(shape: LeafShape, entries: int) -> int:
    """Return the maximum memory of ``entries`` entries in bytes, without the data of byte arrays."""
    leaf = shape.node.leaf_type
    width = leaf.width or (WIDTH if shape.viewed else 4)
    return entries * (width + _LEVEL_BYTES + _CONVERTED.get(leaf.member or leaf.physical, 0))


class LeafColumnBuilder:
    """Builder of a leaf column from its pages.

    ``entries`` is the total number of entries, and ``account`` is charged for the decoded bytes. Byte arrays take about
    ``expected_bytes`` bytes. ``required_entries`` is the number of entries to return, if it is known.
    """

    def __init__(
        self, shape: LeafShape, entries: int, account: Account, expected_bytes: int = 0,
        required_entries: int | None = None,
    ) -> None:
        account.reserve(decoded_bytes(shape, entries))
        self._shape = shape
        self._at = 0
        self._slots = SlotBuilder(
            shape.node.leaf_type, entries, account, is_encoded=shape.encoded, with_views=shape.viewed,
            expected_bytes=expected_bytes,
            lean=required_entries is not None and entries > _WASTEFUL * required_entries,
        )
        levels = shape.node.max_repetition_level > 0 or shape.node.max_definition_level > shape.nullable
        self._repetition = allocate(entries * 2).view(np.int16) if shape.node.max_repetition_level else None
        self._definition = allocate(entries * 2).view(np.int16) if levels and shape.node.max_definition_level else None

    def append(self, pages: OpenedPages, dictionary: Dictionary | None, *, first: bool = False) -> None:
        """Decode consecutive pages and append their entries.

        If ``first`` is set, they are the first pages of a column chunk and must begin with a row.

        Raises ``CorruptFileError``, ``LimitError`` or ``UnsupportedError``; the builder cannot be used after an error.
        """
        entries = np.array(pages.values.counts, np.int64)
        start, self._at = self._at, self._at + pages.values.total
        if self._repetition is not None and pages.repetition is not None:
            repetition = self._repetition[start : self._at]
            rle.decode_levels(pages.repetition, self._shape.node.max_repetition_level, repetition)
            if first and len(repetition) and repetition[0] != 0:
                raise CorruptFileError("a column chunk begins within a row: a list element precedes the first list")
        slots, values, present = self._presence(pages.definition, entries, start)
        pages.values.recount(values)
        self._slots.append(pages.encoding, pages.values, slots, present, dictionary)

    def append_at(
        self, pages: OpenedPages, dictionary: Dictionary | None, rows: NDArray[np.int64],
        repetition: Levels | None = None,
    ) -> None:
        """Decode only the ascending ``rows`` of consecutive pages.

        ``repetition`` contains the repetition levels of all entries of the pages, or is None for a column without
        them. Other values are decoded only if their encoding requires it. Raises the same errors as :meth:`append`.
        """
        start, count, values = self._at, len(rows), pages.values
        highest, slot_level = self._shape.node.max_definition_level, self._shape.slot_level
        counts = np.array(values.counts, np.int64)
        held = np.empty_like(counts)
        present, places, slots = EMPTY, rows, count
        if pages.definition is not None and self._definition is None:
            flags, held = rle.decode_flags(pages.definition)
            if len(flags):
                present, places = allocate(count), np.empty(count, np.int64)
                places = places[: selected_values.select_flags(flags, rows, present, places)]
            values.recount(held)
        elif pages.definition is not None and self._definition is not None:
            levels = allocate(pages.definition.total * 2).view(np.int16)
            rle.decode_levels(pages.definition, highest, levels)
            self._check_lists(repetition, levels)
            room = count if repetition is None else len(levels)
            present, places = allocate(room), allocate(8 * room).view(np.int64)
            chosen = self._definition[start : start + room]
            if repetition is None or self._repetition is None:
                slots, result = selected_values.select_levels(
                    levels, counts, rows, slot_level, highest, chosen, present, places, held
                )
            else:
                retained = self._repetition[start : start + room]
                count, slots, result = selected_values.select_entries(
                    repetition, levels, counts, rows, slot_level, highest, retained, chosen, present, places, held
                )
            present, places = present[:slots], places[:result]
            values.recount(held)
        self._at = start + count
        encoding, values = select(pages.encoding, values, places, self._shape.node.leaf_type, dictionary)
        self._slots.append(encoding, values, np.array([slots], np.int64), present, dictionary)

    def _presence(self, levels: PageRun | None, entries: Counts, start: int) -> tuple[Counts, Counts, Bytes]:
        """Return the number of slots and of values in each page, and flags of the slots that have a value.

        The flags are empty if all slots have a value.
        """
        if levels is None:
            return entries, entries, EMPTY
        if self._definition is None:
            present, values = rle.decode_flags(levels)
            return entries, values, present
        definition = self._definition[start : self._at]
        highest = self._shape.node.max_definition_level
        rle.decode_levels(levels, highest, definition)
        if len(definition) and definition.min() == highest:
            return entries, entries, EMPTY
        self._check_lists(None if self._repetition is None else self._repetition[start : self._at], definition)
        flags = allocate(levels.total)
        slots, values = np.empty(len(entries), np.int64), np.empty(len(entries), np.int64)
        level_kernel.present_slots(definition, entries, self._shape.slot_level, highest, flags, slots, values)
        return slots, values, flags[: slots.sum()]

    def _check_lists(self, repetition: Levels | None, definition: Levels) -> None:
        least = self._shape.element_levels
        if repetition is None or len(least) != self._shape.node.max_repetition_level:
            return
        if not level_kernel.continue_lists(repetition, definition, np.array([0, *least], np.int16)):
            raise CorruptFileError("invalid levels: a continued list has no element")

    def finish(self) -> LeafColumn:
        """Return the column of all pages."""
        repetition, definition = self._repetition, self._definition
        return LeafColumn(
            None if repetition is None else trim(repetition, self._at),
            None if definition is None else trim(definition, self._at),
            self._slots.finish(),
        )
