"""Google Cloud Storage and Azure by obstore and by pyarrow, on loopback; and HDFS where there is none."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pytest
from obstore.store import AzureStore, GCSStore

import pqext
from pqext import ChangedFileError, SourceError, UnsupportedError, col
from pqext.core.io.sources import remote, uris
from pqext.core.io.sources.store import clear_stores

from .clouds import Answer, Azure, Cloud, Google, running

ROWS = 20_000
TABLE = pa.table({"n": range(ROWS), "text": [f"text {n}" for n in range(ROWS)]})
SECRET = base64.b64encode(b"a key of 64 bytes, which no message may show" + bytes(20)).decode()
ACCOUNT = "devstoreaccount1"

Given = dict[str, Any]


def google_store(cloud: Cloud) -> tuple[str, Given]:
    account = {
        "gcs_base_url": cloud.url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": "",
    }
    return "", {"filesystem": GCSStore(
        "bucket", service_account_key=json.dumps(account), client_options={"allow_http": True},
        retry_config={"max_retries": 0},  # type: ignore[arg-type]
    )}


def azure_store(cloud: Cloud) -> tuple[str, Given]:
    return "", {"filesystem": AzureStore(
        "bucket", account_name=ACCOUNT, account_key=SECRET, endpoint=f"{cloud.url}/{ACCOUNT}",
        client_options={"allow_http": True}, retry_config={"max_retries": 0},  # type: ignore[arg-type]
    )}


def azure_url(cloud: Cloud) -> tuple[str, Given]:
    host = cloud.url.removeprefix("http://")
    return "abfss://bucket/", {"storage_options": {
        "account_name": ACCOUNT, "account_key": SECRET, "blob_storage_authority": host, "dfs_storage_authority": host,
        "blob_storage_scheme": "http", "dfs_storage_scheme": "http",
    }}


PLACES: dict[str, tuple[type[Cloud], Callable[[Cloud], tuple[str, Given]]]] = {
    "Google by obstore": (Google, google_store),
    "Azure by obstore": (Azure, azure_store),
    "Azure by pyarrow": (Azure, azure_url),
}
BY_OBSTORE = ["Google by obstore", "Azure by obstore"]


@pytest.fixture
def reached() -> Iterator[Callable[[str], tuple[Cloud, str, Given]]]:
    """Starts the server of a place; gives it, what its URLs begin with, and what else reaches it."""
    clear_stores()
    pqext.clear_cache()
    with ExitStack() as stack:

        def start(name: str) -> tuple[Cloud, str, Given]:
            kind, place = PLACES[name]
            cloud = kind()
            stack.enter_context(running(cloud))
            return cloud, *place(cloud)

        yield start
    pqext.clear_cache()
    clear_stores()


def visible(cloud: Cloud) -> dict[str, bytes]:
    """The objects that are neither the marks of folders nor what readers pass over."""
    return {key: data for key, data in cloud.objects.items() if data and "/.pqext-" not in key}


Reached = Callable[[str], tuple[Cloud, str, Given]]


@pytest.mark.spec("querying.uploads")
@pytest.mark.parametrize("name", PLACES)
def test_file_is_written_atomically_and_read_equal(name: str, reached: Reached) -> None:
    cloud, base, given = reached(name)
    place = f"{base}d/x y.parquet"
    for _ in range(2):  # the second time it takes the place of the first
        before = visible(cloud)
        with suppress(ZeroDivisionError), pqext.ParquetWriter(place, TABLE.schema, **given) as writer:
            writer.write_table(TABLE)
            raise ZeroDivisionError
        assert visible(cloud) == before
        pqext.write_table(TABLE, place, row_group_rows=5_000, page_rows=500, **given)
        assert [*visible(cloud)] == ["d/x y.parquet"]
        pqext.clear_cache()
        assert pqext.read_table(place, **given).equals(TABLE)
    found = pqext.scan(place, ["text"], col("n").isin([7, 12_345]), **given)
    assert found.to_table()["text"].to_pylist() == ["text 7", "text 12345"]
    assert pqext.verify(place, **given).ok


@pytest.mark.parametrize("name", PLACES)
def test_folders_are_listed_with_partitions(name: str, reached: Reached) -> None:
    cloud, base, given = reached(name)
    for year in (2025, 2026):
        pqext.write_table(pa.table({"n": [year]}), f"{base}sales/year={year}/part & 1.parquet", **given)
    pqext.write_table(pa.table({"n": [1]}), f"{base}sales-of-others/x.parquet", **given)
    for place in ("sales", "sales/", "sales/*/*.parquet"):
        assert pqext.read_table(f"{base}{place}", ["n"], **given)["n"].to_pylist() == [2025, 2026]
    cloud.asked.clear()
    assert pqext.scan(f"{base}sales", filter=col("year") == 2026, **given).to_table()["n"].to_pylist() == [2026]
    assert not any("2025" in one.path for one in cloud.asked if one.range)


@pytest.mark.parametrize("name", PLACES)
def test_large_files_are_uploaded_in_parts(name: str, reached: Reached) -> None:
    cloud, base, given = reached(name)
    noise = pa.table({"x": np.random.default_rng(1).random(3_000_000)})
    pqext.write_table(noise, f"{base}x.parquet", dictionary=False, **given)
    assert sum(len(one.body) > 1_000_000 for one in cloud.asked) > 1
    assert pqext.read_table(f"{base}x.parquet", **given).equals(noise)


@pytest.mark.spec("querying.round-trips")
@pytest.mark.parametrize("name", PLACES)
def test_point_lookup_takes_three_round_trips_and_no_byte_twice(name: str, reached: Reached) -> None:
    cloud, base, given = reached(name)
    rows = 400_000
    wide = pa.table({"n": range(rows), "noise": np.random.default_rng(2).random(rows)})
    pqext.write_table(wide, f"{base}x.parquet", row_group_rows=100_000, page_rows=2_000, dictionary=False, **given)
    pqext.clear_cache()
    cloud.asked.clear()
    found = pqext.scan(f"{base}x.parquet", filter=col("n") == 123_456, **given)
    assert found.to_table()["noise"].to_pylist() == [wide["noise"][123_456].as_py()]
    reads = [one for one in cloud.reads() if one is not None]
    assert len(reads) <= 3
    size = len(cloud.objects["x.parquet"])
    seen: set[int] = set()
    for one in reads:
        first, _, last = one.removeprefix("bytes=").partition("-")
        part = range(int(first), int(last) + 1) if first else range(size - int(last), size)
        assert seen.isdisjoint(part)
        seen.update(part)
    assert len(seen) < size / 2


def test_tail_of_a_google_object_is_returned_with_its_size(reached: Reached) -> None:
    cloud, _, given = reached("Google by obstore")
    pqext.write_table(TABLE, "x.parquet", **given)
    cloud.asked.clear()
    with pqext.open("x.parquet", **given) as file:
        assert file.metadata.num_rows == ROWS
    assert [(one.method, one.range) for one in cloud.asked] == [("GET", "bytes=-524288")]
    # Kept while its etag stays.
    with pqext.open("x.parquet", **given):
        assert len(cloud.asked) == 2
    assert cloud.asked[-1].headers["if-none-match"]


@pytest.mark.parametrize("name", BY_OBSTORE)
def test_transient_errors_are_retried_and_others_are_typed(
    name: str, reached: Reached, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BACKOFF", 0.0)
    cloud, _, given = reached(name)
    pqext.write_table(TABLE, "x.parquet", **given)
    pqext.clear_cache()
    cloud.faults += [Answer(503), Answer(429)]
    assert pqext.read_table("x.parquet", **given).equals(TABLE)
    for status, error in ((403, PermissionError), (401, PermissionError), (404, FileNotFoundError), (500, SourceError)):
        pqext.clear_cache()
        cloud.faults[:] = [Answer(status)] * 8
        with pytest.raises(error, match=r"x\.parquet") as told:
            pqext.read_table("x.parquet", **given)
        assert SECRET not in str(told.value)
    cloud.faults.clear()
    with pytest.raises(FileNotFoundError):
        pqext.open("none.parquet", **given)


@pytest.mark.spec("querying.versions")
@pytest.mark.parametrize("name", PLACES)
def test_object_replaced_while_reading_is_detected(name: str, reached: Reached) -> None:
    cloud, base, given = reached(name)
    noise = pa.table({"x": np.random.default_rng(3).random(200_000)})
    pqext.write_table(noise, f"{base}x.parquet", dictionary=False, **given)
    with pqext.open(f"{base}x.parquet", **given) as file:
        cloud.objects["x.parquet"] = bytes(len(cloud.objects["x.parquet"]))
        with pytest.raises(ChangedFileError, match="replaced while it was read"):
            file.read()


def test_pyarrow_reads_google_storage() -> None:
    clear_stores()
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("clouds.py"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            options = {"anonymous": True, "endpoint_override": server.stdout.readline().strip()}
            place = "gs://bucket/d/year=2026/x y.parquet"
            pqext.write_table(TABLE, place, storage_options=options)
            assert pqext.read_table(place, ["n"], storage_options=options)["n"].equals(TABLE["n"])
            found = pqext.scan("gs://bucket/d", filter="year = 2026 and n = 7", storage_options=options).to_table()
            assert found.to_pylist() == [{"n": 7, "text": "text 7", "year": 2026}]
            with pytest.raises(FileNotFoundError):
                pqext.open("gs://bucket/none.parquet", storage_options=options)
        finally:
            server.stdin.close()
            clear_stores()


@pytest.mark.slow
@pytest.mark.parametrize("is_url", [True, False])
def test_unreachable_google_is_an_error_in_bounded_time(is_url: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uris, "_GCS_RETRIES", 1)
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    clear_stores()
    started, there = time.monotonic(), {"endpoint_override": "127.0.0.1:1", "scheme": "http"}
    url = f"gs://anonymous@bucket/x.parquet?{urlencode(there)}" if is_url else "gs://bucket/x.parquet"
    with pytest.raises(pqext.SourceError, match="could not be fetched"):
        pqext.open(url, storage_options=None if is_url else {"anonymous": True, **there})
    assert time.monotonic() - started < 60  # of Google's library alone it would be 15 minutes


@pytest.mark.parametrize(("host", "there"), [
    ("account.dfs.core.windows.net", None),
    ("account.dfs.core.chinacloudapi.cn", ".core.chinacloudapi.cn"),
    ("account.blob.core.usgovcloudapi.net", ".core.usgovcloudapi.net"),
    ("account.z3.dfs.storage.azure.net", ".storage.azure.net"),
])  # fmt: skip
def test_keys_are_sent_to_the_azure_cloud_of_the_url(
    host: str, there: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key, asked = f"abfss://box@{host}/t", {"sas_token": "sv=1&sig=sesame"}, []

    def filesystem(**arguments: str) -> None:
        asked.append(arguments)
        raise OSError("no such cloud here")

    monkeypatch.setattr("pyarrow.fs.AzureFileSystem", filesystem)
    with pytest.raises(ValueError, match="no such cloud here"):
        pqext.open(url, storage_options=key)
    endpoint = str(uris.obstore_arguments(url, "abfss", key)[0].get("endpoint"))
    found = {kind: asked[0].get(f"{kind}_storage_authority", "") for kind in ("dfs", "blob")}
    if there is None:
        assert (found, endpoint) == ({"dfs": "", "blob": ""}, "None")
    else:
        assert all(f".{kind}." in name and name.endswith(there) for kind, name in found.items())
        assert endpoint == f"https://account{found['blob']}"
    with pytest.raises(ValueError, match="not an Azure host: pass blob_storage_authority"):
        pqext.open("abfss://box@account.example.org/t", storage_options=key)


@pytest.mark.slow
def test_azure_without_a_token_is_an_error_and_does_not_abort_the_process() -> None:
    code = (
        "import pqext\n"
        "options = {'client_id': 'me', 'client_secret': 'sesame', 'tenant_id': 'us'}\n"
        "try:\n    pqext.open('abfss://c@account.dfs.core.windows.net/x', storage_options=options)\n"
        "except PermissionError as error:\n    print(error)\n"
    )
    nobody = {**os.environ, "AZURE_AUTHORITY_HOST": "https://127.0.0.1:1/"}
    done = subprocess.run([sys.executable, "-c", code], env=nobody, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Azure did not issue a token" in done.stdout
    assert "sesame" not in done.stdout


@pytest.mark.parametrize("options", [None, {"user": "me", "port": "8020"}])
def test_hdfs_without_hadoop_names_the_requirements(options: Given | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR", "CLASSPATH"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UnsupportedError, match=r"libhdfs.*ARROW_LIBHDFS_DIR") as told:
        pqext.open("hdfs://namenode:8020/x.parquet", storage_options=options)
    assert told.value.feature == "hdfs://"
