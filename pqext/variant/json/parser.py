"""Parse JSON text into variants, or directly into shredded arrays, according to options."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.core.base.threads import MIN_JOB_BYTES, Workers, even_ranges, thread_count
from pqext.variant import faults
from pqext.variant.coercion import as_texts, take_without_views
from pqext.variant.json.documents import SAMPLE_BYTES, first_lines, split_lines
from pqext.variant.json.faults import LineFault, RawFault, line_error, line_fault, row_error
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.json_parse import (
    Duplicates,
    JsonOptions,
    parse_column,
    parse_lines,
    shred_column,
    shred_lines,
)
from pqext.variant.shredding.infer_types import sample_row_numbers
from pqext.variant.shredding.plan import CompiledSchema, compile_schema
from pqext.variant.shredding.schema import ShreddingSchema, Untyped, storage_struct
from pqext.variant.shredding.shredder import COERCE, Coerce, build_binary, build_storage
from pqext.variant.types import VariantLike, storage_array, variant_array, variant_type

if TYPE_CHECKING:
    from pqext.variant.shredding.choice import Shredding

Numbers = Literal["decimal", "double"]
OnError = Literal["raise", "null"]
DuplicateKeys = Literal["error", "first", "last"]

DEFAULT_MAX_DEPTH = 1000
"""Maximum nesting of objects and arrays in a JSON document, as in Spark."""
DEFAULT_MAX_BYTES = 128 << 20
"""Maximum length of a JSON document; Spark does not support larger VARIANT values."""
LARGEST_BYTES = (1 << 31) - (1 << 16)
"""Maximum value of ``max_bytes``."""

_DUPLICATES = {
    "error": Duplicates.DUPLICATES_ERROR,
    "first": Duplicates.DUPLICATES_FIRST,
    "last": Duplicates.DUPLICATES_LAST,
}


@dataclass(frozen=True, slots=True)
class JsonParser:
    """JSON parser with fixed options. If it has a shredding schema, it creates shredded arrays."""

    options: JsonOptions
    raises: bool
    max_bytes: int
    schema: CompiledSchema | None = None
    coerce: int = 0
    undecided: Shredding | None = None
    """Shredding whose schema must be chosen before parsing."""

    def with_inferred_schema(self, sample: VariantLike) -> JsonParser:
        """Return a parser whose schema is inferred from ``sample``; the parser itself if its schema is known."""
        if self.undecided is None:
            return self
        return _add_schema(replace(self, undecided=None), self.undecided.schema_for(sample), self.undecided.coerce)

    def for_sampling(self) -> JsonParser:
        """Return a parser for samples. It does not shred, and faulty documents become null."""
        return JsonParser(self.options.tolerant(), False, self.max_bytes)

    @property
    def type(self) -> pa.StructType:
        """Arrow type of the arrays that the parser creates."""
        return variant_type() if self.schema is None else storage_struct(self.schema.nodes[0].schema)

    def parse_rows(self, column: BinaryInput, start: int, stop: int, first_row: int = 0) -> list[pa.StructArray]:
        """Parse rows ``start`` to ``stop`` of a column of texts.

        ``first_row`` is the number of the column's first row in messages. Returns several arrays if 32-bit offsets do
        not suffice for one. Raises ``VariantError`` for a faulty row unless ``on_error`` is ``"null"``.
        """
        arrays = []
        result: Any
        while True:
            if self.schema is None:
                result = parse_column(column, start, stop, self.options, _seed())
                array, value, after, _ = _build_result(result)
            else:
                result = shred_column(column, start, stop, self.schema.plan, self.coerce, self.options, _seed())
                if len(result) == 3:
                    raise faults.error(result[0], row=first_row + result[1])
                array, value, _ = _build_shredded_result(result, self.schema)
                after = stop
            if value and self.raises:
                raise row_error(value[0], first_row)
            arrays.append(array)
            if after >= stop:
                return arrays
            if after == start:
                raise LimitError(f"row {first_row + start}: the variant exceeds 2 GiB")
            start = after

    def parse_documents(self, texts: pa.Array) -> tuple[list[pa.StructArray], list[RawFault]]:
        """Parse a column of texts. Returns variants and faults. If ``raises`` is set, parsing stops after a fault."""
        column = BinaryInput(texts)
        arrays, records = [], []
        result: Any
        start = 0
        while start < len(texts):
            if self.schema is None:
                result = parse_column(column, start, len(texts), self.options, _seed())
                array, value, after, _ = _build_result(result)
            else:
                result = shred_column(column, start, len(texts), self.schema.plan, self.coerce, self.options, _seed())
                if len(result) == 3:
                    raise faults.error(result[0], row=result[1])
                array, value, _ = _build_shredded_result(result, self.schema)
                after = len(texts)
            arrays.append(array)
            records += value
            if value and self.raises:
                break
            if after == start:
                raise LimitError(f"document {start}: the variant exceeds 2 GiB")
            start = after
        return arrays, records

    def parse_lines(self, text: memoryview) -> tuple[list[pa.StructArray], list[RawFault], int]:
        """Parse text with one document per line. Returns the variants, the faults, and the number of parsed lines."""
        if self.schema is not None:
            result: Any = shred_lines(text, 1, self.schema.plan, self.coerce, self.options, _seed())
            if len(result) == 3:
                raise LimitError(f"line {result[2]}: a column exceeds 2^31 - 1 bytes; parse fewer lines at a time")
            array, value, line = _build_shredded_result(result, self.schema)
            return [array], value, line - 1
        arrays, records, start, line = [], [], 0, 1
        while True:
            array, value, after, line = _build_result(parse_lines(text, start, line, self.options, _seed()))
            arrays.append(array)
            records += value
            if after >= len(text) or (value and self.raises):
                return arrays, records, line - 1
            if after == start:
                raise LimitError(f"line {line}: the variant exceeds 2 GiB")
            start = after


def create_parser(
    numbers: str, on_error: str, duplicate_keys: str, max_depth: int, max_bytes: int, shredding: Any = None
) -> JsonParser:
    """Create a parser from the arguments that all parsing functions share.

    Raises ``ValueError`` or ``TypeError`` if an argument is invalid.
    """
    if numbers not in ("decimal", "double"):
        raise ValueError(f"numbers must be 'decimal' or 'double', not {numbers!r}")
    if on_error not in ("raise", "null"):
        raise ValueError(f"on_error must be 'raise' or 'null', not {on_error!r}")
    if duplicate_keys not in _DUPLICATES:
        raise ValueError(f"duplicate_keys must be 'error', 'first' or 'last', not {duplicate_keys!r}")
    if not 0 <= max_depth <= 1_000_000:
        raise ValueError(f"max_depth must be between 0 and 1,000,000, not {max_depth}")
    if not 1 <= max_bytes <= LARGEST_BYTES:
        raise ValueError(f"max_bytes must be between 1 and {LARGEST_BYTES:,}, not {max_bytes}")
    options = JsonOptions(max_depth, max_bytes, _DUPLICATES[duplicate_keys], numbers == "double", on_error == "raise")
    result = JsonParser(options, on_error == "raise", max_bytes)
    if shredding is None:
        return result
    from pqext.variant.shredding import choice

    selected = choice.parse_shredding(shredding, "json")
    if selected.schema is None:
        return replace(result, undecided=selected)
    return _add_schema(result, selected.schema, selected.coerce)


def _add_schema(base: JsonParser, schema: ShreddingSchema, coerce: Coerce) -> JsonParser:
    if isinstance(schema, Untyped):
        return base
    return replace(base, schema=compile_schema(schema), coerce=COERCE[coerce])


def _seed() -> int:
    """Return a secret seed for hashing keys, which prevents deliberate collisions."""
    return secrets.randbits(64)


def _build_result(result: Any) -> tuple[pa.StructArray, list[RawFault], int, int]:
    if isinstance(result, int):
        raise faults.error(result)
    rows, nulls, validity, metadata_offsets, metadata, value_offsets, value, match, after, line = result
    array = variant_array(
        build_binary(pa.binary(), rows, metadata_offsets, metadata),
        build_binary(pa.binary(), rows, value_offsets, value),
        pa.py_buffer(validity) if nulls else None,
    )
    return array, match, after, line


def _build_shredded_result(result: Any, schema: CompiledSchema) -> tuple[pa.StructArray, list[RawFault], int]:
    rows, nulls, value, line, validity, metadata_offsets, metadata, columns = result
    array = build_storage(schema, build_binary(pa.binary(), rows, metadata_offsets, metadata), columns, validity, nulls)
    return array, value, line


def _join_arrays(arrays: list[pa.StructArray], type: pa.DataType) -> pa.StructArray:
    """Concatenate arrays into one. Raises ``LimitError`` if 32-bit offsets do not suffice."""
    if len(arrays) == 1:
        return arrays[0]
    if not arrays:
        return pa.array([], type)
    try:
        return pa.concat_arrays(arrays)
    except pa.ArrowInvalid as error:
        raise LimitError("the variants exceed 2 GiB; parse fewer rows at a time, or a chunked array") from error


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
    double (``specs/variant-encoding.md``). ``duplicate_keys`` rejects texts where an object repeats a key, or uses
    the first or the last of its values. ``max_depth`` limits nesting, ``max_bytes`` the length of a text.
    ``on_error="null"`` turns texts that are not JSON, or exceed a limit, into nulls.

    With ``shredding``, which accepts the values of the writer's option, the result is shredded as by
    :func:`pqext.variant.shred`, by default with ``coerce="json"``, without building unshredded variants first. A schema
    is inferred from rows spread over the column. ``threads`` is the number of chunks of the column that are parsed in
    parallel, 0 for one per processor.

    Raises :class:`~pqext.core.base.errors.VariantError` with the row, the byte offset and the reason for a text that is
    not JSON, its subclass ``VariantLimitError`` for a text that exceeds a limit, and ``LimitError`` if the result of an
    array does not fit into 32-bit offsets.

    >>> from pqext import variant
    >>> array = variant.parse_json(['{"id": 1}', "oops", None], on_error="null")
    >>> variant.to_python(array)
    [{'id': 1}, None, None]
    """
    options = create_parser(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
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
        parsed = [piece for pieces in workers.map(lambda job: options.parse_rows(*job), jobs) for piece in pieces]
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(parsed, type=options.type)
    return _join_arrays(parsed, options.type)


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

    >>> from pqext import variant
    >>> array, faults = variant.parse_json_lines(b'{"id": 1}\\noops\\n', on_error="null")
    >>> variant.to_python(array)
    [{'id': 1}, None]
    >>> faults
    [LineFault(line=2, offset=0, reason='no JSON value starts with this character')]
    """
    options = create_parser(numbers, on_error, duplicate_keys, max_depth, max_bytes, shredding)
    try:
        whole = memoryview(text).cast("B")
    except TypeError as error:
        raise TypeError(
            f"text must be bytes or a contiguous buffer, not {type(text).__name__}; parse_json parses arrays"
        ) from error
    if options.undecided is not None:
        sample = options.for_sampling().parse_lines(first_lines(whole, SAMPLE_BYTES))[0]
        options = options.with_inferred_schema(pa.chunked_array(sample, type=options.type))
    pieces = split_lines(whole, thread_count(threads), MIN_JOB_BYTES)
    arrays: list[pa.StructArray] = []
    faults_found: list[LineFault] = []
    before = base_line - 1
    with Workers(thread_count(threads), len(pieces)) as workers:
        for parsed, result, lines in workers.map(options.parse_lines, pieces):
            if result and options.raises:
                raise line_error(result[0], before, None, whole)
            faults_found += [line_fault(fault, before) for fault in result]
            arrays += [piece for piece in parsed if len(piece)]
            before += lines
    return _join_arrays(arrays, options.type), faults_found


def _parse_sample(array: VariantLike, options: JsonParser) -> pa.ChunkedArray:
    """Parse rows spread over the column, as many as schema inference samples."""
    assert options.undecided is not None
    rows = min(len(array), options.undecided.inference.sample_rows)
    sample = take_without_views(array, sample_row_numbers(len(array), rows))
    chunks = sample.chunks if isinstance(sample, pa.ChunkedArray) else [sample]
    parsed = [options.for_sampling().parse_rows(BinaryInput(storage_array(chunk)), 0, len(chunk)) for chunk in chunks]
    return pa.chunked_array([piece for pieces in parsed for piece in pieces], type=options.type)
