"""Open the files of a scan in order: one at a time, or concurrently if opening requires network requests."""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain, pairwise, repeat, takewhile
from typing import Any, Literal, Protocol

import pyarrow as pa

from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, ParquetError, warn
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.local_paths import scheme_of
from pqext.core.base.pickling import PickledByFields
from pqext.core.base.suggestions import excerpt, join_names
from pqext.core.base.text import escape_text
from pqext.core.base.threads import Workers
from pqext.core.io.source import PathSource
from pqext.core.io.sources.store import Location
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import Schema
from pqext.dataset.files.sources import source_name
from pqext.dataset.files.summaries import Summaries

OnInvalid = Literal["raise", "skip"]

_AT_ONCE = 16
"""Maximum number of files that are opened concurrently, and of open files, if they are remote."""
_LOCAL_THREADS = 4
"""Threads that read the footers of local files; parsing happens in the caller."""
_LOCAL_AHEAD = 3
"""Number of files opened one by one before files are opened in groups."""
_FIRST_PARTS = (1, 3, 12)
_TOGETHER = 16
"""Maximum number of local files whose footers one call reads. The first calls read fewer, because the scan may stop."""
_NAMED = 10
"""Maximum number of files that a message names."""


class TableView(Protocol):
    """Column names and deleted rows of a table's data files, from the table's metadata."""

    @property
    def table(self) -> str:
        """Name of the table, for messages."""

    def restrict(self, names: Collection[str]) -> TableView:
        """Restrict the view to the files with the names ``names``."""

    def apply(self, source: Any, file: ParquetFile) -> None:
        """Rename the columns of ``file``, opened from ``source``, and exclude its deleted rows from scans."""


