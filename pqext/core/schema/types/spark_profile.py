"""``profile="spark"``: check types against Spark's own Parquet reader, and replace types that it does not support.

Spark 4 rejects a column, or the complete file, for some types of the format. The writer's profile stores the nearest
type that holds every value, or rejects the column by name:

- half floats become FLOAT;
- timestamps and times in nanoseconds, and times in milliseconds, become microseconds; values with finer digits are
  rejected, but TIME of seven to nine digits is stored where Spark 4.3 itself writes it;
- timestamps in milliseconds are stored, but values beyond 64 bits of microseconds are rejected, also as INT96, because
  both of Spark's readers fail on them;
- times become local times, since Spark has no others;
- UUIDs become plain 16 bytes and FILE structs plain structs, without their annotation;
- decimals of more than 38 digits and intervals are rejected;
- GEOMETRY and GEOGRAPHY require a CRS that Spark parses: ``OGC:CRS84``, ``EPSG:<n>`` or ``SRID:<n>``;
- BROTLI is rejected, because Spark has no codec for it;
- ALP is rejected, and so is BYTE_STREAM_SPLIT for Spark before 4.3, whose vectorized reader lacks it;
- encrypted pages of version 2 are rejected, because Spark reads their levels as plaintext;
- a chunk of floats that contains NaN has no bounds: Spark prunes by them, and NaN is above all numbers;
- a dictionary of floats that contains one zero also contains the other: Spark regards them as equal, and prunes chunks
  whose dictionary lacks the requested one.

Unsigned integers are stored: Spark reads them as the next wider type, UINT_64 as DECIMAL(20, 0).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import UnsupportedError
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types import marks

SPARK_NANOSECONDS = b"pqext:spark_nanoseconds"
"""Mark of a time of day that Spark stores as TIME(7) to TIME(9). Its reader expects nanoseconds."""

_CRS = re.compile(r"OGC:CRS84|EPSG:\d+|SRID:\d+", re.IGNORECASE)
_EXTENSION = b"ARROW:extension:name"


Marks = dict[bytes, bytes]


def adapt(arrow_type: pa.DataType, metadata: Marks, path: str, *, exact: bool) -> tuple[pa.DataType, Marks]:
    """Return the Arrow type and the field metadata to store a leaf at dotted ``path`` for Spark.

    Raises ``UnsupportedError`` if no supported type can represent every value. With ``exact``, only the leaf's own type
    is accepted, since a type within a VARIANT is part of the value.
    """
    result = _adapt(arrow_type, metadata, path)
    if exact and result != (arrow_type, metadata):
        reason = f"{arrow_type} is not supported by Spark within a VARIANT; use another shredding"
        raise _unsupported_error(path, reason)
    return result


def _adapt(arrow_type: pa.DataType, metadata: Marks, path: str) -> tuple[pa.DataType, Marks]:
    types = pa.types
    if types.is_decimal(arrow_type) and arrow_type.precision > 38:
        raise _unsupported_error(path, f"{arrow_type} has more than the 38 digits of Spark's decimals")
    if types.is_interval(arrow_type):
        raise _unsupported_error(path, "INTERVAL is not supported by Spark")
    if types.is_float16(arrow_type):
        return pa.float32(), metadata
    if types.is_timestamp(arrow_type) and arrow_type.unit == "ns" and metadata.get(marks.PHYSICAL_TYPE) != b"INT96":
        return pa.timestamp("us", arrow_type.tz), metadata
    if types.is_time(arrow_type) and SPARK_NANOSECONDS not in metadata:
        return pa.time64("us"), {key: value for key, value in metadata.items() if key != marks.ADJUSTED_TO_UTC}
    if types.is_fixed_size_binary(arrow_type) and marks.logical_name(metadata) == "UUID":
        marked = (_EXTENSION, marks.LOGICAL_TYPE)
        return arrow_type, {key: value for key, value in metadata.items() if key not in marked}
    return arrow_type, metadata


def check(schema: Schema) -> None:
    """Raise ``UnsupportedError`` if the schema contains a CRS that Spark cannot parse."""
    for node in _nodes(schema.root):
        logical = node.logical_type
        spatial = (logical.GEOMETRY or logical.GEOGRAPHY) if logical is not None else None
        if spatial is not None and spatial.crs is not None and not _CRS.fullmatch(spatial.crs):
            raise _unsupported_error(
                node.dotted_path, "a CRS that Spark does not parse; use OGC:CRS84, EPSG:<n> or SRID:<n>"
            )


_A_MICROSECOND = {"s": 10**6, "ms": 10**3}


def check_values(values: pa.Array, path: str) -> None:
    """Raise ``UnsupportedError`` for values of the leaf at ``path`` that Spark's type for the leaf cannot represent."""
    if not pa.types.is_timestamp(values.type) or values.type.unit not in _A_MICROSECOND:
        return
    most = (2**63 - 1) // _A_MICROSECOND[values.type.unit]
    counts = values.view(pa.int64())
    far = pc.or_(pc.less(counts, -most), pc.greater(counts, most))
    if pc.any(far).as_py():
        at = pc.index(far, True).as_py()
        raise _unsupported_error(
            path,
            f"non-null value {at} of a row group is {counts[at].as_py()} {values.type.unit} since 1970-01-01, beyond "
            "the 64-bit microseconds of Spark's timestamps",
        )


def _nodes(node: SchemaNode) -> list[SchemaNode]:
    return [node, *(below for child in node.children for below in _nodes(child))]


def _unsupported_error(path: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"profile='spark' cannot store column {path!r}: {reason}", feature="profile spark", column=path
    )
