from typing import Any

from pqext.variant.access.path import Path
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.zone import Zone

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
    zone: Zone | None = None,
) -> Result: ...

class Cells:
    count: int
    @staticmethod
    def of(
        metadata: BinaryInput,
        value: BinaryInput,
        groups: tuple[Any, int] | None,
        rows: Any,
        path: PathSteps,
        first_row: int,
    ) -> Cells: ...
    def find(self, path: PathSteps) -> Cells: ...
    def cast(self, described: Described, zone: Zone | None = None) -> Result: ...
    def open(
        self, arrays: bool, objects: bool, children: bool
    ) -> tuple[Any, int, Any, tuple[Any, Any, Any], Cells, tuple[int, int]]: ...
    def rows(self) -> Any: ...
