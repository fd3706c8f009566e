"""Check the arguments of table functions before a table is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pqext.core.base.local_paths import check_path
from pqext.core.io.sources.store_errors import redact_uri

_CLASSES = ("DeltaTable", "Table")
_TYPES: Mapping[str, tuple[type, str]] = {
    "after": (int, "an integer"),
    "allow_undeclared_shredding": (bool, "True or False"), "dry_run": (bool, "True or False"),
    "older_than": (timedelta, "a datetime.timedelta"), "skip_change_commits": (bool, "True or False"),
    "storage_options": (Mapping, "a mapping"),
    "target_file_bytes": (int, "an integer"), "until": (int, "an integer"), "version": (int, "an integer"),
}
"""Types of arguments by name, each with its description for error messages."""
_OPTIONAL = frozenset({"storage_options", "until", "version", "progress"})


def check_arguments(**arguments: Any) -> None:
    """Raise ``TypeError`` if an argument has a wrong type, and ``ValueError`` if its value is out of range."""
    for name, value in arguments.items():
        if value is None and name in _OPTIONAL:
            continue
        if name == "progress":
            if not callable(value):
                raise TypeError(f"progress must be a function that accepts two numbers, not {value!r}")
            continue
        type, description = _TYPES[name]
        if not isinstance(value, type) or (type is int and isinstance(value, bool)):
            raise TypeError(f"{name} must be {description}, not {value!r}")
    if arguments.get("target_file_bytes", 1) < 1:
        raise ValueError(f"target_file_bytes must be positive, not {arguments['target_file_bytes']}")
    if arguments.get("older_than", timedelta(0)) < timedelta(0):
        raise ValueError(f"older_than must be zero or positive, not {arguments['older_than']}")


def column_names(argument: str, value: Any) -> tuple[Any, ...]:
    """Return one or more column names as a tuple. Raises ``TypeError`` if a name is not text."""
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (value,)
    invalid = next((name for name in names if not isinstance(name, str)), None)
    if invalid is not None or isinstance(value, bytes):
        raise TypeError(f"{argument} must be a column name or a list of column names, not {value!r}")
    return names


def utc_time(timestamp: str | datetime) -> datetime:
    """Convert ``timestamp`` to UTC. A time without a time zone is interpreted as UTC.

    Raises ``TypeError`` if it is neither text nor a datetime, and ``ValueError`` if the text is not ISO 8601.
    """
    if isinstance(timestamp, str):
        try:
            time = datetime.fromisoformat(timestamp)
        except ValueError:
            raise ValueError(
                f"timestamp must be ISO 8601 text such as '2026-11-30T12:00:00Z', not {timestamp!r}"
            ) from None
    elif isinstance(timestamp, datetime):
        time = timestamp
    else:
        raise TypeError(f"timestamp must be ISO 8601 text or a datetime, not {timestamp!r}")
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def format_of(table: Any) -> str:
    """Return the format of a table, ``delta`` or ``iceberg``, from the prefix of its name or from its class.

    Raises ``ValueError`` for text that is not the name of a table, and ``TypeError`` for other objects.
    """
    hint = f"; write 'delta:{redact_uri(str(table))}'"
    if isinstance(table, str):
        format, _, name = table.partition(":")
        if format in ("delta", "iceberg") and name:
            check_path(name)
            return format
        error: type[Exception] = ValueError
        if format in ("delta", "iceberg"):
            hint = "; add the path or name"
        elif os.path.isfile(table):
            hint = f", not the file {redact_uri(table)!r}; the path of a table is that of its folder"
    else:
        packages = {each.__module__.partition(".")[0] for each in type(table).__mro__ if each.__name__ in _CLASSES}
        if packages & {"deltalake", "pyiceberg"}:
            return "delta" if "deltalake" in packages else "iceberg"
        error = TypeError
        hint = hint if hasattr(table, "__fspath__") else f", not {type(table).__name__}"
    raise error(f"table must be 'delta:PATH', 'iceberg:CATALOG.NAMESPACE.TABLE' or a table object{hint}")
