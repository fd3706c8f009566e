"""Iceberg tables for tests: written by pyiceberg, and manifests and metadata by hand for what it cannot write."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
)
from pyiceberg.table import StaticTable, Table
from pyiceberg.typedef import Record
from pyroaring import BitMap

PATH_ID, POSITION_ID = 2147483546, 2147483545
MAGIC = b"\xd1\xd3\x39\x64"


def new_catalog(folder: Path) -> SqlCatalog:
    """A catalog on SQLite with the namespace ``db``, whose tables are in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    catalog = SqlCatalog("local", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    return catalog


def with_ids(schema: pa.Schema, ids: Sequence[int]) -> pa.Schema:
    """``schema`` with field ids for pyarrow's writer."""
    return pa.schema([
        field.with_metadata({"PARQUET:field_id": str(id)}) for field, id in zip(schema, ids, strict=True)
    ])


def local(path: str) -> Path:
    """The path of a local file that a table states."""
    return Path(path.removeprefix("file://"))


class DeleteManifestWriter(ManifestWriterV2):
    """Writer of manifests of format version 2 or 3, of delete files unless ``is_data``."""

    format = 2
    is_data = False

    def content(self) -> ManifestContent:
        return ManifestContent.DATA if self.is_data else ManifestContent.DELETES

    @property
    def version(self) -> Any:
        return self.format

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "data" if self.is_data else "deletes"}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        schema: Any = self._with_partition(self.version)
        return AvroOutputFile(self._output_file, schema, "manifest_entry", schema, self._meta)


def commit(
    table: Table, files: Sequence[DataFile], *, format: int = 2, is_data: bool = False, spec_id: int | None = None,
    without_data: bool = False, metadata: Mapping[str, Any] | None = None,
) -> str:
    """Add a snapshot with delete files (or data files) to the metadata of a table, and return its new metadata file.

    With ``without_data`` earlier data files are removed. ``metadata`` replaces top-level keys of the metadata.
    """
    location = table.location()
    io = PyArrowFileIO()
    state = _state(table)
    state.update(metadata or {})
    state["format-version"] = format
    id, sequence = len(state.get("snapshots", [])) + 1000, state.get("last-sequence-number", 0) + 1
    spec = table.specs()[table.spec().spec_id if spec_id is None else spec_id]
    output = io.new_output(f"{location}/metadata/{uuid4()}.avro")
    writer = DeleteManifestWriter(spec, table.schema(), output, id, "null")
    writer.format, writer.is_data = format, is_data
    with writer:
        for file in files:
            entry = ManifestEntry.from_args(
                _table_format_version=format, status=ManifestEntryStatus.ADDED, snapshot_id=id, data_file=file
            )
            writer.add_entry(entry)
    manifests = [
        each for each in _manifests(table, io) if not without_data or each.content == ManifestContent.DELETES
    ]
    path = f"{location}/metadata/snap-{uuid4()}.avro"
    parent = table.metadata.current_snapshot_id
    with ManifestListWriterV2(io.new_output(path), id, parent, sequence, "null") as lists:
        lists.add_manifests([*manifests, writer.to_manifest_file()])
    time = state["last-updated-ms"] = state["last-updated-ms"] + 10
    state.setdefault("snapshots", []).append({
        "snapshot-id": id, "sequence-number": sequence, "timestamp-ms": time, "manifest-list": path,
        "summary": {"operation": "delete"}, "schema-id": state["current-schema-id"], "first-row-id": 0, "added-rows": 0,
        **({} if parent is None else {"parent-snapshot-id": parent}),
    })
    state.setdefault("snapshot-log", []).append({"snapshot-id": id, "timestamp-ms": time})
    state["refs"] = {"main": {"snapshot-id": id, "type": "branch"}}
    state["current-snapshot-id"], state["last-sequence-number"] = id, sequence
    state.setdefault("next-row-id", 0)
    target = local(f"{location}/metadata/{sequence:05}-{uuid4()}.metadata.json")
    target.write_text(json.dumps(state), "utf-8")
    return str(target)


