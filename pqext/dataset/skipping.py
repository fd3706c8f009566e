"""What knows files without opening them: a data-skipping store, or whatever answers as one does."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from pqext.dataset.expressions import And, Column, Expression, VariantField, all_of, bases, operand_column
from pqext.dataset.expressions.visitors import asked_of, leaves, normal, operands
from pqext.dataset.table.partitions import Narrowed

EVIDENCE = "skipping store"
"""What is told of files that a store refuses."""


@runtime_checkable
class Skipping(Protocol):
    """Knows files by what was kept of them. A reason is a proof: no row of that file matches."""

    def refusals(self, sources: Sequence[Any], filter: Expression) -> Sequence[str | None]:
        """For each of the files why no row of it matches ``filter``, None where one may.

        A file that has changed since it was looked at is not refused.
        """


def skipping_of(given: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> Skipping | None:
    """What is given as ``skipping=``: a store that is open, or the path or URL of one, which is opened.

    Raises ``TypeError`` for anything else.
    """
    if given is None or (isinstance(given, Skipping) and not isinstance(given, type)):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"skipping is a data-skipping store or its path, not {type(given).__name__}")
    opened = import_module("pqext.skipping.store.store").open_store  # which stands above this room
    store: Skipping = opened(given, filesystem=filesystem, storage_options=storage_options)
    return store


def of_stored_values(
    filter: Expression, folders: Collection[str], cast: Collection[str], widened: bool = False
) -> Expression | None:
    """The conditions of ``filter``, all of which must be true, that are about values as files store them.

    Those are neither about columns that ``folders`` name nor about columns that are ``cast``; what lies within a
    VARIANT column stays as it is. Where types are ``widened`` values stay what they are, but not all that is computed
    of them: as text 3 becomes 3.0.
    """
    whole = normal(filter)
    left = []
    for part in whole.operands if isinstance(whole, And) else (whole,):
        asked = [(operand_column(one).path[0], isinstance(one, VariantField)) for one in operands(part)]
        is_other = any(name in folders or (name in cast and not is_within) for name, is_within in asked)
        if not is_other and not (widened and _is_computed(part)):
            left.append(part)
    return all_of(left) if left else None


def _is_computed(condition: Expression) -> bool:
    """Does any leaf ask about what is computed of columns?"""
    asked = [operand for leaf in leaves(condition) for operand in asked_of(leaf)]
    return any(
        isinstance(base, Column) for operand in asked if not isinstance(operand, Column) for base in bases(operand)
    )


def narrowed_by(
    skipping: Skipping, narrowed: Sequence[Narrowed], sources: Sequence[Any], asked: Expression
) -> list[Narrowed]:
    """What is left for each of the sources where those that ``skipping`` refuses are left out."""
    reasons = skipping.refusals(sources, asked)
    refused = {reason: Narrowed(None, reason, EVIDENCE) for reason in {*reasons} if reason is not None}
    return [
        part if reason is None or part.refusal is not None else refused[reason]
        for part, reason in zip(narrowed, reasons, strict=True)
    ]
