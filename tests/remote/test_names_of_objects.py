"""Names of objects that look like parts of URLs, and options of URLs; boto3 lists the keys that were written."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from remote.conftest import BUCKET, KEY, S3, SECRET

import pqext
from pqext.core.base.errors import SourceError
from pqext.core.io.sources.locations import locate, may_be_same_file

KEYS = ["q?1.parquet", "q?2.parquet", "q#1.parquet", "q#2.parquet", "q#a?b.parquet", "p%3F1.parquet", "w[1].parquet"]
ROUTES = ["url", "pyarrow", "obstore"]


@pytest.fixture
def boto(s3: S3) -> Iterator[Any]:
    client = boto3.client(
        "s3", endpoint_url=s3.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
    )
    yield client
    client.close()


def route(name: str, s3: S3) -> tuple[str, dict[str, Any]]:
    """What precedes keys, and the arguments that reach the store."""
    if name == "url":
        return f"s3://{BUCKET}/", {"storage_options": s3.options}
    return (f"{BUCKET}/", {"filesystem": s3.arrow()}) if name == "pyarrow" else ("", {"filesystem": s3.obstore()})


def parquet(number: int) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": [number]}), file)
    return file.getvalue()


@pytest.mark.parametrize("name", ROUTES)
def test_question_marks_and_hashes_are_part_of_keys(name: str, s3: S3, boto: Any) -> None:
    base, given = route(name, s3)
    for number, key in enumerate(KEYS):
        pqext.write_table(pa.table({"x": [number]}), f"{base}t/{key}", **given)
    listed = [entry["Key"] for entry in boto.list_objects_v2(Bucket=BUCKET, Prefix="t/")["Contents"]]
    assert sorted(listed) == sorted(f"t/{key}" for key in KEYS)
    for number, key in enumerate(KEYS):
        assert pqext.read_table(f"{base}t/{key}", **given)["x"].to_pylist() == [number]
    assert sorted(pqext.read_table(f"{base}t", **given)["x"].to_pylist()) == [*range(len(KEYS))]
    assert sorted(pqext.read_table(f"{base}t/q*1.parquet", **given)["x"].to_pylist()) == [0, 2]


@pytest.mark.parametrize("name", ["url", "pyarrow"])
def test_keys_with_empty_segments_are_skipped_with_a_warning(name: str, s3: S3, boto: Any) -> None:
    for number, key in enumerate(["d/a.parquet", "d/a//b.parquet", "d//c.parquet", "d/k=1/e.parquet"]):
        boto.put_object(Bucket=BUCKET, Key=key, Body=parquet(number))
    base, given = route(name, s3)
    for pattern in ("d", "d/", "d/**/*.parquet"):
        with pytest.warns(UserWarning, match=r"^s3://bucket/d/.* and 1 others are skipped"):
            assert sorted(pqext.read_table(base + pattern, **given)["x"].to_pylist()) == [0, 3]


@pytest.mark.parametrize("name", ROUTES)
def test_key_with_an_empty_segment_is_rejected_immediately(name: str, s3: S3, boto: Any) -> None:
    boto.put_object(Bucket=BUCKET, Key="d//c.parquet", Body=parquet(1))
    base, given = route(name, s3)
    for use in (pqext.read_table, lambda path, **given: pqext.write_table({"x": [1]}, path, **given)):
        with pytest.raises(SourceError, match=r"(?i)empty path (component|segment)") as caught:
            use(f"{base}d//c.parquet", **given)
        assert "attempts" not in str(caught.value)


def test_question_marks_and_hashes_are_part_of_local_names(tmp_path: Path) -> None:
    for number, name in enumerate(["q?1.parquet", "q?2.parquet", "q#1.parquet", "q?a=1.parquet"]):
        pqext.write_table(pa.table({"x": [number]}), f"file://{tmp_path}/{name}")
        assert pq.read_table(tmp_path / name)["x"].to_pylist() == [number]
        assert pqext.read_table(f"file://{tmp_path}/{name}")["x"].to_pylist() == [number]
        assert pqext.read_table((tmp_path / name).as_uri())["x"].to_pylist() == [number]
    assert len([*tmp_path.iterdir()]) == 4


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("gs://anonymous@b/q?1#2.parquet", "b/q?1#2.parquet"),
        ("gs://anonymous@b/q.parquet?retry_limit_seconds=3", "b/q.parquet"),
        ("s3://key:secretword@b/q?1#2.parquet?region=eu-west-1", "b/q?1#2.parquet"),
        ("s3://b/q.parquet?region=eu-west-1", "b/q.parquet"),
        ("abfss://c@acct.dfs.core.windows.net/q?1#2.parquet", "c/q?1#2.parquet"),
    ],
)
def test_only_trailing_options_are_excluded_from_keys(url: str, key: str) -> None:
    options = {"account_key": "c2VjcmV0"} if url.startswith("abfss") else {}
    assert locate(url, None, options).key == key


def test_different_keys_are_different_files() -> None:
    assert not may_be_same_file("s3://b/q?1.parquet", "s3://b/q?2.parquet")
    assert may_be_same_file("s3://b/q.parquet", "s3a://b/q.parquet?region=eu-west-1")
    assert may_be_same_file("https://h/q.parquet?a", "https://h/q.parquet?b")


MALFORMED: list[Any] = ["http://user:sesame@ho st:99999x", "user:sesame@", "sesame", {"sesame": "sesame"}, ["sesame"]]
OPTIONS = [
    "allow_invalid_certificates", "connect_timeout", "default_headers", "http1_only", "pool_idle_timeout",
    "pool_max_idle_per_host", "proxy_url", "timeout",
]  # fmt: skip


@pytest.mark.parametrize("value", MALFORMED, ids=repr)
@pytest.mark.parametrize("option", OPTIONS)
def test_malformed_connection_options_are_errors_without_their_values(option: str, value: Any) -> None:
    if option == "default_headers" and isinstance(value, dict):
        value = {"x": "sesame\n"}
    if (option, value) == ("proxy_url", "sesame"):
        value = "sesame:port"  # a name alone is a host
    with pytest.raises(ValueError, match=option) as caught:
        pqext.read_table("http://127.0.0.1:9/x.parquet", storage_options={option: value})
    error: BaseException | None = caught.value
    while error is not None:
        assert "sesame" not in str(error)
        assert not type(error).__module__.startswith("obstore")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_web_locations_can_be_pickled() -> None:
    place = locate("http://127.0.0.1:9/x.parquet", None, {"proxy_url": "http://user:sesame@127.0.0.1:8"})
    assert pickle.loads(pickle.dumps(place)).path == "http://127.0.0.1:9/x.parquet"
