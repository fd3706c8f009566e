"""Sort streams of batches by key columns, in bounded memory: rows are divided into key ranges in temporary files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.schema.types.arrow_compute import take_positions, take_rows
from pqext.geo.box import BoundingBox
from pqext.geo.layout.order import hilbert_index, row_boxes
from pqext.tables.data_files import BATCH_ROWS

SORT_BYTES = 256 << 20
"""Maximum size of the rows that are sorted in memory."""
_MAX_BOUNDS = 32
"""Maximum number of bounds that divide a range in one pass, to limit the open files. Large ranges are divided again."""
_SAMPLES = 64
"""Number of keys per batch from which the key ranges are derived."""


def add_keys(batch: pa.RecordBatch, keys: Sequence[pa.Array]) -> pa.RecordBatch:
    """Append key columns to a batch for :func:`sorted_batches`.

    Raises ``TypeError`` if the values of a key have no order.
    """
    keys = [_sortable(key) for key in keys]
    fields = [pa.field(f"\0key{position}", key.type) for position, key in enumerate(keys)]
    schema = pa.schema([*batch.schema, *fields], batch.schema.metadata)
    return pa.RecordBatch.from_arrays([*batch.columns, *keys], schema=schema)


def _sortable(key: pa.Array) -> pa.Array:
    """Cast a key to a type that pyarrow can sort. Raises ``TypeError`` for nested types."""
    type = key.type
    if pa.types.is_nested(type):
        raise TypeError(f"rows cannot be sorted by values of the type {type}; sort by a nested field instead")
    if pa.types.is_dictionary(type):
        return _sortable(key.cast(type.value_type))
    if pa.types.is_string_view(type) or pa.types.is_binary_view(type):
        return key.cast(pa.large_string() if pa.types.is_string_view(type) else pa.large_binary())
    return key


@contextmanager
def sorted_batches(
    batches: Iterable[pa.RecordBatch], keys: int, memory: int | None = None
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Return a context that yields the rows of ``batches`` sorted by the last ``keys`` columns, without key columns.

    Nulls are last. If the rows exceed ``memory`` bytes, they are divided into ranges of the first key in temporary
    files. If the rows of a single key exceed it, they are divided by the next key.
    """
    memory = SORT_BYTES if memory is None else memory
    first: list[pa.RecordBatch] = []
    size = 0
    iterator = iter(batches)
    for batch in iterator:
        first.append(batch)
        size += batch.nbytes
        if size > memory:
            break
    else:
        yield _sort(first, keys)
        return
    with tempfile.TemporaryDirectory(prefix="pqext-sort-", ignore_cleanup_errors=True) as folder:
        sorting = _ExternalSort(folder, first[0].schema, keys, memory)
        rows = sorting.new_spill()
        for batch in _chain(first, iterator):
            rows.write(batch)
        yield sorting.sort(rows, 0)


