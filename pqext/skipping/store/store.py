"""A store that is there: which indexes it has, what they say of files as they are now, and which files they refuse.

A store is a set of facts, each true of one version of one object: of a path, the time of its last change and, where
pqext wrote the fact, its size and etag. A fact about any other version is passed over, so that a store that is out of
date costs time and never a row; facts may be repeated, so that writers at work at once cannot spoil a store.
Indexes that the specification knows stand in the store's own files; pqext's others in a folder of the same form within
it, which other readers do not see.
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
from pqext.skipping.format.identifiers import split_object_names, table_identifier
from pqext.skipping.format.metadata import IndexColumn, StoreMetadata
from pqext.skipping.format.names import OBJECT_NAME, partition_column
from pqext.skipping.format.reading import Parts, read_parts
from pqext.skipping.indexes.index import Index, restored
from pqext.skipping.store.clauses import Evidence, Refused, asked, prune_reasons
from pqext.skipping.store.folders import SIDE, VERSION, VERSION_TYPE, parts_of, within
from pqext.skipping.store.objects import UNKNOWN, Objects, SkippingStatistics, canonical, objects_of

OnForeign = Literal["raise", "ignore"]
_LISTINGS = 10
"""How often the parts are listed anew where one was replaced while they were read."""
_KEYS = "; keys of a store, by their labels, are decryption= of open_store"
_WITHOUT = "; leave out skipping= to read every file"


@dataclass(eq=False)
class Store(PickledByFields):
    """The store at ``location``; see :func:`open_store`."""

    location: Any
    decryption: FileDecryption | Mapping[str, bytes] | None = field(default=None, repr=False)
    limits: Limits = DEFAULT_LIMITS
    on_foreign: OnForeign = "raise"
    """What a store does that is of another table than the files that are asked about."""
    latest: SkippingStatistics | None = field(default=None, repr=False)
    """What it left out of the latest query."""
    total: SkippingStatistics = field(default=SkippingStatistics(0, 0, 0, 0, 0), repr=False)
    """What it left out of all queries."""
    _kept: dict[bool, _Rows] = field(default_factory=dict, init=False, repr=False)
    """What was read last of the store's own parts, and of its further ones."""

    @cached_property
    def metadata(self) -> StoreMetadata:
        """What the store says of itself. Raises ``FileNotFoundError`` where there is none."""
        return self.listed(self.location, (), rows=False)[1].metadata

    @cached_property
    def side_metadata(self) -> StoreMetadata | None:
        """What the folder of further indexes says of itself; None where there is none."""
        folder = within(self.location, SIDE)
        return self.listed(folder, (), rows=False)[1].metadata if parts_of(folder) else None

    @property
    def indexes(self) -> list[Index]:
        """The indexes that are understood."""
        return [index for about in self._abouts() for _, index in understood(about)]

    def forget(self) -> None:
        """Look anew at what the store says of itself."""
        for name in ("metadata", "side_metadata"):
            self.__dict__.pop(name, None)
        self._kept.clear()

    def _abouts(self) -> list[StoreMetadata]:
        return [about for about in (self.metadata, self.side_metadata) if about is not None]

    def _read(self, folder: Any, columns: Iterable[str] | Callable[[StoreMetadata], Iterable[str]] | None) -> Parts:
        """The parts in a folder as they are together."""
        return self.listed(folder, columns)[1]

    def listed(
        self,
        folder: Any,
        columns: Iterable[str] | Callable[[StoreMetadata], Iterable[str]] | None = None,
        *,
        rows: bool = True,
    ) -> tuple[list[Any], Parts]:
        """The files of the parts in a folder and what they hold: listed again where one is replaced meanwhile."""
        wanted = columns if columns is None or callable(columns) else list(columns)
        for left in reversed(range(_LISTINGS)):
            files = parts_of(folder)
            if not files:
                raise FileNotFoundError(f"no data-skipping store: there are no parts in {source_name(folder)}")
            try:
                return files, read_parts(files, wanted, self.decryption, limits=self.limits, rows=rows)
            except (FileNotFoundError, ChangedFileError):
                if not left:
                    raise
        raise AssertionError("unreachable")

    def _types(self, folder: Any, columns: Sequence[str]) -> pa.Schema:
        return self.listed(folder, columns, rows=False)[1].table.schema

    def type_of(self, column: IndexColumn, is_side: bool) -> pa.DataType:
        """The Arrow type of the cells in a column."""
        return self._types(self._folder(is_side), [column.name]).field(column.name).type

    def partition_types(self) -> pa.Schema:
        """The columns that folders name, with the types that the store has them in."""
        names = self.metadata.partitions
        if not names:
            return pa.schema([])
        found = self._types(self.location, [partition_column(name) for name in names])
        return pa.schema([(name, found.field(partition_column(name)).type) for name in names])

    def described(self, objects: Objects) -> NDArray[np.bool_]:
        """Which of the objects the store knows as they are now."""
        found = np.zeros(len(objects), bool)
        found[fresh(self._read(self.location, ()).table, objects)[1]] = True
        side = self._side_rows(objects, None)
        if side is not None:
            same = np.zeros(len(objects), bool)
            same[side.same] = True
            found &= same
        return found

    def is_in_doubt(self, objects: Objects) -> bool:
        """Are there rows about other versions of ``objects`` that have the time of the one that is there now?"""
        side = self._side_rows(objects, None)
        return side is not None and len(side.others) > 0

    def evidence(self, objects: Objects, filter: Expression) -> list[Evidence]:
        """What the indexes that ``filter`` asks say of ``objects`` as they are now."""
        if self._kept and not self._is_as_it_was(False):
            self.forget()
        found: list[Evidence] = []
        side = self._side_rows(objects, filter)
        if _asked(self.metadata, filter):
            known = self._rows(False, filter)
            rows, numbers = known.fresh(objects)
            if side is not None:
                keep = ~np.isin(numbers, side.others)
                rows, numbers = rows[keep], numbers[keep]
            # What all parts together say of an index counts, as they were when they were read.
            found += _evidence(known.table, _asked(known.metadata, filter), rows, numbers)
        if side is not None:
            found += side.evidence
        return found

    def _side_rows(self, objects: Objects, filter: Expression | None) -> _Side | None:
        if self.side_metadata is None:
            return None

        known = self._rows(True, filter)
        rows, numbers = known.fresh(objects)
        same_rows, same_numbers = same_version(known.table, objects, rows, numbers)
        others = np.unique(numbers[~np.isin(rows, same_rows)]) if len(same_rows) < len(rows) else rows[:0]
        wanted = [] if filter is None else _asked(known.metadata, filter)
        return _Side(_evidence(known.table, wanted, same_rows, same_numbers), same_numbers, others)

    def _is_as_it_was(self, is_side: bool) -> bool:
        """Are the parts those that were read last?"""
        kept = self._kept.get(is_side)
        return kept is not None and kept.stamp == _stamp(parts_of(self._folder(is_side)))

    def _folder(self, is_side: bool) -> Any:
        return within(self.location, SIDE) if is_side else self.location

    def _rows(self, is_side: bool, filter: Expression | None) -> _Rows:
        """The rows of one kind of parts, with the columns that ``filter`` asks; read again where the parts changed."""

        def columns(about: StoreMetadata) -> list[str]:
            versions = [one.name for one in about.indexes if one.name == VERSION]
            return versions if filter is None else versions + [one.name for one, _ in _asked(about, filter)]

        kept = self._kept.get(is_side)
        if kept is not None and kept.names.issuperset(columns(kept.metadata)) and self._is_as_it_was(is_side):
            return kept
        files, parts = self.listed(self._folder(is_side), columns)
        paths, modified = named_objects(parts.table)
        names = frozenset(columns(parts.metadata))
        found = self._kept[is_side] = _Rows(_stamp(files), names, parts.metadata, parts.table, paths, modified)
        return found

    def prune_reasons(
        self, sources: Sequence[Any], filter: Expression, trusts: Callable[[Evidence], bool] | None = None
    ) -> list[str | None]:
        """For each file the reason why no row of it matches ``filter``; None where one may, or nothing is known.

        ``trusts`` says which evidence is of the values that are read, where files do not tell the types themselves.

        Raises ``UnsupportedError`` for a store that cannot be used, and ``ValueError`` for one of another table.
        """
        reasons: list[str | None] = [None] * len(sources)
        objects = objects_of(sources)
        try:
            if self._is_of(sources):
                for refused in self._refused(objects, filter, trusts):
                    for at in np.flatnonzero(refused.objects):
                        reasons[at] = refused.reason
        except ParquetError as error:
            keys = isinstance(error, EncryptionError) and self.decryption is None
            error.message += (_KEYS if keys else "") + _WITHOUT
            error.locate(path=source_name(self.location))
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{error}{_WITHOUT}") from None
        self.latest = SkippingStatistics.of(objects, reasons)
        self.total = SkippingStatistics.sum([self.total, self.latest])
        return reasons

    def _refused(
        self, objects: Objects, filter: Expression, trusts: Callable[[Evidence], bool] | None
    ) -> list[Refused]:
        if self.metadata.reason is not None:
            raise UnsupportedError(self.metadata.reason, feature="the version", path=source_name(self.location))
        evidence = self.evidence(objects, filter)
        if trusts is not None:
            evidence = [one for one in evidence if trusts(one)]
        return prune_reasons(filter, evidence, len(objects))

    def _is_of(self, sources: Sequence[Any]) -> bool:
        """Is the store of these files' table?"""
        identifier = self.metadata.table_identifier
        if identifier is None:
            return True
        names = (table_identifier(name) for source in sources if (name := name_of(source)) is not None)
        first = next(names, None)
        inside = identifier.rstrip("/") + "/"
        if first is None or any(name == identifier or name.startswith(inside) for name in chain([first], names)):
            return True
        if self.on_foreign == "ignore":
            return False
        raise ValueError(
            f"the store at {source_name(self.location)} is of {identifier}, and none of the files is in it, the first "
            f'being {first}: pass the store of their table, or on_foreign="ignore" when opening it'
        )


