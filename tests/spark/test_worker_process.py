"""The Python processes of Spark: tracebacks of readers that Spark stops early, and garbage collection."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

STEPS = """
import traceback
from pqext.spark.base.worker_process import prepare_worker

prepare_worker()
prepare_worker()
for error in (BrokenPipeError("closed"), ValueError("shown once")):
    try:
        raise error
    except Exception:
        traceback.print_exc()
"""
IN_PLANNER = """
import gc, sys
from pqext.spark.sources.data_sources import JsonLinesSource
from pqext.spark.sources.data_sources import PqextSource

frozen = gc.get_freeze_count()
{call}
print(gc.get_freeze_count() > frozen, "pandas" in sys.modules)
"""


def _run(steps: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", steps], capture_output=True, text=True, check=True)


def test_only_closed_pipe_errors_are_hidden() -> None:
    shown = _run(STEPS).stderr
    assert "BrokenPipe" not in shown
    assert shown.count("ValueError: shown once") == 1


@pytest.mark.parametrize("source", ["PqextSource", "JsonLinesSource"])
@pytest.mark.parametrize("method", ["schema()", "reader(source.schema())"])
def test_planner_does_not_collect_imports_as_garbage(source: str, method: str, tmp_path: Path) -> None:
    """Spark calls ``gc.collect`` after all work of a process, and would wait for it in the next work."""
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    call = f"source = {source}({{'path': {str(tmp_path / 'a.parquet')!r}}}); source.{method}"
    assert _run(IN_PLANNER.format(call=call)).stdout.split() == ["True", "False"]
