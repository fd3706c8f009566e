"""Assemble the rows that kernels write into variant arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.variant.shredding.shredder import build_binary
from pqext.variant.types import variant_array, variant_type

Written = tuple[Any, ...]
"""Rows, nulls, validity, metadata offsets, metadata, value offsets, value, and additional kernel results."""


def array_of(values: Written) -> pa.StructArray:
    """Return the rows as an array of :func:`pqext.variant.variant_type`."""
    rows, nulls, validity, metadata_offsets, metadata, value_offsets, value = values[:7]
    return variant_array(
        build_binary(pa.binary(), rows, metadata_offsets, metadata),
        build_binary(pa.binary(), rows, value_offsets, value),
        pa.py_buffer(validity) if nulls else None,
    )


def write_rows(write: Callable[[int], Written], rows: int) -> list[pa.StructArray]:
    """Return the arrays from repeated calls of ``write(start)``.

    A call returns the rows from ``start`` that fit into 2 GiB, and the next call continues after them. Raises
    ``LimitError`` if one variant exceeds 2 GiB.
    """
    arrays: list[pa.StructArray] = []
    start = 0
    while start < rows or not arrays:
        array = array_of(write(start))
        arrays.append(array)
        start += len(array)
        if start < rows and not len(array):
            raise LimitError(f"row {start}: the variant exceeds 2 GiB")
    return arrays


def concatenate_variants(arrays: list[pa.StructArray]) -> pa.StructArray:
    """Concatenate all rows into one array. Raises ``LimitError`` if 32-bit offsets do not suffice."""
    if len(arrays) == 1:
        return arrays[0]
    try:
        return pa.concat_arrays(arrays) if arrays else pa.array([], variant_type())
    except pa.ArrowInvalid:
        raise LimitError("the variants take more than 2 GiB: pass fewer rows at a time, or a chunked array") from None
