"""Index of the distinct string prefixes of each object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.dataset.expressions import Base, Expression, IsNotNull, IsNull
from pqext.dataset.expressions.patterns import successor
from pqext.skipping.indexes.index import Collector, Index, is_plain
from pqext.skipping.indexes.ranges import Ranges

LENGTH, MOST = "io.pqext.length", "io.pqext.most"
_LENGTH, _MOST = 4, 10_000


@dataclass(frozen=True, init=False)
class Prefix(Index):
    """Distinct prefixes of each object's strings, ``length`` bytes each, if there are at most ``max_values``.

    The index excludes objects for patterns with a prefix, ``isin`` and comparisons. Each prefix represents a range.
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
        if isinstance(leaf, IsNull) or not is_plain(leaf, self.operand):
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
    """Return the range of strings with each prefix. A prefix shorter than ``length`` is a complete string."""
    above = [
        prefix if prefix is None or len(prefix) < length else successor(prefix) for prefix in prefixes.to_pylist()
    ]
    return Ranges(_text(prefixes), _text(pa.array(above, pa.binary())), shows_nan=True)


def _text(array: pa.Array) -> pa.Array:
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
