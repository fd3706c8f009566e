"""Readers that Spark stops early, as ``limit`` and ``head`` do, without a traceback on the console.

Spark closes the pipe of such a reader's process, and the process, which then ends, shows that as if it were an error.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any


def end_quietly() -> None:
    """From now on this process does not show that its pipe was closed; every other traceback it shows."""
    if traceback.print_exc.__module__ == "traceback":
        traceback.print_exc = _but_for_closed_pipes(traceback.print_exc)


def _but_for_closed_pipes(show: Callable[..., None]) -> Callable[..., None]:
    def print_exc(*args: Any, **kwargs: Any) -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            show(*args, **kwargs)

    return print_exc
