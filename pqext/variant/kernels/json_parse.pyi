from typing import TypeAlias

from typing_extensions import Buffer

from pqext.core.kernels.buffer import Memory
from pqext.variant.kernels.binary import BinaryInput

Fault: TypeAlias = tuple[int, int, int, bytes | None]
Result: TypeAlias = tuple[int, int, Memory, Memory, Memory, Memory, Memory, list[Fault], int, int]

def parse_column(
    column: BinaryInput, start: int, max_depth: int, duplicates: int, seed: int, stop_at_fault: bool
) -> Result | int: ...
def parse_lines(
    lines: Buffer, start: int, line: int, max_depth: int, duplicates: int, seed: int, stop_at_fault: bool
) -> Result | int: ...
