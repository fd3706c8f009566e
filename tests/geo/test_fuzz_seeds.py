"""The seeds of the fuzzers' geometry target, and a few changes of each, keep what the target holds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"


def test_fuzz_seeds_and_mutations_raise_no_unexpected_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FUZZ)
    import geo_seeds
    import geo_targets
    import mutate

    chance = random.Random(5)
    seeds = [data for _, data in geo_seeds.geometries()]
    for seed in seeds:
        geo_targets.geometry(seed)
        for _ in range(20):
            geo_targets.geometry(mutate.mutate(seed, chance.choice(seeds), chance))
