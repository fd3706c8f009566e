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
@pytest.mark.parametrize("prefix", ["", "delta:"])
def test_tasks_that_fail_twice_return_their_rows_once(tmp_path: Path, prefix: str) -> None:
    target = f"{prefix}{tmp_path / 'out'}"
    ran = subprocess.run([sys.executable, "-c", STEPS, target], capture_output=True, text=True)
    assert ran.stdout.split()[-1:] == ["40"], ran.stderr
    assert sorted(pqext.scan(target).to_table()["id"].to_pylist()) == list(range(40))
    assert len(list((tmp_path / "out").iterdir())) == 5  # a file for each task, and _SUCCESS or the log
