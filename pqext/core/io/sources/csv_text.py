"""Prepare the text of CSV files for the parser: convert it to UTF-8, and remove leading lines and comments.

Arrow's parser reads only UTF-8 and does not support comments. :class:`CsvText` is a file with text that the parser can
read, and :func:`add_column_name` adds column names to its errors. A file that ends within quotes is an error, because
all rows after an unclosed quote would become one field.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import Any

from pqext.core.base.errors import CorruptFileError, LimitError

DELIMITERS = ",;\t|"
"""Delimiters that are detected, in order of preference."""
_CHUNK_BYTES = 1 << 20
_MAX_ROW_BYTES = 32 << 20
"""Maximum number of bytes that are searched for the end of a row."""
_SAMPLE_BYTES = 1 << 16
_SAMPLE_ROWS = 100
_UTF_8 = ("utf-8", "utf-8-sig", "ascii")
_ARROW_COLUMN = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?")
_HEADER_BYTES = 1 << 16
"""Number of bytes to search for the first row before all bytes read so far are searched."""
_PAUSE = 0.001
"""Seconds between two checks whether Arrow's thread has read to the end."""
_PAUSES = 1000
"""Number of checks after which Arrow's thread counts as idle. On a busy machine it may start late."""


class CsvText:
    """Binary file that converts a CSV file in any encoding to UTF-8 text.

    The first ``skip_rows`` lines are skipped, and so are lines that begin with the character ``comment`` outside
    quotes.
    """

    closed = False

    def __init__(
        self, file: Any, *, encoding: str | None = None, skip_rows: int = 0, comment: str | None = None,
        delimiter: str = ",", quote: str = '"', escape: str | None = None,
    ) -> None:
        self._file = file
        self._encoding = encoding_name(encoding)
        self._decoder = None if self._encoding in _UTF_8 else codecs.getincrementaldecoder(self._encoding)()
        self._skip_rows = skip_rows
        self._pending = b""
        self._consumed = 0
        self._is_done = False
        self._partial = b""  # text after the last complete row
        self._tokens = None if comment is None else _tokens(comment, delimiter, quote, escape)

    def peek(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end of the file, without consuming them."""
        data = self.read(size)
        self._pending = data + self._pending
        return data

    def read(self, size: int) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end of the file."""
        parts, length = [self._pending], len(self._pending)
        while length < size and not self._is_done:
            parts.append(self._read_text(size - length))
            length += len(parts[-1])
        data = b"".join(parts) if len(parts) > 1 else parts[0]
        self._pending = data[size:]
        return data[:size] if self._pending else data

    def _read_text(self, size: int) -> bytes:
        """Return about ``size`` bytes of text. The result may be empty before the end of the file."""
        is_plain = self._decoder is None and self._tokens is None and not self._skip_rows
        raw = bytes(self._file.read(size if is_plain else _CHUNK_BYTES))
        self._is_done = not raw
        if is_plain:
            return raw
        text = self._decode(raw)
        while self._skip_rows and text:
            _, newline, text = text.partition(b"\n")
            self._skip_rows -= bool(newline)
        return text if self._tokens is None else self._without_comments(text)

    def _decode(self, raw: bytes) -> bytes:
        if self._decoder is None:
            return raw
        waiting = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            offset = self._consumed - waiting + error.start
            message = f"the text is not valid {self._encoding}; pass the encoding of the file"
            raise CorruptFileError(message, offset=offset) from None
        self._consumed += len(raw)
        return text.encode()

    def _without_comments(self, text: bytes) -> bytes:
        """Return the complete rows of ``text`` without comment lines.

        An incomplete row is retained for the next call.
        """
        assert self._tokens is not None
        text = self._partial + text
        limit = len(text)
        spans: list[tuple[int, int]] = []
        comments: list[tuple[int, int]] = []
        for match in self._tokens.finditer(text):
            if match.end() == len(text) and not self._is_done:  # the token may continue
                limit = match.start()
                break
            (comments if match.lastgroup == "comment" else spans).append(match.span())
        end = limit if self._is_done else _last_line_end(text, spans, limit)
        self._partial = text[end:]
        if len(self._partial) > _MAX_ROW_BYTES:
            raise LimitError(f"a row is longer than {_MAX_ROW_BYTES:,} bytes; a quote may be unclosed")
        retained, start = [], 0
        for first, stop in comments:
            if first < end:
                retained.append(text[start:first])
                start = stop
        return b"".join([*retained, text[start:end]])


def _tokens(comment: str, delimiter: str, quote: str, escape: str | None) -> re.Pattern[bytes]:
    """Compile a pattern that matches quoted fields and comment lines."""
    mark, between, quoted = (re.escape(item.encode()) for item in (comment, delimiter, quote))
    escaped = b"" if escape is None else re.escape(escape.encode())
    within = rb"[^%b%b]" % (quoted, escaped)
    pair = quoted * 2 + (b"|" + escaped + rb"[\s\S]" if escaped else b"")
    field = rb"(?:(?<=[\n\r%b])|\A)%b%b*+(?:(?:%b)%b*+)*+(?:%b|\Z)" % (between, quoted, within, pair, within, quoted)
    line = rb"(?:(?<=[\n\r])|\A)(?P<comment>%b[^\n\r]*(?:\r\n|\n|\r|\Z))" % mark
    return re.compile(field + b"|" + line)


def _last_line_end(text: bytes, quoted_spans: Sequence[tuple[int, int]], limit: int) -> int:
    """Return the offset after the last line break before ``limit`` that is not in a quoted field."""
    for first, stop in reversed(quoted_spans):
        at = text.rfind(b"\n", stop, limit)
        if at >= 0:
            return at + 1
        limit = first
    return text.rfind(b"\n", 0, limit) + 1


def encoding_name(encoding: str | None) -> str:
    """Return the normalised name of an encoding, by default UTF-8. Raises ``ValueError`` for an unknown name."""
    try:
        return codecs.lookup(encoding or "utf-8").name
    except LookupError:
        raise ValueError(f"encoding {encoding!r} is unknown; use, for example, latin-1, cp1252 or utf-16") from None


def detect_delimiter(text: bytes, quote: str = '"', comment: str | None = None) -> str:
    """Detect the delimiter of a CSV file that begins with ``text``. The default is a comma.

    The result is the first of ``DELIMITERS`` that splits all of the first rows into the same number of fields, more
    than one. A delimiter other than the comma must also split the first row into more fields than the comma.

    >>> detect_delimiter(b"id;price\\n1;1,5\\n"), detect_delimiter(b"note\\nfirst; second\\n")
    (';', ',')
    """
    sample = text[:_SAMPLE_BYTES].removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    is_cut = len(sample) < len(text)
    counts = {item: _field_counts(sample, item, quote, comment, is_cut) for item in DELIMITERS}
    commas = counts[","]
    for delimiter, result in counts.items():
        if len(set(result)) == 1 and result[0] > 1 and (delimiter == "," or result[0] > commas[0]):
            return delimiter
    return ","


def _field_counts(text: str, delimiter: str, quote: str, comment: str | None, is_truncated: bool) -> list[int]:
    """Count the fields in each of the first complete rows. Return ``[0]`` if there are no rows."""
    counts = []
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote)
    try:
        for row in rows:
            if row and not (comment is not None and row[0].startswith(comment)):
                counts.append(len(row))
            if len(counts) > _SAMPLE_ROWS:
                break
    except csv.Error:  # a field exceeds csv.field_size_limit()
        pass
    return (counts[:-1] if is_truncated and len(counts) > 1 else counts) or [0]


