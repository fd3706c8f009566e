"""Atomic jobs that write into a folder of an object store.

1. Tasks write hidden files (:mod:`pqext.core.io.sources.pending_files`): incomplete uploads on S3, files under hidden
   keys elsewhere. The driver does the same with its small files, such as records of ingested files.
2. The driver writes ``_pqext_commit.json``, which lists all hidden files of the job and the files that they replace.
   *This is the commit*: a job that is killed before this step has no effect, and a job that is killed after it is
   complete.
3. The files become visible, the old files are deleted, and the journal is deleted.

The journal is only written if none exists. A job that detects the journal of another job finishes that job first. An
overwrite lists the old files before it writes its journal. If ``_SUCCESS`` shows that another job has ended in between,
the journal is void and the job lists the files again: of two concurrent overwrites, the later one also replaces the
files of the other. In the same way, a job that ingests files reads the records of ingested files again before it writes
its journal. pqext's readers apply the journal (:mod:`pqext.dataset.files.manifests`): they see the old files until
all new files are visible. During step 3, other readers may see some of the new files together with old ones.
:func:`pqext.spark.clean` and the next job finish step 3.

Two processes may run step 3 of one job, and one of them may be paused while the other ends it and further jobs commit.
The paused process must not undo these jobs: a hidden file becomes visible only once, old files have unique names, and
``_SUCCESS`` and the record of a stream are replaced only if they have not changed since the journal was valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.pending_files import PendingFile, PendingStore, PendingUpload, check_manifest_size
from pqext.core.io.sources.pending_stores import pending_store
from pqext.core.io.table_formats import check_listing, check_parents, writing
from pqext.dataset.files import manifests
from pqext.dataset.files.folders import is_hidden
from pqext.dataset.files.manifests import JOURNAL, StoreJournal
from pqext.dataset.writing import commit
from pqext.dataset.writing.appending import Compare
from pqext.dataset.writing.commit import ABANDONED_AFTER, BAD_LINES, LOG, CleanupResult, names_in_folders
from pqext.dataset.writing.ingest_records import Batch, IngestRecord, parse_ingest_record
from pqext.dataset.writing.part_files import StagedFile
from pqext.dataset.writing.staging import Token

_OURS = re.compile(rf"(?:part-\d+-|{LOG}|{BAD_LINES})([0-9a-f]{{32}})(?:-[\w-]+)?\.\w+")
_ATTEMPTS = 20
_TOGETHER = 16
"""Maximum number of concurrent requests of a commit."""


@dataclass(frozen=True)
class StagedStore:
    """Staging area for the hidden files of a job in a store."""

    uri: str
    storage_options: Mapping[str, Any] | None = field(repr=False)

    @cached_property
    def _bucket(self) -> PendingStore:
        return pending_store(self.uri, self.storage_options)

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "storage_options": self.storage_options}

    def _key(self, name: str) -> str:
        return f"{self._bucket.prefix}/{name}".lstrip("/")

    def check(self) -> None:
        """Do nothing: files of an aborted job remain hidden until :func:`pqext.spark.clean` deletes them."""

    def create(self, name: str) -> PendingFile:
        return self._bucket.create(self._key(name))

    def finish(self, name: str, dest: PendingFile) -> Token:
        return dest.finish()

    def abandon(self, name: str, dest: PendingFile) -> None:
        dest.abort()

    def discard(self, name: str, token: Token) -> None:
        with suppress(Exception):
            self._bucket.abort(self._key(name), token.upload)

    def fail(self) -> None:
        """Do nothing: other tasks continue, and their uploads are discarded later."""

    has_failed = False


class StoreTarget:
    """A folder of an object store as the target of a job. It can be pickled."""

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None) -> None:
        self._uri = uri
        self._options = storage_options
        self._job = ""
        self._put: dict[str, bytes] = {}
        self.path = self._bucket.url(self._bucket.prefix)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_bucket"}

    @cached_property
    def _bucket(self) -> PendingStore:
        return pending_store(self._uri, self._options)

    @property
    def _key_prefix(self) -> str:
        return f"{self._bucket.prefix}/" if self._bucket.prefix else ""

    def clean(self, older_than: timedelta = ABANDONED_AFTER) -> CleanupResult:
        """Finish a committed job that was killed, and delete hidden files that are older than ``older_than``."""
        finished = self._finish_committed_job()
        before = datetime.now(UTC) - older_than
        removed: dict[str, None] = {}
        for item in [*self._bucket.iter_pending_files(self._key_prefix)]:
            ours = _OURS.fullmatch(item.key.rpartition("/")[2])
            if ours is not None and item.at < before:
                self._bucket.abort(item.key, item.upload)
                removed[ours[1]] = None
        return CleanupResult(finished, tuple(removed))

    def ingest_records(self, exclude: Collection[str] = ()) -> dict[str, IngestRecord]:
        result = {}
        for key in self._bucket.keys(self._key_prefix + LOG):
            name = key[len(self._key_prefix) :]
            if name not in exclude and name not in self._put:
                with suppress(FileNotFoundError):  # an overwrite has removed it in the meantime
                    result[name] = parse_ingest_record(self._bucket.get(key)[0], self._bucket.url(key))
        return result

    def check_no_table(self) -> None:
        with writing():
            check_parents(self._bucket.location(self._bucket.prefix))

    def check(self, overwrite: bool, compare: Compare) -> None:
        if self._bucket.keys(f"{self._key_prefix}{manifests.SINK_LOG}/"):
            raise ValueError(
                f"{self.path} belongs to a streaming sink of Spark; readers would ignore the new files, because they "
                f"are not in the log {manifests.SINK_LOG}; save to another folder"
            )
        self.check_no_table()
        present = self._visible_files()
        strange = next((key for key in present if not key.endswith(".parquet")), None)
        if overwrite and strange is not None:
            raise ValueError(
                f"the name of {self._bucket.url(strange)} does not end in .parquet, and overwriting its folder "
                "would remove it; move the file elsewhere, or save to another folder"
            )
        if not overwrite and present:
            places = {self._bucket.url(key): self._bucket.location(key) for key in present}
            folder = self._bucket.location(self._bucket.prefix)
            compare(self.path, folder, places)

    def begin(self, job: str, owner: int | None = None) -> StagedStore:
        self._job = job
        self._put = {}
        return StagedStore(self._uri, self._options)

    def join(self, job: str) -> StagedStore:
        return self.begin(job)

    def put(self, name: str, data: bytes) -> None:
        self._put[name] = data

    @property
    def has_files(self) -> bool:
        return bool(self._visible_files())

    def has_batch(self, batch: Batch) -> bool | None:
        key = self._key_prefix + batch.name
        try:
            return batch.is_in(self._bucket.get(key)[0], self._bucket.url(key))
        except FileNotFoundError:
            return None

    def commit(
        self, files: Sequence[StagedFile], overwrite: bool, folders: Collection[str] | None = None,
        batch: Batch | None = None, check: Callable[[], None] | None = None,
    ) -> None:
        pending = {file.file.name: file.token for file in files}
        pending |= {name: self._stage(name, data) for name, data in self._put.items()}
        uploads = {name: (token.upload, token.etags) for name, token in pending.items()}
        for failed in range(_ATTEMPTS):
            finished = self._finish_committed_job()
            was_done: bool | None = self._job in finished
            if failed and not was_done:
                was_done = self._is_published(uploads)
                if was_done is None:
                    raise RuntimeError(
                        f"cannot determine whether job {self._job} was saved to {self.path}, because its files are "
                        "missing: a later job replaced them, or the store removed the uploads; check whether the "
                        "target contains the rows before saving them again"
                    )
            if was_done or (batch is not None and self.has_batch(batch)):
                self._discard_attempts()
                return
            after = self._last_job()[0] if overwrite or check is not None else None
            if check is not None:
                check()
            old = self._replaced_files(folders) if overwrite else ()
            journal = StoreJournal(
                self._job, uploads, old, after, None if batch is None else (batch.query, batch.number)
            )
            journal_data = journal.dump()
            check_manifest_size(len(journal_data), self._bucket.url(self._key_prefix + JOURNAL))
            try:
                version = self._bucket.claim(self._key_prefix + JOURNAL, journal_data)
            except FileExistsError:
                continue  # another job was faster, or this job's lost response was a success
            try:
                is_done = self._finish(journal, journal_data, version)
            except BaseException as error:
                error.add_note(
                    f"the job is committed, and pqext reads its rows; pqext.spark.clean({self.path!r}) completes it"
                )
                raise
            if is_done:
                self._discard_attempts()
                return
        raise RuntimeError(f"other jobs committed to {self.path} concurrently; try again")

    def _stage(self, name: str, data: bytes) -> PendingUpload:
        """Upload a small file, hidden until it is published. A hidden file can be published only once."""
        file = self._bucket.create(self._key_prefix + name)
        file.write(data)
        return file.finish()

    def _is_published(self, uploads: Mapping[str, tuple[str, tuple[str, ...]]]) -> bool | None:
        """Return whether another process has published the job's ``uploads``; None if this cannot be determined.

        Its files are then visible, unless a later job has deleted them.
        """
        keys = {self._key_prefix + name for name in uploads}
        if not keys.isdisjoint(self._bucket.keys(self._key_prefix)):
            return True
        some = sorted(keys)[:1]  # MinIO lists the uploads of complete keys only
        is_pending = any(item.key == key for key in some for item in self._bucket.iter_pending_files(key))
        return None if some and not is_pending else False

    def abort(self) -> None:
        if not self._may_be_committed():
            self._discard_attempts()

    def _discard_attempts(self) -> None:
        """Delete the files of the job's failed attempts."""
        with suppress(Exception):
            for item in [*self._bucket.iter_pending_files(self._key_prefix)]:
                if f"-{self._job}" in item.key:
                    self._bucket.abort(item.key, item.upload)

    def _may_be_committed(self) -> bool:
        """Return whether the journal lists this job as committed. True if the journal cannot be read."""
        try:
            return self._is_committed(self._job)
        except Exception:
            return True  # pqext.spark.clean deletes the uncommitted files

    def _is_committed(self, job: str) -> bool:
        try:
            return StoreJournal.load(self._bucket.get(self._key_prefix + JOURNAL)[0], self.path).job == job
        except FileNotFoundError:
            return False

    def _visible_files(self) -> list[str]:
        inside = len(self._key_prefix)
        result = self._bucket.keys(self._key_prefix)
        with writing():
            check_listing(self._bucket.location(self._bucket.prefix), (key[inside:] for key in result))
        return [key for key in result if not any(map(is_hidden, key[inside:].split("/")))]

    def _replaced_files(self, folders: Collection[str] | None) -> tuple[str, ...]:
        """Return the files that an overwrite replaces: all files, or the files in the partitions ``folders``."""
        inside = len(self._key_prefix)
        names = [key[inside:] for key in self._visible_files()]
        if folders is not None:
            return tuple(names_in_folders(names, folders))
        records = [key[inside:] for start in (LOG, BAD_LINES) for key in self._bucket.keys(self._key_prefix + start)]
        return (*names, *records)

    def _finish_committed_job(self) -> tuple[str, ...]:
        """Finish the committed job, if any, and return its identifier."""
        try:
            data, version = self._bucket.get(self._key_prefix + JOURNAL)
        except FileNotFoundError:
            return ()
        journal = StoreJournal.load(data, self._bucket.url(self._key_prefix + JOURNAL))
        return (journal.job,) if self._finish(journal, data, version) else ()

    def _last_job(self) -> tuple[str, str | None]:
        """Return the identifier of the last job, which is the content of ``_SUCCESS``, and the version of this file.

        Return ``("", None)`` if it is missing.
        """
        data, version = self._get_or_none(commit.SUCCESS)
        return data.decode("utf-8", "replace"), version

    def _get_or_none(self, name: str) -> tuple[bytes, str | None]:
        """Return the content and version of a small file; ``(b"", None)`` if the file is missing."""
        try:
            return self._bucket.get(self._key_prefix + name)
        except FileNotFoundError:
            return b"", None

    def _finish(self, journal: StoreJournal, journal_data: bytes, version: str) -> bool:
        """Run step 3 of a job, starting from any intermediate state. Two processes can run it concurrently.

        ``journal_data`` and ``version`` are the content and version of the journal. Return False if the journal is
        void.
        """
        last, success = self._last_job()
        batch = None if journal.batch is None else Batch(*journal.batch, journal.job)
        streamed, stream = (b"", None) if batch is None else self._get_or_none(batch.name)
        # If another process has ended the job, the marks may belong to later jobs.
        if not self._is_current(journal_data):
            return self._is_published(journal.uploads) is True
        is_void = journal.after is not None and last not in (journal.after, journal.job)
        if batch is not None and last != journal.job and streamed:
            record = self._bucket.url(self._key_prefix + batch.name)
            is_void = is_void or batch.is_in(streamed, record, by_other_job=True)
        if last != journal.job and not is_void and self._publish(journal, journal_data):
            if batch is not None:
                self._replace(batch.name, batch.dump(), stream)
            self._replace(commit.SUCCESS, journal.job.encode(), success)
        self._bucket.release(self._key_prefix + JOURNAL, version)
        return not is_void

    def _is_current(self, journal_data: bytes) -> bool:
        """Return whether ``journal_data`` is the content of the folder's journal file."""
        return self._get_or_none(JOURNAL)[0] == journal_data

    def _replace(self, name: str, data: bytes, version: str | None) -> None:
        """Replace a small file. Do nothing if its version has changed: another process has then ended the job."""
        with suppress(FileExistsError, FileNotFoundError):
            self._bucket.replace(self._key_prefix + name, data, version)

    def _publish(self, journal: StoreJournal, journal_data: bytes) -> bool:
        """Make the files of a job visible and delete replaced files; return False if another process ended the job."""
        there = self._bucket.keys(self._key_prefix)

        def complete(name: str) -> None:
            upload, etags = journal.uploads[name]
            if self._key_prefix + name in there:
                # Without the pending file, no process can publish it again after a later job has deleted it.
                self._bucket.abort(self._key_prefix + name, upload)
                return
            try:
                self._bucket.complete(self._key_prefix + name, PendingUpload(upload, tuple(etags)))
            except FileNotFoundError:
                if not self._is_current(journal_data):
                    return
                raise CorruptFileError(
                    f"the committed job {journal.job} cannot be completed, because the store aborted the upload of "
                    f"{name}; remove this record and the files with the job number in their names",
                    path=self._bucket.url(self._key_prefix + JOURNAL),
                ) from None

        _call_in_parallel(complete, [*journal.uploads])
        if not self._is_current(journal_data):
            return False
        _call_in_parallel(lambda name: self._bucket.delete(self._key_prefix + name), journal.old)
        return True


def _call_in_parallel(action: Callable[[str], None], names: Sequence[str]) -> None:
    """Call ``action`` with each name, concurrently if there are more than ``_TOGETHER`` names."""
    if len(names) <= _TOGETHER:
        for name in names:
            action(name)
        return
    with ThreadPoolExecutor(_TOGETHER) as workers:
        for _ in workers.map(action, names):
            pass
