"""Existing stores: their indexes, and the files that the indexes exclude for a filter.

A store is a set of facts, each about one version of one object. A version is a path, a modification time and, if pqext
wrote the fact, a size and an etag. Facts about other versions are ignored, so an outdated store can cost time but never
a row. Facts may be repeated, so concurrent writers cannot corrupt a store.

Index types of the specification are stored in the store's own files. pqext's other types are stored in a subfolder with
the same layout, which other readers do not see.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import ChangedFileError, CorruptFileError, EncryptionError, ParquetError, UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.pickling import PickledByFields
from pqext.core.io.sources.locations import Location, locate
from pqext.core.options.encryption import FileDecryption
from pqext.dataset.expressions import Expression
from pqext.dataset.files.sources import source_name
from pqext.skipping.format.metadata import IndexColumn, StoreMetadata
from pqext.skipping.format.names import OBJECT_NAME, partition_column, split_object_names, table_identifier
from pqext.skipping.format.parts import Parts, read_parts
from pqext.skipping.indexes.index import Index, restore_index
from pqext.skipping.store.clauses import Evidence, Exclusion, applicable_indexes, exclusions
from pqext.skipping.store.folders import EXTRA, VERSION, VERSION_TYPE, current_parts, join_location
from pqext.skipping.store.objects import UNKNOWN, Objects, SkippingStatistics, canonical_path, current_objects

OnForeign = Literal["raise", "ignore"]
_LISTINGS = 10
"""Maximum number of listings while parts are being replaced."""
_KEYS = "; pass the keys of the store by their labels as decryption= of open_store"
_WITHOUT = "; omit skipping= to read every file"


@dataclass(eq=False)
class Store(PickledByFields):
    """Data-skipping store at ``location``; see :func:`open_store`."""

    location: Any
    decryption: FileDecryption | Mapping[str, bytes] | None = field(default=None, repr=False)
    limits: Limits = DEFAULT_LIMITS
    on_foreign: OnForeign = "raise"
    """Behaviour if the store belongs to another table than the files of a query."""
    latest: SkippingStatistics | None = field(default=None, repr=False)
    """Statistics of the latest query."""
    total: SkippingStatistics = field(default=SkippingStatistics(0, 0, 0, 0, 0), repr=False)
    """Statistics of all queries."""
    _cache: dict[bool, _Rows] = field(default_factory=dict, init=False, repr=False)
    """Rows read last, of the own parts (key False) and of the extra parts (key True)."""

    @cached_property
    def metadata(self) -> StoreMetadata:
        """Metadata of the store. Raises ``FileNotFoundError`` if there is no store."""
        return self.list_parts(self.location, (), rows=False)[1].metadata

    @cached_property
    def extra_metadata(self) -> StoreMetadata | None:
        """Metadata of the extra parts; None if there are no extra parts."""
        folder = join_location(self.location, EXTRA)
        return self.list_parts(folder, (), rows=False)[1].metadata if current_parts(folder) else None

    @property
    def indexes(self) -> list[Index]:
        """Indexes that queries use."""
        return [index for metadata in self._all_metadata() for _, index in usable_indexes(metadata)]

    def clear_cache(self) -> None:
        """Discard cached metadata and rows, so that the next query reads them again."""
        for name in ("metadata", "extra_metadata"):
            self.__dict__.pop(name, None)
        self._cache.clear()

    def _all_metadata(self) -> list[StoreMetadata]:
        return [metadata for metadata in (self.metadata, self.extra_metadata) if metadata is not None]

    def _read(self, folder: Any, columns: Iterable[str] | Callable[[StoreMetadata], Iterable[str]] | None) -> Parts:
        """Read all parts of a folder as one table."""
        return self.list_parts(folder, columns)[1]

    def list_parts(
        self,
        folder: Any,
        columns: Iterable[str] | Callable[[StoreMetadata], Iterable[str]] | None = None,
        *,
        rows: bool = True,
    ) -> tuple[list[Any], Parts]:
        """Return the part files in a folder, and the merged contents of the parts.

        Reading is repeated while parts are replaced.
        """
        selected = columns if columns is None or callable(columns) else list(columns)
        for remaining in reversed(range(_LISTINGS)):
            files = current_parts(folder)
            if not files:
                raise FileNotFoundError(f"{source_name(folder)} contains no data-skipping store; build a store first")
            try:
                return files, read_parts(files, selected, self.decryption, limits=self.limits, with_rows=rows)
            except (FileNotFoundError, ChangedFileError):
                if not remaining:
                    raise
        raise AssertionError("unreachable")

    def _types(self, folder: Any, columns: Sequence[str]) -> pa.Schema:
        return self.list_parts(folder, columns, rows=False)[1].table.schema

    def type_of(self, column: IndexColumn, is_extra: bool) -> pa.DataType:
        """Return the Arrow type of an index's entries."""
        return self._types(self._folder(is_extra), [column.name]).field(column.name).type

    def partition_types(self) -> pa.Schema:
        """Return the partition columns with their types in the store."""
        names = self.metadata.partitions
        if not names:
            return pa.schema([])
        stored = self._types(self.location, [partition_column(name) for name in names])
        return pa.schema([(name, stored.field(partition_column(name)).type) for name in names])

    def is_fresh(self, objects: Objects) -> NDArray[np.bool_]:
        """Return a mask of the objects that have up-to-date rows."""
        result = np.zeros(len(objects), bool)
        result[match_rows(self._read(self.location, ()).table, objects)[1]] = True
        extra = self._extra_rows(objects, None)
        if extra is not None:
            same = np.zeros(len(objects), bool)
            same[extra.current] = True
            result &= same
        return result

    def has_ambiguous_versions(self, objects: Objects) -> bool:
        """Return whether rows describe other versions of ``objects`` with the same modification time.
        """
        extra = self._extra_rows(objects, None)
        return extra is not None and len(extra.ambiguous) > 0

    def evidence(self, objects: Objects, filter: Expression) -> list[Evidence]:
        """Return the entries that describe ``objects``, for each index that applies to ``filter``."""
        if self._cache and not self._is_unchanged(False):
            self.clear_cache()
        result: list[Evidence] = []
        extra = self._extra_rows(objects, filter)
        if _applicable_indexes(self.metadata, filter):
            cached = self._rows(False, filter)
            rows, numbers = cached.match(objects)
            if extra is not None:
                is_certain = ~np.isin(numbers, extra.ambiguous)
                rows, numbers = rows[is_certain], numbers[is_certain]
            # The merged metadata of all parts that were read determines the indexes.
            result += _evidence(cached.table, _applicable_indexes(cached.metadata, filter), rows, numbers)
        if extra is not None:
            result += extra.evidence
        return result

    def _extra_rows(self, objects: Objects, filter: Expression | None) -> _ExtraRows | None:
        if self.extra_metadata is None:
            return None

        cached = self._rows(True, filter)
        rows, numbers = cached.match(objects)
        same_rows, same_numbers = filter_by_version(cached.table, objects, rows, numbers)
        ambiguous = np.unique(numbers[~np.isin(rows, same_rows)]) if len(same_rows) < len(rows) else rows[:0]
        indexes = [] if filter is None else _applicable_indexes(cached.metadata, filter)
        return _ExtraRows(_evidence(cached.table, indexes, same_rows, same_numbers), same_numbers, ambiguous)

    def _is_unchanged(self, is_extra: bool) -> bool:
        """Return whether the parts are unchanged since the cached rows were read."""
        cached = self._cache.get(is_extra)
        return cached is not None and cached.stamp == _stamp(current_parts(self._folder(is_extra)))

    def _folder(self, is_extra: bool) -> Any:
        return join_location(self.location, EXTRA) if is_extra else self.location

    def _rows(self, is_extra: bool, filter: Expression | None) -> _Rows:
        """Return the rows of the own or the extra parts, with the columns that ``filter`` requires.

        Rows are cached until the parts change.
        """

        def columns(metadata: StoreMetadata) -> list[str]:
            versions = [column.name for column in metadata.indexes if column.name == VERSION]
            if filter is None:
                return versions
            return versions + [column.name for column, _ in _applicable_indexes(metadata, filter)]

        cached = self._cache.get(is_extra)
        if cached is not None and cached.names.issuperset(columns(cached.metadata)) and self._is_unchanged(is_extra):
            return cached
        files, parts = self.list_parts(self._folder(is_extra), columns)
        paths, modified = object_versions(parts.table)
        names = frozenset(columns(parts.metadata))
        rows = self._cache[is_extra] = _Rows(_stamp(files), names, parts.metadata, parts.table, paths, modified)
        return rows

    def prune_reasons(
        self, sources: Sequence[Any], filter: Expression, is_trusted: Callable[[Evidence], bool] | None = None
    ) -> list[str | None]:
        """Return, for each file, the reason why no row matches ``filter``; None if a row may match.

        ``is_trusted`` returns whether the evidence of an index is valid for the values as the query reads them, if
        files do not declare their types.

        Raises ``UnsupportedError`` for a store of an unsupported version, and ``ValueError`` for a store of another
        table.
        """
        reasons: list[str | None] = [None] * len(sources)
        objects = current_objects(sources)
        try:
            if self._belongs_to(sources):
                for excluded in self._excluded_objects(objects, filter, is_trusted):
                    for at in np.flatnonzero(excluded.objects):
                        reasons[at] = excluded.reason
        except ParquetError as error:
            lacks_keys = isinstance(error, EncryptionError) and self.decryption is None
            error.message += (_KEYS if lacks_keys else "") + _WITHOUT
            error.locate(path=source_name(self.location))
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}{_WITHOUT}") from None
        self.latest = SkippingStatistics.from_reasons(objects, reasons)
        self.total = SkippingStatistics.sum([self.total, self.latest])
        return reasons

    def _excluded_objects(
        self, objects: Objects, filter: Expression, is_trusted: Callable[[Evidence], bool] | None
    ) -> list[Exclusion]:
        if self.metadata.reason is not None:
            raise UnsupportedError(self.metadata.reason, feature="the version", path=source_name(self.location))
        evidence = self.evidence(objects, filter)
        if is_trusted is not None:
            evidence = [entries for entries in evidence if is_trusted(entries)]
        return exclusions(filter, evidence, len(objects))

    def _belongs_to(self, sources: Sequence[Any]) -> bool:
        """Return whether the store belongs to the table of ``sources``.

        Raises ``ValueError`` for a store of another table, unless ``on_foreign`` is ``"ignore"``.
        """
        identifier = self.metadata.table_identifier
        if identifier is None:
            return True
        names = (table_identifier(name) for source in sources if (name := source_path(source)) is not None)
        first = next(names, None)
        prefix = identifier.rstrip("/") + "/"
        if first is None or any(name == identifier or name.startswith(prefix) for name in chain([first], names)):
            return True
        if self.on_foreign == "ignore":
            return False
        raise ValueError(
            f"the store at {source_name(self.location)} belongs to {identifier}, which contains none of the files (the "
            f'first is {first}): pass the store of their table, or on_foreign="ignore" when opening it'
        )