def add_column_name(reason: str, names: Sequence[str], skip_rows: int = 0) -> str:
    """Replace the column number in an error message of Arrow's CSV reader with row and column name. The header is row
    1.

    >>> add_column_name("In CSV column #1: Row #3: CSV conversion error to int64: invalid value 'x'", ["a", "b"])
    "row 3, column 'b': CSV conversion error to int64: invalid value 'x'"
    """
    match = _ARROW_COLUMN.match(reason)
    if match is None:
        return reason
    index, row = int(match[1]), match[2]
    column = repr(names[index]) if index < len(names) else f"number {index + 1}"
    where = "" if row is None else f"row {int(row) + skip_rows}, "
    return f"{where}column {column}: {reason[match.end():]}"


def error_column(reason: str) -> int | None:
    """Return the column position in an error message of Arrow's CSV reader; None for a message without a column."""
    match = _ARROW_COLUMN.match(reason)
    return None if match is None else int(match[1])


def is_encoding_error(reason: str) -> bool:
    """Return whether an error message of Arrow's CSV reader reports text that is not UTF-8."""
    return "invalid UTF8" in reason


def find_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that occurs more than once; None if all names are distinct."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


_lock = threading.Lock()
_within = 0
"""Number of threads within ``suppress_arrow_messages``."""
_before: Callable[[Any], Any] = sys.unraisablehook


