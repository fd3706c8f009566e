"""JSON documents that are not one a line: cut out of text as it is read, and which form a file has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import VariantError, VariantLimitError

Form = Literal["auto", "lines", "documents", "array"]
_SPACE = b" \t\r\n"
_SLICE = 1 << 20
"""Bytes looked at with one set of temporary arrays."""
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")] = 1
_STEPS[list(b"}]")] = -1


class Splitter:
    """Finds where documents end in text that comes in pieces, by brackets and commas outside of strings.

    Documents follow each other (``base`` 0), each an object or array, or are the elements of one array (``base`` 1),
    whose opening bracket has been left out.
    """

    def __init__(self, base: int) -> None:
        self.base = base
        self.depth = base
        self.done = False
        """Has the one array ended?"""
        self._in_string = False
        self._escaped = False

    def ends(self, text: NDArray[np.uint8]) -> NDArray[np.int64]:
        """The offsets in ``text`` behind which a document has ended; a comma counts to the document before it."""
        found = [self._ends(text[at : at + _SLICE]) + at for at in range(0, len(text), _SLICE)]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _ends(self, text: NDArray[np.uint8]) -> NDArray[np.int64]:
        quotes = np.flatnonzero(text == ord('"'))
        quotes = quotes[~self._are_escaped(text, quotes)]
        marks = np.flatnonzero((_STEPS[text] != 0) | (text == ord(",")) if self.base else _STEPS[text] != 0)
        inside = (np.searchsorted(quotes, marks) + self._in_string) & 1
        self._in_string = bool((len(quotes) + self._in_string) & 1)
        marks = marks[inside == 0]
        depths = self.depth + np.cumsum(_STEPS[text[marks]], dtype=np.int64)
        if not self.base:  # a bracket that closes nothing is a fault of its document, not of those behind it
            depths -= np.minimum(np.minimum.accumulate(depths), 0)
        self.depth = int(depths[-1]) if len(depths) else self.depth
        if not self.base:
            at_base = (depths <= 0) & (_STEPS[text[marks]] < 0)
        else:
            at_base = ((depths == 1) & (text[marks] == ord(","))) | (depths <= 0)
        ends: NDArray[np.int64] = marks[at_base]
        return np.add(ends, 1)

    def _are_escaped(self, text: NDArray[np.uint8], quotes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which quotes an odd number of backslashes precedes."""
        slashes = text == ord("\\")
        before, self._escaped = self._escaped, False
        if not len(text) or not (slashes.any() or before):
            return np.zeros(len(quotes), bool)
        places = np.arange(len(text))
        last = np.maximum.accumulate(np.where(slashes, -1, places))  # the last byte that is no backslash
        run = places - last
        run[last < 0] += before  # a backslash from the text before counts too
        self._escaped = bool(slashes[-1] and run[-1] & 1)
        escaped = np.zeros(len(quotes), bool)
        if len(quotes):
            escaped = np.where(quotes > 0, slashes[quotes - 1] & (run[quotes - 1] & 1 == 1), before)
        return escaped


def form_of(head: bytes, whole: bool) -> Form:
    """How the text that begins with ``head`` holds its documents; ``whole`` when there is no more of it.

    Lines unless the first document goes on behind the end of its line, where that line ends with a bracket, a comma or
    a colon. One array that is all of the text is read as its elements.
    """
    text = head.lstrip(_SPACE)
    if text[:1] not in (b"{", b"["):
        return "lines"
    ends = Splitter(0).ends(np.frombuffer(text, np.uint8))
    line = text.find(b"\n")
    if len(ends):
        alone = whole and not text[ends[0] :].strip(_SPACE)
        if text[:1] == b"[" and alone:
            return "array"
        if not 0 <= line < ends[0]:
            return "lines"
    elif text[:1] == b"[" and line < 0:
        return "lines" if whole else "array"
    if line < 0 or text[:line].rstrip(_SPACE)[-1:] not in (b"{", b"[", b",", b":"):
        return "lines"
    return "array" if text[:1] == b"[" and not len(ends) else "documents"


