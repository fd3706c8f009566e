"""Plan a write to a table. The plan is checked before rows are written, and can be sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from pqext.core.base.text import with_noun
from pqext.core.io.sources.store_errors import redact_uri
from pqext.tables.backend import FileLayout, NewFile, TableConflictError, TableWriter, partition_key
from pqext.tables.selection import check_partitions, partition_values, select_files


@dataclass(frozen=True, slots=True)
class TableCommit:
    """Result of a commit: the table, its new version, and the files, rows and bytes that were added.

    ``files_removed`` is the number of replaced files.
    """

    table: str
    version: int
    files: int
    rows: int
    bytes: int
    files_removed: int = 0

    def __str__(self) -> str:
        removed = f", {with_noun(self.files_removed, 'file')} removed" if self.files_removed else ""
        added = f"{with_noun(self.rows, 'row')}, {with_noun(self.bytes, 'byte')} in {with_noun(self.files, 'file')}"
        return f"{self.table} version {self.version}: {added}{removed}"


class Replacement(Protocol):
    """Selection of the files that a commit replaces. It can be pickled."""

    def paths(self, writer: TableWriter, added: Sequence[NewFile] | None) -> list[str]:
        """Return the paths of the files that the files ``added`` replace in the version of ``writer``.

        If ``added`` is None, no file has been written yet, and the result contains all files that may be replaced.
        """

    def check(self, writer: TableWriter, added: Sequence[NewFile]) -> None:
        """Raise ``ValueError`` if the files ``added`` do not match the selection."""


@dataclass(frozen=True)
class FilePaths:
    """Replacement of the files at the paths ``selected``."""

    selected: tuple[str, ...]

    def paths(self, writer: TableWriter, added: Sequence[NewFile] | None) -> list[str]:
        return [*self.selected]

    def check(self, writer: TableWriter, added: Sequence[NewFile]) -> None:
        """Do nothing, because the new rows may be in any partition."""


@dataclass(frozen=True)
class SelectedPartitions:
    """Replacement of the partitions that ``filter`` selects, or of all partitions if ``filter`` is None."""

    filter: Any = None

    def paths(self, writer: TableWriter, added: Sequence[NewFile] | None) -> list[str]:
        return [file.path for file in select_files(writer.files(), writer.partitions, self.filter)]

    def check(self, writer: TableWriter, added: Sequence[NewFile]) -> None:
        if self.filter is not None:
            check_partitions(added, writer.partitions, self.filter)


@dataclass(frozen=True)
class WrittenPartitions:
    """Replacement of the partitions to which the added files belong, in a table with partition columns."""

    def paths(self, writer: TableWriter, added: Sequence[NewFile] | None) -> list[str]:
        files = writer.files()
        if added is not None:
            names = writer.partitions.names
            written = {partition_key(new.partition) for new in added}
            files = [file for file in files if partition_key(partition_values(file, names)) in written]
            writer.check_removal(files)
        return [file.path for file in files]

    def check(self, writer: TableWriter, added: Sequence[NewFile]) -> None:
        """Do nothing, because the added files define the selection."""


@dataclass(frozen=True)
class TableWrite:
    """A planned write to a table: the layout of the new files, and the files that the commit replaces.

    It can be pickled by cloudpickle. The files are written by :func:`pqext.tables.data_files.write_files`, and
    :meth:`commit` accepts any writer of the same table.
    """

    layout: FileLayout
    replacement: Replacement | None
    version: int | None
    """Version of the table that the plan applies to; None if the table does not exist.

    The plan does not store the files of the version, because a table may have many files. If another writer commits,
    they are listed again.
    """

    @staticmethod
    def plan(
        writer: TableWriter, schema: pa.Schema, partition_by: Sequence[str], options: Mapping[str, Any],
        allow_undeclared_shredding: bool, replacement: Replacement | None,
    ) -> TableWrite:
        """Plan a write of rows with ``schema``. Raises all errors that can be detected before rows are written."""
        version = writer.version
        if version is not None:
            writer.check(removes_rows=replacement is not None)
        layout = writer.layout(schema, partition_by, options, allow_undeclared_shredding)
        if replacement is not None and version is not None:
            selected = frozenset(replacement.paths(writer, None))
            if not isinstance(replacement, WrittenPartitions):
                writer.check_removal([file for file in writer.files() if file.path in selected])
        return TableWrite(layout, replacement, version)

    def commit(self, writer: TableWriter, added: Sequence[NewFile]) -> TableCommit:
        """Commit the added and removed files in one version, or nothing if there are no changes.

        Raises ``TableConflictError`` if another writer has added files to the replaced rows since the plan was made.
        """
        removed: list[str] = []

        def paths() -> list[str]:
            if self.replacement is not None and self.layout.new_schema is None:
                removed[:] = self.replacement.paths(writer, added)
                other = None
                if removed and writer.version != self.version:
                    planned = writer.paths(self.version)
                    other = next((path for path in removed if path not in planned), None)
                if other is not None:
                    raise TableConflictError(
                        f"another writer has added {redact_uri(other)}, whose rows this call would replace; nothing "
                        "was changed; repeat the call to replace these rows too", path=writer.name,
                    )
            return removed

        if self.replacement is not None:
            self.replacement.check(writer, added)
        has_change = bool(added or self.layout.new_schema is not None or paths())
        selected = () if self.replacement is None else paths
        version = writer.commit(self.layout, added, selected, data_change=True) if has_change else writer.version
        files = [new.file for new in added]
        return TableCommit(
            writer.name, version or 0, len(files), sum(file.rows for file in files), sum(file.bytes for file in files),
            len(removed),
        )