@dataclass(eq=False)
class FileSet(PickledByFields):
    """Sources of a scan, and options for opening files. Derived scans share one instance and its metadata cache."""

    sources: tuple[Any, ...]
    options: ReadOptions = field(default_factory=ReadOptions)
    limits: Limits = DEFAULT_LIMITS
    on_invalid: OnInvalid = "raise"
    """Policy for sources that are not Parquet files: raise one error that names all of them, or skip them with a
    ``CorruptDataWarning`` that names them."""
    summaries: Summaries | None = None
    """Metadata known without opening the files."""
    view: TableView | None = None
    """The view that a table has of its files."""

    def __post_init__(self) -> None:
        if self.on_invalid not in ("raise", "skip"):
            raise ValueError(f'on_invalid must be "raise" or "skip", not {self.on_invalid!r}')
        self._has_shared = False
        self._reported: frozenset[int] = frozenset()

    def iter_open(
        self, positions: Sequence[int], is_learning: bool = False
    ) -> Generator[tuple[int, ParquetFile], None, None]:
        """Yield the position and the open file of each source in ``positions``, in order.

        A file is closed when the next one is requested.

        ``is_learning`` is true while schemas are collected. Files skipped then are not reported again by the following
        run.

        Raises:
            CorruptFileError: If files are not Parquet, unless they are skipped.
            FileNotFoundError: If a file was removed.
        """
        skipped: list[int] = []
        if self.summaries is not None:
            self.summaries.prepare([self.sources[position] for position in positions], self.options)
        try:
            for position, file in self._prefetch(positions):
                if isinstance(file, CorruptFileError):
                    if self.on_invalid == "raise":
                        raise self._combine_errors(position, file, positions)
                    skipped.append(position)
                    continue
                with file:
                    if self.view is not None:
                        with ErrorLocation(file):
                            self.view.apply(self.sources[position], file)
                    if not self._has_shared and len(positions) > 1:
                        self._has_shared = True
                        with suppress(ParquetError):  # the error is raised again where the columns are needed
                            _ = file.arrow_schema  # initialise what files with the same schema share
                    yield position, file
        finally:
            reported, self._reported = self._reported, frozenset(skipped if is_learning else ())
            skipped = [position for position in skipped if position not in reported]
            if skipped:
                several = f"{len(skipped)} files are not Parquet and were skipped"
                reason = "1 file is not Parquet and was skipped" if len(skipped) == 1 else several
                warn(f"{reason}: {self._format_names(skipped)}", CorruptDataWarning)

    @cached_property
    def schemas(self) -> list[tuple[str, pa.Schema]]:
        """The distinct Arrow schemas of all files, and for each schema the name of the first file with this schema."""
        result: dict[tuple[Any, ...], tuple[str, pa.Schema]] = {}
        before: Schema | None = None
        for position, file in self.iter_open(range(len(self.sources)), is_learning=True):
            if file.schema is before:  # files with the same schema share the object
                continue
            before = file.schema
            with ErrorLocation(file):
                schema = file.arrow_schema
                key = (schema, tuple((schema.metadata or {}).items()), *map(_metadata_key, schema))
                result.setdefault(key, (source_name(self.sources[position]), schema))
        return list(result.values())

    def _prefetch(self, positions: Sequence[int]) -> Iterator[tuple[int, ParquetFile | CorruptFileError]]:
        if self._can_read_together(positions):
            opened = 0
            with closing(self._open_local(positions)) as local:
                for item in local:
                    yield item
                    opened += 1
            positions = positions[opened:]  # open them one by one if the limit of open files is reached
        remote = sum(not _is_local(self.sources[position]) for position in positions)
        with Workers(_AT_ONCE if remote > 1 else 1, len(positions)) as workers:
            files = workers.map_ahead(self._try_open, positions, _AT_ONCE - 1)
            yield from zip(positions, files, strict=True)

    def _can_read_together(self, positions: Sequence[int]) -> bool:
        """Return whether there are several files, all local and without metadata from summary files."""
        has_summaries = self.summaries is not None and self.summaries.has_metadata
        sources = [self.sources[position] for position in positions]
        return len(sources) > 1 and not has_summaries and all(map(_is_plain_path, sources))

    def _open_local(
        self, positions: Sequence[int]
    ) -> Generator[tuple[int, ParquetFile | CorruptFileError], None, None]:
        """Open local files in threads, ahead of the consumer, and yield positions with files or errors, in order.

        The iteration stops before the first file that would exceed the system's limit of open files.
        """
        sizes = chain(_FIRST_PARTS, repeat(_TOGETHER))
        cuts = [*takewhile(lambda cut: cut < len(positions), accumulate(sizes, initial=0)), len(positions)]
        parts = [positions[start:stop] for start, stop in pairwise(cuts)]
        with Workers(_LOCAL_THREADS, len(parts)) as workers:
            for part, ends in zip(parts, workers.map_ahead(self._read_ends, parts, _LOCAL_AHEAD), strict=True):
                for position, end in zip(part, ends, strict=True):
                    try:
                        file = self._try_open(position, end)
                    except OSError as error:
                        if error.errno not in (errno.EMFILE, errno.ENFILE):
                            raise
                        return
                    yield position, file

    def _read_ends(self, positions: Sequence[int]) -> list[PathSource | None]:
        return PathSource.open_several([self.sources[position] for position in positions])

    def _try_open(self, position: int, file: PathSource | None = None) -> ParquetFile | CorruptFileError:
        source = self.sources[position]
        try:
            if file is not None:
                return ParquetFile(file, options=self.options, limits=self.limits)
            if self.summaries is not None:
                source = self.summaries.source(source) or source
            return ParquetFile(source, options=self.options, limits=self.limits)
        except CorruptFileError as error:
            return error
        except ValueError:
            if not isinstance(source, str) or os.path.isfile(source):
                raise
            reason = "not a regular file, but a pipe or device; Parquet needs a seekable file"
            return CorruptFileError(reason, path=source)
        except FileNotFoundError as error:
            if not _is_local(source) or os.path.lexists(source):  # the caller may have named a file that never existed
                raise
            reason = f"{os.strerror(errno.ENOENT)}: it was removed after the scan had listed it"
            if self.view is not None:
                reason = f"the log of {self.view.table} lists the file, but it does not exist"
            raise FileNotFoundError(error.errno, reason, source_name(source)) from None
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG or self.view is None:
                raise
            reason = f"the log of {self.view.table} lists a file whose path is too long for the file system"
            raise CorruptFileError(reason, path=excerpt(source_name(source))) from None

    def _combine_errors(self, position: int, error: CorruptFileError, positions: Sequence[int]) -> CorruptFileError:
        """Return the error of one file, or an error that names all files that are not Parquet."""
        later = [other for other in positions[positions.index(position) + 1 :] if self._is_invalid(other)]
        if not later:
            if len(positions) > 1:
                error.message += f'; on_invalid="skip" skips it{self._suggest_pattern([position])}'
            return error
        message = (
            f"{1 + len(later)} files cannot be opened as Parquet: {self._format_names([position, *later])}; "
            f'the first one: {error.message}. on_invalid="skip" skips them'
            + self._suggest_pattern([position, *later])
        )
        return CorruptFileError(message, path=error.path, offset=error.offset)

    def _suggest_pattern(self, positions: Sequence[int]) -> str:
        """Suggest a pattern that excludes the files at ``positions``. Return "" if it would match any of the files."""
        others = [position for position in positions if not source_name(self.sources[position]).endswith(".parquet")]
        return ", and so does the pattern 'folder/**/*.parquet'" if len(others) == len(positions) else ""

    def _is_invalid(self, position: int) -> bool:
        try:
            file = self._try_open(position)
        except (OSError, ParquetError):
            return False
        if isinstance(file, ParquetFile):
            file.close()
        return not isinstance(file, ParquetFile)

    def _format_names(self, positions: Sequence[int]) -> str:
        return join_names((escape_text(source_name(self.sources[position])) for position in positions), _NAMED)


def _is_plain_path(source: Any) -> bool:
    return _is_local(source) and type(source) is str and source[:1] != "~" and scheme_of(source) is None


def _is_local(source: Any) -> bool:
    return not isinstance(source, Location)


def _metadata_key(field: pa.Field) -> tuple[Any, ...]:
    return (field.nullable, tuple((field.metadata or {}).items()))


class ErrorLocation:
    """Context manager that adds the file's path to errors."""

    __slots__ = ("_file",)

    def __init__(self, file: ParquetFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, error_type: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ParquetError):
            error.locate(path=self._file.path)
