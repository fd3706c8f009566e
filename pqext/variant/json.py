"""JSON text to variants and back, a column at a time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pqext.core.errors import LimitError
from pqext.core.workers import Workers, thread_count
from pqext.variant import faults
from pqext.variant.json_faults import LineFault as LineFault
from pqext.variant.json_faults import line_error, line_fault
from pqext.variant.json_lines import split_lines
from pqext.variant.json_parsing import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DEPTH,
    MIN_JOB_BYTES,
    DuplicateKeys,
    Numbers,
    OnError,
    even_ranges,
    joined,
    parsing,
)
from pqext.variant.kernels.binary import BinaryInput, VariantInput
from pqext.variant.kernels.json_write import write_json
from pqext.variant.shredding import Coerce
from pqext.variant.types import VariantLike, is_shredded_type, storage_array, struct_chunks


def parse_json(
    array: VariantLike,
    *,
    numbers: Numbers = "decimal",
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shredding: Any = None,
    coerce: Coerce = "equivalent",
    threads: int = 1,
) -> pa.StructArray | pa.ChunkedArray:
    """Parse a column of JSON texts (strings or binary, of any layout) into a variant array, row by row.

    Null stays null; ``"null"`` becomes the variant null. A chunked array gives a chunked array. The text is
    JSON as RFC 8259 has it, in UTF-8, with nothing around a document but space.

    ``numbers="decimal"``: integers and decimals of up to 38 digits stay exact, in the narrowest type that
    holds them; other numbers become doubles. With ``"double"`` so does every number with a point
    (``specs/variant-encoding.md``). ``duplicate_keys`` chooses between refusing a text in which an object
    repeats a key and keeping the first or the last of its values. ``max_depth`` limits nesting,
    ``max_bytes`` the length of a text. ``on_error="null"`` turns texts that are not JSON, or exceed a limit,
    into nulls.

    With ``shredding``, whatever :func:`pqext.variant.shredding_schema` takes, the result is what
    :func:`pqext.variant.shred` makes of the variants by that schema and ``coerce``, without their being
    built on the way. ``threads``: parts of the column parsed at once, 0 for one a processor.

    Raises :class:`~pqext.core.errors.VariantError` with the row, the byte offset and the reason for a text
    that is not JSON, ``VariantLimitError``, which is one, for a text that exceeds a limit, and
    ``LimitError`` when the result of an array does not fit into 32-bit offsets.
    """
    how = parsing(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding, coerce)
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise TypeError(f"expected an array of JSON texts, not {type(array).__name__}")
    count = thread_count(threads)
    jobs: list[tuple[BinaryInput, int, int, int]] = []
    first = 0
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        column = BinaryInput(storage_array(chunk))
        jobs += [(column, start, stop, first) for start, stop in even_ranges(len(chunk), chunk.nbytes, count)]
        first += len(chunk)
    with Workers(count, len(jobs)) as workers:
        parsed = [piece for pieces in workers.map(lambda job: how.rows(*job), jobs) for piece in pieces]
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(parsed, type=how.type)
    return joined(parsed, how.type)


def parse_json_lines(
    text: Any,
    *,
    numbers: Numbers = "decimal",
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shredding: Any = None,
    coerce: Coerce = "equivalent",
    threads: int = 1,
    base_line: int = 1,
) -> tuple[pa.StructArray, list[LineFault]]:
    """Parse newline-delimited JSON, one document a line, into a variant array and the faults found.

    ``text`` is bytes or anything with a contiguous buffer. Lines end with LF or CRLF, the last one may
    lack it; lines of spaces are skipped. Line numbers count all lines, from ``base_line``. With
    ``on_error="null"`` a line that is not JSON gives a null row and a :class:`LineFault`. The other
    arguments are those of :func:`parse_json`.

    Raises :class:`~pqext.core.errors.VariantError` with the line's number, the byte in the line and the
    reason, ``VariantLimitError``, which is one, for a line that exceeds a limit, and ``LimitError`` when the
    result does not fit into 32-bit offsets.
    """
    how = parsing(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding, coerce)
    pieces = split_lines(memoryview(text).cast("B"), thread_count(threads), MIN_JOB_BYTES)
    arrays: list[pa.StructArray] = []
    faults_found: list[LineFault] = []
    before = base_line - 1
    with Workers(thread_count(threads), len(pieces)) as workers:
        for parsed, found, lines in workers.map(how.lines, pieces):
            if found and how.raises:
                raise line_error(found[0], before)
            faults_found += [line_fault(fault, before) for fault in found]
            arrays += [piece for piece in parsed if len(piece)]
            before += lines
    return joined(arrays, how.type), faults_found


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
