"""Where a file is written: a path or a URL, where it appears only when it is whole, or a binary file object."""

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

from pqext.core.base.local_paths import scheme_of, with_home
from pqext.core.io.local_writers import lock, prefix_of, unlock
from pqext.core.io.sources.upload import Gathered, Upload

if TYPE_CHECKING:
    from pqext.core.io.sources.store import Location

_PIECES = 512
"""Pieces given to one call: systems take at least that many, and most of them 1,024."""
_HELD_BYTES = 1 << 16
"""Small pieces are gathered until they are so many bytes."""


_MANY = 8
_SMALL = 1 << 12
"""Where pieces have fewer bytes than this on average, they are copied together: a look at each costs more."""


def _joined(pieces: Sequence[Any]) -> Sequence[Any]:
    whole = sum(map(len, pieces))
    return [b"".join(pieces)] if whole < _SMALL * len(pieces) else pieces


class Sink:
    """Bytes appended in order. ``commit`` makes them the file at ``path``; ``abort`` leaves nothing behind.

    ``filesystem`` and ``storage_options`` are as for :func:`pqext.core.io.sources.locations.locate`.
    With ``durable`` a local file is on the disk, and its name in the folder, when ``commit`` returns. With ``append``
    the bytes go behind those of the local file that is there, if there is one; ``abort`` takes them away again, and
    ``BlockingIOError`` says that another writer is appending to it.
    ``check`` is called with the path of a local file before anything is made.
    As a context manager it commits, or aborts when there was an error. A file that is there already keeps its
    permissions, a link to it stays one. Raises ``OSError`` with the path as it was given where a path cannot be
    written, or no more of it because the disk is full, ``SourceError`` where a store does not take the file, and
    ``ValueError`` for the path of a device or pipe.
    """

    def __init__(
        self, dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, *,
        durable: bool = False, append: bool = False, check: Callable[[str], None] | None = None,
    ) -> None:
        self.offset = 0
        """Bytes of the file so far."""
        self._dest: _File | _Stream | Upload
        if hasattr(dest, "write"):
            if append:
                raise TypeError("only a file named by its path can be appended to: give the path, not a file object")
            if durable:
                raise ValueError("durable needs a path: of a file object only its owner knows when the disk has it")
            if hasattr(dest, "seekable") and dest.seekable() and dest.tell():
                raise ValueError("the file object is not at its start: a Parquet file cannot be appended to another")
            self._dest = _Stream(dest)
            return
        if append:
            refuse_append_to_store(dest)
        place = _place(dest, filesystem, storage_options)
        if not isinstance(place, str):
            if append:
                raise ValueError(_NO_APPEND)
            self._dest = Gathered(place.create(), place.changed)
            return
        given = place
        if not given:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), given)
        if check is not None:
            check(given)
        if os.path.isdir(given):
            advice = f"{os.strerror(errno.EISDIR)}: use pqext.write_dataset to write into a folder"
            raise IsADirectoryError(errno.EISDIR, advice, given)
        folder = os.path.dirname(given)
        if folder and not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {folder!r} to write into: make it first", given)
        if os.path.exists(given) and not os.path.isfile(given):
            raise ValueError(f"{given} is not a regular file, so none can take its place: open it and give the object")
        if append and os.path.exists(given):
            self._dest = appended = _Appended(given, durable)
            self.offset = appended.size
            return
        self._dest = _File(given, durable, is_new=append)

    @property
    def path(self) -> str | None:
        """The destination, when it is a path."""
        return self._dest.path

    def write(self, data: Any) -> None:
        """Append ``data``."""
        self.write_all([data])

    def write_all(self, pieces: Sequence[Any]) -> None:
        """Append all ``pieces``, many of them with one call to the system where the file is ours."""
        if len(pieces) > _MANY:
            pieces = _joined(pieces)
        views = [memoryview(piece).cast("B") for piece in pieces]
        self.offset += sum(map(len, views))
        self._dest.write(views)

    def flush(self) -> None:
        """Give all bytes so far to the system, and to the disk where the file is to be durable."""
        if isinstance(self._dest, _File | _Stream):
            self._dest.flush()

    def keep(self) -> None:
        """From now on only ``abort`` removes the unfinished file: neither forgetting it nor the end of the process."""
        if isinstance(self._dest, _File) and not isinstance(self._dest, _Appended):
            self._dest.keep()

    def leave(self) -> str | None:
        """Give up, but leave the unfinished file where it is; returns its path, or None where it has none."""
        if isinstance(self._dest, _File) and not isinstance(self._dest, _Appended):
            return self._dest.leave()
        self.abort()
        return None

    @property
    def is_kept(self) -> bool:
        """Does only ``abort`` remove the unfinished file?"""
        return isinstance(self._dest, _File) and self._dest.is_kept

    def commit(self) -> None:
        """Finish: the file is whole. When that fails, nothing is left behind but a file that is kept."""
        try:
            self._dest.commit()
        except BaseException:
            if not self.is_kept:
                self.abort()
            raise

    def abort(self) -> None:
        """Give up: a path keeps whatever it had before. Raises nothing, so that errors stay what they are."""
        self._dest.abort()

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.abort()


