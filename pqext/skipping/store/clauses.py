"""Determine the objects that cannot match a filter.

A filter in normal form has Not only at its leaves. Each leaf is evaluated by every index on its operand. An entry that
excludes the leaf proves that its object cannot match; all other objects may match. And excludes the objects that any of
its operands excludes, Or the objects that all of its operands exclude. Three-valued logic is therefore confined to the
leaves: a leaf that is null for every row excludes an object like a false leaf. ``specs/skipping.md`` contains the rules
with proofs.
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
from pqext.dataset.expressions.visitors import push_down_not
from pqext.skipping.indexes.index import Index, normalize_types

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Evidence:
    """Entries of one index. ``objects`` contains, for each entry, the number of the object that it describes."""

    index: Index
    cells: pa.Array
    objects: NDArray[np.int64]
    params: Mapping[str, str] = field(default_factory=dict)
    """Parameters stored with the index."""

    def excluded_objects(self, leaf: Expression, count: int) -> Mask | None:
        """Return a mask of the objects in which no row matches ``leaf``; None if the index proves nothing."""
        try:
            may_match = self.index.may_match(leaf, self.cells)
        except (ParquetError, TypeError, ValueError, pa.ArrowException):
            return None  # reading rows raises the error of the invalid condition
        if may_match is None:
            return None
        may = np.asarray(pc.fill_null(may_match, True)).astype(bool)
        described, matching = np.zeros(count, bool), np.zeros(count, bool)
        described[self.objects] = True
        matching[self.objects[may]] = True  # if entries of one object differ, it may match if any of them may
        return described & ~matching


@dataclass(frozen=True)
class Exclusion:
    """Objects that one condition of the filter excludes, and the reason."""

    objects: Mask
    reason: str


def applicable_indexes(filter: Expression, indexes: Sequence[Index]) -> list[Index]:
    """Return the indexes that apply to at least one condition in ``filter``."""
    conditions = [*_conditions(push_down_not(normalize_types(filter)))]
    return [index for index in indexes if any(index.applies_to(leaf) for leaf in conditions)]


def exclusions(filter: Expression, evidence: Sequence[Evidence], count: int) -> list[Exclusion]:
    """Return the objects, out of ``count`` objects, in which no row matches ``filter``.

    Each object is listed once, with the first reason.
    """
    result: list[Exclusion] = []
    remaining = np.ones(count, bool)
    normalized = push_down_not(normalize_types(filter))
    for part in normalized.operands if isinstance(normalized, And) else (normalized,):
        for exclusion in _exclusions(part, evidence, count):
            objects = exclusion.objects & remaining
            if objects.any():
                remaining &= ~objects
                result.append(Exclusion(objects, exclusion.reason))
    return result


def _exclusions(condition: Expression, evidence: Sequence[Evidence], count: int) -> list[Exclusion]:
    """Return the objects that ``condition`` excludes, for each index that applies."""
    if isinstance(condition, And):
        return [exclusion for part in condition.operands for exclusion in _exclusions(part, evidence, count)]
    if isinstance(condition, Or):
        parts = [_exclusions(part, evidence, count) for part in condition.operands]
        if not all(parts):
            return []
        excluded = np.logical_and.reduce([np.logical_or.reduce([item.objects for item in part]) for part in parts])
        reasons = dict.fromkeys(item.reason for part in parts for item in part if (item.objects & excluded).any())
        return [Exclusion(excluded, "; ".join(reasons))]
    result = []
    for entries in evidence:
        if entries.index.applies_to(condition):
            objects = entries.excluded_objects(condition, count)
            if objects is not None:
                result.append(Exclusion(objects, f"{condition} is true for no row, by the index {entries.index}"))
    return result


def _conditions(filter: Expression) -> Iterator[Expression]:
    """Yield the leaves of a filter in normal form. A negated leaf is yielded with its Not."""
    if isinstance(filter, And | Or):
        for operand in filter.operands:
            yield from _conditions(operand)
    else:
        yield filter
