"""Write to Iceberg tables: layouts of new files from the table's schema, and commits by ``pyiceberg``."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.base.errors import SchemaMismatchError, UnsupportedError
from pqext.core.base.suggestions import join_names
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import source_name
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.dataset.writing.part_files import WrittenFile
from pqext.table_metrics.iceberg_metrics import iceberg as iceberg_metrics
from pqext.tables.backend import (
    FileLayout,
    Leftover,
    NewFile,
    TableConflictError,
    TableFile,
    check_unchanged,
    expired_version_error,
)
from pqext.tables.conversion import column_conversion
from pqext.tables.error_texts import credentials
from pqext.tables.iceberg.leftovers import find_leftovers, stored_files
from pqext.tables.iceberg.loading import load_table
from pqext.tables.iceberg.snapshot import locate_file, open_iceberg

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from pqext.tables.iceberg.manifests import TableFile as ManifestFile
    from pqext.tables.iceberg.partition_values import PartitionColumn

_ATTEMPTS = 50
_ORDER = "pqext.clustered"
"""Property in the summary of a snapshot for the order of the rows in the files that it adds."""
_MAX_VERSION = 2
"""Last format version that pyiceberg writes."""


class IcebergWriter:
    """The current snapshot of an Iceberg table; see :class:`pqext.tables.backend.TableWriter`."""

    def __init__(self, source: Any, storage_options: Mapping[str, Any] | None) -> None:
        table, variants = load_table(source, storage_options)
        from pyiceberg.table import StaticTable

        self.name = f"iceberg:{'.'.join(map(str, table.name()))}"
        if variants or isinstance(table, StaticTable):
            raise UnsupportedError(
                "a table that is opened from its metadata file cannot be written, because commits need its catalog; "
                "pass 'iceberg:CATALOG.NAMESPACE.TABLE'", feature="writing Iceberg metadata files",
                path=redact_uri(str(source)),
            )
        self._table: Table = table
        self._secrets = [storage_options, *map(credentials, (table.catalog.properties, table.io.properties))]
        location = table.properties.get("write.data.path") or f"{table.location().rstrip('/')}/data"
        self.root: str = location.rstrip("/")
        self.is_committing = False
        self.locate: Callable[[str], Any] = partial(_locate_file, table.io, self.root)

    @property
    def version(self) -> int | None:
        """Id of the current snapshot; 0 if the table has no snapshot."""
        snapshot = self._table.current_snapshot()
        return 0 if snapshot is None else snapshot.snapshot_id

    @property
    def partitions(self) -> pa.Schema:
        return pa.schema([column.field for column in self._partition_columns if column is not None])

    @property
    def _partition_columns(self) -> list[PartitionColumn | None]:
        from pqext.tables.iceberg.partition_values import partition_columns

        return partition_columns(self._table.spec(), self._table.schema())

    @property
    def _schema(self) -> pa.Schema:
        from pqext.tables.iceberg.schemas import arrow_schema

        return arrow_schema(self._table.schema(), ())

    def snapshot(self) -> TableSnapshot:
        return open_iceberg(self._table, None, None, None)

    def _manifest_files(self) -> list[ManifestFile]:
        from pqext.tables.iceberg.manifests import read_files

        snapshot = self._table.current_snapshot()
        return [] if snapshot is None else read_files(snapshot, self._table.io, self.name)[0]

    def paths(self, version: int | None) -> frozenset[str]:
        from pqext.tables.iceberg.manifests import read_files

        if not version:
            return frozenset()
        snapshot = self._table.snapshot_by_id(version)
        try:
            files = [] if snapshot is None else read_files(snapshot, self._table.io, self.name)[0]
        except FileNotFoundError:
            snapshot = None
        if snapshot is None:
            raise expired_version_error(version, self.name)
        return frozenset(file.path for file in files)

    def files(self) -> list[TableFile]:
        from pqext.tables.iceberg.file_view import IcebergFileView

        view = self.snapshot().view
        assert isinstance(view, IcebergFileView)
        deleted = view.deleted.names
        specs, fields = self._table.specs(), self.partitions
        by_id = {self._table.schema().find_field(name).field_id: name for name in fields.names}
        result = []
        for file in self._manifest_files():
            spec, values = file.partition
            location = locate_file(self._table.io, file.path)
            stored = {
                by_id[field.source_id]: value
                for field, value in zip(specs[spec].fields, values, strict=False)
                if str(field.transform) == "identity" and field.source_id in by_id
            }
            partition = {name: stored[name] for name in fields.names if name in stored}
            size, rows = file.file.file_size_in_bytes, file.file.record_count
            result.append(TableFile(file.path, location, size, rows, partition, source_name(location) in deleted))
        return result

    def check(self, removes_rows: bool) -> None:
        if self._table.format_version > _MAX_VERSION:
            raise UnsupportedError(
                f"pyiceberg cannot commit to tables of format version {self._table.format_version}; write the table "
                "with Spark", feature="writing Iceberg version 3", path=self.name,
            )
        transforms = [str(field.transform) for field in self._table.spec().fields]
        others = [transform for transform in transforms if transform not in ("identity", "void")]
        if others:
            raise UnsupportedError(
                f"the table is partitioned by the transforms {join_names(others)}; only identity partitions can be "
                "written", feature="partition transforms", path=self.name,
            )

    def check_removal(self, files: Sequence[TableFile]) -> None:
        from pqext.tables.iceberg.partition_values import partition_columns

        path = next((file.path for file in files if file.has_deleted_rows), None)
        if path is not None:
            raise UnsupportedError(
                f"pyiceberg cannot remove {redact_uri(path)} and its delete files; rewrite the table with Spark",
                feature="removal of delete files", path=self.name,
            )
        columns = (partition_columns(spec, self._table.schema()) for spec in self._table.specs().values())
        fields = (column.field for spec in columns for column in spec if column is not None)
        name = next((field.name for field in fields if field.type == pa.float64()), None)
        if name is not None and files:
            raise UnsupportedError(
                f"pyiceberg cannot remove files, because the partition column {name!r} has the type double; rewrite "
                "the table with Spark", feature="removal of files in double partitions", path=self.name,
            )

    def layout(
        self, schema: pa.Schema, partition_by: Sequence[str], options: Mapping[str, Any],
        allow_undeclared_shredding: bool,
    ) -> FileLayout:
        from pqext.tables.iceberg.partition_values import divide as divide_rows
        from pqext.tables.iceberg.write_schemas import check_added_columns, check_columns, field_with_id

        for name in ("encryption", "shredding"):
            if options[name]:
                raise UnsupportedError(
                    f"{name} is not supported in Iceberg tables; omit it", feature=f"{name} in Iceberg", path=self.name
                )
        partitions = self._partition_columns
        by = tuple(column.field.name for column in partitions if column is not None)
        if partition_by and tuple(partition_by) != by:
            raise SchemaMismatchError(
                f"the table is partitioned by {join_names(by) or 'no column'}, not by {join_names(partition_by)}; omit "
                "partition_by", path=self.name,
            )
        target = self._schema
        check_columns(schema, target, self.name)
        members = self._table.schema().fields
        columns = [
            (schema.get_field_index(field.name), *column_conversion(schema.field(field.name), field))
            for field in target
        ]
        fields = [field_with_id(field, member) for (_, field, _), member in zip(columns, members, strict=True)]
        file_schema = pa.schema(fields)
        check_added_columns(file_schema, options, self.name)

        def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
            arrays = [change(batch.column(index)) for index, _, change in columns]
            return pa.RecordBatch.from_arrays(arrays, schema=file_schema)

        describe = partial(
            _describe_file, schema=self._table.schema(), names=tuple(target.names), partitions=partitions
        )
        divide = partial(divide_rows, columns=[column for column in partitions if column is not None]) if by else None
        return FileLayout(file_schema, by, options, convert, describe, self._definition, divide=divide)

    def commit(
        self, layout: FileLayout, added: Sequence[NewFile], removed: Sequence[str] | Callable[[], Sequence[str]],
        data_change: bool, order: str | None = None,
    ) -> int:
        from pqext.tables.iceberg.commits import CommitFailure, commit_files, refresh

        self._check_definition(layout)
        entries = [self._data_file(new) for new in added]
        summary = {} if order is None else {_ORDER: order}
        for attempt in range(_ATTEMPTS):
            paths = list(removed() if callable(removed) else removed)
            files = {file.path: file for file in self._manifest_files()} if paths else {}
            if paths:
                check_unchanged(paths, {file.path: file for file in self.files()}, self.name)
            self.is_committing = True
            try:
                removed_files = [files[path].file for path in paths]
                commit_files(self._table, entries, removed_files, self.name, self._secrets, summary)
            except CommitFailure as error:
                self.is_committing = False
                refresh(self._table, self.name, self._secrets)
                self._check_definition(layout)
                if attempt == _ATTEMPTS - 1:
                    message = f"the commit failed: {error}; nothing was changed"
                    raise TableConflictError(message, path=self.name) from None
                time.sleep(random.random() * 0.1 * min(attempt + 1, 10))
            else:
                break
        self.is_committing = False
        return self.version or 0

    @property
    def _definition(self) -> tuple[str, int, int]:
        """Identity, schema and partition spec of the table."""
        return str(self._table.metadata.table_uuid), self._table.schema().schema_id, self._table.spec().spec_id

    def _check_definition(self, layout: FileLayout) -> None:
        if self._definition != layout.definition:
            raise TableConflictError(
                "another writer has changed the schema or partitions of the table; nothing was written; repeat the "
                "call", path=self.name,
            )

    def _data_file(self, new: NewFile) -> Any:
        from pyiceberg.typedef import Record

        metrics, values = new.entry
        spec = self._table.spec().spec_id
        return metrics.to_data_file(f"{self.root}/{new.file.name}", Record(*values), spec_id=spec)

    def _logged_paths(self) -> Iterator[str]:
        """Yield the paths of the files in all snapshots."""
        from pqext.tables.iceberg.manifests import read_files

        for snapshot in self._table.metadata.snapshots:
            data, deletes = read_files(snapshot, self._table.io, self.name)
            yield from (file.path for file in (*data, *deletes))

    def clusterings(self) -> Mapping[str, tuple[Any, str]]:
        summaries = {snapshot.snapshot_id: snapshot.summary for snapshot in self._table.snapshots()}
        orders = {
            id: summary.additional_properties.get(_ORDER) for id, summary in summaries.items() if summary is not None
        }
        recorded = ((file, orders.get(file.snapshot_id or 0)) for file in self._manifest_files())
        return {file.path: (file.snapshot_id, order) for file, order in recorded if order is not None}

    def is_committed(self, paths: Sequence[str]) -> bool:
        from pqext.tables.iceberg.commits import refresh

        try:
            refresh(self._table, self.name, self._secrets)
        except TableConflictError:  # the table was dropped
            return False
        new_paths = {f"{self.root}/{path}" for path in paths}
        return any(path in new_paths for path in self._logged_paths())

    def stored_files(self) -> Iterator[Leftover]:
        return stored_files(self.root, self._table.io, self.name)

    def find_leftovers(self, older_than: timedelta) -> list[Leftover]:
        from pqext.tables.iceberg.commits import refresh

        def references() -> Iterator[str]:
            refresh(self._table, self.name, self._secrets)
            return self._logged_paths()

        return find_leftovers(self.root, self._table.io, older_than, references, self.name)

    def describe(self) -> Mapping[str, Any]:
        version = self._table.format_version
        return {
            "format": "iceberg", "reader_version": version, "writer_version": version, "reader_features": [],
            "writer_features": [], "properties": dict(self._table.properties),
            "partition_by": [
                str(field.name) for field in self._table.spec().fields if str(field.transform) != "void"
            ],
        }


def _locate_file(io: Any, root: str, name: str) -> Any:
    return locate_file(io, f"{root}/{name}")


def _describe_file(
    file: WrittenFile, location: Any, *, schema: Any, names: Sequence[str],
    partitions: Sequence[PartitionColumn | None],
) -> NewFile:
    """Return a written file with its metrics and partition values."""
    from pqext.tables.iceberg.partition_values import read_partition

    values = read_partition(location, names, partitions)
    known_values = tuple(value for value, column in zip(values, partitions, strict=True) if column is not None)
    return NewFile(file, (iceberg_metrics(location, exact=True, schema=schema), values), known_values)
