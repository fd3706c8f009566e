"""Decode the bounds of VARIANT paths in the logs of tables.

The bounds are objects whose keys are normalised JSON paths (:mod:`pqext.table_metrics.variant_bounds`). They are
assigned to the columns of a template file that is shredded by these paths, so that the rules for shredded columns also
prune files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa

from pqext.core.base.errors import VariantError
from pqext.core.format.predicate import Bounds, Value
from pqext.table_metrics.variant_bounds import variant_bound
from pqext.variant.access.path import parse
from pqext.variant.binary_value import decode_metadata
from pqext.variant.encoding import PrimitiveType, ScaledDecimal, decode_primitive, open_container, value_size

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
_VariantPath = tuple[str, ...]
_MICROSECONDS = frozenset({_T.TIME_NTZ, _T.TIMESTAMP, _T.TIMESTAMP_NTZ})


@dataclass(frozen=True, slots=True)
class PathRange:
    """Bounds of the values at a path of a VARIANT column. All values have the type ``type`` or are null."""

    type: pa.DataType
    bounds: Bounds


def path_ranges(
    lower: bytes | None, upper: bytes | None, variant_paths: Collection[_VariantPath]
) -> dict[_VariantPath, PathRange]:
    """Decode the bounds of ``variant_paths`` from the bounds of a VARIANT column.

    A path is omitted if a bound is missing or cannot be decoded, or if its bounds have different types. Paths of floats
    may contain NaN, because writers that copy the bounds of Parquet columns ignore NaN.
    """
    if lower is None or upper is None:
        return {}
    try:
        low, high = (dict(_members(bound, variant_paths)) for bound in (lower, upper))
    except (VariantError, ValueError, IndexError):
        return {}
    ranges = {}
    for path, (low_type, minimum) in low.items():
        high_type, maximum = high.get(path, (None, None))
        if low_type is not None and low_type == high_type:
            has_nan = None if low_type in _FLOATS else False
            ranges[path] = PathRange(low_type, Bounds(minimum, maximum, has_nan=has_nan))
    return ranges


def _members(
    bound: bytes, variant_paths: Collection[_VariantPath]
) -> Iterator[tuple[_VariantPath, tuple[pa.DataType | None, Value | None]]]:
    """Yield each path of ``variant_paths`` that a bound contains, with the type and value at the path.

    Raises ``VariantError``, ``ValueError`` or ``IndexError`` for bytes that are not a bound of a VARIANT column.
    """
    variant = variant_bound(bound)
    paths, data = _paths(variant.metadata), variant.value
    container = open_container(data, 0, len(data))
    if container.ids is None:
        raise ValueError("the bound of a VARIANT column is not an object")
    for field, offset in zip(container.ids, container.offsets, strict=False):
        path = paths[field]
        if path is not None and path in variant_paths:
            start = container.values + offset
            end = start + value_size(data, start, container.end)
            yield path, _comparable(*decode_primitive(data, start, end))


@lru_cache(maxsize=256)
def _paths(metadata: bytes) -> tuple[_VariantPath | None, ...]:
    """Parse the keys in the metadata of a bound; None for keys that are not paths. Files often share the metadata."""
    return tuple(map(_parse_key, decode_metadata(metadata).names))


def _parse_key(key: str) -> _VariantPath | None:
    try:
        path = parse(key)
    except ValueError:
        return None
    return tuple(map(str, path)) if all(isinstance(step, str) for step in path) else None


def _comparable(primitive: PrimitiveType, value: Any) -> tuple[pa.DataType | None, Value | None]:
    """Return the Arrow type of a bound, and its value in comparison form; None for a null."""
    if primitive in _DECIMALS and isinstance(value, ScaledDecimal):
        number = Decimal(value.unscaled).scaleb(-value.scale)
        return (pa.decimal128(38, value.scale), number) if value.scale <= 38 else (None, None)
    type = _TYPES.get(primitive)
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
