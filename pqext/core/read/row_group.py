"""Row groups and column chunks: what the footer says of them, and what statistics, indexes and filters prove."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from pqext.core.base.errors import CorruptFileError, ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.suggestions import excerpt, unknown_leaf_hint
from pqext.core.encryption.footer import no_decryptor
from pqext.core.encryption.reading import ChunkDecryptor, FileDecryptor, MissingKeyError
from pqext.core.footer import chunk_bounds
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.format import metadata as structures
from pqext.core.format.created_by import UNCOUNTED_BYTES, counts_dictionary_header
from pqext.core.format.extension.container import entry
from pqext.core.format.extension.structure import extensions
from pqext.core.format.predicate import Bounds, Predicate, may_match
from pqext.core.format.thrift import LazyStructs
from pqext.core.indexes.bloom import KeptFilters, SplitBlockFilter, kept_filters
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.indexes.reading import Gathering, IndexReader
from pqext.core.io.external_files import FileResolver
from pqext.core.io.source import Source
from pqext.core.schema.facts import Counts
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types.invalid_values import may_be_invalid
from pqext.core.schema.types.utf8 import is_text


@dataclass(frozen=True)
class ColumnChunk:
    """One leaf in one row group: its metadata and what its statistics prove.

    Unless it is ``trusted``, statistics, indexes and the Bloom filter prove nothing: questions whether values, pages or
    rows can be left out are answered with no. What the file stores of them can be looked at all the same.
    """

    node: SchemaNode
    structure: structures.ColumnChunk
    orders: Sequence[structures.ColumnOrder] | None
    crypto: FileDecryptor | None = None
    row_group: int = 0
    limits: Limits = DEFAULT_LIMITS
    indexes: IndexReader | None = None
    resolver: FileResolver | None = None
    num_rows: int | None = None
    uncounted: int = 0
    """Bytes that the chunk may have beyond those that its metadata counts."""
    trusted: bool = True
    counts_nulls: bool = True
    """Whether the file counts all nulls that are read: not those that replace values outside the type."""

    @property
    def order(self) -> structures.ColumnOrder | None:
        """The order of the column's values, where the file gives one."""
        index = self.node.leaf_start
        return self.orders[index] if self.orders and index < len(self.orders) else None

    @property
    def decryptor(self) -> ChunkDecryptor | None:
        """What decrypts the chunk's modules; ``None`` for a plaintext column.

        Raises ``EncryptionError`` when the key is missing.
        """
        if self.crypto is not None:
            return self._decryptor
        if self.structure.crypto_metadata is not None:
            raise no_decryptor(self.node.dotted)
        return None

    @cached_property
    def _decryptor(self) -> ChunkDecryptor | None:
        assert self.crypto is not None
        return self.crypto.chunk(self.structure, self.node.dotted, self.row_group, self.node.leaf_start)

    @cached_property
    def _hidden(self) -> structures.ColumnMetaData | None:
        """The metadata of an encrypted column; without its key, what a plaintext footer shows."""
        assert self.crypto is not None
        try:
            hidden = self.crypto.column_metadata(
                self.structure, self.node.dotted, self.row_group, self.node.leaf_start, self.limits
            )
        except MissingKeyError:
            if self.structure.meta_data is None:
                raise
            hidden = None
        return hidden if hidden is not None else self.structure.meta_data

    @property
    def metadata(self) -> structures.ColumnMetaData:
        """The chunk's metadata.

        Of an encrypted column whose key is missing it is what a plaintext footer shows, without statistics. Raises
        ``EncryptionError`` when the footer shows nothing, and ``UnsupportedError`` for one encrypted in another file.
        """
        is_open = self.structure.crypto_metadata is None or self.crypto is None
        metadata = self.structure.meta_data if is_open else self._hidden
        if metadata is None:
            raise CorruptFileError("a column chunk has no metadata", column=self.node.dotted)
        if tuple(metadata.path_in_schema) != self.node.path or metadata.type != self.node.physical_type:
            raise CorruptFileError(
                f"the column chunk in this column's place is of {'.'.join(metadata.path_in_schema)!r} with physical "
                f"type {getattr(metadata.type, 'name', metadata.type)}", column=self.node.dotted,
            )
        if self.structure.file_path and self.structure.crypto_metadata is not None:
            raise UnsupportedError(
                f"the column chunk lies in another file, {self.structure.file_path!r}, "
                "and is encrypted; read that file",
                feature="encrypted external files", column=self.node.dotted,
            )
        return metadata

    def source(self, own: Source) -> Source:
        """Where the chunk's bytes are: the ``own`` source of the file, or the other file that a summary names.

        Raises ``UnsupportedError`` for a file that is not to be opened, ``CorruptFileError`` when it is not there.
        """
        if not self.structure.file_path or self.structure.file_path == own.known_as:
            return own
        return (self.resolver or FileResolver(None, "refuse")).source(self.structure.file_path)

    @property
    def num_values(self) -> int:
        """Entries of the chunk, nulls included."""
        return self.metadata.num_values

    @property
    def codec(self) -> int:
        """How the chunk's pages are compressed, by the format's number."""
        return self.metadata.codec

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of the chunk's pages before compression, as its metadata says."""
        return self.metadata.total_uncompressed_size

    @property
    def compressed_bytes(self) -> int:
        """Bytes of the chunk's pages as they are stored, as its metadata says."""
        return self.metadata.total_compressed_size

    @property
    def encodings(self) -> Sequence[int]:
        """The encodings of the chunk's pages and levels, by the format's numbers."""
        return self.metadata.encodings

    @property
    def counts(self) -> Counts:
        """How many values are null, NaN or different, as far as its statistics say."""
        stored = self.metadata.statistics
        return Counts() if stored is None else Counts(stored.null_count, stored.nan_count, stored.distinct_count)

    @property
    def file_path(self) -> str | None:
        """The other file that holds the chunk's pages, ``None`` when this one does."""
        return self.structure.file_path

    @property
    def is_encrypted(self) -> bool:
        """Is the column encrypted?"""
        return self.structure.crypto_metadata is not None

    @property
    def is_hidden(self) -> bool:
        """Is nothing known of the chunk but that it is there, because its key is missing?"""
        if not self.is_encrypted:
            return False
        if self.crypto is None:
            return self.structure.meta_data is None
        try:
            return self._hidden is None
        except MissingKeyError:
            return True

    @property
    def has_dictionary(self) -> bool:
        """Does the chunk say that it begins with a dictionary page?"""
        return self.metadata.dictionary_page_offset is not None

    @property
    def has_column_index(self) -> bool:
        """Does the file bound the values of each page?"""
        return self.structure.column_index_offset is not None

    @property
    def has_offset_index(self) -> bool:
        """Does the file say where each page is?"""
        return self.structure.offset_index_offset is not None

    @property
    def has_bloom_filter(self) -> bool:
        """Does the chunk have a Bloom filter?"""
        return self.metadata.bloom_filter_offset is not None

    @property
    def stored_extension(self) -> bytes | None:
        """The bytes of its metadata's extension, all owners' together."""
        return extensions(self.metadata)

    def extension(self, owner: UUID) -> bytes | None:
        """What the metadata's extension of ``owner`` holds, ``None`` when there is none.

        Raises ``CorruptFileError`` when it is damaged, ``UnsupportedError`` for a later version.
        """
        return entry(self.metadata, owner)

    def bounds(self) -> Bounds:
        """What the chunk's statistics prove of its values: nothing where it has not as many as its row group's rows."""
        return self._bounds

    @cached_property
    def _bounds(self) -> Bounds:
        if not self.trusted:
            return Bounds(has_nan=None)
        about = self.metadata
        proven = chunk_bounds.proven(self.node, about.statistics, about.num_values, self.num_rows, self.order)
        return proven if self.counts_nulls or proven.all_null else replace(proven, null_count=None)

    def may_match(self, predicate: Predicate) -> bool:
        """Can a value of the chunk satisfy ``predicate``, by statistics and then by Bloom filter? No is a proof."""
        return may_match(predicate, self.bounds()) and self.may_contain(predicate)

    def may_contain(self, predicate: Predicate) -> bool:
        """Can a value of the chunk satisfy ``predicate``, by its Bloom filter, which is read for that, alone?"""
        return self.indexes is None or not self.trusted or self.indexes.may_contain(self, predicate)

    @property
    def column_index(self) -> structures.ColumnIndex | None:
        """Bounds of each page, ``None`` when there are none. Raises ``CorruptFileError`` when they are damaged."""
        return None if self.indexes is None else self.indexes.column_index(self)

    @property
    def offset_index(self) -> structures.OffsetIndex | None:
        """The place of each page, ``None`` when there is none. Raises ``CorruptFileError`` when it is damaged."""
        return None if self.indexes is None else self.indexes.offset_index(self)

    @property
    def pages(self) -> IndexedPages | None:
        """The pages for pruning, ``None`` without an offset index; a damaged index warns and is passed over."""
        return None if self.indexes is None or not self.trusted else self.indexes.pages(self)

    @property
    def page_places(self) -> IndexedPages | None:
        """The places of the pages without their bounds, so that the column index need not be read."""
        return None if self.indexes is None or not self.trusted else self.indexes.places(self)

    def page_bounds(self) -> list[Bounds]:
        """What the page index proves of each page's values; empty without a page index."""
        pages = self.pages
        return [] if pages is None else pages.bounds

    def pass_over(self, what: str, error: ParquetError) -> None:
        """Go on without ``what``, with a ``DamagedIndexWarning``; raise ``error`` if reading is strict."""
        if self.indexes is None:
            raise error
        self.indexes.pass_over(what, error)

    @property
    def bloom_filter(self) -> SplitBlockFilter | None:
        """The Bloom filter, ``None`` when there is none of a known kind; the file keeps those asked last.

        Raises ``CorruptFileError`` or ``LimitError`` when it is damaged.
        """
        return None if self.indexes is None else self.indexes.bloom_filter(self)

    @property
    def geospatial_statistics(self) -> structures.GeospatialStatistics | None:
        """Bounding box and geometry types, if the writer stored them for the type that the column is read as."""
        declared = self.node.declared_type
        if self.node.is_adopted and declared is not None and declared.member != self.node.logical_name:
            return None
        return self.metadata.geospatial_statistics

    @property
    def byte_range(self) -> tuple[int, int]:
        """(offset, length) of the chunk's pages in the file, the dictionary page first, as its metadata says."""
        return start_of(self.metadata), self.metadata.total_compressed_size

    def readable_range(self, own: Source) -> tuple[int, int]:
        """:attr:`byte_range` with what its metadata may not count, in the ``own`` source of the file or another."""
        start, length = self.byte_range
        if self.uncounted:
            length += min(self.uncounted, max(self.source(own).size - start - length, 0))
        return start, length

    @property
    def entries_to_read(self) -> int | None:
        """The entries at which the chunk ends; ``None`` where its bytes say that."""
        return self.metadata.num_values if self.uncounted else None


