from collections.abc import Callable

from pqext.core.base.limits import Limits

class FlatMetadata:
    """A FlatBuffers footer, verified, of which structures are asked for one by one, as Thrift.

    ``own`` finds what stands beside its tables in the footer's extension, None in one of others. All results are
    serialised structures.
    Raises ``CorruptFileError`` for a payload that is none, ``LimitError`` beyond ``schema_depth``.
    """

    def __init__(self, payload: bytes, limits: Limits, own: Callable[[bytes], bytes | None]) -> None: ...
    @property
    def counts(self) -> tuple[int, int, int]:
        """Schema elements, row groups and leaves."""

    @property
    def rows(self) -> int | None:
        """The rows of all row groups, None where that is not plain."""

    @property
    def is_ours(self) -> bool:
        """Does our extension stand beside the tables?"""

    @property
    def is_encrypted(self) -> bool:
        """Does it speak of encryption?"""

    def file(self) -> bytes:
        """FileMetaData with empty lists for the schema and the row groups."""

    def elements(self, start: int, stop: int) -> bytes:
        """Schema elements one behind the other."""

    def group(self, position: int) -> bytes:
        """A row group with an empty list of columns."""

    def chunks(self, column: int, start: int, stop: int) -> bytes:
        """The chunks of one column in row groups from ``start`` to ``stop``, one behind the other."""

    def row_groups(self) -> bytes:
        """The list of all row groups with all their column chunks, its header first."""
