"""Files of CSV that end within quotes: a quote that nobody closes makes one field of all rows behind it."""

from __future__ import annotations

import csv
import io
from typing import Any

_HEADER_BYTES = 1 << 16
"""Bytes among which the first row is looked for."""


class Ended:
    """A file of CSV, and behind its bytes a line that is no row of it, which ``seen`` tells the parser has met.

    Where a quote is open at the end of the file, the line becomes part of a field, and is not met. ``columns`` is the
    number of fields of a row where the file does not begin with their names.
    """

    closed = False

    def __init__(
        self, file: Any, delimiter: str = ",", quote: str = '"', escape: str | None = None, columns: int | None = None
    ) -> None:
        self.seen = False
        self._file = file
        self._form: Any = {"delimiter": delimiter, "quotechar": quote, "escapechar": escape}
        self._columns = columns
        self._line: bytes | None = None
        self._left = b""

    def read(self, size: int) -> Any:
        """At most ``size`` bytes."""
        data = self._file.read(size)
        if not len(data) and self._line is not None:
            data, self._left = self._left[:size], self._left[size:]
        elif len(data) and self._line is None:
            self._line = self._no_row(memoryview(data)[:_HEADER_BYTES].tobytes())
            self._left = b"\n" + self._line
        return data

    def _no_row(self, start: bytes) -> bytes:
        """A line of one field, or of two where rows have one."""
        columns = self._columns
        if columns is None:
            text = start.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
            columns = next((len(row) for row in csv.reader(io.StringIO(text, newline=""), **self._form) if row), 0)
        word = "".join(letter for letter in "end-of-file" if letter not in self._form.values())
        return f"{word}{self._form['delimiter'] if columns == 1 else ''}".encode()

    def is_met(self, row: Any) -> bool:
        """Is a row that the parser refuses the line behind the file?"""
        found = self._line is not None and row.text.encode() == self._line
        self.seen |= found
        return found
