from typing import Any, TypeVar

from pqext.core.base.limits import Limits

T = TypeVar("T")

class StructIndex:
    """Where the structures of a list begin in their buffer."""

    def __len__(self) -> int: ...
    @property
    def name(self) -> str: ...
    def decode(self, position: int) -> Any: ...
    def raw(self, start: int, stop: int) -> bytes: ...

def decode(
    cls: type[T], buffer: Any, offset: int = 0, limits: Limits = ..., base: int = 0, path: str | None = None
) -> tuple[T, int]:
    """Read one structure from ``offset`` in a bytes-like object; returns it and its end.

    Raises ``CorruptFileError`` or ``LimitError`` whose ``offset`` is ``base`` plus the offset in the buffer
    and whose ``path`` is the one given.
    Lazy lists keep the buffer alive and read from it later.
    """

def scan_fields(
    buffer: Any, offset: int = 0, limits: Limits = ..., base: int = 0
) -> tuple[list[tuple[int, int, int, int, int]], int]:
    """The fields of one structure of any class: id, wire type, offsets of header, value and what follows."""
