"""Errors that pqext raises, each with its location, and functions that issue warnings.

Bad arguments are ``ValueError`` or ``TypeError``; everything that is wrong with a file, a value or a
requested feature derives from :class:`ParquetError`. No message ever contains key material.
"""

from __future__ import annotations

import sys
import warnings
from types import TracebackType
from typing import Any

from pqext.core.base.text import visible

_LIBRARY = __name__.partition(".")[0]
_BETWEEN = (_LIBRARY, "functools", "contextlib")
"""Whose frames are no user's: the library's, and those of cached properties and contexts within it."""


class AnnotationWarning(UserWarning):
    """A column is read as less than its annotation says: the logical type is unknown or does not suit the column."""


class ParquetError(ValueError):
    """Base of all pqext errors.

    The message is followed by whatever is known of the place: ``path``, ``row_group``, ``column``
    (dotted path in the schema) and ``offset`` (byte in the file).
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
        return _unpickled, (type(self), self.args, self.__dict__)

    def locate(
        self,
        *,
        path: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
        offset: int | None = None,
    ) -> None:
        """Fill in what an outer layer knows of the place and an inner one did not."""
        self.path = self.path if self.path is not None else path
        self.row_group = self.row_group if self.row_group is not None else row_group
        self.column = self.column if self.column is not None else column
        self.offset = self.offset if self.offset is not None else offset

    def __str__(self) -> str:
        place = [
            f"{label} {value}"
            for label, value in (
                ("file", self.path),
                ("row group", self.row_group),
                ("column", self.column),
                ("offset", self.offset),
            )
            if value is not None
        ]
        return visible(f"{self.message} [{', '.join(place)}]" if place else self.message)


def _unpickled(kind: type[ParquetError], arguments: tuple[Any, ...], state: dict[str, Any]) -> ParquetError:
    """An error as it was in the process that it comes from, whatever its class takes to be made."""
    # Of two bases, Python makes an object by the first one, which may not be the one that lays it out.
    error = OSError.__new__(kind) if issubclass(kind, OSError) else kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(state)
    return error


class CorruptFileError(ParquetError):
    """The bytes contradict the format: the file is truncated, damaged or wrongly written."""


class InvalidValueError(CorruptFileError):
    """A value lies outside the range of its column's type: ``slot`` of those that were converted of column ``leaf``."""

    leaf: int | None = None
    slot: int | None = None


class OffsetIndexError(CorruptFileError):
    """The pages of a column chunk are not where its offset index places them, or hold other rows.

    ``leaf`` is the column index of the chunk.
    """

    leaf: int | None = None


class UnsupportedError(ParquetError):
    """The file is well formed but uses a ``feature`` that this reader does not know."""

    def __init__(self, message: str, *, feature: str, path: str | None = None, column: str | None = None) -> None:
        super().__init__(message, path=path, column=column)
        self.feature = feature


class SchemaMismatchError(ParquetError):
    """Files that are to be read as one table have schemas that do not go together."""


class LimitError(ParquetError):
    """A size in the file exceeds one of :class:`pqext.core.base.limits.Limits`; raise the limit to go on."""


class MemoryLimitError(LimitError):
    """What a call holds decoded exceeds ``Limits.memory_bytes``.

    ``is_final``: reading fewer rows at a time would not help.
    """

    is_final = False


class ArrayLimitError(MemoryLimitError):
    """More values than one Arrow array holds: fewer rows go into each."""


class ExpansionError(MemoryLimitError):
    """The dictionary of a page expands to far more bytes than the requested rows have: view its entries instead."""


class SourceError(ParquetError, OSError):
    """The bytes of a file cannot be had: the network, a server or a store fails, whatever the file holds.

    ``path`` is the URL without credentials and query, ``offset`` where the bytes begin that were asked for.
    """


class ChangedFileError(SourceError):
    """The file was replaced, changed or removed between planning and reading it: read it again."""


class EncryptionError(ParquetError):
    """A module cannot be decrypted or authenticated."""


class VariantError(ParquetError):
    """A variant's bytes, or the JSON it should come from, break a rule.

    ``rule`` is the id in the ledger (``specs/``) where there is one, ``row`` the row in the array and
    ``offset`` the byte within the value, the metadata or the JSON text.
    """

    def __init__(
        self, message: str, *, rule: str | None = None, row: int | None = None, offset: int | None = None
    ) -> None:
        where = f"row {row}: " if row is not None else ""
        super().__init__(where + message + (f" ({rule})" if rule else ""), offset=offset)
        self.rule = rule
        self.row = row


class VariantLimitError(VariantError, LimitError):
    """A variant, or the JSON it should come from, exceeds a limit that the caller may raise, on nesting or on size."""


class GeometryError(ParquetError):
    """A geometry's bytes or its coordinate reference system break a rule; fields as in :class:`VariantError`.

    ``reason`` is the message without row and rule.
    """

    def __init__(
        self, message: str, *, rule: str | None = None, row: int | None = None, offset: int | None = None
    ) -> None:
        where = f"row {row}: " if row is not None else ""
        super().__init__(where + message + (f" ({rule})" if rule else ""), offset=offset)
        self.reason = message
        self.rule = rule
        self.row = row


class CorruptDataWarning(UserWarning):
    """Rows were left out because their bytes are damaged and ``on_corrupt="skip"`` asked for that."""


class ErrorsNamePath:
    """Adds the file's path to errors that pass through, and types that of a schema too deep for Python's stack."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ParquetError):
            error.locate(path=self._path)
        elif isinstance(error, RecursionError):
            message = "the schema nests deeper than Python's stack lets it be followed"
            raise LimitError(message, path=self._path) from None


def warn(message: str, category: type[Warning]) -> None:
    """As ``warnings.warn``, at the first caller that is not of this library; in its own threads that is Python's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)


def warn_of_file(path: str | None, message: str, category: type[Warning]) -> None:
    """As :func:`warn`, of the file at ``path``, where it has one."""
    warn(f"{path}: {message}" if path else message, category)
