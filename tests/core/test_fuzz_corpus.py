"""The fuzz targets pass on every input of the corpus in ``fuzz/corpus``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reference.effort import some

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
TARGETS = ["flat_footer", "footer", "geometry", "pages", "reader", "shredded", "skipping", "structures", "variant"]


def test_every_fuzz_target_has_a_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FUZZ)
    import corpus
    import targets

    assert sorted(targets.TARGETS) == TARGETS == sorted(path.stem for path in corpus.ARCHIVES.glob("*.zip"))
    for target in TARGETS:
        assert len(list(corpus.inputs(target))) > 10


@pytest.mark.parametrize("target", TARGETS)
def test_recorded_fuzz_inputs_raise_no_unexpected_error(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = sys.getrecursionlimit()
    monkeypatch.syspath_prepend(FUZZ)
    import corpus
    import targets
    import variant_targets

    try:
        sys.setrecursionlimit(variant_targets.RECURSION_LIMIT)
        for data in some(list(corpus.inputs(target)), 4):
            targets.TARGETS[target](data)
    finally:
        sys.setrecursionlimit(limit)
