"""A table and its data-skipping store as one object, with the method names of xskipper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.progress import Progress
from pqext.core.io.sources.locations import locate
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.expressions import Base, col
from pqext.dataset.reading import scan
from pqext.dataset.scan import Scan
from pqext.skipping import description
from pqext.skipping.description import StoreDescription
from pqext.skipping.format.names import default_location
from pqext.skipping.indexes.box import Box
from pqext.skipping.indexes.index import Index, index_type_named
from pqext.skipping.indexes.statistics import MinMax, NullCount, RowCount
from pqext.skipping.indexes.values import BloomFilter, Prefix, ValueList
from pqext.skipping.indexes.variant_paths import VariantPaths
from pqext.skipping.maintenance import compaction, construction
from pqext.skipping.maintenance.construction import Summary
from pqext.skipping.store.folders import join_location
from pqext.skipping.store.keys import StoreKeys
from pqext.skipping.store.objects import SkippingStatistics
from pqext.skipping.store.store import OnForeign, Store, open_store
from pqext.skipping.store.table import common_folder

IN_TABLE = "_skipping"
"""Folder of a store within its table, which readers of the table skip."""


class DataSkipping:
    """A table and its data-skipping store.

    The store is located at ``store``, or in the folder ``_skipping`` of the table by default. With ``base``, it is
    located in the folder below ``base`` whose name is the SHA-256 of the table's identifier, as in xskipper.

    Args:
        path: The Parquet files, as for :func:`pqext.scan`: a folder, a pattern, or a list.
        store: The folder of the store, a path or a URL.
        base: A folder of stores, a path or a URL.
        encryption: Keys to encrypt a new store, and to decrypt it unless ``decryption`` is passed.
        decryption: Keys of an encrypted store, by their labels.
        on_foreign: ``"raise"``, or ``"ignore"`` to read every file if the store belongs to another table.
        options: Options to read files (:class:`pqext.ReadOptions`) when indexing them.
        limits: Limits on memory and counts for untrusted files.
        filesystem: A file system of pyarrow or fsspec, or an obstore store, for all three paths.
        storage_options: Credentials and other settings of the object store of a URL.

    Raises:
        ValueError: If both ``store`` and ``base`` are passed, or the sources have no common folder.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext.skipping import DataSkipping
        >>> for name in ("january", "july"):
        ...     temp = [1.5, 2.5] if name == "january" else [21.5, 22.5]
        ...     pqext.write_table(pyarrow.table({"temp": temp}), f"{name}.parquet")
        >>> table = DataSkipping(["january.parquet", "july.parquet"])
        >>> print(table.index_builder().add_min_max_index("temp").build())
        2 objects: 2 indexed, 0 by reading rows; 0 kept
        >>> table.scan(filter=pqext.col("temp") > 20).count()
        2
        >>> print(table.latest_query_stats().skipped, "of", table.latest_query_stats().objects)
        1 of 2
    """

    def __init__(
        self,
        path: Any,
        store: Any = None,
        *,
        base: Any = None,
        encryption: StoreKeys | None = None,
        decryption: FileDecryption | Mapping[str, bytes] | None = None,
        on_foreign: OnForeign = "raise",
        options: ReadOptions | None = None,
        limits: Limits = DEFAULT_LIMITS,
        filesystem: Any = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if store is not None and base is not None:
            raise ValueError("store and base cannot be combined; pass one of the two")
        self.path = path
        self._encryption = encryption
        self._decryption = decryption if encryption is None or decryption is not None else encryption.keys
        self._on_foreign: OnForeign = on_foreign
        self._options, self._limits = options, limits
        self._filesystem, self._storage_options = filesystem, storage_options
        if store is not None:
            self.location = locate(store, filesystem, self._options_of(store))
        else:
            root, identifier = common_folder(self._sources)
            if base is None:
                self.location = join_location(root, IN_TABLE)
            else:
                self.location = default_location(locate(base, filesystem, self._options_of(base)), identifier)
        self.store: Store = open_store(self.location, decryption=self._decryption, on_foreign=on_foreign, limits=limits)
        """The store, to be passed as ``skipping=`` to :func:`pqext.scan`."""

    def _options_of(self, location: Any) -> Mapping[str, Any] | None:
        """Return the storage options if ``location`` is a URL, otherwise None."""
        return self._storage_options if isinstance(location, str) and ":/" in location else None

    def __repr__(self) -> str:
        return f"DataSkipping({self.path!r}, {str(self.location)!r})"

    def index_builder(self) -> IndexBuilder:
        """Return a builder that collects indexes and creates the store."""
        return IndexBuilder(self)

    def refresh_index(self, *, read_rows: bool = True, threads: int = 0, progress: Progress | None = None) -> Summary:
        """Index new and changed objects; see :func:`pqext.skipping.refresh`."""
        try:
            return construction.refresh(
                self._sources, self.location, read_rows=read_rows, options=self._options, limits=self._limits,
                decryption=self._decryption, threads=threads, progress=progress,
            )  # fmt: skip
        finally:
            self.store.clear_cache()

    def compact(self) -> int:
        """Merge the parts of the store and drop outdated rows; see :func:`pqext.skipping.compact`."""
        try:
            return compaction.compact(self.location, self._sources, decryption=self._decryption, limits=self._limits)
        finally:
            self.store.clear_cache()

    def is_indexed(self) -> bool:
        """Return whether the store exists."""
        return compaction.is_indexed(self.location)

    def describe_index(self) -> StoreDescription:
        """Describe the store and count outdated files; see :func:`pqext.skipping.describe`."""
        return description.describe(self.location, self._sources, decryption=self._decryption, limits=self._limits)

    def list_indexes(self) -> list[Index]:
        """Return the indexes that queries use; empty if the store does not exist."""
        return self.store.indexes if self.is_indexed() else []

    def drop_index(self, *indexes: Index) -> None:
        """Drop ``indexes``, or the complete store if no index is passed."""
        try:
            compaction.drop(self.location, indexes or None, decryption=self._decryption, limits=self._limits)
        finally:
            self.store.clear_cache()

    def scan(self, columns: Any = None, filter: Any = None, **keywords: Any) -> Scan:
        """Scan the table without opening files that the store excludes. For the arguments, see :func:`pqext.scan`."""
        options = {"options": self._options, "limits": self._limits} | keywords
        return scan(self._sources, columns, filter, skipping=self.store, **options)

    def latest_query_stats(self) -> SkippingStatistics | None:
        """Return the skipping statistics of the latest query; None before the first query."""
        return self.store.latest

    def latest_query_aggregated_stats(self) -> SkippingStatistics:
        """Return the combined skipping statistics of all scans by this object."""
        return self.store.total

    @property
    def _sources(self) -> Any:
        from pqext.dataset.files.sources import locate_sources

        return locate_sources(self.path, self._filesystem, self._storage_options)


class IndexBuilder:
    """Builder of a store.

    Each ``add`` method adds an index and returns the builder; :meth:`build` creates the store.
    """

    def __init__(self, table: DataSkipping) -> None:
        self._table = table
        self.indexes: list[Index] = []

    def add_min_max_index(self, column: str | Base) -> IndexBuilder:
        """Add an index of minimum and maximum values (:class:`MinMax`)."""
        return self.add_custom_index(MinMax(column))

    def add_value_list_index(self, column: str | Base, **settings: Any) -> IndexBuilder:
        """Add an index of distinct values (:class:`ValueList`). ``settings`` may contain ``max_values``."""
        return self.add_custom_index(ValueList(column, **settings))

    def add_bloom_filter_index(self, column: str | Base, **settings: Any) -> IndexBuilder:
        """Add an index with Bloom filters (:class:`BloomFilter`). ``settings`` may contain ``fpp`` and ``ndv``."""
        return self.add_custom_index(BloomFilter(column, **settings))

    def add_box_index(self, column: str | Base) -> IndexBuilder:
        """Add an index of bounding boxes of geometries (:class:`Box`)."""
        return self.add_custom_index(Box(column))

    def add_variant_index(
        self, column: str, path: str, type: str, index_type: str = "minmax", **settings: Any
    ) -> IndexBuilder:
        """Add an index on the value at ``path`` within a VARIANT column.

        ``index_type`` is the name of the index type in stores, and ``settings`` are the arguments of this type. Raises
        ``ValueError`` if the type is not registered.
        """
        index = index_type_named(index_type)
        if index is None:
            raise ValueError(f"unknown index type {index_type!r}: register it with register_index")
        return self.add_custom_index(index(col(column).variant(path, type), **settings))

    def add_variant_paths_index(self, column: str | Base) -> IndexBuilder:
        """Add an index of the paths in a VARIANT column (:class:`VariantPaths`)."""
        return self.add_custom_index(VariantPaths(column))

    def add_prefix_index(self, column: str | Base, **settings: Any) -> IndexBuilder:
        """Add an index of prefixes (:class:`Prefix`). ``settings`` may contain ``length`` and ``max_values``."""
        return self.add_custom_index(Prefix(column, **settings))

    def add_null_count_index(self, column: str | Base) -> IndexBuilder:
        """Add an index of the numbers of rows, nulls and NaN (:class:`NullCount`)."""
        return self.add_custom_index(NullCount(column))

    def add_row_count_index(self, column: str | Base) -> IndexBuilder:
        """Add an index of row counts (:class:`RowCount`)."""
        return self.add_custom_index(RowCount(column))

    def add_custom_index(self, index: Index) -> IndexBuilder:
        """Add any index, including indexes of third-party types (:func:`register_index`)."""
        if not isinstance(index, Index):
            raise TypeError(f"index must be an Index such as MinMax('temp'), not {type(index).__name__}")
        self.indexes.append(index)
        return self

    def build(
        self, *, read_rows: bool = True, overwrite: bool = False, threads: int = 0, progress: Progress | None = None
    ) -> Summary:
        """Index the table and write the store; see :func:`pqext.skipping.build`."""
        table = self._table
        try:
            return construction.build(
                table._sources, self.indexes, table.location, read_rows=read_rows, overwrite=overwrite,
                encryption=table._encryption, options=table._options, limits=table._limits, threads=threads,
                progress=progress,
            )  # fmt: skip
        finally:
            table.store.clear_cache()
