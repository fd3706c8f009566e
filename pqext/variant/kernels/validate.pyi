from pqext.variant.kernels.binary import VariantInput

def first_fault(
    variants: VariantInput, max_depth: int, allow_unknown: bool
) -> tuple[int, int, int, bool] | None: ...
