from typing import Any

from pqext.core.kernels.buffer import Memory
from pqext.variant.kernels.binary import BinaryInput, VariantInput
from pqext.variant.kernels.shredding import ShreddingPlan, Sources
from pqext.variant.kernels.zone import Zone

def write_json(
    variants: VariantInput, start: int, stop: int, display: bool = False, zone: Zone | None = None
) -> tuple[int, Memory, Memory, Memory, int, int, int]: ...
def write_shredded_json(
    plan: ShreddingPlan, metadata: BinaryInput, sources: Sources, start: int, stop: int, display: bool = False,
    zone: Zone | None = None,
) -> tuple[int, Any, Any, Any, int, int]: ...
def indent_json(
    texts: BinaryInput, start: int, spaces: int, expansion: int, allowance: int
) -> tuple[int, Memory, Memory, int]: ...
