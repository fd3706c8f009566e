"""Prune files before they are opened, with a data-skipping store or an object with the same interface."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from pqext.core.base.lazy_imports import load_service
from pqext.dataset.expressions import And, Column, Expression, VariantField, all_of, bases, operand_column
from pqext.dataset.expressions.visitors import leaf_operands, leaves, operands, push_down_not
from pqext.dataset.table.partitions import RemainingFilter

EVIDENCE = "skipping store"
"""Evidence reported for files that a store prunes."""
TABLE_EVIDENCE = "table log"
"""Evidence reported for files that the statistics in the log of a table prune."""


@runtime_checkable
class Skipping(Protocol):
    """Interface of data-skipping stores, which prune files using stored metadata."""

    def prune_reasons(self, sources: Sequence[Any], filter: Expression) -> Sequence[str | None]:
        """Return, for each file, the reason that no row matches ``filter``; None if a row may match.

        A file that has changed since it was indexed is not pruned.
        """


def skipping_of(skipping: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> Skipping | None:
    """Return the store for the argument ``skipping=``: open a path or URL, and return a store or None unchanged.

    Raises ``TypeError`` for other arguments.
    """
    if skipping is None or (isinstance(skipping, Skipping) and not isinstance(skipping, type)):
        return skipping
    if not isinstance(skipping, str | os.PathLike):
        raise TypeError(f"skipping must be a data-skipping store or its path, not {type(skipping).__name__}")
    open_store = load_service("open_store")
    store: Skipping = open_store(skipping, filesystem=filesystem, storage_options=storage_options)
    return store


def stored_value_conjuncts(
    filter: Expression, folders: Collection[str], cast_columns: Collection[str], is_widened: bool = False
) -> Expression | None:
    """Return the conjuncts of ``filter`` that apply to the values stored in files; None if no conjunct does.

    The conjuncts use neither partition columns (``folders``) nor ``cast_columns``. Values inside VARIANT
    columns are never cast. If types are widened (``is_widened``), computed values are excluded as well: widening
    preserves values, but not everything computed from them. As text, 3 becomes 3.0.
    """
    whole = push_down_not(filter)
    left = []
    for part in whole.operands if isinstance(whole, And) else (whole,):
        columns = [(operand_column(operand).path[0], isinstance(operand, VariantField)) for operand in operands(part)]
        is_other = any(name in folders or (name in cast_columns and not is_within) for name, is_within in columns)
        if not is_other and not (is_widened and _uses_computed_value(part)):
            left.append(part)
    return all_of(left) if left else None


def _uses_computed_value(condition: Expression) -> bool:
    """Return whether a leaf of ``condition`` uses a computed value."""
    used = [operand for leaf in leaves(condition) for operand in leaf_operands(leaf)]
    return any(
        isinstance(base, Column) for operand in used if not isinstance(operand, Column) for base in bases(operand)
    )


def prune(
    skipping: Skipping, remaining_filters: Sequence[RemainingFilter], sources: Sequence[Any], conditions: Expression,
    evidence: str,
) -> list[RemainingFilter]:
    """Prune sources with the store ``skipping``, and return the remaining filter of each source."""
    reasons = skipping.prune_reasons(sources, conditions)
    pruned = {reason: RemainingFilter(None, reason, evidence) for reason in {*reasons} if reason is not None}
    return [
        part if reason is None or part.prune_reason is not None else pruned[reason]
        for part, reason in zip(remaining_filters, reasons, strict=True)
    ]
