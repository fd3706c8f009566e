"""Convert values of an Arrow type to the storage of a leaf in an existing file."""

from __future__ import annotations

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import Type
from pqext.core.schema.types.logical import LeafType
from pqext.core.schema.types.physical_types import normal

_TEXTS = ("STRING", "ENUM")


def stored_like(
    own: LeafType, arrow: pa.DataType, stored: LeafType, int96_unit: str
) -> tuple[LeafType, pa.DataType]:
    """Return how values of type ``arrow`` are stored in a leaf of type ``stored``, and the Arrow type to cast them to.

    The same values have several stored forms: decimals in four physical types, timestamps in INT96 or in three units,
    texts as ENUM. Returns ``own`` and its type where the leaf cannot hold the values. Readers take INT96 for timestamps
    of ``int96_unit``, so that none may be beyond what that holds.
    """
    types, plain = pa.types, normal(arrow)
    try:
        stored_arrow = normal(stored.arrow_type())
    except ParquetError:
        return own, plain
    if types.is_null(arrow):
        return stored, stored_arrow
    if stored.member == "UNKNOWN":
        return own, plain
    if types.is_timestamp(arrow):
        return _timestamp(own, plain, stored, stored_arrow, int96_unit)
    if types.is_decimal(plain) and types.is_decimal(stored_arrow):
        # Digits on both sides of the point are enough.
        whole = stored_arrow.precision - stored_arrow.scale, plain.precision - plain.scale
        return (stored, stored_arrow) if stored_arrow.scale >= plain.scale and whole[0] >= whole[1] else (own, plain)
    same = (
        (types.is_time(plain) and stored.member == "TIME")
        or (plain == pa.string() and (stored.member in _TEXTS or stored.member == own.member))
        or (plain == pa.binary() and stored.physical == Type.BYTE_ARRAY and stored.member in ("", "BSON"))
        or (
            types.is_fixed_size_binary(plain) and stored.physical == Type.FIXED_LEN_BYTE_ARRAY
            and plain == stored.physical_arrow() and stored.member in ("", "UUID")
        )
        or (types.is_integer(plain) and plain == stored_arrow and not types.is_duration(arrow))
    )
    return (stored, stored_arrow if types.is_time(plain) else plain) if same else (own, plain)


def _timestamp(
    own: LeafType, plain: pa.DataType, stored: LeafType, stored_arrow: pa.DataType, int96_unit: str
) -> tuple[LeafType, pa.DataType]:
    if stored.physical == Type.INT96 and stored.logical is None:
        return stored, pa.timestamp("ns", plain.tz) if int96_unit == "ns" else plain
    logical = stored.logical.TIMESTAMP if stored.logical is not None and stored.member == "TIMESTAMP" else None
    if logical is None or logical.isAdjustedToUTC != (plain.tz is not None):
        return own, plain
    return stored, pa.timestamp(stored_arrow.unit, plain.tz)
