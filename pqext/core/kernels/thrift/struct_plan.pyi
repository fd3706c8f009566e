from collections.abc import Callable
from typing import Any

from pqext.core.kernels.thrift.reader import StructIndex

class Plan:
    """The fields of ``cls`` as the kernels need them; ``lazy`` makes the value of a lazy list."""

    cls: type
    def __init__(self, cls: type, lazy: Callable[[StructIndex], Any]) -> None: ...

def only_member(struct: Any) -> str | None:
    """The name of the field of ``struct`` that is set; ``None`` when none or more than one is."""
