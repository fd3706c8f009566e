"""Atomic saves into a folder, even if the writing process is killed.

The steps of a save; ``F`` is its folder, created by :func:`begin` as ``_pqext_temporary-<job>`` before any task runs:

1. The tasks write their files into F.
2. Under a lock on the target: earlier interrupted saves are finished; ``_SUCCESS`` is removed; a journal in F lists the
   new files and, when overwriting, all files that readers see now as old.
3. F is renamed to ``_pqext_commit-<job>``. *This is the commit*: a save killed before has no effect, one killed after
   is complete.
4. The new files are moved up, the old files deleted, ``_SUCCESS`` is written, F is deleted.

pqext's own readers apply the journal (:mod:`pqext.dataset.files.folders`): they list the old rows before step 3 and the
new rows after it. If a file is moved or deleted between listing and reading, the read fails and can be repeated. Other
readers do not know the journal. During step 4, and after a save was killed in it until it is finished, they see old and
new rows together, or some of the new rows; ``_SUCCESS`` is missing from step 2 until then. :func:`clean` and every
later save finish the interrupted save. Its rows are in the dataset even if the job reported a failure: repeating an
append then duplicates them.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pqext.core.base import local_paths
from pqext.core.base.errors import UnsupportedError
from pqext.core.footer.thrift_footer import ENCRYPTED_MAGIC, MAGIC
from pqext.core.io.sources.pending_files import check_manifest_size
from pqext.dataset.files.folders import COMMIT, JOURNAL, Journal, ReplacedFile, list_files

_logger = logging.getLogger(__name__)

SUCCESS = "_SUCCESS"
TEMPORARY = "_pqext_temporary-"
"""Name prefix of the folder of an uncommitted save."""
OWNER = "owner.json"
LOG = "_pqext_ingested-"
"""Name prefix of a record of ingested files. Readers skip it; it is committed and replaced together with a save."""
BAD_LINES = "_pqext_bad_lines-"
"""Name prefix of a record of files that were not ingested; otherwise like :data:`LOG`."""
ABANDONED_AFTER = timedelta(days=7)


@dataclass(frozen=True)
class CleanupResult:
    """Result of :func:`clean`: the jobs that were completed, and the jobs that were removed with their files."""

    finished: tuple[str, ...]
    removed: tuple[str, ...]


def staging_folder(target: Path, job: str) -> Path:
    """Return the folder that contains a job's files until the commit."""
    return target / f"{TEMPORARY}{job}"


def begin(target: Path, job: str, owner: int | None = None) -> Path:
    """Create the folder for a job's files, and ``target`` if it does not exist. Called once, before any task runs.

    The process ``owner`` runs the job, by default the nearest Java process among the ancestors. If the owner no longer
    exists, the job was killed.
    """
    folder = staging_folder(target, job)
    _check_success(target)
    folder.mkdir(parents=True)
    process = _driver_identity() if owner is None else _process_identity(owner)
    if process is not None:
        (folder / OWNER).write_text(json.dumps(process), "utf-8")
    return folder


def commit(
    target: Path, job: str, names: Sequence[str], *, overwrite: bool, folders: Collection[str] | None = None,
    is_done: Callable[[], bool] | None = None, check: Callable[[], None] | None = None,
) -> None:
    """Add a job's files ``names`` to ``target``. An overwrite replaces all visible files.

    With ``folders``, paths of partitions below ``target``, only files in these partitions are replaced. Nothing happens
    if ``is_done`` returns true under the lock, because another job has done the same. ``check`` is also called under
    the lock; if it raises an exception, nothing is changed.

    Raises:
        ValueError: The errors of :func:`replaceable_files`, before anything has changed.
        UnsupportedError: If a partition folder is a file or a symbolic link, before anything has changed.
        RuntimeError: If a file is missing, before anything has changed.
        OSError: If the system rejects a step; its notes state whether the save is committed.
    """
    waiting, decided = staging_folder(target, job), target / f"{COMMIT}{job}"
    with _lock(target):
        _clean_up(target, ABANDONED_AFTER)
        if is_done is not None and is_done():
            shutil.rmtree(waiting, ignore_errors=True)
            return
        if check is not None:
            check()
        missing = [name for name in names if not (waiting / name).is_file()]
        if missing:
            raise RuntimeError(f"{missing[0]} of the job that writes {target} was removed before it was committed")
        _check_success(target)
        _check_partitions(target, names)
        seen = replaceable_files(target, folders) if overwrite else {}
        if overwrite and folders is None:
            seen |= {str(path): str(path) for path in (*ingest_records(target), *target.glob(f"{BAD_LINES}*.ndjson"))}
        old = [ReplacedFile.from_path(_relative(path, target), at) for path, at in seen.items()]
        succeeded = (target / SUCCESS).exists()
        try:
            (target / SUCCESS).unlink(missing_ok=True)
            journal = Journal(tuple(names), tuple(old)).dump()
            check_manifest_size(len(journal), str(waiting / JOURNAL))
            _write(waiting / JOURNAL, journal)
            for folder in {(waiting / name).parent for name in names} | {waiting}:
                flush(folder)
            waiting.rename(decided)
        except BaseException as error:
            if succeeded and waiting.exists():
                (target / SUCCESS).touch()
            error.add_note(f"{target} is as it was before the save")
            raise
        try:
            flush(target)
            _finish(decided)
        except BaseException as error:
            error.add_note(
                f"the save is committed, and pqext reads its rows; readers that do not know the journal see other rows "
                f"until the next save, or pqext.spark.clean({str(target)!r}), completes it"
            )
            raise


