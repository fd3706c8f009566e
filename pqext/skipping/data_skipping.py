"""A table with its store as one object, by the names that xskipper's users know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.io.sources.locations import locate
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.dataset.expressions import Base, col
from pqext.dataset.reading import scan
from pqext.dataset.scan import Scan
from pqext.skipping import description
from pqext.skipping.description import StoreDescription
from pqext.skipping.format.identifiers import default_location
from pqext.skipping.indexes.bloomfilter import BloomFilter
from pqext.skipping.indexes.box import Box
from pqext.skipping.indexes.counts import NullCount, RowCount
from pqext.skipping.indexes.index import Index, kind_called
from pqext.skipping.indexes.minmax import MinMax
from pqext.skipping.indexes.prefix import Prefix
from pqext.skipping.indexes.valuelist import ValueList
from pqext.skipping.indexes.variant_paths import VariantPaths
from pqext.skipping.store.folders import within
from pqext.skipping.store.keys import StoreKeys
from pqext.skipping.store.objects import SkippingStatistics
from pqext.skipping.store.store import OnForeign, Store, open_store
from pqext.skipping.store.table import root_of
from pqext.skipping.upkeep import construction, maintenance
from pqext.skipping.upkeep.construction import Progress, Summary

IN_TABLE = "_skipping"
"""The folder of a store within its table, which readers of the table pass over."""


class DataSkipping:
    """A table and its data-skipping store.

    The store lies at ``store``; or, as xskipper places stores, in the folder below ``base`` whose name is the SHA-256
    of the table's identifier; or in the folder ``_skipping`` of the table itself.

    Args:
        path: The Parquet files, as :func:`pqext.scan` takes them: a folder, a pattern, or a list.
        store: The folder of the store, a path or a URL.
        base: A folder of stores, a path or a URL.
        encryption: How a store that is built is encrypted; its keys read it too.
        decryption: Keys of an encrypted store, by their labels.
        on_foreign: ``"raise"``, or ``"ignore"`` to read every file where the store is of another table.
        options: How files are read (:class:`pqext.ReadOptions`) when they are indexed.
        limits: Bounds on memory and counts, for files of strangers.
        filesystem: A file system of pyarrow or fsspec, or a store of obstore, in which all three are paths.
        storage_options: Credentials and other settings of the object store that URLs name.

    Raises:
        ValueError: For both ``store`` and ``base``, and sources without a folder in common.

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
            raise ValueError("a store lies at store, or below base, not both")
        self.path = path
        self._encryption = encryption
        self._decryption = decryption if encryption is None or decryption is not None else encryption.keys
        self._on_foreign: OnForeign = on_foreign
        self._options, self._limits = options, limits
        self._filesystem, self._storage_options = filesystem, storage_options
        if store is not None:
            self.location = locate(store, filesystem, self._options_of(store))
        else:
            root, identifier = root_of(path, filesystem, storage_options)
            if base is None:
                self.location = within(root, IN_TABLE)
            else:
                self.location = default_location(locate(base, filesystem, self._options_of(base)), identifier)
        self.store: Store = open_store(self.location, decryption=self._decryption, on_foreign=on_foreign, limits=limits)
        """The store, to be passed as ``skipping=`` to :func:`pqext.scan`."""

    def _options_of(self, place: Any) -> Mapping[str, Any] | None:
        """The options, where they are for this place: a store on this machine has none."""
        return self._storage_options if isinstance(place, str) and ":/" in place else None

    def __repr__(self) -> str:
        return f"DataSkipping({self.path!r}, {str(self.location)!r})"

    def index_builder(self) -> IndexBuilder:
        """What gathers indexes, and builds the store."""
        return IndexBuilder(self)

    def refresh_index(self, *, data: bool = True, threads: int = 0, progress: Progress | None = None) -> Summary:
        """Index what is new or has changed; as :func:`pqext.skipping.refresh`."""
        try:
            return construction.refresh(
                self._sources, self.location, data=data, options=self._options, limits=self._limits,
                decryption=self._decryption, threads=threads, progress=progress,
            )  # fmt: skip
        finally:
            self.store.forget()

    def compact(self) -> int:
        """Merge the parts of the store, without what is out of date; as :func:`pqext.skipping.compact`."""
        try:
            return maintenance.compact(self.location, self._sources, decryption=self._decryption, limits=self._limits)
        finally:
            self.store.forget()

    def is_indexed(self) -> bool:
        """Is there a store?"""
        return maintenance.is_indexed(self.location)

    def describe_index(self) -> StoreDescription:
        """What the store holds, and what of the table is out of date; as :func:`pqext.skipping.describe`."""
        return description.describe(self.location, self._sources, decryption=self._decryption, limits=self._limits)

    def list_indexes(self) -> list[Index]:
        """The indexes of the store that are understood; none where there is no store."""
        return self.store.indexes if self.is_indexed() else []

    def drop_index(self, *indexes: Index) -> None:
        """Drop ``indexes``, or the whole store where none is named."""
        try:
            maintenance.drop(self.location, indexes or None, decryption=self._decryption, limits=self._limits)
        finally:
            self.store.forget()

    def scan(self, columns: Any = None, filter: Any = None, **keywords: Any) -> Scan:
        """A scan of the table, which leaves files unopened that the store refuses; arguments as :func:`pqext.scan`."""
        options = {"options": self._options, "limits": self._limits} | keywords
        return scan(self._sources, columns, filter, skipping=self.store, **options)

    def latest_query_stats(self) -> SkippingStatistics | None:
        """What the store left out of the latest query; None before the first."""
        return self.store.latest

    def latest_query_aggregated_stats(self) -> SkippingStatistics:
        """What the store left out of all queries that this object saw."""
        return self.store.total

    @property
    def _sources(self) -> Any:
        from pqext.dataset.files.sources import located

        return [*located(self.path, self._filesystem, self._storage_options)]


