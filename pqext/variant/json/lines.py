"""Split line-delimited JSON into chunks of complete lines, from memory and from files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from pqext.core.base.errors import VariantLimitError

READ_BYTES = 8 << 20
"""Bytes of text that are read and parsed at a time, unless a line is longer."""
SAMPLE_BYTES = 4 << 20
"""Bytes of text from which a shredding schema is inferred."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def split_lines(text: memoryview, parts: int, min_bytes: int) -> list[memoryview]:
    """Split ``text`` into at most ``parts`` chunks of complete lines.

    The chunks have similar sizes. ``min_bytes`` is their approximate minimum size.
    """
    parts = max(1, min(parts, len(text) // min_bytes))
    pieces = []
    start = 0
    for i in range(1, parts):
        stop = _newline(text, max(start, len(text) * i // parts))
        if start < stop < len(text):
            pieces.append(text[start:stop])
            start = stop
    return [*pieces, text[start:]]


def first_lines(text: memoryview, size: int) -> memoryview:
    """Return the lines that begin within the first ``size`` bytes."""
    return text[: _newline(text, size - 1)]


def _newline(text: memoryview, offset: int) -> int:
    """Return the offset after the first newline at or after ``offset``, or the end of the text."""
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
    piece_bytes: int = READ_BYTES,
    max_line_bytes: int,
    path: str | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines of a file that begin at or after byte ``start``, and before ``stop`` if it is not None.

    Lines are yielded in chunks of about ``piece_bytes``, each with its offset in the file. A line belongs to the range
    in which it begins, so adjacent ranges yield every line once. A range in which no line begins is not read beyond its
    end. A byte order mark at the start of the file is ignored. The file is read from its current position if ``start``
    is 0, and only forward.

    Raises ``VariantLimitError`` if a line is longer than ``max_line_bytes``, without reading much more.
    """
    at, text = start, b""
    held: list[bytes] = []  # text of the line that begins at `at`, and its length
    length = 0
    if start > 0:
        result = _first_line(file, start, stop, piece_bytes)
        if result is None:
            return
        at, text = result
    first = start == 0
    while stop is None or at < stop:
        # Read to the end of the range, then in steps to the end of the line that crosses it.
        left = piece_bytes if stop is None else stop - at - length
        text = text or file.read(max(min(piece_bytes, left), min(piece_bytes, 64 << 10)))
        if first:
            first = False
            while 0 < len(text) < 3 and (more := file.read(3 - len(text))):
                text += more
            if text.startswith(_BYTE_ORDER_MARK):
                text, at = text[3:], 3
                if not text:
                    continue
        if not text:
            if held:
                yield at, b"".join(held)
            return
        end = _end_of_lines(text, at + length, stop)
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


def _first_line(file: IO[bytes], start: int, stop: int | None, piece_bytes: int) -> tuple[int, bytes] | None:
    """Return the offset and initial text of the first line that begins from ``start`` to ``stop``, or None."""
    at = start - 1  # a line begins at `start` if the preceding byte ends a line
    file.seek(at)
    while stop is None or at < stop - 1:
        text = file.read(piece_bytes if stop is None else min(piece_bytes, stop - 1 - at))
        if not text:
            return None
        end = text.find(b"\n") + 1
        if end:
            return at + end, text[end:]
        at += len(text)
    return None


def _end_of_lines(text: bytes, offset: int, stop: int | None) -> int:
    """Return the end of the last complete line in ``text`` that begins before ``stop``.

    ``text`` is at ``offset`` in the file.
    """
    if stop is None or offset + len(text) < stop:
        return text.rfind(b"\n") + 1
    # The last line begins at or before stop - 1: it ends with the first newline from there on.
    return text.find(b"\n", max(0, stop - 1 - offset)) + 1 or text.rfind(b"\n", 0, max(0, stop - 1 - offset)) + 1


def _check_line_length(size: int, limit: int, offset: int, path: str | None) -> None:
    if size > limit:
        error = VariantLimitError(f"a line is longer than {limit} bytes", offset=offset)
        error.locate(path=path)
        raise error


def count_newlines(file: IO[bytes], size: int) -> int:
    """Count the newlines in the next ``size`` bytes of a file."""
    count = 0
    while size > 0 and (text := file.read(min(READ_BYTES, size))):
        count += text.count(b"\n")
        size -= len(text)
    return count
