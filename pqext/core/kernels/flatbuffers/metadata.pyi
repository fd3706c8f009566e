from collections.abc import Callable

from pqext.core.base.limits import Limits

class FlatMetadata:
    """A verified FlatBuffers footer, whose structures are converted to Thrift one by one.

    ``own`` extracts the differences from the footer's extension, None for the extension of another writer. All results
    are serialised structures.
    Raises ``CorruptFileError`` for an invalid payload, ``LimitError`` beyond ``schema_depth``.
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
        """Whether our extension complements the tables."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the footer declares encryption."""

    def file(self) -> bytes:
        """FileMetaData with empty lists for the schema and the row groups."""

    def elements(self, start: int, stop: int) -> bytes:
        """Concatenated schema elements."""

    def group(self, position: int) -> bytes:
        """A row group with an empty list of columns."""

    def chunks(self, column: int, start: int, stop: int) -> bytes:
        """The concatenated chunks of one column in row groups from ``start`` to ``stop``."""

    def row_groups(self) -> bytes:
        """The list of all row groups with all their column chunks, its header first."""
