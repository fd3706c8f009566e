"""Row groups and column chunks: metadata from the footer, and bounds from statistics, indexes and Bloom filters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from pqext.core.base.errors import CorruptFileError, ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.suggestions import excerpt, unknown_leaf_hint
from pqext.core.encryption.reading import ChunkDecryptor, FileDecryptor, MissingKeyError, missing_algorithm_error
from pqext.core.footer.chunk_offsets import start_of
from pqext.core.footer.structure_lookup import Location, bounds_at, bytes_at, trusted_bounds
from pqext.core.format import metadata as structures
from pqext.core.format.created_by import UNCOUNTED_BYTES, counts_dictionary_header
from pqext.core.format.extension.framing import entry
from pqext.core.format.extension.structure import extensions
from pqext.core.format.predicate import Bounds, Predicate, may_match
from pqext.core.format.thrift import LazyStructs
from pqext.core.indexes.bloom import FilterCache, SplitBlockFilter, filter_cache
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.indexes.reading import IndexReader, IndexRecorder
from pqext.core.io.external_files import FileResolver
from pqext.core.io.source import Source
from pqext.core.schema.facts import Counts
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types.invalid_values import may_be_invalid
from pqext.core.schema.types.utf8 import is_text


@dataclass(frozen=True)
class ColumnChunk:
    """Column chunk of one leaf in one row group: its metadata and the bounds of its values.

    If ``trusted`` is false, statistics, indexes and the Bloom filter are not used to exclude values, pages or rows. The
    stored structures can still be read.
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
    """Number of bytes that the chunk may have in addition to those counted in its metadata."""
    trusted: bool = True
    counts_nulls: bool = True
    """Whether the null count includes all nulls of the result. It does not if invalid values are replaced with null."""

    @property
    def order(self) -> structures.ColumnOrder | None:
        """Column order that the file declares; None without a declared order."""
        index = self.node.leaf_start
        return self.orders[index] if self.orders and index < len(self.orders) else None

    @property
    def decryptor(self) -> ChunkDecryptor | None:
        """Decryptor of the chunk; None for a plaintext column. Raises ``EncryptionError`` if the key is missing."""
        if self.crypto is not None:
            return self._decryptor
        if self.structure.crypto_metadata is not None:
            raise missing_algorithm_error(self.node.dotted_path)
        return None

    @cached_property
    def _decryptor(self) -> ChunkDecryptor | None:
        assert self.crypto is not None
        return self.crypto.chunk(self.structure, self.node.dotted_path, self.row_group, self.node.leaf_start)

    @cached_property
    def _encrypted_metadata(self) -> structures.ColumnMetaData | None:
        """Metadata of an encrypted column; if its key is missing, only the part in a plaintext footer."""
        assert self.crypto is not None
        try:
            hidden = self.crypto.column_metadata(
                self.structure, self.node.dotted_path, self.row_group, self.node.leaf_start, self.limits
            )
        except MissingKeyError:
            if self.structure.meta_data is None:
                raise
            hidden = None
        return hidden if hidden is not None else self.structure.meta_data

    @cached_property
    def metadata(self) -> structures.ColumnMetaData:
        """Metadata of the chunk.

        If the key of an encrypted column is missing, this is the part in the plaintext footer, without statistics.
        Raises ``EncryptionError`` if the footer has none, ``CorruptFileError`` if the metadata is missing or belongs to
        another column, and ``UnsupportedError`` for an encrypted column in another file.
        """
        is_open = self.structure.crypto_metadata is None or self.crypto is None
        metadata = self.structure.meta_data if is_open else self._encrypted_metadata
        if metadata is None:
            raise CorruptFileError("a column chunk has no metadata", column=self.node.dotted_path)
        if tuple(metadata.path_in_schema) != self.node.path_in_file or metadata.type != self.node.physical_type:
            raise CorruptFileError(
                f"wrong column chunk: it belongs to {'.'.join(metadata.path_in_schema)!r} with physical "
                f"type {getattr(metadata.type, 'name', metadata.type)}", column=self.node.dotted_path,
            )
        if self.structure.file_path and self.structure.crypto_metadata is not None:
            raise UnsupportedError(
                f"the column chunk is in another file, {self.structure.file_path!r}, "
                "and is encrypted; read that file",
                feature="encrypted external files", column=self.node.dotted_path,
            )
        return metadata

    def source(self, file_source: Source) -> Source:
        """Return the source of the chunk's bytes: ``file_source`` or, for a summary file, the data file that contains
        the chunk.

        Raises ``UnsupportedError`` if that file must not be opened, and ``CorruptFileError`` if it does not exist.
        """
        if not self.structure.file_path or self.structure.file_path == file_source.summary_name:
            return file_source
        return (self.resolver or FileResolver(None, "reject")).source(self.structure.file_path)

    @property
    def num_values(self) -> int:
        """Number of entries in the chunk, including nulls."""
        return self.metadata.num_values

    @property
    def codec(self) -> int:
        """Number of the compression codec in the format."""
        return self.metadata.codec

    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed size of the chunk's pages in bytes, according to its metadata."""
        return self.metadata.total_uncompressed_size

    @property
    def compressed_bytes(self) -> int:
        """Compressed size of the chunk's pages in bytes, according to its metadata."""
        return self.metadata.total_compressed_size

    @property
    def encodings(self) -> Sequence[int]:
        """Encodings of the chunk's pages and levels, by their numbers in the format."""
        return self.metadata.encodings

    @property
    def counts(self) -> Counts:
        """Numbers of nulls, NaNs and distinct values. A number that the statistics do not contain is None."""
        stored = self.metadata.statistics
        return Counts() if stored is None else Counts(stored.null_count, stored.nan_count, stored.distinct_count)

    @property
    def file_path(self) -> str | None:
        """Path of the other file that contains the chunk's pages; None for this file."""
        return self.structure.file_path

    @property
    def is_encrypted(self) -> bool:
        """Whether the column is encrypted."""
        return self.structure.crypto_metadata is not None

    @property
    def is_hidden(self) -> bool:
        """Whether the chunk's metadata is unavailable because its key is missing."""
        if not self.is_encrypted:
            return False
        if self.crypto is None:
            return self.structure.meta_data is None
        try:
            return self._encrypted_metadata is None
        except MissingKeyError:
            return True

    @property
    def has_dictionary(self) -> bool:
        """Whether the metadata declares a dictionary page."""
        return self.metadata.dictionary_page_offset is not None

    @property
    def has_column_index(self) -> bool:
        """Whether the chunk has a column index."""
        return self.structure.column_index_offset is not None

    @property
    def has_offset_index(self) -> bool:
        """Whether the chunk has an offset index."""
        return self.structure.offset_index_offset is not None

    @property
    def has_bloom_filter(self) -> bool:
        """Whether the chunk has a Bloom filter."""
        return self.metadata.bloom_filter_offset is not None

    @property
    def stored_extension(self) -> bytes | None:
        """Bytes of the metadata's extension, including the entries of all owners."""
        return extensions(self.metadata)

    def extension(self, owner: UUID) -> bytes | None:
        """Return the content of ``owner``'s entry in the metadata's extension; None without an entry.

        Raises ``CorruptFileError`` if the extension is corrupt, and ``UnsupportedError`` if its version is unknown.
        """
        return entry(self.metadata, owner)

    def bounds(self) -> Bounds:
        """Return the bounds of the values; unknown if statistics are not trusted, or the value count is contradictory.
        """
        return self._bounds

    @cached_property
    def _bounds(self) -> Bounds:
        if not self.trusted:
            return Bounds(has_nan=None)
        about = self.metadata
        bounds = trusted_bounds(self.node, about.statistics, about.num_values, self.num_rows, self.order)
        return bounds if self.counts_nulls or bounds.all_null else replace(bounds, null_count=None)

    def may_match(self, predicate: Predicate) -> bool:
        """Return whether a value may satisfy ``predicate`` according to statistics and the Bloom filter."""
        return may_match(predicate, self.bounds()) and self.may_contain(predicate)

    def may_contain(self, predicate: Predicate) -> bool:
        """Return whether a value may satisfy ``predicate`` according to the Bloom filter. Reads the filter if
        necessary.
        """
        return self.indexes is None or not self.trusted or self.indexes.may_contain(self, predicate)

    @property
    def column_index(self) -> structures.ColumnIndex | None:
        """Column index; None if missing. Raises ``CorruptFileError`` if it is corrupt."""
        return None if self.indexes is None else self.indexes.column_index(self)

    @property
    def offset_index(self) -> structures.OffsetIndex | None:
        """Offset index; None if missing. Raises ``CorruptFileError`` if it is corrupt."""
        return None if self.indexes is None else self.indexes.offset_index(self)

    @property
    def pages(self) -> IndexedPages | None:
        """Pages with bounds; None without a trusted offset index. A corrupt index is ignored with a warning."""
        return None if self.indexes is None or not self.trusted else self.indexes.pages(self)

    @property
    def page_locations(self) -> IndexedPages | None:
        """Pages without bounds; None without a trusted offset index. The column index is not read."""
        return None if self.indexes is None or not self.trusted else self.indexes.located_pages(self)

    def page_bounds(self) -> list[Bounds]:
        """Return the bounds of each page from the page index. The list is empty without a page index."""
        pages = self.pages
        return [] if pages is None else pages.bounds

    def ignore_corrupt(self, name: str, error: ParquetError) -> None:
        """Ignore the corrupt structure ``name`` with a warning; raise ``error`` if reading is strict."""
        if self.indexes is None:
            raise error
        self.indexes.ignore_corrupt(name, error)

    @property
    def bloom_filter(self) -> SplitBlockFilter | None:
        """Bloom filter; None if the chunk has none of a supported type. The file caches recent filters.

        Raises ``CorruptFileError`` if the filter is corrupt, and ``LimitError`` if it is too large.
        """
        return None if self.indexes is None else self.indexes.bloom_filter(self)

    @property
    def geospatial_statistics(self) -> structures.GeospatialStatistics | None:
        """Bounding box and geometry types; None if the file declares another logical type for the column."""
        declared = self.node.declared_type
        if self.node.is_adopted and declared is not None and declared.member != self.node.logical_name:
            return None
        return self.metadata.geospatial_statistics

    @property
    def byte_range(self) -> tuple[int, int]:
        """Offset and length of the chunk's pages, including the dictionary page, according to its metadata."""
        return start_of(self.metadata), self.metadata.total_compressed_size

    def readable_range(self, file_source: Source) -> tuple[int, int]:
        """Return :attr:`byte_range`, extended by a dictionary page header that an old writer did not count."""
        start, length = self.byte_range
        if self.uncounted:
            length += min(self.uncounted, max(self.source(file_source).size - start - length, 0))
        return start, length

    @property
    def entries_to_read(self) -> int | None:
        """Number of entries after which the chunk ends; None if its byte range determines the end."""
        return self.metadata.num_values if self.uncounted else None