@dataclass(frozen=True)
class _Rows:
    """The rows of parts as they were when these had their ``stamp``, with the columns ``names``."""

    stamp: Any
    names: frozenset[str]
    metadata: StoreMetadata
    table: pa.Table
    paths: pa.Array
    modified: NDArray[np.int64]

    def fresh(self, objects: Objects) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As :func:`fresh` gives them."""
        return _fresh(self.paths, self.modified, objects)


def _stamp(files: Sequence[Any]) -> Any:
    """What tells whether parts have changed; nothing equals it where that is not known."""
    found = objects_of(files)
    if (found.modified == UNKNOWN).any():
        return object()
    return found.paths.to_pylist(), found.modified.tolist(), found.sizes.tolist(), found.etags.to_pylist()


@dataclass(frozen=True)
class _Side:
    evidence: list[Evidence]
    same: NDArray[np.int64]
    """Objects of which this version is known."""
    others: NDArray[np.int64]
    """Objects of which others are known too, written at the same time: rows without a version may be about those."""


def open_store(
    location: Any,
    *,
    decryption: FileDecryption | Mapping[str, bytes] | None = None,
    on_foreign: OnForeign = "raise",
    limits: Limits = DEFAULT_LIMITS,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Store:
    """The data-skipping store in a folder, to be passed as ``skipping=`` to :func:`pqext.scan`.

    Args:
        location: The store's folder: a path or a URL.
        decryption: Keys of an encrypted store, by their labels.
        on_foreign: ``"raise"``, or ``"ignore"`` to read every file where the store is of another table.
        limits: Bounds on memory and counts, for stores of strangers.
        filesystem: A file system of pyarrow or fsspec, or a store of obstore, in which ``location`` is a path.
        storage_options: Credentials and other settings of the object store that a URL names.

    Returns:
        A :class:`Store`. Nothing is read before it is asked.

    Raises:
        ValueError: For arguments that are not understood.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import skipping
        >>> for name in ("a", "b"):
        ...     pqext.write_table(pyarrow.table({"name": [name]}), f"{name}.parquet")
        >>> summary = skipping.build(["a.parquet", "b.parquet"], [skipping.MinMax("name")], "store")
        >>> store = skipping.open_store("store")
        >>> wanted = pqext.col("name") == "b"
        >>> pqext.scan(["a.parquet", "b.parquet"], filter=wanted, skipping=store).to_table().to_pylist()
        [{'name': 'b'}]
    """
    if on_foreign not in ("raise", "ignore"):
        raise ValueError(f'on_foreign must be "raise" or "ignore", not {on_foreign!r}')
    return Store(locate(location, filesystem, storage_options), decryption, limits, on_foreign)


def understood(about: StoreMetadata) -> list[tuple[IndexColumn, Index]]:
    """The indexes of a store that are understood, each with its column."""
    if not about.is_usable:
        return []
    both = [(one, restored(one.index, one.columns, one.params)) for one in about.indexes]
    return [(one, index) for one, index in both if index is not None]


def _asked(about: StoreMetadata, filter: Expression) -> list[tuple[IndexColumn, Index]]:
    """The indexes that may say something of ``filter``."""
    return [(one, index) for one, index in understood(about) if asked(filter, [index])]


def fresh(table: pa.Table, objects: Objects) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows of a store that are about ``objects`` as they were last changed, and the number of each one's object."""
    return _fresh(*named_objects(table), objects)


