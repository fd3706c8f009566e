"""What a store left out of queries: objects and their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pqext.skipping.objects import UNKNOWN, Objects


@dataclass(frozen=True)
class SkippingStatistics:
    """What a store left out of one query, or of several: numbers of objects, and bytes of those whose size is known."""

    objects: int
    """All that were asked about."""
    skipped: int
    """Those that were refused, and are not opened."""
    bytes: int
    skipped_bytes: int
    queries: int = 1

    @classmethod
    def of(cls, objects: Objects, reasons: Sequence[str | None]) -> SkippingStatistics:
        """The statistics of a query that was answered by ``reasons``."""
        refused = np.array([reason is not None for reason in reasons], bool)
        sizes = np.where(objects.sizes == UNKNOWN, 0, objects.sizes)
        return cls(len(objects), int(refused.sum()), int(sizes.sum()), int(sizes[refused].sum()))

    @classmethod
    def sum(cls, several: Iterable[SkippingStatistics]) -> SkippingStatistics:
        """The statistics of several queries together."""
        every = [*several]
        return cls(
            sum(one.objects for one in every), sum(one.skipped for one in every), sum(one.bytes for one in every),
            sum(one.skipped_bytes for one in every), sum(one.queries for one in every),
        )  # fmt: skip

    def __str__(self) -> str:
        told = f"{self.skipped:,} of {self.objects:,} objects skipped, {self.skipped_bytes:,} of {self.bytes:,} bytes"
        return told if self.queries == 1 else f"{self.queries:,} queries: {told}"
