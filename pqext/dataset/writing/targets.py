"""Target folders of jobs, used by the driver: folders on a file system or in an object store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import check_path, check_target, scheme_of
from pqext.core.io.table_formats import TableGuard, writing
from pqext.dataset.files import manifests
from pqext.dataset.files.folders import list_files
from pqext.dataset.files.manifests import read_manifest
from pqext.dataset.writing import commit
from pqext.dataset.writing.appending import Compare
from pqext.dataset.writing.commit import ABANDONED_AFTER, CleanupResult
from pqext.dataset.writing.ingest_records import Batch, IngestRecord, parse_ingest_record
from pqext.dataset.writing.part_files import StagedFile, null_folder
from pqext.dataset.writing.staging import StagedFolder, StagingArea


class Target(Protocol):
    """Interface of a target folder. The new files of a job become visible together when the job is committed."""

    path: str

    def clean(self, older_than: timedelta = ABANDONED_AFTER) -> CleanupResult:
        """Complete interrupted commits, and remove the files of uncommitted jobs that are older than ``older_than``."""

    def ingest_records(self, exclude: Collection[str] = ()) -> dict[str, IngestRecord]:
        """Return the records of ingested files by the file name of the record, without the names in ``exclude``."""

    def check_no_table(self) -> None:
        """Raise ``TableFormatError`` if the folder is at or within a Delta, Iceberg or Hudi table."""

    def check(self, overwrite: bool, compare: Compare) -> None:
        """Raise ``ValueError`` if files cannot be written to the folder, or if ``compare`` rejects existing files."""

    def begin(self, job: str, owner: int | None = None) -> StagingArea:
        """Create the staging area of a job that the process ``owner`` runs, by default Spark's driver."""

    def join(self, job: str) -> StagingArea:
        """Return the staging area of a job, and create it if it does not exist. Tasks call this method."""

    def put(self, name: str, data: bytes) -> None:
        """Stage a small file of the driver for the commit."""

    @property
    def has_files(self) -> bool:
        """Whether the folder contains Parquet files."""

    def has_batch(self, batch: Batch) -> bool | None:
        """Return whether a batch of a stream is committed; None if no batch of the same query is committed."""

    def commit(
        self, files: Sequence[StagedFile], overwrite: bool, folders: Collection[str] | None = None,
        batch: Batch | None = None, check: Callable[[], None] | None = None,
    ) -> None:
        """Make the job's files visible. If ``overwrite``, remove the existing files.

        With ``folders``, only files in these partitions are replaced. Nothing happens if a ``batch`` of a stream is
        already committed. ``check`` is called before the commit, while no other job can commit unnoticed; if it raises
        an exception, nothing is changed.
        """

    def abort(self) -> None:
        """Delete the files of the uncommitted job."""


class FolderTarget:
    """Target folder on a file system that driver and executors share; see :mod:`pqext.dataset.writing.commit`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = Path(path)
        self._job = ""
        self._put: list[str] = []

    def clean(self, older_than: timedelta = ABANDONED_AFTER) -> CleanupResult:
        return commit.clean(self._folder, older_than=older_than) if self._folder.is_dir() else CleanupResult((), ())

    def ingest_records(self, exclude: Collection[str] = ()) -> dict[str, IngestRecord]:
        result = {}
        for log in commit.ingest_records(self._folder):
            if log.name not in exclude:
                with suppress(FileNotFoundError):  # an overwrite has removed it in the meantime
                    result[log.name] = parse_ingest_record(read_manifest(str(log)), str(log))
        return result

    def check_no_table(self) -> None:
        with writing():
            TableGuard().check_target(self.path)

    def check(self, overwrite: bool, compare: Compare) -> None:
        self.check_no_table()
        with writing():  # errors about tables below the folder
            check_folder(self._folder, overwrite, compare)

    def begin(self, job: str, owner: int | None = None) -> StagingArea:
        self._job, self._put = job, []
        return StagedFolder(str(commit.begin(self._folder, job, owner)))

    def join(self, job: str) -> StagingArea:
        self._job, self._put = job, []
        folder = commit.staging_folder(self._folder, job)
        folder.mkdir(parents=True, exist_ok=True)
        return StagedFolder(str(folder))

    def put(self, name: str, data: bytes) -> None:
        place = Path(StagedFolder(str(commit.staging_folder(self._folder, self._job))).create(name))
        place.write_bytes(data)
        commit.flush(place)
        self._put.append(name)

    @property
    def has_files(self) -> bool:
        with writing():
            return self._folder.is_dir() and bool(list_files(self.path))

    def has_batch(self, batch: Batch) -> bool | None:
        record = self._folder / batch.name
        return batch.is_in(read_manifest(str(record)), str(record)) if record.exists() else None

    def commit(
        self, files: Sequence[StagedFile], overwrite: bool, folders: Collection[str] | None = None,
        batch: Batch | None = None, check: Callable[[], None] | None = None,
    ) -> None:
        if batch is not None:
            self.put(batch.name, batch.dump())
        commit.commit(
            self._folder, self._job, [*(file.file.name for file in files), *self._put], overwrite=overwrite,
            folders=folders, is_done=None if batch is None else lambda: bool(self.has_batch(batch)), check=check,
        )

    def abort(self) -> None:
        commit.abort(self._folder, self._job)


def check_empty(target: Target) -> None:
    """Raise ``FileExistsError`` if the target contains files."""
    if target.has_files:
        message = 'the folder contains files: pass mode="append", "overwrite" or "ignore"'
        raise FileExistsError(errno.EEXIST, message, target.path)


def put_empty(target: Target, job: str, partition_by: Sequence[str], data: bytes) -> None:
    """Stage a file without rows in the partition of nulls, so that the schema of empty data is stored."""
    target.put(f"{null_folder(partition_by)}part-00000-{job}-empty.parquet", data)


def check_folder(target: Path, overwrite: bool, compare: Compare) -> None:
    """Raise ``ValueError`` if files cannot be written to a folder, or if ``compare`` rejects the existing files.

    Raises ``UnsupportedError`` if ``target`` or one of its parents is a file.
    """
    there = next((path for path in (target, *target.parents) if os.path.lexists(path)), None)
    if there is not None and not there.exists():
        raise UnsupportedError(
            f"the path is a symbolic link to {os.readlink(there)!r}, which does not exist; create this folder, or "
            "remove the link", feature="folders that are files", path=str(there),
        )
    if there is not None and not there.is_dir():
        raise UnsupportedError(
            "the path is an existing file, not a folder; remove the file, or save to another folder",
            feature="folders that are files", path=str(there),
        )
    if (target / manifests.SINK_LOG).is_dir():
        raise ValueError(
            f"{target} belongs to a streaming sink of Spark; readers would ignore the new files, because they are not "
            f"in the log {manifests.SINK_LOG}; save to another folder"
        )
    if target.is_dir():
        if overwrite:
            commit.replaceable_files(target)
        elif present := list_files(str(target)):
            compare(str(target), str(target), present)


def open_target(path: str, storage_options: Mapping[str, Any] | None) -> Target:
    """Return the target at an absolute local path, or at the URL of a store.

    Raises ``UnsupportedError`` if the store cannot make files visible together.
    """
    if scheme_of(path) is not None:
        from pqext.dataset.writing.store_target import StoreTarget

        return StoreTarget(path, storage_options)
    check_target(path)
    check_path(path)
    return FolderTarget(str(Path(path).absolute()))
