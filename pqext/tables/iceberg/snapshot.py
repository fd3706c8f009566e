"""Open a snapshot of an Iceberg table. Files and schema are read from the metadata with ``pyiceberg``.

Spec: Apache Iceberg, "Scan Planning". ``pyiceberg`` cannot plan scans of tables with equality deletes, so this module
matches delete files with data files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError
from pqext.core.format.predicate import Bounds
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import source_name
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.iceberg.loading import load_table
from pqext.tables.log_statistics import LogStatistics
from pqext.tables.renaming import Renaming

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from pqext.tables.iceberg.deletes import DeletedRows
    from pqext.tables.iceberg.log_statistics import Column, IcebergLogStatistics
    from pqext.tables.iceberg.manifests import TableFile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LISTED = 5
"""Number of snapshots that error messages list."""


def open_iceberg(
    source: Any, version: int | None, timestamp: datetime | None, storage_options: Mapping[str, Any] | None
) -> TableSnapshot:
    """Open a snapshot of an Iceberg table: by id ``version``, by ``timestamp``, or by default the current snapshot.

    For ``source`` and errors, see :func:`pqext.tables.iceberg.loading.load_table`. Raises ``FileNotFoundError`` if
    the snapshot does not exist, and ``ValueError`` if ``version`` cannot be the id of a snapshot.
    """
    table, variants = load_table(source, storage_options)
    from pqext.tables.iceberg.manifests import read_files  # imports pyiceberg

    name = f"iceberg:{table_name(table)}"
    snapshot, schema = find_snapshot(table, version, timestamp, name)
    data, deletes = ([], []) if snapshot is None else read_files(snapshot, table.io, name)
    return table_snapshot(table, variants, schema, data, deletes)


def table_snapshot(
    table: Table, variants: Collection[int], schema: Schema, data: list[TableFile], deletes: list[TableFile]
) -> TableSnapshot:
    """Return a snapshot of the files ``data`` for scans, without the rows that the files ``deletes`` delete."""
    from pqext.tables.iceberg.file_view import IcebergFileView
    from pqext.tables.iceberg.schemas import arrow_schema, defaults_of, fields_by_id, fields_by_name, paths_by_id

    name = f"iceberg:{table_name(table)}"
    files = tuple(locate_file(table.io, file.path) for file in data)
    names = [*map(source_name, files)]
    planning = _Planning(table, schema, variants, name)
    fields = schema.as_struct()
    mapping = table.name_mapping()
    result = arrow_schema(schema, variants)
    constants = {file: values for file, values in zip(names, map(planning.constants, data), strict=True) if values}
    statistics = {file: planning.statistics(each) for file, each in zip(names, data, strict=True)}
    return TableSnapshot(
        name, result, files, constants=pa.schema([]), values={},
        statistics=LogStatistics(result, statistics),
        view=IcebergFileView(
            name, Renaming(fields_by_id(fields, variants), by_id=True),
            None if mapping is None else Renaming(fields_by_name(fields, mapping, variants), by_id=False),
            constants, defaults_of({field.name: field for field in fields.fields}, variants),
            paths_by_id(fields, variants), planning.deleted_rows(names, data, deletes),
        ),
    )


def table_name(table: Table) -> str:
    name = table.name()
    return redact_uri(name[-1]) if name[0] == "static-table" else ".".join(name)


def find_snapshot(
    table: Table, version: int | None, timestamp: datetime | None, name: str
) -> tuple[Snapshot | None, Schema]:
    """Return a snapshot and its schema. The current snapshot is None if the table has no snapshots."""
    if version is None and timestamp is None:
        current = table.current_snapshot()
        if current is None and table.metadata.current_snapshot_id not in (None, -1):
            raise CorruptFileError(f"the current snapshot of {name} is missing from its metadata")
        return current, table.schema()
    if version is not None:
        snapshot, request = table.snapshot_by_id(version), f"snapshot {version}"
    else:
        assert timestamp is not None
        milliseconds = (timestamp - _EPOCH) // timedelta(milliseconds=1)
        snapshot, request = table.snapshot_as_of_timestamp(milliseconds), f"snapshot at {timestamp}"
    if snapshot is None:
        message = f"{name} has no {request}; {list_snapshots(table)}"
        raise FileNotFoundError(message) if version is None or 0 <= version < 1 << 63 else ValueError(message)
    schema = None if snapshot.schema_id is None else table.schemas().get(snapshot.schema_id)
    return snapshot, table.schema() if schema is None else schema


def list_snapshots(table: Table) -> str:
    """Return a phrase that lists the last snapshots, for error messages."""
    snapshots = table.metadata.snapshots
    if not snapshots:
        return "it has no snapshots"
    items = [
        f"{each.snapshot_id} ({datetime.fromtimestamp(each.timestamp_ms // 1000, UTC):%Y-%m-%d %H:%M:%SZ})"
        for each in snapshots[-_LISTED:]
    ]
    return f"its {'snapshots' if len(items) == len(snapshots) else 'last snapshots'} are {', '.join(items)}"


def locate_file(io: FileIO, path: str) -> Any:
    """Return the location of a table's file. Files in stores are opened with the settings of ``io``."""
    for prefix in ("file://", "file:"):
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    if "://" not in path:
        return path
    scheme, _, rest = path.partition("://")
    if hasattr(io, "fs_by_scheme"):
        return locate(rest, io.fs_by_scheme(scheme, rest.partition("/")[0]))
    return locate(path, io.get_fs(scheme)) if hasattr(io, "get_fs") else locate(path)