class IndexBuilder:
    """Indexes for a table, each added by a method that gives the builder back; :meth:`build` makes the store."""

    def __init__(self, table: DataSkipping) -> None:
        self._table = table
        self.indexes: list[Index] = []

    def add_min_max_index(self, column: str | Base) -> IndexBuilder:
        """The least and the greatest value (:class:`MinMax`)."""
        return self.add_custom_index(MinMax(column))

    def add_value_list_index(self, column: str | Base, **settings: Any) -> IndexBuilder:
        """The distinct values (:class:`ValueList`)."""
        return self.add_custom_index(ValueList(column, **settings))

    def add_bloom_filter_index(self, column: str | Base, **settings: Any) -> IndexBuilder:
        """A Bloom filter of the values (:class:`BloomFilter`), with ``fpp`` and ``ndv``."""
        return self.add_custom_index(BloomFilter(column, **settings))

    def add_box_index(self, column: str | Base) -> IndexBuilder:
        """The box around the geometries (:class:`Box`)."""
        return self.add_custom_index(Box(column))

    def add_variant_index(
        self, column: str, path: str, type: str, kind: str = "minmax", **settings: Any
    ) -> IndexBuilder:
        """An index of a ``kind``, by its name in stores, on the value at a path within a VARIANT column, as a type."""
        made = kind_called(kind)
        if made is None:
            raise ValueError(f"there is no kind of index called {kind!r}")
        return self.add_custom_index(made(col(column).variant(path, type), **settings))

    def add_variant_paths_index(self, column: str | Base) -> IndexBuilder:
        """The paths that occur within a VARIANT column (:class:`VariantPaths`)."""
        return self.add_custom_index(VariantPaths(column))

    def add_prefix_index(self, column: str | Base, **settings: Any) -> IndexBuilder:
        """The distinct beginnings of texts (:class:`Prefix`)."""
        return self.add_custom_index(Prefix(column, **settings))

    def add_null_count_index(self, column: str | Base) -> IndexBuilder:
        """How many rows, nulls and NaN there are (:class:`NullCount`)."""
        return self.add_custom_index(NullCount(column))

    def add_row_count_index(self, column: str | Base) -> IndexBuilder:
        """How many rows there are (:class:`RowCount`)."""
        return self.add_custom_index(RowCount(column))

    def add_custom_index(self, index: Index) -> IndexBuilder:
        """Any index, of a third party's kind too (:func:`register_index`)."""
        if not isinstance(index, Index):
            raise TypeError(f"an index is needed, such as MinMax('temp'), not {type(index).__name__}")
        self.indexes.append(index)
        return self

    def build(
        self, *, data: bool = True, overwrite: bool = False, threads: int = 0, progress: Progress | None = None
    ) -> Summary:
        """Index the table and write the store; as :func:`pqext.skipping.build`."""
        table = self._table
        try:
            return construction.build(
                table._sources, self.indexes, table.location, data=data, overwrite=overwrite,
                encryption=table._encryption, options=table._options, limits=table._limits, threads=threads,
                progress=progress,
            )  # fmt: skip
        finally:
            table.store.forget()
