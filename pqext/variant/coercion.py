"""Convert array arguments to Arrow: from pandas, polars, lists, and Arrow's C data interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from pqext.core.schema.arrow_check import check_array
from pqext.core.schema.data_frames import with_arrow_types
from pqext.variant.binary_value import BinaryVariant
from pqext.variant.types import VariantLike, variant_type


def as_arrow(values: Any, name: str = "an array") -> VariantLike:
    """Convert ``values`` to an Arrow array or chunked array.

    ``values`` is an Arrow array, a list or tuple, a numpy array, a pandas or polars Series, or any object that has
    ``__arrow_c_array__`` or ``__arrow_c_stream__`` (a stream becomes a chunked array). ``name`` is the name of the
    argument in errors. Raises ``TypeError`` for other objects, and ``ValueError`` for a list whose items have no common
    Arrow type and for an invalid array.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return check_array(values)
    if isinstance(values, str | bytes | bytearray | memoryview):
        hint = "; pqext.variant.read_json reads files" if _names_a_file(values) else ""
        raise TypeError(f"expected {name}, not one {type(values).__name__}; put it into a list{hint}")
    values = with_arrow_types(values)
    try:
        if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
            return check_array(pa.chunked_array(values))
        if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_array__") or hasattr(values, "__array__"):
            return check_array(pa.array(values, from_pandas=True if hasattr(values, "__array__") else None))
        if isinstance(values, list | tuple):
            return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{type(values).__name__} cannot be converted to {name}: {error}") from None
    if isinstance(values, PurePath):
        raise TypeError(f"expected {name}, not a path; pqext.variant.read_json reads files")
    hint = "; take a slice, array[i:i + 1]" if isinstance(values, pa.Scalar) else ""
    raise TypeError(f"expected {name}, not {type(values).__name__}{hint}")


def _names_a_file(text: Any) -> bool:
    ends = (".json", ".jsonl", ".ndjson", ".gz", ".bz2", ".zst")
    return isinstance(text, str) and text.lower().endswith(ends)


def as_texts(values: Any) -> VariantLike:
    """Convert ``values`` to an array of strings or binary values; see :func:`as_arrow`.

    A list may mix strings and bytes. Raises ``TypeError`` for a list with other items.
    """
    what = "an array of JSON strings"
    if isinstance(values, list | tuple):
        values = pa.array(_encode_texts(values), pa.binary())
    array = as_arrow(values, what)
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    return array


def _encode_texts(values: Sequence[Any]) -> list[bytes | None]:
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str | bytes):
            raise TypeError(f"expected an array of JSON strings, but item {row} is a {type(value).__name__}")
    return [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in values]


def as_variants(values: Any) -> VariantLike:
    """Convert ``values`` to a variant array like :func:`as_arrow`; a list must contain ``Variant`` objects or None."""
    if isinstance(values, list | tuple):
        rows = []
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, BinaryVariant):
                result = type(value).__name__
                raise TypeError(
                    f"expected a variant array, but item {row} is a {result}; use variant.from_python"
                )
            rows.append(None if value is None else {"metadata": value.metadata, "value": value.value})
        return pa.array(rows, variant_type())
    return as_arrow(values, "a variant array")
