"""Errors that pqext raises, with the location of the problem, and functions that issue warnings.

Bad arguments raise ``ValueError`` or ``TypeError``. All errors about a file, a value or an unsupported feature derive
from :class:`ParquetError`. Messages never contain key material.
"""

from __future__ import annotations

import logging
import sys
import warnings
from types import TracebackType
from typing import Any

from pqext.core.base.text import escape_text

_LIBRARY = __name__.partition(".")[0]
_logger = logging.getLogger(__name__)
_INTERNAL = (_LIBRARY, "functools", "contextlib")
"""Packages whose frames are not the user's: this library, and the standard modules that wrap its functions."""


class AnnotationWarning(UserWarning):
    """Warning that a column is read as its physical type, because its logical type is unknown or invalid for the
    column.
    """


class ParquetError(ValueError):
    """Base of all pqext errors.

    The text contains the known parts of the location before the remedy: ``path``, ``row_group``, ``column`` (dotted
    path in the schema) and ``offset`` (byte in the file).
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.row_group = row_group
        self.column = column
        self.offset = offset

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_error, (type(self), self.args, self.__dict__)

    def locate(
        self,
        *,
        path: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
        offset: int | None = None,
    ) -> None:
        """Set the path, row group, column and offset of the error, unless they are already known."""
        self.path = self.path if self.path is not None else path
        self.row_group = self.row_group if self.row_group is not None else row_group
        self.column = self.column if self.column is not None else column
        self.offset = self.offset if self.offset is not None else offset

    def __str__(self) -> str:
        location = [
            f"{label} {value}"
            for label, value in (
                ("file", self.path),
                ("row group", self.row_group),
                ("column", self.column),
                ("offset", self.offset),
            )
            if value is not None
        ]
        return escape_text(add_location(self.message, ", ".join(location)) if location else self.message)


def add_location(message: str, location: str) -> str:
    """Insert a location into an error message in brackets, after the problem and before the remedy.

    >>> add_location("a page is corrupt; pass on_corrupt='skip'", "column a")
    "a page is corrupt [column a]; pass on_corrupt='skip'"
    """
    problem, separator, remedy = message.partition("; ")
    return f"{problem} [{location}]{separator}{remedy}"


def _restore_error(error_type: type[ParquetError], arguments: tuple[Any, ...], state: dict[str, Any]) -> ParquetError:
    """Restore a pickled error without calling its constructor."""
    # Python creates an object by its first base, which may not be the base that defines its layout.
    error = OSError.__new__(error_type) if issubclass(error_type, OSError) else error_type.__new__(error_type)
    error.args = arguments
    error.__dict__.update(state)
    return error


class CorruptFileError(ParquetError):
    """The bytes contradict the format: the file is truncated, corrupt or was written incorrectly."""


class InvalidValueError(CorruptFileError):
    """A value is out of range for its column's type. ``slot`` is its index among the converted values of ``leaf``."""

    leaf: int | None = None
    slot: int | None = None


class OffsetIndexError(CorruptFileError):
    """The pages of a column chunk do not match the offsets or row counts in the offset index.

    ``leaf`` is the column index of the chunk.
    """

    leaf: int | None = None


class UnsupportedError(ParquetError):
    """The file is well formed but uses a ``feature`` that pqext does not support.

    ``row`` is the index of the row in the array if one value has the feature.
    """

    row: int | None = None

    def __init__(self, message: str, *, feature: str, path: str | None = None, column: str | None = None) -> None:
        super().__init__(message, path=path, column=column)
        self.feature = feature


class SchemaMismatchError(ParquetError):
    """The schemas of files that are read as one table cannot be unified."""


class LimitError(ParquetError):
    """A size in the file exceeds a limit of :class:`pqext.core.base.limits.Limits`. Raise this limit to continue."""


class MemoryLimitError(LimitError):
    """The decoded data of a call exceeds ``Limits.memory_bytes``.

    ``is_final`` is set if reading fewer rows at a time would not help.
    """

    is_final = False


class ArrayLimitError(MemoryLimitError):
    """The values do not fit into one Arrow array; read fewer rows at a time."""


class ExpansionError(MemoryLimitError):
    """The dictionary values of a page would expand to far more bytes than the requested rows need. Readers catch this
    error and use views.
    """


class SourceError(ParquetError, OSError):
    """A file's bytes cannot be fetched because of a network, server or object-store failure.

    ``path`` is the URL without credentials and query; ``offset`` is the start of the requested bytes.
    """


class ChangedFileError(SourceError):
    """The file was replaced, changed or removed between planning and reading; read it again."""


class EncryptionError(ParquetError):
    """A module cannot be decrypted or authenticated."""


class VariantError(ParquetError):
    """The bytes of a variant, or the JSON text that it is created from, violate a rule of the specification.

    ``rule`` is the id of the rule in the ledger (``specs/``); None if the rule has no id. ``row`` is the index of the
    row in the array, and ``offset`` the byte offset in the value, the metadata or the JSON text.
    """

    def __init__(
        self, message: str, *, rule: str | None = None, row: int | None = None, offset: int | None = None
    ) -> None:
        where = f"row {row}: " if row is not None else ""
        super().__init__(where + message + (f" ({rule})" if rule else ""), offset=offset)
        self.rule = rule
        self.row = row


class VariantLimitError(VariantError, LimitError):
    """A variant, or the JSON text that it is created from, exceeds a limit on nesting or size. The caller may raise the
    limit.
    """


class GeometryError(ParquetError):
    """The bytes or the coordinate reference system of a geometry violate a rule of the specification.

    For the attributes, see :class:`VariantError`.

    In addition, ``reason`` is the message without row and rule.
    """

    def __init__(
        self, message: str, *, rule: str | None = None, row: int | None = None, offset: int | None = None
    ) -> None:
        where = f"row {row}: " if row is not None else ""
        super().__init__(where + message + (f" ({rule})" if rule else ""), offset=offset)
        self.reason = message
        self.rule = rule
        self.row = row

    def shift_row(self, rows: int) -> GeometryError:
        """Return a copy of the error with the row number increased by ``rows``."""
        row = None if self.row is None else self.row + rows
        return GeometryError(self.reason, rule=self.rule, row=row, offset=self.offset)


class CorruptDataWarning(UserWarning):
    """Warning that corrupt rows were skipped, because ``on_corrupt="skip"`` was passed."""


class ErrorPathContext:
    """Context that adds the file's path to errors, and turns ``RecursionError`` of deep schemas into ``LimitError``."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ParquetError):
            error.locate(path=self._path)
        elif isinstance(error, RecursionError):
            message = "the schema is nested too deeply for Python's stack"
            raise LimitError(message, path=self._path) from None


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning like ``warnings.warn``, attributed to the first caller outside this library, and log it.

    Python shows a warning once for each caller; the log contains all warnings.
    """
    text = escape_text(message)
    _logger.info("%s: %s", category.__name__, text)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def warn_about_file(path: str | None, message: str, category: type[Warning]) -> None:
    """Issue a warning like :func:`warn`, prefixed with the file's path if it is known."""
    warn(f"{path}: {message}" if path else message, category)
