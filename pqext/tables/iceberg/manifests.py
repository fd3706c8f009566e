"""Read the data and delete files of a snapshot from its manifests.

Spec: Apache Iceberg, "Manifests", "Sequence Number Inheritance". ``pyiceberg`` reads the fields of manifests that
format version 2 has; deletion vectors need the fields of version 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.table.snapshots import Snapshot

from pqext.core.base.errors import CorruptFileError, SourceError, UnsupportedError
from pqext.core.io.sources.store_errors import redact_uri
from pqext.tables.error_texts import error_reason

_SCHEMA = "avro.schema"
_FIELDS = {field.name: position for position, field in enumerate(DATA_FILE_TYPE[3].fields)}
"""Positions of the fields of a data file in format version 3."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """Data or delete file of a snapshot."""

    file: DataFile
    sequence_number: int
    snapshot_id: int | None
    """Id of the snapshot that added the file."""

    @property
    def path(self) -> str:
        """Location of the file, as recorded in the manifest."""
        return self.file.file_path

    @property
    def partition(self) -> tuple[int, tuple[Any, ...]]:
        """Id of the partition spec, and partition values."""
        record = self.file.partition
        return self.file.spec_id, tuple(record[position] for position in range(len(record)))

    @property
    def partition_key(self) -> tuple[int, tuple[Any, ...]]:
        """Key for comparing partitions. NaN equals NaN, and -0.0 differs from 0.0, as in Java."""
        spec, values = self.partition
        return spec, tuple(_float_key(value) if isinstance(value, float) else value for value in values)

    @property
    def referenced_file(self) -> str | None:
        """Location of the one data file to which a delete file applies; None if the manifest does not record it."""
        path: str | None = self.file[_FIELDS["referenced_data_file"]]
        return path

    @property
    def blob_range(self) -> tuple[int, int] | None:
        """Offset and size of a deletion vector in its file; None for other files."""
        offset, size = (self.file[_FIELDS[name]] for name in ("content_offset", "content_size_in_bytes"))
        return None if offset is None or size is None else (offset, size)


def _float_key(value: float) -> str:
    return "nan" if math.isnan(value) else value.hex()


def read_files(
    snapshot: Snapshot, io: FileIO, name: str, only_added: bool = False
) -> tuple[list[TableFile], list[TableFile]]:
    """Return the data files and the delete files of a snapshot of the table ``name``.

    With ``only_added``, the result contains only files that the snapshot itself adds.

    Raises:
        FileNotFoundError: If a manifest does not exist.
        SourceError: If the store cannot be reached or denies access.
        CorruptFileError: If a manifest cannot be read.
        UnsupportedError: If a file is encrypted or is not a Parquet file.
    """
    data: list[TableFile] = []
    deletes: list[TableFile] = []
    for manifest in _read(lambda: snapshot.manifests(io), snapshot.manifest_list, name):
        if only_added and manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        if manifest.key_metadata is not None:
            raise _encrypted(manifest.manifest_path, name)
        for entry in _read(lambda manifest=manifest: list(_entries(manifest, io)), manifest.manifest_path, name):
            if only_added and entry.snapshot_id not in (None, snapshot.snapshot_id):
                continue
            added_by = manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id
            file = TableFile(entry.data_file, entry.sequence_number or 0, added_by)
            _check(file, name)
            (data if file.file.content == DataFileContent.DATA else deletes).append(file)
    return data, deletes


def _read(read: Any, path: str, name: str) -> Any:
    try:
        return read()
    except FileNotFoundError:
        raise FileNotFoundError(f"{redact_uri(path)} does not exist, but {name} refers to it") from None
    except OSError as error:
        raise SourceError(f"cannot read {name}: {error_reason(error)}", path=redact_uri(path)) from None
    except Exception as error:  # the Avro reader raises errors of all types for corrupt bytes
        message = f"cannot read a manifest of {name}: {error_reason(error)}"
        raise CorruptFileError(message, path=redact_uri(path)) from None


def _entries(manifest: ManifestFile, io: FileIO) -> Iterator[ManifestEntry]:
    """Yield the live entries of a manifest. Missing values are inherited from the manifest."""
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path), MANIFEST_ENTRY_SCHEMAS[3], read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        for entry in _records(entries) if '"double"' in entries.header.meta[_SCHEMA] else entries:
            if entry.status == ManifestEntryStatus.DELETED:
                continue
            if entry.sequence_number is None:
                if entry.status != ManifestEntryStatus.ADDED and manifest.sequence_number:
                    raise ValueError(f"{entry.data_file.file_path} has no sequence number")
                entry.sequence_number = manifest.sequence_number
            entry.data_file.spec_id = manifest.partition_spec_id
            yield entry


def _records(file: AvroFile[ManifestEntry]) -> Iterator[ManifestEntry]:
    """Decode the records of a file in Python, because pyiceberg's compiled decoder rounds doubles to floats."""
    codec = file.header.compression_codec()
    while True:
        try:
            count = file.decoder.read_int()
        except EOFError:
            return
        block = file.decoder.read_bytes()
        decoder = StreamingBinaryDecoder(block if codec is None else codec.decompress(block))
        for _ in range(count):
            yield file.reader.read(decoder)
        if file.decoder.read(len(file.header.sync)) != file.header.sync:
            raise ValueError("a block does not end with the sync marker")


def _check(file: TableFile, name: str) -> None:
    if file.file.key_metadata is not None:
        raise _encrypted(file.path, name)
    is_vector = file.file.content == DataFileContent.POSITION_DELETES and file.file.file_format == FileFormat.PUFFIN
    if file.file.file_format != FileFormat.PARQUET and not is_vector:
        raise UnsupportedError(
            f"{name} has a file in the format {getattr(file.file.file_format, 'value', file.file.file_format)}; only "
            "Parquet files can be read",
            feature="Iceberg file formats", path=redact_uri(file.path),
        )


def _encrypted(path: str, name: str) -> UnsupportedError:
    return UnsupportedError(
        f"{name} has an encrypted file, but pqext cannot read keys from catalogs", feature="Iceberg encryption",
        path=redact_uri(path),
    )
