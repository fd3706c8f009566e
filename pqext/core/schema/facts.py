"""Interfaces of the facts that are known about a file without reading its data.

Planning, pruning and the handlers of annotations use these facts. A Thrift footer provides them as
:class:`pqext.core.read.reader.ParquetFile`, its row groups and column chunks. Footers in other formats and
data-skipping indexes provide them, too. Unknown facts have values that never exclude data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

if TYPE_CHECKING:
    from pqext.core.base.errors import ParquetError
    from pqext.core.format.metadata import GeospatialStatistics, SortingColumn
    from pqext.core.format.predicate import Bounds, Predicate
    from pqext.core.schema.nodes import Schema, SchemaNode


class PageFacts(Protocol):
    """Pages of one leaf in a row group, in order."""

    def __len__(self) -> int: ...
    @property
    def starts(self) -> Sequence[int]:
        """First row of each page within the row group."""
    @property
    def is_flat(self) -> bool:
        """Whether each value is one row."""
    @property
    def bounds(self) -> Sequence[Bounds]:
        """Bounds of the values of each page."""
    def rows(self, page: int) -> range:
        """Return the rows of the row group in ``page``."""
    def byte_range(self, page: int) -> tuple[int, int]:
        """Return (offset, length) of ``page`` in the file, including its header."""
    def matching(self, predicate: Predicate) -> Sequence[int]:
        """Return the pages that may contain a value that satisfies ``predicate``; no other page does."""


class LeafFacts(Protocol):
    """One leaf in a row group. Untrusted statistics have no bounds and no pages."""

    @property
    def node(self) -> SchemaNode:
        """Node of the leaf."""
    @property
    def row_group(self) -> int:
        """Index of the row group."""
    @property
    def num_values(self) -> int:
        """Number of entries, including nulls."""
    @property
    def codec(self) -> int:
        """Compression codec of its pages, as a number of the format."""
    @property
    def byte_range(self) -> tuple[int, int]:
        """(offset, length) of all its pages in the file, including the dictionary page."""
    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed size of all its pages."""
    def bounds(self) -> Bounds:
        """Return the bounds of its values."""
    def may_contain(self, predicate: Predicate) -> bool:
        """Whether a value can satisfy ``predicate`` according to a Bloom filter; False is definitive."""
    @property
    def pages(self) -> PageFacts | None:
        """Its pages with their bounds; None if their positions are unknown."""
    @property
    def page_locations(self) -> PageFacts | None:
        """Its pages, perhaps without what bounds them."""
    @property
    def geospatial_statistics(self) -> GeospatialStatistics | None:
        """Bounding box and types of its geometries."""
    def ignore_corrupt(self, structure: str, error: ParquetError) -> None:
        """Continue without a corrupt structure and issue a warning, or raise ``error`` if reading is strict."""
    def extension(self, owner: UUID) -> bytes | None:
        """Return the extension of ``owner``. Raises ``CorruptFileError`` or ``LimitError`` if it is corrupt."""


class Counts(NamedTuple):
    """Numbers of null, NaN and distinct values of a leaf; None if unknown."""

    nulls: int | None = None
    nans: int | None = None
    distinct: int | None = None


class LeafDescription(LeafFacts, Protocol):
    """Facts about a leaf that inspection shows in addition to those used by queries."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the column is encrypted."""
    @property
    def is_hidden(self) -> bool:
        """Whether only its existence is known, because its key is missing."""
    @property
    def file_path(self) -> str | None:
        """Path of the other file with its pages; None if they are in this file."""
    @property
    def compressed_bytes(self) -> int:
        """Stored size of all its pages."""
    @property
    def encodings(self) -> Sequence[int]:
        """Encodings of its pages and levels, as numbers of the format."""
    @property
    def counts(self) -> Counts:
        """Numbers of null, NaN and distinct values."""
    @property
    def has_dictionary(self) -> bool:
        """Whether it starts with a dictionary page."""
    @property
    def has_column_index(self) -> bool:
        """Whether the values of each page have bounds."""
    @property
    def has_offset_index(self) -> bool:
        """Whether the positions of its pages are known."""
    @property
    def has_bloom_filter(self) -> bool:
        """Whether it has a Bloom filter."""
    @property
    def stored_extension(self) -> bytes | None:
        """Bytes of its extension, including all owners."""


class RowGroupFacts(Protocol):
    """One row group."""

    @property
    def index(self) -> int:
        """Index in the file."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    @property
    def schema(self) -> Schema:
        """Schema of the file."""
    @property
    def trust_statistics(self) -> bool:
        """Whether statistics may be used to exclude rows."""
    def chunk(self, leaf: SchemaNode | int | str) -> LeafFacts:
        """Return the facts about a leaf, identified by node, column index or dotted path."""
    def bounds(self, leaf: SchemaNode) -> Bounds:
        """Return the bounds of a leaf's values, like ``chunk(leaf).bounds()``."""
    def stored_bytes(self, leaves: Collection[SchemaNode]) -> int:
        """Return the stored size of all pages of ``leaves``."""
    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Load the page indexes of ``leaves``, by default all, which will be needed."""
    def file_property(self, key: str) -> str | None:
        """Return the value of the file's key-value metadata for ``key``."""


class RowGroupDescription(Protocol):
    """Facts about a row group that inspection shows."""

    @property
    def index(self) -> int:
        """Index in the file."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    @property
    def compressed_bytes(self) -> int:
        """Stored size of all its pages."""
    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed size of all its pages."""
    @property
    def sorting(self) -> Sequence[SortingColumn]:
        """The declared sort order of its rows."""
    def chunk(self, leaf: SchemaNode | int | str) -> LeafDescription:
        """Return the facts about a leaf."""


class FileFacts(Protocol):
    """The metadata of a file that planning needs."""

    @property
    def path(self) -> str | None:
        """Path of the file, if it has one."""
    @property
    def schema(self) -> Schema:
        """Columns of the file."""
    @property
    def row_groups(self) -> Sequence[RowGroupFacts]:
        """Row groups in order."""
    @property
    def round_trip_bytes(self) -> int:
        """Number of bytes that take as long to fetch as one more request; 0 if requests cost almost nothing."""
    def fetch_ahead(self, request: Callable[[], object]) -> None:
        """Fetch in one pass the page indexes and Bloom filters that ``request`` needs; its calls return no data."""

