from typing import Any

from pqext.variant.access.path import Path
from pqext.variant.kernels.binary import BinaryInput

class PathSteps:
    def __init__(self, path: Path) -> None: ...

Described = tuple[int, int, int, int, int]
Result = tuple[Any, int, Any, Any, tuple[int, int], tuple[Any, Any, Any] | None]

def get(
    metadata: BinaryInput,
    value: BinaryInput,
    groups: tuple[Any, int] | None,
    path: PathSteps,
    described: Described,
    first_row: int,
) -> Result: ...
