"""Decode the bounds of VARIANT paths in the logs of tables.

The bounds are objects whose keys are normalised JSON paths (:mod:`pqext.table_metrics.variant_bounds`). They are
assigned to the columns of a template file that is shredded by these paths, so that the rules for shredded columns also
prune files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa

from pqext.core.base.errors import VariantError
from pqext.core.format.predicate import Bounds, Value
from pqext.table_metrics.variant_bounds import split_bound
from pqext.variant.access.cast import extract
from pqext.variant.access.path import parse
from pqext.variant.binary_value import decode_metadata
from pqext.variant.encoding import PrimitiveType, ScaledDecimal, decode_primitive
from pqext.variant.types import variant_array

_T = PrimitiveType
_INTEGERS = frozenset({_T.INT8, _T.INT16, _T.INT32, _T.INT64})
_DECIMALS = frozenset({_T.DECIMAL4, _T.DECIMAL8, _T.DECIMAL16})
_TYPES = {
    _T.TRUE: pa.bool_(), _T.FALSE: pa.bool_(), _T.FLOAT: pa.float32(), _T.DOUBLE: pa.float64(), _T.DATE: pa.date32(),
    _T.TIME_NTZ: pa.time64("us"), _T.TIMESTAMP: pa.timestamp("us", "UTC"), _T.TIMESTAMP_NTZ: pa.timestamp("us"),
    _T.TIMESTAMP_NANOS: pa.timestamp("ns", "UTC"), _T.TIMESTAMP_NTZ_NANOS: pa.timestamp("ns"), _T.STRING: pa.string(),
    _T.BINARY: pa.binary(), _T.UUID: pa.binary(16), **dict.fromkeys(_INTEGERS, pa.int64()),
}
_FLOATS = frozenset({pa.float32(), pa.float64()})
_BATCH_BYTES = 16 << 20
"""Maximum size of bounds that are searched together. Each bound needs a copy of the metadata."""
_VariantPath = tuple[str, ...]
_PathBound = tuple[pa.DataType | None, Value | None]
_MICROSECONDS = frozenset({_T.TIME_NTZ, _T.TIMESTAMP, _T.TIMESTAMP_NTZ})


@dataclass(frozen=True, slots=True)
class PathRange:
    """Bounds of the values at a path of a VARIANT column. All values have the type ``type`` or are null."""

    type: pa.DataType
    bounds: Bounds


def path_ranges(
    bounds: Sequence[tuple[bytes | None, bytes | None]], variant_paths: Collection[_VariantPath]
) -> list[dict[_VariantPath, PathRange]]:
    """Decode the bounds of ``variant_paths`` in each file from the lower and upper bounds of a VARIANT column.

    A path is omitted if a bound is missing or cannot be decoded, or if its bounds have different types. Paths of floats
    may contain NaN, because writers that copy the bounds of Parquet columns ignore NaN.
    """
    lows, highs = (_decode([pair[side] for pair in bounds], variant_paths) for side in (0, 1))
    return [_pair(low, high) for low, high in zip(lows, highs, strict=True)]


def _pair(
    low: Mapping[_VariantPath, _PathBound], high: Mapping[_VariantPath, _PathBound]
) -> dict[_VariantPath, PathRange]:
    ranges = {}
    for path, (low_type, minimum) in low.items():
        high_type, maximum = high.get(path, (None, None))
        if low_type is not None and low_type == high_type:
            has_nan = None if low_type in _FLOATS else False
            ranges[path] = PathRange(low_type, Bounds(minimum, maximum, has_nan=has_nan))
    return ranges


def _decode(
    bounds: Sequence[bytes | None], variant_paths: Collection[_VariantPath]
) -> list[dict[_VariantPath, _PathBound]]:
    """Return the type and value at each path of ``variant_paths`` in each bound. Invalid bounds have no paths.

    Bounds with the same metadata, as the files of a table usually have, are searched together, up to ``_BATCH_BYTES``.
    """
    result: list[dict[_VariantPath, _PathBound]] = [{} for _ in bounds]
    rows_by_metadata: dict[bytes, list[int]] = {}
    values: dict[int, bytes] = {}
    for row, bound in enumerate(bounds):
        if bound is None:
            continue
        try:
            metadata, values[row] = split_bound(bound)
        except (VariantError, ValueError, IndexError):
            continue
        rows_by_metadata.setdefault(metadata, []).append(row)
    for metadata, group in rows_by_metadata.items():
        step = max(_BATCH_BYTES // (len(metadata) + max(len(values[row]) for row in group)), 1)
        for rows in (group[start : start + step] for start in range(0, len(group), step)):
            try:
                keys = [(key, path) for key, path in _paths(metadata) if path in variant_paths]
                for row, found in zip(rows, _find(metadata, [values[row] for row in rows], keys), strict=True):
                    result[row] = found
            except (VariantError, ValueError, IndexError):
                if len(rows) > 1:  # decode the valid bounds without the invalid one
                    for row in rows:
                        [result[row]] = _decode([bounds[row]], variant_paths)
    return result


def _find(
    metadata: bytes, values: Sequence[bytes], keys: Sequence[tuple[str, _VariantPath]]
) -> list[dict[_VariantPath, _PathBound]]:
    """Return the type and value of each key in each object of ``values``, by path.

    Raises ``VariantError`` for invalid bytes and for values of a key that are not primitive.
    """
    objects = variant_array(pa.array([metadata] * len(values), pa.binary()), pa.array(values, pa.binary()))
    result: list[dict[_VariantPath, _PathBound]] = [{} for _ in values]
    for key, path in keys:
        members = extract(objects, [key])
        for row, member in enumerate(members.field("value").to_pylist() if members.null_count < len(values) else ()):
            if member is not None and member:
                result[row][path] = _comparable(*decode_primitive(member, 0, len(member)))
    return result


@lru_cache(maxsize=256)
def _paths(metadata: bytes) -> tuple[tuple[str, _VariantPath], ...]:
    """Return the keys in the metadata of a bound that are paths, with the parsed paths."""
    names = decode_metadata(metadata).names
    return tuple((name, path) for name in names if (path := _parse_key(name)) is not None)


def _parse_key(key: str) -> _VariantPath | None:
    try:
        path = parse(key)
    except ValueError:
        return None
    return tuple(map(str, path)) if all(isinstance(step, str) for step in path) else None


def _comparable(primitive: PrimitiveType, value: Any) -> tuple[pa.DataType | None, Value | None]:
    """Return the Arrow type of a bound, and its value in comparison form; None for a null and for NaN."""
    if primitive in _DECIMALS and isinstance(value, ScaledDecimal):
        number = Decimal(value.unscaled).scaleb(-value.scale)
        return (pa.decimal128(38, value.scale), number) if value.scale <= 38 else (None, None)
    type = _TYPES.get(primitive)
    if value != value:
        return type, None
    if isinstance(value, str):
        return type, value.encode()
    if isinstance(value, UUID):
        return type, value.bytes
    return type, value * 1_000 if primitive in _MICROSECONDS else value


def shredding_of(paths: Mapping[tuple[str, ...], pa.DataType]) -> Any:
    """Return a shredding schema with typed columns for ``paths``.

    Returns None if there are no paths, or if a path is both a value and an object.
    """
    if () in paths:
        return paths[()] if len(paths) == 1 else None
    tree: dict[str, Any] = {}
    for path, type in paths.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
            if not isinstance(node, dict):
                return None
        if path[-1] in node:
            return None
        node[path[-1]] = type
    return _struct(tree) if tree else None


def _struct(tree: Mapping[str, Any]) -> pa.DataType:
    return pa.struct([(name, _struct(item) if isinstance(item, dict) else item) for name, item in tree.items()])
