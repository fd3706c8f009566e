"""Locks for writers of local files, and search for temporary files of crashed writers.

Systems and file systems without locks do not exclude concurrent writers.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any
from zlib import crc32

from pqext.core.base.local_paths import expand_home, scheme_of


def lock_module() -> ModuleType | None:
    """Return the module that locks files; None if the system has no file locks."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def lock(file: io.FileIO) -> None:
    """Lock a file against other writers until it is closed, if its file system has locks.

    Raises ``BlockingIOError`` if another writer has locked it.
    """
    fcntl = lock_module()
    try:
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = "another writer is appending to or rewriting this file: try again later"
        raise BlockingIOError(errno.EAGAIN, message) from None
    except OSError:
        return  # the file system has no locks


def unlock(file: io.FileIO) -> None:
    """Release the lock, even if a forked child still has the file open."""
    fcntl = lock_module()
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)


@contextmanager
def exclude_appends(source: Any, dest: Any) -> Iterator[None]:
    """Lock the local file ``source`` against appends until the context exits, if ``dest`` is the same file.

    Raises ``BlockingIOError`` with the path if another writer has locked the file.
    """
    paths = [path for file in (source, dest) if (path := _local_path(file)) is not None and os.path.isfile(path)]
    if lock_module() is None or len(paths) < 2 or not os.path.samefile(*paths):
        yield
        return
    mode = "r+" if os.access(paths[0], os.W_OK) else "r"  # some file systems lock only writable files
    with io.FileIO(paths[0], mode) as file:
        try:
            lock(file)
        except BlockingIOError as error:
            raise BlockingIOError(error.errno, error.strerror, paths[0]) from None
        yield


def _local_path(file: Any) -> str | None:
    if not isinstance(file, str | os.PathLike):
        return None
    path = os.fsdecode(file)
    scheme = scheme_of(path)
    if scheme in ("file", "local"):
        from pqext.core.io.sources.locations import locate

        return str(locate(path))
    return expand_home(path) if scheme is None else None


def temporary_prefix(path: str) -> str:
    """Return the prefix of the names of temporary files that are written for ``path``."""
    return f".pqext-{crc32(os.fsencode(os.path.basename(path))):08x}"


def unfinished_files(path: str) -> list[str]:
    """Return the temporary files of ``path`` that crashed writers left next to it, the most recently modified first."""
    real = os.path.realpath(expand_home(path))
    with suppress(OSError):
        prefix = temporary_prefix(real)
        entries = [entry for entry in os.scandir(os.path.dirname(real)) if entry.name.startswith(prefix)]
        entries = [entry for entry in entries if entry.name.endswith(".tmp") and entry.is_file()]
        return [entry.path for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime, reverse=True)]
    return []


def mention_unfinished(error: FileNotFoundError, source: Any) -> FileNotFoundError:
    """Return ``error``, with a remedy if a crashed writer left a temporary file of ``source``."""
    files = unfinished_files(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else []
    if not files:
        return error
    message = f"{error.strerror}, but an interrupted writer left {files[0]}: recover its rows with `pqext recover`"
    return FileNotFoundError(error.errno, message, error.filename)
