"""What Spark shows of a job of ours, and how far it is, told while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ShowProgress = Callable[[int, int], None]
"""Takes the number of tasks that are done, and of all tasks."""
_SECONDS = 0.2
_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


@contextmanager
def described(spark: SparkSession, group: str, description: str) -> Iterator[None]:
    """Jobs that start within are ``group`` in Spark, with a description where Spark has one.

    On Connect the group is a tag. Those of the caller are put back afterwards.
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
def told(spark: SparkSession, group: str, total: int, show: ShowProgress | None) -> Iterator[None]:
    """Call ``show`` while the jobs of ``group``, of ``total`` tasks, run: first with none, at last with all of them.

    It is called by a thread of its own. What it raises ends the telling, not the job.
    """
    if show is None:
        yield
        return
    context = _context(spark)
    ended = threading.Event()
    last = -1

    def tell(done: int) -> None:
        nonlocal last
        if done > last:
            last = done
            show(done, total)

    def watch() -> None:
        with suppress(Exception):
            tell(0)
            while not ended.wait(_SECONDS):
                tell(min(total - 1, _done(context, group)))

    def handler(stages: Any, *_: Any) -> None:
        with suppress(Exception):
            tell(min(total - 1, sum(stage.num_completed_tasks for stage in stages or ())))

    if context is None:
        tell(0)
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
        tell(total)


def _context(spark: SparkSession) -> Any:
    """The Spark context, which sessions of Connect have not."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    return spark.sparkContext


def _done(context: Any, group: str) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
