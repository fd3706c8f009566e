"""Write columns of variants as JSON text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import LimitError, VariantLimitError
from pqext.core.base.limits import Limits
from pqext.core.base.threads import Workers, even_ranges, thread_count
from pqext.variant import faults
from pqext.variant.coercion import as_variants
from pqext.variant.kernels.binary import BinaryInput, VariantInput
from pqext.variant.kernels.json_write import indent_json, write_json, write_shredded_json
from pqext.variant.kernels.zone import Zone
from pqext.variant.shredding.plan import compile_schema
from pqext.variant.shredding.reconstruct import open_columns
from pqext.variant.shredding.schema import schema_of_storage
from pqext.variant.timezones import DEFAULT, find_timezone
from pqext.variant.types import VariantLike, child, is_shredded_type, plain_binary, struct_chunks

MAX_INDENT = 16
_EXPANSION = Limits().memory_expansion
_ALLOWANCE = 1 << 20
"""Bytes of indented text that are always allowed, however short the compact text is."""


def to_json(
    array: VariantLike, *, indent: int | None = None, threads: int = 1, timezone: str = DEFAULT
) -> pa.StringArray | pa.ChunkedArray:
    """Convert each variant of an array, shredded or not, to JSON text; null remains null.

    Fields are in the order of their names. Exact numbers are written with all their digits and without trailing zeros,
    so equal numbers have the same text (2.50 is ``2.5``, as in Spark). Doubles and floats have the fewest digits that
    parse to the same number. Binary is base64, and dates, times and UUIDs are strings: ``"2024-01-02"``, ``"2024-01-02
    03:04:05.6+00:00"`` (an instant, in ``timezone``: an IANA name or an offset such as ``"+02:00"``) or without the
    offset, ``"03:04:05.6"``. NaN and infinities, which JSON does not support, are the strings ``"NaN"``, ``"Infinity"``
    and ``"-Infinity"``. The result is chunked if ``array`` is.

    The text of a shredded array equals the text of ``unshred(array)``, but is written directly from its columns.

    ``indent=None`` is compact. With a number, each field and element is on its own line, indented by this number of
    spaces (0 to 16) per level, as in ``json.dumps``. ``threads`` is the number of chunks that are converted in
    parallel, 0 for one per processor.

    Raises :class:`~pqext.core.base.errors.VariantError` with row and offset for bytes that violate the encoding or
    shredding, ``UnsupportedError`` for a primitive type added to the format later, ``LimitError`` if the text of an
    array does not fit into 32-bit offsets, and ``VariantLimitError`` with the row if indented text needs more than a
    mebibyte and more than 256 times the bytes of the compact text (``Limits.memory_expansion``), as happens for values
    that are nested hundreds of levels deep.

    >>> from pqext import variant
    >>> variant.to_json(variant.parse_json(['{"b": 2.50, "a": [true]}', None])).to_pylist()
    ['{"a":[true],"b":2.5}', None]
    """
    if indent is not None and (isinstance(indent, bool) or not isinstance(indent, int)):
        raise TypeError(f"indent must be None or a number of spaces, not {type(indent).__name__}")
    if indent is not None and not 0 <= indent <= MAX_INDENT:
        raise ValueError(f"indent must be between 0 and {MAX_INDENT}, not {indent}")
    return _write_texts(array, indent, threads, timezone)


def to_display(array: VariantLike) -> pa.StringArray | pa.ChunkedArray:
    """Format values for display: as JSON text, but with timestamps, decimals and floats as in typed columns.

    UTC is ``+00``, and decimals have no trailing zeros, because shredding changes their scale. A row that is NaN or
    infinite becomes ``nan``, ``inf`` or ``-inf``, which are not JSON.
    """
    return _write_texts(array, None, 1, DEFAULT, is_display=True)


def _write_texts(
    array: VariantLike, indent: int | None, threads: int, timezone: str, is_display: bool = False
) -> pa.StringArray | pa.ChunkedArray:
    count = thread_count(threads)
    zone = find_timezone(timezone)
    kernel_zone = None if zone is None else zone.kernel
    array = as_variants(array)
    chunks = struct_chunks(array)
    write = _shredded_writer if is_shredded_type(array.type) else _unshredded_writer
    jobs: list[tuple[_Rows, int, int]] = []
    first = 0
    for chunk in chunks:
        rows = _Rows(write(chunk, is_display, kernel_zone), first)
        jobs += [(rows, start, stop) for start, stop in even_ranges(chunk, count)]
        first += len(chunk)
    with Workers(count, len(jobs)) as workers:
        texts = [text for part in workers.map(lambda job: job[0].texts(job[1], job[2], indent), jobs) for text in part]
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(texts, type=pa.string())
    try:
        return pa.concat_arrays(texts) if len(texts) > 1 else texts[0] if texts else pa.array([], pa.string())
    except pa.ArrowInvalid as error:
        raise LimitError("the JSON text exceeds 2 GiB; convert fewer rows at a time, or a chunked array") from error


_Written = tuple[int, Any, Any, Any, int, int, int]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a chunk of variants. ``write`` formats a range of rows; ``first`` is the number of the first row."""

    write: Callable[[int, int], _Written]
    first: int

    def texts(self, start: int, stop: int, indent: int | None) -> list[pa.StringArray]:
        """Format rows ``start`` to ``stop`` as text.

        Returns several arrays if 32-bit offsets do not suffice for one.
        """
        results: list[pa.StringArray] = []
        while start < stop:
            rows, validity, offsets, text, status, row, offset = self.write(start, stop)
            if status:
                raise faults.error(status, row=self.first + row, offset=offset if offset >= 0 else None)
            if not rows:
                raise _length_error(self.first + row)
            buffers = [pa.py_buffer(validity), pa.py_buffer(offsets), pa.py_buffer(text)]
            texts = pa.StringArray.from_buffers(rows, buffers[1], buffers[2], buffers[0])
            results += [texts] if indent is None else _indent(texts, indent, self.first + start)
            start += rows
        return results


