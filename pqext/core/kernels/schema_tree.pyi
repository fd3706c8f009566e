from collections.abc import Buffer, Sequence

from pqext.core.kernels.thrift import StructIndex

def elements(index: StructIndex) -> tuple[list[str | None], Buffer, Buffer, Buffer]:
    """Names (None where one is not UTF-8), children, repetition types (-1: none) and whether there is a type."""

def levels(
    children: Buffer, repetition: Buffer, typed: Buffer, max_depth: int
) -> tuple[str, int, Sequence[memoryview[int]]]:
    """Follow the depth-first list of schema elements with an explicit stack.

    Returns (fault, position of the fault, arrays); the fault is empty when the list is a tree. The arrays, int32
    one an element, hold definition level, repetition level, first leaf, leaf behind the last, element behind the
    last below; the sixth, one a leaf, its element.
    """
