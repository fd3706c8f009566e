"""Index with a Bloom filter of each object's values: xskipper's ``bloomfilter``, a Spark filter serialised by Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pqext.dataset.expressions import Base, Comparison, Expression, IsIn
from pqext.skipping.format.spark_bloom import BloomBuilder, may_contain_any
from pqext.skipping.indexes.index import Collector, Index, is_plain

FPP, NDV = "io.xskipper.index.bloom.fpp", "io.xskipper.index.bloom.ndv"
_FPP, _NDV = 0.01, 100_000


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
            raise TypeError(f"a BloomFilter index needs integers or strings; {self.operand} has type {values}")
        return pa.binary()

    def collector(self, values: pa.DataType) -> Collector:
        return _Filter(self.ndv, self.fpp)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if not isinstance(leaf, Comparison | IsIn) or not is_plain(leaf, self.operand):
            return None
        if isinstance(leaf, Comparison) and leaf.operator != "==":
            return None
        literals = leaf.values if isinstance(leaf, IsIn) else (leaf.value,)
        values = [_hash(value) for value in literals]
        if None in values:
            return None
        return pa.array(may_contain_any(cells, [value for value in values if value is not None]))


def _hash(literal: Any) -> int | bytes | None:
    """Return a literal as it is inserted into a filter; None if filters do not support it."""
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
