"""Rewrite files of tables without changing rows: compact, recluster and reshred, each in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any, Unpack

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError
from pqext.core.base.progress import Progress, Steps
from pqext.core.base.suggestions import join_names
from pqext.core.base.text import with_noun
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.read_write import WriteOptions, from_keywords
from pqext.dataset.reading import scan
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.dataset.writing.appending import inherit_shredding
from pqext.tables.arguments import check_arguments
from pqext.tables.backend import TARGET_FILE_BYTES, FileLayout, TableFile, TableWriter, partition_key
from pqext.tables.data_files import NewFiles, new_files
from pqext.tables.read_shares import column_shares, format_shares, key_share
from pqext.tables.selection import select_files
from pqext.tables.sort_keys import SortKeys, key_items
from pqext.tables.writing import open_writer
from pqext.variant.shredding.choice import residual_shares, warn_about_residual
from pqext.variant.types import is_marked

_ARGUMENTS = (
    "target_file_bytes", "filter", "dry_run", "storage_options", "progress", "options",
)
_MAX_KEYS = 3
"""Maximum number of keys that a printed result lists with their shares of files."""
_FULL = 0.75
"""Fraction of the target size. Files of at least this size are not compacted."""


@dataclass(frozen=True, slots=True)
class TableRewrite:
    """Result of a rewrite: counts and sizes of the old and new files, and the number of rows.

    After a dry run, ``version`` is the current version, ``files_after`` is an estimate, and ``bytes_after`` and
    ``read_after`` are None. ``skipped`` is the number of selected files that were not rewritten because they have
    deletion vectors.

    ``read_before`` and ``read_after`` are the shares of the table's files that a lookup of one value reads, estimated
    from the statistics in the log. ``recluster`` estimates lookups by its first key, and the other functions estimate
    lookups by each column. Keys without statistics are missing. ``read_after`` is also None if the table cannot be
    loaded after the commit.

    ``clustered`` is the number of selected files that ``recluster`` did not rewrite, because an earlier call had
    written them in the same order and their partitions have not changed since.
    """

    table: str
    version: int
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int | None
    rows: int | None
    skipped: int = 0
    read_before: Mapping[str, float] = field(default_factory=dict)
    read_after: Mapping[str, float] | None = None
    clustered: int = 0

    def __str__(self) -> str:
        after = "" if self.bytes_after is None else f" ({self.bytes_after:,} bytes)"
        verb = "would become" if self.bytes_after is None else "became"
        skipped = f"; {with_noun(self.skipped, 'file')} with deletion vectors skipped" if self.skipped else ""
        clustered = f"; {with_noun(self.clustered, 'file')} already in this order" if self.clustered else ""
        shares = f"; files that a lookup reads: {self._shares()}" if self.read_before else ""
        before = f"{with_noun(self.files_before, 'file')} ({self.bytes_before:,} bytes)"
        result = f"{before} {verb} {self.files_after:,}{after}{skipped}{clustered}{shares}"
        return f"{self.table} version {self.version}: {result}"

    def _shares(self) -> str:
        after = self.read_after
        changed = [key for key, share in self.read_before.items() if after is None or after.get(key) != share]
        keys = (changed or [*self.read_before])[:_MAX_KEYS]
        return format_shares({key: self.read_before[key] for key in keys}, after)


def compact(
    table: Any,
    *,
    target_file_bytes: int = TARGET_FILE_BYTES,
    filter: Any = None,
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> TableRewrite:
    """Combine small files of each partition into files of about ``target_file_bytes``, in one commit.

    The rows and their order within the combined files do not change. VARIANT columns are shredded as in the largest of
    the combined files. Concurrent appends do not conflict.

    Args:
        table: A Delta or Iceberg table, as in :func:`append`.
        target_file_bytes: Approximate size of the new files in bytes. Files of at least three quarters of this size are
            not rewritten.
        filter: Condition on partition columns, as in :func:`pqext.scan`, that selects the files.
        dry_run: Whether to return the expected result without writing.
        storage_options: Credentials and other options of the object store.
        progress: Function that is called with the number of rows written and the total number of rows, which is None if
            the log does not state it.
        options: Writer options (:class:`pqext.WriteOptions`); ``keywords`` take precedence.
        **keywords: The fields of :class:`pqext.WriteOptions`.

    Returns:
        The files, bytes and rows before and after, and the share of files that lookups read.

    Raises:
        FileNotFoundError: If the table does not exist.
        UnsupportedError: If the table cannot be written.
        TableConflictError: If another writer has removed or changed one of the files in the meantime. The table is
            unchanged, and no new files remain.

    Example:
        >>> import pyarrow
        >>> from pqext import tables
        >>> commits = [tables.append("delta:readings", pyarrow.table({"n": [n]})) for n in range(3)]
        >>> result = tables.compact("delta:readings")
        >>> result.files_before, result.files_after
        (3, 1)
    """
    chosen = from_keywords(WriteOptions, keywords, *_ARGUMENTS, base=options)
    check_arguments(target_file_bytes=target_file_bytes, dry_run=dry_run, progress=progress)
    rewrite = _Rewrite(open_writer(table, storage_options), chosen, progress)
    selected = rewrite.select(filter)
    small = [file for file in selected if file.size < _FULL * target_file_bytes]
    groups = _combine(small, target_file_bytes)
    return rewrite.run([_Group(files, None) for files in groups], dry_run, inherits=not chosen.shredding)


def recluster(
    table: Any,
    by: Any,
    *,
    filter: Any = None,
    target_file_bytes: int = TARGET_FILE_BYTES,
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> TableRewrite:
    """Sort the rows of each partition in one commit, so that filters on the columns ``by`` skip more files.

    Rows that do not fit into memory are sorted in temporary files. A partition is not rewritten if an earlier call with
    the same keys and options has sorted it, and it has not changed since. If the keys are computed or the schema has
    changed, all partitions are sorted again. For the other arguments, the result and the errors, see
    :func:`compact`.

    Args:
        table: As in :func:`compact`.
        by: A geometry column, to sort rows by the position of their geometry on a Hilbert curve. Otherwise one or
            several columns or values: names, expressions such as ``col("event").variant("$.user.id", "int64")``, or the
            text of an expression, such as ``"event:$.user.id::bigint"``.
        filter: As in :func:`compact`.
        target_file_bytes: Approximate size of the new files in bytes.
        dry_run: As in :func:`compact`.
        storage_options: As in :func:`compact`.
        progress: As in :func:`compact`.
        options: As in :func:`compact`.
        **keywords: As in :func:`compact`.

    Raises:
        ValueError: If a column of ``by`` does not exist, or all of them are partition columns.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import tables
        >>> commits = [tables.append("delta:numbers", pyarrow.table({"n": [7, start]})) for start in (3, 9)]
        >>> tables.recluster("delta:numbers", pqext.col("n")).files_before
        2
        >>> pqext.scan("delta:numbers").to_table()["n"].to_pylist()
        [3, 7, 7, 9]
        >>> again = tables.recluster("delta:numbers", "n")
        >>> again.files_before, again.clustered
        (0, 1)
    """
    chosen = from_keywords(WriteOptions, keywords, "by", *_ARGUMENTS, base=options)
    check_arguments(target_file_bytes=target_file_bytes, dry_run=dry_run, progress=progress)
    items = key_items(by)
    rewrite = _Rewrite(open_writer(table, storage_options), chosen, progress)
    keys = rewrite.keys = SortKeys.resolve(items, rewrite.snapshot.schema)
    if keys.columns.issubset(rewrite.writer.partitions.names):
        raise ValueError(
            f"by contains only partition columns ({join_names(sorted(keys.columns))}), which have a single value in "
            "each file; add another column"
        )
    file_schema = rewrite.layout(chosen).schema
    rewrite.order = keys.describe(rewrite.snapshot.schema, file_schema, target_file_bytes, chosen)
    partitions: dict[tuple[Any, ...], list[TableFile]] = {}
    for file in rewrite.select(filter):
        partitions.setdefault(_partition(file), []).append(file)
    unsorted = rewrite.skip_clustered(partitions.values())
    groups = [_Group(files, target_file_bytes, keys) for files in unsorted]
    return rewrite.run(groups, dry_run, inherits=not chosen.shredding)


def reshred(
    table: Any,
    shredding: Mapping[str, Any],
    *,
    filter: Any = None,
    allow_undeclared_shredding: bool = False,
    dry_run: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
) -> TableRewrite:
    """Rewrite each file with another shredding of VARIANT columns, in one commit; ``{}`` removes the shredding.

    For the other arguments, the result and the errors, see :func:`compact`.

    Args:
        table: As in :func:`compact`.
        shredding: Shredding schema of each VARIANT column, as in :func:`pqext.write_table`.
        filter: As in :func:`compact`.
        allow_undeclared_shredding: As in :func:`append`; a Delta table cannot be shredded without it.
        dry_run: As in :func:`compact`.
        storage_options: As in :func:`compact`.
        progress: As in :func:`compact`.
        options: Writer options (:class:`pqext.WriteOptions`); ``shredding`` takes precedence.

    Raises:
        ValueError: If the table has no VARIANT column.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import tables, variant
        >>> commit = tables.append("delta:events", pyarrow.table({"event": variant.parse_json(['{"mag": 5}'])}))
        >>> rewrite = tables.reshred("delta:events", {"event": "mag BIGINT"}, allow_undeclared_shredding=True)
        >>> print(variant.schema_of_file(pqext.scan("delta:events").plan()[0].path))
        STRUCT<mag: BIGINT>
    """
    if not isinstance(shredding, Mapping):
        raise TypeError(f"shredding must be a mapping of VARIANT columns to schemas, not {type(shredding).__name__}")
    check_arguments(dry_run=dry_run, allow_undeclared_shredding=allow_undeclared_shredding, progress=progress)
    chosen = from_keywords(WriteOptions, {"shredding": dict(shredding)}, base=options)
    rewrite = _Rewrite(open_writer(table, storage_options), chosen, progress)
    if not any(map(is_marked, rewrite.snapshot.schema)):
        raise ValueError(f"{rewrite.writer.name} has no VARIANT column to reshred")
    rewrite.allow_undeclared_shredding = allow_undeclared_shredding
    rewrite.layout(chosen)  # raises errors in the options before files are read
    return rewrite.run([_Group([file], None) for file in rewrite.select(filter)], dry_run, inherits=False)


def _partition(file: TableFile) -> tuple[Any, ...]:
    """Return a key for the partition of a file. Files with different partition columns have different keys."""
    return tuple(file.partition), partition_key(file.partition.values())


def _combine(files: Sequence[TableFile], target: int) -> list[list[TableFile]]:
    """Group the files of each partition, up to ``target`` bytes per group. Groups with a single file are omitted."""
    groups: list[list[TableFile]] = []
    open_groups: dict[tuple[Any, ...], tuple[int, list[TableFile]]] = {}
    for file in files:
        key = _partition(file)
        size, group = open_groups.get(key, (0, []))
        if size + file.size > target or not group:
            size, group = 0, []
            groups.append(group)
        group.append(file)
        open_groups[key] = size + file.size, group
    return [group for group in groups if len(group) > 1]


@dataclass(frozen=True)
class _Group:
    """Files that are rewritten together, and the target size and row order of the new files."""

    files: Sequence[TableFile]
    target_file_bytes: int | None
    keys: SortKeys | None = None


class _Rewrite:
    """Rewrite of a table version's files in one commit."""

    def __init__(
        self, writer: TableWriter, options: WriteOptions, progress: Progress | None,
    ) -> None:
        self.snapshot: TableSnapshot = writer.snapshot()
        writer.check(removes_rows=False)
        self.writer = writer
        self.allow_undeclared_shredding = False
        self.keys: SortKeys | None = None
        self.order: str | None = None
        """Text that identifies the order of the new files; None if it is not recorded."""
        self._options = options
        self._progress = progress
        self._skipped = 0
        self._clustered = 0

    def select(self, filter: Any) -> list[TableFile]:
        """Return the files in the partitions that ``filter`` selects, without files that have deletion vectors."""
        selected = select_files(self.writer.files(), self.writer.partitions, filter)
        files = [file for file in selected if not file.has_deleted_rows]
        self._skipped = len(selected) - len(files)
        return files

    def skip_clustered(self, partitions: Iterable[list[TableFile]]) -> list[list[TableFile]]:
        """Return the ``partitions`` to sort. Skip partitions whose files were added by one commit in the same order."""
        recorded = {} if self.order is None else self.writer.clusterings()
        remaining = []
        for files in partitions:
            commits = {recorded.get(file.path) for file in files}
            commit = commits.pop()
            if commits or commit is None or commit[1] != self.order or not self._has_current_partitions(files):
                remaining.append(files)
            else:
                self._clustered += len(files)
        return remaining

    def _has_current_partitions(self, files: Iterable[TableFile]) -> bool:
        """Return whether all files have the current partition columns."""
        return all(file.partition.keys() == {*self.writer.partitions.names} for file in files)

    def layout(self, options: WriteOptions, inherited: Mapping[str, Any] | None = None) -> FileLayout:
        """Return the layout of new files. ``inherited`` is the shredding of the replaced files."""
        values = {field.name: getattr(options, field.name) for field in fields(WriteOptions)}
        if inherited:
            values["shredding"] = inherited
        allow = self.allow_undeclared_shredding or bool(inherited)
        return self.writer.layout(self.snapshot.schema, (), values, allow)

    def run(self, groups: Sequence[_Group], dry_run: bool, inherits: bool) -> TableRewrite:
        """Rewrite groups of files; with ``dry_run``, only return the expected result."""
        files = [file for group in groups for file in group.files]
        counts = [file.rows for file in files]
        total = None if None in counts else sum(count or 0 for count in counts)
        size = sum(file.size for file in files)
        version = self.writer.version or 0
        if dry_run or not files:
            expected = sum(_expected_files(group) for group in groups)
            return TableRewrite(
                self.writer.name, version, len(files), expected, size, None if files else 0, total, self._skipped,
                self._shares(self.snapshot), clustered=self._clustered,
            )
        self.writer.check_removal(files)
        steps = Steps(self._progress, total)
        with new_files(self.writer) as new:
            rows = sum(self._rewrite(group, new, steps, inherits) for group in groups)
            removed = [file.path for file in files]
            order = self.order if self._has_current_partitions(files) else None
            layout = self.layout(self._options)
            if self._options.shredding:  # before the commit, because filters can turn the warning into an error
                warn_about_residual(residual_shares(each.file.residual for each in new.files))
            version = self.writer.commit(layout, new.files, removed, data_change=False, order=order)
        new_size = sum(each.file.bytes for each in new.files)
        read_after = None
        with suppress(Exception):  # an exception would report a committed rewrite as failed
            read_after = self._shares(self.writer.snapshot())
        return TableRewrite(
            self.writer.name, version, len(files), len(new.files), size, new_size, rows, self._skipped,
            self._shares(self.snapshot), read_after, self._clustered,
        )

    def _shares(self, snapshot: TableSnapshot) -> dict[str, float]:
        """Return the share of files that a lookup reads: for the sort key or, without a key, for each column."""
        if self.keys is None:
            return column_shares(snapshot)
        share = key_share(snapshot, self.keys.values[0])
        return {} if share is None else {self.keys.name: share}

    def _rewrite(self, group: _Group, new: NewFiles, steps: Steps, inherits: bool) -> int:
        """Rewrite a group of files and return the number of rewritten rows."""
        inherited = self._inherit_shredding(group.files) if inherits else None
        snapshot = replace(self.snapshot, files=tuple(file.location for file in group.files))
        rows = scan(snapshot)
        batches: AbstractContextManager[Iterable[pa.RecordBatch]] = (
            nullcontext(rows.to_batches()) if group.keys is None else group.keys.sort(rows)
        )
        with batches as ordered:
            count = new.write(self.layout(self._options, inherited), ordered, group.target_file_bytes, steps)
        counts = [file.rows for file in group.files]
        if None not in counts and sum(number or 0 for number in counts) != count:
            raise CorruptFileError(
                f"the log states {sum(number or 0 for number in counts):,} rows for {len(counts)} files, but the files "
                f"contain {count:,} rows; nothing was changed", path=self.writer.name,
            )
        return count

    def _inherit_shredding(self, files: Sequence[TableFile]) -> dict[str, str]:
        """Return the shredding of the VARIANT columns in the largest file."""
        names = [field.name for field in self.snapshot.schema if is_marked(field)]
        largest = max(files, key=lambda file: file.size)
        return inherit_shredding(largest.location, names) if names else {}


def _expected_files(group: _Group) -> int:
    if group.target_file_bytes is None:
        return 1
    return max(1, round(sum(file.size for file in group.files) / group.target_file_bytes))
