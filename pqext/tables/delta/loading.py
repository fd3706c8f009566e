"""Load Delta tables with ``deltalake``, and convert deltalake's errors to typed errors without credentials."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, ParquetError, SourceError, UnsupportedError
from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store_errors import redact_uri
from pqext.tables.backend import expired_version_error
from pqext.tables.delta.log_statistics import log_files, log_folder
from pqext.tables.error_texts import error_reason

if TYPE_CHECKING:
    from deltalake import DeltaTable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NAMES = {"anon": "skip_signature", "anonymous": "skip_signature"}
_DENIED = re.compile(r"PermissionDenied|Unauthenticated|operation lacked|status(?: code)?:? ?40[13]\b|HTTP 40[13]\b")
"""Texts in errors of requests that the object store denies."""
_STORE = re.compile(
    rf"Generic \w+ error|Error performing|error sending request|storage error|Transaction failed|{_DENIED.pattern}"
)
"""Texts in errors of the object store, as opposed to errors in the content of the log."""


def options_of(source: Any, storage_options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return ``storage_options`` or, if None, the options with which the ``DeltaTable`` ``source`` was opened."""
    options: Mapping[str, Any] | None = getattr(source, "_storage_options", None)
    return options if storage_options is None else storage_options


def library_options(storage_options: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Convert options of an object store to the names and text values that deltalake accepts."""
    return {
        _NAMES.get(name, name): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (storage_options or {}).items() if value is not None
    } or None


def load_table(
    source: Any, version: int | None, timestamp: datetime | None, storage_options: Mapping[str, Any] | None
) -> DeltaTable:
    """Load a table with ``deltalake``. A ``DeltaTable`` is loaded again if another version is requested.

    Raises:
        ImportError: If deltalake is not installed.
        FileNotFoundError: If the table or the version does not exist.
        ValueError: If ``version`` cannot be the number of a version.
        SourceError: If the store cannot be reached or denies access.
        UnsupportedError: If deltalake does not support the table.
        CorruptFileError: If the log cannot be read.
    """
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError:
        raise ImportError("Delta tables need deltalake: pip install 'pqext[delta]'") from None
    if isinstance(source, DeltaTable):
        if version is None and timestamp is None:
            return source
        source = source.table_uri
    name = f"delta:{redact_uri(str(source))}"
    options = library_options(storage_options)
    is_number = version is None or 0 <= version < 1 << 63
    try:
        table = DeltaTable(source, version=version if is_number else None, storage_options=options)
        if timestamp is not None:
            table.load_as_version(timestamp)
    except TableNotFoundError:
        raise FileNotFoundError(f"{name} is not a Delta table; pass the folder that contains _delta_log") from None
    except (DeltaError, OSError) as error:
        request = "the table" if version is None else f"version {version}"
        request = request if timestamp is None else f"the version of {timestamp}"
        failure = table_error(f"{request} cannot be opened", error, name, storage_options)
        if version is not None:
            last = load_table(source, None, None, storage_options).version()
            if version > last:
                raise FileNotFoundError(f"{name} has no version {version}; its last version is {last}") from None
        raise failure from None
    if not is_number:
        raise ValueError(f"{name} has no version {version}; its last version is {table.version()}")
    if timestamp is not None:
        _check_time(table, timestamp, name, storage_options)
    return table


def _check_time(
    table: DeltaTable, timestamp: datetime, name: str, storage_options: Mapping[str, Any] | None
) -> None:
    """Raise ``FileNotFoundError`` if the loaded version was committed after ``timestamp``.

    Raises ``SourceError`` if the time of the version cannot be read.

    deltalake returns the first version for earlier times. The time of a version is the modification time of its commit,
    in whole milliseconds, as in deltalake.
    """
    try:
        written = _commit_time(table, storage_options)
    except ParquetError:
        raise
    except OSError as error:
        problem = f"the time of version {table.version()} cannot be read"
        raise table_error(problem, error, name, storage_options) from None
    if written is not None and written > (timestamp - _EPOCH) // _MILLISECOND:
        first = _EPOCH + written * _MILLISECOND
        earliest = f"its earliest available version {table.version()} is from {first}"
        raise FileNotFoundError(f"{name} has no version at {timestamp}; {earliest}")


def _commit_time(table: DeltaTable, storage_options: Mapping[str, Any] | None) -> int | None:
    """Return the modification time of the version's commit, in milliseconds since 1970; None if it is unknown."""
    folder, is_local = log_folder(table.table_uri)
    if is_local:
        try:
            return os.stat(os.path.join(folder, f"{table.version():020}.json")).st_mtime_ns // 1_000_000
        except FileNotFoundError:  # the commit has expired since the table was loaded
            return None
    for file, match in log_files(table.table_uri, storage_options):
        if match[2] == "json" and int(match[1]) == table.version():
            modified: int | None = file.listed.modified_ms
            return modified
    return None


def is_rejection(error: Exception) -> bool:
    """Return whether ``error`` means that a commit to a store has failed and cannot succeed later.

    This is the case if the store denies access, if another writer was faster, and if the schema or the protocol of the
    table rejects the commit. After any other error, the outcome of the commit is unknown.
    """
    from deltalake.exceptions import CommitFailedError, DeltaProtocolError, SchemaMismatchError

    if isinstance(error, PermissionError) or _DENIED.search(str(error)):
        return True
    if isinstance(error, CommitFailedError):
        return not _STORE.search(str(error))
    return isinstance(error, DeltaProtocolError | SchemaMismatchError)


def table_error(
    problem: str, error: Exception, name: str, storage_options: Mapping[str, Any] | None
) -> ParquetError:
    """Return a typed error for an ``error`` of ``deltalake``. The message is ``problem`` and the original message.

    ``SourceError`` if the store cannot be reached, ``UnsupportedError`` for unsupported features, otherwise
    ``CorruptFileError``.
    """
    text = str(error)
    message = f"{problem}: {error_reason(error, storage_options)}"
    if isinstance(error, OSError) or _STORE.search(text):
        return SourceError(message, path=name)
    if "Unsupported" in text:
        return UnsupportedError(message, feature="Delta table features", path=name)
    return CorruptFileError(message, path=name)


def data_paths(uri: str, version: int, storage_options: Mapping[str, Any] | None, name: str) -> frozenset[str]:
    """Return the data file paths of a version. Raises ``TableConflictError`` if the version no longer exists."""
    try:
        table = load_table(uri, version, None, storage_options)
    except (FileNotFoundError, CorruptFileError):
        raise expired_version_error(version, name) from None
    return frozenset(map(unquote, pa.table(table.get_add_actions())["path"].to_pylist()))


def column_mapping_mode(table: DeltaTable | None) -> str | None:
    """Return the column mapping mode of a table, ``id`` or ``name``; None if columns are not mapped."""
    mode = None if table is None else table.metadata().configuration.get("delta.columnMapping.mode")
    return None if mode in (None, "none") else str(mode)


def locate_file(root: str, storage_options: Mapping[str, Any] | None, name: str) -> Any:
    """Return the local path, or the location in a store, of a file in the folder of a table."""
    if scheme_of(root) is None:
        return str(Path(root, name))
    return locate(f"{root}/{name}", None, storage_options)


def is_remote(root: str) -> bool:
    """Return whether the folder of a table is in an object store."""
    return scheme_of(root) is not None
