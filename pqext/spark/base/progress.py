"""Group and describe Spark jobs, and report their progress while they run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pqext.core.base.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS = 0.2
_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@contextmanager
def job_group(spark: SparkSession, group: str, description: str) -> Iterator[None]:
    """Context manager that puts the Spark jobs of its block into a job group, and then restores the caller's group.

    On Spark Connect the group is a tag, without a description.
    """
    context = _context(spark)
    if context is None:
        spark.addTag(group)
        try:
            yield
        finally:
            spark.removeTag(group)
        return
    before = {name: context.getLocalProperty(name) for name in _PROPERTIES}
    context.setJobGroup(group, description)
    try:
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


@contextmanager
def report_progress(spark: SparkSession, group: str, total: int, progress: Progress | None) -> Iterator[None]:
    """Call ``progress`` with the number of completed tasks, from 0 to ``total``, while the jobs of ``group`` run.

    A separate thread makes the calls. If ``progress`` raises, the reports end and the job continues.
    """
    if progress is None:
        yield
        return
    context = _context(spark)
    ended = threading.Event()
    last = -1

    def report(completed_tasks: int) -> None:
        nonlocal last
        if completed_tasks > last:
            last = completed_tasks
            progress(completed_tasks, total)

    def watch() -> None:
        with suppress(Exception):
            report(0)
            while not ended.wait(_SECONDS):
                report(min(total - 1, _completed_tasks(context, group)))

    def handler(stages: Any, *_: Any) -> None:
        with suppress(Exception):
            report(min(total - 1, sum(stage.num_completed_tasks for stage in stages or ())))

    if context is None:
        report(0)
        spark.registerProgressHandler(handler)  # type: ignore[arg-type]
    else:
        thread = threading.Thread(target=watch, daemon=True, name="pqext progress")
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if context is None:
            spark.removeProgressHandler(handler)  # type: ignore[arg-type]
        else:
            thread.join()
    with suppress(Exception):
        report(total)


def _context(spark: SparkSession) -> Any:
    """Return the Spark context, or None on Spark Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    return spark.sparkContext


def _completed_tasks(context: Any, group: str) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
