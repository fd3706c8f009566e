"""A column chunk read: pages decoded into one Arrow array and the levels that nested shapes need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core import encodings, leaf, page
from pqext.core.buffers import EMPTY, Bytes
from pqext.core.encodings import Dictionary, plain, rle
from pqext.core.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.kernels import levels as level_kernel
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.limits import Limits
from pqext.core.metadata import ColumnMetaData, PageType
from pqext.core.page import DataPage, RawPage
from pqext.core.shape import LeafShape

Levels = NDArray[np.int16]

_LEVEL_BYTES = 6
"""Two levels and two flags of each entry."""


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """Values of one leaf for a run of rows.

    ``array`` has a slot for each entry at or above the shape's ``slot_level``. The levels, one an entry, are
    ``None`` where they follow from ``array``: no repetition, and no optional ancestor to tell from the leaf.
    """

    repetition: Levels | None
    definition: Levels | None
    array: pa.Array

    @property
    def rows(self) -> int:
        """Rows that begin in the run."""
        return len(self.array) if self.repetition is None else level_kernel.count_rows(self.repetition)


class ColumnReader:
    """Decodes the pages of one column chunk, row run by row run.

    ``chunk`` holds the bytes of the chunk, which begin at ``offset`` of the file.
    """

    def __init__(
        self, shape: LeafShape, metadata: ColumnMetaData, chunk: Bytes, offset: int, limits: Limits,
        *, checksums: bool,
    ) -> None:
        self._shape = shape
        self._type = shape.node.leaf_type
        self._metadata = metadata
        self._offset = offset
        self._checksums = checksums
        self._limits = limits
        self._dictionary: Dictionary | None = None
        self._entries_left = metadata.num_values
        self._pages = self._data_pages(page.raw_pages(chunk, limits))
        self._held: LeafColumn | None = None

    def take(self, rows: int) -> LeafColumn:
        """The next ``rows`` rows; fewer only when the chunk ends.

        Raises ``CorruptFileError`` or ``UnsupportedError`` with the column and the offset in the file.
        """
        try:
            return self._take(rows)
        except ParquetError as error:
            if error.offset is not None:
                error.offset += self._offset
            error.locate(column=self._shape.node.dotted, offset=self._offset)
            raise

    def check_end(self) -> None:
        """Raise ``CorruptFileError`` when the chunk holds more than the rows that were taken."""
        if self._held is not None or self._entries_left:
            raise CorruptFileError(
                "a column chunk holds more rows than its row group", column=self._shape.node.dotted, offset=self._offset
            )

    def _take(self, rows: int) -> LeafColumn:
        held = self._held if self._held is not None else self._decode([])
        # A row is known to be complete when the next one starts or the chunk ends.
        while held.rows <= rows - (held.repetition is None):
            run = self._next_run(max(rows - held.rows, 1))
            if not run:
                break
            held = _join(held, self._decode(run)) if len(held.array) or held.rows else self._decode(run)
        result, self._held = self._split(held, rows)
        return result

    def _data_pages(self, pages: Iterator[RawPage]) -> Iterator[RawPage]:
        first = True
        for raw in pages:
            if self._checksums:
                page.verify_checksum(raw)
            if raw.header.type == PageType.DICTIONARY_PAGE:
                if not first:
                    raise CorruptFileError("a dictionary page that is not the chunk's first", offset=raw.offset)
                count, values = page.open_dictionary(raw, self._metadata.codec)
                self._dictionary = plain.read_dictionary(values, count, self._type.physical, self._type.width)
            elif raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2):
                self._entries_left -= raw.num_values
                if self._entries_left < 0:
                    raise CorruptFileError("pages hold more values than the column chunk claims", offset=raw.offset)
                yield raw
            first = False
        if self._entries_left:
            raise CorruptFileError(f"{self._entries_left} values of the column chunk are missing from its pages")

    def _next_run(self, entries: int) -> list[RawPage]:
        run: list[RawPage] = []
        while entries > 0 and (raw := next(self._pages, None)) is not None:
            run.append(raw)
            entries -= raw.num_values
        return run

    def _decode(self, run: list[RawPage]) -> LeafColumn:
        node = self._shape.node
        total = sum(raw.num_values for raw in run)
        decoded = total * ((self._type.width or 4) + _LEVEL_BYTES)
        if decoded > self._limits.column_bytes:
            raise LimitError(
                f"{total} values need up to {decoded} bytes, more than column_bytes={self._limits.column_bytes}; "
                "read fewer rows at a time with iter_batches"
            )
        sink = _Sink(self._shape, total, self._limits)
        repetition = np.empty(total, np.int16) if node.max_repetition_level else None
        definition = np.empty(total, np.int16) if node.max_definition_level else None
        flags = np.empty(max((raw.num_values for raw in run), default=0), np.uint8)
        at = 0
        for raw in run:
            try:
                data = page.open_data(
                    raw, self._metadata.codec,
                    max_repetition=node.max_repetition_level, max_definition=node.max_definition_level,
                )
                stop = at + data.num_values
                if repetition is not None:
                    assert data.repetition is not None
                    rle.decode_levels(data.repetition, data.num_values, node.max_repetition_level, repetition[at:stop])
                slots = values = data.num_values
                if definition is not None:
                    assert data.definition is not None
                    rle.decode_levels(data.definition, data.num_values, node.max_definition_level, definition[at:stop])
                    slots, values = level_kernel.present_slots(
                        definition[at:stop], self._shape.slot_level, node.max_definition_level, flags
                    )
                sink.append(data, slots, values, flags[:slots], self._dictionary)
                at = stop
            except (CorruptFileError, LimitError) as error:
                error.locate(offset=raw.offset)
                raise
        needed = node.max_repetition_level > 0 or node.max_definition_level > self._shape.nullable
        return LeafColumn(repetition, definition if needed else None, sink.finish())

    def _split(self, column: LeafColumn, rows: int) -> tuple[LeafColumn, LeafColumn | None]:
        if column.repetition is None:
            entry = slot = rows if rows < len(column.array) else -1
        else:
            entry = level_kernel.find_row(column.repetition, rows)
            if entry >= 0:
                assert column.definition is not None
                slot = int(np.count_nonzero(column.definition[:entry] >= self._shape.slot_level))
        if entry < 0:
            return column, None
        return tuple(
            LeafColumn(
                column.repetition[entries] if column.repetition is not None else None,
                column.definition[entries] if column.definition is not None else None,
                column.array[slots],
            )
            for entries, slots in (
                (slice(None, entry), slice(None, slot)),
                (slice(entry, None), slice(slot, None)),
            )
        )  # type: ignore[return-value]


def _join(first: LeafColumn, second: LeafColumn) -> LeafColumn:
    def levels(a: Levels | None, b: Levels | None) -> Levels | None:
        return None if a is None or b is None else np.concatenate([a, b])

    return LeafColumn(
        levels(first.repetition, second.repetition),
        levels(first.definition, second.definition),
        pa.concat_arrays([first.array, second.array]),
    )


class _Sink:
    """Gathers the slots of a run of pages into the buffers of one Arrow array."""

    def __init__(self, shape: LeafShape, capacity: int, limits: Limits) -> None:
        self._type = shape.node.leaf_type
        self._capacity = capacity
        self._slots = 0
        self._present: Bytes | None = None
        self._width = self._type.width
        self._builder = ByteArrayBuilder(min(limits.byte_array_bytes, 0x7FFFFFFF)) if self._width is None else None
        self._fixed = EMPTY if self._width is None else np.empty(capacity * self._width, np.uint8)

    def append(self, data: DataPage, slots: int, values: int, present: Bytes, dictionary: Dictionary | None) -> None:
        decoder = encodings.decoder(data.encoding)
        if decoder is None:
            raise UnsupportedError(f"encoding {data.encoding!r} cannot be read", feature=f"encoding {data.encoding}")
        start, self._slots = self._slots, self._slots + slots
        if values < slots and self._present is None:
            self._present = np.ones(self._capacity, np.uint8)
        if values < slots and self._present is not None:
            self._present[start : self._slots] = present
        if self._builder is not None:
            flags = present if values < slots else EMPTY
            decoder.byte_arrays(data.values, values, self._builder, flags, slots, dictionary)
            return
        assert self._width is not None
        dense = decoder.fixed(data.values, values, self._type.physical, self._width, dictionary)
        target = self._fixed[start * self._width : self._slots * self._width]
        if values == slots:
            target[:] = dense
        else:
            level_kernel.spread(dense, self._width, present, target)

    def finish(self) -> pa.Array:
        validity = None
        if self._present is not None:
            validity = pa.py_buffer(np.packbits(self._present[: self._slots], bitorder="little"))
        if self._builder is not None:
            offsets, data, slots = self._builder.finish()
            return leaf.from_byte_arrays(self._type, slots, validity, offsets, data)
        assert self._width is not None
        return leaf.from_fixed(self._type, self._slots, validity, self._fixed[: self._slots * self._width])
