"""Open the files that a summary refers to, each with its metadata from the summary.

An extension of the footer of ``_metadata`` contains a JSON record of each file: its size and modification time in
nanoseconds when its footer was read, the length and CRC-32 of that footer, and the position of its key-value metadata
in a list of distinct metadata. The summary is trusted only for files that have not changed since it was written.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload
from uuid import UUID
from zlib import crc32

from pqext.core.base.buffers import EMPTY, Bytes
from pqext.core.base.errors import ChangedFileError, CorruptFileError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.base.text import escape_text
from pqext.core.base.usage import Usage
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import TRAILER_BYTES, Footer, SourceWithFooter
from pqext.core.format.extension.framing import add_entries, entry
from pqext.core.format.metadata import ColumnChunk, FileMetaData, KeyValue, RowGroup
from pqext.core.format.thrift import LazyStructs
from pqext.core.io.external_files import FileResolver, is_plain_path
from pqext.core.io.source import PathSource, changed_file_error
from pqext.core.kernels.thrift.footer_lists import read_row_group_files
from pqext.core.kernels.thrift.reader import StructIndex

if TYPE_CHECKING:
    from pqext.core.read.reader import ParquetFile

METADATA = "_metadata"
"""Name of the summary file of a folder."""
SUMMARY_RECORD = UUID("6c2f3f5e-6a0b-4b1c-9f0e-3b8a5e1f7d42")
"""UUID of the extension."""
_MOST_BYTES = 64 << 20
"""Maximum size of the extension."""
Stamp = tuple[int, int]
"""Size and modification time in nanoseconds."""
_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class FileRecord:
    """State of a file when its footer was read. ``pairs`` is None if the footer had no key-value metadata."""

    size: int
    mtime_ns: int
    pairs: Sequence[KeyValue] | None
    footer_bytes: int
    footer_crc: int

    @property
    def stamp(self) -> tuple[int, int]:
        """Size and modification time in nanoseconds."""
        return self.size, self.mtime_ns


def store_records(metadata: FileMetaData, files: dict[str, FileRecord]) -> None:
    """Store a record of each file in the footer ``metadata`` of a summary, by file name, unless the records are too
    large.
    """
    positions: dict[tuple[tuple[str, str | None], ...] | None, int] = {}
    records = []
    for name, file in files.items():
        pairs = None if file.pairs is None else tuple((pair.key, pair.value) for pair in file.pairs)
        position = positions.setdefault(pairs, len(positions))
        records.append((name, file.size, file.mtime_ns, position, file.footer_bytes, file.footer_crc))
    payload = json.dumps({"version": 2, "files": records, "pairs": [*positions]}, separators=(",", ":")).encode()
    if len(payload) <= _MOST_BYTES:
        add_entries(metadata, {SUMMARY_RECORD: payload})


def read_record(metadata: FileMetaData) -> dict[str, FileRecord] | None:
    """Return the recorded files of a summary by name; None if it has no valid record."""
    try:
        payload = entry(metadata, SUMMARY_RECORD)
        if payload is None:
            return None
        tree = json.loads(payload)
        if tree["version"] != 2:
            return None
        lists = [None if pairs is None else [_parse_pair(*pair) for pair in pairs] for pairs in tree["pairs"]]
        files = {
            _require_text(name): FileRecord(
                _require_integer(size), _require_integer(mtime), lists[_require_position(at)],
                _require_integer(length), _require_integer(crc),
            )
            for name, size, mtime, at, length, crc in tree["files"]
        }
    except (ParquetError, ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    return files if len(files) == len(tree["files"]) else None


def _parse_pair(key: Any, value: Any) -> KeyValue:
    return KeyValue(key=_require_text(key), value=None if value is None else _require_text(value))


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected text")
    return value


def _require_integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("expected an integer")
    return value


def _require_position(value: Any) -> int:
    if _require_integer(value) < 0:
        raise TypeError("expected an integer of 0 or more")
    return int(value)


class UnusableSummaryError(Exception):
    """Signal that a summary is encrypted, has row groups that span several files, or refers to files outside its
    folder.
    """


class Summary:
    """Summary file at ``path``. ``groups`` maps each file name to the positions of the file's row groups.

    Raises ``UnusableSummaryError`` if the summary cannot be used, ``OSError`` if it cannot be read, and
    ``ParquetError`` if it is corrupt.
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        with PathSource(path) as source:
            self._footer = read_footer(source, limits)
            self.usage: Usage = source.usage
            self._mtime_ns = source.stamp[1]
        self._limits = limits
        if self._footer.decryptor is not None:
            raise UnusableSummaryError("the summary is encrypted")
        self._all = self.metadata.row_groups
        index = self._all.undecoded_index if isinstance(self._all, LazyStructs) else None
        result = None if index is None else read_row_group_files(index)
        if result is None:
            raise UnusableSummaryError("the summary has row groups that span several files")
        self._rows = result[1]
        self._starts = result[2]
        self.groups: dict[str, list[int]] = {}
        for position, name in enumerate(result[0]):
            self.groups.setdefault(name.decode("utf-8", "surrogateescape"), []).append(position)
        if not all(map(is_plain_path, self.groups)):
            raise UnusableSummaryError("the summary refers to files outside its folder")

    def __reduce__(self) -> tuple[type[Summary], tuple[str, Limits]]:
        return Summary, (self.path, self._limits)  # the copy reads the file again

    @property
    def metadata(self) -> FileMetaData:
        """Footer with the row groups of all files."""
        return self._footer.metadata

    @cached_property
    def records(self) -> dict[str, FileRecord] | None:
        """Recorded files by name; None if the record is missing or incomplete, or if row counts differ."""
        record = read_record(self.metadata)
        is_whole = record is not None and self.groups.keys() <= record.keys()
        return record if is_whole and self.metadata.num_rows == sum(self._rows) else None

    def contradiction(self) -> CorruptFileError | None:
        """Return an error if the summary has negative row counts, or missing or repeated row groups; otherwise None."""
        total = sum(self._rows)
        message = None
        if any(rows < 0 for rows in self._rows):
            message = f"a row group of {min(self._rows)} rows is listed"
        elif self.metadata.num_rows > total:
            message = (
                f"the footer states {self.metadata.num_rows} rows, but its row groups have {total}: "
                "row groups are missing"
            )
        for name, positions in self.groups.items():
            starts = [self._starts[position] for position in positions if self._rows[position]]
            if len(set(starts)) < len(starts):
                message = f"a row group of {escape_text(name)} is listed twice"
        return None if message is None else CorruptFileError(message, path=self.path)

    def trusted_source(self, name: str, location: str) -> SummarisedSource:
        """Return the file ``name`` at ``location`` with its metadata from the summary.

        The file must have the recorded size, and the recorded modification time or footer CRC. If there is no record, a
        file that is not older than the summary must have an equivalent footer. Raises ``CorruptFileError`` if the file
        cannot be opened, and ``ChangedFileError`` if it has changed.
        """
        resolver = FileResolver(self.path, "folder")
        try:
            result = os.stat(location)
        except (OSError, ValueError) as error:
            raise CorruptFileError(
                f"the column chunk's file {name!r} cannot be opened: {error}", path=self.path
            ) from None
        if not stat.S_ISREG(result.st_mode):
            raise CorruptFileError(f"the column chunk's file {name!r} is not a regular file", path=self.path)
        stamp, file = (result.st_size, result.st_mtime_ns), (self.records or {}).get(name)
        if file is not None and file.size != result.st_size:
            message = f"it has {result.st_size} bytes, but {escape_text(self.path)} records {file.size}"
            raise self._changed_file_error(message, location)
        if file is None:
            is_sure = result.st_mtime_ns < self._mtime_ns
        else:
            is_sure = file.stamp == stamp and self._can_detect_change(file)
        source = self._source(name, location, stamp, self.metadata.key_value_metadata, lambda: resolver.open(name))
        if not is_sure:  # the file was copied or rewritten
            source.check()
        return source

    def unchanged_source(self, name: str, location: str) -> SummarisedSource | None:
        """Return the file ``name`` at ``location``; None if the summary has no record of the file, or the file may have
        changed.
        """
        file = (self.records or {}).get(name)
        try:
            result = os.stat(location)
        except (OSError, ValueError):
            return None
        if file is None or (result.st_size, result.st_mtime_ns) != file.stamp or not stat.S_ISREG(result.st_mode):
            return None
        if not self._can_detect_change(file):
            return None
        return self._source(name, location, file.stamp, file.pairs, lambda: PathSource(location))

    def _can_detect_change(self, file: FileRecord) -> bool:
        """Return whether any later change of ``file`` is visible in its modification time.

        This is uncertain if the time is in whole seconds and the summary was written within two seconds of it.
        """
        return file.mtime_ns % _SECOND != 0 or self._mtime_ns - file.mtime_ns > 2 * _SECOND

    def _source(
        self, name: str, location: str, stamp: Stamp, pairs: Sequence[KeyValue] | None, open: Callable[[], PathSource]
    ) -> SummarisedSource:
        positions, whole = self.groups.get(name, []), self.metadata
        counts = [self._rows[position] for position in positions]
        rows = sum(counts)
        groups = _RowGroups(self._all, positions, None if counts and min(counts) < 0 else rows)
        metadata = FileMetaData(
            version=whole.version, schema=whole.schema, num_rows=rows, row_groups=groups,
            key_value_metadata=pairs, created_by=whole.created_by, column_orders=whole.column_orders,
        )
        file = (self.records or {}).get(name)
        footer = Footer(metadata, stamp[0], 0, EMPTY, known_crc=None if file is None else file.footer_crc)
        return SummarisedSource(location, name, stamp, footer, open, partial(self._check, location, file, positions))

    def _check(self, location: str, file: FileRecord | None, positions: Sequence[int], source: PathSource) -> int:
        """Check the footer of a file against the summary, and return the CRC-32 of the footer.

        Raises ``ChangedFileError`` if the footer is not the recorded footer or, without a record, contradicts the
        summary.
        """
        if file is not None:
            try:
                start = source.size - TRAILER_BYTES - file.footer_bytes
                result = crc32(source.read(start, file.footer_bytes).data)
            except CorruptFileError:
                result = -1
            if result != file.footer_crc:
                raise self._changed_file_error(
                    f"its footer differs from the one that {escape_text(self.path)} records", location
                )
            return result
        own = read_footer(source, self._limits)
        if own.decryptor is not None or _row_groups_differ(_RowGroups(self._all, positions), own.metadata.row_groups):
            raise self._changed_file_error(f"its footer contradicts {escape_text(self.path)}", location)
        return crc32(own.raw.data)

    def _changed_file_error(self, subject: str, location: str) -> ChangedFileError:
        advice = "pqext.write_summary updates the summary, and a scan of the folder needs no summary"
        return ChangedFileError(f"{subject}: {advice}", path=location)


