"""Python workers that are killed while they write: nothing partial is seen, and the next start does it all."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pqext
from pqext.spark import clean, ingest_json

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")]


def writer_in(folder: Path) -> int | None:
    """A Python worker of Spark that has a file of ``folder`` open for writing."""
    for process in os.listdir("/proc"):
        with suppress(OSError):
            if process.isdigit() and b"pyspark" in Path("/proc", process, "cmdline").read_bytes():
                for descriptor in os.listdir(f"/proc/{process}/fd"):
                    name = os.readlink(f"/proc/{process}/fd/{descriptor}")
                    if name.startswith(f"{folder}/"):  # which has no name of its own before it is whole
                        return int(process)
    return None


class Killer:
    """Kills one worker that writes into a folder, as soon as there is one."""

    def __init__(self, folder: Path) -> None:
        self.killed: int | None = None
        self._stop = threading.Event()
        self._folder = folder
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            found = writer_in(self._folder)
            if found is not None:
                os.kill(found, signal.SIGKILL)
                self.killed = found
                return

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize(("by", "kills"), [(None, 6), (["$.k"], 2)], ids=["flat", "partitions"])
def test_workers_killed_while_writing_leave_no_visible_files(
    spark: Any, tmp_path: Path, by: list[str] | None, kills: int
) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out"
    text = "".join(json.dumps({"n": n, "k": n % 3, "text": f"{n * 7919:040d}"}) + "\n" for n in range(200_000))
    source.write_text(text)
    first = tmp_path / "first.json"
    first.write_text('{"n": -1, "k": 0}\n')
    options: dict[str, Any] = {"compression": "gzip", "partition_by": by, "task_bytes": len(text) // 4}
    ingest_json(spark, str(first), str(out), "n INT, k INT", **options)
    before = sorted(path.name for path in out.rglob("*"))
    for _ in range(kills):
        with Killer(out) as killer, pytest.raises(Exception, match=r"crashed|exited unexpectedly|EOF|Connection reset"):
            ingest_json(spark, str(source), str(out), "n INT, k INT, text STRING", **options)
        assert killer.killed is not None
        assert pqext.scan(out).count() == spark.read.parquet(str(out)).count() == 1
        deadline = time.monotonic() + 10
        while writer_in(out) is not None and time.monotonic() < deadline:
            time.sleep(0.01)  # the other task may still end
        clean(out, older_than=timedelta(0))
        assert sorted(path.name for path in out.rglob("*")) == before
    done = ingest_json(spark, str(source), str(out), "n INT, k INT, text STRING", **options)
    assert done.rows == 200_000
    assert pqext.scan(out).count() == spark.read.parquet(str(out)).count() == 200_001
    assert not [path.name for path in out.iterdir() if path.name.startswith("_pqext_temporary")]
