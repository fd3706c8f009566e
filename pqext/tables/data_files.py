"""Write data files into the folder of a table. Readers see the files only after the commit."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pqext.core.base.progress import Steps
from pqext.dataset.writing import commit
from pqext.dataset.writing.part_files import Division, PartFiles, check_division
from pqext.tables.backend import CommitStateUnknownError, FileLayout, NewFile, TableWriter
from pqext.tables.folders import data_files as list_folder

BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class TableFolder:
    """Staging area for :class:`PartFiles` that writes files to their final paths. Only the log makes files visible.

    ``locate`` is the function of :class:`TableWriter`.
    """

    locate: Callable[[str], Any]

    has_failed = False

    def check(self) -> None:
        """Do nothing, because the files of an aborted job are never visible."""

    def fail(self) -> None:
        """Do nothing, because the files of an aborted job are never visible."""

    def create(self, name: str) -> Any:
        location = self.locate(name)
        if isinstance(location, str):
            Path(location).parent.mkdir(parents=True, exist_ok=True)
        return location

    def finish(self, name: str, dest: Any) -> None:
        if isinstance(dest, str):
            commit.flush(Path(dest))
            commit.flush(Path(dest).parent)

    def abandon(self, name: str, dest: Any) -> None:
        with suppress(Exception):  # users must see the original error
            if isinstance(dest, str):
                Path(dest).unlink(missing_ok=True)
            else:
                dest.remove()

    def discard(self, name: str, token: Any = None) -> None:
        self.abandon(name, self.locate(name))

    def remove(self, names: Iterable[str]) -> None:
        """Delete files and empty partition folders. Never raises."""
        for name in names:
            self.discard(name)
            location = self.locate(name)
            if isinstance(location, str):
                with suppress(OSError):  # the folder contains other files
                    for folder in [*Path(location).parents][: name.count("/")]:
                        os.rmdir(folder)


@dataclass(frozen=True)
class JobFolder(TableFolder):
    """Folder for the files of a job with several processes. The names of the files contain ``job``.

    A local folder contains a hidden file until the commit or the abort of the job begins. Tasks that are still running
    then fail and delete their files. In a store, the files of these tasks remain until ``clean`` deletes them. Readers
    do not see them.
    """

    job: str
    created: tuple[str, ...] = ()
    """Local folders that the job created, the innermost first."""

    @property
    def _marker(self) -> Path | None:
        location = self.locate(f".pqext-{self.job}.tmp")
        return Path(location) if isinstance(location, str) else None

    @staticmethod
    def begin(locate: Callable[[str], Any]) -> JobFolder:
        """Start a job. Call this function before the tasks of the job run."""
        folder = JobFolder(locate, uuid.uuid4().hex)
        if (marker := folder._marker) is None:
            return folder
        missing = [str(path) for path in marker.parents if not path.exists()]
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
        return replace(folder, created=tuple(missing))

    def check(self) -> None:
        if (marker := self._marker) is not None and not marker.exists():
            raise RuntimeError(f"the job that writes to {marker.parent} has ended or was aborted; repeat the write")

    def finish(self, name: str, dest: Any) -> None:
        super().finish(name, dest)
        self.check()

    def end(self) -> bool:
        """Make tasks that still run fail. Return True on the first call for a local folder, otherwise False."""
        try:
            if (marker := self._marker) is not None:
                marker.unlink()
        except FileNotFoundError:
            return False
        return marker is not None

    def clean(self, open_table: Callable[[], TableWriter], committed: Iterable[str] = ()) -> None:
        """Delete the files of the job, except the ``committed`` files.

        ``open_table`` is called only if the folder is in a store. If the folder cannot be listed, the files remain.
        Never raises.
        """
        with suppress(Exception):
            root = self.locate("")
            stored = list_folder(Path(root).as_uri(), None) if isinstance(root, str) else open_table().stored_files()
            names = [file.path.replace(os.sep, "/") for file in stored]
            self.remove({name for name in names if self.job in name} - {*committed})

    def remove_folders(self) -> None:
        """Remove the empty folders that the job created. Never raises."""
        with suppress(OSError):
            for folder in self.created:
                os.rmdir(folder)


def write_files(
    folder: TableFolder, name: str, layout: FileLayout, division: Division, batches: Iterable[pa.RecordBatch],
    steps: Steps | None = None,
) -> list[NewFile]:
    """Write rows to new files with the name prefix ``name``. If writing fails, the new files are deleted."""
    check_division(division, layout.schema)
    with PartFiles(folder, name, layout.schema, layout.options, division, True) as parts:
        for batch in batches:
            if batch.num_rows:
                parts.write(layout.convert(batch))
                if steps is not None:
                    steps.advance(batch.num_rows)
        written = [staged.file for staged in parts.close()]
    try:
        return [layout.describe(file, folder.locate(file.name)) for file in written]
    except BaseException:
        for file in written:
            folder.discard(file.name)
        raise


class NewFiles:
    """Data files of one commit, in the order in which they were written."""

    def __init__(self, folder: TableFolder, files: Sequence[NewFile]) -> None:
        self._folder = folder
        self._job = uuid.uuid4().hex
        self._parts = 0
        self.files = [*files]

    def write(
        self, layout: FileLayout, batches: Iterable[pa.RecordBatch], target_file_bytes: int | None, steps: Steps
    ) -> int:
        """Write the rows of ``batches`` to new files, and return the number of rows."""
        division = layout.division(None, target_file_bytes)
        name = f"part-{self._parts:05d}-{self._job}-0"
        self._parts += 1
        files = write_files(self._folder, name, layout, division, batches, steps)
        self.files += files
        return sum(new.file.rows for new in files)


@contextmanager
def new_files(table: TableWriter, files: Sequence[NewFile] = ()) -> Iterator[NewFiles]:
    """Return a context that collects the files of one commit. ``files`` were written before.

    After an error, the files are deleted if the table does not contain them. If the outcome of the commit is unknown,
    the files remain, and ``clean`` deletes them later if the commit has failed.
    """
    folder = TableFolder(table.locate)
    new = NewFiles(folder, files)
    try:
        yield new
    except BaseException as error:
        names = [each.file.name for each in new.files]
        is_interrupted = table.is_committing and not isinstance(error, Exception)
        is_committed = True
        if not isinstance(error, CommitStateUnknownError) and not is_interrupted:
            with suppress(Exception):
                is_committed = table.is_committed(names)
        if not is_committed:
            folder.remove(names)
        raise
