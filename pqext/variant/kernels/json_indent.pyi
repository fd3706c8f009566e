from pqext.core.kernels.buffer import Memory
from pqext.variant.kernels.binary import BinaryInput

def indent_json(texts: BinaryInput, start: int, spaces: int) -> tuple[int, Memory, Memory, int]: ...
