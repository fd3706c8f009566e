"""Indexes of the distinct values of objects: all values, prefixes of strings, or a Bloom filter.

``valuelist`` and ``bloomfilter`` are indexes of xskipper: a list without nulls, and a Spark filter serialised by Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Base, Comparison, Expression, IsIn, IsNotNull, IsNull
from pqext.dataset.expressions.patterns import successor
from pqext.skipping.format.spark_bloom import BloomBuilder, may_contain_any
from pqext.skipping.indexes.index import Collector, Index, is_direct_condition
from pqext.skipping.indexes.ranges import Ranges

MOST = "io.pqext.most"
_MOST = 10_000
LENGTH = "io.pqext.length"
_LENGTH = 4
FPP, NDV = "io.xskipper.index.bloom.fpp", "io.xskipper.index.bloom.ndv"
_FPP, _NDV = 0.01, 100_000


@dataclass(frozen=True, init=False)
class ValueList(Index):
    """Distinct non-null values of each object, if there are at most ``max_values``.

    Objects are excluded for every condition on the operand except ``is_null``, by evaluating the condition on the
    values.
    """

    name = "valuelist"
    is_original = True
    max_values: int = _MOST
    """Maximum number of values; the values of an object with more are unknown."""

    def __init__(self, operand: str | Base, max_values: int = _MOST) -> None:
        Index.__init__(self, operand)
        if isinstance(max_values, bool) or not isinstance(max_values, int) or max_values < 1:
            raise ValueError(f"max_values must be a positive integer, not {max_values!r}")
        object.__setattr__(self, "max_values", max_values)

    @property
    def params(self) -> Mapping[str, str]:
        return {} if self.max_values == _MOST else {MOST: str(self.max_values)}

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> ValueList:
        return cls(operand, int(params.get(MOST, _MOST)))

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        if pa.types.is_nested(values):
            raise TypeError(f"a ValueList index does not support values of type {values}")
        return pa.list_(values)

    def collector(self, values: pa.DataType) -> Collector:
        return _Distinct(values, self.max_values)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if isinstance(leaf, IsNull) or not (pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type)):
            return None
        values, rows = cells.flatten(), np.asarray(pc.list_parent_indices(cells))
        batch = pa.record_batch({"": values})
        result = evaluate(leaf, batch, {self.operand._key(): values})
        matching = np.asarray(pc.fill_null(result, False)) | np.asarray(pc.is_null(values))
        may = np.bincount(rows[matching], minlength=len(cells)) > 0
        return pa.array(may, mask=np.asarray(pc.is_null(cells)))


class _Distinct:
    def __init__(self, values: pa.DataType, max_values: int) -> None:
        self._type = values
        self._values: pa.Array | None = pa.nulls(0, values)
        self._most = max_values

    def add(self, values: pa.Array) -> None:
        if self._values is None:
            return
        distinct = pc.unique(pa.concat_arrays([self._values, pc.drop_null(pc.unique(values))]))
        self._values = distinct if len(distinct) <= self._most else None

    def cell(self) -> pa.Array:
        if self._values is None:
            return pa.nulls(1, pa.list_(self._type))
        return pa.ListArray.from_arrays(pa.array([0, len(self._values)], pa.int32()), self._values)


@dataclass(frozen=True, init=False)
class Prefix(Index):
    """Distinct prefixes, of ``length`` bytes, of each object's strings, if there are at most ``max_values``.

    Objects are excluded for patterns with a prefix, ``isin`` and comparisons. Each prefix represents a range.
    """

    name = "prefix"
    length: int = _LENGTH
    """Length of a prefix in bytes."""
    max_values: int = _MOST
    """Maximum number of prefixes; the prefixes of an object with more are unknown."""

    def __init__(self, operand: str | Base, length: int = _LENGTH, max_values: int = _MOST) -> None:
        Index.__init__(self, operand)
        for name, number in (("length", length), ("max_values", max_values)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"{name} must be a positive integer, not {number!r}")
            object.__setattr__(self, name, number)

    @property
    def params(self) -> Mapping[str, str]:
        return {LENGTH: str(self.length), MOST: str(self.max_values)}

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> Prefix:
        return cls(operand, int(params.get(LENGTH, _LENGTH)), int(params.get(MOST, _MOST)))

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        types = pa.types
        if not any(is_text(values) for is_text in (types.is_string, types.is_large_string, types.is_string_view)):
            raise TypeError(f"a Prefix index needs strings; {self.operand} has type {values}")
        return pa.list_(pa.binary())

    def collector(self, values: pa.DataType) -> Collector:
        return _Prefixes(self.length, self.max_values)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if isinstance(leaf, IsNull) or not is_direct_condition(leaf, self.operand):
            return None
        lengths = pc.list_value_length(cells)
        if isinstance(leaf, IsNotNull):
            return pc.greater(lengths, 0)
        matches = _ranges(cells.flatten(), self.length).may_match(leaf)
        if matches is None:
            return None
        rows = np.asarray(pc.list_parent_indices(cells))
        may = np.bincount(rows[np.asarray(pc.fill_null(matches, True))], minlength=len(cells)) > 0
        return pa.array(may, mask=np.asarray(pc.is_null(cells)))


def _ranges(prefixes: pa.Array, length: int) -> Ranges:
    """Return, for each prefix, the range of the strings that start with it.

    A prefix shorter than ``length`` is a complete string.
    """
    above = [
        prefix if prefix is None or len(prefix) < length else successor(prefix) for prefix in prefixes.to_pylist()
    ]
    return Ranges(_as_strings(prefixes), _as_strings(pa.array(above, pa.binary())), shows_nan=True)


def _as_strings(array: pa.Array) -> pa.Array:
    """Reinterpret bytes, which may be invalid UTF-8, as strings, so that they can be compared with string literals."""
    validity, offsets, data = array.buffers()
    return pa.StringArray.from_buffers(len(array), offsets, data, validity, array.null_count, array.offset)


class _Prefixes:
    def __init__(self, length: int, max_values: int) -> None:
        self._values: pa.Array | None = pa.nulls(0, pa.binary())
        self._length, self._most = length, max_values

    def add(self, values: pa.Array) -> None:
        if self._values is None:
            return
        prefixes = pc.binary_slice(pc.drop_null(values).cast(pa.binary()), 0, self._length)
        distinct = pc.unique(pa.concat_arrays([self._values, pc.unique(prefixes)]))
        self._values = distinct if len(distinct) <= self._most else None

    def cell(self) -> pa.Array:
        if self._values is None:
            return pa.nulls(1, pa.list_(pa.binary()))
        return pa.ListArray.from_arrays(pa.array([0, len(self._values)], pa.int32()), self._values)


@dataclass(frozen=True, init=False)
class BloomFilter(Index):
    """Bloom filter of each object's integers or strings, for equality and ``isin``.

    ``fpp`` is the false positive probability for objects with ``ndv`` distinct values.
    """

    name = "bloomfilter"
    is_original = True
    fpp: float = _FPP
    """False positive probability."""
    ndv: int = _NDV
    """Expected number of distinct values of an object."""

    def __init__(self, operand: str | Base, fpp: float = _FPP, ndv: int = _NDV) -> None:
        Index.__init__(self, operand)
        if isinstance(fpp, bool) or not isinstance(fpp, int | float) or not 0 < fpp < 1:
            raise ValueError(f"fpp must be between 0 and 1, not {fpp!r}")
        if isinstance(ndv, bool) or not isinstance(ndv, int) or not 0 < ndv <= 1 << 30:
            raise ValueError(f"ndv must be an integer from 1 to {1 << 30:,}, not {ndv!r}")
        object.__setattr__(self, "fpp", float(fpp))
        object.__setattr__(self, "ndv", ndv)

    @property
    def params(self) -> Mapping[str, str]:
        return {FPP: str(self.fpp), NDV: str(self.ndv)}

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> BloomFilter:
        return cls(operand, float(params.get(FPP, _FPP)), int(params.get(NDV, _NDV)))

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        types = pa.types
        supported = types.is_signed_integer, types.is_string, types.is_large_string, types.is_string_view
        if not any(is_supported(values) for is_supported in supported):
            raise TypeError(
                f"a BloomFilter index requires signed integers or strings; {self.operand} has type {values}"
            )
        return pa.binary()

    def collector(self, values: pa.DataType) -> Collector:
        return _Filter(self.ndv, self.fpp)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if not isinstance(leaf, Comparison | IsIn) or not is_direct_condition(leaf, self.operand):
            return None
        if isinstance(leaf, Comparison) and leaf.operator != "==":
            return None
        literals = leaf.values if isinstance(leaf, IsIn) else (leaf.value,)
        values = [_filter_value(value) for value in literals]
        if None in values:
            return None
        return pa.array(may_contain_any(cells, [value for value in values if value is not None]))


def _filter_value(literal: Any) -> int | bytes | None:
    """Return the representation of a literal in Bloom filters; None if filters do not support it."""
    if isinstance(literal, str):
        return literal.encode()
    is_integer = isinstance(literal, int) and not isinstance(literal, bool)
    return literal if is_integer and -(1 << 63) <= literal < 1 << 63 else None


class _Filter:
    def __init__(self, ndv: int, fpp: float) -> None:
        self._builder = BloomBuilder(ndv, fpp)

    def add(self, values: pa.Array) -> None:
        self._builder.add(values)

    def cell(self) -> pa.Array:
        return pa.array([self._builder.finish()], pa.binary())
