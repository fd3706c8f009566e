from collections.abc import Callable

from pqext.core.base.limits import Limits

class FlatMetadata:
    """Verified FlatBuffers footer, whose structures are converted to serialised Thrift structures one by one.

    ``own`` extracts the differences from the footer's extension; it returns None for an extension of another writer.
    Raises ``CorruptFileError`` if the payload is invalid, and ``LimitError`` if the schema exceeds ``schema_depth``.
    """

    def __init__(self, payload: bytes, limits: Limits, own: Callable[[bytes], bytes | None]) -> None: ...
    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of schema elements, row groups and leaves."""

    @property
    def rows(self) -> int | None:
        """Total number of rows of all row groups; None if a count is negative, or differences may contain counts."""

    @property
    def is_ours(self) -> bool:
        """Whether pqext's extension complements the tables."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the footer declares encryption."""

    def file(self) -> bytes:
        """Return FileMetaData with empty lists for the schema and the row groups."""

    def elements(self, start: int, stop: int) -> bytes:
        """Return the concatenated schema elements from ``start`` up to ``stop``."""

    def group(self, position: int) -> bytes:
        """Return a row group with an empty list of columns."""

    def chunks(self, column: int, start: int, stop: int) -> bytes:
        """Return the concatenated chunks of one column in the row groups from ``start`` up to ``stop``."""

    def row_groups(self) -> bytes:
        """Return the list of all row groups with all their column chunks, beginning with the list header."""
