"""Write files to a path or URL, atomically, or to a binary file object."""

from __future__ import annotations

import errno
import io
import os
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pqext.core.base.local_paths import check_target, expand_home, scheme_of
from pqext.core.io.local_writers import lock, temporary_prefix, unlock
from pqext.core.io.sources.store import BufferedUpload, Upload

if TYPE_CHECKING:
    from pqext.core.io.sources.store import Location

_VECTOR_BUFFERS = 512
"""Number of buffers per ``writev`` call. All systems accept at least this number, and most accept 1,024."""
_BUFFER_BYTES = 1 << 16
"""Maximum size up to which small writes are buffered."""


_MANY = 8
_SMALL = 1 << 12
"""Average buffer size below which buffers are joined, since this is faster than writing them individually."""


def _join_small(buffers: Sequence[Any]) -> Sequence[Any]:
    size = sum(map(len, buffers))
    return [b"".join(buffers)] if size < _SMALL * len(buffers) else buffers


class Sink:
    """Append-only destination of a file. ``commit`` publishes the file at ``path``, and ``abort`` removes it.

    As a context manager it commits, or aborts if an error occurs. A replaced file keeps its permissions, and a link to
    it remains a link.

    Args:
        dest: Path, URL, filesystem path or binary file object.
        filesystem: See :func:`pqext.core.io.sources.locations.locate`.
        storage_options: See :func:`pqext.core.io.sources.locations.locate`.
        durable: Sync a local file and its folder to disk before ``commit`` returns.
        append: Append to an existing local file. ``abort`` truncates it to its previous size.
        check: Called with the path of a local file before anything is created.

    Raises:
        OSError: With the path as passed, if it cannot be written, for example because the disk is full.
        BlockingIOError: If another writer is appending to the file.
        SourceError: If a store does not accept the file.
        ValueError: If the path is a device or pipe.
    """

    def __init__(
        self, dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, *,
        durable: bool = False, append: bool = False, check: Callable[[str], None] | None = None,
    ) -> None:
        self.offset = 0
        """Number of bytes written so far."""
        self._dest: _NewFile | _Stream | Upload
        if hasattr(dest, "write"):
            if append:
                raise TypeError("append needs a path, not a file object")
            if durable:
                raise ValueError("durable needs a path: a file object cannot be synced to disk")
            if hasattr(dest, "seekable") and dest.seekable() and dest.tell():
                raise ValueError("the file object is not at its start; a Parquet file must begin at offset 0")
            self._dest = _Stream(dest)
            return
        if append:
            check_append_target(dest)
        location = _locate(dest, filesystem, storage_options)
        if not isinstance(location, str):
            if append:
                raise ValueError(_NO_APPEND)
            self._dest = BufferedUpload(location.create(), location.invalidate)
            return
        path = location
        if not path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if check is not None:
            check(path)
        if os.path.isdir(path):
            advice = f"{os.strerror(errno.EISDIR)}: use pqext.write_dataset to write into a folder"
            raise IsADirectoryError(errno.EISDIR, advice, path)
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, f"the folder {folder!r} does not exist: create it first", path)
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError(f"{path} is not a regular file and cannot be replaced: open it and pass the file object")
        if append and os.path.exists(path):
            self._dest = appended = _AppendedFile(path, durable)
            self.offset = appended.size
            return
        self._dest = _NewFile(path, durable, is_new=append)

    @property
    def path(self) -> str | None:
        """Path of the destination; None for a file object."""
        return self._dest.path

    def write(self, data: Any) -> None:
        """Append ``data``."""
        self.write_all([data])

    def write_all(self, buffers: Sequence[Any]) -> None:
        """Append all ``buffers``, with few system calls for local files."""
        if len(buffers) > _MANY:
            buffers = _join_small(buffers)
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        self.offset += sum(map(len, views))
        self._dest.write(views)

    def flush(self) -> None:
        """Pass all bytes to the operating system, and sync them to disk if the file is durable."""
        if isinstance(self._dest, _NewFile | _Stream):
            self._dest.flush()

    def retain(self) -> None:
        """Retain the unfinished file until ``abort`` removes it, even after the process ends."""
        if isinstance(self._dest, _NewFile) and not isinstance(self._dest, _AppendedFile):
            self._dest.retain()

    def abandon(self) -> str | None:
        """Stop writing, but retain the unfinished file. Return its path, or None if no new file was created."""
        if isinstance(self._dest, _NewFile) and not isinstance(self._dest, _AppendedFile):
            return self._dest.abandon()
        self.abort()
        return None

    @property
    def is_retained(self) -> bool:
        """Whether the unfinished file is retained until ``abort`` removes it."""
        return isinstance(self._dest, _NewFile) and self._dest.is_retained

    def commit(self) -> None:
        """Publish the complete file. If that fails, remove the unfinished file unless it is retained."""
        try:
            self._dest.commit()
        except BaseException:
            if not self.is_retained:
                self.abort()
            raise

    def abort(self) -> None:
        """Discard the written bytes. A previous file at the path is unchanged. Never raises, so that errors are not
        masked.
        """
        self._dest.abort()

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.abort()


