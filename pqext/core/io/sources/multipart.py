"""Files of S3 that appear only when somebody says so: uploads in parts, which another process may complete.

By ``boto3`` (extra ``remote``), since neither pyarrow nor obstore gives the number of an upload away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from pqext.core.base.errors import SourceError, UnsupportedError
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.pending_files import Begun, ErrorsOfKey, Pending, check_note
from pqext.core.io.sources.secrets import secrets_of, shown
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.uris import s3_arguments

_PART_BYTES = 16 << 20
"""Bytes of a part. S3 takes 10,000 parts, and none but the last below 5 MiB."""

_TRIES = 5
"""Times that a request is made while the store refuses it for the moment."""


class Bucket:
    """A bucket of S3 by ``boto3``, reached with the same ``storage_options`` as ``s3://`` URLs elsewhere."""

    def __init__(self, uri: str, storage_options: Mapping[str, Any] | None) -> None:
        if find_spec("boto3") is None:
            raise UnsupportedError(
                "writing a folder of s3:// in several tasks needs boto3: pip install 'pqext[remote]'",
                feature="commits on s3://", path=shown(uri),
            )
        self.name, _, self.prefix = uri.partition("://")[2].strip("/").partition("/")
        self._secrets = secrets_of(storage_options or {})
        self._uri, self._options = uri, storage_options
        self._client = _client(storage_options or {})

    def url(self, key: str) -> str:
        """The URL of a key."""
        return f"s3://{self.name}/{key}"

    def place(self, key: str) -> Location:
        """Where readers find a key."""
        folder: Location = locate(self._uri, None, self._options)
        return folder.at(f"{self.name}/{key}")

    def create(self, key: str) -> PartUpload:
        """A file that waits when it is finished."""
        return PartUpload(self, key)

    def begin(self, key: str) -> str:
        """Begin an upload."""
        return self._told("UploadId", "create_multipart_upload", key)

    def part(self, key: str, upload: str, number: int, data: bytes) -> str:
        """Store a part, of which the first has number 1; gives its etag."""
        return self._told("ETag", "upload_part", key, UploadId=upload, PartNumber=number, Body=data)

    def complete(self, key: str, pending: Pending) -> None:
        """Make an upload the file at ``key``, if that is not done already."""
        parts = [{"ETag": etag, "PartNumber": number} for number, etag in enumerate(pending.etags, 1)]
        try:
            self._told(
                "ETag", "complete_multipart_upload", key, UploadId=pending.upload, MultipartUpload={"Parts": parts}
            )
        except FileNotFoundError:
            self.call("head_object", key)

    def abort(self, key: str, upload: str) -> None:
        """Give an upload up."""
        with suppress(FileNotFoundError):
            self.call("abort_multipart_upload", key, UploadId=upload)

    def begun(self, prefix: str) -> Iterator[Begun]:
        """The uploads below ``prefix`` that are neither complete nor given up."""
        with self._named(prefix):
            for page in self._pages("list_multipart_uploads", prefix):
                for one in page.get("Uploads", ()):
                    yield Begun(one["Key"], one["UploadId"], one["Initiated"])

    def keys(self, prefix: str) -> dict[str, str]:
        """The keys below ``prefix`` with their etags."""
        with self._named(prefix):
            pages = self._pages("list_objects_v2", prefix)
            return {one["Key"]: one["ETag"] for page in pages for one in page.get("Contents", ())}

    def _pages(self, operation: str, prefix: str) -> Iterator[Any]:
        """The pages of a listing. What a proxy answers in the place of the store is not taken for an empty folder."""
        goes_on: bool | None = None
        for page in self._client.get_paginator(operation).paginate(Bucket=self.name, Prefix=prefix):
            goes_on = page.get("IsTruncated")
            if goes_on is None:
                break
            yield page
        if goes_on is not False:
            raise SourceError("the answer of the store is no listing, or not all of one", path=self.url(prefix))

    def get(self, key: str) -> tuple[bytes, str]:
        """The bytes of a small file and its etag."""
        found = self.call("get_object", key)
        check_note(found.get("ContentLength", 0), self.url(key))
        with self._named(key):
            return found["Body"].read(), str(found["ETag"])

    def put(self, key: str, data: bytes, *, new: bool = False) -> str:
        """Store a small file; gives its etag. With ``new``, raises ``FileExistsError`` where there is one."""
        return self._told("ETag", "put_object", key, Body=data, **({"IfNoneMatch": "*"} if new else {}))

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file where there is none; gives its etag. Raises ``FileExistsError`` where there is one."""
        return self.put(key, data, new=True)

    def release(self, key: str, version: str) -> None:
        """Delete what was claimed, while it is that version."""
        with suppress(FileNotFoundError, FileExistsError):
            self.call("delete_object", key, IfMatch=version)

    def delete(self, key: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError):
            self.call("delete_object", key)

    def call(self, operation: str, key: str, **arguments: Any) -> Any:
        """One request about a key. Raises ``FileNotFoundError``, ``FileExistsError``, ``PermissionError`` or
        ``SourceError`` with its URL, and nothing secret.
        """
        from botocore.exceptions import ClientError

        with self._named(key):
            try:
                return getattr(self._client, operation)(Bucket=self.name, Key=key, **arguments)
            except ClientError as error:
                code = str(error.response.get("Error", {}).get("Code"))
                if code in ("NoSuchUpload", "NoSuchKey", "404", "NotFound"):
                    raise FileNotFoundError(2, "there is no such file", self.url(key)) from None
                if code in ("PreconditionFailed", "ConditionalRequestConflict", "412"):
                    raise FileExistsError(17, "another file is there", self.url(key)) from None
                if code in ("AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
                    raise PermissionError(13, code) from None
                raise

    def _told(self, name: str, operation: str, key: str, **arguments: Any) -> str:
        """What the answer to a request has under ``name``. Without it the store may not have done what it was asked."""
        answer = self.call(operation, key, **arguments)
        if name not in answer:
            raise SourceError(f"the store answers {operation} without {name}", path=self.url(key))
        return str(answer[name])

    def _named(self, key: str) -> ErrorsOfKey:
        return ErrorsOfKey(self.url(key), self._secrets)


class PartUpload:
    """What a writer writes to: a file that waits in the store once it is finished."""

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket = bucket
        self._key = key
        self._upload: str | None = None
        self._etags: list[str] = []
        self._held = bytearray()

    def seekable(self) -> bool:
        """Bytes come in order."""
        return False

    def write(self, data: Any) -> int:
        """Append ``data``; parts that are full are stored."""
        self._held += data
        while len(self._held) >= _PART_BYTES:
            part = bytes(self._held[:_PART_BYTES])
            del self._held[:_PART_BYTES]
            self._store(part)
        return len(data)

    def finish(self) -> Pending:
        """Store what is left; the upload waits."""
        if self._held or not self._etags:
            self._store(bytes(self._held))
            self._held.clear()
        return Pending(self._upload or "", tuple(self._etags))

    def give_up(self) -> None:
        """Give the upload up. Raises nothing."""
        if self._upload is not None:
            with suppress(Exception):
                self._bucket.abort(self._key, self._upload)

    def _store(self, part: bytes) -> None:
        if self._upload is None:
            self._upload = self._bucket.begin(self._key)
        self._etags.append(self._bucket.part(self._key, self._upload, len(self._etags) + 1, part))


def _client(options: Mapping[str, Any]) -> Any:
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    given = s3_arguments(options)
    endpoint = given.get("endpoint_override")
    style = "virtual" if given.get("force_virtual_addressing") or not endpoint else "path"
    retries = {"mode": "standard", "max_attempts": _TRIES}
    config: dict[str, Any] = {"s3": {"addressing_style": style}, "retries": retries}
    if given.get("anonymous"):
        config["signature_version"] = UNSIGNED
    return boto3.client(
        "s3",
        endpoint_url=f"{given.get('scheme', 'https')}://{endpoint}" if endpoint else None,
        aws_access_key_id=given.get("access_key"),
        aws_secret_access_key=given.get("secret_key"),
        aws_session_token=given.get("session_token"),
        region_name=given.get("region"),
        config=Config(**config),
    )
