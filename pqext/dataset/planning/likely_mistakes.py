"""Warn of likely mistakes in a question: paths close to shredded ones, and boxes beyond the globe."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions import Expression, Spatial, VariantField, bases
from pqext.dataset.expressions.visitors import leaves, operands
from pqext.dataset.planning import boxes, paths
from pqext.dataset.planning.projection import Computed


def doubtful(condition: Expression | None, result: Iterable[object]) -> tuple[list[VariantField], list[Spatial]]:
    """The values within VARIANT columns and the spatial conditions of a question."""
    asked = [] if condition is None else operands(condition)
    asked += [base for one in result if isinstance(one, Computed) for base in bases(one.field)]
    spatial = [] if condition is None else [leaf for leaf in leaves(condition) if isinstance(leaf, Spatial)]
    return [one for one in asked if isinstance(one, VariantField)], spatial


def doubts_of(fields: list[VariantField], conditions: list[Spatial], file: ParquetFile) -> list[str]:
    """The doubts about them in a file."""
    with suppress(TypeError, ValueError):  # which running the scan tells
        return paths.doubts(fields, file.schema) + boxes.doubts(conditions, file.arrow_schema)
    return []
