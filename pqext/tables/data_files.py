"""Write the data files of a table into its folder, where readers do not see them before the commit."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pqext.core.base.progress import Steps
from pqext.dataset.writing import commit
from pqext.dataset.writing.part_files import Division, PartFiles, WrittenFile, check_division
from pqext.tables.backend import FileLayout, TableWriter

BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class TableFolder:
    """Staging area of :class:`PartFiles` that writes to the final paths, since only the log makes files visible."""

    table: TableWriter

    has_failed = False

    def check(self) -> None:
        """Do nothing, because a job has a single task."""

    def fail(self) -> None:
        """Do nothing, because a job has a single task."""

    def create(self, name: str) -> Any:
        location = self.table.locate(name)
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

    def discard(self, name: str, token: Any) -> None:
        self.abandon(name, self.table.locate(name))


class NewFiles:
    """Data files that one call writes: deleted when the context is left, unless the table contains them."""

    def __init__(self, folder: TableFolder) -> None:
        self._folder = folder
        self._job = uuid.uuid4().hex
        self._parts = 0
        self.files: list[WrittenFile] = []

    def write(
        self, layout: FileLayout, batches: Iterable[pa.RecordBatch], target_file_bytes: int | None, steps: Steps
    ) -> int:
        """Write the rows of ``batches`` to new files, and return their number."""
        division = Division(layout.partition_by, None, target_file_bytes)
        check_division(division, layout.schema)
        rows = 0
        name = f"part-{self._parts:05d}-{self._job}-0"
        self._parts += 1
        with PartFiles(self._folder, name, layout.schema, layout.options, division, True) as parts:
            for batch in batches:
                if batch.num_rows:
                    parts.write(layout.convert(batch))
                    rows += batch.num_rows
                    steps.advance(batch.num_rows)
            self.files += [staged.file for staged in parts.close()]
        return rows

    def discard(self) -> None:
        """Delete the files."""
        for file in self.files:
            self._folder.discard(file.name, None)
            location = self._folder.table.locate(file.name)
            if isinstance(location, str):
                with suppress(OSError):  # the folder contains other files
                    for folder in [*Path(location).parents][: file.name.count("/")]:
                        os.rmdir(folder)


@contextmanager
def new_files(table: TableWriter) -> Iterator[NewFiles]:
    """Context for the files of one commit. If it fails and the table does not contain the files, they are deleted.

    If it is unknown whether the table contains the files, they are retained: ``clean`` deletes them later.
    """
    files = NewFiles(TableFolder(table))
    try:
        yield files
    except BaseException:
        is_committed = True
        with suppress(Exception):
            is_committed = table.is_committed([file.name for file in files.files])
        if not is_committed:
            files.discard()
        raise
