"""What is known of a file without reading its data, whoever knows it.

Planning and pruning, and the handlers of annotations, ask these facts. A Thrift footer is one source of them:
:class:`pqext.core.read.reader.ParquetFile`, its row groups and their column chunks. Others are footers of other forms
and stores of indexes. What is not known is answered so that nothing is left out.
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
    """The pages of one leaf in a row group, in their order."""

    def __len__(self) -> int: ...
    @property
    def starts(self) -> Sequence[int]:
        """The first row of each page, counted in the row group."""
    @property
    def is_flat(self) -> bool:
        """Does each value stand for one row?"""
    @property
    def bounds(self) -> Sequence[Bounds]:
        """What bounds the values of each page."""
    def rows(self, page: int) -> range:
        """The rows of the row group that ``page`` holds."""
    def byte_range(self, page: int) -> tuple[int, int]:
        """(offset, length) of ``page`` in the file, its header first."""
    def matching(self, predicate: Predicate) -> Sequence[int]:
        """The pages that may hold a value which satisfies ``predicate``; no other does."""


class LeafFacts(Protocol):
    """One leaf in a row group. What is not trusted of it bounds nothing and has no pages."""

    @property
    def node(self) -> SchemaNode:
        """The leaf."""
    @property
    def row_group(self) -> int:
        """The number of the row group."""
    @property
    def num_values(self) -> int:
        """Entries, nulls included."""
    @property
    def codec(self) -> int:
        """How its pages are compressed, by the format's number."""
    @property
    def byte_range(self) -> tuple[int, int]:
        """(offset, length) of all its pages in the file, the dictionary page first."""
    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of all its pages before compression."""
    def bounds(self) -> Bounds:
        """What bounds its values."""
    def may_contain(self, predicate: Predicate) -> bool:
        """Can one of its values satisfy ``predicate`` by a filter on equality? No is a proof."""
    @property
    def pages(self) -> PageFacts | None:
        """Its pages with what bounds each, ``None`` when their places are not known."""
    @property
    def page_places(self) -> PageFacts | None:
        """Its pages, perhaps without what bounds them."""
    @property
    def geospatial_statistics(self) -> GeospatialStatistics | None:
        """The box around its geometries, and their types."""
    def pass_over(self, what: str, error: ParquetError) -> None:
        """Go on without ``what``, which is damaged, with a warning; or raise ``error`` if reading is strict."""
    def extension(self, owner: UUID) -> bytes | None:
        """What the extension of ``owner`` says of it. Raises ``CorruptFileError`` or ``LimitError`` for a damaged one.
        """


class Counts(NamedTuple):
    """How many values of a leaf are null, NaN or different, ``None`` where that is not known."""

    nulls: int | None = None
    nans: int | None = None
    distinct: int | None = None


class LeafDescription(LeafFacts, Protocol):
    """What inspection shows of a leaf beside the facts that a question needs."""

    @property
    def is_encrypted(self) -> bool:
        """Is the column encrypted?"""
    @property
    def is_hidden(self) -> bool:
        """Is nothing known of it but that it is there, because its key is missing?"""
    @property
    def file_path(self) -> str | None:
        """The other file that holds its pages, ``None`` when this one does."""
    @property
    def compressed_bytes(self) -> int:
        """Bytes of all its pages as they are stored."""
    @property
    def encodings(self) -> Sequence[int]:
        """The encodings of its pages and levels, by the format's numbers."""
    @property
    def counts(self) -> Counts:
        """Nulls, NaNs and different values."""
    @property
    def has_dictionary(self) -> bool:
        """Does it begin with a dictionary page?"""
    @property
    def has_column_index(self) -> bool:
        """Are the values of each page bounded?"""
    @property
    def has_offset_index(self) -> bool:
        """Are the places of its pages known?"""
    @property
    def has_bloom_filter(self) -> bool:
        """Does it have a Bloom filter?"""
    @property
    def stored_extension(self) -> bytes | None:
        """The bytes of its extension, all owners' together."""


class RowGroupFacts(Protocol):
    """One row group."""

    @property
    def index(self) -> int:
        """Its number in the file."""
    @property
    def num_rows(self) -> int:
        """Its rows."""
    @property
    def schema(self) -> Schema:
        """The schema of the file."""
    @property
    def trust_statistics(self) -> bool:
        """May what is known of values leave out rows?"""
    def chunk(self, leaf: SchemaNode | int | str) -> LeafFacts:
        """What is known of a leaf, given as a node of the schema, by its column index or its dotted path."""
    def bounds(self, leaf: SchemaNode) -> Bounds:
        """What bounds the values of a leaf, as ``chunk(leaf).bounds()``."""
    def stored_bytes(self, leaves: Collection[SchemaNode]) -> int:
        """The bytes of all pages of ``leaves`` in the file."""
    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Make ready what is known of the pages of ``leaves``, all by default, which will be asked for."""
    def file_property(self, key: str) -> str | None:
        """What the file's key-value metadata holds under ``key``."""


class RowGroupDescription(Protocol):
    """What inspection shows of a row group."""

    @property
    def index(self) -> int:
        """Its number in the file."""
    @property
    def num_rows(self) -> int:
        """Its rows."""
    @property
    def compressed_bytes(self) -> int:
        """Bytes of all its pages as they are stored."""
    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of all its pages before compression."""
    @property
    def sorting(self) -> Sequence[SortingColumn]:
        """The columns by which its rows are said to be sorted."""
    def chunk(self, leaf: SchemaNode | int | str) -> LeafDescription:
        """What is known of a leaf."""


class FileFacts(Protocol):
    """One file."""

    @property
    def path(self) -> str | None:
        """Its name, where it has one."""
    @property
    def schema(self) -> Schema:
        """Its columns."""
    @property
    def row_groups(self) -> Sequence[RowGroupFacts]:
        """Its row groups, in their order."""
    @property
    def round_trip_bytes(self) -> int:
        """Bytes that are fetched as fast as a further request is answered; 0 where requests cost next to nothing."""
    def fetch_ahead(self, ask: Callable[[], object]) -> None:
        """Make ready at once what ``ask`` asks of pages and filters, of which it is told nothing yet."""
