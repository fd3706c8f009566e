"""Hostile inputs drawn by ``fuzz/hostile.py`` give results or typed errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pqext.core.base.errors import CorruptFileError

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"


@pytest.fixture(autouse=True)
def _fuzz_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FUZZ)


def test_drawn_hostile_inputs_raise_no_unexpected_error() -> None:
    import hostile

    kinds = set()
    for seed in range(100):
        if hostile.draw_kind(random.Random(seed)) not in ("bomb", "row groups"):  # seconds in total
            kind, calls, findings = hostile.run_seed(seed)
            assert not findings, findings[0]["trace"]
            assert calls or kind in ("arrow", "flat footer", "location", "variant")
            kinds.add(kind)
    assert len(kinds) >= 10


@pytest.mark.parametrize(
    "seed", [216668, 406790, 423025, 430742, 444924, 453585, 456253, 467417, 519345, 553769, 559410, 559948, 617531]
)
def test_seeds_that_found_faults_raise_no_unexpected_error(seed: int) -> None:
    import hostile

    _, _, findings = hostile.run_seed(seed)
    assert not findings, findings[0]["trace"]


def raise_error(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    ("run", "is_argument", "is_finding"),
    [
        (lambda: pa.table({"a": [1]}), False, False),
        (lambda: raise_error(CorruptFileError("x")), False, False),
        (lambda: raise_error(ValueError("raised by other code than pqext")), True, True),
        (lambda: {}["a"], True, True),
        (lambda: None + 1, True, True),  # type: ignore[operator]
        (lambda: pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")), False, True),
    ],
    ids=["result", "typed error", "foreign error", "KeyError", "TypeError", "invalid result"],
)
def test_unexpected_errors_and_invalid_results_are_findings(
    run: Callable[[], Any], is_argument: bool, is_finding: bool
) -> None:
    from hostile import run_call
    from hostile_calls import Call

    assert (run_call(Call("call", run, is_argument)) is not None) == is_finding


def test_argument_errors_are_findings_for_content_only() -> None:
    from hostile import run_call
    from hostile_calls import Call

    import pqext

    def call() -> Any:
        return pqext.Limits(rows=-1)

    assert run_call(Call("call", call, is_argument=True)) is None
    assert run_call(Call("call", call)) is not None


def test_equal_seeds_draw_equal_files() -> None:
    import hostile_files

    drawn = [[call.name for call in hostile_files.footers(random.Random(7))] for _ in range(2)]
    assert drawn[0] == drawn[1]
