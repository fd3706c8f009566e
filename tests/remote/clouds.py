"""Google Cloud Storage and Azure Blob Storage on loopback: of their APIs the few calls that pyarrow and obstore make.

Objects lie in memory. Each is replaced as a whole, when its upload is complete.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

MODIFIED = 1_700_000_000.0
WHEN, WHEN_ISO = formatdate(MODIFIED, usegmt=True), "2023-11-14T22:13:20.000Z"


@dataclass(frozen=True)
class Request:
    """What a server was asked."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def range(self) -> str | None:
        """The range that is asked for."""
        return self.headers.get("range") or self.headers.get("x-ms-range")


@dataclass
class Answer:
    """What a server says."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Cloud(ABC):
    """A server with one bucket, or container. ``faults`` are the answers to the next requests."""

    url: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, dict[str, bytes]] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)
    faults: list[Answer] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @abstractmethod
    def answer(self, request: Request) -> Answer:
        """The answer to a request."""

    def reads(self) -> list[str | None]:
        """The ranges of the requests for the content of objects."""
        return [one.range for one in self.asked if one.method == "GET" and (one.range or "media" in one.query.values())]

    def is_refused(self, key: str, request: Request) -> bool:
        """Does the object differ from what a request to write it expects?"""
        data, given = self.objects.get(key), request.headers
        if given.get("x-goog-if-generation-match", "0") != "0":
            return data is None or generation(data) != given["x-goog-if-generation-match"]
        if "if-match" in given:
            return data is None or etag(data) != given["if-match"]
        return data is not None and ("x-goog-if-generation-match" in given or given.get("if-none-match") == "*")

    def content(self, key: str, request: Request) -> Answer:
        """The whole of an object, or a range of it."""
        data = self.objects.get(key)
        if data is None:
            return Answer(404)
        headers = {
            "ETag": etag(data), "Last-Modified": WHEN, "Accept-Ranges": "bytes", "x-goog-generation": generation(data),
            "x-ms-blob-type": "BlockBlob", "x-ms-creation-time": WHEN, "x-ms-copy-status": "success",
            "x-ms-server-encrypted": "true", "Content-Type": "application/octet-stream",
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Answer(304, headers=headers)
        if request.range is None:
            return Answer(200, data, headers)
        first, _, last = request.range.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            return Answer(416, headers=headers)
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        return Answer(206, data[start:stop], headers)


def etag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def generation(data: bytes) -> str:
    return str(int(hashlib.md5(data).hexdigest()[:12], 16) + 1)


class Google(Cloud):
    """Cloud Storage: its JSON API for pyarrow, its XML API for obstore."""

    def answer(self, request: Request) -> Answer:
        path = request.path
        if path.startswith("/upload/storage/v1/b/"):
            return self._uploaded(request)
        found = re.fullmatch(r"(?:/download)?/storage/v1/b/([^/]+)(?:/o(?:/(.*))?)?", path)
        if found is not None:
            return self._json(found[2], request)
        return self._xml(unquote(path).lstrip("/").partition("/")[2], request)

    def _json(self, name: str | None, request: Request) -> Answer:
        if name is None:
            if not request.path.endswith("/o"):
                return told({"kind": "storage#bucket", "name": "bucket", "id": "bucket"})
            prefix = request.query.get("prefix", "")
            items = [self._described(key) for key in sorted(self.objects) if key.startswith(prefix)]
            return told({"kind": "storage#objects", "items": items})
        name, _, rewritten = name.partition("/rewriteTo/b/bucket/o/")
        key = unquote(name)
        if key not in self.objects:
            return told({"error": {"code": 404, "message": "No such object"}}, 404)
        if rewritten:
            self.objects[unquote(rewritten)] = self.objects[key]
            size = str(len(self.objects[key]))
            return told({
                "kind": "storage#rewriteResponse", "done": True, "objectSize": size, "totalBytesRewritten": size,
                "resource": self._described(unquote(rewritten)),
            })
        if request.method == "DELETE":
            del self.objects[key]
            return Answer(204)
        if request.query.get("alt") == "media":
            given = request.query.get("generation")
            return Answer(404) if given not in (None, generation(self.objects[key])) else self.content(key, request)
        return told(self._described(key))

    def _described(self, key: str) -> dict[str, str]:
        data = self.objects[key]
        return {
            "kind": "storage#object", "name": key, "bucket": "bucket", "size": str(len(data)), "etag": etag(data),
            "generation": generation(data), "metageneration": "1", "timeCreated": WHEN_ISO, "updated": WHEN_ISO,
            "id": f"bucket/{key}", "storageClass": "STANDARD", "contentType": "application/octet-stream",
        }

    def _uploaded(self, request: Request) -> Answer:
        """The resumable upload of an object, or its upload with one request."""
        session = request.query.get("upload_id")
        if session is None:
            body = json.loads(request.body or b"{}") if request.query.get("uploadType") == "resumable" else {}
            key = request.query.get("name") or body.get("name", "")
            if request.query.get("uploadType") != "resumable":
                boundary = request.headers["content-type"].partition("boundary=")[2].strip('"').encode()
                described, content = request.body.split(b"--" + boundary)[1:3]
                key = key or json.loads(described.partition(b"\r\n\r\n")[2])["name"]
                self.objects[key] = content.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
                return told(self._described(key))
            session = f"{len(self.parts)}"
            self.parts[session] = {key: b""}
            place = f"{self.url}{request.path}?uploadType=resumable&upload_id={session}"
            return Answer(200, headers={"Location": place})
        [key] = self.parts[session]
        self.parts[session][key] += request.body
        data = self.parts[session][key]
        total = request.headers.get("content-range", "/").rpartition("/")[2]
        if total != "*" and int(total) == len(data):
            self.objects[key] = data
            return told(self._described(key))
        return Answer(308, headers={"Range": f"bytes=0-{len(data) - 1}"} if data else {})

    def _xml(self, key: str, request: Request) -> Answer:
        query = request.query
        if request.method in ("GET", "HEAD"):
            return self.content(key, request) if key else self._listed(query.get("prefix", ""))
        if request.method == "DELETE":
            return Answer(204 if self.parts.pop(query.get("uploadId", ""), self.objects.pop(key, None)) else 404)
        if request.method == "POST" and "uploads" in query:
            self.parts[f"{len(self.parts)}"] = {}
            return xml(f"<InitiateMultipartUploadResult><UploadId>{len(self.parts) - 1}</UploadId>"
                       "</InitiateMultipartUploadResult>")
        if request.method == "POST":
            parts = self.parts.pop(query["uploadId"])
            numbers = [one.text or "" for one in ElementTree.fromstring(request.body).iter() if "PartNumber" in one.tag]
            self.objects[key] = b"".join(parts[number] for number in numbers)
            return xml(f"<CompleteMultipartUploadResult><ETag>{etag(self.objects[key])}</ETag>"
                       "</CompleteMultipartUploadResult>")
        if self.is_refused(key, request):
            return Answer(412)
        if "x-goog-copy-source" in request.headers:
            source = unquote(request.headers["x-goog-copy-source"]).partition("/")[2]
            if source not in self.objects:
                return Answer(404)
            self.objects[key] = self.objects[source]
        elif "uploadId" in query:
            self.parts[query["uploadId"]][query["partNumber"]] = request.body
        else:
            self.objects[key] = request.body
        return Answer(200, headers={"ETag": etag(request.body), "x-goog-generation": generation(request.body)})

    def _listed(self, prefix: str) -> Answer:
        items = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size><LastModified>{WHEN_ISO}</LastModified>"
            f"<ETag>{escape(etag(data))}</ETag></Contents>"
            for key, data in sorted(self.objects.items()) if key.startswith(prefix)
        )
        return xml(f"<ListBucketResult>{items}</ListBucketResult>")


class Azure(Cloud):
    """Blob Storage, with paths that begin with the account, as of an emulator."""

    def answer(self, request: Request) -> Answer:
        key = unquote(request.path).lstrip("/").partition("/")[2].partition("/")[2]
        query = request.query
        if query.get("comp") == "batch":
            return self._deleted(request)
        if query.get("comp") == "lease":
            headers = {"ETag": '"l"', "Last-Modified": WHEN, "x-ms-lease-id": "1", "x-ms-lease-time": "0"}
            return Answer(201 if request.headers.get("x-ms-lease-action") == "acquire" else 200, headers=headers)
        if not key:
            if query.get("comp") == "list":
                return self._listed(query.get("prefix", ""), query.get("delimiter"))
            return Answer(400 if "restype" not in query else 200, headers={"ETag": '"c"', "Last-Modified": WHEN})
        if request.method in ("GET", "HEAD"):
            return self.content(key, request)
        if request.method == "DELETE":
            return Answer(404 if self.objects.pop(key, None) is None else 202)
        if self.is_refused(key, request):
            return Answer(412 if "if-match" in request.headers else 409)
        if query.get("comp") == "block":
            self.parts.setdefault(key, {})[query["blockid"]] = request.body
        elif query.get("comp") == "blocklist":
            parts = self.parts.pop(key, {})
            named = [one.text or "" for one in ElementTree.fromstring(request.body)]
            self.objects[key] = b"".join(parts[one] for one in named)
        elif "x-ms-copy-source" in request.headers:
            source = unquote(urlsplit(request.headers["x-ms-copy-source"]).path).split("/", 3)[3]
            if source not in self.objects:
                return Answer(404)
            self.objects[key] = self.objects[source]
        else:
            self.objects[key] = request.body
        return Answer(202 if "x-ms-copy-source" in request.headers else 201, headers={
            "ETag": etag(self.objects.get(key, b"")), "Last-Modified": WHEN, "x-ms-request-server-encrypted": "true",
            "x-ms-copy-status": "success", "x-ms-copy-id": "1", "x-ms-lease-id": "1",
        })

    def _deleted(self, request: Request) -> Answer:
        """A batch of requests to delete objects."""
        answers = ""
        for number, target in enumerate(re.findall(r"DELETE (\S+) HTTP", request.body.decode())):
            key = unquote(urlsplit(target).path).lstrip("/").partition("/")[2].partition("/")[2]
            status = "404 Not Found" if self.objects.pop(key, None) is None else "202 Accepted"
            answers += (
                f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {status}\r\n"
                "x-ms-request-id: 1\r\nContent-Length: 0\r\n\r\n"
            )
        return Answer(202, f"{answers}--batch--\r\n".encode(), {"Content-Type": "multipart/mixed; boundary=batch"})

    def _listed(self, prefix: str, delimiter: str | None) -> Answer:
        items, folders = "", {}
        for key, data in sorted(self.objects.items()):
            if not key.startswith(prefix):
                continue
            head, mark, _ = key[len(prefix) :].partition(delimiter or "\0")
            if mark:
                folders[prefix + head + mark] = None
                continue
            items += (
                f"<Blob><Name>{escape(key)}</Name><Properties><Creation-Time>{WHEN}</Creation-Time><Last-Modified>{WHEN}"
                f"</Last-Modified><Etag>{etag(data)[1:-1]}</Etag><Content-Length>{len(data)}</Content-Length>"
                "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType><ServerEncrypted>"
                "true</ServerEncrypted></Properties></Blob>"
            )
        items += "".join(f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>" for name in folders)
        return xml(f'<EnumerationResults ServiceEndpoint="{self.url}" ContainerName="bucket"><Prefix>{escape(prefix)}'
                   f"</Prefix><Blobs>{items}</Blobs><NextMarker/></EnumerationResults>")


def told(content: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(content).encode(), {"Content-Type": "application/json"})


def xml(content: str) -> Answer:
    return Answer(200, f'<?xml version="1.0" encoding="utf-8"?>{content}'.encode(), {"Content-Type": "application/xml"})


@contextmanager
def running(cloud: Cloud) -> Iterator[None]:
    """Serve ``cloud`` on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(
                self.command, parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), headers, self._body()
            )
            with cloud.lock:
                cloud.asked.append(request)
                answer = cloud.faults.pop(0) if cloud.faults else cloud.answer(request)
            self.send_response(answer.status)
            body = answer.body
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("x-ms-version", "2023-11-03")
            self.send_header("x-ms-request-id", "1")
            if answer.status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD" and answer.status not in (204, 304):
                self.wfile.write(body)

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            found = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    cloud.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    # In a process of its own: pyarrow waits for Google's answer while it holds the interpreter.
    google = Google()
    with running(google):
        print(google.url, flush=True)
        sys.stdin.read()