@dataclass(frozen=True)
class _Rows:
    """Cached rows of parts. ``stamp`` identifies the state of the parts, and ``names`` are the columns read."""

    stamp: Any
    names: frozenset[str]
    metadata: StoreMetadata
    table: pa.Table
    paths: pa.Array
    modified: NDArray[np.int64]

    def match(self, objects: Objects) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows that match an object, and the number of each row's object; see :func:`match_rows`."""
        return _match_rows(self.paths, self.modified, objects)


def _stamp(files: Sequence[Any]) -> Any:
    """Return a value that identifies the state of the parts. The value is unique if the state is unknown."""
    objects = current_objects(files)
    if (objects.modified == UNKNOWN).any():
        return object()
    return objects.paths.to_pylist(), objects.modified.tolist(), objects.sizes.tolist(), objects.etags.to_pylist()


@dataclass(frozen=True)
class _ExtraRows:
    """Evidence from the extra parts, which record the size and etag of each object."""
    evidence: list[Evidence]
    current: NDArray[np.int64]
    """Objects with rows for their current version."""
    ambiguous: NDArray[np.int64]
    """Objects with rows for other versions with the same time. Own rows, which have no version, may describe these."""


def open_store(
    location: Any,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    on_foreign: OnForeign = "raise",
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Store:
    """Open the data-skipping store in a folder, to be passed as ``skipping=`` to :func:`pqext.scan`.

    Args:
        location: The store's folder: a path or a URL.
        decryption: Keys of an encrypted store, by their labels.
        on_foreign: ``"raise"``, or ``"ignore"`` to read every file if the store belongs to another table.
        limits: Limits on memory and counts for untrusted stores.
        filesystem: A file system of pyarrow or fsspec, or an obstore store, that contains ``location``.
        storage_options: Credentials and other settings of the object store of a URL.

    Returns:
        A :class:`Store`, which is read on first use.

    Raises:
        ValueError: If an argument is invalid.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> for name in ("a", "b"):
        ...     pqext.write_table(pyarrow.table({"name": [name]}), f"{name}.parquet")
        >>> summary = skipping.build(["a.parquet", "b.parquet"], [skipping.MinMax("name")], "store")
        >>> store = skipping.open_store("store")
        >>> filter = pqext.col("name") == "b"
        >>> pqext.scan(["a.parquet", "b.parquet"], filter=filter, skipping=store).to_table().to_pylist()
        [{'name': 'b'}]
    """
    if on_foreign not in ("raise", "ignore"):
        raise ValueError(f'on_foreign must be "raise" or "ignore", not {on_foreign!r}')
    return Store(locate(location, filesystem, storage_options), decryption, limits, on_foreign)


def usable_indexes(metadata: StoreMetadata) -> list[tuple[IndexColumn, Index]]:
    """Return the indexes of registered types, each with its column."""
    if not metadata.is_usable:
        return []
    pairs = [(column, restore_index(column.index, column.columns, column.params)) for column in metadata.indexes]
    return [(column, index) for column, index in pairs if index is not None]


def _applicable_indexes(metadata: StoreMetadata, filter: Expression) -> list[tuple[IndexColumn, Index]]:
    """Return the indexes that apply to any condition of ``filter``, each with its column."""
    return [(column, index) for column, index in usable_indexes(metadata) if applicable_indexes(filter, [index])]


def match_rows(table: pa.Table, objects: Objects) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows whose path and modification time match an object, and the number of each row's object."""
    return _match_rows(*object_versions(table), objects)


def _match_rows(
    paths: pa.Array, mtimes: NDArray[np.int64], objects: Objects
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    matches = pc.index_in(paths, value_set=objects.paths, skip_nulls=True)
    rows = np.flatnonzero(np.asarray(matches.is_valid()))
    numbers = np.asarray(matches.drop_null()).astype(np.int64)
    is_same = (mtimes[rows] == objects.modified[numbers]) & (mtimes[rows] != UNKNOWN)
    return rows[is_same], numbers[is_same]


def object_versions(table: pa.Table) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return, for each row of a store, the path and the modification time of its object."""
    paths, modified = split_object_names(table.column(OBJECT_NAME))
    if pc.any(pc.match_substring(paths, ":/")).as_py():  # URLs have several spellings
        paths = pa.array([canonical_path(path) for path in paths.to_pylist()], pa.string())
    return paths, modified


def current_rows(table: pa.Table, objects: Objects) -> NDArray[np.int64]:
    """Return the positions of the rows that describe the current versions of ``objects``."""
    rows, numbers = match_rows(table, objects)
    return filter_by_version(table, objects, rows, numbers)[0] if VERSION in table.column_names else rows


def filter_by_version(
    table: pa.Table, objects: Objects, rows: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that record the size and etag of their object, and the numbers of these objects.

    Returns no rows if the table does not record versions.
    """
    if VERSION not in table.column_names:
        return rows[:0], numbers[:0]
    versions = versions_of(table).take(pa.array(rows))
    sizes = np.asarray(pc.fill_null(pc.struct_field(versions, ["size"]), UNKNOWN))
    etags = pc.equal(pc.struct_field(versions, ["etag"]), objects.etags.take(pa.array(numbers)))
    is_same = (sizes == objects.sizes[numbers]) & (sizes != UNKNOWN)
    is_same &= np.asarray(pc.fill_null(etags, True)).astype(bool)
    return rows[is_same], numbers[is_same]


def versions_of(table: pa.Table) -> pa.StructArray:
    """Return the size and etag that each row records for its object.

    Raises ``CorruptFileError`` if the column has another type.
    """
    type = table.schema.field(VERSION).type
    if type != VERSION_TYPE:
        raise CorruptFileError(f"object versions must have the type {VERSION_TYPE}, not {type}", column=VERSION)
    return table.column(VERSION).combine_chunks()


def _evidence(
    table: pa.Table, indexes: Sequence[tuple[IndexColumn, Index]], rows: NDArray[np.int64], numbers: NDArray[np.int64]
) -> list[Evidence]:
    """Return the entries of each index in the ``rows`` of ``table``. ``numbers`` are the object numbers of the rows."""
    entries = table.select([column.name for column, _ in indexes if column.name in table.column_names])
    if len(rows) < len(table):  # otherwise all rows in order
        entries = entries.take(pa.array(rows))
    return [
        Evidence(index, entries.column(column.name).combine_chunks(), numbers, column.params)
        for column, index in indexes
        if column.name in entries.column_names
    ]


def source_path(source: Any) -> str | None:
    """Return the path or URL of a source; None for other sources."""
    if isinstance(source, Location):
        return canonical_path(source.path)
    return os.path.abspath(source) if isinstance(source, str) else None