_ALIKE = ("type", "path_in_schema", "num_values", "total_compressed_size", "data_page_offset", "dictionary_page_offset")
"""Fields of a column chunk that must be equal in the summary and the file."""
_BOUNDS = ("max", "min", "max_value", "min_value", "null_count", "nan_count")


def _row_groups_differ(summary_groups: Sequence[RowGroup], row_groups: Sequence[RowGroup]) -> bool:
    """Return whether the row groups of a summary and a file differ, or the bounds in the summary contradict the file.
    """
    if len(summary_groups) != len(row_groups):
        return True
    pairs = zip(sorted(summary_groups, key=_start), sorted(row_groups, key=_start), strict=True)
    return any(
        left.num_rows != right.num_rows or len(left.columns) != len(right.columns)
        or any(map(_chunks_differ, left.columns, right.columns)) for left, right in pairs
    )


def _start(group: RowGroup) -> int:
    first = group.columns[0].meta_data if group.columns else None
    return -1 if first is None else first.data_page_offset


def _chunks_differ(summary_chunk: ColumnChunk, file_chunk: ColumnChunk) -> bool:
    first, second = summary_chunk.meta_data, file_chunk.meta_data
    if first is None or second is None or any(getattr(first, name) != getattr(second, name) for name in _ALIKE):
        return True
    pairs: tuple[tuple[object, object, tuple[str, ...]], ...] = (
        (summary_chunk, file_chunk, ("offset_index_offset", "column_index_offset")),
        (first, second, ("bloom_filter_offset", "geospatial_statistics")),
        (first.statistics, second.statistics, _BOUNDS),
    )
    return any(_contradicts_field(summarized, own, name) for summarized, own, names in pairs for name in names)


