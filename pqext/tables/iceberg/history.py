"""Read the snapshots of an Iceberg table: the files that each one adds.

Spec: Apache Iceberg, "Snapshots", operations append, replace, overwrite and delete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.backend import Append, changed_rows_error
from pqext.tables.iceberg.loading import load_table
from pqext.tables.iceberg.snapshot import find_snapshot, table_name, table_snapshot

if TYPE_CHECKING:
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

    def previous(self, version: int) -> int:
        snapshot, _ = find_snapshot(self._table, version, None, self.name)
        return 0 if snapshot is None else snapshot.parent_snapshot_id or 0

    def appends(self, after: int, until: int, skip_change_commits: bool) -> list[Append]:
        from pyiceberg.table.snapshots import Operation

        from pqext.tables.iceberg.manifests import read_files

        result = []
        for snapshot in self._ancestors(after, until):
            operation = None if snapshot.summary is None else snapshot.summary.operation
            if operation not in (Operation.APPEND, Operation.REPLACE) and not skip_change_commits:
                raise changed_rows_error(snapshot.snapshot_id, self.name)
            files = read_files(snapshot, self._table.io, self.name, only_added=True)[0]
            result.append(Append(snapshot.snapshot_id, tuple(files) if operation == Operation.APPEND else ()))
        return result

    def _ancestors(self, after: int, until: int) -> list[Snapshot]:
        """Return the snapshots after ``after`` up to ``until``, the oldest first."""
        result: list[Snapshot] = []
        current = until
        while current != after:
            if current == 0:
                raise ValueError(f"snapshot {after} is not an ancestor of snapshot {until} in {self.name}")
            snapshot = self._table.snapshot_by_id(current)
            if snapshot is None:
                raise FileNotFoundError(
                    f"{self.name} has no snapshot {current}, or it has expired; start after a later snapshot"
                )
            result.append(snapshot)
            current = snapshot.parent_snapshot_id or 0
        return result[::-1]

    def snapshot(self, appends: Sequence[Append], until: int) -> TableSnapshot:
        _, schema = find_snapshot(self._table, None if until == self.version else until, None, self.name)
        data = [file for append in appends for file in append.files]
        return table_snapshot(self._table, self._variants, schema, data, [])