@dataclass(frozen=True)
class RowGroup:
    """Row group ``index`` of the file at ``path``, as ``file_metadata``, the footer, describes it under ``schema``.

    ``trust_statistics``: may statistics, indexes and Bloom filters leave out rows?
    """

    file_metadata: structures.FileMetaData
    schema: Schema
    index: int
    path: str | None
    crypto: FileDecryptor | None = None
    limits: Limits = DEFAULT_LIMITS
    source: Source | None = None
    resolver: FileResolver | None = None
    trust_statistics: bool = True
    filters: KeptFilters = field(default_factory=kept_filters, compare=False)
    gathering: Gathering = field(default_factory=Gathering, compare=False)
    strict: bool = False
    """Are damaged indexes and Bloom filters errors?"""
    reads_invalid_as_null: bool = False
    replaces_text: bool = False
    """Whether values outside their type are read as null, and strings that are not UTF-8 as others, without bounds."""
    known: dict[int, ColumnChunk] = field(default_factory=dict, compare=False, repr=False)
    """The column chunks that were asked for, by column index; they are kept with what was found of them."""

    @cached_property
    def metadata(self) -> structures.RowGroup:
        """The row group's metadata structure."""
        row_groups = self.file_metadata.row_groups
        return row_groups.peek(self.index) if isinstance(row_groups, LazyStructs) else row_groups[self.index]

    @cached_property
    def num_rows(self) -> int:
        """Rows of the group."""
        return self.metadata.num_rows

    def bounds(self, leaf: SchemaNode) -> Bounds:
        """As ``chunk(leaf).bounds()``, of a chunk of which nothing else was asked without making it."""
        is_unusual = self.reads_invalid_as_null or self.replaces_text or self.crypto is not None
        if is_unusual or not self.trust_statistics or leaf.leaf_start in self.known:
            return self.chunk(leaf).bounds()
        found = self._known_bounds.get(leaf.leaf_start)
        if found is None:
            found = self._known_bounds[leaf.leaf_start] = self._glanced_bounds(leaf) or self.chunk(leaf).bounds()
        return found

    @cached_property
    def _known_bounds(self) -> dict[int, Bounds]:
        return {}

    def _glanced_bounds(self, leaf: SchemaNode) -> Bounds | None:
        """The bounds straight from the footer's bytes; None where anything is unusual about them."""
        if self._place is None or self.schema.leaves[leaf.leaf_start] is not leaf:
            return None
        found = chunk_bounds.bounds_at(self._place, len(self.schema.leaves), leaf, self.file_metadata.column_orders)
        if found is None:
            return None
        self.__dict__["num_rows"] = found[0]
        return found[1]

    @cached_property
    def _place(self) -> chunk_bounds.Place | None:
        """Where the group's structure lies in the footer, while that is as it was read."""
        find = getattr(self.file_metadata.row_groups, "place", None)
        return None if find is None else find(self.index)

    def stored_bytes(self, leaves: Collection[SchemaNode]) -> int:
        """The bytes of the pages of ``leaves`` together, as their metadata says."""
        place = None if self.crypto is not None or self.known else self._place
        found = None if place is None else chunk_bounds.bytes_at(place, len(self.schema.leaves), leaves)
        return sum(self.chunk(leaf).byte_range[1] for leaf in leaves) if found is None else found

    @property
    def compressed_bytes(self) -> int:
        """Bytes of all its pages as they are stored, as far as its metadata says."""
        stored = self.metadata.total_compressed_size
        if stored is not None:
            return stored
        return sum(chunk.meta_data.total_compressed_size for chunk in self.metadata.columns if chunk.meta_data)

    @property
    def uncompressed_bytes(self) -> int:
        """Bytes of all its pages before compression, as its metadata says."""
        return self.metadata.total_byte_size

    @property
    def sorting(self) -> Sequence[structures.SortingColumn]:
        """The columns by which its rows are said to be sorted."""
        return self.metadata.sorting_columns or ()

    def chunk(self, leaf: SchemaNode | int | str) -> ColumnChunk:
        """The column chunk of a leaf, given as its node, which must be of this schema, its column index or its path.

        Raises KeyError for a path that names no leaf.
        """
        leaf = self._leaf(leaf) if isinstance(leaf, str) else leaf
        index, leaves = leaf if isinstance(leaf, int) else leaf.leaf_start, self.schema.leaves
        found = self.known.get(index)
        if found is not None and (isinstance(leaf, int) or leaf is found.node):
            return found
        chunks = self.metadata.columns
        if len(chunks) != len(leaves):
            message = f"a row group has {len(chunks)} column chunks for {len(leaves)} columns"
            raise CorruptFileError(message, path=self.path, row_group=self.index)
        node = leaf if not isinstance(leaf, int) and leaf.is_leaf else leaves[index]
        ordinal = self.index if self.crypto is None else self.crypto.ordinal(self.metadata, self.index)
        is_trusted = self.trust_statistics and not (self.replaces_text and is_text(node))
        found = self.known[node.leaf_start] = ColumnChunk(
            node, chunks[index], self.file_metadata.column_orders, self.crypto, ordinal, self.limits, self.indexes,
            self.resolver, self.num_rows, self._uncounted, is_trusted,
            not (self.reads_invalid_as_null and may_be_invalid(node)),
        )
        return found

    def _leaf(self, path: str) -> SchemaNode:
        node = self.schema.find(path)
        if node is None or not node.is_leaf:
            leaves = [leaf.dotted for leaf in self.schema.leaves]
            raise KeyError(f"there is no column chunk {excerpt(path)!r}{unknown_leaf_hint(path, leaves)}")
        return node

    @property
    def counts_too_little(self) -> bool:
        """May its chunks have more bytes than their metadata counts?"""
        return self._uncounted > 0

    @cached_property
    def _uncounted(self) -> int:
        return 0 if counts_dictionary_header(self.file_metadata.created_by) else UNCOUNTED_BYTES

    def file_property(self, key: str) -> str | None:
        """What the file's key-value metadata holds under ``key``."""
        pairs = self.file_metadata.key_value_metadata or ()
        return next((pair.value for pair in pairs if pair.key == key), None)

    @cached_property
    def indexes(self) -> IndexReader | None:
        """What reads the group's page indexes and Bloom filters, and keeps what was read."""
        return None if self.source is None else IndexReader(
            self.source, self.limits, self.num_rows, self.index, self.filters, self.gathering, self.strict
        )

    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Fetch the page indexes of ``leaves``, all by default, before they are asked for: near ones in one read."""
        if self.indexes is not None:
            chunks = self.chunks() if leaves is None else (self.chunk(leaf) for leaf in leaves)
            self.indexes.load(chunks)

    def chunks(self) -> Iterator[ColumnChunk]:
        """All column chunks in column order."""
        return (self.chunk(index) for index in range(len(self.schema.leaves)))
