from enum import IntEnum
from typing import Any

from pqext.variant.kernels.binary import BinaryInput
from pqext.variant.path import Path

class Target(IntEnum):
    TARGET_VARIANT = ...

class PathSteps:
    def __init__(self, path: Path) -> None: ...

def get(
    metadata: BinaryInput,
    value: BinaryInput,
    groups: tuple[Any, int] | None,
    path: PathSteps,
    leaf: int,
    precision: int,
    scale: int,
) -> tuple[int, int, Any, int, Any, Any, tuple[int, int, int], tuple[Any, Any, Any] | None]: ...
