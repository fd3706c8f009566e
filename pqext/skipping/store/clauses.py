"""From a filter to the objects that it cannot match.

A filter in normal form has Not only at its leaves. Of each leaf every index on its operand is asked; a row of the store
that says no is a proof for the object that it describes, and all else may match. And needs all its operands, Or one. So
no three-valued logic remains except in the leaves: a leaf that is null for every row prunes as well as one that is
false. ``specs/skipping.md`` has the rules, with a proof each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import ParquetError
from pqext.dataset.expressions import And, Expression, Or
from pqext.dataset.expressions.visitors import normal
from pqext.skipping.indexes.index import Index, spelled

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Evidence:
    """What an index says of objects: cells, and the number of the object that each describes as it is now."""

    index: Index
    cells: pa.Array
    objects: NDArray[np.int64]
    params: Mapping[str, str] = field(default_factory=dict)
    """What the store keeps beside the cells."""

    def refused(self, leaf: Expression, count: int) -> Mask | None:
        """Which of ``count`` objects have no row for which ``leaf`` is true; None where it proves nothing of any."""
        try:
            answer = self.index.may_match(leaf, self.cells)
        except (ParquetError, TypeError, ValueError, pa.ArrowException):
            return None  # what is wrong with the question is told where rows are read
        if answer is None:
            return None
        may = np.asarray(pc.fill_null(answer, True)).astype(bool)
        told, matching = np.zeros(count, bool), np.zeros(count, bool)
        told[self.objects] = True
        matching[self.objects[may]] = True  # of cells that differ about one object the most cautious counts
        return told & ~matching


@dataclass(frozen=True)
class Refused:
    """Objects that a condition of the filter refuses."""

    objects: Mask
    reason: str


def asked(filter: Expression, indexes: Sequence[Index]) -> list[Index]:
    """The indexes that may say something of ``filter``."""
    conditions = [*_conditions(normal(spelled(filter)))]
    return [index for index in indexes if any(index.is_asked(leaf) for leaf in conditions)]


def prune_reasons(filter: Expression, evidence: Sequence[Evidence], count: int) -> list[Refused]:
    """The objects of ``count`` that cannot match, each with the first reason found; no object is in two."""
    found: list[Refused] = []
    left = np.ones(count, bool)
    whole = normal(spelled(filter))
    for part in whole.operands if isinstance(whole, And) else (whole,):
        for refused in _refused(part, evidence, count):
            objects = refused.objects & left
            if objects.any():
                left &= ~objects
                found.append(Refused(objects, refused.reason))
    return found


def _refused(condition: Expression, evidence: Sequence[Evidence], count: int) -> list[Refused]:
    """What each piece of evidence refuses of a condition."""
    if isinstance(condition, And):
        return [one for part in condition.operands for one in _refused(part, evidence, count)]
    if isinstance(condition, Or):
        parts = [_refused(part, evidence, count) for part in condition.operands]
        if not all(parts):
            return []
        every = np.logical_and.reduce([np.logical_or.reduce([one.objects for one in part]) for part in parts])
        reasons = dict.fromkeys(one.reason for part in parts for one in part if (one.objects & every).any())
        return [Refused(every, "; ".join(reasons))]
    found = []
    for one in evidence:
        if one.index.is_asked(condition):
            objects = one.refused(condition, count)
            if objects is not None:
                found.append(Refused(objects, f"{condition} is true of no row, by the index {one.index}"))
    return found


def _conditions(filter: Expression) -> Iterator[Expression]:
    """The leaves of a filter in normal form, with the Not above them."""
    if isinstance(filter, And | Or):
        for operand in filter.operands:
            yield from _conditions(operand)
    else:
        yield filter
