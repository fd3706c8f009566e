"""Jobs that write into a folder of S3, whole or not at all, without moving a byte.

1. Tasks upload their files in parts, under their final names. An upload that is not completed is seen by nobody.
2. The driver writes ``_pqext_commit.json``, which names all uploads of the job, the small files beside them and the
   files that they replace. *This decides*: a job killed before has not happened, one killed after has.
3. All uploads are completed, the old files are deleted, and the note is deleted.

The note is written only where there is none. A job that finds that of another one finishes that first, so of two
overwrites at once the later one replaces the other's files too. pqext's readers honour the note
(:mod:`pqext.dataset.files.store_journal`): they see the old files until all new ones are there. Other readers may see
some of the new files, and old ones beside them, in step 3. :func:`pqext.spark.clean` and the next job finish step 3.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from pqext.core.sources.locate import locate
from pqext.core.sources.multipart import Bucket, PartUpload, Pending
from pqext.dataset.files.folders import is_hidden
from pqext.dataset.files.store_journal import NOTE, StoreJournal
from pqext.spark import commit
from pqext.spark.commit import ABANDONED_AFTER, BAD_LINES, LOG, Cleaned
from pqext.spark.ingest_notes import noted
from pqext.spark.part_files import Staging
from pqext.spark.sink import check_append
from pqext.spark.staging import Token

_OURS = re.compile(r"part-\d+-([0-9a-f]{32})-[\w-]+\.parquet")
_ATTEMPTS = 20


@dataclass(frozen=True)
class StagedStore:
    """Uploads of a job that wait to be completed."""

    uri: str
    storage_options: Mapping[str, Any] | None = field(repr=False)

    @cached_property
    def _bucket(self) -> Bucket:
        return Bucket(self.uri, self.storage_options)

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "storage_options": self.storage_options}

    def _key(self, name: str) -> str:
        return f"{self._bucket.prefix}/{name}".lstrip("/")

    def check(self) -> None:
        """Uploads of a job that was aborted stay unseen; :func:`pqext.spark.clean` gives them up."""

    def create(self, name: str) -> PartUpload:
        return PartUpload(self._bucket, self._key(name))

    def finish(self, name: str, dest: PartUpload) -> Token:
        return dest.finish()

    def give_up(self, name: str, dest: PartUpload) -> None:
        dest.give_up()

    def discard(self, name: str, token: Token) -> None:
        with suppress(Exception):
            self._bucket.abort(self._key(name), token.upload)

    def fail(self) -> None:
        """Other tasks go on; what they upload is given up."""

    has_failed = False


class StoreTarget:
    """A folder of S3 that a job writes into."""

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None) -> None:
        self._bucket = Bucket(uri, storage_options)
        self._uri = uri
        self._options = storage_options
        self._inside = f"{self._bucket.prefix}/" if self._bucket.prefix else ""
        self._job = ""
        self._put: dict[str, bytes] = {}
        self.path = self._bucket.url(self._bucket.prefix)

    def clean(self, older_than: timedelta = ABANDONED_AFTER) -> Cleaned:
        """Finish a job that was killed after it was decided, and give up uploads that began before ``older_than``."""
        finished = self._finish_other()
        before = datetime.now(UTC) - older_than
        removed: dict[str, None] = {}
        for one in [*self._bucket.begun(self._inside)]:
            ours = _OURS.fullmatch(one.key.rpartition("/")[2])
            if ours is not None and one.at < before:
                self._bucket.abort(one.key, one.upload)
                removed[ours[1]] = None
        return Cleaned(finished, tuple(removed))

    def ingested(self) -> set[tuple[str, str]]:
        logs = self._bucket.keys(self._inside + LOG)
        return {one for key in logs for one in noted(self._bucket.get(key)[0], self._bucket.url(key))}

    def check(self, overwrite: bool, empty: Callable[[], bytes], partition_by: tuple[str, ...]) -> None:
        present = self._visible()
        strange = next((key for key in present if not key.endswith(".parquet")), None)
        if overwrite and strange is not None:
            raise ValueError(
                f"{self._bucket.url(strange)} is not named as a Parquet file, and overwriting its folder would remove "
                "it: move it elsewhere, or save to another folder"
            )
        if not overwrite and present:
            folder = locate(self._uri, None, self._options)
            places = {self._bucket.url(key): folder.at(f"{self._bucket.name}/{key}") for key in present}
            check_append(self.path, folder, places, empty(), partition_by)

    def begin(self, job: str) -> StagedStore:
        self._job = job
        self._put = {}
        return StagedStore(self._uri, self._options)

    def put(self, name: str, data: bytes) -> None:
        self._put[name] = data

    @property
    def has_files(self) -> bool:
        return bool(self._visible())

    def commit(self, files: Sequence[Staging], overwrite: bool) -> None:
        uploads = {one.file.name: (one.token.upload, one.token.etags) for one in files}
        small = {name: base64.b64encode(data).decode() for name, data in self._put.items()}
        for _ in range(_ATTEMPTS):
            self._finish_other()
            old = self._replaced() if overwrite else ()
            journal = StoreJournal(self._job, uploads, small, old)
            try:
                etag = self._bucket.put(self._inside + NOTE, journal.dump(), new=True)
            except FileExistsError:
                continue  # another job was quicker
            break
        else:
            raise RuntimeError(f"other jobs committed to {self.path} all the time: try again")
        try:
            self._finish(journal, etag)
        except BaseException as error:
            error.add_note(
                f"the job is decided, and pqext reads its rows; pqext.spark.clean({self.path!r}) finishes it"
            )
            raise
        self._give_up()

    def abort(self) -> None:
        if not self._is_decided():
            self._give_up()

    def _give_up(self) -> None:
        """Give up what attempts have left that do not count."""
        with suppress(Exception):
            for one in [*self._bucket.begun(self._inside)]:
                if f"-{self._job}-" in one.key:
                    self._bucket.abort(one.key, one.upload)

    def _is_decided(self) -> bool:
        with suppress(Exception):
            return StoreJournal.load(self._bucket.get(self._inside + NOTE)[0], self.path).job == self._job
        return False

    def _visible(self) -> list[str]:
        inside = len(self._inside)
        found = self._bucket.keys(self._inside)
        return [key for key in found if not any(map(is_hidden, key[inside:].split("/")))]

    def _replaced(self) -> tuple[str, ...]:
        inside = len(self._inside)
        notes = [key for start in (LOG, BAD_LINES) for key in self._bucket.keys(self._inside + start)]
        return tuple(key[inside:] for key in [*self._visible(), *notes])

    def _finish_other(self) -> tuple[str, ...]:
        """Finish the job that is decided, if there is one."""
        try:
            data, etag = self._bucket.get(self._inside + NOTE)
        except FileNotFoundError:
            return ()
        journal = StoreJournal.load(data, self._bucket.url(self._inside + NOTE))
        self._finish(journal, etag)
        return (journal.job,)

    def _finish(self, journal: StoreJournal, etag: str) -> None:
        """Step 3, from wherever it stopped; two processes may do it at once."""
        there = self._bucket.keys(self._inside)
        for name, (upload, etags) in journal.uploads.items():
            if self._inside + name not in there:
                self._bucket.complete(self._inside + name, Pending(upload, tuple(etags)))
        for name, text in journal.small.items():
            self._bucket.put(self._inside + name, base64.b64decode(text))
        for name in journal.old:
            self._bucket.delete(self._inside + name)
        self._bucket.put(self._inside + commit.SUCCESS, b"")
        self._bucket.delete(self._inside + NOTE, etag)