def _unshredded_writer(chunk: pa.StructArray, is_display: bool, zone: Zone | None) -> Callable[[int, int], _Written]:
    variants = VariantInput(chunk)
    return lambda start, stop: write_json(variants, start, stop, is_display, zone)


def _shredded_writer(chunk: pa.StructArray, is_display: bool, zone: Zone | None) -> Callable[[int, int], _Written]:
    compiled = compile_schema(schema_of_storage(chunk.type))
    metadata = child(chunk, "metadata")
    assert metadata is not None
    names, columns = BinaryInput(plain_binary(metadata)), open_columns(chunk, compiled)
    return lambda start, stop: (*write_shredded_json(compiled.plan, names, columns, start, stop, is_display, zone), -1)


def _indent(texts: pa.StringArray, indent: int, first_row: int) -> list[pa.StringArray]:
    source = BinaryInput(texts)
    results: list[pa.StringArray] = []
    start = 0
    while start < len(texts):
        rows, offsets, text, status = indent_json(source, start, indent, _EXPANSION, _ALLOWANCE)
        if status > 0:
            raise VariantLimitError(
                f"the value is deeply nested: its indented text exceeds {_EXPANSION} times the size of its compact "
                "text; use indent=None or fewer spaces",
                row=first_row + start + rows,
            )
        if status:
            faults.fail(status)
        if not rows:
            raise _length_error(first_row + start)
        part = texts.slice(start, rows)
        buffers = [pa.py_buffer(offsets), pa.py_buffer(text)]
        bitmap = pa.compute.is_valid(part).buffers()[1] if part.null_count else None
        results.append(pa.StringArray.from_buffers(rows, *buffers, bitmap))
        start += rows
    return results


def _length_error(row: int) -> LimitError:
    return LimitError(f"row {row}: the JSON text is longer than 2 GiB")
