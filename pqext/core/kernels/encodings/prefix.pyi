from collections.abc import Callable

from pqext.core.kernels import Readable

def join_prefixes(
    prefixes: Readable, suffixes: Readable, data: Readable, lengths: Readable, limit: int, width: int = -1,
    claim: Callable[[int], None] | None = None,
) -> Readable: ...
def split_prefixes(data: Readable, offsets: Readable, prefixes: Readable, suffixes: Readable) -> Readable: ...
