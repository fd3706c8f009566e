from collections.abc import Sequence
from typing import Any

from pqext.core.kernels.thrift.reader import StructIndex
from pqext.core.kernels.thrift.struct_plan import Plan

def small_chunk_ranges(
    chunks: StructIndex, leaves: Sequence[tuple[int, int, bytes]], values: int, most_unpacked: int, most_stored: int,
    file_size: int, file_name: bytes = ...,
) -> tuple[list[int], list[int], list[tuple[int, int]]]: ...
def read_statistics(
    groups: StructIndex, position: int, leaves: int, leaf: tuple[int, int, bytes], plan: Plan
) -> tuple[int, int, Any] | None: ...
def chunk_bytes(
    groups: StructIndex, position: int, leaf_count: int, leaves: Sequence[tuple[int, int, bytes]]
) -> int | None: ...
