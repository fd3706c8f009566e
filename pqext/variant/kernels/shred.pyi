from typing import Any

from pqext.variant.kernels.binary import VariantInput
from pqext.variant.kernels.shredding import ShreddingPlan

def shred(
    plan: ShreddingPlan, variants: VariantInput, coerce: int
) -> tuple[int, int, int, Any, list[tuple[Any, ...]]]: ...
