from pqext.core.kernels import Readable

def has_exact_length(data: Readable, width: int, count: int, surplus: int = ...) -> bool:
    """Return whether the runs of ``count`` values fill ``data`` exactly.

    The last run may have up to ``surplus`` additional values.
    """
