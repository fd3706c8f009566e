"""Progress of long calls: the type of the argument ``progress``, and a counter of finished steps."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Callback that receives the number of finished steps, and the total number of steps or None if unknown.

    Each function documents its step: a row, a row group, a column chunk, a file or a task. An exception in the callback
    ends the call, but Spark jobs continue without further reports.
    """

    def __call__(self, finished: int, total: int | None, /) -> None: ...


class Steps:
    """Counter of finished steps, at most ``total``. Changes are reported to ``progress``, unless ``progress`` is None.

    >>> steps = Steps(print, 4)
    >>> steps.advance(3)
    3 4
    >>> steps.advance(2)
    4 4
    >>> steps.finish(4)
    """

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self.finished = 0
        self._progress = progress
        self._total = total

    def advance(self, steps: int) -> None:
        """Report that ``steps`` more steps are finished."""
        self.finish(self.finished + steps)

    def finish(self, steps: int) -> None:
        """Report that the first ``steps`` steps are finished, unless this was already reported."""
        steps = steps if self._total is None else min(steps, self._total)
        if steps > self.finished:
            self.finished = steps
            if self._progress is not None:
                self._progress(steps, self._total)
