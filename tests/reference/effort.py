"""How hard tests try: how many examples a property test draws, and how many of many cases a test goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

Case = TypeVar("Case")


def share(fraction: float) -> int:
    """`fraction` of the profile's examples, at least two; tests that cost more per example take a smaller one."""
    return max(2, round(settings.default.max_examples * fraction))


def some(cases: Sequence[Case], one_in: int) -> Sequence[Case]:
    """One in so many cases under the default profile, and all of them under every other, such as the sanitizers'."""
    quick = settings.default.max_examples == settings.get_profile("default").max_examples
    return cases[::one_in] if quick else cases
