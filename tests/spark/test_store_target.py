"""Jobs that write into a folder of S3: nothing of them is seen before they are decided, and all of it afterwards."""

from __future__ import annotations

import http.server
import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from remote.conftest import KEY, S3, SECRET, s3, server

import pqext
from pqext import variant
from pqext.core.base.errors import CorruptFileError, LimitError, SourceError
from pqext.core.io.sources import multipart, pending_files
from pqext.core.io.sources.pending_files import PendingUpload
from pqext.dataset.files.manifests import JOURNAL, StoreJournal, read_manifest
from pqext.dataset.writing.commit import CleanupResult
from pqext.dataset.writing.ingest_records import Batch, dump_ingest_record
from pqext.dataset.writing.part_files import Division, PartFiles, StagedFile
from pqext.dataset.writing.store_target import StoreTarget
from pqext.dataset.writing.targets import FolderTarget
from pqext.spark import clean, ingest_json, write
from pqext.spark.writing.sink import append_check

__all__ = ["s3", "server"]

URL = "s3://bucket/data/out"
JOB, OTHER = "a" * 32, "b" * 32
RAW = {"dictionary": False, "compression": "uncompressed", "encodings": {"x": "plain"}}


@pytest.fixture
def options(s3: S3) -> Iterator[dict[str, Any]]:
    """Storage options of an empty bucket."""
    yield s3.options
    bucket = multipart.Bucket("s3://bucket", s3.options)
    for one in [*bucket.iter_pending_files("")]:
        bucket.abort(one.key, one.upload)


def staged(target: StoreTarget, job: str, values: list[int], by: tuple[str, ...] = ()) -> tuple[StagedFile, ...]:
    place = pickle.loads(pickle.dumps(target.begin(job)))
    table = pa.table({"x": values, "k": [value % 2 for value in values]})
    with PartFiles(place, f"part-00000-{job}-1", table.schema, {}, Division(by)) as files:
        files.write(table.to_batches()[0])
        return files.close()


def rows(options: dict[str, Any]) -> list[int]:
    pqext.clear_cache()
    try:
        return sorted(pqext.read_table(URL, storage_options=options)["x"].to_pylist())
    except FileNotFoundError:
        return []


@pytest.mark.spec("spark.store.unseen", "spark.store.overwrite")
def test_uploads_are_visible_only_after_the_commit(options: dict[str, Any]) -> None:
    target = StoreTarget(URL, options)
    files = staged(target, JOB, [1, 2, 3], ("k",))
    target.put("_pqext_ingested-1.json", b'{"version": 1, "files": []}')
    assert (rows(options), target.has_files) == ([], False)
    target.commit(files, overwrite=False)
    assert rows(options) == [1, 2, 3]
    assert sorted(target._bucket.keys("")) == [
        "data/out/_SUCCESS", "data/out/_pqext_ingested-1.json", f"data/out/k=0/part-00000-{JOB}-1-1.parquet",
        f"data/out/k=1/part-00000-{JOB}-1.parquet",
    ]
    target.commit(staged(target, OTHER, [4], ("k",)), overwrite=True)
    assert rows(options) == [4]
    assert len(target._bucket.keys("")) == 2


def test_manifest_beyond_the_size_limit_is_not_read(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_files, "MAX_MANIFEST_BYTES", 10)
    bucket = StoreTarget(URL, options)._bucket
    for size in (10, 11):
        bucket.put("note", b"x" * size)
        (tmp_path / str(size)).write_bytes(b"x" * size)
    with pytest.raises(LimitError, match=r"manifest has 11 bytes.*s3://bucket/"):
        bucket.get("note")
    with pytest.raises(LimitError, match="manifest has 11 bytes"):
        read_manifest(str(tmp_path / "11"))
    assert read_manifest(str(tmp_path / "10")) == b"x" * 10


def test_save_with_an_oversized_manifest_is_rejected(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_files, "MAX_MANIFEST_BYTES", 100)
    for target in (FolderTarget(str(tmp_path)), StoreTarget(URL, options)):
        target.begin("job")
        for number in range(10):
            target.put(f"part-{number}.parquet", b"PAR1")
        with pytest.raises(LimitError, match="save fewer files at a time"):
            target.commit([], False)
        target.abort()
        assert not target.has_files
    with pytest.raises(LimitError, match="save fewer files at a time"):
        dump_ingest_record([{"path": "x" * 100, "stamp": ""}])