def _contradicts_field(summary_value: object, file_value: object, name: str) -> bool:
    """Return whether the summary has a value for the field ``name`` that differs from the file's value.

    The summary may omit optional fields.
    """
    value = getattr(summary_value, name, None)
    return value is not None and value != getattr(file_value, name, None)


class SummarisedSource(SourceWithFooter):
    """File whose footer comes from a summary. The first read opens the file, and raises an error if the file has
    changed.
    """

    merge_gap = PathSource.merge_gap
    batched_bytes = PathSource.batched_bytes
    tail_bytes = 0
    is_opened = False

    def __init__(
        self, path: str, name: str, stamp: Stamp, footer: Footer, open: Callable[[], PathSource],
        verify: Callable[[PathSource], int],
    ) -> None:
        super().__init__(path, stamp[0])
        self.summary_name = name
        self.footer = footer
        self._stamp = stamp
        self._open = open
        self._verify = verify
        self._file: PathSource | None = None

    def check(self) -> None:
        """Open the file and check that the summary describes it. Raises ``ChangedFileError`` if it does not."""
        with self._lock:
            if self._file is not None:
                return
            file = self._open()
            try:
                if file.stamp != self._stamp:
                    raise changed_file_error(self.path, self._stamp, file.stamp)
                crc = self._verify(file)
            except BaseException:
                file.close()
                raise
            self.usage.add_fetch(file.bytes_read, file.usage.fetch_seconds)
            self.footer = replace(self.footer, known_crc=crc)
            self._file, self.is_opened = file, True

    def _fetch(self, offset: int, length: int) -> Bytes:
        if self._file is None:
            self.check()
        assert self._file is not None
        return self._file.read(offset, length)

    def close(self) -> None:
        """Close the file if it was opened."""
        if self._file is not None:
            self._file.close()


