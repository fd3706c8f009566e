from pqext.core.kernels import Readable

def has_exact_length(data: Readable, width: int, count: int, surplus: int = ...) -> bool:
    """Whether the runs of ``count`` values take exactly ``data``; the last run may have ``surplus`` values more."""
