from pqext.core.kernels.buffer import Memory
from pqext.variant.kernels.binary import VariantInput

def write_json(variants: VariantInput, start: int, stop: int) -> tuple[int, Memory, Memory, Memory, int, int, int]: ...
