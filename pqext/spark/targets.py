"""The folder that a job writes into, as its driver sees it: on a file system, or in an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pqext.core.local_paths import scheme_of
from pqext.dataset.files.notes import read_note
from pqext.spark import commit
from pqext.spark.files import local_path
from pqext.spark.ingest_notes import noted
from pqext.spark.part_files import Staging
from pqext.spark.sink import check_target
from pqext.spark.staging import Staged, StagedFolder


class Target(Protocol):
    """A folder whose files become visible together, when a job is committed."""

    path: str

    def clean(self) -> object:
        """Finish or remove what jobs left that were killed."""

    def ingested(self) -> set[tuple[str, str]]:
        """The names and stamps of the files that the rows come from, as far as jobs noted them."""

    def check(self, overwrite: bool, empty: Callable[[], bytes], partition_by: tuple[str, ...]) -> None:
        """Raise ``ValueError`` when files like ``empty`` cannot be written here."""

    def begin(self, job: str) -> Staged:
        """Make the place where files of a job wait."""

    def put(self, name: str, data: bytes) -> None:
        """Let a small file of the driver wait too."""

    @property
    def has_files(self) -> bool:
        """Are there Parquet files?"""

    def commit(self, files: Sequence[Staging], overwrite: bool) -> None:
        """Make the files visible, and those that were put, in place of the others when overwriting."""

    def abort(self) -> None:
        """Remove what the job left."""


class FolderTarget:
    """A folder of a file system that driver and executors share; see :mod:`pqext.spark.commit`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = Path(path)
        self._job = ""
        self._put: list[str] = []

    def clean(self) -> None:
        if self._folder.is_dir():
            commit.clean(self._folder)

    def ingested(self) -> set[tuple[str, str]]:
        return {one for log in commit.logs(self._folder) for one in noted(read_note(str(log)), str(log))}

    def check(self, overwrite: bool, empty: Callable[[], bytes], partition_by: tuple[str, ...]) -> None:
        check_target(self._folder, overwrite, empty, partition_by)

    def begin(self, job: str) -> Staged:
        self._job = job
        return StagedFolder(str(commit.begin(self._folder, job, os.getpid())))

    def put(self, name: str, data: bytes) -> None:
        place = self._folder / f"{commit.TEMPORARY}{self._job}" / name
        place.write_bytes(data)
        commit.flush(place)
        self._put.append(name)

    @property
    def has_files(self) -> bool:
        return any(self._folder.glob("*.parquet"))

    def commit(self, files: Sequence[Staging], overwrite: bool) -> None:
        names = [one.file.name for one in files]
        commit.commit(self._folder, self._job, [*names, *self._put], overwrite=overwrite)

    def abort(self) -> None:
        commit.abort(self._folder, self._job)


def target_of(path: str, storage_options: Mapping[str, Any] | None) -> Target:
    """Where ``path`` or a URL leads. Raises ``UnsupportedError`` for a store that jobs cannot be committed to."""
    if scheme_of(path) in ("s3", "s3a"):
        from pqext.spark.store_target import StoreTarget

        return StoreTarget(path, storage_options)
    return FolderTarget(str(Path(local_path(path)).absolute()))
