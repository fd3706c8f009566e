"""Write to Delta tables: derive the layout of new files from the table's schema, and commit with ``deltalake``."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import InvalidValueError, SchemaMismatchError, UnsupportedError
from pqext.core.base.suggestions import join_names
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import source_name
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.dataset.writing.appending import drop_columns
from pqext.geo.types import type_of, unmark
from pqext.tables.backend import (
    CommitStateUnknownError,
    FileLayout,
    Leftover,
    NewFile,
    TableConflictError,
    TableFile,
    check_unchanged,
)
from pqext.tables.conversion import column_conversion
from pqext.tables.delta.leftovers import find_leftovers, logged_paths
from pqext.tables.delta.loading import (
    column_mapping_mode,
    data_paths,
    is_rejection,
    is_remote,
    library_options,
    load_table,
    locate_file,
    options_of,
    table_error,
)
from pqext.tables.delta.log_entries import CLUSTERED, add_action, describe_file, partition_texts
from pqext.tables.delta.log_statistics import VariantTexts, json_members
from pqext.tables.delta.protocol import check_writable
from pqext.tables.delta.schemas import PHYSICAL_NAME, arrow_schema, covering_columns
from pqext.tables.delta.snapshot import open_delta
from pqext.tables.delta.write_schemas import (
    check_columns,
    indexed_columns,
    physical_field,
    rename_options,
    struct_of_rows,
    with_coverings,
)
from pqext.tables.error_texts import error_reason
from pqext.tables.folders import data_files
from pqext.tables.table_view import FileView
from pqext.variant.shredding.choice import parse_shredding
from pqext.variant.shredding.schema import Untyped

if TYPE_CHECKING:
    from deltalake import DeltaTable

_ATTEMPTS = 50
_UNDECLARED = (
    "shredding needs the Delta table feature variantShredding, which deltalake can neither declare nor commit to; omit "
    "shredding= (files are still pruned by the paths' statistics in the log), or pass allow_undeclared_shredding=True: "
    "pqext and Spark's Parquet reader read the shredded files, and readers that check the feature reject them"
)

_FOLDER_TYPES = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date)


class DeltaWriter:
    """A version of a Delta table to which files can be added; see :class:`pqext.tables.backend.TableWriter`."""

    def __init__(self, source: Any, storage_options: Mapping[str, Any] | None) -> None:
        self._storage_options = options_of(source, storage_options)
        self._table: DeltaTable | None = None
        self._is_stale = False
        try:
            self._table = load_table(source, None, None, self._storage_options)
        except FileNotFoundError:
            uri = str(source)
        else:
            uri = self._table.table_uri
        self._source: DeltaTable | None = self._table if self._table is source else None
        parts = urlsplit(uri)
        if len(parts.scheme) > 1 and parts.scheme != "file":
            self.root, self._uri = uri.rstrip("/"), uri
        else:
            self.root = os.path.abspath(unquote(parts.path) if parts.scheme == "file" else uri)
            self._uri = Path(self.root).as_uri()
        self.name = f"delta:{redact_uri(uri)}"
        self.is_committing = False
        self.locate: Callable[[str], Any] = partial(locate_file, self.root, self._storage_options)

    @property
    def version(self) -> int | None:
        if self._is_stale:
            self._reload()
        return None if self._table is None else int(self._table.version())

    @property
    def _current(self) -> DeltaTable:
        if self._is_stale:
            self._reload()
        if self._table is None:
            raise FileNotFoundError(f"{self.name} is not a Delta table")
        return self._table

    @property
    def _struct(self) -> dict[str, Any]:
        struct: dict[str, Any] = json.loads(self._current.schema().to_json())
        return struct

    @property
    def _definition(self) -> tuple[Any, ...] | None:
        """Identity, properties, schema, partitions and protocol of the table; None if the table does not exist."""
        if self._table is None:
            return None
        metadata = self._table.metadata()
        protocol = self._table.protocol()
        features = [sorted(names or ()) for names in (protocol.reader_features, protocol.writer_features)]
        versions = (protocol.min_reader_version, protocol.min_writer_version)
        schema = json.loads(self._table.schema().to_json())  # the order of the metadata in the text is random
        return metadata.id, metadata.configuration, schema, metadata.partition_columns, versions, features

    @property
    def partitions(self) -> pa.Schema:
        schema = arrow_schema(self._struct)
        return pa.schema([schema.field(name) for name in self._current.metadata().partition_columns])

    def snapshot(self) -> TableSnapshot:
        return open_delta(self._current, None, None, self._storage_options)

    def paths(self, version: int | None) -> frozenset[str]:
        return frozenset() if version is None else data_paths(self._uri, version, self._storage_options, self.name)

    def files(self) -> list[TableFile]:
        snapshot = self.snapshot()
        actions = pa.table(self._current.get_add_actions(flatten=True))
        rows = actions["num_records"].to_pylist() if "num_records" in actions.column_names else [None] * len(actions)
        assert isinstance(snapshot.view, FileView)
        deleted = snapshot.view.deleted
        columns = zip(
            actions["path"].to_pylist(), snapshot.files, actions["size_bytes"].to_pylist(), rows, strict=True
        )
        return [
            TableFile(unquote(path), location, size, count, snapshot.values[name], name in deleted)
            for path, location, size, count in columns
            for name in [source_name(location)]
        ]

    def check(self, removes_rows: bool) -> None:
        check_writable(self._current, self._struct, self.name, removes_rows)
        for field in self.partitions:
            if not any(test(field.type) for test in _FOLDER_TYPES):
                raise UnsupportedError(
                    f"the partition column {field.name!r} has the type {field.type}, but pqext writes only text, "
                    "integers, booleans and dates to partition columns; write the table with Spark",
                    feature="partition columns of this type", path=self.name,
                )

    def check_removal(self, files: Sequence[TableFile]) -> None:
        path = next((file.path for file in files if file.has_deleted_rows), None)
        if path is not None:
            raise UnsupportedError(
                f"deltalake cannot remove {path}, because the file has a deletion vector; first run REORG TABLE ... "
                "APPLY (PURGE) in Spark", feature="removal of deletion vectors", path=self.name,
            )

    def layout(
        self, schema: pa.Schema, partition_by: Sequence[str], options: Mapping[str, Any],
        allow_undeclared_shredding: bool,
    ) -> FileLayout:
        shreds = any(not isinstance(parse_shredding(spec).schema, Untyped) for spec in options["shredding"].values())
        if shreds and not allow_undeclared_shredding:
            raise UnsupportedError(_UNDECLARED, feature="shredding in Delta tables", path=self.name)
        if options["encryption"] is not None:
            raise UnsupportedError(
                "Delta tables cannot contain encrypted files; omit encryption=", feature="encryption in Delta",
                path=self.name,
            )
        coverings = {} if self._table is None else covering_columns(self._struct)
        if coverings:  # boxes are computed again, because the boxes in the rows may belong to other geometries
            options = with_coverings(options, self._struct)
        rows = drop_columns(schema, coverings.values())
        annotated = options["geoparquet"] in (True, "1.1", "2.0")
        with_options = {*options["geometry"], *(schema.names if annotated else ())}
        if self._table is None:
            if unquote(self.root) != self.root:
                raise UnsupportedError(
                    "deltalake cannot open tables with a percent-encoded character in their path; choose another path",
                    feature="percent signs in paths of Delta tables", path=self.name,
                )
            by = tuple(partition_by)
            fields = struct_of_rows(rows, by, options)["fields"]
            struct: dict[str, Any] = {
                "type": "struct", "fields": sorted(fields, key=lambda member: _position(member["name"], schema.names)),
            }
        else:
            struct, by = self._struct, tuple(self._table.metadata().partition_columns)
            if partition_by and tuple(partition_by) != by:
                raise SchemaMismatchError(
                    f"the table is partitioned by {join_names(by) or 'no column'}, not by {join_names(partition_by)}; "
                    "omit partition_by", path=self.name,
                )
            check_columns(struct_of_rows(rows, by, options, arrow_schema(struct)), struct, self.name)
        return self._file_layout(schema, rows.names, struct, by, options, with_options)

    def _file_layout(
        self, schema: pa.Schema, stored: Sequence[str], struct: Mapping[str, Any], by: tuple[str, ...],
        options: Mapping[str, Any], annotated: set[str],
    ) -> FileLayout:
        target = arrow_schema(struct)
        members = {member["name"]: member for member in struct["fields"]}
        is_mapped = bool(column_mapping_mode(self._table))
        names = [name for name in target.names if name in stored]
        columns = []
        for name in names:
            field = target.field(name)
            if type_of(field) is not None and name not in annotated:
                field = unmark(field)
            columns.append((schema.get_field_index(name), *column_conversion(schema.field(name), field)))
        fields = [field for _, field, _ in columns]
        physical = {name: name for name in names}
        if is_mapped:
            fields = [physical_field(field, members[field.name]) for field in fields]
            physical = {name: members[name].get("metadata", {}).get(PHYSICAL_NAME, name) for name in names}
        file_schema = pa.schema(fields)

        texts = [name for name in by if name in names and pa.types.is_string(target.field(name).type)]

        def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
            for name in texts:
                if pc.any(pc.equal(batch.column(schema.get_field_index(name)), "")).as_py():
                    raise InvalidValueError(
                        "an empty string cannot be a partition value, because readers return null; replace the empty "
                        "strings", column=name,
                    )
            arrays = []
            for (index, _, change), field in zip(columns, file_schema, strict=True):
                array = change(batch.column(index))
                arrays.append(array if array.type == field.type else array.view(field.type))
            return pa.RecordBatch.from_arrays(arrays, schema=file_schema)

        configuration = {} if self._table is None else self._table.metadata().configuration
        indexed = indexed_columns(drop_columns(target, by), configuration, self.version, self.name)
        folders = tuple(physical[name] for name in by)
        describe = partial(
            describe_file, partition_by=folders, types=tuple(target.field(name).type for name in by),
            columns=tuple(physical.get(name, name) for name in indexed), covered=tuple(covering_columns(struct)),
        )
        new_schema = json.dumps(struct) if self._table is None else None
        return FileLayout(
            file_schema, folders, rename_options(options, physical), convert, describe, self._definition, new_schema
        )

    def commit(
        self, layout: FileLayout, added: Sequence[NewFile], removed: Sequence[str] | Callable[[], Sequence[str]],
        data_change: bool, order: str | None = None,
    ) -> int:
        clustering = None if order is None else (uuid.uuid4().hex, order)
        adds = [add_action(new.entry, data_change, clustering) for new in added]
        if layout.new_schema is not None:
            return self._create(layout.new_schema, adds, layout.partition_by)
        for attempt in range(_ATTEMPTS):
            try:
                self._check_definition(layout)
                paths = list(removed() if callable(removed) else removed)
                version = self._try_commit(adds, paths, data_change, is_last=attempt == _ATTEMPTS - 1)
            except TableConflictError:
                self._update_source()  # so that a repeated call applies to the current version
                raise
            if version is not None:
                self._update_source()
                return version
            time.sleep(random.random() * 0.1 * min(attempt, 10))
        raise AssertionError("unreachable")

    def _create(self, new_schema: str, adds: list[Any], partition_by: Sequence[str]) -> int:
        from deltalake import Schema
        from deltalake.transaction import create_table_with_add_actions

        if self._table is None:
            self.is_committing = True
            try:
                create_table_with_add_actions(
                    self._uri, Schema.from_json(new_schema), adds, partition_by=list(partition_by),
                    storage_options=library_options(self._storage_options),
                )
            except Exception as error:
                has_committed = self._has_committed(adds)
                if has_committed is None or (not has_committed and self._table is None):
                    self._check_outcome(error, has_committed)
                    message = f"deltalake cannot create the table: {error_reason(error, self._storage_options)}"
                    raise UnsupportedError(message, feature="creation of the table", path=self.name) from None
            else:
                has_committed = True
            self.is_committing = False
            if has_committed:
                self._is_stale = True
                return 0
        raise TableConflictError("another writer has created the table; repeat the call to append", path=self.name)

    def _has_committed(self, adds: Sequence[Any], after: int | None = None) -> bool | None:
        """Return whether the log contains the added files; None if the log cannot be read."""
        with suppress(Exception):
            self._reload()
            return self.is_committed([add.path for add in adds], after)
        return None

    def _check_outcome(self, error: Exception, has_committed: bool | None) -> None:
        """Raise ``CommitStateUnknownError`` if a commit to a store may have succeeded despite ``error``.

        A store may report that another writer was faster, although the first request of this writer had succeeded and
        a repeated request found its result.
        """
        from deltalake.exceptions import CommitFailedError, DeltaError

        if is_remote(self.root):
            is_unread = has_committed is None and isinstance(error, CommitFailedError)
            if is_unread or not is_rejection(error):
                raise CommitStateUnknownError(error_reason(error, self._storage_options), self.name) from None
        self.is_committing = False
        if not isinstance(error, DeltaError | OSError):
            raise error

    def _check_definition(self, layout: FileLayout) -> None:
        if self._definition != layout.definition:
            raise TableConflictError(
                "another writer has changed the schema or properties of the table; nothing was written; repeat the "
                "call", path=self.name,
            )

    def _try_commit(self, adds: list[Any], paths: list[str], data_change: bool, is_last: bool) -> int | None:
        """Try one commit and return the new version. If another writer committed first, reload and return None.

        deltalake can also repeat commits on later versions, but it does not detect that two commits remove the same
        file or that files were added to replaced rows, and it does not return the version of the commit.
        """
        from deltalake.exceptions import CommitFailedError
        from deltalake.transaction import CommitProperties, RemoveAction

        table = self._current
        now = int(time.time() * 1000)
        files = {file.path: file for file in self.files()} if paths else {}
        check_unchanged(paths, files, self.name)
        partitions = {path: partition_texts(files[path].partition) for path in paths}
        removes = [RemoveAction(path, data_change, now, files[path].size, partitions[path]) for path in paths]
        version = int(table.version())
        self.is_committing = True
        try:
            table.create_write_transaction(
                [*adds, *removes], mode="append", schema=table.schema(),
                partition_by=table.metadata().partition_columns,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except Exception as error:
            has_committed = self._has_committed(adds, version)
            if not has_committed:
                self._check_outcome(error, has_committed)
                if not isinstance(error, CommitFailedError):
                    raise table_error("the commit failed", error, self.name, self._storage_options) from None
                self._reload()
                if is_last or self.version == version:
                    reason = error_reason(error, self._storage_options)
                    raise TableConflictError(
                        f"the commit failed: {reason}; nothing was changed", path=self.name
                    ) from None
                return None
        self.is_committing = False
        self._is_stale = True  # loaded when it is used, because a failure would report the commit as failed
        return version + 1

    def _reload(self) -> None:
        """Load the current version of the table. If the table does not exist, ``_table`` remains None."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            self._table = DeltaTable(self._uri, storage_options=library_options(self._storage_options))
        except Exception as error:
            if self._table is None and isinstance(error, TableNotFoundError):
                return
            raise table_error("the table cannot be opened", error, self.name, self._storage_options) from None
        self._is_stale = False

    def _update_source(self) -> None:
        """Load the current version into the caller's ``DeltaTable``, as deltalake does after a commit.

        Errors are suppressed, because they would report the commit as failed.
        """
        if self._source is not None:
            with suppress(Exception):
                self._source.update_incremental()

    def clusterings(self) -> Mapping[str, tuple[Any, str]]:
        texts = VariantTexts(self._current.table_uri, self._current.version(), self._storage_options)
        [clusterings] = json_members([*texts.by_path.values()], {(CLUSTERED,): pa.list_(pa.string())})
        return {
            unquote(path): (clustering[0], clustering[1])
            for path, clustering in zip(texts.by_path, clusterings, strict=True)
            if clustering is not None and len(clustering) == 2
        }

    def is_committed(self, paths: Sequence[str], after: int | None = None) -> bool:
        if self._table is None:
            self._reload()
            if self._table is None:
                return False
        new_paths = set(paths)
        logged = logged_paths(self._current.table_uri, self._storage_options, after)
        return any(unquote(path) in new_paths for path in logged)

    def stored_files(self) -> Iterator[Leftover]:
        return data_files(self._uri, self._storage_options)

    def find_leftovers(self, older_than: timedelta) -> list[Leftover]:
        if "v2Checkpoint" in (self._current.protocol().reader_features or ()):
            raise UnsupportedError(
                "leftover files cannot be identified, because pqext does not read sidecar files of v2 checkpoints; "
                "use VACUUM in Spark", feature="leftovers with v2Checkpoint", path=self.name,
            )
        return find_leftovers(self._current.table_uri, older_than, self._storage_options)

    def describe(self) -> Mapping[str, Any]:
        protocol, metadata = self._current.protocol(), self._current.metadata()
        return {
            "format": "delta", "reader_version": protocol.min_reader_version,
            "writer_version": protocol.min_writer_version, "reader_features": sorted(protocol.reader_features or ()),
            "writer_features": sorted(protocol.writer_features or ()), "properties": dict(metadata.configuration),
            "partition_by": list(metadata.partition_columns),
        }


def _position(name: str, names: Sequence[str]) -> int:
    return names.index(name) if name in names else len(names)
