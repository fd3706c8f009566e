"""Index of the distinct values of each object: xskipper's ``valuelist``, a list without nulls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import Base, Expression, IsNull
from pqext.skipping.indexes.index import Collector, Index

MOST = "io.pqext.most"
_MOST = 10_000


@dataclass(frozen=True, init=False)
class ValueList(Index):
    """Distinct non-null values of each object, if there are at most ``max_values``.

    The index excludes objects for every condition on the operand except ``is_null``, by evaluating the condition on
    the values.
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
