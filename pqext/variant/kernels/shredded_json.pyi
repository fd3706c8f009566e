from typing import Any

from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.shredding import ShreddingPlan, Sources

def write_shredded_json(
    plan: ShreddingPlan, metadata: BinaryInput, sources: Sources, start: int, stop: int
) -> tuple[int, Any, Any, Any, int, int]: ...
