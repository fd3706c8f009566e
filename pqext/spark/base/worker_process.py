"""Set up the Python processes in which Spark runs data sources, and which it uses again for other work."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def prepare_worker() -> None:
    """Set up this process, once: call it where Spark calls a data source, never where a user's program may.

    Spark collects garbage after all work of a process. What has been imported is frozen, since the collection
    would otherwise inspect each of its objects, which takes longer than many tasks.

    Spark closes the pipe of a reader that it stops early, as ``limit`` and ``head`` do. The process, which then ends,
    does not show that as a traceback on the console; it shows every other traceback.
    """
    gc.freeze()
    traceback.print_exc = _but_for_closed_pipes(traceback.print_exc)


def _but_for_closed_pipes(show: Callable[..., None]) -> Callable[..., None]:
    def print_exc(*args: Any, **kwargs: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            show(*args, **kwargs)

    return print_exc
