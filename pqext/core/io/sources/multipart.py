"""Write pending files to S3 as multipart uploads, which another process may complete.

Uses ``boto3`` (extra ``remote``), because neither pyarrow nor obstore exposes the id of an upload.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from pqext.core.base.errors import SourceError, UnsupportedError
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.pending_files import KeyErrorContext, PendingUpload, UnfinishedFile, check_manifest_size
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.store_errors import collect_secrets, redact_uri
from pqext.core.io.sources.uris import s3_arguments

_PART_BYTES = 16 << 20
"""Size of a part in bytes. S3 accepts 10,000 parts, each of at least 5 MiB except the last."""

_TRIES = 5
"""Maximum number of attempts for a request that the store rejects temporarily."""


class Bucket:
    """S3 bucket accessed with ``boto3``. It accepts the ``storage_options`` of all ``s3://`` URLs."""

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None) -> None:
        if find_spec("boto3") is None:
            raise UnsupportedError(
                "writing a folder on s3:// from several tasks requires boto3: pip install 'pqext[remote]'",
                feature="commits on s3://", path=redact_uri(uri),
            )
        self.name, _, self.prefix = uri.partition("://")[2].strip("/").partition("/")
        self._secrets = collect_secrets(storage_options or {})
        self._uri, self._options = uri, storage_options
        self._client = _client(storage_options or {})

    def url(self, key: str) -> str:
        """Return the URL of a key."""
        return f"s3://{self.name}/{key}"

    def location(self, key: str) -> Location:
        """Return the location for readers of ``key``."""
        folder: Location = locate(self._uri, None, self._options)
        return folder.with_key(f"{self.name}/{key}")

    def create(self, key: str) -> MultipartWriter:
        """Create a file that becomes pending when it is finished."""
        return MultipartWriter(self, key)

    def begin(self, key: str) -> str:
        """Begin an upload and return its id."""
        return self._field("UploadId", "create_multipart_upload", key)

    def upload_part(self, key: str, upload: str, number: int, data: bytes) -> str:
        """Store a part and return its etag. Parts are numbered from 1."""
        return self._field("ETag", "upload_part", key, UploadId=upload, PartNumber=number, Body=data)

    def complete(self, key: str, pending: PendingUpload) -> None:
        """Complete an upload as the file at ``key``, unless it was completed before."""
        parts = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(pending.etags, 1)]
        try:
            self._field(
                "ETag", "complete_multipart_upload", key, UploadId=pending.upload, MultipartUpload={"Parts": parts}
            )
        except FileNotFoundError:
            self.call("head_object", key)

    def abort(self, key: str, upload: str) -> None:
        """Abort an upload."""
        with suppress(FileNotFoundError):
            self.call("abort_multipart_upload", key, UploadId=upload)

    def iter_pending_files(self, prefix: str) -> Iterator[UnfinishedFile]:
        """Yield the uploads with keys that begin with ``prefix`` and are neither complete nor aborted."""
        with self._error_context(prefix):
            for page in self._pages("list_multipart_uploads", prefix):
                for upload in page.get("Uploads", ()):
                    yield UnfinishedFile(upload["Key"], upload["UploadId"], upload["Initiated"])

    def keys(self, prefix: str) -> dict[str, str]:
        """Return the keys that begin with ``prefix``, with their etags."""
        with self._error_context(prefix):
            pages = self._pages("list_objects_v2", prefix)
            return {entry["Key"]: entry["ETag"] for page in pages for entry in page.get("Contents", ())}

    def _pages(self, operation: str, prefix: str) -> Iterator[Any]:
        """Yield the pages of a listing. Raises ``SourceError`` if a page is invalid, such as a proxy's response."""
        is_truncated: bool | None = None
        for page in self._client.get_paginator(operation).paginate(Bucket=self.name, Prefix=prefix):
            is_truncated = page.get("IsTruncated")
            if is_truncated is None:
                break
            yield page
        if is_truncated is not False:
            raise SourceError("the object store returned an invalid or incomplete listing", path=self.url(prefix))

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the bytes and the etag of a small file."""
        response = self.call("get_object", key)
        check_manifest_size(response.get("ContentLength", 0), self.url(key))
        with self._error_context(key):
            return response["Body"].read(), str(response["ETag"])

    def put(self, key: str, data: bytes, *, is_new: bool = False) -> str:
        """Store a small file and return its etag. With ``is_new``, raises ``FileExistsError`` if the file exists."""
        return self._field("ETag", "put_object", key, Body=data, **({"IfNoneMatch": "*"} if is_new else {}))

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file and return its etag. Raises ``FileExistsError`` if the file exists."""
        return self.put(key, data, is_new=True)

    def replace(self, key: str, data: bytes, version: str | None) -> str:
        """Replace a small file if its version is still ``version`` (None: missing). Return the new version.

        Raises ``FileExistsError`` or ``FileNotFoundError`` otherwise.
        """
        if version is None:
            return self.claim(key, data)
        return self._field("ETag", "put_object", key, Body=data, IfMatch=version)

    def release(self, key: str, version: str) -> None:
        """Delete a claimed file if its version is still ``version``."""
        with suppress(FileNotFoundError, FileExistsError):
            self.call("delete_object", key, IfMatch=version)

    def delete(self, key: str) -> None:
        """Delete a file if it exists."""
        with suppress(FileNotFoundError):
            self.call("delete_object", key)

    def call(self, operation: str, key: str, **arguments: Any) -> Any:
        """Make a request for ``key`` and return the response.

        Raises ``FileNotFoundError``, ``FileExistsError``, ``PermissionError`` or ``SourceError``. Errors contain the
        URL of the key, but no secrets.
        """
        from botocore.exceptions import ClientError

        with self._error_context(key):
            try:
                return getattr(self._client, operation)(Bucket=self.name, Key=key, **arguments)
            except ClientError as error:
                code = str(error.response.get("Error", {}).get("Code"))
                if code in ("NoSuchUpload", "NoSuchKey", "404", "NotFound"):
                    raise FileNotFoundError(2, "file not found", self.url(key)) from None
                if code in ("PreconditionFailed", "ConditionalRequestConflict", "412"):
                    message = "the file already exists, or another process has changed it"
                    raise FileExistsError(17, message, self.url(key)) from None
                if code in ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
                    raise PermissionError(13, code) from None
                raise

    def _field(self, name: str, operation: str, key: str, **arguments: Any) -> str:
        """Make a request, and return one field of the response.

        Raises ``SourceError`` if it is missing, since the request may have failed.
        """
        response = self.call(operation, key, **arguments)
        if name not in response:
            raise SourceError(f"the store's response to {operation} has no {name}", path=self.url(key))
        return str(response[name])

    def _error_context(self, key: str) -> KeyErrorContext:
        return KeyErrorContext(self.url(key), self._secrets)