def is_in_store(dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Return whether ``dest`` is in an object store, where a file becomes visible only when it is complete."""
    return not hasattr(dest, "write") and not isinstance(_locate(dest, filesystem, storage_options), str)


def check_append_target(dest: Any) -> None:
    """Raise ``ValueError`` if ``dest`` is a URL of a store, where files cannot be appended to."""
    scheme = scheme_of(os.fsdecode(dest)) if isinstance(dest, str | os.PathLike) else None
    if scheme not in (None, "file", "local"):
        raise ValueError(_NO_APPEND)


_NO_APPEND = (
    "append needs a local file, since stores replace complete files: write the rows to another file in the same "
    "folder, which pqext.scan reads together with the first"
)


def _locate(dest: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> str | Location:
    """Return the local path, or the location in a store. Raises ``ValueError`` for an empty path."""
    check_target(dest)
    is_path = isinstance(dest, str | os.PathLike)
    if is_path and filesystem is None and storage_options is None and scheme_of(path := os.fsdecode(dest)) is None:
        return expand_home(path)
    from pqext.core.io.sources.locations import Location, locate

    location = locate(dest, filesystem, storage_options)
    return location if isinstance(location, Location) else os.fsdecode(location)


class _Stream:
    """File object that the caller passed in, and that the caller must close."""

    path = None

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, buffers: Sequence[memoryview]) -> None:
        for buffer in buffers:
            rest = buffer
            # A raw file may write fewer bytes. An object that returns no count has written all bytes.
            while len(rest):
                count = self._stream.write(rest)
                if count is None and not isinstance(self._stream, io.RawIOBase):
                    break
                if not count:
                    raise BlockingIOError(
                    errno.EAGAIN, "the file object did not accept all bytes; pass a file object in blocking mode"
                )
                rest = rest[count:]

    def flush(self) -> None:
        if hasattr(self._stream, "flush"):
            self._stream.flush()

    commit = flush

    def abort(self) -> None:
        pass


class _NewFile:
    """Temporary file next to the destination. A rename replaces the destination atomically.

    Its name is short, so that the destination can have the longest name that the file system allows. It is also hidden,
    so that readers of the folder skip the file.
    """

    def __init__(self, path: str, durable: bool, is_new: bool) -> None:
        self._given_path, self._durable, self._is_new = path, durable, is_new
        # The target of a link is replaced, not the link itself.
        self.path: str = os.path.realpath(path)
        name = f"{temporary_prefix(self.path)}{os.urandom(4).hex()}.tmp"
        self._temporary = os.path.join(os.path.dirname(self.path), name)
        self._buffer, self.is_retained, self._process = bytearray(), False, os.getpid()
        with self._error_context():
            with suppress(FileNotFoundError):
                os.lstat(self.path)  # raises an error for a name that is too long, before anything is written
                if is_new:
                    os.stat(self.path)  # raises an error for a link to itself
            # Registered before the file exists: an interrupt may occur between the system call and the assignment.
            files: list[io.FileIO] = []
            self._leftover: weakref.finalize[..., Any]
            self._leftover = weakref.finalize(self, _remove, files, self._temporary, os.getpid())
            try:
                files.append(io.FileIO(self._temporary, "x"))
                self._file = files[0]
                if os.path.exists(self.path):
                    shutil.copymode(self.path, self._temporary)
            except BaseException:
                self.abort()
                raise

    @contextmanager
    def _error_context(self) -> Iterator[None]:
        """Replace the path in errors with the path that the user passed."""
        try:
            yield
        except OSError as error:
            raise type(error)(error.errno, error.strerror, self._given_path) from error

    def write(self, buffers: Sequence[memoryview]) -> None:
        if sum(map(len, buffers)) + len(self._buffer) < _BUFFER_BYTES:
            for buffer in buffers:
                self._buffer += buffer
            return
        pending, self._buffer = memoryview(self._buffer), bytearray()
        self._write_through([pending, *buffers])

    def _write_through(self, buffers: Sequence[memoryview]) -> None:
        with self._error_context():
            rest = [buffer for buffer in buffers if len(buffer)]
            done = 0
            while done < len(rest):
                batch = rest[done : done + _VECTOR_BUFFERS]
                count = os.writev(self._file.fileno(), batch) if hasattr(os, "writev") else self._file.write(batch[0])
                if not count:
                    raise OSError(errno.EIO, "the file system did not accept all bytes")
                # A nearly full disk or a signal ends a call early.
                while done < len(rest) and count >= len(rest[done]):
                    count -= len(rest[done])
                    done += 1
                if count:
                    rest[done] = rest[done][count:]

    def flush(self) -> None:
        pending, self._buffer = memoryview(self._buffer), bytearray()
        self._write_through([pending])
        if self._durable:
            with self._error_context():
                os.fsync(self._file.fileno())

    def commit(self) -> None:
        self.flush()
        with self._error_context():
            self._file.close()
            if self._is_new:
                _rename_new(self._temporary, self.path)
            else:
                os.replace(self._temporary, self.path)
            self._leftover.detach()
            _remove_checksum_file(self.path)
            if self._durable:
                _sync_folder(os.path.dirname(self.path))

    def retain(self) -> None:
        if not self.is_retained:
            self.is_retained = True
            self._leftover.detach()
            self._leftover = weakref.finalize(self, self._file.close)

    def abandon(self) -> str | None:
        self.retain()
        self._buffer = bytearray()
        self._leftover()
        return self._temporary if os.path.exists(self._temporary) else None

    def abort(self) -> None:
        self._buffer = bytearray()
        self._leftover()
        if self.is_retained:
            _remove((), self._temporary, self._process)


class _AppendedFile(_NewFile):
    """Existing file to which bytes are appended. Its first ``size`` bytes never change."""

    def __init__(self, path: str, durable: bool) -> None:
        self._given_path, self._durable = path, durable
        self.path = os.path.realpath(path)
        self._buffer, self.is_retained = bytearray(), False
        with self._error_context():
            self._file = io.FileIO(self.path, "r+")
            try:
                lock(self._file)
                self._check_identity()
                self.size = self._file.seek(0, os.SEEK_END)
            except BaseException:
                self._file.close()
                raise
        self._ends = [self.size, self.size]  # bounds of the file's size if only this writer writes to it
        self._stamp = _stamp(self._file)
        self._leftover = weakref.finalize(self, _truncate, self._file, self._ends, os.getpid())

    def _check_identity(self) -> None:
        if not os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno())):
            raise BlockingIOError(errno.EAGAIN, "the file was replaced by another file; append again")

    def _check_size(self) -> None:
        """Raise ``BlockingIOError`` if another program has changed the file. The file is then not modified."""
        if _stamp(self._file) != self._stamp:
            self._leftover.detach()
            self._file.close()
            message = "another program has written to this file or truncated it; append again"
            raise BlockingIOError(errno.EAGAIN, message)

    def _write_through(self, buffers: Sequence[memoryview]) -> None:
        with self._error_context():
            self._check_size()
        self._ends[1] += sum(map(len, buffers))
        super()._write_through(buffers)
        self._stamp = _stamp(self._file)

    def commit(self) -> None:
        self.flush()
        with self._error_context():
            self._check_identity()
            self._check_size()
            self._leftover.detach()
            unlock(self._file)
            self._file.close()
        _remove_checksum_file(self.path)


def _stamp(file: io.FileIO) -> tuple[int, int]:
    """Return size and modification time in nanoseconds."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _rename_new(temporary: str, path: str) -> None:
    """Rename a file to a name that is not in use. Of two concurrent calls, one succeeds."""
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except (AttributeError, NotImplementedError, OSError):  # no hard links: only a prior check is possible
            if os.path.lexists(path):
                raise FileExistsError from None
            os.replace(temporary, path)
        else:
            os.unlink(temporary)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, "another writer created this file; append again") from None


def _remove_checksum_file(path: str) -> None:
    """Remove the hidden checksum file that Hadoop wrote for ``path``. Hadoop would reject the new content of the file.
    """
    folder, name = os.path.split(path)
    with suppress(OSError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _truncate(file: io.FileIO, sizes: list[int], process: int) -> None:
    """Truncate a file to its previous size after the append was aborted or garbage collected.

    A file whose size is outside ``sizes`` was changed by another program and is not truncated.
    """
    with suppress(OSError):
        if os.getpid() == process:
            if sizes[0] < os.fstat(file.fileno()).st_size <= sizes[1]:
                os.ftruncate(file.fileno(), sizes[0])
            unlock(file)
        file.close()


def _sync_folder(folder: str) -> None:
    """Sync the entries of ``folder`` to disk, except on systems that cannot open folders, which need no sync."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(files: Sequence[io.FileIO], temporary: str, process: int) -> None:
    """Remove an unfinished file after it was aborted or garbage collected.

    A forked child does not remove its parent's file.
    """
    with suppress(OSError):
        for file in files:
            file.close()
    if os.getpid() == process:
        with suppress(OSError):
            os.unlink(temporary)