def is_in_store(dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> bool:
    """Does nothing appear at ``dest``, not even under another name, before the file is whole?"""
    return not hasattr(dest, "write") and not isinstance(_place(dest, filesystem, storage_options), str)


def refuse_append_to_store(dest: Any) -> None:
    """Raise ``ValueError`` for the URL of a store, whose files cannot be appended to; nothing is asked of the store."""
    scheme = scheme_of(os.fsdecode(dest)) if isinstance(dest, str | os.PathLike) else None
    if scheme not in (None, "file", "local"):
        raise ValueError(_NO_APPEND)


_NO_APPEND = (
    "append is for local files, since stores replace files as a whole: write the rows to another file in the same "
    "folder, which pqext.scan reads together with the first"
)


def _place(dest: Any, filesystem: Any, storage_options: Mapping[str, Any] | None) -> str | Location:
    """A path of the local file system, or a place in a store."""
    is_path = isinstance(dest, str | os.PathLike)
    if is_path and filesystem is None and storage_options is None and scheme_of(path := os.fsdecode(dest)) is None:
        return with_home(path)
    from pqext.core.io.sources.locations import Location, locate

    found = locate(dest, filesystem, storage_options)
    return found if isinstance(found, Location) else os.fsdecode(found)


class _Stream:
    """A user's file object, which is theirs to close or to remove."""

    path = None

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, pieces: Sequence[memoryview]) -> None:
        for piece in pieces:
            left = piece
            # A raw file may take less than it is given; one that does not say how much has taken all.
            while len(left):
                taken = self._stream.write(left)
                if taken is None and not isinstance(self._stream, io.RawIOBase):
                    break
                if not taken:
                    raise BlockingIOError(errno.EAGAIN, "the file object takes no more bytes: it must block")
                left = left[taken:]

    def flush(self) -> None:
        if hasattr(self._stream, "flush"):
            self._stream.flush()

    commit = flush

    def abort(self) -> None:
        pass


