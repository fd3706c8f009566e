"""Tasks that fail and are run again: their rows are there once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pqext

pytest.importorskip("pyspark", reason="pyspark is not installed (extra 'spark')")

STEPS = """
import sys
from pyspark import TaskContext
from pqext.spark import local_session, write

spark = local_session("repeated", cores="local[2,3]")


def fails_twice(batches):
    for batch in batches:
        yield batch.slice(0, 5)
        if TaskContext.get().attemptNumber() < 2:
            raise RuntimeError("not yet")
        yield batch.slice(5)


rows = spark.range(40, numPartitions=4).mapInArrow(fails_twice, "id bigint")
print(write(rows, sys.argv[1]).rows)
spark.stop()
"""


@pytest.mark.slow
def test_tasks_that_fail_twice_return_their_rows_once(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", STEPS, str(tmp_path / "out")], capture_output=True, text=True)
    assert ran.stdout.split()[-1:] == ["40"], ran.stderr
    assert sorted(pqext.read_table(tmp_path / "out")["id"].to_pylist()) == list(range(40))
    assert len(list((tmp_path / "out").iterdir())) == 5  # a file for each task, and _SUCCESS
