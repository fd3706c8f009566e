"""Commands reach stores with options that are given to them or stand in the environment, and never show a value."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import pqext
from pqext import geo, variant
from pqext.cli import app
from pqext.core.io.sources import multipart

from .conftest import BUCKET, KEY, S3, SECRET

ROWS = 20
NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})


def options(s3: S3) -> list[str]:
    named = {"aws_access_key_id": KEY, "secret_access_key": SECRET, "endpoint_url": s3.url, "region": "us-east-1"}
    return [f"--storage-option={key}={value}" for key, value in named.items()]


def stored(s3: S3, key: str = "d/x.parquet") -> str:
    sink = io.BytesIO()
    events = variant.parse_json([json.dumps({"n": n}) for n in range(ROWS)])
    points = geo.from_points([float(n) for n in range(ROWS)], [0.0] * ROWS)
    schema = pa.schema([("n", pa.int64()), variant.variant_field("event"), geo.geometry_field("geom")])
    pqext.write_table(pa.table([[*range(ROWS)], events, points.cast(schema.field("geom").type)], schema=schema), sink)
    return s3.put(key, sink.getvalue())


READS: dict[str, list[str]] = {
    "query": ["query", "URL", "--where", "n = 7", "--format", "json"],
    "head": ["head", "URL"],
    "count": ["count", "URL"],
    "schema": ["schema", "URL"],
    "inspect": ["inspect", "URL"],
    "verify": ["verify", "URL"],
    "map": ["map", "URL", "-o", "OUT/map.html"],
    "query to a file": ["query", "URL", "-o", "OUT/rows.jsonl"],
    "convert": ["convert", "URL", "OUT/made.parquet"],
    "reshred": ["reshred", "URL", "OUT/made.parquet"],
    "unshred": ["unshred", "URL", "OUT/made.parquet"],
    "repair": ["repair", "URL", "OUT/made.parquet"],
}


@pytest.mark.parametrize("name", READS)
def test_every_command_reads_with_options(name: str, s3: S3, tmp_path: Path) -> None:
    url = stored(s3)
    arguments = [text.replace("URL", url).replace("OUT", str(tmp_path)) for text in READS[name]]
    result = run(*arguments, *options(s3))
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    assert KEY not in result.output
    assert s3.ranges()


def test_folders_and_patterns_are_read_with_options(s3: S3) -> None:
    for part in range(2):
        stored(s3, f"d/part{part}.parquet")
    for place in (f"s3://{BUCKET}/d", f"s3://{BUCKET}/d/*.parquet"):
        assert run("count", place, *options(s3)).output == f"{2 * ROWS}\n"
        assert f"s3://{BUCKET}/d/part1.parquet: no faults" in run("verify", place, *options(s3)).output


WRITES: dict[str, list[str]] = {
    "query": ["query", "IN", "-o", "URL"],
    "convert": ["convert", "IN", "URL"],
    "reshred": ["reshred", "IN", "URL"],
    "unshred": ["unshred", "IN", "URL"],
    "repair": ["repair", "IN", "URL"],
}


@pytest.mark.parametrize("name", WRITES)
def test_every_command_writes_with_options_and_replaces_no_file_by_default(name: str, s3: S3, tmp_path: Path) -> None:
    local, url = tmp_path / "x.parquet", f"s3://{BUCKET}/made.parquet"
    events = pa.array([b"\x01\x00\x00"] * 3), pa.array([b"\x00"] * 3)
    schema = pa.schema([("n", pa.int64()), variant.variant_field("event")])
    event = pa.StructArray.from_arrays(events, fields=[*schema.field("event").type])
    pqext.write_table(pa.table([[1, 2, 3], event], schema=schema), local)
    arguments = [text.replace("URL", url).replace("IN", str(local)) for text in WRITES[name]]
    assert run(*arguments, *options(s3)).exit_code == 0
    assert pq.read_table(f"{BUCKET}/made.parquet", filesystem=s3.arrow())["n"].to_pylist() == [1, 2, 3]
    again = run(*arguments, *options(s3))
    assert again.exit_code == 2
    assert "--force" in again.output
    assert run(*arguments, *options(s3), "--force").exit_code == 0


def test_environment_provides_missing_storage_options(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    url = stored(s3)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    result = run("count", url, "--storage-option", f"endpoint_url={s3.url}", "--storage-option", "region=us-east-1")
    assert result.output == f"{ROWS}\n"
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert run("count", url, "--storage-option", "request_timeout=30").output == f"{ROWS}\n"
    assert run("count", url).output == f"{ROWS}\n"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--storage-option", SECRET], "KEY=VALUE"),
        (["--storage-option", f"={SECRET}"], "KEY=VALUE"),
        (["--storage-option", f"secret_key={SECRET}", "--storage-option", f"secret_key={SECRET}"], "duplicate key"),
        (["--storage-option", f"sercet={SECRET}"], "no storage option 'sercet'"),
        (["--storage-option", f"request_timeout={SECRET}"], "must be a number"),
        (["--storage-option", f"access_key={SECRET}"], "secret"),
    ],
)
def test_invalid_options_are_reported_without_their_values(given: list[str], told: str, s3: S3) -> None:
    result = run("count", f"s3://{BUCKET}/x.parquet", *given)
    assert result.exit_code == 2, result.output
    assert told in result.output
    assert SECRET not in result.output
    assert s3.asked == []


@pytest.mark.parametrize("option", ["--storage-option=region=eu-central-1", "--anonymous"])
def test_options_without_a_url_are_rejected(option: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pqext.write_table(pa.table({"n": [1]}), path)
    result = run("count", path, option)
    assert result.exit_code == 2
    assert "applies to URLs only" in result.output


def test_rejected_credentials_are_never_displayed(s3: S3) -> None:
    url = f"s3://{BUCKET}/none.parquet"
    result = run("count", url, *options(s3))
    assert result.exit_code == 1
    assert SECRET not in str(result.exception)
    assert KEY not in str(result.exception)


def test_anonymous_readers_sign_nothing_and_detect_the_region(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    url = stored(s3)
    made: list[dict[str, Any]] = []
    real = fs.S3FileSystem

    def with_endpoint(**arguments: Any) -> fs.S3FileSystem:
        made.append(arguments)
        return real(**arguments, endpoint_override=s3.url.removeprefix("http://"), scheme="http")

    monkeypatch.setattr(fs, "S3FileSystem", with_endpoint)
    monkeypatch.setattr(fs, "resolve_s3_region", lambda bucket: {BUCKET: "eu-central-1"}[bucket])
    assert run("count", url, "--anonymous").output == f"{ROWS}\n"
    assert made == [{"anonymous": True, "region": "eu-central-1"}]
    assert run("count", url, "--anonymous", "--storage-option=region=us-east-1").output == f"{ROWS}\n"
    assert made[1:] == [{"anonymous": True, "region": "us-east-1"}]


@pytest.mark.parametrize("anonymous", [True, False])
def test_uploads_are_signed_unless_anonymous(s3: S3, anonymous: bool) -> None:
    given = {"endpoint_url": s3.url, "region": "us-east-1", "aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    client = multipart._client({**given, "anonymous": anonymous})
    url = client.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "k"})
    assert ("Signature=" in url) is not anonymous
    client.close()


@pytest.mark.parametrize("key", ["secret!", "c2VjcmV0c", "c2Vj cmV0"])
def test_invalid_base64_azure_key_is_rejected_before_it_aborts_the_process(key: str) -> None:
    code = f"""
import pqext
try:
    pqext.open("abfss://container@account.dfs.core.windows.net/x", storage_options={{"account_key": {key!r}}})
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "storage option 'account_key' is not valid base64" in done.stdout
    assert key not in done.stdout
