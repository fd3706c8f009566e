"""Options of shredding inference, checked: the arguments of ``infer_schema``, and the rows of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pqext.variant.shredding.schema import MAX_DEPTH

Mixed = Literal["majority", "uniform", "widen"]
Integers = Literal["bigint", "narrowest"]
Decimals = Literal["wide", "narrowest"] | int
_GOLDEN = 0.6180339887498949
"""The fractions of its multiples are spread evenly and never repeat."""


@dataclass(frozen=True, slots=True)
class Inference:
    """How a schema is inferred: the keyword arguments of :func:`pqext.variant.infer_schema`, checked."""

    sample_rows: int = 10_000
    min_frequency: float = 0.1
    max_fields: int = 300
    max_depth: int = 20
    mixed: Mixed = "majority"
    integers: Integers = "bigint"
    decimals: Decimals = "wide"
    coerce: Literal["equivalent", "exact", "json"] = "equivalent"

    def __post_init__(self) -> None:
        for name in ("sample_rows", "max_fields"):
            _check_whole(name, getattr(self, name), 1, None)
        _check_whole("max_depth", self.max_depth, 0, MAX_DEPTH)
        if isinstance(self.min_frequency, bool) or not isinstance(self.min_frequency, int | float):
            raise TypeError(f"min_frequency is a number, not a {type(self.min_frequency).__name__}")
        if not 0 <= self.min_frequency <= 1:
            raise ValueError(f"min_frequency lies between 0 and 1, which {self.min_frequency} does not")
        _check_word("mixed", self.mixed, ("majority", "uniform", "widen"))
        _check_word("integers", self.integers, ("bigint", "narrowest"))
        _check_word("coerce", self.coerce, ("equivalent", "exact", "json"))
        if isinstance(self.decimals, int):
            _check_whole("decimals", self.decimals, 0, 38)
        else:
            _check_word("decimals", self.decimals, ("wide", "narrowest"))


def _check_whole(name: str, value: Any, least: int, most: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not a {type(value).__name__}")
    if value < least or (most is not None and value > most):
        limits = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} is {limits}, which {value} is not")


def _check_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ValueError(f"{name} is one of {', '.join(map(repr, words))}, not {value!r}")


def sampled_rows(rows: int, count: int) -> pa.Int64Array:
    """``count`` of ``rows`` row numbers, ascending: one from each of as many ranges, not at the same offset in each.

    Rows at equal distances would be a bad sample of values that repeat with a period: every tenth row of
    ``i * 0.1`` is an integer.
    """
    numbers = np.arange(count + 1, dtype=np.int64)
    edges = numbers * rows // max(count, 1)
    widths = np.diff(edges)
    offsets = (numbers[:-1] * _GOLDEN % 1.0 * widths).astype(np.int64)
    return pa.array(edges[:-1] + np.minimum(offsets, np.maximum(widths - 1, 0)), pa.int64())
