"""Which paths the values of a VARIANT column have in each object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.dataset.expressions import Base, Column, Expression, IsNull, VariantField
from pqext.dataset.expressions.visitors import operands
from pqext.skipping.indexes.index import Collector, Index
from pqext.variant import faults
from pqext.variant.access.path import as_path, format_path
from pqext.variant.coercion import as_variants
from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.infer import Survey
from pqext.variant.shredding.reconstruct import unshred
from pqext.variant.types import is_variant_type, struct_chunks

_DEPTH = 8
"""Names of a path that are looked at; what lies deeper may be there."""
_MOST = 10_000
"""Paths that are kept at most; of an object with more they are not known."""


@dataclass(frozen=True, init=False)
class VariantPaths(Index):
    """The paths of names that occur in a VARIANT column of each object.

    Refuses every condition but ``is_null`` on a value within the column whose path is not among them.
    """

    name = "paths"

    def __init__(self, operand: str | Base) -> None:
        Index.__init__(self, operand)
        if not isinstance(self.operand, Column):
            raise TypeError("an index of paths is on a VARIANT column, not on a value within one")

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        if not is_variant_type(values):
            raise TypeError(f"{self.operand} is no VARIANT but of type {values}")
        return pa.list_(pa.string())

    def collector(self, values: pa.DataType) -> Collector:
        return _Paths()

    def is_asked(self, leaf: Expression) -> bool:
        asked = operands(leaf)
        return len(asked) == 1 and isinstance(asked[0], VariantField) and asked[0].column.equals(self.operand)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        (field,) = operands(leaf)
        if isinstance(leaf, IsNull) or not isinstance(field, VariantField):
            return None
        names = []
        for step in as_path(field.path)[:_DEPTH]:
            if not isinstance(step, str):
                break
            names.append(step)
        if not names:
            return None
        rows = np.asarray(pc.list_parent_indices(cells))
        found = np.asarray(pc.equal(cells.flatten(), format_path(tuple(names))))
        may = np.bincount(rows[found], minlength=len(cells)) > 0
        return pa.array(may, mask=np.asarray(pc.is_null(cells)))


class _Paths:
    def __init__(self) -> None:
        self._survey = Survey(_MOST, _DEPTH)

    def add(self, values: pa.Array) -> None:
        for chunk in struct_chunks(as_variants(values)):
            status, _ = self._survey.add(VariantInput(unshred(chunk)), len(chunk))
            if status != 0:
                raise faults.error(status)

    def cell(self) -> pa.Array:
        if self._survey.full:
            return pa.nulls(1, pa.list_(pa.string()))
        paths: list[tuple[str, ...] | None] = []
        for place in self._survey.places():
            above: Sequence[str] | None = () if place["parent"] < 0 else paths[place["parent"]]
            if place["parent"] >= 0 and (place["name"] is None or above is None):  # within arrays
                paths.append(None)
            elif place["parent"] < 0:
                paths.append(())
            else:
                paths.append((*(above or ()), place["name"].decode()))
        named = sorted({format_path(path) for path in paths if path})
        return pa.array([named], pa.list_(pa.string()))
