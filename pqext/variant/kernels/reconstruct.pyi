from typing import Any

from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.kernels.shredding import ShreddingPlan, Sources

def reconstruct(
    plan: ShreddingPlan, metadata: BinaryInput, sources: Sources, strict: bool, missing_is_null: bool
) -> tuple[int, int, Any, int, Any, Any, Any, Any]: ...