class _Planning:
    """Partition values, statistics and deleted rows of data files, derived from table metadata and manifests."""

    def __init__(self, table: Table, schema: Schema, variants: Collection[int], name: str) -> None:
        from pqext.tables.iceberg.log_statistics import Column
        from pqext.tables.iceberg.schemas import iter_fields

        self._table, self._schema, self._variants, self._name = table, schema, variants, name
        self._specs = table.specs()
        fields = dict(iter_fields(schema.as_struct(), variants))
        self._columns: dict[tuple[str, ...], Column] = {
            path: Column(field.field_id, str(field.field_type))
            for path, field in fields.items()
            if field.field_type.is_primitive or field.field_id in variants
        }
        self._types = {column.id: column.type for column in self._columns.values()}
        self._names = {field.field_id: path[0] for path, field in fields.items() if len(path) == 1}

    def _partition(self, file: TableFile) -> list[tuple[int, str, Any]]:
        """Return the source field id, the transform and the value of each partition field of a file."""
        spec_id, values = file.partition
        spec = self._specs.get(spec_id)
        if spec is None or len(values) < len(spec.fields):
            raise CorruptFileError(
                f"{self._name} has a file with the unknown partition spec {spec_id}", path=redact_uri(file.path)
            )
        return [
            (field.source_id, str(field.transform), value) for field, value in zip(spec.fields, values, strict=False)
        ]

    def constants(self, file: TableFile) -> dict[str, pa.Scalar]:
        """Return the values of the identity partitions of a file, by column name."""
        return {
            self._names[id]: value for id, value in self._identity_values(file).items() if id in self._names
        }

    def _identity_values(self, file: TableFile) -> dict[int, pa.Scalar]:
        from pqext.tables.iceberg.schemas import arrow_type, scalar

        return {
            id: scalar(value, arrow_type(self._schema.find_field(id)))
            for id, transform, value in self._partition(file)
            if transform == "identity" and value is not None and id in self._types
        }

    def statistics(self, file: TableFile) -> IcebergLogStatistics:
        """Return the statistics of a data file."""
        from pqext.tables.iceberg.log_statistics import IcebergLogStatistics
        from pqext.tables.iceberg.partitions import Bucket, bucket, partition_bounds

        entry, bounds, buckets = file.file, dict[int, Bounds](), dict[int, list[Bucket]]()
        for id, transform, value in self._partition(file):
            if id not in self._types:
                continue
            if (own_bucket := bucket(transform, self._types[id], value)) is not None:
                buckets.setdefault(id, []).append(own_bucket)
            if id not in bounds or bounds[id].minimum is None:
                own_bounds = partition_bounds(transform, self._types[id], value, entry.record_count)
                if own_bounds is not None:
                    bounds[id] = own_bounds
        return IcebergLogStatistics(
            self._columns, entry.record_count, entry.value_counts or {}, entry.null_value_counts or {},
            entry.nan_value_counts or {}, entry.lower_bounds or {}, entry.upper_bounds or {}, bounds,
            buckets,
        )

    def deleted_rows(self, names: list[str], data: list[TableFile], deletes: list[TableFile]) -> DeletedRows:
        """Return the deleted rows of the data files. The delete files are read when a data file is opened."""
        from pqext.tables.iceberg.delete_index import DeleteFile, DeleteIndex
        from pqext.tables.iceberg.deletes import DeletedRows
        from pqext.tables.iceberg.schemas import scalar

        unpartitioned = {
            id for id, spec in self._specs.items() if all(str(field.transform) == "void" for field in spec.fields)
        }
        index = DeleteIndex.build(deletes, unpartitioned, self._name)
        matches_by_name: dict[str, list[TableFile]] = {}
        files: dict[str, list[DeleteFile]] = {}
        paths: dict[str, str] = {}
        types: dict[int, pa.DataType] = {}
        values: dict[str, dict[int, pa.Scalar]] = {}
        for name, file in zip(names, data, strict=True):
            matches = index.files_for(file)
            if matches_by_name.setdefault(name, matches) != matches:
                raise CorruptFileError(f"{self._name} lists a file twice, with different delete files", path=name)
            if not matches:
                continue
            paths[name] = file.path
            files[name] = [
                DeleteFile(
                    locate_file(self._table.io, each.path), tuple(sorted(each.file.equality_ids or ())), each.blob_range
                )
                for each in matches
            ]
            ids = {id for each in files[name] for id in each.equality_ids}
            for id in ids - types.keys():
                types[id] = self._equality_type(id)
            values[name] = self._identity_values(file)
            for id in ids - values[name].keys():
                default = self._field(id).initial_default
                if default is not None:
                    values[name][id] = scalar(default, types[id])
        return DeletedRows(files, paths, types, values)

    def _field(self, id: int) -> Any:
        """Return the latest definition of a field, from an earlier schema if the field was dropped."""
        for schema in (self._schema, *sorted(self._table.metadata.schemas, key=lambda each: -each.schema_id)):
            try:
                return schema.find_field(id)
            except ValueError:
                continue
        raise CorruptFileError(f"{self._name} has equality deletes by field {id}, which none of its schemas contains")

    def _equality_type(self, id: int) -> pa.DataType:
        from pqext.tables.iceberg.schemas import arrow_type

        return arrow_type(self._field(id))
