from typing import Any

from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.get import Described, PathSteps, Result

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
    def cast(self, described: Described) -> Result: ...
    def open(
        self, arrays: bool, objects: bool, children: bool
    ) -> tuple[Any, int, Any, tuple[Any, Any, Any], Cells, tuple[int, int]]: ...
    def rows(self) -> Any: ...
