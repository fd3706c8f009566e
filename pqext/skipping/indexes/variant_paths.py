"""Index of the paths that occur in a VARIANT column, for each file (object) of a table."""

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
"""Maximum names of an indexed path; deeper paths may exist."""
_MOST = 10_000
"""Maximum number of paths; the paths of an object with more are unknown."""


@dataclass(frozen=True, init=False)
class VariantPaths(Index):
    """Paths of object fields in the values of a VARIANT column in each object.

    The index excludes objects for conditions, except ``is_null``, on a value whose path does not occur.
    """

    name = "paths"

    def __init__(self, operand: str | Base) -> None:
        Index.__init__(self, operand)
        if not isinstance(self.operand, Column):
            raise TypeError(f"a VariantPaths index needs a VARIANT column, not the value {self.operand}")

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        if not is_variant_type(values):
            raise TypeError(f"a VariantPaths index needs a VARIANT column; {self.operand} has type {values}")
        return pa.list_(pa.string())

    def collector(self, values: pa.DataType) -> Collector:
        return _Paths()

    def applies_to(self, leaf: Expression) -> bool:
        fields = operands(leaf)
        return len(fields) == 1 and isinstance(fields[0], VariantField) and fields[0].column.equals(self.operand)

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
        is_path = np.asarray(pc.equal(cells.flatten(), format_path(tuple(names))))
        may = np.bincount(rows[is_path], minlength=len(cells)) > 0
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
        for node in self._survey.places():
            above: Sequence[str] | None = () if node["parent"] < 0 else paths[node["parent"]]
            if node["parent"] >= 0 and (node["name"] is None or above is None):  # paths within arrays
                paths.append(None)
            elif node["parent"] < 0:
                paths.append(())
            else:
                paths.append((*(above or ()), node["name"].decode()))
        named = sorted({format_path(path) for path in paths if path})
        return pa.array([named], pa.list_(pa.string()))
