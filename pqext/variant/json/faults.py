"""Reasons and errors for faults in JSON text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import VariantError, VariantLimitError
from pqext.variant.kernels.json_parse import JsonFault

REASONS: dict[int, str] = {
    JsonFault.JSON_EMPTY: "no JSON value",
    JsonFault.JSON_END: "the text ends within a value",
    JsonFault.JSON_VALUE: "no JSON value starts with this character",
    JsonFault.JSON_LITERAL: "the only literals are null, true and false",
    JsonFault.JSON_NUMBER: "a digit is missing from a number",
    JsonFault.JSON_LEADING_ZERO: "a number has a leading zero",
    JsonFault.JSON_RANGE: "a number is too large for a double",
    JsonFault.JSON_CONTROL: "a control character in a string must be escaped",
    JsonFault.JSON_UNTERMINATED: "the text ends within a string",
    JsonFault.JSON_ESCAPE: "the escape sequence is invalid",
    JsonFault.JSON_SURROGATE: "an escaped surrogate is not part of a pair",
    JsonFault.JSON_UTF8: "the text is not UTF-8",
    JsonFault.JSON_KEY: "an object's key must be a string",
    JsonFault.JSON_COLON: "a colon must follow an object's key",
    JsonFault.JSON_OBJECT_SEPARATOR: "a comma or the closing brace must follow an object's field",
    JsonFault.JSON_ARRAY_SEPARATOR: "a comma or the closing bracket must follow an array's element",
    JsonFault.JSON_TRAILING: "text follows the end of the JSON value",
    JsonFault.JSON_DEPTH: "the value is nested more deeply than max_depth allows",
    JsonFault.JSON_DUPLICATE: "an object has a duplicate key",
    JsonFault.JSON_SIZE: "the variant of the document exceeds 2 GiB",
    JsonFault.JSON_NAN: "NaN and Infinity are not JSON; use a number or null",
    JsonFault.JSON_LONG: "the text is longer than max_bytes allows",
}
_REMEDIES = {JsonFault.JSON_DUPLICATE: 'duplicate_keys="first" or "last" uses one of its values'}
_UTF_16 = "; the text is UTF-16: convert it to UTF-8, as iconv -f UTF-16 -t UTF-8 does"
_LIMITS = (JsonFault.JSON_DEPTH, JsonFault.JSON_SIZE, JsonFault.JSON_LONG)

RawFault = tuple[int, int, int, bytes | None]
"""Fault as reported by the kernels: row or line, byte offset, ``JsonFault``, and the repeated key or None."""


@dataclass(frozen=True, slots=True)
class LineFault:
    """Fault in a line of JSON text: the line number, the byte ``offset`` in the line, and the reason."""

    line: int
    offset: int
    reason: str


def reason(code: int, name: bytes | None) -> str:
    """Describe the parser fault ``code``. ``name`` is the name of the repeated key, or None for other faults."""
    return REASONS[code] if name is None else f"{REASONS[code]}: {name.decode('utf-8')!r}"


def remedy(reason: str, text: memoryview | bytes = b"") -> str:
    """Return advice on a fault in ``text``, given the reason of the fault; an empty string if there is none."""
    head = bytes(text[:4])
    has_mark = head[:2] in (b"\xff\xfe", b"\xfe\xff") and head != b"\xff\xfe\0\0"  # not the mark of UTF-32
    if has_mark or [not byte for byte in head] in ([True, False] * 2, [False, True] * 2):  # JSON has no zero bytes
        return _UTF_16
    return next((f"; {remedy}" for code, remedy in _REMEDIES.items() if reason.startswith(REASONS[code])), "")


def row_error(fault: RawFault, first_row: int = 0) -> VariantError:
    """Return the error for a fault in a row. ``first_row`` is the number of the column's first row."""
    row, offset, code, name = fault
    error_type = VariantLimitError if code in _LIMITS else VariantError
    text = reason(code, name)
    return error_type(text + remedy(text), row=first_row + row, offset=offset)


def line_error(
    fault: RawFault, preceding_lines: int = 0, path: str | None = None, text: memoryview | bytes = b""
) -> VariantError:
    """Return the error for a fault in a line.

    ``preceding_lines`` is the number of lines before ``text`` in the file.
    """
    line, offset, code, name = fault
    error_type = VariantLimitError if code in _LIMITS else VariantError
    words = reason(code, name)
    error = error_type(f"line {preceding_lines + line}: {words}{remedy(words, text)}", offset=offset)
    error.locate(path=path)
    return error


def line_fault(fault: RawFault, preceding_lines: int = 0) -> LineFault:
    """Convert a fault in a line to a :class:`LineFault`. For the arguments, see :func:`line_error`."""
    line, offset, code, name = fault
    return LineFault(preceding_lines + line, offset, reason(code, name))


def spans_lines(fault: LineFault) -> bool:
    """Return whether the fault is a document that continues after the line, as in pretty-printed text."""
    return fault.reason == REASONS[JsonFault.JSON_END]


def describe_fault(fault: Any, path: str | None, preceding_lines: int = 0, unit: str = "line") -> str:
    """Format a fault with its file and line. ``fault`` has the attributes of :class:`LineFault`."""
    where = path or "standard input"
    return f"{where}, {unit} {preceding_lines + fault.line}, byte {fault.offset}: {fault.reason}"
