"""An S3-compatible server on loopback, which counts what it is asked for, and file systems of three libraries on it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow.fs as fs
import pytest
from obstore.store import S3Store

import pqext
from pqext.core.io.sources.store import clear_stores

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMIK7MDENG"
BUCKET = "bucket"


@dataclass
class S3:
    """The server: what it was asked, and how it is reached."""

    url: str
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    refused: Callable[[str, str], bool] | None = None
    """Is a request, by its method and URL, answered by an error?"""

    @property
    def options(self) -> dict[str, Any]:
        return {
            "aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "endpoint_url": self.url,
            "region": "us-east-1", "allow_bucket_creation": True,
        }

    @cached_property
    def known(self) -> fs.S3FileSystem:
        return self.arrow()

    def arrow(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key=KEY, secret_key=SECRET, endpoint_override=self.url.removeprefix("http://"), scheme="http",
            region="us-east-1", allow_bucket_creation=True,
        )

    def obstore(self) -> S3Store:
        return S3Store(
            BUCKET, endpoint=self.url, access_key_id=KEY, secret_access_key=SECRET, region="us-east-1",
            client_options={"allow_http": True}, virtual_hosted_style_request=False,
        )

    def forget(self) -> None:
        """From here on requests count."""
        with self.lock:
            self.asked.clear()

    def ranges(self) -> list[str | None]:
        """The ranges of the GET requests for objects."""
        return [asked for method, _, asked in self.asked if method == "GET"]

    def put(self, key: str, data: bytes) -> str:
        """Store an object; gives its URL."""
        filesystem = self.known
        with filesystem.open_output_stream(f"{BUCKET}/{key}", compression=None) as stream:
            stream.write(data)
        self.forget()
        return f"s3://{BUCKET}/{key}"

    def keys(self) -> list[str]:
        found = self.known.get_file_info(fs.FileSelector(BUCKET, recursive=True))
        return [info.path for info in found if info.is_file]


@pytest.fixture(scope="session")
def server() -> Iterator[S3]:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app: Any = DomainDispatcherApplication(create_backend_app)
    s3 = S3("")

    def counted(environ: dict[str, Any], start: Any) -> Any:
        with s3.lock:
            s3.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("HTTP_RANGE")))
        url = f"{environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        if s3.refused is not None and s3.refused(environ["REQUEST_METHOD"], url):
            start("503 Slow Down", [("Content-Length", "0")])
            return []
        return app(environ, start)

    running = make_server("127.0.0.1", 0, counted, threaded=True)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    s3.url = f"http://127.0.0.1:{running.server_port}"
    s3.arrow().create_dir(BUCKET)
    yield s3
    running.shutdown()
    thread.join()


@pytest.fixture
def s3(server: S3) -> Iterator[S3]:
    """The server, empty, and nothing known of its files."""
    filesystem = server.known
    filesystem.delete_dir_contents(BUCKET, missing_dir_ok=True)
    clear_stores()
    pqext.clear_cache()
    server.forget()
    yield server
    server.refused = None
    pqext.clear_cache()
    clear_stores()