@pytest.mark.spec("spark.store.decided")
@pytest.mark.slow
def test_job_killed_at_any_request_is_committed_or_absent(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    calls = multipart.Bucket.call
    seen = []
    for step in range(30):
        first = StoreTarget(URL, options)
        first.commit(staged(first, f"{2 * step:032x}", [1, 2], ("k",)), overwrite=True)
        target = StoreTarget(URL, options)
        files = staged(target, f"{2 * step + 1:032x}", [10, 11], ("k",))
        left = step

        def call(self: Any, operation: str, key: str, **more: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return calls(self, operation, key, **more)

        with monkeypatch.context() as changed:
            changed.setattr(multipart.Bucket, "call", call)
            try:
                target.commit(files, overwrite=True)
                died = False
            except Killed:
                died = True
        found = rows(options)
        assert found in ([1, 2], [10, 11]), step
        decided = f"data/out/{JOURNAL}" in target._bucket.keys("") or found == [10, 11]
        done = clean(URL, older_than=timedelta(0), storage_options=options)
        assert rows(options) == ([10, 11] if decided else [1, 2]), (step, done)
        assert [*target._bucket.iter_pending_files("")] == []
        seen.append(found)
        if not died:
            break
    assert seen[-1] == [10, 11]
    assert 3 <= seen.index([10, 11]) < len(seen) - 3


@pytest.mark.spec("spark.store.waiting")
def test_decided_job_is_not_aborted_while_the_store_is_unreachable(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = StoreTarget(URL, options)
    files = staged(target, JOB, [1, 2])

    def silent(*_: Any) -> Any:
        raise SourceError("no answer")

    with monkeypatch.context() as changed:
        changed.setattr(multipart.Bucket, "complete", silent)
        with pytest.raises(SourceError):
            target.commit(files, overwrite=False)
        changed.setattr(multipart.Bucket, "get", silent)
        target.abort()
    assert clean(URL, storage_options=options) == CleanupResult((JOB,), ())
    assert rows(options) == [1, 2]


@pytest.mark.spec("spark.store.late")
def test_late_completion_does_not_revert_newer_writes(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = StoreTarget(URL, options), StoreTarget(URL, options)
    first, complete, waiting = staged(one, JOB, [1]), multipart.Bucket.complete, [1]

    def slow(self: Any, key: str, pending: Any) -> None:
        complete(self, key, pending)
        if waiting:
            waiting.clear()
            assert clean(URL, storage_options=options).finished == (JOB,)
            two.commit(staged(two, OTHER, [2]), overwrite=False, batch=Batch("query", 1, OTHER))

    monkeypatch.setattr(multipart.Bucket, "complete", slow)
    one.commit(first, overwrite=False, batch=Batch("query", 0, JOB))
    assert two.has_batch(Batch("query", 1, "c" * 32))
    assert one._last_job()[0] == OTHER
    assert rows(options) == [1, 2]


@pytest.mark.spec("spark.store.late")
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.slow
def test_publisher_paused_at_any_request_does_not_undo_later_jobs(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    """Another process ends the job and commits two others, while the publisher waits before one of its requests."""
    client, call, bucket = multipart._client(options), multipart.Bucket.call, multipart.Bucket(URL, options)
    monkeypatch.setattr(multipart, "_client", lambda _: client)
    targets = [StoreTarget(URL, options) for _ in range(4)]

    def publish(step: int) -> tuple[list[str], str]:
        """Return the requests of the publisher after its journal, and the last job."""
        for key in bucket.keys("data/"):
            bucket.delete(key)
        jobs = [f"{4 * step + number:032x}" for number in range(4)]
        batches = [Batch("query", number, job) for number, job in enumerate(jobs)]
        targets[0].commit(staged(targets[0], jobs[0], [0]), overwrite=False)
        files = staged(targets[1], jobs[1], [1])
        targets[1].put(f"_pqext_ingested-{jobs[1]}.json", dump_ingest_record([{"path": "/in.json", "stamp": "1"}]))
        requests: list[str] | None = None  # until the journal is written

        def pause(self: Any, operation: str, key: str, **more: Any) -> Any:
            nonlocal requests
            if requests is not None:
                requests.append(operation)
                if len(requests) == step + 1:
                    monkeypatch.setattr(multipart.Bucket, "call", call)
                    clean(URL, storage_options=options)
                    targets[2].commit(staged(targets[2], jobs[2], [2]), True, batch=batches[2])
                    targets[3].commit(staged(targets[3], jobs[3], [3]), False, batch=batches[3])
                    monkeypatch.setattr(multipart.Bucket, "call", pause)
            waiting = [item.upload for item in bucket.iter_pending_files("")]
            if operation == "complete_multipart_upload" and more["UploadId"] not in waiting:
                raise FileNotFoundError(key)  # as S3 answers, where moto fails
            response = call(self, operation, key, **more)
            if key.endswith(JOURNAL) and "IfNoneMatch" in more:
                requests = []
            return response

        monkeypatch.setattr(multipart.Bucket, "call", pause)
        with suppress(RuntimeError):  # if the job's files are neither there nor pending
            targets[1].commit(files, overwrite, batch=batches[1])
        monkeypatch.setattr(multipart.Bucket, "call", call)
        assert requests is not None
        assert [*bucket.iter_pending_files("")] == []
        assert not [key for key in bucket.keys("data/") if JOURNAL in key], requests
        return requests, jobs[3]

    for step in range(len(publish(100)[0])):
        requests, last = publish(step)
        assert rows(options) == [2, 3], (step, requests)
        assert targets[0]._last_job()[0] == last, (step, requests)
        assert targets[0].ingest_records() == {}, (step, requests)
        stream = json.loads(bucket.get("data/out/_pqext_streamed-query.json")[0])
        assert (stream["batch"], stream["job"]) == (3, last), (step, requests)
        assert len(bucket.keys("data/")) == 4, (step, requests)


@pytest.mark.spec("spark.store.together")
def test_one_of_two_overwrites_wins_and_both_appends_succeed(options: dict[str, Any]) -> None:
    one, two = StoreTarget(URL, options), StoreTarget(URL, options)
    first, second = staged(one, JOB, [1, 2]), staged(two, OTHER, [3])
    threads = [
        threading.Thread(target=target.commit, args=(files, True)) for target, files in ((one, first), (two, second))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(options) in ([1, 2], [3])
    there = rows(options)
    for job, value in (("c" * 32, 7), ("d" * 32, 8)):
        target = StoreTarget(URL, options)
        target.commit(staged(target, job, [value]), overwrite=False)
    assert rows(options) == [*there, 7, 8]


@pytest.mark.spec("spark.store.answers")
@pytest.mark.parametrize("other_appends", [False, True])
def test_overwrite_with_a_lost_manifest_response_preserves_its_files(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, other_appends: bool
) -> None:
    one, two = StoreTarget(URL, options), StoreTarget(URL, options)
    first, second = staged(one, JOB, [1, 2]), staged(two, OTHER, [3])
    put, waiting = multipart.Bucket.put, [other_appends]

    def put_and_fail(self: Any, key: str, data: bytes, **how: Any) -> str:
        told = put(self, key, data, **how)
        if how.get("is_new") and waiting:
            if waiting.pop():
                two.commit(second, overwrite=False)
            raise FileExistsError("what a request that is made again is told")
        return told

    monkeypatch.setattr(multipart.Bucket, "put", put_and_fail)
    one.commit(first, overwrite=True)
    assert rows(options) == ([1, 2, 3] if other_appends else [1, 2])


@pytest.mark.spec("spark.store.together")
def test_overwrite_replaces_files_committed_during_its_listing(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = StoreTarget(URL, options), StoreTarget(URL, options)
    first, second = staged(one, JOB, [1, 2]), staged(two, OTHER, [3])
    put, waiting = multipart.Bucket.put, [lambda: one.commit(first, overwrite=True)]

    def put_late(self: Any, key: str, data: bytes, **how: Any) -> str:
        if how.get("is_new") and OTHER.encode() in data and waiting:
            waiting.pop()()
        return put(self, key, data, **how)

    monkeypatch.setattr(multipart.Bucket, "put", put_late)
    two.commit(second, overwrite=True)
    assert rows(options) == [3]
    assert f"data/out/{JOURNAL}" not in two._bucket.keys("")


@pytest.mark.spec("spark.store.together")
@pytest.mark.parametrize("overwrite", [True, False])
def test_overtaken_overwrite_also_replaces_newer_files(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    target, other = StoreTarget(URL, options), StoreTarget(URL, options)
    files, quicker = staged(target, JOB, [1]), staged(other, OTHER, [2])
    listed = StoreTarget._replaced_files

    def overtaken(self: StoreTarget, folders: Any) -> tuple[str, ...]:
        found = listed(self, folders)
        if self is target and rows(options) != [2]:
            other.commit(quicker, overwrite)
        return found

    monkeypatch.setattr(StoreTarget, "_replaced_files", overtaken)
    target.commit(files, overwrite=True)
    assert rows(options) == [1]


@pytest.mark.spec("spark.store.decided")
def test_next_job_completes_one_killed_after_its_manifest(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    target, later = StoreTarget(URL, options), StoreTarget(URL, options)
    files = staged(target, JOB, [1, 2])
    with monkeypatch.context() as patch:
        patch.setattr(multipart.Bucket, "complete", killed)
        with pytest.raises(Killed) as caught:
            target.commit(files, overwrite=False)
    assert "pqext.spark.clean('s3://bucket/data/out') completes it" in caught.value.__notes__[0]
    assert rows(options) == []
    later.commit(staged(later, OTHER, [3]), overwrite=False)
    assert rows(options) == [1, 2, 3]


def test_decided_job_with_expired_uploads_names_the_files_to_remove(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, target, later = (StoreTarget(URL, options) for _ in range(3))
    first.commit(staged(first, JOB, [1]), overwrite=True)
    files = staged(target, OTHER, [2])
    with monkeypatch.context() as changed:
        changed.setattr(StoreTarget, "_finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            target.commit(files, overwrite=True)
    calls = multipart.Bucket.call

    def call(self: Any, operation: str, key: str, **more: Any) -> Any:
        if operation == "complete_multipart_upload" and OTHER in key:
            raise FileNotFoundError(key)  # as S3 answers, where moto fails
        return calls(self, operation, key, **more)

    monkeypatch.setattr(multipart.Bucket, "call", call)
    with pytest.raises(CorruptFileError, match=rf"committed job {OTHER} cannot be completed.*this record"):
        later.commit(staged(later, "c" * 32, [3]), overwrite=True)
    assert rows(options) == [1]


def test_aborted_job_leaves_no_upload(options: dict[str, Any]) -> None:
    target, other = StoreTarget(URL, options), StoreTarget(URL, options)
    staged(target, JOB, [1])
    staged(other, OTHER, [2])
    target.abort()
    assert [OTHER in one.key for one in target._bucket.iter_pending_files("")] == [True]
    assert clean(URL, older_than=timedelta(0), storage_options=options).removed == (OTHER,)
    assert [*target._bucket.iter_pending_files("")] == []


def test_data_that_conflicts_with_the_folder_is_rejected(options: dict[str, Any]) -> None:
    target = StoreTarget(URL, options)
    target.commit(staged(target, JOB, [1], ("k",)), overwrite=False)
    empty = pa.BufferOutputStream()
    pqext.write_table(pa.table({"y": [1]}), empty)
    with pytest.raises(ValueError, match=r"the data frame.* nothing was written"):
        target.check(False, append_check(lambda: empty.getvalue().to_pybytes(), ("k",)))
    with pytest.raises(ValueError, match="has folders by k, but partition_by names j"):
        target.check(False, append_check(empty.getvalue().to_pybytes, ("j",)))
    target._bucket.put("data/out/notes.txt", b"mine")
    with pytest.raises(ValueError, match=r"the name of s3://bucket/data/out/notes\.txt does not end in \.parquet"):
        target.check(True, append_check(lambda: b""))
    target._bucket.put(f"data/out/{JOURNAL}", b"{")
    with pytest.raises(CorruptFileError, match="the journal of an unfinished job is corrupt"):
        clean(URL, storage_options=options)


SOUND = {"version": 1, "job": JOB, "uploads": {}, "old": [], "after": None, "batch": None}


@pytest.mark.parametrize(
    "change",
    [
        {"batch": ["query", float("inf")]}, {"batch": ["query", 1.5]}, {"uploads": {"../a": ["1", []]}},
        {"old": ["k=1/../../other/x.parquet"]}, {"uploads": {"..": ["1", []]}}, {"job": "\ud800"}, {"job": None},
    ],
    ids=str,
)
def test_invalid_manifest_is_rejected_before_any_change(change: dict[str, Any]) -> None:
    assert StoreJournal.load(json.dumps(SOUND | {"old": ["/a//b.parquet"]}).encode(), "note").old == ("/a//b.parquet",)
    with pytest.raises(CorruptFileError, match="the journal of an unfinished job is corrupt"):
        StoreJournal.load(json.dumps(SOUND | change).encode(), "note")


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA0:word-of-secret@bucket/x", "s3a://bucket/x?secret_key=word-of-secret",
        "gs://me:word-of-secret@bucket/x", "abfss://c:word-of-secret@account.dfs.core.windows.net/x", "s3:///bucket/x",
    ],
)
def test_url_with_credentials_or_without_a_bucket_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match=r"pass them as storage_options|has no bucket") as told:
        StoreTarget(url, {"access_key": "a", "secret_key": "b"} if url.startswith("s3") else {})
    assert "word-of-secret" not in str(told.value)


def test_store_errors_display_no_secret(options: dict[str, Any]) -> None:
    wrong = multipart.Bucket("s3://no-such-bucket/x", options)
    with pytest.raises(pqext.SourceError, match="s3://no-such-bucket/x/y") as caught:
        wrong.put("x/y", b"")
    assert "wJalrX" not in str(caught.value)


@pytest.mark.parametrize("body", [b"", b"<html/>", b"<R><IsTruncated>true</IsTruncated></R>"])
def test_http_proxy_is_not_mistaken_for_an_empty_store(body: bytes) -> None:
    class Proxy(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_GET

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_port}"
        bucket = multipart.Bucket(URL, {"key": KEY, "secret": SECRET, "endpoint_url": url, "region": "us-east-1"})
        for action in (
            lambda: bucket.keys("data/"), lambda: [*bucket.iter_pending_files("data/")], lambda: bucket.begin("data/x"),
            lambda: bucket.put("data/x", b""), lambda: bucket.upload_part("data/x", "1", 1, b""),
            lambda: bucket.complete("data/x", PendingUpload("1", ("a",))),
        ):
            with pytest.raises(pqext.SourceError, match=r"response to .* has no|incomplete listing") as told:
                action()
            assert SECRET not in str(told.value)
        proxy.shutdown()


def test_large_files_are_uploaded_in_parts(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "_PART_BYTES", 5 << 20)
    bucket = multipart.Bucket(URL, options)
    upload = multipart.MultipartWriter(bucket, "data/out/x")
    for _ in range(11):
        upload.write(b"x" * (1 << 20))
    pending_files = upload.finish()
    assert len(pending_files.etags) == 3
    bucket.complete("data/out/x", pending_files)
    bucket.complete("data/out/x", pending_files)
    assert len(bucket.get("data/out/x")[0]) == 11 << 20


def attempt(target: StoreTarget, part: int, number: int, batch: pa.RecordBatch, fails: bool = False) -> Any:
    """What an attempt of a task reports that writes ``batch``, and perhaps fails after that."""
    name = f"part-{part:05d}-{JOB}-{number}"
    with PartFiles(target.begin(JOB), name, batch.schema, RAW, Division()) as files:
        files.write(batch)
        done = files.close()
        if fails:
            raise RuntimeError("the task fails")
        return done


@pytest.mark.spec("spark.store.attempts")
def test_only_reported_task_attempts_are_committed(options: dict[str, Any]) -> None:
    target = StoreTarget(URL, options)
    attempt(target, 0, 0, pa.record_batch({"x": [1]}))  # a speculative one, which Spark does not report
    first = attempt(target, 0, 1, pa.record_batch({"x": [1]}))
    with pytest.raises(RuntimeError, match="the task fails"):
        attempt(target, 1, 2, pa.record_batch({"x": [2]}), fails=True)
    second = attempt(target, 1, 3, pa.record_batch({"x": [2]}))
    target.commit([*first, *second], overwrite=False)
    assert rows(options) == [1, 2]
    assert [*target._bucket.iter_pending_files("")] == []


@pytest.mark.spec("spark.store.attempts")
def test_part_rejected_by_the_store_fails_its_attempt_and_leaves_no_file(
    s3: S3, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multipart, "_PART_BYTES", 5 << 20)
    monkeypatch.setattr(multipart, "_TRIES", 1)
    s3.refused = lambda method, url: method == "PUT" and "partNumber=2" in url
    target, batch = StoreTarget(URL, options), pa.record_batch({"x": range(1 << 20)})
    for number in range(2):  # a task fails, and fails again
        with pytest.raises(pqext.SourceError, match=rf"part-00000-{JOB}-{number}\.parquet"):
            attempt(target, 0, number, batch)
    assert [*target._bucket.iter_pending_files("")] == []
    s3.refused = None
    done = attempt(target, 0, 2, batch)
    assert len(done[0].token.etags) == 2
    target.commit(done, overwrite=False)
    assert pqext.scan(URL, storage_options=options).count() == 1 << 20


@pytest.mark.spec("spark.store.secrets", "spark.store.partitions")
def test_data_frames_are_saved_into_a_bucket_in_every_mode(spark: Any, server: S3, options: dict[str, Any]) -> None:
    def stored_rows() -> list[tuple[int, int]]:
        table = pqext.read_table(URL, storage_options=options)
        return sorted(zip(table["x"].to_pylist(), table["k"].to_pylist(), strict=True))

    frame = spark.createDataFrame([(1, 0), (2, 1)], "x LONG, k LONG").coalesce(1)
    saved = write(frame, "s3a://bucket/data/out", partition_by="k", storage_options=options)
    assert (saved.rows, saved.path, stored_rows()) == (2, URL, [(1, 0), (2, 1)])
    settings = {"access.key": KEY, "secret.key": SECRET, "endpoint": server.url, "endpoint.region": "us-east-1"}
    for name, value in settings.items():
        spark.conf.set(f"spark.hadoop.fs.s3a.{name}", value)
    try:
        with pytest.raises(FileExistsError, match='pass mode="append"'):
            write(frame, URL)
        assert write(frame, URL, "ignore").files == ()
        assert clean(URL) == CleanupResult((), ())
    finally:
        for name in settings:
            spark.conf.unset(f"spark.hadoop.fs.s3a.{name}")
    replaced = spark.createDataFrame([(7, 1)], "x LONG, k LONG").coalesce(1)
    given = {"storage_options": json.dumps(options), "partition_by": "k", "partitionOverwriteMode": "dynamic"}
    replaced.write.format("pqext").options(**given).mode("overwrite").save(URL)
    assert stored_rows() == [(1, 0), (7, 1)]
    with pytest.raises(PySparkException, match="nothing was written") as refused:
        write(replaced.selectExpr("x AS y", "k"), URL, "append", partition_by="k", storage_options=options)
    plans = spark._jsparkSession.sharedState().statusStore().executionsList()
    told = [plans.apply(at).physicalPlanDescription() for at in range(plans.size())]
    assert told
    assert not [plan for plan in (*told, str(refused.value)) if SECRET in plan or KEY in plan]


@pytest.mark.spec("spark.store.secrets")
def test_views_with_secret_storage_options_show_no_secret(spark: Any, s3: S3, options: dict[str, Any]) -> None:
    azure, account = "abfss://container@account.dfs.core.windows.net/x", '{"account_key": "dGVsbC10YWxl"}'
    pairs = f"path '{azure}', secret_storage_options '{account}'"
    spark.sql(f"create or replace temp view stored (id int) using pqext options ({pairs})")
    plans = spark._jsparkSession.sharedState().statusStore().executionsList()
    texts = [plans.apply(at).physicalPlanDescription() for at in range(plans.size())]
    assert any("`stored`" in text and "secret_storage_options" in text for text in texts)
    assert not [text for text in texts if "dGVsbC10YWxl" in text]
    frame = spark.range(3).selectExpr("id x", "id k").write.format("pqext").mode("append")
    frame.option("secret_storage_options", json.dumps(options)).save(URL)
    stored = spark.read.format("pqext").option("secret_storage_options", json.dumps(options)).load(URL)
    assert rows(options) == sorted(row.x for row in stored.collect()) == [0, 1, 2]


def test_json_is_ingested_into_a_bucket(spark: Any, options: dict[str, Any], tmp_path: Path) -> None:
    source = tmp_path / "in.json"
    source.write_text("".join(json.dumps({"kind": "ab"[n % 2], "n": n}) + "\n" for n in range(300)) + "{\n")
    arguments: dict[str, Any] = {"partition_by": ["$.kind"], "storage_options": options, "on_error": "skip"}
    done = ingest_json(spark, str(source), URL, "n INT", task_bytes=2000, bad_lines_file=True, **arguments)
    assert (done.rows, done.bad_lines) == (300, 1)
    assert done.bad_lines_file is not None
    with pqext.core.io.sources.locations.locate(done.bad_lines_file, None, options).open() as side:
        assert json.loads(bytes(side.read(0, side.size)))["raw"] == "{"
    found = pqext.read_table(URL, storage_options=options, filter=pqext.col("kind") == "b")
    assert sorted(one["n"] for one in variant.to_python(found["value"])) == [*range(1, 300, 2)]
    assert ingest_json(spark, str(source), URL, "n INT", **arguments).files == ()
    source.write_text("{}\n{")
    with pytest.raises(pqext.VariantError):
        ingest_json(spark, str(source), URL, "n INT", **{**arguments, "on_error": "fail"})
    assert pqext.scan(URL, storage_options=options).count() == 300
    assert [*multipart.Bucket(URL, options).iter_pending_files("")] == []