@dataclass(frozen=True)
class RowGroup:
    """Row group ``index`` of the file at ``path`` with the footer ``file_metadata`` and ``schema``.

    ``trust_statistics`` is true if statistics, indexes and Bloom filters may exclude rows.
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
    filters: FilterCache = field(default_factory=filter_cache, compare=False)
    recorder: IndexRecorder = field(default_factory=IndexRecorder, compare=False)
    strict: bool = False
    """Whether corrupt indexes and Bloom filters are errors."""
    reads_invalid_as_null: bool = False
    replaces_text: bool = False
    """Whether invalid values become null and invalid UTF-8 is replaced, so that bounds cannot be used."""
    known: dict[int, ColumnChunk] = field(default_factory=dict, compare=False, repr=False)
    """Column chunks by column index, cached with their indexes."""

    @cached_property
    def metadata(self) -> structures.RowGroup:
        """Metadata structure of the row group."""
        row_groups = self.file_metadata.row_groups
        return row_groups.peek(self.index) if isinstance(row_groups, LazyStructs) else row_groups[self.index]

    @cached_property
    def num_rows(self) -> int:
        """Number of rows in the row group."""
        known = tuple(self._footer_bounds.values())
        return known[0][0] if known else self.metadata.num_rows

    def bounds(self, leaf: SchemaNode) -> Bounds:
        """Return ``chunk(leaf).bounds()``, without building a chunk that was not accessed before."""
        is_unusual = self.reads_invalid_as_null or self.replaces_text or self.crypto is not None
        if is_unusual or not self.trust_statistics or leaf.leaf_start in self.known:
            return self.chunk(leaf).bounds()
        result = self._footer_bounds.get(leaf.leaf_start) or self._read_footer_bounds(leaf)
        if result is None:
            return self.chunk(leaf).bounds()
        self._footer_bounds[leaf.leaf_start] = result
        return result[1]

    @cached_property
    def _footer_bounds(self) -> dict[int, tuple[int, Bounds]]:
        """Number of rows and bounds of leaves, by leaf, read directly from the bytes of the footer."""
        return {}

    def _read_footer_bounds(self, leaf: SchemaNode) -> tuple[int, Bounds] | None:
        """Return the number of rows and the bounds of a leaf from the footer's bytes; None if decoding is required."""
        if self._location is None or self.schema.leaves[leaf.leaf_start] is not leaf:
            return None
        return bounds_at(self._location, len(self.schema.leaves), leaf, self.file_metadata.column_orders)

    @cached_property
    def _location(self) -> Location | None:
        """Location of the row group's structure in the footer; None if the footer was changed after reading."""
        find = getattr(self.file_metadata.row_groups, "indexed_position", None)
        return None if find is None else find(self.index)

    def stored_bytes(self, leaves: Collection[SchemaNode]) -> int:
        """Return the total compressed size of the pages of ``leaves``, according to their metadata."""
        place = None if self.crypto is not None or self.known else self._location
        result = None if place is None else bytes_at(place, len(self.schema.leaves), leaves)
        return sum(self.chunk(leaf).byte_range[1] for leaf in leaves) if result is None else result

    @property
    def compressed_bytes(self) -> int:
        """Compressed size of all pages in bytes. If the total is missing, chunks without metadata are not counted."""
        stored = self.metadata.total_compressed_size
        if stored is not None:
            return stored
        return sum(chunk.meta_data.total_compressed_size for chunk in self.metadata.columns if chunk.meta_data)

    @property
    def uncompressed_bytes(self) -> int:
        """Uncompressed size of all pages in bytes, according to the metadata."""
        return self.metadata.total_byte_size

    @property
    def sorting(self) -> Sequence[structures.SortingColumn]:
        """Columns that the rows are sorted by, as the file declares."""
        return self.metadata.sorting_columns or ()

    def chunk(self, leaf: SchemaNode | int | str) -> ColumnChunk:
        """Return the column chunk of a leaf, given its node in this schema, its column index or its dotted path.

        Raises ``KeyError`` if the path is not a leaf, and ``CorruptFileError`` if the number of chunks is wrong.
        """
        leaf = self._leaf(leaf) if isinstance(leaf, str) else leaf
        index, leaves = leaf if isinstance(leaf, int) else leaf.leaf_start, self.schema.leaves
        result = self.known.get(index)
        if result is not None and (isinstance(leaf, int) or leaf is result.node):
            return result
        chunks = self.metadata.columns
        if len(chunks) != len(leaves):
            message = f"a row group has {len(chunks)} column chunks, but the schema has {len(leaves)} columns"
            raise CorruptFileError(message, path=self.path, row_group=self.index)
        node = leaf if not isinstance(leaf, int) and leaf.is_leaf else leaves[index]
        ordinal = self.index if self.crypto is None else self.crypto.ordinal(self.metadata, self.index)
        is_trusted = self.trust_statistics and not (self.replaces_text and is_text(node))
        result = self.known[node.leaf_start] = ColumnChunk(
            node, chunks[index], self.file_metadata.column_orders, self.crypto, ordinal, self.limits, self.indexes,
            self.resolver, self.num_rows, self._max_uncounted_bytes, is_trusted,
            not (self.reads_invalid_as_null and may_be_invalid(node)),
        )
        return result

    def _leaf(self, path: str) -> SchemaNode:
        node = self.schema.find(path)
        if node is None or not node.is_leaf:
            leaves = [leaf.dotted_path for leaf in self.schema.leaves]
            raise KeyError(f"unknown column chunk {excerpt(path)!r}{unknown_leaf_hint(path, leaves)}")
        return node

    @property
    def may_undercount_bytes(self) -> bool:
        """Whether the sizes in the metadata may be too small, because an old writer did not count dictionary
        page headers.
        """
        return self._max_uncounted_bytes > 0

    @cached_property
    def _max_uncounted_bytes(self) -> int:
        return 0 if counts_dictionary_header(self.file_metadata.created_by) else UNCOUNTED_BYTES

    def file_property(self, key: str) -> str | None:
        """Return the value of ``key`` in the file's key-value metadata; None if it is missing."""
        pairs = self.file_metadata.key_value_metadata or ()
        return next((pair.value for pair in pairs if pair.key == key), None)

    @cached_property
    def indexes(self) -> IndexReader | None:
        """Reader and cache of the row group's page indexes and Bloom filters; None without a source."""
        return None if self.source is None else IndexReader(
            self.source, self.limits, self.num_rows, self.index, self.filters, self.recorder, self.strict
        )

    def load_page_indexes(self, leaves: Iterable[SchemaNode | int] | None = None) -> None:
        """Fetch the page indexes of ``leaves``, by default of all. Adjacent indexes are fetched in one request."""
        if self.indexes is not None:
            chunks = self.chunks() if leaves is None else (self.chunk(leaf) for leaf in leaves)
            self.indexes.load(chunks)

    def chunks(self) -> Iterator[ColumnChunk]:
        """Return an iterator over the column chunks in column order."""
        return (self.chunk(index) for index in range(len(self.schema.leaves)))
