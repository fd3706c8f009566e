"""Set up the Python worker processes that run data sources for Spark."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def prepare_worker() -> None:
    """Set up this worker process once. Call it only in methods that Spark calls in a worker.

    Spark runs a garbage collection after each task. Imported modules are frozen, because inspecting their objects
    would take longer than many tasks.

    Spark closes the pipe of a reader that ``limit`` or ``head`` stops early. The traceback of the resulting
    ``BrokenPipeError`` is not printed; other tracebacks are printed.
    """
    gc.freeze()
    traceback.print_exc = _ignore_broken_pipes(traceback.print_exc)


def _ignore_broken_pipes(print_traceback: Callable[..., None]) -> Callable[..., None]:
    """Wrap ``print_traceback`` to print nothing for ``BrokenPipeError``."""

    def print_exc(*args: Any, **kwargs: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            print_traceback(*args, **kwargs)

    return print_exc
