"""Spatial predicates on the results of functions, tested with boxes around the arguments of the functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.geo.box import BoundingBox
from pqext.geo.functions.table import GeometryFunction
from pqext.geo.predicates.boxes import Answer
from pqext.geo.predicates.predicate import PLANE, SpatialPredicate
from pqext.geo.types import GeospatialType


@dataclass(frozen=True, slots=True)
class ResultPredicate(SpatialPredicate):
    """A predicate on geometries that ``functions`` compute from a column.

    Each function is paired with its constant arguments. The first function is applied to the column, and each other
    function to the result of the function before it.
    Boxes prove that no row matches, never that all do.
    """

    functions: tuple[tuple[GeometryFunction, tuple[Any, ...]], ...] = ()
    has_heights: bool = True
    """Whether geometries of the column may have Z."""

    def for_types(self, types: Sequence[int] | None) -> ResultPredicate:
        """Return the predicate for a column with geometries of the WKB type codes ``types``.

        If no type has Z, the predicate assumes that geometries of the column have no heights.
        """
        has_heights = not types or any(code % 2000 >= 1000 for code in types)
        return self if has_heights else replace(self, has_heights=False)

    def answer(self, box: BoundingBox, type: GeospatialType = PLANE) -> Answer:
        """Evaluate the predicate on a box around geometries of a column of ``type``."""
        xmin, xmax, ymin, ymax = np.array([[box.xmin], [box.xmax], [box.ymin], [box.ymax]], dtype=np.float64)
        return Answer(int(self.answers(xmin, xmax, ymin, ymax, type)[0]))

    def answers(
        self,
        xmin: NDArray[np.float64],
        xmax: NDArray[np.float64],
        ymin: NDArray[np.float64],
        ymax: NDArray[np.float64],
        type: GeospatialType = PLANE,
    ) -> NDArray[np.uint8]:
        """Return the :class:`Answer` for each of several boxes of a column of ``type``, as integers."""
        sides = np.stack([xmin, xmax, ymin, ymax]).astype(np.float64)
        sides[:, ~np.isfinite(sides).all(axis=0) | (sides[0] > sides[1])] = np.nan
        result = np.full(sides.shape[1], Answer.MAYBE, np.uint8)
        with np.errstate(all="ignore"):
            for number, (function, constants) in enumerate(self.functions):
                has_heights = self.has_heights or number > 0  # a constant may have heights
                sides = function.result_sides(sides, type, constants, has_heights=has_heights)
                type = function.result_type(type, (None, *constants))
        known = np.isfinite(sides).all(axis=0)
        if known.any() and type.planar:
            west, east, south, north = sides[:, known]
            answers = SpatialPredicate.answers(self, west, east, south, north, type)
            result[known] = np.where(answers == Answer.NO, Answer.NO, Answer.MAYBE)
        return result


def prunes(predicate: SpatialPredicate, functions: Sequence[GeometryFunction]) -> bool:
    """Return whether boxes can disprove a predicate on the results of ``functions``.

    They cannot if an empty result may satisfy the predicate, because empty geometries have no box, or if the boxes of a
    function's results are unknown.
    """
    return not predicate.keeps_empty and all(function.sides is not None for function in functions)
