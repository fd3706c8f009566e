"""Sort streams of batches by key columns, in bounded memory: rows are divided into key ranges in temporary files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.schema.types.arrow_compute import take_positions
from pqext.geo.box import BoundingBox
from pqext.geo.layout.order import hilbert_index, row_boxes
from pqext.tables.data_files import BATCH_ROWS

SORT_BYTES = 256 << 20
"""Maximum size of the rows that are sorted in memory."""
_SAMPLES = 64
"""Number of keys per batch from which the key ranges are derived."""


def add_keys(batch: pa.RecordBatch, keys: Sequence[pa.Array]) -> pa.RecordBatch:
    """Append key columns to a batch, by which :func:`sorted_batches` sorts it."""
    fields = [pa.field(f"\0key{position}", key.type) for position, key in enumerate(keys)]
    schema = pa.schema([*batch.schema, *fields], batch.schema.metadata)
    return pa.RecordBatch.from_arrays([*batch.columns, *keys], schema=schema)


@contextmanager
def sorted_batches(
    batches: Iterable[pa.RecordBatch], keys: int, memory: int | None = None
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Context with the rows of ``batches`` sorted by their last ``keys`` columns, without these. Nulls are last.

    Rows of more than ``memory`` bytes are divided into ranges of the first key in temporary files. Ranges that are
    still larger, because many rows have the same key, are not sorted further.
    """
    memory = SORT_BYTES if memory is None else memory
    held: list[pa.RecordBatch] = []
    size = 0
    iterator = iter(batches)
    for batch in iterator:
        held.append(batch)
        size += batch.nbytes
        if size > memory:
            break
    else:
        yield _sort(held, keys)
        return
    with tempfile.TemporaryDirectory(prefix="pqext-sort-", ignore_cleanup_errors=True) as folder:
        rows = _Spill(folder, "rows", held[0].schema)
        samples: list[pa.Array] = []
        total = 0
        random = np.random.default_rng(0)
        for batch in _chain(held, iterator):
            total += batch.nbytes
            key = batch.column(batch.num_columns - keys)
            positions = random.integers(0, batch.num_rows, min(_SAMPLES, batch.num_rows)) if batch.num_rows else []
            samples.append(take_positions(key, np.asarray(positions, np.int64)))
            rows.write(batch)
        rows.close()
        bounds = _bounds(samples, -(-total * 2 // memory))
        ranges = [_Spill(folder, f"range{position}", rows.schema) for position in range(len(bounds) + 2)]
        for batch in rows.read():
            for position, part in _divide(batch, batch.column(batch.num_columns - keys), bounds):
                ranges[position].write(part)
        rows.remove()
        for spill in ranges:
            spill.close()
        yield _sort_ranges(ranges, keys, memory)


def _chain(held: list[pa.RecordBatch], following: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while held:
        yield held.pop(0)
    yield from following


class _Spill:
    """Temporary file of batches."""

    def __init__(self, folder: str, name: str, schema: pa.Schema) -> None:
        self.schema = schema
        self.bytes = 0
        self._path = os.path.join(folder, f"{name}.arrow")
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
            self._writer = pa.ipc.new_file(self._path, self.schema, options=options)
        self._writer.write_batch(batch)
        self.bytes += batch.nbytes

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def read(self) -> Iterator[pa.RecordBatch]:
        if self._writer is not None:
            with pa.OSFile(self._path) as file:
                reader = pa.ipc.open_file(file)
                for position in range(reader.num_record_batches):
                    yield reader.get_batch(position)

    def remove(self) -> None:
        if self._writer is not None:
            os.remove(self._path)


def _bounds(samples: list[pa.Array], ranges: int) -> list[pa.Scalar]:
    """Return ascending keys that divide the sample into about ``ranges`` parts of equal size."""
    keys = pa.concat_arrays(samples).drop_null()
    keys = keys.take(pc.sort_indices(keys))
    places = [len(keys) * part // ranges for part in range(1, ranges)] if len(keys) else []
    result: list[pa.Scalar] = []
    for place in places:
        if not result or keys[place] != result[-1]:
            result.append(keys[place])
    return result


def _divide(
    batch: pa.RecordBatch, key: pa.Array, bounds: list[pa.Scalar]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each key range. The last range has the rows whose key is null."""
    ranges: NDArray[np.int64] = np.zeros(len(key), np.int64)
    for bound in bounds:
        ranges += pc.fill_null(pc.greater_equal(key, bound), False).to_numpy(zero_copy_only=False)
    ranges[key.is_null().to_numpy(zero_copy_only=False)] = len(bounds) + 1
    for position in np.unique(ranges):
        yield int(position), _take(batch, np.flatnonzero(ranges == position))


def _take(batch: pa.RecordBatch, positions: NDArray[np.int64]) -> pa.RecordBatch:
    columns = [take_positions(column, positions) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _sort_ranges(ranges: list[_Spill], keys: int, memory: int) -> Iterator[pa.RecordBatch]:
    for spill in ranges:
        if spill.bytes > 2 * memory:
            for batch in spill.read():
                yield batch.select(range(batch.num_columns - keys))
        else:
            yield from _sort(list(spill.read()), keys)
        spill.remove()


def _sort(batches: list[pa.RecordBatch], keys: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``batches`` in the order of their last ``keys`` columns, without these."""
    if not batches:
        return
    table = pa.Table.from_batches(batches).combine_chunks()
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
    """Return the centres of the boxes of geometries; NaN for rows without a finite box.

    Edges are straight if ``planar``. Otherwise they follow the shorter arc, so a box wider than half of the globe lies
    across the antimeridian.
    """
    west, east, south, north = row_boxes(geometries)
    with np.errstate(invalid="ignore"):  # from minus infinity to infinity
        x, y = west / 2 + east / 2, south / 2 + north / 2
        across = (east - west > 180) & (not planar)
    x[across] += np.where(x[across] > 0, -180, 180)
    unknown = ~(np.isfinite(x) & np.isfinite(y))
    x[unknown] = y[unknown] = np.nan
    return x, y


def hilbert_keys(geometries: pa.Array, bounds: BoundingBox, planar: bool) -> pa.Array:
    """Return the positions of geometries on the Hilbert curve that fills ``bounds``; null without a finite box."""
    x, y = centres(geometries, planar)
    return pa.array(hilbert_index(x, y, bounds), pa.uint64(), mask=np.isnan(x))
