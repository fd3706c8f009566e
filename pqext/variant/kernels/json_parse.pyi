from typing import TypeAlias

from typing_extensions import Buffer

from pqext.core.kernels.buffer import Memory
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.json_rows import JsonOptions

Fault: TypeAlias = tuple[int, int, int, bytes | None]
Result: TypeAlias = tuple[int, int, Memory, Memory, Memory, Memory, Memory, list[Fault], int, int]

def parse_column(column: BinaryInput, start: int, stop: int, options: JsonOptions, seed: int) -> Result | int: ...
def parse_lines(lines: Buffer, start: int, line: int, options: JsonOptions, seed: int) -> Result | int: ...