def _chain(first: list[pa.RecordBatch], others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of ``first``, then of ``others``. Empties the list ``first``, to free the memory of batches."""
    while first:
        yield first.pop(0)
    yield from others


class _Spill:
    """Temporary file to which batches are written during a sort."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.schema = schema
        self.bytes = 0
        self._path = path
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
            # A stream may replace the dictionaries of columns, which a file may not.
            self._writer = pa.ipc.new_stream(self._path, self.schema, options=options)
        self._writer.write_batch(batch)
        self.bytes += batch.nbytes

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def read(self) -> Iterator[pa.RecordBatch]:
        self.close()
        if self._writer is not None:
            with pa.OSFile(self._path) as file, pa.ipc.open_stream(file) as reader:
                yield from reader

    def remove(self) -> None:
        if self._writer is not None:
            os.remove(self._path)


@dataclass(frozen=True)
class _ExternalSort:
    """External sort of rows by their last ``keys`` columns, with temporary files in ``folder``."""

    folder: str
    schema: pa.Schema
    keys: int
    memory: int
    _numbers: Iterator[int] = field(default_factory=count)

    def new_spill(self) -> _Spill:
        return _Spill(os.path.join(self.folder, f"{next(self._numbers)}.arrow"), self.schema)

    def sort(self, rows: _Spill, level: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a temporary file in sorted order. All rows have equal keys before position ``level``."""
        if level == self.keys:
            for batch in rows.read():
                yield batch.select(range(batch.num_columns - self.keys))
        elif rows.bytes <= 2 * self.memory:
            yield from _sort(list(rows.read()), self.keys)
        else:
            for spill, next_level in self._divide_rows(rows, level):
                yield from self.sort(spill, next_level)
            return
        rows.remove()

    def _divide_rows(self, rows: _Spill, level: int) -> list[tuple[_Spill, int]]:
        """Divide the rows of a file by the key at ``level``. Return one file and the next sort level per key range."""
        position = len(self.schema) - self.keys + level
        random = np.random.default_rng(0)
        samples = []
        for batch in rows.read():
            key = batch.column(position)
            samples.append(take_positions(key, random.integers(0, len(key), min(_SAMPLES, len(key)))))
        bounds = _bounds(samples, min(-(-rows.bytes * 2 // self.memory), _MAX_BOUNDS + 1))
        ranges = [self.new_spill() for _ in range(2 * len(bounds) + 3)]
        for batch in rows.read():
            for number, part in _divide(batch, batch.column(position), bounds):
                ranges[number].write(part)
        for spill in ranges:
            spill.close()
        rows.remove()
        # Ranges at odd positions contain the key of a bound. The last two ranges contain NaN and null.
        is_single = [number % 2 == 1 or number > 2 * len(bounds) for number in range(len(ranges))]
        return [(spill, level + single) for spill, single in zip(ranges, is_single, strict=True)]


def _bounds(samples: list[pa.Array], ranges: int) -> list[pa.Scalar]:
    """Return ascending keys that divide the sample into about ``ranges`` parts of equal size."""
    keys = pa.concat_arrays(samples).drop_null()
    if pa.types.is_floating(keys.type):
        keys = keys.filter(pc.invert(pc.is_nan(keys)))
    keys = keys.take(pc.sort_indices(keys))
    result: list[pa.Scalar] = []
    for part in range(1, ranges) if len(keys) else ():
        bound = keys[len(keys) * part // ranges]
        if not result or bound != result[-1]:
            result.append(bound)
    return result


def _divide(
    batch: pa.RecordBatch, key: pa.Array, bounds: list[pa.Scalar]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the number and rows of each key range: between two bounds, equal to a bound, NaN, or null."""
    ranges: NDArray[np.int64] = np.zeros(len(key), np.int64)
    for bound in bounds:
        for compare in (pc.greater_equal, pc.greater):
            ranges += pc.fill_null(compare(key, bound), False).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(key.type):
        ranges[pc.fill_null(pc.is_nan(key), False).to_numpy(zero_copy_only=False)] = 2 * len(bounds) + 1
    ranges[key.is_null().to_numpy(zero_copy_only=False)] = 2 * len(bounds) + 2
    for number in np.unique(ranges):
        yield int(number), take_rows(batch, np.flatnonzero(ranges == number))


def _sort(batches: list[pa.RecordBatch], keys: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``batches`` sorted by the last ``keys`` columns, without the key columns."""
    if not batches:
        return
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    names = table.schema.names[-keys:]
    order = pc.sort_indices(table.select(names), sort_keys=[(name, "ascending") for name in names]).to_numpy()
    rows = table.select(range(table.num_columns - keys))
    for start in range(0, len(order), BATCH_ROWS):
        positions = order[start : start + BATCH_ROWS].astype(np.int64)
        columns = [take_positions(_array(column), positions) for column in rows.columns]
        yield pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def centres(geometries: pa.Array, planar: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return x and y of each bounding box's centre; NaN for rows without a finite box.

    Edges are straight if ``planar``. Otherwise they follow the shorter arc, so a box that is wider than half of the
    globe crosses the antimeridian.
    """
    west, east, south, north = row_boxes(geometries)
    with np.errstate(invalid="ignore"):  # a box may extend from minus infinity to infinity
        x, y = west / 2 + east / 2, south / 2 + north / 2
        crosses = (east - west > 180) & (not planar)
    x[crosses] += np.where(x[crosses] > 0, -180, 180)
    unknown = ~(np.isfinite(x) & np.isfinite(y))
    x[unknown] = y[unknown] = np.nan
    return x, y


def hilbert_keys(geometries: pa.Array, bounds: BoundingBox, planar: bool) -> pa.Array:
    """Return the positions of geometries on the Hilbert curve that fills ``bounds``; null without a finite box."""
    x, y = centres(geometries, planar)
    return pa.array(hilbert_index(x, y, bounds), pa.uint64(), mask=np.isnan(x))
