"""Seconds of what tests/stress/run.py does for minutes: in a process of its own, since a library may crash it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from stress.cases import Case, repeat
from stress.run import PARTS

SCRIPT = Path(__file__).with_name("run.py")


@pytest.mark.parametrize("parts", [
    [part for part in PARTS if part != "spark_functions"],
    pytest.param(["spark_functions"], marks=[
        pytest.mark.slow, pytest.mark.skipif(not find_spec("pyspark"), reason="pyspark is not installed"),
    ]),
])  # fmt: skip
def test_threads_match_a_single_thread_and_other_libraries(tmp_path: Path, parts: list[str]) -> None:
    arguments = ["--minutes", "0.04", "--threads", "2,8", "--cases", "12", *parts]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert all(f"{part}: " in done.stdout for part in parts)


def test_different_results_and_errors_are_faults() -> None:
    def fail(threads: int) -> int:
        return threads if threads == 1 else 1 // 0

    (fault,) = {fault[:40] for fault in repeat([Case("odd", lambda threads: threads)], [2], 1).faults}
    assert fault == "odd with 2 threads gives another answer"
    assert "ZeroDivisionError" in repeat([Case("failing", fail)], [2], 1).faults[0]
    with pytest.raises(AssertionError, match="another answer than the reference"):
        repeat([Case("wrong", lambda _: 1, 2)], [2], 1)
