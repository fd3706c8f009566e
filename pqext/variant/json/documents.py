"""Split JSON text into chunks of complete lines or documents, and detect the layout of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import VariantError, VariantLimitError

READ_BYTES = 8 << 20
"""Bytes of text that are read and parsed at a time, unless a line is longer."""
SAMPLE_BYTES = 4 << 20
"""Bytes of text to infer a shredding schema from."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Form = Literal["auto", "lines", "documents", "array"]
_SPACE = b" \t\r\n"
_SLICE = 1 << 20
"""Bytes scanned with one set of temporary arrays."""
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")] = 1
_STEPS[list(b"}]")] = -1


def split_lines(text: memoryview, parts: int, min_bytes: int) -> list[memoryview]:
    """Split ``text`` into at most ``parts`` chunks of complete lines.

    The chunks have similar sizes. ``min_bytes`` is their approximate minimum size.
    """
    parts = max(1, min(parts, len(text) // min_bytes))
    pieces = []
    start = 0
    for i in range(1, parts):
        stop = _offset_after_newline(text, max(start, len(text) * i // parts))
        if start < stop < len(text):
            pieces.append(text[start:stop])
            start = stop
    return [*pieces, text[start:]]


def first_lines(text: memoryview, size: int) -> memoryview:
    """Return the lines that begin within the first ``size`` bytes."""
    return text[: _offset_after_newline(text, size - 1)]


def _offset_after_newline(text: memoryview, offset: int) -> int:
    """Return the offset after the first newline at or after ``offset``; the end of the text without a newline."""
    while offset < len(text):
        result = bytes(text[offset : offset + 4096]).find(b"\n")
        if result >= 0:
            return offset + result + 1
        offset += 4096
    return len(text)


def read_lines(
    file: IO[bytes],
    start: int = 0,
    stop: int | None = None,
    *,
    chunk_bytes: int = READ_BYTES,
    max_line_bytes: int,
    path: str | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin from byte ``start`` to ``stop`` of a file, or to its end if ``stop`` is None.

    Lines are yielded in chunks of about ``chunk_bytes``, each with its offset in the file. A line belongs to the range
    where it begins, so adjacent ranges yield every line once. If no line begins in a range, nothing is read beyond its
    end. A byte order mark at the start of the file is ignored. The file is read from its current position if ``start``
    is 0, and only forward. Raises ``VariantLimitError`` if a line is longer than ``max_line_bytes``, without reading
    much more.
    """
    at, text = start, b""
    held: list[bytes] = []  # text of the line that begins at `at`, and its length
    length = 0
    if start > 0:
        result = _find_first_line(file, start, stop, chunk_bytes)
        if result is None:
            return
        at, text = result
    first = start == 0
    while stop is None or at < stop:
        # Read to the end of the range, then in steps to the end of the line that crosses it.
        left = chunk_bytes if stop is None else stop - at - length
        text = text or file.read(max(min(chunk_bytes, left), min(chunk_bytes, 64 << 10)))
        if first:
            first = False
            while 0 < len(text) < 3 and (more := file.read(3 - len(text))):
                text += more
            if text.startswith(_BYTE_ORDER_MARK):
                text, at = text[3:], 3
                stop = None if stop is None else max(stop, at + 1)  # the first line begins before its mark
                if not text:
                    continue
        if not text:
            if held:
                yield at, b"".join(held)
            return
        end = _find_end_of_lines(text, at + length, stop)
        if end:
            piece = b"".join([*held, text[:end]]) if held or end < len(text) else text
            yield at, piece
            at += len(piece)
            held, length = [], 0
        if end < len(text):
            held.append(text[end:])
            length += len(text) - end
            _check_line_length(length, max_line_bytes, at, path)
        text = b""


def _find_first_line(file: IO[bytes], start: int, stop: int | None, chunk_bytes: int) -> tuple[int, bytes] | None:
    """Find the first line that begins at or after ``start`` and before ``stop``.

    Returns its offset and the text read from there, or None.
    """
    at = start - 1  # a line begins at `start` if the preceding byte ends a line
    file.seek(at)
    while stop is None or at < stop - 1:
        text = file.read(chunk_bytes if stop is None else min(chunk_bytes, stop - 1 - at))
        if not text:
            return None
        end = text.find(b"\n") + 1
        if end:
            return at + end, text[end:]
        at += len(text)
    return None


def _find_end_of_lines(text: bytes, offset: int, stop: int | None) -> int:
    """Return the end of the last complete line in ``text`` that begins before ``stop``.

    ``offset`` is the offset of ``text`` in the file.
    """
    if stop is None or offset + len(text) < stop:
        return text.rfind(b"\n") + 1
    # The last line begins at or before stop - 1: it ends with the first newline from there on.
    return text.find(b"\n", max(0, stop - 1 - offset)) + 1 or text.rfind(b"\n", 0, max(0, stop - 1 - offset)) + 1


def _check_line_length(size: int, limit: int, offset: int, path: str | None) -> None:
    if size > limit:
        remedy = "increase max_bytes (in Spark, the option max_line_bytes)"
        error = VariantLimitError(f"a line is longer than {limit} bytes; {remedy}", offset=offset)
        error.locate(path=path)
        raise error


def count_newlines(file: IO[bytes], size: int) -> int:
    """Count the newlines in the next ``size`` bytes of a file."""
    count = 0
    while size > 0 and (text := file.read(min(READ_BYTES, size))):
        count += text.count(b"\n")
        size -= len(text)
    return count


class Splitter:
    """Splitter of text that arrives in chunks. JSON documents end at brackets and commas outside strings.

    With ``base`` 0, documents are consecutive objects or arrays. With ``base`` 1, they are the elements of one array,
    whose opening bracket was removed.
    """

    def __init__(self, base: int) -> None:
        self.base = base
        self.depth = base
        self.done = False
        """Whether the array has ended."""
        self._in_string = False
        self._escaped = False

    def find_ends(self, text: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the end offsets of the documents in ``text``. A comma belongs to the preceding document."""
        ends = [self._find_slice_ends(text[start : start + _SLICE]) + start for start in range(0, len(text), _SLICE)]
        return np.concatenate(ends) if ends else np.empty(0, np.int64)

    def _find_slice_ends(self, text: NDArray[np.uint8]) -> NDArray[np.int64]:
        quotes = np.flatnonzero(text == ord('"'))
        quotes = quotes[~self._flag_escaped_quotes(text, quotes)]
        marks = np.flatnonzero((_STEPS[text] != 0) | (text == ord(",")) if self.base else _STEPS[text] != 0)
        inside = (np.searchsorted(quotes, marks) + self._in_string) & 1
        self._in_string = bool((len(quotes) + self._in_string) & 1)
        marks = marks[inside == 0]
        depths = self.depth + np.cumsum(_STEPS[text[marks]], dtype=np.int64)
        if not self.base:  # an unmatched bracket is a fault in its own document, not in the following documents
            depths -= np.minimum(np.minimum.accumulate(depths), 0)
        self.depth = int(depths[-1]) if len(depths) else self.depth
        if not self.base:
            at_base = (depths <= 0) & (_STEPS[text[marks]] < 0)
        else:
            at_base = ((depths == 1) & (text[marks] == ord(","))) | (depths <= 0)
        ends: NDArray[np.int64] = marks[at_base]
        return np.add(ends, 1)

    def _flag_escaped_quotes(self, text: NDArray[np.uint8], quotes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return a mask of the quotes that follow an odd number of backslashes."""
        slashes = text == ord("\\")
        before, self._escaped = self._escaped, False
        if not len(text) or not (slashes.any() or before):
            return np.zeros(len(quotes), bool)
        places = np.arange(len(text))
        last = np.maximum.accumulate(np.where(slashes, -1, places))  # the last byte other than a backslash
        run = places - last
        run[last < 0] += before  # a backslash at the end of the preceding text also counts
        self._escaped = bool(slashes[-1] and run[-1] & 1)
        escaped = np.zeros(len(quotes), bool)
        if len(quotes):
            escaped = np.where(quotes > 0, slashes[quotes - 1] & (run[quotes - 1] & 1 == 1), before)
        return escaped


def detect_layout(head: bytes, is_complete: bool) -> Form:
    """Detect the layout of documents from ``head``, the start of a text. ``is_complete`` means that no text follows.

    The layout is lines, unless the first document continues after the end of its line and that line ends with a
    bracket, a comma or a colon. A single array that spans the complete text is read as its elements.
    """
    text = head.lstrip(_SPACE)
    if text[:1] not in (b"{", b"["):
        return "lines"
    ends = Splitter(0).find_ends(np.frombuffer(text, np.uint8))
    line = text.find(b"\n")
    if len(ends):
        alone = is_complete and not text[ends[0] :].strip(_SPACE)
        if text[:1] == b"[" and alone:
            return "array"
        if not 0 <= line < ends[0]:
            return "lines"
    elif text[:1] == b"[" and line < 0:
        return "lines" if is_complete else "array"
    if line < 0 or text[:line].rstrip(_SPACE)[-1:] not in (b"{", b"[", b",", b":"):
        return "lines"
    return "array" if text[:1] == b"[" and not len(ends) else "documents"


Documents = tuple[bytes, NDArray[np.int64], int]
"""Text, the end of each document in it, and the number of newlines before it."""


def read_documents(
    file: IO[bytes], layout: Form, *, chunk_bytes: int, max_bytes: int, path: str | None = None
) -> Iterator[Documents]:
    """Yield the documents of a file as :data:`Documents`, in chunks of about ``chunk_bytes``.

    Raises ``VariantLimitError`` if a document is longer than ``max_bytes``, without reading much more, and
    ``VariantError`` if text follows an array of documents.
    """
    splitter = Splitter(1 if layout == "array" else 0)
    pending, newlines, first, has_documents = b"", 0, layout == "array", False
    while data := file.read(max(chunk_bytes, len(pending))):  # a long document is copied only once
        if first:
            start = len(data) - len(data.lstrip(_SPACE))
            first = start == len(data)
            if first:
                pending += data
                if len(pending) > max_bytes:
                    message = f"the first {max_bytes} bytes contain no document"
                    raise _document_error(message, 1, path, VariantLimitError)
                continue
            if data[start : start + 1] != b"[":
                raise _document_error("an array of documents begins with [", newlines + pending.count(b"\n") + 1, path)
            data = data[:start] + b" " + data[start + 1 :]  # which does not affect documents
        ends = splitter.find_ends(np.frombuffer(data, np.uint8)) + len(pending)
        text = pending + data
        if layout == "array" and splitter.depth <= 0:
            text, ends = _finish_array(text, ends, file, chunk_bytes, path, newlines, has_documents)
            if len(ends):
                yield text, ends, newlines
            return
        stop = int(ends[-1]) if len(ends) else 0
        if stop:
            yield _blank_commas(text[:stop], ends, layout), ends, newlines
            has_documents = True
            newlines += text.count(b"\n", 0, stop)
        pending = text[stop:]
        if len(pending) > max_bytes:
            message = f"a document is longer than {max_bytes} bytes; increase max_bytes"
            raise _document_error(message, newlines + 1, path, VariantLimitError)
    if layout == "array" and not first:
        raise _document_error("the file ends within its array of documents", newlines + pending.count(b"\n") + 1, path)
    if pending.strip(_SPACE):
        yield pending, np.array([len(pending)]), newlines  # the parser reports the error


def _document_error(
    message: str, line: int, path: str | None, error_type: type[VariantError] = VariantError
) -> VariantError:
    error = error_type(f"line {line}: {message}")
    error.locate(path=path)
    return error


def _blank_commas(text: bytes, stops: NDArray[np.int64], layout: Form) -> bytes:
    """Replace the commas between the elements of an array, and its closing bracket, with spaces."""
    if layout != "array":
        return text
    data = np.frombuffer(text, np.uint8).copy()
    data[stops - 1] = ord(" ")
    return data.tobytes()


def _finish_array(
    text: bytes,
    stops: NDArray[np.int64],
    file: IO[bytes],
    chunk_bytes: int,
    path: str | None,
    newlines: int,
    has_documents: bool,
) -> tuple[bytes, NDArray[np.int64]]:
    """Return the text and the ends of an array's last documents. Raises ``VariantError`` if text follows the array."""
    closed = next(i for i in range(len(stops)) if text[stops[i] - 1] in b"]}")
    remainder, stop = text[stops[closed] :], int(stops[closed])
    if text[stop - 1] != ord("]"):
        line = newlines + text.count(b"\n", 0, stop) + 1
        raise _document_error("a brace ends the array of documents, which began with [", line, path)
    while not remainder.strip(_SPACE) and (remainder := file.read(chunk_bytes)):
        continue
    if remainder.strip(_SPACE):
        line = newlines + text.count(b"\n", 0, stop) + 1
        raise _document_error("text follows the end of the array of documents", line, path)
    stops = stops[: closed + 1]
    last = int(stops[-2]) if closed else 0
    text = _blank_commas(text[:stop], stops, "array")
    if closed == 0 and not has_documents and not text[last:].strip(_SPACE):
        stops = stops[:0]  # an empty array
    return text, stops
