"""Columns of variants from Python objects, and to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import LimitError
from pqext.variant import encoding
from pqext.variant.coercion import as_variants
from pqext.variant.conversion.rows import all_rows, one_array
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.convert import Reader, Writer
from pqext.variant.python import encode_scalar, python_primitive, to_plain
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.types import VariantLike, struct_chunks


def from_python(values: Iterable[Any], *, none_is_null: bool = True) -> pa.StructArray:
    """Convert Python objects to a variant array, one row per object.

    Each type of Python becomes one variant type:

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
                                                 in nanoseconds only where pandas has some
    datetime.time                                time
    numpy.datetime64                             date, or timestamp without time zone
    uuid.UUID                                    uuid
    dict, other mappings (keys are str)          object
    list, tuple, numpy.ndarray                   array
    pandas.NA, pandas.NaT                        null
    :class:`~pqext.variant.Variant`              its value
    ============================================ ==================================================================

    With ``none_is_null=True`` a row that is None is a null of the array, as in ``pyarrow.array``; with False it is a
    variant null, JSON's null. Every row has a sorted dictionary of the names that it uses and no others.

    Raises ``TypeError`` for a single object instead of a list, an Arrow array, or an object of another type;
    ``ValueError`` for a number of more than 38 digits, objects nested more than 1000 levels deep, or text with lone
    surrogates, each with the row; and ``LimitError`` when the array would take more than 2 GiB.

    >>> from pqext import variant
    >>> array = variant.from_python([{"id": 1, "tags": ["a", "b"]}, None, 2.5])
    >>> variant.to_json(array).to_pylist()
    ['{"id":1,"tags":["a","b"]}', None, '2.5']
    """
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise TypeError(f"values must be a list or another iterable of objects, not one {kind}: put it into a list")
    if isinstance(values, pa.Array | pa.ChunkedArray):
        kind = type(values).__name__
        raise TypeError(f"values must be an iterable of Python objects, not an Arrow {kind}: use variant.from_arrow")
    objects = values if isinstance(values, list) else list(values)
    writer = Writer(encode_scalar, to_plain)
    return one_array(all_rows(lambda start: writer.rows(objects, start, none_is_null), len(objects)))


def to_python(array: VariantLike, *, json_types: bool = False) -> list[Any]:
    """A list with the Python object of each variant; None for null rows, and for variant nulls.

    ``array`` is a variant array, shredded or not, of any of the forms that :func:`pqext.variant.get` takes. Objects
    become dict, arrays list, exact numbers int or ``Decimal``, doubles float, floats ``numpy.float32``, strings str,
    binary bytes, UUIDs ``uuid.UUID``, dates ``date``, times ``time``, and timestamps ``datetime``, aware of UTC where
    the type is. Timestamps that ``datetime`` cannot hold, with nanoseconds or in far years, become
    :class:`~pqext.variant.Timestamp`, and such dates ``numpy.datetime64``. :func:`from_python` gives equal values back.

    With ``json_types=True`` the objects hold only what ``json.dumps`` takes: those that ``json.loads`` makes of
    :func:`pqext.variant.to_json`. Decimals are then float, binary is base64, and dates, times, UUIDs, NaN and the
    infinities are str.

    A column that was read from a file becomes a pandas Series of dicts by
    ``pandas.Series(variant.to_python(table["event"]))``, and typed pandas columns by :func:`pqext.variant.to_table`.

    Raises ``VariantError`` with the row and the byte for bytes that break the encoding, ``UnsupportedError`` for a
    primitive type added to the format later, and ``LimitError`` for values nested too deep for Python's JSON reader.

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
    reader = Reader(_decode)
    for chunk in struct_chunks(array):
        whole = unshred(chunk)
        objects += reader.rows(VariantInput(whole), len(objects))
    return objects


def _decode(data: bytes) -> Any:
    if _DECIMALS.get(data[:1]) == len(data) and data[1] <= encoding.MAX_SCALE:  # by far the most that come here
        return Decimal(int.from_bytes(data[2:], "little", signed=True)).scaleb(-data[1], _EXACT)
    return python_primitive(*encoding.decode_primitive(data, 0, len(data)))


_DECIMALS = {bytes([kind << 2]): 2 + size for kind, size in encoding.DECIMAL_BYTES.items()}
"""The bytes of decimals, by their first one."""
_EXACT = Context(prec=60)


def _json_objects(array: VariantLike) -> list[Any]:
    from pqext.variant.json.text import to_json

    objects = []
    for row, text in enumerate(to_json(array).to_pylist()):
        try:
            objects.append(None if text is None else json.loads(text))
        except RecursionError:
            raise LimitError(f"row {row}: nested too deep for Python's json") from None
    return objects
