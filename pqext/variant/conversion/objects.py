"""Convert Python objects to variant columns, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.variant import encoding
from pqext.variant.coercion import as_variants
from pqext.variant.conversion.arrow import concatenate_variants, write_rows
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.convert import Reader, Writer
from pqext.variant.python import encode_scalar, python_primitive, to_plain
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.types import VariantLike, struct_chunks


def from_python(values: Iterable[Any], *, none_is_null: bool = True) -> pa.StructArray:
    """Convert Python objects to a variant array, one row per object.

    Each Python type becomes one variant type:

    ============================================ ==================================================================
    None                                         null (a row that is None: see ``none_is_null``)
    bool                                         true, false
    int, numpy integers                          int8 to int64, the narrowest that holds it; decimal16 beyond int64
    float, numpy.float64 and numpy.float16       double
    numpy.float32                                float
    decimal.Decimal                              decimal4, decimal8 or decimal16, with its own scale
    str                                          string
    bytes, bytearray, memoryview                 binary
    datetime.date                                date
    datetime.datetime, pandas.Timestamp          timestamp (UTC) with a time zone, else timestamp without time zone;
                                                 in nanoseconds if the pandas value has any
    datetime.time                                time
    numpy.datetime64                             date, or timestamp without time zone
    uuid.UUID                                    uuid
    dict, other mappings (keys are str)          object
    list, tuple, numpy.ndarray                   array
    pandas.NA, pandas.NaT                        null
    :class:`~pqext.variant.Variant`              its value
    ============================================ ==================================================================

    With ``none_is_null=True``, a row that is None becomes a null of the array, as in ``pyarrow.array``; with False, it
    becomes a variant null, like JSON's null. Every row has a sorted dictionary with exactly the names that it uses.

    Raises ``TypeError`` for a single object instead of a list, an Arrow array, or an object of another type;
    ``ValueError`` for a number of more than 38 digits, objects nested more than 1000 levels deep, or text with lone
    surrogates, each with the row; and ``LimitError`` if the array would exceed 2 GiB.

    >>> from pqext import variant
    >>> array = variant.from_python([{"id": 1, "tags": ["a", "b"]}, None, 2.5])
    >>> variant.to_json(array).to_pylist()
    ['{"id":1,"tags":["a","b"]}', None, '2.5']
    """
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise TypeError(f"values must be a list or another iterable of objects, not a single {kind}; pass a list")
    if isinstance(values, pa.Array | pa.ChunkedArray):
        kind = type(values).__name__
        raise TypeError(f"values must be an iterable of Python objects, not an Arrow {kind}; use variant.from_arrow")
    objects = values if isinstance(values, list) else list(values)
    writer = Writer(encode_scalar, to_plain)
    return concatenate_variants(write_rows(lambda start: writer.rows(objects, start, none_is_null), len(objects)))


def to_python(array: VariantLike, *, json_types: bool = False) -> list[Any]:
    """Convert variants to a list of Python objects, with None for null rows and for variant nulls.

    ``array`` is a variant array, shredded or not, of any type that :func:`pqext.variant.get` accepts. Objects become
    dict, arrays list, exact numbers int or ``Decimal``, doubles float, floats ``numpy.float32``, strings str, binary
    bytes, UUIDs ``uuid.UUID``, dates ``date``, times ``time``, and timestamps ``datetime``, with the time zone UTC if
    the type has it. Timestamps that ``datetime`` cannot represent, because of nanoseconds or the year, become
    :class:`~pqext.variant.Timestamp`; dates that ``date`` cannot represent become ``numpy.datetime64``.
    :func:`from_python` converts the objects back to equal values.

    With ``json_types=True``, the objects contain only types that ``json.dumps`` accepts, as if ``json.loads`` had
    parsed the output of :func:`pqext.variant.to_json`. Decimals become float, binary becomes base64, and dates, times,
    UUIDs, NaN and infinities become str.

    Use ``pandas.Series(variant.to_python(table["event"]))`` to convert a column to a pandas Series of dicts, and
    :func:`pqext.variant.to_table` to convert it to typed columns.

    Raises ``VariantError`` with the row and the byte for bytes that violate the encoding, ``UnsupportedError`` for a
    primitive type added to the format later, and ``LimitError`` for values nested too deeply for Python's JSON parser.

    >>> from pqext import variant
    >>> variant.to_python(variant.parse_json(['{"a": [1, 2.50]}', None]))
    [{'a': [1, Decimal('2.50')]}, None]
    >>> variant.to_python(variant.parse_json(['{"a": [1, 2.50]}']), json_types=True)
    [{'a': [1, 2.5]}]
    """
    array = as_variants(array)
    if json_types:
        return _json_objects(array)
    objects: list[Any] = []
    reader = Reader(_decode_value)
    for chunk in struct_chunks(array):
        whole = unshred(chunk)
        objects += reader.rows(VariantInput(whole), len(objects))
    return objects


def _decode_value(data: bytes) -> Any:
    if _DECIMALS.get(data[:1]) == len(data) and data[1] <= encoding.MAX_SCALE:  # by far the most common case
        return Decimal(int.from_bytes(data[2:], "little", signed=True)).scaleb(-data[1], _EXACT)
    return python_primitive(*encoding.decode_primitive(data, 0, len(data)))


_DECIMALS = {bytes([kind << 2]): 2 + size for kind, size in encoding.DECIMAL_BYTES.items()}
"""Size of the encoding of a decimal, by its first byte."""
_EXACT = Context(prec=60)


def _json_objects(array: VariantLike) -> list[Any]:
    from pqext.variant.json.text import to_json

    objects = []
    for row, text in enumerate(to_json(array).to_pylist()):
        try:
            objects.append(None if text is None else json.loads(text))
        except RecursionError:
            raise LimitError(f"row {row}: the value is nested too deeply for Python's JSON parser") from None
    return objects