def _state(table: Table) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(local(table.metadata_location).read_text("utf-8"))
    return state


def _manifests(table: Table, io: PyArrowFileIO) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    return [] if snapshot is None else snapshot.manifests(io)


def reopen(path: str) -> Table:
    """The table of a metadata file, as pyiceberg loads it."""
    return StaticTable.from_metadata(path)


def delete_file(table: Table, name: str, rows: pa.Table, *, partition: Sequence[Any] = (), **fields: Any) -> DataFile:
    """Write ``rows`` as a Parquet file of a table, and describe it as a delete file."""
    path = f"{table.location()}/data/{name}.parquet"
    local(path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, local(path))
    return describe(path, rows.num_rows, partition=partition, **fields)


def describe(
    path: str, rows: int, *, partition: Sequence[Any] = (), format: int = 2, file_format: str = "PARQUET", **fields: Any
) -> DataFile:
    """The manifest entry of a file."""
    return DataFile.from_args(
        _table_format_version=format, file_path=path, file_format=FileFormat(file_format), partition=Record(*partition),
        record_count=rows, file_size_in_bytes=local(path).stat().st_size, **fields,
    )


def position_deletes(
    table: Table, name: str, rows: Sequence[tuple[str, int]], *, partition: Sequence[Any] = (), **fields: Any
) -> DataFile:
    """Write a position delete file: pairs of a data file and a row number."""
    schema = with_ids(pa.schema([("file_path", pa.string()), ("pos", pa.int64())]), (PATH_ID, POSITION_ID))
    paths, numbers = [path for path, _ in rows], [number for _, number in rows]
    data = pa.table([paths, numbers], schema=schema)
    content = DataFileContent.POSITION_DELETES
    return delete_file(table, name, data, partition=partition, content=content, **fields)


def equality_deletes(
    table: Table, name: str, rows: pa.Table, ids: Sequence[int], *, partition: Sequence[Any] = (), **fields: Any
) -> DataFile:
    """Write an equality delete file whose columns have the field ids ``ids``."""
    data = rows.cast(with_ids(rows.schema, ids))
    content = DataFileContent.EQUALITY_DELETES
    return delete_file(table, name, data, partition=partition, content=content, equality_ids=list(ids), **fields)


def vector_blob(rows: Sequence[int]) -> bytes:
    """A deletion vector as a blob of type ``deletion-vector-v1``."""
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(row >> 32, []).append(row & 0xFFFFFFFF)
    vector = MAGIC + struct.pack("<Q", len(groups))
    for high, numbers in sorted(groups.items()):
        vector += struct.pack("<I", high) + BitMap(numbers).serialize()
    return struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))


def deletion_vectors(
    table: Table, name: str, rows: Mapping[str, Sequence[int]], *, partition: Sequence[Any] = ()
) -> list[DataFile]:
    """Write one Puffin file with a deletion vector for each data file."""
    path = f"{table.location()}/data/{name}.puffin"
    body, blobs, ranges = b"PFA1", [], {}
    for file, numbers in rows.items():
        blob = vector_blob(numbers)
        ranges[file] = len(body), len(blob)
        blobs.append({
            "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": len(body),
            "length": len(blob), "properties": {"referenced-data-file": file, "cardinality": str(len(numbers))},
        })
        body += blob
    footer = json.dumps({"blobs": blobs}).encode()
    local(path).parent.mkdir(parents=True, exist_ok=True)
    local(path).write_bytes(body + b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1")
    return [
        describe(
            path, len(rows[file]), partition=partition, format=3, file_format="PUFFIN", referenced_data_file=file,
            content=DataFileContent.POSITION_DELETES, content_offset=offset, content_size_in_bytes=size,
        )
        for file, (offset, size) in ranges.items()
    ]


def data_paths(table: Table) -> list[str]:
    """The data files of the current snapshot, in the order of their manifests."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    entries = [entry for each in snapshot.manifests(table.io) for entry in each.fetch_manifest_entry(table.io)]
    return [entry.data_file.file_path for entry in entries if entry.data_file.content == DataFileContent.DATA]
