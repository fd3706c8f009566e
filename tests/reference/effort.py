"""How many examples a property test draws, as a share of what the chosen profile draws."""

from __future__ import annotations

from hypothesis import settings


def share(fraction: float) -> int:
    """`fraction` of the profile's examples, at least two; tests that cost more per example take a smaller one."""
    return max(2, round(settings.default.max_examples * fraction))