def footer_crc(file: ParquetFile) -> int:
    """Return the CRC-32 of the stored footer of an open file.

    Raises ``ChangedFileError`` if the metadata comes from a summary without records and contradicts the file.
    """
    source = file.source
    if not isinstance(source, SummarisedSource):
        return crc32(file.footer.raw.data)
    if source.footer.known_crc is None:
        source.check()
    return source.footer.known_crc or 0


class _RowGroups(Sequence[RowGroup]):
    """Row groups of one file, looked up in the list of all row groups on access."""

    __slots__ = ("_all", "_positions", "rows")

    def __init__(self, row_groups: Sequence[RowGroup], positions: Sequence[int], rows: int | None = None) -> None:
        self._all = row_groups
        self._positions = positions
        self.rows = rows

    def __len__(self) -> int:
        return len(self._positions)

    def indexed_position(self, position: int) -> tuple[StructIndex, int] | None:
        """Return the index that contains an undecoded row group, and the position of the row group in it; None without
        an index.
        """
        return self._all.indexed_position(self._positions[position]) if isinstance(self._all, LazyStructs) else None

    @overload
    def __getitem__(self, position: int) -> RowGroup: ...
    @overload
    def __getitem__(self, position: slice) -> list[RowGroup]: ...
    def __getitem__(self, position: int | slice) -> RowGroup | list[RowGroup]:
        if isinstance(position, slice):
            return [self[at] for at in range(*position.indices(len(self)))]
        at = self._positions[position]
        return self._all.peek(at) if isinstance(self._all, LazyStructs) else self._all[at]
