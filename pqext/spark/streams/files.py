"""Stream files that arrive in folders. Spark's offsets contain the files that a query has read.

An offset contains digests of the names of all files that the query has read and that still exist. Files that appear
late, with an old modification time or while a batch is planned, are therefore not missed, and a restart needs only the
offset.
"""

from __future__ import annotations

import base64
import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from pqext.dataset.files.folders import COMMIT
from pqext.dataset.files.sources import source_name
from pqext.spark.base.files import list_sources

if TYPE_CHECKING or find_spec("pyspark.sql.streaming.datasource") is not None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
else:  # Spark before 4.2 passes neither limits nor an end to streams
    SupportsTriggerAvailableNow = type("SupportsTriggerAvailableNow", (), {})

_DIGEST_BYTES = 12
"""Length of digests. The probability that two of a million names have the same digest is below 10**-16."""
_OPTIONS = {
    "max_files_per_batch": "max_files_per_batch", "maxfilespertrigger": "max_files_per_batch",
    "ignore_missing_files": "ignore_missing_files", "ignoremissingfiles": "ignore_missing_files",
    "skip_change_commits": "skip_change_commits", "skipchangecommits": "skip_change_commits",
    "starting_version": "starting_version", "startingversion": "starting_version",
}
"""Options of streams, by their names in pqext, Spark and Delta's data source."""


@dataclass(frozen=True)
class StreamedFile:
    """File of a stream: the path or URL to open, the location, and the final name."""

    file: str
    location: Any
    name: str

    @property
    def digest(self) -> bytes:
        """Digest of the file in offsets."""
        return hashlib.blake2b(self.name.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).digest()


@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream that reads files or a table."""

    max_files_per_batch: int | None = None
    ignore_missing_files: bool = False
    skip_change_commits: bool = False
    """Whether versions of a table that remove or change rows are skipped."""
    starting_version: str | None = None
    """First version of a table whose rows are read, or ``"latest"`` for the versions after the current one."""


def split_stream_options(options: Mapping[str, str]) -> tuple[StreamOptions, dict[str, str]]:
    """Separate the options of the stream from other options. Raises ``ValueError`` for an invalid value."""
    arguments: dict[str, Any] = {}
    others: dict[str, str] = {}
    for key, text in options.items():
        name = _OPTIONS.get(key.lower())
        if name is None:
            others[key] = text
        elif name == "max_files_per_batch":
            if not text.isdecimal() or int(text) < 1:
                raise ValueError(f"option {key} must be a positive number, not {text!r}")
            arguments[name] = int(text)
        elif name == "starting_version":
            if not text.isdecimal() and text != "latest":
                raise ValueError(f"option {key} must be a version or 'latest', not {text!r}")
            arguments[name] = text
        else:
            if text.lower() not in ("true", "false"):
                raise ValueError(f"option {key} must be true or false, not {text!r}")
            arguments[name] = text.lower() == "true"
    return StreamOptions(**arguments), others


class FileStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Base class of file streams. It selects the files of each batch."""

    def __init__(
        self, paths: Sequence[str], storage_options: Mapping[str, Any] | None, options: StreamOptions,
        *, ignore_table_format: bool = True,
    ) -> None:
        for name in ("skip_change_commits", "starting_version"):
            if getattr(options, name):
                raise ValueError(f"option {name} is for streams of tables, such as delta:PATH; omit it for files")
        self._paths = paths
        self._storage = storage_options
        self._options = options
        self._ignore_table_format = ignore_table_format
        self._until: frozenset[bytes] | None = None

    @abstractmethod
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
        """Plan the tasks of a batch."""

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first file."""
        return _create_offset(())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the offset after at most ``limit`` new files, or ``start`` without new files."""
        seen = _parse_digests(start)
        files = {file.digest: file for file in self.list_files()}
        until = files if self._until is None else self._until
        new_digests = [digest for digest in files if digest not in seen and digest in until]
        if start is not None and not new_digests:
            return start
        most = getattr(limit, "max_files", None)
        return _create_offset([*(digest for digest in files if digest in seen), *new_digests[:most]])

    def getDefaultReadLimit(self) -> Any:
        """Return the limit from option ``max_files_per_batch``."""
        return read_limit(self._options)

    def prepareForTriggerAvailableNow(self) -> None:
        """End the query after the current files."""
        self._until = frozenset(file.digest for file in self.list_files())

    def list_files(self) -> list[StreamedFile]:
        """List the current files: local files ordered by time and name, remote files ordered by name."""
        try:
            results = [*list_sources(self._paths, self._storage, ignore_table_format=self._ignore_table_format)]
        except FileNotFoundError:
            return []
        files = [StreamedFile(file, location, _final_name(source_name(location))) for file, location in results]
        return sorted(files, key=lambda item: (_modification_time(item.location), item.name))

    def list_batch(self, start: dict[str, Any], end: dict[str, Any]) -> tuple[list[StreamedFile], list[StreamedFile]]:
        """Return the files of a batch in order, and all current files.

        Raises ``FileNotFoundError`` if files of the batch were removed, unless missing files are ignored.
        """
        targets = _parse_digests(end) - _parse_digests(start)
        if not targets:
            return [], []
        current_files = self.list_files()
        results = [item for item in current_files if item.digest in targets]
        if len(results) < len(targets) and not self._options.ignore_missing_files:
            raise FileNotFoundError(
                2, f"{len(targets) - len(results)} of {len(targets)} files were removed after this batch was planned: "
                "restore them, or skip them with option ignore_missing_files", self._paths[0],
            )
        return results, current_files


def read_limit(options: StreamOptions) -> Any:
    """Return the limit of a batch from option ``max_files_per_batch``."""
    most = options.max_files_per_batch
    return ReadAllAvailable() if most is None else ReadMaxFiles(most)


def _create_offset(digests: Iterable[bytes]) -> dict[str, Any]:
    ordered = sorted(digests)
    return {"version": 1, "files": len(ordered), "seen": base64.b64encode(b"".join(ordered)).decode()}


def _parse_digests(offset: Mapping[str, Any] | None) -> frozenset[bytes]:
    """Return the digests in an offset. Raises ``ValueError`` for an offset of another source."""
    if offset is None:
        return frozenset()
    try:
        data = base64.b64decode(offset["seen"], validate=True)
        if offset["version"] != 1 or len(data) != offset["files"] * _DIGEST_BYTES:
            raise ValueError("the offset is truncated or has an unsupported version; use another checkpoint location")
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(
            f"the checkpoint contains an offset of another source ({error}); use another checkpoint location"
        ) from None
    return frozenset(data[at : at + _DIGEST_BYTES] for at in range(0, len(data), _DIGEST_BYTES))


def _final_name(name: str) -> str:
    """Return the final name of a file, even while a save is moving it."""
    parts = name.split(os.sep)
    return os.sep.join(part for part in parts if not part.startswith(COMMIT)) if COMMIT in name else name


def _modification_time(location: Any) -> int:
    try:
        return os.stat(location).st_mtime_ns if isinstance(location, str) else 0
    except FileNotFoundError:
        return 0
