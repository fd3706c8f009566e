"""Parse columns of JSON text into variants."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pqext.core.base.workers import MIN_JOB_BYTES, Workers, even_ranges, thread_count
from pqext.variant.coercion import as_texts
from pqext.variant.json.faults import LineFault as LineFault
from pqext.variant.json.faults import line_error, line_fault
from pqext.variant.json.lines import SAMPLE_BYTES, first_lines, split_lines
from pqext.variant.json.parser import (
    DEFAULT_MAX_BYTES,
    DEFAULT_MAX_DEPTH,
    DuplicateKeys,
    Numbers,
    OnError,
    Parsing,
    join_arrays,
    parsing,
)
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.shredding.infer_types import sampled_rows
from pqext.variant.types import VariantLike, storage_array
from pqext.variant.views import take


def parse_json(
    array: VariantLike,
    *,
    numbers: Numbers = "decimal",
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shredding: Any = None,
    threads: int = 1,
) -> pa.StructArray | pa.ChunkedArray:
    """Parse a column of JSON strings (strings or binary, of any layout) into a variant array, row by row.

    ``array`` is an Arrow array, a list of str or bytes, a pandas or polars Series, or anything that has
    ``__arrow_c_array__`` or ``__arrow_c_stream__``; a stream becomes a chunked array. Null remains null, and ``"null"``
    becomes the variant null. The result is chunked if ``array`` is. The text is JSON as in RFC 8259, in UTF-8, with
    only whitespace around a document.

    With ``numbers="decimal"``, integers and decimals of up to 38 digits remain exact, in the narrowest possible type,
    and other numbers, including -0.0, become doubles. With ``"double"``, every number with a decimal point becomes a
    double (``specs/variant-encoding.md``). ``duplicate_keys`` rejects texts in which an object repeats a key, or uses
    the first or the last of its values. ``max_depth`` limits nesting, ``max_bytes`` the length of a text.
    ``on_error="null"`` turns texts that are not JSON, or exceed a limit, into nulls.

    With ``shredding``, which accepts the values of the writer's option, the result is shredded as by
    :func:`pqext.variant.shred`, by default with ``coerce="json"``, without building unshredded variants first. A schema
    is inferred from rows spread over the column. ``threads`` is the number of chunks of the column that are parsed in
    parallel, 0 for one per processor.

    Raises :class:`~pqext.core.base.errors.VariantError` with the row, the byte offset and the reason for a text that is
    not JSON, its subclass ``VariantLimitError`` for a text that exceeds a limit, and ``LimitError`` if the result of an
    array does not fit into 32-bit offsets.
    """
    options = parsing(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
    array = as_texts(array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    columns = [BinaryInput(storage_array(chunk)) for chunk in chunks]
    if options.undecided is not None:
        options = options.with_inferred_schema(_parse_sample(array, options))
    count = thread_count(threads)
    jobs: list[tuple[BinaryInput, int, int, int]] = []
    first = 0
    for chunk, column in zip(chunks, columns, strict=True):
        jobs += [(column, start, stop, first) for start, stop in even_ranges(chunk, count)]
        first += len(chunk)
    with Workers(count, len(jobs)) as workers:
        parsed = [piece for pieces in workers.map(lambda job: options.rows(*job), jobs) for piece in pieces]
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(parsed, type=options.type)
    return join_arrays(parsed, options.type)


def parse_json_lines(
    text: Any,
    *,
    numbers: Numbers = "decimal",
    on_error: OnError = "raise",
    duplicate_keys: DuplicateKeys = "error",
    max_depth: int = DEFAULT_MAX_DEPTH,
    max_bytes: int = DEFAULT_MAX_BYTES,
    shredding: Any = None,
    threads: int = 1,
    base_line: int = 1,
) -> tuple[pa.StructArray, list[LineFault]]:
    """Parse newline-delimited JSON, one document per line, into a variant array and the list of faults.

    ``text`` is bytes or anything with a contiguous buffer. Lines end with LF or CRLF, which is optional for the last
    line. Lines of spaces are skipped. Line numbers count all lines, from ``base_line``. With ``on_error="null"``, a
    line that is not JSON becomes a null row and a :class:`LineFault`. The other arguments are as for
    :func:`parse_json`.

    Raises :class:`~pqext.core.base.errors.VariantError` with the line's number, the byte in the line and the reason,
    its subclass ``VariantLimitError`` for a line that exceeds a limit, and ``LimitError`` if the result does not fit
    into 32-bit offsets.
    """
    options = parsing(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
    try:
        whole = memoryview(text).cast("B")
    except TypeError as error:
        raise TypeError(
            f"text must be bytes or a contiguous buffer, not {type(text).__name__}; parse_json parses arrays"
        ) from error
    if options.undecided is not None:
        sample = options.for_samples().lines(first_lines(whole, SAMPLE_BYTES))[0]
        options = options.with_inferred_schema(pa.chunked_array(sample, type=options.type))
    pieces = split_lines(whole, thread_count(threads), MIN_JOB_BYTES)
    arrays: list[pa.StructArray] = []
    faults_found: list[LineFault] = []
    before = base_line - 1
    with Workers(thread_count(threads), len(pieces)) as workers:
        for parsed, result, lines in workers.map(options.lines, pieces):
            if result and options.raises:
                raise line_error(result[0], before, None, whole)
            faults_found += [line_fault(fault, before) for fault in result]
            arrays += [piece for piece in parsed if len(piece)]
            before += lines
    return join_arrays(arrays, options.type), faults_found


def _parse_sample(array: VariantLike, options: Parsing) -> pa.ChunkedArray:
    """Parse a sample of rows spread over the column, of the size that inference uses."""
    assert options.undecided is not None
    rows = min(len(array), options.undecided.inference.sample_rows)
    sample = take(array, sampled_rows(len(array), rows))
    chunks = sample.chunks if isinstance(sample, pa.ChunkedArray) else [sample]
    parsed = [options.for_samples().rows(BinaryInput(storage_array(chunk)), 0, len(chunk)) for chunk in chunks]
    return pa.chunked_array([piece for pieces in parsed for piece in pieces], type=options.type)
