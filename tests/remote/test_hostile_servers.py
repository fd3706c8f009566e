"""Web servers that answer short, long, late, wrong or not at all: typed errors that name the URL and the range."""

from __future__ import annotations

import http.server
import io
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import pqext
from pqext import geo
from pqext.cli import app
from pqext.core.io.sources import remote, store
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store import BufferedUpload, clear_stores

TABLE = pa.table({"a": list(range(20_000)), "b": [f"text {at}" for at in range(20_000)]})


def stored() -> bytes:
    sink = io.BytesIO()
    pqext.write_table(TABLE, sink, row_group_rows=5_000)
    return sink.getvalue()


FILE = stored()


class Server(http.server.ThreadingHTTPServer):
    """Serves one file, as ``manner`` says from the request on that is called so many."""

    daemon_threads = True
    manner = "well"
    after = 0
    times = 1 << 30
    asked: list[tuple[str, str, str | None]]
    over = threading.Event()

    def is_bad(self) -> bool:
        return self.after < len(self.asked) <= self.after + self.times


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.server.asked.append(("HEAD", self.path, None))
        self.answer(200, {"Content-Length": str(len(FILE)), "ETag": '"one"'}, b"")

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(("GET", self.path, asked))
        manner = self.server.manner if self.server.is_bad() else "well"
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", asked or "")
        assert match is not None
        size = len(FILE)
        start, stop = (int(match[1]), int(match[2]) + 1) if match[1] else (max(size - int(match[2]), 0), size)
        assert stop <= size, "more was asked for than the file has"
        body, told, status, etag = FILE[start:stop], f"bytes {start}-{stop - 1}/{size}", 206, '"one"'
        length = len(body)
        if manner == "short":
            length, body = length - 1, body[:-1]
        elif manner == "cut":
            body = body[: len(body) // 2]
            self.close_connection = True
        elif manner == "long":
            length, body = length + 10, body + bytes(10)
        elif manner == "whole":
            body, status, length = FILE, 200, size
        elif manner == "elsewhere":
            told = f"bytes {start + 1}-{stop}/{size + 1}"
        elif manner == "smaller":
            told = f"bytes {start}-{stop - 1}/{size - 1}"
        elif manner == "huge":
            told = f"bytes {start}-{stop - 1}/{1 << 60}"
        elif manner == "no range":
            told = ""
        elif manner == "other":
            etag = '"two"'
        elif manner == "never":
            self.server.over.wait(120)
            self.close_connection = True
            return
        elif manner == "redirect":
            self.answer(302, {"Location": self.path + "&again=1", "Content-Length": "0"}, b"")
            return
        elif manner.isdigit():
            self.answer(int(manner), {"Content-Length": "5"}, b"oops\n")
            return
        headers = {"Content-Length": str(length), "ETag": etag, **({"Content-Range": told} if told else {})}
        self.answer(status, headers, body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(remote, "BACKOFF", 0.0)
    monkeypatch.setattr(store, "FIRST_TAIL", 4 << 10)
    monkeypatch.setattr(store, "FIRST_GAP", 1 << 10)
    clear_stores()
    pqext.clear_cache()
    running = Server(("127.0.0.1", 0), Handler)
    running.asked, running.over = [], threading.Event()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.over.set()
    running.shutdown()
    running.server_close()
    thread.join()
    clear_stores()


def url(server: Server, user: str = "") -> str:
    return f"http://{user}127.0.0.1:{server.server_port}/folder/x.parquet?signature=SIGNED%2Fsecret&user=me"


def named(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/folder/x.parquet"


def test_file_is_read_by_ranges_with_the_query_of_its_url(server: Server) -> None:
    with pqext.open(url(server)) as file:
        assert file.path == named(server)
        assert file.read().equals(TABLE)
    assert all("signature=SIGNED%2Fsecret" in path for _, path, _ in server.asked)
    assert server.asked[0] == ("GET", server.asked[0][1], "bytes=-4096")


BAD = {
    "short": r"could not be fetched",
    "cut": r"could not be fetched in 4 attempts",
    "long": r"could not be fetched",
    "whole": r"could not be fetched",
    "elsewhere": r"could not be fetched|was replaced",
    "smaller": r"could not be fetched|was replaced",
    "huge": r"could not be fetched|was replaced",
    "no range": r"could not be fetched",
    "other": r"was replaced while it was read: it was etag \"one\"",
    "404": r"was removed while it was read",
    "410": r"was removed while it was read",
    "403": r"could not be fetched",
    "416": r"could not be fetched",
    "500": r"could not be fetched in 4 attempts",
    "503": r"could not be fetched in 4 attempts",
    "429": r"could not be fetched in 4 attempts",
}


@pytest.mark.spec("querying.retries")
@pytest.mark.parametrize("manner", BAD)
def test_invalid_range_responses_are_typed_errors(server: Server, manner: str) -> None:
    with pqext.open(url(server)) as file:
        server.asked.clear()
        server.manner = manner
        with pytest.raises(pqext.SourceError, match=BAD[manner]) as told:
            file.read(["b"])
    error = told.value
    assert error.path == named(server)
    assert error.offset is not None
    assert re.search(rf"\d+ bytes at (offset )?{error.offset}|replaced", str(error))
    assert isinstance(error, OSError)
    check_secrets(error)
    assert len(server.asked) <= 4 * 8


def check_secrets(error: BaseException | None) -> None:
    """Nothing of what shows in a traceback holds what must not be shown."""
    while error is not None:
        for text in (str(error), repr(error), *map(str, error.args)):
            assert "SIGNED" not in text, text
            assert "sesame" not in text, text
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.spec("querying.retries")
@pytest.mark.parametrize("manner", ["short", "cut", "500", "503", "429"])
def test_transient_errors_cost_at_most_one_retry(server: Server, manner: str) -> None:
    with pqext.open(url(server)) as file:
        server.asked.clear()
        server.manner, server.times = manner, 1
        assert file.read(["a"]).equals(TABLE.select(["a"]))


@pytest.mark.spec("querying.retries")
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(("manner", "attempts"), [("long", 1), ("short", 4)])
def test_only_short_responses_are_requested_again(server: Server, manner: str, attempts: int, is_open: bool) -> None:
    with pqext.open(url(server)) if is_open else nullcontext() as file:
        server.asked.clear()
        server.manner = manner
        with pytest.raises(pqext.SourceError, match="the response has"):
            file.read(["b"]) if file else pqext.open(url(server))
    assert len(server.asked) == attempts


@pytest.mark.parametrize("manner", ["whole", "500", "cut", "no range", "huge", "long"])
def test_invalid_responses_on_open_are_typed_errors(server: Server, manner: str) -> None:
    server.manner = manner
    with pytest.raises((pqext.SourceError, pqext.CorruptFileError)) as told:
        pqext.open(url(server))
    assert told.value.path == named(server)
    check_secrets(told.value)


def test_missing_or_forbidden_file_is_an_error(server: Server) -> None:
    server.manner = "404"
    with pytest.raises(FileNotFoundError) as missing:
        pqext.open(url(server))
    assert missing.value.filename == named(server)
    server.manner = "401"
    with pytest.raises(PermissionError) as refused:
        pqext.open(url(server, user="ali:sesame@"))
    assert refused.value.filename == named(server)
    check_secrets(refused.value)


def test_slow_server_times_out(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ATTEMPTS", 100)  # a busy machine may answer late, too
    with pqext.open(url(server), storage_options={"timeout": "300ms"}) as file:
        monkeypatch.setattr(remote, "ATTEMPTS", 2)
        server.manner = "never"
        with pytest.raises(pqext.SourceError, match=r"could not be fetched in 2 attempts") as told:
            file.read(["a"])
    assert told.value.path == named(server)
    check_secrets(told.value)


def test_unreachable_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BACKOFF", 0.0)
    with pytest.raises(pqext.SourceError, match=r"could not be fetched in 4 attempts: .*: [^:]*refused") as told:
        pqext.open("http://sesame:sesame@127.0.0.1:1/x.parquet?signature=SIGNED")
    assert told.value.path == "http://127.0.0.1:1/x.parquet"
    check_secrets(told.value)


def test_host_without_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    with pytest.raises(pqext.SourceError, match=r"could not be fetched: .*: the host name cannot be resolved") as told:
        pqext.open("https://sesame:sesame@nowhere.invalid/x.parquet")
    check_secrets(told.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_silent_server_times_out(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(pqext.SourceError, match=r"could not be fetched: .*: it timed out"):
            pqext.open(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/x", storage_options={"timeout": "200ms"})


def test_server_without_tls_is_reported(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    with pytest.raises(pqext.SourceError, match=r"could not be fetched: .*: the response is not TLS: "):
        pqext.open(url(server).replace("http:", "https:"))


def test_redirects_are_followed_up_to_a_limit(server: Server) -> None:
    server.manner, server.times = "redirect", 1
    with pqext.open(url(server)) as file:
        assert file.num_rows == 20_000
    server.asked.clear()
    server.times = 1 << 30
    clear_stores()
    with pytest.raises(pqext.SourceError) as told:
        pqext.open(url(server))
    check_secrets(told.value)
    assert len(server.asked) < 100
@pytest.mark.spec("querying.retries")
def test_credentials_are_never_displayed(server: Server) -> None:
    options = {"default_headers": {"authorization": "Bearer SIGNED-sesame"}}
    scan = pqext.scan(url(server, user="ali:sesame@"), storage_options=options)
    with pqext.open(url(server), storage_options=options) as file:
        shown = [repr(scan), scan._repr_html_(), scan.explain(), repr(file), repr(file.source), file._repr_html_()]
    for text in shown:
        assert "SIGNED" not in text
        assert "sesame" not in text
    with pytest.raises(ValueError, match="unknown storage option 'timeot'; did you mean 'timeout'") as told:
        pqext.open(url(server), storage_options={"timeot": "SIGNED"})
    check_secrets(told.value)
    with pytest.raises(pqext.UnsupportedError, match="web servers are read-only"):
        pqext.write_table(TABLE, url(server))


def test_urls_that_differ_only_in_their_query_are_all_verified(server: Server) -> None:
    first, second = (f"http://127.0.0.1:{server.server_port}/x.parquet?file={number}" for number in (1, 2))

    def verified(*urls: str) -> Any:
        result = CliRunner().invoke(app, ["verify", *urls, "--format", "json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.output)

    assert len(verified(first, second, first)) == 2
    assert {path for _, path, _ in server.asked} == {"/x.parquet?file=1", "/x.parquet?file=2"}
    assert verified(first) == verified(first, second)[0]


def test_map_of_a_signed_url_contains_no_signature(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    points = geo.from_points([1.0, 2.0], [3.0, 4.0])
    schema = pa.schema([geo.geometry_field("geom")])
    sink = io.BytesIO()
    pqext.write_table(pa.table([points.cast(schema.field(0).type)], schema=schema), sink)
    monkeypatch.setitem(globals(), "FILE", sink.getvalue())
    monkeypatch.chdir(tmp_path)
    url = f"http://127.0.0.1:{server.server_port}/x.parquet?signature=secret"
    result = CliRunner().invoke(app, ["map", url])
    assert result.exit_code == 0, result.output
    assert "secret" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet.map.html"]
    assert "secret" not in (tmp_path / "x.parquet.map.html").read_text()


def test_errors_contain_neither_options_nor_values_of_the_query() -> None:
    options = {"default_headers": {"authorization": "TOKEN-OF-OPTIONS"}}
    location = locate(
        "http://127.0.0.1:9/x.parquet?sig=VALUE-OF-QUERY&again=TOKEN-OF-OPTIONS", storage_options=options
    )

    def attempt(failed: int) -> None:
        raise RuntimeError("VALUE-OF-QUERY and TOKEN-OF-OPTIONS are wrong")

    with pytest.raises(pqext.SourceError) as raised:
        remote.call_with_retries(location.store, location.path, "the file", attempt)
    assert "*** and *** are wrong" in str(raised.value)
    assert "VALUE-OF-QUERY" not in repr(location)


def test_small_writes_to_a_store_are_joined_up_to_a_megabyte() -> None:
    class Upload:
        path = "s3://bucket/x.parquet"

        def __init__(self) -> None:
            self.sizes: list[int] = []

        def write(self, buffers: list[memoryview]) -> None:
            self.sizes.append(sum(map(len, buffers)))

        def commit(self) -> None:
            pass

        def abort(self) -> None:
            pass

    upload: Any = Upload()
    stream = BufferedUpload(upload, lambda: None)
    for _ in range(3_000):
        stream.write([memoryview(bytes(1_000))])
    stream.commit()
    assert upload.sizes == [1_049_000, 1_049_000, 902_000]
