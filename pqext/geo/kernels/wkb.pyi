from typing import Any

class WkbColumn:
    """An Arrow binary array as the geometry kernels see it; its buffers stay referenced.

    ``first`` is the slice's offset, ``wide`` true for 64-bit offsets; errors count rows from ``row``.
    """

    def __init__(
        self, validity: Any, offsets: Any, data: Any, first: int, length: int, wide: bool, row: int = 0
    ) -> None: ...
    def __len__(self) -> int: ...

def to_iso(column: WkbColumn) -> tuple[Any, Any]: ...
