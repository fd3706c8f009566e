"""JSON text to variants and back, a column at a time."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from pqext.core.errors import LimitError, VariantError
from pqext.variant import faults
from pqext.variant.kernels.binary import BinaryInput, VariantInput
from pqext.variant.kernels.json_document import Duplicates, JsonFault
from pqext.variant.kernels.json_parse import parse_column, parse_lines
from pqext.variant.kernels.json_write import write_json
from pqext.variant.types import (
    VariantLike,
    is_shredded_type,
    storage_array,
    struct_chunks,
    variant_array,
    variant_type,
)

OnError = Literal["raise", "null"]
DuplicateKeys = Literal["error", "first", "last"]

DEFAULT_MAX_DEPTH = 1000
"""Nesting of objects and arrays in a JSON document, as in Spark."""

REASONS: dict[int, str] = {
    JsonFault.JSON_EMPTY: "there is no JSON value",
    JsonFault.JSON_END: "the text ends within a value",
    JsonFault.JSON_VALUE: "no JSON value starts with this character",
    JsonFault.JSON_LITERAL: "only null, true and false may be spelled out",
    JsonFault.JSON_NUMBER: "a digit is missing from a number",
    JsonFault.JSON_LEADING_ZERO: "a number starts with a superfluous zero",
    JsonFault.JSON_RANGE: "a number is too large for a double",
    JsonFault.JSON_CONTROL: "a control character in a string must be escaped",
    JsonFault.JSON_UNTERMINATED: "the text ends within a string",
    JsonFault.JSON_ESCAPE: "no such escape sequence",
    JsonFault.JSON_SURROGATE: "an escaped surrogate is not part of a pair",
    JsonFault.JSON_UTF8: "the text is not UTF-8",
    JsonFault.JSON_KEY: "an object's key must be a string",
    JsonFault.JSON_COLON: "a colon must follow an object's key",
    JsonFault.JSON_OBJECT_SEPARATOR: "a comma or the closing brace must follow an object's field",
    JsonFault.JSON_ARRAY_SEPARATOR: "a comma or the closing bracket must follow an array's element",
    JsonFault.JSON_TRAILING: "text follows the end of the JSON value",
    JsonFault.JSON_DEPTH: "the value is nested more deeply than max_depth allows",
    JsonFault.JSON_DUPLICATE: "an object has a key twice",
    JsonFault.JSON_SIZE: "the document's variant would be larger than 2 GiB",
}


@dataclass(frozen=True, slots=True)
class LineFault:
    """Why a line holds no JSON value: ``line`` is its number, ``offset`` the byte within it."""

    line: int
    offset: int
    reason: str


def parse_json(
    array: VariantLike,
    *,
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
) -> pa.StructArray | pa.ChunkedArray:
    """Parse a column of JSON texts (strings or binary, of any layout) into a variant array, row by row.

    Null stays null; ``"null"`` becomes the variant null. Integers and decimals of up to 38 digits stay
    exact, in the narrowest type that holds them; other numbers become doubles (``specs/variant-encoding.md``).
    A chunked array gives a chunked array.

    ``on_error="null"`` turns texts that are not JSON into nulls. ``duplicate_keys`` chooses between
    refusing a text in which an object repeats a key and keeping the first or the last of its values.

    Raises :class:`~pqext.core.errors.VariantError` with the row, the byte offset and the reason for a text
    that is not JSON, and ``LimitError`` when the result of an array does not fit into 32-bit offsets.
    """
    duplicates = _duplicates(duplicate_keys)
    _check(on_error, max_depth)
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise TypeError(f"expected an array of JSON texts, not {type(array).__name__}")
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    parsed: list[pa.StructArray] = []
    row = 0
    for chunk in chunks:
        column = BinaryInput(storage_array(chunk))

        def parse(start: int, _: int, column: BinaryInput = column) -> Any:
            return parse_column(column, start, max_depth, duplicates, _seed(), on_error == "raise")

        for piece, found in _pieces(parse, len(chunk)):
            if found and on_error == "raise":
                fault_row, offset, code, name = found[0]
                raise VariantError(_reason(code, name), row=row + fault_row, offset=offset)
            parsed.append(piece)
        row += len(chunk)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(parsed, type=variant_type())
    if len(parsed) > 1:
        raise LimitError("the variants take more than 2 GiB: parse smaller arrays, or a chunked array")
    return parsed[0] if parsed else pa.array([], variant_type())


def parse_json_lines(
    text: Any,
    *,
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
    base_line: int = 1,
) -> tuple[pa.StructArray, list[LineFault]]:
    """Parse newline-delimited JSON, one document a line, into a variant array and the faults found.

    ``text`` is bytes or anything with a contiguous buffer. Lines end with LF or CRLF, the last one may
    lack it; lines of spaces are skipped. Line numbers count all lines, from ``base_line``. With
    ``on_error="null"`` a line that is not JSON gives a null row and a :class:`LineFault`.

    Raises :class:`~pqext.core.errors.VariantError` with the line's number, the byte in the line and the
    reason, and ``LimitError`` when the result does not fit into 32-bit offsets.
    """
    duplicates = _duplicates(duplicate_keys)
    _check(on_error, max_depth)
    view = memoryview(text).cast("B")

    def parse(start: int, line: int) -> Any:
        return parse_lines(view, start, line, max_depth, duplicates, _seed(), on_error == "raise")

    arrays: list[pa.StructArray] = []
    lines: list[LineFault] = []
    for piece, found in _pieces(parse, len(view), base_line):
        lines += [LineFault(number, offset, _reason(code, name)) for number, offset, code, name in found]
        if found and on_error == "raise":
            raise VariantError(f"line {lines[0].line}: {lines[0].reason}", offset=lines[0].offset)
        if len(piece):
            arrays.append(piece)
    if len(arrays) > 1:
        raise LimitError("the variants take more than 2 GiB: parse fewer lines at a time")
    return (arrays[0] if arrays else pa.array([], variant_type())), lines


def to_json(array: VariantLike) -> pa.StringArray | pa.ChunkedArray:
    """JSON text of each variant of an array, shredded or not; null stays null.

    Objects keep the order of their field ids. Exact numbers are written with all their digits, decimals
    with their scale; doubles and floats with the fewest digits that read back as the same number. Binary
    is base64, and dates, times and UUIDs are strings: ``"2024-01-02"``, ``"2024-01-02 03:04:05.6+00:00"``
    (UTC) or without the offset, ``"03:04:05.6"``. NaN and the infinities, which JSON lacks, are the
    strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. A chunked array gives a chunked array.

    Raises :class:`~pqext.core.errors.VariantError` with row and offset for bytes that break a rule of the
    encoding, ``UnsupportedError`` for a primitive type added to the format later, and ``LimitError`` when
    the text of an array does not fit into 32-bit offsets.
    """
    chunks = struct_chunks(array)
    if is_shredded_type(array.type):
        from pqext.variant.reconstruct import unshred

        chunks = struct_chunks(unshred(array))
    texts: list[pa.StringArray] = []
    first = 0
    for chunk in chunks:
        variants = VariantInput(chunk)
        start = 0
        while start < len(chunk):
            rows, validity, offsets, text, status, row, offset = write_json(variants, start)
            if status:
                faults.fail(status, row=first + row, offset=offset if offset >= 0 else None)
            if not rows:
                raise LimitError(f"row {first + row}: the JSON text is longer than 2 GiB")
            buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(text)]
            texts.append(pa.StringArray.from_buffers(rows, buffers[1], buffers[2], buffers[0]))
            start += rows
        first += len(chunk)
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(texts, type=pa.string())
    if len(texts) > 1:
        raise LimitError("the JSON text takes more than 2 GiB: convert smaller arrays, or a chunked array")
    return texts[0] if texts else pa.array([], pa.string())


def _check(on_error: str, max_depth: int) -> None:
    if on_error not in ("raise", "null"):
        raise ValueError(f"on_error must be 'raise' or 'null', not {on_error!r}")
    if not 0 <= max_depth <= 1_000_000:
        raise ValueError(f"max_depth must be between 0 and 1,000,000, not {max_depth}")


def _duplicates(choice: str) -> int:
    try:
        return {
            "error": Duplicates.DUPLICATES_ERROR,
            "first": Duplicates.DUPLICATES_FIRST,
            "last": Duplicates.DUPLICATES_LAST,
        }[choice]
    except KeyError:
        raise ValueError(f"duplicate_keys must be 'error', 'first' or 'last', not {choice!r}") from None


def _seed() -> int:
    """Keys are hashed with a secret, so that nobody can choose keys that collide."""
    return secrets.randbits(64)


def _reason(code: int, name: bytes | None) -> str:
    return REASONS[code] if name is None else f"{REASONS[code]}: {name.decode('utf-8')!r}"


Found = list[tuple[int, int, int, bytes | None]]


def _pieces(parse: Callable[[int, int], Any], stop: int, line: int = 1) -> Iterator[tuple[pa.StructArray, Found]]:
    """Run the kernel until it reaches ``stop``: it ends early where 32-bit offsets are full."""
    start = 0
    while True:
        result = parse(start, line)
        if isinstance(result, int):
            faults.fail(result)
        rows, nulls, validity, metadata_offsets, metadata, value_offsets, value, found, after, line = result
        children = [
            pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
            for offsets, data in ((metadata_offsets, metadata), (value_offsets, value))
        ]
        yield variant_array(children[0], children[1], pa.py_buffer(validity) if nulls else None), found
        if after >= stop:
            return
        if after == start:
            raise LimitError("a row's variant is larger than 2 GiB")
        start = after