class _File:
    """A temporary file next to the destination, which it replaces by one rename.

    Its name is short, so that every name that the file system takes can be written, and hidden, so that readers of
    the folder pass over it.
    """

    def __init__(self, given: str, durable: bool, is_new: bool) -> None:
        self._given, self._durable, self._is_new = given, durable, is_new
        # The file that a link leads to is replaced, not the link.
        self.path: str = os.path.realpath(given)
        self._temporary = os.path.join(os.path.dirname(self.path), f"{prefix_of(self.path)}{os.urandom(4).hex()}.tmp")
        self._held, self.is_kept, self._process = bytearray(), False, os.getpid()
        with self._named():
            with suppress(FileNotFoundError):
                os.lstat(self.path)  # a name that is too long is refused now rather than when all is written
                if is_new:
                    os.stat(self.path)  # a link that leads to itself too
            # Known before it is there: an interrupt may come when the system has made it and Python does not know.
            opened: list[io.FileIO] = []
            self._leftover: weakref.finalize[..., Any]
            self._leftover = weakref.finalize(self, _remove, opened, self._temporary, os.getpid())
            try:
                opened.append(io.FileIO(self._temporary, "x"))
                self._file = opened[0]
                if os.path.exists(self.path):
                    shutil.copymode(self.path, self._temporary)
            except BaseException:
                self.abort()
                raise

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors name the path that the user gave."""
        try:
            yield
        except OSError as error:
            raise type(error)(error.errno, error.strerror, self._given) from error

    def write(self, pieces: Sequence[memoryview]) -> None:
        if sum(map(len, pieces)) + len(self._held) < _HELD_BYTES:
            for piece in pieces:
                self._held += piece
            return
        held, self._held = memoryview(self._held), bytearray()
        self._put([held, *pieces])

    def _put(self, pieces: Sequence[memoryview]) -> None:
        with self._named():
            left = [piece for piece in pieces if len(piece)]
            done = 0
            while done < len(left):
                part = left[done : done + _PIECES]
                taken = os.writev(self._file.fileno(), part) if hasattr(os, "writev") else self._file.write(part[0])
                if not taken:
                    raise OSError(errno.EIO, "the file system takes no more bytes")
                # A disk that is nearly full, or a signal, ends a call early.
                while done < len(left) and taken >= len(left[done]):
                    taken -= len(left[done])
                    done += 1
                if taken:
                    left[done] = left[done][taken:]

    def flush(self) -> None:
        held, self._held = memoryview(self._held), bytearray()
        self._put([held])
        if self._durable:
            with self._named():
                os.fsync(self._file.fileno())

    def commit(self) -> None:
        self.flush()
        with self._named():
            self._file.close()
            if self._is_new:
                _take_name(self._temporary, self.path)
            else:
                os.replace(self._temporary, self.path)
            self._leftover.detach()
            _forget_checksums(self.path)
            if self._durable:
                _sync_folder(os.path.dirname(self.path))

    def keep(self) -> None:
        if not self.is_kept:
            self.is_kept = True
            self._leftover.detach()
            self._leftover = weakref.finalize(self, self._file.close)

    def leave(self) -> str | None:
        self.keep()
        self._held = bytearray()
        self._leftover()
        return self._temporary if os.path.exists(self._temporary) else None

    def abort(self) -> None:
        self._held = bytearray()
        self._leftover()
        if self.is_kept:
            _remove((), self._temporary, self._process)


class _Appended(_File):
    """A file that is there already: what is written goes behind its ``size`` bytes, which nothing changes."""

    def __init__(self, given: str, durable: bool) -> None:
        self._given, self._durable = given, durable
        self.path = os.path.realpath(given)
        self._held, self.is_kept = bytearray(), False
        with self._named():
            self._file = io.FileIO(self.path, "r+")
            try:
                lock(self._file)
                self._check_place()
                self.size = self._file.seek(0, os.SEEK_END)
            except BaseException:
                self._file.close()
                raise
        self._ends = [self.size, self.size]  # between which the file ends, while only this writer has written
        self._stamp = _stamp(self._file)
        self._leftover = weakref.finalize(self, _cut, self._file, self._ends, os.getpid())

    def _check_place(self) -> None:
        if not os.path.samestat(os.stat(self.path), os.fstat(self._file.fileno())):
            raise BlockingIOError(errno.EAGAIN, "another file has taken the place of this one meanwhile: append again")

    def _check_size(self) -> None:
        """Raise ``BlockingIOError`` where others have written to the file or cut it, and leave it to them."""
        if _stamp(self._file) != self._stamp:
            self._leftover.detach()
            self._file.close()
            raise BlockingIOError(errno.EAGAIN, "another program has written to this file, or cut it, meanwhile")

    def _put(self, pieces: Sequence[memoryview]) -> None:
        with self._named():
            self._check_size()
        self._ends[1] += sum(map(len, pieces))
        super()._put(pieces)
        self._stamp = _stamp(self._file)

    def commit(self) -> None:
        self.flush()
        with self._named():
            self._check_place()
            self._check_size()
            self._leftover.detach()
            unlock(self._file)
            self._file.close()
        _forget_checksums(self.path)


def _stamp(file: io.FileIO) -> tuple[int, int]:
    """Size and time of the last change."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


def _take_name(temporary: str, path: str) -> None:
    """Give a file a name that no other has; of two that do so at once one succeeds."""
    try:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except (AttributeError, NotImplementedError, OSError):  # no links here: the last look is all there is
            if os.path.lexists(path):
                raise FileExistsError from None
            os.replace(temporary, path)
        else:
            os.unlink(temporary)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, "another writer has made this file meanwhile: append again") from None


def _forget_checksums(path: str) -> None:
    """Remove the hidden file in which Hadoop notes checksums of a local one: it reads no file that is another one."""
    folder, name = os.path.split(path)
    with suppress(OSError):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _cut(file: io.FileIO, ends: list[int], process: int) -> None:
    """Give a file the size it had before, whether the append was given up or forgotten.

    One that ends elsewhere than this writer can have made it end is another program's now.
    """
    with suppress(OSError):
        if os.getpid() == process:
            if ends[0] < os.fstat(file.fileno()).st_size <= ends[1]:
                os.ftruncate(file.fileno(), ends[0])
            unlock(file)
        file.close()


def _sync_folder(folder: str) -> None:
    """Wait until the disk has the names in ``folder``; systems without open folders do that themselves."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(opened: Sequence[io.FileIO], temporary: str, process: int) -> None:
    """Leave nothing of a file that was not finished, whether it was given up or forgotten.

    A forked child leaves its parent's file alone.
    """
    with suppress(OSError):
        for file in opened:
            file.close()
    if os.getpid() == process:
        with suppress(OSError):
            os.unlink(temporary)
