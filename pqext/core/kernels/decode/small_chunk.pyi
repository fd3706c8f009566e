from collections.abc import Callable
from typing import Any

from pqext.core.base.limits import Limits
from pqext.core.kernels import Readable

class SmallChunks:
    def __init__(
        self, limits: Limits, width: int, boolean: bool, optional: bool, room: int, exact: bool = False
    ) -> None: ...
    def decode(
        self, data: Readable, count: int, unpack: Callable[[Readable, int], Readable] | None,
        crc32: Callable[[Readable], int] | None,
    ) -> tuple[int, Any, Any, Any] | None: ...