@contextmanager
def suppress_arrow_messages() -> Iterator[None]:
    """Suppress the message that Arrow prints about a row with a wrong number of fields. The error is still raised.

    Arrow cannot pass a row that is not UTF-8 to the callback, and would print an error. Python has one hook for all
    threads, so the first thread sets it and the last thread restores it.
    """
    global _within, _before
    with _lock:
        if not _within:
            _before, sys.unraisablehook = sys.unraisablehook, _ignore_row_errors
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if not _within:
                sys.unraisablehook = _before


def _ignore_row_errors(event: Any) -> None:
    ours = str(getattr(event.object, "__module__", "")).startswith("pqext.")
    if not ours or not isinstance(event.exc_value, UnicodeDecodeError):
        _before(event)


class EndMarkedFile:
    """CSV file with a marker line after its end. ``seen`` is set when the parser reports the marker as an invalid row.

    If a quote is open at the end of the file, the marker becomes part of a field and is not reported. ``columns`` is
    the number of fields in a row, if the file does not start with column names. Otherwise the column names are read
    into ``names``.
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
        """Return at most ``size`` bytes of the file and the marker line; no bytes after :meth:`stop`."""
        with self._reading:
            data = b"" if self._is_stopped else self._read(size)
            self._is_done |= not len(data)
            return data

    def _read(self, size: int) -> Any:
        data = self._file.read(size)
        if not len(data) and self._line is not None:
            data, self._left = self._left[:size], self._left[size:]
        elif len(data) and self._line is None:
            self._line = self._marker_line(memoryview(data))
            self._left = b"\n" + self._line
        return data

    def stop(self) -> None:
        """Wait until all reads have ended.

        An Arrow thread reads ahead. The process aborts if it does so while the interpreter shuts down.
        """
        self._is_stopped = True
        for _ in range(_PAUSES):
            with self._reading:
                is_done = self._is_done
            time.sleep(_PAUSE)
            if is_done:
                break

    def _marker_line(self, start: memoryview) -> bytes:
        """Return the marker line. It has one field, or two fields if the rows have one, so that the parser rejects it.

        If the column count is unknown, read it from the header in ``start``, and set ``names``.
        """
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
        """Return the fields of the first non-blank row, and whether the row ends within ``start``."""
        text = io.StringIO(start.tobytes().removeprefix(b"\xef\xbb\xbf").decode("latin-1"), newline="")
        try:
            names = next((row for row in csv.reader(text, **self._form) if row), [])
        except csv.Error as error:  # a name exceeds csv.field_size_limit()
            raise LimitError(f"column names cannot be read: {error}") from None
        return [name.encode("latin-1").decode(errors="replace") for name in names], bool(text.read(1))

    def is_marker_line(self, row: Any) -> bool:
        """Return whether a rejected row is the marker line, and record it in ``seen``."""
        result = self._line is not None and row.text.encode() == self._line
        self.seen |= result
        return result
