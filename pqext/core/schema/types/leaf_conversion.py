"""Choose the storage of an Arrow type in a leaf of an existing file."""

from __future__ import annotations

import pyarrow as pa

from pqext.core.base.errors import ParquetError
from pqext.core.format.metadata import Type
from pqext.core.schema.types.logical import LeafType
from pqext.core.schema.types.physical_types import canonical_type

_TEXTS = ("STRING", "ENUM")


def choose_storage(
    target_type: LeafType, arrow_type: pa.DataType, file_type: LeafType, int96_unit: str
) -> tuple[LeafType, pa.DataType]:
    """Return the leaf type for values of type ``arrow_type`` in a leaf of ``file_type``, and the Arrow type to cast to.

    The same values can be stored differently: decimals in four physical types, timestamps as INT96 or in three units,
    and text as ENUM. If the leaf cannot store the values, return ``target_type`` and its Arrow type. ``int96_unit`` is
    the unit that readers use for INT96, so timestamps must be in its range.
    """
    types, plain = pa.types, canonical_type(arrow_type)
    try:
        stored_arrow = canonical_type(file_type.arrow_type())
    except ParquetError:
        return target_type, plain
    if types.is_null(arrow_type):
        return file_type, stored_arrow
    if file_type.member == "UNKNOWN":
        return target_type, plain
    if types.is_timestamp(arrow_type):
        return _timestamp(target_type, plain, file_type, stored_arrow, int96_unit)
    if types.is_decimal(plain) and types.is_decimal(stored_arrow):
        # There must be enough digits on both sides of the decimal point.
        whole = stored_arrow.precision - stored_arrow.scale, plain.precision - plain.scale
        return (file_type, stored_arrow) if stored_arrow.scale >= plain.scale and whole[0] >= whole[1] else (
            target_type, plain
        )
    same = (
        (types.is_time(plain) and file_type.member == "TIME")
        or (plain == pa.string() and (file_type.member in _TEXTS or file_type.member == target_type.member))
        or (plain == pa.binary() and file_type.physical == Type.BYTE_ARRAY and file_type.member in ("", "BSON"))
        or (
            types.is_fixed_size_binary(plain) and file_type.physical == Type.FIXED_LEN_BYTE_ARRAY
            and plain == file_type.physical_arrow_type() and file_type.member in ("", "UUID")
        )
        or (types.is_integer(plain) and plain == stored_arrow and not types.is_duration(arrow_type))
    )
    return (file_type, stored_arrow if types.is_time(plain) else plain) if same else (target_type, plain)


def _timestamp(
    target_type: LeafType, plain_type: pa.DataType, file_type: LeafType, stored_arrow: pa.DataType, int96_unit: str
) -> tuple[LeafType, pa.DataType]:
    if file_type.physical == Type.INT96 and file_type.logical is None:
        return file_type, pa.timestamp("ns", plain_type.tz) if int96_unit == "ns" else plain_type
    logical = file_type.logical.TIMESTAMP if file_type.logical is not None and file_type.member == "TIMESTAMP" else None
    if logical is None or logical.isAdjustedToUTC != (plain_type.tz is not None):
        return target_type, plain_type
    return file_type, pa.timestamp(stored_arrow.unit, plain_type.tz)
