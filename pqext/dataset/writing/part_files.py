"""Write the Parquet files of one task: one or more for each partition folder, split by size.

Partition folders are named as in Spark and Hive: ``year=2020/city=S%3A1/``. Null and empty text become
``__HIVE_DEFAULT_PARTITION__``, so both are read as null. Values with this text are rejected: pyarrow and Spark write it
unescaped and read it as null, and pyarrow and Polars read its escaped form as null too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import InvalidValueError, UnsupportedError
from pqext.core.base.suggestions import did_you_mean
from pqext.core.options.read_write import WriteOptions
from pqext.core.schema.types.arrow_compute import take_positions
from pqext.core.write.writer import ParquetWriter
from pqext.dataset.files.folders import is_hidden
from pqext.dataset.table.partitions import NULL
from pqext.dataset.writing.staging import StagingArea, Token
from pqext.variant.shredding.choice import Counts, parse_shredding, residual_counts, stored_shredding

_OPEN_FILES = 64
"""Maximum number of partitions written at a time; beyond it, the least recently used file is closed."""
_HELD_BYTES = 256 << 20
"""Maximum total size of the rows that a task buffers for all open files."""
_ESCAPED = frozenset('"#%\'*/:=?\\\x7f{[]^') | frozenset(map(chr, range(32)))
"""Characters that Hive and Spark escape in folder names, and NUL, which names cannot contain."""
_ADVICE = "cast the column to text, a date or an integer"


@dataclass(frozen=True)
class Division:
    """Rules for dividing rows into files: by partition values, with one folder per value, and by size.

    Files lack the columns ``partition_by``. ``divide`` is a rule that replaces these columns. It returns the path of
    each folder, ending in ``/``, with its rows of a batch.
    """

    partition_by: tuple[str, ...] = ()
    max_records_per_file: int | None = None
    target_file_bytes: int | None = None
    divide: Callable[[pa.RecordBatch], Iterable[tuple[str, pa.RecordBatch]]] | None = None


UNDIVIDED = Division()


@dataclass(frozen=True)
class WrittenFile:
    """Record of a written file: its path below the folder, rows, bytes, and the shredding of its VARIANT columns."""

    name: str
    rows: int
    bytes: int
    shredded: Mapping[str, str]
    """The shredding schema of each shredded VARIANT as DDL, by its path in the file."""
    residual: Counts = field(default_factory=dict)
    """For each shredded path (``event: $.user.id``), the number of residual values and of all values."""


@dataclass(frozen=True)
class StagedFile:
    """A file that has been written but not committed. ``token`` identifies the file in the staging area."""

    file: WrittenFile
    token: Token = None


class PartFiles:
    """Writer of a task's rows to files whose names start with ``name``.

    As a context manager, it discards the files after an error, or if :meth:`close` was not called. Files in the folder
    of a table are rejected unless ``ignore_table_format``.
    """

    def __init__(
        self, staging_area: StagingArea, name: str, schema: pa.Schema, options: Mapping[str, Any], division: Division,
        ignore_table_format: bool = False,
    ) -> None:
        self._staged = staging_area
        self._name = name
        self._by = division.partition_by
        self._schema = pa.schema([field for field in schema if field.name not in self._by], schema.metadata)
        self._options = options
        self._division = division
        self._ignore_table_format = ignore_table_format
        self._open: dict[str, _PartFile] = {}
        self._done: list[StagedFile] = []
        self._count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch in order. The batch has the writer's schema."""
        if self._division.divide is not None:
            parts = self._division.divide(batch)
        else:
            parts = split_by_folder(batch, self._by) if self._by else [("", batch)]
        for names, rows in parts:
            self._add(names, rows)

    def close(self) -> tuple[StagedFile, ...]:
        """Finish all files and return their records. The files remain in the staging area until the commit."""
        for folder in [*self._open]:
            self._close_file(folder)
        done, self._done = tuple(self._done), []
        return done

    def __enter__(self) -> PartFiles:
        return self

    def __exit__(self, *_: object) -> None:
        opened, self._open = [*self._open.values()], {}
        done, self._done = self._done, []
        for file in opened:
            file.discard()
        for item in done:
            self._staged.discard(item.file.name, item.token)

    def _add(self, folder: str, batch: pa.RecordBatch) -> None:
        for rows in self._split(folder, batch):
            if folder not in self._open:
                if len(self._open) == _OPEN_FILES:
                    self._close_file(next(iter(self._open)))
                number = f"-{self._count}" if self._count else ""
                name = f"{folder}{self._name}{number}.parquet"
                self._count += 1
                self._open[folder] = _PartFile(
                    self._staged, name, self._schema, self._options, self._ignore_table_format
                )
            file = self._open[folder] = self._open.pop(folder)  # the most recently used file is last
            file.write(rows)
            limit = self._division.target_file_bytes
            if limit is not None and file.is_full(limit):
                self._close_file(folder)
        while len(self._open) > 1 and sum(file.held for file in self._open.values()) > _HELD_BYTES:
            max(self._open.values(), key=lambda file: file.held).end_row_group()

    def _split(self, folder: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Split a batch where the open file or a following file of ``folder`` reaches its maximum number of rows."""
        limit = self._division.max_records_per_file
        start = 0
        while start < batch.num_rows:
            there = self._open[folder].rows if folder in self._open else 0
            if limit is not None and there >= limit:
                self._close_file(folder)
                there = 0
            room = batch.num_rows if limit is None else limit - there
            yield batch.slice(start, room)
            start += room

    def _close_file(self, folder: str) -> None:
        file = self._open.pop(folder)
        try:
            self._done.append(file.close())
        except BaseException:
            file.discard()
            raise


class _Writer(ParquetWriter):
    _warns_about_residual = False  # the job warns about all its files together

    def residual_counts(self, shredded_paths: Iterable[str]) -> Counts:
        """Return the counts of residual values at ``shredded_paths`` in the row groups written so far."""
        return residual_counts(self._row_groups, shredded_paths)


class _PartFile:
    """An open file of a task.

    Batches are written one by one, or collected into a row group if a complete row group is needed: every row group if
    rows are sorted by a column, the first row group if a schema is inferred from it.
    """

    def __init__(
        self, staging_area: StagingArea, name: str, schema: pa.Schema, options: Mapping[str, Any],
        ignore_table_format: bool,
    ) -> None:
        self._staged = staging_area
        self._name = name
        self._schema = schema
        self._dest = staging_area.create(name)
        self._writer = _Writer(self._dest, schema, ignore_table_format=ignore_table_format, **options)
        self._limits = limits = WriteOptions(**options)
        self._orders = any(isinstance(entry, Mapping) and entry.get("order") for entry in limits.geometry.values())
        self._gathers = self._orders or any(parse_shredding(item).schema is None for item in limits.shredding.values())
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_rows = self._gathered_bytes = 0
        self._given = 0
        self.rows = 0
        self.held = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        self.held += batch.nbytes
        self._given += batch.nbytes
        self._gathered.append(batch)
        self._gathered_rows += batch.num_rows
        self._gathered_bytes += batch.nbytes
        full = self._gathered_bytes >= self._limits.row_group_bytes or (
            self._gathered_rows >= self._limits.row_group_rows and not self._orders
        )
        if full or not self._gathers:
            self._flush()

    def is_full(self, size: int) -> bool:
        """Return whether the file has about ``size`` bytes. A row group may be ended to determine its encoded size."""
        written = self._writer.bytes_written
        waiting = self._given if not written else self.held * written / max(1, self._given - self.held)
        if written + waiting >= size and self.held:
            self.end_row_group()
        return self._writer.bytes_written >= 0.95 * size

    def end_row_group(self) -> None:
        self._flush()
        self._writer.end_row_group()
        self.held = 0

    def close(self) -> StagedFile:
        self._flush()
        self._writer.close()
        shredded = stored_shredding(self._schema, self._writer.storage_schema)
        token = self._staged.finish(self._name, self._dest)
        residual = self._writer.residual_counts(shredded)
        return StagedFile(WrittenFile(self._name, self.rows, self._writer.bytes_written, shredded, residual), token)

    def discard(self) -> None:
        self._writer.abort()
        self._staged.abandon(self._name, self._dest)

    def _flush(self) -> None:
        if self._gathered:
            before = self._writer.bytes_written
            self._writer.write_ordered(pa.Table.from_batches(self._gathered))
            self._gathered, self._gathered_rows, self._gathered_bytes = [], 0, 0
            self._gathers = self._orders
            if self._writer.bytes_written > before:
                self.held = 0


def check_division(division: Division, schema: pa.Schema) -> None:
    """Raise ``ValueError`` or ``TypeError`` if ``division`` does not match the columns of ``schema``."""
    for name in ("max_records_per_file", "target_file_bytes"):
        limit = getattr(division, name)
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise TypeError(f"{name} must be an integer, not {limit!r}")
        if limit is not None and limit < 1:
            raise ValueError(f"{name} must be positive, not {limit}")
    _check_folder_columns(schema, division.partition_by)


def escape(text: str) -> str:
    """Escape ``text`` for use in the name of a partition folder."""
    return "".join(f"%{ord(item):02X}" if item in _ESCAPED else item for item in text)


def null_folder(columns: Sequence[str]) -> str:
    """Return the path of the folder for rows with nulls in all ``columns``, ending in ``/``; empty without columns."""
    return "".join(f"{escape(name)}={NULL}/" for name in columns)


def _check_folder_columns(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Raise an error unless folder names can represent the values of ``columns``.

    Raises ``ValueError`` if columns do not exist, are named twice, would name hidden folders or are the only columns,
    and ``TypeError`` for a type without a text form that all readers interpret in the same way.
    """
    if len(set(columns)) < len(columns):
        raise ValueError(f"partition_by contains duplicate columns: {', '.join(columns)}")
    for name in columns:
        if name not in schema.names:
            meant = did_you_mean(name, schema.names) or f"; the columns are {', '.join(schema.names)}"
            raise ValueError(f"partition_by: no column {name!r}{meant}")
        if is_hidden(f"{escape(name)}="):
            raise ValueError(f"partition_by: readers skip folders whose name starts with {name!r}; rename the column")
        if schema.names.count(name) > 1:
            raise ValueError(f"partition_by: the data has several columns {name!r}; rename all but one")
        type = schema.field(name).type
        if not _can_name_folder(type):
            raise TypeError(f"partition_by: folder names cannot represent column {name!r} of type {type}; {_ADVICE}")
    if columns and len(columns) == len(schema.names):
        raise ValueError("partition_by contains all columns; remove a column, because files need at least one column")


def _can_name_folder(type: pa.DataType) -> bool:
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type)
    return bool(is_text or pa.types.is_integer(type) or pa.types.is_boolean(type) or pa.types.is_date32(type))


