from collections.abc import Sequence

from pqext.core.kernels.thrift import StructIndex

def small_places(
    chunks: StructIndex, leaves: Sequence[tuple[int, int, bytes]], values: int, most_unpacked: int, most_stored: int,
    file_size: int, file_name: bytes = ...,
) -> tuple[list[int], list[int], list[tuple[int, int]]]: ...
