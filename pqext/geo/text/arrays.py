"""Arrow arrays for the text kernels (WKT and GeoJSON), and arrays assembled from the kernels' buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.schema.arrow_check import check_array
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.geo.kernels.geometry_text import to_text
from pqext.geo.wkb import GeometryArray, as_columns, binary_chunks, like_input, storage_type

_WIDE_FROM = 1 << 31  # bytes


def text_chunks(array: Any) -> list[pa.Array]:
    """Return the chunks of an array or list of text, each ``string`` or ``large_string``.

    Raises TypeError for other input.
    """
    if isinstance(array, (list, tuple)):
        try:
            array = pa.array(array, pa.string())
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TypeError(f"expected strings: {error}") from None
    if not isinstance(array, (pa.Array, pa.ChunkedArray)):
        raise TypeError(f"expected an Arrow array of strings or a list of strings, not {type(array).__name__}")
    held = storage_type(array.type)
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    if not any(test(held) for test in tests):
        raise TypeError(f"expected an Arrow array of strings, not {array.type}")
    check_array(array)
    return [_to_text_array(chunk) for chunk in (array.chunks if isinstance(array, pa.ChunkedArray) else [array])]


def _to_text_array(array: pa.Array) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        return _to_text_array(decode_dictionary(array))
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array
    return array.cast(pa.string() if pa.types.is_null(array.type) else pa.large_string())


def bit_mask(chunk: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of ``chunk``, beginning with its first row."""
    return chunk.is_valid().buffers()[1] if chunk.null_count else None


def assemble(
    array: GeometryArray, chunks: Iterable[tuple[int, pa.Buffer | None, Any, Any]], types: tuple[
        pa.DataType, pa.DataType
    ]
) -> GeometryArray:
    """Assemble ``chunks``, (rows, validity, data, 64-bit offsets) for each chunk of ``array``, into an array.

    The result has the first of ``types``, or the second if any chunk reaches 2 GiB.
    """
    narrow, wide = types
    parts = [
        pa.Array.from_buffers(wide, rows, [validity, pa.py_buffer(offsets), pa.py_buffer(data)])
        for rows, validity, data, offsets in chunks
    ]
    type = wide if any(part.buffers()[2].size >= _WIDE_FROM for part in parts) else narrow
    return like_input(array, [part.cast(type) for part in parts], type)


def write(array: GeometryArray, json: bool, precision: int | None) -> GeometryArray:
    """Write geometries as GeoJSON if ``json``, and otherwise as WKT, in string arrays.

    The other arguments and the errors are as in :func:`pqext.geo.to_wkt`.
    """
    if precision is not None and (isinstance(precision, bool) or not isinstance(precision, int)):
        raise TypeError(f"precision must be an integer, the number of decimals, not {precision!r}")
    if precision is not None and not 0 <= precision <= 18:
        raise ValueError(f"precision must be 0 to 18 decimals, not {precision}")
    chunks: Sequence[pa.Array] = binary_chunks(array)
    decimals = -1 if precision is None else precision
    made = (
        (len(chunk), bit_mask(chunk), *to_text(column, json, decimals))
        for chunk, column in zip(chunks, as_columns(chunks), strict=True)
    )
    return assemble(array, made, (pa.string(), pa.large_string()))