def split_by_folder(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the path of each folder, ending in ``/``, and its rows in their order, without ``columns``."""
    code = np.zeros(batch.num_rows, np.int64)
    for name in columns:
        result = pc.dictionary_encode(batch.column(name), null_encoding="encode")
        # Each round renumbers the folders so far, so codes remain below the square of the number of rows.
        code = np.unique(code, return_inverse=True)[1] * len(result.dictionary) + result.indices.to_numpy()
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    rest = batch.select([index for index, name in enumerate(batch.schema.names) if name not in columns])
    sorted_rows = rest if len(starts) == 1 else _take_rows(rest, order)
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        row = int(order[start])
        path = "".join(f"{escape(name)}={_folder_text(name, batch.column(name)[row])}/" for name in columns)
        yield path, sorted_rows.slice(start, stop - start)


def _take_rows(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    """Return the rows at positions ``rows`` of a batch, also for types that Arrow's ``take`` does not support."""
    return pa.RecordBatch.from_arrays([take_positions(column, rows) for column in batch.columns], schema=batch.schema)


def _folder_text(name: str, scalar: pa.Scalar) -> str:
    try:
        value = scalar.as_py()
    except UnicodeDecodeError:
        raise InvalidValueError(
            "a partition value is not valid UTF-8; replace it, or partition by another column", column=name
        ) from None
    except OverflowError:
        raise InvalidValueError(
            "a partition value is a date outside the years 1 to 9999; replace it, or partition by another column",
            column=name,
        ) from None
    if value is None or value == "":
        return NULL
    if value == NULL:
        raise UnsupportedError(
            f"the value {NULL} represents null in folder names, so readers would return null; replace the value",
            feature="the name of null as a partition value", column=name,
        )
    return escape(str(value).lower() if isinstance(value, bool) else str(value))
