from typing import Any, TypeAlias

from typing_extensions import Buffer

from pqext.core.kernels.buffer import Memory
from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.json_parse import Fault, JsonOptions
from pqext.variant.kernels.shredding import ShreddingPlan

Result: TypeAlias = tuple[int, int, list[Fault], int, Memory, Memory, Memory, list[tuple[Any, ...]]]

def shred_column(
    column: BinaryInput, start: int, stop: int, plan: ShreddingPlan, coerce: int, options: JsonOptions, seed: int
) -> Result | tuple[int, int, int]: ...
def shred_lines(
    lines: Buffer, line: int, plan: ShreddingPlan, coerce: int, options: JsonOptions, seed: int
) -> Result | tuple[int, int, int]: ...