def _fresh(
    paths: pa.Array, modified: NDArray[np.int64], objects: Objects
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    found = pc.index_in(paths, value_set=objects.paths, skip_nulls=True)
    rows = np.flatnonzero(np.asarray(found.is_valid()))
    numbers = np.asarray(found.drop_null()).astype(np.int64)
    is_same = (modified[rows] == objects.modified[numbers]) & (modified[rows] != UNKNOWN)
    return rows[is_same], numbers[is_same]


def named_objects(table: pa.Table) -> tuple[pa.Array, NDArray[np.int64]]:
    """The paths of the objects that the rows of a store are about, and the times when they were last changed."""
    paths, modified = split_object_names(table.column(OBJECT_NAME))
    if pc.any(pc.match_substring(paths, ":/")).as_py():  # URLs, which may be written in several ways
        paths = pa.array([canonical(path) for path in paths.to_pylist()], pa.string())
    return paths, modified


def rows_about(table: pa.Table, objects: Objects) -> NDArray[np.int64]:
    """The rows of a table of the store that are about ``objects`` as they are now."""
    rows, numbers = fresh(table, objects)
    return same_version(table, objects, rows, numbers)[0] if VERSION in table.column_names else rows


def same_version(
    table: pa.Table, objects: Objects, rows: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of rows, and the numbers of their objects, those whose size and etag are the object's."""
    if VERSION not in table.column_names:
        return rows[:0], numbers[:0]
    kind = table.schema.field(VERSION).type
    if kind != VERSION_TYPE:
        raise CorruptFileError(f"versions of objects are of type {VERSION_TYPE}, not {kind}", column=VERSION)
    versions = table.column(VERSION).combine_chunks().take(pa.array(rows))
    sizes = np.asarray(pc.fill_null(pc.struct_field(versions, ["size"]), UNKNOWN))
    etags = pc.equal(pc.struct_field(versions, ["etag"]), objects.etags.take(pa.array(numbers)))
    is_same = (sizes == objects.sizes[numbers]) & (sizes != UNKNOWN)
    is_same &= np.asarray(pc.fill_null(etags, True)).astype(bool)
    return rows[is_same], numbers[is_same]


def _evidence(
    table: pa.Table, indexes: Sequence[tuple[IndexColumn, Index]], rows: NDArray[np.int64], numbers: NDArray[np.int64]
) -> list[Evidence]:
    """What rows of a table say, each about the object with the number beside it."""
    chosen = table.select([one.name for one, _ in indexes if one.name in table.column_names])
    if len(rows) < len(table):  # else they are all, in order
        chosen = chosen.take(pa.array(rows))
    return [
        Evidence(index, chosen.column(one.name).combine_chunks(), numbers, one.params)
        for one, index in indexes
        if one.name in chosen.column_names
    ]


def name_of(source: Any) -> str | None:
    """The path or URL of a file; None for one without."""
    if isinstance(source, Location):
        return canonical(source.path)
    return os.path.abspath(source) if isinstance(source, str) else None
