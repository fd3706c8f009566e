from collections.abc import Callable
from typing import Any

from pqext.core.kernels.thrift.reader import StructIndex

class Plan:
    """Field table of the structure ``cls`` for the kernels. ``lazy`` creates the value of a lazy list."""

    cls: type
    def __init__(self, cls: type, lazy: Callable[[StructIndex], Any]) -> None: ...

def only_member(struct: Any) -> str | None:
    """Return the name of the only field of ``struct`` that is set; ``None`` if no field or several fields are set."""
