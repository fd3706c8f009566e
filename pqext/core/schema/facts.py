"""Interfaces for facts about a file that are available without reading its data.

Planning, pruning and the handlers of annotations use these facts. A :class:`pqext.core.read.reader.ParquetFile`, its
row groups and column chunks provide them from a Thrift footer. Footers in other formats and data-skipping indexes
provide them too. Unknown facts have values that never exclude data.
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
        """Whether every row has exactly one value or null."""
    @property
    def bounds(self) -> Sequence[Bounds]:
        """Bounds of the values of each page."""
    def rows(self, page: int) -> range:
        """Return the range of rows of the row group that ``page`` contains."""
    def byte_range(self, page: int) -> tuple[int, int]:
        """Return the offset and the length of ``page`` in the file, including its header."""
    def matching_pages(self, predicate: Predicate) -> Sequence[int]:
        """Return the numbers of the pages that may contain a value that satisfies ``predicate``, in order."""


class LeafFacts(Protocol):
    """Facts about one leaf in a row group. Bounds and pages are unknown if statistics are not trusted."""

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
        """Compression codec of the pages, by its number in the format."""
    @property
    def byte_range(self) -> tuple[int, int]:
        """Offset and length of all pages in the file, including the dictionary page."""
    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed size of all pages in bytes."""
    def bounds(self) -> Bounds:
        """Return the bounds of the values."""
    def may_contain(self, predicate: Predicate) -> bool:
        """Return whether a value may satisfy ``predicate`` according to a Bloom filter. False is definitive."""
    @property
    def pages(self) -> PageFacts | None:
        """Pages with their bounds; None without an offset index."""
    @property
    def page_locations(self) -> PageFacts | None:
        """Pages, possibly without bounds; None if the offsets of the pages are unknown."""
    @property
    def geospatial_statistics(self) -> GeospatialStatistics | None:
        """Bounding box and types of the geometries; None if unknown."""
    def ignore_corrupt(self, structure: str, error: ParquetError) -> None:
        """Continue without a corrupt structure and issue a warning, or raise ``error`` if reading is strict."""
    def extension(self, owner: UUID) -> bytes | None:
        """Return the extension entry of ``owner``; None if missing.

        Raises ``CorruptFileError`` or ``LimitError`` if corrupt.
        """


class Counts(NamedTuple):
    """Numbers of null, NaN and distinct values of a leaf; None if unknown."""

    nulls: int | None = None
    nans: int | None = None
    distinct: int | None = None


class LeafDescription(LeafFacts, Protocol):
    """Facts about a leaf that inspection displays, in addition to the facts that queries use."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the column is encrypted."""
    @property
    def is_hidden(self) -> bool:
        """Whether the metadata of the column is unavailable because its key is missing."""
    @property
    def file_path(self) -> str | None:
        """Path of the other file that contains the pages; None if they are in this file."""
    @property
    def compressed_bytes(self) -> int:
        """Compressed size of all pages in bytes."""
    @property
    def encodings(self) -> Sequence[int]:
        """Encodings of pages and levels, by their numbers in the format."""
    @property
    def counts(self) -> Counts:
        """Numbers of null, NaN and distinct values."""
    @property
    def has_dictionary(self) -> bool:
        """Whether the column chunk has a dictionary page."""
    @property
    def has_column_index(self) -> bool:
        """Whether the column chunk has a column index with bounds of its pages."""
    @property
    def has_offset_index(self) -> bool:
        """Whether the column chunk has an offset index with positions of its pages."""
    @property
    def has_bloom_filter(self) -> bool:
        """Whether the column chunk has a Bloom filter."""
    @property
    def stored_extension(self) -> bytes | None:
        """Bytes of the metadata's extension, including the entries of all owners."""


class RowGroupFacts(Protocol):
    """Facts about one row group."""

    @property
    def index(self) -> int:
        """Index of the row group in the file."""
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
        """Return the compressed size of all pages of ``leaves`` in bytes."""
    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Load the page indexes of ``leaves`` (by default, of all leaves) before they are requested."""
    def file_property(self, key: str) -> str | None:
        """Return the value of ``key`` in the file's key-value metadata; None if it is missing."""


class RowGroupDescription(Protocol):
    """Facts about a row group that inspection displays."""

    @property
    def index(self) -> int:
        """Index of the row group in the file."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    @property
    def compressed_bytes(self) -> int:
        """Compressed size of all pages in bytes."""
    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed size of all pages in bytes."""
    @property
    def sorting(self) -> Sequence[SortingColumn]:
        """Declared sort order of the rows."""
    def chunk(self, leaf: SchemaNode | int | str) -> LeafDescription:
        """Return the description of a leaf, identified by node, column index or dotted path."""


class FileFacts(Protocol):
    """Metadata of a file that planning needs."""

    @property
    def path(self) -> str | None:
        """Path of the file, if it has one."""
    @property
    def schema(self) -> Schema:
        """Schema of the file."""
    @property
    def row_groups(self) -> Sequence[RowGroupFacts]:
        """Row groups in file order."""
    @property
    def round_trip_bytes(self) -> int:
        """Number of bytes that can be fetched in the time of an additional request; 0 if requests are cheap."""
    def fetch_ahead(self, request: Callable[[], object]) -> None:
        """Fetch the page indexes and Bloom filters that ``request`` needs, in merged reads.

        While ``request`` runs, these indexes and filters appear missing.
        """

