from typing import Any

class WkbColumn:
    """Arrow binary array for the geometry kernels, which retains its buffers.

    ``first`` is the offset of the slice, and ``wide`` is true for 64-bit offsets. ``row`` is the position of the first
    row in a larger array, for errors.
    """

    def __init__(
        self, validity: Any, offsets: Any, data: Any, first: int, length: int, wide: bool, row: int = 0
    ) -> None: ...
    def __len__(self) -> int: ...

def to_iso(column: WkbColumn) -> tuple[Any, Any]: ...