def _check_success(target: Path) -> None:
    """Raise ``UnsupportedError`` if ``_SUCCESS``, the file that marks complete saves, exists as a folder."""
    path = target / SUCCESS
    if path.is_dir() and not path.is_symlink():
        raise UnsupportedError(
            f"{SUCCESS} must be a file, which marks complete saves, but is a folder; rename or remove it, or save to "
            "another folder", feature="files that are folders", path=str(path),
        )


def _check_partitions(target: Path, names: Iterable[str]) -> None:
    """Raise ``UnsupportedError`` if a folder of one of the files ``names`` is a symbolic link or a file."""
    folders = {target / folder for name in names for folder in PurePosixPath(name).parents} - {target}
    for path in sorted(folders):
        if path.is_symlink():
            raise UnsupportedError(
                f"this partition folder is a symbolic link to {os.readlink(path)!r}, which readers do not follow; "
                "replace the link with a folder, or save to another folder",
                feature="partitions that are links", path=str(path),
            )
        if path.exists() and not path.is_dir():
            raise UnsupportedError(
                "a file exists at the path of a partition folder; rename or remove the file, or save to another folder",
                feature="folders that are files", path=str(path),
            )


def replaceable_files(target: Path, folders: Collection[str] | None = None) -> dict[str, str]:
    """Return the current locations of the files that an overwrite of ``target`` removes, by path.

    With ``folders``, return only files in these partitions, however their names are escaped.

    Raises ``ValueError`` if a file is not a Parquet file. Only Parquet files are removed, because a folder with other
    files may be the wrong folder.
    """
    seen = list_files(str(target))
    if folders is not None:
        names = {_relative(path, target): path for path in seen}
        seen = {names[name]: seen[names[name]] for name in names_in_folders(names, folders)}
    for path, at in seen.items():
        try:
            with open(at, "rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise local_paths.explain_broken_link(error, at) from None
        if magic not in (MAGIC, ENCRYPTED_MAGIC):
            raise ValueError(
                f"{path} is not a Parquet file, and overwriting its folder would remove it; move the file elsewhere, "
                "or save to another folder"
            )
    return seen


def names_in_folders(names: Iterable[str], folders: Collection[str]) -> list[str]:
    """Return the file names that are below ``folders``. Differences in the escapes of names are ignored."""
    replaced = {_split_folder(folder) for folder in folders}
    results = []
    for name in names:
        parts = _split_folder(name)[:-1]
        if any(parts[:depth] in replaced for depth in range(1, len(parts) + 1)):
            results.append(name)
    return results


def ingest_records(target: Path) -> list[Path]:
    """Return the paths of the records of ingested files in ``target``."""
    return sorted(target.glob(f"{LOG}*.json"))


def abort(target: Path, job: str) -> None:
    """Remove the files of an uncommitted save, and ``target`` if it is empty afterwards.

    The folder is renamed first, so that tasks that still run cannot add files while it is being removed.
    """
    folder, aborted = staging_folder(target, job), staging_folder(target, f"{job}-aborted")
    with suppress(OSError):
        folder.rename(aborted)
    shutil.rmtree(aborted, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)  # if it could not be renamed
    with suppress(OSError):
        target.rmdir()


def clean(path: str | os.PathLike[str], *, older_than: timedelta = ABANDONED_AFTER) -> CleanupResult:
    """Implement :func:`pqext.spark.clean` for a folder of a file system."""
    local_paths.check_target(path)
    target = Path(path).absolute()
    with _lock(target):
        return _clean_up(target, older_than)


def flush(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    if local_paths.ON_WINDOWS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if local_paths.ON_WINDOWS else os.O_RDONLY)  # needs a writable file
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    flush(path)


def _split_folder(folder: str) -> tuple[str, ...]:
    """Split the path of a folder into components, and decode their escapes, which differ between writers."""
    return tuple(unquote(part) for part in folder.split("/"))


def _relative(path: str, target: Path) -> str:
    return Path(path).relative_to(target).as_posix()


@contextmanager
def _lock(target: Path) -> Iterator[None]:
    """Context manager that holds the lock of all pqext saves into ``target``. It is released if the process ends.

    On file systems without locks, nothing is locked. Of two concurrent overwrites, one may then keep the other's rows,
    and two jobs that ingest the same file concurrently may both add its rows.
    """
    try:
        import fcntl
    except ImportError:  # not available on Windows
        yield
        return
    descriptor = os.open(target, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clean_up(target: Path, older_than: timedelta) -> CleanupResult:
    finished, removed = [], []
    for folder in sorted(target.iterdir()):
        if folder.name.startswith(COMMIT):
            _logger.info("%s: completing the committed save %s", target, folder.name)
            _finish(folder)
            finished.append(folder.name.removeprefix(COMMIT))
        elif folder.name.startswith(TEMPORARY) and _is_abandoned(folder, older_than):
            _logger.info("%s: removing the files of the killed save %s", target, folder.name)
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder.name.removeprefix(TEMPORARY))
    return CleanupResult(tuple(finished), tuple(removed))


def _finish(folder: Path) -> None:
    """Run step 4 of a save, starting from any intermediate state. Two processes can run it concurrently."""
    target = folder.parent
    journal = Journal.load(str(folder))
    if journal is not None:
        changed = {target}
        for name in journal.new:
            if "/" in name:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                changed |= {*(target / name).parents} - {*target.parents}
            with suppress(FileNotFoundError):
                os.replace(folder / name, target / name)
        # Without locks, another save may be moving an old file up from its folder.
        for other in target.glob(f"{COMMIT}*"):
            if other != folder:
                _remove(journal.replaced_paths(str(other)))
        _remove(journal.replaced_paths(str(target)))
        for item in changed:
            flush(item)
        (target / SUCCESS).touch()
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != JOURNAL:
                path.unlink(missing_ok=True)
        (folder / JOURNAL).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        folder.rmdir()


def _remove(paths: list[str]) -> None:
    for path in map(Path, paths):
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _is_abandoned(folder: Path, older_than: timedelta) -> bool:
    try:
        owner = json.loads((folder / OWNER).read_bytes())
        if owner["machine"] == _machine_identity():
            pid, started = int(owner["pid"]), owner["started"]
            if _start_time(pid) != started:
                return True
    except (OSError, ValueError, TypeError, KeyError):
        pass
    try:
        newest = max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except FileNotFoundError:
        return False  # another process is changing the folder
    return time.time() - newest > older_than.total_seconds()


def _driver_identity() -> dict[str, object] | None:
    """Return the identity of the nearest Java process among the ancestors; None if it is unknown."""
    machine, pid = _machine_identity(), os.getpid()
    while machine is not None and pid > 0:
        stat = _process_stat(pid)
        if stat is None:
            return None
        if stat[0] == "java":
            return _process_identity(pid)
        pid = int(stat[2])
    return None


def _process_identity(pid: int) -> dict[str, object] | None:
    """Return a unique identity of a process on this machine; None if the system does not report it."""
    machine = _machine_identity()
    return None if machine is None else {"machine": machine, "pid": pid, "started": _start_time(pid)}


def _machine_identity() -> str | None:
    """Return an identifier that is unique for each boot of the machine and process namespace; None if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _start_time(pid: int) -> str | None:
    """Return the start time of process ``pid``; None if it has exited or its ``/proc`` entry cannot be read."""
    stat = _process_stat(pid)
    return None if stat is None or stat[1] == "Z" else stat[20]


def _process_stat(pid: int) -> list[str] | None:
    """Return name, state, parent and further fields of a process from Linux's ``/proc/PID/stat``."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    name, _, rest = text.partition("(")[2].rpartition(")")
    return [name, *rest.split()]
