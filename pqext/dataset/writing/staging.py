"""Staging areas, to which tasks write the files of a job before the job is committed."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from pqext.core.base.errors import UnsupportedError
from pqext.dataset.writing import commit

Token = Any
"""Value that identifies a staged file for the commit, in addition to its name. It can be pickled."""
FAILED = "failed"
"""File in a job's folder that informs its tasks of a permanent error in another task."""


class StagingArea(Protocol):
    """Interface of the staging area for the files of a job. It can be pickled."""

    def check(self) -> None:
        """Raise ``RuntimeError`` if the job was aborted."""

    def create(self, name: str) -> Any:
        """Return a sink for the file ``name``."""

    def finish(self, name: str, dest: Any) -> Token:
        """Retain a file until the commit, and return its token. ``dest`` is the closed sink from :meth:`create`."""

    def abandon(self, name: str, dest: Any) -> None:
        """Delete the unfinished file of the sink ``dest``. Errors are ignored in favour of the original error."""

    def discard(self, name: str, token: Token) -> None:
        """Delete the file with the ``token`` that :meth:`finish` returned. Errors are ignored."""

    def fail(self) -> None:
        """Record for the other tasks that the job has failed."""

    @property
    def has_failed(self) -> bool:
        """Whether another task has reported that the job failed."""


@dataclass(frozen=True)
class StagedFolder:
    """Staging area in a hidden folder next to the existing files; see :mod:`pqext.dataset.writing.commit`."""

    folder: str

    def check(self) -> None:
        if not Path(self.folder).is_dir():
            raise RuntimeError(f"the job that writes {Path(self.folder).parent} was aborted")

    def create(self, name: str) -> str:
        path = Path(self.folder)
        for part in name.split("/")[:-1]:
            path /= part
            try:
                path.mkdir(exist_ok=True)  # without parents, so that the folder of an aborted job is not created again
            except OSError as error:
                if error.errno != errno.ENAMETOOLONG:
                    raise
                raise _name_length_error(part) from None
        return str(Path(self.folder, name))

    def finish(self, name: str, dest: Any) -> Token:
        commit.flush(Path(dest))
        return None

    def abandon(self, name: str, dest: Any) -> None:
        with suppress(OSError):  # users must see the original error
            Path(dest).unlink(missing_ok=True)

    def discard(self, name: str, token: Token) -> None:
        self.abandon(name, Path(self.folder, name))

    def fail(self) -> None:
        Path(self.folder, FAILED).touch()

    @property
    def has_failed(self) -> bool:
        return Path(self.folder, FAILED).exists()


def _name_length_error(folder: str) -> UnsupportedError:
    name, _, value = folder.partition("=")
    return UnsupportedError(
        f"the partition value {value[:20]}... results in a folder name of {len(os.fsencode(folder))} bytes, which the "
        "file system does not support; shorten the value, or omit the column from partition_by",
        feature="partition values of this length", column=unquote(name),
    )
