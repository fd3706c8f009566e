from typing import Any

from pqext.variant.kernels.binary import BinaryInput, VariantInput
from pqext.variant.kernels.shredding import ShreddingPlan, Sources

def first_fault(variants: VariantInput, max_depth: int, allow_unknown: bool) -> tuple[int, int, int, bool] | None: ...
def examine(
    plan: ShreddingPlan,
    metadata: BinaryInput,
    sources: Sources,
    full: bool,
    first_only: bool,
    most: int,
    stop: bool,
    max_depth: int,
    allow_unknown: bool,
) -> tuple[Any, dict[int, int]]: ...
