"""The seeds of the fuzzers' variant targets, and a few changes of each, keep what the targets hold."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from reference.effort import some

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"


@pytest.mark.parametrize("target", ["variant", "shredded"])
def test_fuzz_seeds_and_mutations_raise_no_unexpected_error(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = sys.getrecursionlimit()
    monkeypatch.syspath_prepend(FUZZ)
    import mutate
    import variant_seeds
    import variant_targets

    try:
        sys.setrecursionlimit(variant_targets.RECURSION_LIMIT)
        chance = random.Random(5)
        run = {"variant": variant_targets.variant, "shredded": variant_targets.shredded}[target]
        seeds = [data for _, data in {"variant": variant_seeds.variants, "shredded": variant_seeds.rows}[target]()]
        for seed in some(seeds, 3):
            run(seed)
            run(mutate.mutate(seed, chance.choice(seeds), chance))
    finally:
        sys.setrecursionlimit(limit)
