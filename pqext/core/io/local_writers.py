"""Writers of a local file: locks that keep them apart, and unfinished files that a writer leaves when it dies.

Systems and file systems without such locks do not keep writers apart.
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

from pqext.core.base.local_paths import scheme_of, with_home


def locks() -> ModuleType | None:
    """What locks files; None where the system has nothing."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def lock(file: io.FileIO) -> None:
    """Keep other writers from the file until it is closed. Raises ``BlockingIOError`` where another one keeps it."""
    fcntl = locks()
    try:
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(errno.EAGAIN, "another writer is appending to this file, or rewrites it") from None
    except OSError:
        return  # a file system without locks


def unlock(file: io.FileIO) -> None:
    """Let others write, even while a forked child has the file open too."""
    fcntl = locks()
    with suppress(OSError):
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)


@contextmanager
def kept_from_others(source: Any, dest: Any) -> Iterator[None]:
    """Where ``dest`` is the local file ``source``, nobody appends to it while another file is made of it.

    Raises ``BlockingIOError`` with the path where somebody does already.
    """
    paths = [path for place in (source, dest) if (path := _local_path(place)) is not None and os.path.isfile(path)]
    if locks() is None or len(paths) < 2 or not os.path.samefile(*paths):
        yield
        return
    mode = "r+" if os.access(paths[0], os.W_OK) else "r"  # some file systems lock only what can be written
    with io.FileIO(paths[0], mode) as file:
        try:
            lock(file)
        except BlockingIOError as error:
            raise BlockingIOError(error.errno, error.strerror, paths[0]) from None
        yield


def _local_path(place: Any) -> str | None:
    if not isinstance(place, str | os.PathLike):
        return None
    path = os.fsdecode(place)
    scheme = scheme_of(path)
    if scheme in ("file", "local"):
        from pqext.core.io.sources.locations import locate

        return str(locate(path))
    return with_home(path) if scheme is None else None


def prefix_of(path: str) -> str:
    """How the names of unfinished files begin that are to be ``path``."""
    return f".pqext-{crc32(os.fsencode(os.path.basename(path))):08x}"


def unfinished(path: str) -> list[str]:
    """What writers that died have left next to ``path``, which it was to be; the last changed first."""
    real = os.path.realpath(with_home(path))
    with suppress(OSError):
        found = [entry for entry in os.scandir(os.path.dirname(real)) if entry.name.startswith(prefix_of(real))]
        found = [entry for entry in found if entry.name.endswith(".tmp") and entry.is_file()]
        return [entry.path for entry in sorted(found, key=lambda entry: entry.stat().st_mtime, reverse=True)]
    return []


def with_unfinished(error: FileNotFoundError, source: Any) -> FileNotFoundError:
    """The error, or one that names what a writer that died has left of the file ``source``."""
    left = unfinished(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else []
    if not left:
        return error
    told = f"{error.strerror}, but a writer that died has left {left[0]}: recover that"
    return FileNotFoundError(error.errno, told, error.filename)