class MultipartWriter:
    """Writer output that is uploaded to S3 in parts. :meth:`finish` returns the pending upload."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._upload: str | None = None
        self._etags: list[str] = []
        self._buffer = bytearray()

    def seekable(self) -> bool:
        """Return False, since bytes are written in order."""
        return False

    def write(self, data: Any) -> int:
        """Append ``data``, and store each complete part."""
        self._buffer += data
        while len(self._buffer) >= _PART_BYTES:
            part = bytes(self._buffer[:_PART_BYTES])
            del self._buffer[:_PART_BYTES]
            self._store(part)
        return len(data)

    def finish(self) -> PendingUpload:
        """Store the remaining bytes, and return the pending upload."""
        if self._buffer or not self._etags:
            self._store(bytes(self._buffer))
            self._buffer.clear()
        return PendingUpload(self._upload or "", tuple(self._etags))

    def abort(self) -> None:
        """Abort the upload. Never raises."""
        if self._upload is not None:
            with suppress(Exception):
                self._bucket.abort(self._key, self._upload)

    def _store(self, part: bytes) -> None:
        if self._upload is None:
            self._upload = self._bucket.begin(self._key)
        self._etags.append(self._bucket.upload_part(self._key, self._upload, len(self._etags) + 1, part))


def _client(options: Mapping[str, Any]) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    arguments = s3_arguments(options)
    endpoint = arguments.get("endpoint_override")
    style = "virtual" if arguments.get("force_virtual_addressing") or not endpoint else "path"
    retries = {"mode": "standard", "max_attempts": _TRIES}
    config: dict[str, Any] = {"s3": {"addressing_style": style}, "retries": retries}
    if arguments.get("anonymous"):
        config["signature_version"] = UNSIGNED
    return boto3.client(
        "s3",
        endpoint_url=f"{arguments.get('scheme', 'https')}://{endpoint}" if endpoint else None,
        aws_access_key_id=arguments.get("access_key"),
        aws_secret_access_key=arguments.get("secret_key"),
        aws_session_token=arguments.get("session_token"),
        region_name=arguments.get("region"),
        config=Config(**config),
    )
