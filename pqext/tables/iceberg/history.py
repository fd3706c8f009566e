"""Read the snapshots of an Iceberg table: the files that each snapshot adds.

Spec: Apache Iceberg, "Snapshots", operations append, replace, overwrite and delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.backend import Append, changed_rows_error
from pqext.tables.iceberg.loading import load_table
from pqext.tables.iceberg.snapshot import find_snapshot, list_snapshots, table_name, table_snapshot

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.snapshots import Snapshot


class IcebergHistory:
    """Snapshots of an Iceberg table; see :class:`pqext.tables.backend.TableHistory`.

    Versions are snapshot ids. 0 represents the table before its first snapshot.
    """

    def __init__(self, source: Any, storage_options: Mapping[str, Any] | None) -> None:
        self._table, self._variants = load_table(source, storage_options)
        self.name = f"iceberg:{table_name(self._table)}"

    @property
    def version(self) -> int:
        snapshot = self._table.current_snapshot()
        return 0 if snapshot is None else snapshot.snapshot_id

    def previous_version(self, version: int) -> int:
        snapshot, _ = find_snapshot(self._table, version, None, self.name)
        return 0 if snapshot is None else snapshot.parent_snapshot_id or 0

    def open(self, version: int) -> TableSnapshot:
        from pqext.tables.iceberg.manifests import read_files

        snapshot, schema = self._find(version)
        data, deletes = ([], []) if snapshot is None else read_files(snapshot, self._table.io, self.name)
        return table_snapshot(self._table, self._variants, schema, data, deletes)

    def _find(self, version: int) -> tuple[Snapshot | None, Schema]:
        """Return the snapshot ``version`` and its schema. The snapshot is None if ``version`` is 0."""
        if version == 0:
            return None, self._table.schema()
        return find_snapshot(self._table, None if version == self.version else version, None, self.name)

    def appends(self, after: int, until: int, skip_change_commits: bool) -> Iterator[Append]:
        return self._appends(self._ancestors(after, until), skip_change_commits)

    def _appends(self, snapshots: Sequence[Snapshot], skip_change_commits: bool) -> Iterator[Append]:
        from pyiceberg.table.snapshots import Operation

        from pqext.tables.iceberg.manifests import read_files

        for snapshot in snapshots:
            operation = None if snapshot.summary is None else snapshot.summary.operation
            if operation not in (Operation.APPEND, Operation.REPLACE) and not skip_change_commits:
                raise changed_rows_error(snapshot.snapshot_id, self.name)
            files = read_files(snapshot, self._table.io, self.name, only_added=True)[0]
            yield Append(snapshot.snapshot_id, tuple(files) if operation == Operation.APPEND else ())

    def _ancestors(self, after: int, until: int) -> list[Snapshot]:
        """Return the snapshots from ``after`` (exclusive) to ``until`` (inclusive), oldest first."""
        result: list[Snapshot] = []
        current = until
        while current != after:
            if current == 0:
                self._find(after)
                raise ValueError(
                    f"snapshot {after} is not an ancestor of snapshot {until} in {self.name}; start from an ancestor"
                )
            snapshot = self._table.snapshot_by_id(current)
            if snapshot is None:
                child = f", the parent of snapshot {result[-1].snapshot_id}" if result else ""
                raise FileNotFoundError(
                    f"{self.name} has no snapshot {current}{child}; {list_snapshots(self._table)}"
                )
            result.append(snapshot)
            current = snapshot.parent_snapshot_id or 0
        return result[::-1]

    def snapshot(self, appends: Iterable[Append], until: int) -> TableSnapshot:
        _, schema = self._find(until)
        data = [file for append in appends for file in append.files]
        return table_snapshot(self._table, self._variants, schema, data, [])
