"""Load Delta tables with ``deltalake``, and convert its errors to typed errors without credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pqext.core.base.errors import CorruptFileError, ParquetError, SourceError, UnsupportedError
from pqext.core.io.sources.store_errors import collect_secrets, redact_error, redact_uri

if TYPE_CHECKING:
    from deltalake import DeltaTable

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m|[↳\n]")
_NAMES = {"anon": "skip_signature", "anonymous": "skip_signature"}
_STORE = re.compile(
    r"Generic \w+ error|Error performing|error sending request|PermissionDenied|Unauthenticated|storage error"
)
"""Texts in errors of the object store, as opposed to errors in the content of the log."""
_DENIED = re.compile(r"PermissionDenied|Unauthenticated|\b40[13]\b")


def options_of(source: Any, storage_options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return ``storage_options``; by default those of a ``DeltaTable``, which has no public attribute for them."""
    options: Mapping[str, Any] | None = getattr(source, "_storage_options", None)
    return options if storage_options is None else storage_options


def library_options(storage_options: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return options of an object store as deltalake accepts them: text, under the names of its stores."""
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
        raise FileNotFoundError(f"{name} is not a Delta table") from None
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
        _check_time(table, timestamp, name)
    return table


def _check_time(table: DeltaTable, timestamp: datetime, name: str) -> None:
    """Raise ``FileNotFoundError`` if the version is later than ``timestamp``.

    deltalake returns the first version for times before it.
    """
    written = next(iter(table.history(1)), {}).get("timestamp")
    if isinstance(written, int) and written > timestamp.timestamp() * 1000:
        first = datetime.fromtimestamp(written / 1000, UTC)
        raise FileNotFoundError(f"{name} has no version at {timestamp}; version {table.version()} is from {first}")


def is_uncertain(error: Exception) -> bool:
    """Return whether a request to the store failed in a way that leaves its outcome unknown."""
    is_denied = isinstance(error, PermissionError) or _DENIED.search(str(error)) is not None
    return not is_denied and (isinstance(error, OSError) or _STORE.search(str(error)) is not None)


def table_error(
    problem: str, error: Exception, name: str, storage_options: Mapping[str, Any] | None
) -> ParquetError:
    """Return the typed error for an ``error`` of ``deltalake``: ``problem``, followed by its message.

    ``SourceError`` if the store cannot be reached, ``UnsupportedError`` for unsupported features, otherwise
    ``CorruptFileError``.
    """
    text = " ".join(_ESCAPES.sub(" ", str(error)).split())
    message = f"{problem}: {redact_error(text, collect_secrets(storage_options))}"
    if isinstance(error, OSError) or _STORE.search(text):
        return SourceError(message, path=name)
    if "Unsupported" in text:
        return UnsupportedError(message, feature="Delta table features", path=name)
    return CorruptFileError(message, path=name)
