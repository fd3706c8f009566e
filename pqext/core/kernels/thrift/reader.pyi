from typing import Any, TypeVar

from pqext.core.base.limits import Limits

T = TypeVar("T")

class StructIndex:
    """Offsets of the structures of a list in their buffer."""

    def __len__(self) -> int: ...
    @property
    def name(self) -> str: ...
    def decode(self, position: int) -> Any: ...
    def raw(self, start: int, stop: int) -> bytes: ...

def decode(
    cls: type[T], buffer: Any, offset: int = 0, limits: Limits = ..., base: int = 0, path: str | None = None
) -> tuple[T, int]:
    """Read the structure at ``offset`` of a bytes-like object. Return the structure and its end.

    Lazy lists retain the buffer and read from it later. Raises ``CorruptFileError`` or ``LimitError`` with ``path``
    and an offset that is ``base`` plus the offset in the buffer.
    """

def scan_fields(
    buffer: Any, offset: int = 0, limits: Limits = ..., base: int = 0
) -> tuple[list[tuple[int, int, int, int, int]], int]:
    """Return (fields, end) of a structure of any class.

    A field is (id, wire type, offset of the header, offset of the value, end).
    """
