"""Jobs that write into folders of Google Cloud Storage and Azure, where files wait under hidden keys."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from remote.clouds import Answer, Azure, Cloud, Google, running

import pqext
from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.container import Container
from pqext.core.io.sources.store import Location, clear_stores
from pqext.dataset.files.manifests import JOURNAL
from pqext.dataset.writing.part_files import UNDIVIDED, PartFiles, StagedFile
from pqext.dataset.writing.store_target import StoreTarget
from pqext.spark import clean
from pqext.spark.base.files import resolve_target
from pqext.spark.writing.sink import append_check

SECRET = base64.b64encode(b"a key of 64 bytes, which no message may show" + bytes(20)).decode()
JOB, OTHER, THIRD = "a" * 32, "b" * 32, "c" * 32

Place = tuple[Cloud, str, dict[str, Any]]


def google(cloud: Cloud) -> tuple[str, dict[str, Any]]:
    return "gs://bucket/data/out", {"access_token": SECRET, "endpoint_override": cloud.url}


def azure(cloud: Cloud) -> tuple[str, dict[str, Any]]:
    host = cloud.url.removeprefix("http://")
    return "abfss://bucket@account.dfs.core.windows.net/data/out", {
        "account_key": SECRET, "blob_storage_authority": host, "blob_storage_scheme": "http",
        "dfs_storage_authority": host, "dfs_storage_scheme": "http",
    }


@pytest.fixture(params=[(Google, google), (Azure, azure)], ids=["gs", "abfss"])
def target_folder(request: Any) -> Iterator[Place]:
    kind, reached = request.param
    cloud = kind()
    with running(cloud):
        url, options = reached(cloud)
        yield cloud, url, options
    clear_stores()
    pqext.clear_cache()


def staged(target: StoreTarget, job: str, values: list[int], task: int = 0) -> tuple[StagedFile, ...]:
    table = pa.table({"x": values})
    with PartFiles(
        pickle.loads(pickle.dumps(target.begin(job))), f"part-{task:05}-{job}-1", table.schema, {}, UNDIVIDED
    ) as files:
        files.write(table.to_batches()[0])
        return files.close()


def rows(url: str, options: dict[str, Any]) -> list[int]:
    """What readers see, by obstore: pyarrow holds the interpreter while it waits for Google's answer."""
    pqext.clear_cache()
    container = resolve_target(url, options)._bucket  # type: ignore[attr-defined]
    place = container.location(container.prefix)
    try:
        return sorted(pqext.read_table(place.key, filesystem=place.store.store)["x"].to_pylist())
    except FileNotFoundError:
        return []


@pytest.mark.spec("spark.store.unseen", "spark.store.overwrite")
def test_files_are_invisible_until_the_commit_and_replaced_atomically(target_folder: Place) -> None:
    cloud, url, options = target_folder
    target = StoreTarget(url, options)
    files = staged(target, JOB, [1, 2])
    assert rows(url, options) == []
    assert [key.startswith("data/out/_pqext_waiting/") for key in cloud.objects] == [True]
    target.commit(files, overwrite=False)
    assert rows(url, options) == [1, 2]
    second = StoreTarget(url, options)
    second.check(False, append_check(lambda: cloud.objects[f"data/out/part-00000-{JOB}-1.parquet"]))
    second.commit(staged(second, OTHER, [3]), overwrite=False)
    assert rows(url, options) == [1, 2, 3]
    third = StoreTarget(url, options)
    third.commit(staged(third, THIRD, [9]), overwrite=True)
    assert rows(url, options) == [9]
    assert sorted(cloud.objects) == [
        f"data/out/{name}" for name in ("_SUCCESS", JOURNAL, f"part-00000-{THIRD}-1.parquet")
    ]
    assert cloud.objects[f"data/out/{JOURNAL}"] == b""


@pytest.mark.spec("spark.store.steady")
def test_job_that_commits_during_a_listing_is_read_completely(
    target_folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url, options = target_folder
    target = StoreTarget(url, options)
    files = staged(target, JOB, [1]) + staged(target, JOB, [2], 1)
    complete, listed, done = Container.complete, Location.files, []

    def fail_once(self: Container, key: str, pending: Any) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(key)
        complete(self, key, pending)

    with monkeypatch.context() as patch:
        patch.setattr(Container, "complete", fail_once)
        with pytest.raises(KeyboardInterrupt):
            target.commit(files, overwrite=False)
    assert rows(url, options) == []

    def list_late(self: Location) -> list[Location]:
        found = listed(self)
        if done:
            done.clear()
            assert clean(url, storage_options=options).finished == (JOB,)
        return found

    monkeypatch.setattr(Location, "files", list_late)
    assert rows(url, options) == [1, 2]


@pytest.mark.spec("spark.store.decided")
def test_job_killed_around_its_manifest_is_either_absent_or_committed(
    target_folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud, url, options = target_folder

    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    for method, seen in (("claim", []), ("complete", [1, 2])):
        target = StoreTarget(url, options)
        files = staged(target, JOB, [1, 2])
        with monkeypatch.context() as patch:
            patch.setattr(Container, method, killed)
            with pytest.raises(Killed):
                target.commit(files, overwrite=False)
        assert rows(url, options) == []
        assert target._may_be_committed() == (method == "complete")
        done = clean(url, older_than=timedelta(0), storage_options=options)
        assert (done.finished, done.removed) == ((JOB,), ()) if seen else ((), (JOB,))
        assert rows(url, options) == seen
        assert not [key for key in cloud.objects if "_pqext_waiting" in key]


@pytest.mark.spec("spark.store.together")
def test_manifest_is_released_only_by_a_job_that_read_it(target_folder: Place) -> None:
    _, url, options = target_folder
    container: Any = StoreTarget(url, options)._bucket
    first = container.claim("n", b"one")
    with pytest.raises(FileExistsError):
        container.claim("n", b"two")
    container.release("n", first)
    with pytest.raises(FileNotFoundError):
        container.get("n")
    second = container.claim("n", b"two")
    container.release("n", first)
    assert container.get("n") == (b"two", second)


@pytest.mark.spec("spark.store.secrets")
def test_errors_display_no_secret(target_folder: Place) -> None:
    cloud, url, options = target_folder
    target = StoreTarget(url, options)
    cloud.faults += [Answer(403)] * 3
    with pytest.raises(PermissionError) as caught:
        target._bucket.put("x", b"")
    assert SECRET not in f"{caught.value!r} {target!r} {target.begin(JOB)!r}"
    with pytest.raises(ValueError, match="cannot be opened") as wrong:
        StoreTarget(url, {**options, "sekret_option": SECRET})
    assert SECRET not in str(wrong.value)


def test_stores_without_staged_uploads_are_rejected() -> None:
    with pytest.raises(UnsupportedError, match="from several tasks is not supported on hdfs://"):
        resolve_target("hdfs://name/folder", None)
