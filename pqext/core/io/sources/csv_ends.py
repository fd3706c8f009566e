"""Files of CSV that end within quotes: a quote that nobody closes makes one field of all rows behind it."""

from __future__ import annotations

import csv
import io
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

from pqext.core.base.errors import LimitError

_HEADER_BYTES = 1 << 16
"""Bytes among which the first row is looked for, before all that was read is searched."""
_PAUSE = 0.001
"""Seconds between two checks whether Arrow's thread has read to the end."""
_PAUSES = 1000
"""Checks after which Arrow's thread is taken to be idle. On a busy machine it may start late."""


def repeated(names: Iterable[str]) -> str | None:
    """The first of the names that is there twice."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


_lock = threading.Lock()
_within = 0
"""Threads that are within ``told_once``."""
_before: Callable[[Any], Any] = sys.unraisablehook


@contextmanager
def told_once() -> Iterator[None]:
    """Arrow's error of a row with a wrong number of fields is all that is told of it.

    A row that is not UTF-8 cannot be given to the function that decides on it, which Arrow would print too. Python has
    one hook for all threads: the first thread sets it, and the last one gives it back.
    """
    global _within, _before
    with _lock:
        if not _within:
            _before, sys.unraisablehook = sys.unraisablehook, _but_for_rows
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if not _within:
                sys.unraisablehook = _before


def _but_for_rows(told: Any) -> None:
    ours = str(getattr(told.object, "__module__", "")).startswith("pqext.")
    if not ours or not isinstance(told.exc_value, UnicodeDecodeError):
        _before(told)


class Ended:
    """A file of CSV, and behind its bytes a line that is no row of it, which ``seen`` tells the parser has met.

    Where a quote is open at the end of the file, the line becomes part of a field, and is not met. ``columns`` is the
    number of fields of a row where the file does not begin with their ``names``, which are known once a part is read.
    """

    closed = False

    def __init__(
        self, file: Any, delimiter: str = ",", quote: str = '"', escape: str | None = None, columns: int | None = None
    ) -> None:
        self.seen = False
        self.names: list[str] = []
        self._file = file
        self._form: Any = {"delimiter": delimiter, "quotechar": quote, "escapechar": escape}
        self._columns = columns
        self._line: bytes | None = None
        self._left = b""
        self._reading = threading.Lock()
        self._is_stopped = self._is_done = False

    def read(self, size: int) -> Any:
        """At most ``size`` bytes."""
        with self._reading:
            data = b"" if self._is_stopped else self._read(size)
            self._is_done |= not len(data)
            return data

    def _read(self, size: int) -> Any:
        data = self._file.read(size)
        if not len(data) and self._line is not None:
            data, self._left = self._left[:size], self._left[size:]
        elif len(data) and self._line is None:
            self._line = self._no_row(memoryview(data))
            self._left = b"\n" + self._line
        return data

    def stop(self) -> None:
        """Wait until nobody reads the file.

        A thread of Arrow's reads ahead. Where it does so while the interpreter ends, that aborts the process.
        """
        self._is_stopped = True
        for _ in range(_PAUSES):
            with self._reading:
                is_done = self._is_done
            time.sleep(_PAUSE)
            if is_done:
                break

    def _no_row(self, start: memoryview) -> bytes:
        """A line of one field, or of two where rows have one."""
        columns = self._columns
        if columns is None:
            names, is_whole = self._first_row(start[:_HEADER_BYTES])
            if not is_whole and len(start) > _HEADER_BYTES:
                names, is_whole = self._first_row(start)
            columns = len(names)
            self.names = names if is_whole else names[:-1]
        word = "".join(letter for letter in f"end-{token_hex(8)}" if letter not in self._form.values())
        return f"{word}{self._form['delimiter'] if columns == 1 else ''}".encode()

    def _first_row(self, start: memoryview) -> tuple[list[str], bool]:
        """The fields of the first row that is not blank, and whether it ends within ``start``."""
        text = io.StringIO(start.tobytes().removeprefix(b"\xef\xbb\xbf").decode("latin-1"), newline="")
        try:
            names = next((row for row in csv.reader(text, **self._form) if row), [])
        except csv.Error as error:  # of a name beyond csv.field_size_limit()
            raise LimitError(f"the names of columns cannot be read: {error}") from None
        return [name.encode("latin-1").decode(errors="replace") for name in names], bool(text.read(1))

    def is_met(self, row: Any) -> bool:
        """Is a row that the parser refuses the line behind the file?"""
        found = self._line is not None and row.text.encode() == self._line
        self.seen |= found
        return found