Documents = tuple[bytes, NDArray[np.int64], int]
"""Text, the end of each document in it, and the newlines before it."""


def read_documents(
    file: IO[bytes], form: Form, *, piece_bytes: int, max_bytes: int, path: str | None = None
) -> Iterator[Documents]:
    """The documents of a file in pieces of about ``piece_bytes``.

    Raises ``VariantLimitError`` for a document longer than ``max_bytes``, of which not much more is read, and
    ``VariantError`` for text behind the end of an array of documents.
    """
    splitter = Splitter(1 if form == "array" else 0)
    held, newlines, first, given = b"", 0, form == "array", False
    while data := file.read(max(piece_bytes, len(held))):  # a long document is not copied again and again
        if first:
            at = len(data) - len(data.lstrip(_SPACE))
            first = at == len(data)
            if first:
                held += data
                if len(held) > max_bytes:
                    raise _error(f"{max_bytes} bytes hold no document", 1, path, VariantLimitError)
                continue
            if data[at : at + 1] != b"[":
                raise _error("an array of documents begins with [", newlines + held.count(b"\n") + 1, path)
            data = data[:at] + b" " + data[at + 1 :]  # which no document minds
        ends = splitter.ends(np.frombuffer(data, np.uint8)) + len(held)
        text = held + data
        if form == "array" and splitter.depth <= 0:
            text, ends = _last_of_array(text, ends, file, piece_bytes, path, newlines, given)
            if len(ends):
                yield text, ends, newlines
            return
        stop = int(ends[-1]) if len(ends) else 0
        if stop:
            yield _without_commas(text[:stop], ends, form), ends, newlines
            given = True
            newlines += text.count(b"\n", 0, stop)
        held = text[stop:]
        if len(held) > max_bytes:
            raise _error(f"a document is longer than {max_bytes} bytes", newlines + 1, path, VariantLimitError)
    if form == "array" and not first:
        raise _error("the file ends within its array of documents", newlines + held.count(b"\n") + 1, path)
    if held.strip(_SPACE):
        yield held, np.array([len(held)]), newlines  # the parser says what it lacks


def _error(message: str, line: int, path: str | None, kind: type[VariantError] = VariantError) -> VariantError:
    error = kind(f"line {line}: {message}")
    error.locate(path=path)
    return error


def _without_commas(text: bytes, ends: NDArray[np.int64], form: Form) -> bytes:
    """The text with spaces in place of the commas and the bracket behind elements of an array."""
    if form != "array":
        return text
    data = np.frombuffer(text, np.uint8).copy()
    data[ends - 1] = ord(" ")
    return data.tobytes()


def _last_of_array(
    text: bytes,
    ends: NDArray[np.int64],
    file: IO[bytes],
    piece_bytes: int,
    path: str | None,
    newlines: int,
    given: bool,
) -> tuple[bytes, NDArray[np.int64]]:
    """The last documents of the one array, behind those ``given`` before; nothing but space may follow."""
    closed = next(i for i in range(len(ends)) if text[ends[i] - 1] in b"]}")
    rest, stop = text[ends[closed] :], int(ends[closed])
    if text[stop - 1] != ord("]"):
        line = newlines + text.count(b"\n", 0, stop) + 1
        raise _error("a brace ends the array of documents, which began with [", line, path)
    while not rest.strip(_SPACE) and (rest := file.read(piece_bytes)):
        continue
    if rest.strip(_SPACE):
        raise _error("text follows the end of the array of documents", newlines + text.count(b"\n", 0, stop) + 1, path)
    ends = ends[: closed + 1]
    last = int(ends[-2]) if closed else 0
    text = _without_commas(text[:stop], ends, "array")
    if closed == 0 and not given and not text[last:].strip(_SPACE):
        ends = ends[:0]  # an empty array
    return text, ends
