"""Convert values of an Arrow type to the storage of a leaf in an existing file."""

from __future__ import annotations

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import Type
from pqext.core.schema.types.logical import LeafType
from pqext.core.schema.types.physical_types import normal

_TEXTS = ("STRING", "ENUM")


def stored_like(
    own: LeafType, arrow: pa.DataType, there: LeafType, int96_unit: str
) -> tuple[LeafType, pa.DataType]:
    """Return how values of type ``arrow`` are stored in a leaf of type ``there``, and the Arrow type to cast them to.

    The same values have several stored forms: decimals in four physical types, timestamps in INT96 or in three units,
    texts as ENUM. Returns ``own`` and its type where the leaf cannot hold the values. Readers take INT96 for timestamps
    of ``int96_unit``, so that none may be beyond what that holds.
    """
    types, kind = pa.types, normal(arrow)
    try:
        shown = normal(there.arrow_type())
    except ParquetError:
        return own, kind
    if types.is_null(arrow):
        return there, shown
    if there.member == "UNKNOWN":
        return own, kind
    if types.is_timestamp(arrow):
        return _timestamp(own, kind, there, shown, int96_unit)
    if types.is_decimal(kind) and types.is_decimal(shown):
        # Digits on both sides of the point are enough.
        whole = shown.precision - shown.scale, kind.precision - kind.scale
        return (there, shown) if shown.scale >= kind.scale and whole[0] >= whole[1] else (own, kind)
    same = (
        (types.is_time(kind) and there.member == "TIME")
        or (kind == pa.string() and (there.member in _TEXTS or there.member == own.member))
        or (kind == pa.binary() and there.physical == Type.BYTE_ARRAY and there.member in ("", "BSON"))
        or (
            types.is_fixed_size_binary(kind) and there.physical == Type.FIXED_LEN_BYTE_ARRAY
            and kind == there.physical_arrow() and there.member in ("", "UUID")
        )
        or (types.is_integer(kind) and kind == shown and not types.is_duration(arrow))
    )
    return (there, shown if types.is_time(kind) else kind) if same else (own, kind)


def _timestamp(
    own: LeafType, kind: pa.DataType, there: LeafType, shown: pa.DataType, int96_unit: str
) -> tuple[LeafType, pa.DataType]:
    if there.physical == Type.INT96 and there.logical is None:
        return there, pa.timestamp("ns", kind.tz) if int96_unit == "ns" else kind
    logical = there.logical.TIMESTAMP if there.logical is not None and there.member == "TIMESTAMP" else None
    if logical is None or logical.isAdjustedToUTC != (kind.tz is not None):
        return own, kind
    return there, pa.timestamp(shown.unit, kind.tz)
